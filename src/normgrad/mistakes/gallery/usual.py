"""Tests that let the bugs through, each in a style in which they are often written."""

from __future__ import annotations

import numpy as np

from ... import numpy_ref
from ...checks.backends import get
from ...checks.cases import draw
from ...checks.contract import check_gradcheck
from ...checks.tolerance import round_to
from ...spec import LAYER_NORM
from .checks import PLAIN

# Absolute tolerances as published test suites have them, by dtype.
FIXED = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def one_call(gradients, rng):
    """dx of one call against the oracle; nobody looks at dy afterwards."""
    case = draw(rng, 4, 8)
    dx, _ = gradients(case.x, case.weight, case.dy.copy())
    wanted = numpy_ref.backward(case.dy, numpy_ref.forward(case.x, case.weight)).dx
    assert np.abs(dx - wanted).max() <= FIXED["float32"]


def two_calls_agree(gradients, rng):
    """Two implementations are given one dy, and their results are compared: here the same one twice."""
    case = draw(rng, 4, 8)
    first, second = (gradients(case.x, case.weight, case.dy)[0] for _ in range(2))
    assert np.array_equal(first, second)


def dense(array):
    """Arrays as a test makes them: row after row."""
    return {"dense": array}


def dense_heads(rng):
    """Heads as a test makes them: a tensor of its own."""
    return rng.standard_normal((5, 4, 8))


def one_sided(backend, rng):
    """max(wanted - got), without an absolute value."""
    case = draw(rng, 4, 8).without(*PLAIN)
    got = get(backend).run(case, LAYER_NORM, "float64").y
    wanted = numpy_ref.forward(case.x, case.weight, case.bias).y
    assert (wanted - got).max() <= FIXED["bfloat16"]


def one_order(reduction, rng):
    """One order of arrival against the sum in float64, at a tolerance for 16 bits."""
    terms = round_to(rng.standard_normal((256, 64)) / 64, "bfloat16")
    got = reduction(terms, np.arange(256), lambda array: round_to(array, "bfloat16"))
    assert np.abs(got - terms.sum(0)).max() <= FIXED["bfloat16"]


def first_derivative(backend, rng):
    """gradcheck without gradgradcheck."""
    check_gradcheck(backend, draw(rng, 2, 3).without(*PLAIN), LAYER_NORM)


def one_length(key, rng):
    """One number of rows, many times, as a benchmark runs it."""
    assert len({tuple(key(4096).items()) for _ in range(20)}) == 1
