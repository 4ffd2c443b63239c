"""A layer for a network: the losses of a training, the bytes of its kernels; the gradients of a stack by depth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import getsource
from math import inf
from types import SimpleNamespace

import numpy as np

from ...checks.cases import cases
from ...mistakes.table import UNKNOWN
from ...tolerance import ELEMENTWISE, SAFETY, unit_roundoff
from ..hw3.checks import FunctionOracle
from ..hw4.checks import StreamOracle, StreamTrial, problems
from ..messages import INPUTS, Wrong, compare, largest
from ..named import Diagnosis, named
from ..sandbox.student import Given, Request
from ..task import Draw
from .text import text

BYTES = 8  # of one float64
# Many rows, so that what does not grow with them is small beside what does; a prime number of them, so that the last
# tile of several rows goes past the end, and a mask that is missing there is seen.
ROWS, COLUMNS = 127, 48


@dataclass(frozen=True)
class LayerOracle(FunctionOracle, StreamOracle):
    """Residual add and LayerNorm as an autograd Function with two outputs."""

    op: str = "gradients"
    dtypes: tuple[str, ...] = ("float32",)
    trial: type = StreamTrial
    read_as: tuple[str, str] = ("layer_kernels", "contiguous")
    cotangents: tuple[str, ...] = ("dy", "dresidual_out")

    def admit(self, request, outcome) -> None:
        """Raises Wrong where kernels are asked for and none wrote a result, or one left its tensors."""
        if request.op == "layer_kernels":
            super().admit(request, outcome)

    def large(self, rng) -> StreamTrial:
        """Ordinary rows, many of them."""
        return self._trial(cases(rng, ROWS, COLUMNS)[0], Draw())


def floor() -> int:
    """Bytes of a forward and a backward in which each tensor is loaded or stored once, statistics left out.

    x, residual, y, residual_out and weight, bias; dy, dresidual_out, residual_out, dx and weight, dw, db.
    """
    return BYTES * (8 * ROWS * COLUMNS + 5 * COLUMNS)


def bytes_within(most):
    """A stage that counts what the kernels load and store. Args: most: how many times the floor is allowed"""

    def stage(exam) -> str:
        oracle = exam.oracle
        trial = oracle.large(exam.rng())
        outcome = exam.ask(oracle.request(trial, op="layer_kernels", apart=True))
        got, expected = exam.named(outcome, trial, exam.base), oracle.expected(trial)
        for name in oracle.results:
            if words := compare(name, got[name], *expected[name])[2]:
                raise Wrong(
                    f"{INPUTS}{ROWS} rows of {COLUMNS}. {words} Bytes of wrong numbers do not count."
                )
        for words, key in problems(outcome.facts, inf):
            raise Wrong(words, key=key)
        asked = BYTES * sum(
            launch["read"] + launch["written"] for launch in outcome.facts["launches"]
        )
        said = f"{asked} bytes for {ROWS} rows of {COLUMNS}, {asked / floor():.3f} times the floor of {floor()}"
        if asked > most * floor():
            raise Wrong(f"{said}; {most} times is allowed.")
        return f"{said}."

    return stage


# The interpreter takes some milliseconds for a program, and there may be one for each row.
DEPTH, STEPS, SIZE, LETTERS = 2, 6, 16, 2000
# How many times its size a rounding of the layer may move a loss of so many steps. Over 30 seeds another order of the
# layer's operations moved it by at most 0.0003 of the bound that this gives.
GROWTH = 100


def trains(exam) -> str:
    """A short training of a small network has the losses that it has with the package's own layer."""
    from . import model

    seed = int(exam.rng().integers(2**31))
    options = {"source": getsource(model), "run": "trained", "text": text()[:LETTERS], "depth": DEPTH, "steps": STEPS,
               "size": SIZE, "seed": seed}  # fmt: skip
    outcome = exam.ask(Request("program", (), options))
    losses = outcome.values[0].numbers
    expected, bound = _losses(options)
    error, allowed, words = compare("the loss before step ", losses, expected, bound)
    if words:
        raise Wrong(
            f"{INPUTS}{STEPS} steps of training, {DEPTH} branches between norms. {words[0].upper()}{words[1:]}"
        )
    return (
        f"The loss falls from {losses[0]:.3f} to {losses[-1]:.3f} in {STEPS} steps, as with the package's layer: "
        f"{largest([(error, allowed)])}"
    )


