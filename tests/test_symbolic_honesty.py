"""The proof kernel against false claims: mutants of every registered step, and the rules of its sources."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import (
    Add,
    Mul,
    Pow,
    S,
    Sum,
    evaluate,
)
from sympy.core.function import AppliedUndef

import normgrad.symbolic
from normgrad.symbolic import (
    NotProved,
    equation,
    equations,
)
from normgrad.symbolic.chains import DEFINITION


def _mutants(e, draw):
    """The expression with one coefficient changed: each term's sign turned, one within a term as well, or e doubled."""
    deeper = []
    for position in _inside(e):
        if e.args[position].has(Add):
            deeper += [
                e.func(*e.args[:position], part, *e.args[position + 1 :])
                for part in _mutants(e.args[position], draw)
            ]
    if isinstance(e, Add):
        yield from (
            Add(*e.args[:position], -term, *e.args[position + 1 :])
            for position, term in enumerate(e.args)
        )
        deeper = draw.sample(deeper, min(1, len(deeper)))
    yield from deeper
    if not deeper and not isinstance(e, Add):
        yield 2 * e if e != 0 else S.One


def _inside(e):
    """The places of e's parts that hold coefficients: not a root's, whose terms keep their signs for it to be real."""
    if isinstance(e, AppliedUndef):
        return range(1, len(e.args))
    if isinstance(e, Sum) or isinstance(e, Pow) and e.exp.is_Integer:
        return range(1)
    return range(len(e.args)) if isinstance(e, Add | Mul) else ()


def refuted_steps(statement, draw):
    """Assert that a changed coefficient is refuted in every step of an equation."""
    for number, (lhs, rhs) in enumerate(statement.steps, start=1):
        with evaluate(True):
            mutants = list(_mutants(rhs, draw))
        if statement.kind == DEFINITION:
            mutants = mutants[:1]  # the left side is what the right side says it is
        refuted = 0
        for wrong in mutants:
            try:
                replace(statement, chains=((lhs, wrong),), whys=()).prove()
            except NotProved as refusal:
                assert refusal.counterexample, (
                    f"{statement.label}, step {number}: {wrong} is undecided"
                )
                assert refusal.counterexample.lhs != refusal.counterexample.rhs
                refuted += 1
            else:
                # a term that is 0 anyway, such as the sum of a centred row; the other witness has to agree
                assert replace(statement, chains=((rhs, wrong),), whys=()).check_fixed(
                    (2, 3)
                )
        assert refuted, f"{statement.label}, step {number}: no coefficient to change"


@pytest.mark.sampled(of=10)
@pytest.mark.parametrize("label", list(equations()))
def test_a_changed_coefficient_is_refuted_in_every_step(label):
    """The two sides are independent: whichever term of a right-hand side is changed, its step is refuted."""
    refuted_steps(equation(label), random.Random(label))


def test_the_sources_use_none_of_the_unsafe_calls():
    folder = Path(normgrad.symbolic.__file__).parent
    unsafe = re.compile(r"\.doit\(|\.subs\(|\bcse\(|lambdify\(|\bIdx\(")
    files = [
        path.name for path in folder.rglob("*.py") if unsafe.search(path.read_text())
    ]
    assert files == []


def test_the_second_witness_does_not_use_the_normal_form():
    text = (Path(normgrad.symbolic.__file__).parent / "witness.py").read_text()
    assert not re.search(r"from \.(normal_form|proof)", text)
