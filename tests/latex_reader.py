r"""A reader of the book's LaTeX, written from the notation's grammar and not from the printer.

    expression  = ["-"] term {("+" | "-") term}
    term        = factor {factor}                      side by side is a product; "\," and "\cdot" say no more
    factor      = base ["^{" power "}"]
    base        = number | name | "(" expression ")" | "\sqrt{" expression "}" | "\frac{..}{..}" | "\max(.., ..)"
                | "e^{" expression "}" | "\operatorname{word}(" expression ")"
                | "\sum_{r=1}^{N}" rest of the term
                | "\frac{\partial f}{\partial v}"        through everything that depends on v
                | "\frac{\partial}{\partial v}" factor   the factor behind it; a sum is one, to the end of the term
                | "(" derivative ")_{held}"              what stands below the bracket is held fixed
    name        = letter | "\alpha" | "\hat{name}" | "\dot{name}" | "\mathrm{word}", then primes and a subscript:
                  digits belong to the name, letters are indices, commas part what would run together

What a name stands for is read from a table of the quantities of the equation; a name that is not there is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sympy import (
    Dummy,
    Expr,
    Function,
    Indexed,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Max,
    Rational,
    Sum,
    Symbol,
    evaluate,
    exp,
    sqrt,
)

from normgrad.symbolic.definitions import numbered
from normgrad.symbolic.elementary import sigmoid
from normgrad.symbolic.notation import Local, Partial, as_written, rename_bound
from normgrad.symbolic.opaque import Opaque
from normgrad.symbolic.steps import everywhere

TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\\[,;!_]|\d+|[A-Za-z]|[-+=(){}^_',;*/&|])")
SPACES = (r"\,", r"\;", r"\!", r"\cdot")
GREEK = r"\alpha \kappa \mu \rho \sigma \theta \Pi \varepsilon".split()
OPEN, CLOSE = ("(", r"\left"), (")", r"\right")


class Unreadable(ValueError):
    """LaTeX that is not in the grammar, or a name that the equation does not have."""


@dataclass
class Quantities:
    """What the names of an equation stand for: scalars, tensors, functions of a value."""

    scalars: dict[str, Symbol] = field(default_factory=dict)
    tensors: dict[str, IndexedBase] = field(default_factory=dict)
    functions: dict[str, type] = field(default_factory=dict)

    @classmethod
    def of(cls, expressions) -> Quantities:
        """The quantities of some expressions; ValueError where two of them have one name."""
        quantities = cls()
        for e in expressions:  # a letter that a sum binds is no quantity
            with as_written():
                e = rename_bound(e)
            quantities.take(e)
        return quantities

    def take(self, e: Expr) -> None:
        """Add the quantities of an expression."""
        if isinstance(e, Indexed):
            _only(self.tensors, str(e.base.label), e.base)
            for letter in e.indices:
                self.take(letter)
            return
        if isinstance(e, Symbol) and not e.is_Dummy:
            _only(self.scalars, e.name, e)
        if isinstance(e, Opaque):
            self.functions.setdefault(type(e).letter + "'" * type(e).order, type(e))
        parts = e.args[:2] if isinstance(e, Local | KroneckerDelta) else e.args
        for part in parts:
            self.take(part)


def _only(table, name, value):
    if table.setdefault(name, value) != value:
        raise ValueError(f"{name}: names {table[name]!r} and {value!r}")


class Reader:
    """One line of LaTeX as an expression. Args: text: the line; names: the quantities that it may speak of"""

    def __init__(self, text: str, names: Quantities):
        self.names, self.bound = names, {}
        if left := TOKEN.sub("", text).strip():
            raise Unreadable(f"no token at {left!r}")
        self.tokens = [t for t in TOKEN.findall(text) if t not in SPACES] + [""] * 4
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead]

    def take(self, *expected):
        """The next token, which is one of those that are expected; of several, each in its turn."""
        token = self.peek()
        if expected and token not in expected:
            following = " ".join(self.tokens[self.at :][:12])
            raise Unreadable(f"{token!r} at {following!r}, needs {expected}")
        self.at += 1
        return token

    def skip(self, text):
        """Take tokens that have to be there."""
        for token in text.split():
            self.take(token)

    def begins(self, token):
        """Whether a token comes next; it is taken then."""
        return self.peek() == token and bool(self.take())

    def several(self, read):
        """What `read` finds, once and after each comma."""
        values = [read()]
        while self.begins(","):
            values.append(read())
        return values

    def group(self, read):
        """What `read` finds between braces."""
        self.take("{")
        expression = read()
        self.take("}")
        return expression

    def whole(self) -> Expr:
        expression = self.expression()
        if self.peek():
            raise Unreadable(f"left over: {' '.join(self.tokens[self.at :])!r}")
        return expression

    def expression(self):
        total = 0
        sign = -1 if self.begins("-") else 1
        while True:
            total += sign * self.term()
            if self.peek() not in ("+", "-"):
                return total
            sign = 1 if self.take() == "+" else -1

    def term(self):
        product = self.factor()
        while self.peek() not in ("", "+", "-", "=", "}", ",", ";", *CLOSE):
            product *= self.factor()
        return product

    def factor(self):
        base = self.base()
        if self.begins("^"):
            base **= self.group(self.power)
            if self.peek() == "^":
                raise Unreadable("two powers on one base")
        return base

    def power(self):
        if self.peek(1) == "/" or self.peek(2) == "/":
            sign = -1 if self.begins("-") else 1
            above = int(self.take())
            self.take("/")
            return Rational(sign * above, int(self.take()))
        return self.expression()

    def base(self):
        token = self.peek()
        if token.isdigit():
            return Integer(self.take())
        if token in OPEN:
            return self.bracket()
        if token == "e" and self.peek(1) == "^" and "e" not in self.names.scalars:
            self.skip("e ^")
            return exp(self.group(self.expression))
        if token == r"\frac" and self.peek(2) == r"\partial":
            return self.derivative()
        readers = {
            r"\sqrt": lambda: sqrt(self.group(self.expression)),
            r"\operatorname": self.function,
            r"\frac": lambda: self.group(self.expression) / self.group(self.expression),
            r"\sum": self.sum,
            r"\max": self.largest,
            r"\delta": self.delta,
        }
        if token in readers:
            self.take()
            return readers[token]()
        return self.quantity()

    def delta(self):
        self.take("_")
        return KroneckerDelta(*self.group(self.letters))

    def function(self):
        word = self.group(self.word)
        return (self.names.functions | {"sigmoid": sigmoid})[word](self.bracket())

    def word(self):
        letters = ""
        while self.peek() != "}":
            letters += self.take().replace(r"\_", "_")
        return letters

    def bracket(self):
        big = self.take(*OPEN) == r"\left"
        self.skip("(" if big else "")
        inside = self.expression()
        self.skip(r"\right )" if big else ")")
        if not self.begins("_"):
            return inside
        if not isinstance(inside, Partial):
            raise Unreadable("something is held fixed in what is no derivative")
        names = self.group(lambda: self.several(self.name))
        return Local(*inside.args[:2], [Symbol(name) for name in names])

    def derivative(self):
        self.skip(r"\frac { \partial")
        f = None if self.peek() == "}" else self.expression()
        self.skip(r"} { \partial")
        v = self.quantity()
        self.take("}")
        return Partial(self.factor() if f is None else f, v)

    def largest(self):
        self.skip(r"\left (")
        values = self.several(self.expression)
        self.skip(r"\right )")
        return Max(*values)

    def sum(self):
        self.skip("_ {")
        letter = self.name()
        self.skip("= 1 } ^")
        last = self.group(self.quantity)
        if letter in {*self.bound, *self.names.scalars, *self.names.tensors}:
            raise Unreadable(f"the letter {letter} is bound and something else")
        self.bound[letter] = r = Dummy(letter, integer=True, positive=True)
        body = self.term()
        del self.bound[letter]
        return Sum(body, (r, 1, last))

    def name(self, numbered=True):
        """A name without its indices; the digits below it belong to it."""
        token = self.take()
        if token in (r"\hat", r"\dot"):
            name = f"{self.group(self.name)}_{token[1:]}"
        elif token == r"\mathrm":
            name = self.group(self.word)
        elif token in GREEK or re.fullmatch("[A-Za-z]", token):
            name = token.removeprefix("\\").replace("varepsilon", "eps")
        else:
            raise Unreadable(f"{token!r} is no name")
        # i_{1} is one letter
        if numbered and self.peek() == "_" and self.peek(2).isdigit():
            if self.peek(3) == "}":
                self.take()
                name += self.group(self.take)
        return name + self.primes()

    def primes(self):
        marks = ""
        while self.begins("'"):
            marks += "'"
        return marks

    def letters(self):
        """The indices below a name: letters side by side, or parted by commas."""
        names = []
        while self.peek() != "}":
            if self.begins(","):
                continue
            name = self.name()
            letter = self.bound.get(name) or self.names.scalars.get(name)
            if letter is None or not letter.is_integer:
                raise Unreadable(f"the index {name} is no letter of the equation")
            names.append(letter)
        return names

    def quantity(self):
        name = self.name(numbered=False)
        if self.peek() in OPEN and name in self.names.functions:
            return self.names.functions[name](self.bracket())
        if not self.begins("_"):
            return self.scalar(name)
        self.take("{")
        if self.peek().isdigit() and self.peek(1) in ("}", ","):
            stem = name.rstrip("'")
            name = stem + self.take() + name[len(stem) :]
            if self.begins("}"):
                return self.scalar(name + self.primes())
            self.take(",")
        letters = self.letters()
        self.take("}")
        if name not in self.names.tensors:
            raise Unreadable(f"{name} has indices and is no tensor of the equation")
        return self.names.tensors[name][tuple(letters)]

    def scalar(self, name):
        symbol = self.bound.get(name) or self.names.scalars.get(name)
        if symbol is None:
            raise Unreadable(f"{name} is no scalar of the equation")
        return symbol


def read(text: str, names: Quantities) -> Expr:
    """The expression that a line of the book's LaTeX says."""
    with evaluate(True):
        return Reader(text, names).whole()


