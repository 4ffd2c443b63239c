"""Python's syntax, read on values of any kind: one walker, which is told what its values do."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from types import EllipsisType
from typing import Any

from sympy import Rational

from ..symbolic.patience import look
from .nodes import nodes_of, parts_of
from .values import Misfit, NotRead, Wrong, described


class Returned(Exception):
    """The value of a return statement."""


class Walker:
    """Reads statements and expressions, on the names that are bound.

    A subclass has a method read_X for every other statement X and value_X for every other expression X, and says what
    a name is and what a call does, and `assign_part` for a target that is neither a name nor a tuple.

    Args:  values: what values do: `integer` and `real` of a number as it is written; `truth`, None where it is not
           decided; `opposite` of a truth value; `operate`, `negative`, `compare`, `attribute` and `item`
    """

    def __init__(self, values: Any):
        self.values = values

    line = 0

    def execute(self, body: Sequence[ast.stmt], names: Any) -> None:
        """Read statements one after the other; NotRead says in which line."""
        for node in body:
            look()
            self.line = node.lineno
            read = getattr(self, f"read_{type(node).__name__}", None)
            try:
                if read is None:
                    raise NotRead(f"the statement {ast.unparse(node).split()[0]}")
                read(node, names)
            except Exception as reason:
                if getattr(reason, "line", None) is None:
                    reason.line = node.lineno
                raise

    def returned(self, body: Sequence[ast.stmt], names: Any) -> Any:
        """What a function of these statements returns."""
        try:
            self.execute(body, names)
        except Returned as result:
            return result.args[0]
        return None

    def evaluate(self, node: ast.expr, names: Any) -> Any:
        """The value of an expression."""
        read = getattr(self, f"value_{type(node).__name__}", None)
        if read is None:
            raise NotRead(f"the expression {ast.unparse(node)} is not read")
        return read(node, names)

    # statements

    def read_Pass(self, node, names):
        """Nothing."""

    def read_Expr(self, node, names):
        """A call, or a docstring."""
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, names)

    def read_Return(self, node, names):
        """The value of the function."""
        raise Returned(node.value and self.evaluate(node.value, names))

    def read_Assign(self, node, names):
        """name = value."""
        value = self.evaluate(node.value, names)
        for target in node.targets:
            self.assign(target, value, names)

    def read_AnnAssign(self, node, names):
        """name: annotation = value."""
        if node.value is None and not isinstance(node.target, ast.Name):
            raise NotRead("an annotation of what is no name, which Python evaluates")
        check_annotation(node.annotation)
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, names), names)

    def assign(self, target: ast.expr, value: Any, names: Any) -> None:
        """Give a name its value, or each name of a tuple."""
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, value, names)
            case _:
                self.assign_part(target, value, names)

    def assign_part(self, target, value, names):
        """Write a part of a value."""
        raise NotRead(f"an assignment to {ast.unparse(target)}, which is no name")

    def _unpack(self, targets, value, names):
        if not isinstance(value, tuple | list):
            raise NotRead(f"{described(value)} unpacked into several names")
        if any(isinstance(target, ast.Starred) for target in targets):
            raise NotRead("a name with a star that takes several values")
        if len(value) != len(targets):
            raise Misfit(f"{len(value)} values for {len(targets)} names")
        for target, part in zip(targets, value, strict=True):
            self.assign(target, part, names)

    # expressions

    def value_Tuple(self, node, names):
        """A tuple."""
        return tuple(self.spread(node.elts, names))

    def value_List(self, node, names):
        """A list."""
        return list(self.spread(node.elts, names))

    def spread(self, nodes: Sequence[ast.expr], names: Any) -> Iterator[Any]:
        """The values of several expressions, those with a star one by one."""
        for node in nodes:
            if isinstance(node, ast.Starred):
                values = self.evaluate(node.value, names)
                if not isinstance(values, tuple | list):
                    raise NotRead(f"a star before {described(values)}")
                yield from values
            else:
                yield self.evaluate(node, names)

    def value_BinOp(self, node, names):
        """An operation of two values, by the name of its node."""
        left = self.evaluate(node.left, names)
        right = self.evaluate(node.right, names)
        return self.values.operate(type(node.op).__name__, left, right)

    def value_Constant(self, node, names):
        """A number, text, flag, None or ... as it is written."""
        value = node.value
        match value:
            case None | bool() | str() | EllipsisType():
                return value
            case int() | float() if abs(value) > sys.float_info.max:
                raise NotRead("a number that float64 does not hold")
            case int():
                return self.values.integer(value)
            case float():
                return self.values.real(Rational(repr(value)))
        raise NotRead(f"{value!r}: this kind of constant is not read")

    def value_UnaryOp(self, node, names):
        """`not` and a sign."""
        value = self.evaluate(node.operand, names)
        match node.op:
            case ast.Not():
                return self.values.opposite(value)
            case ast.USub():
                return self.values.negative(value)
        raise NotRead(f"{ast.unparse(node)}: this operation is not read")

    def value_IfExp(self, node, names):
        """A choice of two values."""
        test = self.evaluate(node.test, names)
        truth = self.values.truth(test)
        if truth is None:
            return self.either(test, node, names)
        return self.chosen(test, truth, node, names)

    def chosen(self, test: Any, truth: bool, node: ast.IfExp, names: Any) -> Any:
        """One of two values, by a test that is decided."""
        return self.evaluate(node.body if truth else node.orelse, names)

    def value_Compare(self, node, names):
        """A comparison, or a chain of them."""
        left, result = self.evaluate(node.left, names), True
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator, names)
            result = self.values.compare(type(operator).__name__, left, right)
            if len(node.ops) > 1 and not self.values.truth(result):
                return False
            left = right
        return result

    def value_Slice(self, node, names):
        """A slice."""
        ends = (node.lower, node.upper, node.step)
        return slice(*[end and self.evaluate(end, names) for end in ends])

    def value_Subscript(self, node, names):
        """An entry, or a view."""
        owner = self.evaluate(node.value, names)
        return self.values.item(owner, self.evaluate(node.slice, names))

    def value_Attribute(self, node, names):
        """An attribute."""
        return self.values.attribute(self.evaluate(node.value, names), node.attr)

    def value_Call(self, node, names):
        """The value of a call."""
        target = self.evaluate(node.func, names)
        return self.call(target, *self.arguments(node, names))

    def arguments(self, node: ast.Call, names: Any) -> tuple[list, dict]:
        """The values of a call's arguments, without and with names."""
        args, options = list(self.spread(node.args, names)), {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, names)
            pairs = {keyword.arg: value}
            if keyword.arg is None:
                pairs = value
            if not isinstance(pairs, dict) or pairs.keys() & options.keys():
                raise NotRead("a call with ** of what is no dict of other arguments")
            options |= pairs
        return args, options


