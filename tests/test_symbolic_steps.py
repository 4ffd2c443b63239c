"""Rewriting: the chain rule goes one definition deep, and earlier results are put in with other indices."""

import pytest
from sympy import sqrt

from normgrad.symbolic import (
    Defs,
    Partial,
    delta,
    dim,
    index,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.steps import normal, substituted

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, x_hat, w, y, q = (tensor(name, N) for name in ("x", "x_hat", "w", "y", "q"))
eps, rstd = tensor("eps", positive=True), tensor("rstd", positive=True)


@pytest.fixture
def layer():
    defs = Defs()
    defs[rstd] = 1 / sqrt(mean(N, lambda r: x[r] ** 2) + eps)
    defs[x_hat[k]] = x[k] * rstd
    defs[y[k]] = w[k] * x_hat[k]
    return defs


# -- steps


def test_a_derivative_that_waits_is_no_zero(layer):
    """Contracting a delta must not carry out a derivative whose definitions it does not know."""
    waiting = total(N, lambda r: delta(k, r) * w[r] * Partial(x_hat[r], x[j]))
    assert normal(waiting) == w[k] * Partial(x_hat[k], x[j])


def test_an_earlier_result_is_put_in_with_other_letters(layer):
    slope = prove(Partial(rstd, x[j]), -(rstd**2) * x_hat[j] / N, layer)
    assert (
        substituted(x[i] * Partial(rstd, x[k]), slope) == -x[i] * rstd**2 * x_hat[k] / N
    )
    crossed = prove(Partial(y[k], x[j]), w[k] * Partial(x_hat[k], x[j]), layer)
    assert substituted(Partial(y[j], x[k]), crossed) == w[j] * Partial(x_hat[j], x[k])
    in_a_sum = total(N, lambda r: w[r] * Partial(rstd, x[r]))
    assert not substituted(in_a_sum, slope).has(Partial)
