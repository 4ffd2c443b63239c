"""Mistakes of an operator that nobody has analysed: what shows before the numbers, and what wrong gradients look like
beside the differences."""

from __future__ import annotations

from itertools import product

import numpy as np

from ...checks.finite_difference import best_step, directional
from ...checks.tolerance import unit_roundoff
from ..diagnosis.named import named
from ..messages import Wrong, apart
from .paths import paths

ARRAYS, MOST_AXES, MOVES, DIGITS = ("ndarray", "tensor"), 8, 3, 1e-6
# Nearer to 1 than n / (n - 1) of as many numbers as inputs may have.
LITTLE = 1e-3
WIDE = {"float64", "complex128", "float128", "longdouble", "complex256"}
NARROW = {"float16", "bfloat16"}


def noted(key, title="") -> tuple:
    """The Diagnosis of a key, alone in a tuple; title: where it names an input."""
    return (named(key, homework="hw7", title=title),)


def misfit(operator, dy, inputs, loss) -> tuple:
    """What is wrong with gradients whose number or shapes do not fit the inputs, where that can be told.

    Args:  loss: takes (operator, inputs, dy, gradients), returns the loss with the size of its terms
    """
    try:
        values = operator.asked(dy, inputs).values
    except Wrong:
        return ()
    arrays = [value for value in values if value.facts.get("kind") in ARRAYS]
    none = sum(value.facts.get("type") == "NoneType" for value in values)
    if (
        arrays
        and len(arrays) < len(inputs.arrays)
        and len(arrays) + none == len(values) <= len(inputs.arrays)
    ):
        return noted("gradient-missing")
    if len(arrays) != len(values) or len(values) != len(inputs.arrays):
        return ()
    got = {
        name: value.numbers for name, value in zip(inputs.arrays, values, strict=True)
    }
    return next(
        (
            noted("wrong-axis")
            for name in got
            if _other_axes(operator, dy, inputs, got, name, loss)
        ),
        (),
    )


def _other_axes(operator, dy, inputs, got, name, loss) -> bool:
    """Whether a gradient has the shape of dy summed over other axes than the input's, and all that it must add up to.

    The sum over all entries is the slope in the direction of ones, whichever axes were summed before.
    """
    shape, needed = got[name].shape, inputs.arrays[name].shape
    if (
        _without_ones(shape) == _without_ones(needed)
        or dy.ndim > MOST_AXES
        or not np.isfinite(got[name]).all()
    ):
        return False
    axes = product((0, 1), repeat=dy.ndim)
    left = {
        tuple(n for n, keep in zip(dy.shape, kept, strict=True) if keep and n != 1)
        for kept in axes
    }
    if _without_ones(shape) not in left:
        return False
    sized = {
        each: np.full(a.shape, np.abs(got[each]).max(initial=0))
        for each, a in inputs.arrays.items()
    }
    ways = [np.full(a.shape, float(each == name)) for each, a in inputs.arrays.items()]
    slope = directional(
        loss(operator, inputs, dy, sized), list(inputs.arrays.values()), ways
    )
    return bool(abs(got[name].sum() - slope.value) <= slope.tolerance)


def _without_ones(shape):
    return tuple(n for n in shape if n != 1)


def unguarded(operator, inputs, where) -> tuple:
    """Whether all is finite next to inputs on which it is not: what overflows does so there, too.

    Args:  where: the function that gives what is not finite
    """
    for _ in range(MOVES):
        ways = {
            name: operator.rng.standard_normal(a.shape)
            for name, a in inputs.arrays.items()
        }
        near = {name: a + best_step() * max(1, np.abs(a).max(initial=0)) * ways[name]
                for name, a in inputs.arrays.items()}  # fmt: skip
        try:
            y = operator.forward(inputs.moved(**near))
            results = [
                y,
                *operator.backward(operator.dy(y), inputs.moved(**near)).values(),
            ]
        except Wrong:
            return ()
        if not all(np.isfinite(numbers).all() for numbers in results):
            return ()
    return noted(
        "zero-unguarded",
        f"On a degenerate input something in {where} is 0 that must not be 0",
    )


