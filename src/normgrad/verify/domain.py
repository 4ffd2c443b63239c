"""Where a kernel's operations are defined: what its claim says, and what it may not need beyond its definitions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sympy import Expr, I, Indexed, Mul, Ne, Pow, S, expand, factor, sqrt
from sympy.core.relational import Relational

from ..symbolic.conditions import side_conditions
from ..symbolic.normal_form import Root, as_powers, nf
from ..symbolic.open_sets import is_zero_on_an_open_set
from ..symbolic.patience import OutOfPatience
from ..symbolic.proof import lettered
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import M, N
from .definitions import Norm
from .tables.elementary import DIVISOR, POSITIVE

# where a kernel stores something else: the definitions divide by it
BRANCH = "other than 0"


def conditions(
    needed: Iterable[tuple[Expr, str]], definitions: Norm
) -> tuple[list[str], dict[int, str]]:
    """(where the claim holds, {position: a condition that the definitions do not have}), in words.

    Args:  needed: (a number, what must hold of it) for each operation, in i and j

    For a kernel that divides by x. It stops a divisor that is 0 on an open set, as Max(x, 0), and a root of x.
    """
    where: dict[str, None] = {}
    refused: dict[int, str] = {}
    for position, (e, kind) in enumerate(needed):
        words = DIVISOR if kind == BRANCH else kind
        text = f"{lettered(e)[0]} is {words}"
        if kind in (DIVISOR, BRANCH):
            where[text] = None
        if kind != DIVISOR and not defined(e, kind, definitions):
            refused[position] = text
        elif kind == DIVISOR and _divides_too_little(e, definitions):
            refused[position] = f"{text}, which leaves out more than points"
    return list(where), refused


def _divides_too_little(e, definitions):
    """Whether a division by e leaves out more than single points, or all."""
    for condition in side_conditions([1 / e], definitions.defs):
        if condition is S.false or excludes_more_than_points(condition, definitions):
            return True
    return False


def excludes_more_than_points(condition: Relational, definitions: Norm) -> bool:
    """Whether a condition leaves out inputs for which the definitions have a value, and more than single points.

    For a program that divides by x and multiplies by it again. It stops `np.where(np.maximum(x, 0) > 0, y, 0 * x)`,
    whose two sides are equal for every x below 0, and a divisor N - 7.

    Args:  condition: of a program, such as e > 0, in the indices i and j
    """
    e = definitions.defs.unfold(condition.lhs)
    if not (isinstance(condition, Ne) or is_nonnegative(e)):
        excludes = not defined(e, POSITIVE, definitions)
    else:
        excludes = _is_0_at_a_size(e)
        excludes = excludes or e.has(Indexed) and is_zero_on_an_open_set(e)
    if excludes:
        lines = definitions.defs.reached(*definitions.outputs.values())
        bodies = [body for _, body in lines]
        return condition not in side_conditions(bodies, definitions.defs)
    return False


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


def defined(e: Expr, kind: str, definitions: Norm) -> bool:
    """Whether the definitions have no value either where a condition on e does not hold.

    For the root of the mean square. It stops a root, or a branch at 0, that the definitions do not have.
    """
    try:
        forms = [
            nf(definitions.defs.unfold(head)) for head in definitions.outputs.values()
        ]
        if kind != BRANCH:
            roots = set().union(*[form.atoms(Root) for form in forms])
            root = nf(definitions.defs.unfold(sqrt(e)))
            own = root.atoms(Root)
            return bool(own) and own <= roots and not root.has(I)
        factors = Mul.make_args(nf(definitions.defs.unfold(e)))
    except (NotImplementedError, OutOfPatience):
        return False
    roots = {f.as_base_exp()[0] for f in factors if f.atoms(Root)}
    plain = all(f.is_positive for f in factors if not f.atoms(Root))
    powers = set().union(*[form.atoms(Pow) for form in forms])
    divisors = {
        p.base for p in powers if p.exp.is_negative and isinstance(p.base, Root)
    }
    return bool(roots) and plain and roots <= divisors
