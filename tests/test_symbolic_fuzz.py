"""Random expressions: no false claim is proved, and normal forms keep values."""

import random

from random_claims import TENSORS, grow, i, run
from sympy import sqrt

from normgrad.symbolic import D, Partial, check_fixed
from normgrad.symbolic.normal_form import Reciprocal, Root, nf


def test_no_random_claim_is_proved_that_is_false_in_numbers():
    answers, wrong = run(claims=200, seed=1)
    assert wrong == []
    assert answers["true", "proved"] > 30 and answers["false", "refuted"] > 30
    assert answers["true", "undecided"] + answers["false", "undecided"] < 8


def test_the_normal_form_keeps_every_value():
    """Of random expressions and of their derivatives, by the witness that does not use it."""
    draw, entry = random.Random(2), TENSORS["x"][i]
    compared = 0
    while compared < 60:
        e = grow(draw, draw.randint(2, 4))
        try:
            forms = nf(e), nf(D(e, entry))
        except (NotImplementedError, ValueError):
            continue
        for side, form in zip((e, Partial(e, entry)), forms, strict=True):
            plain = form.replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)
            assert check_fixed(side, plain, (2, 3)), side
        compared += 1
