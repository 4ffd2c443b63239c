"""The proof kernel with one rule broken: what the tests and the second witness must notice.

Each entry edits the kernel's own source, as the mutants of `mutants` edit a backend's. The second witness is left as
it is, so that it can judge what the broken kernel accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sympy import Expr, S, sqrt

from normgrad.mistakes.edits import edited
from normgrad.mistakes.mutants import PACKAGE, module
from normgrad.symbolic import Partial, delta, tensor, total
from normgrad.symbolic.symbols import N, j, k

KERNEL = ("calculus", "normal_form", "proof")


@dataclass(frozen=True)
class BrokenRule:
    """A rule of the kernel and the edits that break it.

    Args:  rule: its name, R1 to R8; belief: the mistake, as a reader might believe it
           edits: for each module of the kernel, the texts to replace and what by
           lie: a false claim that the broken kernel proves; None where it proves less but nothing false
           key: of the mistake in mistakes/table.py, where a homework can show it
    """

    rule: str
    belief: str
    edits: dict[str, tuple[tuple[str, str], ...]] = field(repr=False)
    lie: tuple[Expr, Expr] | None = field(default=None, repr=False)
    key: str = ""


x, w, a, A = tensor("x", N), tensor("w", N), tensor("a"), tensor("A", N, N)


def _all(f):
    return total(N, f)


_NORM = sqrt(_all(lambda r: x[r] ** 2))
_HELD = """
        held = {part: Symbol(f"held_{place}") for place, part in enumerate(sorted(e.atoms(Sum), key=str))}
        slope = e.xreplace(held).diff(v).xreplace({name: part for part, name in held.items()})
"""

BROKEN = (
    BrokenRule(
        "R1",
        "one letter may serve two sums",
        {
            "normal_form": (
                ("for _ in range(int(exponent)):", "for _ in range(1):"),
                (
                    "body.append(base.function.xreplace(",
                    "body.append((base.function**exponent).xreplace(",
                ),
            )
        },
        (
            _all(lambda s: _all(lambda r: A[s, r]) ** 2),
            _all(lambda s: _all(lambda r: A[s, r] ** 2)),
        ),
    ),
    BrokenRule(
        "R2",
        "a sum is a constant when one differentiates",
        {"calculus": (("\n        slope = e.diff(v)\n", _HELD),)},
        (Partial(x[k] / _NORM, x[j]), delta(k, j) / _NORM),
        "c1-dropped",
    ),
    BrokenRule(
        "R3",
        "a product of brackets may stay as it is",
        {"normal_form": (("    e = multiply_out(e)\n", ""),)},
    ),
    BrokenRule(
        "R4",
        "a delta drops out of its sum, and nothing is renamed",
        {
            "normal_form": (
                (
                    "_nf(Mul(*outside) * Mul(*inside).xreplace({r: other}))",
                    "Mul(*outside) * (_canonical_sum(inside, limit) if inside else 1)",
                ),
            )
        },
        (_all(lambda r: delta(k, r) * x[r]), _all(lambda r: x[r])),
        "delta-is-one",
    ),
    BrokenRule(
        "R5",
        "a sum of ones is 1",
        {"normal_form": (("if inside else last - first + 1", "if inside else 1"),)},
        (_all(lambda r: S.One), S.One),
    ),
    BrokenRule(
        "R6",
        "the sum of a product is the product of the sums",
        {
            "normal_form": (
                (
                    "_canonical_sum(inside, limit) if",
                    "Mul(*[_canonical_sum([f], limit) for f in inside]) if",
                ),
            )
        },
        (_all(lambda r: w[r] * x[r]), _all(lambda r: w[r]) * _all(lambda r: x[r])),
        "sum-split",
    ),
    BrokenRule(
        "R7",
        "the root of a square is the number, whatever its sign",
        {
            "normal_form": (
                ("(inner.is_Symbol and inner.is_positive)", "inner.is_Symbol"),
            )
        },
        (sqrt(_all(lambda r: (a * x[r]) ** 2)), a * _NORM),
    ),
    BrokenRule(
        "R8",
        "the square of a root is left as it is",
        {"normal_form": (("        if not squared:", "        if True:"),)},
    ),
)


def prover(broken: BrokenRule, search: bool = True) -> Callable:
    """`prove` of a kernel in which one rule is broken.

    Args:     search: whether a claim that is not proved is held against points, which takes most of the time
    Returns:  a function with the signature of `normgrad.symbolic.prove`; its NotProved is a class of its own
    """
    for stem in KERNEL:
        path = f"symbolic/{stem}.py"
        text = edited(
            (PACKAGE / path).read_text(),
            broken.edits.get(stem, ()),
            f"{broken.rule}, {path}",
        )
        for name in KERNEL:
            text = text.replace(
                f"from .{name} import", f"from ._mutant_{name}_{broken.rule} import"
            )
        broken_module = module(path, text, broken.rule)
    if not search:
        broken_module.counterexample = lambda *claim: None
    return broken_module.prove
