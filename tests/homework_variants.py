"""Right solutions of homeworks 2, 3 and 5, each written as the reference is not; all of them must get full marks."""

import numpy as np


def rms_by_rows(x, weight, eps):
    """A Python loop over the rows, sums in blocks of three columns."""
    y, rstd = np.zeros_like(x), np.zeros(len(x), x.dtype)
    for i, row in enumerate(x):
        squares = [
            np.dot(row[k : k + 3], row[k : k + 3]) for k in range(0, len(row), 3)
        ]
        rstd[i] = 1 / np.sqrt(sum(squares, start=x.dtype.type(0)) / len(row) + eps)
        y[i] = row * (rstd[i] * weight)
    return y, rstd


def rms_cubed(dy, x, weight, rstd):
    """rstd multiplied out: rstd wdy - rstd^3 x mean(x wdy)."""
    n = x.shape[1]
    along = np.einsum("ij,ij,j->i", x, dy, weight)
    dx = rstd[:, None] * (dy * weight) - x * (rstd**3 * along / n)[:, None]
    return dx, np.einsum("ij,i,ij->j", x, rstd, dy)


def rms_jacobian(dy, x, weight, rstd):
    """The Jacobian of every row, then a product with the cotangent; a list and not a tuple."""
    n, x_hat = x.shape[1], x * rstd[:, None]
    eye = np.eye(n, dtype=x.dtype)
    jacobian = rstd[:, None, None] * (
        eye - x_hat[:, :, None] * x_hat[:, None, :] / np.asarray(n, x.dtype)
    )
    return [
        np.einsum("ikj,ik->ij", jacobian, dy * weight),
        (dy * x_hat).T @ np.ones(len(x), x.dtype),
    ]


def ln_backwards_sums(dy, x, weight, mean, rstd):
    """Every sum from the last term to the first, row by row."""
    m, n = x.shape
    dx, dw, db = np.empty_like(x), np.zeros_like(weight), np.zeros_like(weight)
    for i in reversed(range(m)):
        q = x[i] - mean[i]
        wdy = weight * dy[i]
        c1, c2 = (q * wdy)[::-1].sum() / n, wdy[::-1].sum() / n
        dx[i] = rstd[i] * wdy - rstd[i] * c2 - q * c1 * rstd[i] ** 3
        dw += dy[i] * q * rstd[i]
        db += dy[i]
    return dx, dw, db


def statistics(torch, x, eps):
    """The centred rows and rstd, by torch's own var_mean, at least in float32."""
    wide = x.double() if x.dtype == torch.float64 else x.float()
    var, mean = torch.var_mean(wide, dim=1, correction=0, keepdim=True)
    return wide - mean, torch.rsqrt(var + eps)


def backward(torch, ctx, dy):
    """rstd cubed and multiplied out; einsum for the sums."""
    weight, x = ctx.saved_tensors
    q, rstd = statistics(torch, x, ctx.eps)
    g, n = dy.to(q.dtype) * weight.to(q.dtype), x.shape[1]
    along = torch.einsum("ij,ij->i", q, g)[:, None] / n
    dx = rstd * g - rstd * g.sum(1, keepdim=True) / n - q * rstd**3 * along
    dw = torch.einsum("ij,ij,ik->j", dy.to(q.dtype), q, rstd)
    return (
        dx.to(x.dtype),
        dw.to(weight.dtype),
        dy.to(q.dtype).sum(0).to(weight.dtype),
        None,
    )


def torch_functions():
    """Right LayerNorm classes, by name; torch is imported here."""
    import torch

    class Einsum(torch.autograd.Function):
        """Saves x and the weight, in another order."""

        @staticmethod
        def forward(ctx, x, weight, bias, eps):
            q, rstd = statistics(torch, x, eps)
            ctx.eps = eps
            ctx.save_for_backward(weight, x)
            return torch.addcmul(bias.to(q.dtype), q * rstd, weight.to(q.dtype)).to(
                x.dtype
            )

        @staticmethod
        def backward(ctx, dy):
            return backward(torch, ctx, dy)

    class SetupContext(Einsum):
        """The newer style, with setup_context, and forward without ctx."""

        @staticmethod
        def forward(x, weight, bias, eps):
            q, rstd = statistics(torch, x, eps)
            return (q * rstd * weight.to(q.dtype) + bias.to(q.dtype)).to(x.dtype)

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, weight, _, ctx.eps = inputs
            ctx.save_for_backward(weight, x)

    return {"einsum": Einsum, "setup_context": SetupContext}


