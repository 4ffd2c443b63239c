"""The exported assignments: cells that run, and stubs without the answers. test_graders.py runs nbgrader's commands."""

import json
import linecache

import pytest
from wrong_solutions import wrong

import normgrad.homework as hw
from normgrad.homework import export, solutions
from normgrad.homework.task import find_homework, homeworks


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
    for code in export.split(find_homework(homework))[1].values():
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
        if "rmsnorm_backward_report" in code
    ]
    assert "seed=7)" in tests[0] and not any("seed" in code for code in tests[1:])
    mistake = next(
        entry
        for entry in wrong("hw2")
        if entry.name == "sum for mean" and entry.task == "rmsnorm-backward"
    )
    names = {"__name__": "notebook", "hw": hw}
    source = mistake.source("hw2")
    # where a notebook keeps the text of its cells
    linecache.cache["cell"] = (len(source), None, source.splitlines(True), "cell")
    exec(compile(source, "cell", "exec"), names)
    exec(tests[0], names)
    (code,) = [code for code in tests if "dx, row by row" in code]
    with pytest.raises(AssertionError, match="c1 is a sum, not a mean"):
        exec(code, names)
