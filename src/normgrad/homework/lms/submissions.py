"""A class's submissions out of what a platform exports: folders, flat files, zips within zips.

| from | what lies there | where that is written |
|---|---|---|
| Canvas | NAME[_LATE]_USER_ATTACHMENT_FILE | canvas-lms, lib/content_zipper.rb: get_filename, add_upload_submission |
| Moodle | folders NAME_PARTICIPANT_assignsubmission_file, files with that prefix | moodle, importziplib.php |
| Gradescope | submission_NUMBER beside submission_metadata.yml | Gradescope guide, Exporting submissions |
| anything else | a folder, a file or a zip a student | |
"""

from __future__ import annotations

import re
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from zipfile import BadZipFile, ZipFile

from ..notebook import SUFFIX, as_solution, cells_of
from ..sandbox.remote import LONGEST_SOURCE
from ..solutions import SOLUTION
from ..submit import is_stub
from ..task import find_homework, homeworks

CODE = (".py", SUFFIX)
PATTERNS = (
    re.compile(
        r"(?P<student>.+?)(?P<late>_LATE)?_(?P<number>\d+)_\d+_(?P<file>.+\..+)"
    ),
    re.compile(
        r"(?:(?P<late>LATE)_)?(?P<student>anon_(?P<number>\w+?))_\d+_(?P<file>.+\..+)"
    ),
    re.compile(
        r"(?P<student>[^_]*)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)"
    ),
)
METADATA = "submission_metadata.yml"
# Of that file: the folder of a submission, and what is said of its first submitter.
OF_FOLDER = re.compile(r"^(submission_\d+):", re.M)
OF_PERSON = re.compile(r":(name|sid|email): *['\"]?(.*?)['\"]? *$", re.M)
# What systems and editors leave: never handed in on purpose.
JUNK = re.compile(
    r"\..*|__MACOSX|__pycache__|Thumbs\.db|desktop\.ini|venv|node_modules|~.*", re.I
)
# solution-2.py, solution (2).py: what a platform makes of a second file of one name.
AGAIN = re.compile(r"(?:-| \()(\d+)\)?$")
LONGEST_ARCHIVE, MOST_FILES, DEEPEST = 2**29, 20_000, 3
LONGEST_NOTEBOOK = 20 * 2**20


class Refused(ValueError):
    """A submission that is not graded; the text says why."""


@dataclass
class Submission:
    """What one student handed in.

    Args:  name: of the reports; keys: by which a roster may know the student; late: whether the platform says so
           files: {path within the submission: path}; refused: why it is not graded
           feedback: under which name the platform takes a file of feedback back, "" where it takes none
    """

    name: str
    keys: set[str] = field(default_factory=set)
    late: bool = False
    files: dict[str, Path] = field(default_factory=dict)
    refused: str = ""
    feedback: str = ""


def collect(path: Path, workspace: Path) -> list[Submission]:
    """The submissions of a class by name. Args: path: a folder or a zip; workspace: a folder for what is unpacked

    Raises:  ValueError where a zip cannot be read, or has paths that leave it
    """
    root = path if path.is_dir() else _wrapped(_unpacked(path, workspace))
    if (inner := list(root.glob(f"*/{METADATA}"))) and len(inner) == 1:
        root = inner[0].parent
    people, by_name = _people(root / METADATA), {}
    for entry in sorted(root.iterdir()):
        if JUNK.fullmatch(entry.name) or entry.name == METADATA:
            continue
        matches = [pattern.fullmatch(entry.name) for pattern in PATTERNS]
        match = next(filter(None, matches), None)
        is_submission = match or entry.is_dir() or entry.is_symlink()
        if not is_submission and entry.suffix not in (*CODE, ".zip"):
            continue
        _add(by_name, entry, match, people, workspace)
    return [by_name[name] for name in sorted(by_name)]


def _add(by_name, entry, match, people, workspace):
    """Adds what an entry of the export holds to its student's submission."""
    name, inside = entry.stem if entry.is_file() else entry.name, entry.name
    if match:
        name, inside = f"{match['student']}_{match['number']}", match["file"]
    own = by_name.setdefault(name, Submission(name))
    own.keys |= {name, *people.get(name, ())}
    if match:
        own.keys |= {match["number"], match["student"]}
        own.late = own.late or bool(match.groupdict().get("late"))
        own.feedback = f"{entry.name}/feedback.txt"
        if inside:
            own.feedback = f"{entry.name.removesuffix(inside)}feedback.txt"
    try:
        own.files |= files_of(entry, inside, workspace)
    except Refused as reason:
        own.refused = own.refused or str(reason)


