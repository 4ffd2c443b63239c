"""Commands try the files that they will write before they work: what is there stays, what is not there is not made."""

import os
import sys

import pytest

from normgrad import writable
from normgrad.bench import __main__ as bench
from normgrad.homework.__main__ import main as homework


def test_a_file_is_tried_and_left_as_it_was(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("results of hours")
    writable.check_file("--json", old)
    writable.check_file("--json", new)
    assert old.read_text() == "results of hours"
    assert not new.exists()


def test_a_folder_is_made_and_nothing_in_it(tmp_path):
    writable.check_folder("--out", tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_device_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writable.check_file("--json", tmp_path / "pipe")


@pytest.fixture
def refusing(monkeypatch):
    """Files that cannot be opened for writing; a test that runs as root may write anything."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writable.Path, "open", refuse)
    monkeypatch.setattr(writable.Path, "touch", refuse)


@pytest.mark.parametrize("check", [writable.check_file, writable.check_folder])
def test_what_may_not_be_written_is_named(check, refusing, tmp_path):
    with pytest.raises(ValueError, match=r"^--x: got '.*', wh.*written \(Permission denied\); needs the name of a f"):
        check("--x", tmp_path / "a")


BAD = [
    ("compile --json {file}/x.json", "--json: got '{file}/x.json', whose folder does not exist; needs"),
    ("compile --json {folder}", "--json: got '{folder}', which is a folder; needs the name of a file"),
    ("compile --json {folder}/x --assembly {file}", "--assembly: got '{file}', which is a file; needs"),
    ("plot h100 --out {file}", "--out: got '{file}', which is a file; needs the name of a folder"),
    ("plot h100 --out {file}/x", "--out: got '{file}/x', which cannot be made"),
]


@pytest.mark.parametrize(("command", "message"), BAD)
def test_the_benchmark_says_so_before_it_works(command, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("x")
    names = {"file": tmp_path / "file", "folder": tmp_path}
    monkeypatch.setattr(sys, "argv", ["bench", *command.format(**names).split()])
    monkeypatch.setattr(bench, "_results", lambda *_: None)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(SystemExit, match="2"):
        bench.main()
    assert message.format(**names) in capsys.readouterr().err


def test_a_grade_is_not_made_for_a_file_that_cannot_be_written(refusing, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("normgrad.homework.grade.grade_file", lambda *_: pytest.fail("graded first"))
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: path.name == "solution.py")
    status = homework(["check", str(tmp_path / "solution.py"), "--homework", "hw2", "--json", str(tmp_path / "a.json")])
    assert status == 2
    assert "--json: got" in capsys.readouterr().err