def _losses(options):
    """(losses with the package's layer, how far off rounding may lead them)."""
    from ...torch_ops.api import add_layer_norm
    from . import model

    def layer(x, residual, weight, bias, eps):
        return add_layer_norm(x, residual, x.shape[-1], weight, bias, eps)

    package = SimpleNamespace(apply=layer)
    results, _ = model.trained(package, {}, options, model.torch.autograd.grad)
    losses = results.numpy()
    terms = model.HIDDEN + SIZE + ELEMENTWISE
    return losses, GROWTH * SAFETY * terms * unit_roundoff("float64") * losses


@dataclass(frozen=True)
class Stack:
    """A stack whose norms and branches are matrices. Args: dy (M, N); mixes (K + 1, N, N), norms; turns (K, N, N)."""

    dy: np.ndarray
    mixes: np.ndarray
    turns: np.ndarray

    @classmethod
    def drawn(cls, rng, depth, rows, columns):
        """A random one, whose gradients neither grow nor shrink much."""
        mixes, turns = (
            rng.standard_normal((k, columns, columns)) / np.sqrt(columns)
            for k in (depth + 1, depth)
        )
        return cls(rng.standard_normal((rows, columns)), mixes, turns)

    def gradients(self, times=1, first=0, added_up=False, with_dy=False) -> list:
        """The gradient at each place, by {eq}`res-fused-backward`.

        Args:  times: how often the stream goes past a norm; first: the stream at the last place, in units of dy
               added_up: whether each place hands on all gradients so far; with_dy: whether the dy of each are asked for
        """
        dy, stream, places, dys = self.dy, first * self.dy, [], []
        for k in reversed(range(len(self.mixes))):
            gradient = dy @ self.mixes[k] + times * stream
            places.insert(0, gradient)
            dys.insert(0, dy)
            stream = stream + gradient if added_up else gradient
            if k:
                dy = gradient @ self.turns[k - 1]
        return dys if with_dy else places

    def bounds(self) -> np.ndarray:
        """How far off the norms may be: the roundings of all sums on the way, times the sizes of their terms."""
        arrays = [np.abs(array) for array in (self.dy, self.mixes, self.turns)]
        sizes = Stack(*arrays).gradients()
        terms = 2 * len(self.mixes) * (self.dy.shape[1] + ELEMENTWISE) + self.dy.size
        return SAFETY * unit_roundoff("float64") * terms * norms(sizes)

    def request(self) -> Request:
        """The call of the student's function."""
        from . import model

        given = [
            Given(name, getattr(self, name), kind="torch")
            for name in ("dy", "mixes", "turns")
        ]
        return Request(
            "program", tuple(given), {"source": getsource(model), "run": "by_depth"}
        )


def norms(gradients) -> np.ndarray:
    """The root of the sum of squares of each."""
    return np.sqrt([np.square(gradient).sum() for gradient in gradients])


SHAPE, PLACES = (3, 5), 6


def _answered(exam, stack) -> tuple[np.ndarray, list]:
    """(what the student's function returns for a stack, of the right kind; what it calls, in order)."""
    outcome, places = exam.ask(stack.request()), len(stack.mixes)
    if len(outcome.values) != 1 or outcome.values[0].facts.get("kind") != "tensor":
        raise Wrong(
            f"It returned {len(outcome.values)} results, needs one tensor with a number for each place."
        )
    facts = outcome.values[0].facts
    if facts["shape"] != [places] or facts["dtype"] != "float64":
        got = f"shape {tuple(facts['shape'])} in {facts['dtype']}"
        raise Wrong(
            f"The result has {got}, needs shape ({places},) in float64 for {places} norms."
        )
    return outcome.values[0].numbers, outcome.facts["calls"]


