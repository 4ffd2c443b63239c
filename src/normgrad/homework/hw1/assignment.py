"""Homework 1: index notation and layouts, answered in SymPy."""

from ..task import Homework, Task
from .checks import Confusion, at, delta, oracle, stages


def _centred(x):
    return x - x.mean(1, keepdims=True)


def _jacobian(letter):
    return lambda A, p: (delta(p, "a", "b") - 1 / p["N"]) * at(A["w"], p, letter)


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
        {"value": "w[k]*x[k] - Sum(w[r]*x[r], (r, 1, N))/N"},
        Confusion(
            "delta-is-one", {"value": "Sum(w[r]*x[r], (r, 1, N)) - Sum(w[r]*x[r], (r, 1, N))/N"},
            equation="index-delta", hint="A delta in a sum picks one term. Write out the sum for N = 3 and k = 2.",
        ),
        Confusion(
            "delta-half-contracted", {"value": "x[k]*Sum(w[r], (r, 1, N)) - Sum(w[r]*x[r], (r, 1, N))/N"},
        ),
        Confusion(
            "delta-on-every-term", {"value": "w[k]*x[k] - w[k]*x[k]/N"},
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
        {"local": lambda A, p: delta(p, "j", "k") * A["x"].mean(),
         "total": lambda A, p: delta(p, "j", "k") * A["x"].mean() + at(A["x"], p, "j") / p["N"]},
        {"local": "KroneckerDelta(j, k)*Sum(x[r], (r, 1, N))/N",
         "total": "KroneckerDelta(j, k)*Sum(x[r], (r, 1, N))/N + x[j]/N"},
        Confusion(
            "local-for-total", {"total": "KroneckerDelta(j, k)*Sum(x[r], (r, 1, N))/N"},
            equation="index-total", hint="Two paths lead from x_k to y_j. Which one is missing?",
        ),
        Confusion(
            "total-for-local", {"local": "KroneckerDelta(j, k)*Sum(x[r], (r, 1, N))/N + x[j]/N"},
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
        {"numerator": "w[b]*(KroneckerDelta(a, b) - 1/N)", "denominator": "w[a]*(KroneckerDelta(a, b) - 1/N)"},
        Confusion(
            "transposed-layout",
            {"numerator": "w[a]*(KroneckerDelta(a, b) - 1/N)", "denominator": "w[b]*(KroneckerDelta(a, b) - 1/N)"},
            equation="index-jacobian-transposed",
            hint="In numerator layout the rows are outputs. Is the letter of the weight that of an input or an output?",
        ),
        *(Confusion("letters-merged", {result: f"w[{letter}]*(1 - 1/N)"})
          for letter in "ab" for result in ("numerator", "denominator")),
        Confusion(
            "fraction-for-layouts", {"numerator": "w[b]*(N*KroneckerDelta(a, b) - 1)", "denominator": "N"},
            equation="index-jacobian-transposed",
        ),
        Confusion("reciprocal-for-layout", {"denominator": "1/(w[b]*(KroneckerDelta(a, b) - 1/N))"}),
        *(Confusion(
            "local-for-total", {result: f"KroneckerDelta(a, b)*w[{letter}]"},
            equation="index-total", hint="The mean of w x depends on every entry.",
        ) for result, letter in (("numerator", "b"), ("denominator", "a"))),
        *(Confusion("weight-on-one-path", {result: f"KroneckerDelta(a, b)*w[{letter}] - 1/N"})
          for result, letter in (("numerator", "b"), ("denominator", "a"))),
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
        {"dx": "w[j]*dy[j] - w[j]*Sum(dy[r], (r, 1, N))/N"},
        Confusion(
            "transposed-layout", {"dx": "w[j]*dy[j] - Sum(w[r]*dy[r], (r, 1, N))/N"},
            equation="index-vjp",
            hint="The sum of a vector-Jacobian product runs over the output. Which letter has the weight of an input?",
        ),
        Confusion("dy-outside-the-sum", {"dx": "dy[j]*(w[j] - Sum(w[r], (r, 1, N))/N)"}),
        Confusion("weight-in-and-out", {"dx": "w[j]*dy[j] - w[j]*Sum(w[r]*dy[r], (r, 1, N))/N"}),
        Confusion(
            "local-for-total", {"dx": "w[j]*dy[j]"},
            equation="index-total", hint="x_j moves the mean, and the mean moves every y_k.",
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
        {"dw": lambda A, p: at((A["dy"] * _centred(A["x"])).sum(0), p, "j"),
         "db": lambda A, p: at(A["dy"].sum(0), p, "j")},
        {"dw": "Sum(dy[i, j]*(x[i, j] - Sum(x[i, r], (r, 1, N))/N), (i, 1, M))",
         "db": "Sum(dy[i, j], (i, 1, M))"},
        Confusion(
            "mean-of-the-column", {"dw": "Sum(dy[i, j]*(x[i, j] - Sum(x[r, j], (r, 1, M))/M), (i, 1, M))"},
        ),
        Confusion("not-centred", {"dw": "Sum(dy[i, j]*x[i, j], (i, 1, M))"}),
        Confusion(
            "divided-by-spread",
            {"dw": "Sum(dy[i, j]*(x[i, j] - Sum(x[i, r], (r, 1, N))/N)"
                   "/sqrt(Sum((x[i, s] - Sum(x[i, r], (r, 1, N))/N)**2, (s, 1, N))/N), (i, 1, M))"},
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
