"""What a program was read as, beside the definitions: both equations, and how the one differs from the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from sympy import (
    Abs,
    Add,
    Expr,
    Indexed,
    IndexedBase,
    Max,
    Mul,
    Pow,
    S,
    Sum,
    cancel,
    evaluate,
    expand,
    sqrt,
)

from ...symbolic.normal_form import as_powers, nf
from ...symbolic.notation import index, tensor
from ...symbolic.patience import OutOfPatience, limited
from ...symbolic.symbols import M, N, i, j
from ...verify.definitions import Norm
from ...verify.difference import MEAN, RSTD, X_HAT, P, X, field_terms
from ...verify.verdict import REFUTED, Verdict
from .difference import Edit, Finding, differences
from .terms import Term, terms_of, written

Q = tensor("q", M, N)
CANNOT = (NotImplementedError, OutOfPatience, TypeError, ValueError)
OF_THE_ROOT = {
    "variance": "it is the mean square, without the root",
    "no root": "the root is missing",
    "eps floor": "eps is a floor",
    "absolute": "sizes stand for squares, without a root",
    "eps outside": "eps stands outside of the root",
}
BY_COLUMNS = Edit("axis rows", "x is centred with the mean of its column (axis 0)")
UPSIDE_DOWN = Edit("rstd -2", "it is the denominator, not its reciprocal")
# {a power of rstd: the same in the terms under the root}
POWERS = {-1: "sqrt({})", -2: "{}", 2: "1 / ({})"}
# a guard for one column or one row
GUARDED = {Max(1, size - 1): size - 1 for size in (M, N)}
LONGEST = 300  # characters of an equation that is still read by a person


@dataclass
class Equation:
    """What a program stores for one output.

    Args:  output: its name; yours, right: the two sides as text, "" for one that is too long
           findings: what leads from the right one to yours
    """

    output: str
    yours: str
    right: str
    findings: list[Finding] = field(default_factory=list)


def equations_of(verdict: Verdict, definitions: Norm, seconds: float = 10) -> list:
    """An Equation for each output that was read and is not as defined; none that takes longer than the seconds."""
    equations, root = [], None
    for output, own in verdict.outputs.items():
        if own.kind != REFUTED or own.stored is None:
            continue
        try:
            with limited(seconds), evaluate(True):
                stored = own.stored.xreplace(GUARDED)
                equation, own_root = _equation(output, stored, definitions, root)
        except CANNOT:
            continue
        if equation.yours and (equation.findings or not root):
            equations.append(equation)
        root = own_root or root
    return _apart_from_rstd(equations, definitions)


def _apart_from_rstd(equations, definitions):
    """The equations; that of y says x_hat for rstd where what is returned as rstd is the denominator."""
    outputs = {equation.output: equation for equation in equations}
    y, rstd = outputs.get("y"), outputs.get("rstd")
    if y and rstd and any(finding.edit == UPSIDE_DOWN for finding in rstd.findings):
        product, _, root = y.yours.partition(", rstd = 1 / ")
        if root and "rstd" not in product:
            y.yours = f"{product}, x_hat = {_row(definitions).label} / {root}"
    return equations


def _equation(output, stored, definitions, root):
    """(Equation, what stands for rstd[i] where it is another one).

    Args:  root: the same of an output before
    """
    head = definitions.outputs[output]
    if output in ("residual_out", "mean"):
        yours, right = (terms_in(definitions.defs.unfold(e)) for e in (stored, head))
        return _of_terms(output, yours, right), None
    right = terms_of(field_terms(head, definitions))
    parts = field_terms(stored, definitions, root)
    equation, own = None, None
    if output == "rstd":
        own = _in_the_row(Add(*field_terms(stored, definitions)), definitions)
        if own is not None:
            under = _right_root(definitions)
            text, findings = _of_rstd(own, under)
            equation = Equation(output, text, _rstd(under), findings)
    elif output == "y":
        equation, own = _of_y(parts, right, definitions)
    if equation is None:
        x = _summed(definitions).label
        yours = _in_fewest_terms(parts, definitions)
        equation = _of_terms(output, yours, right)
        if output == "rstd":
            _open_root(equation, yours, _right_root(definitions))
        elif _is_centred_by_columns(output, parts, definitions):
            x_hat = f"x_hat = rstd * ({x} - mean({x}, axis=0))"
            equation.yours = f"{equation.right}, {x_hat}"
            equation.findings = [Finding(output, BY_COLUMNS, right=right[0])]
        elif any(map(_mixes, yours)):
            equation.yours = ""
        return equation, None
    centred = definitions.defs.body(X_HAT[i, j]) / RSTD[i]
    own = with_entries(
        own, Q, lambda row, column: centred.xreplace({i: row, j: column})
    )
    return equation, own


def _of_y(parts, right, definitions):
    """(Equation of y and of what it has for rstd, the same as an expression); None twice where it has rstd."""
    over, row = _over_root(parts, definitions), _row(definitions)
    if over is None:
        return None, None
    (root, y), under, equations = over, _right_root(definitions), []
    for factor in _factors(root, y, under):
        own = root * sqrt(factor)
        text, findings = _of_rstd(own, under)
        e = y.xreplace({RSTD[i]: RSTD[i] / sqrt(factor)})
        e = with_entries(e, row, lambda *at: X_HAT[at] / RSTD[at[0]])
        yours = _in_fewest_terms(Add.make_args(_expanded(e)), definitions)
        equation = _of_terms("y", yours, right)
        if equation.yours:
            equation.yours += f", rstd = {text}"
        equation.right += f", rstd = {_rstd(under)}"
        equation.findings = findings + equation.findings
        equations.append((equation, own))
    return min(equations, key=lambda pair: len(pair[0].findings))


def _is_centred_by_columns(output, parts, definitions):
    """Whether the terms are right but for the mean of a column where that of a row belongs."""
    head, x, row = definitions.outputs[output], _summed(definitions), index("p")
    right = Add(*field_terms(head, definitions))
    if _row(definitions) is not Q or not right.has(X_HAT):
        return False

    def by_columns(*at):
        column = Sum(x[row, at[1]], (row, 1, M)) / M
        return (x[at] - column) * RSTD[at[0]]

    changed = field_terms(with_entries(right, X_HAT, by_columns), definitions)
    return terms_of(changed) == terms_of(parts)


def _mixes(term):
    """Whether a sum over the rows has a factor of the row before the sum, whose index has the same letter."""
    return ", over i" in str(term)


def _open_root(equation, yours, under):
    """Writes what rstd stands for into an equation of rstd itself, which is no power of another rstd.

    Args:  yours: the terms of the equation; under: the terms under the right root
    """
    equation.right = _rstd(under)
    powers = [dict(term.outer.powers) for term in yours if term.coefficient == 1]
    for power, text in POWERS.items():
        if powers == [{"rstd": power}] and not yours[0].sums:
            equation.yours = text.format(written(under))


def _rstd(under):
    """The right rstd as text. Args: under: the terms under the right root"""
    return f"1 / sqrt({written(under)})"


def _of_terms(output, yours, right):
    findings = differences(output, yours, right)
    text, needed = written(yours), written(right)
    return Equation(output, text if len(text) <= LONGEST else "", needed, findings)


def with_entries(e: Expr, base: IndexedBase, change: Callable[..., Expr]) -> Expr:
    """The expression with another one for each entry of a tensor. Args: change: of the entry's indices"""
    entries = [part for part in e.atoms(Indexed) if part.base == base]
    return e.xreplace({part: change(*part.indices) for part in entries})


