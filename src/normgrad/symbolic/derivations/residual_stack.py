"""Residual add and norm in one operator, and the stack made of it: naive and fused, forward and backward.

Source: 000_0e2bb4a165a62f6c.txt, its operator and its last part. k counts layers in the stack, K is how many there are;
a prime marks the fused stack's twin of a quantity.
"""

from __future__ import annotations

from sympy import S, Symbol, sqrt

from ..definitions import Defs
from ..induction import inductive, recurrence
from ..notation import Partial, index, mean, tensor, total
from ..recurrences import Recurrences, sequences
from ..registry import definition, together
from ..symbols import M, N, alphabet, eps, i, j, over_all

batch = alphabet(M)
residual, residual_out, dresidual_out = (
    tensor(name, M, N) for name in ("residual", "residual_out", "dresidual_out")
)
p0, y0 = tensor("p0", M, N), tensor("y0", M, N)
x, y, dy = batch.x, batch.y, batch.dy
J = tensor("J", M, N, N)

k, K, start, dend = (
    index("k"),
    Symbol("K", integer=True, nonnegative=True),
    Symbol("x"),
    Symbol("dout"),
)
f, norm, f_adjoint, norm_adjoint = sequences("f norm f* norm*")
xs, ys, zs, ps, ys_fused, zs_fused = sequences("x y z p y' z'")
dxs, dys, dps, dys_fused, dzs_fused, branches = sequences("dx dy dp dy' dz' S")
posts, posts_fused, ps_post = sequences("post post' p'")


def add_norm(center: bool) -> Defs:
    """Add and norm written out, LayerNorm where it centres, RMSNorm where not, and a loss on both outputs."""
    defs, b = Defs(), batch
    defs[residual_out[i, j]] = x[i, j] + residual[i, j]
    if center:
        defs[b.mean[i]] = mean(N, lambda r: residual_out[i, r])
    defs[b.q[i, j]] = residual_out[i, j] - b.mean[i] if center else residual_out[i, j]
    defs[b.rstd[i]] = 1 / sqrt(mean(N, lambda r: b.q[i, r] ** 2) + eps)
    defs[b.x_hat[i, j]] = b.q[i, j] * b.rstd[i]
    defs[y[i, j]] = (
        b.x_hat[i, j] * b.w[j] + b.b[j] if center else b.x_hat[i, j] * b.w[j]
    )
    defs[b.L] = over_all(
        lambda r, s: dy[r, s] * y[r, s] + dresidual_out[r, s] * residual_out[r, s]
    )
    defs[b.wdy[i, j]] = b.w[j] * dy[i, j]
    defs[b.c1[i]] = mean(N, lambda r: b.x_hat[i, r] * b.wdy[i, r])
    defs[b.c2[i]] = mean(N, lambda r: b.wdy[i, r])
    return defs


def any_norm() -> Defs:
    """Add and any norm at all, near a sum p_0: of the norm there is left its Jacobian there."""
    defs = Defs()
    defs[residual_out[i, j]] = x[i, j] + residual[i, j]
    defs[y[i, j]] = y0[i, j] + total(
        N, lambda r: J[i, j, r] * (residual_out[i, r] - p0[i, r])
    )
    defs[batch.L] = over_all(
        lambda r, s: dy[r, s] * y[r, s] + dresidual_out[r, s] * residual_out[r, s]
    )
    return defs


def _operator():
    defs, b = add_norm(center=True), batch
    both = Partial(b.L, x[i, j]), Partial(b.L, residual[i, j])
    yield definition(
        "res-forward",
        "Add and LayerNorm, two outputs.",
        defs,
        residual_out[i, j],
        b.mean[i],
        b.q[i, j],
        b.rstd[i],
        b.x_hat[i, j],
        y[i, j],
    )
    yield definition(
        "res-loss",
        "A loss with a cotangent for each of the two outputs, held constant.",
        defs,
        b.L,
    )
    yield definition(
        "res-names",
        "Short names of the backward pass.",
        defs,
        b.wdy[i, j],
        b.c1[i],
        b.c2[i],
    )
    opaque = any_norm()
    yield definition(
        "res-any-norm",
        "Any norm of rows, to first order near the sum p_0.",
        opaque,
        y[i, j],
    )
    through_norm = total(N, lambda r: J[i, r, j] * dy[i, r]) + dresidual_out[i, j]
    claim = "Input and residual have one gradient: J^T dy + dresidual_out."
    yield together("res-dx", claim, opaque, (both[0], through_norm), both[::-1])
    projected = (
        b.rstd[i] * (b.wdy[i, j] - b.c2[i] - b.x_hat[i, j] * b.c1[i])
        + dresidual_out[i, j]
    )
    yield together(
        "res-dx-layer-norm",
        "The gradient of add and LayerNorm.",
        defs,
        (both[0], projected),
        both[::-1],
    )
    plain = b.rstd[i] * (b.wdy[i, j] - b.x_hat[i, j] * b.c1[i]) + dresidual_out[i, j]
    rms = add_norm(center=False)
    yield together(
        "res-dx-rms-norm",
        "The gradient of add and RMSNorm.",
        rms,
        (both[0], plain),
        both[::-1],
    )


