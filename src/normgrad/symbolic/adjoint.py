"""Reverse mode by machine: from the definitions of a computation to the definitions of its cotangents."""

from __future__ import annotations

from sympy import Add, Basic, Indexed, Tuple, evaluate

from .calculus import D, index_ranges
from .definitions import Defs
from .normal_form import as_powers, nf
from .notation import (
    entry_of,
    index,
    indices_of,
    name_of,
    names_in,
    rename_bound,
    shape_of,
    tensor,
    total_over,
)


def reverse(defs: Defs, output: Basic, cotangent: Basic) -> Defs:
    """The cotangent of every quantity that the output is computed from, in reverse order.

    The cotangent of v is called dv. It is a sum over the consumers of v, which are the lines u that use v: the
    cotangent of u times the local derivative of u with respect to v, summed over u's indices, deltas contracted.

    Args:    defs: the computation, in order, without derivatives; its last line is the output's
             output, cotangent: two names of one shape
    Returns: the definitions, followed by one for each defined name and for each indexed input
    Raises:  ValueError when a cotangent's name is taken
    """
    lines, extended = list(defs), defs.without(cotangent)
    taken = set(map(str, names_in(Tuple(*lines, cotangent))))
    cotangents = {output: cotangent}
    for v in [*[head for head, _ in reversed(lines[:-1])], *_inputs(lines)]:
        name = f"d{name_of(v)}"
        if name in taken:
            raise ValueError(f"{v}: the name {name} of its cotangent is taken")
        cotangents[name_of(v)] = of_v = tensor(name, *shape_of(v))
        consumers = [u for u, body in reversed(lines) if name_of(v) in names_in(body)]
        with evaluate(True):
            terms = [_passed(defs, u, v, cotangents[name_of(u)]) for u in consumers]
            formula = rename_bound(as_powers(nf(Add(*terms))))
            extended[entry_of(of_v, indices_of(v))] = formula
    return extended


def _passed(defs, u, v, cotangent):
    """What u passes back to v: u's cotangent times the local derivative, summed over u's indices."""

    def at_entry(*place):
        return entry_of(cotangent, place) * D(defs.body(entry_of(name_of(u), place)), v)

    return total_over(shape_of(u), at_entry)


def _inputs(lines):
    """One entry of each indexed input, in order of appearance, with letters of the definitions for its axes."""
    ranges = index_ranges(Tuple(*lines))
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
