"""Stages for an operator of the student's own: nothing is known of it but its forward, its backward and its inputs."""

from __future__ import annotations

import numpy as np

from ...checks.finite_difference import directional, inner
from ...tolerance import ELEMENTWISE, SAFETY, SMALLEST, unit_roundoff
from ..messages import INPUTS, OUT_OF_TIME, WRONG_BEFORE, Wrong, compare, largest
from ..named import named
from ..reading.operators import explained, readings
from .operator import Operator

SEEDS = 3
U = unit_roundoff("float64")
AGAIN = "another-answer"
MISSING = (
    "What a project needs is a quantity that is computed from the inputs and used more than once, such as a mean or a "
    "root mean square that the inputs are divided by; the rubric asks for its path in the gradient."
)


def described(exam) -> str:
    """`inputs` draws float64 arrays at random, and forward takes them."""
    operator = Operator(exam)
    first, another, again = (operator.drawn(seed=seed)[0] for seed in (1, 2, 1))
    for name, array in first.arrays.items():
        if array.size and np.array_equal(array, another.arrays.get(name)):
            words = "for every generator. Draw it from rng: constants hide mistakes"
            raise Wrong(f"inputs gives the same {name} {words}.")
        if array.size > 1 and np.ptp(array) == 0:
            words = "With equal entries many wrong gradients look right"
            raise Wrong(f"All entries of {name} are equal. {words}.")
        if not np.array_equal(array, again.arrays.get(name)):
            words = "for the same generator. Everything random comes from rng"
            raise Wrong(f"inputs gives another {name} {words}.")
    y = worth_it(operator, first, another)
    if unused := _unused(operator, first, another, y):
        words = "Leave out what forward does not use"
        raise Wrong(f"y does not depend on {', '.join(unused)}. {words}.")
    shapes = ", ".join(f"{name} {array.shape}" for name, array in first.arrays.items())
    return f"Inputs {shapes} in {first.library}; y has shape {y.shape}."


def gives_gradients(exam) -> str:
    """One finite gradient an input, of its shape and dtype."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.y(inputs)
    grads = operator.grads(operator.like(y), inputs)
    _finite(y, grads)
    return "One gradient for each input, of its shape and dtype."


def _finite(y, grads) -> None:
    """Raises Wrong where a result is not finite."""
    for name, numbers in _results(y, grads).items():
        if not np.isfinite(numbers).all():
            raise Wrong(f"{name} has numbers that are not finite.")


def _results(y, grads) -> dict:
    """{what it is called: numbers} of y and of the gradients."""
    return {"y": y} | {f"The gradient for {name}": g for name, g in grads.items()}


def leaves_inputs(exam) -> str:
    """No input is written to, and how the inputs lie in memory does not matter."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.y(inputs)
    dy = operator.like(y)
    plain = _results(y, operator.grads(dy, inputs))
    for layout in ("contiguous", "strided", "transposed"):
        where, key = f"{INPUTS}the same numbers in {layout} memory.", ""
        if layout == "contiguous":
            where, key = f"{INPUTS}the same inputs once more.", AGAIN
        try:
            y, by_forward = operator.forward(inputs, layout=layout)
            grads, by_backward = operator.backward(dy, inputs, layout=layout)
        except Wrong as wrong:
            if layout == "contiguous" or wrong.stub or OUT_OF_TIME in str(wrong):
                raise
            raise Wrong(f"{where} {wrong}") from None
        for which, names in (("forward", by_forward), ("backward", by_backward)):
            if names:
                words = f"{which} changed its input {', '.join(names)} in place."
                raise Wrong(f"{words} Copy it first.", key="input-overwritten")
        for name, numbers in _results(y, grads).items():
            size = max(np.abs(plain[name]).max(initial=0), 1)
            terms = (numbers.size + ELEMENTWISE) ** 2
            bound = SAFETY * U * terms * size
            words = compare(f"{name}, at ", numbers, plain[name], bound)[2]
            if words:
                raise Wrong(f"{where} {words}", key=key)
    grads, _ = operator.backward(dy, inputs, before=operator.usual())
    for name, gradient in grads.items():
        expected = plain[f"The gradient for {name}"]
        if not np.array_equal(gradient, expected, equal_nan=True):
            words = (
                "After forward has had other inputs, the same call of backward gives another gradient for "
                f"{name}. Take what it needs from its own arguments."
            )
            raise Wrong(words, key=AGAIN)
    return "Inputs unchanged; their layout in memory does not matter."


def first_gradient(exam) -> str:
    """The gradient of the first input."""
    return _compared(exam, lambda names: names[:1])


def other_gradients(exam) -> str:
    """The gradients of the other inputs; where there are none, that of the first with other numbers."""
    return _compared(exam, lambda names: names[1:] or names)


