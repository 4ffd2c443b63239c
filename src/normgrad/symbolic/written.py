"""equations.json: every equation of the book as text, one entry a label.

`entry` makes the entry of an equation, `equation_of` makes the equation of an entry. An entry is a dictionary:

    claim, kind, page   as of Equation; page: the page that shows it, without .md
    symbols             {assumptions: names}, as {"integer, positive": "N, j", "real": "x[N], a"}; a tensor has its
                        shape, or [] where it was declared without one; under "function" stand opaque functions
    definitions         lines "head = formula", those that the equation reaches
    equation            one line a chain, "start = end"; of a definition the heads alone
    latex               the display of both ends, line by line

and, where they are needed: names, {identifier: name}, for names that are no identifiers or stand for two things;
holds_where, as of Equation; evaluate, true where SymPy's evaluation is on as the text is read.

The text is SymPy's. A name that is not declared is a letter that a sum runs over. Where the tree of an expression is
not what operators make of it, it is written as Add(...), Mul(...) or Pow(...), so that what is read is what was typed.
"""

from __future__ import annotations

import ast
import re
from itertools import chain, count
from keyword import iskeyword

import sympy
from sympy import (
    Basic,
    Dummy,
    Expr,
    IndexedBase,
    Mul,
    S,
    Sum,
    Symbol,
    evaluate,
    sympify,
)
from sympy.printing.str import StrPrinter

from .chains import DEFINITION, Equation
from .definitions import Defs, numbered
from .elementary import sigmoid
from .notation import Local, Partial, without_ones
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
BOUND = "rstuv"
_OPERATION = re.compile(r"\b(Add|Mul|Pow)\(")


# an expression as text


class Typed(StrPrinter):
    """An expression as text. Args: identifiers: {symbol, tensor or function: its name in the text}; as_typed: whether
    the text is read with SymPy's evaluation off"""

    printmethod = "_typed"  # no object of SymPy prints itself

    def __init__(self, identifiers, as_typed):
        super().__init__(
            {"sympy_integers": True, "order": "none" if as_typed else None}
        )
        self.identifiers, self.as_typed, self.bound = identifiers, as_typed, {}

    def _print_Symbol(self, e):
        return self.identifiers[e]

    def _print_Dummy(self, e):
        return self.bound[e]

    def _print_Indexed(self, e):
        return f"{self.identifiers[e.base]}[{self.stringify(e.indices, ', ')}]"

    def _print_Integer(self, e):
        return str(e.p)

    _print_Zero = _print_One = _print_NegativeOne = _print_Integer

    def _print_Rational(self, e):
        return f"Rational({e.p}, {e.q})"

    _print_Half = _print_Rational

    def _print_Sum(self, e):
        taken = {*self.identifiers.values(), *self.bound.values(), *VOCABULARY}
        free = (
            name
            for name in chain(BOUND, map("r{}".format, count(1)))
            if name not in taken
        )
        dummies = [limit[0] for limit in e.limits if limit[0].is_Dummy]
        self.bound |= dict(zip(reversed(dummies), free, strict=False))
        limits = [f"({self.stringify(limit, ', ')})" for limit in e.limits]
        text = f"Sum({self._print(without_ones(e.function))}, {', '.join(limits)})"
        for letter in dummies:
            del self.bound[letter]
        return text

    def _called(self, e):
        return f"{type(e).__name__}({self.stringify(e.args, ', ')})"

    _print_KroneckerDelta = _print_Partial = _print_Max = _print_Min = _called

    def _print_Local(self, e):
        f, v, held = e.args
        text = f"Local({self._print(f)}, {self._print(v)}"
        names = "".join(f"{self.identifiers[name]}, " for name in held)
        return text + (f", [{names.removesuffix(', ')}])" if held else ")")

    def _print_Function(self, e):
        name = type(e).__name__
        if isinstance(e, Opaque):
            name = self.identifiers[_function(e)]
            for _ in range(getattr(e, "order", 0)):
                name = f"derivative({name})"
        elif name not in VOCABULARY:
            raise ValueError(
                f"{name}: a function that no entry of an equation can hold"
            )
        return f"{name}({self.stringify(e.args, ', ')})"

    # sums, products and powers as they were typed

    def _print_Add(self, e, order=None):
        if not self.as_typed:
            return super()._print_Add(e)
        if len(e.args) == 2 and not _numbers(e):
            first, second = e.args
            positive = _negated(second)
            if positive is not None and first - positive == e:
                return f"{self._print(first)} - {self._factor(positive)}"
            if first + second == e:
                return f"{self._print(first)} + {self._factor(second)}"
        return self._called(e)

    def _print_Mul(self, e):
        if not self.as_typed:
            return super()._print_Mul(e)
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
        if not self.as_typed:
            return super()._print_Pow(e)
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
    positive = e.args[1] if len(e.args) == 2 else Mul(*e.args[1:], evaluate=False)
    return positive if -positive == e else None


