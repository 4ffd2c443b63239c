"""What a variant of the statistics does, as a formula that a reader can compare with the task's."""

from __future__ import annotations

from ...spec import NormSpec
from .numbers import decimals
from .statistics import ALONE, EPS_IS

RSTD = r"\mathrm{rstd}_{i}"
_ANY = {
    "eps missing": ("rstd = 1 / s", rf"{RSTD} = 1 / s_{{i}}"),
    "eps inside": ("rstd = 1 / sqrt(s**2 + eps)", rf"{RSTD} = 1 / \sqrt{{s_{{i}}^{{2}} + \varepsilon}}"),
    "eps outside": ("rstd = 1 / (s + eps)", rf"{RSTD} = 1 / (s_{{i}} + \varepsilon)"),
    "eps clamp": ("rstd = 1 / max(s, eps)", rf"{RSTD} = 1 / \max(s_{{i}}, \varepsilon)"),
    "bessel": ("s**2 = sum(q**2) / (N - 1)", r"s_{i}^{2} = \frac{1}{N - 1} \sum_{k=1}^{N} q_{ik}^{2}"),
    "variance for mean square": (
        "s**2 = mean((p - mean(p))**2)",
        r"s_{i}^{2} = \frac{1}{N} \sum_{k=1}^{N} (p_{ik} - \mathrm{mean}_{i})^{2}",
    ),
    "uncentred variance": ("s**2 = mean(p**2)", r"s_{i}^{2} = \frac{1}{N} \sum_{k=1}^{N} p_{ik}^{2}"),
    "padding counted": (
        "s**2 = (sum(q**2) + padding * mean**2) / N",
        r"s_{i}^{2} = \frac{1}{N} \left( \sum_{k=1}^{N} q_{ik}^{2} + N_{0} \, \mathrm{mean}_{i}^{2} \right)",
    ),
    "mean of the block": ("mean = sum(p) / BLOCK", r"\mathrm{mean}_{i} = \frac{1}{B} \sum_{k=1}^{N} p_{ik}"),
    "variance of the block": ("s**2 = sum(q**2) / BLOCK", r"s_{i}^{2} = \frac{1}{B} \sum_{k=1}^{N} q_{ik}^{2}"),
    "statistics of the block": (
        "mean and s**2 are sums / BLOCK",
        r"\mathrm{mean}_{i} = \frac{1}{B} \sum_{k=1}^{N} p_{ik}, \; s_{i}^{2} = \frac{1}{B} \sum_{k=1}^{N} q_{ik}^{2}",
    ),
    "x alone": ("p = x, without residual", r"p_{ij} = x_{ij}"),
    "axis 0": ("mean and s run over the rows, axis=0", r"\mathrm{mean} \text{ and } s \text{ run over the rows}"),
    "no axis": ("mean and s run over the whole matrix", r"\mathrm{mean} \text{ and } s \text{ run over the matrix}"),
    "bfloat16 rstd": ("rstd is rounded to bfloat16", rf"{RSTD} \text{{ is rounded to bfloat16}}"),
    "truncated rstd": ("rstd is cut to bfloat16", rf"{RSTD} \text{{ is cut to bfloat16}}"),
    "float16 rstd": ("rstd is rounded to float16", rf"{RSTD} \text{{ is rounded to float16}}"),
}
_SUM = r"\sum_{k=1}^{N} q_{ik}^{2}"
_MEAN = rf"\frac{{1}}{{N}} {_SUM}"


def _of_spec(spec: NormSpec):
    """The notes that say something else for a sum than for a mean, and for rows that are centred."""
    mean = spec.reduce == "mean"
    square, root = ("s**2 + eps", r"s_{i}^{2} + \varepsilon") if spec.placement == "inside" else ("D**2", "D_{i}^{2}")
    return {
        "centring": ("q = p", r"q_{ij} = p_{ij}")
        if spec.center
        else ("q = p - mean(p)", r"q_{ij} = p_{ij} - \mathrm{mean}_{i}"),
        "other reduce": ("s**2 = sum(q**2)", f"s_{{i}}^{{2}} = {_SUM}")
        if mean
        else ("s**2 = mean(q**2)", f"s_{{i}}^{{2}} = {_MEAN}"),
        "eps on sum": ("eps / N stands for eps", r"\varepsilon / N \text{ stands for } \varepsilon")
        if mean
        else ("N * eps stands for eps", r"N \varepsilon \text{ stands for } \varepsilon"),
        "eps squared": ("eps**2 stands for eps", r"\varepsilon^{2} \text{ stands for } \varepsilon"),
        "no root": (f"rstd = 1 / ({square})", rf"{RSTD} = 1 / ({root})"),
    }


def note(name: str, spec: NormSpec) -> tuple[str, str]:
    """What a variant does, in plain text and in LaTeX.

    Args:  name: as statistics.variant; spec: the task's
    """
    base = name.removesuffix(ALONE).removesuffix(", its kappa")
    if base.startswith(EPS_IS):
        eps = float(base.removeprefix(EPS_IS))
        number = decimals(eps) if decimals(eps) != decimals(spec.eps) else decimals(eps, digits=12)
        text, latex = f"eps = {number.text}", rf"\varepsilon = {number.latex}"
    else:
        text, latex = (_ANY | _of_spec(spec))[base]
    if name.endswith(ALONE):
        return f"{text} in the leading factor only", rf"{latex} \text{{ in the leading factor only}}"
    return text, latex
