"""Loops over all rows, or all columns: the body runs once, with a symbol for the row.

`a[i] = e` then writes every row, and `a += e` adds up a sum. Nothing else may pass from one turn of the loop to the
next: an array that a loop reads and writes, other than in one statement `a[i] op= e`, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Dummy, Expr, Sum

from .values import NotRead


class Turn:
    """The row, or column, at which a loop stands: a symbol from 1 to size. It is compared with nothing.

    Args:  shared: whether a program takes a share of the rows, and all programs together take each once
    """

    def __init__(self, size: Expr, shared: bool = False):
        self.letter = Dummy("turn", integer=True, positive=True)
        self.size, self.shared = size, shared


@dataclass(frozen=True)
class Rows:
    """An iterable over all rows, or all columns.

    Args:  size: M or N; item: what it yields at a turn; shared: as of Turn
    """

    size: Expr
    item: Callable[[Turn], Any] = lambda turn: turn
    shared: bool = False


class Once:
    """What is iterated over once, such as a zip; then it is empty.

    Args:  items: Rows, or a list; loops: those that run where it is made
    """

    def __init__(self, items: Rows | list, loops: Sequence[Turn]):
        self.items, self.loops = items, list(loops)

    def taken(self, loops: Sequence[Turn]) -> Rows | list:
        """The items, the first time.

        For a zip that is made before a loop and iterated over in it, which is empty in the second turn. Without it
        each turn adds up all rows again, and a sum that is M times too large is proved to be the mean.
        """
        if self.loops != loops:
            raise NotRead("an iterator that is made outside of the loop that uses it")
        items, self.items = self.items, []
        return items


@dataclass(frozen=True)
class Listed:
    """A list with an entry for each row, or column: the entry as a 0-d or 1-d array in the turn's letter."""

    turn: Turn
    entry: Any


def summed(e: Expr, sizes: Mapping[Expr, Expr]) -> Expr:
    """The sum of e over letters, from 1 to their sizes; a letter of size 1 is not in e."""
    for letter, size in sizes.items():
        if size != 1:
            r = Dummy("r", integer=True, positive=True)
            e = Sum(e.xreplace({letter: r}), (r, 1, size))
    return e
