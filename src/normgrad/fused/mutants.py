"""Closed forms broken by machine: each sign turned, each factor left out, one at a time; the proofs must refute all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sympy import Add, Expr, Indexed, Mul, S, Sum, evaluate

from ..symbolic.proof import NotProved, lettered, prove
from .layer import loss_gradient, needed
from .program import Program


@dataclass(frozen=True)
class Mutant:
    """One change of a backward's lines.

    Args:  name: the line; right, wrong: its expression before and after
           refusal: why a gradient is no longer proved; None where the change changed nothing
    """

    name: str
    right: Expr
    wrong: Expr
    refusal: NotProved | None

    @property
    def refuted(self) -> bool:
        """Whether there is a point where a gradient comes out wrong."""
        return self.refusal is not None and self.refusal.counterexample is not None

    def __str__(self):
        verdict = "still true" if self.refusal is None else "undecided"
        if self.refuted:
            verdict = f"refuted: {self.refusal.where} at {self.refusal.counterexample.point()}"
        return f"{self.name} = {lettered(self.wrong)[0]}\n    {verdict}"

    __repr__ = __str__


def changes(e: Expr) -> Iterator[Expr]:
    """The expression with one change: a term's sign turned, a factor left out, at any depth."""
    if isinstance(e, Add):
        yield from (
            Add(*e.args[:place], -term, *e.args[place + 1 :])
            for place, term in enumerate(e.args)
        )
    if isinstance(e, Mul):
        yield from (
            Mul(*e.args[:place], *e.args[place + 1 :])
            for place, factor in enumerate(e.args)
        )
    if not e.args or isinstance(e, Indexed):
        return
    for place, part in enumerate(e.args[:1] if isinstance(e, Sum) else e.args):
        for new in changes(part):
            yield e.func(*e.args[:place], new, *e.args[place + 1 :])


def mutants(program: Program, seconds: float = 10) -> list[Mutant]:
    """Every change of every line of a backward, with the verdict of the proofs.

    Args:  seconds: how long each proof may take
    """
    lines, found = program.lines, []
    for name, right in lines.items():
        with evaluate(True):
            wrong = dict.fromkeys([*changes(right), 2 * right, S.Zero])
        found += [
            Mutant(name, right, e, _refusal(program, {**lines, name: e}, seconds))
            for e in wrong
            if e != right
        ]
    return found


def _refusal(program, lines, seconds):
    """Why the first gradient that lines get wrong is not proved; None where all are right."""
    layer, undecided = program.layer, None
    for x, gradient in program.gradients.items():
        if gradient not in lines:
            continue
        defs = layer.definitions()
        known = {**program.forward, **lines}
        for name, e in needed({one: known[one] for one in known if one not in {*layer.lines, *layer.maxima}},
                              [gradient]).items():  # fmt: skip
            defs[layer.at(name)] = e
        try:
            prove(
                loss_gradient(layer, x),
                layer.at(gradient),
                defs,
                where=f"d{x}",
                seconds=seconds,
            )
        except NotProved as refusal:
            if refusal.counterexample:
                return refusal
            undecided = refusal
    return undecided
