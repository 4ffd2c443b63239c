"""An operator that the student describes: its inputs, as the student's code draws them, and calls of its functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...checks.finite_difference import best_step
from ...checks.tolerance import round_to
from ..messages import Wrong
from ..sandbox.student import Given, Request

# Every entry is moved once or twice, so that more would take minutes.
MOST_ENTRIES = 400
LIBRARIES = {"ndarray": "numpy", "tensor": "torch"}
SEEDS = 3
KEPT = (
    "Right after forward on the same inputs it gives results: it reads what forward has kept. backward computes all "
    "that it needs from dy and the inputs that it is given."
)
COUNTED = """
import sys


def forwards(target, arguments, options, grad):
    forward, calls = getattr(target.forward, "__func__", target.forward), []
    code = getattr(forward, "__code__", None)
    sys.setprofile(lambda frame, event, argument: calls.append(1) if event == "call" and frame.f_code is code else None)
    try:
        target.backward(*arguments.values())
    finally:
        sys.setprofile(None)
    return (), {"calls": len(calls)}
"""


@dataclass(frozen=True)
class Inputs:
    """One set of inputs: {name: float64 array}, and the library that they come in."""

    arrays: dict
    library: str

    def moved(self, **arrays):
        """The same with some arrays replaced."""
        return Inputs(self.arrays | arrays, self.library)

    def ordered(self, names):
        """The same in another order."""
        return Inputs({name: self.arrays[name] for name in names}, self.library)

    def rounded(self, dtype):
        """The same with numbers that the dtype holds."""
        return Inputs(
            {name: round_to(a, dtype) for name, a in self.arrays.items()}, self.library
        )


class Operator:
    """The student's operator in one stage. Args: exam"""

    def __init__(self, exam):
        self.exam, self.rng = exam, exam.rng()
        # What `differences` has found out: {the inputs: y}.
        self.known = {}

    def drawn(self, method="inputs", seed=None) -> list[Inputs]:
        """What the student's `inputs` or `degenerate` draws for a seed.

        Raises:  Wrong where it is not made of float64 arrays of one library
        """
        seed = int(self.rng.integers(2**31)) if seed is None else seed
        outcome = self.exam.ask(
            Request("operator_inputs", (), {"method": method, "seed": seed})
        )
        values, sets = list(outcome.values), []
        for names in outcome.facts["names"]:
            sets.append(
                _inputs(method, dict(zip(names, values[: len(names)], strict=True)))
            )
            values = values[len(names) :]
        return sets

    def usual(self) -> Inputs:
        """One set of ordinary inputs, with a seed of its own."""
        return self.drawn()[0]

    def dy(self, like) -> np.ndarray:
        """A random cotangent."""
        return self.rng.standard_normal(np.shape(like))

    def differences(self, inputs, name):
        """Run forward at once wherever differences by the entries of an input will ask for it."""
        array, versions = inputs.arrays[name], []
        for index in np.ndindex(array.shape):
            for step in (best_step(), -best_step(), best_step() / 2, -best_step() / 2):
                versions.append(array.copy())
                versions[-1][index] += step
        keys = [_key(inputs.moved(**{name: version})) for version in versions]
        if not versions or keys[0] in self.known:
            return
        try:
            results = self._versions(
                "forward", _given(inputs, "float64", "contiguous"), name, versions
            )
        except Wrong:  # asked for one at a time, it may be right where it matters
            return
        self.known |= dict(zip(keys, results, strict=True))

    def gradients(self, cotangents, inputs, name) -> list[np.ndarray]:
        """The gradient for an input, of each of some cotangents."""
        given = _given(inputs, "float64", "contiguous", cotangents[0])
        return self._versions(
            "backward", given, "dy", cotangents, list(inputs.arrays).index(name)
        )

    def _versions(self, method, given, name, versions, at=0) -> list[np.ndarray]:
        """The results of a method for versions of one argument, by one call."""
        last = Given(f"versions of {name}", np.stack(versions), kind=given[0].kind)
        options = {"method": method, "name": name, "at": at}
        values = self.exam.ask(
            Request("operator_versions", (*given, last), options)
        ).values
        for value in values:
            _checked(
                "y" if method == "forward" else "a gradient",
                value,
                last.kind,
                "float64",
            )
        return [value.numbers for value in values]

    def forward(self, inputs, dtype="float64", layout="contiguous", whole=False):
        """y, or the whole outcome."""
        if (dtype, layout, whole) == ("float64", "contiguous", False) and _key(
            inputs
        ) in self.known:
            return self.known[_key(inputs)]
        outcome = self.exam.ask(
            Request("operator_forward", _given(inputs, dtype, layout))
        )
        if len(outcome.values) != 1:
            raise Wrong(
                f"forward returned {len(outcome.values)} results, needs one: y."
            )
        _checked("y", outcome.values[0], inputs.library, dtype)
        return outcome if whole else outcome.values[0].numbers

    def backward(
        self, dy, inputs, dtype="float64", layout="contiguous", whole=False, before=None
    ):
        """{name: gradient}, or the whole outcome; before: inputs that forward has had last."""
        try:
            outcome = self.asked(dy, inputs, dtype, layout, before=before)
        except Wrong as wrong:
            if (
                before
                or wrong.stub
                or not self._answers_after_forward(dy, inputs, dtype, layout)
            ):
                raise
            raise Wrong(f"{wrong} {KEPT}", diagnoses=wrong.diagnoses) from None
        names = list(inputs.arrays)
        if len(outcome.values) != len(names):
            count = f"{len(outcome.values)} result{'s' * (len(outcome.values) != 1)}"
            raise Wrong(
                f"backward returned {count}, needs {len(names)}: one gradient for each of {', '.join(names)}."
            )
        for name, value in zip(names, outcome.values, strict=True):
            _checked(
                f"the gradient for {name}",
                value,
                inputs.library,
                dtype,
                inputs.arrays[name].shape,
            )
        return (
            outcome
            if whole
            else {n: v.numbers for n, v in zip(names, outcome.values, strict=True)}
        )

    def _answers_after_forward(self, dy, inputs, dtype, layout) -> bool:
        """Whether backward gives results where forward has just had the same inputs."""
        try:
            return bool(self.asked(dy, inputs, dtype, layout, before=inputs).values)
        except Wrong:
            return False

    def asked(
        self, dy, inputs, dtype="float64", layout="contiguous", watched="", before=None
    ):
        """The outcome of backward as it comes, or of one of both functions, watched, with the formats in its facts."""
        given = _given(inputs, dtype, layout, None if watched == "forward" else dy)
        if watched:
            return self.exam.ask(Request("formats", given, {"method": watched}))
        earlier = _given(before, dtype, layout) if before else ()
        earlier = tuple(replace(each, name=f"earlier {each.name}") for each in earlier)
        return self.exam.ask(
            Request("operator_backward", (*given, *earlier), {"earlier": len(earlier)})
        )

    def forwards(self, dy, inputs) -> int:
        """How often backward calls forward."""
        options = {"source": COUNTED, "run": "forwards"}
        return self.exam.ask(
            Request("program", _given(inputs, "float64", "contiguous", dy), options)
        ).facts["calls"]

    def second(self, dy, inputs, cotangents):
        """What torch's derivative of the student's backward passes on, or None where it sees no way."""
        given = [Given("dy", dy, kind="torch", grad=True)]
        given += [
            Given(name, a, kind="torch", grad=True) for name, a in inputs.arrays.items()
        ]
        given += [Given(f"u_{name}", u, kind="torch") for name, u in cotangents.items()]
        outcome = self.exam.ask(
            Request("operator_second", tuple(given), {"names": list(inputs.arrays)})
        )
        if not outcome.facts["graph"]:
            return None
        return [value.numbers for value in outcome.values]


