"""What a proof must not be given: claims and definitions that would make the kernel, or a witness, lie."""

import random

import pytest
from sympy import (
    Abs,
    KroneckerDelta,
    Mul,
    S,
    Sum,
    Tuple,
    sqrt,
)

from normgrad.symbolic import (
    Defs,
    check_fixed,
    counterexample,
    dim,
    index,
    prove,
    tensor,
    witness,
)
from normgrad.symbolic.normal_form import nf

N, j = dim("N"), index("j")
s, f = tensor("s"), tensor("f")

# -- the second witness


def test_what_was_compared_nowhere_does_not_pass():
    nowhere = sqrt(-1 - Abs(s))
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(nowhere, S.Zero, (2,))
    assert counterexample(nowhere, S.Zero) is None


@pytest.mark.parametrize("sizes", [(), (0,), (2, -1), (True,), (2.0,)])
def test_a_row_has_a_length(sizes):
    with pytest.raises(ValueError, match="sizes: got .*needs at least one length"):
        check_fixed(s, s, sizes)


def test_the_sizes_that_are_named_are_those_that_are_checked():
    """(N - 2)s is 0 for rows of two entries alone."""
    at_two_alone = (N - 2) * s, S.Zero
    assert check_fixed(*at_two_alone, (2,)) == 1
    for sizes in ((3,), (2, 3)):
        with pytest.raises(AssertionError, match="fails for rows at N = 3"):
            check_fixed(*at_two_alone, sizes)


def test_a_claim_that_holds_at_the_points_that_are_drawn_is_no_identity():
    drawn = witness._points(Tuple(s), random.Random(0), False)
    vanishes = Mul(*[s - point[s] for point in drawn])
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(vanishes, S.Zero, (2,))


@pytest.mark.parametrize("seconds", [0, -1, None, "2", float("nan")])
def test_a_proof_has_some_time(seconds):
    with pytest.raises(ValueError, match="seconds: got .*greater than 0"):
        prove(s, s, seconds=seconds)


# -- the normal form alone


def test_a_delta_of_a_shifted_index_has_no_normal_form():
    x = tensor("x", N)
    with pytest.raises(NotImplementedError, match="a delta of a shifted index"):
        nf(KroneckerDelta(j, index("k") + 1) * x[j])


# -- definitions


def test_the_line_of_a_name_that_is_not_defined():
    defs = Defs()
    defs[f] = s**2
    with pytest.raises(ValueError, match="s: not defined here; defined are f"):
        defs.line(s)


def test_a_sum_does_not_catch_the_letter_of_a_definition():
    defs = Defs()
    defs[f] = j * S.One  # a dimension that is called j
    assert nf(defs.unfold(Sum(f, (j, 1, N)))) == N * j
