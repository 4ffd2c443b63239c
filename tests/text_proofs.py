"""Kernels with a changed text, held to the definitions in the variants that show every line."""

import sys
from functools import cache

from normgrad.symbolic import NotProved, prove
from normgrad.symbolic.kernel_proofs import Case
from normgrad.symbolic.text_reader import Unread

# Every flag in both states, each piece of a denominator, and heads.
FEW = (
    Case(True, True, "inside", dresidual=True),
    Case(False, False, "outside"),
    Case(False, True, "zero"),
    Case(True, False, "clamp", bias=False),
    Case(False, True, "clamped", residual=False, bias=False),
    Case(True, True, "inside", residual=False, weight=False, dx=False),
    Case(True, True, "inside", dresidual=True, heads="weights"),
)


@cache
def right(claims, case):
    """(definitions, what the package's kernels store) of a case."""
    return case.definitions(), {
        where: stored.as_dummy() for where, (stored, _) in claims(case)[0].items()
    }


def refusal(claims, package, few=FEW):
    """The error that a package of kernels ends in; None where what they store is what is defined.

    Args:  claims: of `kernel_proofs` or `loop_proofs`; package: a module, which is unloaded afterwards
           few: the variants
    """
    try:
        for case in few:
            defs, expected = right(claims, case)
            for where, (stored, name) in claims(case, package.__name__)[0].items():
                if stored.as_dummy() != expected[where]:
                    prove(stored, name, defs, where=", ".join(where), seconds=20)
    except (NotProved, Unread) as error:
        return error
    finally:
        for module in [
            module for module in sys.modules if module.startswith(package.__name__)
        ]:
            del sys.modules[module]
    return None
