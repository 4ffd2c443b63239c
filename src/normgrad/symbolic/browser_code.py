"""Browser code from definitions, as codegen writes array code: what is proved is what a figure in the book draws.

A definition name[i, j] := expression becomes one line with a loop per index; a sum is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sympy import Add, Expr, Mul, S

from .calculus import free_letters
from .codegen import Code, computation, label
from .definitions import Defs

# What every function below is written with. `f` rounds the result of an operation, for formats narrower than float64.
HELPERS = """\
const map = (n, value) => Array.from({length: n}, (_, at) => value(at));
const sum = (n, value, f = (exact) => exact) => {
  let total = 0;
  for (let at = 0; at < n; at++) total = f(total + value(at));
  return total;
};
"""
_WORDS = {"map", "sum", "f", "Math", "const", "return", "function"}


class BrowserCode(Code):
    """Expressions as the code that browsers run.

    Args:  letters: {index letter: its name in the code}; taken: names that no other letter may have
           rounded: whether each operation is handed to `f`
    """

    WHAT = "browser code"

    def __init__(self, letters: dict, taken: set, rounded: bool = False):
        self.letters, self.taken, self.f = letters, taken, "f" if rounded else ""

    def code(self, e: Expr) -> str:
        """The code of an expression, every operation in parentheses.

        Raises:  NotImplementedError for a node that has no such form
        """
        if e.is_Symbol:
            return self.letters.get(e, str(e))
        if e.is_Rational and not e.is_Integer:
            return f"{self.f}({e.p} / {e.q})"
        if isinstance(e, Add | Mul):
            sign = " + " if isinstance(e, Add) else " * "
            return reduce(
                lambda first, other: f"{self.f}({first}{sign}{other})",
                map(self.code, e.args),
            )
        return super().code(e)

    def _indexed(self, e):
        return str(e.base.label) + "".join(
            f"[{self.code(letter)}]" for letter in e.indices
        )

    def _delta(self, e):
        first, second = map(self.code, e.args[:2])
        return f"({first} === {second} ? 1 : 0)"

    def _sum(self, e):
        absent = [
            last for letter, _, last in e.limits if not e.function.has_free(letter)
        ]
        present = [limit for limit in e.limits if e.function.has_free(limit[0])]
        inner = BrowserCode(dict(self.letters), set(self.taken), bool(self.f))
        names = [inner.named(letter) for letter, _, _ in present]
        code = inner.code(e.function)
        for name, (_, _, last) in zip(reversed(names), reversed(present), strict=True):
            code = f"sum({last}, ({name}) => {code}{', f' * bool(self.f)})"
        for last in absent:
            code = f"{self.f}({last} * {code})"
        return code

    def named(self, letter) -> str:
        """A name for an index letter, its own where nothing else has it."""
        name = str(letter)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.letters[letter] = name
        return name

    def _power(self, e):
        base = self.code(e.base)
        if e.exp == S.Half:
            return f"{self.f}(Math.sqrt({base}))"
        if e.exp == -1:
            return f"{self.f}(1 / {base})"
        if e.exp == -S.Half:
            return f"{self.f}(1 / {self.f}(Math.sqrt({base})))"
        return f"{self.f}({base} ** {self.code(e.exp)})"

    def _maximum(self, e):
        return f"Math.max({', '.join(map(self.code, e.args))})"

    def _piecewise(self, e):
        return "({} ? {} : {})".format(*self._cases(e))


def browser_source(
    defs: Defs, outputs: Sequence, name: str, rounded: bool = False
) -> str:
    """The source of a function that computes the outputs from the inputs of their definitions.

    Args:     defs: the definitions; outputs: defined names such as y[i, j]; name: of the function
              rounded: whether the function takes a second argument, which rounds the result of each operation
    Returns:  its text; it takes an object of the inputs, arrays and numbers by their names, and returns one of the
              outputs
    Raises:   ValueError for an output that is not defined, and where a name stands for two things
    """
    made = computation(defs, outputs)
    names = [str(base.label) for base in made.tensors] + [
        *map(str, made.scalars),
        *map(str, made.sizes),
    ]
    names += [label(head) for head, _ in made.lines]
    for one in names:
        if one in _WORDS or not one.isidentifier() or names.count(one) > 1:
            raise ValueError(f"{one}: is no name of its own in the code")
    body = [
        f"  const {last} = {base.label}{'[0]' * axis}.length;"
        for last, (base, axis) in made.sizes.items()
    ]
    for head, formula in made.lines:
        writer = BrowserCode({}, {*names, *_WORDS}, rounded)
        letters = getattr(head, "indices", ())
        loops = [
            (writer.named(letter), last)
            for letter, last in zip(letters, _shape(head), strict=True)
        ]
        unbound = free_letters(formula) - set(letters)
        if unbound:
            raise ValueError(
                f"{head}: the letters {', '.join(sorted(map(str, unbound)))} stand for no index of it"
            )
        code = writer.code(formula)
        for letter, last in reversed(loops):
            code = f"map({last}, ({letter}) => {code})"
        body.append(f"  const {label(head)} = {code};")
    head = f"function {name}({{{made.arguments}}}{', f' * rounded}) {{"
    return "\n".join([head, *body, f"  return {{{made.results}}};", "}", ""])


def _shape(head):
    return head.base.shape if hasattr(head, "indices") else ()
