"""Homework 6 and the levels of feedback: what a test is given and remembers, and what a report gives away."""

import numpy as np
import pytest

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.grade import grade_file
from normgrad.homework.sandbox import operations
from normgrad.homework.wrong import wrong

MEMORY = """
import numpy as np
SEEN = []

def check_backward(backward):
    rng = np.random.default_rng(0)
    x, weight, dy = rng.standard_normal((4, 6)), rng.standard_normal(6), rng.standard_normal((4, 6))
    found = np.concatenate([np.ravel(a) for a in backward(dy, x, weight, x.mean(-1), 1 / x.std(-1))])
    assert found.any() and np.isfinite(found).all()
    SEEN.append(found)
    assert np.allclose(found, SEEN[0])
"""
# Of a test that knows nothing but that zeros and NaN are wrong: the right ones pass, and none of these is a NaN.
NOTHING_LEARNED = 5


def test_what_a_test_remembers_in_the_shell_is_gone(tmp_path):
    """Every backward meets a process of its own."""
    (tmp_path / "solution.py").write_text(MEMORY, encoding="utf8")
    (report,) = grade_file(tmp_path / "solution.py", "hw6")
    assert report.points == NOTHING_LEARNED, report


def test_inputs_that_do_not_fit_are_refused_by_name():
    ones, row = np.ones((2, 3)), np.ones(2)
    for inputs, words in (
        ([ones, ones, np.ones(2), row, row], "weight: got shape"),
        ([ones, np.ones((2, 0)), np.ones(0), row, row], "needs (M, N) with a column"),
        ([ones.astype(object), ones, np.ones(3), row, row], "dy: got dtype object"),
        (
            [np.ones((2, 50_000))] * 2 + [np.ones(50_000), row, row],
            "at most 100000 numbers",
        ),
    ):
        with pytest.raises(
            (ValueError, TypeError), match=words.replace("(", r"\(").replace(")", r"\)")
        ):
            operations.fitting(inputs)


# Levels of feedback


@pytest.mark.parametrize("mistake", wrong("hw6"), ids=lambda each: each.name)
def test_a_hint_does_not_give_the_answer(mistake):
    """At the level hint no sentence says what an author believed, which equation is violated, or what to draw."""
    names = {"__name__": "solution"}
    exec(mistake.source("hw6"), names)
    report = hw.check("gradient-test", names["check_backward"], feedback="hint")
    failed = " ".join(stage.message for stage in report.stages if not stage.passed)
    hints = " ".join(report.shown(each)["hint"] for each in report.diagnoses)
    for words in ("believed", "See ln-", "at random", "In every call"):
        assert words not in failed and words not in hints
    assert all("?" in report.shown(each)["hint"] for each in report.diagnoses)


def test_every_level_says_more():
    (mistake,) = [each for each in wrong("hw6") if each.name == "dy of ones"]
    names = {"__name__": "solution"}
    exec(mistake.source("hw6"), names)
    short, middle, long = (str(hw.check("gradient-test", names["check_backward"], feedback=level))
                           for level in ("hint", "equation", "coefficients"))  # fmt: skip
    for words in (
        "rstd does not depend on x",
        "In every call weight * dy is constant",
        "vacuous-ones",
    ):
        assert words not in short and words in middle and words in long
    assert "needed:" in long and "needed:" not in middle


@pytest.mark.parametrize("homework", ["hw1"])
def test_no_report_hands_out_the_expression(homework):
    """What stands beside "needed" leads to the answer and is not it."""
    sympy = pytest.importorskip("sympy")
    answers = {line.strip() for line in solutions.solution(homework).split("\n")}
    for task in hw.homeworks()[homework].tasks:
        for text in task.oracle.texts.values():
            assert not any(text in answer for answer in answers)
            try:
                sympy.sympify(text)
            except (sympy.SympifyError, SyntaxError, TypeError):
                continue
            raise AssertionError(
                f"{task.name}: {text} is an expression that could be handed in"
            )


# The keys


def test_all_misconceptions_have_a_title():
    known = hw.misconceptions()
    for name in hw.homeworks():
        for each in wrong(name):
            assert not each.misconception or known[each.misconception], (
                f"{name}: {each.name}"
            )
            assert (
                not each.misconception
                or hw.misconceptions(each.task)[each.misconception]
            )


@pytest.mark.parametrize("homework", ["hw1", "hw6", "hw7"])
def test_what_reports_name_is_listed(homework):
    """With the title that the report shows, to which it may add the term, where that does not name an input."""
    pytest.importorskip("sympy")
    for mistake in wrong(homework):
        names = {"__name__": "solution"}
        exec(mistake.source(homework), names)
        task = hw.describe(mistake.task)
        report = hw.check(mistake.task, names[task.entry])
        listed = hw.misconceptions(mistake.task)
        for each in report.diagnoses:
            assert each.misconception in listed, report
            assert (
                homework == "hw7"
                or each.title.partition(": ")[0]
                == listed[each.misconception].partition(": ")[0]
            )


def test_misconceptions_of_an_unknown_task_are_refused():
    with pytest.raises(ValueError, match="needs cotangent"):
        hw.misconceptions("cotangents")
