"""What Canvas, Moodle and Gradescope export goes in, what they import comes out; names as their own code makes them."""

import csv
import io
import json
import stat
import subprocess
import sys
from zipfile import ZipFile, ZipInfo

import pytest
from homework_notebooks import notebook

from normgrad.homework import __main__ as shell
from normgrad.homework import classroom, solutions
from normgrad.homework.lms import gradescope, roster
from normgrad.homework.lms.submissions import chosen, collect

RIGHT, STARTER = solutions.solution("hw2"), solutions.starter("hw2")
GRADEBOOK = """Student,ID,SIS User ID,SIS Login ID,Section,HW1 (11),HW2 (12),Current Score
,,,,,,Manual Posting,
    Points Possible,,,,,10,20,(read only)
"Lovelace, Ada",1234,s1,ada,Section A,9,,90
"Hopper, Grace",1235,s2,grace,Section A,8,,80
"Noether, Emmy",1236,s3,emmy,Section B,7,5,70
"""
WORKSHEET = """Identifier,"Full name","Email address",Status,Grade,"Maximum Grade",\
"Grade can be changed","Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 1234","Ada Lovelace",ada@x.org,"Submitted for grading - ",,20.00,Yes,"Monday, 6 May",-,
"Participant 1235","Grace Hopper",grace@x.org,"Submitted for grading - ",,20.00,Yes,"Monday, 6 May",-,
"Participant 1236","Emmy Noether",emmy@x.org,"No submission - ",,20.00,Yes,-,-,
"""
LIST = "\ufeffname;e-mail;number\nAda;ada@x.org;s1\nGrace;grace@x.org;s2\nEmmy;emmy@x.org;s3\n"
METADATA = """---
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: 's1'
    :email: ada@x.org
  :created_at: 2024-05-06 09:00:00 Z
submission_12:
  :submitters:
  - :name: Grace Hopper
    :sid: ''
    :email: grace@x.org
"""
# {platform: (files of its zip, its list of the class)}; Ada is right, Grace has the starter beside a notebook.
EXPORTS = {
    "canvas": (
        {
            "lovelaceada_1234_901_solution.py": STARTER,
            "lovelaceada_1234_902_solution-1.py": RIGHT,
            "hoppergrace_LATE_1235_903_solution.py": STARTER,
            "hoppergrace_LATE_1235_904_hw2.ipynb": notebook(RIGHT),
        },
        GRADEBOOK,
    ),
    "moodle": (
        {
            "Ada Lovelace_1234_assignsubmission_file/my answer.py": RIGHT,
            "Ada Lovelace_1234_assignsubmission_file/__MACOSX/._my answer.py": "\0",
            "Grace Hopper_1235_assignsubmission_file_/a/solution.py": STARTER,
            "Grace Hopper_1235_assignsubmission_file_/a/hw2.ipynb": notebook(RIGHT),
        },
        WORKSHEET,
    ),
    "moodle, flat": (
        {
            "Ada Lovelace_1234_assignsubmission_file_solution.py": RIGHT,
            "Grace Hopper_1235_assignsubmission_file_hw2.ipynb": notebook(RIGHT),
        },
        WORKSHEET,
    ),
    "gradescope": (
        {
            "assignment_9_export/submission_metadata.yml": METADATA,
            "assignment_9_export/submission_11/solution.py": RIGHT,
            "assignment_9_export/submission_12/hw2.ipynb": notebook(RIGHT),
        },
        LIST,
    ),
    "plain": (
        {
            "class/ada/solution.py": RIGHT,
            "class/ada/.DS_Store": "\0",
            "class/grace@x.org/solution.py": STARTER,
            "class/grace@x.org/hw2.ipynb": notebook(RIGHT),
        },
        LIST,
    ),
}

PLACES = (
    "Ada Lovelace_1234_assignsubmission_file/feedback.txt",
    "hoppergrace_LATE_1235_904_feedback.txt",
)


