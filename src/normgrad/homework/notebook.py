"""A notebook as a submission: the cells that define what a homework asks for, with what these use, as a solution.py.

Of a cell that is run again, or written again further below, the last definition counts.
"""

from __future__ import annotations

import ast
import json
import re
import symtable
from pathlib import Path

from .task import find_homework

SUFFIX = ".ipynb"
# What IPython alone understands: %matplotlib, !pip.
MAGIC = re.compile(r"^[ \t]*[%!].*$", re.M)


def cells_of(path) -> list[str]:
    """The code cells of a notebook.

    Raises:  ValueError naming the file, and what is wrong with it
    """
    path = Path(path)
    try:
        notebook = json.loads(path.read_text(encoding="utf8"))
        cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path.name}: not a notebook, which is a JSON file with cells ({error!r:.80})"
        ) from error
    if not any(text.strip() for text in texts):
        raise ValueError(f"{path.name}: the notebook has no cell with code")
    return texts


def _statements(cell):
    """(statement, its lines) of a cell; none of one that is not Python, such as a cell of another language."""
    for text in (cell, MAGIC.sub("", cell)):
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        lines = text.split("\n")
        for node in body:
            marks = [each.lineno for each in getattr(node, "decorator_list", ())]
            first = min([node.lineno, *marks])
            yield node, "\n".join(lines[first - 1 : node.end_lineno])
        return


def _names(text) -> tuple[set[str], set[str]]:
    """(names that a statement binds in the module, names of the module that it reads)."""
    module = symtable.symtable(text, "cell", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned()}
    bound |= {s.get_name() for s in module.get_symbols() if s.is_imported()}
    reads, tables = set(), [module]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() or table is module and symbol.is_referenced():
                reads.add(symbol.get_name())
    return bound, reads


def as_solution(cells, entries) -> str:
    """The text of a solution.py that some cells make, in the order in which they are run.

    Args:     cells: their texts; entries: the names that the homework asks for
    """
    statements = [pair for cell in cells for pair in _statements(cell)]
    texts, last = {}, {}
    for at, (node, text) in enumerate(statements):
        texts.setdefault(text, at)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            last[node.name] = at
    kept, left = set(), list(entries)
    bound, reads = {}, {}
    for at, (node, text) in enumerate(statements):
        reads[at] = set()
        name = getattr(node, "name", None)
        if last.get(name, at) == at and (name or texts[text] == at):
            names, reads[at] = _names(text)
            for each in names:
                bound.setdefault(each, []).append(at)
    while left:
        for at in bound.get(left.pop(), ()):
            if at not in kept:
                kept.add(at)
                left += reads[at]
    future = {at for at, (node, _) in enumerate(statements)
              if isinstance(node, ast.ImportFrom) and node.module == "__future__"}  # fmt: skip
    order = [*sorted(future), *sorted(kept - future)]
    return "\n\n".join(statements[at][1] for at in order) + "\n"


def solution_of(path, homework: str) -> str:
    """The text of the solution.py that a notebook stands for.

    Raises:  ValueError where it is not a notebook, has no code, or defines nothing that the homework asks for
    """
    entries = [task.entry for task in find_homework(homework).tasks]
    text = as_solution(cells_of(path), entries)
    if not text.strip():
        raise ValueError(
            f"{Path(path).name}: no cell defines {' or '.join(entries)}, which {homework} asks for"
        )
    return text
