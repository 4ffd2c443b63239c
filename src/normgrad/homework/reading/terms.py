"""An equation as terms: of each its coefficient in M and N, its factors, and its sums over rows or columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from sympy import Add, Expr, Indexed, Mul, S, Sum, cancel

from ...symbolic.proof import lettered
from ...symbolic.symbols import M, N, i, j

ORDER = ("rstd", "weight", "x_hat", "q", "x", "mean", "wdy", "dy")
AXES = {"columns": "", "rows": ", axis=0", "rows columns": ", axis=None"}


class Factors(NamedTuple):
    """A product of named factors with their powers, in a fixed order."""

    powers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, counted: Counter) -> Factors:
        """The factors that a Counter holds."""
        powers = sorted((name, n) for name, n in counted.items() if n)
        return cls(tuple(powers))

    @property
    def counted(self) -> Counter:
        """{name: power}."""
        return Counter(dict(self.powers))


class Total(NamedTuple):
    """A sum of a product. Args: axes: a key of AXES, what it runs over; body: the product"""

    axes: str
    body: Factors


@dataclass(frozen=True)
class Term:
    """One term. Args: coefficient: in M and N; outer: factors outside of sums; sums: each sum, in a fixed order."""

    coefficient: Expr
    outer: Factors
    sums: tuple[Total, ...] = ()

    @property
    def product(self) -> tuple:
        """The term without its coefficient."""
        return self.outer, self.sums

    @property
    def flat(self) -> Counter:
        """All factors, those of the sums among them."""
        counted = self.outer.counted
        for total in self.sums:
            counted.update(total.body.counted)
        return Counter({name: n for name, n in counted.items() if n})

    @property
    def unsigned(self) -> Term:
        """The term without a minus sign."""
        return replace(self, coefficient=abs_of(self.coefficient))

    def __str__(self):
        number, means = self.coefficient, []
        for axes, body in self.sums:
            name = "sum"
            for size in (N, M):
                word = "columns" if size == N else "rows"
                if word in axes and (number * size).has(size) is False:
                    number, name = number * size, "mean"
            product = _product(body)
            where = ", over i" if "[i, " in product else AXES[axes]
            means.append(f"{name}({product}{where})")
        product = "" if not self.outer.powers else _product(self.outer)
        parts = [part for part in (product, *means) if part]
        top, bottom = number.as_numer_denom()
        size = "" if top in (1, -1) and parts else _number(abs_of(top))
        divisor = "" if bottom == 1 else f" / {_number(bottom)}"
        sign = "-" if top.could_extract_minus_sign() else ""
        return sign + " * ".join([size, *parts] if size else parts) + divisor


def abs_of(e: Expr) -> Expr:
    """The expression without a minus sign in front."""
    return -e if e.could_extract_minus_sign() else e


def _number(e):
    text = str(e)
    return f"({text})" if e.is_Add or e.is_Mul and not e.is_number else text


def _product(factors):
    """A product as it is read: weight * dy is wdy."""
    powers = factors.counted
    if powers["weight"] > 0 and powers["dy"] > 0:
        powers.update({"weight": -1, "dy": -1, "wdy": 1})
    names = sorted(
        (name for name, n in powers.items() if n),
        key=lambda name: (ORDER.index(name) if name in ORDER else 9, name),
    )
    above, below = [], []
    for name in names:
        power = powers[name]
        text = f"({name})" if set("+-") & set(name) else name
        text = text if abs(power) == 1 else f"{text}**{abs(power)}"
        (above if power > 0 else below).append(text)
    return " * ".join(above or ["1"]) + "".join(f" / {text}" for text in below)


def written(terms: Iterable[Term]) -> str:
    """A sum of terms as text; 0 without one."""
    return " + ".join(map(str, terms)).replace("+ -", "- ") or "0"


def is_opaque(terms: Iterable[Term]) -> bool:
    """Whether a term has a root, a quotient or another function in it."""
    return any(set("(+-") & set(name) for term in terms for name in term.flat)


def terms_of(parts: Iterable[Expr], letters: bool = False) -> list[Term]:
    """The terms of a sum in normal form, those with one product added up.

    Args:  parts: the summands, in the definitions' symbols; letters: whether a factor's name has its indices
    """
    added: dict[tuple, Expr] = {}
    for part in parts:
        term = _term(part, letters)
        added[term.product] = added.get(term.product, S.Zero) + term.coefficient
    terms = []
    for (outer, sums), coefficient in added.items():
        coefficient = cancel(coefficient)
        if coefficient != 0:
            terms.append(Term(coefficient, outer, sums))
    return sorted(terms, key=lambda term: (len(term.sums), term.outer, term.sums))


def _term(e, letters):
    coefficient, outer, sums = S.One, Counter(), []
    for factor in Mul.make_args(e):
        base, power = factor.as_base_exp()
        if factor.free_symbols <= {M, N} and not factor.has(Sum):
            coefficient *= factor
        elif isinstance(base, Sum) and power.is_Integer and power > 0:
            sums += [_total(base, letters)] * int(power)
        elif power.is_Integer:
            outer[_factor(base, letters)] += int(power)
        else:
            outer[lettered(factor)[0]] += 1
    return Term(coefficient, Factors.of(outer), tuple(sorted(sums)))


def _factor(e, letters):
    """The name of a factor before a sum, that of a sum in a divisor, too."""
    if letters or not isinstance(e, Add | Sum):
        return _name(e, (), "", letters)
    return written(terms_of(e.args if isinstance(e, Add) else [e]))


def _total(e, letters):
    bound = {letter: last for letter, _, last in e.limits}
    words = [
        word for word, size in (("rows", M), ("columns", N)) if size in bound.values()
    ]
    axes = " ".join(words)
    body: Counter = Counter()
    is_read = axes in AXES and len(bound) == len(words)
    for factor in Mul.make_args(e.function):
        base, power = factor.as_base_exp()
        if not is_read or not power.is_Integer:
            return Total("columns", Factors(((lettered(e)[0], 1),)))
        body[_name(base, tuple(bound), axes, letters)] += int(power)
    return Total(axes, Factors.of(body))


def _name(e, bound, axes, letters):
    """The name of a factor; one with other indices than its place asks for has them in its name."""
    if not isinstance(e, Indexed):
        return lettered(e)[0]
    label, indices = str(e.base.label), []
    if letters:
        sizes = zip(e.indices, e.base.shape, strict=True)
        names = [{M: "i", N: "r"}[n] if k in bound else str(k) for k, n in sizes]
        return f"{label}[{', '.join(names)}]"
    usual = True
    for index, size in zip(e.indices, e.base.shape, strict=True):
        letter, word = (i, "rows") if size == M else (j, "columns")
        right = index in bound if word in axes else index == letter
        usual = usual and right
        indices.append(":" if index in bound else str(index))
    return label if usual else f"{label}[{', '.join(indices)}]"