# the names of an entry


def _function(e):
    """What an applied function is declared as: the function of a sequence, the letter of an opaque function."""
    return (FUNCTION, e.letter) if isinstance(e, Opaque) else e.func


def _names(e: Basic) -> set:
    """The symbols, tensors and functions in an expression; what a sum runs over by a letter of its own left out."""
    if isinstance(e, Dummy):
        return set()
    if isinstance(e, IndexedBase):
        return {e}.union(*map(_names, e.shape or ()))
    if isinstance(e, Symbol):
        return {e}
    parts = e.args[:2] if isinstance(e, Local) else e.args
    names = set().union(*map(_names, parts))
    return names | {_function(e)} if isinstance(e, Opaque) else names


def _text_of(name) -> str:
    """A name without what is declared of it."""
    if isinstance(name, tuple):
        return name[1]
    return getattr(name, "__name__", "") or str(getattr(name, "label", name))


def _group(name) -> str:
    """What is declared of a name: its assumptions, or that it is a function."""
    if isinstance(name, tuple):
        return FUNCTION
    assumptions = getattr(name, "label", name)._assumptions_orig
    return ", ".join(
        f"{'' if holds else 'not '}{word}"
        for word, holds in sorted(assumptions.items())
    )


def _order(name):
    return _text_of(name), _group(name)


def _identifiers(names) -> dict:
    """{name: its identifier}, each of one name alone."""
    identifiers = {}
    for name in sorted(names, key=_order):
        text = _text_of(name).replace("'", "_prime")
        if not text.isidentifier():
            raise ValueError(f"{_text_of(name)}: is no identifier, and has none")
        while iskeyword(text) or text in VOCABULARY or text in identifiers.values():
            text += "_"
        identifiers[name] = text
    return identifiers


def _declared(identifiers, write) -> dict:
    """{what is declared: the names it is declared of}."""
    groups: dict[str, list[str]] = {}
    for name, text in identifiers.items():
        if isinstance(name, IndexedBase):
            text += f"[{write.stringify(name.shape or (), ', ')}]"
        groups.setdefault(_group(name), []).append(text)
    return {group: ", ".join(sorted(groups[group])) for group in sorted(groups)}


# an entry


def entry(equation: Equation, page: str) -> dict:
    """The entry of an equation: its chains as they stand, and the definitions that they reach.

    Args:    equation: with ends alone where a cell derives it; page: that shows it, without .md
    Returns: a dictionary for JSON, see the module; `equation_of` makes the equation of it again
    Raises:  ValueError for what has no text, or where the text does not give the equation again
    """
    texts = [_entry(equation, page, as_typed) for as_typed in (True, False)]
    if not _OPERATION.search("".join(texts[0]["equation"] + texts[0]["definitions"])):
        texts.pop()
    for written in reversed(texts):
        read = equation_of(equation.label, written)
        if same(read, equation):
            return written | {"latex": read.ends().latex().splitlines()}
    raise ValueError(
        f"{equation.label}: its text does not give the equation again: {texts[0]['equation']}"
    )


def _entry(equation, page, as_typed):
    lines = definitions_of(equation)
    parts = [e for line in (*lines, *equation.chains) for e in line]
    identifiers = _identifiers(set().union(*map(_names, parts)))
    odd = {
        text: _text_of(name)
        for name, text in identifiers.items()
        if text != _text_of(name)
    }
    labels = {
        name.label: text
        for name, text in identifiers.items()
        if isinstance(name, IndexedBase)
    }
    with evaluate(not as_typed):
        write = Typed(labels | identifiers, as_typed)
        written = {
            "claim": equation.claim,
            "kind": equation.kind,
            "page": page,
            "symbols": _declared(identifiers, write),
            "names": odd,
            "evaluate": not as_typed,
            "definitions": [_line(write, line) for line in lines],
            **_stated(equation, write),
        }
    always = {"symbols", "definitions"}
    return {key: value for key, value in written.items() if value or key in always}


