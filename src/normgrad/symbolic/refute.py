"""Refutations in cells: a claim that is false, the belief behind it, and a point where its sides differ."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill

from sympy import Add, Expr, evaluate, sympify

from .definitions import Defs
from .proof import NotProved, lettered, prove
from .witness import in_digits


def _apart(left, right):
    """Two sides that are no numbers, without the terms that both have."""
    sides = [Add.make_args(side) for side in (left, right)]
    if not set(sides[0]) & set(sides[1]):
        return {"left ": left, "right": right}
    with evaluate(True):
        alone = [
            Add(*(set(terms) - set(others))) for terms, others in (sides, sides[::-1])
        ]
    return {
        f"{name} alone has": side or "nothing"
        for name, side in zip(("left ", "right"), alone, strict=True)
    }


@dataclass(frozen=True)
class Refutation:
    """A claim that is false, with a point where its sides differ; belief: what the claim stands for."""

    refusal: NotProved
    belief: str

    def __str__(self):
        found = self.refusal.counterexample
        claim = " = ".join(lettered(self.refusal.lhs, self.refusal.rhs))
        lines = [f"belief:   {self.belief}"] if self.belief else []
        lines += [f"claim:    {claim}", f"refuted:  at {found.point()}"]
        if found.lhs.is_number:
            lines.append(
                f"          left {in_digits(found.lhs)}, right {in_digits(found.rhs)}"
            )
        else:
            lines += [fill(f"{name} {side}", 78, initial_indent=10 * " ", subsequent_indent=21 * " ")
                      for name, side in _apart(found.lhs, found.rhs).items()]  # fmt: skip
        return "\n".join(lines)

    __repr__ = __str__


def refute(
    lhs: Expr,
    rhs: Expr,
    defs: Defs | None = None,
    belief: str = "",
) -> Refutation:
    """Show that lhs = rhs is false, by a point where the two sides differ.

    Args:    lhs, rhs: the two sides of the claim; defs: the definitions; belief: what someone who writes it believes
    Returns: Refutation, which prints the point
    Raises:  ValueError where the claim is true for every size; NotProved where it is neither proved nor refuted
    """
    try:
        prove(lhs, rhs, defs)
    except NotProved as refusal:
        if refusal.counterexample is None:
            raise
        return Refutation(refusal, belief)
    claim = " = ".join(lettered(sympify(lhs), sympify(rhs)))
    raise ValueError(f"claim: {claim} holds for every size; it is not refuted")
