"""The functions of Triton that a launcher calls: sizes of blocks and of grids."""

from __future__ import annotations

from ..arrays import NotRead, is_integer, number, plain
from ..sizes import ceiling, next_power_of_2
from .signatures import Fields, table, wrong


def _integers(*values):
    if not all(map(is_integer, values)):
        raise NotRead("a size of other than integers")
    return list(map(plain, values))


def power(n):
    """triton.next_power_of_2."""
    (n,) = _integers(n)
    if not n.is_positive:
        raise NotRead(f"next_power_of_2 of {n}, which may be no positive number")
    return number(next_power_of_2(n), "int")


def quotient(x, y):
    """triton.cdiv."""
    return number(ceiling(*_integers(x, y)), "int")


# functions that Triton calls in kernels alone
OF_KERNELS = "zeros zeros_like arange load program_id where max sum exp sqrt rsqrt cdiv"
OUTSIDE = wrong("does not run: a function of triton.language outside of a kernel")
TRITON = table(
    "math",
    {
        "next_power_of_2(n)": power,
        "cdiv(x, y)": quotient,
        "language.constexpr(value)": lambda value: Fields({"value": value}),
        **{f"language.{name}(*a, **b)": OUTSIDE for name in OF_KERNELS.split()},
    },
)
