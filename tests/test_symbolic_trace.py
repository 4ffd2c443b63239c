"""A traced proof is true line by line, a broken rule of the kernel is noticed, and the letters need no sums."""

import pytest
from broken_rules import BROKEN, prover
from sympy import sqrt

from normgrad.symbolic import (
    NotProved,
    check_fixed,
    counterexample,
    equation,
    equations,
    prove,
)
from normgrad.symbolic.normal_form import Reciprocal, Root
from normgrad.symbolic.trace import RULES, trace

LABELS = [
    "index-centred-sum",
    "index-vjp",
    "rms-statistics",
    "rms-scale",
    "l2-partial-norm",
    "l2-jacobian",
    "l2-projector",
    "ln-proj-centring-facts",
]


def _plain(e):
    """The expression with its opaque roots and reciprocals as powers again, for a witness that knows neither."""
    return e.replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)


@pytest.mark.parametrize("label", LABELS)
def test_every_line_of_a_trace_is_true(label):
    statement = equation(label)
    traced = trace(*statement.steps[-1], statement.defs)
    assert traced.proved
    for side, polynomial in zip(traced.sides, traced.polynomials, strict=True):
        lines = [_plain(e) for _, e in side]
        for above, below in zip(lines, lines[1:], strict=False):
            assert check_fixed(above, below, (2, 3), statement.defs)
        assert check_fixed(
            lines[-1] * _plain(traced.multiplier),
            _plain(polynomial),
            (2, 3),
            statement.defs,
        )


@pytest.mark.parametrize("broken", [b for b in BROKEN if b.lie], ids=lambda b: b.rule)
def test_what_a_broken_rule_proves_is_refuted(broken):
    with pytest.raises(NotProved, match="refuted"):
        prove(*broken.lie)
    prover(broken)(*broken.lie)
    assert counterexample(*broken.lie) is not None
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(*broken.lie, (2, 3))


@pytest.mark.parametrize(
    "broken", [b for b in BROKEN if not b.lie], ids=lambda b: b.rule
)
def test_without_a_rule_something_true_is_not_proved(broken):
    proves, refused = prover(broken, search=False), []
    for label, statement in equations().items():
        if label.startswith(("index-", "proof-", "rms-")):
            for lhs, rhs in statement.steps:
                try:
                    proves(lhs, rhs, statement.defs)
                except (
                    Exception
                ) as refusal:  # the broken kernel has a NotProved of its own
                    assert "undecided" in str(refusal), refusal
                    refused.append(label)
    assert refused


def test_every_rule_has_its_break():
    assert [broken.rule for broken in BROKEN] == list(RULES)
