"""A homework as an assignment notebook for nbgrader or otter-grader, made of the starter, the solution and the stages.

Both tools take the instructor's notebook and write the students' one themselves: `nbgrader generate_assignment`,
`otter assign`. Every stage is one graded test with its points.
"""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path

from .folder import solution, starter
from .task import PUBLIC_SEED, Homework, find_homework

NBGRADER = ("### BEGIN SOLUTION\n", "### END SOLUTION\n")
OTTER = (
    "# BEGIN SOLUTION NO PROMPT\n",
    '# END SOLUTION\n""" # BEGIN PROMPT\nraise NotImplementedError\n""" # END PROMPT\n',
)


def _source(text, node) -> str:
    """The lines of a definition with its decorators, without indentation."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return textwrap.dedent("\n".join(text.split("\n")[first - 1 : node.end_lineno])) + "\n"


def _definitions(tree):
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in tree.body if isinstance(node, kinds)}


def _body(text, node) -> str:
    """The statements of a function after its docstring, without indentation."""
    rest = node.body[1:] if ast.get_docstring(node) else node.body
    return textwrap.dedent("\n".join(text.split("\n")[rest[0].lineno - 1 : node.end_lineno])) + "\n"


def _head(text, node) -> str:
    """The lines of a function from its decorators to the end of its docstring, without indentation."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    last = node.body[0].end_lineno if ast.get_docstring(node) else node.body[0].lineno - 1
    return textwrap.dedent("\n".join(text.split("\n")[first - 1 : last])) + "\n"


def _called(node) -> set[str]:
    """Names and attributes that code mentions."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _defined(node) -> set[str]:
    """Names that a statement of a module defines, imports left out."""
    if isinstance(node, ast.Assign):
        return {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()


def _helpers(text, node, entries) -> str:
    """The solution's functions and constants that a function uses, directly or not: each answer brings its own."""
    others = [each for each in ast.parse(text).body if _defined(each) and not _defined(each) & set(entries)]
    needed, before = _called(node), None
    while needed != before:
        before = needed
        needed = needed.union(*(_called(each) for each in others if _defined(each) & needed))
    used = [_source(text, each) + "\n" for each in others if _defined(each) & needed]
    return "".join(used)


def _answer(stub, stub_node, text, node, entries, marks) -> str:
    """A function with the starter's head and the solution's body between the marks."""
    body = f"{marks[0]}{_helpers(text, node, entries)}{_body(text, node)}{marks[1]}"
    return _head(stub, stub_node) + textwrap.indent(body, "    ")


def answers(homework: Homework, marks) -> dict[str, str]:
    """{entry: code} in which the parts that a student writes stand between the marks.

    Args:  marks: the lines before and after a part
    """
    stub, text = starter(homework.name), solution(homework.name)
    stub_tree, tree = ast.parse(stub), ast.parse(text)
    known, found, entries = _definitions(tree), {}, [task.entry for task in homework.tasks]
    for entry, node in _definitions(stub_tree).items():
        if entry not in entries:
            continue
        if isinstance(node, ast.FunctionDef):
            found[entry] = _answer(stub, node, text, known[entry], entries, marks)
            continue
        methods = {each.name: each for each in known[entry].body if isinstance(each, ast.FunctionDef)}
        parts = [
            _answer(stub, each, text, methods[each.name], entries, marks)
            for each in node.body if isinstance(each, ast.FunctionDef)
        ]  # fmt: skip
        found[entry] = _head(stub, node) + textwrap.indent("\n" + "\n".join(parts), "    ")
    return found


def _imports(homework) -> str:
    """The import lines of starter and solution, and the one of the grader."""
    lines = []
    for text in (starter(homework.name), solution(homework.name)):
        found = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        lines += [ast.unparse(node) for node in found]
    return "\n".join([*dict.fromkeys(lines), "", "import normgrad.homework as hw"]) + _given(homework)


def _given(homework) -> str:
    """What the starter defines beside the entries: functions and constants that the student is given."""
    text, entries = starter(homework.name), {task.entry for task in homework.tasks}
    found = [node for node in ast.parse(text).body if _defined(node) and not _defined(node) & entries]
    return "".join("\n\n" + _source(text, node).rstrip() for node in found)


def _cell(kind, source, number, **metadata) -> dict:
    extra = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": metadata, "source": source.rstrip("\n"), **extra}


def _notebook(cells) -> str:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = [_cell(kind, source, number, **metadata) for number, (kind, source, metadata) in enumerate(cells)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": made}, indent=1)


def _title(homework):
    return f"# {homework.title}\n\n{homework.time}. You need {homework.needs}. {homework.max_points} points."


def _test(task, stage, seed) -> str:
    asked = f'stage = hw.stage("{task.name}", {task.entry}, "{stage.name}", seed={seed})'
    return f"{asked}\nassert stage.full, stage.message\n"


def nbgrader(name: str, to, seed: int = PUBLIC_SEED) -> list[Path]:
    """Writes source/NAME/NAME.ipynb into a folder, where `nbgrader generate_assignment NAME` finds it.

    Args:     name: of the homework; seed: of the inputs that its tests draw
    Returns:  the file written
    Raises:   ValueError for an unknown homework
    """
    homework = find_homework(name)

    def marked(identity, **kind):
        plain = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False}
        return {"nbgrader": plain | {"grade_id": identity} | kind}

    cells = [("markdown", _title(homework), {}), ("code", _imports(homework), marked("imports", locked=True))]
    written = answers(homework, NBGRADER)
    for task in homework.tasks:
        cells.append(("markdown", f"## {task.title}\n\n```text\n{task}\n```", {}))
        cells.append(("code", written[task.entry], marked(task.name, solution=True)))
        for number, stage in enumerate(task.stages):
            graded = marked(f"{task.name}-{number}", grade=True, locked=True, points=stage.points)
            cells.append(("code", _test(task, stage, seed), graded))
    path = Path(to) / "source" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_notebook(cells), encoding="utf8")
    return [path]


def otter(name: str, to, seed: int = PUBLIC_SEED) -> list[Path]:
    """Writes NAME.ipynb into a folder, for `otter assign NAME.ipynb OUT`.

    Args:     name: of the homework; seed: of the inputs that its tests draw
    Returns:  the file written
    Raises:   ValueError for an unknown homework
    """
    homework = find_homework(name)
    cells = [("raw", f"# ASSIGNMENT CONFIG\nname: {name}\ninit_cell: true\nexport_cell: false\n", {})]
    cells += [("markdown", _title(homework), {}), ("code", _imports(homework), {})]
    written = answers(homework, OTTER)
    for task in homework.tasks:
        identity = task.name.replace("-", "_")
        cells += [
            ("raw", f"# BEGIN QUESTION\nname: {identity}\n", {}),
            ("markdown", f"## {task.title}\n\n```text\n{task}\n```", {}),
            ("raw", "# BEGIN SOLUTION", {}),
            ("code", written[task.entry], {}),
            ("raw", "# END SOLUTION", {}),
            ("raw", "# BEGIN TESTS", {}),
        ]
        for stage in task.stages:
            config = f'""" # BEGIN TEST CONFIG\npoints: {stage.points}\n""" # END TEST CONFIG\n'
            cells.append(("code", config + _test(task, stage, seed), {}))
        cells += [("raw", "# END TESTS", {}), ("raw", "# END QUESTION", {})]
    path = Path(to) / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_notebook(cells), encoding="utf8")
    return [path]


EXPORTERS = {"nbgrader": nbgrader, "otter": otter}
