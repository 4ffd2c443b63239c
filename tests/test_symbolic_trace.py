"""A traced proof is true line by line, a broken rule of the kernel is noticed, and the letters need no sums."""

import pytest
from copies import listed
from sympy import sqrt
from test_symbolic_claims import parts

from normgrad.mistakes.edits import edited
from normgrad.mistakes.mutants import PACKAGE, module
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


KERNEL = ("calculus", "normal_form", "proof")
BROKEN = {}  # {rule: (the false claim that is proved without it, the wrong program)}
for fails, program in listed():
    if fails.startswith("rule "):
        rule, _, lie = fails.removeprefix("rule ").partition(": ")
        BROKEN[rule] = lie, program


def prover(rule, search=True):
    """`prove` of a kernel in which a rule is broken; the second witness is left as it is, to judge what it accepts.

    Args:  search: whether a claim that is not proved is held against points, which takes most of the time
    """
    _, program = BROKEN[rule]
    for stem in KERNEL:
        path = f"symbolic/{stem}.py"
        text = (PACKAGE / path).read_text()
        if path == program.path:
            text = edited(text, program.edits, str(program))
        for name in KERNEL:
            broken = f"from ._mutant_{name}_{rule} import"
            text = text.replace(f"from .{name} import", broken)
        broken_module = module(path, text, rule)
    if not search:
        broken_module.counterexample = lambda *claim: None
    return broken_module.prove


@pytest.mark.parametrize("rule", [rule for rule in BROKEN if BROKEN[rule][0]])
def test_what_a_broken_rule_proves_is_refuted(rule):
    claim = parts(BROKEN[rule][0], "")[:2]
    with pytest.raises(NotProved, match="refuted"):
        prove(*claim)
    prover(rule)(*claim)
    assert counterexample(*claim) is not None
    with pytest.raises(AssertionError, match="fails for rows"):
        check_fixed(*claim, (2, 3))


@pytest.mark.parametrize("rule", [rule for rule in BROKEN if not BROKEN[rule][0]])
def test_without_a_rule_something_true_is_not_proved(rule):
    proves, refused = prover(rule, search=False), []
    for label, statement in equations().items():
        if label.startswith(("index-", "proof-", "rms-")):
            for lhs, rhs in statement.steps:
                try:
                    proves(lhs, rhs, statement.defs)
                except Exception as refusal:  # the broken kernel's own NotProved
                    assert "undecided" in str(refusal), refusal
                    refused.append(label)
    assert refused


def test_every_rule_has_its_break():
    assert list(BROKEN) == list(RULES)
