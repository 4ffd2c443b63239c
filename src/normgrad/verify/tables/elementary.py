"""Elementary functions: one row for each, with its name in every library that has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import neg

from sympy import Abs, Expr, Ge, Gt, Ne, S, cos, exp, log, sin, tanh
from sympy.core.relational import Relational

from ...symbolic.elementary import sigmoid
from ..values import power
from .dtypes import FLOATS, INTEGERS, LONG

# what an argument must be to 0
DIVISOR, POSITIVE, NONNEGATIVE = Ne, Gt, Ge
LOGARITHMS = {"log", "log2"}


@dataclass(frozen=True)
class Elementary:
    """A function of one number.

    Args:  f: in SymPy; names: {a name: its homes, which are those of `functions`}
           needs: what must hold of the argument; whole: whether an integer stays one
           takes: the dtypes that Triton has it for
    """

    f: Callable[[Expr], Expr]
    names: dict[str, str]
    needs: type[Relational] | None = None
    whole: bool = False
    takes: frozenset[str] = LONG


ROWS = (
    Elementary(
        lambda a: a**S.Half,
        {
            "sqrt": "numpy torch python language math libdevice texts",
            "sqrt_rn": "libdevice",
        },
        NONNEGATIVE,
    ),
    Elementary(
        lambda a: a**S.Half,
        {"sqrt_rn": "language math"},
        NONNEGATIVE,
        takes=frozenset({"float32"}),
    ),
    Elementary(
        lambda a: a**-S.Half,
        {"rsqrt": "torch language math libdevice texts"},
        POSITIVE,
    ),
    Elementary(sigmoid, {"sigmoid": "torch language standard texts"}),
    Elementary(exp, {"exp": "numpy torch python language math libdevice texts"}),
    Elementary(
        log, {"log": "numpy torch python language math libdevice texts"}, POSITIVE
    ),
    Elementary(
        lambda a: log(a) / log(2),
        {"log2": "numpy torch python language math libdevice"},
        POSITIVE,
    ),
    Elementary(
        lambda a: power(S(2), a), {"exp2": "numpy torch language math libdevice"}
    ),
    Elementary(sin, {"sin": "language math libdevice texts"}),
    Elementary(cos, {"cos": "language math libdevice texts"}),
    Elementary(tanh, {"tanh": "numpy torch libdevice texts"}),
    Elementary(
        Abs,
        {
            "abs": "numpy torch builtins language math",
            "absolute": "numpy torch",
            "fabs": "helpers",
            "Abs": "texts",
        },
        whole=True,
        takes=FLOATS | INTEGERS,
    ),
    Elementary(
        Abs,
        {"abs": "libdevice"},
        whole=True,
        takes=LONG | {"int32", "int64"},
    ),
    Elementary(lambda a: a**2, {"square": "numpy torch"}, whole=True),
    Elementary(lambda a: a**-1, {"reciprocal": "numpy torch"}, DIVISOR, True),
    Elementary(neg, {"negative": "numpy torch", "neg": "torch"}, whole=True),
)


def functions(*homes: str) -> dict[str, Elementary]:
    """{name: its row} of the functions that one of these homes has.

    Args:  homes: "numpy", "torch" for functions and methods, "python" for its module math, "builtins", a module of
           Triton by its last name, "helpers" of kernels, and "texts" of definitions
    """
    return {
        name: row
        for row in ROWS
        for name, words in row.names.items()
        if not set(homes).isdisjoint(words.split())
    }
