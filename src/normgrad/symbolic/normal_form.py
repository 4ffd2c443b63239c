"""The proof kernel: a normal form for finite sums, Kronecker deltas and square roots, for symbolic dimensions.

Two expressions with one normal form are equal for every value of their dimensions. The form is a polynomial in
tensors, deltas, canonical power sums, exponentials of single terms, and two kinds of opaque generators, `Root` and
`Reciprocal`, whose arguments are normal forms themselves. It assumes that a free index lies within its range, and
nothing else. Clearing denominators turns a normal form into a polynomial that is 0 exactly when the normal form is.
"""

from __future__ import annotations

from functools import cache, lru_cache

import sympy
from sympy import (
    Add,
    Dummy,
    Expr,
    Function,
    Indexed,
    KroneckerDelta,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    Tuple,
    cancel,
    evaluate,
    exp,
    log,
    sqrt,
)

from .calculus import resolve
from .notation import INDEX, Local, Partial
from .patience import check_size, look
from .signs import is_nonnegative, is_positive


class Root(Function):
    """The positive square root of a normal form, opaque to SymPy."""

    nargs = 1


class Reciprocal(Function):
    """The reciprocal of a normal form, opaque to SymPy."""

    nargs = 1


def nf(e: Expr) -> Expr:
    """The normal form of an expression.

    Raises:  NotImplementedError for roots other than square roots, and for deltas of shifted indices; OutOfPatience
             where a limit of time is set and passed, or where it has too many terms
    """
    with evaluate(True):
        return _nf(sympy.sympify(e))


def _nf(e):
    look()
    if e.is_Atom or isinstance(e, Indexed):
        return e
    if isinstance(e, KroneckerDelta):
        return KroneckerDelta(*e.args)
    if isinstance(e, Sum | Root | Reciprocal):
        return _generator(e)
    if isinstance(e, Partial | Local):
        return _nf(resolve(e))
    if isinstance(e, exp):
        return exponential(_nf(e.args[0]))
    if isinstance(e, log):
        return logarithm(_nf(e.args[0]))
    if isinstance(e, Pow):
        if not e.exp.is_number and e.base.is_number and e.base.is_positive:
            return exponential(_nf(e.exp * log(e.base)))
        return power(_nf(e.base), _nf(e.exp))
    parts = [_nf(part) for part in e.args]
    if isinstance(e, Add):
        return multiply_out(Add(*parts))
    return contract(Mul(*parts)) if isinstance(e, Mul) else e.func(*parts)


@lru_cache(maxsize=4096)
def _generator(e):
    """The normal form of a sum, a root or a reciprocal; remembered, since the terms of a product share them."""
    if isinstance(e, Root | Reciprocal):
        exponent = S.Half if isinstance(e, Root) else S.NegativeOne
        return power(_nf(e.args[0]), exponent)
    fresh = {letter: _letter() for letter in e.variables}
    body = _nf(e.function.xreplace(fresh))
    for r, first, last in e.limits:
        body = _sum_over(body, (fresh[r], first, last))
    return body


def forget() -> None:
    """Forget the forms of sums: what is counted from now on is the same whatever was proved before."""
    _generator.cache_clear()


def equal(left: Expr, right: Expr) -> bool:
    """Whether two expressions are one polynomial once denominators are cleared: they are equal at every size."""
    return clear(multiply_out(nf(left) - nf(right)))[0] == 0


def exponential(e: Expr) -> Expr:
    """exp of a normal form: a product, with a factor for each of its terms."""
    factors = []
    for term in Add.make_args(e):
        times, part = term.as_coeff_Mul()
        factor = exp(term)
        if isinstance(part, log) and times.is_Integer:
            factor = power(part.args[0], times)
        factors.append(factor)
    return Mul(*factors)


