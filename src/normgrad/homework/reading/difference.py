"""How an equation differs from the right one: terms that are missing or added, and what was done to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations, product

from sympy import Expr, S, cancel

from ...symbolic.symbols import M, N
from .terms import Factors, Term, Total, abs_of, is_opaque

# what one more term costs that is missing or added, beside one edit of a term
UNPAIRED, MOST_EDITS, MOST_TERMS = 2, 3, 6
RATIOS = {
    N: ("N", "it is a sum, not a mean"),
    1 / N: ("1/N", "it is divided by N once more"),
    N / (N - 1): ("N/(N-1)", "it is divided by N - 1, not by N"),
    N / M: ("N/M", "it is divided by M, not by N"),
    M: ("M", "it is a sum over the rows, not a mean"),
    1 / M: ("1/M", "it is a mean over the rows, not a sum"),
}

POWERS_OF_RSTD = {
    -2: "rstd divides it",
    -1: "rstd is missing once",
    1: "rstd is there once too often",
    2: "rstd has +2 too many powers",
}


@dataclass(frozen=True)
class Edit:
    """What was done to a term. Args: key: for the table of beliefs, as "weight -1" or "factor N"; words: a clause"""

    key: str
    words: str


@dataclass(frozen=True)
class Finding:
    """One difference.

    Args:  slot: which term of the right equation, or which terms, as "c1 c2"; edit: what was done to it
           yours, right: both terms; alone: whether nothing else was done to this term
    """

    slot: str
    edit: Edit
    yours: Term | None = None
    right: Term | None = None
    alone: bool = True

    def __str__(self):
        if self.right is None:
            return f"the term {self.yours} does not belong there"
        term = self.right.unsigned
        if self.edit.key == "missing":
            return f"the term {term} is missing"
        if self.yours is None:
            return self.edit.words
        where = "in every term" if self.slot == "all" else f"in the term {term}"
        return f"{where}: {self.edit.words}"


def differences(
    output: str, yours: list[Term], right: list[Term], compare: Callable | None = None
) -> list[Finding]:
    """What leads from the right terms to yours, by the fewest edits.

    Args:     compare: takes your term and the right one, returns the edits, as `edits` does
    Returns:  [] where the two are equal, or have too many terms to be told apart
    """
    same = [term for term in right if term in yours]
    extra = [term for term in yours if term not in same]
    missing = [term for term in right if term not in same]
    if len(extra) > MOST_TERMS:
        return []
    findings = []
    paired = _paired(extra, missing, compare or edits)
    for (term, partner), steps in paired.items():
        for edit in steps:
            findings.append(Finding(slot(output, partner), edit, term, partner))
    taken = {term for pair in paired for term in pair}
    for term in extra:
        if term not in taken:
            added = Edit(f"added {term}", "added")
            findings.append(Finding(slot(output, term), added, yours=term))
    for term in missing:
        if term not in taken:
            gone = Edit("missing", "missing")
            findings.append(Finding(slot(output, term), gone, right=term))
    return _in_all(findings, right)


def slot(output: str, term: Term) -> str:
    """The place of a term in an equation: wdy, c1 or c2 in dx, else the output or what the term is made of."""
    flat = term.flat
    if flat["bias"]:
        return "bias"
    if flat["dresidual_out"]:
        return "dresidual_out"
    if output == "root":
        return "eps" if flat["eps"] else "squares"
    if output not in ("dx", "dresidual"):
        return output
    if not term.sums:
        return "wdy"
    return "c1" if flat["x_hat"] or flat["x"] or flat["residual_out"] else "c2"


def _paired(extra, missing, compare):
    """{(your term, right term): edits} of the cheapest way to pair them."""
    paired, least = {}, 0
    costs = {}
    for pair in product(extra, missing):
        steps = compare(*pair)
        if steps is not None and len(steps) < 2 * UNPAIRED:
            costs[pair] = steps
    partners = missing + [None] * (len(extra) - len(missing))
    for order in permutations(partners, len(extra)):
        pairs = [pair for pair in zip(extra, order, strict=True) if pair in costs]
        cost = sum(len(costs[pair]) - 2 * UNPAIRED for pair in pairs)
        if cost < least:
            paired, least = {pair: costs[pair] for pair in pairs}, cost
    return paired


def _in_all(findings, right):
    """The findings, an edit of several terms once; those of a term with one edit more are not alone."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.edit.key, []).append(finding)
    together, apart = [], []
    for group in grouped.values():
        slots = sorted({finding.slot for finding in group})
        terms = [finding.right for finding in group if finding.right is not None]
        if len(right) > 1 and len(terms) == len(right):
            together.append(replace(group[0], slot="all"))
        elif len(slots) > 1:
            apart += [replace(finding, slot=" ".join(slots)) for finding in group]
        else:
            apart += group
    if len(together) > 1:  # two edits of every term
        together = [replace(finding, alone=False) for finding in together]
    counts = Counter(finding.right for finding in apart if finding.right is not None)
    alone = [replace(f, alone=f.right is None or counts[f.right] == 1) for f in apart]
    return together + alone


