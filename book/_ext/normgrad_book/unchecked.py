r"""No equality on a page stands unchecked and unmarked: within a line, in a caption, or in a display without a label.

An equality is let be where it is

    short       a name and one thing that it is, as $c = 1 / N$;
    a setting   inputs and indices that are given numbers, as $x = (0, 0, 2, 2)$ or $N \ge 2$;
    defined     a symbol alone, no gradient, that a "let" of its sentence gives its meaning;
    a repeat    all its sides stand in one chain of one equation that the ledger holds, with or without its indices;
    arithmetic  numbers, worked out by arithmetic.py; several behind a name are printed by a cell of the page.

All others carry a role. ``{quoted}`...` `` is a statement that the page does not make: a source's, a wrong one, one to
be judged. ``{checked}`... <what>` `` says what checks it: an equation by its label, a test as
`test_eps.py::test_name`, or `cell`, the next one of the page. `tests/test_unchecked.py` proves a formula that names an
equation from the definitions of that equation.

A display is quoted where its sentence cites a source, in a block quote, or below a line `% quoted`. The build refuses
what is left; `python -m normgrad_book.unchecked book/*.md` lists it.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

from .arithmetic import NAME, POWER, numbers_of, worked
from .cells import CELL
from .execution import executed_notebook
from .tested import functions

ROOT = Path(__file__).parents[3]
DISPLAY = re.compile(r"\$\$(?P<body>.*?)\$\$[ \t]*(?P<label>\([\w:.-]+\))?", re.S)
INLINE = re.compile(r"(?<![$\\`])\$(?P<body>[^$\n]+)\$(?!\$)")
RELATION = re.compile(r"(?<![<>!:])=|\\(?:le|ge|approx|ne|propto)\b")
BLOCK = re.compile(r"^```(?:bash|python|text)?\n.*?^```", re.M | re.S)
CAPTION = re.compile(r'\bcaption: *"((?:[^"\\]|\\.)*)"')
LIMIT = re.compile(r"_\{[^{}]*=[^{}]*\}")  # where a sum begins
QUOTED = re.compile(r"\{cite(?::\w+)?\}|\b[Ss]ource 00\d\b|^>|^% quoted$", re.M)
CHECKED = re.compile(r"\{checked\}`(?P<formula>[^`]*?)(?: <(?P<by>[^<>`]+)>)?`")
CHECKS = re.compile(r"\b(?:assert|prove|work_out|judge|refute|check\w*)\b|\bassert_\w+")

ROOT_OF = rf"\\sqrt ?(?:{NAME}|\{{{NAME}\}})"
ONE = rf"(?:[\d.]+|\\t?frac(?:\d|\{{\d+\}}){{2}}|\\frac\{{{NAME}\}}\{{{NAME}\}}|{ROOT_OF}|{NAME}(?:\(\d\))?)"
# A name and one thing that it is: as M = 3, or c = 1 / N. More than that is a claim.
SHORT = re.compile(rf"{NAME}(?:\([^()=]*\))?{POWER} (?:=|\\(?:approx|propto)) [-+]?{ONE}{POWER}(?: ?/ ?{ONE}{POWER})?")
INPUT = r"(?:\\mathrm\{(?:residual|dresidual\\_out|dy|dr|dout)\}|\\(?:varepsilon|alpha|beta)|[abcijklnpwxKMN])(?:_\w)?"
NUMBER = r"[-+]?(?:[\d.]+(?:\^\{-?\d+\})?|\\infty)"
NUMBERS = (
    rf"(?:[KMN] - 1|\\sqrt ?\{{?[dN]\}}?|\(?{NUMBER}(?:, (?:{NUMBER}|\\l?dots))*(?:, (?:{NUMBER}|[KMN]))?\)?|[KMN])"
)
GIVEN = rf"{INPUT}(?: (?:=|\\(?:le|ge|ne)) (?:{NUMBERS}|{INPUT}(?= =)))+"
SETTING = re.compile(rf"{GIVEN}(?:, {GIVEN})*")
DEFINED = re.compile(rf"(?P<name>{NAME})(?:\([^()=]*\))? = (?P<meaning>[^=]+)")
# a term that ends in a division by a name
SLASH = re.compile(rf"(?<![^-+=(])((?:[^-+=()/{{}}]|\([^()]*\)|\{{[^{{}}]*\}})+?)/({NAME})(?![^-+=)])")
SUBSCRIPT = re.compile(r"_\{([\w,]+)\}|(?<!\\sum)_([a-z])")
CONCLUDES = re.compile(r"\b(?:so|then|thus|hence|gives?|means?|since|because|is|are)\b")
CLAIMED = re.compile(r"\\partial|\\dot|\\mathrm ?\{d(?!(?:y|r)\})")  # a derivative has a value of its own
WHAT_TO_DO = {
    "display": "nothing checks it: repeat an equation of the ledger, give it a label, or write '% quoted' above it",
    "inline": "nothing checks it: repeat an equation of the ledger, let it define, or mark it {checked} or {quoted}",
    "mark": "{checked} needs <label of an equation>, <test_file.py::test_name> or, where the next cell checks, <cell>",
}


def unchecked(text: str, numbers=None) -> list[tuple[int, str, str]]:
    """(line, kind, formula) for every equality of a page that nothing checks and nothing marks, and every bad mark.

    Args: numbers: those that stand in the page's cells, by numbers_of; without them, any numbers do
    """
    prose = BLOCK.sub(_blank, CELL.sub(_caption, text))
    found = [(one.start(), "mark", one["formula"]) for one in CHECKED.finditer(prose) if not _checks(one, text)]
    prose = re.sub(r"`[^`\n]*`", _blank, prose)
    for display in DISPLAY.finditer(prose):
        before = prose[prose.rfind("\n\n", 0, display.start()) + 1 : display.start()]
        if not display["label"] and not QUOTED.search(before):
            wrong = [line for line in lines(display["body"]) if not _fine(line, "", numbers)]
            found += [(display.start(), "display", line) for line in wrong]
    rest = DISPLAY.sub(_blank, prose)
    for one in INLINE.finditer(rest):
        before = rest[rest.rfind("\n", 0, one.start()) + 1 : one.start()]
        if not before.startswith(">") and not _fine(formula := _one_line(one["body"]), before, numbers):
            found.append((one.start(), "inline", formula))
    return sorted((text.count("\n", 0, start) + 1, kind, formula) for start, kind, formula in found)


def _blank(found):
    """As many spaces as the text has signs, so that what stands behind it stays in its place."""
    return re.sub(r"[^\n]", " ", found[0])


def _caption(cell):
    """A cell's caption in its place, as Markdown, and else spaces."""
    found = CAPTION.search(cell[0])
    if not found:
        return _blank(cell)
    before, behind = cell[0][: found.start(1)], cell[0][found.end(1) :]
    inside = found[1].replace("\\\\", " \\")
    return re.sub(r"[^\n]", " ", before) + inside + re.sub(r"[^\n]", " ", behind)


