"""A kernel's statements, run once on symbols: a loop's body stands for any of its turns."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import replace

from sympy import Expr, Symbol, expand, nan

from .binding import COLUMNS, ROWS, WHOLE, T
from .calls import Calls
from .expressions import Function
from .sums import has_marker, marker_of
from .syntax import Returned, Walker, bound_arguments, defaults_of, positional
from .values import Dtype, Index, Mask, NotRead, Number, Pointer, Qualified

SPEED = {
    "num_stages",
    "loop_unroll_factor",
    "disallow_acc_multi_buffer",
    "flatten",
    "warp_specialize",
}
DEEPEST, LONGEST = 20, 64


class Reader(Calls):
    """Runs a kernel."""

    def __init__(self, source, launch, fill=nan):
        super().__init__(source, launch, fill)
        self.depth, self.inner = 0, 0

    def check_binding(self, kernel: str) -> None:
        """ValueError where the binding names what is no argument, and no constant that was read."""
        names, _ = parameters(self.source.function(kernel))
        for name, bound in self.launch.arguments.items():
            early = not self.line and name.isupper() and not isinstance(bound, T)
            if name not in {*names, *self.constants} and not early:
                message = f"binding: got {name}, needs one of {', '.join(names)}"
                raise ValueError(message)

    def _check_settings(self, kernel):
        """Refuses a binding that the text's own decorators contradict."""
        names, _ = parameters(self.source.function(kernel))
        for name, value, tuned in self.source.settings(kernel):
            literal = isinstance(value, ast.Constant)
            bound = name in self.launch.arguments
            if name not in names or not literal and not bound:
                continue
            promised = self.launch.arguments.get(name)
            if promised in (ROWS, COLUMNS):
                continue
            left_open = isinstance(promised, str | bool)
            if promised is WHOLE:
                left_open = not tuned
            agrees = literal and promised == value.value
            if not agrees and (literal or not left_open):
                text = f"{ast.unparse(value)} by a decorator"
                raise NotRead(f"{name} is {text}, and bound as {promised}")

    def read(self, kernel: str) -> dict[str, Expr]:
        """{argument: what it holds in the end}; NotRead for a line that is not followed."""
        function = self.source.function(kernel)
        names, defaults = parameters(function)
        local = {name: self.argument(name, defaults.get(name)) for name in names}
        self._check_settings(kernel)
        self.run(Function(self.source, function), local)
        return self.memory.left()

    def inlined(self, function: Function, args, named):
        """What a function returns."""
        line = self.line
        if self.depth == DEEPEST:
            raise NotRead("functions that call each other without end")
        self.depth += 1
        before, self.source = self.source, function.source
        defaults = defaults_of(function.node.args)
        defaults = {name: self.evaluate(node, {}) for name, node in defaults.items()}
        self.source = before
        local = bound_arguments(function.node.args, args, named, defaults)
        value = self.run(function, local)
        self.depth -= 1
        self.line = line
        return value

    def run(self, function: Function, local: dict):
        """Runs a function's body."""
        before = self.source, self.inner
        self.source, self.inner = function.source, 0
        value = None
        try:
            self.execute(guarded_rest(function.node.body), local)
        except Returned as returned:
            value = returned.args[0]
        self.source, self.inner = before
        return value

    # statements

    read_Assert = Walker.read_Pass

    def read_Return(self, node, local):
        """The value of the function."""
        if self.inner:
            raise NotRead("a return from inside a loop or a branch")
        super().read_Return(node, local)

    def read_AnnAssign(self, node, local):
        """name: tl.constexpr = value."""
        if node.value is None:
            raise NotRead("a name without a value")
        super().read_AnnAssign(node, local)

    def read_AugAssign(self, node, local):
        """name += value."""
        value = self.value_BinOp(ast.BinOp(node.target, node.op, node.value), local)
        self.assign(node.target, value, local)

    def read_If(self, node, local):
        """A branch: decided by the binding, by a dtype that changes nothing, or a guard of the rows."""
        test = self.evaluate(node.test, local)
        if isinstance(test, Mask) and not test.axes:
            holds = [self.places.below(*pair) for pair in test.below]
            if None in holds and False not in holds and not node.orelse:
                return self._guarded(node, test, local)
        decided = self.decided(test)
        if decided is None:
            return self._either(node, local)
        return self.execute(node.body if decided else node.orelse, local)

    def _either(self, node, local):
        """Both ways of a branch on a dtype, which may differ in dtypes alone."""
        ways, memory = [dict(local), dict(local)], self.memory
        before = {name: len(stores) for name, stores in memory.stores.items()}
        self.inner += 1
        for way, body in zip(ways, (node.body, node.orelse), strict=True):
            self.execute(body, way)
        self.inner -= 1
        if before != {name: len(stores) for name, stores in memory.stores.items()}:
            raise NotRead("a store that depends on a dtype")
        local.clear()
        for name in ways[0].keys() & ways[1].keys():
            first, second = ways[0][name], ways[1][name]
            if first == second:
                local[name] = first
            elif isinstance(first, Dtype) and isinstance(second, Dtype):
                local[name] = Dtype("")

    def _guarded(self, node, mask, local):
        """`if row < M:` for an index that the launch does not decide: its stores are masked by it."""
        before = dict(local)
        self.memory.guards.append(mask.below)
        self.inner += 1
        self.execute(node.body, local)
        self.inner -= 1
        self.memory.guards.pop()
        for name, value in list(local.items()):
            if name not in before:
                del local[name]
            elif value is not before[name] and value != before[name]:
                both = [value, before[name]]
                if all(isinstance(v, Number) and v.complete for v in both):
                    local[name] = self.where(mask, *both)
                else:
                    del local[name]

    # loops

    def read_For(self, node, local):
        """A loop over a range: its body is run once, for any turn."""
        call = node.iter
        called = self.evaluate(call.func, local) if isinstance(call, ast.Call) else None
        paths = ("triton.language.range", "triton.language.static_range")
        path = called.path if isinstance(called, Qualified) else ""
        if path not in ("builtins.range", *paths) or node.orelse:
            raise NotRead("a loop over what is no range")
        if any(keyword.arg not in SPEED for keyword in call.keywords):
            raise NotRead("a range with arguments that are not read")
        if not isinstance(node.target, ast.Name) or not 1 <= len(call.args) <= 3:
            raise NotRead("a range of this kind")
        start = [] if len(call.args) > 1 else [ast.Constant(0)]
        step = [] if len(call.args) > 2 else [ast.Constant(1)]
        bounds = self._bounds((*start, *call.args, *step), local)
        self.loop(node.body, node.target.id, bounds, local)

    def _bounds(self, parts, local):
        bounds = [self.evaluate(part, local) for part in parts]
        if any(not isinstance(bound, Index) or bound.axes for bound in bounds):
            raise NotRead("a loop between what are no integers")
        return [bound.e for bound in bounds]

    def read_While(self, node, local):
        """`while counter < end:` whose last line is `counter += step`, as a loop over a range."""
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
        del local[counter]
        self.loop(body, counter, bounds, local)

    def loop(self, body, counter, bounds, local):
        """Runs a loop's body, once for any turn, or turn by turn where the text says how many."""
        low, high, step = map(expand, bounds)
        body = self._live(body, assigned(body) | {counter}, local)
        names = assigned(body)
        if counter in names:
            raise NotRead(f"{counter} is a loop's counter and is assigned in it")
        if not (step.is_positive or step.is_negative):
            raise NotRead("a loop whose step has no known sign")
        turns = self.places.turns(low, high, step)
        if turns.is_Integer:
            return self._unrolled(body, counter, [low, step], int(turns), local)
        turn = Symbol(f"turn_{len(self.places.loops)}", integer=True, nonnegative=True)
        self.places.loops[turn] = (low, high, step)
        before, after = dict(local), self._carried(body, names, turn, local)
        local[counter] = Index(expand(low + turn * step))
        line = self.line
        self.places.active.append(turn)
        self.inner += 1
        self.execute(body, local)
        self.inner -= 1
        self.line = line
        for name, value in after.items():
            if local.get(name) != value:
                raise NotRead(f"{name} does not move by the same step in each turn")
        self.places.active.pop()
        self._leave(before, names | {counter}, after, turn, turns, local)

    def _live(self, body, names, local):
        """A loop's statements without the branches that flags from outside it rule out."""
        live = []
        for node in body:
            if isinstance(node, ast.For | ast.While):
                inner = self._live(node.body, names, local)
                fields = {**dict(ast.iter_fields(node)), "body": inner}
                node = ast.copy_location(type(node)(**fields), node)
            elif isinstance(node, ast.If) and not names_in(node.test) & names:
                decided = None
                with suppress(NotRead):  # the branch itself says so, if it is read
                    decided = self.decided(self.evaluate(node.test, local))
                if decided is not None:
                    branch = node.body if decided else node.orelse
                    live += self._live(branch, names, local)
                    continue
            live.append(node)
        return live

    def _unrolled(self, body, counter, start, turns, local):
        low, step = start
        if turns > LONGEST:
            raise NotRead(f"a loop of {turns} turns that are counted in the text")
        for turn in range(turns):
            local[counter] = Index(expand(low + turn * step))
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
        for name in sorted(names & set(local) - set(after)):
            value = local[name]
            if isinstance(value, Index) and value.e.is_number and not value.axes:
                value = self.number(value)
            if isinstance(value, Number):
                marker = marker_of(name, turn)
                self.sums.running.axes[marker] = value.axes
                local[name] = Number((marker,) * 4, value.axes, integer=value.integer)
            else:
                del local[name]
        return after

    def _moved(self, value, turns, step):
        if isinstance(value, Pointer) and value.edges:
            offsets = tuple(Index(expand(turns * e)) for e in step)
            return self.call_advance(value, offsets)
        if isinstance(value, Pointer):
            moved = replace(value.offset, e=expand(value.offset.e + turns * step))
            return replace(value, offset=moved)
        return replace(value, e=expand(value.e + turns * step))

    def _step(self, body, name, names, local):
        """How far a line such as `pointer += step` moves a pointer or a counter in each turn."""
        value = local[name]
        if not isinstance(value, Pointer | Index) or count_of(body, name) != 1:
            return None
        for node in flat(body):
            added = None
            if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
                added = node.value if isinstance(node.op, ast.Add) else None
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                added = self._added(node.value, name)
            if added is None or names_in(added) & names:
                continue
            step = self.evaluate(
                added, {k: v for k, v in local.items() if k not in names}
            )
            if isinstance(step, tuple):
                return tuple(part.e for part in step)
            return step.e if isinstance(step, Index) and not step.axes else None
        return None

    @staticmethod
    def _added(node, name):
        """What is added, in `name + step` or `tl.advance(name, step)`."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return node.right if ast.unparse(node.left) == name else None
        if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
            advance = ast.unparse(node.func).endswith("advance")
            if advance and ast.unparse(node.args[0]) == name:
                return node.args[1]
        return None

    def _leave(self, before, names, after, turn, turns, local):
        """What the names hold after all turns; those that hold the last turn's value have none."""
        carried = {}
        for name in sorted(names & set(local)):
            value, start = local.pop(name), before.get(name)
            if name in after:
                if isinstance(value, Index) and turns.is_nonnegative:
                    moved = value.e.xreplace({turn: turns - 1})
                    local[name] = replace(value, e=expand(moved))
                continue
            if isinstance(start, Index) and isinstance(value, Number):
                start = self.number(start)
            both = isinstance(start, Number) and isinstance(value, Number)
            if not both or not has_marker(value):
                continue
            if start.integer != value.integer:
                raise NotRead(f"{name} is an integer, and a number after a turn")
            carried[name] = start, value, marker_of(name, turn)
        local |= self.sums.running.left(carried, turn, turns)


