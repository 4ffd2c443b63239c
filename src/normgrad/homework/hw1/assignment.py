"""Homework 1: index notation and layouts, answered in SymPy."""

import numpy as np

from ..task import Homework, Task
from .checks import Confusion, at, delta, oracle, stages


def _local(A, p):
    return delta(p, "j", "k") * A["x"].mean()


def _total(A, p):
    return _local(A, p) + at(A["x"], p, "j") / p["N"]


def _jacobian(letter):
    return lambda A, p: (delta(p, "a", "b") - 1 / p["N"]) * at(A["w"], p, letter)


def _on_the_diagonal(letter):
    return lambda A, p: (1 - 1 / p["N"]) * at(A["w"], p, letter)


def _quotient(found):
    """The fraction of both results, in the place of each."""
    with np.errstate(all="ignore"):
        return dict.fromkeys(found, np.divide(*found.values()))


def _reciprocal(A, p):
    found = _jacobian("b")(A, p)
    return 1 / found if found else np.nan


def _centred(A, p, axis=1):
    return A["x"] - A["x"].mean(axis, keepdims=True)


DELTA = Task(
    name="contract-delta",
    homework="hw1",
    library="sympy",
    title="a sum with a delta in it, without the delta",
    entry="contract_delta",
    signature="contract_delta(x, w, k, N) -> expression",
    equations=("index-delta", "index-count"),
    oracle=oracle(
        ("x", "w", "k", "N"),
        {"value": lambda A, p: at(A["w"] * A["x"], p, "k") - (A["w"] * A["x"]).mean()},
        {"value": "Sum(w[r]*KroneckerDelta(k, r)*x[r], (r, 1, N)) - Sum(w[r]*x[r], (r, 1, N))/N, contracted"},
        Confusion(
            "delta-is-one", "Sum(w[r]*x[r], (r, 1, N)) - Sum(w[r]*x[r], (r, 1, N))/N",
            {"value": lambda A, p: (A["w"] * A["x"]).sum() * (1 - 1 / p["N"])},
            equation="index-delta", hint="A delta in a sum picks one term. Write out the sum for N = 3 and k = 2.",
        ),
        Confusion(
            "delta-half-contracted", "x[k]*Sum(w[r], (r, 1, N)) - ...",
            {"value": lambda A, p: at(A["x"], p, "k") * A["w"].sum() - (A["w"] * A["x"]).mean()},
        ),
        Confusion(
            "delta-on-every-term", "w[k]*x[k] - w[k]*x[k]/N",
            {"value": lambda A, p: at(A["w"] * A["x"], p, "k") * (1 - 1 / p["N"])},
        ),
    ),
    stages=stages(("value", 2)),
)  # fmt: skip

LOCAL = Task(
    name="local-and-total",
    homework="hw1",
    library="sympy",
    title="two derivatives of y_j = x_j mean",
    entry="local_and_total",
    signature="local_and_total(x, j, k, N) -> (local, total)",
    equations=("index-local", "index-total", "index-partial-mean"),
    oracle=oracle(
        ("x", "j", "k", "N"),
        {"local": _local, "total": _total},
        {"local": "the derivative of x_j by x_k, times the mean",
         "total": "the local derivative + (dy_j by the mean) * (the mean by x_k)"},
        Confusion(
            "local-for-total", "the local derivative", {"total": _local},
            equation="index-total", hint="Two paths lead from x_k to y_j. Which one is missing?",
        ),
        Confusion(
            "total-for-local", "the total derivative", {"local": _total},
        ),
    ),
    stages=stages(("local", 1), ("total", 2), form=False),
)  # fmt: skip

LAYOUTS = Task(
    name="jacobian-layouts",
    homework="hw1",
    library="sympy",
    title="the Jacobian of y_k = w_k x_k - mean(w x) in both layouts",
    entry="jacobian_layouts",
    signature="jacobian_layouts(w, a, b, N) -> (numerator, denominator)",
    equations=("index-jacobian", "index-jacobian-transposed"),
    oracle=oracle(
        ("w", "a", "b", "N"),
        {"numerator": _jacobian("b"), "denominator": _jacobian("a")},
        {"numerator": "the derivative of y_a by x_b", "denominator": "the derivative of y_b by x_a"},
        Confusion(
            "transposed-layout", "w with the other letter",
            {"numerator": _jacobian("a"), "denominator": _jacobian("b")},
            together=True,
            equation="index-jacobian-transposed",
            hint="In numerator layout the rows are outputs. Is the letter of the weight that of an input or an output?",
        ),
        *(Confusion(
            "letters-merged", f"w[{letter}]*(1 - 1/N)",
            {"numerator": _jacobian("b"), "denominator": _jacobian("a"), merged: _on_the_diagonal(letter)},
            together=True,
        ) for letter in "ab" for merged in ("numerator", "denominator")),
        Confusion(
            "fraction-for-layouts", "(above the line, below it)",
            {"numerator": _jacobian("b"), "denominator": _jacobian("b")},
            together=True, made=_quotient, equation="index-jacobian-transposed",
        ),
        Confusion(
            "reciprocal-for-layout", "1 / numerator", {"denominator": _reciprocal},
        ),
        Confusion(
            "local-for-total", "KroneckerDelta(a, b)*w[b]",
            {name: lambda A, p: delta(p, "a", "b") * at(A["w"], p, "b") for name in ("numerator", "denominator")},
            equation="index-total", hint="The mean of w x depends on every entry.",
        ),
        Confusion(
            "weight-on-one-path", "KroneckerDelta(a, b)*w[b] - 1/N",
            {name: lambda A, p: delta(p, "a", "b") * at(A["w"], p, "b") - 1 / p["N"]
             for name in ("numerator", "denominator")},
        ),
    ),
    stages=stages(("numerator", 2), ("denominator", 1), form=False),
)  # fmt: skip

