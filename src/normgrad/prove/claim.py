"""From SymPy's nouns to the proof kernel's, and back: what a claim speaks of, with the definitions that it reaches."""

from __future__ import annotations

from contextlib import contextmanager

from sympy import (
    Add,
    Derivative,
    Expr,
    Function,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    Pow,
    Rational,
    Subs,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    sympify,
)
from sympy.core.function import Application, AppliedUndef
from sympy.core.relational import Relational
from sympy.core.sympify import SympifyError

from ..symbolic.admission import check_expression, whole_tensor
from ..symbolic.definitions import Defs
from ..symbolic.measured import Largest
from ..symbolic.notation import INDEX, Local, Partial, with_letters, with_parts
from ..symbolic.opaque import Opaque, derivative, opaque
from ..symbolic.render import name_latex
from ..symbolic.steps import contracted
from .names import SPELLINGS, DefinedBase, Name, head

READ = Add | Mul | Pow | Application | Relational | Tuple
# what a symbol may promise; a promise that the kernel does not keep would be lost in silence
KINDS = (INDEX, {"positive": True}, {"real": True}, {})


def _declared(e):
    return f'{e} = symbols("{e}", integer=True, positive=True)'


class CannotJudge(ValueError):
    """What cannot be judged, and why; a notebook shows it in one line."""

    def _render_traceback_(self):
        return [f"cannot be judged: {self}"]


@contextmanager
def in_one_line(prefix: str = ""):
    """A context in which whatever the kernel refuses is a CannotJudge."""
    try:
        yield
    except CannotJudge:
        raise
    except (ValueError, TypeError, NotImplementedError, IndexError) as problem:
        raise CannotJudge(f"{prefix}{problem}") from problem


