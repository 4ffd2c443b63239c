"""Reverse mode by machine: from the definitions of a computation to the definitions of its cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Basic, Expr, Indexed, Symbol, evaluate

from .calculus import D, index_ranges
from .definitions import Defs
from .normal_form import as_powers, nf
from .notation import index, name_of, rename_bound, tensor, total_over


def reverse(defs: Defs, seeds: dict[Basic, Basic], scalars: Sequence = ()) -> Defs:
    """The cotangent of every quantity that the outputs are computed from, in reverse order.

    The cotangent of v is called dv. It is a sum over the consumers of v, which are the lines u that use v: the
    cotangent of u times the local derivative of u with respect to v, summed over u's indices, deltas contracted. What
    is given for an output that has consumers too is one more term; without consumers it is the cotangent itself.

    Args:    defs: the computation, in order, without derivatives; lines after the last output are left out
             seeds: {output: its cotangent}, two names of one shape
             scalars: the inputs without an index that get a cotangent too
    Returns: the definitions up to the last output, followed by one for each defined name and for each indexed input
    Raises:  ValueError when a cotangent's name is taken
    """
    lines = list(defs)
    while lines and name_of(lines[-1][0]) not in seeds:
        lines.pop()
    extended = Defs()
    for head, formula in lines:
        extended[head] = formula
    names = [name for line in lines for side in line for name in _names(side)]
    taken = set(map(str, [*names, *seeds.values()]))
    cotangents = {}
    for v in [*[head for head, _ in reversed(lines)], *_inputs(lines), *scalars]:
        consumers = [u for u, body in reversed(lines) if name_of(v) in _names(body)]
        seed = seeds.get(name_of(v))
        if seed is not None and not consumers:
            cotangents[name_of(v)] = seed
            continue
        name = f"d{name_of(v)}"
        if name in taken:
            raise ValueError(f"{v}: the name {name} of its cotangent is taken")
        cotangents[name_of(v)] = cotangent = tensor(name, *_shape(v))
        place = getattr(v, "indices", ())
        with evaluate(True):
            terms = [_passed(defs, u, v, cotangents[name_of(u)]) for u in consumers]
            if seed is not None:
                terms.append(_at(seed, place))
            formula = rename_bound(as_powers(nf(Add(*terms))))
            extended[_at(cotangent, place)] = formula
    return extended


def _passed(defs, u, v, cotangent):
    """What u passes back to v: u's cotangent times the local derivative, summed over u's indices."""

    def at_entry(*place):
        return _at(cotangent, place) * D(defs.body(_at(name_of(u), place)), v)

    return total_over(_shape(u), at_entry)


def _names(e: Expr) -> set[Basic]:
    return {name_of(part) for part in e.atoms(Indexed, Symbol)}


def _inputs(lines):
    """One entry of each indexed input, in order of appearance, with letters of the definitions for its axes."""
    ranges = index_ranges(*[side for line in lines for side in line])
    defined = {name_of(head) for head, _ in lines}
    entries = [e for _, body in lines for e in sorted(body.atoms(Indexed), key=str)]
    bases = dict.fromkeys(e.base for e in entries if e.base not in defined)
    return [_entry(base, ranges) for base in bases]


def _entry(base, ranges):
    place = []
    for size in base.shape:
        fitting = [k for k in sorted(ranges, key=str) if ranges[k] == size]
        unused = [k for k in index(*"abcdefgh") if k not in ranges]
        place.append(next(k for k in fitting + unused if k not in place))
    return base[tuple(place)]


def _at(name, place):
    return name[tuple(place)] if place else name


def _shape(e):
    return e.base.shape if isinstance(e, Indexed) else ()
