"""Where digits are lost: a difference of nearly equal numbers, an exponential that overflows, 16 bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from itertools import product

from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Indexed,
    Max,
    Min,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    degree,
    exp,
    expand,
    log,
)

from ..symbolic.notation import name_of
from ..symbolic.symbols import N

# what all entries of a row are, where they are equal
LEVEL = Symbol("level", positive=True)
# {a tensor: its entries then}
ON_LEVEL = {"x": LEVEL, "mean": LEVEL, "residual_out": LEVEL, "residual": S.Zero}
ON_LEVEL["rstd"] = Symbol("rstd", positive=True)


def _in_lines(words, lines):
    where = ", ".join(f"line {line}" for line in dict.fromkeys(lines))
    return f"{words} ({where})"


def cancelling(lines: Iterable[int]) -> str:
    """What the claim says of the lines with such a variance."""
    return _in_lines("with a difference of nearly equal numbers", lines)


OVERFLOWS = (
    "with exp of what no maximum is subtracted from, "
    "which overflows float32 above 88 and is 0 below -104"
)


def overflowing(lines: Iterable[int]) -> str:
    """What the claim says of the lines with such an exponential."""
    return _in_lines(OVERFLOWS, lines)


VANISHES = "with exp that float32 may have as 0 for all of a row, or as infinite"
OF_ZERO = "with log of exp that float32 may have as 0"
# exp of a number that is farther from 0 than this is 0, or infinite, in float32
FAR = 88


def vanishing(exponentials: Exponentials) -> list[str]:
    """What the claim says of exponentials that are 0 for a whole row, or in a logarithm."""
    kinds = {VANISHES: exponentials.far, OF_ZERO: exponentials.logarithms}
    return [_in_lines(words, lines) for words, lines in kinds.items() if lines]


# tensors beside which an entry of x stays small
BOUNDED = {"rstd", "x_hat", "y", "lse", "loss"}
# before "in float16 (line 4)"
ROUNDED = "intermediate values"


# 16 bits


def _is_power_of_2(number):
    """Whether a number is a power of 2, or minus one."""
    if not number.is_Rational or number == 0:
        return False
    return abs(number.p).bit_count() == number.q.bit_count() == 1


def is_exact(e: Expr) -> bool:
    """Whether e is a number of the text, or an entry of a tensor, times a power of 2; or the sum of x and residual.

    For `tl.load(W).to(tl.float16)`, which loses no digit where the tensor is of float16, and for residual_out, which is
    normalized as it is stored. It leaves x * rstd, which loses digits whatever the tensors' dtypes.
    """
    if e.is_Add and all(part.is_Indexed for part in e.args):
        return {str(part.base) for part in e.args} == {"x", "residual"}
    if e.has(Heaviside):
        step = min(e.atoms(Heaviside), key=str)
        return all(is_exact(e.xreplace({step: way})) for way in (S.Zero, S.One))
    factor, entry = e.as_coeff_Mul()
    if isinstance(entry, Max | Min):
        return _is_power_of_2(factor) and all(map(is_exact, entry.args))
    return e.is_number or isinstance(entry, Indexed) and _is_power_of_2(factor)


def is_scaled(e: Expr, of: Expr) -> bool:
    """Whether e is another number times a power of 2, or its absolute value, which loses no digit of it."""
    return e == Abs(of) or of != 0 and _is_power_of_2(e / of)


# exponentials


def _exponent(e):
    """u of exp(u), or of 2**u; None of what is neither."""
    if isinstance(e, exp):
        return e.args[0]
    if isinstance(e, Pow) and e.base.is_number and e.base > 1:
        return e.exp
    return None


def _is_unbounded(e):
    """Whether an exponent grows with the entries of a tensor, from which no maximum is subtracted.

    For exp(x), exp(x - mean(x)) and exp(-gate). It leaves out x - max(x), and x beside a logarithm or root of its row.
    """
    growth, has_maximum, has_tensor = S.Zero, False, False
    for term in Add.make_args(expand(e)):
        factor, entry = term.as_coeff_Mul()
        bases = {str(part.base) for part in entry.atoms(Indexed)}
        if bases & BOUNDED:
            return False
        if isinstance(entry, Indexed) and bases <= {"x", "largest_x"}:
            growth += factor
            has_maximum |= bases == {"largest_x"}
        elif any(base.startswith("largest_") for base in bases):
            return False
        elif entry.has(Sum) and bases == {"x"}:
            if not _is_mean(entry):
                return False
        elif bases and entry.has(Sum, log):
            return False
        elif bases == {"x"}:
            growth += factor
        else:
            has_tensor |= bool(bases)
    return growth > 0 if has_maximum else bool(growth != 0 or has_tensor)


def _is_far(e, raised):
    """Whether an exponent may be far from 0 for all entries of a row, though a maximum is subtracted.

    For exp(x - max(x) - 200), exp(x - 2 max(x)), and exp(x - m) where lanes past the end hold 0 and m is the largest of
    them, too: a row of numbers below -200 has 0 / 0 then.

    Args:  raised: the names of what may be larger than the largest of its row
    """
    terms = dict(term.as_coeff_Mul()[::-1] for term in Add.make_args(expand(e)))
    bases = {str(part.base) for part in e.atoms(Indexed)}
    if not any(base.startswith("largest_") for base in bases):
        return False
    growth = sum(
        factor
        for entry, factor in terms.items()
        if isinstance(entry, Indexed) and str(entry.base) in ("x", "largest_x")
    )
    constant = terms.get(S.One, S.Zero)
    is_lower = "largest_x" in bases and growth < 0
    return bool(is_lower or abs(constant) > FAR or bases & raised)


def _is_of_others(e, heads):
    """Whether an exponent has the largest of other numbers than those from which it is subtracted.

    For exp(x - max(abs(x))), which is 0 for all of a row of numbers below -88, and exp(x + max(-x)). It leaves out
    exp(2 x - max(2 x)), and a logarithm beside the two.
    """
    largest = {name_of(head): m.e for head, m in heads.items() if not m.is_first}
    for head in e.atoms(Indexed):
        of = largest.get(name_of(head))
        if of is None:
            continue
        times = expand(e).coeff(head)
        if not times.is_negative:
            return True
        rest = _without_indices(expand(e) - times * head)
        rest = expand(rest + times * _without_indices(of))
        inside = {part: S.Zero for part in rest.atoms(log, Sum)}
        bare = rest.xreplace(inside)
        if bare.free_symbols or abs(bare) > FAR:
            return True
    return False


def _is_mean(term):
    """Whether a term is a sum of a row's entries, times a number."""
    sums = [factor for factor in Mul.make_args(term) if factor.has(Indexed)]
    return len(sums) == 1 and isinstance(sums[0], Sum) and sums[0].function.is_Indexed


