"""Stages for an operator of the student's own: nothing is known of it but its forward, its backward and its inputs."""

from __future__ import annotations

import numpy as np

from ...checks.finite_difference import best_step, directional, inner
from ...checks.tolerance import ELEMENTWISE, SAFETY, SMALLEST, unit_roundoff
from ..messages import INPUTS, OUT_OF_TIME, WRONG_BEFORE, Wrong, compare, small, swapped
from .diagnosis import (
    entries,
    formats,
    imprecise,
    misfit,
    nearly,
    noted,
    pattern,
    unguarded,
)
from .operator import SEEDS, Operator


def described(exam) -> str:
    """`inputs` draws float64 arrays at random, and forward takes them."""
    operator = Operator(exam)
    (first, *_), (other, *_), (again, *_) = (
        operator.drawn(seed=seed) for seed in (1, 2, 1)
    )
    for name, array in first.arrays.items():
        equal = array.size > 1 and np.ptp(array) == 0
        if array.size and np.array_equal(array, other.arrays.get(name)):
            raise Wrong(f"inputs gives the same {name} for every generator. Draw it from rng: constants hide mistakes.",
                        diagnoses=noted("equal-entries" if equal else "input-not-drawn"))  # fmt: skip
        if equal:
            raise Wrong(f"All entries of {name} are equal. With equal entries many wrong gradients look right.",
                        diagnoses=noted("equal-entries"))  # fmt: skip
        if not np.array_equal(array, again.arrays.get(name)):
            raise Wrong(f"inputs gives another {name} for the same generator. Everything random comes from rng.",
                        diagnoses=noted("not-repeatable"))  # fmt: skip
    y = worth_it(operator, first, other)
    if idle := unused(operator, first, other, y):
        raise Wrong(
            f"y does not depend on {', '.join(idle)}. Leave out what forward does not use."
        )
    shapes = ", ".join(f"{name} {array.shape}" for name, array in first.arrays.items())
    return f"Inputs {shapes} in {first.library}; y has shape {y.shape}."


def gives_gradients(exam) -> str:
    """One finite gradient an input, of its shape and dtype."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.forward(inputs)
    dy = operator.dy(y)
    try:
        grads = operator.backward(dy, inputs)
    except Wrong as wrong:
        raise Wrong(
            str(wrong), stub=wrong.stub, diagnoses=misfit(operator, dy, inputs, _loss)
        ) from None
    for name, numbers in {"y": y, **grads}.items():
        if not np.isfinite(numbers).all():
            raise Wrong(
                f"{'y' if name == 'y' else f'The gradient for {name}'} has numbers that are not finite."
            )
    return "One gradient for each input, of its shape and dtype."


def leaves_inputs(exam) -> str:
    """No input is written to, and how the inputs lie in memory does not matter."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.forward(inputs)
    dy = operator.dy(y)
    plain = [y, *operator.backward(dy, inputs).values()]
    for layout in ("contiguous", "strided", "transposed"):
        try:
            forward = operator.forward(inputs, layout=layout, whole=True)
            backward = operator.backward(dy, inputs, layout=layout, whole=True)
        except Wrong as wrong:
            raise _refused(wrong, layout) from None
        for outcome, which in ((forward, "forward"), (backward, "backward")):
            if outcome.changed:
                exam.shared["restless"] = (
                    "restless" in exam.shared or which == "backward"
                )
                raise Wrong(f"{which} changed its input {', '.join(outcome.changed)} in place. Copy it first.",
                            diagnoses=noted("input-overwritten"))  # fmt: skip
        values = [value.numbers for value in (*forward.values, *backward.values)]
        for name, got, known in zip(("y", *inputs.arrays), values, plain, strict=True):
            size = np.abs(known).max(initial=0)
            bound = (
                SAFETY
                * unit_roundoff("float64")
                * (known.size + ELEMENTWISE) ** 2
                * max(size, 1)
            )
            if (
                words := compare(name, got, known, bound)[2]
            ) and layout == "contiguous":
                exam.shared["restless"] = True
                raise Wrong(
                    f"{INPUTS}the same inputs once more. {words}",
                    diagnoses=noted("another-answer"),
                )
            if words:
                raise Wrong(f"{INPUTS}the same numbers in {layout} memory. {words}")
    for name, got in operator.backward(dy, inputs, before=operator.usual()).items():
        if not np.array_equal(
            got, plain[1 + list(inputs.arrays).index(name)], equal_nan=True
        ):
            words = f"After forward has had other inputs, the same call of backward gives another gradient for {name}. "
            raise Wrong(
                words + "Take what it needs from its own arguments.",
                diagnoses=noted("another-answer"),
            )
    return "Inputs unchanged; their layout in memory does not matter."


