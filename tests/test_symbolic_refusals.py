"""What a proof must not be given: claims and definitions that would make the kernel, or a witness, lie."""

import pytest
from sympy import (
    Abs,
    Heaviside,
    Max,
    Min,
    Piecewise,
    S,
    Sum,
    log,
    sign,
)

from normgrad.symbolic import (
    Defs,
    Partial,
    check_fixed,
    counterexample,
    dim,
    index,
    tensor,
    total,
)
from normgrad.symbolic.normal_form import nf

M, N, K = dim("M"), dim("N"), dim("K")
i, j, k = index("i", "j", "k")
x, y, A = tensor("x", N), tensor("y", N), tensor("A", N, N)
s, f, g, L, t = (tensor(name) for name in ("s", "f", "g", "L", "t"))

# -- the second witness


def test_the_second_witness_differentiates_no_branches(monkeypatch):
    """It agrees, or finds the boundary, without SymPy's derivatives of what has branches."""

    def absent(*parts):
        raise AssertionError("a derivative of branches")

    for kind in (Piecewise, Abs, sign):
        monkeypatch.setattr(kind, "_eval_derivative", absent)
    for kind in (Heaviside, Max, Min):
        monkeypatch.setattr(kind, "fdiff", absent)
    for lhs, rhs in (
        (Partial(Piecewise((1, f > 0), (0, True)), f), S.Zero),
        (Partial(Min(s, f) * s, s), s * Heaviside(f - s) + Min(s, f)),
        (Partial(s * sign(s), s), sign(s)),
        (Partial(Partial(Max(s, 0) ** 2, s), s), 2 * Heaviside(s)),
        (Partial(total(N, lambda r: Max(x[r], 0)), x[i]), Heaviside(x[i])),
    ):
        assert check_fixed(lhs, rhs, (2,))
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs + s**2, (2,))
        assert counterexample(lhs, rhs) is None


def test_what_was_compared_nowhere_does_not_pass():
    nowhere = Partial(log(-1 - Abs(s)), s)
    third = Partial(Partial(Partial(Max(s, 0) ** 4, s), s), s)
    for lhs, rhs in ((nowhere, S.Zero), (third, 24 * Max(s, 0)), (third, S.Zero)):
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs, (2,))
        assert counterexample(lhs, rhs) is None


# -- definitions


def test_a_sum_does_not_catch_the_letter_of_a_definition():
    defs = Defs()
    defs[f] = j * S.One  # a dimension that is called j
    assert nf(defs.unfold(Sum(f, (j, 1, N)))) == N * j