def _compared(exam, choose) -> str:
    """The gradients of some inputs against central differences, each along random directions."""
    operator, errors, wrong, found = Operator(exam), [], [], []
    worth_it(operator, operator.usual(), operator.usual())
    for _ in range(SEEDS):
        inputs = operator.usual()
        dy = operator.like(operator.y(inputs))
        grads = operator.grads(dy, inputs)
        loss = operator.loss(inputs, dy, grads)
        for name in choose(list(inputs.arrays)):
            direction = operator.like(inputs.arrays[name])
            ways = inputs.moved(**{n: 0 * a for n, a in inputs.arrays.items()})
            ways = ways.moved(**{name: direction})
            slope = directional(
                loss, list(inputs.arrays.values()), list(ways.arrays.values())
            )
            claimed = inner(grads[name], direction)
            error = abs(claimed - slope.value)
            if not error <= slope.tolerance:
                expected, bound = operator.entries(inputs, dy, grads, name)
                wrong.append(_where(grads[name], expected, bound, name, claimed, slope))
                found += _exchanged(grads, expected, bound, name)
                found += _multiple(grads[name], expected, bound, name)
                found += explained(operator, inputs, dy, grads, name, found)
            errors.append((error, slope.tolerance))
        if wrong:
            words = f"{INPUTS}drawn by your inputs. {' '.join(wrong)}"
            raise Wrong(words, diagnoses=[*found, *_read(exam, inputs)])
    exam.shared.setdefault("right", set()).update(choose(list(inputs.arrays)))
    return f"Slopes agree: {largest(errors)}"


def _read(exam, inputs) -> list:
    """What is read from the operator's text, once in a report."""
    if "read" in exam.shared:
        return []
    exam.shared["read"] = True
    return readings(exam.student.program(exam.task.entry), inputs)


def _where(gradient, expected, bound, name, claimed, slope) -> str:
    """The entry that is furthest off, in words."""
    which = f"The gradient for {name}, at "
    words = compare(which, gradient, expected, bound)[2]
    if words:
        return words
    return f"Along a random direction of {name} the slope is {claimed:.9g}, central differences give {slope.value:.9g}."


# Of the largest entry, how far off differences may be where a factor is named; of fewer entries it may be by chance.
SHARP, FEW = 1e-5, 3


def _exchanged(grads, expected, bound, name) -> list:
    """A Diagnosis where another gradient is what this one has to be."""
    for other, gradient in grads.items():
        if other != name and gradient.shape == expected.shape:
            if (np.abs(gradient - expected) <= bound).all() and expected.any():
                return [named("results-swapped")]
    return []


def _multiple(gradient, expected, bound, name) -> list:
    """A Diagnosis of a gradient that is a multiple of what is needed."""
    size = np.abs(expected).max(initial=0)
    if not np.max(bound, initial=0) < SHARP * size:
        return []
    times = round(inner(gradient, expected) / inner(expected, expected), 6)
    error = np.abs(gradient - times * expected).max()
    if abs(times - 1) < SHARP or not error <= SHARP * size * (abs(times) or 1):
        return []
    key = {0.0: "zero", -1.0: "negated"}.get(times, "constant-factor")
    if (
        key == "constant-factor" and gradient.size < FEW
    ):  # of few entries it may be by chance
        return []
    title = f"The gradient for {name} is {times or 0:g} times what is needed"
    return [named(key, title=title)]


# So many times a random dy: what is clipped in backward shows at one size and not at another. It is a power of 2, by
# which each step of a linear backward is multiplied without rounding.
LARGE = 1024


def linear(exam) -> str:
    """The backward is linear in dy, as every backward is."""
    operator = Operator(exam)
    inputs = operator.usual()
    y = operator.y(inputs)
    dy, second = operator.like(y), operator.like(y)
    grads, of_second = operator.grads(dy, inputs), operator.grads(second, inputs)
    sums = operator.grads(3 * dy - second, inputs)
    large = operator.grads(LARGE * dy, inputs)
    for name, gradient in grads.items():
        unit = SAFETY * U * (y.size + ELEMENTWISE)
        bound = unit * (np.abs(gradient).max(initial=0) + _rounded_away(gradient, dy))
        second_gradient = of_second[name]
        loose = ELEMENTWISE * (
            3 * bound + unit * np.abs(second_gradient).max(initial=0)
        )
        for which, got, expected, allowed in (
            (
                "3 dy - dy' for two cotangents",
                sums,
                3 * gradient - second_gradient,
                loose,
            ),
            (f"{LARGE} dy", large, LARGE * gradient, LARGE * bound),
        ):
            which_gradient = f"the gradient for {name}, at "
            if words := compare(which_gradient, got[name], expected, allowed)[2]:
                nonlinear = "The backward is not linear in dy"
                words = f"{INPUTS}{which}. {nonlinear}: {words}"
                raise Wrong(words, key="not-linear")
    return "The backward is linear in dy."