def zipped(path, files):
    """A zip with these texts."""
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def graded(tmp_path, monkeypatch):
    """Grades a zip of files; a grade is 20 for the reference and 20 for a notebook."""

    def grade(student, name, files, homework, options):
        text = files[name].read_text(encoding="utf8")
        points = 20 * (text == RIGHT or name.endswith(".ipynb"))
        report = {"points": points, "max_points": 20, "tasks": [], "text": f"<{points}>"}  # fmt: skip
        return classroom.Grade(student, report)

    monkeypatch.setattr(classroom, "_grade", grade)

    def graded(files, people):
        (tmp_path / "people.csv").write_text(people, encoding="utf8")
        export, out = zipped(tmp_path / "export.zip", files), tmp_path / "reports"
        options = ["--homework", "hw2", "--csv", "--out", str(out)]
        options += ["--roster", str(tmp_path / "people.csv"), "-j", "2"]
        assert shell.main(["grade", str(export), *options]) == 0
        return out

    return graded


def rows(path):
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf8"))))


@pytest.mark.parametrize("platform", EXPORTS)
def test_an_export_goes_in_and_an_import_comes_out(graded, platform):
    files, people = EXPORTS[platform]
    out = graded(files, people)
    head, *table = rows(out / "people-hw2.csv")
    if people == GRADEBOOK:
        assert head[1:] == ["ID", "SIS User ID", "SIS Login ID", "Section", "HW2 (12)"]
        assert table[0] == ["    Points Possible", "", "", "", "", "20"]
        assert [row[1] + row[-1] for row in table[1:]] == ["123420", "123520", "12365"]
    elif people == WORKSHEET:
        grades = [row[head.index("Grade")] for row in table]
        assert grades == ["20", "20", ""] and table[2][-1] == ""
        assert head == next(csv.reader(io.StringIO(WORKSHEET)))
        assert "&lt;20&gt;" in table[0][-1]
    else:
        assert [row[3] + row[5] for row in table] == ["20", "20", "0no submission"]
    (_, *plain) = rows(out / "grades.csv")
    points = [row[1] for row in plain]
    notes = {note for row in plain if (note := row[-1])}
    late = {"Late."} if platform == "canvas" else set()
    assert sorted(points) == ["0", "20", "20"] and notes == {"no submission"} | late
    if platform in ("canvas", "moodle"):
        with ZipFile(out / "feedback.zip") as archive:
            first = sorted(archive.namelist())[0]
        assert first in PLACES


def test_a_column_of_another_name_is_a_new_assignment(graded):
    people = roster.Roster(["Student", "ID", "Section", "A (1)"], [["a", "1", "s", "3"]])  # fmt: skip
    text = roster.filled(people, {0: (7, "", "")}, "HW2", 20)
    assert text.splitlines() == ["Student,ID,Section,HW2", "    Points Possible,,,20", "a,1,s,7"]  # fmt: skip


def test_who_is_in_no_roster_is_named(graded):
    out = graded({"zoe/solution.py": RIGHT, "ada/solution.py": RIGHT}, LIST)
    notes = {row[0]: row[-1] for row in rows(out / "grades.csv")}
    assert notes["zoe"] == "Not in the roster." and notes["ada"] == ""
    assert notes["Emmy"] == "no submission"


def collected(tmp_path, files):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return {each.name: each for each in collect(zipped(tmp_path / "a.zip", files), workspace)}  # fmt: skip


