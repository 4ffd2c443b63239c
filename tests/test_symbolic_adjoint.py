"""Reverse mode by machine: what it makes is proved, and what it cannot do is refused."""

import pytest

from normgrad.symbolic import (
    Defs,
    check_fixed,
    equation,
    prove,
)
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.symbols import M, alphabet, i, j, k, p

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
    return reverse(graph(), n.y, n.dy)


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