VJP = Task(
    name="cotangent",
    homework="hw1",
    library="sympy",
    title="the cotangent of x for y_k = w_k x_k - mean(w x), without a matrix",
    entry="cotangent",
    signature="cotangent(w, dy, j, N) -> dx_j",
    equations=("index-vjp", "index-gradient", "index-loss"),
    oracle=oracle(
        ("w", "dy", "j", "N"),
        {"dx": lambda A, p: at(A["w"] * (A["dy"] - A["dy"].mean()), p, "j")},
        {"dx": "the sum over k of dy_k times the derivative of y_k by x_j"},
        Confusion(
            "transposed-layout", "w[j]*dy[j] - Sum(w[r]*dy[r], (r, 1, N))/N",
            {"dx": lambda A, p: at(A["w"] * A["dy"], p, "j") - (A["w"] * A["dy"]).mean()},
            equation="index-vjp",
            hint="The sum of a vector-Jacobian product runs over the output. Which letter has the weight of an input?",
        ),
        Confusion(
            "dy-outside-the-sum", "dy[j]*(w[j] - Sum(w[r], (r, 1, N))/N)",
            {"dx": lambda A, p: at(A["dy"] * (A["w"] - A["w"].mean()), p, "j")},
        ),
        Confusion(
            "weight-in-and-out", "w[j]*dy[j] - w[j]*Sum(w[r]*dy[r], (r, 1, N))/N",
            {"dx": lambda A, p: at(A["w"] * (A["dy"] - (A["w"] * A["dy"]).mean()), p, "j")},
        ),
        Confusion(
            "local-for-total", "w[j]*dy[j]", {"dx": lambda A, p: at(A["w"] * A["dy"], p, "j")},
            equation="index-total", hint="x_j moves the mean, and the mean moves every y_k.",
        ),
        Confusion(
            "free-letter-summed", "a sum over j", {"dx": lambda A, p: (A["w"] * (A["dy"] - A["dy"].mean())).sum()},
            equation="index-vjp", hint="dx_j is one number for every j. Sums run over the other index.",
        ),
    ),
    stages=stages(("dx", 3)),
)  # fmt: skip

SUMS = Task(
    name="parameter-sums",
    homework="hw1",
    library="sympy",
    title="dw and db of y_ij = w_j (x_ij - mean_i) + b_j as sums",
    entry="parameter_sums",
    signature="parameter_sums(x, dy, j, M, N) -> (dw_j, db_j)",
    equations=("index-broadcast", "index-loss", "pg-dw", "pg-db"),
    oracle=oracle(
        ("x", "dy", "j", "M", "N"),
        {"dw": lambda A, p: at((A["dy"] * _centred(A, p)).sum(0), p, "j"),
         "db": lambda A, p: at(A["dy"].sum(0), p, "j")},
        {"dw": "the sum over i of dy_ij times the derivative of y_ij by w_j",
         "db": "the sum over i of dy_ij times the derivative of y_ij by b_j"},
        Confusion(
            "free-letter-summed", "a sum over i and j",
            {"dw": lambda A, p: (A["dy"] * _centred(A, p)).sum()},
            equation="pg-dw", hint="dw has one entry a column, so j stays free. Which index of dy is summed?",
        ),
        Confusion(
            "free-letter-summed", "a sum over i and j", {"db": lambda A, p: A["dy"].sum()},
            equation="pg-db", hint="db has one entry a column, so j stays free. Which index of dy is summed?",
        ),
        Confusion(
            "mean-of-the-column", "x[i, j] - Sum(x[r, j], (r, 1, M))/M",
            {"dw": lambda A, p: at((A["dy"] * _centred(A, p, 0)).sum(0), p, "j")},
        ),
        Confusion(
            "not-centred", "Sum(dy[i, j]*x[i, j], (i, 1, M))",
            {"dw": lambda A, p: at((A["dy"] * A["x"]).sum(0), p, "j")},
        ),
        Confusion(
            "divided-by-spread", "dy[i, j]*(x[i, j] - mean_i)/sqrt(variance_i), summed over i",
            {"dw": lambda A, p: at((A["dy"] * _centred(A, p) / A["x"].std(1, keepdims=True)).sum(0), p, "j")},
        ),
    ),
    stages=stages(("dw", 2), ("db", 1), form=False),
)  # fmt: skip

HOMEWORK = Homework(
    name="hw1",
    title="Index notation and layouts",
    time="1 to 2 hours",
    chapters=("notation",),
    software="SymPy",
    libraries=("numpy", "sympy"),
    tasks=(DELTA, LOCAL, LAYOUTS, VJP, SUMS),
)