def member(name, mode=0):
    info = ZipInfo(name)
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("../solution.py", 0, "../solution.py leaves its folder"),
        ("/etc/solution.py", 0, "/etc/solution.py leaves its folder"),
        ("..\\solution.py", 0, "leaves its folder"),
        ("solution.py", stat.S_IFLNK | 0o777, "solution.py is a link"),
    ],
)
def test_a_students_zip_that_leaves_its_folder_is_refused_by_name(
    tmp_path, name, mode, words
):
    """That of the student alone: the others are graded."""
    with ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(member(name, mode), RIGHT)
    files = {"bob.zip": (tmp_path / "bad.zip").read_bytes(), "ada/solution.py": RIGHT}
    students = collected(tmp_path, files)
    assert words in students["bob"].refused and not students["ada"].refused
    assert not list(tmp_path.glob("solution.py"))


def test_zips_within_zips_are_opened_and_what_is_none_is_refused(tmp_path):
    inner = zipped(tmp_path / "i.zip", {"hw/solution.py": RIGHT}).read_bytes()
    outer = zipped(tmp_path / "o.zip", {"hw2.zip": inner}).read_bytes()
    for _ in range(4):
        inner = zipped(tmp_path / "i.zip", {"again.zip": inner}).read_bytes()
    texts = {"ada_12_assignsubmission_file_/x.zip": outer, "bob.zip": inner, "cyd.zip": "PK"}  # fmt: skip
    students = collected(tmp_path, texts)
    (path,) = students["ada_12"].files.values()
    assert path.read_text(encoding="utf8") == RIGHT
    assert "too many others" in students["bob"].refused
    assert "cyd.zip is not a zip that can be read" in students["cyd"].refused


@pytest.mark.parametrize(
    ("files", "result"),
    [
        ({"solution.py": STARTER, "mine.py": RIGHT}, "mine.py"),
        ({"solution.py": STARTER, "done.ipynb": RIGHT}, "done.ipynb"),
        ({"solution.py": RIGHT, "done.ipynb": RIGHT}, "solution.py"),
        ({"solution.py": RIGHT, "solution-2.py": RIGHT, "solution-1.py": STARTER}, "solution-2.py"),
        ({"helpers.py": "a = 1", "hw2 (1).py": RIGHT}, "hw2 (1).py"),
        ({"solution.py": STARTER, "helpers.py": "a = 1"}, "solution.py"),
        ({"test_hw2.py": RIGHT, "notes.md": "", "sol.py": STARTER}, "sol.py"),
        ({"a.py": RIGHT, "b.py": RIGHT}, "several files (a.py, b.py)"),
        ({"notes.md": ""}, "no solution.py and no notebook"),
    ],
)  # fmt: skip
def test_what_was_written_is_graded(tmp_path, files, result):
    paths = {}
    for name, text in files.items():
        paths[name] = tmp_path / name
        text = notebook(text) if name.endswith(".ipynb") else text
        paths[name].write_text(text, encoding="utf8")
    try:
        assert chosen(paths, "hw2") == result
    except ValueError as reason:
        assert result in str(reason)


def test_an_autograder_writes_its_results(tmp_path):
    """The scripts of the zip, beside the folders that Gradescope makes; this environment is that of setup.sh."""
    path = gradescope.autograder("hw2", tmp_path / "autograder.zip")
    for name, text in (("a", RIGHT), ("b", STARTER), ("c", "")):
        root = tmp_path / name
        (root / "submission/inner").mkdir(parents=True)
        (root / "results").mkdir()
        (root / "submission/inner/solution.py").write_text(text, encoding="utf8")
        with ZipFile(path) as archive:
            archive.extractall(root / "source")
            assert archive.getinfo("run_autograder").external_attr >> 16 & 0o100
        (root / "source/environment/bin").mkdir(parents=True)
        # a link to a Python of an environment would not find its packages
        python = root / "source/environment/bin/python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        assert "pip install" in (root / "source/setup.sh").read_text()
        subprocess.run(["bash", "source/run_autograder"], cwd=root, check=True)
        results = json.loads((root / "results/results.json").read_text())
        assert results["score"] == (20 if name == "a" else 0)
        most = [test["max_score"] for test in results["tests"]]
        assert sum(most) == 20 and "of 20 points" in results["output"]
