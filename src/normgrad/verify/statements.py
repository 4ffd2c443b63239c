"""A kernel's statements, run once on symbols: a loop's body stands for any of its turns."""

from __future__ import annotations

import ast
from contextlib import suppress

from sympy import Expr, Symbol, expand, nan

from .binding import COLUMNS, ROWS, WHOLE, T
from .calls import Calls
from .expressions import Function
from .sums import has_marker, marker_of
from .syntax import Returned, Walker, bound_arguments, defaults_of, positional
from .values import Dtype, Index, Mask, NotRead, Number, Qualified

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

    def read_AugAssign(self, node, local):
        """name += value."""
        value = self.value_BinOp(ast.BinOp(node.target, node.op, node.value), local)
        self.assign(node.target, value, local)

    def read_If(self, node, local):
        """A branch: decided by the binding, by a dtype that changes nothing, or a guard of the rows."""
        test = self.evaluate(node.test, local)
        if isinstance(test, Mask) and not test.axes and not node.orelse:
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
            if name not in before or value is not before[name]:
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
        bounds = [self.evaluate(part, local) for part in (*start, *call.args, *step)]
        if any(not isinstance(b, Index) or b.axes for b in bounds):
            raise NotRead("a loop between what are no integers")
        self.loop(node.body, node.target.id, [b.e for b in bounds], local)

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
        before = dict(local)
        for name in names & set(local):
            if isinstance(local[name], Number):
                marker = marker_of(name, turn)
                local[name] = Number((marker,) * 4, local[name].axes)
            else:
                del local[name]
        local[counter] = Index(expand(low + turn * step))
        line = self.line
        self.places.active.append(turn)
        self.inner += 1
        self.execute(body, local)
        self.inner -= 1
        self.line = line
        self.places.active.pop()
        self._leave(before, names | {counter}, turn, local)

    def _live(self, body, names, local):
        """A loop's statements without the branches that flags from outside it rule out."""
        live = []
        for node in body:
            if isinstance(node, ast.For):
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

    def _leave(self, before, names, turn, local):
        """What the names hold after all turns; those that hold the last turn's value have none."""
        for name in names & set(local):
            value, start = local[name], before.get(name)
            carried = isinstance(start, Number) and isinstance(value, Number)
            marker = marker_of(name, turn)
            if not carried or not has_marker(value):
                del local[name]
            elif value == Number((marker,) * 4, start.axes):
                local[name] = start
            else:
                local[name] = self.sums.added_up(name, start, value, marker, turn)


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


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements assign."""
    parts = [part for node in body for part in ast.walk(node)]
    names = [part for part in parts if isinstance(part, ast.Name)]
    return {part.id for part in names if isinstance(part.ctx, ast.Store)}
