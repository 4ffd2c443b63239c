"""Formulas that no proof covers, because they speak of computed numbers: bounds on rounding, orders of magnitude.

Each is a SymPy object under its label, as the proved equations are. The page prints that object, and `ledger.check`
puts a cell's numbers into it: nobody types a formula beside an error that belongs to another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from sympy import Basic, Expr, Symbol
from sympy.core.relational import Eq, Le, Relational

from ..symbolic.render import aligned, printer
from .values import Values


class Near(Relational):
    """lhs and rhs of one order of magnitude: neither is more than ten times the other."""

    rel_op = "~"

    def __new__(cls, lhs, rhs, **_):  # noqa: D102
        return Basic.__new__(cls, lhs, rhs)


SIGNS = {Eq: "=", Le: r"\le", Near: r"\approx"}


@dataclass(frozen=True)
class Line:
    """One line of a formula.

    Args:  relation: Eq, Le or Near; words: what stands before it; where: names that only this line uses, (name, value)
           dots: what follows is left out, as after the first terms of a series
    """

    relation: Relational
    words: str = ""
    where: tuple[tuple[Symbol, Expr], ...] = ()
    dots: bool = False


@dataclass(frozen=True)
class Formula:
    """A labelled formula, to be checked with numbers.

    Args:  label: its name in the book; lines: its lines, one below another
    """

    label: str
    lines: tuple[Line, ...] = field(repr=False)
    kind = "numeric"
    claim = "A formula about computed numbers."

    @property
    def is_bound(self) -> bool:
        """Whether every line is a bound."""
        return all(isinstance(line.relation, Le) for line in self.lines)

    def latex(self) -> str:
        """The formula as the body of a display."""
        write = printer((line.relation, line.where) for line in self.lines)
        several = len(self.lines) > 1
        lines = [self._line(line, write, several) for line in self.lines]
        return aligned(lines, r"\frac", r"\sum") if several else lines[0]

    def _line(self, line, write, several):
        relation = line.relation
        words = rf"\text{{{line.words}}} \quad " if line.words else ""
        mark = "& " if several else ""
        dots = r" + \dots" if line.dots else ""
        left, right, sign = relation.lhs, relation.rhs, SIGNS[type(relation)]
        text = f"{words}{mark}{write(left)} {sign} {write(right)}{dots}"
        where = [f"{write(name)} = {write(value)}" for name, value in line.where]
        if not where:
            return text
        # A mark of alignment has no place in a display of one line.
        gap = " && " if several else r" \qquad "
        return text + gap + ", ".join(where)

    def measure(self, values: Mapping[str, object], within=None) -> tuple[float, float]:
        """(error, tolerance) of the entry that comes nearest to what the formula allows.

        Of "<=" the two sides; of "=" their distance and `within`; of an order of magnitude the decimal logarithm of
        their quotient, and 1.

        Args:    values: numbers, arrays, or functions for every name in the formula; the sizes are those of the arrays
                 within: how far apart the sides of an "=" may be, a number or an array; none allows nothing
        Raises:  ValueError for a name without a value, or with one that nothing uses
        """
        read = Values(values)
        pairs = [
            pair for line in self.lines for pair in self._pairs(line, read, within)
        ]
        read.check_all_used(self.label)
        return nearest(pairs)

    def _pairs(self, line, read, within):
        left, right = (
            read(side.xreplace(dict(line.where)))
            for side in (line.relation.lhs, line.relation.rhs)
        )
        if isinstance(line.relation, Eq):
            left, right = abs(left - right), np.asarray(within, dtype=float)
        elif isinstance(line.relation, Near):
            left, right = abs(np.log10(abs(left / right))), np.asarray(1.0)
        left, right = np.broadcast_arrays(np.real(left), np.real(right))
        return zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)


def nearest(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The pair (error, tolerance) with the largest part of its tolerance; one that says nothing comes first.

    A NaN says nothing, and neither does an error within an infinite tolerance: beside a finite one, it would be unseen.
    """
    pairs = list(pairs)
    lost = [pair for pair in pairs if math.isnan(pair[0]) or not math.isfinite(pair[1])]
    return max(lost[:1] or pairs, key=_share)


def _share(pair):
    error, allowed = pair
    return error / allowed if allowed else error and math.inf


def formula(label: str, *relations: Relational | Line) -> Formula:
    """A formula from relations, or lines with words."""
    lines = [
        relation if isinstance(relation, Line) else Line(relation)
        for relation in relations
    ]
    return Formula(label, tuple(lines))
