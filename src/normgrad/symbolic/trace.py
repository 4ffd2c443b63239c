"""A proof step by step: the kernel's own rules applied one at a time, each step named after its rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sympy import Basic, Expr, evaluate

from .calculus import resolve
from .definitions import Defs, check_claim
from .normal_form import Reciprocal, Root, cleared_sides, letters_of_sums, nf
from .notation import rename_bound
from .render import aligned, latex, printer
from .steps import has_bound_delta, has_constant, in_sums, split_terms

GIVEN, UNFOLD = "the claim", "definitions"
RULES = {
    "R1": "fresh letters",
    "R2": "differentiate",
    "R3": "multiply out",
    "R4": "contract",
    "R5": "pull out",
    "R6": "canonical",
    "R7": "opaque",
    "R8": "clear",
}


@dataclass(frozen=True)
class Trace:
    """Both sides of a claim, rewritten by one rule after the other until they are one polynomial, or are not.

    Args:  sides: for each side, its (rule, expression) pairs from the claim to the normal form
           multiplier: what both normal forms are multiplied by in R8; polynomials: what they become
    """

    sides: tuple[tuple[tuple[str, Expr], ...], tuple[tuple[str, Expr], ...]]
    multiplier: Expr
    polynomials: tuple[Expr, Expr]

    @property
    def proved(self) -> bool:
        """Whether both sides became the same polynomial."""
        return self.polynomials[0] == self.polynomials[1]

    def latex(self) -> str:
        """The steps as the body of an `aligned` display, each behind its rule; under R8 the sums are letters."""
        last = [self.multiplier, *self.polynomials]
        show = printer(last + [e for side in self.sides for _, e in side])
        letters = letters_of_sums(*last)
        times, *polynomials = [show(e.xreplace(letters)) for e in last]
        times = "" if self.multiplier == 1 else rf" \cdot {times}"
        lines = []
        for name, side, polynomial in zip(
            ("left", "right"), self.sides, polynomials, strict=True
        ):
            (rule, claim), *steps = side
            lines.append(rf"{_reason(rule)} & \text{{{name}}} = {show(claim)}")
            lines += [f"{_reason(rule)} &= {show(e)}" for rule, e in steps]
            lines.append(rf"{_reason('R8')} & \text{{{name}}}{times} = {polynomial}")
        lines += [
            rf"\text{{where}} \quad & {show(letter)} = {show(value)}"
            for value, letter in letters.items()
        ]
        return aligned(lines)

    def _repr_latex_(self):
        return f"$$\n{self.latex()}\n$$"


def _reason(rule):
    words = f"{rule} {RULES[rule]}" if rule in RULES else rule
    return rf"\text{{{words}}} \quad"


def trace(
    lhs: Expr, rhs: Expr, defs: Defs | None = None, only: Iterable[Basic] | None = None
) -> Trace:
    """The proof of lhs = rhs, rule by rule; a claim that is not proved is traced to the point where the sides differ.

    Args:     lhs, rhs: the two sides; defs: what names in them stand for; only: unfold these names alone
    Returns:  the Trace; a rule that changes nothing is left out, and so is R1, which changes letters alone
    Raises:   TypeError for what is no expression or no Defs
    """
    claim, defs = check_claim(lhs, rhs, defs)
    with evaluate(True):
        sides = tuple(
            tuple(_steps(side, lambda e: defs.unfold(e, only))) for side in claim
        )
        left, right = (nf(side[-1][1]) for side in sides)
        return Trace(sides, *cleared_sides(left, right))


def _steps(side, unfold):
    def where(condition):
        return lambda e: in_sums(e, lambda part: nf(part) if condition(part) else part)

    yield GIVEN, side
    before = rename_bound(side)
    shown = latex(before)
    for rule, apply in (
        (UNFOLD, unfold),
        ("R2", resolve),
        ("R3", lambda e: in_sums(e, split_terms)),
        ("R4", where(has_bound_delta)),
        ("R5", where(has_constant)),
        ("R6", lambda e: in_sums(e, nf)),
        ("R7", nf),
    ):
        after = apply(before)
        # to print takes longer than to compare
        reads = shown if after == before else latex(after)
        if reads != shown:
            opened = rule == "R7" and not after.has(Root, Reciprocal)
            yield "R3" if opened else rule, after
        before, shown = after, reads
