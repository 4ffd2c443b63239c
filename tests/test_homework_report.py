"""The registry, and the report in every form."""

import json

import pytest
from homework_solutions import checked, flat
from processes import python
from wrong_solutions import wrong

import normgrad.homework as hw
from normgrad.homework import folder
from normgrad.homework.equations import place, places
from normgrad.homework.gravity import deduction
from normgrad.homework.task import find, homeworks
from normgrad.mistakes.table import MISTAKES


def test_tasks_are_described():
    for name in hw.tasks():
        text = str(hw.describe(name))
        assert (
            all(label in text for label in find(name).equations)
            and find(name).signature in text
        )


@pytest.mark.parametrize("homework", homeworks())
def test_stubs_are_friendly(tmp_path, libraries, homework):
    folder.new(homework, tmp_path)
    for report in hw.grade_file(tmp_path / "solution.py", homework):
        assert report.points == 0 and report.stub
        assert (
            "Not implemented yet" in str(report) and len(str(report).splitlines()) <= 4
        )
        assert "Not implemented yet" in report._repr_html_()


def wrong_report(feedback="solution"):
    mistake = next(
        entry
        for entry in wrong("hw2")
        if entry.name == "sum for mean" and entry.task == "rmsnorm-backward"
    )
    return checked("rmsnorm-backward", mistake.source("hw2"), feedback=feedback)


def test_the_report_in_every_form():
    report = wrong_report()
    assert max(map(len, str(report).splitlines())) <= 80
    data = json.loads(report.to_json())
    assert (data["points"], data["max_points"]) == (report.points, report.max_points)
    assert [stage["name"] for stage in data["tasks"][0]["stages"]] == [
        stage.name for stage in report.stages
    ]
    html = report._repr_html_()
    assert "<script" not in html and "http" not in html and "dx, row by row" in html


@pytest.mark.parametrize(
    ("feedback", "level"), [("hint", 0), ("equation", 1), ("solution", 2)]
)
def test_feedback_has_levels(feedback, level):
    report = wrong_report(feedback)
    for text in (str(report), report._repr_html_(), report.to_json()):
        shown = ["rms-dx" in text, "mean(x_hat * wdy)" in text]
        assert shown == [level >= 1, level >= 2], text


@pytest.mark.parametrize(
    ("mistakes", "earned", "costs"),
    [
        ((), 12, 0),
        (("sum-for-mean-c1",), 9, 0),
        (("race",), 16, 12),
        (("race",), 14, 10),
        (("race",), 3, 0),
        (("stride-ignored", "race", "atomics"), 16, 12),
        (("digits-lost",), 16, 6),
    ],
)
def test_a_grave_mistake_costs_a_share(mistakes, earned, costs):
    """Of the gravest one, and only what the stages have not cost already."""
    assert deduction(mistakes, earned, 16)[0] == costs


def test_the_same_is_said_once():
    """Stages that fail in the same way share a line and the sum of their points."""
    report = hw.check("rmsnorm-backward", lambda dy, x, weight, rstd: (1 / 0, weight))
    text = flat(report)
    assert text.count("division by zero") == 1 and text.count("as above") == 1
    assert (
        "inputs left alone; dw; dx, row by row; degenerate rows; gradcheck; float32 (as above) 0/11"
        in text
    )
    assert (
        report._repr_html_().count("as above") == 1 and "0 / 11" in report._repr_html_()
    )


def test_the_equation_is_linked_where_the_book_is_known(monkeypatch):
    report = wrong_report()
    monkeypatch.delenv("NORMGRAD_BOOK", raising=False)
    number = place("rms-dx")[1]
    assert (
        "href" not in report._repr_html_()
        and number in report._repr_html_()
        and number in str(report)
    )
    monkeypatch.setenv("NORMGRAD_BOOK", "./")
    assert 'href="./rms_norm.html#equation-rms-dx"' in report._repr_html_()
    assert number not in report._repr_html_() and number not in str(report)


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sympy", "triton", "IPython"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block())
import normgrad
hw = normgrad.homework
assert hw.tasks() and str(hw.describe("layernorm-function"))
assert hw.check("rmsnorm-backward", lambda dy, x, weight, rstd: (dy, weight)).points == 0
"""


def test_a_numpy_homework_needs_numpy_alone():
    done = python("-W", "error", "-c", BLOCKED)
    assert done.returncode == 0, done.stderr


def test_reports_link_to_equations_that_pages_number():
    """A test of the built site compares the list of these with the pages."""
    labels = {label for name in hw.tasks() for label in find(name).equations}
    labels |= {entry.equation for entry in MISTAKES.values()} - {""}
    assert labels <= places().keys()
