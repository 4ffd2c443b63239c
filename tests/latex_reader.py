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
    Add,
    Dummy,
    Expr,
    Function,
    Indexed,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Max,
    Mul,
    Pow,
    Rational,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    exp,
    sqrt,
)

from normgrad.symbolic.elementary import sigmoid
from normgrad.symbolic.notation import Local, Partial, as_written, rename_bound
from normgrad.symbolic.opaque import Opaque

TOKEN = re.compile(r"\s*(\\[A-Za-z]+|\\[,;!_]|\d+|[A-Za-z]|[-+=(){}^_',;*/&|])")
SPACES = (r"\,", r"\;", r"\!", r"\cdot")
GREEK = {"varepsilon": "eps"} | {
    word: word for word in ("alpha", "kappa", "mu", "rho", "sigma", "theta", "Pi")
}
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
        self.tokens, at = [], 0
        while at < len(text.rstrip()):
            token = TOKEN.match(text, at)
            if not token:
                raise Unreadable(f"no token at {text[at : at + 30]!r}")
            at = token.end()
            if token[1] not in SPACES:
                self.tokens.append(token[1])
        self.at = 0

    def peek(self, ahead=0):
        return (
            self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""
        )

    def take(self, *expected):
        token = self.peek()
        if expected and token not in expected:
            raise Unreadable(
                f"{token!r} at {' '.join(self.tokens[self.at :][:12])!r}, needs {expected}"
            )
        self.at += 1
        return token

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
        terms = []
        sign = self.take() if self.peek() == "-" else "+"
        while True:
            term = self.term()
            terms.append(Mul(-1, term) if sign == "-" else term)
            if self.peek() not in ("+", "-"):
                return Add(*terms)
            sign = self.take()

    def term(self):
        factors = [self.factor()]
        while self.peek() and self.peek() not in ("+", "-", "=", "}", ",", ";", *CLOSE):
            factors.append(self.factor())
        return Mul(*factors)

    def factor(self):
        base = self.base()
        if self.peek() == "^":
            self.take()
            base = Pow(base, self.group(self.power))
            if self.peek() == "^":
                raise Unreadable("two powers on one base")
        return base

    def power(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        if self.peek().isdigit():
            above = Integer(self.take())
            below = (
                Integer(self.take())
                if self.peek() == "/" and self.take()
                else Integer(1)
            )
            return sign * Rational(above, below)
        return sign * self.expression()

    def base(self):
        token = self.peek()
        if token.isdigit():
            return Integer(self.take())
        if token in OPEN:
            return self.bracket()
        if token == r"\sqrt":
            self.take()
            return sqrt(self.group(self.expression))
        if token == "e" and self.peek(1) == "^" and "e" not in self.names.scalars:
            self.take()
            self.take()
            return exp(self.group(self.expression))
        if token == r"\operatorname":
            self.take()
            word = self.group(self.word)
            known = self.names.functions | {"sigmoid": sigmoid}
            return known[word](self.bracket())
        if token == r"\frac":
            return self.fraction()
        if token == r"\sum":
            return self.sum()
        if token == r"\max":
            return self.largest()
        if token == r"\delta":
            self.take()
            self.take("_")
            return KroneckerDelta(*self.group(self.letters))
        return self.quantity()

    def word(self):
        letters = ""
        while self.peek() != "}":
            letters += self.take()
        return letters

    def bracket(self):
        big = self.take(*OPEN) == r"\left"
        if big:
            self.take("(")
        inside = self.expression()
        if big:
            self.take(r"\right")
        self.take(")")
        if self.peek() != "_":
            return inside
        self.take()
        if not isinstance(inside, Partial):
            raise Unreadable("something is held fixed in what is no derivative")
        return Local(*inside.args[:2], [Symbol(name) for name in self.group(self.held)])

    def held(self):
        names = [self.name()]
        while self.peek() == ",":
            self.take()
            names.append(self.name())
        return names

    def fraction(self):
        self.take(r"\frac")
        if self.peek(1) != r"\partial":
            above = self.group(self.expression)
            return above / self.group(self.expression)
        self.take("{")
        self.take(r"\partial")
        f = self.expression() if self.peek() != "}" else None
        self.take("}")
        self.take("{")
        self.take(r"\partial")
        v = self.quantity()
        self.take("}")
        return Partial(self.factor() if f is None else f, v)

    def largest(self):
        self.take(r"\max")
        self.take(r"\left")
        self.take("(")
        values = [self.expression()]
        while self.peek() == ",":
            self.take()
            values.append(self.expression())
        self.take(r"\right")
        self.take(")")
        return Max(*values)

    def sum(self):
        self.take(r"\sum")
        self.take("_")
        self.take("{")
        letter = self.name(numbered=True)
        self.take("=")
        self.take("1")
        self.take("}")
        self.take("^")
        last = self.group(self.quantity)
        if (
            letter in self.bound
            or letter in self.names.scalars
            or letter in self.names.tensors
        ):
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
            self.take("{")
            name = ""
            while self.peek() != "}":
                name += self.take().replace(r"\_", "_")
            self.take("}")
        elif token.startswith("\\") and token[1:] in GREEK:
            name = GREEK[token[1:]]
        elif re.fullmatch("[A-Za-z]", token):
            name = token
        else:
            raise Unreadable(f"{token!r} is no name")
        # i_{1} is one letter
        if (
            numbered
            and self.peek() == "_"
            and self.peek(2).isdigit()
            and self.peek(3) == "}"
        ):
            self.take()
            name += self.group(self.take)
        return name + self.primes()

    def primes(self):
        marks = ""
        while self.peek() == "'":
            marks += self.take()
        return marks

    def letters(self):
        """The indices below a name: letters side by side, or parted by commas."""
        names = []
        while self.peek() != "}":
            if self.peek() == ",":
                self.take()
                continue
            name = self.name()
            letter = self.bound.get(name) or self.names.scalars.get(name)
            if letter is None or not letter.is_integer:
                raise Unreadable(
                    f"the index {name} is neither bound nor a letter of the equation"
                )
            names.append(letter)
        return names

    def quantity(self):
        name = self.name(numbered=False)
        if self.peek() == "(" or self.peek() == r"\left":
            if name in self.names.functions:
                return self.names.functions[name](self.bracket())
        if self.peek() != "_":
            return self.scalar(name)
        self.take()
        self.take("{")
        if self.peek().isdigit() and self.peek(1) in ("}", ","):
            stem = name.rstrip("'")
            name = stem + self.take() + name[len(stem) :]
            if self.peek() == "}":
                self.take()
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


def canonical(e: Expr, meaning=lambda derivative: derivative, depth: int = 0) -> Expr:
    """The expression evaluated, its bound letters numbered by how deep they stand.

    Args:  meaning: what a derivative, Local or Partial, is to be taken for
    """
    if isinstance(e, Sum):
        (letter, first, last), *outer = reversed(e.limits)
        inner = Sum(e.function, *reversed(outer)) if outer else e.function
        numbered = Symbol(f"_{depth}", integer=True, positive=True)
        return Sum(
            canonical(inner.xreplace({letter: numbered}), meaning, depth + 1),
            (numbered, first, last),
        )
    if isinstance(e, Local | Partial):
        e = meaning(e)
        names = (
            [Symbol(str(name)) for name in e.args[2]] if isinstance(e, Local) else []
        )
        return Function(type(e).__name__)(
            *[canonical(part, meaning, depth) for part in e.args[:2]], *names
        )
    if not e.args or isinstance(e, Tuple | Indexed):
        return e
    with evaluate(True):
        return e.func(*[canonical(part, meaning, depth) for part in e.args])