def _rounded_away(gradient, dy) -> float:
    """The size of the terms of a gradient that is 0 but for their rounding, as that of a bias before a centring is."""
    terms = np.abs(dy).max(initial=0)
    rounding = U * (dy.size + ELEMENTWISE) * terms
    if gradient.any() and np.abs(gradient).max(initial=0) <= rounding:
        return float(terms)
    return 0.0


def second_derivatives(exam) -> str:
    """torch differentiates a backward in torch as differences do; right gradients in NumPy need no such check."""
    operator = Operator(exam)
    inputs = operator.usual()
    if exam.shared.get("right") != set(inputs.arrays):
        raise Wrong(WRONG_BEFORE)
    if inputs.library == "numpy":
        return "In NumPy, right gradients are all that there is to differentiate."
    dy = operator.like(operator.y(inputs))
    u = {name: operator.like(array) for name, array in inputs.arrays.items()}
    second = operator.second(dy, inputs, u)
    if second is None:
        words = "use operations that autograd follows, without .detach(), no_grad or .item()"
        raise Wrong(f"torch cannot differentiate your backward: {words}.")
    point, errors = [dy, *inputs.arrays.values()], []
    for at, name in enumerate(("dy", *inputs.arrays)):
        ways = [np.zeros(array.shape) for array in point]
        ways[at] = operator.like(point[at])
        slope = directional(_paired(operator, inputs, u), point, ways)
        claimed = inner(second[at], ways[at])
        error, allowed = abs(claimed - slope.value), ELEMENTWISE * slope.tolerance
        if not error <= allowed:
            words = (
                f"torch's derivative of your backward by {name} has the slope {claimed:.9g}, differences of your "
                f"backward {slope.value:.9g}. Something in backward looks like a constant to torch and is none."
            )
            raise Wrong(f"{INPUTS}drawn by your inputs. {words}")
        errors.append((error, allowed))
    return f"Second gradients agree: {largest(errors)}"


def _paired(operator, inputs, u):
    """<u, gradients> and the size of its terms, as a function of dy and the inputs."""

    def pairing(dy, *arrays):
        grads = operator.grads(dy, inputs.holding(arrays))
        value = sum(inner(u[name], grad) for name, grad in grads.items())
        size = sum(inner(abs(u[name]), abs(grad)) for name, grad in grads.items())
        return value, size

    return pairing


def declared(exam) -> str:
    """Finite results on the degenerate inputs that the student declares."""
    operator = Operator(exam)
    sets, names = operator.drawn("degenerate"), list(operator.usual().arrays)
    if not sets:
        words = "Where does your operator divide, and what makes that 0? Declare it"
        raise Wrong(f"degenerate returns no inputs. {words}.")
    for number, inputs in enumerate(sets, start=1):
        which = f"et {number} of degenerate"
        if sorted(inputs.arrays) != sorted(names):
            got, needs = ", ".join(inputs.arrays), ", ".join(names)
            raise Wrong(f"S{which} has {got}, needs {needs}.")
        inputs = inputs.ordered(names)
        y = operator.y(inputs)
        try:
            _finite(y, operator.grads(operator.like(y), inputs))
        except Wrong as wrong:
            words = f"{INPUTS}s{which}, where y has shape {y.shape}. {wrong}"
            raise Wrong(words, stub=wrong.stub) from None
    return f"Finite on {len(sets)} degenerate set{'s' * (len(sets) != 1)} of inputs."


def worth_it(operator, first, another) -> np.ndarray:
    """y of the first inputs.

    Raises:  Wrong where both inputs are the same numbers, y is one of them, the same for other inputs, affine in all
             inputs together, or where each entry of y reads one entry of the inputs at most
    """
    equal = [
        np.array_equal(array, another.arrays.get(name))
        for name, array in first.arrays.items()
    ]
    if all(equal):
        words = "for every generator, and what forward does is seen by others alone"
        raise Wrong(f"inputs gives the same numbers {words}.")
    y, another = operator.y(first), _same_shapes(first, another)
    changed = operator.y(another)
    if any(np.array_equal(y, array) for array in first.arrays.values()):
        words = "returns one of its inputs: there is nothing to differentiate"
    elif np.array_equal(y, changed):
        words = "gives the same y for other inputs: there is nothing to differentiate"
    elif _affine(operator, first, another, y, changed):
        words = (
            "is affine: halfway between two inputs, y is halfway, too. Its gradient is the same wherever you stand, so "
            "that right and wrong ways to derive it hardly differ"
        )
    elif _entry_by_entry(operator, first, another, y):
        words = "computes each entry of y from one entry of the inputs: there are no two paths"
    else:
        return y
    raise Wrong(f"forward {words}. {MISSING}")


