"""A homework as an assignment notebook for nbgrader, made of the starter, the solution and the stages.

nbgrader takes the instructor's notebook and writes the students' one itself: `nbgrader generate_assignment`. Every
stage is one graded test with its points.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path

from .solutions import BEGIN, END, marked
from .task import PUBLIC_SEED, Homework, find_homework


def split(homework: Homework) -> tuple[str, dict[str, str]]:
    """(what a student is given, {entry: code}); what a student writes stands between marks, and brings what it uses."""
    text = marked(homework.name)
    # Marks at the beginning of a line hold functions and constants that all answers may use.
    region = re.compile(rf"^{BEGIN}\n(.*?)^{END}\n", re.M | re.S)
    begin = f"{BEGIN}\n" + "".join(region.findall(text))
    text = re.sub(
        rf"^( +){BEGIN}\n",
        lambda mark: textwrap.indent(begin, mark[1]),
        region.sub("", text),
        flags=re.M,
    )
    lines, (_, *body) = text.split("\n"), ast.parse(text).body
    given, answers = ["import normgrad.homework as hw"], {}
    entries = [task.entry for task in homework.tasks]
    for node in body:
        last = node.end_lineno
        if lines[last].strip() == END:  # a mark is no part of the statement
            last += 1
        code = "\n".join(lines[node.lineno - 1 : last])
        if getattr(node, "name", "") in entries:
            answers[node.name] = code
        else:
            given.append(code)
    return "\n\n\n".join(given), answers


def _cell(kind, source, number, **metadata) -> dict:
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": metadata,
        "source": source.rstrip("\n"),
        **extra,
    }


def _notebook(cells) -> str:
    kernel = {
        "kernelspec": {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
    }
    made = [
        _cell(kind, source, number, **metadata)
        for number, (kind, source, metadata) in enumerate(cells)
    ]
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made},
        indent=1,
    )


def _title(homework):
    return f"# {homework.title}\n\n{homework.time}. You need {homework.needs}. {homework.max_points} points."


def _asked(task):
    return "markdown", f"## {task.title}\n\n```text\n{task}\n```", {}


def _test(task, stage, seed) -> str:
    """The text of a test; that of the first stage has the task graded for all of them."""
    report = f"{task.entry}_report"
    check = f'{report} = hw.check("{task.name}", {task.entry}, seed={seed})\n'
    told = f'stage = {report}.told("{stage.name}")\n'
    first = check * (stage is task.stages[0])
    return f"{first}{told}assert stage.full, stage.message\n"


def nbgrader(name: str, to, seed: int = PUBLIC_SEED) -> Path:
    """Writes source/NAME/NAME.ipynb into a folder, where `nbgrader generate_assignment NAME` finds it.

    Args:     name: of the homework; seed: of the inputs that its tests draw
    Returns:  the file written
    Raises:   ValueError for an unknown homework
    """
    homework = find_homework(name)

    def tagged(identity, **kind):
        plain = {
            "schema_version": 3,
            "grade": False,
            "solution": False,
            "locked": False,
            "task": False,
        }
        return {"nbgrader": plain | {"grade_id": identity} | kind}

    given, answers = split(homework)
    cells = [
        ("markdown", _title(homework), {}),
        ("code", given, tagged("imports", locked=True)),
    ]
    for task in homework.tasks:
        cells += [
            _asked(task),
            ("code", answers[task.entry], tagged(task.name, solution=True)),
        ]
        for number, stage in enumerate(task.stages):
            graded = tagged(
                f"{task.name}-{number}", grade=True, locked=True, points=stage.points
            )
            cells.append(("code", _test(task, stage, seed), graded))
    path = Path(to) / "source" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_notebook(cells), encoding="utf8")
    return path
