"""What the tasks of homework 1 share: their arguments in words, their oracles, their stages."""

from ..oracles.letters import LetterOracle
from ..stages.expressions import contracted, letters_match, returns_expressions, worth
from ..task import Stage

WORDS = {
    "x": "an indexed array, x[r] for the entry r of a row, counted from 1",
    "X": "an indexed array, x[i, r] for row i and column r, counted from 1",
    "w": "an indexed array, one weight a column",
    "dy": "an indexed array, the cotangent of y, of y's shape",
    "j": "a letter, free on the left",
    "k": "a letter, free on the left",
    "a": "a letter, the row of the matrix",
    "b": "a letter, the column of the matrix",
    "M": "a symbol, the number of rows",
    "N": "a symbol, the length of a row",
}


def shapes(names, **results):
    """(name, words) of arguments and results."""
    keys = ["X" if name == "x" and "M" in names else name for name in names]
    return (*((name, WORDS[key]) for name, key in zip(names, keys, strict=True)), *results.items())


def kinds(names):
    """(name, kind) of the arguments."""
    return tuple((n, "length" if n in ("M", "N") else "letter" if n in ("j", "k", "a", "b") else "array")
                 for n in names)  # fmt: skip


def axes(names):
    """{name: axes} of the arguments that have some."""
    matrix = "M" in names
    return {n: ("MN" if matrix and n in ("x", "dy") else "N") for n in names if n not in ("M", "N")}


def delta(p, one, other):
    """1 where two letters agree."""
    return float(p[one] == p[other])


def at(array, p, *letters):
    """An array's entry at a point."""
    return array[tuple(p[letter] - 1 for letter in letters)]


def oracle(names, right, texts, *confusions):
    """The oracle of a task."""
    return LetterOracle(kinds(names), axes(names), tuple(right), right, texts, confusions)


def stages(*values, form=True):
    """The stages of a task: form, letters, values with their points, contraction."""
    found = [Stage("signature", 1, returns_expressions, interface=True),
             Stage("free letters", 1, letters_match, interface=True)]  # fmt: skip
    found += [Stage(name.replace("_", " "), points, worth(name)) for name, points in values]
    return (*found, *([Stage("no delta is summed over", 1, contracted, interface=True)] if form else []))
