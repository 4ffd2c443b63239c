"""The reason of a step: the least that proves it, tried in order; and whether an earlier result occurs in it."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

from sympy import Expr, Indexed, Sum, Symbol, Tuple, evaluate

from ..symbolic.calculus import resolve
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import equal
from ..symbolic.notation import Local, Partial, name_of, rename_bound
from ..symbolic.patience import OutOfPatience, limited
from ..symbolic.render import name_latex
from ..symbolic.steps import (
    chain_rule,
    everywhere,
    has_bound_delta,
    normal,
    put_away,
    substituted,
)
from .claim import CannotJudge, Claim

# how long a reason is looked for
SECONDS = 10


def reason(left: Expr, right: Expr, claim: Claim, facts: tuple = ()) -> str:
    """Why left = right, a proved step, holds, in Markdown; empty for algebra.

    Args:    left, right: the sides as displayed
             facts: earlier results that are substituted first, each a list of equations with lhs and rhs
    Raises:  CannotJudge where a result does not occur in the left side
    """
    with evaluate(True):
        left, right = rename_bound(left), rename_bound(right)
        for chains in facts:
            left = _put_in(left, chains, claim.defs)
        words = None
        with suppress(OutOfPatience), limited(SECONDS):
            words = next(_reasons(left, right, claim), None)
    if words is None:
        differentiated = Tuple(left, right).has(Partial, Local)
        words = "differentiated" if differentiated else "definitions"
    if facts:
        return ", ".join(filter(None, ["substituted", words]))
    return words or _contracted(left, right)


def _put_in(e, chains, defs):
    """The expression with a result put in, which may stand in a derivative or in a definition that it holds.

    Raises:  CannotJudge where the result does not occur
    """
    with suppress(OutOfPatience), limited(SECONDS):
        for form in _opened(e, defs):
            changed = substituted(form, *chains)
            if not same(form, changed):
                return changed
    raise CannotJudge(
        "a result that it names does not occur in the line before, nor in what that holds"
    )


def _opened(e, defs):
    """The expression, multiplied out, and with ever more of its derivatives and of its definitions written out."""
    yield e
    yield normal(e)
    if e.has(Partial, Local):
        yield chain_rule(e, defs)
    names = [name_of(head) for head, _ in defs.reached(e)]
    for name in reversed(names):
        e = defs.unfold(e, [name])
        yield e
        if e.has(Partial, Local):
            yield chain_rule(e, defs)


def same(left: Expr, right: Expr, defs: Defs | None = None, names=()) -> bool:
    """Whether two expressions have one normal form, derivatives as they stand.

    Args:  names: those that are unfolded by the definitions; the others stay as they stand, too
    """
    sides = put_away(Tuple(left, right), (Partial, Local), {})
    return equal(*(defs.unfold(sides, names) if names else sides))


def taken(e: Expr, defs: Defs) -> Expr:
    """The expression with its derivatives taken through the definitions, which stay closed."""
    if any(node.args[0].has(Partial) for node in e.atoms(Partial)):
        return resolve(defs.unfold(e))
    while e.has(Partial):
        e = chain_rule(e, defs)

    def local(node):
        f, v = node.args[:2]
        return resolve(Partial(defs.opened(f), v))

    return everywhere(e, Local, local)


def _reasons(left, right, claim):
    """The reasons that suffice, from the least on."""
    ways = list(_ways(left, right, claim))
    yield from (words for words, *sides in ways if same(*sides))
    for words, *sides in ways:
        for names in _few_names(claim.defs, *sides):
            if same(*sides, claim.defs, names):
                yield ", ".join(filter(None, [words, _definitions(names)]))


def _ways(left, right, claim):
    """(words, left, right), with ever more of the derivatives taken."""
    yield "", left, right
    if not Tuple(left, right).has(Partial, Local):
        return
    defs = claim.defs
    words = "chain rule" if _through_names(left, defs) else "differentiated"
    after = chain_rule(left, defs)
    yield words, after, right
    yield words, after, chain_rule(right, defs)
    words = "chain rule" if right.has(Partial, Local) else "differentiated"
    yield words, taken(left, defs), taken(right, defs)


def _through_names(e, defs):
    """Whether a derivative in e goes through a defined quantity."""
    bodies = Tuple(*[defs.opened(node.args[0]) for node in e.atoms(Partial)])
    return any(part in defs for part in bodies.atoms(Indexed, Symbol))


def _few_names(defs, *sides):
    """One name or two of those that the sides reach."""
    names = [name_of(head) for head, _ in defs.reached(*sides)]
    for count in (1, 2):
        yield from combinations(names, count)


def _definitions(names):
    shown = [f"${name_latex(str(name))}$" for name in names]
    return f"definition{'s' if len(shown) > 1 else ''} of {' and '.join(shown)}"


def _contracted(left, right):
    left, right = (any(map(has_bound_delta, side.atoms(Sum))) for side in (left, right))
    return "delta contracted" if left and not right else ""
