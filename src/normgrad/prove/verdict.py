"""Verdicts: what was found out about a chain of expressions, as a cell shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace

from sympy import Expr, evaluate

from ..symbolic.calculus import free_letters
from ..symbolic.chains import PROVED, Equation
from ..symbolic.conditions import side_conditions
from ..symbolic.proof import NotProved, Proof, known, lettered
from ..symbolic.proof import prove as kernel_prove
from ..symbolic.render import latex, printer
from ..symbolic.witness import defined_somewhere, in_digits
from .claim import CannotJudge, Claim
from .folding import in_short
from .hints import (
    ANSWER,
    DIFFERENCE,
    NUMBERS,
    TERM,
    agreeing,
    mistake,
    unasked,
)
from .names import page_latex
from .reasons import reason

STATEMENT = "application/vnd.normgrad.proved+json"
# a difference that is longer than this says nothing to a reader
LONGEST = 240
REFUTED = "refuted"
NOT_EQUAL = r"\overset{?}{=}"
NOT_NAMED = "no single sign, factor, term or index that was tried makes it right"

_proving: ContextVar[bool] = ContextVar("proving", default=True)


def said_by_author(words: str) -> str:
    """A reason that is only words, so that nobody takes it for one that was found; empty for none."""
    return (
        words
        and f"\N{LEFT DOUBLE QUOTATION MARK}{words}\N{RIGHT DOUBLE QUOTATION MARK}, says the author"
    )


@dataclass
class Line:
    """One expression of a chain.

    Args:  shown: as typed, in the kernel's terms; value: SymPy's; text: the cell's
           words: what the author says of the step that leads to it; facts: verdicts that it follows from
           reason: of that step, as it is shown
    """

    shown: Expr
    value: Expr
    text: str
    words: str = ""
    reason: str = ""
    facts: list[Verdict] = field(default_factory=list)


@dataclass
class Verdict:
    """Whether every "=" of its chains is proved for every size: true or false in `bool`.

    Args:  chains: of lines; claim: their definitions; refuting: whether they are expected to be false
           hints: how much is said of a false answer, see `prove`; question: why a true line is no answer
    """

    chains: list[list[Line]]
    claim: Claim
    refuting: bool = False
    hints: int = 0
    question: str = ""

    def __post_init__(self):
        self.step, self.refusal = 0, None
        self.proofs: list[Proof] = []
        self.conditions: tuple[Expr, ...] = ()
        start = time.perf_counter()
        self._judge()
        self.seconds = time.perf_counter() - start

    @property
    def lines(self) -> list[Line]:
        """The lines of all chains."""
        return [line for chain in self.chains for line in chain]

    def _judge(self):
        if not _proving.get():
            return
        for chain in self.chains:
            for left, right in pairwise(chain):
                self.step += 1
                try:
                    proof = kernel_prove(left.shown, right.shown, self.claim.defs)
                except NotProved as refusal:
                    self.refusal, self.failing = refusal, (left, right)
                    return
                self.proofs.append(proof)
                if len(chain) > 2 or right.facts:
                    self._explain(left, right)
        # what it stands on is refused here, and not when it is shown
        self.conditions = side_conditions(self._shown(), self.claim.defs)
        for chain in self.chains:
            self._check_domain([line.shown for line in chain])

    def _check_domain(self, lines):
        """Refuse lines that are defined for no input together, though every two that follow each other are."""
        conditions = side_conditions(lines, self.claim.defs)
        if not defined_somewhere(conditions, self.claim.defs):
            raise CannotJudge(
                "the lines together are defined for no input that was tried"
            )

    def _shown(self):
        return [line.shown for line in self.lines]

    def _explain(self, left, right):
        """Find the reason of a step; words of the author stand in its place, and facts have to occur."""
        try:
            facts = [list(self._facts(verdict)) for verdict in right.facts]
            words = reason(left.shown, right.shown, self.claim, facts)
        except CannotJudge as problem:
            raise CannotJudge(f"step {self.step} is true, but {problem}") from None
        right.reason = said_by_author(right.words) or words

    def _facts(self, verdict):
        """An earlier result in this claim's terms."""
        if verdict.refuting or not verdict:
            raise CannotJudge("a result that it names is not proved")
        with evaluate(True):
            for first, *_, last in verdict.chains:
                lhs, rhs = (
                    self.claim(verdict.claim.back(line.shown)) for line in (first, last)
                )
                yield SimpleNamespace(lhs=lhs, rhs=rhs)

    def __bool__(self):
        if self.refuting:
            return bool(self.refusal and self.refusal.counterexample)
        return self.refusal is None and not self.question

    @property
    def lhs(self) -> Expr:
        """The left end, an expression of SymPy."""
        return self.lines[0].value

    @property
    def rhs(self) -> Expr:
        """The right end, an expression of SymPy."""
        return self.lines[-1].value

    @property
    def known(self) -> str:
        """ "proved for every N, where s > 0", in Markdown; or what refutes it."""
        return self._words(lambda condition: f"${latex(condition)}$")

    def _words(self, write):
        if self.question and not self.refusal:
            return f"true, but {self.question}"
        if self.refusal:
            return "\n".join(self.hinted() if self.hints else self._refused())
        words = known(self._shown(), self.claim.defs, map(write, self.conditions))
        return f"not refuted: {words}" if self.refuting else words

    def _refused(self):
        """At most three lines: the step, the difference, a counterexample."""
        counterexample = self.refusal.counterexample
        kind = "refuted" if counterexample else f"undecided ({self.refusal.why})"
        where = f" at step {self.step}" if len(self.lines) > 2 else ""
        yield f"{kind}{where}: {_equated(self.failing)}"
        if counterexample:
            difference = lettered(self._difference)[0]
            if len(difference) <= LONGEST:
                yield f"left - right: {difference}"
            yield self._point()

    def _point(self):
        counterexample = self.refusal.counterexample
        left, right = in_digits((counterexample.lhs, counterexample.rhs), 3)
        return f"at {counterexample.point()}: left {left}, right {right}"

    def hinted(self) -> Iterator[str]:
        """What is said of a false answer: a line for each level of `hints`, in Markdown."""
        if not self.refusal.counterexample:
            yield f"undecided ({self.refusal.why})"
            return
        yield f"not true for every size{self._lonely()}"
        if self.hints >= NUMBERS:
            # in Markdown two stars begin bold letters
            yield self._point().replace("**", "^").replace("*", " ")
        found = self._mistake if self.hints >= TERM else None
        if self.hints >= TERM:
            yield found.where if found else self._not_named()
        if self.hints >= DIFFERENCE:
            cure = f"{found.cure}: " if found and found.cure else ""
            yield f"{cure}left \N{MINUS SIGN} right is ${page_latex(self._unasked[0])}$"
        if self.hints >= ANSWER:
            yield f"left is ${page_latex(self._unasked[1])}$"

    def _lonely(self):
        """That an index stands free on one side only, which a line about entries seldom means."""
        left, right = (free_letters(line.shown) for line in self.failing)
        if not right - left:
            return ""
        name = min(right - left, key=str)
        return f": the index ${latex(name)}$ is free on the right side only"

    def _not_named(self):
        """That no mistake was found, and which terms are none."""
        right = agreeing(self._unasked[1], self.failing[1].shown, self.claim.defs)
        shown = " and ".join(f"${page_latex(term)}$" for term in right)
        verb = "stand" if len(right) > 1 else "stands"
        return f"{NOT_NAMED}; {shown} {verb} in an answer, too" if right else NOT_NAMED

    @cached_property
    def _mistake(self):
        left, right = (line.shown for line in self.failing)
        return mistake(left, right, self.claim.defs)

    @cached_property
    def _unasked(self):
        """The difference and the left side, without the names that only the question uses."""
        left, right = (line.shown for line in self.failing)
        with evaluate(True):
            left, defs = unasked(left, right, self.claim.defs)
            return in_short(left - defs.opened(right), defs), in_short(left, defs)

    @cached_property
    def _difference(self):
        defs = self.claim.defs
        with evaluate(True):
            # a name by itself says nothing of what it differs in
            left, right = (defs.opened(line.shown) for line in self.failing)
            return in_short(left - right, defs)

    @property
    def latex(self) -> str:
        """The chain as the body of a display; of a false one the step that fails."""
        if not self.refusal:
            return self.equation().latex()
        sides = [self.claim.defs.shown(line.shown) for line in self.failing]
        return f" {NOT_EQUAL} ".join(map(printer(sides), sides))

    def equation(self, label: str = "", claim: str = "") -> Equation:
        """The chain as an equation of the registry."""
        chains = tuple(tuple(line.shown for line in chain) for chain in self.chains)
        whys = tuple(line.reason for chain in self.chains for line in chain[1:])
        return Equation(label, claim, chains, self.claim.defs, whys=whys)

    def __repr__(self):
        if self.refusal or self.question:
            return self.known
        words = self._words(lambda condition: lettered(condition)[0]).replace("$", "")
        return f"{words}: {'; '.join(map(_equated, self.chains))}"

    @property
    def words(self) -> list[str]:
        """How the display is known, in Markdown, one paragraph each."""
        if not self.refusal:
            return [f"**{self.known}**"]
        if self.hints:
            first, *others = self.hinted()
            return [f"**{first}**", *others]
        kind, *details = self._refused()
        words = f"**{kind.partition(':')[0]}**"
        if len(details) > 1:
            words += f": left \N{MINUS SIGN} right is ${page_latex(self._difference)}$"
        # In Markdown two stars begin bold letters.
        points = [line.replace("**", "^").replace("*", " ") for line in details[-1:]]
        return [words, *points]

    def _repr_mimebundle_(self, include=None, exclude=None):
        kind = REFUTED if self.refuting else PROVED
        return bundle(self, kind, self.seconds)


def _equated(lines):
    return " = ".join(line.text for line in lines)


def bundle(output, kind: str, seconds: float | None = None) -> dict:
    """What a notebook shows of a Verdict or of definitions, and what a build needs to number and to judge it."""
    display = f"$$\n{output.latex}\n$$"
    statement = {"kind": kind, "true": bool(output), "seconds": seconds}
    if output:
        statement["ends"] = output.equation().ends().latex().splitlines()
    return {
        "text/plain": repr(output),
        "text/markdown": "\n\n".join([display, *output.words]),
        "text/latex": display,
        STATEMENT: statement | {"words": list(output.words)},
    }


@contextmanager
def unproved() -> Iterator[None]:
    """A context in which verdicts are not looked for: what they state can be read quickly."""
    token = _proving.set(False)
    try:
        yield
    finally:
        _proving.reset(token)


def proving() -> bool:
    """Whether verdicts are looked for."""
    return _proving.get()
