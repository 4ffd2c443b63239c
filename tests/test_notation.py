"""Every symbol of every equation is in the notation sheet, with its one meaning there and its shape, or is local."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from sympy import Dummy, IndexedBase, Symbol

from normgrad.ledger.formulas import formulas
from normgrad.symbolic import Local as Held
from normgrad.symbolic import delta, dim, equations, index, tensor, total
from normgrad.symbolic import notation_sheet as sheet
from normgrad.symbolic.calculus import free_letters, index_ranges
from normgrad.symbolic.opaque import Opaque
from normgrad.symbolic.recurrences import Applied

BOOK = Path(__file__).parents[1] / "book"
TYPED = json.loads((BOOK / "typed_formulas.json").read_text(encoding="utf8"))
# Those about computed numbers are objects, and are read as they are printed.
TYPED |= {label: one.latex() for label, one in formulas().items()}
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
    found = {}
    for base in e.atoms(IndexedBase):
        found.setdefault(str(base.label), set()).add(shape_of(base))
    letters = {letter.name for letter in free_letters(e)}
    for symbol in e.atoms(Symbol):
        if (
            not isinstance(symbol, Dummy)
            and symbol.name not in letters
            and symbol.name not in found
        ):
            found[symbol.name] = {""}
    for function in e.atoms(Opaque, Applied):
        name = (
            function.letter if isinstance(function, Opaque) else function.func.__name__
        )
        found.setdefault(name, {""} if isinstance(function, Opaque) else {sheet.ANY})
    return found


@cache
def shown(label):
    """({quantity: shapes}, {free letter: dimension}) of a registered equation."""
    one, names, letters = equations()[label], {}, {}
    for e in [e for chain in one.chains for e in chain]:
        for name, shapes in quantities(e).items():
            names.setdefault(name, set()).update(shapes)
        letters |= {letter.name: "" for letter in free_letters(e)}
    for chain in one.chains:
        letters |= {
            letter.name: str(size)[0] for letter, size in index_ranges(*chain).items()
        }
    return names, letters


def complaints(label, names) -> list[str]:
    """What the sheet has against the quantities of an equation."""
    found = [
        f"{label}: {name} is not in the notation sheet"
        for name in names
        if sheet.known(name, label) is None
    ]
    for name, shapes in names.items():
        if sheet.known(name, label) is None:
            continue
        allowed = sheet.shapes(name, label)
        if sheet.ANY not in allowed | shapes and not shapes <= allowed:
            found.append(
                f"{label}: {name} has the shape {shapes}, in the notation sheet {allowed}: another meaning?"
            )
    return found


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
(i, k), x = index("i", "k"), tensor("x", M, N)


@pytest.mark.parametrize(
    "e, name",
    [
        (tensor("v", N)[k], "v"),
        (tensor("u", M, N)[i, k], "u"),
        (tensor("P", N, N)[k, k], "P"),
        (tensor("e", N)[k] + tensor("t"), "e"),
        (tensor("ell") * delta(i, k), "ell"),
        (total(N, lambda r: x[i, r]) * tensor("c", N)[k], "c"),
    ],
)
def test_a_second_meaning_is_seen(e, name):
    """The clashes that the book once had: a direction called v, a cotangent called u, a projector called P."""
    found = complaints("ln-dx", quantities(e))
    assert found and f"ln-dx: {name} " in found[0]


# -- typed formulas

SPACING = r"\\[,;!]|\\q?quad|\\ldots|\\dots|&|\\\\"
PLAIN = r"\\(?:text|operatorname|mathbf)\{[^{}]*\}(?:_\{\\mathrm\{\w+\}\})?|\\mathsf\{?\s*T\}?"
SHAPES = r"\\(?:t?frac|sum|left|right|Big|sqrt|(?:begin|end)\{\w+\}|le|ge|ne|approx|max|min|log|cdot|[lr]ceil|partial)"
ACCENT = re.compile(r"\\(hat|dot|tilde)\{([^{}]*)\}")


def typed_symbols(text: str) -> tuple[set[str], set[str]]:
    """(quantities, indices) of a formula that was typed: an index is a lone letter in a subscript."""
    text = re.sub(PLAIN, " ", text)
    text = re.sub(r"_\{\\mathrm\{\w+\}\}", " ", text)
    text = text.replace(r"\mathrm{i}", " ")  # the imaginary unit
    text = ACCENT.sub(
        lambda found: rf"\mathrm{{{found[2]}!{found[1]}}}", text.replace(r"\_", "!")
    )
    indices = set()

    def subscript(found):
        indices.update(
            re.findall(r"[a-z]", re.sub(r"\\\w+|=.*", " ", found[1] or found[2]))
        )
        return " "

    text = re.sub(r"_(?:\{([^{}]*)\}|(\w))", subscript, text)
    text = re.sub(rf"{SPACING}|{SHAPES}(?![a-zA-Z])", " ", text)
    names = {
        name.replace("\\", "").replace("!", "_")
        for name in re.findall(r"\\mathrm\{([^{}]*)\}", text)
    }
    text = re.sub(r"\\mathrm\{[^{}]*\}", " ", text)
    greek = re.findall(r"\\([a-zA-Z]+)", text)
    names |= {{"varepsilon": "eps", "varphi": "phi"}.get(name, name) for name in greek}
    return names | set(
        re.findall(r"[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", " ", text))
    ), indices


@pytest.mark.parametrize("label", TYPED)
def test_every_symbol_of_a_typed_formula_is_in_the_sheet(label):
    names, indices = typed_symbols(TYPED[label])
    # an index that stands on the line, as in "if k = j", is still an index
    names -= {name for name in indices if sheet.known(name, label) is None}
    assert not [name for name in names if sheet.known(name, label) is None], (
        names,
        indices,
    )
    assert indices <= set(ROWS + COLUMNS + OTHER)
    for letter, last in BOUND.findall(TYPED[label]):
        assert letter in sheet.INDICES.get(last[0].upper(), OTHER), (
            f"{letter} runs over {last}"
        )


def test_the_reader_of_typed_formulas_reads():
    names, indices = typed_symbols(
        r"\left| \tilde{D}(h) - \mathrm{dx}_{ij} \right| \le \frac{\delta}{h} x_m^{2}"
    )
    assert names == {"D_tilde", "h", "dx", "delta", "x"} and indices == {"i", "j", "m"}


# -- the sheet itself


def everywhere() -> dict[str, set[str]]:
    """{label: names} of all equations."""
    names = {label: set(shown(label)[0]) for label in equations()}
    return names | {
        label: typed_symbols(text)[0] | {"delta"} for label, text in TYPED.items()
    }


def test_the_sheet_has_nothing_that_no_equation_uses():
    used = {
        id(sheet.known(name, label))
        for label, names in everywhere().items()
        for name in names
    }
    reserved = {"g"}
    assert [
        name
        for name, entry in sheet.SHEET.items()
        if id(entry) not in used and name not in reserved
    ] == []


def test_local_letters_are_used_and_explained():
    names = everywhere()
    for local in sheet.LOCAL:
        covered = [label for label in names if local.covers(label)]
        assert covered and local.why.endswith(".")
        seen = set().union(
            *[names[label] for label in covered],
            *[shown_letters(label) for label in covered],
        )
        assert [
            name for name in (*local.letters, *local.words) if name not in seen
        ] == [], local.labels


def shown_letters(label):
    return shown(label)[1].keys() if label in equations() else set()


def test_the_glossary_shows_the_sheet():
    page = (BOOK / "glossary.md").read_text(encoding="utf8")
    assert sheet.table() in page, f"book/glossary.md needs this table:\n{sheet.table()}"
    assert sheet.local_table() in page, (
        f"book/glossary.md needs this table:\n{sheet.local_table()}"
    )
