"""Mutants made by machine: every small change of a source text that a rule of the table makes, one at a time.

The catalogue of `mutant_catalogue` says what people get wrong in a formula. These say what a test suite does not look
at: conditions, defaults, the wiring between functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}

# What takes its arguments in any order.
COMMUTATIVE = (
    "min",
    "max",
    "maximum",
    "minimum",
    "result_type",
    "promote_types",
    "promoted",
)


@dataclass(frozen=True)
class MachineMutant:
    """One change of a source text.

    Args:  line: where it stands, from 1; kind: the rule that made it
           start, end: offsets of the text that goes, in characters; old, new: that text and what stands in its place
    """

    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str

    def applied(self, source: str) -> str:
        """The source with the change in it."""
        return source[: self.start] + self.new + source[self.end :]

    def __str__(self):
        return f"line {self.line}, {self.kind}: {_short(self.old)} -> {_short(self.new) or 'nothing'}"


def _short(text):
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:40]} ... {text[-15:]}"


class _Places:
    """Offsets of nodes in a source text, whose columns Python counts in bytes."""

    def __init__(self, source):
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = source.splitlines(keepends=True)

    def _offset(self, line, column):
        return self.starts[line - 1] + len(
            self.lines[line - 1].encode()[:column].decode()
        )

    def span(self, node):
        """Where a node begins and ends."""
        return self._offset(node.lineno, node.col_offset), self._offset(
            node.end_lineno, node.end_col_offset
        )

    def between(self, left, right, text):
        """Where an operator stands between two nodes, or None."""
        start, end = self.span(left)[1], self.span(right)[0]
        offset = self.source[start:end].find(text)
        return None if offset < 0 else (start + offset, start + offset + len(text))

    def change(self, node, kind, span, new):
        start, end = span
        return MachineMutant(node.lineno, kind, start, end, self.source[start:end], new)


def statement_at(source: str, line: int) -> str:
    """The innermost statement that holds a line, on one line; of a compound one its first."""
    statements = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]
    innermost = max(statements, key=lambda node: node.lineno)
    innermost.decorator_list = []
    text = ast.unparse(innermost)
    return text.partition("\n")[0] if hasattr(innermost, "body") else text


def machine_mutants(source: str) -> list[MachineMutant]:
    """Every mutant of a module's source that is Python still, in the order of the lines.

    Operators and comparisons change into their neighbours, `and` into `or`; an `if` is always or never taken; numbers
    grow by one, True and False change places; a slice loses a bound; a call loses a keyword or its last argument, or
    has two in the other order; a default goes, and so does a statement that has no name. Texts and annotations stay.
    """
    tree, places = ast.parse(source), _Places(source)
    mutants = sorted(
        set(_walk(tree, places)),
        key=lambda mutant: (mutant.start, mutant.end, mutant.kind, mutant.new),
    )
    return [
        mutant
        for mutant in mutants
        if mutant.old != mutant.new and _is_python(mutant, tree, places)
    ]


def _is_python(mutant, tree, places):
    """Whether the statement of the module that the mutant changes is Python still: the others are as they were."""
    spans = [places.span(statement) for statement in tree.body]
    start, end = next(
        (start, end)
        for start, end in spans
        if start <= mutant.start and mutant.end <= end
    )
    try:
        ast.parse(
            places.source[start : mutant.start]
            + mutant.new
            + places.source[mutant.end : end]
        )
    except SyntaxError:
        return False
    return True


def _is_overload(node):
    """A signature for checkers of types alone, which nothing runs."""
    return isinstance(node, ast.FunctionDef) and any(
        ast.unparse(decorator) == "overload" for decorator in node.decorator_list
    )


def _walk(node, places) -> Iterator[MachineMutant]:
    if isinstance(node, ast.JoinedStr) or _is_overload(node):
        return
    rule = _RULES.get(type(node))
    if rule:
        yield from rule(node, places)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, places)


def _swapped(node, operator, left, right, places):
    if type(operator) in SWAPS:
        old, new = SWAPS[type(operator)]
        span = places.between(left, right, old)
        if span:
            yield places.change(node, "operator", span, new)


def _binary(node, places):
    yield from _swapped(node, node.op, node.left, node.right, places)


def _augmented(node, places):
    yield from _swapped(node, node.op, node.target, node.value, places)
    yield places.change(node, "statement", places.span(node), "pass")


def _boolean(node, places):
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from _swapped(node, node.op, left, right, places)


def _compare(node, places):
    operands = [node.left, *node.comparators]
    for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
        yield from _swapped(node, operator, left, right, places)


def _unary(node, places):
    if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        start, end = places.span(node)
        inside = places.span(node.operand)
        yield places.change(node, "sign", (start, end), places.source[slice(*inside)])


def _constant(node, places):
    if isinstance(node.value, bool):
        yield places.change(node, "constant", places.span(node), str(not node.value))
    elif isinstance(node.value, int):
        yield places.change(node, "constant", places.span(node), str(node.value + 1))
    elif isinstance(node.value, float):
        yield places.change(
            node,
            "constant",
            places.span(node),
            repr(node.value * 2 if node.value else 1.0),
        )


def _branch(node, places):
    for taken in ("True", "False"):
        yield places.change(node.test, "branch", places.span(node.test), taken)


def _slice(node, places):
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            yield places.change(bound, "slice", places.span(bound), "")


def _call(node, places):
    text, positional = places.source, [places.span(argument) for argument in node.args]
    ordered = (
        getattr(node.func, "id", getattr(node.func, "attr", "")) not in COMMUTATIVE
    )
    for (start, middle), (after, end) in (
        zip(positional, positional[1:], strict=False) if ordered else ()
    ):
        swapped = text[after:end] + text[middle:after] + text[start:middle]
        yield places.change(node, "order", (start, end), swapped)
    # an argument that is not the last one leaves an error when it goes; a keyword may leave a default
    if len(positional) > 1:
        yield places.change(
            node, "argument", (positional[-2][1], positional[-1][1]), ""
        )
    ends = [places.span(argument)[1] for argument in (*node.args, *node.keywords)]
    for keyword in node.keywords:
        start, end = places.span(keyword)
        before = max((argument for argument in ends if argument <= start), default=None)
        yield places.change(
            node, "argument", (start if before is None else before, end), ""
        )


def _defaults(node, places):
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = list(
        zip(
            plain[len(plain) - len(node.args.defaults) :],
            node.args.defaults,
            strict=True,
        )
    )
    pairs += [
        pair
        for pair in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if pair[1] is not None
    ]
    for name, default in pairs:
        start = places.span(name)[1]
        yield places.change(name, "default", (start, places.span(default)[1]), "")


def _statement(node, places):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield places.change(node, "statement", places.span(node), "pass")


_RULES = {
    ast.BinOp: _binary,
    ast.AugAssign: _augmented,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.If: _branch,
    ast.IfExp: _branch,
    ast.While: lambda node, places: [
        places.change(node.test, "branch", places.span(node.test), "False")
    ],
    ast.Slice: _slice,
    ast.Call: _call,
    ast.FunctionDef: _defaults,
    ast.Lambda: _defaults,
    ast.Expr: _statement,
    ast.Raise: _statement,
}
