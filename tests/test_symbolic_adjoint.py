"""Reverse mode by machine, and the shorthand of source 003: what they make is proved, and what is wrong is refused."""

from itertools import combinations

import pytest
from sympy import Symbol, sqrt

from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    as_written,
    check_fixed,
    equation,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.derivations import shorthand
from normgrad.symbolic.derivations.shorthand import expand_shorthand
from normgrad.symbolic.symbols import M, N, alphabet, i, j, k, over_all, p

n = alphabet(M)
COTANGENTS = {
    "ln-graph-dD": n.dD[p],
    "ln-graph-dv": n.dv[p],
    "ln-graph-dq": n.dq[p, k],
    "ln-graph-dmean": n.dmean[p],
    "ln-graph-dx": n.dx[p, k],
    "ln-dw": n.dw[j],
    "ln-db": n.db[j],
}


@pytest.fixture(scope="module")
def generated():
    return reverse(graph(), n.y[i, j], n.dy)


def graph():
    """LayerNorm's graph, forward."""
    defs = Defs()
    for head, formula in equation("ln-graph-dx-closed").defs.reached(n.y[i, j]):
        defs[head] = formula
    return defs


# -- reverse mode


@pytest.mark.parametrize("label", COTANGENTS)
def test_each_cotangent_is_the_hand_derived_one(generated, label):
    hand, cotangent = equation(label), generated.body(COTANGENTS[label])
    right = hand.defs.unfold(hand.chain[-1], [n.x_hat, n.rstd])
    prove(cotangent, right, generated)
    check_fixed(cotangent, right, (2,), generated)


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
    adjoint_lines = reverse(defs, y[j], dy)
    assert adjoint_lines.line(tensor("dz", N)[j])[1] == 0
    defs[tensor("L")] = total(N, lambda r: dy[r] * y[r])
    adjoint_lines[tensor("L")] = defs.line(tensor("L"))[1]
    prove(Partial(tensor("L"), x[j]), tensor("dx", N)[j], adjoint_lines)
    prove(Partial(tensor("L"), a[j, k]), tensor("dA", N, N)[j, k], adjoint_lines)


# -- the shorthand of source 003

LINES = list(shorthand.shorthand())


@pytest.mark.parametrize(
    "rule, left, e, label, line",
    LINES,
    ids=[f"{row[0]}-{row[3]}-{row[4]}" for row in LINES],
)
def test_shorthand_and_sums_agree(rule, left, e, label, line):
    statement, expanded = (
        equation(label),
        expand_shorthand(e, *getattr(left, "indices", ())),
    )
    for side in statement.chains[line][1:]:
        prove(expanded, side, statement.defs)
        check_fixed(expanded, side, (2, 3), statement.defs)


@pytest.mark.parametrize(
    "left, e", list(shorthand.source_lines()), ids=lambda e: str(e)[:12]
)
def test_the_lines_of_the_source_are_our_definitions(left, e):
    defs = equation("ln-graph-dx-closed").defs
    prove(expand_shorthand(e, *left.indices), defs.line(left)[1], defs, only=())


def test_the_last_line_of_the_source_needs_one_more_factor_of_ones():
    with pytest.raises(ValueError, match="j occurs once"):
        expand_shorthand(shorthand.source_result(), p, k)
    mended = expand_shorthand(shorthand.source_result(shorthand.one_row[j]), p, k)
    prove(
        mended,
        equation("ln-graph-dx-closed").chain[-1],
        equation("ln-graph-dx-closed").defs,
    )


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
    for (first, _), (_, second) in combinations(readings, 2):
        with pytest.raises(NotProved, match="refuted"):
            prove(first, second)


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
