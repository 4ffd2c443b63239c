"""What a wrong result shows: a mistake of the table, with the equation that was read and the right one."""

from __future__ import annotations

from dataclasses import dataclass

from ..mistakes.table import find


@dataclass
class Diagnosis:
    """One mistake that a wrong result shows, or that none is known.

    The level "hint" is hint and the student's own equation; "equation" adds title and label; "solution" the rest.

    Args:  misconception: a key of the table or of a stage, or "unknown"; title; hint
           equation: the label of the registered equation that is violated
           implemented, right: the two formulas, or what is there and what is needed
           difference: what leads from the right one to the other, term by term
           measured: whether a run has shown it; of what is only read from a text, no points depend
    """

    misconception: str
    title: str
    hint: str
    equation: str = ""
    implemented: str = ""
    right: str = ""
    difference: str = ""
    measured: bool = True


def named(
    key: str, found="", right="", equation="", homework="", title=""
) -> Diagnosis:
    """The Diagnosis of a mistake.

    Args:  key: of the table; found: the formula that was implemented, where there is one; right: the right one
           equation: the label, where it is not the mistake's own; homework: whose table it is looked up in first
           title: where it names an input
    """
    entry = find(key, homework)
    found, right = found or entry.found, right or entry.right
    return Diagnosis(
        key, title or entry.title, entry.hint, equation or entry.equation, found, right
    )
