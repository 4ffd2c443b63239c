"""A kernel, run once on symbols: its branches and loops; a loop's body stands for any of its turns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import reduce

from sympy import Expr, Symbol, expand, nan

from ..symbolic.symbols import N
from .binding import (
    COLUMNS,
    PIDS,
    ROWS,
    WHOLE,
    InOut,
    Launch,
    Lock,
    Same,
    T,
    letter,
)
from .decorators import (
    Decorators,
    compared_argument,
    is_arithmetic,
    is_power,
    is_whole,
    variable_arguments,
)
from .language import Language
from .locks import lock_of
from .memory import group_of
from .names import (
    UNSEEN,
    Function,
    Given,
    Names,
    Unbound,
    at_run_time,
    with_constant,
)
from .source import Source, is_constexpr, is_jit
from .sums import has_marker, marker_of
from .syntax import (
    Returned,
    Walker,
    bound_arguments,
    defaults_of,
    has_marks,
    positional,
)
from .tables.dtypes import (
    ANY,
    FLOATS,
    LONG_INTEGERS,
    UNSIGNED,
    results,
    spelled,
)
from .tiles import Tiles
from .values import (
    UNCOMPILED,
    Dtype,
    Flag,
    Index,
    Limit,
    Mask,
    NotRead,
    Number,
    Pointer,
    Qualified,
    Undecided,
    Wrong,
    as_tensor,
    constants,
    described,
    of_constants,
    uncompiled,
)

SPEED = {
    "num_stages",
    "loop_unroll_factor",
    "disallow_acc_multi_buffer",
    "flatten",
    "warp_specialize",
}
RANGES = ("builtins.range", "triton.language.range", "triton.language.static_range")
LONGEST = 64
MOST_UNREAD = 8
VALUES = Index | Number | Mask | Pointer
# calls whose value Triton knows where it knows their arguments
FIXED = ("constexpr", "cdiv", "min", "max", "len", "isinstance", "next_power_of_2")
RUNTIME = (
    "which Triton compiles both ways, as it is known only while the kernel runs; "
    "make it of arguments with tl.constexpr"
)
# annotations that are a number's dtype
INTEGERS = ("int", "int32", "int64", "i32", "i64", "uint32", "u32")
NUMBERS = (*INTEGERS, "float", "float32", "fp32")
# {an annotation that changes nothing: what is bound to such an argument}
ANNOTATIONS = {
    # classes, which give an argument no dtype
    **dict.fromkeys(("tensor", "Tensor", "pointer_type"), object),
    "const": Pointer,
    **dict.fromkeys(INTEGERS, (Index, Unbound)),
    **dict.fromkeys(("float", "float32", "fp32"), Number),
    "bool": bool,
}

# {an annotation: the dtype of the integer}
DTYPE_OF = dict.fromkeys(("int64", "i64"), LONG_INTEGERS)
DTYPE_OF |= dict.fromkeys(("uint32", "u32"), UNSIGNED)


class Kernel(Walker):
    """Reads a kernel: its names, branches and loops; source: the module of the function that is being read.

    Args:  launch: what its launcher promises; fill: what a masked load without `other` gives
    """

    def __init__(self, source: Source, launch: Launch, fill: Expr = nan):
        super().__init__(Tiles(launch, fill))
        self.tiles, self.launch, self.source = self.values, launch, source
        self.names = Names(self.tiles, source, self._of_module)
        self.language = Language(self.tiles, self._of_numbers)
        # the names in the function that is read which Triton knows while it compiles
        self.fixed: set[str] = set()
        self.callers, self.inner = (), 0
        # the statements after the one that is being read, and how many of them are read with it
        self.following: list[ast.stmt] = []
        self.skipped = 0

    @property
    def line(self) -> int:
        """The line that is being read."""
        return self.tiles.memory.line

    @line.setter
    def line(self, number: int) -> None:
        self.tiles.memory.line = self.tiles.sums.line = number

    def _of_module(self, node, source):
        """The value of an expression of a module's text, which Python evaluates, so that Triton refuses nothing in it.

        For `rsqrt = find("rsqrt")` with a function of Python's. It stops "does not compile" for what is imported.
        """
        before, self.source = self.source, source
        try:
            return self.evaluate(node, {})
        except Wrong as reason:
            raise NotRead(f"{ast.unparse(node)} of the module: {reason}") from None
        finally:
            self.source = before

    # expressions

    def value_Attribute(self, node, names):
        """An attribute; of a file of the package what it has under that name."""
        owner = self.evaluate(node.value, names)
        if isinstance(owner, Source):
            return self.names.named(node.attr, owner)
        if node.attr not in ("type", "value"):
            self.tiles.check_tensor(owner, ast.unparse(node))
        return self.tiles.attribute(owner, node.attr)

    def value_Subscript(self, node, local):
        """A tile with axes of length 1 put in, or an entry of a tuple."""
        owner = self.evaluate(node.value, local)
        self.tiles.check_tensor(owner, ast.unparse(node))
        return self.tiles.item(owner, self.evaluate(node.slice, local))

    def is_fixed(self, node: ast.expr, local) -> bool:
        """Whether Triton knows a value while it compiles: of tl.constexpr, a dtype, or whether something is None."""
        match node:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return True
            case ast.Attribute(attr="dtype" | "shape"):
                return True
            case ast.Name(id=name) if name in local:
                value = local[name]
                return name in self.fixed or getattr(value, "value", value) is None
            case ast.Call(called) if ast.unparse(called).split(".")[-1] not in FIXED:
                return False
            case ast.BoolOp(values=[*first, _]):
                short = isinstance(node.op, ast.Or)
                for part in first:
                    if not self.is_fixed(part, local):
                        return False
                    if self.tiles.truth(self.evaluate(part, local)) == short:
                        return True
        parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        return all(self.is_fixed(part, local) for part in parts)

    def value_Name(self, node, local):
        """What a name stands for."""
        return self.names.value(node.id, local, self.source)

    def chosen(self, test, truth, node, local):
        """One of two values, of one kind where Triton decides the test only while the kernel runs."""
        if not self.is_fixed(node.test, local):
            with forgotten(self.tiles):
                other = self.evaluate(node.orelse if truth else node.body, local)
            value = super().chosen(test, truth, node, local)
            if not is_kept(value, other):
                raise NotRead(f"a choice by {ast.unparse(node.test)}, {RUNTIME}")
            # a choice that Triton makes while it compiles leaves a constant, where sizes of the test are 1
            known = names_in(node.test) & local.keys()
            parts = [value, *(self.evaluate(ast.Name(name), local) for name in known)]
            return of_constants(value, *parts) if known else as_tensor(value)
        self.check_condition(test, node.test, local)
        return super().chosen(test, truth, node, local)

    def check_condition(self, test, node, local):
        """Refuses a float that is compiled in as a condition: Triton takes bool, int and None."""
        if not isinstance(test, Number):
            return
        if self.is_fixed(node, local):
            raise uncompiled("a branch on a float that is compiled in")
        self.tiles.check_tensor(test, f"a branch on {ast.unparse(node)}, as a float,")

    def either(self, test, node, local):
        """A choice by a dtype, of two values that are equal."""
        ways = node.body, node.orelse
        values = [self._of_a_dtype(self.evaluate, way, local) for way in ways]
        if is_either(*values):
            return of_either(*values)
        if all(isinstance(v, Number) and v.inside.is_Rational for v in values):
            least = min(value.inside for value in values)
            if least >= 2**60:
                return Limit(least)
        raise NotRead("a value that depends on a dtype")

    @staticmethod
    def _of_a_dtype(read, way, local):
        """What is read on one way of a branch on a dtype.

        For `if x.dtype == tl.float32:` above a function. Without it a kernel that is compiled for all other tensors is
        accused.
        """
        try:
            return read(way, local)
        except Wrong as wrong:
            if not str(wrong).startswith(UNCOMPILED):
                raise
            reason = NotRead(f"on one way of a branch on a dtype: {wrong}")
            reason.line = wrong.line
            raise reason from None

    def value_BoolOp(self, node, local):
        """`and` and `or`, which stop at the first value that decides."""
        both, masks = isinstance(node.op, ast.And), []
        undecided = False
        for part in node.values:
            value = self.evaluate(part, local)
            match value:
                case Undecided():
                    undecided = True
                case Mask() if both:
                    masks.append(value)
                case _ if self.tiles.truth(value) != both:
                    return not both
        if undecided and masks:
            raise NotRead("a condition on a dtype and on what the kernel computes")
        if undecided:
            return Undecided()
        value = reduce(self.tiles.both, masks, both)
        return of_constants(value, *masks)

    def value_Compare(self, node, local):
        """A comparison."""
        if len(node.ops) != 1:
            raise uncompiled("a chain of comparisons")
        return super().value_Compare(node, local)

    value_List = Walker.value_Tuple

    # calls

    def value_Call(self, node, local):
        """The value of a call."""
        name = getattr(node.func, "id", "")
        if name not in local and name in self.launch.meanings:
            return self._meaning(name, *self.arguments(node, local))
        target = self.evaluate(node.func, local)
        args, named = self.arguments(node, local)
        self.language.passed = [False] * len(args), {}
        if len(args) == len(node.args):
            fixed = [self.is_fixed(part, local) for part in node.args]
            options = {k.arg: self.is_fixed(k.value, local) for k in node.keywords}
            self.language.passed = fixed, options
        return self.call(target, args, named)

    def call(self, target, args, named):
        """What a function of the text, or of a library, returns."""
        match target:
            case Function():
                self._check_jit(target)
                return self.inlined(target, args, named)
            case Qualified(path, bound):
                return self.language.call(path, [*bound, *args], named)
            case Dtype():
                raise uncompiled("a call of a dtype, which is no function")
        raise NotRead(f"a call of {described(target)}, which is no function")

    def _of_numbers(self, function, *numbers):
        """What a function of the text makes of numbers."""
        if not isinstance(function, Function):
            raise NotRead(f"a reduction by {described(function)}; name a function")
        return self.call(function, list(numbers), {})

    def _check_jit(self, function):
        """Refuses a function that a kernel cannot call: one of Python's, or one that is launched."""
        name, wrappers = (
            function.node.name,
            function.source.wrappers(function.node.name),
        )
        if any(not is_jit(node) for node in wrappers):
            raise NotRead(f"a call of {name}, which has other decorators than jit")
        if has_marks(function.node.args) or any(
            "noinline" in ast.unparse(n) for n in wrappers
        ):
            why = "which has noinline, or * or / in its header"
            raise NotRead(f"a call of {name}, {why}")
        if not wrappers:
            raise uncompiled(f"{name} is called, which is no triton.jit function")
        for node in wrappers:
            variable_arguments(node, function.node)

    def _meaning(self, name, args, named):
        names, text = self.launch.meanings[name]
        if len(args) < len(names) or named:
            raise NotRead(f"{name}: its arguments do not fit what it is said to return")
        self.tiles.assumed[f"{name}({', '.join(names)}) is {text}"] = None
        local = {n: of_any_dtype(value) for n, value in zip(names, args, strict=False)}
        value = self.evaluate(ast.parse(text, mode="eval").body, local)
        return of_any_dtype(value)

    # the kernel

    def check_binding(self, kernel: str) -> None:
        """ValueError where the binding names what is no argument or constant, or gives text to a pointer or number."""
        function = self.source.function(kernel)
        names, _ = parameters(function)
        for node in function.args.args:
            text = self.launch.arguments.get(node.arg)
            if not isinstance(text, str) or not isinstance(
                self.names.argument(node.arg), Given
            ):
                continue
            if not is_constexpr(node):
                needs = f'needs T("{text}"), a number or a word for a size'
                raise ValueError(f"{node.arg}: got the text {text!r}, {needs}")
        for name, bound in self.launch.arguments.items():
            early = not self.line and name.isupper() and not isinstance(bound, T)
            if name not in {*names, *self.tiles.constants} and not early:
                message = f"binding: got {name}, needs one of {', '.join(names)}"
                raise ValueError(message)

    def _settings(self, kernel, names):
        """{argument: the value that a decorator gives it}; refuses a binding that a decorator contradicts."""
        given = {}
        if self.launch.called:
            return given
        self.decorators.check_names(names)
        for setting in self.decorators.settings:
            name = setting.name
            promised = self.launch.arguments.get(name)
            value = self._set(setting)
            if name not in self.launch.arguments:
                seen = isinstance(value, bool | int | float | str | None)
                differs = name in given and given[name] != value
                given[name] = UNSEEN if differs or not seen else value
                continue
            if promised in (ROWS, COLUMNS):
                size = value is WHOLE or is_power(setting.value)
                agrees = size and is_arithmetic(setting.value, self.source)
            elif promised is WHOLE:
                agrees = value is WHOLE
            elif value is UNSEEN and isinstance(promised, bool):
                agrees = compared_argument(setting)[1] is not None
            else:
                agrees = type(value) is type(promised) and value == promised
            if not agrees:
                text = f"{ast.unparse(setting.value)} by a decorator"
                reason = NotRead(f"{name} is {text}, and bound as {promised}")
                reason.line = setting.line
                raise reason
        return given

    def _set(self, setting):
        """What a decorator sets: a constant, WHOLE, whether an argument is None, or UNSEEN."""
        value = setting.value
        name, operator = compared_argument(setting)
        if isinstance(value, ast.Constant):
            return value.value
        if operator is not None and name in self.launch.arguments:
            absent = self.launch.arguments[name] is None
            return absent == isinstance(operator, ast.Is)
        if (
            name
            and operator is None
            and isinstance(self.launch.arguments.get(name), bool)
        ):
            return self.launch.arguments[name]
        columns = {name for name, e in self.launch.arguments.items() if e == N}
        whole = is_whole(setting.value, setting.others, columns)
        if whole and is_arithmetic(setting.value, self.source) and not setting.tuned:
            return WHOLE
        return UNSEEN

    def _memories(self, names):
        """The arguments that tensors are bound to, of which two may be one."""
        found = []
        for name in names:
            bound = self.launch.arguments.get(name)
            found.append(bound.name if isinstance(bound, Same) else name)
        return found

    def _check_runs(self):
        """Refuses what several runs of a kernel change: autotune compares its configurations by running each.

        For a kernel that adds to memory, or writes over what it reads: what it leaves is that of all runs together.
        """
        for tuner in self.decorators.tuners:
            if tuner.runs is not None and tuner.runs < 2:
                continue
            kind = NotRead if tuner.runs is None else Wrong
            reset, restored = map(self._memories, (tuner.reset, tuner.restored))
            for name in reset + restored:
                if not isinstance(self.launch.arguments.get(name), T):
                    reason = NotRead(f"autotune resets {name}, which is no pointer")
                    reason.line = tuner.line
                    raise reason
            for name, bound in self.launch.arguments.items():
                stores = self.tiles.memory.stores.get(name, ())
                added = any(store.atomic for store in stores)
                words = ""
                if name in reset and getattr(bound, "before", None):
                    words = f"autotune sets {name} to 0, which the kernel reads"
                elif added and name not in reset + restored:
                    words = f"{name} is added to at each run of autotune, needs reset_to_zero"
                elif stores and isinstance(bound, InOut) and name not in restored:
                    words = f"{name} is read and overwritten at each run of autotune, needs restore_value"
                if words:
                    reason = kind(words)
                    reason.line = tuner.line
                    raise reason

    def read(self, kernel: str) -> dict[str, Expr]:
        """{argument: what it holds in the end}; NotRead for a line that is not followed."""
        function = self.source.function(kernel)
        if not any(map(is_jit, self.source.wrappers(kernel))):
            reason = NotRead(f"{kernel} has no @triton.jit, so it is no kernel")
            reason.line = function.lineno
            raise reason
        names, defaults = parameters(function)
        self.decorators = Decorators(
            self.source, kernel, self.launch.meanings, is_called=self.launch.called
        )
        given = self._settings(kernel, names)
        for node in function.args.args:
            if is_constexpr(node):
                self.tiles.constexprs.add(node.arg)
        local = {
            name: self.names.argument(name, defaults.get(name), given) for name in names
        }
        for node in function.args.args:
            name = node.arg
            is_fixed = name in self.tiles.constexprs
            if not is_fixed:
                local[name] = at_run_time(local[name])
            elif isinstance(local[name], Index | Unbound):
                local[name] = replace(local[name], dtype=frozenset({"int"}))
            check_annotation(node, local[name])
            if dtype := DTYPE_OF.get(annotated(node)):
                local[name] = at_run_time(local[name], dtype)
            is_typed = name in self.decorators.variable or is_dtype(node)
            local[name] = with_constant(local[name], name, is_fixed, is_typed)
        self.fixed = set(self.tiles.constexprs)
        unread = self.tiles.memory.unread
        try:
            self.returned(guarded_rest(function.body), local)
            self.tiles.memory.is_read = True
            held = self.tiles.memory.left()
            self._check_runs()
            self.source.check_importable()
        except NotRead as reason:
            if unread and not str(reason).startswith(UNCOMPILED):
                raise unread[0] from None
            raise
        if unread:
            raise unread[0]
        if self.tiles.places.targets:
            self.tiles.told["targets from 0 to N - 1"] = None
        return held

    def inlined(self, function: Function, args, named):
        """What a function returns."""
        if function.node in self.callers:
            raise NotRead(f"{function.node.name} calls itself")
        line, before = self.line, (self.source, self.callers, self.inner, self.fixed)
        self.source, self.inner = function.source, 0
        self.callers = (*self.callers, function.node)
        arguments = function.node.args
        fixed = dict.fromkeys(defaults_of(arguments), True)
        fixed = bound_arguments(arguments, *self.language.passed, fixed)
        self.fixed = {name for name, is_fixed in fixed.items() if is_fixed}
        try:
            defaults = defaults_of(function.node.args)
            defaults = {name: self._default(e) for name, e in defaults.items()}
            local = bound_arguments(function.node.args, args, named, defaults)
            value = self.returned(guarded_rest(function.node.body), local)
        finally:
            self.source, self.callers, self.inner, self.fixed = before
        self.line = line
        return value

    def _default(self, node):
        """The default of a called function, which may be a global of the module, whatever that is made by."""
        try:
            return self.evaluate(node, {})
        except Wrong as reason:
            raise NotRead(f"a default: {reason}") from None

    def read_Assert(self, node, local):
        """A promise, which the claim says."""
        condition = None
        with suppress(NotRead):
            condition = self.evaluate(node.test, local)
        self.language.device_assert(condition)

    def read_Expr(self, node, local):
        """A call, or a docstring; refuses a pointer that is worked out and not kept.

        For a kernel that moves a block pointer. Without it `tl.advance(p, (0, B))`, which moves nothing, is read.
        """
        if isinstance(node.value, ast.Constant):
            return
        try:
            value = self.evaluate(node.value, local)
        except NotRead as reason:
            unread = self.tiles.memory.unread
            if type(reason) is not NotRead or not unread:
                raise
            self._keep_place(node.value, local)
            return
        if isinstance(value, Pointer):
            words = "a pointer that is not kept, so nothing is moved; give it a name"
            raise NotRead(words)

    def _keep_place(self, node, local):
        """Keeps where a store writes whose value is not followed; refuses another call that is not followed.

        For a store under a mask of the first row. It stops "all rows but the first" beside a store that is elsewhere.
        """
        match node:
            case ast.Call(called, [pointer, _], [ast.keyword("mask", mask)]) if (
                self.evaluate(called, local) == Qualified("triton.language.store")
            ):
                pointer, mask = (self.evaluate(e, local) for e in (pointer, mask))
            case _:
                raise self.tiles.memory.unread[0]
        if not isinstance(pointer, Pointer) or not isinstance(mask, Mask):
            raise self.tiles.memory.unread[0]
        self.tiles.memory.keep_first_row(pointer, mask)

    def read_Return(self, node, local):
        """The value of the function."""
        if self.inner:
            raise NotRead("a return from inside a loop or a branch")
        super().read_Return(node, local)

    def read_AnnAssign(self, node, local):
        """name: tl.constexpr = value."""
        if node.value is None:
            raise NotRead("a name without a value")
        fixed = is_constexpr(node) and self.is_fixed(node.value, local)
        value = self.evaluate(node.value, local) if fixed else None
        super().read_AnnAssign(node, local)
        if fixed:
            self.fixed.add(node.target.id)
            local[node.target.id] = value

    def read_Assign(self, node, local):
        """name = value."""
        if len(node.targets) > 1:
            raise uncompiled(f"{ast.unparse(node)}, which is several assignments")
        with self._going_on(node, local):
            super().read_Assign(node, local)

    @contextmanager
    def _going_on(self, node, local):
        """Keeps why an assignment is not followed, and goes on with names of which nothing is known.

        For a maximum of what is not followed. It finds what does not compile further down, and proves nothing.
        """
        try:
            yield
        except NotRead as reason:
            unread = self.tiles.memory.unread
            if type(reason) is not NotRead or len(unread) > MOST_UNREAD:
                raise
            reason.line = reason.line or node.lineno
            unread.append(reason)
            for name in assigned([node]):
                self.fixed.discard(name)
                local[name] = Unbound(str(reason))

    def assign(self, target, value, local):
        """Give a name its value, which Triton no longer knows while it compiles, and which has a dtype."""
        self.fixed.discard(getattr(target, "id", ""))
        value = as_tensor(value)
        if isinstance(value, Index | Number):
            value = self.tiles.named(value)
        super().assign(target, value, local)

    def read_AugAssign(self, node, local):
        """name += value."""
        whole = ast.BinOp(node.target, node.op, node.value)
        with self._going_on(node, local):
            self.assign(node.target, self.value_BinOp(whole, local), local)

    def read_If(self, node, local):
        """A branch: decided by the binding, by a dtype that changes nothing, or a guard of the rows.

        One that is known only while the kernel runs is compiled both ways, so the other way has to be as this one is,
        and what it binds ends with it. Without it `if n < 1: x = undefined` and `if n > 0: z = x` are proved.
        """
        test = self.evaluate(node.test, local)
        self.check_condition(test, node.test, local)
        if self.tiles.varies(test) and not node.orelse:
            return self._guarded(node, node.body, test, local)
        decided = self.tiles.truth(test)
        if decided is None:
            return self._either(node, local)
        if self.is_fixed(node.test, local):
            if isinstance(node, Rest) and not decided:
                self._compile(node.body, local)
            return self.execute(node.body if decided else node.orelse, local)
        ways = [node.orelse, node.body]
        if self._unnamed(ways[0], local) != self._unnamed(ways[1], local):
            if not self._leaves(ways[not decided], local):
                return self._one_of_two(node, ways[not decided], ways[decided], local)
        return self._guarded(node, ways[decided], Mask(frozenset()), local)

    read_Rest = read_If

    def _leaves(self, body, local):
        """Whether a way of a branch leaves all names what they are, by assignments without calls."""
        after = dict(local)
        calls = any(isinstance(part, ast.Call) for part in parts_of(body))
        if all(isinstance(n, ast.Assign | ast.AugAssign) for n in body) and not calls:
            self.execute(body, after)
            return all(is_kept(local.get(name), after[name]) for name in after)
        return False

    def _one_of_two(self, node, other, body, local):
        """Reads the way of a branch that every program takes; the other one is compiled, and forgotten.

        For `if target == -100: loss = 0.0`. It stops another way that does not compile, or gives a name another dtype.
        """
        words = f"a branch on {ast.unparse(node.test)}, {RUNTIME}"
        self._check_branch(node, local)
        after = dict(local)
        self.inner += 1
        try:
            with forgotten(self.tiles):
                self.execute(other, after)
        except NotRead as reason:
            if type(reason) is not NotRead:
                raise
            raise NotRead(words) from None
        self.execute(body, local)
        self.inner -= 1
        for name in assigned(other) | assigned(body):
            value, another = local.get(name), after.get(name)
            if None in (value, another):
                local[name] = Unbound(words)
            elif not (is_kept(value, another) or is_kept(another, value)):
                raise NotRead(words)
            elif isinstance(value, Index | Number):
                local[name] = replace(value, dtype=value.dtype & another.dtype)

    def _unnamed(self, body, local):
        """Statements as text without the names of pointers, and of arguments that are read nowhere before."""
        match body:
            case [ast.If(test, inner, [])] if self.is_fixed(test, local):
                body = inner  # it is compiled or it is not
        text = "\n".join(map(ast.unparse, body))
        for name in names_in(ast.Module(body, [])) & set(local) - self.tiles.unbound:
            if isinstance(local[name], Unbound | Pointer):
                text = re.sub(rf"\b{name}\b", "a pointer", text)
        return text

    def _either(self, node, local):
        """Both ways of a branch on a dtype, which may differ in dtypes alone."""
        ways, stores = [dict(local), dict(local)], self.tiles.memory.stores
        before = sum(map(len, stores.values()))
        self.inner += 1
        for way, body in zip(ways, (node.body, node.orelse), strict=True):
            self._of_a_dtype(self.execute, body, way)
        self.inner -= 1
        if sum(map(len, stores.values())) != before:
            raise NotRead("a store that depends on a dtype")
        local.clear()
        for name in ways[0].keys() & ways[1].keys():
            both = ways[0][name], ways[1][name]
            if is_either(*both):
                local[name] = of_either(*both)

    def _check_branch(self, node, local):
        """Refuses a branch that gives a constant of Triton's another value, unless Triton decides it."""
        try:
            self._check_tensors([*node.body, *node.orelse], local, is_loop=False)
        except Wrong as reason:
            words = f"{reason}, in a branch on {ast.unparse(node.test)}, {RUNTIME}"
            raise NotRead(words) from None

    def _guarded(self, node, body, mask, local):
        """`if row < M:` for an index that the launch does not decide: its stores are masked by it."""
        if not isinstance(node, Rest):
            self._check_branch(node, local)
        before, after = dict(local), dict(local)
        self.tiles.memory.guards.append(mask.below)
        self.inner += 1
        self.execute(body, after)
        self.inner -= 1
        self.tiles.memory.guards.pop()
        for name, value in before.items():
            if name not in after:
                del local[name]
            elif after[name] is not value:
                del local[name]
                if not isinstance(node, Rest):
                    check_kept(name, value, after[name])
                both = [after[name], value]
                if not all(isinstance(v, Number) and v.complete for v in both):
                    continue
                if is_kept(value, after[name]):
                    merged = self.tiles.where(mask, *both)
                    dtype = value.dtype & after[name].dtype
                    local[name] = replace(merged, dtype=dtype)

    def execute(self, body, names):
        """Read statements one after the other, and what follows a branch that returns."""
        rest = 0
        for position, node in enumerate(body, start=1):
            if position <= rest:
                continue
            self.following = body[position:]
            try:
                super().execute([node], names)
                rest, self.skipped = position + self.skipped, 0
            except Returned as result:
                if isinstance(node, ast.If):
                    self._compile(body[position:], names, *result.args)
                raise

    def _compile(self, body, local, value=None):
        """Reads what follows a return in a branch that is decided while Triton compiles, and forgets what it does.

        For `if FLAG: return`. Triton compiles the rest, too, so without it a rest with a name that has no value is
        proved.

        Args:  value: what was returned
        """
        unread = self.tiles.memory.unread
        count = len(unread)
        with forgotten(self.tiles):
            try:
                another = self.returned(body, dict(local))
                if unread[count:]:
                    raise unread.pop()
            except NotRead as reason:
                if not str(reason).startswith(UNCOMPILED) and type(reason) is not Flag:
                    refusal = NotRead(
                        f"{reason}; Triton compiles it, although it stands after a return; put it under else"
                    )
                    refusal.line = reason.line
                    raise refusal from None
                raise
        if another is not None and not is_kept(value, another):
            raise NotRead("a return of another kind of value than a return before it")

    def _locked(self, node, local):
        """The lock of Triton's tutorial, under which a program adds to a row of partial sums.

        For dw in two kernels. It stops a lock that is given back too early, or is not that of the row.
        """
        block = lock_of([node, *self.following])
        inside = self.inner or self.tiles.places.active or self.tiles.memory.guards
        # where several programs have one row, the first one that finds a count of 0 has not stored for all of them
        if block is None or inside or len(self.launch.grid) > 1:
            raise NotRead("the statement while, other than a lock around an addition")
        paths = {called: self.evaluate(called, local) for called in block.functions}
        for called, value in paths.items():
            name = ast.unparse(called).rpartition(".")[2]
            if value != Qualified(f"triton.language.{name}"):
                raise NotRead(f"{ast.unparse(called)} is not Triton's")
        lock, count = (self.evaluate(e, local) for e in (block.lock, block.count))
        bound = self.launch.arguments.get(getattr(lock, "name", ""))
        if not isinstance(bound, Lock) or count != self.tiles.operate(
            "Add", lock, Index(bound.size)
        ):
            raise NotRead("a count that does not belong to its lock")
        if lock.offset.e != group_of(PIDS[0], bound.size):
            raise NotRead("a lock that is not the program's number modulo the locks")
        for address, mask, name in block.sums:
            value, pointer = local[name], self.evaluate(address, local)
            self._check_lock(pointer, value, bound.size)
            mask = Mask(frozenset()) if mask is None else self.evaluate(mask, local)
            self.tiles.memory.add_under_lock(pointer, value, mask)
            self.tiles.rests_on[pointer.name] = len(self.tiles.sums.domain)
        if not block.is_fenced:
            words = "stores that are done before a lock is given back without a barrier"
            self.tiles.told[f"{words} (line {node.lineno})"] = None
        for name in block.names:
            local.pop(name, None)
        self.skipped = block.length - 1

    def _check_lock(self, pointer, value, size):
        """Refuses a sum that the two ways of a branch make of another dtype, and a row under another lock."""
        if not isinstance(pointer, Pointer) or not isinstance(value, Number):
            raise NotRead("what is added under a lock is no tile of numbers")
        rows, has_own_dtype = self.launch.groups.get(pointer.name, (None, False))
        if rows != size:
            raise NotRead(f"{pointer.name} has other rows than there are locks")
        is_own = value.dtype == FLOATS and has_own_dtype
        if not (is_own or value.dtype == {"float32"}):
            raise NotRead("a sum under a lock that may be of another dtype")

    def read_Break(self, node, local):
        """A jump out of a loop, which Triton compiles nowhere."""
        raise uncompiled(f"Triton has no {ast.unparse(node)}")

    read_Continue = read_Break

    def read_For(self, node, local):
        """A loop over a range: its body is run once, for any turn."""
        match node:
            case ast.For(ast.Name(counter), ast.Call(called, args, keywords), body, []):
                called = self.evaluate(called, local)
            case _:
                called = None
        if getattr(called, "path", "") not in RANGES:
            raise NotRead("a loop over what is no range")
        if any(keyword.arg not in SPEED for keyword in keywords):
            raise NotRead("a range with arguments that are not read")
        for keyword in keywords:
            if not self.is_fixed(keyword.value, local):
                words = f"a range whose {keyword.arg} is no number that Triton knows"
                raise uncompiled(f"{words} while it compiles")
        if not 1 <= len(args) <= 3:
            raise uncompiled(f"a range of {len(args)} arguments, which takes 1 to 3")
        start = [ast.Constant(0)] * (len(args) == 1)
        step = [ast.Constant(1)] * (len(args) < 3)
        bounds = self._bounds([*start, *args, *step], local)
        is_static = called.path.endswith("static_range")
        if is_static:
            if not all(self.is_fixed(part, local) for part in args):
                raise uncompiled("a bound of static_range that is no tl.constexpr")
            self.fixed.add(counter)
        before = dict(local)
        if not is_static:
            self._check_tensors(body, local, counter)
        self.loop(body, counter, bounds, local, is_static)
        if not is_static:
            self._compare(before, assigned(body), local)

    def _compare(self, before, names, local):
        """Takes away what a loop at run time first binds; refuses what it makes a tile of another shape.

        For a loop whose turns are counted in the text. Without it `for k in range(2): z = x` is proved, where Triton
        has no z after the loop.
        """
        for name in sorted(names & set(local)):
            check_kept(name, before.get(name), local[name])
            if not is_kept(before.get(name), local[name]):
                del local[name]

    def _check_tensors(self, body, local, counter="", is_loop=True):
        """Refuses what a loop or a branch at run time assigns, where it is no tensor before.

        For `rows += 1` in a loop, which compiles where the argument rows is other than 1. Without it y is proved for
        one row, and beside `K=1` with `K += 1` in a loop, which compiles nowhere.
        """
        body = self._live(body, assigned(body) | {counter}, local)
        lines = {node.id: node.lineno for node in parts_of(body) if is_stored(node)}
        for name in sorted((lines.keys() & local) - {counter}):
            value, text = local[name], f"a new value in a loop or a branch for {name}"
            if isinstance(value, Given):
                value = value.value
            no_tensor = is_loop and isinstance(value, Dtype | None)
            if no_tensor or name in self.fixed or constants(value) == frozenset():
                self.evaluate(ast.Name(name), local)  # a default stands in the verdict
                kind = (
                    f"{described(value)}," if no_tensor else "a constant of Triton's,"
                )
                reason = uncompiled(f"{text}, which is {kind} and no tensor")
                reason.line = lines[name]
                raise reason
            if isinstance(value, Unbound):
                value = Index(letter(name), constant=value.constant)
            self.tiles.check_tensor(value, text, lines[name])

    def _bounds(self, parts, local):
        bounds = [self.evaluate(part, local) for part in parts]
        if any(not isinstance(bound, Index) or bound.axes for bound in bounds):
            raise NotRead("a loop between what are no integers")
        self.tiles.use_both(*bounds)
        return bounds

    def read_While(self, node, local):
        """`while counter < end:` whose last line is `counter += step`, as a loop over a range; or a lock."""
        if isinstance(node.body[0], ast.Pass):
            return self._locked(node, local)
        match node:
            case ast.While(
                test=ast.Compare(left=ast.Name(counter), ops=[ast.Lt()]),
                body=[*body, ast.AugAssign(ast.Name(last), ast.Add(), step)],
                orelse=[],
            ) if counter == last and counter not in assigned(body):
                parts = [node.test.left, *node.test.comparators, step]
            case _:
                raise NotRead("a while loop that does not count")
        if set().union(*map(names_in, parts[1:])) & (assigned(body) | {counter}):
            raise NotRead("a while loop whose end or step changes")
        bounds = self._bounds(parts, local)
        self._check_tensors(node.body, local)
        del local[counter]
        before = dict(local)
        self.loop(body, counter, bounds, local)
        self._compare(before, assigned(body), local)

    def loop(self, body, counter, bounds, local, is_static=False):
        """Runs a loop's body, once for any turn, or turn by turn where the text says how many.

        Args:  is_static: whether Triton compiles each turn by itself
        """
        low, high, step = [expand(bound.e) for bound in bounds]
        dtypes = [bound.dtype for bound in bounds]
        body = self._live(body, assigned(body) | {counter}, local)
        names = assigned(body)
        if counter in names:
            raise NotRead(f"{counter} is a loop's counter and is assigned in it")
        if not (step.is_positive or step.is_negative):
            raise NotRead("a loop whose step has no known sign")
        turns = self.tiles.places.turns(low, high, step)
        if turns.is_Integer:
            start = low, step
            return self._unrolled(body, counter, start, int(turns), local, is_static)
        for name in names & set(local):
            if isinstance(local[name], Given):
                local[name] = self.evaluate(ast.Name(name), local)
        turn = Symbol(
            f"turn_{len(self.tiles.places.loops)}", integer=True, nonnegative=True
        )
        self.tiles.places.loops[turn] = (low, high, step)
        before, after = dict(local), self._carried(body, names, turn, local)
        before.pop(counter, None)
        index = Index(expand(low + turn * step), dtype=reduce(results, dtypes))
        if is_static:
            index = replace(index, constant=frozenset())
        local[counter] = index
        line = self.line
        self.tiles.places.active.append(turn)
        self.inner += 1
        self.execute(body, local)
        self.inner -= 1
        self.line = line
        for name, value in after.items():
            if local.get(name) != value:
                raise NotRead(f"{name} does not move by the same step in each turn")
        self.tiles.places.active.pop()
        for name in sorted(before.keys() & names & local.keys()):
            if not is_static:
                check_kept(name, before[name], local[name])
        lines = {node.id: node.lineno for node in parts_of(body) if is_stored(node)}
        self._leave(before, {**lines, counter: line}, after, turn, turns, local)

    def _live(self, body, names, local):
        """A loop's statements without the branches that flags from outside it rule out."""
        live = []
        for node in body:
            if isinstance(node, ast.For | ast.While):
                node = copy(node)
                node.body = self._live(node.body, names, local)
            elif isinstance(node, ast.If) and not names_in(node.test) & names:
                decided = None
                if not self.is_fixed(node.test, local):
                    live.append(node)
                    continue
                with suppress(NotRead):  # the branch itself says so, if it is read
                    decided = self.tiles.truth(self.evaluate(node.test, local))
                if decided is not None:
                    branch = node.body if decided else node.orelse
                    live += self._live(branch, names, local)
                    continue
            live.append(node)
        return live

    def _unrolled(self, body, counter, start, turns, local, is_static):
        low, step = start
        if not 0 < turns <= LONGEST:
            raise NotRead(f"a loop of {turns} turns that are counted in the text")
        for turn in range(turns):
            index = Index(expand(low + turn * step))
            if is_static:
                index = replace(index, constant=frozenset())
            local[counter] = index
            self.execute(body, local)
        local.pop(counter, None)

    def _carried(self, body, names, turn, local):
        """Puts in what the names hold before any turn; {counter: what it must hold after it}."""
        after = {}
        for name in sorted(names & set(local)):
            value = local[name]
            step = self._step(body, name, names, local)
            if step is not None:
                local[name] = self._moved(value, turn, step)
                after[name] = self._moved(value, turn + 1, step)
                continue
            if isinstance(value, Index) and value.e.is_number and not value.axes:
                value = self.tiles.number(value)
            if isinstance(value, Number):
                marker = marker_of(name, turn)
                self.tiles.sums.running.axes[marker] = value.axes
                self.tiles.sums.maxima.begin(marker, value)
                parts = (marker,) * 4
                local[name] = replace(
                    value,
                    parts=parts,
                    places=frozenset(),
                    pending=(),
                    share=frozenset(),
                )
            else:
                del local[name]
        return after

    def _moved(self, value, turns, step):
        if isinstance(step, tuple):
            return self.language.advance(
                value, [Index(turns * part.e, dtype=LONG_INTEGERS) for part in step]
            )
        dtype = LONG_INTEGERS
        if isinstance(value, Pointer):
            self.tiles.use(step)
        else:
            dtype = results(value.dtype, step.dtype)
        return self.tiles.operate("Add", value, Index(turns * step.e, dtype=dtype))

    def _step(self, body, name, names, local):
        """How far a line such as `pointer += step` moves a pointer or a counter in each turn."""
        counted = isinstance(local[name], Pointer | Index)
        if not counted or list(stored(body)).count(name) != 1:
            return None
        outside = {key: local[key] for key in local.keys() - names}
        for node in flat(body):
            added = added_to(name, node)
            if added is not None and not names_in(added) & names:
                step = self.evaluate(added, outside)
                steady = isinstance(step, Index) and not step.axes
                return step if steady or isinstance(step, tuple) else None
        return None

    def _leave(self, before, lines, after, turn, turns, local):
        """What the names hold after all turns; those that hold the last turn's value have none."""
        carried = {}
        for name in sorted(lines.keys() & local):
            value, start = local.pop(name), before.get(name)
            if name in after:
                if isinstance(value, Index) and turns.is_nonnegative:
                    moved = value.e.xreplace({turn: turns - 1})
                    local[name] = replace(value, e=expand(moved))
                continue
            if isinstance(start, Index) and isinstance(value, Number):
                start = self.tiles.number(start)
            both = isinstance(start, Number) and isinstance(value, Number)
            is_largest = both and self.tiles.sums.maxima.is_one(value.inside)
            if not both or not (has_marker(value) or is_largest):
                continue
            if value.axes == start.axes and not is_kept(start, value):
                kinds = spelled(start.dtype), spelled(value.dtype)
                raise NotRead(f"{name} is {kinds[0]}, and {kinds[1]} after a turn")
            carried[name] = start, value, marker_of(name, turn)
        left = self.tiles.sums.running.left(carried, turn, turns)
        for name, value in left.items():
            start, end, _ = carried[name]
            dtype = start.dtype & end.dtype
            self.tiles.keep_sum(dtype, lines[name])
            local[name] = replace(value, dtype=dtype)