def files_of(entry, name, workspace, depth=0) -> dict[str, Path]:
    """{path within a submission: path} of a file, a folder or a zip. Raises: Refused"""
    if entry.is_symlink():
        kind = (
            "a link in place of the folder" if not entry.suffix else f"{name} is a link"
        )
        raise Refused(f"{kind}; links are not followed")
    if entry.suffix == ".zip" and entry.is_file():
        if depth >= DEEPEST:
            raise Refused(f"{name} is a zip within too many others")
        entry = _unpacked(entry, workspace)
    if not entry.is_dir():
        if not entry.is_file():
            raise Refused(f"{name} is not a file")
        return {name or entry.name: entry}
    files = {}
    for path in sorted(entry.rglob("*")):
        inside = path.relative_to(entry)
        if any(map(JUNK.fullmatch, inside.parts)):
            continue
        if path.is_symlink():
            raise Refused(f"{inside} is a link; links are not followed")
        if not path.is_dir():
            files |= files_of(path, str(inside), workspace, depth + 1)
    return files


def _unpacked(path, workspace) -> Path:
    """A folder of its own with what is in a zip. Raises: Refused"""
    folder, size = Path(mkdtemp(dir=workspace)), 0
    try:
        with ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_FILES:
                raise Refused(f"{path.name} has more than {MOST_FILES} files")
            for member in members:
                inside = PurePosixPath(member.filename.replace("\\", "/"))
                if inside.is_absolute() or ".." in inside.parts or ":" in str(inside):
                    raise Refused(f"{path.name}: {member.filename} leaves its folder")
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise Refused(f"{path.name}: {member.filename} is a link; links are not followed")  # fmt: skip
                size += member.file_size
                if size > LONGEST_ARCHIVE:
                    raise Refused(f"{path.name} unpacks to more than {LONGEST_ARCHIVE} bytes")  # fmt: skip
                if member.is_dir() or any(map(JUNK.fullmatch, inside.parts)):
                    continue
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, open(target, "wb") as copy:
                    shutil.copyfileobj(source, copy)
    except (BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise Refused(f"{path.name} is not a zip that can be read: {error}") from None
    return folder


def _wrapped(folder) -> Path:
    """The folder in which students' folders lie: zips often have one around them all."""
    while len(entries := list(folder.iterdir())) == 1 and entries[0].is_dir():
        if any(path.suffix in CODE for path in entries[0].iterdir()):
            break
        if any(pattern.fullmatch(entries[0].name) for pattern in PATTERNS):
            break
        folder = entries[0]
    return folder


def _people(path) -> dict[str, set[str]]:
    """{folder: names, numbers and e-mail addresses} of Gradescope's file; {} without one."""
    if not path.is_file():
        return {}
    _, *parts = OF_FOLDER.split(path.read_text(encoding="utf8", errors="replace"))
    people = {}
    for folder, text in zip(parts[::2], parts[1::2], strict=True):
        people[folder] = {value for _, value in OF_PERSON.findall(text) if value}
    return people


def chosen(files: dict[str, Path], homework: str = "") -> str:
    """The path within a submission of the file that is graded.

    What is written counts, and the untouched starter beside it does not; of several, solution.py, and of copies of one
    name the last.

    Args:    homework: that is asked for; any without one
    Raises:  Refused where there is none, or where several could be it
    """
    candidates = [
        name
        for name in files
        if name.endswith(CODE) and not PurePosixPath(name).name.startswith("test_")
    ]
    groups = {}
    for name in [name for name in candidates if is_written(files[name], homework)] or candidates:  # fmt: skip
        stem = AGAIN.sub("", PurePosixPath(name).stem) or name
        groups.setdefault(stem + PurePosixPath(name).suffix, []).append(name)
    choice = groups.get(SOLUTION) or next(iter(groups.values()), None)
    if choice is None:
        raise Refused(f"no {SOLUTION} and no notebook")
    if len(groups) > 1 and SOLUTION not in groups:
        names = [name for group in groups.values() for name in group]
        kinds = {PurePosixPath(name).suffix for name in names}
        kind = "notebooks" if kinds == {SUFFIX} else "files"
        raise Refused(f"several {kind} ({', '.join(names)}) and no {SOLUTION}; needs one of them")  # fmt: skip
    return max(choice, key=_version)


def _version(name):
    again = AGAIN.search(PurePosixPath(name).stem)
    return int(again[1]) if again else 0


def longest(path: Path) -> int:
    """How many bytes of a file are read; the pictures of a notebook are not."""
    return LONGEST_NOTEBOOK if path.suffix == SUFFIX else LONGEST_SOURCE + 1


def is_written(path: Path, homework: str = "") -> bool:
    """Whether a file defines something that a homework asks for, and not its stub. Args: as of chosen"""
    asked = [find_homework(homework)] if homework else homeworks().values()
    if not path.is_file() or path.stat().st_size > longest(path):
        return False
    try:
        text = path.read_text(encoding="utf8", errors="replace")
        cells = cells_of(path) if path.suffix == SUFFIX else [text]
        tasks = [task for group in asked for task in group.tasks]
        return not all(is_stub(as_solution(cells, [task.entry])) for task in tasks)
    except (ValueError, OSError):
        return False
