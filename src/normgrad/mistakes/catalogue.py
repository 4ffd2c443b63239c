"""The catalogue of mutants: each mistake in words, and the edit that makes it in each backend's source."""

from __future__ import annotations

from dataclasses import dataclass

from .table import MISTAKES


@dataclass(frozen=True)
class Mutant:
    """One mistake, made in each backend.

    Args:  name: a short name; mistake: what its author believed
           edits: {backend: ((old, new), ...)}; spec: the key of cases.SPECS under which the mistake shows
           backward: whether only the backward is wrong; a wrong forward is another function, which only a comparison
               of values is sure to see
           key: of the mistake in mistakes/table.py, where a student's result shows it
    """

    name: str
    mistake: str
    edits: dict[str, tuple[tuple[str, str], ...]]
    spec: str = "layer_norm"
    backward: bool = True
    key: str = ""


# The lines that are edited, each written once. numpy: numpy_ref.py
N_C1 = "c1 = kappa * (x_hat * wdy).sum(-1, keepdims=True) / spec.count(p.shape[-1])"
N_C2 = "c2 = wdy.mean(-1, keepdims=True) if spec.center else 0"
N_WEIGHT = "        wdy = wdy * _weight(weight, acc, spec)\n"
N_DX = "    dx = rstd * (wdy - c2 - x_hat * c1)\n"
N_OUT = "        dx = dx + dresidual_out\n"
N_DY = "    dy = dy.astype(acc, copy=False)\n"
N_DW = "(dy * (spec.scale * x_hat)).sum(rows)"
N_DB = "dy.sum(rows).astype"
N_S2 = "s2 = (q * q).sum(-1, keepdims=True) / spec.count(p.shape[-1])"
N_RSTD = "    rstd = _reciprocal(s2, spec)\n"
# torch: torch_ops/rows.py
T_C1 = "c1 = rstd * _along(dy_q, weight, 1 / spec.count(n), rstd, dy_q)"
T_C2 = "c2 = _along(dy, weight, 1 / n, rstd, dy_q)"
T_ALONG = "projected = torch.addcmul(wdy_c2, q, (rstd * c1).unsqueeze(-1), value=-1, out=wdy_c2)"
T_DX = "return torch.mul(projected, rstd.unsqueeze(-1), out=out)"
T_OUT = "torch.add(dp, dresidual_out, out=dx)"
T_START = "    *lead, n = p.shape\n    acc = rstd.dtype\n"
T_ROWS = "_input_gradient(dy_rows, dy_q, q, weight, r, spec, out=dp)"
T_DW = "_add_weight_gradient(dw, dy_q, r)"
T_DB = "db += dy_rows.sum(shared)"
T_RSTD = "_rstd(q, spec, out=r)"
T_WEIGHT = "        weight = full_weight(weight, acc, spec)\n"
T_KAPPA = "if spec.place.kappa is not None and spec.eps != 0:"
# triton: triton_kernels/
K_C1 = "    if MEAN:\n        c1 = c1 / N\n"
K_C2 = "c2 = c2 / N"
K_WEIGHT = "weight = SCALE * load_weight(weight_ptr, cols, N, OFFSET, ACC, head, CACHE)"
K_WDY = "wdy = dy * weight\n"
K_SWEEP_WDY = (
    "wdy = dy * scaled_weight(weight_ptr, cols, N, SCALE, OFFSET, ACC, head)\n"
)
K_ROWS_DX = "dx = input_gradient(wdy, x_hat, rstd, c1, c2)"
K_SWEEP_DX = "dx = input_gradient(dy * weight, x_hat, rstd, c1, c2)"
K_DX = "return rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None])"
K_OUT = "dx = dx + load_tile("
K_START = "aligned_rows(dy), aligned_rows(dresidual_out)"
K_SUMS = "add_parameter_gradients(dw, db, dw_ptr, db_ptr, dy, x_hat, SCALE)"
K_REDUCE = "        reduce_sums(partial, sums, programs, vector.numel())\n"
K_SQUARES = "reciprocal(q * q, rows"
K_RSTD = "rstd = 1 / denominator(s2, EPS, PLACEMENT)\n"
K_EPS = '"EPS": spec.eps,'
K_KAPPA = "c1 = kappa(mean_square(squares, N, MEAN), EPS, PLACEMENT) * c1"
# numba: numba_kernels/
J_MEANS = "c1, c2 = c1 / n, c2 / N if center else np.float32(0)"
J_WDY = "return scale * weight[j] * load(dy, j)"
J_DX = "dp = rstd * (wdy - c2 - x_hat * c1)"
J_OUT = "dp += load(dresidual_out, j)"
J_WEIGHT = "_weight(weight, n, acc, spec), mean)"
J_START = "    wanted = {one for one in dtypes[:2] if one is not None}\n"
J_DW = "return load(dy, j) * scale * normalized(p, mean, rstd, j)"
J_TOGETHER = "dw[j] += of_weight(dy, p, mean, rstd, scale, j)\n        db"
J_REDUCED = "*map(_reduced, partial, dtypes[2:])"
J_KAPPA = "c1 = kappa(row_size(row(p, i), mean[i], n, zero), eps, placement) * c1"
J_SQUARES = (
    "        q = load(p, j) - mean\n        total += q * q\n    return total / n"
)
J_RSTD = "rstd = 1 / denominator(s2, eps, placement)\n"
J_EPS = "number(spec.eps)"
# sympy: symbolic/derivations/family.py
S_DQ = "rstd[i] * (wdy[i, j] - kappa[i] / n * r[i, j] * total(N, lambda t: r[i, t] * wdy[i, t]))"
S_DP = "dq[i, j] - a / N * total(N, lambda t: dq[i, t]) + dresidual_out[i, j]"
S_WDY = "defs[wdy[i, j]] = c * dy[i, j] * (w0 + w[j])"
S_DW = "c * total(M, lambda t: dy[t, j] * r[t, j])"
S_DB = "total(M, lambda t: dy[t, j])\n"
S_S = "sqrt(1 / n * total(N, lambda t: q[i, t] ** 2))"
S_RSTD = "defs[rstd[i]] = 1 / D[i]"