def chains(text: str) -> list[list[str]]:
    """The expressions of a display, chain by chain: each "=" that is no limit of a sum begins another one."""
    body = text.strip().removeprefix(r"\begin{aligned}").removesuffix(r"\end{aligned}")
    lines: list[list[str]] = []
    for line in re.split(r"\\\\(?:\[\w+\])?", body):
        line = (
            re.sub(r"\\quad\s*\{\\small.*\}\s*$", "", line.strip())
            .replace(r"\quad", " ")
            .replace("&", " ")
        )
        first, *rest_of_chain = map(str.strip, _split(line))
        if first:
            lines.append([first])
        lines[-1] += rest_of_chain
    return lines


def _split(line):
    """The parts of a line between the "=" that stand in no braces."""
    parts, depth = [""], 0
    for sign in line:
        depth += (sign == "{") - (sign == "}")
        if sign == "=" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def canonical(e: Expr, meaning=lambda derivative: derivative) -> Expr:
    """The expression evaluated, its bound letters numbered by how deep they stand.

    Args:  meaning: what a derivative, Local or Partial, is to be taken for
    """

    def named(node):
        node = meaning(node)
        held = node.args[2] if isinstance(node, Local) else ()
        parts = [everywhere(part, (Local, Partial), named) for part in node.args[:2]]
        names = [Symbol(str(name)) for name in held]
        return Function(type(node).__name__)(*parts, *names)

    with evaluate(True):
        return numbered(everywhere(e, (Local, Partial), named))
