"""What is printed is what is proved: every formula of the book is read back and must be the object again."""

from __future__ import annotations

import random

import pytest
from latex_reader import Quantities, canonical, chains, read
from random_claims import TENSORS, grow, i
from sympy import Indexed, Integer, Symbol, evaluate, expand, nan, zoo

from normgrad.symbolic import (
    Defs,
    Equation,
    Local,
    Partial,
    as_written,
    dim,
    equations,
    index,
    latex,
    tensor,
    total,
)
from normgrad.symbolic.notation import name_of

N, j, k = dim("N"), *index("j", "k")
x, y, q, w = (tensor(name, N) for name in ("x", "y", "q", "w"))


def by_the_notation(defs):
    """What a derivative says, given the definitions.

    One without names below a bracket is total by an input; by an intermediate it is local, and its formula has to use
    no other one. A `Local` holds the intermediates of its formula fixed, and is total where there are none.
    """

    def meaning(e):
        f, v = e.args[:2]
        if isinstance(e, Partial):
            return Local(f, v) if v in defs else e
        formula = defs.line(f)[1] if f in defs else f
        within = {name_of(part) for part in formula.atoms(Indexed, Symbol)} - {
            name_of(v)
        }
        fixed = [
            name_of(head) for head, _ in defs if name_of(head) in within
        ] or e.args[2]
        return (
            Local(f, v, [getattr(name, "label", name) for name in fixed])
            if fixed or v in defs
            else Partial(f, v)
        )

    return meaning


def wrong(text, chains_proved, defs):
    """What of a display is not read back as the object below it: (line, what was read) each."""
    names, shown = (
        Quantities.of([e for chain in chains_proved for e in chain]),
        chains(text),
    )
    differences, lines = [], [line for chain in shown for line in chain]
    assert [len(chain) for chain in shown] == [len(chain) for chain in chains_proved], (
        text
    )
    for line, e in zip(
        lines, [e for chain in chains_proved for e in chain], strict=True
    ):
        read_side, proved_side = (
            canonical(side, by_the_notation(defs)) for side in (read(line, names), e)
        )
        with evaluate(True):
            if read_side != proved_side and expand(read_side - proved_side) != 0:
                differences.append((line, read_side, proved_side))
    return differences


@pytest.mark.parametrize(
    "equation", equations().values(), ids=lambda equation: equation.label
)
def test_every_registered_equation_is_read_back(equation):
    assert wrong(equation.latex(), equation.chains, equation.defs) == []
    assert wrong(equation.ends().latex(), equation.ends().chains, equation.defs) == []


def test_a_local_derivative_never_reads_as_a_total_one():
    defs = Defs()
    defs[tensor("mean")] = 1 / N * total(N, lambda r: x[r])
    mean = tensor("mean")
    defs[q[j]] = x[j] - mean
    assert latex(Local(q[j], x[k])) != latex(Partial(q[j], x[k]))
    assert latex(Local(x[j] - mean, x[k])) != latex(Partial(x[j] - mean, x[k]))
    with as_written():
        equation = Equation(
            "e", "c.", ((Local(q[j], x[k]), Local(x[j] - mean, x[k])),), defs
        )
    held = r"\right)_{\mathrm{mean}}"
    assert equation.latex().count(held) == 2
    # a name that is typed and is not what the formula holds does not pass
    assert held in latex(defs.shown(Local(q[j], x[k], (tensor("v"),))))


def test_a_scalar_and_a_tensor_do_not_share_a_name():
    with pytest.raises(ValueError, match="q: names a scalar and a tensor"):
        latex(tensor("q") * q[j])
    with as_written():
        equation = Equation(
            "e", "c.", ((q[j], q[j]), (tensor("q"), tensor("q"))), Defs()
        )
    with pytest.raises(ValueError, match="q: names a scalar and a tensor"):
        equation.latex()


def test_signs_stand_in_brackets():
    with as_written():
        assert latex(total(N, lambda r: -x[r])) == r"\sum_{r=1}^{N} (-x_{r})"
        assert (
            latex(total(N, lambda r: x[r] * Integer(-1) ** 2))
            == r"\sum_{r=1}^{N} x_{r} (-1)^{2}"
        )
        assert latex(Integer(-1) ** Symbol("n", integer=True)) == "(-1)^{n}"


def random_expression(draw):
    """A sum of an expression, of its derivative, and of one that holds something fixed."""
    e, derived, local = (grow(draw, depth, functions=()) for depth in (3, 2, 2))
    held = Local(local, tensor("s"), (tensor("v"),))
    return e + Partial(derived, TENSORS["x"][i]) * held


@pytest.mark.parametrize("seed", range(300))
def test_any_expression_is_read_back(seed):
    """What no page prints yet: products, signs, fractions and sums within one another, as they are typed."""
    with as_written():
        e = random_expression(random.Random(seed))
    with evaluate(True):
        if canonical(e).has(zoo, nan):
            return  # a fraction over 0 means nothing
    assert wrong(f"{latex(e)} = N", ((e, N),), Defs()) == []


def test_the_reader_tells_a_local_derivative_from_a_total_one():
    """By an intermediate, with and without the other one below the bracket."""
    defs = Defs()
    v = tensor("v")
    defs[v], defs[y[j]] = total(N, lambda r: x[r]), w[j]
    defs[q[j]] = y[j] * v
    local = Local(q[j], v)
    assert (
        wrong(
            r"\left( \frac{\partial q_{j}}{\partial v} \right)_{y} = N",
            ((local, N),),
            defs,
        )
        == []
    )
    assert wrong(r"\frac{\partial q_{j}}{\partial v} = N", ((local, N),), defs)
