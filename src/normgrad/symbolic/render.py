"""LaTeX in the book's style: factors and terms as they were written, sums with letters that clash with nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count, pairwise

from sympy import (
    Add,
    Expr,
    Indexed,
    IndexedBase,
    Integer,
    Mul,
    Number,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    Tuple,
    evaluate,
    sympify,
)
from sympy.printing.latex import LatexPrinter

from .notation import Local, Partial, without_ones
from .opaque import Opaque

# The first letter of a dimension's name says what it counts: rows, columns, or anything else.
LETTERS = {"M": "ipm", "N": "rstl"}
OTHER_LETTERS = "gh"
GREEK = {"eps": r"\varepsilon", "Pi": r"\Pi"}
GREEK |= {
    name: rf"\{name}"
    for name in ("alpha", "eta", "kappa", "mu", "rho", "sigma", "theta", "xi", "Delta")
}
GREEK |= {"phi": r"\varphi", "epsilon": r"\varepsilon"}
# What a local derivative holds fixed, where the definitions that would name it are not at hand.
OTHERS = r"\text{others}"
_TALL = re.compile(r"\\frac|\\sum|\\left|\\sqrt")


def latex(e: Expr) -> str:
    """An expression as LaTeX, printed in the order it was written in."""
    return printer([e])(e)


def printer(shown: Iterable[Expr]) -> Callable[[Expr], str]:
    """A function that prints the expressions of one display, in which no bound letter runs over two dimensions.

    Args:    shown: the expressions of the display; what they name no sum may use for its letter
    Raises:  ValueError, from the function, when a scalar and a tensor of the display would read alike
    """
    symbols = Tuple(*shown).atoms(Symbol)
    book = BookLatex({symbol.name for symbol in symbols if not symbol.is_Dummy})
    scalars = set()
    tensors = set()

    def line(e):
        e = sympify(e)
        tensors.update(map(str, e.atoms(IndexedBase)))
        scalars.update(_scalars(e))
        for name in sorted(scalars & tensors):
            raise ValueError(
                f"{name}: names a scalar and a tensor, which would read alike: rename one of them"
            )
        with evaluate(True):  # the printer puts factors together anew
            return book.doprint(e)

    return line


def aligned(lines: Iterable[str], *tall: str) -> str:
    """Lines below one another; with some room between them where one holds what is tall, as a fraction."""
    lines = list(lines)
    room = "[3pt]" if any(sign in line for line in lines for sign in tall) else ""
    return "\\begin{aligned}\n" + f" \\\\{room}\n".join(lines) + "\n\\end{aligned}"


def bound_letters(dimension: str) -> Iterator[str]:
    """The letters that a sum over a dimension may have, the preferred one first: i for M, r for N, g for others."""
    first = LETTERS.get(dimension[0], OTHER_LETTERS)
    yield from first
    yield from (f"{first[0]}{number}" for number in count(1))


def _scalars(e):
    """The names of the scalars in e: the symbols that are no index, no dimension and no name of a tensor."""
    if isinstance(e, Indexed):
        return set()
    if isinstance(e, Local):
        return _scalars(e.args[0]) | _scalars(e.args[1])
    if e.is_Symbol:
        return set() if e.is_Dummy or e.is_integer else {e.name}
    return set().union(*map(_scalars, e.args))


def name_latex(name: str) -> str:
    """A name as it is typeset: x_hat, xhat, x_dot, x_tilde with accents, c1 with a subscript, several letters upright.

    A prime stays what it is: z' is the fused stack's z.
    """
    if name in GREEK or len(name) == 1:
        return GREEK.get(name, name)
    if name.endswith("'"):
        return f"{name_latex(name[:-1])}'"
    if accented := re.fullmatch(r"(?:(.+)_|(.))(hat|dot|tilde)", name):
        return rf"\{accented[3]}{{{name_latex(accented[1] or accented[2])}}}"
    if numbered := re.fullmatch(r"([A-Za-z]+)(\d+)", name):
        return f"{name_latex(numbered[1])}_{{{numbered[2]}}}"
    return rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


class BookLatex(LatexPrinter):
    """The printer behind `latex`.

    Args:  used: names that bound letters must differ from
    """

    def __init__(self, used: set[str]):
        super().__init__({"imaginary_unit": "ri"})
        self._used = used
        self._bound = {}
        self._dimensions = {}

    def _print_Symbol(self, e):
        return name_latex(e.name)

    def _print_Dummy(self, e):
        return name_latex(self._bound.get(e) or e.name)

    def _print_Indexed(self, e):
        name = name_latex(str(e.base))
        letters = [self._print(letter) for letter in e.indices]
        short = all(len(letter) == 1 for letter in letters)
        joined = ("" if short else ",").join(letters)
        if numbered := re.fullmatch(r"(.*)_\{(\d+)\}", name):
            return f"{numbered[1]}_{{{numbered[2]},{joined}}}"
        return f"{name}_{{{joined}}}"

    def _print_KroneckerDelta(self, e):
        return rf"\delta_{{{''.join(map(self._print, e.indices))}}}"

    def _print_Sum(self, e):
        outer = self._bound.copy()
        signs = ""
        for letter, first, last in reversed(e.limits):
            if letter.is_Dummy:
                self._bound[letter] = self._letter(last)
            signs += rf"\sum_{{{self._print(letter)}={self._print(first)}}}^{{{self._print(last)}}} "
        body = without_ones(e.function)
        loose = isinstance(body, Add) or _strip_sign(body)[0]
        text = signs + (self._bracket(body) if loose else self._print(body))
        self._bound = outer
        return text

    def _print_Largest(self, e):
        body, letter, dimension = e.args
        self._bound[letter] = self._letter(dimension)
        inside = self._bracket(body) if isinstance(body, Add) else self._print(body)
        text = rf"\max_{{{self._print(letter)}}} {inside}"
        del self._bound[letter]
        return text

    def _letter(self, dimension):
        """A letter for a sum over a dimension: not in use, and not running over another one elsewhere."""
        taken = self._used | set(self._bound.values())
        for name in bound_letters(str(dimension)):
            if name not in taken:
                if self._dimensions.setdefault(name, dimension) == dimension:
                    return name

    def _print_Partial(self, e):
        f, v = e.args[:2]
        if isinstance(f, Indexed | Symbol):
            return rf"\frac{{\partial {self._print(f)}}}{{\partial {self._print(v)}}}"
        root = isinstance(f, Pow) and f.exp == S.Half
        plain = root or isinstance(f, Sum | Partial)
        body = self._print(f) if plain else self._bracket(f)
        return rf"\frac{{\partial}}{{\partial {self._print(v)}}} {body}"

    def _print_Local(self, e):
        held = ", ".join(map(self._print, e.args[2]))
        # without definitions it is not known what is held fixed, and a derivative without a bracket is a total one
        return rf"\left( {self._print_Partial(e)} \right)_{{{held or OTHERS}}}"

    def _bracket(self, e):
        text = self._print(e)
        return rf"\left( {text} \right)" if _TALL.search(text) else f"({text})"

    def _print_Add(self, e, order=None):
        terms = [_strip_sign(term) for term in _terms(e)]
        if terms[0][0]:
            terms.sort(key=lambda signed: signed[0])
        text = "-" if terms[0][0] else ""
        for position, (negative, term) in enumerate(terms):
            if position:
                text += " - " if negative else " + "
            loose = (
                isinstance(term, Add)
                and negative
                or (negative or position)
                and _strip_sign(term)[0]
            )
            text += self._bracket(term) if loose else self._print(term)
        return text

    def _print_Mul(self, e):
        negative, e = _strip_sign(e)
        if not isinstance(e, Mul):
            return "-" + (self._bracket(e) if isinstance(e, Add) else self._print(e))
        *pieces, final = _pieces(e)
        texts = [self._piece(piece, last=False) for piece in pieces]
        texts.append(self._piece(final, last=True))
        joined = texts[0]
        for left, right in pairwise(texts):
            joined += _between(left, right) + right
        return ("-" if negative else "") + joined

    def _piece(self, piece, last):
        if isinstance(piece, tuple):
            return rf"\frac{{{self._print(piece[0])}}}{{{self._print(piece[1])}}}"
        open_ended = (
            isinstance(piece, Sum)
            or isinstance(piece, Partial | Local)
            and isinstance(piece.args[0], Sum)
        )
        loose = (
            isinstance(piece, Add) or (open_ended and not last) or _strip_sign(piece)[0]
        )
        return self._bracket(piece) if loose else self._print(piece)

    def _print_Pow(self, e):
        base, exponent = e.args
        if exponent == S.Half:
            return rf"\sqrt{{{self._print(base)}}}"
        if exponent == -1:
            return rf"\frac{{1}}{{{self._print(base)}}}"
        bare = (
            isinstance(base, Indexed | Symbol | Integer | Opaque)
            and not _strip_sign(base)[0]
        )
        text = self._print(base) if bare else self._bracket(base)
        power = self._print(exponent)
        if isinstance(exponent, Rational):
            power = f"{exponent.p}/{exponent.q}".removesuffix("/1")
        return f"{text}^{{{power}}}"

    def _print_Function(self, e):
        if not isinstance(e, Opaque):
            return super()._print_Function(e)
        name = re.sub(r"^\\mathrm", r"\\operatorname", name_latex(e.letter))
        return name + "'" * e.order + self._bracket(e.args[0])

    def _print_Abs(self, e):
        return rf"\left| {self._print(e.args[0])} \right|"

    def _print_im(self, e):
        return rf"\operatorname{{Im}} {self._print(e.args[0])}"

    def _print_Root(self, e):
        return rf"\sqrt{{{self._print(e.args[0])}}}"

    def _print_Reciprocal(self, e):
        return rf"\frac{{1}}{{{self._print(e.args[0])}}}"


def _terms(e):
    """The terms of a sum, nested sums opened."""
    return [
        term
        for part in e.args
        for term in (_terms(part) if isinstance(part, Add) else [part])
    ]


def _strip_sign(e):
    """(whether e begins with a minus, e without it)."""
    if isinstance(e, Number) and e.is_negative:
        return True, -e
    if isinstance(e, Mul):
        negative, first = _strip_sign(e.args[0])
        if negative:
            factors = e.args[1:] if first == 1 else (first, *e.args[1:])
            return True, Mul(*factors, evaluate=False)
    return False, e


def _pieces(e):
    """A product as a row of factors and of fractions (numerator, denominator).

    A product of two is as it was written, a / b dividing all of a; one of more factors was put together by SymPy,
    and has its plain factors in one fraction.
    """
    if not isinstance(e, Mul):
        return [(S.One, e.base)] if isinstance(e, Pow) and e.exp == -1 else [e]
    if len(e.args) > 2:
        return _gathered(e)
    left, right = e.args
    if left == 1:
        return _pieces(right)
    if isinstance(right, Pow) and right.exp == -1:
        above = _pieces(left)
        if len(above) == 1 and isinstance(above[0], tuple):
            return [(above[0][0], Mul(above[0][1], right.base, evaluate=False))]
        return [(left, right.base)]
    return _pieces(left) + ([right] if _strip_sign(right)[0] else _pieces(right))


def _gathered(e):
    above, under, apart = [], [], []
    for factor in e.args:
        if isinstance(factor, Pow) and factor.exp.is_negative:
            under.append(Pow(factor.base, -factor.exp))
        elif isinstance(factor, Sum | Add | Partial | Local):
            apart.append(factor)
        elif isinstance(factor, Rational) and factor.q != 1:
            under.insert(0, Integer(factor.q))
            if factor.p != 1:
                above.append(Integer(factor.p))
        else:
            above.append(factor)
    if not under:
        return above + apart
    return [tuple(Mul(*part, evaluate=False) for part in (above, under)), *apart]


def _between(left, right):
    if left[-1].isdigit() and right[0].isdigit():
        return r" \cdot "
    opening = right.startswith(("(", r"\left", r"\frac", r"\sum"))
    upright = r"\mathrm" in left + right
    return r" \, " if upright and not opening and not left.startswith(r"\frac") else " "