def stack() -> Recurrences:
    """The stack with all its sequences: naive, fused and post-norm, forward and backward."""
    lines = Recurrences(k, K)
    lines[xs(0)] = start
    lines[ys(k)] = norm(k, xs(k - 1))
    lines[zs(k)] = f(k, ys(k))
    lines[xs(k)] = f(k, ys(k)) + xs(k - 1)
    lines[zs_fused(0)], lines[ps(0)] = start, S.Zero
    lines[ps(k)] = zs_fused(k - 1) + ps(k - 1)
    lines[ys_fused(k)] = norm(k, ps(k))
    lines[zs_fused(k)] = f(k, ys_fused(k))
    lines[dxs(K)], lines[dzs_fused(K)], lines[dps(K)], lines[branches(K)] = (
        dend,
        dend,
        dend,
        S.Zero,
    )
    lines[dys(k)] = f_adjoint(k, ys(k), dxs(k))
    lines[dxs(k - 1)] = norm_adjoint(k, xs(k - 1), dys(k)) + dxs(k)
    lines[dys_fused(k)] = f_adjoint(k, ys_fused(k), dzs_fused(k))
    lines[dzs_fused(k - 1)] = norm_adjoint(k, ps(k), dys_fused(k)) + dps(k)
    lines[dps(k - 1)] = norm_adjoint(k, ps(k), dys_fused(k)) + dps(k)
    lines[branches(k - 1)] = norm_adjoint(k, xs(k - 1), dys(k)) + branches(k)
    lines[posts(0)], lines[posts_fused(0)] = start, start
    lines[posts(k)] = norm(k, f(k, posts(k - 1)) + posts(k - 1))
    lines[ps_post(k)] = f(k, posts_fused(k - 1)) + posts_fused(k - 1)
    lines[posts_fused(k)] = norm(k, ps_post(k))
    return lines


def _naive(lines):
    yield recurrence(
        "res-naive", "The stack as it is defined.", lines, xs(0), ys(k), zs(k), xs(k)
    )
    yield inductive(
        "res-naive-sum",
        "The stream gathers what the layers add.",
        lines,
        (xs(k), xs(k - 1) + zs(k)),
        low=1,
    )
    yield inductive(
        "res-naive-y",
        "From the second layer on, the norm follows an add.",
        lines,
        (ys(k), norm(k, xs(k - 2) + zs(k - 1))),
        low=2,
    )
    yield recurrence(
        "res-fused",
        "The stack with each add moved into the next norm.",
        lines,
        zs_fused(0),
        ps(0),
        ps(k),
        ys_fused(k),
        zs_fused(k),
    )


def _source_proof(lines, invariant):
    first = f(1, norm(1, start)) + start
    yield inductive("res-one-naive", "One layer, naive.", lines, (xs(1), first), low=1)
    yield inductive(
        "res-one-fused", "One layer, fused.", lines, (zs_fused(1) + ps(1), first), low=1
    )
    last = f(K, norm(K, xs(K - 1))) + xs(K - 1)
    yield inductive(
        "res-last-naive", "The last layer, naive.", lines, (xs(K), last), low=1
    )
    yield inductive(
        "res-last-fused",
        "The last layer, fused, after the hypothesis for the layers before it.",
        lines,
        (zs_fused(K) + ps(K), xs(K)),
        low=1,
        given=(invariant,),
    )


def _theorem(lines):
    invariant = inductive(
        "res-invariant",
        "The naive stream is the fused pair, added.",
        lines,
        (xs(k), zs_fused(k) + ps(k)),
    )
    yield invariant
    yield inductive(
        "res-base",
        "The invariant before the first layer.",
        lines,
        (zs_fused(0) + ps(0), xs(0)),
    )
    yield inductive(
        "res-step",
        "The invariant, from one layer to the next.",
        lines,
        (ps(k), xs(k - 1)),
        (zs_fused(k) + ps(k), xs(k)),
        low=1,
        given=(invariant,),
    )
    yield from _source_proof(lines, invariant)
    yield inductive(
        "res-final",
        "A final norm takes the last add into itself.",
        lines,
        (norm(K + 1, xs(K)), norm(K + 1, zs_fused(K) + ps(K))),
        given=(invariant,),
    )
    yield recurrence(
        "res-naive-backward",
        "The naive stack, backward.",
        lines,
        dxs(K),
        dys(k),
        dxs(k - 1),
    )
    yield recurrence(
        "res-fused-backward",
        "The fused stack, backward.",
        lines,
        dzs_fused(K),
        dps(K),
        dys_fused(k),
        dzs_fused(k - 1),
        dps(k - 1),
    )
    yield inductive(
        "res-backward",
        "Both halves of the fused pair carry the gradient of the naive stream.",
        lines,
        (dzs_fused(k), dxs(k)),
        (dps(k), dxs(k)),
        down=True,
        given=(invariant,),
    )
    yield recurrence(
        "res-branches",
        "What the branches send back, gathered.",
        lines,
        branches(K),
        branches(k - 1),
    )
    yield inductive(
        "res-identity-path",
        "The gradient is the output's, unchanged, and what the branches add.",
        lines,
        (dxs(k), dend + branches(k)),
        down=True,
    )


def equations():
    """The equations labelled res-...: the operator with two outputs, the stack, its invariant and its gradients."""
    yield from _operator()
    lines = stack()
    yield from _naive(lines)
    yield from _theorem(lines)
    yield recurrence("res-post", "The post-norm stack.", lines, posts(0), posts(k))
    yield recurrence(
        "res-post-fused",
        "The post-norm stack: add and norm are neighbours.",
        lines,
        posts_fused(0),
        ps_post(k),
        posts_fused(k),
    )
    yield inductive(
        "res-post-equal",
        "The post-norm stack, naive and fused.",
        lines,
        (posts(k), posts_fused(k)),
    )
