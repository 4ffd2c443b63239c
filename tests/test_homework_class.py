"""A class graded by one command: nothing is written into a submission, no link is followed, nobody is left out."""

import csv
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from homework_notebooks import notebook
from processes import python
from test_homework_attacks import HOSTILE

from normgrad.homework import __main__ as shell
from normgrad.homework import classroom, solutions

RIGHT = solutions.solution("hw2")
HALF = RIGHT.replace("x_hat * c1", "c1")
ATTACKS = (
    "endless loop",
    "os._exit",
    "kills the grader",
    "imports the reference",
    "writes to the grader's pipe",
)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(folder of the class, folder of the reports, what was printed, what lay in the submissions before)."""
    folder = tmp_path_factory.mktemp("class")
    submissions, reports, kept = (
        folder / "submissions",
        folder / "reports",
        folder / "kept",
    )
    texts = {"ada": RIGHT, "bob": HALF, "=cyd": solutions.starter("hw2")}
    texts |= {name: HOSTILE[name][0] for name in ATTACKS}
    texts |= {
        "eve": "import json, helpers\n" + RIGHT,
        "fay": RIGHT,
        "gus": "import random\n" + RIGHT,
    }
    for name, text in texts.items():
        (submissions / name).mkdir(parents=True)
        (submissions / name / "solution.py").write_text(text, encoding="utf8")
    (submissions / "eve/helpers.py").write_text("ONE = 1", encoding="utf8")
    (submissions / "gus/random.py").write_text("ONE = 1", encoding="utf8")
    for name in ("late", "linked", "ida", "jon", "kim", "leo"):
        (submissions / name).mkdir()
    (submissions / "ida/done.ipynb").write_text(notebook(RIGHT), encoding="utf8")
    (submissions / "jon/done.ipynb").write_text("{", encoding="utf8")
    for name in "ab":
        (submissions / f"kim/{name}.ipynb").write_text(notebook(RIGHT))
    # Another student's work is not there to be read.
    (submissions / "leo/solution.py").write_text(
        f"exec(open({str(submissions / 'ada/solution.py')!r}).read(), globals())"
    )
    (submissions / "linked/solution.py").symlink_to("../ada/solution.py")
    (submissions / "twin").symlink_to("ada")
    os.mkfifo(submissions / "late/solution.py")
    kept.write_text("the teacher's")
    (submissions / "fay/report.json").symlink_to(kept)
    reports.mkdir()
    (reports / "bob.json").symlink_to(kept)
    (reports / "grades.csv").symlink_to(kept)
    before = sorted(submissions.rglob("*"))
    options = "--homework hw2 --jobs 2 --csv --seconds 1 --out".split()
    done = python("-m", "normgrad.homework", "grade", submissions, *options, reports)
    assert done.returncode == 0, done.stderr
    assert (
        kept.read_text() == "the teacher's" and sorted(submissions.rglob("*")) == before
    )
    return reports, done.stdout


def test_everybody_has_a_report_and_a_line(graded):
    """A folder that cannot be graded counts 0 and says why."""
    reports, printed = graded
    with open(reports / "grades.csv", encoding="utf8", newline="") as file:
        lines = {line["student"]: line for line in csv.DictReader(file)}
    points = {
        name: int(line["points"]) for name, line in lines.items() if int(line["points"])
    }
    assert points == {"ada": 20, "bob": 12, "eve": 20, "gus": 20, "ida": 20}
    assert set(lines) == {
        "ada",
        "bob",
        "'=cyd",
        *ATTACKS,
        "eve",
        "fay",
        "gus",
        "late",
        "linked",
        "twin",
        "ida",
        "jon",
        "kim",
        "leo",
    }
    for name, line in lines.items():
        name = name.removeprefix("'")
        report = json.loads((reports / f"{name}.json").read_text(encoding="utf8"))
        assert (report["points"], report["max_points"]) == (
            int(line["points"]),
            20,
        ) and f"{name} " in printed
        assert sum(task["points"] for task in report["tasks"]) == report["points"]
        assert (reports / f"{name}.txt").read_text(encoding="utf8")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("linked", "solution.py is a link"),
        ("fay", "report.json is a link"),
        ("twin", "a link in place of the folder"),
        ("late", "solution.py is not a file"),
        ("=cyd", "Not implemented yet"),
        ("bob", "x_hat is missing beside c1"),
        ("jon", "done.ipynb: not a notebook"),
        ("kim", "several notebooks (a.ipynb, b.ipynb) and no solution.py"),
        ("leo", "opened a file that is not in its own folder"),
        *((name, HOSTILE[name][1]) for name in ATTACKS),
    ],
)
def test_a_report_says_why(graded, name, words):
    assert words in " ".join(
        (graded[0] / f"{name}.txt").read_text(encoding="utf8").split()
    )


def test_a_second_run_goes_on_where_the_first_stopped(tmp_path):
    """What was there at the interrupt is kept; what has changed since is graded anew, and said to be so."""
    reports = tmp_path / "reports"
    for name, text in (("ada", RIGHT), ("bob", RIGHT), ("cyd", "while True: pass")):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "solution.py").write_text(text, encoding="utf8")
    command = ["-m", "normgrad.homework", "grade", tmp_path / "class"]
    command += [*"--homework hw2 --csv --seconds 1 --out".split(), reports]

    def stopped(lines):
        """The first lines of a run that is killed then."""
        run = [sys.executable, *command]
        with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as process:
            said = [process.stderr.readline() for _ in range(lines)]
            process.kill()
        return said

    said = stopped(2)
    assert [line.partition(" points")[0] for line in said] == [
        "1 of 3: ada: 20",
        "2 of 3: bob: 20",
    ]
    table = (reports / "grades.csv").read_text().splitlines()
    assert table[1:3] == ["ada,20,20,8,12,", "bob,20,20,8,12,"]
    assert table[3:] == ["cyd,0,20,0,0,not graded yet"]
    (tmp_path / "class/bob/solution.py").write_text(HALF, encoding="utf8")
    second = python(*command).stderr
    third = python(*command, "--feedback", "hint").stderr
    assert "ada: 20 points, as before" in second
    assert "bob: 12 points, graded anew, as the submission has changed" in second
    assert "cyd: 0 points, graded\n" in second
    assert third.count("graded anew, as the options have changed") == 3, third
    assert (reports / "grades.csv").read_text().splitlines()[3] == "cyd,0,20,0,0,"
    stopped(1)
    table = (reports / "grades.csv").read_text().splitlines()
    assert len(table) == 4 and table[1:] == [
        "ada,20,20,8,12,",
        "bob,12,20,8,4,not graded yet",
        "cyd,0,20,0,0,not graded yet",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nowhere", "--out", "reports"], "DIR: got"),
        (["empty", "--out", "reports"], "which has no folders"),
        (["class", "--out", "class/reports"], "--out: got"),
        (["class", "--out", "class"], "--out: got"),
        (["class", "--out", "reports", "--jobs", "0"], "--jobs: got 0"),
        (["class", "--out", "reports", "--seconds", "0"], "seconds: got 0"),
        (["class", "--out", "reports", "--seed-file", "none"], "seed file: got"),
    ],
)
def test_a_wrong_command_is_refused_by_name(
    tmp_path, monkeypatch, capsys, options, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class/ada").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    assert shell.main(["grade", *options, "--homework", "hw2"]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "class").iterdir()] == ["ada"]


def test_threads_parse_one_after_the_other(tmp_path, monkeypatch):
    """Two threads of Python 3.11 that parse at once may raise SystemError."""
    for name in "abcd":
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "solution.py").write_text(RIGHT)
    parsing = threading.Lock()

    def chosen(files, homework):
        assert parsing.acquire(blocking=False)
        time.sleep(0.02)
        parsing.release()
        raise ValueError("not graded here")

    monkeypatch.setattr(classroom, "chosen", chosen)
    reports = tmp_path / "reports"
    grades = classroom.grade_class(tmp_path / "class", reports, "hw2", jobs=4)
    assert [grade.note for grade in grades] == ["not graded here"] * 4


def test_a_submission_may_be_the_folder_that_one_stands_in(tmp_path):
    """A module there that has the name of one of Python's has no part in the grading."""
    (tmp_path / "solution.py").write_text(RIGHT, encoding="utf8")
    (tmp_path / "random.py").write_text("raise SystemExit(3)", encoding="utf8")
    command = "-m normgrad.homework check . --homework hw2".split()
    path = os.path.abspath(os.environ.get("PYTHONPATH", "."))
    environment = {**os.environ, "PYTHONPATH": path}
    done = python(*command, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
