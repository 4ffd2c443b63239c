"""Rewriting: chain rule, earlier results, contraction. What is rewritten is proved elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

from sympy import (
    Add,
    Dummy,
    Expr,
    Indexed,
    IndexedBase,
    KroneckerDelta,
    Mul,
    S,
    Sum,
    Symbol,
)

from .calculus import D, free_letters
from .definitions import Defs, numbered
from .normal_form import as_powers, multiply_out, nf
from .notation import (
    Partial,
    entry_of,
    indices_of,
    name_of,
    names_in,
    rename_bound,
    total_over,
    with_parts,
)


def everywhere(e: Expr, kind: type, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with every outermost node of a kind changed."""
    if isinstance(e, kind):
        return change(e)
    return with_parts(e, lambda part: everywhere(part, kind, change))


def put_away(e: Expr, kinds, names: dict) -> Expr:
    """The expression with a name for every derivative that is not carried out; its indices are the name's.

    Args:  kinds: Partial, or several kinds of derivatives; names: those given so far, for `put_back`
    """

    def name(node):
        f, v, *held = node.args
        indices = (*indices_of(f), *indices_of(v))
        if not isinstance(f, Indexed | Symbol) or not indices:
            return names.setdefault(node, Dummy("derivative", real=True))
        key = node.func, name_of(f), name_of(v), len(indices_of(f)), *held
        return names.setdefault(key, IndexedBase(Dummy("derivative", real=True)))[
            indices
        ]

    return everywhere(e, kinds, name)


def put_back(e: Expr, names: dict) -> Expr:
    """The expression with the derivatives that names stand for."""
    derivatives = {name: key for key, name in names.items()}

    def derivative(part):
        key = derivatives[name_of(part)]
        if not isinstance(key, tuple):
            return key
        kind, f, v, split, *held = key
        own, second = part.indices[:split], part.indices[split:]
        return kind(entry_of(f, own), entry_of(v, second), *held)

    def is_name(part):
        return isinstance(part, Indexed | Dummy) and name_of(part) in derivatives

    return e.replace(is_name, derivative)


def normal(e: Expr) -> Expr:
    """The normal form, printable, in which derivatives that are not carried out yet stay as they are."""
    names = {}
    return put_back(as_powers(nf(put_away(e, Partial, names))), names)


# -- chain rule


def _one_level(node, defs):
    """A total derivative by the derivatives of what the definition is made of, each times its local derivative."""
    f, v = node.args
    defs = defs.without(v)
    body = rename_bound(defs.opened(f))
    names = [name_of(head) for head, _ in defs if name_of(head) in names_in(body)]
    lines = {name: defs.unfold(defs.line(name)[0]) for name in names}
    through = [name for name in names if lines[name].has(name_of(v))]
    return Add(contracted(D(body, v)), *[_passed(body, name, v) for name in through])


def _passed(body, name, v):
    """What a quantity passes on: the body's derivative with respect to it, times its own with respect to v."""

    def at_entry(*place):
        entry = entry_of(name, place)
        return D(body, entry) * Partial(entry, v)

    return contracted(total_over(getattr(name, "shape", ()), at_entry))


def contracted(e: Expr) -> Expr:
    """The sums carried out in which a delta has a summed index, and those of nothing."""

    def carried_out(part):
        if part.function == 0:
            return S.Zero
        return normal(part) if has_bound_delta(part) else part

    return in_sums(rename_bound(e), carried_out)


def chain_rule(e: Expr, defs: Defs) -> Expr:
    """Every derivative one definition deep: by what the definition is made of, each times its own derivative."""
    return everywhere(e, Partial, lambda node: _one_level(node, defs))


# -- earlier results


def substituted(e: Expr, *results) -> Expr:
    """The expression with earlier results put in: what has the form of a left side becomes the right side.

    Args:  results: each with lhs and rhs; the letters of their indices stand for any letter
    """
    for result in results:
        e = _substituted(rename_bound(e), result.lhs, result.rhs)
    return e


def _substituted(e, lhs, rhs):
    lhs, letters = rename_bound(lhs), sorted(free_letters(lhs), key=str)
    entries = e.atoms(Indexed, KroneckerDelta)
    indices = {index for entry in entries for index in entry.indices if index.is_Symbol}
    forms = {}
    for place in product(sorted(indices, key=str), repeat=len(letters)):
        change = dict(zip(letters, place, strict=True))
        forms[numbered(lhs.xreplace(change))] = change

    def put_in(part):
        if type(part) is type(lhs) and numbered(part) in forms:
            return rename_bound(rhs).xreplace(forms[numbered(part)])
        if isinstance(part, Add | Mul) and type(part) is type(lhs):
            # the terms or the factors among others
            own = Counter(map(numbered, part.args))
            for form, change in forms.items():
                found = Counter(form.args)
                if found <= own:
                    remaining = (own - found).elements()
                    return part.func(rename_bound(rhs).xreplace(change), *remaining)
        return with_parts(part, put_in)

    return put_in(e)


# -- sums


def in_sums(e: Expr, rewrite: Callable[[Sum], Expr]) -> Expr:
    """The expression with its sums rewritten, innermost first."""
    if isinstance(e, KroneckerDelta | Partial):
        return e
    if isinstance(e, Sum):
        return rewrite(Sum(in_sums(e.function, rewrite), *e.limits))
    return with_parts(e, lambda part: in_sums(part, rewrite))


def _terms(summed):
    return Add.make_args(multiply_out(summed.function))


def split_terms(summed: Sum) -> Expr:
    """A sum as one sum per term, the sign in front."""
    signed = [
        (-1, -term) if term.could_extract_minus_sign() else (1, term)
        for term in _terms(summed)
    ]
    return Add(*[sign * Sum(term, *summed.limits) for sign, term in signed])


def has_bound_delta(summed: Sum) -> bool:
    """Whether a delta in the sum has a summed letter, so that it can be contracted."""
    return any(
        not set(summed.variables).isdisjoint(pair.indices)
        for term in _terms(summed)
        for pair in term.atoms(KroneckerDelta)
    )


def has_constant(summed: Sum) -> bool:
    """Whether a term of the sum has a factor without a summed letter, which can be pulled out."""
    factors = [factor for term in _terms(summed) for factor in Mul.make_args(term)]
    return any(not factor.has_free(*summed.variables) for factor in factors)
