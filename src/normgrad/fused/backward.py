"""The lines of a fused backward: made by reverse mode, or the reader's own closed forms, which are proved first."""

from __future__ import annotations

from itertools import product

from sympy import (
    Add,
    Expr,
    Function,
    Indexed,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    evaluate,
    exp,
    factor,
    factor_terms,
    log,
)

from ..symbolic.adjoint import reverse
from ..symbolic.calculus import free_letters
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import Reciprocal, Root, as_powers, nf
from ..symbolic.notation import Local, Partial, rename_bound, tensor
from ..symbolic.proof import Proof, prove
from ..symbolic.symbols import M, N, i, j
from .layer import (
    NUMBER,
    SHAPES,
    Layer,
    NotFused,
    canonical,
    loss_gradient,
    names_in,
    text_of,
)


def by_reverse_mode(
    layer: Layer, forward: dict[str, Expr]
) -> tuple[dict[str, Expr], dict[str, str]]:
    """(lines, {input: the name of its gradient}) as reverse mode makes them of the forward's lines."""
    defs = Defs()
    for name, e in forward.items():
        defs[layer.at(name)] = e
    trained = [
        layer.tensors[name] for name in layer.inputs if layer.kind(name) == NUMBER
    ]
    seeds = {
        layer.tensors[output]: layer.tensors[cotangent]
        for output, cotangent in layer.seeds.items()
    }
    made = list(reverse(defs, seeds, trained))[len(forward) :]
    patterns = list(_patterns(layer, forward))
    cotangents = {*layer.seeds.values(), *[text_of(head) for head, _ in made]}
    lines = {}
    for head, e in made:
        lines[layer.add(head)] = grouped(fold(canonical(head, e), patterns), cotangents)
    gradients = {name: f"d{name}" for name in layer.inputs}
    return _without_copies(layer, lines, set(gradients.values())), gradients


def _without_copies(layer, lines, kept):
    """The lines without those that only give another matrix a second name."""
    copies = {layer.tensors[name]: e.base for name, e in lines.items()
              if isinstance(e, Indexed) and name not in kept and e.indices == layer.at(name).indices}  # fmt: skip
    while any(copies.get(base) for base in copies.values()):
        copies = {name: copies.get(base, base) for name, base in copies.items()}
    return {
        name: e.xreplace(copies)
        for name, e in lines.items()
        if layer.tensors[name] not in copies
    }


def fold(e: Expr, patterns: list[tuple[Expr, Expr]]) -> Expr:
    """The expression in the names that the forward has given to roots, quotients, functions and sums.

    Args:  patterns: (what stands in a normal form, what it is in those names), in the letters i and j
    """
    with evaluate(True):
        for _ in range(len(patterns) + 1):  # a name that was put in may uncover another
            before = e = nf(e)
            letters = {size: {own} | {limit[0] for one in e.atoms(Sum) for limit in one.limits if limit[2] == size}
                       for own, size in ((i, M), (j, N))}  # fmt: skip
            for pattern, value in patterns:
                for row, column in product(letters[M], letters[N]):
                    place = {i: row, j: column}
                    e = e.xreplace({pattern.xreplace(place): value.xreplace(place)})
            if e == before:
                break
        # letters of its own: a normal form has one letter for sums over rows and over columns
        return rename_bound(as_powers(e))


def grouped(e: Expr, cotangents: set[str]) -> Expr:
    """The expression with one term for each cotangent, its factor taken apart: dt * (1 - t**2), not dt - dt * t**2.

    A difference such as 1 - t**2 keeps its digits where t is near 1; two products that are nearly equal do not.
    """
    slopes: dict[Expr, Expr] = {}
    with evaluate(True):
        for term in Add.make_args(e):
            found = [one for one in Mul.make_args(term) if names_in(one) & cotangents]
            slopes[Mul(*found)] = slopes.get(Mul(*found), S.Zero) + term / Mul(*found)
        parts = [
            one * (slope if _has_quotient(slope) else factor(slope))
            for one, slope in slopes.items()
        ]
        return _with_short_numbers(factor_terms(Add(*parts)))


def _has_quotient(e):
    """Whether something is divided by a sum; over one denominator a sum over rows would be proved no more."""
    return any(part.exp.is_negative and part.base.is_Add for part in e.atoms(Pow))


