"""Opaque functions: any differentiable function of one number, known by its name and its derivatives alone.

A proof with one holds for every such function, because nothing about it is used but the chain rule. To refute a claim
a number is needed; then, and only then, a stand-in takes the function's place.
"""

from __future__ import annotations

from functools import cache

from sympy import Dummy, Expr, Function, Symbol, diff

from .notation import with_parts


def stand_in(t: Expr) -> Expr:
    """A function with no symmetry that a wrong claim could use: positive for t >= 0, no derivative up to t'' is 0."""
    return t**2 + 3 * t + 1


class Opaque(Function):
    """The base class of opaque functions; `opaque` makes them.

    Args:  letter: the name in print; order: how often it was differentiated
    """

    nargs = 1
    is_real = True
    smooth = True
    letter, order = "", 0

    def fdiff(self, argindex=1):
        """The derivative with respect to the only argument; SymPy's chain rule asks for it."""
        return derivative(type(self))(self.args[0])

    @classmethod
    def stands_for(cls) -> str:
        """The stand-in in words, as f(t) = t**2 + 3*t + 1."""
        return f"{cls.letter}(t) = {stand_in(Symbol('t', real=True))}"


def opaque(letter: str) -> type[Opaque]:
    """A differentiable function that nothing is known of: f = opaque("f"), then f(s).

    Args:     letter: its name in print, f for f(s) and f'(s)
    Returns:  a SymPy function class; as with a Symbol, one letter is one function
    Raises:   TypeError when the letter is not a name
    """
    if not isinstance(letter, str) or not letter:
        raise TypeError(f"letter: got {letter!r}, needs a name")
    return _function(letter, 0)


@cache
def _function(letter, order):
    return type(letter + "'" * order, (Opaque,), {"letter": letter, "order": order})


def derivative(function: type[Opaque]) -> type[Opaque]:
    """The derivative of an opaque function, an opaque function itself; always the same one."""
    return _function(function.letter, function.order + 1)


def concrete(e: Expr) -> Expr:
    """The expression with the stand-in of every opaque function in its place, innermost first."""
    e = with_parts(e, concrete)
    if not isinstance(e, Opaque):
        return e
    t = Dummy("t", real=True)
    return diff(stand_in(t), t, e.order).xreplace({t: e.args[0]})