def _refused(wrong, layout) -> Wrong:
    """What an exception says of arrays in a memory layout; those of shape and dtype were right just before."""
    if layout == "contiguous" or wrong.stub or OUT_OF_TIME in str(wrong):
        return wrong
    return Wrong(
        f"{INPUTS}the same numbers in {layout} memory. {wrong}",
        diagnoses=noted("layout-assumed"),
    )


def _loss(operator, inputs, dy, grads):
    """The loss <dy, y> of arrays, with the size of its terms; what subtracting nearly equal terms costs is in there."""
    lost = sum(
        inner(np.abs(grads[name]), np.abs(a)) for name, a in inputs.arrays.items()
    )

    def loss(*arrays):
        y = operator.forward(
            inputs.moved(**dict(zip(inputs.arrays, arrays, strict=True)))
        )
        return float((dy * y).sum()), float(np.abs(dy * y).sum()) + lost

    return loss


def _compared(exam, choose) -> str:
    """The gradients of some inputs against central differences, each along random directions."""
    operator, worst, wrong = Operator(exam), (0.0, 1.0), []
    worth_it(operator, operator.usual(), operator.usual())
    for _ in range(SEEDS):
        inputs = operator.usual()
        dy = operator.dy(operator.forward(inputs))
        grads = operator.backward(dy, inputs)
        loss, arrays = _loss(operator, inputs, dy, grads), list(inputs.arrays.values())
        for name in choose(list(inputs.arrays)):
            ways = [
                operator.rng.standard_normal(a.shape) * (n == name)
                for n, a in inputs.arrays.items()
            ]
            slope = directional(loss, arrays, ways)
            claimed = inner(grads[name], ways[list(inputs.arrays).index(name)])
            error = abs(claimed - slope.value)
            if not error <= slope.tolerance:
                wrong.append(
                    _explain(operator, inputs, dy, grads, name, (claimed, slope))
                )
            worst = max(
                worst, (error, slope.tolerance), key=lambda pair: pair[0] / pair[1]
            )
        if wrong:
            # Slopes of what changes from call to call say nothing.
            found = [
                each
                for _, diagnoses in wrong
                for each in diagnoses
                if "restless" not in exam.shared
            ]
            exam.shared["named"] = found
            raise Wrong(
                f"{INPUTS}drawn by your inputs. {' '.join(words for words, _ in wrong)}",
                diagnoses=found,
            )
    return f"Slopes agree: largest error {small(worst[0])}, allowed {small(worst[1])}."


def _explain(operator, inputs, dy, grads, name, slopes):
    """The place that is furthest off, in words, and the diagnoses of what the error looks like as a whole."""
    claimed, slope = slopes
    known, bound = entries(operator, _loss(operator, inputs, dy, grads), inputs, name)
    words = compare(f"the gradient for {name}, at ", grads[name], known, bound)[2]
    words = (
        words
        or f"Along a random direction the slope is {claimed:.9g}, central differences give {slope.value:.9g}."
    )
    words += nearly(grads[name], known, bound, slopes)

    def without(other):
        ones = inputs.moved(**{other: np.ones_like(inputs.arrays[other])})
        return entries(operator, _loss(operator, ones, dy, grads), ones, name)

    def again():
        fresh = operator.usual()
        cotangent = operator.dy(operator.forward(fresh))
        other = operator.backward(cotangent, fresh)
        return other[name], *entries(
            operator, _loss(operator, fresh, cotangent, other), fresh, name
        )

    shape, loss = grads[name].shape, _loss(operator, inputs, dy, grads)
    for other in (
        each for each in grads if each != name and grads[each].shape == shape
    ):
        theirs = entries(operator, loss, inputs, other)
        if swapped(name, grads, {name: (known, bound), other: theirs}):
            words = f"{words[0].upper()}{words[1:]} That is the gradient for {other}."
            return words, noted("results-swapped")
    # Twice dy gives exactly twice a linear gradient; of another one, a factor would be true of this dy alone.
    linear = np.array_equal(
        operator.backward(2 * dy, inputs)[name], 2 * grads[name], equal_nan=True
    )
    found = (
        pattern(operator, name, (grads[name], known, bound), inputs, without, again)
        if linear
        else ()
    )
    return f"{words[0].upper()}{words[1:]}", found


