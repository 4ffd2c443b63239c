"""What the figures that move compute with: functions of the browser, written from the definitions that are proved."""

from __future__ import annotations

from functools import cache

from sympy import Expr, Symbol, sqrt

from normgrad.spec import PLACEMENTS
from normgrad.symbolic import Defs, as_written, equation, tensor, total
from normgrad.symbolic.browser_code import HELPERS, browser_source
from normgrad.symbolic.derivations import family
from normgrad.symbolic.symbols import M, N, alphabet, i, j, k, over_all, p

# The arrows of LayerNorm's graph, each named by its two ends; 1 where a cotangent passes, 0 where the arrow is cut.
ARROWS = ("D_y", "v_D", "q_v", "q_y", "mean_q", "x_mean", "x_q")
# The cotangents in the order of the backward pass, each with the equation that the graph's page proves.
COTANGENTS = ("dD", "dv", "dq", "dmean", "dx")


def lines_of(label: str, *sides: Expr) -> Defs:
    """The definitions that expressions need, of those of an equation."""
    defs = Defs()
    for head, formula in equation(label).defs.reached(*sides):
        defs[head] = formula
    return defs


@cache
def norms() -> str:
    """One function for each place of eps: the operator, kappa, and its gradient by the input."""
    outputs = (
        family.s[i],
        family.kappa[i],
        family.r[i, j],
        family.y[i, j],
        family.dp[i, j],
    )
    return "\n".join(
        browser_source(family.computed(placement), outputs, f"norm_{placement}")
        for placement in PLACEMENTS
    )


def graph_defs() -> Defs:
    """The graph with a factor on each arrow; where all are 1, these are the cotangents of the graph's page."""
    g = alphabet(M)
    passes = {name: Symbol(name, nonnegative=True) for name in ARROWS}
    with as_written():
        defs = lines_of("ln-graph-dx-closed", g.L)
        along_D = -total(N, lambda r: g.dy[p, r] * g.q[p, r] * g.w[r] / g.D[p] ** 2)
        through_v = 2 / N * g.dv[p] * g.q[p, k]
        through_y = g.dy[p, k] * g.w[k] / g.D[p]
        defs[g.dD[p]] = passes["D_y"] * along_D
        defs[g.dv[p]] = passes["v_D"] * g.dD[p] / (2 * g.D[p])
        defs[g.dq[p, k]] = passes["q_v"] * through_v + passes["q_y"] * through_y
        defs[g.dmean[p]] = -(passes["mean_q"] * total(N, lambda r: g.dq[p, r]))
        defs[g.dx[p, k]] = (
            passes["x_mean"] * g.dmean[p] / N + passes["x_q"] * g.dq[p, k]
        )
    return defs


def graph() -> str:
    """The cotangents of LayerNorm's graph, where some arrows may be cut."""
    g = alphabet(M)
    outputs = (
        g.q[i, j],
        g.v[i],
        g.D[i],
        g.dD[p],
        g.dv[p],
        g.dq[p, k],
        g.dmean[p],
        g.dx[p, k],
    )
    return browser_source(graph_defs(), outputs, "graph")


def slope_defs() -> tuple[Defs, dict]:
    """LayerNorm on the line x0 + h x_dot, its loss, and the slopes that a right dx and wrong ones claim at h = 0."""
    n = alphabet(M)
    start, x_dot, h = tensor("x0", M, N), tensor("x_dot", M, N), tensor("h")
    with as_written():
        defs = Defs()
        defs[n.x[i, j]] = start[i, j] + h * x_dot[i, j]
        right = equation("ln-dx").chain[-1]
        for head, formula in lines_of("ln-dx", n.L, right):
            defs[head] = formula
        rstd, wdy, c1, c2, x_hat = (
            n.rstd[i],
            n.wdy[i, j],
            n.c1[i],
            n.c2[i],
            n.x_hat[i, j],
        )
        claims = {
            "right": right,
            "without_c1": rstd * (wdy - c2),
            "without_c2": rstd * (wdy - x_hat * c1),
            "sign_of_c1": rstd * (wdy - c2 + x_hat * c1),
            "weight_forgotten": rstd * (n.dy[i, j] - c2 - x_hat * c1),
            "n_minus_1": sqrt((N - 1) / N) * rstd * (wdy - c2 - x_hat * c1),
            "eps_forgotten": 1 / sqrt(n.v[i]) * (wdy - c2 - x_hat * c1),
        }
        for name, claim in claims.items():
            claimed, slope = tensor(f"dx_{name}", M, N), tensor(name)
            defs[claimed[i, j]] = claim
            defs[slope] = over_all(
                lambda r, s, claimed=claimed: claimed[r, s] * x_dot[r, s]
            )
    return defs, claims


def slopes() -> str:
    """The loss on a line, in any format, and the claimed slopes."""
    defs, claims = slope_defs()
    loss = browser_source(defs, (alphabet(M).L,), "loss", rounded=True)
    return loss + "\n" + browser_source(defs, tuple(map(tensor, claims)), "claimed")


def floor() -> str:
    """The least bytes that LayerNorm moves, forward and backward, without and with residual."""
    kernels = equation("bytes-kernels")
    outputs = [name for name, _ in kernels.chains if str(name) != "addition"]
    return browser_source(kernels.defs, outputs, "floor")


# The functions of each figure.
FUNCTIONS = {
    "eps": norms,
    "jacobian": norms,
    "graph": graph,
    "v-curve": slopes,
    "bytes": floor,
}


def written(name: str) -> str:
    """The text of a figure's functions."""
    return HELPERS + "\n" + FUNCTIONS[name]()