def _entry_by_entry(operator, first, another, y) -> bool:
    """Whether no entry of y moves with two entries of the inputs."""
    moved = np.zeros(y.shape, int)
    for name, array in first.arrays.items():
        for index in np.ndindex(array.shape):
            version = array.copy()
            version[index] = another.arrays[name][index]
            moved = moved + (operator.y(first.moved(**{name: version})) != y)
            if (moved > 1).any():
                return False
    return True


def _unused(operator, first, another, y) -> list[str]:
    """The inputs that y does not depend on."""
    another, names = _same_shapes(first, another), []
    for name, array in first.arrays.items():
        moved = first.moved(**{name: another.arrays[name]})
        if array.size and np.array_equal(operator.y(moved), y):
            names.append(name)
    return names


def _same_shapes(first, another):
    """The other inputs, or where their shapes differ the first ones with their entries in reverse."""
    shapes = {name: array.shape for name, array in first.arrays.items()}
    if shapes == {name: array.shape for name, array in another.arrays.items()}:
        return another.ordered(first.arrays)
    return first.holding(
        [array.ravel()[::-1].reshape(array.shape) for array in first.arrays.values()]
    )


def _affine(operator, first, another, y, changed) -> bool:
    """Whether y is halfway between two inputs what it is on average, up to rounding."""
    pairs = zip(first.arrays.values(), another.arrays.values(), strict=True)
    middle = operator.y(first.holding([(a + b) / 2 for a, b in pairs]))
    if not y.shape == changed.shape == middle.shape:
        return False
    arrays = (*first.arrays.values(), *another.arrays.values(), y, changed)
    numbers = np.abs(np.concatenate([array.ravel() for array in arrays]))
    bound = SAFETY * U * (numbers.size + ELEMENTWISE) * numbers.max()
    return bool((np.abs(2 * middle - y - changed) <= bound).all())


DRAWS, U32 = 16, unit_roundoff("float32")


def rounding(rng, f, arrays) -> list[np.ndarray]:
    """For every result, how far rounding the arrays to float32 may move it, and what is added and taken off again.

    All entries are moved at once, by about the unit roundoff of themselves up or down at random: the mean square over
    such moves is the sum of the squares, and a sum of n terms is at most the root of n times the root of that. An array
    that cancels, such as a bias before a centring, moves the result by rounding alone, and leaves its own rounding
    behind in every way to compute it.
    """

    def moves(which):
        moved = list(arrays)
        for at in which:
            # of mean square 1, and no power of 2, which float64 would add and take off again without a rounding
            steps = rng.uniform(-(3**0.5), 3**0.5, moved[at].shape)
            moved[at] = moved[at] * (1 + U32 * steps)
        return [abs(m - y) for m, y in zip(f(moved), results, strict=True)]

    results, count = f(arrays), sum(array.size for array in arrays)
    squares = [moves(range(len(arrays))) for _ in range(DRAWS)]
    bounds = [np.sqrt(count * np.square(s).mean(0)) for s in zip(*squares, strict=True)]
    for at, array in enumerate(arrays):
        size = np.abs(array).max(initial=0)
        draws = [[move.max(initial=0) for move in moves([at])] for _ in range(DRAWS)]
        for result, move in enumerate(np.max(draws, axis=0)):
            # some roundings of float64, in which f computes; one draw may leave none
            if 0 < move <= 64 * U * size:
                bounds[result] = bounds[result] + U32 * size
    return bounds


def float32(exam) -> str:
    """Results come in float32, as close to those in float64 as the problem's own condition allows."""
    operator, dtype, errors = Operator(exam), "float32", []
    inputs = operator.usual().rounded(dtype)
    dy = operator.like(operator.y(inputs)).astype(np.float32).astype(np.float64)

    def run(arrays, dtype="float64"):
        moved = inputs.holding(arrays[1:])
        y, grads = operator.y(moved, dtype), operator.grads(arrays[0], moved, dtype)
        return list(_results(y, grads).values())

    arrays = [dy, *inputs.arrays.values()]
    wide, narrow = run(arrays), run(arrays, dtype)
    bounds = rounding(operator.rng, run, arrays)
    terms = max(array.size for array in arrays) + ELEMENTWISE
    for at, name in enumerate(("y", *inputs.arrays)):
        size = U32 * np.abs(wide[at]) + bounds[at]
        if size.ndim:
            size = size.max(-1, keepdims=True, initial=0)
        bound = np.broadcast_to(SAFETY * terms * size, wide[at].shape) + SMALLEST[dtype]
        which = "Y at " if name == "y" else f"The gradient for {name}, at "
        error, allowed, words = compare(which, narrow[at], wide[at], bound)
        if words:
            raise Wrong(f"{INPUTS}the same numbers in {dtype}. {words}")
        errors.append((error, allowed))
    return largest(errors).capitalize()
