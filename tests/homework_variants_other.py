"""Right solutions of homeworks 1, 6 and 8, each written as the reference is not; all of them must get full marks."""

import numpy as np


def delta_left_to_sympy(x, w, k, N):
    """SymPy contracts the delta, into a Piecewise; the mean is a sum of its own."""
    from sympy import KroneckerDelta, Sum, symbols

    r = symbols("r", integer=True, positive=True)
    return Sum(KroneckerDelta(k, r) * w[r] * x[r], (r, k, k)).doit() - Sum(
        x[r] * w[r] / N, (r, 1, N)
    )


def paths_by_names(x, j, k, N):
    """The mean's derivative by its name, a list, and one fraction."""
    from sympy import KroneckerDelta, Rational, Sum, symbols

    s = symbols("s", integer=True)
    mean = Sum(x[s] / N, (s, 1, N))
    return [
        mean * KroneckerDelta(k, j),
        (2 * x[j] / N + 2 * mean * KroneckerDelta(k, j)) * Rational(1, 2),
    ]


def layouts_by_exchange(w, a, b, N):
    """The second layout by exchanging the indices of the first."""
    from sympy import KroneckerDelta

    numerator = KroneckerDelta(a, b) * w[a] - w[b] / N
    return numerator, numerator.subs({a: b, b: a}, simultaneous=True)


def cotangent_over_n(w, dy, j, N):
    """One fraction, the sum over all but j."""
    from sympy import Sum, symbols

    t = symbols("t", integer=True)
    below, above = Sum(dy[t], (t, 1, j - 1)), Sum(dy[t], (t, j + 1, N))
    return w[j] * ((N - 1) * dy[j] - below - above) / N


def forward(x, weight, bias):
    """LayerNorm."""
    mean = x.mean(-1)
    q = x - mean[:, None]
    rstd = ((q * q).mean(-1) + 1e-5) ** -0.5
    return q * rstd[:, None] * weight + bias, mean, rstd


def check_by_oracle(backward):
    """Against a formula of one's own, rows one by one, with numpy.testing."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.standard_normal((3, 6)) * 4 + 1, np.full((1, 6), 0.25)])
    weight, dy = rng.standard_normal(6), rng.standard_normal((4, 6))
    _, mean, rstd = forward(x, weight, np.zeros(6))
    x_hat = (x - mean[:, None]) * rstd[:, None]
    matrices = [
        r * (np.eye(6) - 1 / 6 - np.outer(h, h) / 6)
        for h, r in zip(x_hat, rstd, strict=True)
    ]
    right_gradients = [
        np.array([(weight * g) @ m for g, m in zip(dy, matrices, strict=True)]),
        (dy * x_hat).sum(0),
        dy.sum(0),
    ]
    names, size = ("dx", "dw", "db"), 64 * 2.0**-53 * rstd.max() * np.abs(dy).max() * 6
    for name, got, right in zip(
        names, backward(dy, x, weight, mean, rstd), right_gradients, strict=True
    ):
        np.testing.assert_array_less(np.abs(got - right), size, err_msg=name)


def delta_with_its_own_index(x, w, k, N):
    """The sum counts k itself, which is another index there."""
    from sympy import Sum

    return w[k] * x[k] - Sum(w[k] * x[k], (k, 1, N)) / N


def sums_nested(x, dy, j, M, N):
    """The mean of the differences to all entries of the row."""
    from sympy import Sum, symbols

    i, r = symbols("i r", integer=True, positive=True)
    return Sum(Sum((x[i, j] - x[i, r]) * dy[i, j], (r, 1, N)) / N, (i, 1, M)), Sum(
        dy[i, j], (i, 1, M)
    )


def norms_by_recursion(dy, norms, branches):
    """The places from the last to the first, each calling the one before."""
    import torch

    def back(k, dy, stream):
        here = norms[k](dy, stream)
        return [
            *(back(k - 1, branches[k - 1](here), here) if k else []),
            torch.linalg.vector_norm(here),
        ]

    return torch.stack(back(len(norms) - 1, dy, torch.zeros_like(dy)))


RIGHT = [
    ("contract-delta", delta_with_its_own_index),
    ("parameter-sums", sums_nested),
    ("gradient-norms", norms_by_recursion),
    ("contract-delta", delta_left_to_sympy),
    ("local-and-total", paths_by_names),
    ("jacobian-layouts", layouts_by_exchange),
    ("cotangent", cotangent_over_n),
    ("gradient-test", check_by_oracle),
]
