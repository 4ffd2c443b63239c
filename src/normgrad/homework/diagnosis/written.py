"""Formulas as text, in the book's names: wdy, x_hat, the means of c1 and c2 written out, rstd; and what stands behind
the names."""

from __future__ import annotations

import re
from itertools import groupby

from .formulas import (
    ALONE,
    BOTH,
    EPS_IS,
    PATTERNS,
    VARIANTS,
    Part,
    Setting,
    Term,
    value,
)

TEXT = {"g": "dresidual_out", "dy+g": "(dy + dresidual_out)", "1/weight": "1 / weight", "1+weight": "(1 + weight)",
        "mean wdy": "mean(wdy)", "sum wdy": "sum(wdy)", "mean dy": "mean(dy, axis=0)", "sum dy": "sum(dy, axis=0)",
        "one": "1"}  # fmt: skip


def decimals(size: float, digits: int = 4) -> str:
    """A number with so many digits."""
    return f"{size:.{digits}g}"


def _number(size, uncertainty, setting) -> str:
    """A coefficient's size as the first pattern that agrees with it, or in decimals where none does; "" for 1."""
    fits = (key for key in PATTERNS if abs(size - value(key, setting)) <= uncertainty)
    key = next(fits, None)
    text = decimals(size) if key is None else PATTERNS[key][1]
    return "" if text == "1" else text


def _factors(names, setting) -> str:
    """A product as it is read: weight * dy is wdy, an absent weight is not written; "" for none."""
    names = [name for name in names if name != "one"]
    if not setting.residual:
        names = ["x" if name == "p" else name for name in names]
    if not setting.weight:
        names = [name for name in names if name not in ("weight", "1/weight")]
    elif {"dy", "weight"} <= set(names):
        for name in ("dy", "weight"):
            names.remove(name)
        names.append("wdy")
    order = ("rstd", "weight", "1/weight", "bias")
    names = [name for name in order for each in names if each == name] + [
        each for each in names if each not in order
    ]
    return " * ".join(TEXT.get(name, name) for name in names)


def _reduced(term, setting, operation, divisor) -> str:
    """The reduction of a term."""
    inner = _factors(term.inner, setting) or "1"
    alone = " * " not in inner
    inner = inner.removeprefix("(").removesuffix(")") if alone else inner
    if term.reduce in ("first", "last"):
        return (
            f"{inner if alone else f'({inner})'}[{0 if term.reduce == 'first' else -1}]"
        )
    if term.reduce == "total":
        return f"sum({inner}, axis=None)"
    return f"{operation}({inner}{'' if term.axis == -1 else f', axis={term.axis}'}){divisor}"


def _counted(term, size, setting, uncertainty):
    """(operation, divisor, what remains of the coefficient): -N * mean is -sum, N / (N - 1) of it a Bessel sum."""
    if term.reduce not in ("mean", "sum"):
        return term.reduce, "", size
    length = {
        0: setting.rows,
        -1: setting.columns,
        None: setting.rows * setting.columns,
    }[term.axis]
    if length == 1:
        return term.reduce, "", size
    divisor = size if term.reduce == "mean" else size * length
    letter = {0: "M", -1: "N"}.get(term.axis, "(M * N)")
    known = ((length, "sum", ""), (1, "mean", ""), (length / (length - 1), "sum", f" / ({letter} - 1)"),
             (1 / length, "sum", f" / {letter}**2"),
             (length / setting.rows, "sum", " / M"))  # fmt: skip
    tolerance = uncertainty * (1 if term.reduce == "mean" else length)
    for number, operation, text in known:
        if abs(divisor - number) <= tolerance:
            return operation, text, 1.0
    return term.reduce, "", size


def _times(*pieces) -> str:
    return " * ".join(piece for piece in pieces if piece)


def _body(part, setting, uncertainty):
    """(sign, number, product) of a part without its leading rstd and weight."""
    term = part.term
    operation, divisor, size = _counted(
        term, abs(part.coefficient), setting, uncertainty
    )
    reduced = (
        _reduced(term, setting, operation, divisor) if term.reduce is not None else ""
    )
    product = _times(_factors(term.outer, setting), reduced)
    return (
        "-" if part.coefficient < 0 else "+",
        _number(size, uncertainty, setting),
        product,
    )