def _with_short_numbers(e):
    """The expression with each sign and each long number where it reads best: (1 - t) for -(t - 1)."""
    if e.is_Add:
        return Add(*map(_with_short_numbers, e.args))
    number, rest = e.as_coeff_Mul()
    factors = [
        _with_short_numbers(one) if one.is_Add else one for one in Mul.make_args(rest)
    ]
    mixed = [
        one
        for one in factors
        if one.is_Add and any(part.could_extract_minus_sign() for part in one.args)
    ]
    if number < 0 and mixed:
        factors[factors.index(mixed[0])] = Add(*[-part for part in mixed[0].args])
        number = -number
    sums = [one for one in factors if one.is_Add]
    if number.q > 16 and sums:
        longest = max(sums, key=lambda one: len(str(one)))
        factors.remove(longest)
        return Mul(*factors) * Add(
            *[_with_short_numbers(number * part) for part in longest.args]
        )
    return number * Mul(*factors)


def _patterns(layer, forward):
    """What each line's expression looks like in a normal form: one root, quotient, function or sum, to a power."""
    for name, e in forward.items():
        with evaluate(True):
            factors = Mul.make_args(nf(e))
            plain = [one for one in factors if not one.atoms(Indexed)]
            rest = [one for one in factors if one.atoms(Indexed)]
            value = layer.at(name) / Mul(*plain)
            if isinstance(e, exp):
                # of a product of exponentials, the one that depends on the column
                own = [
                    one
                    for one in rest
                    if isinstance(one, exp) and j in free_letters(one)
                ]
                if len(own) == 1:
                    yield (
                        own[0],
                        value / Mul(*[one for one in rest if one is not own[0]]),
                    )
                continue
            if len(rest) != 1 or not all(one.is_positive for one in plain):
                continue
            base, power = rest[0].as_base_exp()
            if isinstance(base, log) and power == 1:
                yield base.args[0], exp(value)
            if isinstance(base, Function | Sum) and abs(power) == 1:
                yield base, value**power
                if isinstance(base, Root):
                    yield Reciprocal(base.args[0]), value ** (-2 * power)


def by_closed_forms(
    layer: Layer, defs: Defs, given: dict[Expr, Expr]
) -> tuple[dict, dict, dict[str, Proof]]:
    """(lines, {input: the name of its gradient}, proofs) of the reader's own formulas, each proved before it is used.

    Args:    defs: where the formulas' names are defined, the layer's own lines among them
             given: {x[i, j]: dx[i, j], ...}, a defined name or an expression for each input
    Raises:  NotProved with a point where a formula is wrong; NotFused where one is missing or too many
    """
    if not isinstance(given, dict):
        raise TypeError(
            f"gradients: got {type(given).__name__}, needs a dictionary such as {{x[i, j]: dx[i, j]}}"
        )
    wanted = {text_of(one): (one, e) for one, e in given.items()}
    for name in wanted:
        if name not in layer.inputs:
            raise NotFused(
                f"gradients: {name} is no input that gets one; those are {', '.join(layer.inputs)}"
            )
    if missing := [name for name in layer.inputs if name not in wanted]:
        raise NotFused(f"gradients: none is given for {', '.join(missing)}")
    lines, gradients, theorem = {}, {}, layer.definitions()
    for head, e in defs.reached(*[S.Zero + e for _, e in wanted.values()]):
        if text_of(head) not in {*layer.lines, *layer.maxima}:
            lines[layer.add(head)] = canonical(head, e)
    known = {*lines, *layer.lines, *layer.seeds.values()}
    for name, (one, e) in wanted.items():
        if isinstance(e, Indexed | Symbol) and text_of(e) not in {
            *known,
            *layer.tensors,
        }:
            raise NotFused(f"gradients: {text_of(e)}, for {name}, is not defined")
        if text_of(e) in known and getattr(e, "indices", ()) == getattr(
            one, "indices", ()
        ):
            gradients[name] = text_of(e)
        else:
            gradients[name] = layer.add(_head(layer, name))
            lines[gradients[name]] = canonical(one, S.Zero + e)
    for name, e in lines.items():
        if e.has(Partial, Local):
            raise NotFused(f"{name}: has a derivative; a closed form is made of values")
        theorem[layer.at(name)] = e
    proofs = {}
    for name, found in gradients.items():
        proofs[found] = prove(
            loss_gradient(layer, name), layer.at(found), theorem, where=f"d{name}"
        )
    return lines, gradients, proofs


def _head(layer, name):
    found = tensor(f"d{name}", *SHAPES[layer.kind(name)])
    return found[layer.at(name).indices] if layer.kind(name) != NUMBER else found
