"""A traced proof is true line by line, a broken rule of the kernel is noticed, and the letters need no sums."""

import re

import pytest
from broken_rules import BROKEN, prover
from sympy import S, evaluate, sqrt

from normgrad.symbolic import (
    NotProved,
    Partial,
    check_fixed,
    counterexample,
    delta,
    equation,
    equations,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.normal_form import Reciprocal, Root
from normgrad.symbolic.symbols import N, alphabet, j, k
from normgrad.symbolic.trace import GIVEN, RULES, UNFOLD, trace

row = alphabet()

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


def test_the_steps_are_named_in_the_order_of_the_rules():
    traces = [
        trace(*statement.steps[0], statement.defs)
        for statement in map(equation, LABELS)
    ]
    named = [[rule for rule, _ in side] for traced in traces for side in traced.sides]
    assert set().union(*named) >= {GIVEN, "R2", "R3", "R4", "R5"}
    statement = equation("l2-jacobian")
    assert [
        rule for rule, _ in trace(*statement.steps[0], statement.defs).sides[0]
    ] == [
        GIVEN,
        UNFOLD,
        "R2",
        "R4",
        "R7",
    ]
    assert {rule for rule, _ in trace(*statement.steps[0], statement.defs)} <= {
        GIVEN,
        UNFOLD,
        *RULES,
    }


def test_a_false_claim_is_traced_to_two_polynomials():
    defs, s = equation("l2-jacobian").defs, tensor("s")
    q, r = tensor("q", N), tensor("r", N)
    traced = trace(Partial(r[k], q[j]), delta(k, j) / s, defs)
    assert not traced.proved
    assert counterexample(*map(_plain, traced.polynomials), defs) is not None


def test_a_trace_displays_both_sides():
    text = trace(
        total(N, lambda r: row.q[r]), S.Zero, equation("index-centred").defs
    )._repr_latex_()
    assert (
        text.count(r"\text{left}") == 2
        and text.count(r"\text{right}") == 2
        and r"\begin{aligned}" in text
    )
    assert text.count("{") == text.count("}") and not re.search("Dummy|_r|Root", text)


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


@pytest.mark.parametrize("power, factor, longest", [(3, 0, 2), (4, S.Half, 3)])
def test_an_identity_of_short_rows_fails_beyond_them(power, factor, longest):
    def powers(exponent):
        return total(N, lambda r: row.q[r] ** exponent)

    claim = powers(power), factor * powers(2) ** 2
    assert check_fixed(*claim, range(1, longest + 1), equation("index-centred").defs)
    with pytest.raises(AssertionError, match=f"length {longest + 1}"):
        check_fixed(*claim, (longest + 1,), equation("index-centred").defs)
    with pytest.raises(NotProved), evaluate(True):
        prove(*claim, equation("index-centred").defs)