def logarithm(e: Expr) -> Expr:
    """log of a normal form, which is positive: a sum, with a term for each of its positive factors."""
    content, primitive = split_content(e) if e.is_Add else (S.One, e)
    terms, argument = [], S.One
    for factor in (*Mul.make_args(content), *Mul.make_args(primitive)):
        base, times = factor, S.One
        if factor.is_Pow:
            base, times = factor.as_base_exp()
        if isinstance(base, Reciprocal):
            base, times = base.args[0], -times
        if isinstance(factor, exp):
            terms.append(factor.args[0])
        elif is_positive(base):
            terms.append(times * log(base))
        else:
            argument *= factor
    return multiply_out(Add(*terms, log(argument)))


def as_powers(e: Expr) -> Expr:
    """A normal form with its opaque roots and reciprocals as powers again, to be printed and differentiated."""
    return e.replace(Root, sqrt).replace(Reciprocal, lambda base: 1 / base)


def multiply_out(e: Expr) -> Expr:
    """The expanded expression; powers are left whole, since expanding half powers breaks the normal form."""
    return sympy.expand(
        check_size(e), power_base=False, power_exp=False, log=False, basic=False
    )


@lru_cache(maxsize=4096)
def _symbols(e):
    """The symbols of a factor. A letter that is asked for is never bound inside, so that it is there only if free."""
    return frozenset(e.atoms(Symbol))


def _letter():
    return Dummy("r", **INDEX)


def contract(e: Expr) -> Expr:
    """The expanded expression with delta(i, j) F(j) written as delta(i, j) F(i), and no delta squared."""
    e = multiply_out(e)
    return (
        Add(*[_contract_term(term) for term in Add.make_args(e)])
        if e.has(KroneckerDelta)
        else e
    )


def _contract_term(term):
    factors = Mul.make_args(term)
    for position, factor in enumerate(factors):
        pair, exponent = factor.as_base_exp()
        if not isinstance(pair, KroneckerDelta):
            continue
        kept, dropped = pair.indices
        if not all(letter.is_Symbol or letter.is_Integer for letter in (kept, dropped)):
            raise NotImplementedError(f"{pair}: a delta of a shifted index")
        if not dropped.is_Symbol:
            kept, dropped = dropped, kept
        cofactor = Mul(*factors[:position], *factors[position + 1 :])
        if dropped in _symbols(cofactor):
            return contract(pair * _nf(cofactor.xreplace({dropped: kept})))
        if exponent != 1:
            return _contract_term(pair * cofactor)
    return term


def _sum_over(body, limit):
    r, first, last = limit
    terms = []
    for term in Add.make_args(contract(body)):
        outside, inside = [], []
        for factor in Mul.make_args(term):
            (inside if r in _symbols(factor) else outside).append(factor)
        pair = next(
            (factor for factor in inside if isinstance(factor, KroneckerDelta)), None
        )
        if pair is not None:
            inside.remove(pair)
            index = pair.args[0] if pair.args[1] == r else pair.args[1]
            terms.append(_nf(Mul(*outside) * Mul(*inside).xreplace({r: index})))
        else:
            inside = _with_absolute_values(inside)
            terms.append(
                Mul(*outside)
                * (_canonical_sum(inside, limit) if inside else last - first + 1)
            )
    return multiply_out(Add(*terms))


