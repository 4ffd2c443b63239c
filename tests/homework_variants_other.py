"""Right solutions of homeworks 1, 6, 7 and 8, each written as the reference is not; all of them must get full marks."""

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
    """The second layout by exchanging the letters of the first."""
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
    """LayerNorm in complex or real numbers."""
    mean = x.mean(-1)
    q = x - mean[:, None]
    rstd = ((q * q).mean(-1) + 1e-5) ** -0.5
    return q * rstd[:, None] * weight + bias, mean, rstd


def check_by_complex_step(backward):
    """Every entry by the complex step, which loses no digit."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 5)) * [[0.3], [1], [7]]
    x[1] = 2
    weight, bias, dy = rng.standard_normal(5), np.zeros(5), rng.standard_normal((3, 5))
    _, mean, rstd = forward(x, weight, bias)
    grads = backward(dy, x, weight, mean, rstd)
    for at, grad in enumerate(grads):
        for index in np.ndindex(grad.shape):
            moved = [a.astype(complex) for a in (x, weight, bias)]
            moved[at][index] += 1e-200j
            slope = (dy * forward(*moved)[0]).sum().imag / 1e-200
            size = np.abs(dy).sum() * rstd.max() * np.abs(weight).max() * 40
            if not abs(slope - grad[index]) <= 2.0**-53 * size * 16:
                raise AssertionError(f"entry {index} of gradient {at}")


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


class Masked:
    """RMSNorm over the entries that a soft mask leaves, one input in two places, no parameters."""

    @staticmethod
    def inputs(rng):
        """Rows and masks between 0 and 1."""
        return {"x": rng.standard_normal((3, 5)), "mask": rng.uniform(0.1, 1, (3, 5))}

    @staticmethod
    def degenerate(rng):
        """A row of zeros."""
        return [{"x": np.zeros((2, 4)), "mask": rng.uniform(0.1, 1, (2, 4))}]

    @staticmethod
    def forward(x, mask):
        """x over the root of the masked mean square."""
        return x / np.sqrt(((mask * x * x).sum(1) / mask.sum(1) + 1e-3)[:, None])

    @staticmethod
    def backward(dy, x, mask):
        """By the quotient rule, in einsum."""
        total = mask.sum(1)
        v = np.einsum("ij,ij,ij->i", mask, x, x) / total
        rstd = 1 / np.sqrt(v + 1e-3)
        dv = -0.5 * rstd**3 * np.einsum("ij,ij->i", dy, x)
        dx = dy * rstd[:, None] + 2 * mask * x * (dv / total)[:, None]
        return [dx, (x * x - v[:, None]) * (dv / total)[:, None]]


class Scalar:
    """L2 normalization with a learned power: one input a vector, one a number in an array without axes."""

    @staticmethod
    def inputs(rng):
        """A row and a power."""
        return {"x": rng.standard_normal(6), "power": np.asarray(rng.uniform(0.5, 2))}

    @staticmethod
    def degenerate(rng):
        """A row near 0."""
        return [{"x": 1e-3 * rng.standard_normal(6), "power": np.asarray(1.0)}]

    @staticmethod
    def forward(x, power):
        """x over its norm to a power."""
        return x / np.linalg.norm(x) ** power

    @staticmethod
    def backward(dy, x, power):
        """dpower is the product with -log of the norm."""
        size = np.linalg.norm(x)
        y, scale = x / size**power, size**-power
        dx = scale * dy - power * (dy @ y) * x / size**2
        return dx.astype(x.dtype), np.asarray(-np.log(size) * (dy @ y), x.dtype)


def delta_with_its_own_letter(x, w, k, N):
    """The sum counts k itself, which is another letter there."""
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
    ("contract-delta", delta_with_its_own_letter),
    ("parameter-sums", sums_nested),
    ("gradient-norms", norms_by_recursion),
    ("contract-delta", delta_left_to_sympy),
    ("local-and-total", paths_by_names),
    ("jacobian-layouts", layouts_by_exchange),
    ("cotangent", cotangent_over_n),
    ("gradient-test", check_by_complex_step),
    ("gradient-test", check_by_oracle),
    ("norm-project", Masked),
    ("norm-project", Scalar),
]