def _stated(equation, write):
    """What an equation says, in names that are declared."""
    of_definition = equation.kind == DEFINITION
    stated = {
        "equation": [
            _line(write, chain[:1] if of_definition else chain)
            for chain in equation.chains
        ],
        "holds_where": equation.holds_where,
    }
    return {key: value for key, value in stated.items() if value}


def _line(write, parts):
    return " = ".join(map(write.doprint, parts))


def definitions_of(equation: Equation) -> list[tuple[Expr, Expr]]:
    """The lines, (head, formula), that an equation reaches, in order."""
    sides = [e for line in equation.chains for e in line]
    return equation.defs.reached(*sides)


# an equation from its entry


class _OwnLetters(ast.NodeTransformer):
    """Gives every sum letters of its own, where its letters are not declared. Args: scope: what is declared"""

    def __init__(self, scope):
        self.scope = scope

    def visit_Call(self, call):
        if isinstance(call.func, ast.Name) and call.func.id == "Sum":
            letters = [limit.elts[0].id for limit in call.args[1:]]
            for letter in letters:
                self.rename(call, letter)
        return self.generic_visit(call)

    def rename(self, call, letter):
        if letter in self.scope:
            return
        own = f"{letter}#{len(self.scope)}"
        self.scope[own] = Dummy(letter, integer=True, positive=True)
        for node in ast.walk(call):
            if isinstance(node, ast.Name) and node.id == letter:
                node.id = own


def _sum(body, *limits):
    """A sum, of sums where it has several limits."""
    for limit in limits:
        body = Sum(body, limit)
    return body


def _local(f, v, held=()):
    return Local(f, v, [getattr(name, "label", name) for name in held])


READ = VOCABULARY | {"Sum": _sum, "Local": _local}


def _read(text, scope) -> Expr:
    tree = _OwnLetters(scope).visit(ast.parse(text, mode="eval"))
    return sympify(eval(compile(tree, text, "eval"), {"__builtins__": {}}, scope))  # noqa: S307 - the package's own text


def _scope(written) -> dict:
    names, scope = written.get("names", {}), dict(READ)
    tensors = []
    for group, declared in written["symbols"].items():
        assumptions = {
            word.removeprefix("not "): word[:4] != "not "
            for word in group.split(", ")
            if word
        }
        for item in re.findall(r"\w+(?:\[[^]]*\])?", declared):
            text, *shape = item.removesuffix("]").split("[")
            name = names.get(text, text)
            if shape:
                tensors.append((text, name, shape[0], assumptions))
            elif group == FUNCTION:
                scope[text] = opaque(name)
            else:
                scope[text] = Symbol(name, **assumptions)
    for text, name, shape, assumptions in tensors:
        sizes = (
            tuple(_read(size, scope) for size in shape.split(", ")) if shape else None
        )
        scope[text] = IndexedBase(name, shape=sizes, **assumptions)
    return scope


def equation_of(label: str, written: dict) -> Equation:
    """The equation of an entry.

    Raises:  NameError for a name that is neither declared nor summed over
    """
    with evaluate(written.get("evaluate", False)):
        scope = _scope(written)
        defs = Defs()
        for line in written["definitions"]:
            head, formula = (_read(side, scope) for side in line.split(" = "))
            defs[head] = formula
        return _equation(label, written, defs, scope)


def _equation(label, written, defs, scope):
    chains = [
        tuple(_read(side, scope) for side in line.split(" = "))
        for line in written["equation"]
    ]
    if written["kind"] == DEFINITION:
        chains = [defs.line(*heads) for heads in chains]
    more = {
        key: written[key] for key in ("claim", "kind", "holds_where") if key in written
    }
    return Equation(label=label, chains=tuple(chains), defs=defs, **more)


# whether two equations are one


def same(first: Equation, second: Equation) -> bool:
    """Whether two equations are equal, but for the letters of sums, the order of lines, and lines not reached."""
    return _content(first) == _content(second)


def _content(equation):
    fields = ("claim", "kind", "holds_where")
    with evaluate(False):
        chains = [tuple(map(numbered, chain)) for chain in equation.chains]
        lines = {tuple(map(numbered, line)) for line in definitions_of(equation)}
    values = [getattr(equation, name) for name in fields]
    return values, chains, lines
