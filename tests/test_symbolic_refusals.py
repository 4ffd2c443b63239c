"""What a proof must not be given: claims and definitions that would make the kernel, or a witness, lie."""

import numpy as np
import pytest
from sympy import (
    Abs,
    Eq,
    Heaviside,
    IndexedBase,
    Max,
    Min,
    Piecewise,
    S,
    Sum,
    Symbol,
    evaluate,
    exp,
    log,
    sign,
    sqrt,
)

from normgrad.symbolic import (
    D,
    Defs,
    Local,
    NotProved,
    Partial,
    RangeError,
    check_fixed,
    counterexample,
    dim,
    index,
    prove,
    refute,
    sigmoid,
    tensor,
    total,
)
from normgrad.symbolic.codegen import compile, source
from normgrad.symbolic.normal_form import nf
from normgrad.symbolic.signs import is_nonnegative, is_positive

M, N, K = dim("M"), dim("N"), dim("K")
i, j, k = index("i", "j", "k")
x, y, A = tensor("x", N), tensor("y", N), tensor("A", N, N)
s, f, g, L, t = (tensor(name) for name in ("s", "f", "g", "L", "t"))
eps = Symbol("eps", positive=True)
sum_of_squares = total(N, lambda r: x[r] ** 2)
row_sum = total(N, lambda r: x[r])

# -- claims that are false for some size or some index, and were proved or passed at fixed sizes


def test_the_number_of_rows_varies_as_their_length_does():
    B = tensor("B", M, N)
    everything = total(M, lambda r: total(N, lambda c: B[r, c]))
    wrong = everything * (1 + (M - 1) * (M - 3))
    with pytest.raises(AssertionError, match="fails for rows of length .*, M = "):
        check_fixed(everything, wrong)
    every = dim("K")
    for columns in range(1, 8):
        sizes = counterexample(M * N * every, S(-1), sizes=(columns,)).sizes
        assert len(set(sizes.values())) == 3 and sizes[N] == columns
    assert {
        counterexample(M * N, S(-1), sizes=(columns,)).sizes[M]
        for columns in range(1, 8)
    } == {1, 2, 3}


@pytest.mark.parametrize("sizes", [(0,), (2, 0), (-1,), (2.0,), (True,), ()], ids=str)
def test_sizes_that_show_nothing_are_refused(sizes):
    for judge in (check_fixed, counterexample):
        with pytest.raises(ValueError, match="sizes: got"):
            judge(row_sum, 2 * row_sum, sizes=sizes)


# -- values that are no formulas


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("x[i]", TypeError, "got the text"),
        (0.1, ValueError, r"rounded number; write Rational\(1, 10\)"),
        (float("nan"), ValueError, "which is no number"),
        (None, TypeError, "needs a SymPy expression"),
        (True, TypeError, "needs a SymPy expression"),
        ((x[i],), TypeError, "needs a SymPy expression"),
    ],
)
def test_what_is_no_formula_is_refused(value, error, words):
    for judge in (prove, refute, check_fixed, counterexample):
        with pytest.raises(error, match=f"lhs: .*{words}"):
            judge(value, x[i])
        with pytest.raises(error, match=f"rhs: .*{words}"):
            judge(x[i], value)


def test_an_array_without_a_shape_is_refuted_too():
    """SymPy's own IndexedBase, which says nothing of a length."""
    x, (r, k) = IndexedBase("x"), index("r", "k")
    with pytest.raises(NotProved, match="is refuted at N = 2"):
        prove(Sum(x[r], (r, 1, dim("N"))), x[k])


def test_a_derivative_reads_no_text():
    for wrong in (
        lambda: Partial("x[i]", s),
        lambda: Local(s, "x"),
        lambda: D(s, "x"),
        lambda: D("s", s),
    ):
        with pytest.raises(TypeError, match="got the text"):
            wrong()


def test_a_definition_is_exact():
    defs = Defs()
    with pytest.raises(RangeError, match="runs to"):
        defs[tensor("y", M)[i]] = x[i]
    with pytest.raises(ValueError, match=r"s: 1.0 is a decimal"):
        defs[s] = 1.0 * sum_of_squares
    defs[s] = sum_of_squares**0.5
    assert defs.line(s)[1] == sqrt(sum_of_squares)


# -- what is said of a claim


def test_a_sigmoid_has_a_value_also_where_expressions_are_kept_as_typed():
    with evaluate(False):
        refutation = refute(Partial(s * sigmoid(s), s), sigmoid(s))
        assert "left" in str(refutation) and "left = " in str(
            refutation.refusal.counterexample
        )


# -- the second witness


