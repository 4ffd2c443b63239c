"""One naming of the letters of a sum, whatever they were called: the letters are vertices, the factors are edges.

Letters are told apart by what they stand in, again and again (colour refinement). Where that does not tell them apart,
one of them after the other is marked, and the least result is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr, Symbol

from .patience import look

Ranks = dict[Symbol, int]


def orders(product: Expr, ranges: dict[Symbol, str]) -> Iterator[list[Symbol]]:
    """Orders of the letters that do not depend on their names: the same set for a product with other letters.

    Args:  product: what the letters stand in; ranges: the letters, each with what tells it apart from the start
    """
    yield from _search(
        product,
        _refined(product, _ranked({letter: (ranges[letter],) for letter in ranges})),
    )


def _search(product, ranks):
    look()
    cell = _first_cell(ranks)
    if not cell:
        yield sorted(ranks, key=ranks.get)
        return
    tried = []
    for letter in cell:
        if any(_exchangeable(product, letter, other) for other in tried):
            continue  # the two branches end in the same orders
        tried.append(letter)
        marked = {
            other: rank + (other in cell and other != letter)
            for other, rank in ranks.items()
        }
        yield from _search(product, _refined(product, marked))


def _exchangeable(product, one, other):
    return product.xreplace({one: other, other: one}) == product


def _first_cell(ranks):
    """The letters of the lowest rank that several letters have; empty when all are told apart."""
    values = list(ranks.values())
    shared = [rank for rank in values if values.count(rank) > 1]
    return (
        [letter for letter, rank in ranks.items() if rank == min(shared)]
        if shared
        else []
    )


def _ranked(keys):
    """For every letter, the number of letters with a lesser key."""
    return {
        letter: sum(other < key for other in keys.values())
        for letter, key in keys.items()
    }


def _refined(product, ranks) -> Ranks:
    while _first_cell(ranks):
        look()
        finer = _ranked(
            {
                letter: (rank, _seen_from(product, letter, ranks))
                for letter, rank in ranks.items()
            }
        )
        if len(set(finer.values())) == len(set(ranks.values())):
            return finer
        ranks = finer
    return ranks


def _seen_from(product, letter, ranks):
    """The product as a text in which the other letters are known by their ranks alone."""
    others = {
        other: Symbol(f"c{rank}", integer=True, positive=True)
        for other, rank in ranks.items()
    }
    return str(
        product.xreplace(
            {**others, letter: Symbol("here", integer=True, positive=True)}
        )
    )
