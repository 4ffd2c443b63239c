"""Reverse mode by machine: what it makes is proved, and what it cannot do is refused."""

import pytest
from sympy import Symbol, sqrt

from normgrad.symbolic import (
    Defs,
    Partial,
    check_fixed,
    equation,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.symbols import M, N, alphabet, i, j, k, p

n = alphabet(M)
COTANGENTS = {
    "ln-graph-dD": n.dD[p],
    "ln-graph-dv": n.dv[p],
    "ln-graph-dq": n.dq[p, k],
    "ln-graph-dmean": n.dmean[p],
    "ln-graph-dx": n.dx[p, k],
    "ln-dw": n.dw[j],
    "ln-db": n.db[j],
}


@pytest.fixture(scope="module")
def generated():
    return reverse(graph(), {n.y: n.dy})


def graph():
    """LayerNorm's graph, forward."""
    defs = Defs()
    for head, formula in equation("ln-graph-dx-closed").defs.reached(n.y[i, j]):
        defs[head] = formula
    return defs


# -- reverse mode


@pytest.mark.parametrize("label", COTANGENTS)
def test_each_cotangent_is_the_hand_derived_one(generated, label):
    hand, cotangent = equation(label), generated.body(COTANGENTS[label])
    right = hand.defs.unfold(hand.chain[-1], [n.x_hat, n.rstd])
    prove(cotangent, right, generated)
    check_fixed(cotangent, right, (2,), generated)


def test_scalars_dead_lines_and_square_inputs():
    a, x, y, size, unused = (
        tensor("A", N, N),
        tensor("x", N),
        tensor("y", N),
        tensor("s"),
        tensor("z", N),
    )
    dy = tensor("dy", N)
    defs = Defs()
    defs[unused[j]] = 3 * x[j]
    defs[size] = sqrt(total(N, lambda r: x[r] ** 2) + Symbol("eps", positive=True))
    defs[y[j]] = total(N, lambda r: a[j, r] * x[r]) / size
    adjoint_lines = reverse(defs, {y: dy})
    assert adjoint_lines.line(tensor("dz", N)[j])[1] == 0
    defs[tensor("L")] = total(N, lambda r: dy[r] * y[r])
    adjoint_lines[tensor("L")] = defs.line(tensor("L"))[1]
    prove(Partial(tensor("L"), x[j]), tensor("dx", N)[j], adjoint_lines)
    prove(Partial(tensor("L"), a[j, k]), tensor("dA", N, N)[j, k], adjoint_lines)
