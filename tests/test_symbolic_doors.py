"""What a claim may be made of: decimals, text, branches inside sums and numbers that are none are refused in words."""

import pytest
from sympy import I, Integer, MatrixSymbol, Piecewise, Rational, S, exp, oo, sqrt, zoo

from normgrad.symbolic import (
    D,
    Defs,
    Local,
    NotProved,
    Partial,
    as_written,
    check_fixed,
    counterexample,
    dim,
    index,
    opaque,
    prove,
    refute,
    tensor,
    total,
)

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, y = tensor("x", N), tensor("y", N)
s = tensor("s")
sum_of_squares = total(N, lambda r: x[r] ** 2)

# -- decimals

with as_written():
    TYPED = 0.5 * x[i] + 1e-20 * x[i]

DECIMALS = {
    "a decimal that swallows another": (
        1.0 * x[i] + 1e-20 * x[i],
        x[i],
        "1.0 is a decimal, .*; write 1$",
    ),
    "a half": (
        0.5 * x[i] + 1e-20 * x[i],
        x[i] / 2,
        r"0.5 is a decimal, .*; write Rational\(1, 2\)",
    ),
    "as typed": (TYPED, x[i] / 2, "is a decimal"),
    "a decimal that is no binary number": (
        0.1 * x[i],
        x[i] / 10,
        r"write Rational\(1, 10\)",
    ),
    "inside a function": (exp(0.5 * x[i]), exp(x[i] / 2), r"write Rational\(1, 2\)"),
    "inside a sum": (
        total(N, lambda r: x[r] * 3.0),
        3 * total(N, lambda r: x[r]),
        "write 3",
    ),
    "an exponent that is no binary number": (
        s**0.1,
        s ** Rational(1, 10),
        r"rounded number; write Rational\(1, 10\)",
    ),
    "a number alone": (
        0.1,
        Rational(1, 10),
        r"rounded number; write Rational\(1, 10\)",
    ),
    "not finite": (float("nan"), S.Zero, "which is no number"),
}


@pytest.mark.parametrize("lhs, rhs, message", DECIMALS.values(), ids=list(DECIMALS))
def test_a_decimal_proves_nothing(lhs, rhs, message):
    for judge in (prove, refute, check_fixed, counterexample):
        with pytest.raises(ValueError, match=message):
            judge(lhs, rhs)


def test_a_decimal_exponent_is_the_fraction_that_it_stands_for():
    proof = prove(sum_of_squares**0.5, sqrt(sum_of_squares))
    assert proof.lhs == sqrt(sum_of_squares)
    prove(sum_of_squares**-1.5, 1 / (sum_of_squares * sqrt(sum_of_squares)))
    with as_written():
        prove(x[i] * sum_of_squares**-0.5, x[i] / sqrt(sum_of_squares))
    prove(total(N, lambda r: x[r] ** 2.0), sum_of_squares)
    prove(0.25, Rational(1, 4))


def test_a_definition_is_exact():
    defs = Defs()
    with pytest.raises(ValueError, match=r"s: 1.0 is a decimal"):
        defs[s] = 1.0 * sum_of_squares
    defs[s] = sum_of_squares**0.5
    assert defs.line(s)[1] == sqrt(sum_of_squares)


# -- text, and numbers that are none


@pytest.mark.parametrize("e", ["x", "x[i]", "0"])
def test_text_is_not_read_as_a_formula(e):
    for judge in (prove, refute, check_fixed, counterexample):
        with pytest.raises(TypeError, match="lhs: got the text"):
            judge(e, x[i])
        with pytest.raises(TypeError, match="rhs: got the text"):
            judge(x[i], e)
    with pytest.raises(TypeError, match="got the text"):
        Defs()[s] = e


@pytest.mark.parametrize(
    "e", [None, (x[i],), object(), x[i] > 0, True], ids=lambda e: type(e).__name__
)
def test_what_is_no_expression_is_refused(e):
    with pytest.raises(TypeError, match="lhs: got .*needs a SymPy expression"):
        prove(e, x[i])


