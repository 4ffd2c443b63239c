"""Each homework's page against the homework itself: the same stubs, points and commands, and a check of every task."""

import ast
import re
from pathlib import Path

import pytest
from homework_notebooks import notebook

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.grade import homework_of
from normgrad.homework.notebook import solution_of
from normgrad.homework.sandbox.disk import OFFERED

BOOK = Path(__file__).parents[1] / "book"
HOMEWORKS = list(hw.homeworks())
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.M | re.S)
STUB = re.compile(r"^:tags: *\[homework\]$", re.M)
OPTION = re.compile(r"^:.*\n", re.M)

each_homework = pytest.mark.parametrize("name", HOMEWORKS)


def page(name):
    return (BOOK / f"{name}.md").read_text(encoding="utf8")


def cells(name):
    return CELL.findall(page(name))


def definitions(text, entries):
    """{entry: its definition without docstrings}: pages have narrower lines than files."""
    texts = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in entries:
            for part in ast.walk(node):
                if (
                    isinstance(part, (ast.FunctionDef, ast.ClassDef))
                    and ast.get_docstring(part) is not None
                ):
                    part.body = part.body[1:]
            texts[node.name] = ast.unparse(node)
    return texts


def defined(text):
    """The statements of a text that define something."""
    kinds = ast.FunctionDef, ast.ClassDef, ast.Assign
    body = ast.parse(text).body
    return {ast.unparse(node) for node in body if isinstance(node, kinds)}


@each_homework
def test_stubs_are_the_starters(name):
    """The cells marked `homework` define each entry once, with the starter's signature and nothing written."""
    entries = [task.entry for task in hw.homeworks()[name].tasks]
    stubs = [STUB.sub("", cell) for cell in cells(name) if STUB.search(cell)]
    defined = [entry for stub in stubs for entry in definitions(stub, entries)]
    assert sorted(defined) == sorted(entries)
    assert definitions("\n".join(stubs), entries) == definitions(
        solutions.starter(name), entries
    )


@each_homework
def test_every_task_has_its_check(name):
    lines = [line for cell in cells(name) for line in cell.split("\n")]
    for task in hw.homeworks()[name].tasks:
        assert lines.count(f'hw.check("{task.name}", {task.entry})') == 1, task.name


@each_homework
def test_page_names_modules_that_a_submission_may_import(name):
    """At least one of those that are offered, by the name under which it is imported, and no other one."""
    modules = set(re.findall(r"normgrad\.(?:checks|prove|symbolic)[.\w]*", page(name)))
    modules = {module.rstrip(".") for module in modules}
    assert modules and modules <= set(OFFERED), modules - set(OFFERED)


@each_homework
def test_page_says_what_the_homework_takes(name):
    homework, text = hw.homeworks()[name], page(name)
    assert f"{homework.max_points} points" in text and homework.time in text
    assert [
        chapter for chapter in homework.chapters if f"{{doc}}`{chapter}`" not in text
    ] == []
    for command in (f"new {name} --to ", "check "):
        assert f"python -m normgrad.homework {command}" in text


@each_homework
def test_a_page_filled_in_is_graded_as_the_reference(name, tmp_path):
    """The notebook of its cells, the stubs written, tells which homework it is; so does a solution.py by itself."""
    answer, texts = solutions.solution(name), []
    for cell in cells(name):
        texts.append(OPTION.sub("", cell))
        if STUB.search(cell):
            texts[-1], answer = answer, ""
    filled, written = tmp_path / f"{name}.ipynb", tmp_path / "solution.py"
    filled.write_text(notebook(*texts), encoding="utf8")
    written.write_text(solutions.solution(name), encoding="utf8")
    assert homework_of(filled) == homework_of(written) == name
    texts = solution_of(filled, name), solutions.solution(name)
    graded, needed = (defined(text) for text in texts)
    assert needed <= graded
