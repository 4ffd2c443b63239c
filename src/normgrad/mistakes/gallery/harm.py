"""What each bug costs, as one number: how far off a result is, or how often something happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...checks.cases import draw
from ...checks.tolerance import round_to
from ...spec import LAYER_NORM, RMS_NORM
from .checks import PLAIN, fused_heads, layouts
from .formulas import gate_dropped_right, gate_order_right
from .looks import Look, rows
from .memory import gradients, heads_with_two_strides


def _relative(got, wanted):
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def shared_cotangent(wrong, rng):
    """The gradient by x of norm(x) + x: the addition hands one and the same dy to both of its summands."""
    case = draw(rng, 64, 256).without(*PLAIN)
    found = []
    for function in (gradients, wrong):
        dy = case.dy.copy()
        dx, _ = function(case.x, case.weight, dy)
        found.append(dx + dy)
    return _relative(found[1], found[0])


def gated(wrong, rng):
    """The gradient by the gate."""
    case = draw(rng, 64, 256)
    given = (case.x, case.residual, case.weight, case.dy, case.dresidual_out, RMS_NORM.replace(eps=1e-6))
    return _relative(wrong(*given)[1], gate_order_right(*given)[1])


def projected(wrong, rng):
    """The gradient by the matrix behind the gate."""
    case, matrix, dout = draw(rng, 64, 256), rng.standard_normal((256, 32)), rng.standard_normal((64, 32))
    given = (case.x, case.residual, case.weight, matrix, dout, RMS_NORM.replace(eps=1e-6))
    return _relative(wrong(*given)[3], gate_dropped_right(*given)[3])


def of_heads(wrong, rng):
    """y of the queries of a fused tensor."""
    x, weight = fused_heads(rng), rng.standard_normal(8)
    return _relative(wrong(x, weight), heads_with_two_strides(x, weight))


def transposed(wrong, rng):
    """dx for a dy whose columns lie one after the other."""
    case = draw(rng, 64, 256)
    dy = layouts(case.dy)["columns first"]
    return _relative(wrong(case.x, case.weight, dy)[0], gradients(case.x, case.weight, case.dy)[0])


def doubled(wrong, rng):
    """dx of one call."""
    case = draw(rng, 64, 256)
    wanted = gradients(case.x, case.weight, case.dy)[0]
    return _relative(wrong(case.x, case.weight, case.dy.copy())[0], wanted)


def wrapped(wrong, rng):
    """The share of 100,000 rows of 65,536 numbers that begin at a wrong place."""
    rows = np.arange(100_000)
    return float((wrong(rows, 65536) != rows * 65536).mean())


def changed(wrong, rng):
    """The share of a bfloat16 gradient's entries that have other bits in another order of arrival."""
    terms = round_to(rng.standard_normal((1024, 256)), "bfloat16")
    first, second = (wrong(terms, rng.permutation(1024), lambda a: round_to(a, "bfloat16")) for _ in range(2))
    return float((first != second).mean())


def penalty(wrong, rng):
    """The gradient of a gradient penalty by the weights below the layer."""
    import torch

    from .graph import WholeGraph

    z, W, w, b, v = (torch.tensor(rng.standard_normal(s), requires_grad=True) for s in ((16, 8), (8, 8), 8, 8, 8))

    def by_weights(layer):
        score = torch.tanh(layer(z @ W, w, b)) @ v
        (slope,) = torch.autograd.grad(score, z, torch.ones_like(score), create_graph=True)
        return torch.autograd.grad((slope.norm(dim=-1) - 1).square().mean(), W)[0].numpy()

    return _relative(by_weights(wrong.function_class.apply), by_weights(WholeGraph.apply))


def variants(wrong, rng):
    """How many kernels twenty numbers of rows ask for."""
    return len({tuple(wrong(int(rows)).items()) for rows in rng.integers(1, 16384, 20)})


def past_the_end(wrong, rng):
    """How many numbers past the last of 5 rows of 8 are written."""
    y = np.full(8 * 8, np.nan)
    wrong(rng.standard_normal(8 * 8), y, 5, 8)
    return int(np.isfinite(y[5 * 8 :]).sum())


def furthest(wrong, rng):
    """The largest error of y."""
    got, wanted, _ = Look("", rows(8, 64), LAYER_NORM).pairs(wrong, rng)["y"]
    return float(np.abs(got - wanted).max())


def factors(wrong, rng):
    """How many numbers multiply 128 columns whose weights are all different, and near 0.001."""
    case = draw(rng, 1, 128).without(*PLAIN, "bias")
    case = replace(case, x=np.ones((1, 128)), weight=1e-3 * case.weight).rounded("bfloat16")
    given = wrong._given(case, RMS_NORM.replace(eps=0, weight_offset=1.0), "bfloat16")
    return len(np.unique(wrong.forward_function(given).y))


def many_rows(wrong, rng):
    """dw of 4096 rows in bfloat16."""
    return Look("", rows(4096, 16), LAYER_NORM, "bfloat16").relative(wrong, rng, "dw")
