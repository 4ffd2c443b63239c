"""An expression in the names of a page, as short as it is found.

It is unfolded to the inputs. Each definition then says what the sum, the root or the input entry that it is about is in
terms of its name, and this is put in. Only a form that the kernel finds equal to the expression is given back.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product

from sympy import (
    Dummy,
    Expr,
    Indexed,
    Sum,
    Tuple,
    evaluate,
    factor,
    factor_terms,
)

from ..symbolic.calculus import RangeError, index_ranges, resolve
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import (
    Reciprocal,
    Root,
    as_powers,
    forget,
    multiply_out,
    nf,
)
from ..symbolic.notation import entry_of, name_of, shape_of
from ..symbolic.patience import OutOfPatience, counted
from ..symbolic.steps import normal
from .reasons import same, taken

# how many steps of the kernel it may take; where they do not suffice, the names as they stand will do
STEPS = 6_000
# what a name says of a sum is put in if it is at most so many times as long as the sum
LONGER = 3


def in_short(e: Expr, defs: Defs) -> Expr:
    """The shortest form of an expression, its derivatives taken, in the names that are defined."""
    with evaluate(True):
        e = taken(e, defs)
        names = [name_of(head) for head, _ in defs.reached(e)]
        forms = [normal(e), *[normal(defs.unfold(e, [name])) for name in names]]
        forget()
        with suppress(OutOfPatience, RangeError), counted(STEPS):
            inputs = nf(resolve(defs.unfold(e)))
            folded = _forms(_folded(inputs, defs))
            forms += [form for form in folded if same(defs.unfold(form), inputs)]
        return min(forms, key=_length)


def _length(e):
    """How long an expression is: its nodes, an entry being one."""
    if isinstance(e, Indexed) or not e.args:
        return 1
    return 1 + sum(map(_length, e.args))


def _forms(e):
    e = as_powers(e)
    expanded = as_powers(multiply_out(e))
    return [e, factor_terms(e), factor(expanded), factor_terms(expanded)]


def _folded(e, defs):
    """The normal form with names for sums and roots, and then for input entries where that is shorter."""
    values = {}
    sizes = index_ranges(e)

    def body_of(name):
        return _put(nf(resolve(defs.unfold(name))), values)

    for head, _ in defs:
        for name in _entries(head, sizes):
            body = body_of(name)
            values |= _solved(name, body, _generators(body))
            e = _put(e, values)
    for head, _ in reversed(list(defs)):
        inputs = {}
        for name in _entries(head, sizes):
            body = body_of(name)
            entries = [part for part in body.atoms(Indexed) if part not in defs]
            inputs |= _solved(name, body, entries)
        shorter = _put(e, inputs)
        e = min(e, shorter, key=lambda form: min(map(_length, _forms(form))))
    return e


def _entries(head, sizes):
    """A defined name, a tensor's at all free indices of the expression that have its ranges."""
    fitting = [[i for i in sizes if sizes[i] == size] for size in shape_of(head)]
    return [entry_of(name_of(head), indices) for indices in product(*fitting)]


def _generators(body):
    """The sums and roots of a normal form, the longest first; not those inside roots."""
    roots = body.atoms(Reciprocal, Root)
    inside = Tuple(*[root.args[0] for root in roots]).atoms(Sum)
    return sorted(body.atoms(Sum, Root) - inside, key=_length, reverse=True)


def _solved(name, body, generators):
    """What the first generator in which a name's body is linear, or linear in its reciprocal, is by the name."""
    letter = Dummy("g")
    for generator in generators:
        for inverse in (False, True):
            entered = 1 / letter if inverse else letter
            linear = multiply_out(body.xreplace({generator: entered}))
            slope = linear.coeff(letter, 1)
            constant = multiply_out(linear - letter * slope)
            if slope == 0 or slope.is_Add or (slope + constant).has(letter):
                continue
            value = (name - constant) / slope
            value = 1 / value if inverse else value
            summed = not isinstance(generator, Indexed)
            if summed and _length(value) > LONGER * _length(generator):
                continue
            root = isinstance(generator, Root)
            squares = {Reciprocal(generator.args[0]): value**-2} if root else {}
            return {generator: value, **squares}
    return {}


def _put(e, values):
    # one after the other: a root is known by what its sums have become
    for part, value in values.items():
        if e.has(part):
            e = nf(e.xreplace({part: value}))
    return e
