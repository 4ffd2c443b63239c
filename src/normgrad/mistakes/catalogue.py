"""The catalogue of mutants: each mistake in words, and its edit of the source of torch's rows."""

from __future__ import annotations

from dataclasses import dataclass

from .table import MISTAKES


@dataclass(frozen=True)
class Mutant:
    """One mistake, made in torch_ops/rows.py.

    Args:  name: a short name; mistake: what its author believed
           edits: ((old, new), ...); spec: the key of cases.SPECS under which the mistake shows
           backward: whether only the backward is wrong; a wrong forward is another function, which only a comparison
               of values is sure to see
    """

    name: str
    mistake: str
    edits: tuple[tuple[str, str], ...]
    spec: str = "layer_norm"
    backward: bool = True


# The lines that are edited, each written once.
C1 = "c1 = rstd * _along(dy_q, weight, 1 / spec.count(n), rstd, dy_q)"
C2 = "c2 = _along(dy, weight, 1 / n, rstd, dy_q)"
ALONG = "projected = torch.addcmul(wdy_c2, q, (rstd * c1).unsqueeze(-1), value=-1, out=wdy_c2)"
DX = "return torch.mul(projected, rstd.unsqueeze(-1), out=out)"
OUT = "torch.add(dp, dresidual_out, out=dx)"
START = "    *lead, n = p.shape\n    acc = rstd.dtype\n"
ROWS = "_input_gradient(dy_rows, dy_q, q, weight, r, spec, out=dp)"
DW = "_add_weight_gradient(dw, dy_q, r)"
DB = "db += dy_rows.sum(shared)"
RSTD = "_rstd(q, spec, out=r)"
WEIGHT = "        weight = full_weight(weight, acc, spec)\n"
KAPPA = "if spec.place.kappa is not None and spec.eps != 0:"


def _mutant(name, key, *edits, **options) -> Mutant:
    """A mutant whose mistake is the belief of a key of the table."""
    return Mutant(name, MISTAKES[key].belief, edits, **options)


MUTANTS = (
    _mutant("c1 dropped", "c1-dropped", (C1, f"{C1} * 0")),
    _mutant("c2 dropped", "c2-dropped", (C2, "c2 = torch.zeros_like(rstd)")),
    _mutant(
        "projection added",
        "projection-sign",
        (ALONG, ALONG.replace("value=-1", "value=1")),
    ),
    _mutant(
        "N - 1 for N",
        "bessel",
        (C1, C1.replace("/ spec.count(n)", "/ (spec.count(n) - 1)")),
    ),
    _mutant(
        "sum for mean in c1",
        "sum-for-mean-c1",
        (C1, C1.replace(" / spec.count(n)", "")),
    ),
    _mutant("sum for mean in c2", "sum-for-mean-c2", (C2, C2.replace(" / n", ""))),
    _mutant(
        "weight missing",
        "weight-missing",
        (ROWS, ROWS.replace("weight", "torch.ones_like(weight)")),
    ),
    _mutant(
        "weight twice",
        "weight-twice",
        (ROWS, ROWS.replace("weight", "weight * weight")),
    ),
    Mutant(
        "offset missing in wdy",
        "the offset of the weight is a constant, so no gradient has it",
        ((WEIGHT, "        weight = weight.to(acc)\n"),),
        spec="rms_norm_offset",
    ),
    _mutant(
        "weight after the projection",
        "weight-after",
        (ROWS, ROWS.replace("weight", "torch.ones_like(weight)") + ".mul_(weight)"),
    ),
    Mutant(
        "rstd missing in dx",
        "the projection alone is the gradient",
        ((DX, "return out.copy_(projected)"),),
    ),
    Mutant(
        "rstd missing in dw",
        "dw sums dy * q",
        ((DW, DW.replace(", r)", ", torch.ones_like(r))")),),
    ),
    _mutant(
        "weight in dw", "weight-in-dw", (DW, DW.replace("dy_q,", "dy_q * weight,"))
    ),
    _mutant("mean over rows in db", "rows-averaged", (DB, f"{DB} / len(p)")),
    _mutant("dresidual_out forgotten", "dresidual-forgotten", (OUT, "dx.copy_(dp)")),
    _mutant(
        "dresidual_out through the norm",
        "dresidual-through-norm",
        (OUT, "dx.copy_(dp)"),
        (
            START,
            f"{START}    dy = dy if dresidual_out is None else dy + dresidual_out\n",
        ),
    ),
    Mutant(
        "kappa ignored, outside",
        "eps outside the root leaves the gradient as it is",
        ((KAPPA, "if False:"),),
        spec="layer_norm_std",
    ),
    Mutant(
        "kappa ignored, clamp",
        "a clamped row is projected like any other",
        ((KAPPA, "if False:"),),
        spec="l2_clamp",
    ),
    _mutant(
        "one-pass variance",
        "one-pass-variance",
        (
            RSTD,
            "_rstd(((p * p).mean(-1) - means**2).clamp(min=0).sqrt()[:, None], spec, out=r)",
        ),
        backward=False,
    ),
    _mutant(
        "statistics in bfloat16",
        "narrow-statistics",
        (RSTD, f"{RSTD}\n        r.copy_(r.bfloat16())"),
        backward=False,
    ),
    _mutant(
        "eps on the sum",
        "eps-on-sum",
        (RSTD, RSTD.replace(" spec,", " spec.replace(eps=spec.eps / n),")),
        backward=False,
    ),
)
