"""A kernel's text, run on expressions: what the reader of Triton's kernels and that of Numba's loops have in common."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module

from sympy import Add, Expr, Function, Indexed, Mul, Pow, Sum, Symbol, evaluate, nan

from .definitions import Defs
from .proof import lettered, prove
from .signs import is_nonnegative
from .symbols import N, i, j

PROGRAM, PROGRAMS = (
    Symbol(name, integer=True) for name in ("program_id_0", "num_programs")
)
FLOOR, REMAINDER = (Function(name, integer=True) for name in ("floordiv", "mod"))


class Unread(ValueError):
    """A line that this reader does not follow, or that is wrong in itself, such as a sum over what is not there."""


class _Return(Exception):
    pass


class Verdict(dict):
    """What is proved of a kernel, {what is stored: Proof}, and under which assumptions.

    Args:  proofs: the proofs; assumed: the assumptions, as text
    """

    def __init__(self, proofs, assumed):
        super().__init__(proofs)
        self.assumed = tuple(assumed)

    def __str__(self):
        names = [
            name if isinstance(name, str) else ", ".join(map(str, name))
            for name in self
        ]
        lines = [
            f"{name}: {_words(proof)}"
            for name, proof in zip(names, self.values(), strict=True)
        ]
        return "\n".join(lines + [f"assumed: {text}" for text in self.assumed])


def _words(proof):
    return str(proof).partition(":")[0]


@dataclass
class Reading:
    """What a kernel stores.

    Args:  stored: {argument without _ptr: expression in i and j}; maxima: {name: expression of i and j}, for each row
           its largest value; norms: what is compared with EPS or 0 and was seen to be the norm of a row
           overwritten: the arguments that are read before the kernel writes them
           assumed: what the reading assumes besides trusted, which every reading does
    """

    stored: dict[str, Expr] = field(default_factory=dict)
    maxima: dict[str, Expr] = field(default_factory=dict)
    norms: set[Expr] = field(default_factory=set)
    overwritten: set[str] = field(default_factory=set)
    assumed: set[str] = field(default_factory=set)
    trusted: tuple[str, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """All that a proof of what is stored stands on."""
        before = [
            f"{name}, where it is read, is {name} before the kernel runs"
            for name in sorted(self.overwritten)
        ]
        return (*sorted(self.assumed), *before, *self.trusted)

    def assume_range(self):
        """For a kernel that gives nan where the squares of a row have left the range of a dtype."""
        self.assumed.add("the squares of a row stay within the range of its dtype")

    def check_definitions(self, defs: Defs):
        """Refuse a kernel that reads what it is to compute: what it reads would be taken for what is defined."""
        heads = {str(getattr(head, "base", head)) for head, _ in defs}
        for name in sorted(self.overwritten & heads):
            raise Unread(
                f"{name} is read before it is written, and the definitions say what it is after"
            )

    def prove(self, outputs: dict[str, Expr], defs: Defs) -> Verdict:
        """Prove what is stored, for every M and N.

        Args:     outputs: {argument without _ptr: what it is to hold}, all that the kernel stores
        Raises:   NotProved, with a counterexample where one is known; Unread where it stores other arguments, or reads
                  what it is to compute
        """
        if set(outputs) != set(self.stored):
            raise Unread(
                f"outputs: got {sorted(outputs)}, but the kernel stores {sorted(self.stored)}"
            )
        self.check_definitions(defs)
        proofs = {
            name: prove(self.stored[name], e, defs, where=name)
            for name, e in outputs.items()
        }
        return Verdict(proofs, self.assumptions)

    def __str__(self):
        lines = [f"{name} holds {lettered(e)[0]}" for name, e in self.stored.items()]
        return "\n".join(lines + [f"assumed: {text}" for text in self.assumptions])


def undecorated(function):
    """The function that Triton or Numba was given."""
    return getattr(function, "py_func", getattr(function, "fn", function))


def has_index(
    e: Expr, indices: frozenset[Symbol] = frozenset({i, j, PROGRAM, PROGRAMS})
) -> bool:
    """Whether an index is a number of an expression, besides saying which entry of a tensor is meant.

    A program counts rows and columns from 0, the definitions from 1.
    """
    if isinstance(e, Indexed):
        return False
    if isinstance(e, Sum):
        return has_index(e.function, indices | {limit[0] for limit in e.limits})
    return e in indices or any(has_index(part, indices) for part in e.args)


def is_norm_of_row(e: Expr) -> bool:
    """Whether an expression is the square root of a row's squares, added up or averaged."""
    squares = [factor for factor in Mul.make_args(e**2) if isinstance(factor, Sum)]
    if (
        len(squares) != 1
        or e**2 / squares[0] not in (1, 1 / N)
        or not is_nonnegative(e)
    ):
        return False
    (_, *bounds), square = squares[0].limits[-1], squares[0].function
    return (
        len(squares[0].limits) == 1
        and bounds == [1, N]
        and isinstance(square, Pow)
        and square.exp == 2
    )