def _is_infinite(e):
    """Whether a number is infinite where one of its exponentials is."""
    exponent = _exponent(e)
    if exponent is not None:
        return _is_unbounded(exponent)
    if isinstance(e, Add):
        return any(map(_is_infinite, e.args))
    if isinstance(e, Mul):
        return any(map(_is_infinite, e.args)) and not any(map(_is_zero, e.args))
    if isinstance(e, Pow):
        return bool(e.exp.is_positive) and _is_infinite(e.base)
    return isinstance(e, Sum) and _is_infinite(e.function)


def _is_zero(e):
    """Whether a number is 0 where one of its exponentials is infinite."""
    if isinstance(e, Mul):
        return any(map(_is_zero, e.args))
    return isinstance(e, Pow) and bool(e.exp.is_negative) and _is_infinite(e.base)


def _without_indices(e):
    """An expression in which entries of a tensor are one symbol, by which it is known with other indices."""
    entries = {entry: Symbol(str(entry.base)) for entry in e.atoms(Indexed)}
    return _added_up(e.xreplace(entries))


def _added_up(e):
    """An expression with a product for each sum of equal terms."""

    def multiplied(term, *limits):
        if term.has(*[index for index, *_ in limits]):
            return Sum(term, *limits)
        for _, first, last in limits:
            term *= last - first + 1
        return term

    return e.replace(Sum, multiplied)


