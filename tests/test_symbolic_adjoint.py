"""Reverse mode by machine, and the shorthand of source 003: what they make is proved, and what is wrong is refused."""

from itertools import combinations

import numpy as np
import pytest
import torch
from sympy import Symbol, sqrt

from normgrad.checks.tolerance import unit_roundoff
from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    adjoint,
    as_written,
    check_fixed,
    equation,
    index,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.codegen import compile
from normgrad.symbolic.derivations import index_calculus as shorthand
from normgrad.symbolic.derivations import layer_norm_graph as graph
from normgrad.symbolic.derivations.index_calculus import expand_shorthand
from normgrad.symbolic.symbols import M, N, i, j, k, over_all, p

n = graph.g
COTANGENTS = ("dD", "dv", "dq", "dmean", "dx", "dw", "db")
# Rows of seven numbers meet some tens of roundings on either side.
ROUNDINGS = 256 * unit_roundoff("float64")


@pytest.fixture(scope="module")
def generated():
    return reverse(graph.forward(), n.y[i, j], n.dy)


# -- reverse mode


@pytest.mark.parametrize("name", COTANGENTS)
def test_each_cotangent_is_the_hand_derived_one(generated, name):
    hand = equation(f"ln-graph-{name}")
    prove(generated.body(hand.chain[0]), hand.chain[-1], generated)
    check_fixed(generated.body(hand.chain[0]), hand.chain[-1], (2,), generated)


def test_one_line_per_name_and_input_in_reverse_order(generated):
    heads = [str(head.base.label) for head, _ in generated]
    assert heads == [
        "mean",
        "q",
        "v",
        "D",
        "y",
        "dD",
        "dv",
        "dq",
        "dmean",
        "dx",
        "db",
        "dw",
    ]


USERS = [("q", "v"), ("q", "y"), ("x", "mean"), ("x", "q")]


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("dropped", USERS, ids="-".join)
def test_a_dropped_consumer_is_refuted(monkeypatch, dropped):
    kept = adjoint.contribution

    def without(defs, u, v, cotangent):
        return (
            0 if (str(v.base), str(u.base)) == dropped else kept(defs, u, v, cotangent)
        )

    monkeypatch.setattr(adjoint, "contribution", without)
    wrong = reverse(graph.forward(), n.y[i, j], n.dy)
    wrong[n.L] = graph.forward().line(n.L)[1]
    with pytest.raises(NotProved, match="refuted"):
        prove(Partial(n.L, n.x[i, j]), n.dx[i, j], wrong)


def test_the_generated_lines_run(generated, rng):
    x, dy = rng.normal(size=(2, 3, 7))
    w, b = rng.normal(size=(2, 7))
    outputs = [head for head, _ in generated if str(head.base) in ("dx", "dw", "db")]
    found = compile(generated, outputs)(x=x, dy=dy, w=w, eps=0.1)
    leaves = [torch.tensor(array, requires_grad=True) for array in (x, b, w)]
    torch.nn.functional.layer_norm(
        leaves[0], (7,), leaves[2], leaves[1], eps=0.1
    ).backward(torch.tensor(dy))
    for got, leaf in zip(found, leaves, strict=True):
        assert (
            np.abs(got - leaf.grad.numpy()).max()
            <= ROUNDINGS * np.abs(leaf.grad.numpy()).max()
        )


def test_scalars_dead_lines_and_square_inputs():
    a, x, y, size, unused = (
        tensor("A", N, N),
        tensor("x", N),
        tensor("y", N),
        tensor("s"),
        tensor("z", N),
    )
    dy = tensor("dy", N)
    defs = Defs()
    defs[unused[j]] = 3 * x[j]
    defs[size] = sqrt(total(N, lambda r: x[r] ** 2) + Symbol("eps", positive=True))
    defs[y[j]] = total(N, lambda r: a[j, r] * x[r]) / size
    found = reverse(defs, y[j], dy)
    assert found.line(tensor("dz", N)[j])[1] == 0
    defs[tensor("L")] = total(N, lambda r: dy[r] * y[r])
    found[tensor("L")] = defs.line(tensor("L"))[1]
    prove(Partial(tensor("L"), x[j]), tensor("dx", N)[j], found)
    prove(Partial(tensor("L"), a[j, k]), tensor("dA", N, N)[j, k], found)


def test_several_outputs_and_scalars():
    """An output that is used again adds what is given for it to what its consumers pass back."""
    x, q, y, dy, dq_out = (
        tensor(name, M, N) for name in ("x", "q", "y", "dy", "dq_out")
    )
    scale, size, loss = tensor("a"), tensor("s", M), tensor("L")
    defs = Defs()
    defs[q[i, j]] = scale * x[i, j]
    defs[size[i]] = total(N, lambda r: q[i, r] ** 2)
    defs[y[i, j]] = q[i, j] * size[i]
    found = reverse(defs, (y[i, j], q[i, j]), (dy, dq_out), scalars=(scale,))
    found[loss] = over_all(lambda r, s: dy[r, s] * y[r, s] + dq_out[r, s] * q[r, s])
    prove(Partial(loss, x[i, j]), tensor("dx", M, N)[i, j], found)
    prove(Partial(loss, scale), tensor("da"), found)
    with pytest.raises(
        ValueError, match="seed: got 1, needs one for each of the 2 outputs"
    ):
        reverse(defs, (y[i, j], q[i, j]), dy)
    for wrong in (size[i], tensor("b"), x[i, j]):
        with pytest.raises(
            ValueError, match="scalars: got .*needs inputs without an index"
        ):
            reverse(defs, y[i, j], dy, scalars=(wrong,))


