"""Browser code from definitions, as codegen writes array code: what is proved is what a figure in the book draws.

A definition name[i, j] := expression becomes one line with a loop per index; a sum is a loop of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .codegen import Code, checked_names, computation, label
from .definitions import Defs
from .notation import indices_of, shape_of

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
        super().__init__()
        self.letters, self.taken, self.f = letters, taken, "f" if rounded else ""

    def _result(self, text):
        return f"{self.f}({text})"

    def _operation(self, sign, e):
        return reduce(
            lambda first, second: self._result(f"{first}{sign}{second}"),
            map(self._print, e.args),
        )

    def _print_Symbol(self, e):
        return self.letters.get(e, str(e))

    def _print_Indexed(self, e):
        places = [f"[{self._print(letter)}]" for letter in e.indices]
        return str(e.base) + "".join(places)

    def _print_KroneckerDelta(self, e):
        first, second = map(self._print, e.indices)
        return f"({first} === {second} ? 1 : 0)"

    def _print_Sum(self, e):
        absent, present = self._free_limits(e)
        inner = BrowserCode(dict(self.letters), set(self.taken), bool(self.f))
        loops = [(inner.named(letter), last) for letter, _, last in present]
        code = inner.doprint(e.function)
        rounding = ", f" * bool(self.f)
        for name, last in reversed(loops):
            code = f"sum({last}, ({name}) => {code}{rounding})"
        for last in absent:
            code = self._result(f"{last} * {code}")
        return code

    def named(self, letter) -> str:
        """A name for an index letter, its own where nothing else has it."""
        name = str(letter)
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.letters[letter] = name
        return name

    def _root(self, base):
        return self._result(f"Math.sqrt({base})")

    def _print_Max(self, e):
        return f"Math.max({', '.join(map(self._print, e.args))})"

    def _print_Piecewise(self, e):
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
    parts = computation(defs, outputs)
    names = {*checked_names(parts, _WORDS), *_WORDS}
    rounding = ", f" * rounded
    lines = [f"function {name}({{{parts.arguments}}}{rounding}) {{"]
    for size, (base, axis) in parts.sizes.items():
        lines.append(f"  const {size} = {base}{'[0]' * axis}.length;")
    for head, formula in parts.lines:
        writer = BrowserCode({}, set(names), rounded)
        axes = zip(indices_of(head), shape_of(head), strict=True)
        loops = [(writer.named(letter), size) for letter, size in axes]
        code = writer.doprint(formula)
        for letter, size in reversed(loops):
            code = f"map({size}, ({letter}) => {code})"
        lines.append(f"  const {label(head)} = {code};")
    return "\n".join([*lines, f"  return {{{parts.results}}};", "}", ""])
