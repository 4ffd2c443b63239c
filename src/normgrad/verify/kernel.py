"""A kernel, run once on symbols, from its first line to its last: its expressions, calls and assignments.

Four rooms work for it, each with one subject: `header.py`, `branches.py`, `ranges.py` and `locks.py`.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import reduce
from types import EllipsisType

from sympy import Expr, nan

from .binding import Launch
from .branches import Branches, guarded_rest
from .decorators import variable_arguments
from .header import Header
from .language import Language
from .locks import CriticalSection
from .names import Function, Names, Unbound
from .ranges import Ranges
from .source import Source, is_constexpr, is_jit, last_name
from .syntax import (
    Returned,
    Walker,
    assigned,
    bound_arguments,
    defaults_of,
    has_marks,
)
from .tables.dtypes import ANY
from .tiles import Tiles
from .values import (
    UNCOMPILED,
    Dtype,
    Index,
    Mask,
    NotRead,
    Number,
    Pointer,
    Qualified,
    Undecided,
    Wrong,
    as_tensor,
    described,
    of_constants,
    uncompiled,
)

MOST_UNREAD = 8
# calls whose value Triton knows where it knows their arguments
FIXED = ("constexpr", "cdiv", "min", "max", "len", "isinstance", "next_power_of_2")


class Kernel(Walker):
    """Reads a kernel; source: the module of the function that is being read.

    Args:  launch: what its launcher promises; fill: what a masked load without `other` gives
    """

    def __init__(self, source: Source, launch: Launch, fill: Expr = nan):
        super().__init__(Tiles(launch, fill))
        self.tiles, self.launch, self.source = self.values, launch, source
        self.names = Names(self.tiles, source, self._of_module)
        self.language = Language(self.tiles, self._of_numbers)
        # the names in the function that is read which Triton knows while it compiles
        self.fixed: set[str] = set()
        # the functions that are being read, and in how many branches and loops of the last one
        self.callers, self.inner = (), 0
        # the statements after the one that is being read, and how many of them are read with it
        self.following: list[ast.stmt] = []
        self.skipped = 0
        self.header = Header(self)
        self.branches = Branches(self)
        self.ranges = Ranges(self)
        self.section = CriticalSection(self)

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
            case ast.Call() if last_name(node) not in FIXED:
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

    def value_BoolOp(self, node, local):
        """`and` and `or`, which stop at the first value that decides."""
        both, masks = isinstance(node.op, ast.And), []
        undecided = False
        for part in node.values if isinstance(node.values[0], ast.Compare) else ():
            # after what Triton does not know while it compiles, it asks the others, too
            if isinstance(part, ast.Name):
                self.tiles.check_condition(self.evaluate(part, local))
        for part in node.values:
            value = self.evaluate(part, local)
            self.tiles.check_condition(value)
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

    def chosen(self, test, truth, node, local):
        """One of two values, by a test that is decided."""
        return self.branches.chosen(test, truth, node, local)

    def either(self, test, node, local):
        """One of two values, by a dtype."""
        return self.branches.either(test, node, local)

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
        name = function.node.name
        wrappers = function.source.wrappers(name)
        if not all(map(is_jit, wrappers)):
            raise NotRead(f"a call of {name}, which has other decorators than jit")
        if has_marks(function.node.args):
            raise NotRead(f"a call of {name}, which has * or / in its header")
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

    def read(self, kernel: str) -> dict[str, Expr]:
        """{argument: what it holds in the end}; NotRead for a line that is not followed."""
        function = self.source.function(kernel)
        if not any(map(is_jit, self.source.wrappers(kernel))):
            raise NotRead(
                f"{kernel} has no @triton.jit, so it is no kernel", function.lineno
            )
        local = self.header.arguments(kernel)
        self.fixed = set(self.tiles.constexprs)
        unread = self.tiles.memory.unread
        try:
            self.returned(guarded_rest(function.body), local)
            self.tiles.memory.is_read = True
            held = self.tiles.memory.left()
            self.header.check_runs()
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
        defaults = defaults_of(arguments)
        fixed = dict.fromkeys(defaults, True)
        fixed = bound_arguments(arguments, *self.language.passed, fixed)
        self.fixed = {name for name, is_fixed in fixed.items() if is_fixed}
        try:
            defaults = {name: self._default(e) for name, e in defaults.items()}
            local = bound_arguments(arguments, args, named, defaults)
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
            raise NotRead(
                "a pointer that is not kept, so nothing is moved; give it a name"
            )

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
        parts = value if isinstance(value, tuple | list) else [value]
        if any(isinstance(part, str | EllipsisType) for part in parts):
            raise NotRead(f"{ast.unparse(target)}, a name for a text or for ...")
        value = as_tensor(value)
        if isinstance(value, Index | Number):
            value = self.tiles.named(value)
        super().assign(target, value, local)

    def read_AugAssign(self, node, local):
        """name += value."""
        whole = ast.BinOp(node.target, node.op, node.value)
        with self._going_on(node, local):
            self.assign(node.target, self.value_BinOp(whole, local), local)

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
                    self.branches.compile_rest(body[position:], names, *result.args)
                raise

    def inside(self, body, local):
        """Read the statements of a branch or a loop, from where no function returns."""
        self.inner += 1
        self.execute(body, local)
        self.inner -= 1

    def read_If(self, node, local):
        """A branch."""
        self.branches.read(node, local)

    read_Rest = read_If

    def read_For(self, node, local):
        """A loop over a range."""
        self.ranges.read_for(node, local)

    def read_While(self, node, local):
        """A loop that counts, or a lock."""
        if isinstance(node.body[0], ast.Pass):
            length = self.section.read([node, *self.following], local)
            self.skipped = length - 1
        else:
            self.ranges.read_while(node, local)

    def read_Break(self, node, local):
        """A jump out of a loop, which Triton compiles nowhere."""
        raise uncompiled(f"Triton has no {ast.unparse(node)}")

    read_Continue = read_Break


def of_any_dtype(value: object) -> object:
    """The value, of whose dtype nothing is known."""
    return replace(value, dtype=ANY) if isinstance(value, Number) else value