def _inputs(method, values) -> Inputs:
    """One set, checked."""
    if not values:
        raise Wrong(
            f"{method} returned an empty dictionary; name every array that forward takes."
        )
    kinds = {value.facts.get("kind") for value in values.values()}
    for name, value in values.items():
        if value.facts.get("kind") not in LIBRARIES:
            raise Wrong(f"{method} gives {name} as a {value.facts.get('type')}, needs a NumPy array or a torch tensor; "
                        "numbers such as eps belong into the code of the operator.")  # fmt: skip
        if value.facts["dtype"] != "float64":
            raise Wrong(
                f"{method} gives {name} in {value.facts['dtype']}, needs float64; the checks narrow it."
            )
        if not np.isfinite(value.numbers).all():
            raise Wrong(f"{method} gives {name} with numbers that are not finite.")
    if len(kinds) > 1:
        raise Wrong(
            f"{method} mixes NumPy arrays and torch tensors; take one of the two."
        )
    if sum(value.numbers.size for value in values.values()) > MOST_ENTRIES:
        raise Wrong(
            f"{method} gives more than {MOST_ENTRIES} numbers; smaller arrays test the same."
        )
    return Inputs(
        {name: value.numbers for name, value in values.items()}, LIBRARIES[kinds.pop()]
    )


def _key(inputs):
    return tuple((name, a.shape, a.tobytes()) for name, a in inputs.arrays.items())


def _given(inputs, dtype, layout, dy=None):
    options = {"dtype": dtype, "kind": inputs.library, "layout": layout}
    first = () if dy is None else (Given("dy", dy, **options),)
    return (
        *first,
        *(Given(name, array, **options) for name, array in inputs.arrays.items()),
    )


def _checked(name, value, library, dtype, shape=None):
    kind = {"numpy": "ndarray", "torch": "tensor"}[library]
    if value.facts.get("kind") != kind:
        got = (
            "None"
            if value.facts.get("type") == "NoneType"
            else f"a {value.facts.get('type')}"
        )
        raise Wrong(
            f"{name} is {got}, needs {'a NumPy array' if library == 'numpy' else 'a torch tensor'}."
        )
    if shape is not None and tuple(value.facts["shape"]) != tuple(shape):
        raise Wrong(
            f"{name} has shape {tuple(value.facts['shape'])}, needs {tuple(shape)}, that of its input."
        )
    if value.facts["dtype"] != dtype:
        raise Wrong(
            f"{name} has dtype {value.facts['dtype']}, needs {dtype}, that of the inputs."
        )
