"""124 claims as a student types them, true and false: (lhs, rhs, the answer that is due, more).

The answer is "proved", "refuted" (a counterexample is shown) or "refused" (more is a pattern of the words); else more
is the definitions.
"""

from sympy import (
    Abs,
    Eq,
    Heaviside,
    I,
    Max,
    Min,
    Piecewise,
    S,
    Sum,
    Symbol,
    cbrt,
    cosh,
    exp,
    log,
    oo,
    root,
    sign,
    sinh,
    sqrt,
    tanh,
)

from normgrad.symbolic import (
    Defs,
    Partial,
    delta,
    dim,
    index,
    mean,
    opaque,
    tensor,
    total,
)

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, y, w, g = (tensor(name, N) for name in ("x", "y", "w", "g"))
X, A, B = tensor("X", M, N), tensor("A", N, N), tensor("B", N, N)
a, b, s = tensor("a"), tensor("b"), tensor("s")
eps, c = Symbol("eps", positive=True), Symbol("c", positive=True)
f = opaque("f")


def add(body):
    return total(N, body)


def avg(body):
    return mean(N, body)


def var(body):
    return avg(lambda r: (body(r) - avg(body)) ** 2)


def ln(body, e=0):
    return lambda r: (body(r) - avg(body)) / sqrt(var(body) + e)


def rms(body, e=0):
    return lambda r: body(r) / sqrt(avg(lambda q: body(q) ** 2) + e)


def l2(body):
    return lambda r: body(r) / sqrt(add(lambda q: body(q) ** 2))


def row(r):
    return x[r]


def other(r):
    return y[r]


def softmax(body):
    return lambda r: exp(body(r)) / add(lambda q: exp(body(q)))


def sigma(z):
    return 1 / (1 + exp(-z))


def shift(r):
    return x[r] + s


def scaled(r):
    return a * x[r]


def stretched(r):
    return c * x[r]


mu, m2 = avg(row), avg(lambda r: x[r] ** 2)
norm = sqrt(add(lambda r: x[r] ** 2))
dot = add(lambda r: x[r] * y[r])
hat, hat_e = ln(row), ln(row, eps)
soft = softmax(row)
rstd = 1 / sqrt(var(row) + eps)
wdy_mean = avg(lambda r: g[r] * w[r])
wdy_hat = avg(lambda r: g[r] * w[r] * hat_e(r))
loss = add(lambda r: g[r] * w[r] * hat_e(r))
loss_rms = add(lambda r: g[r] * rms(row, eps)(r))
cross_entropy = -add(lambda r: y[r] * log(soft(r)))
square = Defs()
square[tensor("q", N)[i]] = x[i] - mu
q = tensor("q", N)

PROVED, REFUTED, REFUSED = "proved", "refuted", "refused"

