"""Homeworks 1, 6 and 7: expressions at numbers, tests that are tested, operators that nobody has analysed."""

import pytest
from homework_operators import OPERATORS
from homework_solutions import checked, flat, graded

from normgrad.homework.sandbox import remote


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A second for loading, too."""
    monkeypatch.setattr(remote, "LOAD_SECONDS", 2.0)


TEST = "import numpy as np\ndef check_backward(backward):\n    "
# Loops, exits and imports are those of test_homework_attacks.py, whatever is called.
HOSTILE_TESTS = {
    "asserts nothing": ("backward(*[np.ones((2, 2))] * 2, *[np.ones(2)] * 3)", "accepts a backward that returns zeros"),
    "asserts without words": ("backward(*[np.ones((2, 2))] * 2, *[np.ones(2)] * 3); assert False",
                              'assert False, after x of shape (2, 2)". Either'),
    "asserts always": ("backward(*[np.ones((2, 2))] * 2, *[np.ones(2)] * 3); assert False", "rejects a right backward"),
    "never calls": ("assert False", "never called"),
    "another exception": ("backward(1)", "TypeError"),
    "too much": ("backward(*[np.ones((9, 10**5))] * 2, *[np.ones(10**5)] * 3)", "at most 100000 numbers"),
    "shapes that do not fit": ("backward(*[np.ones((9, 1))] * 2, *[np.ones(9)] * 3)", "weight: got shape (9,), needs"),
    "complex numbers": ("backward(*[np.ones((2, 2), complex)] * 2, *[np.ones(2)] * 3)", "dy: got dtype complex128"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_TESTS)
def test_a_hostile_test_ends_in_a_report(tmp_path, name):
    source, words = HOSTILE_TESTS[name]
    (report,) = graded(tmp_path, TEST + source, "hw6", seconds=1.0)
    assert (
        report.points == 0
        and words in flat(report)
        and "The grader itself" not in flat(report)
    )


# Expressions


SYMBOLS = "from sympy import *\ndef cotangent(w, dy, j, N):\n    "
HOSTILE_EXPRESSIONS = {
    "a text": ("return '__import__(\"os\")._exit(0)'", "dx is a str"),
    "None": ("return None", "dx is None"),
    "too many": ("return w[j], dy[j]", "returned 2 results, needs 1: dx"),
    "NaN": ("return nan", "does not depend on j"),
    "a number": ("return 3", "does not depend on j"),
    "another letter": ("return w[j] * Symbol('t')", "t is free"),
    "outside": ("return w[j] * dy[j + 1]", "which is not there"),
    "endless": ("return Sum(w[j], (Symbol('t'), 1, oo))", "Your dx is"),
    "an entry 0": ("r = Symbol('r', integer=True, positive=True)\n    return w[j] * Sum(dy[r], (r, 0, N - 1))",
                   "dx has no value at j = 1"),
    "a helper of an earlier page": ("r = letter('r')\n    return w[j] * dy[j]",
                                    "NameError: name 'letter' is not defined. Line 3 in cotangent"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_EXPRESSIONS)
def test_a_hostile_expression_ends_in_a_report(tmp_path, name):
    source, words = HOSTILE_EXPRESSIONS[name]
    reports = graded(tmp_path, SYMBOLS + source, "hw1", seconds=1.0)
    (report,) = [report for report in reports if report.task == "cotangent"]
    assert (
        report.points == 0
        and words in flat(report)
        and "The grader itself" not in flat(report)
    )


# Operators of the student's own


OPERATOR = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng): return {inputs}
    @staticmethod
    def degenerate(rng): return [Operator.inputs(rng)]
    @staticmethod
    def forward(x): return {forward}
    @staticmethod
    def backward(dy, x): return {backward}
"""
PLAIN = {"inputs": '{"x": rng.standard_normal((3, 4))}', "forward": "(x * x).sum(-1)",
         "backward": "2 * x * dy[:, None]"}  # fmt: skip
HOSTILE_OPERATORS = {
    "the input": ({"forward": "x", "backward": "dy"}, "returns one of its inputs"),
    "a constant": (
        {"forward": "0 * x", "backward": "0 * dy"},
        "the same y for other inputs",
    ),
    "NaN": ({"forward": "x * np.nan", "backward": "dy * np.nan"}, "not finite"),
    "float32": (
        {"inputs": '{"x": rng.standard_normal((3, 4)).astype("f4")}'},
        "needs float64",
    ),
    "a list": ({"inputs": '{"x": [1.0]}'}, "as a list"),
    "no dictionary": ({"inputs": "3"}, "dictionaries"),
    "too large": (
        {"inputs": '{"x": rng.standard_normal((30, 40))}'},
        "more than 400 numbers",
    ),
    "None": ({"backward": "None"}, "The gradient for x is None"),
}


def test_a_plain_operator_has_full_marks():
    report = checked("norm-project", OPERATOR.format(**PLAIN))
    assert report.passed, report


@pytest.mark.parametrize("name", HOSTILE_OPERATORS)
def test_a_hostile_operator_ends_in_a_report(name):
    changes, words = HOSTILE_OPERATORS[name]
    source = OPERATOR.format(**PLAIN | changes)
    report = checked("norm-project", source, seconds=0.5)
    assert (
        report.points == 0
        and words.lower() in flat(report).lower()
        and "The grader itself" not in flat(report)
    )


def test_a_backward_that_hides_a_path_from_torch_is_told_so():
    """Its rstd depends on x, and torch does not see it."""
    source, _ = OPERATORS["instance norm"]
    line = "        x_hat, rstd = Operator.normalized(x)\n"
    assert source.count(line) == 1
    source = source.replace(line, line + "        rstd = rstd.detach()\n")
    report = checked("norm-project", source)
    assert not report.passed and "looks like a constant" in flat(report), report
