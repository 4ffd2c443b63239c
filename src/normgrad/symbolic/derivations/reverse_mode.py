"""Chapter "Differentials, JVP and VJP", second part: fan-out, adjoints in pairs, and reverse mode made by machine."""

from __future__ import annotations

from sympy import sqrt

from ..adjoint import reverse
from ..definitions import Defs
from ..notation import Partial, delta, mean, tensor, total
from ..registry import definition, proved, together
from ..symbols import M, N, alphabet, eps, i, j, k, over_all
from . import layer_norm_graph

row, batch = alphabet(), alphabet(M)
d_rstd, d_sum, d_mean, d_turned = (
    tensor("drstd"),
    tensor("dS", M),
    tensor("dmean", M),
    tensor("dE", N, M),
)


def from_centred() -> Defs:
    """The part of the graph after the centred row q, which is its input, with a loss and the cotangents on the way."""
    q, y, dy, v, rstd = row.q, row.y, row.dy, row.v, row.rstd
    defs = Defs()
    defs[v] = mean(N, lambda r: q[r] ** 2)
    defs[rstd] = 1 / sqrt(v + eps)
    defs[y[k]] = q[k] * rstd * row.w[k] + row.b[k]
    defs[row.L] = total(N, lambda r: dy[r] * y[r])
    defs[d_rstd] = total(N, lambda r: dy[r] * defs.local(y[r], rstd))
    defs[row.dv] = d_rstd * defs.local(rstd, v)
    return defs


def _fan_out():
    defs, q, y, dy, w, rstd = from_centred(), row.q, row.y, row.dy, row.w, row.rstd
    yield definition(
        "diff-from-centred", "The graph after the centred row.", defs, row.v, rstd, y[k]
    )
    yield together(
        "diff-consumers",
        "The local derivatives of the two consumers of q.",
        defs,
        (defs.local(row.v, q[k]), 2 / N * q[k]),
        (defs.local(y[j], q[k]), w[j] * rstd * delta(j, k)),
    )
    yield proved(
        "diff-consumer-total",
        "With rstd following q the same derivative has a second term.",
        defs,
        Partial(y[j], q[k]),
        w[j] * rstd * (delta(j, k) - q[j] * rstd * (q[k] * rstd) / N),
    )
    yield proved(
        "diff-fan-out",
        "The cotangent of a quantity adds up what its consumers pass back.",
        defs,
        Partial(row.L, q[k]),
        2 / N * row.dv * q[k] + dy[k] * w[k] * rstd,
    )


def _pairs():
    x, b_row, dy = batch.x, batch.b, batch.dy
    yield together(
        "diff-pairs",
        "The adjoints of a broadcast, a sum, a mean, a centring and a transposition.",
        None,
        (
            Partial(over_all(lambda r, s: dy[r, s] * b_row[s]), b_row[j]),
            total(M, lambda r: dy[r, j]),
        ),
        (
            Partial(
                total(M, lambda r: d_sum[r] * total(N, lambda s: x[r, s])), x[i, j]
            ),
            d_sum[i],
        ),
        (
            Partial(
                total(M, lambda r: d_mean[r] * mean(N, lambda s: x[r, s])), x[i, j]
            ),
            d_mean[i] / N,
        ),
        (
            Partial(
                over_all(
                    lambda r, s: dy[r, s] * (x[r, s] - mean(N, lambda t: x[r, t]))
                ),
                x[i, j],
            ),
            dy[i, j] - mean(N, lambda s: dy[i, s]),
        ),
        (
            Partial(
                total(N, lambda s: total(M, lambda r: d_turned[s, r] * x[r, s])),
                x[i, j],
            ),
            d_turned[j, i],
        ),
    )


def generated() -> Defs:
    """Source 003's graph with the cotangents that reverse mode makes of it, and the loss."""
    g = layer_norm_graph.g
    forward = layer_norm_graph.forward()
    defs = reverse(forward, g.y[i, j], g.dy)
    defs[g.L] = forward.line(g.L)[1]
    return defs


def _reverse():
    defs, g = generated(), layer_norm_graph.g
    cotangents = [head for head, _ in defs][5:-1]
    yield definition(
        "diff-reverse",
        "The cotangents of LayerNorm's graph, made by machine.",
        defs,
        *cotangents,
    )
    yield together(
        "diff-reverse-total",
        "The machine's cotangents are the derivatives of the loss.",
        defs,
        (Partial(g.L, g.x[i, j]), g.dx[i, j]),
        (Partial(g.L, g.w[j]), g.dw[j]),
        (Partial(g.L, g.b[j]), g.db[j]),
    )


def equations():
    """The equations labelled diff-... that are about graphs."""
    for section in (_fan_out, _pairs, _reverse):
        yield from section()