NEGATED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}


def guarded_rest(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with the rest after `if condition: return` under the opposite condition."""
    for position, node in enumerate(body):
        match node:
            case ast.If(test=test, body=[ast.Return(value=None)], orelse=[]):
                match test:
                    case ast.Compare(ops=[operator]) if type(operator) in NEGATED:
                        opposite = NEGATED[type(operator)]()
                        test = ast.Compare(test.left, [opposite], test.comparators)
                    case _:
                        test = ast.UnaryOp(ast.Not(), test)
                rest = guarded_rest(body[position + 1 :]) or [
                    ast.Pass(lineno=node.lineno)
                ]
                return [
                    *body[:position],
                    ast.copy_location(ast.If(test, rest, []), node),
                ]
    return body


def parameters(function: ast.FunctionDef) -> tuple[list[str], dict[str, ast.expr]]:
    """(the names of a function's parameters, {name: its default})."""
    args = function.args
    if args.vararg or args.kwarg:
        raise NotRead(f"{function.name} takes any number of arguments")
    named = [a.arg for a in args.kwonlyargs]
    return positional(args) + named, defaults_of(args)


def names_in(node: ast.AST) -> set[str]:
    """The names in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _stored(body):
    for node in body:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    return set(_stored(body))


def count_of(body: list[ast.stmt], name: str) -> int:
    """How often statements assign a name."""
    return list(_stored(body)).count(name)


def flat(body: list[ast.stmt]):
    """Statements, and those inside their branches."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from flat(node.body)
            yield from flat(node.orelse)
