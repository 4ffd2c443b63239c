"""Names that carry their formulas: SymPy differentiates through them and leaves them whole elsewhere.

A defined scalar is a `Symbol`, a defined tensor an `IndexedBase`. `expand`, `factor` and `simplify` take a name for an
atom; `diff` goes through its formula by the chain rule; `subs` puts the formula in where it has to. Two names with one
spelling and two formulas are two names; the letters of sums do not tell formulas apart.
"""

from __future__ import annotations

from functools import partial

from sympy import (
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    S,
    Sum,
    Symbol,
    Tuple,
    sympify,
)

from ..symbolic.notation import rename_bound, with_letters
from ..symbolic.render import latex, name_latex

# the spellings of all names, which no letter of a sum may have where a formula is put in or differentiated
SPELLINGS = set()


class Name(Symbol):
    """A defined scalar, or the label of a defined tensor.

    Args:  name: its spelling; formula: what it stands for; indices: those of the formula, for a tensor
           typed: the formula as the reader typed it; shape: the sizes that the indices run to; assumptions: SymPy's
    """

    __slots__ = ("formula", "unlettered", "indices", "typed", "shape", "inputs", "kind")

    def __new__(cls, name, formula, indices=(), typed=None, shape=(), **assumptions):  # noqa: D102
        self = Symbol.__xnew__(cls, name, **assumptions)
        SPELLINGS.add(name)
        self.formula, self.kind = formula, assumptions
        self.indices, self.shape = Tuple(*indices), Tuple(*shape)
        self.typed = formula if typed is None else typed
        self.inputs = formula.free_symbols - set(indices)
        # the letters of derived sums depend on the names that the page has by then
        self.unlettered = formula.as_dummy()
        return self

    def __reduce__(self):
        state = (self.name, self.formula, self.indices, self.typed, self.shape)
        return partial(Name, **self.kind), state

    def _hashable_content(self):
        own = (self.unlettered, self.indices, self.shape)
        return (*Symbol._hashable_content(self), *own)

    @property
    def free_symbols(self):
        """The name itself and all that its formula depends on; SymPy's `diff` asks for it."""
        return {self} | self.inputs

    def _latex(self, printer):
        return name_latex(self.name)

    def _eval_derivative(self, v):
        return S.One if v == self else _slope(self.formula, v)

    def _eval_derivative_n_times(self, v, n):
        return Expr._eval_derivative_n_times(self, v, n)

    def _eval_subs(self, old, new):
        if not self.indices and old in self.inputs:
            return self.formula.subs(old, new)
        return None


class DefinedBase(IndexedBase):
    """A defined tensor."""

    def __getitem__(self, indices, **kwargs):
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != len(self.label.indices):
            raise IndexError(
                f"{self}: got {len(indices)} indices, needs {len(self.label.indices)}"
            )
        return Entry(self, *indices)


class Entry(Indexed):
    """An entry of a defined tensor."""

    @property
    def formula(self) -> Expr:
        """The formula with this entry's own indices."""
        label = self.base.label
        return put(label.formula, dict(zip(label.indices, self.indices, strict=True)))

    @property
    def free_symbols(self):
        """The entry, its indices, and all that its formula depends on."""
        own = set().union(*[index.free_symbols for index in self.indices])
        return {self} | own | self.base.label.free_symbols

    def _eval_derivative(self, v):
        if isinstance(v, Indexed) and v.base == self.base:
            pairs = zip(self.indices, v.indices, strict=True)
            return Mul(*[KroneckerDelta(i, k) for i, k in pairs])
        return _slope(self.formula, v)

    def _eval_subs(self, old, new):
        bases = {part.base for part in self.formula.atoms(Indexed)}
        if old in self.base.label.inputs - set(self.indices) or (
            isinstance(old, Indexed) and old.base in bases
        ):
            return self.formula.subs(old, new)
        return None


def head(name: Symbol | IndexedBase) -> Expr:
    """A defined name with the indices of its definition: x_hat[k] for x_hat."""
    if isinstance(name, DefinedBase):
        return name[tuple(name.label.indices)]
    if isinstance(name, Entry | Name):
        return name
    raise TypeError(f"{name}: is no name that define made")


def _slope(formula, v):
    # SymPy takes a bound index that is spelled as an index of v for that index
    slope = put(formula, {}, v.free_symbols).diff(v)
    return slope.replace(lambda part: isinstance(part, Sum) and part.function == 0,
                         lambda part: S.Zero)  # fmt: skip


def put(e: Expr, change: dict, avoid=()) -> Expr:
    """Indices replaced without capture; no bound index is spelled as one of `avoid`."""
    e = sympify(e)
    if not e.has(Sum):
        return e.xreplace(change)
    return with_letters(
        rename_bound(e).xreplace(change),
        SPELLINGS | {part.name for part in avoid if part.is_Symbol},
    )


def page_latex(e: Expr) -> str:
    """An expression in LaTeX, in which no sum has a letter that is a name of the page."""
    return latex(with_letters(sympify(e), SPELLINGS))