def first_gradient(exam) -> str:
    """The gradient of the first input."""
    return _compared(exam, lambda names: names[:1])


def other_gradients(exam) -> str:
    """The gradients of the other inputs; where there are none, that of the first with other numbers."""
    return _compared(exam, lambda names: names[1:] or names)


# So many times a random dy: what is clipped in backward shows at one size and not at another. It is a power of 2, by
# which each step of a linear backward is multiplied without rounding.
LARGE = 1024


def _rounded_away(gradient, dy) -> float:
    """The size of the terms of a gradient that is 0 but for their rounding, as that of a bias before a centring is."""
    terms = np.abs(dy).max(initial=0)
    nothing = (
        np.abs(gradient).max(initial=0)
        <= unit_roundoff("float64") * (dy.size + ELEMENTWISE) * terms
    )
    return float(terms) if nothing and gradient.any() else 0.0


def linear(exam) -> str:
    """The backward is linear in dy, as every backward is."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.forward(inputs)
    one, other = operator.dy(y), operator.dy(y)
    parts = [operator.backward(dy, inputs) for dy in (one, other, 3 * one - other)]
    for name in inputs.arrays:
        first, second, whole = (part[name] for part in parts)
        size = (
            3 * np.abs(first).max(initial=0)
            + np.abs(second).max(initial=0)
            + _rounded_away(first, one)
        )
        bound = (
            SAFETY
            * unit_roundoff("float64")
            * (y.size + ELEMENTWISE)
            * ELEMENTWISE
            * size
        )
        if words := compare(
            f"the gradient for {name}, at ", whole, 3 * first - second, bound
        )[2]:
            finite = all(
                np.isfinite(each).all() for part in parts for each in part.values()
            )
            same = finite and np.array_equal(
                operator.backward(one, inputs)[name], first
            )
            raise Wrong(f"{INPUTS}3 dy - dy' for two cotangents. The backward is not linear in dy: {words}",
                        diagnoses=noted("not-linear") if same else ())  # fmt: skip
    large = operator.backward(LARGE * one, inputs)
    for name, first in parts[0].items():
        bound = (
            SAFETY
            * unit_roundoff("float64")
            * (y.size + ELEMENTWISE)
            * LARGE
            * (np.abs(first).max(initial=0) + _rounded_away(first, one))
        )
        if words := compare(
            f"the gradient for {name}, at ", large[name], LARGE * first, bound
        )[2]:
            raise Wrong(f"{INPUTS}{LARGE} dy. The backward is not linear in dy: {words}",
                        diagnoses=noted("not-linear") if np.isfinite(large[name]).all() else ())  # fmt: skip
    return "The backward is linear in dy."


def second_derivatives(exam) -> str:
    """What the gradients do when the inputs move: torch's derivative of the backward, or the Hessian's symmetry."""
    operator = Operator(exam)
    inputs = operator.usual()
    dy = operator.dy(operator.forward(inputs))
    u = {
        name: operator.rng.standard_normal(a.shape) for name, a in inputs.arrays.items()
    }
    return (_twice if inputs.library == "torch" else _symmetric)(
        operator, inputs, dy, u
    )


# A move of the inputs that a wrong gradient follows by far more than a difference is off, and hardly leaves a domain.
BESIDE = 1e-3


def _wrong_beside(operator, inputs, dy, u) -> str:
    """A sentence on a gradient that is right for the inputs that are drawn, and wrong right beside them; else ""."""
    if "named" in operator.exam.shared:  # it is wrong for those that are drawn
        return ""
    near = inputs.moved(
        **{name: array + BESIDE * u[name] for name, array in inputs.arrays.items()}
    )
    grads = operator.backward(dy, near)
    loss = _loss(operator, near, dy, grads)
    for name in grads:
        if words := compare(
            f"the gradient for {name}, at ",
            grads[name],
            *entries(operator, loss, near, name),
        )[2]:
            return f"Your gradients are right for the inputs that you draw, and wrong where these are moved by " \
                   f"{BESIDE:g}: {words} What do all inputs share that you draw, such as rows of length 1?"  # fmt: skip
    return ""


def _paired(operator, inputs, u):
    """<u, gradients> and the size of its terms, as a function of dy and the inputs."""

    def pairing(dy, *arrays):
        grads = operator.backward(
            dy, inputs.moved(**dict(zip(inputs.arrays, arrays, strict=True)))
        )
        terms = sum(
            inner(np.abs(u[name]), np.abs(grad)) for name, grad in grads.items()
        )
        return sum(inner(u[name], grad) for name, grad in grads.items()), terms

    return pairing


def _symmetric(operator, inputs, dy, u):
    v = {
        name: operator.rng.standard_normal(a.shape) for name, a in inputs.arrays.items()
    }
    arrays, still, slopes = list(inputs.arrays.values()), np.zeros(dy.shape), []
    for one, other in ((u, v), (v, u)):
        slopes.append(
            directional(
                _paired(operator, inputs, one), [dy, *arrays], [still, *other.values()]
            )
        )
    error, allowed = (
        abs(slopes[0].value - slopes[1].value),
        ELEMENTWISE * sum(s.tolerance for s in slopes),
    )
    if not error <= allowed:
        before = _wrong_beside(operator, inputs, dy, u) or WRONG_BEFORE
        raise Wrong(f"{before} The derivative of the gradients along u and v is not symmetric: "
                    f"{slopes[0].value:.9g} and {slopes[1].value:.9g}. No loss has such gradients.")  # fmt: skip
    return f"Second derivatives are symmetric: off by {small(error)}, allowed {small(allowed)}."


def _twice(operator, inputs, dy, u):
    got = operator.second(dy, inputs, u)
    if got is None:
        raise Wrong("torch cannot differentiate your backward: use operations that autograd follows, without "
                    ".detach(), no_grad or .item().")  # fmt: skip
    arrays, worst = [dy, *inputs.arrays.values()], (0.0, 1.0)
    for at, name in enumerate(("dy", *inputs.arrays)):
        ways = [
            operator.rng.standard_normal(a.shape) * (k == at)
            for k, a in enumerate(arrays)
        ]
        slope = directional(_paired(operator, inputs, u), arrays, ways)
        error, allowed = (
            abs(inner(got[at], ways[at]) - slope.value),
            ELEMENTWISE * slope.tolerance,
        )
        if not error <= allowed:
            raise Wrong(f"{INPUTS}drawn by your inputs. torch's derivative of your backward by {name} has the slope "
                        f"{inner(got[at], ways[at]):.9g}, differences of your backward {slope.value:.9g}. Something in "
                        "backward looks like a constant to torch and is none.")  # fmt: skip
        worst = max(worst, (error, allowed), key=lambda pair: pair[0] / pair[1])
    return f"Second gradients agree: largest error {small(worst[0])}, allowed {small(worst[1])}."


# From here on exp is infinite in float64.
OVERFLOWS = float(np.log(np.finfo(np.float64).max))


def declared(exam) -> str:
    """Finite results on the degenerate inputs that the student declares."""
    operator = Operator(exam)
    sets, names = operator.drawn("degenerate"), list(operator.usual().arrays)
    if not sets:
        raise Wrong("degenerate returns no inputs. Where does your operator divide, and what makes that 0? Declare it.",
                    diagnoses=noted("nothing-degenerate"))  # fmt: skip
    for number, inputs in enumerate(sets, start=1):
        if sorted(inputs.arrays) != sorted(names):
            raise Wrong(
                f"Set {number} of degenerate has {', '.join(inputs.arrays)}, needs {', '.join(names)}."
            )
        inputs = inputs.ordered(names)
        y = operator.forward(inputs)
        try:
            grads = operator.backward(operator.dy(y), inputs)
        except Wrong as wrong:
            raise Wrong(f"{INPUTS}set {number} of degenerate, where y has shape {y.shape}. {wrong}",
                        stub=wrong.stub) from None  # fmt: skip
        for name, numbers in {
            "y": y,
            **{f"the gradient for {name}": grad for name, grad in grads.items()},
        }.items():
            if not np.isfinite(numbers).all():
                where, also = (
                    ("forward", "") if name == "y" else ("backward", ", y has none")
                )
                words = f"{INPUTS}set {number} of degenerate. There {name} has numbers that are not finite{also}."
                largest = max(
                    (np.abs(array).max(initial=0) for array in inputs.arrays.values()),
                    default=0,
                )
                if name == "y" and largest > OVERFLOWS:
                    words += f" The inputs go up to {largest:.3g}, and exp of that is infinite. In a quotient of " \
                             "exponentials the largest input can be subtracted first."  # fmt: skip
                raise Wrong(words, diagnoses=unguarded(operator, inputs, where))
    return f"Finite on {len(sets)} degenerate set{'s' * (len(sets) != 1)} of inputs."


MISSING = (
    "What a project needs is a quantity that is computed from the inputs and used more than once, such as a mean or a "
    "root mean square that the inputs are divided by; the rubric asks for its path in the gradient."
)


def worth_it(operator, first, other) -> np.ndarray:
    """y of the first inputs.

    Raises:  Wrong where both inputs are the same numbers, y is one of them, the same for other inputs, affine in all
             inputs together, or where each entry of y reads one entry of the inputs at most
    """
    if all(
        np.array_equal(a, other.arrays.get(name)) for name, a in first.arrays.items()
    ):
        raise Wrong("inputs gives the same numbers for every generator, and what forward does is seen by others alone.",
                    diagnoses=noted("input-not-drawn"))  # fmt: skip
    y, other = operator.forward(first), _same_shapes(first, other)
    changed = operator.forward(other)
    if any(y.shape == a.shape and np.array_equal(y, a) for a in first.arrays.values()):
        raise Wrong(f"forward returns one of its inputs: there is nothing to differentiate. {MISSING}",
                    diagnoses=noted("returns-an-input"))  # fmt: skip
    if y.shape == changed.shape and np.array_equal(y, changed):
        raise Wrong(f"forward gives the same y for other inputs: there is nothing to differentiate. {MISSING}",
                    diagnoses=noted("constant-output"))  # fmt: skip
    if _affine(operator, first, other, y, changed):
        raise Wrong(
            "forward is affine: halfway between two inputs, y is halfway, too. Its gradient is the same wherever you "
            f"stand, so that right and wrong ways to derive it hardly differ. {MISSING}",
            diagnoses=noted("affine-forward"),
        )
    if _entry_by_entry(operator, first, other, y):
        raise Wrong(f"forward computes each entry of y from one entry of the inputs: there are no two paths. {MISSING}",
                    diagnoses=noted("entry-by-entry"))  # fmt: skip
    return y


def _entry_by_entry(operator, first, other, y) -> bool:
    """Whether no entry of y moves with two entries of the inputs."""
    moved = np.zeros(y.shape, int)
    for name, a in first.arrays.items():
        for index in np.ndindex(a.shape):
            arrays = a.copy()
            arrays[index] = other.arrays[name][index]
            moved = moved + (operator.forward(first.moved(**{name: arrays})) != y)
            if (moved > 1).any():
                return False
    return True


def unused(operator, first, other, y) -> list[str]:
    """The inputs that y does not depend on."""
    other = _same_shapes(first, other)
    moved = (
        (name, first.moved(**{name: other.arrays[name]}))
        for name, a in first.arrays.items()
        if a.size
    )
    return [
        name for name, inputs in moved if np.array_equal(operator.forward(inputs), y)
    ]


def _same_shapes(first, other):
    """The other inputs, or where their shapes differ the first ones with their entries in reverse."""
    if all(
        name in other.arrays and other.arrays[name].shape == a.shape
        for name, a in first.arrays.items()
    ):
        return other.ordered(first.arrays)
    return first.moved(
        **{name: a.ravel()[::-1].reshape(a.shape) for name, a in first.arrays.items()}
    )


def _affine(operator, first, other, y, changed) -> bool:
    """Whether y is halfway between two inputs what it is on average, up to rounding."""
    middle = operator.forward(
        first.moved(
            **{name: (a + other.arrays[name]) / 2 for name, a in first.arrays.items()}
        )
    )
    if not y.shape == changed.shape == middle.shape:
        return False
    terms = sum(a.size for a in first.arrays.values()) + ELEMENTWISE
    sizes = [
        np.abs(a).max(initial=0)
        for a in (*first.arrays.values(), *other.arrays.values(), y, changed)
    ]
    bound = SAFETY * unit_roundoff("float64") * terms * sum(sizes)
    return bool((np.abs(2 * middle - y - changed) <= bound).all())


DRAWS = 16


def reach(rng, f, arrays) -> list[np.ndarray]:
    """For every result an estimate from above of the sum over all input entries of |derivative| times |entry|.

    Rounding the inputs moves a result by at most u times that; a method as good as its problem is off by a few such.
    All entries are moved at once, by h of themselves up or down at random: the mean square over such moves is the sum
    of the squares, and a sum of n terms is at most the root of n times the root of that.
    """
    h, squares = best_step(), None
    for _ in range(DRAWS):
        ways = [a * rng.choice([-1.0, 1.0], a.shape) for a in arrays]
        up, down = (
            f([a + sign * h * way for a, way in zip(arrays, ways, strict=True)])
            for sign in (1, -1)
        )
        slopes = [((a - b) / (2 * h)) ** 2 for a, b in zip(up, down, strict=True)]
        squares = (
            slopes
            if squares is None
            else [a + b for a, b in zip(squares, slopes, strict=True)]
        )
    count = sum(a.size for a in arrays)
    return [np.sqrt(count * each / DRAWS) for each in squares]


# Below this share of what is moved, a slope is the rounding of a difference and no slope.
UNMOVED = unit_roundoff("float64") ** 0.5


def cancelled(rng, f, arrays) -> list[float]:
    """For every result the largest entry of the arrays that are in it and cancel, such as a bias before a centring.

    They move the result by rounding alone, so that its slopes say nothing of them: but what is added and taken off
    again leaves its rounding behind, in every way to compute it.
    """
    found, h = [0.0] * len(f(arrays)), best_step()
    for at, a in enumerate(arrays):
        way, size = (
            a * rng.choice([-1.0, 1.0], a.shape),
            float(np.abs(a).max(initial=0)),
        )
        up, down = (
            f([b + sign * h * way if k == at else b for k, b in enumerate(arrays)])
            for sign in (1, -1)
        )
        for place, (one, other) in enumerate(zip(up, down, strict=True)):
            moved = np.abs(one - other).max(initial=0)
            if 0 < moved <= UNMOVED * 2 * h * size:
                found[place] = max(found[place], size)
    return found


NOT_ROUNDING = " In float64 it loses no such share of its digits. What in your code looks at the dtype?"


def float32(exam) -> str:
    """Results come in float32, as close to those in float64 as the problem's own condition allows."""
    operator, dtype = Operator(exam), "float32"
    inputs = operator.usual().rounded(dtype)
    dy = operator.dy(operator.forward(inputs)).astype(np.float32).astype(np.float64)
    try:
        return _close(operator, inputs, dy, dtype)
    except Wrong as wrong:
        found = formats(operator, dy, inputs, dtype)
        if not (found or "restless" in exam.shared or exam.shared.get("named")) and str(
            wrong
        ).startswith(INPUTS):
            found = imprecise(operator, dy, inputs, dtype)
            raise Wrong(
                f"{wrong}{'' if found else NOT_ROUNDING}",
                stub=wrong.stub,
                diagnoses=found,
            ) from None
        raise Wrong(str(wrong), stub=wrong.stub, diagnoses=found) from None


