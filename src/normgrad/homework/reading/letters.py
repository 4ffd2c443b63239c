"""Answers that are expressions in letters: the difference from the right one, term by term."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Add, Expr, Indexed, KroneckerDelta, Sum, sqrt

from ...symbolic.normal_form import as_powers, nf
from ...symbolic.notation import index, tensor
from ...symbolic.symbols import M, N
from ...verify.text import tree_of, value_of
from ..named import Diagnosis, named
from .child import in_child
from .difference import Edit, Finding, differences, of_ratio, unsigned_ratio
from .terms import Term, terms_of


def expression(text: str, shapes: Mapping[str, tuple]) -> Expr:
    """The expression that SymPy prints as this text; nothing of it is run.

    Args:    shapes: {array: its dimensions}; other names are indices and dimensions
    Raises:  ValueError for what is not such an expression
    """
    names = {}
    for node in ast.walk(tree_of("text", text)):
        if isinstance(node, ast.Name):
            names[node.id] = index(node.id)
    names |= {name: tensor(name, *sizes) for name, sizes in shapes.items()}
    return value_of("text", text, names | {"M": M, "N": N}, FUNCTIONS, words=True)


def _sum(body, *limits):
    if any(low != 1 or high not in (M, N) for _, low, high in limits):
        raise ValueError("a sum that does not run from 1 to M or N")
    return Sum(body, *limits)


FUNCTIONS = {"KroneckerDelta": KroneckerDelta, "sqrt": sqrt, "Sum": _sum}


def normal(e: Expr) -> Expr:
    """One form for all ways to write an expression; NotImplementedError or ValueError where it has none."""
    return as_powers(nf(e))


def is_same(left: Expr, right: Expr) -> bool:
    """Whether two expressions are equal for all values of their letters."""
    return normal(left - right) == 0


def terms(e: Expr) -> list[Term]:
    """The terms of an expression, with their letters."""
    return terms_of(Add.make_args(normal(e)), letters=True)


def _lengths_exchanged(e):
    swapped = {M: N, N: M}

    def exchanged(part):
        limits = [(letter, low, swapped[high]) for letter, low, high in part.limits]
        return Sum(part.function, *limits)

    return e.replace(lambda part: isinstance(part, Sum), exchanged)


def _indices_exchanged(e):
    entries = [x for x in e.atoms(Indexed) if len(x.indices) == 2]
    return e.xreplace({x: x.base[x.indices[::-1]] for x in entries})


def _arrays_exchanged(e):
    entries = e.atoms(Indexed)
    bases = sorted({x.base for x in entries}, key=str)
    if len(bases) != 2:
        return e
    swapped = {bases[0]: bases[1], bases[1]: bases[0]}
    return e.xreplace({x: swapped[x.base][x.indices] for x in entries})


# What can happen to a whole answer: {key: what leads from the right answer to it}.
WHOLES: dict[str, Callable[[Expr], Expr]] = {
    "lengths-exchanged": _lengths_exchanged,
    "indices-exchanged": _indices_exchanged,
    "arguments-exchanged": _arrays_exchanged,
}


def edits(yours: Term, right: Term) -> list[Edit] | None:
    """What leads from the right term to yours; None where that is too much."""
    steps: list[Edit] = []
    ratio = unsigned_ratio(yours, right, steps)
    mine, own = _bases(yours.flat), _bases(right.flat)
    change = Counter(mine)
    change.subtract(own)
    for name, n in sorted(change.items()):
        if n:
            words = "is missing" if n < 0 else "is too many"
            steps.append(Edit(f"{name} {n:+}", f"{name} {words}"))
    if not any(change.values()):
        steps += _of_places(yours, right, mine)
    split = any(edit.key == "split" for edit in steps)
    if ratio != 1 and not (split and ratio in (1 / N, 1 / M)):  # each sum is a mean
        steps.append(of_ratio(ratio, yours, right))
    return steps if len(steps) <= 2 else None


def _bases(flat):
    """{array or delta: how often}, without indices."""
    counted: Counter = Counter()
    for name, n in flat.items():
        counted["delta" if name.startswith("delta(") else name.split("[")[0]] += n
    return counted


def _of_places(yours, right, mine):
    """The edits where all factors are there, and stand at other places."""
    count = len(yours.sums) - len(right.sums)
    if count < 0:
        return [Edit("entry for sum", "an entry stands where a sum belongs")]
    if count > 0 and right.sums and not right.outer.powers:
        return [Edit("split", "the sum of the products is a product of sums")]
    if count > 0:
        return [Edit("sum for entry", "a sum stands where an entry belongs")]
    moved = _bases(yours.outer.counted)
    moved.subtract(_bases(right.outer.counted))
    before = [name for name, n in moved.items() if n > 0]
    within = [name for name, n in moved.items() if n < 0]
    if before and within:
        words = f"{before[0]} and {within[0]} have changed places"
        return [Edit("exchanged", words)]
    if before or within:
        where = "before" if before else "within"
        words = f"{(before or within)[0]} stands {where} the sum"
        return [Edit(where, words)]
    if [total.axes for total in yours.sums] != [total.axes for total in right.sums]:
        return [Edit("axes", "the sum runs over other indices")]
    if yours.product == right.product:
        return []
    arrays = sorted(mine)
    if len(arrays) == 2 and _renamed(yours.flat, *arrays) == right.flat:
        return [Edit("exchanged", f"{arrays[0]} and {arrays[1]} have changed places")]
    return [Edit("letters", "it has another index")]


def _renamed(flat, first, second):
    """The factors with two arrays exchanged."""
    names = {first: second, second: first}
    changed = {}
    for name, n in flat.items():
        array, bracket, indices = name.partition("[")
        changed[names[array] + bracket + indices] = n
    return Counter(changed)


# {what was done to a term: key of the table of mistakes of homework 1}
BELIEFS = {
    "sign": "term-sign",
    "factor N": "mean-is-a-sum",
    "factor 1/M": "rows-averaged",
    "number": "one-shape",
    "delta -1": "delta-is-one",
    "delta +1": "delta-extra",
    "before": "pulled-out",
    "within": "term-replaced",
    "exchanged": "arrays-exchanged",
    "letters": "another-index",
    "axes": "rows-apart",
    "entry for sum": "entry-for-sum",
    "sum for entry": "sum-for-entry",
    "split": "sum-split",
    "missing": "term-missing",
}


def read(
    name: str, yours: Mapping[str, str], oracle, exchanged: bool = False
) -> list[Diagnosis]:
    """What a wrong answer shows; [] where its text is not read.

    Args:  name: of the result that is wrong; yours: {result: the text of the answer}; oracle: of the task
           exchanged: whether the function names its arguments in another order
    """
    return in_child(lambda: _read_answer(name, yours, oracle, exchanged))


def _read_answer(name, yours, oracle, exchanged):
    mine = {key: expression(text, oracle.shapes) for key, text in yours.items()}
    right = expression(oracle.texts[name], oracle.shapes)
    text = f"{name} = {yours[name]}"
    for key, change in WHOLES.items():
        is_asked = exchanged or key != "arguments-exchanged"
        if is_asked and is_same(mine[name], change(right)):
            return [named(key, text, homework="hw1")]
    for confusion in oracle.confusions:
        answers = {
            key: expression(t, oracle.shapes) for key, t in confusion.answers.items()
        }
        if name in answers and all(is_same(mine[key], answers[key]) for key in answers):
            return [confusion.diagnosis(text)]
    findings = differences(name, terms(mine[name]), terms(right), edits)
    findings = _without_unpaired(findings)
    return [_named(finding, name, yours[name]) for finding in findings]


def _without_unpaired(findings):
    """The findings without a term too many beside one that is missing, which may be one term with several edits.

    For `dw` whose sum over the rows ends at N: "a term is missing" is false of it.
    """
    added = [finding for finding in findings if finding.right is None]
    missing = [finding for finding in findings if finding.edit.key == "missing"]
    if not (added and missing):
        return findings
    others = [f for f in findings if f not in (*added, *missing)]
    several = replace(added[0], edit=Edit("several", "it is another one"))
    return others or [several]


def _named(finding: Finding, name, text) -> Diagnosis:
    done = finding.edit.key if finding.alone else "several"
    key = BELIEFS.get(done, "term-factor" if done.startswith("factor") else "")
    if done.startswith("added"):
        key = "term-extra"
    elif done[-2:] in ("-1", "+1") and not key:
        key = "factor-left-out" if done.endswith("-1") else "factor-extra"
    entry = named(key or "another-formula", homework="hw1")
    if finding.yours is not None and finding.right is not None and key:
        entry.title = f"In your term {finding.yours.unsigned}: {finding.edit.words}"
    entry.implemented, entry.difference = f"{name} = {text}", str(finding)
    return entry
