"""What answers are compared with: the bounds, and what is kept of an answer."""

import numpy as np
import pytest

from normgrad.homework.hw3 import checks as hw3
from normgrad.homework.hw3.assignment import FUNCTION
from normgrad.homework.hw5 import checks as rows
from normgrad.homework.sandbox.student import Given, Local, Request
from normgrad.homework.task import Draw


@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("method", ["one pass", "two passes", "corrected", "Welford"])
def test_the_bound_of_a_variance_tells_the_ways_apart(rng, method, offset):
    """Two passes and the corrected way stay within it at every offset, one pass near 0, Welford up to 100."""
    from normgrad.checks import variance

    trial = rows.far_rows(rng, 16, 64, offset)
    off = np.abs(variance.METHODS[method](trial.x, "float32")[1] - trial.x.var(-1))
    within = (off <= rows.variance_error(trial.x, trial.x.var(-1))).all()
    furthest = {"one pass": 0.0, "Welford": 1e2}.get(method, 1e4)
    assert within == (offset <= furthest), off


def test_a_result_that_is_an_input_keeps_its_numbers(torch):
    """Numbers of one call are not those of the next one's arguments."""
    with Local({"f": lambda x: x}) as student:
        student.begin(5)
        for kind in ("numpy", "torch"):
            first = student.call(
                "f", Request("call", (Given("x", np.ones(3), kind=kind),))
            )
            student.call("f", Request("call", (Given("x", np.zeros(3), kind=kind),)))
            assert (first.values[0].numbers == 1).all()


def test_one_missing_bound_of_second_gradients(torch, rng):
    """The complex step and the closed formula of the book agree within the bound, and the bound is no barn door."""
    from normgrad.teaching.double_backward import (
        ExplicitNorm,
        normalized,
        second_gradients,
    )

    assert ExplicitNorm is not None
    trial = FUNCTION.oracle.trials(rng, Draw())[0]
    cotangents = hw3.directional_cotangents(rng, trial)
    bounded = hw3.second_gradients(trial, cotangents)
    case = {
        name: torch.tensor(getattr(trial.case, name)) for name in ("x", "dy", "weight")
    }
    _, rstd, x_hat = normalized(case["x"], trial.spec.eps)
    ddx, ddw, ddb = map(torch.tensor, cotangents.values())
    explicit = second_gradients(ddx, ddw, ddb, case["dy"], x_hat, rstd, case["weight"])
    for (value, bound), gradient in zip(bounded.values(), explicit, strict=True):
        assert (np.abs(value - gradient.numpy()) <= bound).all()
        assert bound.max() < 1e-9 * np.abs(value).max()
