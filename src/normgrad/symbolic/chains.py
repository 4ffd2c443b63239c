"""An equation of the book: chains of expressions, the definitions of their names, and what is claimed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sympy import Expr, sympify

from .definitions import Defs
from .notation import name_of
from .proof import Proof, as_latex, prove
from .render import aligned, printer
from .witness import check_fixed

DEFINITION, PROVED = "definition", "proved-for-every-n"

Chain = tuple[Expr, ...]


@dataclass(frozen=True)
class Equation:
    """A labelled equation: one chain e0 = e1 = ..., or several below one another.

    Args:  label: its name in the book; claim: one plain sentence that says what holds
           chains: the chains, every "=" of which is proved; defs: what the names in them stand for
           kind: "proved-for-every-n" or "definition"
           whys: a short reason per "=" of all the chains in order; may be empty
           holds_where: the condition of a branch, in words; empty when there is none
           wide: each left side stands on a line of its own, since with a right side beside it the line is too long
    """

    label: str
    claim: str
    chains: tuple[Chain, ...]
    defs: Defs = field(default_factory=Defs, repr=False)
    kind: str = PROVED
    whys: tuple[str, ...] = ()
    holds_where: str = ""
    wide: bool = False

    @property
    def chain(self) -> Chain:
        """The equation's only chain, or its first."""
        return self.chains[0]

    @property
    def steps(self) -> list[tuple[Expr, Expr]]:
        """The two sides of every "=", in the order of the page."""
        return [pair for chain in self.chains for pair in pairwise(chain)]

    def ends(self) -> Equation:
        """The same equation with the first and the last expression of each chain, and nothing in between."""
        return replace(
            self, chains=tuple((chain[0], chain[-1]) for chain in self.chains), whys=()
        )

    def latex(self) -> str:
        """The equation as the body of a display, `aligned` when it takes more than one line."""
        shown = [e for chain in self.chains for e in chain]
        # the letters of a definition that is not shown are free in no line of the display
        write = printer(shown + [name_of(head) for head, _ in self.defs])

        def latex(e):
            return write(self.defs.shown(e))

        if len(self.steps) == 1 and not self.wide:
            lhs, rhs = self.chain
            return f"{latex(lhs)} = {latex(rhs)}"
        whys, lines = iter(self.whys), []
        for start, *steps in self.chains:
            left = f"{latex(start)} &"
            if self.wide:
                lines.append(f"& {latex(start)}")
                left = r"& \quad"
            for e in steps:
                why = next(whys, "")
                reason = rf" \quad {{\small {as_latex(f'({why})')}}}" if why else ""
                lines.append(f"{left}= {latex(e)}{reason}")
                left = left if self.wide else " &"
        # fractions below one another would touch
        return aligned(lines, r"\frac")

    def prove(self) -> tuple[Proof, ...]:
        """Prove every "=" for every size of the dimensions.

        Raises:  NotProved naming the label and the step
        """
        name = f"{self.label}, " if self.label else ""
        steps = enumerate(self.steps, start=1)
        return tuple(
            prove(lhs, rhs, self.defs, where=f"{name}step {n}")
            for n, (lhs, rhs) in steps
        )

    def check_fixed(self, sizes: Iterable[int] = (2, 3, 4)) -> int:
        """Check every "=" entry by entry for rows of the given lengths; AssertionError when one fails."""
        sizes = tuple(sizes)
        return sum(check_fixed(lhs, rhs, sizes, self.defs) for lhs, rhs in self.steps)

    def _repr_latex_(self):
        return f"$$\n{self.latex()}\n$$"


def proved(label: str, claim: str, defs: Defs | None, *chain: Expr, **more) -> Equation:
    """An equation of one chain: a start and the steps from it."""
    return Equation(label, claim, (tuple(map(sympify, chain)),), defs or Defs(), **more)


def definition(label: str, claim: str, defs: Defs, *names: Expr) -> Equation:
    """The displayed form of definitions, taken from the very Defs that the proofs unfold."""
    return Equation(
        label, claim, tuple(defs.line(name) for name in names), defs, kind=DEFINITION
    )
