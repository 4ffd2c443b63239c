"""A NumPy or torch function as equations: its text is read statement by statement, on arrays with symbolic shapes.

Nothing of the program runs: what it means is worked out here, from its syntax tree. Only the statements and
expressions below are known, and only the functions of `tables`; everything else is refused with its line. A `try`, a
`while`, a `global`, what is kept between calls, a branch on a size or on a value are among it. A function that the
program calls is read in the same way; what a module holds besides functions and numbers is not.

Here are the statements and expressions of a function's body, and calls. A `Reader` has a room for each other subject:
`modules`, the text around functions; `declarations`, how a function is made; `classes`, autograd Functions and layers;
`introspection`, objects of this process. Their names are bound in `scopes`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sympy
from sympy import Expr

from ..symbolic.symbols import eps
from .array_values import Values, check_key
from .arrays import (
    ARITHMETIC,
    LASTS,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    Split,
    array,
    beside_rows,
    broadcast,
    chosen,
    copied,
    elementwise,
    floats,
    indexed,
    is_integer,
    is_number,
    kind_of,
    note_digits,
    number,
    of_one_rounding,
    plain,
    scalar,
    state,
    use_rounded,
)
from .binding import letter
from .classes import CALLED, Classes
from .declarations import Declarations, check_names
from .host import AUTOCAST, is_super, only_speed
from .introspection import Introspection
from .launch import Caller, Launched
from .modules import Modules
from .nodes import nodes_of
from .over_rows import Listed, Rows, Turn
from .python_objects import (
    ERRSTATE,
    INFERENCE,
    KNOWN,
    OF_CONFIG,
    QUIET,
    Above,
    Config,
    Context,
    Function,
    FunctionClass,
    Instance,
    LastingDict,
    LastingList,
    Layer,
    Live,
    Method,
    Module,
    Named,
    flat,
)
from .scopes import FORWARD, MODULE, SETUP, Scope, local_names
from .sizes import bits_of, doubled
from .syntax import Returned, Walker, bound_arguments
from .tables.numpy import of_dtype
from .tables.python import LONGEST, iterated
from .tables.signatures import Fields, Guard, Known, Largest, Quiet
from .values import LeftOut

DEEPEST = 40
# what a running sum is made of; the last that is added to it
CELLS = ("", "int", "float", "array")
# what np.errstate has a word for
ERRORS = {"all", "divide", "over", "under", "invalid"}
# how a package that has other GPUs, too, calls torch.cuda.device
DEVICES = ".torch_device_fn.device"
EPSILONS = ("eps", "EPS", "epsilon", "EPSILON")
# what is asked of a tensor besides its numbers
LAYOUT = {
    *("stride", "shape", "size", "numel", "dtype", "device", "ndim", "dim"),
    *("element_size", "is_contiguous"),
}


def doubled_name(node: ast.While) -> str | None:
    """The name that a loop doubles, and does nothing else; None of another loop."""
    match node:
        case ast.While(body=[ast.AugAssign(ast.Name(name), operator, step)], orelse=[]):
            pass
        case ast.While(
            body=[
                ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(left), operator, step))
            ],
            orelse=[],
        ) if left == name:
            pass
        case _:
            return None
    is_doubled = isinstance(operator, ast.Mult) and getattr(step, "value", 0) == 2
    is_shifted = isinstance(operator, ast.LShift) and getattr(step, "value", 0) == 1
    return name if is_doubled or is_shifted else None


class Raised(NotRead):
    """An error that a launcher raises on one way through its branches on sizes."""


class Reader(Walker):
    """Reads one program, once.

    Args:  symbols: whether a module's eps stands for the symbol eps, whatever its value
           compiled: of a program that a compiler reads, what an object of Python's is to it, else None
    """

    def __init__(
        self, symbols: bool = True, compiled: Callable[[Any], Any] | None = None
    ):
        super().__init__(Values())
        self.symbols, self.compiled = symbols, compiled
        self.introspection, self.modules = Introspection(self), Modules(self)
        self.declarations, self.classes = Declarations(self), Classes(self)
        self.restart()
        # whether torch.inference_mode stands in what is read
        self.infers = False
        self.caller = Caller(self.call, self._set_by_decorator)

    def restart(self) -> None:
        """Begin a trace."""
        self.used: dict[str, Expr] = {}
        self.depth, self.phase = 0, FORWARD
        self.classes.asked = False
        # the call whose value nobody uses
        self.statement: ast.expr | None = None

    # what stands around the program

    def constant(self, name: str, value: Any) -> Any:
        """The value of a module's name; a positive number that is called eps is the symbol."""
        floating = isinstance(value, Scalar) and value.kind == "float"
        if self.symbols and floating and name in EPSILONS and value.e.is_positive:
            self.used[name] = value.e
            if len(set(self.used.values())) > 1:
                raise NotRead(f"two numbers that are called eps: {self.used}")
            return Scalar(eps, "float")
        return value

    # statements

    def _holds(self, test, scope):
        """Whether a condition holds, at every size."""
        return self.values.decided(self.evaluate(test, scope))

    def read_If(self, node, scope):
        """A branch that is the same at every size, or by which a launcher chooses numbers of warps."""
        if state().way and only_speed(node):
            for name in local_names([node]):
                scope.names[name] = Scalar(letter(name), "int")
            return
        chosen = self._holds(node.test, scope)
        self.execute(node.body if chosen else node.orelse, scope)

    def read_While(self, node, scope):
        """A launcher's loop that doubles a number while it is below sizes: the next power of 2.

        For `while block < n: block *= 2`. It stops a loop that does anything else.
        """
        tests = [node.test]
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And):
            tests = node.test.values
        name, bounds = doubled_name(node), []
        for test in tests:
            match test:
                case ast.Compare(ast.Name(left), [ast.Lt() | ast.LtE()], [bound]):
                    more = int(isinstance(test.ops[0], ast.LtE))
                case _:
                    left = ""
            names = [n.id for n in nodes_of(test) if isinstance(n, ast.Name)]
            if not state().way or left != name or names.count(name) > 1:
                raise NotRead("the statement while")
            bounds.append(plain(self._size(bound, scope)) + more)
        start = self._size(ast.Name(name, ast.Load()), scope)
        scope.names[name] = number(doubled(plain(start), bounds), "int")

    def _size(self, node, scope):
        """An integer of a launcher."""
        value = self.evaluate(node, scope)
        if not is_integer(value):
            raise NotRead("a while loop over what are no integers")
        return value

    def read_Assert(self, node, scope):
        """What holds at every size."""
        if self._holds(node.test, scope):
            return
        if state().way:
            raise Raised(ast.unparse(node.test))
        raise NotRead("an assertion that fails")

    def read_Raise(self, node, scope):
        """An error, on one way through a launcher."""
        if state().way is None:
            raise NotRead("the statement raise")
        raise Raised(ast.unparse(node))

    def read_Import(self, node, scope):
        """A library, or a module that is not read."""
        self.modules.read_Import(node, scope)

    def read_ImportFrom(self, node, scope):
        """Names of a library, or of a module that is not read."""
        self.modules.read_ImportFrom(node, scope)

    def read_Try(self, node, scope):
        """Imports of a module, which are taken to succeed; of another `try` nothing is known."""
        self.modules.read_Try(node, scope)

    def read_FunctionDef(self, node, scope):
        """A function, or a kernel that it launches."""
        self.declarations.read_FunctionDef(node, scope)

    def read_ClassDef(self, node, scope):
        """An autograd Function, or a layer."""
        self.classes.read_ClassDef(node, scope)

    def read_Expr(self, node, scope):
        """A call, or a docstring; the __init__ of torch.nn.Module lets a layer have parameters."""
        if not self.classes.set_up(node.value, scope):
            self.statement = node.value
            super().read_Expr(node, scope)

    def read_With(self, node, scope):
        """A block without gradients."""
        for part in node.items:
            if self._is_no_autocast(part.context_expr, scope):
                continue
            quiet = part.optional_vars is None and self.is_quiet(
                part.context_expr, scope
            )
            value = None
            if state().way and not quiet:
                value = self.evaluate(part.context_expr, scope)
            if not quiet and not isinstance(value, Guard):
                raise NotRead("a with of another kind than torch.no_grad()")
            state().cut |= quiet
        self.execute(node.body, scope)

    def _is_no_autocast(self, node, scope):
        """Whether a `with` switches torch's automatic choice of dtypes off.

        For `torch.autocast("cuda", enabled=False)`. It stops one that is on, in which a mean may be of another dtype.
        """
        if not isinstance(node, ast.Call):
            return False
        path = self.declarations.path_of(node.func, scope)
        given = {word.arg: word.value for word in node.keywords}
        parts = [*node.args, *given.values()]
        calls = [n for part in parts for n in nodes_of(part) if isinstance(n, ast.Call)]
        is_off = getattr(given.get("enabled"), "value", None) is False
        return path in AUTOCAST and is_off and not calls

    def is_quiet(self, node: ast.expr, scope: Any) -> bool:
        """Whether a call makes a context in which numbers are the same, such as torch.no_grad() and np.errstate.

        For `with np.errstate(divide="ignore")`. It stops np.errstate(all=g(y)), where g changes y.
        """
        match node:
            case ast.Call(called, [], keywords):
                pairs = {
                    word.arg: getattr(word.value, "value", None) for word in keywords
                }
            case _:
                return False
        value = self.evaluate(called, scope)
        if value is INFERENCE and not pairs:
            self.infers = True
            return True
        if value is not ERRSTATE:
            return value is QUIET and not pairs
        return pairs.keys() <= ERRORS and {*pairs.values()} <= {"ignore", "warn"}

    def read_Delete(self, node, scope):
        """A name that is gone."""
        for target in node.targets:
            if not isinstance(target, ast.Name):
                raise NotRead("del of a part")
            scope.load(target.id)
            del scope.names[target.id]

    def read_Assign(self, node, scope):
        """name = value, or several from a generator."""
        match node:
            case ast.Assign([ast.Tuple() | ast.List() as target], ast.GeneratorExp()):
                self.assign(target, self._comprehension(node.value, scope), scope)
            case _:
                super().read_Assign(node, scope)

    def read_AnnAssign(self, node, scope):
        """name: annotation = value; of a function's own name Python does not evaluate the annotation."""
        if self.phase == MODULE:
            check_names(node.annotation, scope)
        super().read_AnnAssign(node, scope)

    def _unpack(self, targets, value, scope):
        """Give each name its value, and one with a star a list of what is left for it."""
        stars = [k for k, name in enumerate(targets) if isinstance(name, ast.Starred)]
        if len(stars) == 1 and isinstance(value, tuple | list):
            first, last = stars[0], len(value) - len(targets) + stars[0] + 1
            if first <= last:
                targets = [getattr(name, "value", name) for name in targets]
                value = [*value[:first], list(value[first:last]), *value[last:]]
        super()._unpack(targets, value, scope)

    def assign_part(self, target, value, scope):
        """Write an entry of an array, of a list or of ctx."""
        match target:
            case ast.Subscript():
                self._write(target, value, scope)
            case ast.Attribute(attr=name):
                self.classes.write(self.evaluate(target.value, scope), name, value)

    def _write(self, target, value, scope):
        owner = self.evaluate(target.value, scope)
        key = self.evaluate(target.slice, scope)
        if isinstance(owner, LastingList | LastingDict):
            raise NotRead(f"a change of {LASTS}")
        if isinstance(owner, list | dict):
            if state().loops:
                raise NotRead("a write to a list or dict in a loop over rows")
            if isinstance(owner, list) or not isinstance(key, str):
                check_key(owner, key)
            owner[key] = value
            return
        if not isinstance(owner, Array):
            raise NotRead(f"a write to {type(owner).__name__}")
        state().line = target.lineno
        view = indexed(owner, key, write=True)
        value = _operand(view, value)
        if broadcast(view.shape, _as_written(value, view)) != view.shape:
            raise Misfit("a value that does not fit where it is written")
        view.write(value.e)
        of_one_rounding(view, value)

    def read_AugAssign(self, node, scope):
        """name op= value, which changes an array in place."""
        operation = type(node.op).__name__
        match node.target:
            case ast.Name(id=name):
                old, value = scope.load(name), self.evaluate(node.value, scope)
                state().line = node.lineno
                scope.names[name] = self._changed(operation, old, value)
            case ast.Subscript(value=owner, slice=key):
                owner, key = self.evaluate(owner, scope), self.evaluate(key, scope)
                value = self.evaluate(node.value, scope)
                state().line = node.lineno
                if not isinstance(owner, Array):
                    words = f"an entry of {type(owner).__name__} changed in place"
                    raise NotRead(words)
                _in_place(indexed(owner, key, write=True), operation, value)
            case _:
                raise NotRead("an attribute that is changed in place")

    def _changed(self, operation, old, value):
        """What a name holds after name op= value."""
        match old:
            case Array() if old.mutable:
                return _in_place(old, operation, value)
            case Array() if not old.memory.scalar:
                raise NotRead("a change of an array without axes")
            case list():
                raise NotRead("a list that grows by +=")
        return self.values.operate(operation, old, value)

    def read_Added(self, node, scope):
        """total = total + term, for a term that leaves the total's shape as it is.

        For a total of zeros(N). It stops zeros(1), to which += of N columns is an error, and + makes a new array.
        """
        name, operation = node.target.id, type(node.op).__name__
        total, term = scope.load(name), self.evaluate(node.value, scope)
        state().line = node.lineno
        if isinstance(total, Array) and not total.memory.cell:
            zeros = array(total.shape, sympy.S.Zero, total.library, total.dtype)
            result = self.values.operate(operation, zeros, term)
            if result.shape != total.shape:
                raise NotRead("a sum of terms that have another shape")
            total.memory.dtype = result.dtype
        scope.names[name] = self._changed(operation, total, term)

    def read_For(self, node, scope):
        """A loop over values, or over all rows or columns."""
        if node.orelse:
            raise NotRead("for with else")
        items = self.evaluate(node.iter, scope)
        if not (isinstance(items, Rows) and items.shared):
            items = iterated(items)
        if isinstance(items, Rows):
            self._all_turns(node, items, scope)
            return
        for count, item in enumerate(items):
            if count > LONGEST:
                raise NotRead("a loop that goes on and on")
            self.assign(node.target, item, scope)
            self.execute(node.body, scope)

    def _all_turns(self, node, rows, scope):
        """A loop over all rows, or columns: its body once."""
        body, added = _with_sums(node, scope.names)
        before = [scope.names[name] for name in added]
        scope.names.update({name: _apart(scope.names[name]) for name in added})
        calls = _lists_that_grow(node, scope.names)
        grown = _grown_lists(node, scope.names, calls)
        # none of them is a list of the turns of a loop within this one
        scope.forget(set(calls))
        own, sums = local_names([node.target, *body], in_place=False), []
        for name in local_names(body) - own:
            value = scope.names.get(name)
            if is_number(value) or isinstance(value, Array) and not value.mutable:
                scope.names[name] = _running(value)
                sums.append(name)
            elif not isinstance(value, Array):
                scope.forget({name})
        turn = Turn(rows.size, rows.shared)
        state().loops.append(turn)
        scope.forget(own)
        self.assign(node.target, rows.item(turn), scope)
        entries = {}
        try:
            for statement in body:
                if statement in grown:
                    value = self.evaluate(statement.value.args[0], scope)
                    entries[grown[statement]] = _entry_of(turn, value)
                else:
                    self.execute([statement], scope)
        except Returned:
            raise NotRead("a return from a loop over rows") from None
        state().loops.pop()
        _check_starts(before, turn)
        scope.forget(own)
        for name, value in entries.items():
            scope.names[name] = Listed(turn, value)
        for name in sums:
            scope.names[name] = _added_up(scope.names[name])

    # expressions

    def value_BinOp(self, node, names):
        """An operation of two values, whose digits may cancel in its line."""
        left = self.evaluate(node.left, names)
        right = self.evaluate(node.right, names)
        state().line = node.lineno
        return self.values.operate(type(node.op).__name__, left, right)

    def value_Name(self, node, scope):
        """What a name stands for; of a running sum its value, since a number has no other."""
        value = scope.load(node.id)
        if isinstance(value, Array) and value.memory.cell:
            return scalar(copied(value))
        return value

    def value_Dict(self, node, scope):
        """A dict whose keys are texts."""
        pairs = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.evaluate(key, scope) if key is not None else None
            if not isinstance(name, str | DType):
                raise NotRead("a dict whose keys are no texts and no dtypes")
            pairs[name] = self.evaluate(value, scope)
        return pairs

    def value_JoinedStr(self, node, scope):
        """A text that is put together, of which a launcher's log or error is made."""
        if state().way is None:
            raise NotRead("a text that is put together")
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.evaluate(part.value, scope)
        return Named("a text that is put together")

    def value_Lambda(self, node, scope):
        """A function without a name."""
        return self.declarations.function(node, scope)

    def either(self, test, node, scope):
        """A choice by the values of one entry: of the larger, or by a step function."""
        writes = state().writes
        a, b = self.evaluate(node.body, scope), self.evaluate(node.orelse, scope)
        if state().writes != writes:
            raise NotRead("a choice by values of what is written")
        larger = ast.Compare(node.body, [ast.Gt()], [node.orelse])
        if ast.dump(node.test) == ast.dump(larger):
            return elementwise(sympy.Max, a, b)
        return chosen(test, a, b)

    def value_BoolOp(self, node, scope):
        """`and` and `or`."""
        stop = isinstance(node.op, ast.Or)
        for part in node.values[:-1]:
            value = self.evaluate(part, scope)
            if self.values.decided(value) == stop:
                return value
        return self.evaluate(node.values[-1], scope)

    def value_UnaryOp(self, node, scope):
        """`not`, a sign, or `~` of truth values."""
        match node.op:
            case ast.UAdd() | ast.Invert():
                value = self.evaluate(node.operand, scope)
                return self.values.unary(type(node.op).__name__, value)
        return super().value_UnaryOp(node, scope)

    def value_Attribute(self, node, scope):
        """An attribute."""
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def attribute(self, owner: Any, name: str) -> Any:
        """owner.name."""
        match owner:
            case Module(path=path):
                return self.modules.of_path(f"{path}.{name}")
            case DType(library="numpy") if name == "type":
                return owner
            case Context() | Instance() | FunctionClass() | Layer() | Above():
                return self.classes.attribute(owner, name)
            case Live():
                return self.introspection.attribute(owner, name)
            case Config() if name in OF_CONFIG:
                return owner.attribute(name)
            case Named(name=path) if f"{path}.{name}".endswith(DEVICES) and state().way:
                # of a package for other devices, too
                state().words.append(f"{path} is torch.cuda")
                return KNOWN["torch.cuda.device"]
            case Fields(values=values) if name in values:
                return values[name]
            case Largest() if name == "values":
                return owner[0]
            case int() | Scalar(kind="int") if name == "bit_length" and state().way:
                return partial(number, bits_of(owner), "int")
            case dict() if name in ("items", "keys", "values", "get"):
                return partial(of_dict, owner, name)
            case LastingList() if name == "append":
                raise NotRead(f"a change of {LASTS}")
            case list() if name == "append" and not state().loops:
                return partial(owner.append)
        return self.values.attribute(owner, name)

    def _comprehension(self, node, scope):
        generator, *more = node.generators
        if more or generator.is_async:
            raise NotRead("a comprehension over two things")
        items = iterated(self.evaluate(generator.iter, scope))
        inner = Scope(scope, local_names([generator.target]), self)
        if isinstance(items, Rows):
            if generator.ifs:
                raise NotRead("a comprehension over some rows")
            turn = Turn(items.size)
            state().loops.append(turn)
            self.assign(generator.target, items.item(turn), inner)
            entry = _entry_of(turn, self.evaluate(node.elt, inner))
            state().loops.pop()
            return Listed(turn, entry)
        values = []
        for item in items:
            self.assign(generator.target, item, inner)
            if all([self._holds(test, inner) for test in generator.ifs]):
                values.append(self.evaluate(node.elt, inner))
        return values

    value_ListComp = _comprehension

    def value_DictComp(self, node, scope):
        """A dict of what a loop gives."""
        pairs = ast.Tuple([node.key, node.value], ast.Load())
        items = self._comprehension(ast.ListComp(pairs, node.generators), scope)
        if not isinstance(items, list) or not all(type(key) is str for key, _ in items):
            raise NotRead("a dict whose keys are no texts")
        return dict(items)

    # calls

    def value_Call(self, node, scope):
        """The value of a call."""
        if is_super(node):
            layer = self.classes.above(node, scope)
            if layer:
                return layer
        target = self.evaluate(node.func, scope)
        if isinstance(target, Live) and target.above:
            return target
        if isinstance(target, Launched) and node is not self.statement:
            # the compiled kernel on a GPU, None in the interpreter
            raise NotRead("what a launch returns is used")
        match node:
            case ast.Call(args=[ast.GeneratorExp() as values], keywords=[]) if (
                isinstance(target, Known)
            ):
                return target(self._comprehension(values, scope))
        arguments = self.arguments(node, scope)
        state().line = node.lineno
        return self.call(target, *arguments)

    def call(self, target: Any, args: list, options: dict | None = None) -> Any:
        """The value of a call."""
        options = options or {}
        match target:
            case Known():
                return target(*args, **options)
            case Function():
                return self._call_function(target, args, options)
            case Layer() if self.phase == SETUP:
                return self.classes.made_of(target, args, options)
            case Instance(made=True) if target.layer.forward:
                args = [target, *args]
                return self._call_function(target.layer.forward, args, options)
            case Method(function=function, owner=owner):
                return self._call_function(function, [owner, *args], options)
            case Launched():
                return self.caller.launch(target, args, options)
            case Quiet():
                return None
            case partial() if not options:
                return target(*args)
            case DType() if len(args) == 1 and not options:
                return of_dtype(target, args[0])
        name = getattr(target, "name", type(target).__name__)
        raise NotRead(f"a call of {name}")

    def _call_function(self, function, args, options):
        if function.wrapper:
            return self._call_function(function.wrapper, args, options)
        if self.depth > DEEPEST:
            raise NotRead("calls that go on and on")
        node = function.node
        body = [ast.Return(node.body, lineno=node.lineno)]
        if isinstance(node, ast.FunctionDef):
            body = node.body
        scope = Scope(function.scope, local_names(body), self)
        for part in nodes_of(node):
            if isinstance(part, ast.Yield | ast.YieldFrom):
                raise NotRead("a generator")
            if isinstance(part, ast.Global | ast.Nonlocal):
                raise NotRead("a name of another function that is changed")
        values = bound_arguments(node.args, args, options, function.defaults)
        scope.local |= set(values)
        scope.names |= values
        scope.function = function
        self.depth += 1
        try:
            result = self.returned(body, scope)
        except LeftOut as reason:
            _check_alone(reason, node, scope)
            raise
        finally:
            self.depth -= 1
        if any("_op" in ast.unparse(d) for d in getattr(node, "decorator_list", ())):
            _check_fresh(result, values.values())
        return result

    def _set_by_decorator(self, kernel, setting, values):
        """What a function of triton.heuristics gives."""
        scope = Scope(kernel.scope, {setting.others}, self)
        scope.names[setting.others] = values
        return self.evaluate(setting.value, scope)

    def call_by_names(self, function: Function, values: dict[str, Any]) -> Any:
        """The value of a call with a value for each name; the first parameters may have none for a call."""
        options = dict(values)
        args = []
        for parameter in function.node.args.posonlyargs:
            name = parameter.arg
            args.append(options.pop(name, function.defaults.get(name)))
        return self.call(function, args, options)


