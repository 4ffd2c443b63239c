"""The last cell of a homework's page: the functions of its cells as a solution.py, and the report on that file."""

from __future__ import annotations

from pathlib import Path

from .grade import grade_file
from .notebook import as_solution
from .report import text
from .solutions import SOLUTION, STUB
from .task import find_homework


def hand_in(homework: str, to=SOLUTION) -> None:
    """Writes the functions of this notebook's cells as a solution.py, and prints the report on that file alone.

    Args:     homework: its name; to: the file, which is written anew
    Raises:   RuntimeError outside of a notebook, ValueError for an unknown homework
    """
    entries = [task.entry for task in find_homework(homework).tasks]
    try:
        cells = get_ipython().user_ns["In"]  # type: ignore[name-defined]
    except NameError:
        raise RuntimeError(
            "hand_in: got no notebook, needs the cells of one; check grades a file"
        ) from None
    written = [entry for entry in entries if not is_stub(as_solution(cells, [entry]))]
    if not written:
        names = " and ".join(entries)
        verb = "is" if len(entries) == 1 else "are"
        print(f"{to} is not written: {names} {verb} still to be written.")
        return
    Path(to).write_text(as_solution(cells, entries), encoding="utf8")
    reports = grade_file(to, homework, feedback="equation")
    print(f"{to} holds {', '.join(written)}. Its report:\n\n{text(reports)}")


def is_stub(text: str) -> bool:
    """Whether the text that defines a name is still the starter's, or empty."""
    return not text.strip() or STUB in text
