"""Induction over the layers of a stack: claims about sequences, proved for every depth n and every step k."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from sympy import Dummy, Expr, Rational, evaluate, sympify

from .admission import check_expression
from .chains import DEFINITION, Equation
from .proof import NotProved
from .recurrences import Applied, Recurrences
from .render import latex
from .witness import Counterexample

DEEPEST = 6


@dataclass(frozen=True)
class InductionProof:
    """A proved claim lhs = rhs.

    Args:  how: "unfolding", when the lines alone give it, or "base and step"
           side_conditions: what must hold for both sides to be defined
    """

    lhs: Expr
    rhs: Expr
    how: str
    side_conditions: tuple = ()

    def __str__(self):
        where = (
            f", where {', '.join(map(str, self.side_conditions))}"
            if self.side_conditions
            else ""
        )
        return f"proved for every depth: {self.lhs} = {self.rhs}, by {self.how}{where}"


def _refutation(recurrences, lhs, rhs, low):
    for n in range(low, DEEPEST + 1):
        for k in range(low, n + 1):
            left, right = (recurrences.unfold(side, n, k) for side in (lhs, rhs))
            values, draw = {}, Random(n)
            apart = _number(left, values, draw) - _number(right, values, draw)
            if apart.is_finite and abs(apart.evalf(30)) > Rational(1, 10**9):
                return Counterexample(
                    {recurrences.n: n, recurrences.k: k}, {}, {}, left, right
                )
    return None


def _check(recurrences, claims):
    if not isinstance(recurrences, Recurrences):
        raise TypeError(
            f"recurrences: got {type(recurrences).__name__}, needs a Recurrences"
        )
    pairs = isinstance(claims, (tuple, list)) and all(
        isinstance(c, (tuple, list)) and len(c) == 2 for c in claims
    )
    if not pairs or not claims:
        raise ValueError(
            f"claims: got {claims!r}, needs at least one pair (lhs, rhs); without one nothing is proved"
        )
    for lhs, rhs in claims:
        check_expression("lhs", lhs)
        check_expression("rhs", rhs)


def _number(e, values, draw):
    """The value of e where every symbol, and every function at every point, is a number drawn at random."""
    parts = tuple(_number(part, values, draw) for part in e.args)
    if isinstance(e, Applied) or e.is_Symbol:
        return values.setdefault(
            (e.func if parts else e, *parts), Rational(draw.randint(1, 100), 101)
        )
    return e.func(*parts) if parts else e


def induction(
    recurrences, claims, low=0, down=False, given=(), where=""
) -> tuple[InductionProof, ...]:
    """Prove claims for every n and every step k from low to n, all of them together.

    Args:     claims: pairs (lhs, rhs); one whose left side is a sequence at k is also a hypothesis at the step before
              down: begin at k = n and go down
              given: claims that the proof may use, (lhs, rhs, the first k they hold for); they are proved first, each
              with those before it
    Returns:  an InductionProof for each claim
    Raises:   NotProved that names the claim, or the given one, and which half failed, with the stack that refutes it
    """
    _check(recurrences, claims)
    with evaluate(True):
        given = [_given(fact) for fact in given]
        for place, (lhs, rhs, first) in enumerate(given):
            name = f"{where + ', ' if where else ''}given {place + 1}"
            _either_way(recurrences, [(lhs, rhs)], first, given[:place], name)
        return _induction(recurrences, claims, low, down, given, where)


def _given(fact):
    if not isinstance(fact, (tuple, list)) or len(fact) != 3:
        raise ValueError(
            f"given: got {fact!r}, needs triples (lhs, rhs, the first k they hold for)"
        )
    return (
        check_expression("given", fact[0]),
        check_expression("given", fact[1]),
        fact[2],
    )


def _either_way(recurrences, claims, low, given, where):
    """Prove claims from the first layer up or from the last one down."""
    try:
        return _induction(recurrences, claims, low, False, given, where)
    except NotProved as refusal:
        if refusal.counterexample:
            raise
    return _induction(recurrences, claims, low, True, given, where)


def _one_way(facts):
    """The facts without those that only turn an earlier one around."""
    kept = []
    for fact in facts:
        if not any((fact[1], fact[0]) == (other[0], other[1]) for other in kept):
            kept.append(fact)
    return kept


def _induction(recurrences, claims, low, down, given, where):
    t, u = (Dummy(name, integer=True, nonnegative=True) for name in "tu")
    # (n, k), which stand for all numbers of a half as t and u run through 0, 1, 2, ...
    anywhere = low + t + u, low + t
    base = low + u, low + u if down else sympify(low)
    step = low + t + 1 + u, low + t if down else low + t + 1
    before = low + t + 1 if down else low + t
    hypotheses = [
        (lhs, rhs, before, before) for lhs, rhs in claims if recurrences.states(lhs)
    ]

    def same(claim, at, more=()):
        facts = [
            (lhs, rhs, first, at[0])
            for lhs, rhs, first in given
            if recurrences.states(lhs)
        ] + list(more)
        left, right = (recurrences.unfold(side, *at, _one_way(facts)) for side in claim)
        return left == right

    def how(claim, number):
        if same(claim, anywhere):
            return "unfolding"
        for half, holds in (
            ("the base", same(claim, base)),
            ("from one k to the next", same(claim, step, hypotheses)),
        ):
            if not holds:
                refuted = _refutation(recurrences, *claim, low)
                raise NotProved(
                    *claim,
                    refuted,
                    f"{where + ', ' if where else ''}step {number}, {half}",
                )
        return "base and step"

    ways = [how(claim, number) for number, claim in enumerate(claims, start=1)]
    return tuple(
        InductionProof(*claim, way, recurrences.side_conditions(*claim))
        for claim, way in zip(claims, ways, strict=True)
    )


@dataclass(frozen=True)
class InductiveEquation(Equation):
    """An equation between sequences, proved by unfolding or by induction instead of by a normal form.

    Args:  recurrences: what the sequences are; low: the first k it holds for; down: the induction goes down from n
           given: equations of this kind that the proof may use, which are proved with it
    """

    recurrences: Recurrences | None = None
    low: int = 0
    down: bool = False
    given: tuple[InductiveEquation, ...] = ()

    def prove(self) -> tuple[InductionProof, ...]:
        """Prove every "=" for every n and every k from low to n.

        Raises:  NotProved naming the label; ValueError for a given equation about other sequences
        """
        if any(one.recurrences is not self.recurrences for one in self.given):
            raise ValueError(
                f"{self.label}: what is given was proved of other sequences"
            )
        facts = [
            (proof.lhs, proof.rhs, one.low)
            for one in self.given
            for proof in one.prove()
        ]
        _check(self.recurrences, self.steps)
        with evaluate(True):
            return _induction(
                self.recurrences, self.steps, self.low, self.down, facts, self.label
            )

    def known(self) -> str:
        """How the claim is known and what it holds for, in Markdown."""
        n, k = self.recurrences.n, self.recurrences.k
        if any(e.has(k) for pair in self.steps for e in pair):
            places = f" and every ${k}$ from {self.low} to ${n}$"
        else:
            places = f" from {self.low} on" if self.low else ""
        if any(proof.how != "unfolding" for proof in self.prove()):
            how = (
                "by induction from the last layer down" if self.down else "by induction"
            )
        else:
            how = (
                "by unfolding and what was proved before"
                if self.given
                else "by unfolding"
            )
        where = (
            f", where {', '.join(f'${latex(one)}$' for one in self.side_conditions)}"
            if self.side_conditions
            else ""
        )
        return f"proved for every depth ${n}${places}, {how}{where}"

    def means(self, other: Equation) -> bool:
        """Whether another equation is about the same steps of sequences that have the same lines."""
        if not isinstance(other, InductiveEquation) or (self.low, self.down) != (
            other.low,
            other.down,
        ):
            return False
        own, theirs = (
            one.recurrences.reached(*[e for pair in one.steps for e in pair])
            for one in (self, other)
        )
        return own == theirs

    def check_fixed(self, sizes: Iterable[int] = ()) -> int:
        """Check every "=" for stacks of up to six layers (and of the given depths), all lines worked out."""
        checked = [
            (n, k)
            for n in {*range(self.low, DEEPEST + 1), *sizes}
            for k in range(self.low, n + 1)
        ]
        for lhs, rhs in self.steps:
            for n, k in checked:
                left, right = (
                    self.recurrences.unfold(side, n, k) for side in (lhs, rhs)
                )
                if left != right or any(
                    map(self.recurrences.defines, left.atoms(Applied))
                ):
                    raise AssertionError(
                        f"{lhs} = {rhs} fails at k = {k} of n = {n}: {left} and {right}"
                    )
        return len(self.steps) * len(checked)

    @property
    def side_conditions(self) -> tuple[Expr, ...]:
        """What must hold for the steps to be defined; the layers are any functions at all."""
        return self.recurrences.side_conditions(
            *[e for pair in self.steps for e in pair]
        )


def recurrence(
    label: str, claim: str, recurrences: Recurrences, *heads: Expr
) -> InductiveEquation:
    """The displayed form of some lines, taken from the very Recurrences that the proofs unfold."""
    lines = tuple(recurrences.line(head) for head in heads)
    return InductiveEquation(
        label, claim, lines, kind=DEFINITION, recurrences=recurrences, low=1
    )


def inductive(
    label: str, claim: str, recurrences: Recurrences, *chains: tuple, **more
) -> InductiveEquation:
    """A claim about sequences: one chain e0 = e1 = ..., or several; low, down, given and whys as more."""
    chains = tuple(tuple(map(sympify, chain)) for chain in chains)
    return InductiveEquation(label, claim, chains, recurrences=recurrences, **more)