def _close(operator, inputs, dy, dtype) -> str:
    """Compares the results in a dtype with those in float64."""
    names = list(inputs.arrays)

    def run(arrays, dtype="float64"):
        moved = inputs.moved(**dict(zip(names, arrays[1:], strict=True)))
        return [
            operator.forward(moved, dtype),
            *operator.backward(arrays[0], moved, dtype).values(),
        ]

    arrays = [dy, *inputs.arrays.values()]
    known, got, sizes, worst = (
        run(arrays),
        run(arrays, dtype),
        reach(operator.rng, run, arrays),
        (0.0, 1.0),
    )
    sizes = [
        size + gone
        for size, gone in zip(sizes, cancelled(operator.rng, run, arrays), strict=True)
    ]
    terms = max(a.size for a in arrays) + ELEMENTWISE
    for name, right, narrow, size in zip(("y", *names), known, got, sizes, strict=True):
        largest = (
            (np.abs(right) + size).max(-1, keepdims=True, initial=0)
            if right.ndim
            else np.abs(right) + size
        )
        bound = SAFETY * unit_roundoff(dtype) * terms * largest + SMALLEST[dtype]
        which = "y at " if name == "y" else f"the gradient for {name}, at "
        error, allowed, words = compare(
            which, narrow, right, np.broadcast_to(bound, right.shape)
        )
        if words:
            raise Wrong(
                f"{INPUTS}the same numbers in {dtype}. {words[0].upper()}{words[1:]}"
            )
        worst = max(worst, (error, allowed or 1.0), key=lambda pair: pair[0] / pair[1])
    return f"Largest error {small(worst[0])}, allowed {small(worst[1])}."