def narrow(x):
    """The rows in float32."""
    return np.asarray(x, np.float32)


def corrected(x, eps):
    """The deviations' own mean is subtracted from the variance; sums of pieces of 16."""
    wide = narrow(x)
    n = np.float32(x.shape[1])

    def total(a):
        return sum(
            (a[:, k : k + 16].sum(1) for k in range(0, a.shape[1], 16)),
            start=np.zeros(len(a), np.float32),
        )

    mean = total(wide) / n
    q = wide - mean[:, None]
    left = total(q) / n
    var = np.maximum(total(q * q) / n - left * left, 0)
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return [
        ((q - left[:, None]) * rstd[:, None]).astype(x.dtype),
        mean + left,
        var,
        rstd,
    ]


def shifted(x, eps):
    """One pass over the row less its own middle entry, then once more over the row less the mean found."""
    wide = narrow(x)
    m = np.median(wide, axis=1).astype(np.float32)
    for _ in range(2):
        q = wide - m[:, None]
        step = q.mean(1)
        m, last = m + step, m
    q = (wide - last[:, None]) - step[:, None]
    var = np.square(q).mean(1)
    rstd = np.reciprocal(np.sqrt(var + np.float32(eps)))
    return (q * rstd[:, None]).astype(x.dtype), m, var, rstd


def merge_by_half(n1, mean1, squares1, n2, mean2, squares2):
    """The weight of the distance as a product of shares."""
    n = n1 + n2
    some = np.where(n > 0, n, 1).astype(np.float32)
    first, second = n1 / some, n2 / some
    d = mean1 - mean2
    return n, mean2 + first * d, squares1 + (squares2 + some * (first * second) * d**2)


def merge_weighted(n1, mean1, squares1, n2, mean2, squares2):
    """The mean as a weighted sum; the distance scaled before it is squared."""
    n = n1 + n2
    some = np.maximum(n, np.float32(1))
    mean = (n1 / some) * mean1 + (n2 / some) * mean2
    scaled = np.sqrt(n1 / some * n2) * (mean2 - mean1)
    return [n, mean, scaled * scaled + squares2 + squares1]


def by_hypot(x, weight, eps):
    """The root of the sum of squares, one entry after the other, without a square."""
    total = np.full(len(x), np.sqrt(x.shape[1] * x.dtype.type(eps)), x.dtype)
    for column in x.T:
        total = np.hypot(total, column)
    rstd = np.sqrt(x.dtype.type(x.shape[1])) / total
    return (x * weight) * rstd[:, None], rstd


def by_two_numbers(dy, x, weight, mean, rstd):
    """dx = a wdy + b x + c, with three numbers a row."""
    g, n = dy * weight, x.shape[1]
    b = (g.sum(1) * mean - (g * x).sum(1)) * rstd**3 / n
    c = -b * mean - g.sum(1) * rstd / n
    x_hat = (x - mean[:, None]) * rstd[:, None]
    return (
        rstd[:, None] * g + b[:, None] * x + c[:, None],
        (dy * x_hat).sum(0),
        dy.sum(0),
    )


def divided_where(x, weight, eps):
    """A row of zeros is left alone by np.divide."""
    size = np.sqrt((x * x).mean(-1) + eps)
    rstd = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
    return x * rstd[:, None] * weight, rstd


RIGHT = [
    ("rmsnorm-forward", by_hypot),
    ("rmsnorm-forward", divided_where),
    ("rmsnorm-forward", rms_by_rows),
    ("rmsnorm-backward", rms_cubed),
    ("rmsnorm-backward", rms_jacobian),
    ("layernorm-backward", by_two_numbers),
    ("layernorm-backward", ln_backwards_sums),
    ("stable-normalize", corrected),
    ("stable-normalize", shifted),
    ("merge-blocks", merge_by_half),
    ("merge-blocks", merge_weighted),
]