def _check_alone(reason, function, scope):
    """Accuses no launch of what another statement may write.

    For `kernel[(M // 2,)](x, y, 0)` before a launch for the other rows, and for a launch in a loop. A launch whose y
    no other statement of the launcher hands on, or writes into, stays wrong.
    """
    names = set()
    for name, value in scope.names.items():
        if isinstance(value, Array) and any(value.memory is t for t in reason.tensors):
            names.add(name)
    uses = 0
    for node in _beside(function, reason.line):
        match node:
            case ast.For() | ast.While():
                uses += reason.line in {getattr(n, "lineno", 0) for n in nodes_of(node)}
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLED:
                continue
            case ast.Call(args=args, keywords=options):
                handed = [*args, *(option.value for option in options)]
                uses += any(names & _tensors_in(argument) for argument in handed)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                uses += name in names
    if uses > 1:
        unread = NotRead(f"{reason}, unless another statement writes them")
        unread.line = reason.line
        raise unread from None


def _beside(node, line) -> Iterator[ast.AST]:
    """All nodes of a function, but those of branches that do not run where a line runs."""
    yield node
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If):
        for way in (node.body, node.orelse):
            if way and way[0].lineno <= line <= way[-1].end_lineno:
                parts = [node.test, *way]
    for part in parts:
        yield from _beside(part, line)


