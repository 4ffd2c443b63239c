"""The exported assignments: cells that run, and stubs without the answers. test_graders.py runs nbgrader's commands."""

import json
import linecache

import pytest

import normgrad.homework as hw
from normgrad.homework import export, grade, solutions
from normgrad.homework.task import find_homework, homeworks
from normgrad.homework.wrong import wrong


def codes(path):
    return [
        cell["source"]
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("homework", homeworks())
def test_the_instructors_notebook_runs(tmp_path, homework):
    """Every cell runs, the tests among them: the answers inside carry what they need."""
    pytest.importorskip("torch")
    if homework in ("hw4", "hw8"):
        pytest.importorskip("triton")
    names = {"__name__": "notebook"}
    for number, code in enumerate(codes(export.nbgrader(homework, tmp_path))):
        # As IPython does, so that Triton finds the source of a kernel.
        cell = f"<{homework} {number}>"
        linecache.cache[cell] = (len(code), None, code.splitlines(True), cell)
        exec(compile(code, cell, "exec"), names)


@pytest.mark.parametrize("homework", homeworks())
def test_nothing_of_the_answers_stands_outside_the_marks(homework):
    answer = set(solutions.solution(homework).split("\n")) - set(
        solutions.starter(homework).split("\n")
    )
    answer = {
        line.strip()
        for line in answer
        if len(line.strip()) > 12 and not line.startswith(("import", "from"))
    }
    for code in export.answers(find_homework(homework)).values():
        outside, inside = [], False
        for line in map(str.strip, code.split("\n")):
            inside = inside or line == solutions.BEGIN
            outside += [line] * (not inside)
            inside = inside and line != solutions.END
        assert not answer & set(outside)


def test_a_failing_test_carries_the_diagnosis(tmp_path):
    """The assertion of the stage whose numbers are wrong says which term is, for the seed that was asked for."""
    tests = [
        code
        for code in codes(export.nbgrader("hw2", tmp_path, seed=7))
        if "hw.stage(" in code
    ]
    assert all("seed=7)" in code for code in tests)
    mistake = next(
        entry
        for entry in wrong("hw2")
        if entry.name == "sum for mean" and entry.task == "rmsnorm-backward"
    )
    names = {"__name__": "notebook", "hw": hw}
    exec(mistake.source("hw2"), names)
    (code,) = [code for code in tests if "dx, row by row" in code]
    with pytest.raises(AssertionError, match="c1 is a sum, not a mean"):
        exec(code, names)


FIRST = """
import numpy as np
HALF = 0.5
def root(v):
    return v ** HALF
class Wrapped:
    def __init__(self, fn):
        self.fn = fn
    def __call__(self, *arguments):
        return self.fn(*arguments)
@Wrapped
def reciprocal(v):
    return 1 / root(v)
def rmsnorm_forward(x, weight, eps):
    def rstd_of(x):
        return reciprocal((x * x).mean(-1) + x.dtype.type(eps))
    rstd = rstd_of(x)
    return x * rstd[:, None] * weight, rstd
"""
CHANGES = {
    "nothing": "",
    "the function": "old = rmsnorm_forward\ndef rmsnorm_forward(x, weight, eps): return old(x, weight, eps)",
    "its code": "rmsnorm_forward.__code__ = (lambda x, weight, eps: (x, weight)).__code__",
    "a helper": "def root(v): return v",
    "a constant": "HALF = 1 / 3",
    "an array": "HALF = np.full(5, 1 / 3)",
    "what a decorator wrapped": "reciprocal.fn = lambda v: v",
    "another value": "other = 3",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_task_is_graded_once_for_all_cells(monkeypatch, change):
    """Again where something that it is made of is another, and for the second run of a cell."""

    grades, original = [], grade.check
    monkeypatch.setattr(
        grade,
        "check",
        lambda *arguments: grades.append(arguments) or original(*arguments),
    )
    monkeypatch.setattr(grade, "_SHARED", {})
    names = {"__name__": "notebook", "hw": hw}
    exec(FIRST, names)
    assert eval('hw.stage("rmsnorm-forward", rmsnorm_forward, "y").full', names)
    exec(CHANGES[change], names)
    stage = eval('hw.stage("rmsnorm-forward", rmsnorm_forward, "rstd")', names)
    harmless = change in ("nothing", "the function", "another value")
    assert stage.full == harmless, stage.message
    assert len(grades) == (1 if change in ("nothing", "another value") else 2)
    hw.stage("rmsnorm-forward", names["rmsnorm_forward"], "rstd")
    hw.stage("rmsnorm-forward", names["rmsnorm_forward"], "y")
    assert len(grades) == (2 if change in ("nothing", "another value") else 3)
