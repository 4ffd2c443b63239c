"""What was believed, by the term of the right equation and what was done to it; said where one edit explains it."""

from __future__ import annotations

from ...mistakes.table import UNKNOWN
from ..named import Diagnosis, named
from .difference import Finding
from .equations import Equation

# {key of the table of mistakes: (terms; what was done to them)}, "any" for every term; what is added is the term itself
BELIEFS = {
    "c1-dropped": ("c1; missing",),
    "c2-dropped": ("c2; missing",),
    "statistics-constant": ("c1 c2; missing",),
    "zero": ("all; missing", "dw; missing", "db; missing"),
    "projection-sign": ("c1; sign",),
    "c2-sign": ("c2; sign",),
    "negated": ("all; sign", "dw; sign", "db; sign", "y; sign"),
    "one-shape": ("any; number",),
    "bessel": ("any; factor N/(N-1)",),
    "sum-for-mean-c1": ("c1; factor N",),
    "sum-for-mean-c2": ("c2; factor N",),
    "reduce-exchanged": ("squares; factor N",),
    "eps-on-sum": ("eps; factor 1/N",),
    "divided-twice": ("c1; factor 1/N", "c2; factor 1/N", "c1 c2; factor 1/N"),
    "factor-two": ("c1; factor 2", "c1; factor 1/2"),
    "factor-n": ("all; factor N", "all; factor 1/N", "wdy; factor N", "wdy; factor 1/N"),
    "divided-by-rows": ("any; factor N/M",),
    "rows-averaged": ("all; factor 1/M", "dw; factor 1/M", "db; factor 1/M"),
    "residual-left-out": ("mean; added -mean(residual)", "squares; added -2 * mean(q * residual)",
                          "squares; added mean(residual**2)",
                          "squares; added -sum(residual) * sum(residual) / N**2"),
    "c2-added": ("c2; added -rstd * mean(wdy)",),
    "weight-missing": ("all; weight -1", "y; weight -1"),
    "weight-in-some-terms": ("any; weight -1",),
    "weight-twice": ("all; weight +1", "y; weight +1"),
    "weight-after": ("c1; weight before", "c1 c2; weight before"),
    "weight-divided": ("all; weight -2", "y; weight -2", "dw; weight -1"),
    "weight-in-dw": ("dw; weight +1", "dw; weight +2"),
    "weight-in-db": ("db; weight +1", "db; weight +2"),
    "weight-in-statistics": ("squares; weight +2",),
    "weight-plus-one": ("y; added x_hat",),
    "ones-for-dy": ("all; dy -1", "dw; dy -1", "db; dy -1"),
    "rstd-missing": ("all; rstd -1", "dw; rstd -1", "y; rstd -1"),
    "rstd-twice": ("all; rstd +1", "dw; rstd +1", "y; rstd +1"),
    "rstd-inverted": ("all; rstd -2", "dw; rstd -2", "y; rstd -2"),
    "rstd-in-db": ("db; rstd +1",),
    "projection-power": ("c1; rstd -1", "c1; rstd +1", "c1; rstd -2", "c1; rstd +2"),
    "rstd-in-some-terms": ("wdy; rstd -1", "wdy; rstd +1", "c2; rstd -1", "c2; rstd +1", "c2 wdy; rstd -1",
                           "c1 c2; rstd -1", "c1 wdy; rstd -1", "c2 wdy; rstd +1", "c1 c2; rstd +1", "c1 wdy; rstd +1"),
    "dw-is-db": ("dw; x_hat -1",),
    "db-is-dw": ("db; x_hat +1",),
    "x_hat-missing": ("c1; x_hat -1",),
    "x-for-x_hat": ("any; x for x_hat",),
    "centring-missing": ("any; not centred",),
    "centring-added": ("y; added -weight * mean(x_hat)",),
    "variance-for-mean-square": ("squares; added -sum(x) * sum(x) / N**2",),
    "variance-uncentred": ("squares; added mean**2",),
    "not-reduced": ("c1; not reduced", "c2; not reduced", "c1 c2; not reduced"),
    "product-of-sums": ("dw; split", "c1; split"),
    "mean-squared": ("squares; split",),
    "matrix-summed": ("c1; axis rows columns", "c2; axis rows columns"),
    "wrong-axis": ("any; axis rows", "any; axis columns", "any; axis rows columns"),
    "bias-missing": ("bias; missing", "bias; sign", "bias; factor 2"),
    "bias-weighted": ("bias; weight +1",),
    "eps-in-variance": ("eps; added eps",),
    "eps-missing": ("eps; missing",),
    "eps-placement": ("root; eps outside", "root; eps floor"),
    "root-missing": ("root; no root",),
    "variance-for-rstd": ("root; variance",),
    "root-for-reciprocal": ("rstd; rstd -2",),
    "absolute-values": ("root; absolute",),
    "dresidual-forgotten": ("dresidual_out; missing",),
    "dresidual-sign": ("dresidual_out; sign",),
    "dresidual-twice": ("dresidual_out; factor 2",),
    "dresidual-halved": ("dresidual_out; factor 1/2",),
    "dresidual-scaled": ("dresidual_out; rstd +1", "dresidual_out; weight +1"),
    "coefficient-u": ("wdy; factor",),
    "coefficient-c1": ("c1; factor",),
    "coefficient-c2": ("c2; factor",),
    "coefficient-g": ("dresidual_out; factor",),
    "coefficient-bias": ("bias; factor",),
    "constant-factor": ("all; factor", "dw; factor", "db; factor", "y; factor"),
}  # fmt: skip
KEYS = {row: key for key, rows in BELIEFS.items() for row in rows}
# {several findings at once: their key}
TOGETHER = {
    ("c1; x_hat -1", "c2; x_hat +1"): "c1-for-c2",
    ("dw; added -sum(mean * dy, axis=0)", "dw; not centred"): "mean-not-scaled",
    (
        "c1; added rstd**2 * mean * mean(x * wdy)",
        "c1; added rstd**2 * x * mean * mean(wdy)",
        "c1; not centred",
        "c2; added -rstd * mean**2 * mean(wdy)",
    ): "mean-not-scaled",
}
RAW = "Sum("
MOST_SAID = 4  # findings that a report lists
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
    return [Diagnosis(UNKNOWN, title, UNNAMED, label, yours, right, difference=words)]


def _keys(findings):
    """What was believed, [] where an edit is left that nobody is known to make: it may belong to the others."""
    rows = tuple(sorted(f"{finding.slot}; {finding.edit.key}" for finding in findings))
    if rows in TOGETHER:
        return [TOGETHER[rows]]
    sums = [f.yours.sums for f in findings if f.slot == "dresidual_out" and f.yours]
    if any(sums) and len(sums) == len(findings):
        return ["dresidual-through-norm"]
    keys = [belief(finding) for finding in findings]
    return [] if "" in keys else list(dict.fromkeys(keys))