class Claim:
    """One claim's expressions in the kernel's terms; `defs` has the definition of every name that they reach."""

    def __init__(self):
        self.defs = Defs()
        self._spelled = {}  # spelling: what it stands for
        self._heads = {}  # name: the kernel's head of its definition
        self._readers = {}  # the kernel's symbol or tensor: the reader's

    def __call__(self, e) -> Expr:
        """An expression of the reader's as one of the kernel's."""
        if isinstance(e, Sum):
            limits = [(self.index(r), a, self.size(b)) for r, a, b in e.limits]
            return Sum(self(e.function), *limits)
        if isinstance(e, Largest):
            body, index, size = e.args
            return Largest(self(body), self.index(index), self.size(size))
        if isinstance(e, KroneckerDelta):
            if len(e.args) > 2:
                raise CannotJudge(f"{e}: a delta with a range has no form here")
            return KroneckerDelta(*map(self.index, e.args))
        if isinstance(e, Indexed):
            return self._base(e.base)[tuple(map(self.index, e.indices))]
        if isinstance(e, IndexedBase):
            raise CannotJudge(whole_tensor(e))
        if isinstance(e, Name):
            return self._head(e)
        if isinstance(e, Symbol):
            return self._symbol(e)
        if isinstance(e, Partial):
            return self._partial(self(e.args[0]), self(e.args[1]))
        if isinstance(e, Local):
            f, v = map(self, e.args[:2])
            return self.defs.local(f, v) if f in self.defs else Local(f, v)
        if isinstance(e, Derivative):
            return self._derivative(e)
        if isinstance(e, AppliedUndef):
            return self._function(e.func)(*map(self, e.args))
        if isinstance(e, Subs):
            return self._derivative_at(e)
        if isinstance(e, Pow) and e.exp.is_Float and (2 * float(e.exp)).is_integer():
            # a half is exact as a decimal, too
            return Pow(self(e.base), Rational(float(e.exp)))
        if e.args and not isinstance(e, READ):
            raise CannotJudge(f"{e}: a {type(e).__name__} has no form here")
        return with_parts(e, self)

    def read(self, name: str, e) -> Expr:
        """An expression of the reader's, checked: a real, exact one whose indices have one range each."""
        try:
            e = sympify(e, strict=True)
        except SympifyError:
            kind = type(e).__name__
            raise CannotJudge(f"{name}: got {kind}, needs a SymPy expression") from None
        with in_one_line():
            return check_expression(name, self(e))

    def back(self, e: Expr) -> Expr:
        """An expression of the kernel's in the reader's terms."""
        with evaluate(True):
            return with_letters(self._back(e), SPELLINGS)

    # -- symbols and tensors

    def _spell(self, spelling, quantity):
        """Note what a spelling stands for; what reads alike has to be the same."""
        key = name_latex(str(spelling))
        if self._spelled.setdefault(key, quantity) != quantity:
            raise CannotJudge(
                f"{spelling}: stands for two things in this claim; two cells give this name, as for two layers, "
                "or one was run again: run the cells above this one again, or use another name"
            )

    def _kind(self, e):
        kinds = [
            kind for kind in KINDS if Symbol("_", **kind).assumptions0 == e.assumptions0
        ]
        if not kinds and e.is_integer:
            raise CannotJudge(f"{e}: is a size or a number here; write {_declared(e)}")
        if not kinds:
            raise CannotJudge(f"{e}: of a symbol only real and positive can be read")
        return kinds[0] or {"real": True}

    def _symbol(self, e):
        self._spell(e.name, e)
        symbol = e if e.is_Dummy else Symbol(e.name, **self._kind(e))
        self._readers[symbol] = e
        return symbol

    def size(self, e) -> Expr:
        """What an index runs to, as one of the kernel's; a symbol has to be declared as a positive integer."""
        if not isinstance(e, Expr):
            raise CannotJudge(f"{e!r}: is no size; a size is a symbol such as N")
        if e.is_Symbol and not (e.is_integer and e.is_positive):
            raise CannotJudge(f"{e}: is a size here; write {_declared(e)}")
        return self(e)

    def index(self, e) -> Expr:
        """An index of the reader's as one of the kernel's, which runs from 1 to its size."""
        if not isinstance(e, Expr):
            raise CannotJudge(f"{e!r}: is no index; an index is a symbol such as j")
        if not isinstance(e, Symbol):
            return self(e)
        if not e.is_integer or e.is_nonpositive:
            raise CannotJudge(f"{e}: is an index here; write {_declared(e)}")
        # what SymPy did knowing less of it holds for an index, which runs from 1 to its size
        symbol = e if e.is_Dummy else Symbol(e.name, **INDEX)
        self._spell(e.name, symbol)
        self._readers.setdefault(symbol, e)
        return symbol

    def _base(self, base):
        if isinstance(base.label, Name):
            return self._head(base.label).base
        self._spell(base.label, base)
        if not base.shape:
            line = f'{base} = symbols("{base}", cls=IndexedBase, shape=(N,), real=True)'
            raise CannotJudge(f"{base}: has no shape; write {line}")
        return self._tensor(base, map(self.size, base.shape), self._kind(base.label))

    def _tensor(self, base, shape, kind):
        tensor = IndexedBase(str(base), shape=tuple(shape), **kind)
        self._readers[tensor] = base
        return tensor

    def _head(self, label):
        """The kernel's head of a definition, which is entered where it is new."""
        if label not in self._heads:
            self._spell(label.name, label)
            # as typed, since `define` found the text to be equal to the formula
            with evaluate(False):
                formula = self(label.typed)
            with evaluate(True):
                if formula.has(Partial, Local):
                    formula = contracted(self(label.formula))
                named = self._named(label)
                self.defs[named] = formula
            self._heads[label] = named
        return self._heads[label]

    def _named(self, label):
        if not label.indices:
            defined = Symbol(label.name, **label.kind)
            self._readers[defined] = label
            return defined
        base = DefinedBase(label, shape=tuple(label.shape))
        tensor = self._tensor(base, map(self.size, label.shape), label.kind)
        return tensor[tuple(map(self.index, label.indices))]

    # -- derivatives

    def _partial(self, f, v):
        if isinstance(f, Opaque) and f.args[0] == v:
            return derivative(type(f))(v)
        return Partial(f, v)

    def _derivative(self, e):
        f = self(e.args[0])
        for v in e.variables:
            f = self._partial(f, self(v))
        return f

    def _derivative_at(self, e):
        """SymPy's derivative of an unknown function at an expression: Subs(Derivative(f(t), t), t, s)."""
        f, letters, values = e.args
        plain = isinstance(f, Derivative) and f.args[0].args == tuple(letters)
        if not plain or not isinstance(f.args[0], AppliedUndef):
            raise CannotJudge(f"{e}: a substitution has no form here")
        function = self._function(f.args[0].func)
        for _ in f.variables:
            function = derivative(function)
        return function(self(values[0]))

    def _function(self, function):
        self._spell(function.__name__, function)
        if function._kwargs not in ({}, Function("_", real=True)._kwargs):
            raise CannotJudge(f"{function}: of a function only real can be read")
        self._readers[function.__name__] = function
        return opaque(function.__name__)

    # -- back

    def _back(self, e):
        if isinstance(e, Indexed):
            return self._readers[e.base][tuple(map(self._back, e.indices))]
        if isinstance(e, Symbol):
            return self._readers.get(e, e)
        if isinstance(e, Opaque):
            return self._applied(e)
        return with_parts(e, self._back)

    def _applied(self, e):
        t = Symbol("t", real=True)
        return (
            self._readers[e.letter](t).diff(t, e.order).subs(t, self._back(e.args[0]))
        )


def in_kernel_terms(
    names, formulas: dict | None = None
) -> tuple[Defs, list[Expr], dict | None]:
    """(definitions, names, formulas): what defined names stand for, in the proof kernel's terms.

    Args:    names: that `define` made; formulas: {entry: its formula in these names}
    Raises:  TypeError for a name that `define` did not make; CannotJudge for what has no form here
    """
    claim = Claim()
    heads = [claim.read(str(name), head(name)) for name in names]
    if formulas is not None:
        formulas = {
            claim.read("gradients", entry): claim.read(f"the gradient of {entry}", e)
            for entry, e in formulas.items()
        }
    return claim.defs, heads, formulas