def _in_fewest_terms(parts, definitions):
    """The terms, with x where that takes fewer of them than x_hat: before sums, within, or both."""
    e, x = Add(*parts), _summed(definitions)
    forms = [terms_of(Add.make_args(e))]
    if e.has(MEAN):
        places = ((True, True), (True, False), (False, True))
        forms += [terms_in(_opened(e, x, *place)) for place in places]
    return min(forms, key=len)


def _opened(e, x, outside, within):
    """The expression with (x - mean) * rstd for x_hat outside of sums, within them, or both."""

    def with_x(part):
        return with_entries(
            part, X_HAT, lambda *at: (x[at] - MEAN[at[0]]) * RSTD[at[0]]
        )

    names = {part: tensor(f"t{k}") for k, part in enumerate(e.atoms(Sum))}
    e = e.xreplace(names)
    e = with_x(e) if outside else e
    sums = {name: with_x(part) if within else part for part, name in names.items()}
    return e.xreplace(sums)


def _summed(definitions):
    """The rows that are normalized: residual_out, or x where there is no residual."""
    return X if definitions.defs.body(P[i, j]) == X[i, j] else P


def _row(definitions):
    """The row that is scaled by rstd: q = x - mean, or x where the norm does not centre."""
    body = definitions.defs.body(X_HAT[i, j])
    return Q if body.has(MEAN) else _summed(definitions)


def _over_root(parts, definitions):
    """(What stands for rstd[i] in the terms of y, but for a number; y with rstd for it), in the row's own entries.

    None where it is rstd, or where there are several.
    """
    row, roots, terms = _row(definitions), set(), []
    for part in parts:
        factors = Mul.make_args(part)
        plain = Mul(*[factor for factor in factors if not _is_root(factor)])
        plain = with_entries(plain, X_HAT, lambda *at: row[at] * RSTD[at[0]])
        plain, scale = _expanded(plain).as_independent(RSTD[i], as_Add=False)
        root = _in_the_row(Mul(scale, *filter(_is_root, factors)), definitions)
        if root is None or plain.has(RSTD):
            return None
        if root != 1:
            roots.add(root)
            plain = plain * RSTD[i]
        terms.append(plain)
    return (roots.pop(), Add(*terms)) if len(roots) == 1 else None


