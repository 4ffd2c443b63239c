"""Which paths from an input to y a wrong gradient takes, read off its Jacobian beside that of the forward.

K[j, i] is the slope of entry j of y by entry i of the input, from central differences; G[j, i] is what the student's
backward gives entry i for a cotangent that is 1 at j and 0 elsewhere. A right backward has G = K. Both are divided by
the largest entry of K.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...checks.finite_difference import best_step
from ..messages import Wrong, apart
from .operator import MOST_ENTRIES

# Differences have half the digits of float64. What is below NOISE may be 0, what is above SEEN is not, and two numbers
# that are nearer than NEAR are one.
NOISE, SEEN, NEAR = 1e-7, 1e-3, 1e-4
# Two entries lie on every straight line.
LEAST = 3


def paths(operator, inputs, name):
    """(key, title) of what the Jacobian of one input shows, or None.

    Args:  operator: an Operator; inputs: an Inputs; name: of the input whose gradient is wrong
    """
    try:
        return _paths(operator, inputs, name)
    except Wrong:  # forward refuses other inputs, or the time is over
        return None


def _paths(operator, inputs, name):
    array, y = inputs.arrays[name], operator.forward(inputs)
    if not 0 < y.size <= MOST_ENTRIES or not 0 < array.size <= MOST_ENTRIES:
        return None
    K, G = _slopes(operator, inputs, name), _given(operator, inputs, name, y)
    size = np.abs(K).max()
    if not size or not np.isfinite(G).all():
        return None
    K, G = K / size, G / size
    found = (
        _reach(name, K, G, y, array)
        or _blind(operator, inputs, name)
        or _largest(name, G - K, array)
    )
    if found is None and y.shape == array.shape:
        found = _among_entries(name, K, G, array.ravel()) or _direct(
            name, size, K, G, inputs
        )
    found = (
        found
        or _factor_of_its_own(operator, inputs, name, K, G, y)
        or _through_y(name, K, G, y)
    )
    return (
        found
        or _through_a_number(name, G - K, inputs)
        or _unmoved(name, K, G, y, array)
    )


def _slopes(operator, inputs, name):
    operator.differences(inputs, name)
    array, columns = inputs.arrays[name], []
    for index in np.ndindex(array.shape):
        ends = []
        for step in (best_step(), -best_step()):
            moved = array.copy()
            moved[index] += step
            ends.append(operator.forward(inputs.moved(**{name: moved})).ravel())
        columns.append((ends[0] - ends[1]) / (2 * best_step()))
    return np.stack(columns, 1)


def _given(operator, inputs, name, y):
    units = np.eye(y.size).reshape(y.size, *y.shape)
    return np.stack(
        [gradient.ravel() for gradient in operator.gradients(units, inputs, name)]
    )


def _reach(name, K, G, y, array):
    """It reads dy at an entry of y that does not depend on the entry of the input."""
    none, read = np.abs(K) <= NOISE, np.abs(G) > SEEN
    wrong = read & none
    if not wrong.any():
        return None
    if y.shape == array.shape and (none.T == (np.abs(G) <= NOISE)).all():
        return (
            "wrong-reach",
            f"dy goes to {name} on the ways from {name} to y, and not on the ways back",
        )
    j, i = np.argwhere(wrong)[0]
    here, there = _place(j, y.shape), "" if none[j].all() else _place(i, array.shape)
    return (
        "wrong-reach",
        f"y{here} does not depend on {name}{there}, but the gradient for {name}{there} reads dy{here}",
    )


def _place(index, shape) -> str:
    return f"[{', '.join(map(str, np.unravel_index(index, shape)))}]" if shape else ""


def _with_others(operator, inputs, names):
    """The inputs with some of them drawn anew; None where their shapes are drawn, too."""
    fresh = operator.usual().arrays
    if any(fresh[each].shape != inputs.arrays[each].shape for each in names):
        return None
    return inputs.moved(**{each: fresh[each] for each in names})


def _blind(operator, inputs, name):
    """It does not change with another input, although the slopes of y by it do."""
    dy = operator.dy(operator.forward(inputs))
    got, before = operator.backward(dy, inputs)[name], None
    for other in (each for each in inputs.arrays if each != name):
        moved = _with_others(operator, inputs, [other])
        if moved is None or not np.array_equal(operator.backward(dy, moved)[name], got):
            continue
        before = _slopes(operator, inputs, name) if before is None else before
        if (
            np.abs(before - _slopes(operator, moved, name)).max()
            > SEEN * np.abs(before).max()
        ):
            return (
                "factor-left-out",
                f"The gradient for {name} does not depend on {other}, the slope of y does",
            )
    return None


def _one(values):
    """The one number that all values are; None where they differ, or there are none."""
    if not values.size or np.ptp(values) > NEAR * max(1, np.abs(values).max()):
        return None
    return float(np.median(values))


def _times(factor) -> str:
    """A factor in words."""
    if abs(factor) <= NEAR:
        return "missing"
    if abs(factor + 1) <= NEAR:
        return "of the wrong sign"
    whole = {f"1/{n}" if factor < 1 else str(n) for n in range(2, 13) if abs((1 / factor if factor < 1 else factor) - n)
             <= n * NEAR}  # fmt: skip
    return f"{min(whole) if whole else apart(round(factor, 4), 1.0)[0]} times what is needed"


def _among_entries(name, K, G, a):
    """Where y and the input have one shape: what each entry does to the other ones."""
    other = (np.abs(K) > SEEN) & ~np.eye(len(a), dtype=bool)
    if not other.any():
        return None
    if found := _statistics(name, K, G, a):
        return found
    ratio = G / np.where(other, K, 1)
    whole, columns = (
        _one(ratio[other]),
        [_one(each[here]) for each, here in zip(ratio.T, other.T, strict=True)],
    )
    if whole is not None:
        words = f"What each entry of {name} does to the others is {_times(whole)}"
        return None if abs(whole - 1) <= NEAR else ("path-to-others", words)
    outputs = [_one(each[here]) for each, here in zip(ratio, other, strict=True)]
    if None not in outputs and other.sum(1).min() > 1:
        return (
            "path-to-others",
            f"What an entry of y takes from other entries of {name} has a factor of that y's own",
        )
    used = other.any(0)
    if (
        any(each is None for each, there in zip(columns, used, strict=True) if there)
        or other.sum(0)[used].min() < 2
    ):
        return None
    factors = np.array([1.0 if each is None else each for each in columns])
    groups = [other[:, j] | other[j] for j in np.flatnonzero(used)]
    if all(_one(factors[group & used]) is not None for group in groups):
        if np.abs(np.diag(G) - np.diag(K) * factors)[used].max() <= NEAR:
            return (
                "row-factor",
                f"The gradient for {name} has in each row another wrong factor",
            )
        return (
            "path-to-others",
            f"What the entries of a row of {name} do to each other has a factor of the row's own",
        )
    sign = (np.abs(factors - np.sign(a))[used] <= NEAR).all()
    wrong = (
        f"the sign of each entry of {name} is missing"
        if sign
        else f"each entry of {name} has a factor of its own"
    )
    return "summed-derivative", f"In what an entry of {name} does to the others {wrong}"


def _statistics(name, K, G, a):
    """Where the entries reach each other through a mean and a size alone: what is wrong with either path."""
    known, got, middles, alone = [], [], [], []
    for j, group in enumerate((np.abs(K) > NOISE) | np.eye(len(a), dtype=bool)):
        entries = group & (np.arange(len(a)) != j)
        if entries.sum() < LEAST:
            continue
        terms = np.stack([np.ones(entries.sum()), a[entries] - a[group].mean()], 1)
        fits = [
            np.linalg.lstsq(terms, each[j, entries], rcond=None)[0] for each in (K, G)
        ]
        left = [
            np.abs(terms @ fit - each[j, entries]).max()
            for fit, each in zip(fits, (K, G), strict=True)
        ]
        if max(left) > NEAR:
            return None
        known.append(fits[0])
        got.append(fits[1])
        middles.append(a[group].mean())
        through = np.array([1, a[j] - middles[-1]])
        alone.append([K[j, j] - through @ fits[0], G[j, j] - through @ fits[1]])
    if not known:
        return None
    known, got, alone = np.array(known), np.array(got), np.array(alone)
    if (
        np.abs(alone[:, 0] - alone[:, 1]).max() > NEAR
    ):  # what an entry does to its own y is wrong, too
        return _another_size(name, known, got, alone)
    mean, size = (_one(got[seen, at] / known[seen, at])
                  for at in (0, 1) for seen in [np.abs(known[:, at]) > 10 * SEEN])  # fmt: skip
    plain, same = (
        (np.abs(each[:, 0] - each[:, 1] * middles) <= NEAR).all()
        for each in (known, got)
    )
    if plain and same and size is None:
        return (
            "path-through-a-scale",
            f"The path through a size of {name} has a wrong factor, not everywhere the same",
        )
    if size is None:
        return None
    if plain:  # a size without a mean: both terms are one
        mean = 1.0
    wrong = [
        None if each is None or abs(each - 1) <= NEAR else _times(each)
        for each in (mean, size)
    ]
    if mean is None or not any(wrong):
        return None
    if not wrong[0]:
        return (
            "path-through-a-scale",
            f"The path through a size of {name} is {wrong[1]}",
        )
    if not wrong[1]:
        return "path-through-a-mean", f"The path through a mean of {name} is {wrong[0]}"
    second = "" if wrong[0] == wrong[1] else f"{wrong[0]}, the second "
    first = (
        f"are both {wrong[1]}"
        if not second
        else f"are wrong: the first is {second}is {wrong[1]}"
    )
    return (
        "paths-through-both",
        f"The paths through a mean and through a size of {name} {first}",
    )


def _another_size(name, known, got, alone):
    """Where the size in backward is another one than in forward: all goes with it once, the path through it cubed."""
    if np.abs(alone[:, 0]).min() <= SEEN:
        return None
    ratio = alone[:, 1] / alone[:, 0]
    expected = known * np.stack([ratio, ratio**3], 1)
    if np.abs(got - expected).max() > NEAR or np.abs(got[:, 1]).max() <= SEEN:
        return None
    return (
        "another-size",
        f"In the gradient for {name} the size that forward divides by is another one",
    )


def _factor_of_its_own(operator, inputs, name, K, G, y):
    """The right Jacobian times a function of the input alone, or times one number in each row of y."""
    here = np.abs(K) > SEEN
    if (np.abs(G) > SEEN)[np.abs(K) <= NOISE].any() or not here.any():
        return None
    ratio = np.where(here, G / np.where(here, K, 1), np.nan)
    used = here.any(0)
    columns = [_one(each[np.isfinite(each)]) for each in ratio.T[used]]
    several = here.sum(0).max() > 1
    if None not in columns and (several or len(inputs.arrays) > 1):
        if (
            len(columns) > 1 and _one(np.array(columns)) is not None
        ):  # a number, which other looks name
            return None
        moved = _with_others(
            operator, inputs, [each for each in inputs.arrays if each != name]
        )
        if moved is None:
            return None
        K, G = _slopes(operator, moved, name), _given(operator, moved, name, y)
        near = (
            np.abs(G[:, used] - K[:, used] * np.array(columns))
            <= SEEN * np.abs(K).max()
        )
        found = (
            "wrong-derivative",
            f"The gradient for {name} is off by a factor that depends on {name} alone",
        )
        own = (
            "row-factor",
            f"Each entry of the gradient for {name} has a wrong factor of its own",
        )
        return (
            found
            if near.all() and len(inputs.arrays) > 1
            else own
            if several and len(columns) > 1
            else None
        )
    rows = (
        ratio.reshape(-1, y.shape[-1] * ratio.shape[1])
        if y.ndim > 1
        else np.empty((0, 0))
    )
    numbers = [_one(row[np.isfinite(row)]) for row in rows if np.isfinite(row).any()]
    if not numbers or None in numbers or y.shape[-1] < 2:
        return None
    return (
        "row-factor",
        f"The gradient for {name} has a wrong factor, another one in each row of y",
    )


def _through_y(name, K, G, y):
    """Off by a multiple of sum(dy * y) of each row: what y is divided by moves with the input, too."""
    if y.ndim < 1 or y.shape[-1] < LEAST:
        return None
    rows = y.reshape(-1, y.shape[-1], 1)
    off = (G - K).reshape(*rows.shape[:2], -1)
    times = (off * rows).sum(1, keepdims=True) / np.maximum(
        (rows * rows).sum(1, keepdims=True), np.finfo(float).tiny
    )
    if np.abs(off - times * rows).max() > NEAR or np.abs(off).max() <= SEEN:
        return None
    return (
        "path-through-a-scale",
        f"The gradient for {name} is off by sum(dy * y) of each row of y, times something",
    )


def _largest(name, off, array):
    """Off at the largest or the smallest entry of each row alone, whose path is that of a maximum or a minimum."""
    for axes in _axes(array.shape):
        rows, entries = (
            _grouped(off, array.shape, axes),
            _grouped(array.reshape(1, -1), array.shape, axes)[:, 0],
        )
        wrong = np.abs(rows).max(1) > SEEN
        tops = {
            "largest": entries,
            "smallest": -entries,
            "farthest from 0": np.abs(entries),
        }
        for what, sized in tops.items():
            top = sized == sized.max(1, keepdims=True)
            if (
                len(rows) > 1
                and wrong[top].all()
                and not (np.abs(rows).max(1)[~top] > NEAR).any()
            ):
                return (
                    "path-through-the-largest",
                    f"The gradient for {name} is wrong at one entry of each row alone, the {what}",
                )
    return None


def _direct(name, size, K, G, inputs):
    """Right but for what each entry gives the same entry of y: dy itself, or dy times another input, is missing."""
    off, shape = (G - K) * size, inputs.arrays[name].shape
    if np.abs(G - K).max() <= SEEN:
        return None
    apart_from = ~np.eye(len(K), dtype=bool)
    if (
        np.abs(G - K)[apart_from].max(initial=0) > NEAR
        or np.abs(K)[apart_from].max(initial=0) <= SEEN
    ):
        return None
    own = np.diag(off)
    factors = {"dy": np.ones(shape)} | {
        f"dy * {other}": factor
        for other, array in inputs.arrays.items()
        for factor in _broadcast(array, shape)
    }
    for words, factor in factors.items():
        for sign, how in ((-1, "is missing in"), (1, "is one time too often in")):
            if np.abs(own - sign * factor.ravel()).max() <= NEAR * max(1, size):
                return "direct-path", f"{words} {how} the gradient for {name}"
    return (
        "direct-path",
        f"In the gradient for {name} what dy of the same place is multiplied by is wrong",
    )


def _broadcast(array, shape):
    """The array in a shape: as it is, or along each axis that is as long."""
    if array.shape == shape:
        yield array
    elif array.ndim == 1:
        for axis in (axis for axis, length in enumerate(shape) if length == array.size):
            yield np.broadcast_to(
                array.reshape([-1 if k == axis else 1 for k in range(len(shape))]),
                shape,
            )


def _axes(shape, least=LEAST):
    """Sets of axes along which a row of more than `least` entries may lie, the shortest rows first."""
    sets = [
        each
        for n in range(len(shape))
        for each in combinations(range(len(shape)), n + 1)
    ]
    sized = [(int(np.prod([shape[k] for k in each])), each) for each in sets]
    return [each for length, each in sorted(sized) if length > least]


def _grouped(numbers, shape, axes):
    """(..., entries) as (rows, ..., entries of a row)."""
    kept = [k for k in range(len(shape)) if k not in axes]
    moved = numbers.reshape(-1, *shape).transpose(
        *(k + 1 for k in kept), 0, *(k + 1 for k in axes)
    )
    return moved.reshape(-1, len(numbers), int(np.prod([shape[k] for k in axes])))


def _through_a_number(name, off, inputs):
    """Off as by one number of each row, which moves with the input as a sum does, as a sum of squares, or of products.

    The entries of the gradient in a row are off by what is the same for all, or by multiples of one array.
    """
    array = inputs.arrays[name]
    if np.abs(off).max() <= SEEN:
        return None
    ways = [("path-through-a-mean", "the same number at all entries of a row", [np.ones(array.shape)]),
            ("path-through-a-scale", f"a multiple of {name} in each row", [array])]  # fmt: skip
    for other in (each for each in inputs.arrays if each != name):
        ways += [("path-through-a-product", f"a multiple of {other} in each row", [each])
                 for each in _broadcast(inputs.arrays[other], array.shape)]  # fmt: skip
    ways.append(
        (
            "paths-through-both",
            f"a number and a multiple of {name} in each row",
            [np.ones(array.shape), array],
        )
    )
    for axes in _axes(array.shape):
        rows = _grouped(off, array.shape, axes)
        for key, words, arrays in ways:
            terms = np.stack(
                [
                    _grouped(each.reshape(1, -1), array.shape, axes)[:, 0]
                    for each in arrays
                ],
                -1,
            )
            if rows.shape[-1] < LEAST + len(arrays):
                continue
            fits = np.linalg.pinv(terms) @ rows.transpose(0, 2, 1)
            if np.abs(rows.transpose(0, 2, 1) - terms @ fits).max() <= NEAR:
                return key, f"The gradient for {name} is off by {words}"
    return None


def _unmoved(name, K, G, y, array):
    """y, or a sum of it, stays as it is for some moves of the input, and the gradient does not say so."""
    for axes in _axes(array.shape, least=1):
        along = f"along axis {' and '.join(map(str, axes))}"
        for what, need, by in (("one number is added to", "the gradient", np.ones(array.shape)),
                               ("one number multiplies", f"the gradient times {name}", array)):  # fmt: skip
            known, got = (np.abs((_grouped(each, array.shape, axes) * _grouped(by.reshape(1, -1), array.shape, axes))
                                 .sum(-1)).max() for each in (K, G))  # fmt: skip
            if known <= SEEN**2 < SEEN < got:
                return "not-moved", (f"y stays as it is when {what} all entries of {name} {along}: {need} must add "
                                     "up to 0 there, and does not")  # fmt: skip
    for axes in _axes(y.shape, least=1):
        along = f"along axis {' and '.join(map(str, axes))}"
        known, got = (
            np.abs(_grouped(each.T, y.shape, axes).sum(-1)).max() for each in (K, G)
        )
        if known <= SEEN**2 < SEEN < got:
            return "not-moved", (f"y adds up to the same numbers {along}, whatever {name} is: the gradient of that "
                                 "sum must be 0, and is not")  # fmt: skip
    return None
