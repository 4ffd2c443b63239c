"""The nine verbs of a derivation cell."""

from __future__ import annotations

import sys

from sympy import Derivative, Expr, Float, IndexedBase, Symbol, evaluate, sympify

from ..symbolic.calculus import index_ranges, resolve
from ..symbolic.chains import DEFINITION, Equation
from ..symbolic.notation import Local, Partial, name_of
from ..symbolic.proof import NotProved, lettered
from ..symbolic.proof import prove as kernel_prove
from ..symbolic.signs import is_positive
from ..symbolic.steps import contracted
from .claim import CannotJudge, Claim, in_one_line
from .folding import in_short
from .names import DefinedBase, Name, head
from .question import unanswered
from .typed import evaluated, typed_arguments
from .verdict import Line, Verdict, bundle, proving


def contract(e: Expr) -> Expr:
    """The sums carried out in which a Kronecker delta has a summed index: the sum of delta(r, j) f(r) is f(j).

    SymPy's `doit` returns a Piecewise here, since it does not know that j lies between 1 and N. Derivatives that are
    only typed are taken, and what a sum does not depend on comes before it.

    Args:    e: an expression of SymPy
    Returns: an expression of SymPy
    Raises:  CannotJudge for what has no form here, such as a sum from 0
    """
    claim = Claim()
    with in_one_line():
        e = claim.read(
            "e",
            sympify(e).replace(Derivative, lambda *parts: Derivative(*parts).doit()),
        )
        index_ranges(e)
        return claim.back(contracted(e))


def local(f: Expr, v: Expr) -> Expr:
    """The derivative of f's own formula with respect to v, every other name in it held fixed.

    Args:    f: a defined name or entry, or an expression; v: an entry of a tensor or a scalar
    Returns: an expression of SymPy
    """
    claim = Claim()
    with in_one_line(), evaluate(True):
        f, v = claim.read("f", f), claim.read("v", v)
        return contract(claim.back(resolve(Local(claim.defs.opened(f), v))))


def unfold(e: Expr, *names: Symbol | IndexedBase) -> Expr:
    """The expression with the formulas of names in their places; of all names, down to the inputs, for none."""
    claim = Claim()
    with in_one_line(), evaluate(True):
        e = claim.read("e", e)
        chosen = {name_of(claim(head(name))) for name in names} or None
        return claim.back(claim.defs.unfold(e, chosen))


def in_names(e: Expr, *names: Symbol | IndexedBase) -> Expr:
    """The expression, its derivatives taken and deltas contracted, in the names that it reaches, as short as found.

    Args:    e: an expression of SymPy; names: further names that it may be written in, as c1
    Returns: an expression of SymPy
    """
    claim = Claim()
    ((shown, _),) = typed_arguments(sys._getframe(1), (e, *names), local)[:1]
    with in_one_line():
        e = e if shown is None else shown
        e = claim.read("e", e)
        for name in names:
            claim(head(name))
        return claim.back(in_short(e, claim.defs))


def define(name: str, *indices_and_formula, shape: tuple = ()) -> Symbol | IndexedBase:
    """A name for a formula: `mean = define("mean", Sum(x[r], (r, 1, N)) / N)`, `q = define("q", k, x[k] - mean)`.

    Args:    name: its spelling; indices_and_formula: the indices, if it is a tensor, and then the formula
             shape: what the indices run to, where the formula does not say it, as that of delta(k, j)
    Returns: a Symbol, or an IndexedBase, through whose formula `diff` differentiates
    Raises:  CannotJudge where the formula has no form here or does not say what an index runs to
    """
    if not isinstance(name, str) or not indices_and_formula:
        raise CannotJudge('define: needs a name and a formula, as define("s", x[j]**2)')
    typed = typed_arguments(sys._getframe(1), (name, *indices_and_formula), local)
    *indices, formula = indices_and_formula
    claim = Claim()
    with in_one_line(f"{name}: "):
        line = _line(name, typed[-1], formula, claim)
        ranges = index_ranges(line.shown)
        letters = list(map(claim.index, indices))
        if shape:
            if not isinstance(shape, tuple) or len(shape) != len(letters):
                raise CannotJudge(
                    f"shape: got {shape!r}, needs a tuple of {len(letters)}, as (N,)"
                )
            ranges |= zip(letters, map(claim.size, shape), strict=True)
        unknown = [str(letter) for letter in letters if letter not in ranges]
        if unknown:
            raise CannotJudge(
                f"{name}: its formula does not say what {', '.join(unknown)} runs to; give shape, as shape=(N,)"
            )
        with evaluate(True):
            kind = "positive" if is_positive(claim.defs.unfold(line.shown)) else "real"
        sizes = [claim.back(ranges[letter]) for letter in letters]
        shown = formula if typed[-1][0] is None else typed[-1][0]
        label = Name(name, line.value, indices, shown, sizes, **{kind: True})
        defined = DefinedBase(label, shape=tuple(sizes)) if indices else label
        Claim()(head(defined))
    return defined