def _mutant(
    name, numpy, torch, triton, numba, sympy, mistake="", key="", **options
) -> Mutant:
    edits = {
        "numpy": numpy,
        "torch": torch,
        "triton": triton,
        "numba": numba,
        "sympy": sympy,
    }
    edits = {k: (v,) if isinstance(v[0], str) else v for k, v in edits.items()}
    return Mutant(name, mistake or MISTAKES[key].belief, edits, key=key, **options)


MUTANTS = (
    _mutant(
        "c1 dropped",
        key="c1-dropped",
        numpy=(N_DX, "    dx = rstd * (wdy - c2)\n"),
        torch=(T_C1, f"{T_C1} * 0"),
        triton=(K_DX, K_DX.replace(" - x_hat * c1[:, None]", "")),
        numba=(J_DX, J_DX.replace(" - x_hat * c1", "")),
        sympy=(S_DQ, "rstd[i] * wdy[i, j]"),
    ),
    _mutant(
        "c2 dropped",
        key="c2-dropped",
        numpy=(N_DX, "    dx = rstd * (wdy - x_hat * c1)\n"),
        torch=(T_C2, "c2 = torch.zeros_like(rstd)"),
        triton=(K_DX, K_DX.replace(" - c2[:, None]", "")),
        numba=(J_DX, J_DX.replace(" - c2", "")),
        sympy=(S_DP, "dq[i, j] + dresidual_out[i, j]"),
    ),
    _mutant(
        "projection added",
        key="projection-sign",
        numpy=(N_DX, "    dx = rstd * (wdy - c2 + x_hat * c1)\n"),
        torch=(T_ALONG, T_ALONG.replace("value=-1", "value=1")),
        triton=(K_DX, K_DX.replace("- x_hat", "+ x_hat")),
        numba=(J_DX, J_DX.replace("- x_hat", "+ x_hat")),
        sympy=(S_DQ, S_DQ.replace("- kappa", "+ kappa")),
    ),
    _mutant(
        "N - 1 for N",
        key="bessel",
        numpy=(
            N_C1,
            N_C1.replace(
                "/ spec.count(p.shape[-1])", "/ (spec.count(p.shape[-1]) - 1)"
            ),
        ),
        torch=(T_C1, T_C1.replace("/ spec.count(n)", "/ (spec.count(n) - 1)")),
        triton=(K_C1, K_C1.replace("/ N", "/ (N - 1)")),
        numba=(J_MEANS, J_MEANS.replace("/ n", "/ (n - 1)")),
        sympy=(S_DQ, S_DQ.replace("/ n", "/ (n - 1)")),
    ),
    _mutant(
        "sum for mean in c1",
        key="sum-for-mean-c1",
        numpy=(N_C1, N_C1.replace(" / spec.count(p.shape[-1])", "")),
        torch=(T_C1, T_C1.replace(" / spec.count(n)", "")),
        triton=(K_C1, ""),
        numba=(J_MEANS, J_MEANS.replace(" / n", "")),
        sympy=(S_DQ, S_DQ.replace(" / n", "")),
    ),
    _mutant(
        "sum for mean in c2",
        key="sum-for-mean-c2",
        numpy=(N_C2, N_C2.replace("mean", "sum")),
        torch=(T_C2, T_C2.replace(" / n", "")),
        triton=(K_C2, K_C2.replace(" / N", "")),
        numba=(J_MEANS, J_MEANS.replace(" / N", "")),
        sympy=(S_DP, S_DP.replace(" / N", "")),
    ),
    _mutant(
        "weight missing",
        key="weight-missing",
        numpy=(N_WEIGHT, "        pass\n"),
        torch=(T_ROWS, T_ROWS.replace("weight", "torch.ones_like(weight)")),
        triton=(K_WEIGHT, K_WEIGHT.replace("SCALE *", "SCALE + 0 *")),
        numba=(J_WDY, J_WDY.replace(" * weight[j]", "")),
        sympy=(S_WDY, S_WDY.replace(" * (w0 + w[j])", "")),
    ),
    _mutant(
        "weight twice",
        key="weight-twice",
        numpy=(N_WEIGHT, N_WEIGHT + N_WEIGHT),
        torch=(T_ROWS, T_ROWS.replace("weight", "weight * weight")),
        triton=(K_WEIGHT, f"{K_WEIGHT} * load_columns(weight_ptr, cols, N, ACC, head)"),
        numba=(J_WDY, f"{J_WDY} * weight[j]"),
        sympy=(S_WDY, f"{S_WDY} ** 2"),
    ),
    _mutant(
        "offset missing in wdy",
        numpy=(
            N_WEIGHT,
            N_WEIGHT.replace(
                "_weight(weight, acc, spec)", "weight.astype(acc, copy=False)"
            ),
        ),
        torch=(
            T_WEIGHT,
            T_WEIGHT.replace("full_weight(weight, acc, spec)", "weight.to(acc)"),
        ),
        triton=(
            K_WEIGHT,
            K_WEIGHT.replace("load_weight", "load_columns").replace("OFFSET, ", ""),
        ),
        numba=(J_WEIGHT, "_vector(weight, n, acc, 1), mean)"),
        sympy=(S_WDY, S_WDY.replace("w0 + ", "")),
        mistake="the offset of the weight is a constant, so no gradient has it",
        spec="rms_norm_offset",
    ),
    _mutant(
        "weight after the projection",
        key="weight-after",
        numpy=(
            (N_WEIGHT, "        pass\n"),
            (N_DX, N_DX.replace("rstd *", "weight * rstd *")),
        ),
        torch=(
            T_ROWS,
            T_ROWS.replace("weight", "torch.ones_like(weight)") + ".mul_(weight)",
        ),
        triton=(
            (K_WDY, "wdy = dy * SCALE\n"),
            (K_ROWS_DX, f"{K_ROWS_DX} * weight"),
            (K_SWEEP_WDY, "wdy = dy * SCALE\n"),
            (K_SWEEP_DX, K_SWEEP_DX.replace("weight", "SCALE") + " * weight"),
        ),
        numba=(
            (J_WDY, J_WDY.replace(" * weight[j]", "")),
            (J_DX, f"{J_DX} * weight[j]"),
        ),
        sympy=(
            (S_WDY, S_WDY.replace(" * (w0 + w[j])", "")),
            (
                S_DP,
                "w[j] * (dq[i, j] - a / N * total(N, lambda t: dq[i, t])) + dresidual_out[i, j]",
            ),
        ),
    ),
    _mutant(
        "rstd missing in dx",
        mistake="the projection alone is the gradient",
        key="rstd-missing",
        numpy=(N_DX, "    dx = wdy - c2 - x_hat * c1\n"),
        torch=(T_DX, "return out.copy_(projected)"),
        triton=(K_DX, K_DX.replace("rstd[:, None] * ", "")),
        numba=(J_DX, J_DX.replace("rstd * ", "")),
        sympy=(S_DQ, S_DQ.replace("rstd[i] * ", "")),
    ),
    _mutant(
        "rstd missing in dw",
        mistake="dw sums dy * q",
        key="rstd-missing",
        numpy=(N_DW, N_DW.replace("x_hat", "q")),
        torch=(T_DW, T_DW.replace(", r)", ", torch.ones_like(r))")),
        triton=(K_SUMS, K_SUMS.replace("x_hat", "q")),
        numba=(
            J_DW,
            J_DW.replace("normalized(p, mean, rstd, j)", "(load(p, j) - mean)"),
        ),
        sympy=(S_DW, S_DW.replace("r[t, j]", "q[t, j]")),
    ),
    _mutant(
        "weight in dw",
        key="weight-in-dw",
        numpy=(N_DW, N_DW.replace("dy *", "dy * weight *")),
        torch=(T_DW, T_DW.replace("dy_q,", "dy_q * weight,")),
        triton=(K_SUMS, K_SUMS.replace("x_hat", "x_hat * weight")),
        numba=(J_TOGETHER, J_TOGETHER.replace("+=", "+= weight[j] *")),
        sympy=(S_DW, f"w[j] * {S_DW}"),
    ),
    _mutant(
        "mean over rows in db",
        key="rows-averaged",
        numpy=(N_DB, N_DB.replace("sum", "mean")),
        torch=(T_DB, f"{T_DB} / len(p)"),
        triton=(K_REDUCE, f"{K_REDUCE}        sums[1] = sums[1] / m\n"),
        numba=(J_REDUCED, "*map(_reduced, (partial[0], partial[1] / m), dtypes[2:])"),
        sympy=(S_DB, "total(M, lambda t: dy[t, j]) / M\n"),
    ),
    _mutant(
        "dresidual_out forgotten",
        key="dresidual-forgotten",
        numpy=(N_OUT, "        pass\n"),
        torch=(T_OUT, "dx.copy_(dp)"),
        triton=(K_OUT, K_OUT.replace("dx +", "dx + 0 *")),
        numba=(J_OUT, "pass"),
        sympy=(S_DP, S_DP.replace(" + dresidual_out[i, j]", "")),
    ),
    _mutant(
        "dresidual_out through the norm",
        key="dresidual-through-norm",
        numpy=(
            (N_OUT, "        pass\n"),
            (
                N_DY,
                "    dy = dy.astype(acc) if dresidual_out is None else (dy + dresidual_out).astype(acc)\n",
            ),
        ),
        torch=(
            (T_OUT, "dx.copy_(dp)"),
            (
                T_START,
                f"{T_START}    dy = dy if dresidual_out is None else dy + dresidual_out\n",
            ),
        ),
        triton=(K_START, "aligned_rows(dy + dresidual_out), None"),
        numba=(
            J_START,
            f"{J_START}    dy, dresidual_out = dy if dresidual_out is None else dy + dresidual_out, None\n",
        ),
        sympy=(
            (S_DP, S_DP.replace(" + dresidual_out[i, j]", "")),
            (S_WDY, S_WDY.replace("* dy[i, j]", "* (dy[i, j] + dresidual_out[i, j])")),
        ),
    ),
    _mutant(
        "kappa ignored, outside",
        mistake="eps outside the root leaves the gradient as it is",
        numpy=(N_C1, N_C1.replace("kappa * ", "")),
        torch=(T_KAPPA, "if False:"),
        triton=(K_KAPPA, "c1 = c1"),
        numba=(J_KAPPA, "pass"),
        sympy=(S_DQ, S_DQ.replace("kappa[i]", "1")),
        spec="layer_norm_std",
    ),
    _mutant(
        "kappa ignored, clamp",
        mistake="a clamped row is projected like any other",
        numpy=(N_C1, N_C1.replace("kappa * ", "")),
        torch=(T_KAPPA, "if False:"),
        triton=(K_KAPPA, "c1 = c1"),
        numba=(J_KAPPA, "pass"),
        sympy=(S_DQ, S_DQ.replace("kappa[i]", "1")),
        spec="l2_clamp",
    ),
    _mutant(
        "one-pass variance",
        key="one-pass-variance",
        numpy=(
            N_S2,
            N_S2.replace("q * q", "p * p") + " - (0 if mean is None else mean * mean)",
        ),
        torch=(
            T_RSTD,
            "_rstd(((p * p).mean(-1) - means**2).clamp(min=0).sqrt()[:, None], spec, out=r)",
        ),
        triton=(
            K_SQUARES,
            "reciprocal(tl.where((cols < N)[None, :], p * p - (mean * mean)[:, None], 0), rows",
        ),
        numba=(
            J_SQUARES,
            J_SQUARES.replace(
                "        q = load(p, j) - mean\n        total += q * q",
                "        total += load(p, j) * load(p, j)",
            )
            + " - mean * mean",
        ),
        sympy=(
            S_S,
            "sqrt(1 / n * total(N, lambda t: p[i, t] ** 2) - a * average[i] ** 2)",
        ),
        backward=False,
    ),
    _mutant(
        "statistics in bfloat16",
        key="narrow-statistics",
        numpy=(
            N_RSTD,
            f"{N_RSTD}    rstd = (rstd.astype('f4').view('u4') >> 16 << 16).view('f4').astype(acc)\n",
        ),
        torch=(T_RSTD, f"{T_RSTD}\n        r.copy_(r.bfloat16())"),
        triton=(
            K_RSTD,
            "d = denominator(s2, EPS, PLACEMENT)\n    rstd = (1 / d).to(tl.bfloat16).to(d.dtype)\n",
        ),
        numba=(
            J_RSTD,
            f"{J_RSTD}    rstd = (np.float32(rstd).view(np.uint32) >> 16 << 16).view(np.float32)\n",
        ),
        sympy=(S_RSTD, "defs[rstd[i]] = (1 + sympify(1) / 256) / D[i]"),
        backward=False,
    ),
    _mutant(
        "eps on the sum",
        key="eps-on-sum",
        numpy=(
            N_RSTD,
            N_RSTD.replace("spec)", "spec.replace(eps=spec.eps / x.shape[-1]))"),
        ),
        torch=(T_RSTD, T_RSTD.replace(" spec,", " spec.replace(eps=spec.eps / n),")),
        triton=(K_EPS, '"EPS": spec.eps / n,'),
        numba=(J_EPS, "number(spec.eps / n)"),
        sympy=(
            "place.denominator(s[i], eps, m)",
            "place.denominator(s[i], eps / N, m)",
        ),
        backward=False,
    ),
)