@contextmanager
def forgotten(tiles: Tiles) -> Iterator[None]:
    """A reading of which nothing stays but what the claim is for; memory is empty in it."""
    rooms = [tiles, tiles.memory, tiles.places, tiles.sums, tiles.sums.running]
    rooms.append(tiles.widths)
    states = []
    for room in rooms:
        held = {k: v for k, v in vars(room).items() if isinstance(v, dict | list | set)}
        kept = ("told", "unread")
        states += [(part, copy(part)) for k, part in held.items() if k not in kept]
    for accesses in (tiles.memory.loads, tiles.memory.stores, tiles.memory.faults):
        accesses.clear()
    try:
        yield
    finally:
        for part, state in states:
            part.clear()
            extend = part.extend if isinstance(part, list) else part.update
            extend(state)


NEGATED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}


class Rest(ast.If):
    """What follows `if condition: return`, as a branch: Triton compiles it outside of one."""


def guarded_rest(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with the rest after `if condition: return` under the opposite condition."""
    for position, node in enumerate(body):
        match node:
            case ast.If(
                ast.Compare(left, [operator], right), [ast.Return(None)], []
            ) if type(operator) in NEGATED:
                test = ast.Compare(left, [NEGATED[type(operator)]()], right)
            case ast.If(test, [ast.Return(None)], []):
                test = ast.UnaryOp(ast.Not(), test)
            case _:
                continue
        guard = Rest(test, guarded_rest(body[position + 1 :]), [])
        return [*body[:position], ast.copy_location(guard, node)]
    return body


def parameters(function: ast.FunctionDef) -> tuple[list[str], dict[str, ast.expr]]:
    """(the names of a function's parameters, {name: its default})."""
    args = function.args
    if args.kwarg or has_marks(args):
        raise NotRead(f"{function.name} takes any number of arguments, or has * or /")
    return positional(args), defaults_of(args)


def annotated(node: ast.arg) -> str:
    """The last part of an argument's annotation."""
    text = "" if node.annotation is None else ast.unparse(node.annotation)
    return text.strip("'\"").rpartition(".")[2]


def is_dtype(node: ast.arg) -> bool:
    """Whether an argument's annotation is a dtype of Triton's, with which a size that is 1 is no constant."""
    text = "" if node.annotation is None else ast.unparse(node.annotation)
    home = text.strip("'\"").rpartition(".")[0]
    return annotated(node) in NUMBERS and home in ("", "tl", "triton.language")


def check_annotation(node: ast.arg, value: object) -> None:
    """Refuse a dtype that a kernel's signature gives an argument, unless it holds what is bound.

    For an argument as N: tl.int8, to which Triton casts what it is given. Without it N = 300 is 44, and y is proved.
    """
    kinds = ANNOTATIONS.get(annotated(node))
    if isinstance(value, Given):
        value = value.value
    if is_constexpr(node):
        return
    if isinstance(value, str | Dtype):
        why = f"{node.arg} is a text or a dtype, and no tl.constexpr"
        raise uncompiled(why)
    if node.annotation is None or kinds and isinstance(value, kinds):
        return
    text = ast.unparse(node.annotation)
    words = "leave the annotation out, or bind what it holds"
    reason = NotRead(f"{node.arg}: {text}, which may not hold what is bound; {words}")
    reason.line = node.lineno
    raise reason


def added_to(name: str, node: ast.stmt) -> ast.expr | None:
    """The step of `name += step`, `name = name + step` and `name = tl.advance(name, step)`; None of all else."""
    match node:
        case ast.AugAssign(ast.Name(to), ast.Add(), step) if to == name:
            return step
        case ast.Assign([ast.Name(to)], ast.BinOp(ast.Name(start), ast.Add(), step)):
            if to == start == name:
                return step
        case ast.Assign([ast.Name(to)], ast.Call(called, [ast.Name(start), step], [])):
            if to == start == name and ast.unparse(called).endswith("advance"):
                return step
    return None


def names_in(node: ast.AST) -> set[str]:
    """The names in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def is_kept(before: object, after: object) -> bool:
    """Whether a branch or a loop that runs leaves the kind of a value, for dtypes with which Triton compiles it."""
    if type(before) is not type(after):
        return False
    if not isinstance(before, VALUES):
        return True
    both = before.dtype & after.dtype
    same = before.dtype <= after.dtype or both and len(after.dtype) > 1
    return before.axes == after.axes and bool(same)


def check_kept(name: str, before: object, after: object) -> None:
    """Refuse a value whose dtype or number of axes a branch or a loop that runs changes, whatever the tensors' dtypes.

    For an accumulator of float32. It stops one of float16 to which each turn adds float32, and a number that becomes a
    tile, even where it is not used afterwards.
    """
    if not isinstance(before, VALUES) or not isinstance(after, VALUES):
        return
    where = "after a branch or a turn of a loop"
    if not before.dtype & after.dtype:
        kinds = spelled(before.dtype), spelled(after.dtype)
        raise uncompiled(f"{name} is {kinds[0]}, and {kinds[1]} {where}")
    if len(before.axes) != len(after.axes):
        counts = len(before.axes), len(after.axes)
        raise uncompiled(f"{name} has {counts[0]} axes, and {counts[1]} {where}")


def is_either(one: object, other: object) -> bool:
    """Whether two values that a dtype chooses from differ in dtypes alone."""
    return one == other or isinstance(one, Dtype) and isinstance(other, Dtype)


def of_either(one: object, other: object) -> object:
    """One of two values that differ in dtypes alone."""
    if isinstance(one, Dtype):
        return Dtype(one.names | other.names)
    if isinstance(one, Index | Number):
        return replace(one, dtype=one.dtype | other.dtype)
    return one


def of_any_dtype(value: object) -> object:
    """The value, of whose dtype nothing is known."""
    return replace(value, dtype=ANY) if isinstance(value, Number) else value


def parts_of(body: list[ast.stmt]):
    """All nodes of statements."""
    return ast.walk(ast.Module(body, []))


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


def flat(body: list[ast.stmt]):
    """Statements, and those inside their branches."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from flat(node.body)
            yield from flat(node.orelse)
