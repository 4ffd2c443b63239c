"""The proof kernel against false claims: mutants, random expressions, ranges, and the rules of its sources."""

import random
import re
from dataclasses import replace
from pathlib import Path

import mpmath
import pytest
import sympy
from sympy import (
    Add,
    Dummy,
    Indexed,
    KroneckerDelta,
    Mul,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    count_ops,
    evaluate,
    sqrt,
)
from sympy.core.function import AppliedUndef

import normgrad.symbolic
from normgrad.symbolic import (
    D,
    Defs,
    NotProved,
    Partial,
    RangeError,
    check_fixed,
    counterexample,
    delta,
    dim,
    equation,
    equations,
    index,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.normal_form import Reciprocal, Root, nf
from normgrad.symbolic.registry import DEFINITION

N = dim("N")
M = dim("M")
i, j, k = index("i", "j", "k")
x, g, w = (tensor(name, N) for name in ("x", "g", "w"))
eps = Symbol("eps", positive=True)


# -- mutants


def _mutants(e, draw):
    """The expression with one coefficient changed: each term's sign turned, one within a term as well, or e doubled."""
    deeper = []
    for place in _inside(e):
        if e.args[place].has(Add):
            deeper += [
                e.func(*e.args[:place], part, *e.args[place + 1 :])
                for part in _mutants(e.args[place], draw)
            ]
    if isinstance(e, Add):
        yield from (
            Add(*e.args[:place], -term, *e.args[place + 1 :])
            for place, term in enumerate(e.args)
        )
        deeper = draw.sample(deeper, min(1, len(deeper)))
    yield from deeper
    if not deeper and not isinstance(e, Add):
        yield 2 * e if e != 0 else S.One


def _inside(e):
    """The places of e's parts that hold coefficients: not a root's, whose terms keep their signs for it to be real."""
    if isinstance(e, AppliedUndef):
        return range(1, len(e.args))
    if isinstance(e, Sum) or isinstance(e, Pow) and e.exp.is_Integer:
        return range(1)
    return range(len(e.args)) if isinstance(e, Add | Mul) else ()


def refuted_steps(one, draw):
    """Assert that a changed coefficient is refuted in every step of an equation."""
    for place, (lhs, rhs) in enumerate(one.steps, start=1):
        with evaluate(True):
            mutants = list(_mutants(rhs, draw))
        if one.kind == DEFINITION:
            mutants = mutants[:1]  # the left side is what the right side says it is
        refuted = 0
        for wrong in mutants:
            try:
                replace(one, chains=((lhs, wrong),), whys=()).prove()
            except NotProved as refusal:
                assert refusal.counterexample, (
                    f"{one.label}, step {place}: {wrong} is undecided"
                )
                assert refusal.counterexample.lhs != refusal.counterexample.rhs
                refuted += 1
            else:
                # a term that is 0 anyway, such as the sum of a centred row; the other witness has to agree
                assert replace(one, chains=((rhs, wrong),), whys=()).check_fixed((2, 3))
        assert refuted, f"{one.label}, step {place}: no coefficient to change"


@pytest.mark.sampled(of=10)
@pytest.mark.parametrize("label", list(equations()))
def test_a_changed_coefficient_is_refuted_in_every_step(label):
    """The two sides are independent: whichever term of a right-hand side is changed, its step is refuted."""
    refuted_steps(equation(label), random.Random(label))


CLAIMS = [
    (Partial(mean(N, lambda r: x[r]), x[i]), 1 / N),
    (total(N, lambda r: x[r] * delta(r, i)), x[i]),
    (
        Partial(sqrt(total(N, lambda r: x[r] ** 2)), x[i]),
        x[i] / sqrt(total(N, lambda r: x[r] ** 2)),
    ),
    (
        Partial(x[k] / sqrt(mean(N, lambda r: x[r] ** 2) + eps), x[i]),
        (delta(i, k) - x[i] * x[k] / (N * (mean(N, lambda r: x[r] ** 2) + eps)))
        / sqrt(mean(N, lambda r: x[r] ** 2) + eps),
    ),
]


def _nodes(e, path=()):
    yield path, e
    if not isinstance(e, Indexed | KroneckerDelta):
        for place, part in enumerate(e.args[:1] if isinstance(e, Sum) else e.args):
            yield from _nodes(part, (*path, place))


def _put(e, path, new):
    if not path:
        return new
    parts = list(e.args)
    parts[path[0]] = _put(parts[path[0]], path[1:], new)
    return e.func(*parts)


def _change(e, draw):
    path, part = draw.choice(list(_nodes(e)))
    if isinstance(part, Indexed):
        new = draw.choice(
            [part.base[i], part.base[k], g[part.indices[0]], part**2, -part, S.One]
        )
    elif part.is_Rational:
        new = draw.choice([part + 1, part - 1, 2 * part, -part])
    elif isinstance(part, Add):
        new = draw.choice(
            [part - draw.choice(part.args), part + draw.choice(part.args), part + 1]
        )
    else:
        new = draw.choice([-part, 2 * part, part + eps])
    return _put(e, path, new)


def test_changed_claims_are_proved_only_where_they_stay_true():
    draw = random.Random(11)
    proved = refused = 0
    for _ in range(120):
        lhs, rhs = draw.choice(CLAIMS)
        changed = _change(rhs, draw)
        if (
            changed.has(S.ComplexInfinity, S.NaN, S.ImaginaryUnit)
            or not changed.is_real
            and changed.is_number
        ):
            continue
        try:
            prove(lhs, changed)
        except NotProved:
            refused += 1
            continue
        except NotImplementedError:
            continue
        assert check_fixed(lhs, changed, (2, 3))
        proved += 1
    assert refused > 60 and proved > 0


def test_an_undecided_claim_says_so():
    # true, but the kernel knows nothing of sines
    with pytest.raises(NotProved, match="undecided") as refusal:
        prove(x[i] * (sympy.sin(eps) ** 2 + sympy.cos(eps) ** 2), x[i])
    assert refusal.value.counterexample is None


def test_the_diagonal_is_always_tried():
    with pytest.raises(NotProved, match="i = 1, k = 1"):
        prove(Partial(x[k], x[i]) + delta(i, k), delta(i, k) * x[i] / x[k])
    assert counterexample(delta(i, k), S.Zero).indices == {i: 1, k: 1}
    with pytest.raises(AssertionError, match="fails for rows of length 2"):
        check_fixed(delta(i, k), S.Zero, (2,))


# -- random expressions against an evaluator of their own


def _random(draw, depth, letters):
    kind = draw.random()
    if depth <= 0 or kind < 0.15:
        place = draw.choice(letters)
        leaves = [
            x[place],
            g[place],
            w[place],
            delta(place, draw.choice(letters)),
            N,
            1 / N,
            eps,
        ]
        return draw.choice([*leaves, Rational(draw.randint(-3, 3), draw.randint(1, 3))])
    if kind < 0.35:
        return _random(draw, depth - 1, letters) + _random(draw, depth - 1, letters)
    if kind < 0.6:
        return _random(draw, depth - 1, letters) * _random(draw, depth - 1, letters)
    if kind < 0.85:
        r = Dummy("r", integer=True, positive=True)
        return Sum(_random(draw, depth - 1, [*letters, r]), (r, 1, N))
    inner = _random(draw, depth - 2, letters) ** 2 + eps
    return (
        inner ** Rational(draw.choice([-3, -1, 1, 3]), 2)
        if kind < 0.95
        else 1 / (sqrt(inner) + 1)
    )


def _value(e, where):
    """e at a point, in 40 digits; `where` has letters, dimensions and tensor entries."""
    if e.is_Symbol:
        return where[e]
    if e.is_Rational:
        return mpmath.mpf(e.p) / e.q
    if isinstance(e, Indexed):
        return where[e.base, int(where.get(e.indices[0], e.indices[0]))]
    if isinstance(e, KroneckerDelta):
        return mpmath.mpf(where[e.args[0]] == where[e.args[1]])
    if isinstance(e, Sum):
        points = [where]
        for letter, _, last in e.limits:
            points = [
                {**point, letter: entry}
                for point in points
                for entry in range(1, int(where[last]) + 1)
            ]
        return mpmath.fsum(_value(e.function, point) for point in points)
    parts = [_value(part, where) for part in e.args]
    return {
        Add: mpmath.fsum,
        Mul: mpmath.fprod,
        Pow: lambda both: mpmath.power(*both),
        Root: lambda one: mpmath.sqrt(one[0]),
        Reciprocal: lambda one: 1 / one[0],
    }[type(e)](parts)


def _point(draw):
    size = draw.randint(1, 4)
    where = {N: mpmath.mpf(size), eps: mpmath.mpf(draw.randint(1, 9)) / 7}
    where |= {letter: draw.randint(1, size) for letter in (i, j, k)}
    for base in (x, g, w):
        where |= {
            (base, entry): mpmath.mpf(draw.randint(-20, 20)) / 7
            for entry in range(1, size + 1)
        }
    return where


def _expressions(draw, count, depth):
    while count:
        e = _random(draw, draw.randint(2, depth), [i, j, k])
        if count_ops(e) <= 40:
            count -= 1
            yield e


def test_the_normal_form_keeps_every_value():
    draw = random.Random(2)
    with mpmath.workdps(40):
        for e in _expressions(draw, 350, 5):
            where = _point(draw)
            want, got = _value(e, where), _value(nf(e), where)
            assert abs(want - got) <= mpmath.mpf(10) ** -25 * (1 + abs(want)), e


def test_the_derivative_agrees_with_differences():
    draw = random.Random(3)
    step = mpmath.mpf(10) ** -20
    with mpmath.workdps(60):
        for e in _expressions(draw, 120, 4):
            where = _point(draw)
            entry = x, where[i]
            ends = [
                _value(e, {**where, entry: where[entry] + side * step})
                for side in (1, -1)
            ]
            want = (ends[0] - ends[1]) / (2 * step)
            got = _value(nf(D(e, x[i])), where)
            assert abs(want - got) <= mpmath.mpf(10) ** -15 * (1 + abs(want)), e


def test_a_bound_letter_that_equals_the_index_is_no_trap():
    r = index("r")
    assert nf(D(Sum(x[r], (r, 1, N)), x[r])) == 1
    assert nf(Sum(x[r], (r, 1, N)) - total(N, lambda s: x[s])) == 0


def test_sums_over_two_ranges_do_not_depend_on_their_order():
    a = tensor("A", M, N)
    by_row = total(M, lambda r: total(N, lambda s: a[r, s] * g[s]))
    by_column = total(N, lambda s: g[s] * total(M, lambda r: a[r, s]))
    prove(by_row, by_column)


# -- what is refused before any proof


@pytest.mark.parametrize(
    "claim",
    [
        lambda a: a[i, j] * x[i],
        lambda a: total(M, lambda r: x[r]),
        lambda a: a[i, j] * delta(i, j),
    ],
)
def test_a_letter_with_two_ranges_is_refused(claim):
    with pytest.raises(RangeError, match="runs to"):
        prove(claim(tensor("A", M, N)), S.Zero)


def test_a_definition_with_two_ranges_is_refused():
    defs = Defs()
    with pytest.raises(RangeError, match="runs to"):
        defs[tensor("y", M)[i]] = x[i]


def test_roots_other_than_square_roots_are_refused():
    with pytest.raises(NotImplementedError, match="square roots"):
        prove(total(N, lambda r: x[r]) ** Rational(1, 3), S.One)


def test_shifted_deltas_are_refused():
    with pytest.raises(NotImplementedError, match="shifted"):
        nf(KroneckerDelta(i, j + 1) * x[i])


def test_the_sources_use_none_of_the_unsafe_calls():
    folder = Path(normgrad.symbolic.__file__).parent
    unsafe = re.compile(r"\.doit\(|\.subs\(|\bcse\(|lambdify\(|\bIdx\(")
    found = [
        path.name for path in folder.rglob("*.py") if unsafe.search(path.read_text())
    ]
    assert found == []


def test_the_second_witness_does_not_use_the_normal_form():
    text = (Path(normgrad.symbolic.__file__).parent / "witness.py").read_text()
    assert not re.search(r"from \.(normal_form|proof)", text)