@pytest.mark.parametrize(
    "e", [oo, zoo, S.NaN, 1 / S.Zero * x[i], I * x[i], sqrt(Integer(-2))], ids=str
)
def test_a_number_that_is_not_real_is_refused(e):
    with pytest.raises(ValueError, match="no number|about real numbers"):
        prove(e, e)


def test_a_matrix_is_refused():
    matrix = MatrixSymbol("A", N, N)
    with pytest.raises(TypeError, match="lhs: "):
        prove(matrix, matrix)


def test_a_whole_tensor_is_refused():
    for e in (x, 2 * x, x[i] + x):
        with pytest.raises(TypeError, match="x is a whole tensor"):
            prove(e, e)


def test_a_derivative_reads_no_text():
    for wrong in (
        lambda: Partial("x[i]", s),
        lambda: Local(s, "x"),
        lambda: D(s, "x"),
        lambda: D("s", s),
    ):
        with pytest.raises(TypeError, match="got the text"):
            wrong()


# -- branches


def _one_if(condition):
    return Piecewise((1, condition), (0, True))


def test_a_branch_inside_a_sum_is_refused():
    pairs = total(N, lambda q: total(N, lambda r: _one_if(x[r] > x[q])) ** 2)
    wrong = total(N, lambda q: N * total(N, lambda r: _one_if(x[r] > x[q])))
    for lhs, rhs in (
        (pairs, wrong),
        (total(N, lambda r: x[r] * _one_if(x[r] > s)), S.Zero),
    ):
        for judge in (prove, refute, check_fixed, counterexample):
            with pytest.raises(NotImplementedError, match="a Piecewise inside a sum"):
                judge(lhs, rhs)


def test_a_branch_comes_into_no_sum_by_a_definition():
    step, defs = tensor("step", N, N), Defs()
    defs[step[i, k]] = _one_if(x[i] > x[k])
    count = total(N, lambda q: total(N, lambda r: step[r, q]) ** 2)
    prove(
        count,
        total(
            N, lambda q: total(N, lambda r: step[r, q]) * total(N, lambda r: step[r, q])
        ),
        defs,
    )
    with pytest.raises(NotImplementedError, match="a Piecewise inside a sum"):
        prove(
            count,
            total(N, lambda q: N * total(N, lambda r: _one_if(x[r] > x[q]))),
            defs,
        )


def test_a_branch_outside_of_all_letters_stays_possible():
    factor = Piecewise((s, sum_of_squares > 1), (0, True))
    prove(total(N, lambda r: factor * x[r]), factor * total(N, lambda r: x[r]))


# -- what is said of a claim


def test_two_bound_letters_print_differently():
    nested = total(N, lambda a: x[a] * total(N, lambda b: x[a] * y[b]))
    r = index("r")
    said = [str(prove(nested, nested)), str(refute(nested, 2 * nested))]
    for text in said:
        assert (
            "Sum(x[r]*Sum(x[r]*y[s], (s, 1, N)), (r, 1, N))" in text
            and "_r" not in text
        )
    assert "(s, 1, N)" in str(prove(x[r] * sum_of_squares, sum_of_squares * x[r]))
    with as_written():
        typed = total(N, lambda a: x[a] + x[a]) + x[r]
    assert str(prove(typed, typed)).endswith("x[r] + Sum((x[s] + x[s]), (s, 1, N))")


def test_a_refutation_says_which_function_it_took():
    f = opaque("f")
    refutation = refute(Partial(f(s), s), f(s))
    assert "f(t) = t**2 + 3*t + 1, one function among many" in str(refutation)
    own = opaque("g", lambda t: t**3)
    with pytest.raises(NotProved, match=r"with g\(t\) = t\*\*3"):
        prove(own(s), Integer(0))
    assert "(t)" not in str(refute(s, 2 * s))
