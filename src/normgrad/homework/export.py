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

from .solutions import BEGIN, END, marked, starter
from .task import PUBLIC_SEED, Homework, find_homework


def answers(homework: Homework) -> dict[str, str]:
    """{entry: code} in which the parts that a student writes stand between marks, and bring what they use."""
    text = marked(homework.name)
    lines, entries = text.split("\n"), {task.entry for task in homework.tasks}
    # What stands between marks at the beginning of a line: functions and constants that all answers may use.
    regions = re.findall(rf"^{BEGIN}\n(.*?)^{END}$", text, re.M | re.S)
    begin = f"{BEGIN}\n" + "\n".join(regions)
    found = {}
    for node in ast.parse(text).body:
        if _defined(node) & entries:
            last = node.end_lineno + (
                lines[node.end_lineno].strip() == END
            )  # a mark is no part of the statement
            own = "\n".join(lines[node.lineno - 1 : last]) + "\n"
            found[node.name] = re.sub(
                rf"^( +){BEGIN}\n",
                lambda mark: textwrap.indent(begin, mark[1]),
                own,
                flags=re.M,
            )
    return found


def _defined(node) -> set[str]:
    """Names that a statement of a module defines, imports left out."""
    if isinstance(node, ast.Assign):
        return {
            each.id
            for target in node.targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name)
        }
    return {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()


def _given(homework) -> str:
    """The imports, that of the grader among them, and what a student is given beside the entries."""
    text, entries = starter(homework.name), {task.entry for task in homework.tasks}
    imports, given = ["import normgrad.homework as hw"], []
    for node in ast.parse(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.insert(-1, ast.unparse(node))
        elif _defined(node) and not _defined(node) & entries:
            given.append(ast.get_source_segment(text, node))
    return "\n\n\n".join(["\n".join(imports), *given])


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

    cells = [
        ("markdown", _title(homework), {}),
        ("code", _given(homework), tagged("imports", locked=True)),
    ]
    answer = answers(homework)
    for task in homework.tasks:
        cells += [
            _asked(task),
            ("code", answer[task.entry], tagged(task.name, solution=True)),
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