def formats(operator, dy, inputs, dtype) -> tuple:
    """What the formats of the arithmetic say about results that are wrong in a dtype."""
    try:
        asked = [
            operator.asked(dy, inputs, dtype, watched=method)
            for method in ("forward", "backward")
        ]
    except Wrong:
        return ()
    computed, converted = ({each for outcome in asked for each in outcome.facts[how]}
                           for how in ("computed", "converted"))  # fmt: skip
    returned = {
        value.facts.get("dtype") for outcome in asked for value in outcome.values
    }
    wide = noted("wide-arithmetic") if returned & computed & WIDE else ()
    return (
        *wide,
        *(noted("narrow-intermediate") if (computed | converted) & NARROW else ()),
    )


def imprecise(operator, dy, inputs, dtype) -> tuple:
    """Results off in a dtype, although nothing is rounded to less: digits are lost on the way, if all is finite."""
    y = operator.forward(inputs, dtype)
    results = [y, *operator.backward(dy, inputs, dtype).values()]
    if operator.forwards(dy, inputs) >= sum(a.size for a in inputs.arrays.values()):
        return noted("differences-for-backward")
    finite = all(np.isfinite(numbers).all() for numbers in results)
    return (
        noted("digits-lost")
        if finite and _as_in_float64(operator, dy, inputs, dtype)
        else ()
    )


# So many moves by so little that what is no straight line in them is rounding; rounding differs so much at most.
TINY, SIDES, MORE_ROUNDING = 2.0**-40, 4, 16


def _as_in_float64(operator, dy, inputs, dtype) -> bool:
    """Whether float64 loses the same share of its digits: another number, or another branch for a dtype, does not show
    there."""
    arrays, steps = [dy, *inputs.arrays.values()], np.arange(-SIDES, SIDES + 1)
    ways = [TINY * a * operator.rng.choice([-1.0, 1.0], a.shape) for a in arrays]

    def results(dy, *arrays, dtype="float64"):
        moved = inputs.moved(**dict(zip(inputs.arrays, arrays, strict=True)))
        return [
            operator.forward(moved, dtype),
            *operator.backward(dy, moved, dtype).values(),
        ]

    runs = [
        results(*(a + k * way for a, way in zip(arrays, ways, strict=True)))
        for k in steps
    ]
    share = unit_roundoff(dtype) / unit_roundoff("float64")
    for values, narrow in zip(
        zip(*runs, strict=True), results(*arrays, dtype=dtype), strict=True
    ):
        table = np.stack(values).reshape(len(steps), -1)
        centred = table - table.mean(0)
        rough = centred - np.outer(steps, steps @ centred) / (steps @ steps)
        off = np.abs(narrow - values[SIDES]).max(initial=0)
        if off > MORE_ROUNDING * share * np.abs(rough).max(initial=0):
            return False
    return True


def entries(operator, loss, inputs, name):
    """(gradient, bound) of one input, entry by entry, by central differences."""
    operator.differences(inputs, name)
    arrays = list(inputs.arrays.values())
    at = list(inputs.arrays).index(name)
    known, bound = np.empty(arrays[at].shape), np.empty(arrays[at].shape)
    for index in np.ndindex(arrays[at].shape):
        ways = [np.zeros(a.shape) for a in arrays]
        ways[at][index] = 1
        slope = directional(loss, arrays, ways)
        known[index], bound[index] = slope.value, slope.tolerance
    return known, bound


