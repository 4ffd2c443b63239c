"""Formulas about computed numbers: what the ledger evaluates is the object that the page prints."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Symbol, sqrt
from sympy.core.relational import Eq, Le

from normgrad import ledger
from normgrad.checks.tolerance import unit_roundoff
from normgrad.ledger.formula import Line, Near, formula
from normgrad.ledger.formulas import formulas
from normgrad.ledger.values import Values
from normgrad.symbolic import as_written, delta, dim, index, tensor, total
from normgrad.symbolic.measured import Log2, largest
from normgrad.symbolic.opaque import derivative, opaque

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, t, A = tensor("x", M, N), tensor("t", N), tensor("A", N, N)
u, s = Symbol("u", positive=True), Symbol("s")
f = opaque("f")


def test_values_are_those_of_numpy(rng):
    arrays = {
        "x": rng.standard_normal((3, 5)),
        "t": rng.standard_normal(5),
        "A": rng.standard_normal((5, 5)),
        "s": 2.5,
    }
    row, columns, matrix = arrays["x"], arrays["t"], arrays["A"]
    with as_written():
        pairs = [
            (x[i, j] * t[j], row * columns),
            (total(N, lambda r: x[i, r] * t[r]), row @ columns),
            (total(M, lambda p: total(N, lambda r: x[p, r])) / N, row.sum() / 5),
            (total(N, lambda r: A[k, r] * A[r, j]), (matrix @ matrix).T),  # j before k
            (total(N, lambda r: A[r, r]), np.trace(matrix)),
            (total(M, lambda p: t[j]), 3 * columns),
            (largest(N, lambda r: x[i, r] ** 2), (row**2).max(-1)),
            (A[j, k] - delta(j, k), matrix - np.eye(5)),
            (sqrt(s) * f(s + 1), 2.5**0.5 * np.sin(3.5)),
            (derivative(f)(s) / s, 7 / 2.5),
            (Log2(N) + s, np.log2(5) + 2.5),
        ]
    for e, expected in pairs:
        read = Values({**arrays, "f": np.sin, "f'": 7.0})
        read(x[i, j] * t[j])  # from which the sizes are known
        value = read(e)
        assert value.shape == np.shape(expected)
        assert (
            abs(value - expected)
            <= 64 * unit_roundoff("float64") * (1 + abs(np.asarray(expected)))
        ).all(), e


@pytest.mark.parametrize(
    "values, message",
    [
        ({"t": [1.0], "fl": 1.0}, "values: got none for u"),
        ({"t": [1.0], "fl": 1.0, "u": 1.0, "v": 1.0}, "tolerance-sum has no v"),
        (
            {"t": [[1.0]], "fl": 1.0, "u": 1.0},
            "t has 2 axes, and 1 indices in the formula",
        ),
    ],
)
def test_values_that_do_not_fit_the_formula_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ledger.check("tolerance-sum", values, "c")


def test_sizes_are_those_of_the_arrays():
    y = tensor("y", N)
    with pytest.raises(ValueError, match="y makes N = 3, others make it 2"):
        formula("e", Le(t[k] + y[k], u, evaluate=False)).measure(
            {"t": np.ones(2), "y": np.ones(3), "u": 1.0}
        )


def test_the_error_of_an_entry_is_the_formulas_own():
    u32 = unit_roundoff("float32")
    terms = np.full(64, u32)
    terms[0] = 1
    case = {"t": terms, "fl": 1.0, "u": u32}
    (entry,) = ledger.check("tolerance-sum", case, "c")
    assert entry.error == 63 * u32 and entry.tolerance == 63 * u32 * terms.sum()
    assert (
        entry.formula == formulas()["tolerance-sum"].latex()
        and 1 <= entry.slack <= 1 + 64 * u32
    )
    assert ", as large as the error\n" in str(entry)
    for wrong in (1 + 200 * u32, np.nan):
        with pytest.raises(AssertionError, match="tolerance-sum: error"):
            ledger.check("tolerance-sum", case | {"fl": wrong}, "c")
        with pytest.raises(AssertionError, match="tolerance-sum: error"):
            ledger.check("tolerance-sum", [case, case | {"fl": wrong}], "c")


def test_an_equality_needs_its_distance_and_an_order_of_magnitude_does_not():
    with as_written():
        equal, near = (
            formula("e", Eq(s, u + 1, evaluate=False)),
            formula("n", Near(s, u)),
        )
    with pytest.raises(ValueError, match="within: e is an equality"):
        equal.measure({"s": 2.0, "u": 1.0})
    assert equal.measure({"s": 2.5, "u": 1.0}, within=1) == (0.5, 1)
    assert near.measure({"s": 100.0, "u": 1.0}) == (2, 1)
    with pytest.raises(AssertionError, match="n: error"):
        ledger.check(near, {"s": 0.05, "u": 1.0}, "c")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: ledger.check("ln-dx", {}, "c"),
            ValueError,
            "formula: got 'ln-dx', which is no formula",
        ),
        (
            lambda: ledger.check("tolerance-sum", 1e-9, 1e-3, "c"),
            TypeError,
            "values: got float",
        ),
        (lambda: ledger.check("tolerance-sum", [], "c"), TypeError, "values: got list"),
        (lambda: ledger.check(3, {}, "c"), TypeError, "formula: got int"),
        (lambda: formula("e"), ValueError, "e: got no relation"),
        (
            lambda: formula("e", Line(Le(1, 2))),
            TypeError,
            "needs an undecided relation",
        ),
        (
            lambda: ledger.define("ln-dx"),
            ValueError,
            "ln-dx claims something, and is no definition",
        ),
        (
            lambda: ledger.define("ln-dx", claim="a name"),
            ValueError,
            "ln-dx claims something",
        ),
        (
            lambda: ledger.define("tolerance-sum", claim="a name"),
            ValueError,
            "tolerance-sum claims something",
        ),
    ],
)
def test_what_is_no_formula_and_what_claims_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