def _tensors_in(node):
    """The names in an argument, but those of which only a shape or a stride is asked."""
    asked = {
        id(part.value)
        for part in nodes_of(node)
        if isinstance(part, ast.Attribute) and part.attr in LAYOUT
    }
    return {
        part.id
        for part in nodes_of(node)
        if isinstance(part, ast.Name) and id(part) not in asked
    }


def _check_fresh(result, arguments):
    """Refuses an operator of torch's that returns an argument, or a view of one, or one tensor twice."""
    taken = [id(value.memory) for value in arguments if isinstance(value, Array)]
    made = [id(value.memory) for value in flat(result) if isinstance(value, Array)]
    if len(set(made)) < len(made) or set(made) & set(taken):
        raise NotRead("an operator that returns an argument, or one tensor twice")


def of_dict(values: dict, name: str, *args: Any) -> Any:
    """What dict.items, keys, values and get return."""
    if name == "get":
        return values.get(*args)
    return list(getattr(values, name)())


def _as_written(value, view):
    """The shape of a value without the axes of one entry before those of the view that it is assigned to.

    For `y[i] = r[None]`, which NumPy, Numba and torch take. It stops `y[i] = r[:, None]`, and an axis in an entry.
    """
    shape = value.shape
    while len(shape) > len(view.shape) > 0 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _operand(target, value):
    """A value that is written into an array, as an array."""
    if is_number(value):
        return array((), plain(value), target.library, target.dtype)
    value = floats(value, "a write")
    if value.library != target.library:
        raise NotRead("a torch tensor written into a NumPy array, or the reverse")
    moved_on = (value.axes, value.turns) != (target.axes, target.turns)
    if value.memory is target.memory and moved_on:
        raise NotRead("an array that is written from another view of itself")
    return value


