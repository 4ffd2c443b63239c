"""The shell: a folder from new to full marks, seed files, and commands that are wrong."""

import json

import pytest
from processes import python

from normgrad.homework import __main__ as shell
from normgrad.homework import folder, solutions
from normgrad.homework.task import homeworks


def run(*arguments):
    return python("-m", "normgrad.homework", *arguments)


def test_homework_two_in_three_commands(tmp_path):
    """new, (write), check: the writing is done by copying the solution."""
    assert run("new", "hw2", "--to", tmp_path / "hw2").returncode == 0
    (tmp_path / "hw2/solution.py").write_text(
        solutions.solution("hw2"), encoding="utf8"
    )
    done = run("check", tmp_path / "hw2", "--json", tmp_path / "a.json")
    assert done.returncode == 0 and "20 of 20 points" in done.stdout, (
        done.stdout + done.stderr
    )
    assert json.loads((tmp_path / "a.json").read_text())["points"] == 20


@pytest.mark.sampled(of=8)
@pytest.mark.parametrize("homework", homeworks())
def test_pytest_runs_in_the_folder(tmp_path, libraries, homework):
    folder.new(homework, tmp_path)
    (tmp_path / "solution.py").write_text(solutions.solution(homework), encoding="utf8")
    options = "-m pytest -q -p no:cacheprovider".split()
    done = python(*options, tmp_path, cwd=tmp_path)
    count = sum(len(task.stages) for task in homeworks()[homework].tasks)
    assert f"{count} passed" in done.stdout, done.stdout


def test_new_overwrites_nothing(tmp_path, capsys):
    (tmp_path / "solution.py").write_text("mine")
    assert shell.main(["new", "hw2", "--to", str(tmp_path)]) == 2
    assert "exists already; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["solution.py"]


@pytest.mark.parametrize("text", ["{", "-1", "0.5", '{"seed": 7}'])
def test_a_bad_seed_file_is_refused(tmp_path, capsys, text):
    folder.new("hw2", tmp_path)
    (tmp_path / "seed").write_text(text)
    assert (
        shell.main(["check", str(tmp_path), "--seed-file", str(tmp_path / "seed")]) == 2
    )
    said = capsys.readouterr().err
    assert "needs a whole number" in said or "seed: got -1" in said


def test_a_seed_file_changes_the_inputs(tmp_path, capsys):
    """A solution made for the public shapes fails with the instructor's."""
    folder.new("hw2", tmp_path)
    old = "    wdy = weight * dy\n"
    text = solutions.solution("hw2").replace(
        old, "    assert x.shape[1] in (1, 8, 11)\n" + old
    )
    (tmp_path / "solution.py").write_text(text, encoding="utf8")
    assert shell.main(["check", str(tmp_path)]) == 0
    (tmp_path / "seed").write_text("99\n")
    assert (
        shell.main(["check", str(tmp_path), "--seed-file", str(tmp_path / "seed")]) == 1
    )
    assert "AssertionError" in capsys.readouterr().out


def test_a_folder_without_a_solution(tmp_path, capsys):
    assert shell.main(["check", str(tmp_path)]) == 2
    assert "new hw2 --to DIR" in capsys.readouterr().err
