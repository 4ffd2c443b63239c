"""An operator that the student describes: its inputs, as the student's code draws them, and calls of its functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...checks.finite_difference import best_step, directional, inner
from ...tolerance import round_to
from ..checks.exam import KINDS
from ..messages import Wrong, a
from ..sandbox.student import Given, Request

# Every entry is moved once or twice, so that more would take minutes.
MOST_ENTRIES = 400
LIBRARIES = {"ndarray": "numpy", "tensor": "torch"}
KEPT = (
    "Right after forward on the same inputs it gives results: it reads what forward has kept. backward computes all "
    "that it needs from dy and the inputs that it is given."
)


@dataclass(frozen=True)
class Inputs:
    """One set of inputs: {name: float64 array}, and the library that they come in."""

    arrays: dict
    library: str

    def moved(self, **arrays):
        """The same with some arrays replaced."""
        return Inputs(self.arrays | arrays, self.library)

    def holding(self, arrays):
        """The same with all arrays replaced, in their order."""
        return Inputs(dict(zip(self.arrays, arrays, strict=True)), self.library)

    def ordered(self, names):
        """The same in another order."""
        return Inputs({name: self.arrays[name] for name in names}, self.library)

    def rounded(self, dtype):
        """The same with numbers that the dtype holds."""
        return self.holding([round_to(array, dtype) for array in self.arrays.values()])


class Operator:
    """The student's operator in one stage. Args: exam"""

    def __init__(self, exam):
        self.exam, self.rng = exam, exam.rng()
        # {inputs: y} of what differences ask for, which is computed in one call.
        self.computed = {}

    def drawn(self, method="inputs", seed=None) -> list[Inputs]:
        """What the student's `inputs` or `degenerate` draws for a seed.

        Raises:  Wrong where it is not made of float64 arrays of one library
        """
        seed = int(self.rng.integers(2**31)) if seed is None else seed
        options = {"method": method, "seed": seed}
        outcome = self.exam.ask(Request("operator_inputs", (), options))
        values, sets = iter(outcome.values), []
        for names in outcome.facts["names"]:
            sets.append(_inputs(method, {name: next(values) for name in names}))
        return sets

    def usual(self) -> Inputs:
        """One set of ordinary inputs, with a seed of its own."""
        return self.drawn()[0]

    def like(self, array) -> np.ndarray:
        """Random numbers in an array's shape, such as a cotangent."""
        return self.rng.standard_normal(np.shape(array))

    def _ask(self, method, arguments, **options):
        request = Request("operator_call", arguments, {"method": method, **options})
        return self.exam.ask(request)

    def forward(self, inputs, dtype="float64", layout="contiguous"):
        """y, and the names of inputs that it changed."""
        outcome = self._ask("forward", _given(inputs, dtype, layout))
        if len(outcome.values) != 1:
            count = len(outcome.values)
            raise Wrong(f"forward returned {count} results, needs one: y.")
        _check("y", outcome.values[0], inputs.library, dtype)
        return outcome.values[0].numbers, outcome.changed

    def y(self, inputs, dtype="float64") -> np.ndarray:
        """What forward returns."""
        if dtype == "float64" and _key(inputs) in self.computed:
            return self.computed[_key(inputs)]
        return self.forward(inputs, dtype)[0]

    def backward(self, dy, inputs, dtype="float64", layout="contiguous", before=None):
        """({name: gradient}, the names of arguments that it changed). Args: before: inputs that forward has had last"""
        try:
            outcome = self._backward(dy, inputs, dtype, layout, before)
        except Wrong as wrong:
            if before or wrong.stub:
                raise
            try:
                self._backward(dy, inputs, dtype, layout, inputs)
            except Wrong:
                raise wrong from None
            raise Wrong(f"{wrong} {KEPT}", diagnoses=wrong.diagnoses) from None
        names = ", ".join(inputs.arrays)
        if len(outcome.values) != len(inputs.arrays):
            count = f"{len(outcome.values)} result{'s' * (len(outcome.values) != 1)}"
            needs = f"{len(inputs.arrays)}: one gradient for each of {names}"
            words = f"backward returned {count}, needs {needs}."
            raise Wrong(words, key="gradient-missing")
        grads = {}
        for value, (name, array) in zip(
            outcome.values, inputs.arrays.items(), strict=True
        ):
            which = f"the gradient for {name}"
            _check(which, value, inputs.library, dtype, array.shape)
            grads[name] = value.numbers
        return grads, outcome.changed

    def _backward(self, dy, inputs, dtype, layout, before):
        arguments = _given(inputs, dtype, layout, dy)
        earlier = _given(before, dtype, layout) if before else ()
        arguments += tuple(
            replace(argument, name=f"earlier {argument.name}") for argument in earlier
        )
        return self._ask("backward", arguments, earlier=len(earlier))

    def grads(self, dy, inputs, dtype="float64") -> dict:
        """{name: gradient}."""
        return self.backward(dy, inputs, dtype)[0]

    def loss(self, inputs, dy, grads):
        """The loss <dy, y> of arrays, and the size of its terms with what subtracting nearly equal ones costs."""
        cost = 0.0
        for name, array in inputs.arrays.items():
            cost += inner(np.abs(grads[name]), np.abs(array))

        def loss(*arrays):
            y = self.y(inputs.holding(arrays))
            return float((dy * y).sum()), float(np.abs(dy * y).sum()) + cost

        return loss

    def entries(self, inputs, dy, grads, name):
        """(gradient, bound) of one input, entry by entry, by central differences."""
        self._differences(inputs, name)
        arrays, loss = list(inputs.arrays.values()), self.loss(inputs, dy, grads)
        at = list(inputs.arrays).index(name)
        gradient, bound = np.empty(arrays[at].shape), np.empty(arrays[at].shape)
        for index in np.ndindex(arrays[at].shape):
            ways = [np.zeros(array.shape) for array in arrays]
            ways[at][index] = 1
            slope = directional(loss, arrays, ways)
            gradient[index], bound[index] = slope.value, slope.tolerance
        return gradient, bound

    def _differences(self, inputs, name):
        """Runs forward in one call wherever differences by the entries of an input will ask for it."""
        array, versions, h = inputs.arrays[name], [], best_step()
        for index in np.ndindex(array.shape):
            for step in (h, -h, h / 2, -h / 2):
                versions.append(array.copy())
                versions[-1][index] += step
        arguments = _given(inputs, "float64", "contiguous")
        kind = arguments[0].kind
        last = Given(f"versions of {name}", np.stack(versions), kind=kind)
        try:
            values = self._ask("forward", (*arguments, last), version=name).values
        except Wrong:  # asked for one at a time, it may be right where it matters
            return
        for version, value in zip(versions, values, strict=True):
            _check("y", value, kind, "float64")
            self.computed[_key(inputs.moved(**{name: version}))] = value.numbers

    def second(self, dy, inputs, cotangents):
        """What torch's derivative of the student's backward passes on, or None where it sees no way."""
        arguments = [Given("dy", dy, kind="torch", grad=True)]
        for name, array in inputs.arrays.items():
            arguments.append(Given(name, array, kind="torch", grad=True))
        for name, u in cotangents.items():
            arguments.append(Given(f"u_{name}", u, kind="torch"))
        options = {"names": list(inputs.arrays)}
        outcome = self.exam.ask(Request("operator_second", tuple(arguments), options))
        if not outcome.facts["graph"]:
            return None
        return [value.numbers for value in outcome.values]


