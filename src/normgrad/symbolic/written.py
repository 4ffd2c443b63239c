"""equations.json: every equation of the book as text, one entry a label.

`entry` makes the entry of an equation, `equation_of` makes the equation of an entry. An entry is a dictionary:

    claim, kind, page   as of Equation; page: the page that shows it, without .md
    symbols             {assumptions: names}, as {"integer, positive": "N, j", "real": "x[N], a"}; a tensor has its
                        shape, or [] where it was declared without one; under "function" stand opaque functions
    definitions         lines "head = formula", those that the equation reaches
    equation            one line a chain, "start = end"; of a definition the heads alone
    latex               the display of both ends, line by line

and, where they are needed: names, {identifier: name}, for names that are no identifiers or stand for two things;
holds_where, as of Equation.

The text is SymPy's, read with its evaluation off. A name that is not declared is a letter that a sum runs over. Where
the tree of an expression is not what operators make of it, it is written as Add(...), Mul(...) or Pow(...), so that
what is read is what was typed.
"""

from __future__ import annotations

import re
from keyword import iskeyword

import sympy
from sympy import (
    Dummy,
    Expr,
    IndexedBase,
    Mul,
    S,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    sympify,
)
from sympy.printing.str import StrPrinter

from .chains import DEFINITION, Equation
from .definitions import Defs, numbered
from .elementary import sigmoid
from .notation import INDEX, Local, Partial, with_letters, without_ones
from .opaque import Opaque, derivative, opaque

FUNCTION = "function"
SYMPY = (
    "Abs Add And Derivative Eq Ge Gt Heaviside KroneckerDelta Le Lt Max Min Mul Ne Not Or Piecewise Pow Rational Sum "
    "cosh exp im log re sign sinh sqrt tanh"
).split()
VOCABULARY = {name: getattr(sympy, name) for name in SYMPY}
VOCABULARY |= {
    "Local": Local,
    "Partial": Partial,
    "derivative": derivative,
    "sigmoid": sigmoid,
}


# an expression as text


class Typed(StrPrinter):
    """An expression as it was typed. Args: identifiers: {symbol, tensor or function: its name in the text}"""

    printmethod = "_typed"  # no object of SymPy prints itself

    def __init__(self, identifiers):
        super().__init__({"order": "none"})
        self.identifiers = identifiers

    def line(self, parts) -> str:
        """A chain "start = end"; what a sum runs over gets names that nothing else has."""
        taken = {*self.identifiers.values(), *VOCABULARY}
        sides = [with_letters(e, taken, own=False) for e in parts]
        return " = ".join(map(self.doprint, sides))

    def _print_Symbol(self, e):
        return self.identifiers.get(e, e.name)

    def _print_Indexed(self, e):
        return f"{self.identifiers[e.base]}[{self.stringify(e.indices, ', ')}]"

    def _print_Integer(self, e):
        return str(e.p)

    _print_Zero = _print_One = _print_NegativeOne = _print_Integer

    def _print_Rational(self, e):
        return f"Rational({e.p}, {e.q})"

    _print_Half = _print_Rational

    def _print_Sum(self, e):
        limits = [f"({self.stringify(limit, ', ')})" for limit in e.limits]
        return f"Sum({self._print(without_ones(e.function))}, {', '.join(limits)})"

    def _called(self, e):
        return f"{type(e).__name__}({self.stringify(e.args, ', ')})"

    _print_KroneckerDelta = _print_Partial = _print_Max = _print_Min = _called

    def _print_Local(self, e):
        f, v, held = e.args
        text = f"Local({self._print(f)}, {self._print(v)}"
        names = ", ".join(self.identifiers[name] for name in held)
        return text + (f", [{names}])" if held else ")")

    def _print_Function(self, e):
        if not isinstance(e, Opaque):
            return self._called(e)
        name = self.identifiers[FUNCTION, e.letter]
        for _ in range(e.order):
            name = f"derivative({name})"
        return f"{name}({self.stringify(e.args, ', ')})"

    # sums, products and powers as they were typed

    def _print_Add(self, e, order=None):
        if len(e.args) == 2 and not _numbers(e):
            first, second = e.args
            positive = _negated(second)
            if positive is not None and first - positive == e:
                return f"{self._print(first)} - {self._factor(positive)}"
            if first + second == e:
                return f"{self._print(first)} + {self._factor(second)}"
        return self._called(e)

    def _print_Mul(self, e):
        positive = _negated(e)
        if positive is not None:
            return f"-{self._second(positive)}"
        if len(e.args) == 2 and not _numbers(e):
            first, second = e.args
            below = second.args[0] if second.is_Pow and second.exp == -1 else None
            if below is not None and not below.is_Number and first / below == e:
                return f"{self._factor(first)}/{self._second(below)}"
            if first * second == e:
                return f"{self._factor(first)}*{self._second(second)}"
        return self._called(e)

    def _print_Pow(self, e, rational=False):
        base, exponent = e.args
        if exponent is S.Half:
            return f"sqrt({self._print(base)})"
        if _numbers(e):
            return self._called(e)
        if exponent == -1:
            return f"1/{self._second(base)}"
        return f"{self._tight(base)}**{self._tight(exponent)}"

    def _bracket(self, e, loose):
        text = self._print(e)
        return f"({text})" if loose or text.startswith("-") else text

    def _factor(self, e):
        """What stands before * or /, or behind + or -."""
        return self._bracket(e, e.is_Add)

    def _second(self, e):
        """What stands behind * or /, or behind the minus of a product."""
        return self._bracket(e, e.is_Add or e.is_Mul or e.is_Pow and e.exp == -1)

    def _tight(self, e):
        """What stands beside **."""
        return self._bracket(e, e.is_Add or e.is_Mul or e.is_Pow)