@lru_cache(maxsize=256)
def parsed(function) -> ast.FunctionDef:
    """The syntax tree of a kernel or of a function that it calls, of which there are many calls."""
    return ast.parse(textwrap.dedent(inspect.getsource(undecorated(function)))).body[0]


class TextReader:
    """Runs a kernel's statements; how values are held, stored and computed with is its subclasses' matter.

    Args:  constants, above, zero, names: as `read` of the subclass's module
    """

    # What the text is written in, for messages; what every reading assumes; {function that is not read: its module}.
    language, trusted, package = "", (), {}

    def __init__(self, constants, above, zero, names):
        self.constants, self.above, self.zero, self.names = (
            constants,
            above,
            zero,
            names,
        )
        self.reading, self.scope, self.line = Reading(trusted=self.trusted), {}, ""
        # The loops around a line, and how many of them stand around the function that it is in.
        self.loops, self.outside = [], 0

    def read(self, kernel) -> Reading:
        """What a kernel stores."""
        tree, self.scope = parsed(kernel), undecorated(kernel).__globals__
        self.arguments = [argument.arg for argument in tree.args.args]
        with evaluate(True):
            try:
                self.block(
                    tree.body, {name: self.argument(name) for name in self.arguments}
                )
            except _Return:
                self.refuse("a kernel returns nothing")
            except (AttributeError, KeyError, TypeError, IndexError) as error:
                raise Unread(
                    f"{self.line}: no {self.language} that this reader follows ({error})"
                ) from error
            self.finish()
        return self.reading

    def finish(self):
        """Refuse what only the whole text shows."""

    def refuse(self, why):
        """Unread, with the line that is being run."""
        raise Unread(f"{self.line.removesuffix(':')}: {why}")

    # statements

    def block(self, lines, local):
        """Runs statements with these local names."""
        for line in lines:
            self.line = ast.unparse(line).partition("\n")[0]
            if isinstance(line, ast.Expr):
                if not isinstance(line.value, ast.Constant):
                    self.value(line.value, local)
            elif isinstance(line, ast.Return):
                if len(self.loops) > self.outside:
                    self.refuse("a loop that ends early")
                local["return"] = self.value(line.value, local)
                raise _Return
            elif isinstance(line, ast.If):
                self.block(
                    line.body if self.decided(line.test, local) else line.orelse, local
                )
            elif isinstance(line, ast.For):
                name = ast.unparse(getattr(line.iter, "func", line.iter))
                if (
                    line.orelse
                    or name not in ("range", "tl.range")
                    or "range" in self.scope
                ):
                    self.refuse("a loop over something else than a range")
                self.loop(line, local)
            elif isinstance(line, ast.AugAssign):
                self.change(line, local)
            elif isinstance(line, ast.Assign):
                value = self.value(line.value, local)
                for target in line.targets:
                    self.assign(target, value, local)
            else:
                self.refuse("a statement that this reader does not know")

    def change(self, line, local):
        """Runs a statement such as `total += e`."""
        left, right = self.value(line.target, local), self.value(line.value, local)
        self.assign(line.target, self.operate(line.op, left, right), local)

    def assign(self, target, value, local):
        """Gives a value a name, or names to its parts."""
        if isinstance(target, ast.Tuple):
            for one, part in zip(target.elts, value, strict=True):
                self.assign(one, part, local)
        elif isinstance(target, ast.Name):
            local[target.id] = value
        else:
            self.refuse("a statement that this reader does not know")

    def decided(self, test, local) -> bool:
        """Whether a condition holds; Unread where that is known only while the kernel runs."""
        found = self.value(test, local)
        if not isinstance(found, bool):
            self.refuse(
                f"a branch on what is known only while the kernel runs, {ast.unparse(test)}"
            )
        return found

    def inlined(self, function, given, named=None):
        """What a function returns that the kernel calls."""
        tree, before = parsed(function), (self.scope, self.line, self.outside)
        names = [each.arg for each in tree.args.args]
        defaults = zip(reversed(names), reversed(tree.args.defaults), strict=False)
        local = {name: self.value(default, {}) for name, default in defaults}
        local |= dict(zip(names, given, strict=False)) | (named or {})
        if set(local) != set(names) or len(given) > len(names):
            self.refuse(f"{tree.name} needs {', '.join(names)}")
        self.scope, self.outside = undecorated(function).__globals__, len(self.loops)
        try:
            self.block(tree.body, local)
        except _Return:
            pass
        self.scope, self.line, self.outside = before
        return local.get("return")

    # expressions

    def value(self, e, local):
        """What an expression is worth: by the method for its kind."""
        method = getattr(self, f"value_{type(e).__name__.lower()}", None)
        if method is None:
            self.refuse(f"{ast.unparse(e)}, which this reader does not know")
        return method(e, local)

    def value_name(self, e, local):
        """What a name stands for, here or in the module of the function."""
        if e.id in local:
            return local[e.id]
        if e.id not in self.scope:
            self.refuse(f"{e.id} has no value")
        return self.scope[e.id]

    def value_tuple(self, e, local):
        """Each part."""
        return tuple(self.value(part, local) for part in e.elts)

    def value_binop(self, e, local):
        """The subclass's `operate` of both sides."""
        return self.operate(e.op, self.value(e.left, local), self.value(e.right, local))

    def value_boolop(self, e, local):
        """Of conditions that are decided."""
        found = (self.decided(part, local) for part in e.values)
        return all(found) if isinstance(e.op, ast.And) else any(found)

    def asked_of_a_norm(self, kind, value, bound) -> bool:
        """Whether value > bound or value == bound, as is assumed: only of a row's norm, and of EPS or 0."""
        limits = [
            self.constants[name] for name in ("EPS", "eps") if name in self.constants
        ]
        is_limit = bound == 0 or kind is ast.Gt and bound in limits
        if not is_limit or not is_norm_of_row(value):
            pair = f"{lettered(value)[0]} and {lettered(bound)[0]}"
            self.refuse(
                f"only the norm of a row is compared, with EPS or 0, and not {pair}"
            )
        self.reading.norms.add(value)
        # Of 0 it is asked whether the row is one of zeros.
        relation, holds = (">", self.above) if bound != 0 else ("==", self.zero)
        sign = relation if holds else {">": "<=", "==": "!="}[relation]
        self.reading.assumed.add(f"{lettered(value)[0]} {sign} {bound} in every row")
        return holds if kind is ast.Eq or bound != 0 else not holds

    def check_value(self, name, *numbers):
        """Refuse to store or compare an index, or a quotient of integers, as a number."""
        if any(number.has(FLOOR, REMAINDER) or has_index(number) for number in numbers):
            self.refuse(f"{name} is a number that depends on where it stands")

    def check_whole(self, op, *numbers):
        """Refuse a quotient or remainder of what are not whole numbers."""
        if isinstance(op, ast.FloorDiv | ast.Mod) and not all(
            number.is_integer for number in numbers
        ):
            self.refuse("// and % are followed for indices and sizes only")

    def is_own(self, name, own) -> bool:
        """Whether a name stands for the package's function of that name, or for one of the very text."""
        if name != own or name not in self.scope:
            return False
        trusted, function = (
            getattr(import_module(self.package[own]), own),
            self.scope[name],
        )
        return function is trusted or ast.dump(parsed(function)) == ast.dump(
            parsed(trusted)
        )


def _quotient(a, b):
    return nan if b == 0 else a / b


OPERATIONS = {
    ast.Add: Add,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: Mul,
    ast.Div: _quotient,
    ast.Pow: Pow,
    ast.FloorDiv: FLOOR,
    ast.Mod: REMAINDER,
}
