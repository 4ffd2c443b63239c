"""A list of the class as a platform exports it, and the same list with grades, as it imports it.

| list | known by its columns | what is written |
|---|---|---|
| Canvas gradebook | Student, ID, Section | those up to Section, the homework's (canvas-lms, gradebook_importer.rb) |
| Moodle grading worksheet | Identifier, Grade | all; Grade, Feedback comments (moodle, importgradeslib.php) |
| any other | an id, an e-mail address or a login in any column | all, with points and note |
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html import escape
from pathlib import Path

POSSIBLE = "Points Possible"
# Moodle has the number of a participant behind this word, and in the names of its files alone.
PARTICIPANT = "Participant "
COMMENTS = "Feedback comments"


@dataclass
class Roster:
    """A list of the class. Args: head: the names of the columns; rows: the cells of each student"""

    head: list[str]
    rows: list[list[str]]

    @property
    def is_canvas(self) -> bool:
        """Whether it is a gradebook of Canvas."""
        return {"Student", "ID", "Section"} <= {*self.head}

    @property
    def is_moodle(self) -> bool:
        """Whether it is a grading worksheet of Moodle."""
        return {"Identifier", "Grade"} <= {*self.head}

    def keys(self, row: list[str]) -> set[str]:
        """What a student of the list may be known by, in small letters."""
        last = len(row)
        if self.is_canvas:
            last = self.head.index("Section")
        cells = {cell.strip().lower() for cell in row[:last]} - {""}
        logins = {cell.partition("@")[0] for cell in cells if "@" in cell}
        return (
            cells | logins | {cell.removeprefix(PARTICIPANT.lower()) for cell in cells}
        )

    def name(self, row: list[str]) -> str:
        """What a student without a submission is called."""
        return next((cell.strip() for cell in row if cell.strip()), "?")


def read(path) -> Roster:
    """The list in a file. Raises: ValueError where it has no students"""
    text = Path(path).read_text(encoding="utf-8-sig")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    lines = [line for line in csv.reader(io.StringIO(text), delimiter=delimiter) if any(line)]  # fmt: skip
    if len(lines) < 2:
        raise ValueError(f"roster: got {path}, needs a line of names and a line a student")  # fmt: skip
    head, *rows = lines
    roster = Roster([cell.strip() for cell in head], rows)
    if roster.is_canvas:  # rows between the names and the students have no ID
        number = roster.head.index("ID")
        roster.rows = [row for row in rows if row[number].strip()]
    return roster


def matched(roster: Roster, submissions: dict[str, set[str]]) -> dict[int, str]:
    """{number of a row: name of the submission} as far as one key leads to one of them.

    Args:  submissions: {name: keys}
    """
    owners: dict[str, set[int]] = {}
    for number, row in enumerate(roster.rows):
        for key in roster.keys(row):
            owners.setdefault(key, set()).add(number)
    names = {}
    for name, keys in submissions.items():
        rows = [owners[key.lower()] for key in keys if len(owners.get(key.lower(), ())) == 1]  # fmt: skip
        if len(numbers := set().union(*rows)) == 1:
            names[numbers.pop()] = name
    return names


def filled(roster: Roster, grades: dict[int, tuple], column: str, most: int) -> str:
    """The text of the list with grades, for the platform's import; who has none keeps the cell as it was.

    Args:  grades: {number of a row: (points, note, report)}; column: of the homework; most: points
    """
    if roster.is_canvas:
        table = _canvas(roster, grades, column, most)
    elif roster.is_moodle:
        table = _moodle(roster, grades)
    else:
        table = [[*roster.head, "points", "max_points", "note"]]
        for number, row in enumerate(roster.rows):
            points, note, _ = grades.get(number, (0, "no submission", ""))
            table.append([*row, points, most, note])
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    return text.getvalue()


def _canvas(roster, grades, column, most):
    """Section is the last column of those that tell who it is; Canvas makes a new assignment of an unknown name."""
    last = roster.head.index("Section") + 1
    own = [k for k, name in enumerate(roster.head) if k >= last and column.lower() in name.lower()]  # fmt: skip
    title = roster.head[own[0]] if len(own) == 1 else column
    table = [[*roster.head[:last], title]]
    table.append([f"    {POSSIBLE}", *[""] * (last - 1), most])
    for number, row in enumerate(roster.rows):
        before = row[own[0]] if len(own) == 1 else ""
        table.append([*row[:last], grades.get(number, (before,))[0]])
    return table


def _moodle(roster, grades):
    """All columns stay: Moodle looks for Identifier, Grade and Last modified (grade), and skips an older date."""
    grade, table = roster.head.index("Grade"), [roster.head]
    for number, row in enumerate(roster.rows):
        row = [*row]
        if number in grades:
            row[grade], _, report = grades[number]
            if COMMENTS in roster.head:
                row[roster.head.index(COMMENTS)] = f"<pre>{escape(report)}</pre>"
        table.append(row)
    return table
