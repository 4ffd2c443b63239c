"""Homework 1: index notation and layouts.

Arrays, indices and lengths come in as SymPy objects; put your answer together from them. Indices count from 1.
Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

from sympy import KroneckerDelta, Sum, symbols


### BEGIN SOLUTION
def index(name):
    """An index for a sum, whose name is not in use elsewhere."""
    return symbols(name, integer=True, positive=True)


### END SOLUTION


def contract_delta(x, w, k, N):
    """The sum over r = 1..N of w_r (delta_kr - 1/N) x_r, without the delta.

    Args:     x, w: arrays, x[r] is the entry r; k: an index; N: the length
    Returns:  a SymPy expression; a sum is Sum(x[r], (r, 1, N)) with an index of your own
    Equations: index-delta, index-count (chapter Notation)
    """
    ### BEGIN SOLUTION
    r = index("r")
    return w[k] * x[k] - Sum(w[r] * x[r], (r, 1, N)) / N
    ### END SOLUTION


def local_and_total(x, j, k, N):
    """Both derivatives of y_j = x_j mean by x_k, where mean is the mean of the row x.

    Args:     x: an array; j, k: indices; N: the length
    Returns:  (local, total): with the mean held fixed, and with the mean following x_k
    Equations: index-local, index-total (chapter Notation)
    """
    ### BEGIN SOLUTION
    r = index("r")
    local = KroneckerDelta(j, k) * Sum(x[r], (r, 1, N)) / N
    total = local + x[j] / N
    return local, total
    ### END SOLUTION


def jacobian_layouts(w, a, b, N):
    """The entry in row a and column b of the Jacobian of y_k = w_k x_k - mean(w x), in both layouts.

    Args:     w: an array; a, b: indices; N: the length
    Returns:  (numerator, denominator): rows are outputs in the first, inputs in the second
    Equations: index-jacobian, index-jacobian-transposed (chapter Notation)
    """
    ### BEGIN SOLUTION
    numerator = w[b] * (KroneckerDelta(a, b) - 1 / N)
    denominator = w[a] * (KroneckerDelta(a, b) - 1 / N)
    return numerator, denominator
    ### END SOLUTION


def cotangent(w, dy, j, N):
    """dx_j for y_k = w_k x_k - mean(w x): the derivative of the sum over k of dy_k y_k, with no delta and no matrix.

    Args:     w, dy: arrays; j: an index; N: the length
    Returns:  dx_j, an expression
    Equations: index-loss, index-vjp (chapter Notation)
    """
    ### BEGIN SOLUTION
    r = index("r")
    dx = w[j] * (dy[j] - Sum(dy[r], (r, 1, N)) / N)
    return dx
    ### END SOLUTION


def parameter_sums(x, dy, j, M, N):
    """dw_j and db_j of y_ij = w_j (x_ij - mean_i) + b_j, where mean_i is the mean of row i.

    Args:     x, dy: arrays, x[i, j] is row i, column j; j: an index; M: the number of rows; N: the length of a row
    Returns:  (dw_j, db_j), expressions
    Equations: index-broadcast (chapter Notation), pg-dw, pg-db (chapter Parameter gradients)
    """
    ### BEGIN SOLUTION
    i, r = index("i"), index("r")
    q = x[i, j] - Sum(x[i, r], (r, 1, N)) / N
    dw = Sum(dy[i, j] * q, (i, 1, M))
    db = Sum(dy[i, j], (i, 1, M))
    return dw, db
    ### END SOLUTION
