"""The two gated norms as definitions, and the command that writes their kernels.

    python -m normgrad.fused.gated_layers

writes gated_kernels.py beside this file, once both layers are proved.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sympy import IndexedBase, S, Sum, sqrt, symbols

from ..prove import define
from ..symbolic import sigmoid
from .operator import Fused

HEAD = '"""The gated norms in Triton: written by `python -m normgrad.fused.gated_layers`, not by hand."""'


@cache
def gated_layer(gate_first: bool) -> Fused:
    """The layer behind gated_rms_norm, its closed forms proved.

    Args:  gate_first: whether the gate multiplies x, or what is normalized
    """
    M, N, i, j, p, r = symbols("M N i j p r", integer=True, positive=True)
    eps = symbols("eps", positive=True)
    x, g, dy = symbols("x g dy", cls=IndexedBase, shape=(M, N), real=True)
    w = symbols("w", cls=IndexedBase, shape=(N,), real=True)
    opened = sigmoid(g[i, j])
    silu, slope = g[i, j] * opened, opened * (1 + g[i, j] * (1 - opened))
    before, after = (silu, S.One) if gate_first else (S.One, silu)

    q = define("q", i, j, x[i, j] * silu) if gate_first else x
    rstd = define("rstd", i, 1 / sqrt(Sum(q[i, r] ** 2, (r, 1, N)) / N + eps))
    x_hat = define("x_hat", i, j, q[i, j] * rstd[i])
    y = define("y", i, j, w[j] * x_hat[i, j] * after)
    wdy = define("wdy", i, j, dy[i, j] * w[j] * after)
    c1 = define("c1", i, Sum(x_hat[i, r] * wdy[i, r], (r, 1, N)) / N)
    dq = define("dq", i, j, rstd[i] * (wdy[i, j] - x_hat[i, j] * c1[i]))
    by_gate = dq[i, j] * x[i, j] if gate_first else dy[i, j] * w[j] * x_hat[i, j]
    by_weight = (dy[i, j] * x_hat[i, j] * after).subs(i, p)
    gradients = {
        x[i, j]: dq[i, j] * before,
        g[i, j]: by_gate * slope,
        w[j]: Sum(by_weight, (p, 1, M)),
    }
    name = "gate_then_rms_norm" if gate_first else "rms_norm_then_gate"
    return Fused(y, gradients=gradients, name=name)


def text() -> str:
    """The module of the kernels."""
    (imports, *first), (_, *second) = (
        gated_layer(gate_first).source.strip().split("\n\n\n")
        for gate_first in (False, True)
    )
    return "\n\n\n".join([f"{HEAD}\n\n{imports}", *first, *second]) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("gated_kernels.py").write_text(text())