def _numbers(e):
    """Whether Python itself would carry out an operation."""
    return all(part.is_Number for part in e.args)


def _negated(e):
    """The u that -u makes e of, or None."""
    if e.is_Integer:
        return -e if e < 0 else None
    if not e.is_Mul or e.args[0] != -1 or _numbers(e):
        return None
    positive = Mul(*e.args[1:], evaluate=False)
    return positive if -positive == e else None


# the names of an entry


def _names(e):
    """The symbols, tensors and functions in an expression; what a sum runs over by a letter of its own left out."""
    if isinstance(e, Dummy):
        return set()
    if isinstance(e, IndexedBase):
        return {e}.union(*map(_names, e.shape or ()))
    if isinstance(e, Symbol):
        return {e}
    parts = e.args[:2] if isinstance(e, Local) else e.args
    names = set().union(*map(_names, parts))
    return names | {(FUNCTION, e.letter)} if isinstance(e, Opaque) else names


def _spelling(name):
    return name[1] if isinstance(name, tuple) else str(name)


def _group(name):
    """What is declared of a name: its assumptions, or that it is a function."""
    if isinstance(name, tuple):
        return FUNCTION
    return ", ".join(sorted(getattr(name, "label", name)._assumptions_orig))


def _identifiers(names):
    """{name: its identifier}, each of one name alone."""
    identifiers = {}
    for name in sorted(names, key=lambda name: (_spelling(name), _group(name))):
        text = _spelling(name).replace("'", "_prime")
        while iskeyword(text) or text in VOCABULARY or text in identifiers.values():
            text += "_"
        identifiers[name] = text
    return identifiers


def _declared(identifiers):
    """{what is declared: the names it is declared of}."""
    groups = {}
    for name, text in identifiers.items():
        if isinstance(name, IndexedBase):
            text += f"[{', '.join(identifiers[size] for size in name.shape or ())}]"
        groups.setdefault(_group(name), []).append(text)
    return {group: ", ".join(sorted(groups[group])) for group in sorted(groups)}


# an entry


