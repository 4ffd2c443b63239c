"""Where a kernel's operations are defined: what its claim says, and what it may not need beyond its definitions."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr, I, Mul, Pow, sqrt

from ..symbolic.normal_form import Root, nf
from ..symbolic.open_sets import is_zero_on_an_open_set
from ..symbolic.patience import OutOfPatience
from ..symbolic.proof import lettered
from .definitions import Norm
from .tables.elementary import DIVISOR

# where a kernel stores something else: the definitions divide by it
BRANCH = "other than 0"


def conditions(
    needed: Iterable[tuple[Expr, str]], definitions: Norm
) -> tuple[list[str], dict[int, str]]:
    """(where the claim holds, {position: a condition that the definitions do not have}), in words.

    Args:  needed: (a number, what must hold of it) for each operation, in i and j

    For a kernel that divides by x. It stops a divisor that is 0 in more than points, and a root of what is negative.
    """
    where: dict[str, None] = {}
    unfold = definitions.defs.unfold
    refused: dict[int, str] = {}
    for position, (e, kind) in enumerate(needed):
        words = DIVISOR if kind == BRANCH else kind
        text = f"{lettered(e)[0]} is {words}"
        if kind in (DIVISOR, BRANCH):
            where[text] = None
        if kind != DIVISOR and not defined(e, kind, definitions):
            refused[position] = text
        elif kind == DIVISOR and is_zero_on_an_open_set(unfold(e)):
            refused[position] = f"{text}, which leaves out more than points"
    return list(where), refused


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
