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
    evaluate,
    exp,
    factor,
    factor_terms,
)

from ..symbolic.adjoint import reverse
from ..symbolic.calculus import free_letters
from ..symbolic.codegen import label
from ..symbolic.definitions import Defs
from ..symbolic.normal_form import Reciprocal, Root, as_powers, nf
from ..symbolic.notation import rename_bound
from ..symbolic.proof import Proof, prove
from ..symbolic.symbols import M, N, i, j
from .layer import (
    Layer,
    NotFused,
    canonical,
    check_functions,
    entry,
    names_in,
)


def by_reverse_mode(layer: Layer, forward: dict[str, Expr]) -> dict[str, Expr]:
    """The lines that reverse mode makes of the forward's; dx is the gradient with respect to x."""
    defs = layer.formulas(
        {name: e for name, e in forward.items() if name not in layer.maxima}
    )
    output, cotangent = layer.tensors[layer.output], layer.tensors[layer.cotangent]
    derived = list(reverse(defs, output, cotangent))[len(list(defs)) :]
    patterns = list(_patterns(layer, forward))
    cotangents = {layer.cotangent, *[label(head) for head, _ in derived]}
    lines = {}
    for head, e in derived:
        lines[layer.add(head)] = grouped(fold(canonical(head, e), patterns), cotangents)
    return lines


def fold(e: Expr, patterns: list[tuple[Expr, Expr]]) -> Expr:
    """The expression in the names that the forward has given to roots, quotients, functions and sums.

    Args:  patterns: (what stands in a normal form, what it is in those names), in the letters i and j
    """
    with evaluate(True):
        for _ in range(len(patterns) + 1):  # a name that was put in may uncover another
            before = e = nf(e)
            limits = [limit for part in e.atoms(Sum) for limit in part.limits]
            rows = {i} | {limit[0] for limit in limits if limit[2] == M}
            columns = {j} | {limit[0] for limit in limits if limit[2] == N}
            for pattern, value in patterns:
                for row, column in product(rows, columns):
                    letters = {i: row, j: column}
                    e = e.xreplace({pattern.xreplace(letters): value.xreplace(letters)})
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
            factors = [f for f in Mul.make_args(term) if names_in(f) & cotangents]
            seed = Mul(*factors)
            slopes[seed] = slopes.get(seed, S.Zero) + term / seed
        terms = [
            seed * (slope if _has_quotient(slope) else factor(slope))
            for seed, slope in slopes.items()
        ]
        return factor_terms(Add(*terms))


def _has_quotient(e):
    """Whether something is divided by a sum; over one denominator a sum over rows would be proved no more."""
    return any(part.exp.is_negative and part.base.is_Add for part in e.atoms(Pow))


def _patterns(layer, forward):
    """What each line's expression looks like in a normal form: one root, quotient, function or sum, to a power."""
    for name, e in forward.items():
        with evaluate(True):
            factors = Mul.make_args(nf(e))
            plain = [f for f in factors if not f.atoms(Indexed)]
            varying = [f for f in factors if f.atoms(Indexed)]
            value = layer.at(name) / Mul(*plain)
            if isinstance(e, exp):
                # of a product of exponentials, the one that depends on the column
                own = [
                    f for f in varying if isinstance(f, exp) and j in free_letters(f)
                ]
                if len(own) == 1:
                    yield own[0], value * own[0] / Mul(*varying)
            elif len(varying) == 1 and all(f.is_positive for f in plain):
                base, power = varying[0].as_base_exp()
                if isinstance(base, Function | Sum) and abs(power) == 1:
                    yield base, value**power
                    if isinstance(base, Root):
                        yield Reciprocal(base.args[0]), value ** (-2 * power)


def by_closed_forms(
    layer: Layer, defs: Defs, gradients: dict[Expr, Expr]
) -> tuple[dict[str, Expr], dict[str, Proof]]:
    """(lines, proofs) of the reader's own formulas, each proved before it is used.

    Args:    defs: where the formulas' names are defined, the layer's own lines among them
             gradients: {x[i, j]: its gradient's formula, ...}, one for each input
    Raises:  NotProved with a point where a formula is wrong; NotFused where one is missing or too many
    """
    formulas = {label(of): (of, e) for of, e in gradients.items()}
    for name in formulas:
        if name not in layer.inputs:
            raise NotFused(
                f"gradients: {name} is no input that gets one; those are {', '.join(layer.inputs)}"
            )
    if missing := [name for name in layer.inputs if name not in formulas]:
        raise NotFused(f"gradients: none is given for {', '.join(missing)}")
    lines, theorem = {}, layer.definitions(layer.lines)
    for head, e in defs.reached(*[e for _, e in formulas.values()]):
        if label(head) not in layer.lines:
            lines[layer.add(head)] = canonical(head, e)
    for name, (of, e) in formulas.items():
        gradient = entry(f"d{name}", layer.kind(name))
        if e == gradient:
            continue
        if f"d{name}" in layer.tensors:
            raise NotFused(
                f"gradients: d{name} is defined, and another formula is given for {name}; take another name"
            )
        lines[layer.add(gradient)] = canonical(of, S.Zero + e)
    proofs = {}
    for name, e in lines.items():
        check_functions(name, e)
        theorem[layer.at(name)] = e
    for name in layer.inputs:
        closed = layer.at(f"d{name}")
        where = f"d{name}"
        proofs[where] = prove(layer.gradient(name), closed, theorem, where=where)
    return lines, proofs
