"""Formulas about computed numbers: what the ledger evaluates is the object that the page prints."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import I, Symbol, im, sqrt  # noqa: F401 - VALUES names them

from normgrad import ledger
from normgrad.checks.tolerance import unit_roundoff
from normgrad.ledger.formulas import formulas
from normgrad.ledger.values import Values
from normgrad.symbolic import as_written, delta, dim, index, tensor, total  # noqa: F401
from normgrad.symbolic.measured import Log2, largest  # noqa: F401
from normgrad.symbolic.opaque import derivative, opaque  # noqa: F401

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, t, A = tensor("x", M, N), tensor("t", N), tensor("A", N, N)
u, s = Symbol("u", positive=True), Symbol("s")
f = opaque("f")


# formula: its value in NumPy
VALUES = {
    "x[i, j] * t[j]": "row * columns",
    "total(N, lambda r: x[i, r] * t[r])": "row @ columns",
    "total(M, lambda p: total(N, lambda r: x[p, r])) / N": "row.sum() / 5",
    "total(N, lambda r: A[k, r] * A[r, j])": "(matrix @ matrix).T",  # j before k
    "total(M, lambda p: t[j])": "3 * columns",
    "largest(N, lambda r: x[i, r] ** 2)": "(row**2).max(-1)",
    "A[j, k] - delta(j, k)": "matrix - np.eye(5)",
    "sqrt(s) * f(s + 1)": "2.5**0.5 * np.sin(3.5)",
    "derivative(f)(s) / s": "7 / 2.5",
    "Log2(N) + s": "np.log2(5) + 2.5",
    "im(f(I * s)) / s": "np.sin(2.5j).imag / 2.5",
}


@pytest.mark.parametrize("text", VALUES)
def test_values_are_those_of_numpy(text, rng):
    row, columns = rng.standard_normal((3, 5)), rng.standard_normal(5)
    matrix = rng.standard_normal((5, 5))
    arrays = {"row": row, "columns": columns, "matrix": matrix, "np": np}
    with as_written():
        e = eval(text)
    expected = np.asarray(eval(VALUES[text], arrays))
    read = Values(
        {"x": row, "t": columns, "A": matrix, "s": 2.5, "f": np.sin, "f'": 7.0}
    )
    read(x[i, j] * t[j])  # from which the sizes are known
    value = read(e)
    assert value.shape == expected.shape
    room = 64 * unit_roundoff("float64") * (1 + abs(expected))
    assert (abs(value - expected) <= room).all()


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
