"""Formulas as text and as LaTeX, in the book's names: wdy, x_hat, c1's and c2's means written out, rstd."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from .dictionary import Term
from .legend import without_stream
from .notes import note
from .numbers import written
from .recipes import Part
from .setting import Setting

ROWWISE = {"rstd", "kappa", "D", "1/kappa", "mean wdy", "sum wdy"}
COLUMNWISE = {"weight", "bias", "1/weight", "1+weight", "mean dy", "sum dy"}
TEXT = {"g": "dresidual_out", "dy+g": "(dy + dresidual_out)", "1/kappa": "1 / kappa", "1/weight": "1 / weight"}
TEXT |= {"mean wdy": "mean(wdy)", "sum wdy": "sum(wdy)", "mean dy": "mean(dy, axis=0)", "sum dy": "sum(dy, axis=0)"}
TEXT |= {"one": "1", "1+weight": "(1 + weight)"}
LATEX = {"x_hat": r"\hat{x}", "weight": "w", "bias": "b", "scale": "c", "g": r"\mathrm{dresidual\_out}", "p": "p"}
LATEX |= {"kappa": r"\kappa", "D": "D", "q": "q", "y": "y", "x": "x", "one": "1"}


@dataclass(frozen=True)
class Written:
    """One formula in both forms."""

    text: str
    latex: str


def _merged(names, setting):
    """Factors as they are read: scale * weight * dy is wdy, a scale of 1 and an absent weight are not written."""
    names = list(names)
    if setting.spec.scale == 1:
        names = [name for name in names if name != "scale"]
    if not setting.residual:
        names = ["x" if name == "p" else name for name in names]
    if not setting.weight:
        names = [name for name in names if name not in ("weight", "1/weight")]
    whole = {"dy", "weight"} | ({"scale"} if setting.spec.scale != 1 else set())
    if setting.weight and whole <= set(names):
        for name in whole:
            names.remove(name)
        names.append("wdy")
    order = ("scale", "rstd", "weight", "1/weight", "bias", "1/kappa", "kappa")
    first = [name for name in order for each in names if each == name]
    return first + [name for name in names if name not in order]


def _latex_name(name, column, row="i"):
    if name in ("mean wdy", "sum wdy"):
        fraction = r"\frac{1}{N} " if name == "mean wdy" else ""
        return rf"{fraction}\sum_{{l=1}}^{{N}} \mathrm{{wdy}}_{{{row}l}}"
    if name in ("mean dy", "sum dy"):
        fraction = r"\frac{1}{M} " if name == "mean dy" else ""
        return rf"{fraction}\sum_{{m=1}}^{{M}} \mathrm{{dy}}_{{m{column}}}"
    if name == "dy+g":
        return rf"(\mathrm{{dy}}_{{{row}{column}}} + \mathrm{{dresidual\_out}}_{{{row}{column}}})"
    if name in ("1/kappa", "1/weight"):
        return rf"\frac{{1}}{{{_latex_name(name[2:], column, row)}}}"
    symbol = LATEX.get(name, rf"\mathrm{{{name}}}")
    if name in ("scale", "one"):
        return symbol
    where = row if name in ROWWISE else column if name in COLUMNWISE else row + column
    return f"{symbol}_{{{where}}}"


def _factors(names, setting, column="j", row="i"):
    """(text, LaTeX) of a product; empty for none."""
    names = [name for name in _merged(names, setting) if name != "one"]
    return " * ".join(TEXT.get(n, n) for n in names), r" \, ".join(_latex_name(n, column, row) for n in names)


def _reduced(term, setting, count):
    """(text, LaTeX) of the reduction of a term; count: the pattern that turns it into "sum / (N - 1)" and the like."""
    inner = _factors(term.inner, setting)[0] or "1"
    alone = len(_merged(term.inner, setting)) == 1
    inner = inner.removeprefix("(").removesuffix(")") if alone else inner
    if term.reduce in ("first", "last"):
        row = "1" if term.reduce == "first" else "M"
        inside = _factors(term.inner, setting, row=row)
        return f"{inner if alone else f'({inner})'}[{0 if row == '1' else -1}]", inside[1] or "1"
    operation, text_divisor, latex_divisor = count
    axis = "" if term.axis == -1 else f", axis={term.axis}"
    column, row = ("j", "m") if term.axis == 0 else ("k", "i") if term.axis == -1 else ("k", "m")
    sums = r"\sum_{m=1}^{M} " if term.axis != -1 else ""
    sums += r"\sum_{k=1}^{N} " if term.axis != 0 else ""
    latex = _factors(term.inner, setting, column, row)[1] or "1"
    if operation == "mean" and not latex_divisor:
        latex_divisor = {0: "M", -1: "N", None: "M N"}[term.axis]
    fraction = rf"\frac{{1}}{{{latex_divisor}}} " if latex_divisor else ""
    return f"{operation}({inner}{axis}){text_divisor}", fraction + sums + latex


def _counted(term, size, setting, uncertainty):
    """((operation, divisors), what remains of the coefficient): -N * mean is -sum, N / (N - 1) of it a Bessel sum."""
    plain = (term.reduce, "", "")
    if term.reduce not in ("mean", "sum"):
        return plain, size
    length = {0: setting.rows, -1: setting.columns, None: setting.rows * setting.columns}[term.axis]
    if length == 1:
        return plain, size
    divisor = size if term.reduce == "mean" else size * length
    known = (
        (length, ("sum", "", "")),
        (1, ("mean", "", "")),
        (length / (length - 1), ("sum", " / (%s - 1)", "%s - 1")),
        (1 / length, ("sum", " / %s**2", "%s^{2}")),
    )
    letter = {0: "M", -1: "N"}.get(term.axis, "(M * N)")
    tolerance = uncertainty * (1 if term.reduce == "mean" else length)
    for number, (operation, text, latex) in known:
        if abs(divisor - number) <= tolerance:
            return (operation, text and text % letter, latex and latex % letter), 1.0
    return plain, size


def _body(part, setting, uncertainty):
    """(sign, number, product) of a part without its leading rstd and weight, the last two as (text, LaTeX) pairs."""
    term, sign = part.term, "-" if part.coefficient < 0 else "+"
    count, size = _counted(term, abs(part.coefficient), setting, uncertainty)
    # A kappa that is 1 everywhere is not written.
    trivial = not setting.kappa and not term.stats.endswith("its kappa")
    outer = [name for name in term.outer if not (trivial and name in ("kappa", "1/kappa"))]
    pieces = [_factors(outer, setting)]
    if term.reduce is not None:
        pieces.append(_reduced(term, setting, count))
    number = written(size, uncertainty, setting.columns, setting.rows)
    number = ("", "") if number.text == "1" else (number.text, number.latex)
    return sign, number, _times(*pieces)


def _times(*pieces):
    """The product of (text, LaTeX) pairs, the empty ones left out."""
    return " * ".join(text for text, _ in pieces if text), r" \, ".join(latex for _, latex in pieces if latex)


def _whole(body, lead=("", "")):
    """(sign, text, LaTeX) of a part with its number and its leading factors."""
    sign, number, product = body
    text, latex = _times(number, lead, product)
    return sign, text or "1", latex or "1"


def _lead(term, setting):
    power = {0: "", 1: "rstd", -1: "D"}.get(term.power, f"rstd**{term.power}")
    latex = {0: "", 1: r"\mathrm{rstd}_{i}", -1: "D_{i}"}.get(term.power, rf"\mathrm{{rstd}}_{{i}}^{{{term.power}}}")
    weight = term.post if setting.weight else 0
    return _times(*[("weight", "w_{j}")] * weight, (power, latex))


def _joined(bodies):
    """(text, LaTeX) of a sum of (sign, text, LaTeX)."""
    sums = []
    for which in (1, 2):
        first = ("-" if bodies[0][0] == "-" else "") + bodies[0][which]
        sums.append(first + "".join(f" {body[0]} {body[which]}" for body in bodies[1:]))
    return tuple(sums)


def side(parts, setting: Setting, uncertainty: float) -> Written:
    """The right-hand side: neighbours with the same leading factors share a bracket."""
    summands = []
    for lead, group in groupby(parts, lambda part: _lead(part.term, setting)):
        bodies = [_body(part, setting, uncertainty) for part in group]
        if len(bodies) == 1 or not lead[0]:
            summands += [_whole(body, lead) for body in bodies]
        else:
            same = len({number for _, number, _ in bodies}) == 1
            common = bodies[0][1] if same else ("", "")
            text, latex = _joined([_whole((sign, ("", "") if same else number, of)) for sign, number, of in bodies])
            front = _times(common, lead)
            summands.append(("+", f"{front[0]} * ({text})", rf"{front[1]} \left({latex}\right)"))
    return Written(*_joined(summands)) if summands else Written("0", "0")


_LEFT = {"dx": r"\mathrm{dx}_{ij}", "dresidual": r"\mathrm{dresidual}_{ij}", "dw": r"\mathrm{dw}_{j}"}
_LEFT |= {"db": r"\mathrm{db}_{j}", "y": "y_{ij}"}


def formula(output: str, parts, setting: Setting, uncertainty: float, missing=(), remark=None) -> Written:
    """A whole formula, with a note on changed statistics and the parts that the right one has besides.

    Args:  missing: those parts; remark: (text, LaTeX) that stands where no statistics are changed
    """
    written_side = side(parts, setting, uncertainty)
    text, latex = f"{output} = {written_side.text}", f"{_LEFT[output]} = {written_side.latex}"
    remark = without_stream(remark_of(parts, setting, remark), setting)
    if remark is not None:
        plain, tex = remark
        text, latex = f"{text}   [where {plain}]", rf"{latex} \quad [\text{{where }} {tex}]"
    if missing:
        bodies = [_whole(_body(part, setting, uncertainty)) for part in missing]
        text += f"   [missing: {', '.join(f'{sign} {body}' for sign, body, _ in bodies)}]"
        latex += rf" \quad [\text{{missing: }} {', '.join(f'{sign} {tex}' for sign, _, tex in bodies)}]"
    return Written(text, latex)


def remark_of(parts, setting: Setting, remark=None):
    """(text, LaTeX) about the statistics that some parts have changed; without such parts, the remark itself."""
    stats = next((part.term.stats for part in parts if part.term.stats != "right"), "right")
    return remark if stats == "right" else note(stats, setting.spec)


def name(term: Term, setting: Setting) -> str:
    """A term on its own, without sign and coefficient: the key of Diagnosis.coefficients."""
    return side([Part("", term, 1.0)], setting, 0.0).text