def test_what_reverse_cannot_do_is_refused():
    x, q, y = (tensor(name, N) for name in "xqy")
    defs = Defs()
    defs[q[j]] = x[j] * tensor("dx", N)[j]
    with pytest.raises(ValueError, match="the name dx of its cotangent is taken"):
        reverse(defs, q[j], tensor("dq", N))
    with pytest.raises(ValueError, match="not defined here"):
        reverse(defs, y[j], tensor("dy", N))
    defs[y[j]] = Partial(q[j], x[j])
    with pytest.raises(ValueError, match="holds a derivative"):
        reverse(defs, y[j], tensor("dy", N))


# -- the shorthand of source 003

LINES = list(shorthand.shorthand())


@pytest.mark.parametrize(
    "rule, left, e, label, line",
    LINES,
    ids=[f"{each[0]}-{each[3]}-{each[4]}" for each in LINES],
)
def test_shorthand_and_sums_agree(rule, left, e, label, line):
    one, expanded = equation(label), expand_shorthand(e, *getattr(left, "indices", ()))
    for side in one.chains[line][1:]:
        prove(expanded, side, one.defs)
        check_fixed(expanded, side, (2, 3), one.defs)


@pytest.mark.parametrize(
    "left, e", list(shorthand.source_lines()), ids=lambda e: str(e)[:12]
)
def test_the_lines_of_the_source_are_our_definitions(left, e):
    defs = graph.forward()
    prove(expand_shorthand(e, *left.indices), defs.line(left)[1], defs, only=())


def test_the_last_line_of_the_source_needs_one_more_factor_of_ones():
    with pytest.raises(ValueError, match="j occurs once"):
        expand_shorthand(shorthand.source_result(), p, k)
    mended = expand_shorthand(shorthand.source_result(shorthand.one_row[j]), p, k)
    prove(mended, equation("ln-graph-dx-closed").chain[-1], graph.backward())


def test_the_left_side_decides():
    a, b, w = tensor("a", M), tensor("B", M, N), tensor("w", N)
    e = a[i] * b[i, j] * w[j]
    readings = [
        (expand_shorthand(e, i, j), e),
        (expand_shorthand(e, i), a[i] * total(N, lambda s: b[i, s] * w[s])),
        (expand_shorthand(e), over_all(lambda r, s: a[r] * b[r, s] * w[s])),
    ]
    for got, want in readings:
        prove(got, want)
    for (one, _), (_, other) in combinations(readings, 2):
        with pytest.raises(NotProved, match="refuted"):
            prove(one, other)


x, w, b = (tensor(name, N) for name in "xwb")
B, E = tensor("B", M, N), tensor("E", M, N)


@pytest.mark.parametrize(
    "e, left, message",
    [
        (x[j] * w[k], (j,), "k occurs once"),
        (B[i, j] + w[j], (i, j), "i is on the left and missing here"),
        (B[i, j] * (E[i, j] + x[j]), (i,), "i occurs once"),
    ],
    ids=["free letter", "missing letter", "unequal order"],
)
def test_lines_that_break_a_rule_are_refused(e, left, message):
    with pytest.raises(ValueError, match=message):
        expand_shorthand(e, *left)


ONE = shorthand.one_row
WRONG = {
    "P7": (lambda: B[i, j] * E[i, j] * x[j], lambda: B[i, j] * E[i, k] * x[k] * ONE[j]),
    "P10": (lambda: B[i, k] * w[k] * x[k], lambda: B[i, j] * w[j] * x[k] * ONE[k]),
}


@pytest.mark.parametrize("rule", WRONG)
def test_wrong_moves_are_refuted(rule):
    """P7: one letter for two sums; P10: both sides multiplied by a factor whose letter is summed already."""
    with as_written():
        wrong, right = (expand_shorthand(side(), i) for side in WRONG[rule])
    with pytest.raises(NotProved, match="refuted"):
        prove(wrong, right)


def test_a_number_in_place_of_a_part_is_refuted():
    part = total(N, lambda r: w[r] * b[r])
    with pytest.raises(NotProved, match="refuted"):
        prove(total(N, lambda r: x[r] * w[r] * b[r]), total(N, lambda r: x[r] * part))


def test_printed_occurrences_count_and_a_power_counts_once():
    with as_written():
        twice, square = x[j] * x[j], x[j] ** 2
    prove(expand_shorthand(twice), total(N, lambda r: x[r] ** 2))
    with pytest.raises(ValueError, match="j occurs once"):
        expand_shorthand(square)
    new = index("l")
    prove(expand_shorthand(ONE[new] * x[new] / N), mean(N, lambda r: x[r]))
