"""Random expressions: no false claim is proved, normal forms keep values, and what is printed is what is meant."""

import random
import re
from fractions import Fraction
from math import isclose, prod

import pytest
from random_claims import (
    TENSORS,
    grow,
    i,
    random_world,
    run,
    value,
)
from sympy import sqrt

from normgrad.symbolic import D, Partial, as_written, check_fixed, latex
from normgrad.symbolic.normal_form import Reciprocal, Root, nf


def test_no_random_claim_is_proved_that_is_false_in_numbers():
    answers, wrong = run(claims=120, seed=1)
    assert wrong == []
    assert answers["true", "proved"] > 30 and answers["false", "refuted"] > 30
    assert answers["true", "undecided"] + answers["false", "undecided"] < 8


def test_the_normal_form_keeps_every_value():
    """Of random expressions and of their derivatives, by the witness that does not use it."""
    draw, entry = random.Random(2), TENSORS["x"][i]
    compared = 0
    while compared < 60:
        e = grow(draw, draw.randint(2, 4))
        try:
            forms = nf(e), nf(D(e, entry))
        except (NotImplementedError, ValueError):
            continue
        for side, form in zip((e, Partial(e, entry)), forms, strict=True):
            plain = form.replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)
            assert check_fixed(side, plain, (2, 3)), side
        compared += 1


class Reading:
    """The value of a line of LaTeX, read from the notation's grammar and not from the printer.

    Side by side is a product; a sum goes to the end of its term.

    Args:  text: the line; world: {name or letter: array or number}
    """

    TOKEN = re.compile(r"\\[A-Za-z]+|\\,|\d+|\S")
    SILENT = (r"\,", r"\cdot", r"\left", r"\right")

    def __init__(self, text, world):
        self.tokens = [t for t in self.TOKEN.findall(text) if t not in self.SILENT]
        self.tokens.append("end")
        self.at = 0
        self.world = {str(name): number for name, number in world.items()}

    def take(self, *expected):
        token = self.tokens[self.at]
        assert not expected or token in expected, (token, expected)
        self.at += 1
        return token

    def begins(self, *tokens):
        """Whether one of the tokens comes next; it is taken then."""
        self.at += self.tokens[self.at] in tokens
        return self.tokens[self.at - 1] in tokens

    def group(self):
        """The texts between braces."""
        self.take("{")
        start = self.at
        while self.take() != "}":
            pass
        return self.tokens[start : self.at - 1]

    def braced(self, close="}"):
        number = self.expression()
        self.take(close)
        return number

    def expression(self):
        number = -self.term() if self.tokens[self.at] == "-" and self.take() else None
        number = self.term() if number is None else number
        while self.tokens[self.at] in "+-":
            number += self.term() if self.take() == "+" else -self.term()
        return number

    def term(self):
        factors = []
        while self.tokens[self.at] not in ("+", "-", "}", ")", "end"):
            factors.append(self.factor())
        return prod(factors)

    def factor(self):
        base = self.base()
        if self.tokens[self.at] != "^":
            return base
        self.take("^")
        return base ** float(Fraction("".join(self.group())))

    def base(self):
        token = self.take()
        if token.isdigit():
            return float(token)
        if token == "(":
            return self.braced(")")
        if token == r"\sqrt":
            self.take("{")
            return self.braced() ** 0.5
        if token == r"\frac":
            self.take("{")
            above = self.braced()
            self.take("{")
            return above / self.braced()
        if token == r"\sum":
            return self.sum()
        if self.tokens[self.at] != "_":
            return self.world[token]
        self.take("_")
        letters = [self.world[r] for r in "".join(self.group()) if r != ","]
        if token == r"\delta":
            return float(letters[0] == letters[1])
        return self.world[token][tuple(n - 1 for n in letters)]

    def sum(self):
        self.take("_")
        letter, *_ = self.group()
        self.take("^")
        (last,) = self.group()
        assert letter not in self.world, "a bound letter is something else as well"
        start, number = self.at, 0
        for n in range(1, self.world[last] + 1):
            self.at = start
            self.world[letter] = n
            number += self.term()
        del self.world[letter]
        return number


@pytest.mark.parametrize("seed", range(100))
def test_what_is_printed_is_what_is_meant(seed):
    """Products, signs, fractions and sums within one another, as they are typed."""
    draw = random.Random(seed)
    with as_written():
        e = grow(draw, 3, functions=())
    text = latex(e)
    for _ in range(6):
        world = random_world(draw)
        try:
            expected = value(e, world)
        except ZeroDivisionError:
            return
        names = {str(part) for part in e.free_symbols} | {"M", "N"}
        here = {n: number for n, number in world.items() if str(n) in names}
        reading = Reading(text, here | {r"\varepsilon": world["eps"]})
        number = reading.expression()
        assert reading.take() == "end"
        assert isclose(number, expected, rel_tol=ROUNDING, abs_tol=ROUNDING), text


ROUNDING = 1e6 * 2.0**-53
