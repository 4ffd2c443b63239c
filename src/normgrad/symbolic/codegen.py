"""Array code from definitions, by named axes: the formula that is proved is the function that is tested.

A definition name[i, j] := expression becomes one line of NumPy or PyTorch, with an array axis per index. A sum
becomes a reduction over an axis of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword

from sympy import (
    Indexed,
    S,
    Sum,
    evaluate,
)
from sympy.printing.printer import Printer

from .calculus import free_letters
from .definitions import Defs
from .notation import indices_of, name_of, rename_bound, shape_of

NUMPY, TORCH = "numpy", "torch"
_DIALECTS = {
    NUMPY: {
        "module": "numpy",
        "sum": "numpy.sum({}, axis={})",
        "largest": "numpy.max({}, axis={})",
        "full": "{} + numpy.zeros({})",
        "move": "numpy.transpose({}, {})",
        "maximum": "numpy.maximum({}, {})",
    },
    TORCH: {
        "module": "torch",
        "sum": "torch.sum({}, dim={})",
        "largest": "torch.amax({}, dim={})",
        "full": "torch.broadcast_to(torch.as_tensor({}), {})",
        "move": "torch.permute({}, {})",
        "maximum": "torch.clamp({}, min={})",
    },
}
# A sigmoid through tanh, which overflows nowhere; NumPy has no other.
_FUNCTIONS = {
    "exp": "{0}.exp({1})",
    "log": "{0}.log({1})",
    "tanh": "{0}.tanh({1})",
    "sigmoid": "(0.5 * (1 + {0}.tanh(0.5 * {1})))",
    "Heaviside": "(1.0 * ({1} > 0))",
    "Abs": "abs({1})",
    "ceiling": "{0}.ceil({1})",
    "Log2": "{0}.log2({1})",
    "im": "{0}.imag({1})",
    "Divides": "(1.0 * ({2} % {1} == 0))",
}


class Code(Printer):
    """Expressions as code; the kinds of nodes that all languages know.

    A language prints symbols, entries, deltas, sums and maxima, and has `_root`; `_result` wraps what an operation
    gives, and `_operation` joins several parts. `doprint` gives the code of an expression, compound ones in
    parentheses, and raises NotImplementedError for a node that has no such form.
    """

    WHAT = ""

    def emptyPrinter(self, e):  # noqa: D102 - SymPy's hook
        raise NotImplementedError(f"{type(e).__name__}: no {self.WHAT} for {e}")

    def _result(self, text):
        return f"({text})"

    def _operation(self, sign, e):
        return self._result(sign.join(map(self._print, e.args)))

    def _print_Add(self, e):
        return self._operation(" + ", e)

    def _print_Mul(self, e):
        return self._operation(" * ", e)

    def _print_Rational(self, e):
        if e.is_Integer:
            return str(e) if e.is_nonnegative else f"({e})"
        return self._result(f"{e.p} / {e.q}")

    def _print_Pow(self, e):
        base = self._print(e.base)
        if e.exp == S.Half:
            return self._root(base)
        if e.exp == -1:
            return self._result(f"1 / {base}")
        if e.exp == -S.Half:
            return self._result(f"1 / {self._root(base)}")
        return self._result(f"{base} ** {self._print(e.exp)}")

    def _print_Relational(self, e):
        return f"({self._print(e.lhs)} {e.rel_op} {self._print(e.rhs)})"

    def _cases(self, e):
        """The code of a condition, of the value where it holds, and of the other value."""
        (value, condition), (otherwise, last) = e.args
        if last != True:  # noqa: E712 - SymPy's own true
            raise NotImplementedError(
                f"{e}: no {self.WHAT} for a last piece with a condition"
            )
        return tuple(map(self._print, (condition, value, otherwise)))

    @staticmethod
    def _free_limits(e):
        """(dimensions of the letters that a sum's body lacks, the other limits)."""
        present = [limit for limit in e.limits if e.function.has_free(limit[0])]
        return [limit[2] for limit in e.limits if limit not in present], present


class ArrayCode(Code):
    """Expressions as array code.

    Args:  dialect: "numpy" or "torch"; axes: the index letters of the result, in the order of its axes
           ranges: the dimension of every letter
    """

    WHAT = "array code"

    def __init__(self, dialect: str, axes: Sequence, ranges: dict):
        super().__init__()
        self.dialect, self.axes, self.ranges = dialect, list(axes), ranges
        self.words = _DIALECTS[dialect]

    def _print_Function(self, e):
        template = _FUNCTIONS.get(type(e).__name__)
        if template is None:
            return self.emptyPrinter(e)
        return template.format(self.words["module"], *map(self._print, e.args))

    def _print_Symbol(self, e):
        return str(e)

    def _print_ImaginaryUnit(self, e):
        return "1j"

    def _place(self, array, letters):
        """An array whose axes are the given letters, laid out along the axes of the result."""
        if len(set(letters)) < len(letters) or not set(letters) <= set(self.axes):
            raise NotImplementedError(
                f"{array}: no array code for the indices {', '.join(map(str, letters))}"
            )
        present = [letter for letter in self.axes if letter in letters]
        order = tuple(letters.index(letter) for letter in present)
        if order != tuple(range(len(letters))):
            array = self.words["move"].format(array, order)
        cut = [":" if letter in letters else "None" for letter in self.axes]
        while cut and cut[0] == "None":
            del cut[0]
        return array if set(cut) <= {":"} else f"{array}[{', '.join(cut)}]"

    def _print_Indexed(self, e):
        return self._place(str(e.base), list(e.indices))

    def _print_KroneckerDelta(self, e):
        i, k = e.indices
        return self._place(f"{self.words['module']}.eye({self.ranges[i]})", [i, k])

    def _print_Sum(self, e):
        absent, present = self._free_limits(e)
        if not absent:
            letters = {letter: last for letter, _, last in e.limits}
            return self._reduced("sum", e.function, letters)
        body = Sum(e.function, *present) if present else e.function
        return f"({' * '.join(map(str, absent))} * {self._print(body)})"

    def _print_Largest(self, e):
        body, letter, last = e.args
        return self._reduced("largest", body, {letter: last})

    def _reduced(self, kind, body, letters):
        inner = ArrayCode(self.dialect, self.axes, {**self.ranges, **letters})
        for letter in letters:
            inner.axes.insert(inner._position(body, letter), letter)
        places = tuple(inner.axes.index(letter) - len(inner.axes) for letter in letters)
        axis = places[0] if len(places) == 1 else places
        return self.words[kind].format(inner.doprint(body), axis)

    def _position(self, body, letter):
        """Where the summed axis goes: where it already stands in the arrays, so that they need no transposing."""
        for part in sorted(body.atoms(Indexed), key=str):
            if letter in part.indices:
                after = part.indices[part.indices.index(letter) + 1 :]
                following = [
                    self.axes.index(index) for index in after if index in self.axes
                ]
                return min(following, default=len(self.axes))
        return len(self.axes)

    def _print_Pow(self, e):
        if e.atoms(Indexed):
            return super()._print_Pow(e)
        return f"({self._print(e.base)} ** {self._print(e.exp)})"

    def _root(self, base):
        return f"{self.words['module']}.sqrt({base})"

    def _print_Max(self, e):
        array, bound = sorted(e.args, key=lambda part: not part.atoms(Indexed))
        return self.words["maximum"].format(self._print(array), self._print(bound))

    def _print_Piecewise(self, e):
        return f"{self.words['module']}.where({', '.join(self._cases(e))})"


@dataclass(frozen=True)
class Computation:
    """What a function computes, in order, and from what.

    lines holds (name, expression); sizes holds for each dimension a tensor that has it, and the axis.
    """

    lines: list
    tensors: set
    scalars: set
    sizes: dict
    outputs: Sequence

    @property
    def arguments(self) -> str:
        """The names of the inputs, arrays before scalars, as they stand in a function's head."""
        return ", ".join(
            sorted(map(str, self.tensors)) + sorted(map(str, self.scalars))
        )

    @property
    def results(self) -> str:
        """The names of the outputs."""
        return ", ".join(map(label, self.outputs))


def computation(defs: Defs, outputs: Sequence) -> Computation:
    """What the outputs rest on; every bound index has a letter of its own.

    Raises:  ValueError for an output that is not defined
    """
    reached = defs.reached(*[defs.line(output)[0] for output in outputs])
    with evaluate(True):
        lines = [(head, rename_bound(formula)) for head, formula in reached]
    tensors, scalars = _inputs(lines)
    return Computation(lines, tensors, scalars, _dimensions(tensors), outputs)


def source(
    defs: Defs, outputs: Sequence, dialect: str = NUMPY, name: str = "compute"
) -> str:
    """The source of a function that computes the outputs from the inputs of their definitions.

    Args:     defs: the definitions; outputs: defined names such as y[i, j]; dialect: "numpy" or "torch"
    Returns:  Python source; its keyword arguments are the inputs, arrays and scalars, by their names
    Raises:   ValueError for an output that is not defined, and where one name would stand for two things
    """
    if dialect not in _DIALECTS:
        raise ValueError(
            f"dialect: got {dialect!r}, needs one of {', '.join(map(repr, _DIALECTS))}"
        )
    parts = computation(defs, outputs)
    checked_names(parts, [_DIALECTS[dialect]["module"]])
    lines = [f"def {name}(*, {parts.arguments}):"]
    for size, (base, axis) in parts.sizes.items():
        lines.append(f"    {size} = {base}.shape[{axis}]")
    for head, formula in parts.lines:
        lines.append(f"    {label(head)} = {_line(head, formula, dialect)}")
    return "\n".join([*lines, f"    return {parts.results},", ""])


def _line(head, formula, dialect):
    letters = indices_of(head)
    ranges = dict(zip(letters, head.base.shape, strict=True)) if letters else {}
    code = ArrayCode(dialect, letters, ranges).doprint(formula)
    if set(letters) - free_letters(formula):
        # a formula without some of its indices is one number, or one row, for all of them
        shape = ", ".join(str(ranges[letter]) for letter in letters)
        code = _DIALECTS[dialect]["full"].format(code, f"({shape},)")
    return code


def label(head) -> str:
    """The name of a line in code."""
    return str(name_of(head))


def _inputs(lines):
    """The tensors and the scalars that the lines use and do not define; dimensions where no tensor has them."""
    defined = {name_of(head) for head, _ in lines}
    entries = {part for _, formula in lines for part in formula.atoms(Indexed)}
    tensors = {entry.base for entry in entries} - defined
    scalars = {size for head, _ in lines for size in shape_of(head)}
    for _, formula in lines:
        plain = formula.xreplace(dict.fromkeys(entries, S.One))
        scalars |= plain.free_symbols - free_letters(formula)
    sizes = {size for base in tensors for size in base.shape}
    return tensors, scalars - sizes - defined


def checked_names(parts: Computation, reserved: Iterable[str]) -> list[str]:
    """The names of what the code speaks of; ValueError where one is not of its own.

    Args:  reserved: words of the language
    """
    heads = [head for head, _ in parts.lines]
    quantities = (*parts.tensors, *parts.scalars, *parts.sizes, *heads)
    names = list(map(label, quantities))
    for name in names:
        taken = name in reserved or iskeyword(name) or names.count(name) > 1
        if taken or not name.isidentifier():
            raise ValueError(f"{name}: is no name of its own in the code")
    return names


def _dimensions(tensors):
    """A tensor and its axis for each dimension."""
    places = {}
    for base in sorted(tensors, key=str):
        for axis, size in enumerate(base.shape):
            places.setdefault(size, (base, axis))
    return places


def compile(defs: Defs, outputs: Sequence, dialect: str = NUMPY) -> Callable:
    """The function that `source` writes; it returns a tuple of arrays, and carries its text as `.source`."""
    text = source(defs, outputs, dialect)
    module = _DIALECTS[dialect]["module"]
    scope = {module: import_module(module)}
    exec(text, scope)  # noqa: S102 - the text was written by the lines above
    function = scope["compute"]
    function.source = text
    return function
