"""Tables of text beside the tests: how they are read, and what the bindings in them stand for."""

import re
from pathlib import Path

from sympy import Integer

from normgrad.verify import OFFSET
from normgrad.verify.request import CALLS, DEFINITIONS, VALUES
from normgrad.verify.text import value_of

FOLDER = Path(__file__).parent


def rows(name):
    """The lines of a table, without what starts with "#"."""
    text = (FOLDER / name).read_text(encoding="utf8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def blocks(name):
    """(what stands in brackets, what follows there, the text below) of each section of a table."""
    text = (FOLDER / name).read_text(encoding="utf8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    parts = re.split(r"^\[([^\]\n]+)\] *(.*)$", text, flags=re.M)[1:]
    for heading, note, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield heading, note, body.strip("\n")


def claims(name):
    """(what stands in brackets, what follows there, a line) of each line of a table's sections."""
    for heading, note, body in blocks(name):
        for line in body.split("\n"):
            if line:
                yield heading, note, line


def parts(line):
    """(what it is about, its edits, words) of "about: old => new && old => new -- words"; \\n starts a line."""
    text, _, words = line.partition(" -- ")
    about, _, text = text.partition(": ")
    return about, edits(text), words


def edits(text):
    """The pairs of "old => new && old => new"; none of an empty text."""
    pairs = []
    for edit in filter(None, text.split(" && ")):
        old, new = full_edit(edit)
        pairs.append((lines(old), lines(new)))
    return pairs


def full_edit(edit):
    """(old, new) of an edit of a table, or of one that it writes in short."""
    if " =>" in edit:
        return re.fullmatch(r"(.*?) =>(?: (.*))?", edit).groups("")
    if edit == "F":
        return "eps, B:", "eps, F: tl.constexpr, B:"
    if edit.startswith("@"):
        return "@triton.jit", f"{edit}\n@triton.jit"
    assert edit.startswith(">> "), edit
    return "    tl.store(", f"    {edit[3:]}\n    tl.store("


def lines(text):
    """A text of a table, in which \\n starts a line."""
    return text.replace(r"\n", "\n")


def table(**bound):
    """A binding; a number in it is one of Python's."""
    numbers = {name: int(n) for name, n in bound.items() if isinstance(n, Integer)}
    return bound | numbers


def value(text, **names):
    """A value as it is typed: a binding, a norm, a tuple of such; dict(...) is a table of them."""
    calls = CALLS | DEFINITIONS | {"dict": table}
    return value_of("table", text, VALUES | {"OFFSET": OFFSET} | names, calls, True)
