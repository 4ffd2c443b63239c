"""Homework 1, the reference solution: index notation and layouts in SymPy."""

from sympy import KroneckerDelta, Sum, symbols


def letter(name):
    """A letter for a sum, which is not in use elsewhere."""
    return symbols(name, integer=True, positive=True)


def contract_delta(x, w, k, N):
    """The delta picks the term with r = k; the other term keeps its sum.  {eq}`index-delta`"""
    r = letter("r")
    return w[k] * x[k] - Sum(w[r] * x[r], (r, 1, N)) / N


def local_and_total(x, j, k, N):
    """With the mean held fixed, then with the path through it.  {eq}`index-total`"""
    r = letter("r")
    local = KroneckerDelta(j, k) * Sum(x[r], (r, 1, N)) / N
    total = local + x[j] / N
    return local, total


def jacobian_layouts(w, a, b, N):
    """The weight belongs to the input: to the column in numerator layout.  {eq}`index-jacobian-transposed`"""
    numerator = w[b] * (KroneckerDelta(a, b) - 1 / N)
    denominator = w[a] * (KroneckerDelta(a, b) - 1 / N)
    return numerator, denominator


def cotangent(w, dy, j, N):
    """The sum runs over the output, and its delta is contracted.  {eq}`index-vjp`"""
    r = letter("r")
    dx = w[j] * (dy[j] - Sum(dy[r], (r, 1, N)) / N)
    return dx


def parameter_sums(x, dy, j, M, N):
    """A parameter acts on every row, so its gradient sums over them.  {eq}`pg-dw`, {eq}`pg-db`"""
    i, r = letter("i"), letter("r")
    q = x[i, j] - Sum(x[i, r], (r, 1, N)) / N
    dw = Sum(dy[i, j] * q, (i, 1, M))
    db = Sum(dy[i, j], (i, 1, M))
    return dw, db