def _in_place(target, operation, value):
    """What target op= value leaves: the target, or a running sum that has got a shape."""
    if type(target) is Split:
        _in_place(target.rows, operation, beside_rows(value))
        return target
    cell = floats(target, "a change in place").memory.cell
    if cell:
        kind = "array" if isinstance(value, Array) else kind_of(value)
        cell = max(cell, kind, key=CELLS.index)
    value = _operand(target, value)
    if operation not in ARITHMETIC:
        raise NotRead(f"{operation} in place")
    shape = broadcast(target.shape, value.shape)
    if shape != target.shape:
        if not target.memory.cell:
            raise Misfit("a change in place by what has another shape")
        target = _grown(target, shape)
    target.memory.cell = cell
    if target.memory.written:
        note_digits(operation, target.unnoted(), value.e, target.dtype)
    use_rounded(target, value)
    if operation in ("Add", "Sub"):
        target.write(value.e if operation == "Add" else -value.e, add=True)
    else:
        e = value.e
        target.write(ARITHMETIC[operation](target.unnoted(), e))
    return target


class Added(ast.AugAssign):
    """`total = total + term`, which binds a total anew, where += changes it in place."""


def _with_sums(loop, names):
    """(a loop's statements with `total = total + term` as `total += term`, the totals).

    For a number or an array from before the loop. It stops a total that the loop binds to a view by another statement,
    which += would write through.
    """
    body, totals = [], {}
    for statement in loop.body:
        added = _as_added(statement)
        total = added and added.target.id
        others = [other for other in loop.body if other is not statement]
        is_value = isinstance(names.get(total), int | Scalar | Array)
        if is_value and total not in local_names([loop.target, *others]):
            statement = totals[total] = added
        body.append(statement)
    return body, totals


