"""Arithmetic that stands in a page's text: worked out, and looked for in what the cells of the page print."""

from __future__ import annotations

import math
import re
from fractions import Fraction

NAME = r"(?:\\(?:mathrm|mathbf|hat|dot|tilde)(?:\{[^{}]*\}| [a-z])|\\[A-Za-z]+|[A-Za-z])'*(?:_\{[^{}]*\}|_\w)?'*"
POWER = r"(?:\^(?:\{[^{}]*\}|\w|\\[A-Za-z]+))?"
# What numbers are put in for: a name, its power or root, or a function at a number.
HEAD = re.compile(rf"{NAME}(?:\(\d+\))?{POWER}|\\sqrt ?(?:{NAME}|\{{{NAME}\}})")
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?")


def worked(formula: str, known=None) -> bool:
    """Whether the sides of a formula are numbers and agree; names may stand before them.

    What stands behind an approximation has to be right to the digits that are shown. Several numbers behind a name
    have to be among those of one cell.

    Args: known: the numbers of the page's cells, or None
    """
    parts = re.split(r"(=|\\approx(?![A-Za-z]))", formula)
    sides = [part.strip() for part in parts[::2]]
    named = next((at for at, side in enumerate(sides) if not HEAD.fullmatch(side)), len(sides))
    try:
        values = [Arithmetic(side).whole() for side in sides[named:]]
    except (ValueError, ZeroDivisionError):
        return False
    for sign, side, value in zip(parts[1 + 2 * named :: 2], sides[1 + named :], values[1:], strict=True):
        near = _half_a_digit(side) if sign != "=" else 0
        if len(value) != len(values[0]) or any(
            abs(a - b) > near + 1e-12 * abs(a) for a, b in zip(values[0], value, strict=True)
        ):
            return False
    if named and values and len(values[0]) > 1:
        return known is None or any(_stand_in(values[0], cell) for cell in known)
    return len(values) > 1


def _half_a_digit(side) -> float:
    """Half of the last digit of a decimal that may have a power of ten."""
    number = re.sub(r"\\,", "", side)
    found = re.match(r"-?(\d*)\.?(\d*)", number)
    power = re.search(r"10\^\{?(-?\d+)", number)
    zeros = 0 if found[2] else len(found[1]) - len(found[1].rstrip("0"))
    return 0.5 * 10.0 ** (zeros - len(found[2]) + (int(power[1]) if power else 0))


def _stand_in(values, cell):
    """Whether values stand side by side among (number, how far off it may be)."""
    pieces = (cell[start : start + len(values)] for start in range(len(cell) - len(values) + 1))
    return any(all(abs(v - number) <= far for v, (number, far) in zip(values, piece, strict=True)) for piece in pieces)


def numbers_of(notebook) -> list[list[tuple[float, float]]]:
    """The numbers in the code and the outputs of an executed notebook's cells, each with how far it is rounded."""
    found = []
    for cell in notebook["cells"]:
        outputs = [each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell.get("outputs", ())]
        texts = map("".join, (cell["source"], *outputs)) if cell["cell_type"] == "code" else ()
        found.append([_rounded(one[0]) for text in texts for one in NUMBER.finditer(text)])
    return found


def _rounded(text):
    """A printed number; few digits are all that it has."""
    digits, _, power = text.partition("e")
    decimals = len(digits.partition(".")[2])
    return float(text), 0.51 * 10.0 ** (int(power or 0) - decimals) if decimals > 2 else 1e-9


class Arithmetic:
    """LaTeX of numbers and tuples of numbers. Args: text: the formula; ValueError where it holds anything else"""

    TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\d+(?:\\,\d{3})+|\d+(?:\.\d+)?|[-+(){}^/,])")

    def __init__(self, text):
        self.tokens, place = [], 0
        # a fraction of single digits may do without its braces
        text = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", text.replace(r"\tfrac", r"\frac"))
        text = re.sub(r"\\frac(\d)\{", r"\\frac{\1}{", text)
        text = re.sub(r"(?<!\d)\\[,;]|\\,(?!\d{3})|\\(?:left|right|cdot|times)(?![A-Za-z])", " ", text).rstrip()
        while place < len(text):
            if not (found := self.TOKEN.match(text, place)):
                raise ValueError(f"no number at {text[place:]!r}")
            self.tokens.append(found[1].replace(r"\,", ""))
            place = found.end()

    def whole(self):
        found = self.sum()
        if self.tokens:
            raise ValueError(f"left over: {self.tokens}")
        return found

    def peek(self):
        return self.tokens[0] if self.tokens else ""

    def take(self, wanted=None):
        if not self.tokens or wanted and self.tokens[0] != wanted:
            raise ValueError(f"got {self.tokens[:1]}, needs {wanted}")
        return self.tokens.pop(0)

    def sum(self):
        found = self.product(-1 if self.peek() in ("-", "+") and self.take() == "-" else 1)
        while self.peek() in ("-", "+"):
            sign = -1 if self.take() == "-" else 1
            found = _each(lambda a, b: a + b, found, self.product(sign))
        return found

    def product(self, sign):
        found = _each(lambda a, b: a * b, [Fraction(sign)], self.power())
        while self.peek() and self.peek() not in ("-", "+", ")", "}", ","):
            if self.peek() == "/":
                self.take()
                found = _each(lambda a, b: a / b, found, self.power())
            else:
                factor = self.power()
                if len(found) > 1 < len(factor):
                    raise ValueError("a product of two rows may mean a row or a number")
                found = _each(lambda a, b: a * b, found, factor)
        return found

    def power(self):
        base = self.base()
        if self.peek() != "^":
            return base
        self.take()
        above = self.group() if self.peek() == "{" else [Fraction(self.take())]
        return _each(lambda a, b: a**b if b.denominator == 1 else float(a) ** float(b), base, above)

    def group(self):
        self.take("{")
        found = self.sum()
        self.take("}")
        return found

    def base(self):
        token = self.take()
        if token == r"\frac":
            return _each(lambda a, b: a / b, self.group(), self.group())
        if token == r"\sqrt":
            return _each(lambda a, _: math.sqrt(a), self.group(), [0])
        if token != "(":
            return [Fraction(token)]
        found = self.sum()
        while self.peek() == ",":
            self.take()
            found = found + self.sum()
        self.take(")")
        return found


def _each(rule, one, other):
    """A rule applied entry by entry; a single number goes with every entry."""
    if 1 not in (len(one), len(other)) and len(one) != len(other):
        raise ValueError(f"{len(one)} entries with {len(other)}")
    size = max(len(one), len(other))
    return [rule(a, b) for a, b in zip(one * (size // len(one)), other * (size // len(other)), strict=True)]