def _with_absolute_values(factors):
    """The factors with |a| for a**2 / |a|, and a**2 for |a|**2; |a| is the root of a**2.

    Outside of a sum denominators are cleared, and the two are one; within it they stay.
    """
    bases = [factor.as_base_exp()[0] for factor in factors]
    roots = [base for base in bases if isinstance(base, Root)]
    if not roots:
        return factors
    powers = Mul(*factors).as_powers_dict()
    for root in roots:
        a, exponent = root.args[0].as_base_exp()
        times, whole = powers[root], powers.get(a, S.Zero)
        if exponent != 2 or not (times.is_Integer and whole.is_Integer):
            continue
        squares = times // 2
        if times < 0:
            squares = -min(max(whole, 0) // 2, -(times // 2))
        powers[root], powers[a] = times - 2 * squares, whole + 2 * squares
    product = Mul(*[base**exponent for base, exponent in powers.items()])
    return [factor for factor in Mul.make_args(product) if factor != 1]


@cache
def _bound(level):
    return Dummy(f"r{level}", **INDEX)


def _depth(e):
    letters = [letter.name for part in e.atoms(Sum) for letter in part.variables]
    return max((int(name[1:]) for name in letters if name[1:].isdigit()), default=0)


def _canonical_sum(factors, limit):
    """One sum for a product that does not separate: inner sums are pulled out."""
    body, limits = [], [limit]
    for factor in factors:
        base, exponent = factor.as_base_exp()
        if not (isinstance(base, Sum) and exponent.is_Integer and exponent > 0):
            body.append(factor)
            continue
        for _ in range(int(exponent)):
            fresh = {r: _letter() for r in base.variables}
            body.append(base.function.xreplace(fresh))
            limits += [(fresh[r], first, last) for r, first, last in base.limits]
    product = Mul(*body)
    start = _depth(product) + 1
    names, ordered = {}, []
    for level, (r, first, last) in enumerate(_in_order(limits, product), start=start):
        names[r] = _bound(level)
        ordered.append((names[r], first, last))
    return Sum(product.xreplace(names), *ordered)


def _in_order(limits, product):
    """The limits of a sum in an order that does not depend on the names of their letters.

    Letters are told apart by what they stand in, again and again (colour refinement). Of letters that this does not
    tell apart one is marked: any of them will do where they can change places, as in the trace of A A.
    """
    ranks = _ranked({r: str(last) for r, _, last in limits})
    while len(set(ranks.values())) < len(ranks):
        look()
        seen = {r: (rank, _seen_from(product, r, ranks)) for r, rank in ranks.items()}
        finer = _ranked(seen)
        if finer == ranks:
            shared = [
                rank for rank in ranks.values() if [*ranks.values()].count(rank) > 1
            ]
            marked = next(r for r, rank in ranks.items() if rank == min(shared))
            finer[marked] -= 1
        ranks = finer
    return sorted(limits, key=lambda limit: ranks[limit[0]])


def _ranked(keys):
    """For every letter, twice the number of letters with a lesser key."""
    ordered = sorted(keys.values())
    return {letter: 2 * ordered.index(key) for letter, key in keys.items()}


def _seen_from(product, letter, ranks):
    """The product as a text in which the other letters are known by their ranks alone."""
    names = {index: Symbol(f"c{rank}", **INDEX) for index, rank in ranks.items()}
    return str(product.xreplace({**names, letter: Symbol("here", **INDEX)}))


def power(base: Expr, exponent: Expr) -> Expr:
    """The normal form of base**exponent, for a base in normal form."""
    if exponent.is_Integer and exponent > 0:
        return contract(base**exponent)
    if (
        base.has(Root, Reciprocal)
        and base.has(Sum)
        and not isinstance(base, Root | Reciprocal)
    ):
        base = reduce_fraction(base)
    if base.is_Symbol or base.is_number or isinstance(base, exp):
        return Pow(base, exponent)
    if isinstance(base, Reciprocal):
        return power(base.args[0], -exponent)
    if isinstance(base, Root):
        # the root of a square is an absolute value
        square = base.args[0].is_Pow and base.args[0].exp == 2
        whole = exponent.is_Integer or square
        return _radical(base, exponent) if whole else power(base.args[0], exponent / 2)
    if base.is_Mul or base.is_Pow:
        split, kept = _split_factors(base, exponent)
        if split != 1:
            return split if kept == 1 else split * power(kept, exponent)
    if base.is_Add and not base.has(Root, Reciprocal):
        content, primitive = split_content(base)
        if content != 1:
            return Pow(content, exponent).expand(force=True) * power(
                primitive, exponent
            )
        squares = S.One if exponent.is_Integer else _common_squares(base)
        if squares != 1:
            return _split_factors(squares, exponent)[0] * power(
                multiply_out(base / squares), exponent
            )
    if base.is_Add and base.has(Reciprocal) and not exponent.is_Integer:
        numerator, factors = clear(base)
        if factors and all(
            isinstance(factor, Root) or is_nonnegative(factor) for factor, _ in factors
        ):
            return contract(
                power(numerator, exponent)
                * Mul(*[power(g, -k * exponent) for g, k in factors])
            )
    return _radical(base, exponent)


def _radical(base, exponent):
    """base**exponent as a power of opaque generators: a fourth root is a root of a root."""
    if exponent.is_Integer:
        return (
            base**exponent
            if isinstance(base, Root)
            else Reciprocal(base) ** (-exponent)
        )
    if exponent.is_Rational and exponent.q & (exponent.q - 1) == 0:
        for _ in range(int(exponent.q).bit_length() - 1):
            base = Root(base)
        return base**exponent.p
    raise NotImplementedError(
        f"({base})**({exponent}): only square roots, and roots of roots such as the fourth, have a normal form"
    )


def _lowest_powers(terms):
    """{base: its lowest power in the terms}, of what is no number."""
    powers = [term.as_powers_dict() for term in terms]
    return {
        base: min(power.get(base, S.Zero) for power in powers)
        for base in powers[0]
        if not base.is_number
    }


def _common_squares(e):
    """The even powers that all terms of a sum share."""
    shared = _lowest_powers(Add.make_args(e)).items()
    return Mul(*[b ** (n - n % 2) for b, n in shared if n.is_Integer and n > 1])


def _split_factors(base, exponent):
    """The factors of a product with a known sign of their powers, raised to the exponent, and what is left."""
    split = kept = S.One
    for factor in Mul.make_args(base):
        inner, inner_exponent = factor.as_base_exp()
        if isinstance(factor, exp):
            split *= exp(factor.args[0] * exponent)
        elif isinstance(inner, Root) or (inner.is_Symbol and inner.is_positive):
            split *= power(inner, inner_exponent * exponent)
        elif factor.is_number and factor.is_positive:
            split *= Pow(factor, exponent)
        elif exponent.is_Integer or inner.is_number:
            kept *= factor
        elif isinstance(inner, Sum) and is_nonnegative(inner):
            split *= power(inner, inner_exponent * exponent)
        elif (
            inner_exponent.is_Integer
            and inner_exponent % 2 == 0
            and not isinstance(inner, Reciprocal)
        ):
            split *= _radical(Root(inner**2), inner_exponent * exponent)
        else:
            kept *= factor
    return split, kept


def split_content(e: Expr) -> tuple[Expr, Expr]:
    """A sum as (content, primitive): the content is a positive number times powers of positive symbols and of e.

    Two radicands that differ by such a factor then share one `Root`.
    """
    numerator, denominator = sympy.fraction(sympy.together(e))
    numerator = multiply_out(numerator)
    content, numerator = (
        numerator.as_content_primitive() if numerator.is_Add else (S.One, numerator)
    )
    terms = Add.make_args(numerator)
    shared = _lowest_powers(terms).items()
    monomial = Mul(*[b**n for b, n in shared if b.is_Symbol and b.is_positive])
    monomial *= _common_exponential(terms)
    content = content * monomial / denominator
    bases = [factor.as_base_exp()[0] for factor in Mul.make_args(content)]
    if not all((b.is_Symbol or b.is_number) and b.is_positive for b in bases):
        return S.One, e
    return content, multiply_out(numerator / monomial)


def _common_exponential(terms):
    """The exponential with the lowest power of each exp(a) that the terms have."""
    exponents = [
        dict(part.as_coeff_Mul()[::-1] for part in Add.make_args(_exponent(term)))
        for term in terms
    ]
    letters = dict.fromkeys(letter for powers in exponents for letter in powers)
    return Mul(
        *[
            exp(letter * min(powers.get(letter, S.Zero) for powers in exponents))
            for letter in letters
        ]
    )


def _exponent(term):
    return Add(
        *[factor.args[0] for factor in Mul.make_args(term) if isinstance(factor, exp)]
    )


def letters_of_sums(*expressions: Expr) -> dict[Sum, Symbol]:
    """{sum: a letter for it}, S1, S2, ..., of all sums in expressions."""
    sums = sorted(Tuple(*expressions).atoms(Sum), key=str)
    return {e: Symbol(f"S{number}") for number, e in enumerate(sums, start=1)}


def cleared_sides(left: Expr, right: Expr) -> tuple[Expr, tuple[Expr, Expr]]:
    """(multiplier, (left, right)): two normal forms, multiplied by what clears both of denominators."""
    tag = Dummy("tag", positive=True)  # keeps the sides apart
    cleared, factors = clear(multiply_out(left - tag * right))
    multiplier = Mul(*[factor**exponent for factor, exponent in factors])
    return multiplier, (cleared.coeff(tag, 0), -cleared.coeff(tag, 1))


def clear(e: Expr) -> tuple[Expr, list[tuple[Expr, int]]]:
    """A normal form times non-zero factors, as a polynomial in which no root is squared.

    Args:     e: a normal form
    Returns:  (polynomial, [(factor, power), ...]): e times the factors' powers; e is 0 if the polynomial is 0
    """
    factors = []
    while True:
        look()
        generators = _generators(e)
        reciprocals = [g for g in generators if isinstance(g, Reciprocal)]
        if reciprocals:
            # the longest one first: it may contain the others
            g = max(reciprocals, key=lambda g: (len(str(g)), str(g)))
            base, highest = g.args[0], max(_degrees(e, g))
            e = _with_powers(e, g, {k: base ** (highest - k) for k in _degrees(e, g)})
            factors.append((base, highest))
            continue
        for g in generators:
            lowest = min(_degrees(e, g))
            if lowest < 0:
                e = multiply_out(e * g ** (-lowest))
                factors.append((g, -lowest))
        squared = [g for g in generators if max(_degrees(e, g)) >= 2]
        if not squared:
            return e, factors
        for g in squared:
            powers = {k: g.args[0] ** (k // 2) * g ** (k % 2) for k in _degrees(e, g)}
            e = _with_powers(e, g, powers)


def _degrees(e, g):
    """The powers of a generator in the terms of an expression."""
    return [term.as_powers_dict().get(g, 0) for term in Add.make_args(e)]


def _with_powers(e, g, powers):
    """The expression with others in place of the powers of a generator."""
    terms = zip(Add.make_args(e), _degrees(e, g), strict=True)
    return contract(Add(*[term / g**k * powers[k] for term, k in terms]))


def _generators(e):
    """The roots and reciprocals that e is a polynomial in, in a fixed order; not those inside sums and functions."""
    generators, waiting = set(), [e]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Root | Reciprocal):
            generators.add(part)
        elif isinstance(part, Add | Mul | Pow):
            waiting.extend(part.args[:1] if isinstance(part, Pow) else part.args)
    return sorted(generators, key=str)


def reduce_fraction(e: Expr) -> Expr:
    """A normal form with roots and reciprocals in lowest terms, where that leaves none of them; else unchanged.

    It makes sqrt(mean(x_hat**2)) of a normalized row recognisable, which carries the row's own root inside.
    """
    numerator, factors = clear(e)
    denominator, left = clear(
        contract(Mul(*[factor**exponent for factor, exponent in factors]))
    )
    if left:
        return e
    reduced = cancel(numerator / denominator)
    return e if reduced.has(Root, Reciprocal) else nf(reduced)
