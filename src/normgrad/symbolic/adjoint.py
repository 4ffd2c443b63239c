"""Reverse mode by machine: from the definitions of a computation to the definitions of its cotangents."""

from __future__ import annotations

from sympy import Basic, Expr, Indexed, IndexedBase, Symbol, evaluate, sqrt

from .calculus import D, index_ranges
from .definitions import Defs, check_defs
from .normal_form import Reciprocal, Root, nf
from .notation import Local, Partial, index, name_of, rename_bound, tensor, total


def reverse(defs: Defs, output: Expr, seed: IndexedBase | Symbol) -> Defs:
    """The cotangent of every quantity that an output is computed from, in reverse order.

    The cotangent of v is called dv. It is a sum over the consumers of v, which are the lines u that use v: the
    cotangent of u times the local derivative of u with respect to v, summed over u's indices, deltas contracted.

    Args:    defs: the computation, in order; lines after the output are left out
             output: the name whose cotangent is given, such as y[i, j]; seed: that cotangent, of the output's shape
    Returns: the definitions up to the output, followed by one for each defined name and for each indexed input
    Raises:  ValueError when a line holds a derivative, or when a cotangent's name is taken; TypeError when defs or
             seed is something else
    """
    lines = _lines(check_defs(defs), seed)
    lines = lines[: lines.index(defs.line(output)) + 1]
    found, cotangents = Defs(), {name_of(output): seed}
    for head, body in lines:
        if body.has(Partial, Local):
            raise ValueError(f"{head}: its definition holds a derivative; define it by a formula")
        found[head] = body
    taken = {str(name) for head, body in lines for name in _names(head) | _names(body)} | {str(seed)}
    for v in [head for head, _ in reversed(lines[:-1])] + _inputs(lines):
        name = f"d{name_of(v)}"
        if name in taken:
            raise ValueError(f"{v}: the name {name} of its cotangent is taken")
        cotangents[name_of(v)] = tensor(name, *_shape(v))
        with evaluate(True):
            consumers = [u for u, body in reversed(lines) if name_of(v) in _names(body)]
            passed = sum(contribution(found, u, v, cotangents[name_of(u)]) for u in consumers)
            # roots and reciprocals become powers again, so that the result can be differentiated and printed
            formula = nf(passed).replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)
            found[_at(cotangents[name_of(v)], getattr(v, "indices", ()))] = rename_bound(formula)
    return found


def _lines(defs, seed):
    if not isinstance(seed, IndexedBase | Symbol):
        raise TypeError(f"seed: got {type(seed).__name__}, needs the name of a cotangent, as tensor('dy', M, N)")
    return [defs.line(head) for head, _ in defs]


def contribution(defs: Defs, u: Expr, v: Expr, cotangent: IndexedBase | Symbol) -> Expr:
    """What the consumer u passes back to v: u's cotangent times the local derivative, summed over u's indices."""

    def summed(sizes, place):
        if sizes:
            return total(sizes[0], lambda r: summed(sizes[1:], (*place, r)))
        return _at(cotangent, place) * D(defs.body(_at(name_of(u), place)), v)

    return summed(_shape(u), ())


def _names(e: Expr) -> set[Basic]:
    return {name_of(part) for part in e.atoms(Indexed, Symbol)}


def _inputs(lines):
    """One entry of each indexed input, in order of appearance, with letters of the definitions for its axes."""
    ranges = index_ranges(*[side for line in lines for side in line])
    bases = {part.base: None for _, body in lines for part in sorted(body.atoms(Indexed), key=str)}
    return [_entry(base, ranges) for base in bases if base not in {name_of(head) for head, _ in lines}]


def _entry(base, ranges):
    place = []
    for size in base.shape:
        used = [letter for letter in sorted(ranges, key=str) if ranges[letter] == size and letter not in place]
        place += used[:1] or [next(new for new in index(*"abcdefgh") if new not in ranges and new not in place)]
    return base[tuple(place)]


def _at(name, place):
    return name[tuple(place)] if place else name


def _shape(e):
    return e.base.shape if isinstance(e, Indexed) else ()
