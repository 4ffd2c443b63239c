"""What a proof must not be given: claims and definitions that would make the kernel, or a witness, lie."""

import pytest
from sympy import (
    Abs,
    S,
    Sum,
    sqrt,
)

from normgrad.symbolic import (
    Defs,
    check_fixed,
    counterexample,
    dim,
    index,
    tensor,
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


# -- definitions


def test_a_sum_does_not_catch_the_letter_of_a_definition():
    defs = Defs()
    defs[f] = j * S.One  # a dimension that is called j
    assert nf(defs.unfold(Sum(f, (j, 1, N)))) == N * j