class Exponentials:
    """The exponentials that may overflow, of one program.

    Args:  lines: {exponent without indices: where it is taken}; far: the lines of those that may be 0 for a whole row
           logarithms: the lines of logarithms of what is 0 where an exponential is
    """

    def __init__(self):
        self.lines: dict[Expr, int] = {}
        self.far: dict[int, None] = {}
        self.logarithms: dict[int, None] = {}

    def taken(
        self, e: Expr, line: int, heads: Mapping, raised: Set[str] = frozenset()
    ) -> None:
        """Keeps an elementary function's value, where it is an exponential that may overflow, or vanish for a row.

        Args:  heads: {the largest of a row: its Maximum}
               raised: the names of what may be larger than the largest of its row
        """
        exponent = _exponent(e)
        if exponent is None:
            return
        if _is_unbounded(exponent):
            self.lines.setdefault(_without_indices(exponent), line)
        elif _is_far(exponent, raised) or _is_of_others(exponent, heads):
            self.far[line] = None

    def of_logarithm(self, e: Expr, line: int) -> list[int]:
        """The lines of the exponentials of which a logarithm is infinite, where its value is not.

        For log(1 + exp(x)). It keeps the line of log(exp(x - max(x)) / sum(...)), which is -inf for an entry of which
        the exponential is 0.
        """
        if any(_exponent(f) is not None and f.has(Indexed) for f in Mul.make_args(e)):
            self.logarithms[line] = None
        return self._lines_of(e) if self.lines and _is_infinite(e) else []

    def of_operation(self, operator: str, a: Expr, b: Expr) -> list[int]:
        """The lines of the exponentials by which a product or quotient is nan.

        For exp(x) / sum(exp(x)), which is inf / inf. It leaves out 1 / (1 + exp(-x)), which is 0 where exp(-x) is
        infinite, as the sigmoid is.
        """
        if not self.lines or operator not in ("Mult", "Div"):
            return []
        infinite = _is_infinite(a), _is_infinite(b)
        is_nan = all(infinite)
        if operator == "Mult":
            is_nan = infinite[0] and _is_zero(b) or infinite[1] and _is_zero(a)
            is_nan |= all(infinite) and self._is_opposite(a, b)
        return self._lines_of(a, b) if is_nan else []

    @staticmethod
    def _exponents_of(*numbers):
        """The exponents without indices."""
        exponents = set()
        for e in numbers:
            for part in e.atoms(exp, Pow):
                exponent = _exponent(part)
                if exponent is not None:
                    exponents.add(_without_indices(exponent))
        return exponents

    def _is_opposite(self, a, b):
        """Whether an exponential of one number is 0 where one of the other is infinite, as exp(-x) sum(exp(x))."""
        pairs = product(self._exponents_of(a), self._exponents_of(b))
        return any((one / other).is_negative for one, other in pairs)

    def _lines_of(self, *numbers):
        exponents = self._exponents_of(*numbers)
        lines = {line for e, line in self.lines.items() if e in exponents}
        if not lines:  # exp(x / 2) ** 2 and 1 / exp(-x) are exp(x)
            for e, line in self.lines.items():
                if any((e / exponent).is_number for exponent in exponents):
                    lines.add(line)
        return sorted(lines)


# variances


def is_variance(operator: str, a: Expr, b: Expr) -> bool:
    """Whether a sum or difference loses a variance: its terms grow with the square of a row's level, it does not.

    For `square / n - mean * mean` and `x * x - mean * mean`, whose digits cancel where a row is far from 0; and for two
    numbers of a row such as its root mean square and its mean, or 1 and their quotient. It leaves out the squares of
    x - mean.
    """
    if operator not in ("Add", "Sub") or not (a.has(Indexed) or b.has(Indexed)):
        return False
    if a.is_number or b.is_number:
        powers = (a + b).atoms(Pow)
        if not any(power.exp.is_negative for power in powers):  # 1 is no quotient
            return False
    entries = a.atoms(Indexed) | b.atoms(Indexed)
    names = {str(entry.base) for entry in entries}
    on_level: Mapping = ON_LEVEL
    if len(names) == 1:
        on_level = dict.fromkeys(names, LEVEL)
    if not names <= on_level.keys():
        return False
    on_level = {entry: on_level[str(entry.base)] for entry in entries}
    of_a_row = _is_of_a_row(a) and _is_of_a_row(b)
    if not of_a_row and _is_square_of_deviation(operator, a, b, on_level):
        return True
    a, b = (expand(_added_up(e.xreplace(on_level))) for e in (a, b))
    result = expand(a - b if operator == "Sub" else a + b)
    if of_a_row:
        has_level = a.has(LEVEL) and b.has(LEVEL) and not result.has(LEVEL)
        return has_level or (a != 0 and result == 0)
    if not (a.is_polynomial(LEVEL) and b.is_polynomial(LEVEL)):
        return False
    a, b, result = (e.coeff(LEVEL, 2) for e in (a, b, result))
    return bool(a != 0 and b != 0 and result == 0)