CLAIMS = [
    # sums and deltas
    (add(lambda r: a * x[r]), a * add(row), PROVED),
    (add(lambda r: x[r] + y[r]), add(row) + add(other), PROVED),
    (add(lambda r: x[r] * y[r]), add(row) * add(other), REFUTED),
    (add(lambda r: x[r] ** 2), add(row) ** 2, REFUTED),
    (add(lambda r: S.One), N, PROVED),
    (add(lambda r: s), s, REFUTED),
    (add(lambda r: delta(r, i) * x[r]), x[i], PROVED),
    (add(lambda r: delta(r, i) * x[i]), N * x[i], REFUTED),
    (add(lambda r: delta(r, r)), N, PROVED),
    (add(lambda r: delta(i, r) * delta(r, k)), delta(i, k), PROVED),
    (delta(i, k) ** 2, delta(i, k), PROVED),
    (delta(i, k) * x[i], delta(i, k) * x[k], PROVED),
    (delta(i, k), delta(k, i), PROVED),
    (delta(i, k) * delta(k, j), delta(i, j), REFUTED),
    (add(lambda r: add(lambda t: A[r, t])), add(lambda t: add(lambda r: A[r, t])), PROVED),
    (add(lambda r: add(lambda t: A[r, t])), add(lambda r: A[r, r]), REFUTED),
    (add(lambda r: add(lambda t: A[r, t] * B[t, r])), add(lambda r: add(lambda t: B[r, t] * A[t, r])), PROVED),
    (add(lambda r: add(lambda t: A[r, t] * B[t, r])), add(lambda r: add(lambda t: A[r, t] * B[r, t])), REFUTED),
    (total(M, lambda r: add(lambda t: X[r, t])), add(lambda t: total(M, lambda r: X[r, t])), PROVED),
    (add(lambda r: add(lambda t: (x[r] - x[t]) ** 2)), 2 * N**2 * var(row), PROVED),
    (add(lambda r: add(lambda t: x[r] * x[t])), add(row) ** 2, PROVED),
    (add(lambda r: 1 / x[r]), 1 / add(row), REFUTED),
    # statistics
    (add(lambda r: x[r] - mu), 0, PROVED),
    (avg(lambda r: x[r] - mu), mu, REFUTED),
    (var(row), m2 - mu**2, PROVED),
    (var(row), m2 - mu, REFUTED),
    (var(row), N * m2 - mu**2, REFUTED),
    (var(shift), var(row), PROVED),
    (var(scaled), a * var(row), REFUTED),
    (var(scaled), a**2 * var(row), PROVED),
    (sqrt(var(scaled)), Abs(a) * sqrt(var(row)), PROVED),
    (sqrt(var(scaled)), a * sqrt(var(row)), REFUTED),
    (avg(shift), mu + s, PROVED),
    (avg(lambda r: (x[r] - mu) ** 3), avg(lambda r: x[r] ** 3) - 3 * mu * m2 + 2 * mu**3, PROVED),
    (avg(lambda r: (x[r] - mu) ** 3), avg(lambda r: x[r] ** 3) - mu**3, REFUTED),
    (avg(lambda r: x[r] * y[r]) - mu * avg(other), avg(lambda r: (x[r] - mu) * (y[r] - avg(other))), PROVED),
    (m2, (norm / N) ** 2, REFUTED),
    (m2, norm**2 / N, PROVED),
    (Partial(mu, x[i]), 1 / N, PROVED),
    (Partial(mu, x[i]), S.One, REFUTED),
    (Partial(var(row), x[i]), 2 * (x[i] - mu) / N, PROVED),
    (Partial(var(row), x[i]), 2 * (x[i] - mu) / (N - 1), REFUTED),
    (Partial(sqrt(var(row)), x[i]), (x[i] - mu) / (N * sqrt(var(row))), PROVED),
    (Partial(x[i] - mu, x[k]), delta(i, k) - 1 / N, PROVED),
    # normalization
    (avg(hat), 0, PROVED),
    (avg(lambda r: hat(r) ** 2), 1, PROVED),
    (avg(lambda r: hat_e(r) ** 2), 1, REFUTED),
    (avg(lambda r: hat_e(r) ** 2), var(row) / (var(row) + eps), PROVED),
    (ln(hat)(i), hat(i), PROVED),
    (ln(hat_e, eps)(i), hat_e(i), REFUTED),
    (ln(shift)(i), hat(i), PROVED),
    (ln(shift, eps)(i), hat_e(i), PROVED),
    (ln(stretched)(i), hat(i), PROVED),
    (ln(stretched, eps)(i), hat_e(i), REFUTED),
    (ln(stretched, c**2 * eps)(i), hat_e(i), PROVED),
    (ln(scaled)(i), hat(i), REFUTED),
    (ln(scaled)(i), sign(a) * hat(i), PROVED),
    (ln(lambda r: -x[r], eps)(i), -hat_e(i), PROVED),
    (ln(rms(row))(i), hat(i), PROVED),
    (rms(hat)(i), hat(i), PROVED),
    (rms(row)(i), sqrt(N) * l2(row)(i), PROVED),
    (rms(row)(i), N * l2(row)(i), REFUTED),
    (rms(shift)(i), rms(row)(i), REFUTED),
    (rms(scaled)(i), a / Abs(a) * rms(row)(i), PROVED),
    (rms(scaled, eps)(i), sign(a) * rms(row, eps)(i), REFUTED),
    (l2(l2(row))(i), l2(row)(i), PROVED),
    (add(lambda r: l2(row)(r) ** 2), 1, PROVED),
    (Partial(norm, x[i]), l2(row)(i), PROVED),
    (Partial(norm, x[i]), 2 * l2(row)(i), REFUTED),
    (Partial(l2(row)(i), x[k]), (delta(i, k) - l2(row)(i) * l2(row)(k)) / norm, PROVED),
    (Partial(l2(row)(i), x[k]), (delta(i, k) + l2(row)(i) * l2(row)(k)) / norm, REFUTED),
    (Partial(hat_e(i), x[k]), rstd * (delta(i, k) - 1 / N - hat_e(i) * hat_e(k) / N), PROVED),
    (Partial(hat_e(i), x[k]), rstd * (delta(i, k) - 1 / N - hat_e(i) * hat_e(k)), REFUTED),
    (Partial(loss, x[i]), rstd * (g[i] * w[i] - wdy_mean - hat_e(i) * wdy_hat), PROVED),
    (Partial(loss, x[i]), rstd * (g[i] * w[i] - hat_e(i) * wdy_hat), REFUTED),
    (Partial(loss, w[i]), g[i] * hat_e(i), PROVED),
    (Partial(loss_rms, x[i]), (g[i] - rms(row, eps)(i) * avg(lambda r: g[r] * rms(row, eps)(r))) / sqrt(m2 + eps),
     PROVED),
    (add(lambda r: Partial(loss, x[r])), 0, PROVED),
    (add(lambda r: x[r] * Partial(loss, x[r])), 0, REFUTED),
    (dot / sqrt(add(lambda r: x[r] ** 2) * add(lambda r: y[r] ** 2)), add(lambda r: l2(row)(r) * l2(other)(r)), PROVED),
    # softmax and its relatives
    (add(soft), 1, PROVED),
    (softmax(shift)(i), soft(i), PROVED),
    (softmax(scaled)(i), soft(i), REFUTED),
    (Partial(soft(i), x[k]), soft(i) * (delta(i, k) - soft(k)), PROVED),
    (Partial(soft(i), x[k]), soft(i) * (1 - soft(k)), REFUTED),
    (Partial(log(add(lambda r: exp(x[r]))), x[i]), soft(i), PROVED),
    (log(soft(i)), x[i] - log(add(lambda r: exp(x[r]))), PROVED),
    (Partial(cross_entropy, x[i]), soft(i) * add(other) - y[i], PROVED),
    (Partial(cross_entropy, x[i]), soft(i) - y[i], REFUTED),
    (exp(x[i] + x[j]), exp(x[i]) * exp(x[j]), PROVED),
    (exp(x[i] + x[j]), exp(x[i]) + exp(x[j]), REFUTED),
    (sigma(a) + sigma(-a), 1, PROVED),
    (Partial(sigma(a), a), sigma(a) * (1 - sigma(a)), PROVED),
    (Partial(sigma(a), a), sigma(a) ** 2, REFUTED),
    (Partial(tanh(x[i]), x[k]), delta(i, k) * (1 - tanh(x[i]) ** 2), PROVED),
    (tanh(a), 2 * sigma(2 * a) - 1, PROVED),
    (Partial(a * sigma(a), a), sigma(a) * (1 + a * (1 - sigma(a))), PROVED),
    (cosh(a) ** 2 - sinh(a) ** 2, 1, PROVED),
    # signs, roots and maxima
    (sqrt(a**2), Abs(a), PROVED),
    (sqrt(a**2), a, REFUTED),
    (Max(a, 0) - Max(-a, 0), a, PROVED),
    (Max(a, b) + Min(a, b), a + b, PROVED),
    (Max(a + b, 0), Max(a, 0) + Max(b, 0), REFUTED),
    (Max(c * a, 0), c * Max(a, 0), PROVED),
    (Partial(add(lambda r: Abs(x[r])), x[i]), sign(x[i]), PROVED),
    (Partial(Max(x[i], 0), x[k]), delta(i, k) * Heaviside(x[i]), PROVED),
    (root(add(lambda r: x[r] ** 4), 4) ** 2, sqrt(add(lambda r: x[r] ** 4)), PROVED),
    (root(add(lambda r: x[r] ** 4), 4), norm, REFUTED),
    (norm**0.5 * norm**1.5, norm**2, PROVED),
    (cbrt(add(lambda r: x[r] ** 2)), norm, REFUSED, "only square roots"),
    # definitions and functions that nothing is known of
    (add(lambda r: q[r]), 0, PROVED, square),
    (Partial(q[i], x[k]), delta(i, k), REFUTED, square),
    (Partial(f(norm), x[i]), Partial(f(s), s), REFUTED),
    (Partial(f(a) ** 2, a), 2 * f(a) * Partial(f(a), a), PROVED),
    # what is no claim of this kind
    (0.1 * x[i], x[i] / 10, REFUSED, "is a decimal"),
    ("x[i]", x[i], REFUSED, "got the text"),
    (Sum(x[k], (k, 1, i)), x[i], REFUSED, "k: runs to"),
    (add(lambda r: Heaviside(i - r) * x[r]), x[i], REFUSED, "order of the places"),
    (add(lambda r: Piecewise((x[r], x[r] > 0), (0, True))), add(lambda r: Max(x[r], 0)), REFUSED, "inside a sum"),
    (x[i + 1] - x[i], 0, REFUSED, "an index is a letter"),
    (total(M, lambda r: x[r]), add(row), REFUSED, "runs to"),
    (I * x[i], x[i], REFUSED, "imaginary"),
    (oo, add(row), REFUSED, "no number"),
    (Eq(x[i], y[i]), x[i], REFUSED, "needs a SymPy expression"),
]  # fmt: skip
