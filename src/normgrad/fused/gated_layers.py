"""The two gated norms as definitions, and the command that writes their kernels.

    python -m normgrad.fused.gated_layers

writes gated_kernels.py and gated_torch.py beside this file, once both layers are proved.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from pprint import pformat

from sympy import evaluate, sqrt

from ..symbolic import Defs, dim, index, mean, sigmoid, tensor, total
from .operator import Fused

HEAD = '"""{}: written by `python -m normgrad.fused.gated_layers`, not by hand."""\n\n'


@cache
def gated_layer(gate_first: bool) -> Fused:
    """The layer behind gated_rms_norm, its closed forms proved.

    Args:  gate_first: whether the gate multiplies x, or what is normalized
    """
    M, N = dim("M"), dim("N")
    i, j = index("i", "j")
    eps, rstd = tensor("eps", positive=True), tensor("rstd", M, positive=True)
    x, g, p, x_hat, y, dy, wdy, dp = (
        tensor(name, M, N) for name in ("x", "g", "p", "x_hat", "y", "dy", "wdy", "dp")
    )
    w, c1 = tensor("w", N), tensor("c1", M)

    def silu(r, k):
        return g[r, k] * sigmoid(g[r, k])

    def before(r, k):
        return silu(r, k) if gate_first else 1

    def after(r, k):
        return 1 if gate_first else silu(r, k)

    with evaluate(True):
        defs = Defs()
        defs[p[i, j]] = x[i, j] * before(i, j)
        defs[rstd[i]] = 1 / sqrt(mean(N, lambda r: p[i, r] ** 2) + eps)
        defs[x_hat[i, j]] = p[i, j] * rstd[i]
        defs[y[i, j]] = w[j] * x_hat[i, j] * after(i, j)
        defs[wdy[i, j]] = dy[i, j] * w[j] * after(i, j)
        defs[c1[i]] = mean(N, lambda r: x_hat[i, r] * wdy[i, r])
        defs[dp[i, j]] = rstd[i] * (wdy[i, j] - x_hat[i, j] * c1[i])
        slope = sigmoid(g[i, j]) * (1 + g[i, j] * (1 - sigmoid(g[i, j])))
        gradients = {
            x[i, j]: dp[i, j] * before(i, j),
            g[i, j]: slope
            * (dp[i, j] * x[i, j] if gate_first else dy[i, j] * w[j] * x_hat[i, j]),
            w[j]: total(M, lambda r: dy[r, j] * x_hat[r, j] * after(r, j)),
        }
        name = "gate_then_rms_norm" if gate_first else "rms_norm_then_gate"
        return Fused(defs, [y[i, j]], gradients=gradients, name=name)


def texts() -> dict[str, str]:
    """{file: its text} of the kernels, and of the same layers in torch."""
    layers = [gated_layer(gate_first) for gate_first in (False, True)]
    imports, bodies = zip(
        *(layer.source.split("\n\n\n", 1) for layer in layers), strict=True
    )
    if len(set(imports)) > 1:
        raise ValueError(f"imports: got {set(imports)}, needs the same in both layers")
    functions = [
        _function(layer, way) for layer in layers for way in ("forward", "backward")
    ]
    forms = {layer.layer.name: layer.forms for layer in layers}
    tables = {
        "CALLS": {name: form.call for name, form in forms.items()},
        "SOURCES": {name: form.sources for name, form in forms.items()},
        "GRADIENTS": {name: form.backward.names for name, form in forms.items()},
    }
    kernels = "\n\n\n".join([imports[0], *bodies]).rstrip()
    return {
        "gated_kernels.py": HEAD.format("The gated norms in Triton") + kernels + "\n",
        "gated_torch.py": HEAD.format("The gated norms in torch")
        + "import torch\n\nfrom .call import Call\n\n\n"
        + "\n\n\n".join(functions)
        + "\n\n\n"
        + "\n".join(
            f"{name} = {pformat(value, width=110, compact=True)}"
            for name, value in tables.items()
        )
        + "\n",
    }


def _function(layer, way):
    """The text of the forward or the backward in torch, under a name of its own."""
    head, lines = getattr(layer.forms, way).source.strip().split("\n", 1)
    head = head.replace("def compute(", f"def {layer.layer.name}_{way}(")
    return f'{head}\n    """The {way} of {layer.layer.name}, as its kernel computes it."""\n{lines}'


if __name__ == "__main__":
    for file, text in texts().items():
        Path(__file__).with_name(file).write_text(text)
