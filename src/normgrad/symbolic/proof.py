"""Proofs: two expressions have one normal form, or the difference is shown at a point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sympy import Expr, IndexedBase, Sum, Symbol, Tuple, evaluate

from .admission import check_forms
from .calculus import index_ranges, resolve
from .conditions import side_conditions
from .definitions import Defs, check_claim
from .elementary import RULES, in_basic_terms
from .normal_form import cleared_sides, equal, letters_of_sums, nf
from .notation import with_letters
from .patience import SECONDS, OutOfPatience, limited
from .witness import Counterexample, counterexample, defined_somewhere


def plain(text: str) -> str:
    """SymPy's text with the book's name for the delta, and without the 1 that a sum gets when it is kept as typed."""
    return text.replace("KroneckerDelta", "delta").replace("Sum(1*", "Sum(")


def lettered(*sides: Expr) -> list[str]:
    """The sides as text in which every bound letter has a name that nothing else in the claim has."""
    symbols = Tuple(*sides).atoms(Symbol)
    taken = {symbol.name for symbol in symbols if not symbol.is_Dummy}
    with evaluate(False):
        return [plain(str(with_letters(side, taken, own=False))) for side in sides]


def known(sides: Sequence[Expr], defs: Defs, conditions: Iterable[str]) -> str:
    """ "proved for every M and N, where s > 0", in Markdown.

    Args:  sides: what was proved; defs: its definitions; conditions: what must hold, in Markdown
    """
    everything = Tuple(*sides, *defs.reached(*sides))
    bases, sums = everything.atoms(IndexedBase), everything.atoms(Sum)
    sizes = {str(size) for base in bases for size in base.shape or ()}
    sizes |= {str(limit[2]) for part in sums for limit in part.limits}
    conditions = list(conditions)
    text = "proved" + (f" for every ${'$ and $'.join(sorted(sizes))}$" if sizes else "")
    return text + (f", where {', '.join(conditions)}" if conditions else "")


def as_latex(words: str) -> str:
    """Markdown with formulas between $ signs as LaTeX."""
    parts = words.split("$")
    return "".join(
        part if position % 2 else rf"\text{{{part}}}"
        for position, part in enumerate(parts)
        if part
    )


class NotProved(Exception):
    """A claim that was not proved: refuted by a counterexample, or undecided.

    Args:  lhs, rhs: the two sides; counterexample: a point where they differ, or None; where: the label and step
           why: what kept it undecided
    """

    def __init__(
        self,
        lhs: Expr,
        rhs: Expr,
        counterexample: Counterexample | None,
        where: str = "",
        why: str = "no normal form, no counterexample",
    ):
        self.lhs, self.rhs, self.counterexample = lhs, rhs, counterexample
        self.where, self.why = where, why
        verdict = f"refuted {counterexample}" if counterexample else f"undecided: {why}"
        text = f"{' = '.join(lettered(lhs, rhs))} is {verdict}"
        text = f"{where}: {text}" if where else text
        super().__init__(text)


@dataclass(frozen=True)
class Proof:
    """A proved claim.

    Args:  lhs, rhs: the two sides as they were given; defs: what their names stand for
           sides: the two sides as they were compared, unfolded and differentiated
    """

    lhs: Expr
    rhs: Expr
    sides: tuple[Expr, Expr] = field(repr=False)
    defs: Defs = field(repr=False)

    @cached_property
    def side_conditions(self) -> tuple[Expr, ...]:
        """What must hold for both sides to be defined; empty when nothing has to."""
        return side_conditions((self.lhs, self.rhs), self.defs)

    def certificate(self) -> str:
        """The polynomial that both sides become once denominators are cleared, in letters for its sums."""
        with evaluate(True):
            multiplier, (polynomial, _) = cleared_sides(*map(nf, self.sides))
            letters = letters_of_sums(polynomial)
            text = f"both sides times {multiplier} are {polynomial.xreplace(letters)}"
        if letters:
            where = "; ".join(f"{letter} = {e}" for e, letter in letters.items())
            text += f", where {where}"
        return plain(text.replace(" times 1 are", " are"))

    def __str__(self):
        conditions = [
            text for condition in self.side_conditions for text in lettered(condition)
        ]
        words = known((self.lhs, self.rhs), self.defs, conditions).replace("$", "")
        return f"{words}: {' = '.join(lettered(self.lhs, self.rhs))}"

    __repr__ = __str__


def prove(
    lhs: Expr,
    rhs: Expr,
    defs: Defs | None = None,
    where: str = "",
    seconds: float = SECONDS,
) -> Proof:
    """Prove lhs = rhs for every value of the dimensions, as real functions, where both sides are defined.

    Names that both sides use stay opaque at first, which proves more than is asked and is quicker; where that does
    not succeed, everything is unfolded.

    Args:    lhs, rhs: the two sides; defs: the definitions that names stand for
             where: a label for the error
             seconds: how long to try at most; half as long is spent on a counterexample
    Returns: the Proof, with its side conditions and certificate
    Raises:  NotProved with a counterexample when the claim is false, without one when it is undecided;
             RangeError when a letter has two ranges; TypeError for what is no expression or no Defs;
             ValueError for decimals and for what is no real number; NotImplementedError for what has no normal form
    """
    claim, defs = check_claim(lhs, rhs, defs)
    lhs, rhs = claim
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise ValueError(f"seconds: got {seconds!r}, needs a number greater than 0")
    with evaluate(True):
        index_ranges(check_forms(claim))
        late = None
        try:
            with limited(seconds):
                for names in (defs.differing(lhs, rhs), None):
                    sides = resolve(check_forms(defs.unfold(claim, names)))
                    index_ranges(sides)
                    proved = equal(*sides)
                    if not proved and sides.has(*RULES):
                        proved = equal(*in_basic_terms(sides))
                    if proved:
                        return _defined(Proof(lhs, rhs, sides, defs), where)
                    if not defs.reached(*sides):
                        break
        except OutOfPatience as reason:
            late = reason
        try:
            with limited(seconds / 2):
                point = counterexample(lhs, rhs, defs)
        except OutOfPatience as reason:
            point, late = None, late or reason
        why = {"why": f"{late} ({seconds:g} s)"} if late else {}
        raise NotProved(lhs, rhs, point, where, **why)


def _defined(proof, where):
    """The proof, unless its conditions hold around no point: a claim about nothing is not proved."""
    if not defined_somewhere(proof.side_conditions, proof.defs):
        why = "its sides are defined for no input that was tried"
        raise NotProved(proof.lhs, proof.rhs, None, where, why)
    return proof
