"""Mistakes that a stage names by what it sees: each name comes for its mistake, and not for one that looks like it."""

import homework_operators
import pytest
from wrong_solutions import hw7

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.grade import grade_file
from normgrad.mistakes.edits import edited

RETURN, WDY = hw7.RETURN, hw7.WDY
SOFTMAX, _, _ = homework_operators.OPERATORS["softmax"]
INSTANCE, _, _ = homework_operators.OPERATORS["instance norm"]


def report_of(task, source):
    names = {"__name__": "solution"}
    exec(source, names)
    return hw.check(task, names[hw.describe(task).entry])


def keys(report):
    return [diagnosis.misconception for diagnosis in report.diagnoses]


# Expressions


SUM = "w[k] * x[k] - Sum(w[r] * x[r], (r, {0}, N - 1 + {0})) / N"
EXPRESSIONS = {
    "from 0": ("contract-delta", SUM.format(0), ["counted-from-zero"]),
    "from 0, moved by one": (
        "contract-delta",
        SUM.format(0).replace("[r]", "[r + 1]"),
        [],
    ),
    "past the end": ("contract-delta", SUM.format(2), []),
    "a neighbour": ("contract-delta", "w[k] * x[k - 1]", []),
    "a text": ("contract-delta", "'w[k]'", ["text-for-expression"]),
    "nothing": ("contract-delta", "None", []),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name):
    pytest.importorskip("sympy")
    task, text, expected = EXPRESSIONS[name]
    source = f"from sympy import *\nr = Symbol('r', integer=True)\ndef contract_delta(x, w, k, N):\n    return {text}\n"
    report = report_of(task, source)
    assert keys(report) == expected and report.passed == (
        name == "from 0, moved by one"
    ), report


# Tests of the student's own


ASSERT = "assert abs(claimed - value) <= allowed, words"
LAST = "    x[0] = 0.5\n    compare(rng, backward, x, weight, bias, dy)\n"
VERDICTS = {
    "dropped": [(ASSERT, "return abs(claimed - value) <= allowed")],
    "returned": [(ASSERT, "return abs(claimed - value) <= allowed"),
                 (LAST, LAST.replace("compare", "return compare"))],
    "returned beside assertions": [(LAST, LAST + "    return True\n")],
    "asserted of something else": [(ASSERT, "np.testing.assert_equal(grad.shape, arrays[at].shape)")],
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("where", ["cell", "shell"])
def test_verdicts(tmp_path, name, where):
    """A cell's function is looked at as an object, a file's as a text."""
    source = edited(solutions.solution("hw6"), VERDICTS[name], name)
    (tmp_path / "solution.py").write_text(source, encoding="utf8")
    report = (
        report_of("gradient-test", source)
        if where == "cell"
        else grade_file(tmp_path / "solution.py", "hw6")[0]
    )
    silent = name in ("dropped", "returned")
    assert ("verdict-not-raised" in keys(report)) == silent and not report[
        "right backwards pass"
    ].passed, report
    assert not silent or keys(report) == ["verdict-not-raised"]


# Operators of the student's own


GROUP = solutions.solution("hw7")
HALF = ".rsqrt()\n        rstd = rstd.half().to(x.dtype) if x.dtype == torch.float32 else rstd\n"
OPERATORS = {
    "a gradient is None": (GROUP, [(RETURN, "return dx, dweight, None")], "gradient-missing", True),
    "no return": (GROUP, [(RETURN, "dx, dweight, dbias")], "gradient-missing", False),
    "a gradient too many": (GROUP, [(RETURN, RETURN + ", dbias")], "gradient-missing", False),
    "no sum": (GROUP, [(hw7.DB, "dbias = dy")], "wrong-axis", True),
    "summed over everything": (GROUP, [(hw7.DB, "dbias = dy.sum()[None]")], "wrong-axis", True),
    "a mean over one axis": (GROUP, [(hw7.DB, "dbias = dy.mean(0)")], "wrong-axis", False),
    "axes of length 1 are left": (GROUP, [(hw7.DB, "dbias = dy.sum((0, 2), keepdims=True)")], "wrong-axis", False),
    "widened at the end": (GROUP, [(hw7.Y, f"return ({hw7.Y[7:]}).astype(float)")], "wide-arithmetic", False),
    "inaccurate in float32": (GROUP, [(hw7.RSTD, hw7.RSTD + "\n    if x.dtype == np.float32: rstd = rstd * 1.001")],
                              "narrow-intermediate", False),
    "half precision in torch": (INSTANCE, [(".rsqrt()\n", HALF)], "narrow-intermediate", True),
    "x is written to": (GROUP, [(WDY, "x += 0.1\n        " + WDY)], "input-overwritten", True),
    "an offset": (GROUP, [(RETURN, "dx = dx + 1\n        " + RETURN)], "not-linear", True),
    "noise": (GROUP, [(RETURN, "dx = dx + np.random.default_rng().standard_normal(dx.shape)\n        " + RETURN)],
              "not-linear", False),
    "an overflow": (SOFTMAX, [(" - z.max(-1, keepdims=True)", ""), ("300.0, -300.0", "900.0, -900.0")],
                    "zero-unguarded", False),
    "a fixed weight": (GROUP, [(hw7.DRAWN, '"weight": np.arange(4) - 1.5, ')], "input-not-drawn", True),
    "an equal weight": (GROUP, [(hw7.DRAWN, '"weight": np.full(4, rng.uniform(1, 2)), ')], "equal-entries", True),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    source, edits, key, expected = OPERATORS[name]
    if source is INSTANCE:
        pytest.importorskip("torch")
    report = report_of("norm-project", edited(source, edits, key))
    assert (key in keys(report)) == expected and not report.passed, report
    assert "The grader itself" not in str(report)
