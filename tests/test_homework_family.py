"""Variants of homeworks: what solves one has full marks, the standard solution is told to be that, nothing else is."""

import json
import subprocess
import sys
from zipfile import ZipFile

import pytest
from homework_family import SOLVED
from homework_solutions import graded, named

import normgrad.homework as hw
from normgrad.homework import folder
from normgrad.homework.__main__ import main
from normgrad.homework.solutions import solution
from normgrad.homework.task import Draw
from normgrad.homework.variants import FAMILIES, options_of, variant
from normgrad.mistakes.edits import edited


@pytest.mark.parametrize(("homework", "seed"), SOLVED)
def test_a_variant_that_is_solved_has_full_marks(libraries, tmp_path, homework, seed):
    for draw in (None, Draw(1, 4, 11)):
        reports = graded(tmp_path, SOLVED[homework, seed], homework, variant=seed, draw=draw)  # fmt: skip
        assert all(report.passed for report in reports), reports


@pytest.mark.parametrize(("homework", "seed"), SOLVED)
def test_the_standard_solution_is_told_to_be_that(libraries, tmp_path, homework, seed):
    for report in graded(tmp_path, solution(homework), homework, variant=seed):
        assert not report.passed and named(report) == ["standard-task"], report
        assert report.flags[-1] == f"It solves the standard {report.task}."


# {homework: (seed, edit of what solves it, task, the name that it has)}
WRONG = {
    "hw1": (4, ("local + 3 * x[j] / N", "local"), "local-and-total", "local-for-total"),
    "hw2": (1, ("(x_hat * g).sum(-1", "(x_hat * g).mean(-1"), "rmsnorm-backward", "divided-twice"),
    "hw3": (0, ("g - g.mean(-1, keepdims=True) - along", "g - along"), "layernorm-backward", "c2-dropped"),
}  # fmt: skip


@pytest.mark.parametrize("homework", WRONG)
def test_a_mistake_in_a_variant_has_its_own_name(libraries, tmp_path, homework):
    seed, edit, task, key = WRONG[homework]
    text = edited(SOLVED[homework, seed], [edit], homework)
    reports = graded(tmp_path, text, homework, variant=seed)
    for report in reports:
        assert report.passed == (report.task != task), report
        assert named(report) == [key] * (report.task == task), report


@pytest.mark.parametrize("homework", FAMILIES)
def test_no_variant_is_the_standard_task(homework):
    """The names of a norm are those of the definition in its stubs, and each number of means is in the docstrings."""
    for seed in range(30):
        options = options_of(homework, seed)
        assert options.get("weight_offset") != 0 and options.get("times") != 1
        for task in variant(homework, seed).tasks:
            assert (
                task.oracle != task.standard.oracle and task.standard.standard is None
            )
    assert len({str(options_of(homework, seed)) for seed in range(100)}) > 5


DEFINED = {
    ("hw1", 3): ("(delta_kr + 2/N)", "y_j = -2 x_j mean", "w_k x_k + 2 mean(w x)", "(x_ij + 2 mean_i)"),
    ("hw2", 5): ("s = sqrt(mean(x**2))", "rstd = 1 / (s + eps)", "y = (2 + weight) * x * rstd\n"),
    ("hw3", 0): ("q = x - mean(x)", "s = sqrt(sum(q**2))", "y = (2 + weight) * q * rstd + bias\n"),
}  # fmt: skip


@pytest.mark.parametrize(("homework", "seed"), DEFINED)
def test_the_folder_of_a_variant_says_what_it_asks_for(tmp_path, capsys, homework, seed):  # fmt: skip
    to = tmp_path / "mine"
    assert main(["new", homework, "--to", str(to), "--variant", str(seed)]) == 0
    assert f"--variant {seed}\n" in capsys.readouterr().out
    stubs, readme = ((to / name).read_text() for name in ("solution.py", "README.md"))
    for words in DEFINED[homework, seed]:
        assert words in stubs, stubs
    for text in (stubs, readme):
        assert f"Variant {seed} of {homework}" in text
        assert text.count("homework check .") == text.count(f"check . --variant {seed}")
    assert "mean square under the root" not in stubs and "- mean" not in stubs.replace("- mean(x)", "")  # fmt: skip


def test_a_variant_in_the_shell(tmp_path, capsys):
    """check, grade and pytest in the folder agree; a class's table names who handed in the standard solution."""
    folder.new("hw2", tmp_path / "mine", 5)
    (tmp_path / "mine" / "solution.py").write_text(SOLVED["hw2", 5])
    assert main(["check", str(tmp_path / "mine"), "--variant", "5"]) == 0
    assert main(["check", str(tmp_path / "mine")]) == 1
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "mine"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout
    for name, text in (("ada", SOLVED["hw2", 5]), ("bo", solution("hw2"))):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "solution.py").write_text(text)
    out = tmp_path / "reports"
    capsys.readouterr()
    main(["grade", str(tmp_path / "class"), "--homework", "hw2", "--out", str(out), "--variant", "5"])  # fmt: skip
    assert "It solves the standard rmsnorm-forward." in capsys.readouterr().out
    assert json.loads((out / "ada.json").read_text())["points"] == 20


def test_what_has_no_variant_is_refused(capsys):
    assert main(["new", "hw4", "--to", "x", "--variant", "1"]) == 2
    assert "needs one of hw1, hw2, hw3" in capsys.readouterr().err
    with pytest.raises(ValueError, match="needs an integer"):
        hw.check("rmsnorm-forward", abs, variant=-1)


def test_an_autograder_grades_the_variant(tmp_path):
    to = tmp_path / "autograder.zip"
    assert main(["gradescope", "hw2", "--to", str(to), "--variant", "5"]) == 0
    with ZipFile(to) as archive:
        script = archive.read("run_autograder").decode()
    assert "--homework hw2 --results results/results.json --variant 5\n" in script