def _as_added(statement):
    """`total = total + term`, `total = term + total` or `total = total - term` as `total += term`; None for another."""
    match statement:
        case ast.Assign([ast.Name(total)], ast.BinOp(ast.Name(left), operation, term)):
            if total == left and isinstance(operation, ast.Add | ast.Sub):
                added = Added(statement.targets[0], operation, term)
                return ast.copy_location(added, statement)
    match statement:
        case ast.Assign([ast.Name(total)], ast.BinOp(term, ast.Add(), ast.Name(right))):
            if total == right:
                added = Added(statement.targets[0], ast.Add(), term)
                return ast.copy_location(added, statement)
    return None


def _grown_lists(loop, names, calls):
    """{statement of a loop: the list to which it appends one entry in each turn}.

    For `rows = []` and `rows.append(...)`, once in the body and with no other use of the list in it. It stops a list
    with another name, which grows as well.

    Args:  calls: of _lists_that_grow
    """
    uses = Counter(node.id for node in nodes_of(loop) if isinstance(node, ast.Name))
    grown = {}
    for name, call in calls.items():
        # one reference is the scope's, one is the argument
        is_alone = sys.getrefcount(names[name]) <= 2
        if is_alone and not names[name] and uses[name] == 1:
            for statement in loop.body:
                if isinstance(statement, ast.Expr) and statement.value is call:
                    grown[statement] = name
    return grown


