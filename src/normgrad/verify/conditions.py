"""What a program's operations need of numbers: what its claim says of that, and what no proof may rest on.

A condition that leaves out single points, as x[i, j] is not 0, stands in the claim. One that leaves out more is met by
definitions that have no value there either, or nothing is said of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

from sympy import (
    Eq,
    Expr,
    I,
    Indexed,
    Mul,
    Ne,
    Pow,
    S,
    Symbol,
    default_sort_key,
    expand,
    factor,
    sqrt,
)
from sympy.core.relational import Relational

from ..symbolic.calculus import index_ranges
from ..symbolic.conditions import side_conditions
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import Root, as_powers, nf
from ..symbolic.notation import name_of
from ..symbolic.open_sets import is_zero_on_an_open_set
from ..symbolic.patience import OutOfPatience
from ..symbolic.proof import lettered
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import M, N
from .arrays import NotRead, State, Wrong
from .definitions import LETTERS, ONEHOT, Norm
from .verdict import IF_ZERO, PROVED, REFUTED, Claim, Verdict, Where, whole

# of an operation; of two values that are compared; of a number that is compared with 0, where a program stores else,
# or that is taken for 0
NEEDED, COMPARED, BRANCH, TAKEN = "needed", "compared", "branch", "taken"
# at which a condition is looked into: most that are met by no input are so at 1 or 2
SMALL = (1, 2, 3)


@dataclass(frozen=True)
class Condition:
    """What must hold of a number for an operation to be defined, or a comparison to be decided.

    Args:  relation: e != 0, e > 0, e >= 0 or e = 0, in the indices i and j; kind: NEEDED, COMPARED, BRANCH or TAKEN
           line: of the source, where the operation stands
    """

    relation: Relational
    kind: str = NEEDED
    line: int | None = field(default=None, compare=False)

    def text(self, defs: Defs) -> str:
        """The condition in words, with the sizes at which no input may meet it."""
        number = lettered(self.relation.lhs)[0]
        if self.kind == TAKEN:
            return f"{number} is 0 in every row"
        text = lettered(self.relation)[0]
        if isinstance(self.relation, Ne):
            text = f"{number} is not 0"
        e = defs.unfold(self.relation.lhs)
        places = []
        if e.has(Indexed) and not is_zero_on_an_open_set(e):
            places = _sizes_left_out(e)
        if places:
            text += f", which may be so for no input at {' or '.join(places)}"
        return text

    def refusal(self, definitions: Norm, maxima: Iterable[Indexed]) -> str:
        """Why nothing may rest on it, in words; "" where a proof may.

        Args:  maxima: entries of what is the largest of a row

        For a program that divides, takes a root or compares. It stops `np.where(np.maximum(x, 0) > 0, y, 0 * x)`, whose
        two sides are equal for every x below 0. Of a BRANCH the single point counts, too: it stops
        `tl.where(s == 0, 1.0, x / s)` where the definitions have 0.
        """
        if self.kind == TAKEN:
            return ""
        e = definitions.defs.unfold(self.relation.lhs)
        heads = (*maxima, *definitions.largest)
        if _may_be_0_in_every_row(e, heads):
            # what is subtracted from a whole row cancels in its variance
            with suppress(NotImplementedError, OutOfPatience):
                e = as_powers(nf(e))
        if _may_be_0_in_every_row(e, heads):
            return "and every row may have an entry for which it is not so"
        try:
            if self._leaves_out_more_than_points(e, definitions):
                reason = "which leaves out more than points"
            elif self.kind != BRANCH or _divided_by(e, definitions):
                return ""
            else:
                return "by which the definitions do not divide"
        except (NotImplementedError, OutOfPatience):
            reason = "which may leave out more than points"
        lines = definitions.defs.reached(*definitions.outputs.values())
        bodies = [body for _, body in lines]
        if self.relation in side_conditions(bodies, definitions.defs):
            return ""
        return reason

    def is_implied(self, definitions: Norm, roots: set[Expr]) -> bool:
        """Whether it holds wherever the definitions have a value, so that a claim need not say it.

        Args:  roots: of what is positive in the definitions

        For the root of mean(x**2) - mean**2 + eps, which the definitions take of the mean of (x - mean)**2 plus eps.
        It keeps "is not 0" in the claim of a layer that divides by the root of a sum of squares alone.
        """
        if self.kind == TAKEN:
            return False
        for term in Mul.make_args(definitions.defs.unfold(self.relation.lhs)):
            base = term.base if isinstance(term, Pow) else term
            for part in Mul.make_args(nf(sqrt(base))):
                if not is_positive(part) and part not in roots:
                    return False
        return True

    def _leaves_out_more_than_points(self, e, definitions):
        if not (isinstance(self.relation, Ne) or is_nonnegative(e)):
            return not _root_taken(e, definitions)
        return _is_0_at_a_size(e) or e.has(Indexed) and is_zero_on_an_open_set(e)


def concluded(
    verdicts: Mapping[str, Verdict],
    claim: Claim,
    assumptions: list[str],
    conditions: Sequence[Condition],
    definitions: Norm,
    rests_on: Mapping[str, int],
    maxima: Iterable[Indexed],
) -> Verdict:
    """The verdict on a program: an output is not read that rests on a condition which leaves out more than points.

    Args:  verdicts: {output: Verdict}; claim, assumptions: of the program; conditions: of its operations
           rests_on: {output: how many of the conditions it rests on}; all where that is not said
           maxima: entries of what is the largest of a row
    """
    results, refusals = dict(verdicts), {}
    for name, verdict in verdicts.items():
        decisive = conditions[: rests_on.get(name)]
        if verdict.kind == REFUTED:
            # a comparison of equal values decides neither way, so that nothing is refuted by it either
            decisive = [part for part in decisive if part.kind == COMPARED]
        elif verdict.kind not in (PROVED, IF_ZERO):
            continue
        for condition in decisive:
            if condition not in refusals:
                refusals[condition] = condition.refusal(definitions, maxima)
            if refusals[condition]:
                text = f"{condition.text(definitions.defs)}, {refusals[condition]}"
                results[name] = verdict.unread(
                    f"it is the definition only where {text}"
                )
                break
        if results[name].kind == REFUTED and verdict.case:
            needed = conditions[: rests_on.get(name)]
            results[name] = _within(verdict, needed, definitions)
    needed = [*conditions, *map(Condition, definitions.needs)]
    roots = _positive_roots(definitions) if needed else set()
    where = tuple(
        Where(condition.text(definitions.defs), condition.line)
        for condition in needed
        if not condition.is_implied(definitions, roots)
    )
    return whole(results, replace(claim, where=where), assumptions)


def _within(verdict, conditions, definitions):
    """A refutation with a counterexample at which all that its operations need holds; without one it is none.

    For a sum of sqrt(x), which differs from another where x >= 0. It stops abs(x) beside np.sqrt(x)**2, which differ at
    x = -1 alone, where one of them has no value, and what differs for rows other than those of zeros alone.
    """
    needed = [*conditions, *map(Condition, definitions.needs)]
    verdict.case.relations = [condition.relation for condition in needed]
    if not needed:
        return verdict
    at = verdict.case.counterexample()
    if at is None:
        needed.sort(key=lambda condition: condition.kind != TAKEN)
        words = ", ".join(condition.text(definitions.defs) for condition in needed)
        return verdict.unread(
            f"it is refuted, and nowhere is seen to differ where {words}"
        )
    return replace(verdict, counterexample=at)


def conditions_of(state: State, defs: Defs) -> list[Condition]:
    """What a trace rests on.

    Raises:  Wrong where that holds of no numbers, NotRead for sqrt(-x**2), which SymPy makes an imaginary number
    """
    relations = side_conditions(dict.fromkeys(map(readable, state.domain)), defs)
    if S.false in relations:
        raise Wrong(
            "it has a value for no input: it divides by 0, or takes a root of what is negative"
        )
    conditions = list(map(Condition, relations))
    conditions += state.needed
    for a, b in state.kinks:
        e = readable(a - b)
        if Ne(e, 0) is not S.true:
            conditions.append(Condition(Ne(e, 0, evaluate=False), COMPARED))
    for a in state.zeros:
        conditions.append(Condition(Eq(readable(a), 0, evaluate=False), TAKEN))
    return list(dict.fromkeys(conditions))


def readable(e: Expr) -> Expr:
    """An expression of the trace in the indices i and j, where it has one index over the rows, one over the columns."""
    turns = [symbol for symbol in e.free_symbols if symbol.name == "turn"]
    names = {}
    for n, turn in enumerate(sorted(turns, key=default_sort_key)):
        names[turn] = Symbol(f"turn_{n}", integer=True, positive=True)
    e = e.xreplace(names)
    ranges = {k: size for k, size in index_ranges(e).items() if k.name != "r"}
    names = {}
    for size, index in LETTERS.items():
        letters = [letter for letter, last in ranges.items() if last == size]
        if len(letters) == 1:
            names[letters[0]] = index
    e = e.xreplace(names)
    if e.has(I):
        raise NotRead(f"a root of what is negative, or 0: {lettered(e)[0]}")
    return e


def _may_be_0_in_every_row(e, maxima):
    """Whether every row may have an entry for which e is 0.

    For x - max(x), which a proof takes for a difference of any two numbers. It stops np.where(x == max(x), 0, x), in
    which the largest entry is lost, and what is divided by x - max(x), or by an entry that is 1 at the target alone.
    """
    special = {ONEHOT, *map(name_of, maxima)}
    return not special.isdisjoint(map(name_of, e.atoms(Indexed)))


def _forms(definitions):
    """The outputs of definitions in normal form."""
    heads = definitions.outputs.values()
    return [nf(definitions.defs.unfold(head)) for head in heads]


def _positive_roots(definitions):
    """The roots of what is positive in the definitions, in normal form."""
    roots = set()
    for head in definitions.outputs.values():
        for part in definitions.defs.unfold(head).atoms(Pow):
            if not part.exp.is_Integer and is_positive(part.base):
                roots |= nf(sqrt(part.base)).atoms(Root)
    return roots


def _root_taken(e, definitions):
    """Whether the definitions take the root of an expression, too.

    For the root of the mean square. It stops a root that the definitions do not have, as np.sqrt(x)**2.
    """
    root = nf(sqrt(e))
    roots = root.atoms(Root)
    taken = set().union(*[form.atoms(Root) for form in _forms(definitions)])
    return bool(roots) and roots <= taken and not root.has(I)


def _divided_by(e, definitions):
    """Whether the definitions divide by an expression, too, which is a root times what is positive.

    For a kernel that stores 0 where a row is 0. It stops a branch at 0 where the definitions have a value.
    """
    factors = Mul.make_args(nf(e))
    roots = {f.as_base_exp()[0] for f in factors if f.atoms(Root)}
    plain = all(f.is_positive for f in factors if not f.atoms(Root))
    powers = set().union(*[form.atoms(Pow) for form in _forms(definitions)])
    divisors = {
        p.base for p in powers if p.exp.is_negative and isinstance(p.base, Root)
    }
    return bool(roots) and plain and roots <= divisors


def _is_0_at_a_size(e):
    """Whether e may be 0 for all inputs at a size above 1, as N*x[i, j] - 7*x[i, j] is at N = 7."""
    with suppress(NotImplementedError, OutOfPatience):
        e = as_powers(nf(e))  # the sums of N*sum(x) - 7*sum(x) are one
    for part in Mul.make_args(factor(e)):
        if part.has(Indexed):
            continue
        larger = part.xreplace({size: size + 1 for size in (M, N)})
        factors = Mul.make_args(factor(expand(larger)))
        if not all(is_positive(f) or is_positive(-f) for f in factors):
            return True
    return False


def _sizes_left_out(e):
    """The sizes up to 3, in words, at which an expression may be 0 for more than single points."""
    counted = e.xreplace(dict.fromkeys(e.atoms(Indexed), S.One)).free_symbols
    own = [size for size in (M, N) if size in counted]
    counts = product(SMALL, repeat=len(own))
    sizes = [tuple(zip(own, at, strict=True)) for at in counts]
    empty = [at for at in sizes if is_zero_on_an_open_set(e, dict(at))]
    places = {}
    for at in empty:
        for pair in at:
            # one size alone, where any other one beside it is left out too
            if all(other in empty for other in sizes if pair in other):
                at = (pair,)
                break
        places[", ".join(f"{size} = {count}" for size, count in at)] = None
    return list(places)
