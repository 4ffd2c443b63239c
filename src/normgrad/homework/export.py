"""A homework as an assignment notebook for nbgrader or otter-grader, made of the starter, the solution and the stages.

Both tools take the instructor's notebook and write the students' one themselves: `nbgrader generate_assignment`,
`otter assign`. Every stage is one graded test with its points.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path

from .solutions import BEGIN, END, marked, starter
from .task import PUBLIC_SEED, Homework, find_homework

NBGRADER = (f"{BEGIN}\n", f"{END}\n")
OTTER = (
    "# BEGIN SOLUTION NO PROMPT\n",
    '# END SOLUTION\n""" # BEGIN PROMPT\nraise NotImplementedError\n""" # END PROMPT\n',
)


def answers(homework: Homework, marks) -> dict[str, str]:
    """{entry: code} in which the parts that a student writes stand between the marks, and bring what they use.

    Args:  marks: the lines before and after a part
    """
    text = marked(homework.name)
    lines, entries = text.split("\n"), {task.entry for task in homework.tasks}
    # What stands between marks at the beginning of a line: functions and constants that all answers may use.
    regions = re.findall(rf"^{BEGIN}\n(.*?)^{END}$", text, re.M | re.S)
    begin, end = marks[0] + "\n".join(regions), marks[1]
    found = {}
    for node in ast.parse(text).body:
        if _defined(node) & entries:
            last = node.end_lineno + (lines[node.end_lineno].strip() == END)  # a mark is no part of the statement
            own = "\n".join(lines[node.lineno - 1 : last]) + "\n"
            own = re.sub(rf"^( +){BEGIN}\n", lambda found: textwrap.indent(begin, found[1]), own, flags=re.M)
            found[node.name] = re.sub(rf"^( +){END}\n", lambda found: textwrap.indent(end, found[1]), own, flags=re.M)
    return found


def _defined(node) -> set[str]:
    """Names that a statement of a module defines, imports left out."""
    if isinstance(node, ast.Assign):
        return {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
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
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": metadata, "source": source.rstrip("\n"), **extra}


def _notebook(cells) -> str:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = [_cell(kind, source, number, **metadata) for number, (kind, source, metadata) in enumerate(cells)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made}, indent=1)


def _title(homework):
    return f"# {homework.title}\n\n{homework.time}. You need {homework.needs}. {homework.max_points} points."


def _asked(task):
    return "markdown", f"## {task.title}\n\n```text\n{task}\n```", {}


def _test(task, stage, seed) -> str:
    asked = f'stage = hw.stage("{task.name}", {task.entry}, "{stage.name}", seed={seed})'
    return f"{asked}\nassert stage.full, stage.message\n"


def _written(path, cells) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_notebook(cells), encoding="utf8")
    return [path]


def nbgrader(name: str, to, seed: int = PUBLIC_SEED) -> list[Path]:
    """Writes source/NAME/NAME.ipynb into a folder, where `nbgrader generate_assignment NAME` finds it.

    Args:     name: of the homework; seed: of the inputs that its tests draw
    Returns:  the file written
    Raises:   ValueError for an unknown homework
    """
    homework = find_homework(name)

    def tagged(identity, **kind):
        plain = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
        return {"nbgrader": plain | {"grade_id": identity} | kind}

    cells = [("markdown", _title(homework), {}), ("code", _given(homework), tagged("imports", locked=True))]
    answer = answers(homework, NBGRADER)
    for task in homework.tasks:
        cells += [_asked(task), ("code", answer[task.entry], tagged(task.name, solution=True))]
        for number, stage in enumerate(task.stages):
            graded = tagged(f"{task.name}-{number}", grade=True, locked=True, points=stage.points)
            cells.append(("code", _test(task, stage, seed), graded))
    return _written(Path(to) / "source" / name / f"{name}.ipynb", cells)


def otter(name: str, to, seed: int = PUBLIC_SEED) -> list[Path]:
    """Writes NAME.ipynb into a folder, for `otter assign NAME.ipynb OUT`.

    Args:     name: of the homework; seed: of the inputs that its tests draw
    Returns:  the file written
    Raises:   ValueError for an unknown homework
    """
    homework = find_homework(name)
    cells = [("raw", f"# ASSIGNMENT CONFIG\nname: {name}\ninit_cell: true\nexport_cell: false\n", {})]
    cells += [("markdown", _title(homework), {}), ("code", _given(homework), {})]
    answer = answers(homework, OTTER)
    for task in homework.tasks:
        cells += [("raw", f"# BEGIN QUESTION\nname: {task.name.replace('-', '_')}\n", {}), _asked(task)]
        cells += [("raw", "# BEGIN SOLUTION", {}), ("code", answer[task.entry], {}), ("raw", "# END SOLUTION", {})]
        cells.append(("raw", "# BEGIN TESTS", {}))
        for stage in task.stages:
            config = f'""" # BEGIN TEST CONFIG\npoints: {stage.points}\n""" # END TEST CONFIG\n'
            cells.append(("code", config + _test(task, stage, seed), {}))
        cells += [("raw", "# END TESTS", {}), ("raw", "# END QUESTION", {})]
    return _written(Path(to) / f"{name}.ipynb", cells)


EXPORTERS = {"nbgrader": nbgrader, "otter": otter}