DEVIATION = Symbol("deviation", positive=True)


def _is_square_of_deviation(operator, a, b, on_level):
    """Whether two nearly equal numbers leave the square of how far an entry is from its row's level.

    For `(x / mean) ** 2 - 1`. It leaves out `x / mean - 1`, in which it is not squared, and what is no polynomial.
    """
    sums = {total: Symbol(f"sum_{k}") for k, total in enumerate((a + b).atoms(Sum))}
    values = {name: _added_up(total.xreplace(on_level)) for total, name in sums.items()}
    near = {
        entry: level * (1 + DEVIATION) if len(entry.indices) == 2 else level
        for entry, level in on_level.items()
    }
    a, b = (expand(e.xreplace(sums).xreplace(near).xreplace(values)) for e in (a, b))
    result = expand(a - b if operator == "Sub" else a + b)
    if not result.is_polynomial(DEVIATION) or degree(result, DEVIATION) < 2:
        return False
    at_level = {DEVIATION: S.Zero}
    return a.xreplace(at_level) != 0 and result.xreplace(at_level) == 0


# of how much the entries of a row of three columns are above its level
ABOVE_LEVEL = (1, 2, 4)


def is_cancelling(e: Expr, column: Symbol) -> bool:
    """Whether the sum of a product over the columns loses a variance: its terms grow with a row's level, it does not.

    For `x * (x - mean)` and `(x - mean) * (x + mean)`, in which what the mean is rounded by is multiplied by the level.
    It leaves out `(x - mean) ** 2`, in which it is squared, and what is no product, which is_variance has.
    """
    names = {str(entry.base) for entry in e.atoms(Indexed)}
    has_mean = e.has(Sum) or "mean" in names
    if e.is_Add or not has_mean or not names <= ON_LEVEL.keys():
        return False
    try:
        terms = [expand(_in_column(e, {column: k})) for k in range(3)]
    except KeyError:
        return False
    if not all(term.is_polynomial(LEVEL) for term in terms):
        return False
    most = max(degree(term, LEVEL) for term in terms)
    return bool(most > 0 and degree(expand(Add(*terms)), LEVEL) < most)


def _in_column(e, columns):
    """An expression of a row in one of its three columns, by the row's level.

    Args:  columns: {letter: its number}
    Raises:  KeyError for an entry in another column than that of a letter, and for a sum over rows
    """
    if isinstance(e, Indexed):
        value = ON_LEVEL[str(e.base)]
        if not value.has(LEVEL):
            return value
        if len(e.indices) == 1:
            return value + Add(*ABOVE_LEVEL) / S(3)
        return value + ABOVE_LEVEL[columns[e.indices[-1]]]
    if isinstance(e, Sum):
        (index, _, last), *more = e.limits
        if more or last != N:
            raise KeyError(index)
        terms = [_in_column(e.function, columns | {index: k}) for k in range(3)]
        return Add(*terms)
    if e == N:
        return S(3)
    return e.func(*[_in_column(part, columns) for part in e.args]) if e.args else e


def _is_of_a_row(e):
    """Whether a number is the same in all columns."""
    outside = e.xreplace(dict.fromkeys(e.atoms(Sum), S.Zero))
    return all(len(entry.indices) < 2 for entry in outside.atoms(Indexed))