def _lists_that_grow(loop, names) -> dict[str, ast.Call]:
    """{name of a list from before a loop: the last call of its append in it, at any depth}."""
    calls = {}
    for node in nodes_of(loop):
        match node:
            case ast.Call(ast.Attribute(ast.Name(name), "append"), [_], []):
                if isinstance(names.get(name), list):
                    calls[name] = node
    return calls


def _entry_of(turn, value):
    """What a list holds of a turn.

    For a row that the turn makes. It stops one buffer for all turns, which the list has M times, and a row that is
    changed after it is in the list.
    """
    if is_number(value):
        return value
    memory = floats(value, "a list").memory
    if turn not in memory.born and turn in memory.written_in:
        raise NotRead("a list of one array that each turn of the loop writes")
    memory.fixed = "what a list has views of"
    return copied(value)


def _apart(value):
    """A total that is no view, so that what adds to it changes nothing else."""
    is_array = isinstance(value, Array) and value.mutable and not value.memory.cell
    return copied(value) if is_array else value


def _check_starts(values, turn):
    """Refuses a loop that writes to what a total was before it, which the first turn adds to.

    For `dw = np.zeros(N)` and `dw = dw + term`. It stops `dw = db = np.zeros(N)` where the loop has `db += dy[i]` above
    that line: the first row of dy is in dw then.
    """
    for value in values:
        memories = value.memory.group if isinstance(value, Array) else ()
        if any(turn in memory.written_in for memory in memories):
            raise NotRead("a total of an array to which its loop writes as well")


def _running(value):
    """A number as a cell of its own, to which a loop adds."""
    if isinstance(value, Array):
        if not value.memory.scalar:
            raise NotRead("a change of an array without axes")
        return array((), value.e, value.library, value.dtype, cell="array")
    return array((), plain(value), state().library, "mixed", cell=kind_of(value))


def _added_up(cell):
    """A running sum after its loop: a number, or the array that the first turn has made."""
    kind, cell.memory.cell = cell.memory.cell, ""
    if kind != "array":
        return number(cell.e, kind)
    return scalar(cell)


def _grown(cell, shape):
    """A running sum of arrays, which was a number."""
    new = array(shape, cell.memory.e, cell.library, cell.dtype, cell="array")
    for name in ("born", "read_in", "written_in"):
        setattr(new.memory, name, getattr(cell.memory, name))
    return new
