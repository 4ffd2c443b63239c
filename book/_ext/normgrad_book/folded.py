"""Names of folded cells: what is inside instead of "Show code cell source"."""

from __future__ import annotations

import ast

from docutils import nodes

LEDGER = ("define", "prove", "follows", "cite", "check")
MOST_LABELS = 3  # a longer list wraps on a phone


def labels(tree) -> list[str]:
    """The labels that a cell hands to the ledger, each once, in order."""
    texts = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in LEDGER and ast.unparse(node.func.value) == "ledger":
            texts += [
                item.value for item in node.args if isinstance(item, ast.Constant)
            ]
    return list(dict.fromkeys(texts))


def _lines(source) -> str:
    count = len(source.strip().splitlines())
    return "1 line" if count == 1 else f"{count} lines"


def contents(source) -> str:
    """What a folded cell holds, in a few words."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic command of IPython
        return "the code"
    entries = labels(tree)
    if entries:
        more = len(entries) - MOST_LABELS
        shown = ", ".join(entries[:MOST_LABELS])
        return f"the ledger entries of {shown}" + (
            f" and {more} more" if more > 0 else ""
        )
    if "normgrad_figures" in source:
        return "the code of the figure"
    if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        return f"the checks ({_lines(source)})"
    return f"the code ({_lines(source)})"


def name_folded(app, doctree):
    """Put what a cell holds into the line that opens and the line that closes it."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code" or not cell.get("hide_mode"):
            continue
        code = next(cell.findall(nodes.literal_block), None)
        if code is None or cell["hide_mode"] == "output":
            continue
        inside = contents(code.astext())
        cell["prompt_show"] = f"Show {inside}"
        cell["prompt_hide"] = f"Hide {inside}"


def setup(app):
    app.connect("doctree-read", name_folded)
