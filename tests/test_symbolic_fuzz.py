"""A short seeded run of the fuzzer: claims that NumPy sees fail are not proved, and true ones are not refuted."""

import random

import pytest
from fuzz_symbolic import BASES, FREE, Grow, apart, run, symbolic
from sympy import sqrt

from normgrad.symbolic import D, Partial, check_fixed, index
from normgrad.symbolic.normal_form import Reciprocal, Root, nf


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.sampled(of=2, key="fuzz", turn=seed - 1))
        for seed in (1, 2)
    ],
)
def test_no_random_claim_is_proved_that_numpy_sees_fail(seed):
    answers, wrong = run(claims=150, seed=seed)
    assert wrong == []
    assert answers["true", "proved"] > 40 and answers["false", "refuted"] > 40
    assert answers["true", "undecided"] + answers["false", "undecided"] < 10


def test_the_normal_form_keeps_every_value():
    """Of random expressions and of their derivatives, by the witness that does not use it."""
    draw, letters = random.Random(2), dict(zip(FREE, index(*FREE), strict=True))
    entry = BASES["x"][letters["i"]]
    compared = 0
    while compared < 100:
        e = symbolic(Grow(draw).tree(draw.randint(2, 4), dict(FREE)), letters)
        try:
            forms = nf(e), nf(D(e, entry))
        except (NotImplementedError, ValueError):
            continue
        for side, form in zip((e, Partial(e, entry)), forms, strict=True):
            plain = form.replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)
            assert check_fixed(side, plain, (2, 3)), side
        compared += 1


def test_the_oracle_tells_equal_trees_from_others():
    x, y = ("entry", "x", ("r",)), ("entry", "y", ("r",))
    together = ("sum", "r", "N", ("add", x, y))
    split = ("add", ("sum", "r", "N", x), ("sum", "r", "N", y))
    assert apart(together, split, random.Random(0)) is False
    assert apart(together, ("mean", *together[1:]), random.Random(0)) is True
    slope = ("slope", ("sum", "r", "N", ("power", x, 2, 1)), ("x", ("i",)))
    twice = ("mul", ("number", 2, 1), ("entry", "x", ("i",)))
    assert apart(slope, twice, random.Random(0)) is False
    assert apart(slope, ("entry", "x", ("i",)), random.Random(0)) is True
