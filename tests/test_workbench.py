"""The workbench's text of each registered equation is that equation, and what it says of claims is what prove says."""

import json
import sys
from pathlib import Path

import pytest
from sympy import Basic, Function, Indexed, Sum, evaluate, expand, sympify

from normgrad.symbolic import as_written, equation, equations
from normgrad.symbolic.definitions import numbered
from normgrad.symbolic.opaque import Opaque

sys.path.insert(0, str(Path(__file__).parents[1] / "book/live/workbench"))

import workbench  # noqa: E402

IN_SEQUENCES = "claim = equation("


def plain(e):
    """Evaluated and expanded, the bound letters numbered, without what a local derivative holds fixed."""

    def again(e):
        if not isinstance(e, Basic) or not e.args or isinstance(e, Indexed):
            return e
        if type(e).__name__ == "Local":
            return e.func(*map(again, e.args[:2]))
        if isinstance(e, Opaque):
            return Function(f"{e.letter}{e.order}")(*map(again, e.args))
        if isinstance(e, Sum):
            return Sum(again(e.function), *e.limits)
        return e.func(*map(again, e.args))

    with evaluate(True):
        return expand(numbered(again(sympify(e))))


def typed(text):
    """The claims and the definitions of a cell."""
    claims = []
    scope = workbench.NAMES | {"prove": lambda *claim: claims.append(claim)}
    with as_written():
        exec(text, scope)  # noqa: S102 - the text was written by the line that is tested
    return [claim[:2] for claim in claims], claims[0][2]


@pytest.mark.parametrize("label", equations())
def test_the_text_is_the_equation(label):
    statement, text = equation(label), workbench.statement(label)
    if IN_SEQUENCES in text:
        assert repr(label) in text
        return
    claims, defs = typed(text)
    assert [tuple(map(plain, claim)) for claim in claims] == [
        tuple(map(plain, step)) for step in statement.steps
    ]
    needed = statement.defs.reached(*[e for step in statement.steps for e in step])
    assert [tuple(map(plain, line)) for line in defs] == [
        tuple(map(plain, line)) for line in needed
    ]


def judged(text):
    return json.loads(workbench.judge(text))


def test_a_claim_is_proved_with_its_certificate():
    (answer,) = judged(workbench.statement("l2-jacobian"))
    assert answer["kind"] == "proved"
    assert "both sides" in answer["text"] and r"\partial" in answer["latex"]


def test_a_changed_sign_is_refuted_with_a_point():
    text = workbench.statement("l2-jacobian")
    assert "- r[j]*r[k]" in text
    (answer,) = judged(text.replace("- r[j]*r[k]", "+ r[j]*r[k]"))
    assert answer["kind"] == "refuted"
    assert "N = " in answer["text"] and "left" in answer["text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "line 1: SyntaxError"),
        ("\nprove(1 / 0, 1)", "line 2: ZeroDivisionError"),
        ("x = 1", "nothing was claimed"),
    ],
)
def test_an_error_names_its_line(text, said):
    (answer,) = judged(text)
    assert answer["kind"] == "error"
    assert said in answer["text"]
