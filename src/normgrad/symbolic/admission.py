"""What a claim may be made of: real, exact expressions. Everything else is refused here, in words.

SymPy rounds decimals while an expression is typed: 1.0*x + 1e-20*x is 1.0*x before anything can look at it. A claim
with a rounded number is a claim about another number, so decimals are refused.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sympy import (
    Add,
    Derivative,
    DiracDelta,
    Expr,
    Float,
    Indexed,
    IndexedBase,
    Integral,
    Limit,
    Mul,
    Number,
    NumberSymbol,
    Piecewise,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    Tuple,
    preorder_traversal,
    sympify,
)
from sympy.core.sympify import SympifyError

from .domains import domain_of
from .measured import Largest
from .notation import Local, Partial

UNBOUNDED = {S.Infinity, S.NegativeInfinity, S.ComplexInfinity, S.NaN}

# a decimal of more digits was computed; it is a quotient of two numbers below SHORT, or nothing that can be told
FEW_DIGITS = 12
SHORT = 10_000
# what a symbol may promise: the witness draws numbers that keep these promises, and no others
PROMISES = [
    Symbol("_", **dict.fromkeys(promised.split(), True)).assumptions0
    for promised in (
        "",
        "real",
        "positive",
        "nonnegative",
        "real nonzero",
        "integer",
        "integer positive",
        "integer nonnegative",
    )
]


def check_expression(name: str, e) -> Expr:
    """e as an exact real expression.

    Args:    name: the argument's name, for the errors; e: a SymPy expression, or an exact number
    Returns: the expression
    Raises:  TypeError for text and whatever is no expression; ValueError for decimals, for infinite and for imaginary
             numbers
    """
    if isinstance(e, str):
        raise TypeError(
            f"{name}: got the text {e!r}, needs a SymPy expression; letters come from tensor and index"
        )
    try:
        found = sympify(e)
    except (SympifyError, AttributeError, TypeError):
        found = None
    if not isinstance(found, Expr):
        raise TypeError(f"{name}: got {type(e).__name__}, needs a SymPy expression")
    if found.is_commutative is False:
        raise TypeError(
            f"{name}: {found} holds a factor whose order matters (a matrix?); write its entries, as A[i, j]"
        )
    parts = preorder_traversal(found)
    for part in parts:
        if isinstance(part, Indexed):
            parts.skip()
        elif isinstance(part, IndexedBase):
            raise TypeError(f"{name}: {whole_tensor(part)}")
    for decimal in sorted(found.atoms(Float), key=str):
        raise ValueError(
            f"{name}: {float(decimal)} is a decimal, and SymPy rounds decimals before a proof sees them "
            f"(1.0*x + 1e-20*x is 1.0*x); write {_exactly(decimal)}"
        )
    for number in UNBOUNDED:
        if found.has(number):
            raise ValueError(
                f"{name}: {found} holds {number}, which is no number (a division by zero?)"
            )
    for kind in (Derivative, Subs, Integral, Limit, Product, DiracDelta):
        if found.has(kind):
            raise NotImplementedError(
                f"{name}: {found} holds a {kind.__name__}, which has no form here; a derivative is written "
                f"Partial(f, v), and a sum total(N, f)"
            )
    for symbol in sorted(found.atoms(Symbol), key=str):
        if symbol.assumptions0 not in PROMISES:
            raise ValueError(
                f"{name}: {symbol} promises what a proof does not read; it reads real, positive, nonnegative, "
                f"nonzero and integer"
            )
    if found.has(S.ImaginaryUnit):
        raise ValueError(
            f"{name}: {found} holds the imaginary unit, and a claim is about real numbers"
        )
    return found


def whole_tensor(tensor: IndexedBase) -> str:
    """The refusal of a tensor without indices, with what its indices would run to."""
    sizes = " and ".join(map(str, tensor.shape or ()))
    words = f"an index that runs to {sizes}" if sizes else "its indices"
    if " and " in sizes:
        words = f"indices that run to {sizes}"
    return f"{tensor}: is a whole tensor; write an entry of it, with {words}"


def _exactly(decimal):
    """The number that a decimal stands for, as it is written exactly; in words where it cannot be told."""
    typed = Decimal(str(decimal)).normalize()
    found = Fraction(typed)
    if len(typed.as_tuple().digits) > FEW_DIGITS:
        # a quotient such as 1/3, which Python rounds
        short = found.limit_denominator(SHORT)
        close = abs(short - found) < abs(found) / 10**14
        found = short if close and abs(short.numerator) < SHORT else None
    if found is None:
        return "the exact number that was rounded, as pi, sqrt(2) or Rational(1, 3)"
    if found.denominator == 1:
        return str(found.numerator)
    return f"Rational({found.numerator}, {found.denominator})"


# what a proof has rules for, besides the functions in the table of domains
FORMS = (
    Add
    | Mul
    | Pow
    | Symbol
    | Indexed
    | IndexedBase
    | Sum
    | Tuple
    | Number
    | NumberSymbol
    | Partial
    | Local
    | Largest
)


def check_forms(e: Expr) -> Expr:
    """e, unless it holds what has no rules here.

    Raises:  ValueError for what is no real number; NotImplementedError for a Piecewise, which SymPy moves out of a sum
             around it, out of the scope of other letters; for a function that is not in the table of domains, and for
             any other kind of expression
    """
    if e.has(Piecewise):
        raise NotImplementedError(
            "a Piecewise has no normal form; write Max, Min, Abs or sign, or prove each branch by itself; "
            "of a sum with a delta SymPy's doit makes one, and contract makes none"
        )
    for number in (*UNBOUNDED, S.ImaginaryUnit):
        if e.has(number):
            raise ValueError(
                f"{number}: comes out where names are put in, and is no real number; its sides are defined for no input"
            )
    for part in preorder_traversal(e):
        if not isinstance(part, FORMS):
            domain_of(part)
    return e
