"""Sequences over the layers of a stack, each given by a base value and a step.

A sequence is an applied function of its place, x(k). What the layers do stays an uninterpreted function, f(k, value),
so that a proof holds for every choice of it. Whether a line may be used at a place is decided by signs alone: k and n
are written as sums of symbols that are not negative.
"""

from __future__ import annotations

from sympy import Expr, Symbol, evaluate, expand, sympify
from sympy.core.function import AppliedUndef, UndefinedFunction

from .admission import check_expression
from .conditions import side_conditions
from .definitions import Defs
from .render import name_latex


class Applied(AppliedUndef):
    """s(k), or f(k, values): printed with its place as a subscript, and with a star where the name ends in one."""

    def _latex(self, printer):
        name, (place, *values) = self.func.__name__, self.args
        head = f"{name_latex(name.removesuffix('*'))}_{{{printer._print(place).replace(' ', '')}}}"
        head += "^{*}" if name.endswith("*") else ""
        return f"{head}({'; '.join(map(printer._print, values))})" if values else head


def sequences(names: str) -> tuple[UndefinedFunction, ...]:
    """Functions of a place, and of values: the sequences of a stack, its layers (f) and their adjoints (f*)."""
    return tuple(UndefinedFunction(name, bases=(Applied,)) for name in names.split())


def _evaluated(e):
    return e.func(*map(_evaluated, e.args)) if e.args else e


class Recurrences:
    """Lines such as x(0) = e and x(k) = e for k from 1 to n; a line for dx(k - 1) counts down from dx(n).

    The same line once more changes nothing, so that a cell of lines may be run again.

    Args:    k: the step; n: the number of steps
    Raises:  ValueError for a head that is no sequence at a place k + c, for a second base or a second step of a
             sequence, and for a base within the places of its step
    """

    def __init__(self, k: Symbol, n: Symbol):
        self.k, self.n, self._lines = k, n, {}

    def __setitem__(self, head: Expr, e: Expr):
        at_step = head.args[0].has(self.k)
        if len(head.args) != 1 or at_step and not self._offset(head).is_Integer:
            raise ValueError(
                f"{head}: a line is for a sequence, at k + c or at a place without k"
            )
        line = (head, check_expression(str(head), e))
        before, body = self._lines.get((head.func, at_step), line)
        if (before, body) != line:
            which = "step" if at_step else "base"
            raise ValueError(
                f"{head}: {head.func} has a {which} already, {before} = {body}"
            )
        other = self._lines.get((head.func, not at_step))
        if other:
            base, step = (other[0], head) if at_step else (head, other[0])
            with evaluate(True):
                # the step has the places from 1 + c to n + c
                below = self._offset(step) - base.args[0]
                above = expand(base.args[0] - self.n - self._offset(step) - 1)
                apart = below.is_nonnegative or above.is_nonnegative
            if not apart:
                raise ValueError(f"{base}: a place that the step for {step} has too")
        self._lines[head.func, at_step] = line

    def _offset(self, head):
        with evaluate(True):
            return expand(head.args[0] - self.k)

    def line(self, head: Expr) -> tuple[Expr, Expr]:
        """The line of a sequence as it was written: its base for a place without k, its step for one with k."""
        return self._lines[head.func, head.args[0].has(self.k)]

    def changed(self, head: Expr, e: Expr) -> Recurrences:
        """A copy with one line replaced."""
        other = Recurrences(self.k, self.n)
        other._lines = dict(self._lines)
        other._lines.pop((head.func, head.args[0].has(self.k)), None)
        other[head] = e
        return other

    def unfold(self, e: Expr, n, k=0, known=()) -> Expr:
        """The expression at step k of n, with every line used that holds there, as a sum of unlike terms.

        Args:  n, k: numbers, or sums of symbols that are not negative; known: facts (head, e, first, last) that hold
               where a head's step lies between first and last
        """
        with evaluate(True):
            e = e.xreplace({self.k: sympify(k), self.n: sympify(n)})
            return self._unfold(e, sympify(n), known, {})

    def _unfold(self, e, n, known, done):
        if e not in done:
            done[e] = (
                e  # a fact and its reverse would lead from one to the other without end
            )
            new = (
                e.func(*[self._unfold(part, n, known, done) for part in e.args])
                if e.args
                else e
            )
            body = self._line_at(new, n, known) if isinstance(new, Applied) else None
            if body is not None:
                done[e] = self._unfold(body, n, known, done)
            else:
                done[e] = expand(new, deep=False) if isinstance(new, Expr) else new
        return done[e]

    def _line_at(self, e, n, known):
        """What a base, a step or a known fact says of the term, or None when none of them holds at its place."""
        base, step = (self._lines.get((e.func, at_step)) for at_step in (False, True))
        if base and expand(base[0].args[0].xreplace({self.n: n}) - e.args[0]) == 0:
            return base[1].xreplace({self.n: n})
        for head, body, first, last in ([(*step, 1, n)] if step else []) + list(known):
            at = expand(e.args[0] - head.args[0] + self.k)
            if (
                head.func == e.func
                and (at - first).is_nonnegative
                and expand(last - at).is_nonnegative
            ):
                return body.xreplace({self.k: at, self.n: n})
        return None

    def reached(self, *sides: Expr) -> dict[Expr, Expr]:
        """The lines that the sides are made of, each head with its body, evaluated."""
        found, todo = {}, list(sides)
        with evaluate(True):
            while todo:
                funcs = {part.func for part in todo.pop().atoms(Applied)}
                new = [
                    line
                    for (func, _), line in self._lines.items()
                    if func in funcs and line[0] not in found
                ]
                found |= {head: _evaluated(body) for head, body in new}
                todo += [body for _, body in new]
            return {_evaluated(head): body for head, body in found.items()}

    def lines(self, *sides: Expr) -> list[tuple[Expr, Expr]]:
        """The lines that the sides are made of, as they were written, in order."""
        reached = self.reached(*sides)
        with evaluate(True):
            return [
                line for line in self._lines.values() if _evaluated(line[0]) in reached
            ]

    def side_conditions(self, *sides: Expr) -> tuple[Expr, ...]:
        """What must hold for sides and for the lines that they are made of to be defined, such as x(k) != 0."""
        return side_conditions(
            [*sides, *[self.line(head)[1] for head in self.reached(*sides)]], Defs()
        )

    def defines(self, e: Expr) -> bool:
        """Whether a term is one of the sequences, and not an uninterpreted function."""
        return any(func == e.func for func, _ in self._lines)

    def states(self, e: Expr) -> bool:
        """Whether a claim about e is one about a sequence at k + c, which may be put in wherever the sequence is."""
        return self.defines(e) and self._offset(e).is_Integer
