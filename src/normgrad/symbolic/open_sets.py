"""Whether an expression is 0 at single points alone, so that a condition that it is not leaves out no more."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Indexed,
    IndexedBase,
    Mul,
    Number,
    NumberSymbol,
    Pow,
    Sum,
    Symbol,
    Tuple,
    exp,
    log,
    preorder_traversal,
    sympify,
    tanh,
)

from .calculus import free_letters
from .definitions import Defs
from .elementary import sigmoid
from .patience import OutOfPatience
from .signs import is_nonnegative, is_positive
from .witness import Explicit, drawn_for, sizes_in

# functions of the whole line that are 0 on an open set only where they are 0 everywhere
SMOOTH = Add | Mul | Sum | Tuple | exp | tanh | sigmoid
SMOOTH |= Indexed | IndexedBase | Symbol | Number | NumberSymbol


def is_zero_on_an_open_set(e: Expr, sizes: Mapping[Symbol, int] | None = None) -> bool:
    """Whether e may be 0 on more than single points; what is not seen counts as that.

    A smooth function of the line is 0 on an open set only where it is 0 everywhere, so that one point at which it is
    not 0 decides. What has other branches than roots, such as Max(x, 0), is not looked into.

    Args:  e: in the symbols of tensors, without definitions; sizes: of dimensions, 2 or more for those that it has not
    """
    e = sympify(e)
    if isinstance(e, Mul):
        return any(is_zero_on_an_open_set(factor, sizes) for factor in e.args)
    if isinstance(e, Pow) and e.exp.is_Rational:
        return e.exp.is_positive and is_zero_on_an_open_set(e.base, sizes)
    if isinstance(e, Abs):
        return is_zero_on_an_open_set(e.args[0], sizes)
    if isinstance(e, Add):
        # a step is at least 0
        terms = [term for term in e.args if not isinstance(term, Heaviside)]
        if all(map(is_nonnegative, terms)):
            return all(is_zero_on_an_open_set(term, sizes) for term in terms)
    if isinstance(e, Sum) and is_nonnegative(e):
        # an entry may be 0 for every input, as that of x - mean(x) is in a row of one
        return is_zero_on_an_open_set(e.function, sizes)
    return not (all(map(_is_smooth, preorder_traversal(e))) and _is_somewhere(e, sizes))


def _is_smooth(part):
    if isinstance(part, Pow):
        is_root = part.exp.is_Rational and part.exp.q == 2
        return part.exp.is_Integer or is_root or is_positive(part.base)
    if isinstance(part, log):
        return is_positive(part.args[0])
    return isinstance(part, SMOOTH)


def _is_somewhere(e, sizes):
    """Whether a smooth expression is seen to be other than 0 at a point, whatever the signs of its roots.

    For x - sqrt(x**2), which is 0 for every x above 0.
    """
    draw = random.Random(0)
    explicit = Explicit(Defs(), sizes_in(e, 2) | dict(sizes or {}))
    try:
        scalar = explicit.entry(e, dict.fromkeys(free_letters(e), 1))
    except OutOfPatience:
        return False
    symbols = sorted(scalar.free_symbols, key=str)
    point = {symbol: drawn_for(symbol, draw) for symbol in symbols}
    powers = [part for part in scalar.atoms(Pow) if not part.exp.is_Integer]
    roots = [part for part in powers if not is_positive(part.base)]
    if any(root.base.has(*roots) for root in roots):
        return False
    for signs in product((1, -1), repeat=len(roots)):
        pairs = zip(roots, signs, strict=True)
        branch = scalar.xreplace({root: sign * root for root, sign in pairs})
        value = branch.xreplace(point).evalf()
        if not value.is_real or abs(value) < 1e-9:
            return False
    return True
