"""The table of claims: each is proved under the conditions it lists, refuted by a point, or refused in words."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import sympy
from sympy import Piecewise, S, Symbol, exp, log, sqrt
from sympy.parsing.sympy_parser import auto_number, parse_expr

from normgrad import symbolic
from normgrad.symbolic import (
    Counterexample,
    Defs,
    NotProved,
    as_written,
    check_fixed,
    counterexample,
    dim,
    index,
    opaque,
    prove,
    tensor,
    total,
)

M, N, K = dim("M"), dim("N"), dim("K")
i, j, k, r, u = index("i", "j", "k", "r", "u")
x, y, w, g, z = (tensor(name, N) for name in "xywgz")
a, b, s, t, p, q = (tensor(name) for name in "abstpq")
eps, c = Symbol("eps", positive=True), Symbol("c", positive=True)


def add(entry, letter=r, size=N):
    return total(size, lambda bound: S(entry).xreplace({letter: bound}))


def avg(entry):
    return add(entry) / N


def var(entry):
    return avg((entry - avg(entry)) ** 2)


def ln(entry, at, eps=0):
    return ((entry - avg(entry)) / sqrt(var(entry) + eps)).xreplace({r: at})


def rms(entry, at, eps=0):
    return (entry / sqrt(avg(entry**2) + eps)).xreplace({r: at})


def l2(entry, at):
    return (entry / sqrt(add(entry**2))).xreplace({r: at})


def softmax(entry, at):
    return (exp(entry) / add(exp(entry))).xreplace({r: at})


def step(condition):
    return Piecewise((1, condition), (0, True))


VOCABULARY = {
    **vars(sympy),
    **{name: getattr(symbolic, name) for name in symbolic.__all__},
    **globals(),
    "X": tensor("X", M, N),
    "A": tensor("A", N, N),
    "B": tensor("B", N, N),
    "f": opaque("f"),
    "h": opaque("h"),
    "x_1": Symbol("x_1", real=True),
    "mu": avg(x[r]),
    "m2": avg(x[r] ** 2),
    "norm": sqrt(add(x[r] ** 2)),
    "rstd": 1 / sqrt(var(x[r]) + eps),
    "x_hat": partial(ln, x[r], eps=eps),
    "x_of": lambda letter: x[letter],
    "loss": add(g[r] * w[r] * ln(x[r], r, eps)),
    "loss_rms": add(g[r] * rms(x[r], r, eps)),
    "cross_entropy": -add(y[r] * log(softmax(x[r], r))),
    "sigma": lambda value: 1 / (1 + exp(-value)),
    "at_zero": Piecewise((0, sympy.Eq(t, 0)), (t, True)),
    "floored": Piecewise((t, t > 1), (1, True)),
}


REFUSED = (TypeError, ValueError, NotImplementedError, NotProved)


def claims():
    """(answer, claim) of each line of the table."""
    answer = ""
    table = Path(__file__).with_name("symbolic_claims.txt")
    for line in table.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            answer = line[1 : line.index("]")]
        elif line and not line.startswith("#"):
            yield pytest.param(answer, line, id=line[:70])


def read(text):
    """The expression of a text; a name that is not in the vocabulary is an error."""
    return parse_expr(text, VOCABULARY, (auto_number,), {})


def parts(claim, answer):
    """(lhs, rhs, definitions) of a line."""
    claim, _, _ = claim.partition(" -- ")
    claim, _, definitions = claim.partition(" where ")
    defs = Defs()
    with as_written() if "as written" in answer else nullcontext():
        for definition in filter(None, definitions.split("; ")):
            head, value = definition.split(" := ")
            defs[read(head)] = read(value)
        lhs, rhs = map(read, claim.split(" = "))
    return lhs, rhs, defs


@pytest.mark.parametrize("answer, claim", list(claims()))
def test_a_claim_gets_the_answer_that_is_due(answer, claim):
    more = claim.partition(" -- ")[2]
    if answer.startswith("refused"):
        judges = [prove]
        if "every judge" in answer:
            judges += [check_fixed, counterexample]
        for judge in judges:
            with pytest.raises(REFUSED, match=more):
                lhs, rhs, defs = parts(claim, answer)
                judge(lhs, rhs, defs=defs)
        return
    lhs, rhs, defs = parts(claim, answer)
    if answer.startswith("proved"):
        conditions = map(str, prove(lhs, rhs, defs).side_conditions)
        assert "; ".join(sorted(conditions)) == more or more == "..."
        return
    with pytest.raises(NotProved) as refusal:
        prove(lhs, rhs, defs)
    assert isinstance(refusal.value.counterexample, Counterexample)
    with pytest.raises(AssertionError, match="fails"):
        check_fixed(lhs, rhs, (2, 3), defs)
