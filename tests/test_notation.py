"""Every symbol of every equation is in the notation sheet, with its one meaning there and its shape, or is local.

The sheet, notation_sheet.txt, says what each letter of the book means. An index is a small letter that stands under a
quantity or under a sum; a quantity is everything else. Some letters are an index in one equation and a quantity in
another; none is both in one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from sympy import Dummy, IndexedBase, Sum, Symbol

from normgrad.symbolic import Local as Held
from normgrad.symbolic import equations
from normgrad.symbolic.calculus import free_letters, index_ranges
from normgrad.symbolic.notation import rename_bound
from normgrad.symbolic.opaque import Opaque
from normgrad.symbolic.render import name_latex

BOOK = Path(__file__).parents[1] / "book"
# What a letter runs over, by the first letter of the dimension's name.
INDICES = {"M": "ipm", "N": "jklrst", "": "gh"}
RUNS = {
    "M": "rows, free and under a sum",
    "N": "columns: $j, k, l$ free, $r, s, t$ (then $l$) under a sum",
    "": "everything else, such as programs",
}
ANY, NUMBER = "*", "1"
BOUND = re.compile(r"\\sum_\{(\w+)=1\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")


# -- the sheet


@dataclass
class Letters:
    """Letters of all equations, or of some: {name: (shapes, meaning)}, and words that mean what they say."""

    labels: list[str] = field(default_factory=lambda: ["*"])
    why: str = ""
    letters: dict = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def find(self, name, label):
        """(shapes, meaning) of a name in the equation with a label, None for one that is not here."""
        if any(fnmatchcase(label, pattern) for pattern in self.labels):
            word = (NUMBER, name) if name in self.words else None
            return self.letters.get(name, word)
        return None


def sheet():
    """The Letters of all equations, then those of some."""
    sections = [Letters()]
    text = Path(__file__).with_name("notation_sheet.txt").read_text(encoding="utf8")
    for line in text.splitlines():
        if line.startswith("["):
            labels, why = line[1:].split("] ", 1)
            sections.append(Letters(labels.split(", "), why))
        elif line.startswith("words: "):
            sections[-1].words = line.split()[1:]
        elif line and not line.startswith("#"):
            name, shapes, meaning = line.split(" | ")
            sections[-1].letters[name] = shapes.strip(), meaning
    return sections


EVERYWHERE, *LOCAL = sheet()
ENDS = ("_hat", "_dot", "_tilde", "_next", "_stored", "'", "*")


def known(name, label=""):
    """(shapes, meaning) of a name in the equation with a label, or None; d, dots and numbers lead back to the base."""
    for section in (*LOCAL, EVERYWHERE):
        if entry := section.find(name, label):
            return entry
    base = name.rstrip("0123456789")
    for end in ENDS:
        if base.endswith(end):
            base = base.removesuffix(end)
            break
    if base == name and name.startswith("d"):
        base = name[1:]
    return known(base, label) if base not in ("", name) else None


def markdown(*lines):
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown_name(name):
    if name.startswith("$"):
        return name
    special = {"eps": r"\varepsilon", "phi": r"\varphi"}
    greek = "alpha delta Delta eta kappa lambda Pi rho sigma theta xi".split()
    plain = rf"\{name}" if name in greek else name_latex(name)
    return f"${special.get(name, plain)}$"


def test_the_glossary_shows_the_sheet():
    page = (BOOK / "glossary.md").read_text(encoding="utf8")
    runs = [(", ".join(f"${r}$" for r in INDICES[size]), RUNS[size]) for size in RUNS]
    letters = [(shown_name(n), said) for n, (_, said) in EVERYWHERE.letters.items()]
    table = markdown(("letter", "meaning"), ("---", "---"), *runs, *letters)
    assert table in page, f"book/glossary.md needs this table:\n{table}"
    rows = [("equations", "letters", "why"), ("---",) * 3]
    for local in LOCAL:
        said = [
            f"{shown_name(n)} {meaning}" for n, (_, meaning) in local.letters.items()
        ]
        if local.words:
            said.append(f"the words {', '.join(f'`{word}`' for word in local.words)}")
        labels = ", ".join(f"`{label}`" for label in local.labels)
        rows.append((labels, ", ".join(said), local.why))
    table = markdown(*rows)
    assert table in page, f"book/glossary.md needs this table:\n{table}"


# -- what an equation holds


def shape_of(base) -> str:
    """The dimensions of a tensor as the sheet writes them; several leading axes are one."""
    return re.sub("M+", "M", "".join(str(size)[0] for size in base.shape)) or NUMBER


def quantities(e) -> dict[str, set[str]]:
    """{name: shapes} of the quantities in an expression; letters that only number are none, nor is what is held."""
    e = e.replace(
        lambda part: isinstance(part, Held), lambda part: Held(*part.args[:2])
    )
    shapes = {}
    for base in e.atoms(IndexedBase):
        shapes.setdefault(str(base.label), set()).add(shape_of(base))
    letters = {letter.name for letter in free_letters(e)}
    for part in e.atoms(Sum):
        letters |= {bound.name for bound in part.variables}
    for symbol in e.free_symbols & e.atoms(Symbol):
        if not isinstance(symbol, Dummy) and symbol.name not in letters:
            shapes.setdefault(symbol.name, {NUMBER})
    for function in e.atoms(Opaque):
        shapes.setdefault(function.letter, {NUMBER})
    return shapes


def complaints(names, label) -> list[str]:
    """What the sheet has against the quantities of an equation."""
    problems = []
    for name, shapes in names.items():
        entry = known(name, label)
        if entry is None:
            problems.append(f"{name} is not in the notation sheet")
            continue
        allowed = set(entry[0].split())
        allowed |= {shape.replace("M", "") or NUMBER for shape in allowed}
        if ANY not in allowed and not shapes <= allowed:
            problems.append(f"{name} has the shape {shapes}, in the sheet {allowed}")
    return problems


@pytest.mark.parametrize("label", equations())
def test_every_symbol_is_in_the_sheet(label):
    equation, names, letters = equations()[label], {}, {}
    for e in [e for chain in equation.chains for e in chain]:
        for name, shapes in quantities(rename_bound(e)).items():
            names.setdefault(name, set()).update(shapes)
        letters |= {letter.name: "" for letter in free_letters(e)}
    for chain in equation.chains:
        ranges = index_ranges(*chain).items()
        letters |= {letter.name: str(size)[0] for letter, size in ranges}
    assert not complaints(names, label)
    bound = {letter: last[0] for letter, last in BOUND.findall(equation.latex())}
    assert not names.keys() & {*letters, *bound}, "an index and a quantity share a name"
    for letter, size in (*letters.items(), *bound.items()):
        allowed = INDICES.get(size, INDICES[""]) if size else "".join(INDICES.values())
        assert letter in allowed, f"{letter} runs over {size or 'nothing'}"
