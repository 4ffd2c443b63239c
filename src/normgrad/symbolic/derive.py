"""Derivations in cells: a numbered equation that is the output of the cell that derives it.

Such an equation is typed in its cell and nowhere else. The registry has what `make equations` wrote of it: label,
claim, definitions, first and last expression. A cell whose result is another says so, and fails the build of the book.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import asdict, dataclass
from functools import cached_property

from sympy import Expr
from sympy.core.parameters import global_parameters

from ..ledger.entries import MIME, WORDS, Entry
from .admission import check_expression
from .chains import DEFINITION, Equation
from .chains import definition as defined
from .definitions import Defs, check_defs
from .proof import known, plain
from .registry import entries, equation
from .render import latex
from .written import same

STATEMENT = "application/vnd.normgrad.statement+json"
NUMBERS = "NORMGRAD_NUMBERS"


def keep_as_typed() -> None:
    """From here on SymPy keeps an expression as it is typed: no reordering, no distributing, no cancelling.

    What is displayed is then what was typed. Proofs, derivatives and steps evaluate what they need themselves;
    `with sympy.evaluate(True):` switches evaluation on again for a few lines.
    """
    global_parameters.evaluate = False


def book_number(label: str) -> str:
    """The number that the book gives an equation, as 7.4, where the notebook knows it; otherwise nothing."""
    pairs = (
        pair.split() for pair in os.environ.get(NUMBERS, "").split(",") if pair.strip()
    )
    return {pair[0]: pair[-1] for pair in pairs}.get(label, "")


@dataclass(frozen=True)
class Derivation:
    """A labelled equation that a cell derived: shown with its label, how it is known, and where it holds.

    Args:  equation: what was proved; seconds: how long it took
    """

    equation: Equation
    seconds: float

    @property
    def label(self) -> str:
        """The equation's label."""
        return self.equation.label

    @cached_property
    def differs(self) -> str:
        """What the book has under this label instead; nothing where it has this equation."""
        if self.label not in entries():
            return f"the book has no equation {self.label}"
        if same(self.equation.ends(), equation(self.label).ends()):
            return ""
        return f"there it is {'; '.join(entries()[self.label]['equation'])}"

    @property
    def lhs(self) -> Expr:
        """What the derivation began with."""
        return self.equation.chain[0]

    @property
    def rhs(self) -> Expr:
        """What it arrived at."""
        return self.equation.chain[-1]

    def known(self, write=lambda condition: f"${latex(condition)}$") -> str:
        """How the equation is known and where it holds, as Markdown."""
        if self.equation.kind == DEFINITION:
            return WORDS[DEFINITION]
        conditions = [write(condition) for condition in self.equation.side_conditions]
        conditions += [self.equation.holds_where] if self.equation.holds_where else []
        return known(
            [e for chain in self.equation.chains for e in chain],
            self.equation.defs,
            conditions,
        )

    def _title(self) -> str:
        number = "" if self.differs else book_number(self.label)
        return f"({number}) {self.label}" if number else self.label

    def _live_latex(self) -> str:
        """The equation with the numbers that the notebook knows."""
        return with_numbers(self.equation.latex(), book_number)

    def __str__(self):
        chains = [" = ".join(map(str, chain)) for chain in self.equation.chains]
        lines = [
            f"{self._title()}: {self.known(str).replace('$', '')}",
            self.equation.claim,
            *map(plain, chains),
        ]
        return "\n    ".join(
            [*lines, f"not the book's: {self.differs}"] if self.differs else lines
        )

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        tag = "" if self.differs else book_number(self.label)
        tag = tag or self.label
        words = [f"**{self.known()}**", f"`{self.label}`", self.equation.claim]
        words += [f"**not the book's:** {self.differs}"] if self.differs else []
        kind, claim = self.equation.kind, self.equation.claim
        entry = Entry(
            self.label,
            kind,
            claim,
            seconds=None if kind == DEFINITION else self.seconds,
        )
        return {
            "text/plain": str(self),
            "text/markdown": f"$$\n{self._live_latex()}\n\\tag{{{tag}}}\n$$\n\n{' · '.join(words)}",
            "text/latex": f"$$\n{self.equation.latex()}\n\\tag{{{self.label}}}\n$$",
            MIME: [asdict(entry)],
            STATEMENT: {
                "label": self.label,
                "differs": self.differs,
                "known": self.known(),
            },
        }


def with_numbers(text: str, number) -> str:
    r"""LaTeX in which every \ref{label} is the number that `number` gives, or the label where it gives none."""
    return re.sub(
        r"\\ref\{([\w:.-]+)\}", lambda found: number(found[1]) or found[1], text
    )


def _finished(equation: Equation, kind: type[Derivation] = Derivation) -> Derivation:
    start = time.perf_counter()
    equation.prove()
    seconds = time.perf_counter() - start
    return kind(equation, seconds)


def _check_label(label, claim):
    for name, value in (("label", label), ("claim", claim)):
        if not isinstance(value, str) or not value:
            raise TypeError(
                f"{name}: got {value!r}, needs a text, as {'ln-dx' if name == 'label' else 'what holds'!r}"
            )


def _chain(start, steps):
    """(expressions, whys) of a chain."""
    chain, whys = [check_expression("start", start)], []
    for place, step in enumerate(steps, start=1):
        done, why = step if isinstance(step, tuple) else (step, None)
        chain.append(check_expression(f"step {place}", done))
        whys.append(why or "")
    if not whys:
        raise ValueError(
            "steps: got none, needs at least one; a definition is shown by define"
        )
    return tuple(chain), tuple(whys) if any(whys) else ()


def derive(
    label: str, claim: str, defs: Defs | None, start: Expr, *steps, **more
) -> Derivation:
    """Derive a labelled equation step by step; every "=" is proved for every size.

    Args:    label, claim: its name, and what holds in one sentence; defs: the definitions
             start: the left side
             steps: what it is equal to, one after the other: expressions, or pairs of one and a reason
             more: holds_where, wide, as of Equation
    Returns: Derivation, which displays the equation
    Raises:  NotProved with label, step and counterexample for a step that is false; TypeError for what is no step
    """
    _check_label(label, claim)
    defs = check_defs(defs)
    chain, whys = _chain(start, steps)
    return _finished(Equation(label, claim, (chain,), defs, whys=whys, **more))


def define(label: str, claim: str, defs: Defs, *names: Expr) -> Derivation:
    """Show definitions under a label, taken from the very Defs that the proofs unfold.

    Raises:  ValueError for a name that is not defined, with those that are
    """
    _check_label(label, claim)
    return _finished(defined(label, claim, check_defs(defs), *names))
