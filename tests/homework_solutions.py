"""Solutions as objects: what a solution.py defines, the reports on one, and what they say."""

import linecache
from zlib import crc32

import normgrad.homework as hw
from normgrad.homework.solutions import solution
from normgrad.mistakes.edits import edited


def of_source(source):
    """The names that a solution.py defines."""
    names, path = {"__name__": "solution"}, f"<solution {crc32(source.encode())}>"
    # Triton reads the source of a kernel from where Python keeps it.
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    exec(compile(source, path, "exec"), names)
    return names


def changed(homework, *edits):
    """The reference solution with some texts replaced, each of which is there once."""
    return edited(solution(homework), edits, homework)


def checked(task, source, **options):
    """The report of a notebook's check on a solution.py with this text."""
    return hw.check(task, of_source(source)[hw.describe(task).entry], **options)


def graded(folder, source, homework, **options):
    """The shell's reports on a solution.py with this text, which is written into the folder."""
    path = folder / "solution.py"
    path.write_text(source, encoding="utf8")
    return hw.grade_file(path, homework, **options)


def named(report):
    """The mistakes that a report names."""
    return [diagnosis.misconception for diagnosis in report.diagnoses]


def flat(report):
    """A report as one line."""
    return " ".join(str(report).split())
