"""Opaque functions: any differentiable function of one number, known by its name and its derivatives alone.

A proof with one holds for every such function, because nothing about it is used but the chain rule. To refute a claim
a number is needed; then, and only then, a stand-in takes the function's place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from sympy import Dummy, Expr, Function, Indexed, Symbol, diff


def _example(t: Expr) -> Expr:
    """A stand-in with no symmetry that a wrong claim could use: positive for t >= 0, no derivative up to t'' is 0."""
    return t**2 + 3 * t + 1


class Opaque(Function):
    """The base class of opaque functions; `opaque` makes them.

    Args:  letter: the name in print; order: how often it was differentiated; stand_in: what the search for a
           counterexample puts in its place, before differentiation
    """

    nargs = 1
    is_real = True
    smooth = True
    letter, order = "", 0
    stand_in = staticmethod(_example)

    def fdiff(self, argindex=1):
        """The derivative with respect to the only argument; SymPy's chain rule asks for it."""
        return _derivative(type(self))(self.args[0])

    @classmethod
    def stands_for(cls) -> str:
        """The stand-in in words, as f(t) = t**2 + 3*t + 1."""
        return f"{cls.letter}(t) = {cls.stand_in(Symbol('t', real=True))}"

    @classmethod
    def concrete(cls, value: Expr) -> Expr:
        """The stand-in's derivative of this order, at a value."""
        t = Dummy("t", real=True)
        return diff(cls.stand_in(t), t, cls.order).xreplace({t: value})


def opaque(letter: str, stand_in: Callable[[Expr], Expr] = _example) -> type[Opaque]:
    """A differentiable function that nothing is known of: f = opaque("f"), then f(s).

    Args:     letter: its name in print, f for f(s) and f'(s)
              stand_in: a SymPy function that takes its place where a number is needed; its derivatives are its own
    Returns:  a SymPy function class; as with a Symbol, one letter is one function
    Raises:   TypeError when the letter is no text or the stand-in no function, ValueError for an empty letter
    """
    if not isinstance(letter, str):
        raise TypeError(f"letter: got {type(letter).__name__}, needs a name")
    if not letter:
        raise ValueError("letter: got an empty text, needs a name")
    if not callable(stand_in):
        raise TypeError(
            f"stand_in: got {type(stand_in).__name__}, needs a function of one expression"
        )
    return _make(letter, 0, stand_in)


@cache
def _make(letter, order, stand_in):
    body = {"letter": letter, "order": order, "stand_in": staticmethod(stand_in)}
    return type(letter + "'" * order, (Opaque,), body)


def _derivative(function: type[Opaque]) -> type[Opaque]:
    return _make(function.letter, function.order + 1, function.stand_in)


def derivative(function: type[Opaque]) -> type[Opaque]:
    """The derivative of an opaque function, an opaque function itself; always the same one.

    Raises:  TypeError for what `opaque` did not make
    """
    if not (isinstance(function, type) and issubclass(function, Opaque)):
        raise TypeError(
            f"function: got {type(function).__name__}, needs a function made by opaque"
        )
    return _derivative(function)


def concrete(e: Expr) -> Expr:
    """The expression with the stand-in of every opaque function in its place, innermost first."""
    if not e.args or isinstance(e, Indexed):
        return e
    parts = [concrete(part) for part in e.args]
    return type(e).concrete(*parts) if isinstance(e, Opaque) else e.func(*parts)
