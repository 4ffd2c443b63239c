"""The catalogue of mutants: each mistake in words, and its edit of the source of NumPy and of torch's rows."""

from __future__ import annotations

from dataclasses import dataclass

from .table import MISTAKES


@dataclass(frozen=True)
class Mutant:
    """One mistake, made in two backends.

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


def _mutant(name, numpy, torch, mistake="", key="", **options) -> Mutant:
    edits = {"numpy": numpy, "torch": torch}
    edits = {k: (v,) if isinstance(v[0], str) else v for k, v in edits.items()}
    return Mutant(name, mistake or MISTAKES[key].belief, edits, key=key, **options)


MUTANTS = (
    _mutant(
        "c1 dropped",
        key="c1-dropped",
        numpy=(N_DX, "    dx = rstd * (wdy - c2)\n"),
        torch=(T_C1, f"{T_C1} * 0"),
    ),
    _mutant(
        "c2 dropped",
        key="c2-dropped",
        numpy=(N_DX, "    dx = rstd * (wdy - x_hat * c1)\n"),
        torch=(T_C2, "c2 = torch.zeros_like(rstd)"),
    ),
    _mutant(
        "projection added",
        key="projection-sign",
        numpy=(N_DX, "    dx = rstd * (wdy - c2 + x_hat * c1)\n"),
        torch=(T_ALONG, T_ALONG.replace("value=-1", "value=1")),
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
    ),
    _mutant(
        "sum for mean in c1",
        key="sum-for-mean-c1",
        numpy=(N_C1, N_C1.replace(" / spec.count(p.shape[-1])", "")),
        torch=(T_C1, T_C1.replace(" / spec.count(n)", "")),
    ),
    _mutant(
        "sum for mean in c2",
        key="sum-for-mean-c2",
        numpy=(N_C2, N_C2.replace("mean", "sum")),
        torch=(T_C2, T_C2.replace(" / n", "")),
    ),
    _mutant(
        "weight missing",
        key="weight-missing",
        numpy=(N_WEIGHT, "        pass\n"),
        torch=(T_ROWS, T_ROWS.replace("weight", "torch.ones_like(weight)")),
    ),
    _mutant(
        "weight twice",
        key="weight-twice",
        numpy=(N_WEIGHT, N_WEIGHT + N_WEIGHT),
        torch=(T_ROWS, T_ROWS.replace("weight", "weight * weight")),
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
    ),
    _mutant(
        "rstd missing in dx",
        mistake="the projection alone is the gradient",
        key="rstd-missing",
        numpy=(N_DX, "    dx = wdy - c2 - x_hat * c1\n"),
        torch=(T_DX, "return out.copy_(projected)"),
    ),
    _mutant(
        "rstd missing in dw",
        mistake="dw sums dy * q",
        key="rstd-missing",
        numpy=(N_DW, N_DW.replace("x_hat", "q")),
        torch=(T_DW, T_DW.replace(", r)", ", torch.ones_like(r))")),
    ),
    _mutant(
        "weight in dw",
        key="weight-in-dw",
        numpy=(N_DW, N_DW.replace("dy *", "dy * weight *")),
        torch=(T_DW, T_DW.replace("dy_q,", "dy_q * weight,")),
    ),
    _mutant(
        "mean over rows in db",
        key="rows-averaged",
        numpy=(N_DB, N_DB.replace("sum", "mean")),
        torch=(T_DB, f"{T_DB} / len(p)"),
    ),
    _mutant(
        "dresidual_out forgotten",
        key="dresidual-forgotten",
        numpy=(N_OUT, "        pass\n"),
        torch=(T_OUT, "dx.copy_(dp)"),
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
    ),
    _mutant(
        "kappa ignored, outside",
        mistake="eps outside the root leaves the gradient as it is",
        numpy=(N_C1, N_C1.replace("kappa * ", "")),
        torch=(T_KAPPA, "if False:"),
        spec="layer_norm_std",
    ),
    _mutant(
        "kappa ignored, clamp",
        mistake="a clamped row is projected like any other",
        numpy=(N_C1, N_C1.replace("kappa * ", "")),
        torch=(T_KAPPA, "if False:"),
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
        backward=False,
    ),
)
