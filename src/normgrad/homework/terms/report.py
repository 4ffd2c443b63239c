"""What term attribution says: one Diagnosis a misconception, in three levels of detail."""

from __future__ import annotations

from dataclasses import dataclass

from ...spec import NormSpec
from .misconceptions import REFUSED, UNKNOWN, find
from .setting import Setting

OPEN = {
    UNKNOWN: (
        "No known misconception",
        "The result is wrong in a way that this catalogue does not know. The nearest formula is shown.",
    ),
    REFUSED: (
        "The rounding hides which term is wrong",
        "The result is wrong, but several formulas fit it within its rounding errors. Check it in float64.",
    ),
}


@dataclass(frozen=True)
class Diagnosis:
    """One misconception that a wrong result shows, or that none is known.

    The level "hint" is hint; "equation" adds equation and title; "coefficients" adds the rest.

    Args:  misconception: a key of the catalogue, "unknown", or "hidden-by-rounding"; title; hint; equation: the label
           of the registered equation that is violated
           coefficients: {term: its coefficient in what was implemented}, the right terms included
           implemented, right: the two formulas in plain text, and both in LaTeX
           where: what the names in both formulas stand for
           residual: |got - implemented| / |got|; confidence: from 0 to 1, how far the noise leaves the next
           explanation behind
    """

    misconception: str
    title: str
    hint: str
    equation: str
    coefficients: dict[str, float]
    implemented: str
    implemented_latex: str
    right: str
    right_latex: str
    residual: float
    confidence: float
    where: tuple[str, ...] = ()


def own_equation(output: str, spec: NormSpec, setting: Setting) -> str:
    """The label of the equation that says what an output must be."""
    if output == "y":
        return _forward(spec)
    if output == "db":
        return "pg-db"
    if output == "dw":
        return "pg-dw" if _preset(spec) is None else f"{_preset(spec)}-dw"
    if setting.stream:
        return {"ln": "res-dx-layer-norm", "rms": "res-dx-rms-norm"}.get(_preset(spec), "res-dx")
    if _preset(spec) is not None:
        return f"{_preset(spec)}-dx"
    if not spec.center and spec.reduce == "sum" and spec.scale == 1 and spec.placement != "outside":
        return "l2-weighted-dq" if setting.weight else "l2-dq"
    return f"norm-dx-{spec.placement}"


def _preset(spec):
    """"ln" or "rms" where the spec is LayerNorm or RMSNorm with any eps inside the root."""
    if spec.reduce != "mean" or spec.scale != 1 or spec.placement != "inside":
        return None
    return "ln" if spec.center else "rms"


def _forward(spec):
    if _preset(spec) is not None:
        return f"{_preset(spec)}-forward"
    return "l2-weighted" if not spec.center and spec.reduce == "sum" and spec.scale == 1 else "norm-forward"


def equation(key: str, output: str, spec: NormSpec, setting: Setting) -> str:
    """The label of the equation that a misconception violates in an output."""
    own = own_equation(output, spec, setting)
    if key in OPEN:
        return own
    named = find(key).equation
    found = named.get(output, own) if isinstance(named, dict) else named or own
    # The stream's equation is the one that holds for every norm; the preset's own is closer to the student's task.
    return own if found == "res-dx" and own.startswith("res-dx") else found


def words(key: str) -> tuple[str, str]:
    """Title and hint of a key."""
    if key in OPEN:
        return OPEN[key]
    entry = find(key)
    return entry.title, entry.hint


def named(key: str, found: str = "", right: tuple[str, str] = ("", ""), equation: str = "") -> Diagnosis:
    """The Diagnosis of a misconception that is seen otherwise than by its terms.

    Args:  key: of the catalogue; found: the formula that was implemented, where there is one; right: the right one in
           plain text and in LaTeX; equation: the label, where it is not the entry's own
    """
    entry = find(key)
    return Diagnosis(key, entry.title, entry.hint, equation or entry.equation, {}, found, "", *right, 0.0, 1.0)