def _checks(mark, text):
    """Whether there is what a mark names: an equation, a test, or a next cell that checks something."""
    if mark["by"] == "cell":
        following = CELL.search(text, mark.end())
        return bool(following and CHECKS.search(following["body"]))
    file, _, name = (mark["by"] or "").partition("::")
    return file in labels() or name in functions(ROOT / "tests" / file)


def _fine(body, before, numbers):
    """Whether a formula needs no mark. Args: before: what stands before it in its line"""
    return (
        not RELATION.search(LIMIT.sub("", body))
        or bool(SHORT.fullmatch(body) or SETTING.fullmatch(body.replace(r"\,", "")))
        or _defined(body, before)
        or repeats(body)
        or worked(body, numbers)
    )


def _one_line(body):
    return " ".join(body.split())


def _defined(body, before):
    found = DEFINED.fullmatch(LIMIT.sub("", body))
    sentence = re.split(r"[.?:;!] ", re.sub(r"\$[^$]*\$", "", before))[-1]
    _, *since = re.split(r"\b[Ll]et\b", sentence)
    if not found or not since or CONCLUDES.search(since[-1]) or CLAIMED.match(found["name"]):
        return False
    return not re.search(rf"(?<![A-Za-z\\]){re.escape(found['name'])}(?![A-Za-z])", found["meaning"])


# -- repeats


def repeats(formula: str) -> bool:
    """Whether all sides of a formula stand in one chain of an equation of the ledger."""
    sides = _sides(formula)
    return any(sides <= known for known in ledger())


@cache
def labels() -> dict[str, str]:
    """{label: LaTeX} of all equations that the ledger holds."""
    from normgrad.checks.formulas import formulas
    from normgrad.symbolic import equations

    typed = json.loads((ROOT / "book/typed_formulas.json").read_text(encoding="utf8"))
    return typed | {label: one.latex() for label, one in (equations() | formulas()).items()}


@cache
def ledger() -> frozenset[frozenset[str]]:
    """The chains of those equations, each as the set of its sides, in every way in which a page may write it."""
    found = {frozenset(_sides(line)) for text in labels().values() for line in lines(text)}
    found |= {frozenset(_renamed(side, str.maketrans("jk", "kj")) for side in chain) for chain in found}
    return frozenset(found | {_without(chain, letters) for letters in ("ipm", "ipmjkl") for chain in found})