def test_the_second_witness_differentiates_no_branches(monkeypatch):
    """It agrees, or finds the boundary, without SymPy's derivatives of what has branches."""

    def absent(*parts):
        raise AssertionError("a derivative of branches")

    for kind in (Piecewise, Abs, sign):
        monkeypatch.setattr(kind, "_eval_derivative", absent)
    for kind in (Heaviside, Max, Min):
        monkeypatch.setattr(kind, "fdiff", absent)
    for lhs, rhs in (
        (Partial(Piecewise((1, f > 0), (0, True)), f), S.Zero),
        (Partial(Min(s, f) * s, s), s * Heaviside(f - s) + Min(s, f)),
        (Partial(s * sign(s), s), sign(s)),
        (Partial(Partial(Max(s, 0) ** 2, s), s), 2 * Heaviside(s)),
        (Partial(total(N, lambda r: Max(x[r], 0)), x[i]), Heaviside(x[i])),
    ):
        assert check_fixed(lhs, rhs, (2,))
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs + s**2, (2,))
        assert counterexample(lhs, rhs) is None


def test_what_was_compared_nowhere_does_not_pass():
    nowhere = Partial(log(-1 - Abs(s)), s)
    third = Partial(Partial(Partial(Max(s, 0) ** 4, s), s), s)
    for lhs, rhs in ((nowhere, S.Zero), (third, 24 * Max(s, 0)), (third, S.Zero)):
        with pytest.raises(AssertionError, match="fails for rows"):
            check_fixed(lhs, rhs, (2,))
        assert counterexample(lhs, rhs) is None


SIGNS = [
    # (expression, is it seen to be at least 0, is it seen to be greater than 0)
    (s**3, False, False),
    (s**5 * t**2, False, False),
    (s**2, True, False),
    (sqrt(s), True, False),
    (s**2 + eps, True, True),
    (s**3 + eps, False, False),
    (total(N, lambda r: x[r] ** 2), True, False),
    (total(N, lambda r: exp(x[r])), True, True),
]


@pytest.mark.parametrize("e, nonnegative, positive", SIGNS, ids=str)
def test_odd_powers_have_both_signs(e, nonnegative, positive):
    assert (is_nonnegative(e), is_positive(e)) == (nonnegative, positive)


# -- definitions


def test_a_name_keeps_its_promise_to_be_positive():
    positive, defs = Symbol("P", positive=True), Defs()
    for value in (row_sum, s**3 + eps):
        with pytest.raises(ValueError, match="promised to be positive"):
            defs[positive] = value
    defs[positive] = 1 / sqrt(total(N, lambda r: x[r] ** 2))
    prove(sqrt(positive**2), positive, defs)


@pytest.mark.parametrize(
    "head, error, words",
    [
        (A[i, i], ValueError, "letter"),
        (x[1], ValueError, "letter"),
        (j, ValueError, "is a letter or a dimension"),
        (N, ValueError, "is a letter or a dimension"),
        ("y", TypeError, "head: got .*needs a name"),
        (x, TypeError, "head: got .*needs a name"),
        (s + 1, TypeError, "head: got .*needs a name"),
    ],
    ids=str,
)
def test_a_head_is_a_name_with_a_letter_for_every_index(head, error, words):
    with pytest.raises(error, match=words):
        Defs()[head] = S(3)


def test_a_name_is_defined_before_it_is_used():
    defs = Defs()
    defs[f] = 2 * g
    for head, e in ((g, f), (s, s + 1)):
        with pytest.raises(ValueError, match="used before"):
            defs[head] = e


def test_a_sum_does_not_catch_the_letter_of_a_definition():
    defs = Defs()
    defs[f] = j * S.One  # a dimension that is called j
    assert nf(defs.unfold(Sum(f, (j, 1, N)))) == N * j


# -- array code


def test_code_has_one_name_for_each_thing():
    for head, e in (
        (y[j], tensor("lambda", N)[j]),
        (y[j], x[j] * Symbol("x", real=True)),
        (y[j], tensor("N", N)[j]),
    ):
        defs = Defs()
        defs[head] = e
        with pytest.raises(ValueError, match="no name of its own"):
            source(defs, [y[j]])


def test_code_of_a_constant_takes_the_size_and_odd_pieces_are_refused():
    defs = Defs()
    defs[y[j]] = S.One
    np.testing.assert_array_equal(compile(defs, [y[j]])(N=3)[0], np.ones(3))
    defs[L] = Piecewise((s, s > 0), (f, Eq(s, -1)))
    defs[g] = total(N, lambda r: A[r, r])
    for e in (L, g):
        with pytest.raises(NotImplementedError, match="no array code"):
            source(defs, [e])
