"""Homework 1: index notation and layouts, answered in SymPy."""

from ..task import Homework, Task
from .checks import LetterOracle, stages

DELTA = Task(
    name="contract-delta",
    homework="hw1",
    library="sympy",
    title="a sum with a delta in it, without the delta",
    entry="contract_delta",
    signature="contract_delta(x, w, k, N) -> expression",
    equations=("index-delta", "index-count"),
    oracle=LetterOracle(("x", "w", "k", "N"), "contract-delta"),
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
    oracle=LetterOracle(("x", "j", "k", "N"), "local-and-total"),
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
    oracle=LetterOracle(("w", "a", "b", "N"), "jacobian-layouts"),
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
    oracle=LetterOracle(("w", "dy", "j", "N"), "cotangent"),
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
    oracle=LetterOracle(("x", "dy", "j", "M", "N"), "parameter-sums"),
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