def lines(display: str) -> list[str]:
    """The formulas of a display, one for each line and column; what begins with "=" goes on with the line before."""
    body = re.sub(r"\\(?:begin|end)\{aligned\}|\\q?quad\b", " ", display)
    found: list[str] = []
    for line in re.split(r"\\\\(?:\[\w+\])?", body):
        cells = line.split("&")
        for column in ("".join(cells[at : at + 2]).strip() for at in range(0, len(cells), 2)):
            if column.startswith("=") and found:
                found[-1] += f" {column}"
            elif column:
                found.append(column)
    return [_one_line(formula) for formula in found]


def _sides(formula):
    """The sides of a formula; one with a relation other than "=" is a single side."""
    text = plain(LIMIT.sub(lambda one: one[0].replace("=", ":"), formula))
    parts = [text] if re.search(r"\\(?:le|ge|approx|ne|propto)(?![A-Za-z])", text) else text.split("=")
    return {SLASH.sub(r"\\frac{\1}{\2}", _bound(part)) for part in parts if part}


def _bound(side):
    """A side whose sums run over letters of their own: Greek ones, one for rows and one for columns, and a number."""
    for number, letter in enumerate(dict.fromkeys(re.findall(r"\\sum_([a-z])", side))):
        own = f"{'ρ' if letter in 'ipm' else 'σ'}{number}"
        side = side.replace(rf"\sum_{letter}", rf"\sum_{own}")
        side = _renamed(side, {ord(letter): own})
    return side


def _renamed(side, table):
    """A side with other letters as its indices, by a table of str.translate."""
    return SUBSCRIPT.sub(lambda one: _below((one[1] or one[2]).translate(table)), side)


def _below(letters):
    return "" if not letters else f"_{letters}" if len(letters) == 1 else f"_{{{letters}}}"


def plain(formula: str) -> str:
    r"""A formula without its spaces, the sizes of its brackets and the limits of sums over a whole row or batch."""
    text = re.sub(r"(?<=\d) ?\\cdot ?(?=\d)", "·", formula)
    text = re.sub(r"\\(?:left|right|[Bb]ig[lr]?|cdot)(?![A-Za-z])|\\[,;! ]", " ", text)
    text = text.replace(r"\tfrac", r"\frac").replace(r"\epsilon", r"\varepsilon")
    text = re.sub(rf"\\partial ?(\\, )?({NAME}) / \\partial ({NAME})", r"\\frac{\\partial \2}{\\partial \3}", text)
    text = re.sub(r"\\(hat|dot|tilde) ([a-z])", r"\\\1{\2}", text)
    text = re.sub(r"\\sum_\{([ipm]):1\}\^\{?M\}?|\\sum_\{([jklrst]):1\}\^\{?N\}?", r"\\sum_\1\2 ", text)
    return re.sub(r"\s+|,$", "", re.sub(r"([_^])\{(\w)\}", r"\1\2", text))


def _without(chain, letters):
    """The chain as it is written for one row, or for whole rows: without these indices, where each has one place."""
    kept = [side for side in chain if "ρ" not in side]  # a sum over rows keeps its rows
    below = "".join(one[1] or one[2] for side in kept for one in SUBSCRIPT.finditer(side))
    if len(set(below) & set("ipm")) > 1 or len(set(below) & set("jkl") & set(letters)) > 1:
        return frozenset()
    drop = str.maketrans("", "", letters)
    return frozenset(
        SUBSCRIPT.sub(lambda one: _below((one[1] or one[2]).translate(drop).strip(",")), side) for side in kept
    )


# -- in the build


class Marked(SphinxRole):
    """``{quoted}`LaTeX` `` and ``{checked}`LaTeX <what>` ``: a formula within a line, shown as by ``{math}``."""

    def run(self):
        return [nodes.math("", marked(self.text))], []


def marked(text: str) -> str:
    """The formula of a mark, without what checks it."""
    return re.sub(r" <[^<>]+>$", "", text)


class Unchecked(SphinxTransform):
    """Notes what of a page nothing checks, with the cells and their outputs at hand."""

    default_priority = 490

    def apply(self, **kwargs):
        docname = self.env.docname
        has_cells = "kernelspec" in self.env.metadata[docname]
        found = numbers_of(executed_notebook(self.env, docname)) if has_cells else []
        for line, kind, formula in unchecked(Path(self.env.doc2path(docname)).read_text(encoding="utf8"), found):
            self.env.get_domain("ledger").note_problem(docname, line, f"{formula}: {WHAT_TO_DO[kind]}")


def setup(app):
    app.add_role("quoted", Marked())
    app.add_role("checked", Marked())
    app.add_transform(Unchecked)


def main(paths) -> int:
    """Print what nothing checks; 1 where there is something."""
    found = [(path, *each) for path in map(Path, paths) for each in unchecked(path.read_text(encoding="utf8"))]
    for path, line, kind, formula in found:
        print(f"{path.name}:{line}: {formula}: {WHAT_TO_DO[kind]}")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
