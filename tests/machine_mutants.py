"""Mutants made by machine: every small change of a source text that a rule of the table makes, one at a time.

The catalogue of `mutant_catalogue` says what people get wrong in a formula. These say what a test suite does not look
at: conditions, defaults, the wiring between functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

# Operators, each beside what it changes into.
SWAPS = """
Add + -     Sub - +     Mult * /    Div / *      FloorDiv // *   Mod % //    Pow ** *
BitAnd & |  BitOr | &   And and or  Or or and    Is is is~not    IsNot is~not is
Lt < <=     LtE <= <    Gt > >=     GtE >= >     Eq == !=        NotEq != ==
In in not~in            NotIn not~in in
"""
SWAPS = dict(
    (name, (old.replace("~", " "), new.replace("~", " ")))
    for name, old, new in zip(*[iter(SWAPS.split())] * 3, strict=True)
)

# A value that refuses, where a function returns it.
REFUSAL = re.compile(
    r"\w*refused\(|(Verdict|replace)\(.*(WRONG|NOT_READ|REFUTED)|(False|None)$|f?['\"].* "
)
# Methods that state a condition, names of what conditions are put into, and names of functions that check.
STATING = ("needs", "note_problem")
CONDITIONS = re.compile(
    r"assum|condition|domain|fault|guard|kink|problem|promise|words|wrong|zeros"
)
CHECKING = re.compile(
    r"_?(check|deny|ensure|forbid|limit|need|refuse|require|restrict|setrlimit|switch_off)"
)
# Never true, but nothing that Python leaves out when it compiles: a generator stays one.
NEVER = "if not __name__: "

# What takes its arguments in any order.
COMMUTATIVE = "min max maximum minimum result_type promote_types promoted".split()


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


@dataclass(frozen=True)
class Guard(MachineMutant):
    """A refusal or a side condition that is gone. Args: code: of it, after the `if` that it stands in"""

    code: str

    def __str__(self):
        return f"line {self.line}, guard: {self.code}"


class _Places:
    """Offsets of nodes in a source text, whose columns Python counts in bytes."""

    def __init__(self, source):
        self.source, self.lines = source, source.splitlines(keepends=True)
        self.starts = list(accumulate(map(len, self.lines), initial=0))

    def span(self, node):
        """Where a node begins and ends."""
        ends = (
            (node.lineno, node.col_offset),
            (node.end_lineno, node.end_col_offset),
        )
        return tuple(
            self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())
            for line, column in ends
        )

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
    for start, end in map(places.span, tree.body):
        if start <= mutant.start and mutant.end <= end:
            text = places.source
            text = text[start : mutant.start] + mutant.new + text[mutant.end : end]
    try:
        ast.parse(text)
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


def _operators(node, places):
    """Each operator of a node changed into its neighbour."""
    if isinstance(node, ast.BinOp):
        operators, operands = [node.op], [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        operators, operands = [node.op], [node.target, node.value]
        yield places.change(node, "statement", places.span(node), "pass")
    elif isinstance(node, ast.BoolOp):
        operators, operands = [node.op] * (len(node.values) - 1), node.values
    else:
        operators, operands = node.ops, [node.left, *node.comparators]
    for operator, (left, right) in zip(operators, pairwise(operands), strict=True):
        old, new = SWAPS.get(type(operator).__name__, ("", ""))
        start, end = places.span(left)[1], places.span(right)[0]
        offset = places.source[start:end].find(old)
        if old and offset >= 0:
            span = start + offset, start + offset + len(old)
            yield places.change(node, "operator", span, new)


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
        new = repr(node.value * 2 if node.value else 1.0)
        yield places.change(node, "constant", places.span(node), new)


def _branch(node, places):
    for taken in ("False",) if isinstance(node, ast.While) else ("True", "False"):
        yield places.change(node.test, "branch", places.span(node.test), taken)


def _slice(node, places):
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            yield places.change(bound, "slice", places.span(bound), "")


def _call(node, places):
    text, positional = places.source, [places.span(argument) for argument in node.args]
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    for (start, middle), (after, end) in pairwise(positional):
        if name not in COMMUTATIVE:
            swapped = text[after:end] + text[middle:after] + text[start:middle]
            yield places.change(node, "order", (start, end), swapped)
    # an argument that is not the last one leaves an error when it goes; a keyword may leave a default
    if len(positional) > 1:
        span = positional[-2][1], positional[-1][1]
        yield places.change(node, "argument", span, "")
    ends = [places.span(argument)[1] for argument in (*node.args, *node.keywords)]
    for keyword in node.keywords:
        start, end = places.span(keyword)
        before = max((e for e in ends if e <= start), default=start)
        yield places.change(node, "argument", (before, end), "")


def _defaults(node, places):
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(reversed(plain), reversed(node.args.defaults), strict=False)]
    pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    for name, default in pairs:
        if default is not None:
            span = places.span(name)[1], places.span(default)[1]
            yield places.change(name, "default", span, "")


def _statement(node, places):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield places.change(node, "statement", places.span(node), "pass")


_RULES = {
    **dict.fromkeys((ast.BinOp, ast.AugAssign, ast.BoolOp, ast.Compare), _operators),
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.If: _branch,
    ast.IfExp: _branch,
    ast.While: _branch,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.FunctionDef: _defaults,
    ast.Lambda: _defaults,
    ast.Expr: _statement,
    ast.Raise: _statement,
}


def guards(source: str) -> list[Guard]:
    """Each guard of a module's source, gone.

    A guard is a `raise` or an `assert`, a returned refusal or sentence, a sentence that is yielded, a call of what
    checks, or a condition that is appended; of `if condition: raise` the raise goes. Its code is cut at 160 letters.
    """
    places, made = _Places(source), []
    for statement, test, is_last in _statements(ast.parse(source).body, "", True):
        if not _is_guard(statement, is_last):
            continue
        start, end = places.span(statement)
        old, code = source[start:end], ast.unparse(statement)
        # behind the last statement nothing would answer otherwise
        is_predicate = is_last and code == "return False"
        new = "return True" if is_predicate else NEVER + old
        text = " ".join(f"{test}{code}".split())[:160].rstrip()
        made.append(Guard(statement.lineno, "guard", start, end, old, new, text))
    return made


def _statements(body, test, is_last):
    """(statement, "if ...: " of the `if` around it or nothing, whether its function ends behind it) of each."""
    for statement in body:
        is_end = is_last and statement is body[-1]
        yield statement, test, is_end
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield from _statements(statement.body, "", True)
            continue
        is_end = is_end and not isinstance(statement, ast.For | ast.While)
        branch = ""
        if isinstance(statement, ast.If):
            branch = f"if {ast.unparse(statement.test)}: "
        yield from _statements(getattr(statement, "body", []), branch, is_end)
        for name in ("orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []), "", is_end)
        for name in ("handlers", "cases"):
            for inner in getattr(statement, name, []):
                yield from _statements(inner.body, "", is_end)


def _is_guard(statement, is_last):
    if isinstance(statement, ast.Raise | ast.Assert):
        return True
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Return) and value is not None:
        text = ast.unparse(value)
        is_answer = text == "None" or text.startswith(("'", '"', "f'", 'f"'))
        return bool(REFUSAL.match(text)) and not (is_last and is_answer)
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        return isinstance(target, ast.Subscript) and _is_condition(target.value)
    if isinstance(statement, ast.AugAssign):
        return _is_condition(statement.target)
    if isinstance(value, ast.Yield):
        return isinstance(value.value, ast.JoinedStr | ast.Constant)
    if not isinstance(statement, ast.Expr) or not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and _is_condition(value.func.value):
        return True
    name = _last_name(value.func)
    return name in STATING or bool(CHECKING.match(name))


def _is_condition(node):
    return bool(CONDITIONS.search(_last_name(node)))


def _last_name(node):
    """The name of a variable or of an attribute; nothing of anything else."""
    return getattr(node, "id", getattr(node, "attr", ""))
