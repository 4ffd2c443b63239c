r"""A display without a label is quoted, or each of its lines repeats the ledger, is arithmetic or names one term.

A display whose label was forgotten would show a formula that nothing checks. Its lines may be

    a repeat     all sides stand in one chain of an equation of the ledger, with or without its indices;
    arithmetic   numbers that agree, behind a name or not, as $q = (-1, 1)$;
    a name       with one root or quotient of names, as $s = \sqrt{v}$.

A display is quoted where its sentence cites a source, in a block quote, or below a line `% quoted`. What stands within
a line of text is the author's.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from sphinx.transforms import SphinxTransform
from sympy import SympifyError, sympify

from .cells import CELL

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(?:bash|python|text)?\n.*?^```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
DISPLAY = re.compile(r"\$\$(?P<body>.*?)\$\$[ \t]*(?P<label>\([\w:.-]+\))?", re.S)
QUOTED = re.compile(r"\{cite(?::\w+)?\}|\b[Ss]ource 00\d\b|^>|^% quoted$", re.M)
RELATION = re.compile(r"(?<!:)=|\\(?:le|ge|approx|ne|propto)(?![A-Za-z])")
NAME = r"(?:\\(?:mathrm|mathbf|hat|dot|tilde)\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z])'*(?:_\{[^{}]*\}|_\w)?"
TERM = re.compile(rf"{NAME} = (?:\\sqrt\{{{NAME}\}}|\\frac\{{{NAME}\}}\{{{NAME}\}})")
SUBSCRIPT = re.compile(r"(?<!\\sum)_(?:\{([\w,]+)\}|(\w))")


def unchecked(text: str) -> list[tuple[int, str]]:
    """(line, formula) for every line of a page's displays without a label that nothing checks."""
    prose = text
    for code in (CELL, BLOCK, CODE):
        prose = code.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), prose)
    problems = []
    for display in DISPLAY.finditer(prose):
        sentence = prose[prose.rfind("\n\n", 0, display.start()) + 1 : display.start()]
        if not display["label"] and not QUOTED.search(sentence):
            line = prose.count("\n", 0, display.start()) + 1
            problems += [
                (line, formula)
                for formula in lines(display["body"])
                if not checked(formula)
            ]
    return problems


def lines(display: str) -> list[str]:
    """The formulas of a display, one for each line and column; what begins with "=" goes on with the line before."""
    body = re.sub(r"\\(?:begin|end)\{aligned\}|\\q?quad\b", " ", display)
    formulas = []
    for row in re.split(r"\\\\(?:\[[^\]]*\])?", body):
        cells = row.split("&")
        for column in range(0, len(cells), 2):
            formula = " ".join("".join(cells[column : column + 2]).split())
            if formula.startswith("=") and formulas:
                formulas[-1] += f" {formula}"
            elif formula:
                formulas.append(formula)
    return formulas


def checked(formula: str) -> bool:
    """Whether a formula claims nothing, or claims what can be looked up or worked out."""
    claims = RELATION.search(plain(formula))
    return (
        not claims
        or repeats(formula)
        or agree(formula)
        or bool(TERM.fullmatch(formula))
    )


def agree(formula: str) -> bool:
    """Whether the sides of an equation, but for a name at its start, are the same numbers."""
    first, *sides = formula.split("=")
    if not re.fullmatch(NAME, first.strip()):
        sides = [first, *sides]
    values = {number(side) for side in sides}
    return len(values) == 1 and None not in values


def number(side: str):
    """The value of LaTeX of numbers and tuples of numbers; None for anything else."""
    text = re.sub(r"\\t?frac(\d|\{-?\d+\})(\d|\{\d+\})", r"(\1/\2)", side)
    text = (
        re.sub(r"\\cdot", "*", text)
        .replace("^", "**")
        .replace("{", "(")
        .replace("}", ")")
    )
    if not re.fullmatch(r"[\d\s.,()+*/-]+", text):
        return None
    try:
        return sympify(text, rational=True)
    except (SympifyError, TypeError):
        return None


def repeats(formula: str) -> bool:
    """Whether all sides of a formula stand in one chain of an equation of the ledger."""
    return any(sides(formula) <= chain for chain in ledger())


@cache
def ledger() -> frozenset[frozenset[str]]:
    """The chains of the ledger's equations as sets of sides: with their indices, without those of rows, without any."""
    from normgrad.ledger.formulas import formulas
    from normgrad.symbolic import equations

    typed = json.loads((ROOT / "book/typed_formulas.json").read_text(encoding="utf8"))
    texts = [
        *typed.values(),
        *(equation.latex() for equation in (equations() | formulas()).values()),
    ]
    chains = {sides(line) for text in texts for line in lines(text)}
    return frozenset(
        chains
        | {without(chain, letters) for letters in ("ipm", "ipmjkl") for chain in chains}
    )


def sides(formula: str) -> frozenset[str]:
    """The sides of a formula; one with a relation other than "=" is a single side."""
    text = plain(formula)
    return frozenset(
        text.split("=")
        if re.fullmatch("=", "".join({*RELATION.findall(text)}))
        else [text]
    )


GRADIENT = re.compile(r"\\frac\{\\partial L\}\{\\partial ([a-z]+)(_\{[^{}]*\}|_\w)?\}")


def plain(formula: str) -> str:
    r"""A formula without spaces and sizes of brackets, and without the limits of sums over a whole row or batch.

    The gradient of L with respect to x is dx.
    """
    formula = GRADIENT.sub(r"\\mathrm{d\1}\2", formula)
    text = re.sub(r"\\(?:left|right|[Bb]ig[lr]?)(?![A-Za-z])|\\[,;! ]", " ", formula)
    text = re.sub(r"\\(hat|dot|tilde) ([a-z])", r"\\\1{\2}", text)
    text = re.sub(
        r"\\sum_\{([ipm])=1\}\^\{?M\}?|\\sum_\{([jklrst])=1\}\^\{?N\}?",
        r"\\sum_\1\2 ",
        text,
    )
    text = re.sub(r"_\{[^{}]*\}", lambda limits: limits[0].replace("=", ":"), text)
    return re.sub(r"\s+|,$", "", re.sub(r"([_^])\{(\w)\}", r"\1\2", text))


def without(chain: frozenset[str], letters: str) -> frozenset[str]:
    """The chain as it is written for whole rows: without these indices, where each of them has one meaning."""
    kept = [side for side in chain if not re.search(r"\\sum_[ipm]", side)]
    below = set(
        "".join(
            index[1] or index[2] for side in kept for index in SUBSCRIPT.finditer(side)
        )
    )
    if len(below & set("ipm")) > 1 or len(below & set("jkl") & set(letters)) > 1:
        return frozenset()
    drop = str.maketrans("", "", letters)

    def shortened(index):
        left = (index[1] or index[2]).translate(drop).strip(",")
        return plain(f"_{{{left}}}") if left else ""

    return frozenset(SUBSCRIPT.sub(shortened, side) for side in kept)


class Unchecked(SphinxTransform):
    """Notes which displays of a page nothing checks."""

    default_priority = 490

    def apply(self, **kwargs):
        docname = self.env.docname
        text = Path(self.env.doc2path(docname)).read_text(encoding="utf8")
        for line, formula in unchecked(text):
            what = "nothing checks it: repeat an equation of the ledger, give it a label, or write '% quoted' above it"
            self.env.get_domain("ledger").note_problem(
                docname, line, f"{formula}: {what}"
            )


def setup(app):
    app.add_transform(Unchecked)