def runs(node: ast.expr) -> bool:
    """Whether an expression may run a function, or bind a name."""
    kinds = ast.Call | ast.NamedExpr | ast.comprehension | ast.Await | ast.JoinedStr
    return any(isinstance(part, kinds) for part in nodes_of(node))


def check_annotation(annotation: ast.expr) -> None:
    """Refuse an annotation that calls a function, or may end in an error where Python evaluates it.

    For a text with annotations. Without it `def f(x: patch()): ...` is proved, where patch puts another function in the
    place of np.sqrt, and so is `def f(x, k: "Tensor" | None = None): ...`, whose import ends in a TypeError.
    """
    if runs(annotation):
        raise NotRead(f"{ast.unparse(annotation)}, an annotation that calls")
    if not is_type(annotation):
        raise NotRead(f"{ast.unparse(annotation)}, an annotation that is no type")


def is_type(annotation: ast.expr) -> bool:
    """Whether an annotation has the form of a type: a name, a text, A[B, C] or A | B."""
    match annotation:
        case ast.Name() | ast.Constant(value=str() | None):
            return True
        case ast.Attribute(value=ast.Name() | ast.Attribute() as owner):
            return is_type(owner)
        case ast.Subscript(
            value=ast.Name() | ast.Attribute() as generic, slice=arguments
        ):
            is_tensor = ast.unparse(generic).rpartition(".")[2] == "Tensor"
            return is_type(generic) and not is_tensor and _is_argument(arguments)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            # Python has no | of a text, and none of None and None
            written = [p.value for p in (left, right) if isinstance(p, ast.Constant)]
            is_made = written in ([], [None])
            return is_made and is_type(left) and is_type(right)
    return False


def _is_argument(node):
    """Whether an expression may stand in the brackets of a type."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_argument, parts))
        case ast.Constant():
            return True
    return is_type(node)


def positional(arguments: ast.arguments) -> list[str]:
    """The names of parameters that a call need not name."""
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args)]


def has_marks(arguments: ast.arguments) -> bool:
    """Whether there is * or / in a header, which Triton does not compile."""
    return bool(arguments.vararg or arguments.posonlyargs or arguments.kwonlyargs)


def defaults_of(arguments: ast.arguments) -> dict[str, ast.expr]:
    """{parameter: its default, as it is written}."""
    pairs = zip(positional(arguments)[::-1], arguments.defaults[::-1], strict=False)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return dict(pairs) | {a.arg: value for a, value in named if value is not None}


def signature_of(arguments: ast.arguments, defaults: Mapping) -> Signature:
    """A header as a signature, whose annotations are names."""
    parameters = []
    for nodes, kind in (
        (arguments.posonlyargs, Parameter.POSITIONAL_ONLY),
        (arguments.args, Parameter.POSITIONAL_OR_KEYWORD),
        ([arguments.vararg] * bool(arguments.vararg), Parameter.VAR_POSITIONAL),
        (arguments.kwonlyargs, Parameter.KEYWORD_ONLY),
        ([arguments.kwarg] * bool(arguments.kwarg), Parameter.VAR_KEYWORD),
    ):
        for node in nodes:
            default = defaults.get(node.arg, Parameter.empty)
            annotation = getattr(node.annotation, "id", "")
            parameters.append(
                Parameter(node.arg, kind, default=default, annotation=annotation)
            )
    return Signature(parameters)


def bound_arguments(
    arguments: ast.arguments, args: Sequence, options: Mapping, defaults: Mapping
) -> dict[str, Any]:
    """{parameter: its value} in a call.

    Raises:  Wrong where the call does not fit
    """
    header = signature_of(arguments, defaults)
    try:
        bound = header.bind(*args, **options)
    except TypeError as reason:
        raise Wrong(f"a call that does not fit: {reason}") from None
    bound.apply_defaults()
    return bound.arguments


def names_in(node: ast.AST) -> set[str]:
    """The names in an expression."""
    return {part.id for part in nodes_of(node) if isinstance(part, ast.Name)}


def stored(body: list[ast.stmt]):
    """The names that statements assign, as often as they do."""
    for part in parts_of(body):
        if is_stored(part):
            yield part.id


def is_stored(node: ast.AST) -> bool:
    """Whether a node is a name that is assigned."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    return set(stored(body))