def entry(equation: Equation, page: str) -> dict:
    """The entry of an equation: its chains as they stand, and the definitions that they reach.

    Args:    equation: with ends alone where a cell derives it; page: that shows it, without .md
    Returns: a dictionary for JSON, see the module; `equation_of` makes the equation of it again
    Raises:  ValueError where the text does not give the equation again
    """
    lines = definitions_of(equation)
    identifiers = _identifiers(_names(Tuple(*lines, *equation.chains)))
    labels = {
        e.label: identifiers[e] for e in identifiers if isinstance(e, IndexedBase)
    }
    ends = 1 if equation.kind == DEFINITION else None
    with evaluate(False):
        write = Typed(labels | identifiers)
        written = {
            "claim": equation.claim,
            "kind": equation.kind,
            "page": page,
            "symbols": _declared(identifiers),
            "names": {
                text: _spelling(name)
                for name, text in identifiers.items()
                if text != _spelling(name)
            },
            "definitions": [write.line(line) for line in lines],
            "equation": [write.line(chain[:ends]) for chain in equation.chains],
            "holds_where": equation.holds_where,
        }
    for key in ("page", "names", "holds_where"):
        if not written[key]:
            del written[key]
    read = equation_of(equation.label, written)
    if not same(read, equation):
        raise ValueError(
            f"{equation.label}: its text does not give the equation again: {written['equation']}"
        )
    return written | {"latex": read.ends().latex().splitlines()}


def definitions_of(equation: Equation) -> list[tuple[Expr, Expr]]:
    """The lines, (head, formula), that an equation reaches, in order."""
    return equation.defs.reached(Tuple(*equation.chains))


# an equation from its entry


class _Letters(dict):
    """What names stand for in one text; one that is not declared is the letter of a sum. Args: scope: the declared"""

    def __init__(self, scope):
        super().__init__(scope)
        self.letters = {}

    def __missing__(self, name):
        return self.letters.setdefault(name, Dummy(name, **INDEX))


def _sum(body, *limits):
    """A sum, of sums where it has several limits."""
    for limit in limits:
        body = Sum(body, limit)
    return body


def _local(f, v, held=()):
    return Local(f, v, [getattr(name, "label", name) for name in held])


def _read(text, scope):
    names = _Letters(scope)
    e = sympify(eval(text, {"__builtins__": {}}, names))  # noqa: S307 - the package's own text
    for name, letter in names.letters.items():
        if e.has_free(letter):
            raise NameError(f"name {name!r} is neither declared nor summed over")
    return e


def _scope(written):
    """What the names of an entry are."""
    names = written.get("names", {})
    scope = VOCABULARY | {"Sum": _sum, "Local": _local}
    # sizes are declared before the tensors that have them: "integer, positive" comes before "positive" and "real"
    for group, declared in written["symbols"].items():
        assumptions = dict.fromkeys(filter(None, group.split(", ")), True)
        for text, shape in re.findall(r"(\w+)(\[[^]]*\])?", declared):
            name = names.get(text, text)
            if group == FUNCTION:
                scope[text] = opaque(name)
            elif shape:
                sizes = tuple(scope[size] for size in re.findall(r"\w+", shape)) or None
                scope[text] = IndexedBase(name, shape=sizes, **assumptions)
            else:
                scope[text] = Symbol(name, **assumptions)
    return scope


def equation_of(label: str, written: dict) -> Equation:
    """The equation of an entry.

    Raises:  NameError for a name that is neither declared nor summed over
    """
    with evaluate(False):
        scope, defs = _scope(written), Defs()

        def read(line):
            return tuple(_read(side, scope) for side in line.split(" = "))

        for line in written["definitions"]:
            head, formula = read(line)
            defs[head] = formula
        chains = [read(line) for line in written["equation"]]
        if written["kind"] == DEFINITION:
            chains = [defs.line(*heads) for heads in chains]
        return Equation(
            label,
            written["claim"],
            tuple(chains),
            defs,
            kind=written["kind"],
            holds_where=written.get("holds_where", ""),
        )


# whether two equations are one


def same(first: Equation, second: Equation) -> bool:
    """Whether two equations are equal, but for the letters of sums, the order of lines, and lines not reached."""
    return _content(first) == _content(second)


def _content(equation):
    with evaluate(False):
        chains = [tuple(map(numbered, chain)) for chain in equation.chains]
        lines = {tuple(map(numbered, line)) for line in definitions_of(equation)}
    return equation.claim, equation.kind, equation.holds_where, chains, lines
