"""The term of an expression that is wrong is named, whatever way the answer is written in."""

import pytest
from homework_solutions import named
from sympy import KroneckerDelta, Sum, symbols

import normgrad.homework as hw

r = symbols("r", integer=True)
i = symbols("i", integer=True)


def mean(f, N):
    return Sum(f(r), (r, 1, N)) / N


def row(x, N):
    return Sum(x[i, r], (r, 1, N)) / N


# task: the wrong answer, the stage that fails, what is named, and a part of what the report shows of it
WRONG = {
    "a sign": (
        "contract-delta",
        lambda x, w, k, N: w[k] * x[k] + mean(lambda r: w[r] * x[r], N),
        "value",
        ["term-sign"],
        "its sign is wrong",
    ),
    "a factor taken out of a sum": (
        "contract-delta",
        lambda x, w, k, N: w[k] * (x[k] - mean(lambda r: x[r], N)),
        "value",
        ["pulled-out"],
        "w stands before the sum",
    ),
    "a product of means": (
        "contract-delta",
        lambda x, w, k, N: w[k] * x[k] - mean(lambda r: x[r], N) * mean(lambda r: w[r], N),
        "value",
        ["sum-split"],
        "a product of sums",
    ),
    "no direct path": ("local-and-total", lambda x, j, k, N: (
        KroneckerDelta(j, k) * mean(lambda r: x[r], N), x[j] / N), "total", ["term-missing"], ""),
    "a delta too many": ("local-and-total", lambda x, j, k, N: (
        KroneckerDelta(j, k) * mean(lambda r: x[r], N),
        KroneckerDelta(j, k) * (mean(lambda r: x[r], N) + x[j] / N)), "total", ["delta-extra"],
        "in the term x[j] / N: delta"),
    "the delta crossed out": (
        "cotangent",
        lambda w, dy, j, N: w[j] * Sum(dy[r], (r, 1, N)) - w[j] * mean(lambda r: dy[r], N),
        "dx",
        ["another-formula", "term-missing"],
        "a sum stands where an entry belongs",
    ),
    "a weight left out": (
        "cotangent",
        lambda w, dy, j, N: w[j] * dy[j] - mean(lambda r: dy[r], N),
        "dx",
        ["factor-left-out"],
        "w is missing",
    ),
    "Bessel's factor": (
        "cotangent",
        lambda w, dy, j, N: w[j] * (dy[j] - Sum(dy[r], (r, 1, N)) / (N - 1 + KroneckerDelta(N, 1))),
        "dx",
        ["term-factor"],
        "it is multiplied by N/(N + KroneckerDelta(1, N) - 1)",
    ),
    "the other array centred": ("parameter-sums", lambda x, dy, j, M, N: (
        Sum((dy[i, j] - row(dy, N)) * x[i, j], (i, 1, M)), Sum(dy[i, j], (i, 1, M))), "dw", ["arrays-exchanged"],
        "dy and x have changed places"),
    "one mean for all rows": ("parameter-sums", lambda x, dy, j, M, N: (
        Sum(dy[i, j] * x[i, j], (i, 1, M))
        - Sum(dy[i, j], (i, 1, M)) * Sum(x[i, r], (r, 1, N), (i, 1, M)) / (M * N),
        Sum(dy[i, j], (i, 1, M))), "dw", ["sum-split"], "a product of sums"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_the_wrong_term_is_named(mistake):
    task, answer, stage, keys, shown = WRONG[mistake]
    report = hw.check(task, answer, feedback="solution")
    assert not report[stage].passed, report
    assert named(report) == keys, report
    assert any(shown in diagnosis.difference for diagnosis in report.diagnoses), report