def _inputs(method, values) -> Inputs:
    """One set, checked."""
    if not values:
        needs = "name every array that forward takes"
        raise Wrong(f"{method} returned an empty dictionary; {needs}.")
    kinds = {value.facts.get("kind") for value in values.values()}
    for name, value in values.items():
        gives = f"{method} gives {name}"
        if value.facts.get("kind") not in LIBRARIES:
            got = a(value.facts.get("type"))
            words = "numbers such as eps belong into the code of the operator"
            raise Wrong(
                f"{gives} as {got}, needs a NumPy array or a torch tensor; {words}."
            )
        if value.facts["dtype"] != "float64":
            got = value.facts["dtype"]
            raise Wrong(f"{gives} in {got}, needs float64; the checks narrow it.")
        if not np.isfinite(value.numbers).all():
            raise Wrong(f"{gives} with numbers that are not finite.")
    if len(kinds) > 1:
        words = "mixes NumPy arrays and torch tensors; take one of the two"
        raise Wrong(f"{method} {words}.")
    if sum(value.numbers.size for value in values.values()) > MOST_ENTRIES:
        words = f"more than {MOST_ENTRIES} numbers; smaller arrays test the same"
        raise Wrong(f"{method} gives {words}.")
    arrays = {name: value.numbers for name, value in values.items()}
    return Inputs(arrays, LIBRARIES[kinds.pop()])


def _key(inputs):
    return tuple((name, a.shape, a.tobytes()) for name, a in inputs.arrays.items())


def _given(inputs, dtype, layout, dy=None):
    arrays = inputs.arrays if dy is None else {"dy": dy, **inputs.arrays}
    return tuple(
        Given(name, array, dtype, inputs.library, layout=layout)
        for name, array in arrays.items()
    )


def _check(name, value, library, dtype, shape=None):
    facts, (kind, words) = value.facts, KINDS[library]
    if facts.get("kind") != kind:
        raise Wrong(f"{name} is {a(facts.get('type'))}, needs {words}.")
    if shape is not None and tuple(facts["shape"]) != tuple(shape):
        got, needs = tuple(facts["shape"]), tuple(shape)
        key = "wrong-axis" if value.numbers.size != np.prod(needs) else "axis-of-one"
        words = f"{name} has shape {got}, needs {needs}, that of its input."
        raise Wrong(words, key=key)
    if facts["dtype"] != dtype:
        got = facts["dtype"]
        raise Wrong(f"{name} has dtype {got}, needs {dtype}, that of the inputs.")
