"""The arguments of a call as the cell's text has them: read from the text, for printing alone.

The text is found by the positions that the code keeps, through linecache, in which IPython has its cells. Where there
is none, as under exec or in Python 3.10, the evaluated expressions are shown.
"""

from __future__ import annotations

import ast
import linecache
import operator
import types
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import sympy
from sympy import Expr, Float, IndexedBase, Rational, evaluate, sympify

from ..symbolic.notation import Local, Partial, with_parts

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
# functions of SymPy that write an expression down; all others but classes compute, and their value is shown
WRITERS = (sympy.sqrt, sympy.cbrt, sympy.root)


def typed_arguments(frame: types.FrameType, values: tuple, local) -> list:
    """For each argument of the call that a frame makes, (expression as typed, its text), or (None, None).

    Args:  frame: where the call stands; values: its positional arguments, of which a tuple gives a list
           local: the function that is read as a node
    """
    nothing = [_nothing(value) for value in values]
    try:
        call, tree, text = _call(frame)
        reader = _Reader(frame, tree, text, call, local)
        return [
            reader.argument(node, value, text)
            for node, value in zip(call.args, values, strict=True)
        ]
    except (
        Exception
    ):  # whatever goes wrong here costs the display as typed, nothing else
        return nothing


@dataclass
class Asked:
    """An argument as typed, without what only rewrites it, as `unfold` and `doit`.

    Args:  value: what SymPy makes of it; unevaluated: the same as it stands
           computed: the texts of what it computes, and the variables that another cell computed
    """

    value: Expr
    unevaluated: Expr
    computed: frozenset = frozenset()


def questions(frame: types.FrameType, values: tuple, local) -> list[Asked]:
    """The arguments of the call that a frame makes; without a text, their values."""
    try:
        call, tree, text = _call(frame)
        return [
            _asked(node, _Bare(frame, tree, text, call, local)) for node in call.args
        ]
    except Exception:  # as above: then only the values are compared
        plain = map(sympify, values)
        return [Asked(value, value) for value in plain]


def _asked(node, reader):
    with evaluate(True):
        value = sympify(reader.read(node))
    computed = frozenset(reader.computed)
    with evaluate(False):
        unevaluated = sympify(reader.read(node))
    return Asked(value, unevaluated, computed)


def _nothing(value):
    return [(None, None)] * len(value) if isinstance(value, tuple) else (None, None)


def evaluated(e: Expr, local) -> Expr:
    """What SymPy makes of an expression as typed; local: the function that carries out a `Local`."""
    if isinstance(e, Local):
        return local(evaluated(e.args[0], local), e.args[1])
    e = with_parts(e, lambda part: evaluated(part, local))
    return e.args[0].diff(e.args[1]) if isinstance(e, Partial) else e


@lru_cache(maxsize=8)
def _parsed(text):
    return ast.parse(text)


def _call(frame):
    """(the call that a frame makes, the tree and the text in which it stands)."""
    code = frame.f_code
    text = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    position = list(code.co_positions())[frame.f_lasti // 2]
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Call):
            lines = node.lineno, node.end_lineno
            columns = node.col_offset, node.end_col_offset
            if lines + columns == position:
                return node, _parsed(text), text
    raise LookupError("the call's text")


