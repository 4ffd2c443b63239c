"""Reverse mode by machine: from the definitions of a computation to the definitions of its cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Basic, Expr, Indexed, IndexedBase, Symbol, evaluate

from .calculus import D, index_ranges
from .definitions import Defs, check_defs
from .normal_form import as_powers, nf
from .notation import Local, Partial, index, name_of, rename_bound, tensor, total


def reverse(
    defs: Defs,
    output: Expr | Sequence,
    seed: IndexedBase | Symbol | Sequence,
    scalars: Sequence = (),
) -> Defs:
    """The cotangent of every quantity that the outputs are computed from, in reverse order.

    The cotangent of v is called dv. It is a sum over the consumers of v, which are the lines u that use v: the
    cotangent of u times the local derivative of u with respect to v, summed over u's indices, deltas contracted. What
    is given for an output that has consumers too is one more term; without consumers it is the cotangent itself.

    Args:    defs: the computation, in order; lines after the last output are left out
             output: the name whose cotangent is given, such as y[i, j], or several; seed: that cotangent, of the
             output's shape, or one for each; scalars: the inputs without an index that get a cotangent too
    Returns: the definitions up to the output, followed by one for each defined name and for each indexed input
    Raises:  ValueError when a line holds a derivative, when a cotangent's name is taken, or when a scalar is no input;
             TypeError when defs or a seed is something else
    """
    defs, outputs = (
        check_defs(defs),
        output if isinstance(output, list | tuple) else (output,),
    )
    seeds = _seeds(outputs, seed if isinstance(seed, list | tuple) else (seed,))
    lines = [defs.line(head) for head, _ in defs]
    lines = lines[: 1 + max(lines.index(defs.line(one)) for one in outputs)]
    found, cotangents = Defs(), {}
    for head, body in lines:
        if body.has(Partial, Local):
            raise ValueError(
                f"{head}: its definition holds a derivative; define it by a formula"
            )
        found[head] = body
    used = {name for head, body in lines for name in _names(head) | _names(body)}
    taken = {str(name) for name in (*used, *seeds.values())}
    for v in [
        *[head for head, _ in reversed(lines)],
        *_inputs(lines),
        *_scalars(lines, used, scalars),
    ]:
        consumers = [u for u, body in reversed(lines) if name_of(v) in _names(body)]
        given = seeds.get(name_of(v))
        if given is not None and not consumers:
            cotangents[name_of(v)] = given
            continue
        name = f"d{name_of(v)}"
        if name in taken:
            raise ValueError(f"{v}: the name {name} of its cotangent is taken")
        cotangents[name_of(v)] = tensor(name, *_shape(v))
        place = getattr(v, "indices", ())
        with evaluate(True):
            passed = sum(
                contribution(found, u, v, cotangents[name_of(u)]) for u in consumers
            )
            passed += 0 if given is None else _at(given, place)
            found[_at(cotangents[name_of(v)], place)] = rename_bound(
                as_powers(nf(passed))
            )
    return found


def _seeds(outputs, given):
    if len(outputs) != len(given):
        raise ValueError(
            f"seed: got {len(given)}, needs one for each of the {len(outputs)} outputs"
        )
    for one in given:
        if not isinstance(one, IndexedBase | Symbol):
            raise TypeError(
                f"seed: got {type(one).__name__}, needs the name of a cotangent, as tensor('dy', M, N)"
            )
    return dict(zip(map(name_of, outputs), given, strict=True))


def _scalars(lines, used, scalars):
    """The scalars, each an input of the lines."""
    defined = {name_of(head) for head, _ in lines}
    for one in scalars:
        if not isinstance(one, Symbol) or one not in used - defined:
            raise ValueError(
                f"scalars: got {one}, needs inputs without an index that the outputs depend on"
            )
    return scalars


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
    bases = {
        part.base: None
        for _, body in lines
        for part in sorted(body.atoms(Indexed), key=str)
    }
    return [
        _entry(base, ranges)
        for base in bases
        if base not in {name_of(head) for head, _ in lines}
    ]


def _entry(base, ranges):
    place = []
    for size in base.shape:
        used = [
            letter
            for letter in sorted(ranges, key=str)
            if ranges[letter] == size and letter not in place
        ]
        place += used[:1] or [
            next(
                new
                for new in index(*"abcdefgh")
                if new not in ranges and new not in place
            )
        ]
    return base[tuple(place)]


def _at(name, place):
    return name[tuple(place)] if place else name


def _shape(e):
    return e.base.shape if isinstance(e, Indexed) else ()
