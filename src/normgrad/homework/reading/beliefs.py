"""What was believed, by the term of the right equation and what was done to it; said where one edit explains it."""

from __future__ import annotations

from ...mistakes.table import MISTAKES, UNKNOWN
from ..named import Diagnosis, named
from .difference import Finding
from .equations import Equation

# {what was done to which terms of the right equation: key of the table}, "any" for every term
KEYS = {
    row.strip(): key for key, own in MISTAKES.items() for row in own.edits.split("|")
}
RAW = "Sum("
MOST_SAID = 4  # findings that a report lists
MOST_CLAUSES = 2  # terms of an equation that a title speaks of
UNNAMED = "The equation of your text is not the right one. Compare it, term by term, with the one that you derived."


def belief(finding: Finding) -> str:
    """The key of what was believed, "" where nothing is known."""
    if not finding.alone:
        return ""
    done = finding.edit.key
    rows = [f"{finding.slot}; {done}", f"any; {done}"]
    if done.startswith("factor "):
        rows.append(f"{finding.slot}; factor")
    return next((KEYS[row] for row in rows if row in KEYS), "")


def diagnoses(equation: Equation, label: str = "") -> list[Diagnosis]:
    """What an equation shows: a Diagnosis for each belief, or one without a name.

    Args:  label: of the registered equation that the right side is
    """
    head = equation.output
    yours, right = f"{head} = {equation.yours}", f"{head} = {equation.right}"
    words = "; ".join(dict.fromkeys(map(str, equation.findings[:MOST_SAID])))
    shown = []
    for key in _keys(equation.findings):
        diagnosis = named(key, yours, right)
        diagnosis.equation = diagnosis.equation or label
        diagnosis.difference = words
        shown.append(diagnosis)
    if shown:
        return shown
    title = f"The equation of {head} is another one"
    if RAW in equation.yours:  # roots of sums: nobody derives it in such terms
        yours = words = ""
    elif clauses := _clauses(equation):
        title = f"{head}: {'; '.join(clauses)}"
    return [Diagnosis(UNKNOWN, title, UNNAMED, label, yours, right, difference=words)]


def _clauses(equation):
    """What was done to each of your terms, at most MOST_CLAUSES of them; [] for an equation that differs by more."""
    edited: dict[str, list[str]] = {}
    clauses = []
    for finding in equation.findings:
        if finding.right is None:
            clauses.append(f"your term {finding.yours} does not belong there")
        elif finding.edit.key == "missing":
            clauses.append("a term is missing")
        elif finding.yours is None:
            edited.setdefault("rstd", []).append(finding.edit.words)
        else:
            where = f"your term {finding.yours.unsigned}"
            if finding.slot == "all":
                where = "every term"
            edited.setdefault(where, []).append(finding.edit.words)
    for where, edits in edited.items():
        clauses.append(f"in {where}, {' and '.join(dict.fromkeys(edits))}")
    return clauses if len(clauses) <= MOST_CLAUSES else []


def _keys(findings):
    """What was believed, [] where an edit is left that nobody is known to make: it may belong to the others."""
    rows = sorted(f"{finding.slot}; {finding.edit.key}" for finding in findings)
    if len(rows) > 1 and " & ".join(rows) in KEYS:
        return [KEYS[" & ".join(rows)]]
    sums = [f.yours.sums for f in findings if f.slot == "dresidual_out" and f.yours]
    if any(sums) and len(sums) == len(findings):
        return ["dresidual-through-norm"]
    keys = [belief(finding) for finding in findings]
    return [] if "" in keys else list(dict.fromkeys(keys))