class _Reader:
    """Reads nodes of a cell's text as expressions that SymPy does not evaluate."""

    def __init__(self, frame, tree, text, call, local):
        self.text = text
        self.space = {**frame.f_globals, **frame.f_locals}
        self.local, self.computes, self.exact = local, False, False
        self.assigned = {}
        for line in tree.body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                lines = self.assigned.setdefault(line.targets[0].id, [])
                lines.append(line.value if line.end_lineno < call.lineno else None)

    def argument(self, node, value, text):
        """(an argument as typed, its text); no text where a call in it computes, and says not what came out."""
        if isinstance(value, tuple):
            pairs = zip(node.elts, value, strict=True)
            return [self.argument(*pair, text) for pair in pairs]
        self.computes = False
        e = self.typed(node, value)
        if e is not None and e.has(Float):
            e = self.exactly(node) or e
        if e is None or self.computes:
            return e, None
        return e, " ".join(ast.get_source_segment(text, node).split())

    def typed(self, node, value):
        """An argument as typed; None where it is no expression, or where SymPy makes another value of its text."""
        if not isinstance(value, Expr | int):
            return None
        with evaluate(False):
            e = sympify(self.read(node))
        with evaluate(True):
            return e if evaluated(e, self.local) == value else None

    def exactly(self, node):
        """An argument, whose text is known to be read as Python has it, with fractions for its decimals; or None."""
        self.exact = True
        with evaluate(False):
            e = sympify(self.read(node))
        self.exact = False
        return None if e.has(Float) else e

    def read(self, node):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            operator_ = OPERATORS[type(node.op)]
            left, right = self.read(node.left), self.read(node.right)
            if self.exact and isinstance(left, int) and isinstance(right, int):
                # Python would round a quotient of integers
                with evaluate(True):
                    return operator_(Rational(left), Rational(right))
            return operator_(left, right)
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self.read(node.operand))
        if isinstance(node, ast.Tuple):
            return tuple(map(self.read, node.elts))
        if isinstance(node, ast.Name):
            return self.variable(node)
        if isinstance(node, ast.Call) and not node.keywords:
            return self.call(node)
        if self.exact and isinstance(node, ast.Constant):
            return self.constant(node)
        return self.value(node)

    def constant(self, node):
        """A number; a decimal that Python has not rounded, as 0.5, as the fraction that it is."""
        if not isinstance(node.value, float):
            return node.value
        exact = Fraction(Decimal(ast.get_source_segment(self.text, node)))
        unrounded = exact == Fraction(node.value)
        return Rational(exact.numerator, exact.denominator) if unrounded else node.value

    def variable(self, node):
        """A variable by the text that the same cell assigned to it, where that is what it still stands for."""
        value, lines = self.value(node), self.assigned.get(node.id, ())
        plain = not isinstance(value, Expr) or not value.args
        if plain or isinstance(value, IndexedBase) or len(lines) != 1 or not lines[0]:
            return value
        exact, self.exact = self.exact, False
        e = self.typed(lines[0], value)
        self.exact = exact
        if e is not None and exact:
            e = self.read(lines[0])
        return value if e is None else e

    def call(self, node):
        parts, function = node.args, self.value(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "diff":
            owner = self.value(node.func.value)
            if isinstance(owner, Expr):
                function, parts = sympy.diff, [node.func.value, *parts]
        if len(parts) == 2:
            nodes = {sympy.diff: Partial, self.local: Local}
            function = nodes.get(function, function)
        written = isinstance(function, type) and issubclass(function, Expr)
        if written or function in WRITERS:
            return function(*map(self.read, parts))
        self.computes = True
        return self.value(node)

    def value(self, node):
        """What a part of the text stands for."""
        with evaluate(True):
            return eval(compile(ast.Expression(node), "<typed>", "eval"), self.space)


# what writes an expression in another way and takes no step of a derivation
REWRITING = frozenset(
    "unfold contract in_names sympify doit simplify expand factor together cancel collect rewrite radsimp".split()
)


class _Bare(_Reader):
    """Reads a text without the calls that only rewrite what is in them."""

    def __init__(self, *places):
        super().__init__(*places)
        self.computed = set()

    def call(self, node):
        attribute = isinstance(node.func, ast.Attribute)
        name = node.func.attr if attribute else getattr(node.func, "id", "")
        if name in REWRITING:
            inner = node.func.value if attribute else node.args[0]
            if attribute and not isinstance(self.value(inner), Expr):
                inner = node.args[0]
            return self.read(inner)
        if name == "Derivative" and len(node.args) == 2:
            return Partial(*map(self.read, node.args))
        before, self.computes = self.computes, False
        e = super().call(node)
        if self.computes:
            self.computed.add(ast.dump(node))
        self.computes = before or self.computes
        return e

    def variable(self, node):
        """A variable by what the same cell assigned to it, where that is one line."""
        value, lines = self.value(node), self.assigned.get(node.id, ())
        if not isinstance(value, Expr) or not value.args:
            return value
        if len(lines) != 1 or not lines[0]:
            self.computed.add(ast.dump(node))
            return value
        return self.read(lines[0])