def _lead(term, setting) -> str:
    power = {0: "", 1: "rstd", -1: "D"}.get(term.power, f"rstd**{term.power}")
    return _times(*["weight"] * (term.post if setting.weight else 0), power)


def _joined(summands) -> str:
    """The sum of (sign, text) pairs."""
    first = ("-" if summands[0][0] == "-" else "") + summands[0][1]
    return first + "".join(f" {sign} {text}" for sign, text in summands[1:])


def side(parts, setting: Setting, uncertainty: float) -> str:
    """The right-hand side: neighbours with the same leading factors share a bracket."""
    summands = []
    for lead, group in groupby(parts, lambda part: _lead(part.term, setting)):
        bodies = [_body(part, setting, uncertainty) for part in group]
        if len(bodies) == 1 or not lead:
            summands += [
                (sign, _times(number, lead, product) or "1")
                for sign, number, product in bodies
            ]
        else:
            common = (
                bodies[0][1] if len({number for _, number, _ in bodies}) == 1 else ""
            )
            inside = [
                (sign, _times("" if common else number, of) or "1")
                for sign, number, of in bodies
            ]
            summands.append(("+", f"{_times(common, lead)} * ({_joined(inside)})"))
    return _joined(summands) if summands else "0"


def formula(
    output: str, parts, setting: Setting, uncertainty: float, missing=(), remark=""
) -> str:
    """A whole formula, with a note on changed statistics and the parts that the right one has besides.

    Args:  missing: those parts; remark: what stands where no statistics are changed
    """
    text = f"{output} = {side(parts, setting, uncertainty)}"
    if remark := remark_of(parts, setting, remark):
        remark = remark if setting.residual else re.sub(r"\bp\b", "x", remark)
        text += f"   [where {remark}]"
    if missing:
        bodies = [_body(part, setting, uncertainty) for part in missing]
        left = ", ".join(
            f"{sign} {_times(number, product) or '1'}"
            for sign, number, product in bodies
        )
        text += f"   [missing: {left}]"
    return text


def remark_of(parts, setting: Setting, remark="") -> str:
    """What is said of the statistics that some parts have changed; without such parts, the remark itself."""
    stats = next(
        (part.term.stats for part in parts if part.term.stats != "right"), None
    )
    if stats is None:
        return remark
    base, center = stats.removesuffix(ALONE), setting.spec.center
    if base.startswith(EPS_IS):
        eps = float(base.removeprefix(EPS_IS))
        text = f"eps = {decimals(eps, 4 if decimals(eps) != decimals(setting.spec.eps) else 12)}"
    else:
        said = {"centring": "q = p" if center else "q = p - mean(p)"}
        text = ", ".join(
            said.get(each) or VARIANTS[each][0] for each in base.split(BOTH)
        )
    return f"{text} in the leading factor only" if stats.endswith(ALONE) else text


def should_be(remark: str, setting: Setting) -> str:
    """The right formula for what a remark such as "rstd = 1 / s" speaks of; "" where there is none."""
    row, center = ("q", True) if setting.spec.center else ("p", False)
    return {
        "rstd": "rstd = 1 / sqrt(s**2 + eps)",
        "s**2": f"s**2 = mean({row}**2)",
        "q": "q = p - mean(p)" if center else "q = p",
        "p": "p = x + residual",
    }.get(remark.split(" ")[0], "")


def name(term: Term, setting: Setting) -> str:
    """A term on its own, without sign and coefficient: the key of Diagnosis.coefficients."""
    return side([Part("", term, 1.0)], setting, 0.0)


def definitions(formulas: str, setting: Setting) -> tuple[str, ...]:
    """The names that formulas use and that are no argument of a task, each with what it stands for."""
    row, center = "p" if setting.residual else "x", setting.spec.center
    known = {
        "x_hat": "x_hat = q * rstd" if center else f"x_hat = {row} * rstd",
        "wdy": "wdy = dy * weight",
        "D": "D = 1 / rstd",
        "s": f"s**2 = mean({'q' if center else row}**2)",
        "q": f"q = {row} - mean({row})" if center else f"q = {row}",
        "p": "p = x + residual",
    }
    found, text = [], formulas
    for name, words in known.items():
        if (
            re.search(rf"\b{name}\b", text)
            and words not in text
            and not (name == "s" and "s**2 = " in text)
        ):
            found.append(words)
            text += " " + words.partition(" = ")[2]
    return tuple(found)
