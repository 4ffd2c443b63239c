"""An equation about rows as a plain function: what a reader copies from below it.

The last axis of an array is its row; any axes before it are rows of their own. A value of a row keeps its axis, so that
it meets the row's entries; a sum over the rows goes over all axes before the last.
"""

from __future__ import annotations

import ast

from sympy import Indexed, Pow, Sum, Symbol

from normgrad.symbolic.calculus import free_letters
from normgrad.symbolic.codegen import ArrayCode, computation

REDUCTIONS = {
    "numpy": "numpy.{0}({1}, axis=-1, keepdims=True)",
    "torch": "torch.{0}({1}, dim=-1, keepdim=True)",
}
ROWS, COLUMNS = "M", "N"
SHAPES = ([ROWS], [COLUMNS], [ROWS, COLUMNS])
# The order of arguments in the package's functions; what is not here comes after them.
ORDER = ("dy", "dresidual_out", "x", "residual", "w", "b")


class RowCode(ArrayCode):
    """Expressions in the entries of a row; whoever prints them removes parentheses that are not needed.

    Args:  dialect: "numpy" or "torch"; column: the index of the column of the result, or None
    """

    WHAT = "form for rows"

    def __init__(self, dialect, column):
        super().__init__(dialect, (), {})
        self.column = column

    def _print_Add(self, e):
        terms = sorted(e.args, key=lambda term: term.could_extract_minus_sign())
        text = self._print(terms[0])
        for term in terms[1:]:
            if term.could_extract_minus_sign():
                text += f" - ({self._print(-term)})"
            else:
                text += f" + ({self._print(term)})"
        return f"({text})"

    def _print_Mul(self, e):
        if e.could_extract_minus_sign():
            return f"(-{self._print(-e)})"
        columns = Symbol(COLUMNS, integer=True, positive=True)
        sums = [part for part in e.args if self._over_columns(part)]
        if Pow(columns, -1) in e.args and sums:
            factors = [part for part in e.args if part not in (1 / columns, sums[0])]
            mean = self._reduced("mean", sums[0].function, sums[0].variables)
            return self._quotient([mean, *map(self._print, factors)], [])
        below = [1 / part for part in e.args if part.is_Pow and part.exp == -1]
        above = [part for part in e.args if 1 / part not in below]
        return self._quotient([*map(self._print, above)], [*map(self._print, below)])

    def _quotient(self, above, below):
        text = " * ".join(above) or "1"
        return f"({' / '.join([text, *below])})"

    def _over_columns(self, e):
        return isinstance(e, Sum) and [str(limit[2]) for limit in e.limits] == [COLUMNS]

    def _refused(self, e):
        raise NotImplementedError(f"{e}: no {self.WHAT}")

    _print_KroneckerDelta = _print_Largest = _refused

    def _print_Indexed(self, e):
        sizes = [str(size) for size in e.base.shape]
        columns = [
            k for k, size in zip(e.indices, sizes, strict=True) if size == COLUMNS
        ]
        if sizes not in SHAPES or columns not in ([], [self.column]):
            self._refused(e)
        return str(e.base.label)

    def _print_Sum(self, e):
        if self._over_columns(e):
            return self._reduced("sum", e.function, e.variables)
        over_rows = [str(limit[2]) for limit in e.limits] == [ROWS]
        if not over_rows or self.column not in free_letters(e):
            self._refused(e)
        return f"({self._print(e.function)}).reshape(-1, {COLUMNS}).sum(0)"

    def _reduced(self, kind, body, letters):
        (letter,) = letters
        outer = self.column
        if outer in free_letters(body) or letter not in free_letters(body):
            self._refused(body)
        self.column = letter
        text = self._print(body)
        self.column = outer
        return REDUCTIONS[self.dialect].format(kind, text)


def function(defs, outputs, dialect, name) -> str:
    """A module of one function that computes the outputs from arrays whose last axis is the row.

    Raises:  NotImplementedError where an equation is not about the entries of one row
    """
    parts = computation(defs, outputs)
    lines = [_line(head, formula, dialect) for head, formula in parts.lines]
    text = "\n".join(lines)
    names = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    }
    arrays = {str(base.label): base for base in parts.tensors}
    full = [key for key in sorted(arrays) if COLUMNS in map(str, arrays[key].shape)]
    if ROWS in names or not full:
        raise NotImplementedError(f"{name}: no {RowCode.WHAT}")
    if COLUMNS in names:
        lines.insert(0, f"{COLUMNS} = {full[0]}.shape[-1]")
    inputs = [argument for argument in parts.arguments.split(", ") if argument in names]
    inputs.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    head = f"def {name}({', '.join(inputs)}):\n"
    body = "".join(f"    {line}\n" for line in lines)
    code = ast.unparse(ast.parse(f"{head}{body}    return {parts.results}\n"))
    if dialect == "torch":
        return f"import torch\n\n\n{code}\n"
    return f"import numpy as np\n\n\n{code.replace('numpy.', 'np.')}\n"


def _line(head, formula, dialect):
    column = None
    if isinstance(head, Indexed) and str(head.base.shape[-1]) == COLUMNS:
        column = head.indices[-1]
    writer = RowCode(dialect, column)
    name = writer.doprint(head)
    if column is not None and column not in free_letters(formula):
        raise NotImplementedError(f"{head}: no {RowCode.WHAT}")
    return f"{name} = {writer.doprint(formula)}"
