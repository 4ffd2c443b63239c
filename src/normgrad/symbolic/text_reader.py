"""A kernel's text, run on expressions: what the reader of Triton's kernels and that of Numba's loops have in common."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass, field
from functools import lru_cache

from sympy import Add, Expr, Function, Mul, Pow, Symbol, evaluate, nan

from .proof import lettered

PROGRAM, PROGRAMS = (Symbol(name, integer=True) for name in ("program_id_0", "num_programs"))
FLOOR, REMAINDER = Function("floordiv"), Function("mod")
# What is taken for granted where a kernel asks how large a row's squares are.
RANGE = "the squares of a row stay within the range of its dtype"


class Unread(ValueError):
    """A line that this reader does not follow, or that is wrong in itself, such as a sum over what is not there."""


class _Return(Exception):
    pass


@dataclass
class Reading:
    """What a kernel stores.

    Args:  stored: {argument without _ptr: expression in i and j}; maxima: {name: expression of i and j}, for each row
           its largest value; assumed: what the reading takes for granted, in words
    """

    stored: dict[str, Expr] = field(default_factory=dict)
    maxima: dict[str, Expr] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)

    def __str__(self):
        lines = [f"{name} holds {lettered(e)[0]}" for name, e in self.stored.items()]
        return "\n".join(lines + [f"taken for granted: {each}" for each in sorted(self.assumed)])


def undecorated(function):
    """The function that Triton or Numba was given."""
    return getattr(function, "py_func", getattr(function, "fn", function))


@lru_cache(maxsize=256)
def parsed(function) -> ast.FunctionDef:
    """The syntax tree of a kernel or of a function that it calls, of which there are many calls."""
    return ast.parse(textwrap.dedent(inspect.getsource(undecorated(function)))).body[0]


class TextReader:
    """Runs a kernel's statements; how values are held, stored and computed with is its subclasses' matter.

    Args:  constants, above, zero, names: as `read` of the subclass's module
    """

    # What the text is written in, for messages.
    language = ""

    def __init__(self, constants, above, zero, names):
        self.constants, self.above, self.zero, self.names = constants, above, zero, names
        self.reading, self.scope, self.line = Reading(), {}, ""
        # The loops around a line, and how many of them stand around the function that it is in.
        self.loops, self.outside = [], 0

    def read(self, kernel) -> Reading:
        """What a kernel stores."""
        tree, self.scope = parsed(kernel), undecorated(kernel).__globals__
        self.arguments = [argument.arg for argument in tree.args.args]
        with evaluate(True):
            try:
                self.block(tree.body, {name: self.argument(name) for name in self.arguments})
            except _Return:
                self.refuse("a kernel returns nothing")
            except (AttributeError, KeyError, TypeError, IndexError) as error:
                raise Unread(f"{self.line}: no {self.language} that this reader follows ({error})") from error
        return self.reading

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
                self.block(line.body if self.decided(line.test, local) else line.orelse, local)
            elif isinstance(line, ast.For):
                if line.orelse or ast.unparse(getattr(line.iter, "func", line.iter)) not in ("range", "tl.range"):
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
            self.refuse(f"a branch on what is known only while the kernel runs, {ast.unparse(test)}")
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

    def row_of_zeros(self) -> bool:
        """Whether a row's size is 0, as is assumed."""
        self.reading.assumed.add("a row of zeros" if self.zero else "no row of zeros")
        return self.zero


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