def pattern(operator, name, gradients, inputs, without, again) -> tuple:
    """One Diagnosis where the wrong gradient is the right one times a number, made without a factor, takes a wrong path
    from dy to the input, or is off by a part in each row.

    Args:  name: of the input; gradients: the student's, the right one and its bound; inputs: an Inputs
           without: takes the name of another input, returns (gradient, bound) for the case that it is 1 everywhere
           again: gives the gradients of another draw, for one number is always a factor times another one
    """
    got, known, bound = gradients
    if np.abs(got - known).max(initial=0) <= DIGITS * np.abs(known).max(initial=0):
        return ()  # of an error that small every formula is near
    if nearly(got, known, bound):
        return ()
    enough = (
        gradients
        if got.size > 1
        else [np.stack(pair) for pair in zip(gradients, again(), strict=True)]
    )
    found = _factor(name, *enough, got.shape) or _left(
        name, got, inputs.arrays, without
    )
    found = found or paths(operator, inputs, name)
    return noted(*found) if found else ()


def _fitted(got, known, bound):
    """The number that the right gradient is multiplied by; None where it is not, or that is 0."""
    factor = float(
        (got * known).sum() / max((known * known).sum(), np.finfo(float).tiny)
    )
    return (
        factor
        if factor and (np.abs(got - factor * known) <= (1 + abs(factor)) * bound).all()
        else None
    )


# A factor or a path that is wrong makes more than this of a gradient; lost digits and another eps make less.
SHARE = 1e-5
SMALL = "Digits are lost, or a constant such as eps stands elsewhere in backward than in forward, or is another one."


def nearly(got, known, bound, slopes=None) -> str:
    """A sentence where a gradient is the right one times nearly 1, as by lost digits, or right up to a small share.

    Args:  slopes: (claimed, Slope) along one direction, where the entries' own bounds leave 1 possible
    """
    factor = _fitted(got, known, bound)
    if factor is None:
        share = np.abs(got - known).max(initial=0) / max(
            np.abs(known).max(initial=0), np.finfo(float).tiny
        )
        return (
            f" So it is right up to {share:.0e} of its size. {SMALL}"
            if share <= SHARE
            else ""
        )
    if abs(factor - 1) >= LITTLE:
        return ""
    off = f"it is {apart(factor, 1.0)[0]} times what it must be"
    if slopes and (np.abs(got - known) <= 2 * bound).all():
        claimed, slope = slopes
        off = f"it is off by {abs(claimed - slope.value) / max(abs(slope.value), np.finfo(float).tiny):.0e} of that"
    return f" So {off}: a wrong number of entries shows more. {SMALL}"


def _factor(name, got, known, bound, shape):
    """The whole gradient times a constant."""
    if not np.isfinite(got).all() or not got.any():
        return (
            None if got.any() else ("gradient-zero", f"The gradient for {name} is zero")
        )
    if (factor := _fitted(got, known, bound)) is None:
        return None
    if np.isclose(factor, -1):
        return "sign", f"The gradient for {name} has the wrong sign"
    sizes = {
        f"1/{n}" if factor < 1 else str(n)
        for n in shape
        if np.isclose(factor, 1 / n if factor < 1 else n)
    }
    words = sorted(sizes)[0] if sizes else apart(factor, 1.0)[0]
    return (
        "constant-factor",
        f"The gradient for {name} is {words} times what it must be",
    )


def _left(name, got, arrays, without):
    """The gradient is the one for another input of 1 everywhere, or that one times the other input."""
    for other, array in arrays.items():
        if other == name or not array.size:
            continue
        try:
            known, bound = without(other)
        except Wrong:  # forward refuses ones there
            continue
        if (np.abs(got - known) <= bound).all():
            return (
                "factor-left-out",
                f"The gradient for {name} is what it would be if {other} were 1 everywhere",
            )
        for factor in _along(array, got.shape):
            if (np.abs(got - factor * known) <= np.abs(factor) * bound).all():
                return (
                    "factor-last",
                    f"The gradient for {name} is multiplied by {other} at the end",
                )
    return None


def _along(array, shape):
    """The array as a factor of the shape: as it is, or along each axis of its length."""
    if array.shape == shape:
        yield array
    if array.ndim == 1:
        for axis in (axis for axis, size in enumerate(shape) if size == array.size):
            yield array.reshape([-1 if k == axis else 1 for k in range(len(shape))])
