"""A set of points in which every pair of levels of every two factors occurs: what a full product would test in pairs.

Most mistakes that depend on conditions depend on two of them. A product of eleven factors has 10**8 points; the pairs
fit into about as many points as the two longest factors have pairs of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations, product

import numpy as np

Point = dict[str, Hashable]
Factors = Mapping[str, Sequence[Hashable]]


def pairs(factors: Factors, allowed: Callable[[Point], bool]) -> set[frozenset]:
    """Every allowed pair of levels of two factors, as frozenset({(factor, level), (factor, level)})."""
    return {
        frozenset({(first, a), (second, b)})
        for first, second in combinations(factors, 2)
        for a, b in product(factors[first], factors[second])
        if allowed({first: a, second: b})
    }


def pairs_of(point: Point) -> set[frozenset]:
    """The pairs that one point covers."""
    return {frozenset(two) for two in combinations(point.items(), 2)}


def chosen(points: Sequence[Point], *keys: Callable[[Point], Point]) -> list[Point]:
    """Few of the points, in their order, that still cover every pair which all of them cover as each key sees them.

    Greedy: the point that adds most comes first. A key with one factor asks for each of its levels.
    """
    seen = [
        set().union(*(pairs_of(key(p)) or {frozenset(key(p).items())} for key in keys))
        for p in points
    ]
    number = {
        pair: place
        for place, pair in enumerate(
            dict.fromkeys(pair for one in seen for pair in sorted(one, key=repr))
        )
    }
    covers = np.zeros((len(points), len(number)), bool)
    for row, one in zip(covers, seen, strict=True):
        row[[number[pair] for pair in one]] = True
    taken, missing = [], np.ones(len(number), bool)
    while missing.any():
        taken.append(int(np.argmax(covers[:, missing].sum(1))))
        missing &= ~covers[taken[-1]]
    return [points[place] for place in sorted(taken)]


def cover(
    factors: Factors,
    allowed: Callable[[Point], bool],
    whole: Sequence[str],
) -> list[Point]:
    """Points that cover every allowed pair of levels; the factors in `whole` meet in every combination of theirs.

    Greedy: each point starts from a pair (or a combination) that is missing, and each further factor takes the level
    that adds the most missing pairs to the levels chosen so far.

    Args:     factors: {name: levels}; allowed: takes a part of a point, and says whether some point has that part;
              whole: names of factors
    Raises:   ValueError where a part that is allowed cannot be made a point
    """
    rng = np.random.default_rng(0)  # settles ties, the same at every call
    names = list(factors)
    starts = np.cumsum([0, *(len(factors[name]) for name in names)])
    span = {
        name: slice(a, b) for name, a, b in zip(names, starts, starts[1:], strict=False)
    }
    missing = np.zeros((starts[-1], starts[-1]), bool)
    for one, other in combinations(names, 2):
        for (r, a), (s, b) in product(
            enumerate(factors[one]), enumerate(factors[other])
        ):
            if allowed({one: a, other: b}):
                here, there = span[one].start + r, span[other].start + s
                missing[here, there] = missing[there, here] = True

    def completed(point):
        point = dict(point)
        for place in rng.permutation(len(names)):
            name = names[place]
            if name not in point:
                point[name] = best(point, name)
        return {name: point[name] for name in names}

    def numbers(point):
        return [
            span[name].start + list(factors[name]).index(level)
            for name, level in point.items()
        ]

    def best(point, name):
        gain = (
            missing[span[name]][:, numbers(point)].sum(1)
            + rng.random(len(factors[name])) / 2
        )
        for place in np.argsort(-gain):
            if allowed({**point, name: factors[name][place]}):
                return factors[name][place]
        raise ValueError(f"allowed: no level of {name} goes with {point}")

    points = []

    def add(part):
        point = completed(part)
        chosen = numbers(point)
        missing[np.ix_(chosen, chosen)] = False
        points.append(point)

    for levels in product(*(factors[name] for name in whole)):
        part = dict(zip(whole, levels, strict=True))
        if allowed(part):
            add(part)
    level_of = [(name, level) for name in names for level in factors[name]]
    while missing.any():
        # The level with the most missing pairs, and the level that it misses with the most of its own.
        first = int(np.argmax(missing.sum(1)))
        second = int(np.argmax(missing[first] * (1 + missing.sum(1))))
        add(dict((level_of[first], level_of[second])))
    return points
