"""The book's formulas about computed numbers, one object each; the page prints it, and a cell's numbers are put in."""

from __future__ import annotations

from functools import cache

from sympy import Abs, I, Integer, Rational, Symbol, ceiling, im
from sympy.core.relational import Eq, Le

from ..symbolic.measured import Divides, Log2, largest
from ..symbolic.notation import as_written, dim, index, tensor, total
from ..symbolic.opaque import derivative, opaque
from .formula import Formula, Line, Near, formula

M, N, P = dim("M"), dim("N"), dim("P")
g, i, j, k = index("g", "i", "j", "k")
u, h, rho = (Symbol(name, positive=True) for name in ("u", "h", "rho"))
# What a program computes for its argument.
fl, tree = opaque("fl"), opaque("tree")
t = tensor("t", N)


def _differences():
    phi, quotient, computed = opaque("phi"), opaque("Delta"), opaque("Delta_tilde")
    slope, third = derivative(phi), derivative(derivative(derivative(phi)))
    # bend: a bound of the third derivative between -h1 and h1, not its value at 0.
    xi, best, bend = (
        tensor("xi"),
        tensor("h1", positive=True),
        tensor("bend", positive=True),
    )
    yield formula(
        "fd-truncation",
        Eq(quotient(h) - slope(Integer(0)), h**2 / 6 * third(xi)),
    )
    yield formula("fd-roundoff", Le(Abs(computed(h) - quotient(h)), rho / h))
    yield formula(
        "fd-best-step",
        Eq(best, (3 * rho / bend) ** Rational(1, 3)),
        Near(best, u ** Rational(1, 3)),
        Le(
            Abs(computed(best) - slope(Integer(0))),
            Rational(1, 2) * (3 * rho) ** Rational(2, 3) * bend ** Rational(1, 3),
        ),
    )
    zero = Integer(0)
    expansion = im(phi(I * h)) / h + h**2 / 6 * third(zero)
    yield formula("fd-complex-step", Line(Eq(slope(zero), expansion), dots=True))


def _sums():
    row, size = total(N, lambda r: t[r]), total(N, lambda r: Abs(t[r]))
    yield formula("tolerance-sum", Le(Abs(fl(row) - row), (N - 1) * u * size))
    yield formula(
        "kern-tree",
        Le(Abs(tree(row) - row), ceiling(Log2(N)) * u * size),
    )
    x, x_hat, rstd = tensor("x", M, N), tensor("x_hat", M, N), tensor("rstd", M)
    theta, far = (
        tensor("theta", M)[i],
        rstd[i] * largest(N, lambda r: Abs(x[i, r])),
    )
    # The mean is off by theta deviations, which a variance about it contains squared.
    entry = u * (N + 8) * (far + Abs(x_hat[i, j])) + Rational(1, 2) * theta**2 * Abs(
        x_hat[i, j]
    )
    relation = Le(Abs(fl(x_hat[i, j]) - x_hat[i, j]), entry)
    yield formula("tolerance-x-hat", Line(relation, where=((theta, N * u * far),)))


def _formats():
    eta, y, once, twice = (tensor(name, N) for name in ("eta", "y", "y1", "y2"))
    yield formula(
        "fp-model",
        Eq(fl(t[k]), t[k] * (1 + eta[k])),
        Le(Abs(eta[k]), u),
    )
    yield formula(
        "fp-casts",
        Line(Le(Abs(once[k] - y[k]), u * Abs(y[k])), "one cast:"),
        Line(
            Le(Abs(twice[k] - y[k]), (2 * u + u**2) * Abs(y[k])),
            "two casts:",
        ),
    )


def _variances():
    far, near, H = tensor("R", M)[i], tensor("R1", M)[i], Symbol("H", positive=True)
    theta = tensor("theta", M)[i]
    sums, of_mean = (N + 6) * u, N * u * far
    ways = {
        "one pass": (3 * sums * far**2, None),
        "shifted": (3 * sums * near**2, None),
        "two passes": (sums + theta**2, of_mean),
        "corrected": (sums * (1 + 2 * theta) ** 2, of_mean),
        "Welford": (
            sums + Rational(5, 2) * theta + theta**2,
            Rational(1, 2) * (N + 9) * u * far,
        ),
        "Chan": (
            2 * (H + 3) * u + 2 * H ** Rational(1, 2) * theta + H * theta**2,
            5 * H * u * far,
        ),
    }
    lines = []
    for number, (name, (bound, value)) in enumerate(ways.items(), start=1):
        where = () if value is None else ((theta, value),)
        lines.append(Line(Le(tensor(f"e{number}", M)[i], bound), f"{name}:", where))
    yield formula("fp-bounds", *lines)


def _shares():
    share = tensor("A", P, M)
    yield formula(
        "pg-strided",
        Eq(share[g, i], Divides(P, i - g)),
        Eq(total(P, lambda program: share[program, i]), Integer(1)),
    )


@cache
def formulas() -> dict[str, Formula]:
    """All formulas of the book that are checked with numbers, by label; not to be changed."""
    with as_written():
        sections = [_differences, _sums, _formats, _variances, _shares]
        return {entry.label: entry for section in sections for entry in section()}
