"""Every symbol of every equation is in the notation sheet, with its one meaning there and its shape, or is local."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import notation_sheet as sheet
import pytest
from sympy import Dummy, IndexedBase, Sum, Symbol

from normgrad.ledger.formulas import formulas
from normgrad.symbolic import Local as Held
from normgrad.symbolic import dim, equations
from normgrad.symbolic.calculus import free_letters, index_ranges
from normgrad.symbolic.notation import rename_bound
from normgrad.symbolic.opaque import Opaque

BOOK = Path(__file__).parents[1] / "book"
TYPED = json.loads((BOOK / "typed_formulas.json").read_text(encoding="utf8"))
# Those about computed numbers are objects, and are read as they are printed.
TYPED |= {label: equation.latex() for label, equation in formulas().items()}
ROWS, COLUMNS, OTHER = sheet.INDICES["M"], sheet.INDICES["N"], sheet.INDICES[""]
BOUND = re.compile(r"\\sum_\{(\w+)=1\}\^\{((?:[^{}]|\{[^{}]*\})*)\}")


# -- what an expression holds


def shape_of(base) -> str:
    """The dimensions of a tensor as the sheet writes them; several leading axes are one."""
    return re.sub("M+", "M", "".join(str(size)[0] for size in base.shape))


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
        if (
            not isinstance(symbol, Dummy)
            and symbol.name not in letters
            and symbol.name not in shapes
        ):
            shapes[symbol.name] = {""}
    for function in e.atoms(Opaque):
        name = (
            function.letter if isinstance(function, Opaque) else function.func.__name__
        )
        shapes.setdefault(name, {""} if isinstance(function, Opaque) else {sheet.ANY})
    return shapes


@cache
def shown(label):
    """({quantity: shapes}, {free letter: dimension}) of a registered equation."""
    equation, names, letters = equations()[label], {}, {}
    for e in [e for chain in equation.chains for e in chain]:
        for name, shapes in quantities(rename_bound(e)).items():
            names.setdefault(name, set()).update(shapes)
        letters |= {letter.name: "" for letter in free_letters(e)}
    for chain in equation.chains:
        letters |= {
            letter.name: str(size)[0] for letter, size in index_ranges(*chain).items()
        }
    return names, letters


def complaints(label, names) -> list[str]:
    """What the sheet has against the quantities of an equation."""
    problems = [
        f"{label}: {name} is not in the notation sheet"
        for name in names
        if sheet.known(name, label) is None
    ]
    for name, shapes in names.items():
        if sheet.known(name, label) is None:
            continue
        allowed = sheet.shapes(name, label)
        if sheet.ANY not in allowed | shapes and not shapes <= allowed:
            problems.append(
                f"{label}: {name} has the shape {shapes}, in the notation sheet {allowed}: another meaning?"
            )
    return problems


# -- registered equations


@pytest.mark.parametrize("label", equations())
def test_every_symbol_is_in_the_sheet(label):
    names, letters = shown(label)
    assert not complaints(label, names)
    text = equations()[label].latex()
    bound = {letter: last for letter, last in BOUND.findall(text)}
    assert not names.keys() & (letters.keys() | bound.keys()), (
        "an index and a quantity share a letter"
    )
    for letter, size in [
        *letters.items(),
        *[(letter, last[0]) for letter, last in bound.items()],
    ]:
        if size:
            assert letter in sheet.INDICES.get(size, OTHER), (
                f"{letter} runs over {size}"
            )
        else:
            assert letter in ROWS + COLUMNS + OTHER, f"{letter} is no index"


N, M = dim("N"), dim("M")


# -- the sheet itself


def test_the_glossary_shows_the_sheet():
    page = (BOOK / "glossary.md").read_text(encoding="utf8")
    assert sheet.table() in page, f"book/glossary.md needs this table:\n{sheet.table()}"
    assert sheet.local_table() in page, (
        f"book/glossary.md needs this table:\n{sheet.local_table()}"
    )
