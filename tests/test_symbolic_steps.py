"""Rewriting: earlier results are put in with other indices."""

from sympy import sqrt

from normgrad.symbolic import (
    Defs,
    Partial,
    dim,
    index,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.steps import substituted

N = dim("N")
i, j, k = index("i", "j", "k")
x, x_hat, w, y = (tensor(name, N) for name in ("x", "x_hat", "w", "y"))
eps, rstd = tensor("eps", positive=True), tensor("rstd", positive=True)


def test_an_earlier_result_is_put_in_with_other_letters():
    defs = Defs()
    defs[rstd] = 1 / sqrt(mean(N, lambda r: x[r] ** 2) + eps)
    defs[x_hat[k]] = x[k] * rstd
    defs[y[k]] = w[k] * x_hat[k]
    slope = prove(Partial(rstd, x[j]), -(rstd**2) * x_hat[j] / N, defs)
    waiting = x[i] * Partial(rstd, x[k])
    assert substituted(waiting, slope) == -x[i] * rstd**2 * x_hat[k] / N
    crossed = prove(Partial(y[k], x[j]), w[k] * Partial(x_hat[k], x[j]), defs)
    assert substituted(Partial(y[j], x[k]), crossed) == w[j] * Partial(x_hat[j], x[k])
    in_a_sum = total(N, lambda r: w[r] * Partial(rstd, x[r]))
    assert not substituted(in_a_sum, slope).has(Partial)