def prove(lhs: Expr, rhs: Expr, hints: int = 0) -> Verdict:
    """Whether lhs = rhs for every size: a Verdict, true or false, with a counterexample where it is false.

    Args:    lhs, rhs: the two sides
             hints: how much is said of rhs where it is a reader's answer to the question lhs: 1, whether it is right;
             2, a counterexample; 3, the one mistake, where one is found; 4, the difference; 5, an answer. The question
             itself is then no answer. 0 for a claim that is nobody's answer
    """
    if hints not in range(6):
        raise CannotJudge(f"hints: got {hints!r}, needs a number from 0 to 5")
    return judged(sys._getframe(1), (lhs, rhs), hints=hints)


def refute(lhs: Expr, rhs: Expr) -> Verdict:
    """The same for a claim that is false: the Verdict is true where it is refuted."""
    return judged(sys._getframe(1), (lhs, rhs), refuting=True)


def derive(start: Expr, *steps: Expr | Verdict | str) -> Verdict:
    """A chain start = step = step = ..., every "=" proved for every size, with the reason that was found for it.

    Several chains below one another are tuples: derive((start, step), (start, step)).

    Args:    start: the left end; steps: the expressions that follow. A Verdict after an expression says that the
             expression follows from it, which is checked; a text after an expression is shown as what the author
             says, in the place of the reason
    Returns: Verdict, false at the first step that is false
    """
    return judged(sys._getframe(1), (start, *steps))


def judged(frame, values: tuple, refuting: bool = False, hints: int = 0) -> Verdict:
    """The verdict on a chain, or on several, whose text is that of the call that a frame makes."""
    typed, claim = typed_arguments(frame, values, local), Claim()
    asked = hints and all(isinstance(value, Expr | int) for value in values)
    question = unanswered(frame, values, local) if asked else ""
    if not all(isinstance(value, tuple) for value in values):
        values, typed = (values,), (typed,)
    with in_one_line():
        chains = [_chain(*pair, claim) for pair in zip(values, typed, strict=True)]
        return Verdict(chains, claim, refuting, hints, question)


def _chain(values, typed, claim):
    """The lines of a chain, with the reasons that stand after them."""
    lines = []
    for value, text in zip(values, typed, strict=True):
        if isinstance(value, Verdict | str) and len(lines) < 2:
            raise CannotJudge(
                f"{value!r}: a reason stands after the step that it leads to, and a side is an expression of SymPy"
            )
        if isinstance(value, Verdict):
            lines[-1].facts.append(value)
        elif isinstance(value, str):
            lines[-1].words = value
        else:
            lines.append(_line(f"line {len(lines) + 1}", text, value, claim))
    if len(lines) < 2:
        raise CannotJudge("a derivation needs a start and at least one step")
    return lines


def _line(name, typed, value, claim):
    """A Line; that its text and SymPy's value of it are equal is proved where a derivative is taken."""
    shown, text = typed
    with evaluate(True):
        if shown is not None and sympify(value).has(Float) and not shown.has(Float):
            # the text has the fraction of which Python made a decimal
            value = evaluated(shown, local)
        own = claim.read(name, value)
        value = sympify(value)
    text = text or lettered(own)[0]
    if shown is None:
        return Line(own, value, text)
    with evaluate(False):
        shown = claim.read(name, shown)
    if shown != own and shown.has(Partial, Local) and proving():
        try:
            kernel_prove(shown, own, claim.defs)
        except NotProved:
            raise CannotJudge(
                f"{name}: its text says {text}, and SymPy made {lettered(own)[0]} of it; "
                "is a summed index also the index of a derivative?"
            ) from None
    return Line(shown, value, text)


class definitions:
    """The definitions of names below one another: `definitions(mean, v, rstd, x_hat)`."""

    def __init__(self, *names: Symbol | IndexedBase):
        if not names:
            raise CannotJudge("definitions: needs at least one name")
        self.claim = Claim()
        self.lines = []
        with in_one_line():
            self._heads = [head(name) for name in names]
            for name in self._heads:
                label = name if isinstance(name, Name) else name.base.label
                with evaluate(False):
                    self.lines.append((self.claim(name), self.claim(label.typed)))

    # the line below an equation's display
    words = ()

    @property
    def latex(self) -> str:
        """The lines as the body of a display."""
        return self.equation().latex()

    def equation(self, label: str = "", claim: str = "") -> Equation:
        """The lines as a definition of the registry."""
        lines = tuple(self.lines)
        return Equation(label, claim, lines, self.claim.defs, kind=DEFINITION)

    def __repr__(self):
        lines = [f"{name} := {name.formula}" for name in self._heads]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return bundle(self, DEFINITION)
