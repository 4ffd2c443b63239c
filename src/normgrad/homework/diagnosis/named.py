"""What a wrong result shows: a mistake of the table, beside the equation and the formulas of the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...mistakes.table import find


@dataclass(frozen=True)
class Diagnosis:
    """One mistake that a wrong result shows, or that none is known.

    The level "hint" is hint; "equation" adds equation and title; "coefficients" adds the rest.

    Args:  misconception: a key of the table or of a stage, "unknown", or "hidden-by-rounding"; title; hint
           equation: the label of the registered equation that is violated
           implemented, right: the two formulas, or what is there and what is needed; where: what their names stand for
           coefficients: {term: its coefficient in what was implemented}, the right terms included
           residual: |got - implemented| / |got|; confidence: from 0 to 1, how far the noise leaves the next
           explanation behind
    """

    misconception: str
    title: str
    hint: str
    equation: str = ""
    implemented: str = ""
    right: str = ""
    where: tuple[str, ...] = ()
    coefficients: dict[str, float] = field(default_factory=dict)
    residual: float = 0.0
    confidence: float = 1.0


def own_equation(output: str, setting) -> str:
    """The label of the equation that says what an output must be."""
    preset = "ln" if setting.spec.center else "rms"
    if output in ("dx", "dresidual"):
        stream = "res-dx-layer-norm" if setting.spec.center else "res-dx-rms-norm"
        return stream if setting.stream else f"{preset}-dx"
    return {"y": f"{preset}-forward", "dw": f"{preset}-dw", "db": "pg-db"}[output]


def equation(key: str, output: str, setting) -> str:
    """The label of the equation that a mistake violates in an output."""
    own = own_equation(output, setting)
    named = find(key).equation
    found = named.get(output, own) if isinstance(named, dict) else named or own
    # The stream's equation is the one that holds for every norm; the preset's own is closer to the student's task.
    return own if found == "res-dx" and own.startswith("res-dx") else found


def named(
    key: str, found="", right="", equation="", homework="", title=""
) -> Diagnosis:
    """The Diagnosis of a mistake that is seen otherwise than by its terms.

    Args:  key: of the table; found: the formula that was implemented, where there is one; right: the right one
           equation: the label, where it is not the mistake's own; homework: whose table it is looked up in first
           title: where it names an input
    """
    entry = find(key, homework)
    found, right = found or entry.found, right or entry.right
    return Diagnosis(
        key, title or entry.title, entry.hint, equation or entry.equation, found, right
    )
