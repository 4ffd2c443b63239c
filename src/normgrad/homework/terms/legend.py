"""What stands behind the names in a formula, and what a changed statistic should have been."""

from __future__ import annotations

import re

from ...spec import NormSpec
from .setting import Setting

SPREAD = {"inside": "1 / sqrt(s**2 + eps)", "outside": "1 / (s + eps)", "clamp": "1 / max(s, eps)"}
LATEX = {
    "inside": r"1 / \sqrt{s_{i}^{2} + \varepsilon}",
    "outside": r"1 / (s_{i} + \varepsilon)",
    "clamp": r"1 / \max(s_{i}, \varepsilon)",
}


def should_be(remark: tuple[str, str] | None, spec: NormSpec) -> tuple[str, str] | None:
    """(text, LaTeX) of the right formula for what a remark such as "rstd = 1 / s" speaks of; None where it has none."""
    about = (remark or ("",))[0].split(" ")[0]
    fraction, row = r"\frac{1}{N} " if spec.reduce == "mean" else "", "q" if spec.center else "p"
    return {
        "rstd": (f"rstd = {SPREAD[spec.placement]}", rf"\mathrm{{rstd}}_{{i}} = {LATEX[spec.placement]}"),
        "s**2": (f"s**2 = {spec.reduce}({row}**2)",
                 rf"s_{{i}}^{{2}} = {fraction}\sum_{{k=1}}^{{N}} {row}_{{ik}}^{{2}}"),
        "q": ("q = p - mean(p)", r"q_{ij} = p_{ij} - \mathrm{mean}_{i}")
        if spec.center
        else ("q = p", "q_{ij} = p_{ij}"),
        "p": ("p = x + residual", r"p_{ij} = x_{ij} + \mathrm{residual}_{ij}"),
    }.get(about)  # fmt: skip


def without_stream(remark: tuple[str, str] | None, setting: Setting) -> tuple[str, str] | None:
    """A remark about p = x + residual in the words of a task that has no residual."""
    if remark is None or setting.residual:
        return remark
    return re.sub(r"\bp\b", "x", remark[0]), re.sub(r"\bp_\{", "x_{", remark[1])


def definitions(formulas: str, setting: Setting) -> tuple[str, ...]:
    """The names that formulas use and that are no argument of a task, each with what it stands for."""
    spec, row = setting.spec, "p" if setting.residual else "x"
    known = {
        "x_hat": "x_hat = q * rstd" if spec.center else f"x_hat = {row} * rstd",
        "wdy": "wdy = " + ("dy * weight" if spec.scale == 1 else "scale * dy * weight"),
        "D": "D = 1 / rstd",
        "s": f"s**2 = {spec.reduce}(q**2)" if spec.center else f"s**2 = {spec.reduce}({row}**2)",
        "q": f"q = {row} - mean({row})" if spec.center else f"q = {row}",
        "p": "p = x + residual",
    }
    found, text = [], formulas
    for name, words in known.items():
        if re.search(rf"\b{name}\b", text) and words not in text and not (name == "s" and "s**2 = " in text):
            found.append(words)
            text += " " + words.partition(" = ")[2]
    return tuple(found)