FIRST_CALL = "Which place is the last, and what reaches it?"
NEXT_CALL = "Follow the gradient from place to place: what does this function need, and where does it come from?"
CALLED = "All functions are called as they should be. Look at what becomes of the gradients that they return."


def _of_calls(calls, depth) -> list:
    """A Diagnosis of the first call that is another one than the chain rule makes."""
    dy, stream, right = "dy as it came in", "zeros", []
    for k in reversed(range(depth + 1)):
        right.append([f"norms[{k}]", dy, stream])
        stream = f"what norms[{k}] returned"
        if k:
            right.append([f"branches[{k - 1}]", stream])
            dy = f"what branches[{k - 1}] returned"
    for number, (call, needed) in enumerate(zip(calls, right, strict=False)):
        name, *values = call
        if name != needed[0]:
            title = f"After {calls[number - 1][0]}, {name} is called"
            if not number:
                title = f"The first call is that of {name}"
            return [Diagnosis(UNKNOWN, title, NEXT_CALL if number else FIRST_CALL)]
        parameters = ("dy", "dresidual_out") if len(needed) > 2 else ("dz",)
        for parameter, value, right_value in zip(
            parameters, values, needed[1:], strict=False
        ):
            if value != right_value:
                title = f"{name} is handed {value} as {parameter}"
                return [Diagnosis(UNKNOWN, title, NEXT_CALL)]
    if len(calls) != len(right):
        title = f"{len(calls)} functions are called, of {len(right)}"
        return [Diagnosis(UNKNOWN, title, NEXT_CALL)]
    return [Diagnosis(UNKNOWN, "The size is that of something else", CALLED)]


def returns_norms(exam) -> str:
    """One number for each place, in a tensor of dy's dtype."""
    _answered(exam, Stack.drawn(exam.rng(), PLACES - 1, *SHAPE))
    return "It returns one number for each place."


def _recognized(stack, got) -> list:
    """A Diagnosis of norms that are those of another stack, in another order, or squared."""
    gradients = stack.gradients()
    needed = norms(gradients)
    candidates = [
        ("another-size", [np.abs(gradient).sum() for gradient in gradients]),
        ("another-size", [np.abs(gradient).max() for gradient in gradients]),
        ("another-size", needed / np.sqrt(stack.dy.size)),
        ("stream-first", norms(stack.gradients(first=1))),
        ("stream-added-up", norms(stack.gradients(added_up=True))),
        (
            "branches-reversed",
            norms(replace(stack, turns=stack.turns[::-1]).gradients()),
        ),
        ("size-of-dy", norms(stack.gradients(with_dy=True))),
        ("order-reversed", needed[::-1]),
        ("squared-norm", needed**2),
        ("stream-cut", norms(stack.gradients(times=0))),
        ("stream-twice", norms(stack.gradients(times=2))),
    ]
    keys = [key for key, value in candidates if np.allclose(got, value)]
    return [named(key) for key in keys]


def by_depth(depths):
    """A stage that compares the norms of stacks with so many branches."""

    def stage(exam) -> str:
        rng, errors = exam.rng(), []
        for depth in depths:
            stack = Stack.drawn(rng, depth, *SHAPE)
            got, calls = _answered(exam, stack)
            error, allowed, words = compare(
                "The norm at place ", got, norms(stack.gradients()), stack.bounds()
            )
            if words:
                where = f"{INPUTS}{depth} branches between {depth + 1} norms"
                diagnoses = _recognized(stack, got) or _of_calls(calls, depth)
                raise Wrong(f"{where}. {words}", diagnoses=diagnoses)
            errors.append((error, allowed))
        return largest(errors).capitalize()

    return stage