def _is_root(factor):
    """Whether a factor of a term is a root, a quotient or another function."""
    base, power = factor.as_base_exp()
    if factor.free_symbols <= {M, N}:
        return False
    return _opaque(factor) or isinstance(base, Sum) and power < 0


def _factors(root, y, right):
    """By what the square of a root may be divided: so that one of the terms under it is that of the right one.

    Where it has no such terms, so that a number of y stands in the root.

    Args:  y: with rstd for the root; right: the terms under the right root
    """
    square = _expanded(1 / root**2)
    if _opaque(square):
        return [S.One, *[term.coefficient**2 for term in terms_in(y)]]
    factors = []
    for term, own in product(terms_in(square), right):
        if term.product == own.product or term.sums == own.sums != ():
            factors.append(cancel(term.coefficient / own.coefficient))
    return [*factors, S.One]


def _in_the_row(e, definitions):
    """A function of a row in the row's own entries; None where it is none."""
    row, positive = _row(definitions), {Abs(RSTD[i]): RSTD[i]}
    e = with_entries(e, X_HAT, lambda *at: row[at] * RSTD[at[0]])
    for _ in range(2):
        e = as_powers(nf(e.xreplace(positive))).xreplace(positive)
    if e.has(RSTD):  # within a quotient it cancels only upside down
        e = 1 / _expanded(1 / e).xreplace(positive)
    return None if e.has(RSTD) else e


def _right_root(definitions):
    """The terms under the right root."""
    row, centred = _row(definitions), S(int(_row(definitions) is Q))
    square = 1 / definitions.defs.body(RSTD[i]) ** 2
    return terms_in(with_entries(square, P, lambda *at: row[at] + centred * MEAN[i]))


def terms_in(e: Expr) -> list[Term]:
    """The terms of an expression that is multiplied out."""
    return terms_of(Add.make_args(_expanded(e)))


def _expanded(e):
    """The expression multiplied out, its roots and quotients as powers."""
    return expand(as_powers(nf(e)))


def _opaque(e):
    """Whether an expression has a root, a quotient of a sum, or another function in it."""
    return e.has(Abs, Max) or any(
        isinstance(part.base, Add) or not part.exp.is_Integer
        for part in e.atoms(Pow)
        if not part.free_symbols <= {M, N}
    )


def of_root(e: Expr, right: list[Term]) -> tuple[str, list[Finding]]:
    """(your rstd as text, findings) of what stands for rstd; right: the terms under the right root."""
    if not _opaque(e):
        return _text(e), [_of_kind("variance", right[0])]
    below = _expanded(1 / e)
    if not _opaque(below):
        return f"1 / ({_text(below)})", [_of_kind("no root", right[0])]
    square = _expanded(1 / e**2)
    if not _opaque(square):
        terms = terms_in(square)
        return f"1 / sqrt({written(terms)})", differences("root", terms, right)
    return _of_sum(below, right)


def _of_rstd(e, right):
    """As of_root; where e is the reciprocal of what can be read, this is what is there."""
    text, findings = of_root(e, right)
    if findings or not _opaque(e):
        return text, findings
    below, more = of_root(1 / e, right)
    if not more or not below.startswith("1 / "):
        return text, findings
    above = below.removeprefix("1 / ")
    if above.startswith("("):
        above = above[1:-1]
    return above, [Finding("rstd", UPSIDE_DOWN, right=right[0]), *more]


def _of_sum(below, right):
    """(text, findings) of 1 / below, a sum of something with a root and of eps."""
    parts = Add.make_args(below)
    inside = Add(*[part for part in parts if part.has(Indexed)])
    text = f"1 / ({_text(below)})"
    if below.has(Max):
        return text, [_of_kind("eps floor", right[-1])]
    if inside.has(Abs):
        return text, [_of_kind("absolute", right[-1])]
    square = nf(inside**2)
    if _opaque(as_powers(square)) or inside == below:
        return text, []
    text = f"1 / (sqrt({_text(square)}) + {_text(below - inside)})"
    squares = [term for term in right if term.sums]
    more = differences("root", terms_in(square), squares)
    return text, [_of_kind("eps outside", right[0]), *more]


def _of_kind(key, right):
    """What was done to the root as a whole."""
    return Finding("root", Edit(key, OF_THE_ROOT[key]), right=right)


def _text(e):
    return written(terms_in(e))


def sums_squares_of_x(stored) -> bool:
    """Whether the squares of x itself, or of x + residual, are summed up."""
    for total in stored.atoms(Sum):
        base, power = total.function.as_base_exp()
        names = {str(part.base) for part in base.atoms(Indexed)}
        own = names and names <= {"x", "residual"} and not base.has(Sum)
        if own and power == 2:
            return True
    return False
