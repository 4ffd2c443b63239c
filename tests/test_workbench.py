"""The workbench's text of each registered equation is that equation, and what it says of claims is what prove says."""

import importlib.util
import json
import linecache
import sys

import pytest
import workbench
from sympy import (
    Basic,
    Function,
    Indexed,
    IndexedBase,
    Sum,
    Symbol,
    evaluate,
    expand,
    sympify,
)

from normgrad.prove import verdict
from normgrad.symbolic import equation, equations
from normgrad.symbolic.definitions import numbered
from normgrad.symbolic.opaque import Opaque


def plain(e):
    """Evaluated and expanded, the bound indices numbered, without what a local derivative holds fixed, and without
    assumptions: `define` finds more names to be positive than were declared so."""

    def again(e):
        if isinstance(e, Indexed):
            return IndexedBase(str(e.base.label))[tuple(map(again, e.indices))]
        if isinstance(e, Symbol):
            return Symbol(e.name)
        if not isinstance(e, Basic) or not e.args:
            return e
        if type(e).__name__ == "Local":
            return e.func(*map(again, e.args[:2]))
        if isinstance(e, Opaque):
            return Function(f"{e.letter}{e.order}")(*map(again, e.args))
        if isinstance(e, Sum):
            return Sum(
                again(e.function), *[tuple(map(again, limit)) for limit in e.limits]
            )
        return e.func(*map(again, e.args))

    with evaluate(True):
        return expand(again(numbered(sympify(e))))


def typed(text, monkeypatch):
    """The equations that the lines of a cell state, and their definitions."""
    shown = []
    monkeypatch.setattr(workbench, "_answers", lambda value: shown.append(value) or ())
    with verdict.unproved():
        workbench.judge(text)
    return [value.equation() for value in shown]


@pytest.mark.parametrize("label", equations())
def test_the_text_is_the_equation(label, monkeypatch):
    registered = equation(label)
    stated = typed(workbench.statement(label), monkeypatch)
    steps = [step for claim in stated for step in claim.steps]
    assert [tuple(map(plain, step)) for step in steps] == [
        tuple(map(plain, step)) for step in registered.ends().steps
    ]
    sides = [e for step in registered.ends().steps for e in step]
    lines = {tuple(map(plain, line)) for claim in stated for line in claim.defs}
    assert lines == {
        tuple(map(plain, line)) for line in registered.defs.reached(*sides)
    }


def test_a_text_is_python_without_the_workbench(capsys):
    text = workbench.statement("l2-jacobian").replace("prove(D", "print(prove(D")
    linecache.cache.pop(workbench.CELL, None)
    exec(text.rstrip() + ")", {})  # noqa: S102 - the text was written by the line that is tested
    assert "proved for every N" in capsys.readouterr().out


def judged(text):
    return json.loads(workbench.judge(text))


def test_a_claim_is_proved_with_its_certificate():
    (answer,) = judged(workbench.statement("l2-jacobian"))
    assert answer["kind"] == "proved"
    assert "both sides" in answer["text"] and r"\partial" in answer["latex"]


def test_a_changed_sign_is_refuted_with_a_point():
    text = workbench.statement("l2-jacobian")
    assert "- r[k] * r[j]" in text
    (answer,) = judged(text.replace("- r[k] * r[j]", "+ r[k] * r[j]"))
    assert answer["kind"] == "refuted"
    assert "N = " in answer["text"] and "left" in answer["text"]


def test_what_is_written_alike_is_told_from_what_is_equal():
    (answer,) = judged("1 == 2")
    assert answer["text"].startswith("False: == asks whether")


def test_simplify_needs_no_units(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sympy.physics")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "sympy.physics", None)
    monkeypatch.setitem(sys.modules, "sympy.physics.units", None)
    text = "from sympy import *\nt = symbols('t')\nsimplify(sin(t)**2 + cos(t)**2)"
    (refused,) = judged(text)
    assert "sympy.physics" in refused["text"]
    workbench.stand_in()
    (answer,) = judged(text)
    assert answer["latex"] == "1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "line 1: SyntaxError"),
        ("\n1 / 0", "line 2: ZeroDivisionError"),
        ("x = 1 / 0\n", "line 1: ZeroDivisionError"),
        ("from normgrad.prove import *\nprove(1.5, 1)", "line 2: CannotJudge"),
        ("x = 1", "nothing was claimed"),
        ("\\frac{a}{b}", "this is Python, not LaTeX"),
        ("import no_torch", "the notebook has the others"),
        ("from normgrad.prove import *\nprove(1)", "as prove(left, right)"),
    ],
)
def test_an_error_names_its_line(text, said):
    (answer,) = judged(text)
    assert answer["kind"] == "error"
    assert said in answer["text"]