def edits(yours: Term, right: Term) -> list[Edit] | None:
    """What leads from the right term to yours; None where that is too much, or they have no factor in common."""
    if is_opaque([yours]):
        return None
    steps: list[Edit] = []
    yours = _without_x(yours, right, steps)
    if yours.flat and not {*yours.flat} & {*right.flat}:
        return None
    ratio = unsigned_ratio(yours, right, steps)
    mine, own = yours.sums, right.sums
    change = Counter(yours.flat)
    change.subtract(right.flat)
    change = {name: n for name, n in change.items() if n}
    same = [total.axes for total in mine] == [total.axes for total in own]
    if not same:
        kind = _of_sums(mine, own)
        if kind is None:
            return None
        steps.append(kind)
        if ratio in (N, N / M, 1 / M, 1 / N, M, 1 / (M * N)):  # a mean of its own
            ratio = S.One
    elif not change and (yours.outer, mine) != (right.outer, own):
        steps += _moved(yours, right)
    for name in sorted(change):
        where = "" if not own or not same else _where(name, yours, right)
        steps.append(_of_power(name, yours.flat[name], right.flat[name], where))
    if ratio != 1:
        steps.append(of_ratio(ratio, yours, right))
    return steps if len(steps) <= MOST_EDITS else None


def unsigned_ratio(yours: Term, right: Term, steps: list[Edit]) -> Expr:
    """How many times the right coefficient yours is, without a sign; a wrong sign is one of the steps."""
    ratio = cancel(yours.coefficient / right.coefficient)
    if ratio.could_extract_minus_sign():
        steps.append(Edit("sign", "its sign is wrong"))
    return abs_of(ratio)


def _without_x(yours, right, steps):
    """Your term with x_hat for x, where the right one has x_hat in its place; what that means is noted."""
    x = "x" if yours.flat["x"] else "residual_out"
    count = yours.flat[x]
    if not count or right.flat[x] or not right.flat["x_hat"]:
        return yours
    short = yours.flat["rstd"] - right.flat["rstd"]
    if short == 0:
        steps.append(Edit("x for x_hat", f"{x} stands for x_hat"))
    else:
        steps.append(Edit("not centred", f"{x} is not centred"))
    outer = yours.outer.counted
    x_hats, sums = Counter(), []
    for total in yours.sums:
        body = total.body.counted
        body["x_hat"] += body.pop(x, 0)
        rows = "rows" in total.axes
        if rows and short:
            body["rstd"] -= total.body.counted[x]
        sums.append(Total(total.axes, Factors.of(body)))
        x_hats["rows"] += rows * total.body.counted[x]
    outer["x_hat"] += outer.pop(x, 0)
    if short:
        outer["rstd"] -= count - x_hats["rows"]
    return Term(yours.coefficient, Factors.of(outer), tuple(sorted(sums)))


def _of_sums(mine, own):
    """The edit where a sum runs over something else, or is not there."""
    if len(mine) == len(own) == 1:
        words = {"rows": "the rows", "columns": "the columns of a row"}
        axes = words.get(mine[0].axes, "the whole matrix")
        return Edit(f"axis {mine[0].axes}", f"the sum runs over {axes}")
    if len(own) == 1 and not mine:
        return Edit("not reduced", "there is no sum")
    if len(own) == 1 and len(mine) == 2:
        return Edit("split", "the sum of the products is a product of sums")
    return None


def _moved(yours, right):
    """The edits where a factor stands before a sum that belongs within it, or the other way round."""
    moved = yours.outer.counted
    moved.subtract(right.outer.counted)
    for name, n in sorted(moved.items()):
        if n:
            where = "before" if n > 0 else "within"
            yield Edit(f"{name} {where}", f"{name} stands {where} the sum")


def _where(name, yours, right):
    """Where a factor was changed, as words: before the sum or within it; "" for one that was in both places."""
    outside = yours.outer.counted[name] - right.outer.counted[name]
    if outside not in (0, yours.flat[name] - right.flat[name]):
        return ""
    return " before the sum" if outside else " within the sum"


def _of_power(name, yours, right, where):
    """The edit of a factor. Args: yours, right: the power that it has"""
    n = yours - right
    change, does = n, "is missing" if n < 0 else "is too many"
    if yours < 0 <= right:
        change, does = yours, "divides it"
    times = "" if abs(change) == 1 else f" {abs(change)} times"
    words = f"{name} {does}{times}{where}"
    if name == "rstd":  # x_hat brings one, too
        words = POWERS_OF_RSTD.get(n, words)
    return Edit(f"{name} {n:+}", words)


def of_ratio(ratio: Expr, yours: Term, right: Term) -> Edit:
    """The edit of a coefficient. Args: ratio: how many times the right one yours is"""
    number = abs_of(yours.coefficient)
    if number.is_number and number not in (S.One, S.Zero) and ratio.has(M, N):
        words = f"the number {number} stands for {abs_of(right.coefficient)}"
        return Edit("number", words)
    for value, (key, words) in RATIOS.items():
        if cancel(ratio / value) == 1:
            if "mean" in words and _means(yours) == _means(right):
                words = f"it is multiplied by {key}"
            return Edit(f"factor {key}", words)
    return Edit(f"factor {ratio}", f"it is multiplied by {abs_of(ratio)}")


def _means(term):
    return str(term).count("mean(")
