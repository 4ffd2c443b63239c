"""Homework 5: a variance that survives an offset of 1e4, in float32."""

from ..checks.values import inputs_untouched, signature
from ..task import Homework, Stage, Task
from .checks import (
    MergeOracle,
    RowsOracle,
    any_order,
    empty_blocks,
    flat,
    in_float32,
    lengths,
    merged_at,
    merged_in_float32,
    others,
    stored_in_float16,
    variance_at,
)

STATISTICS = ("fp-statistics", "fp-one-pass", "fp-shifted", "fp-correction", "fp-wrong-mean")
FORBIDDEN = (
    "float64", "double", "longdouble", "float128", "complex128", "float", "fsum", "item", "tolist", "Decimal",
    "Fraction",
)  # fmt: skip

ROWS = Task(
    name="stable-normalize",
    homework="hw5",
    title="mean, variance and normalized rows, far from 0",
    entry="stable_normalize",
    signature="stable_normalize(x, eps) -> (x_hat, mean, var, rstd)",
    shapes=(
        ("x", "(M, N) the rows, float32 or float16, with means up to 1e4"),
        ("eps", "a number, under the root"),
        ("x_hat", "(M, N) the normalized rows, in the dtype of x"),
        ("mean", "(M,) float32"),
        ("var", "(M,) float32, the mean of the squared deviations"),
        ("rstd", "(M,) float32, 1 / sqrt(var + eps)"),
    ),
    equations=STATISTICS,
    oracle=RowsOracle(),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True),
        Stage("inputs left alone", 1, inputs_untouched, interface=True),
        Stage("variance, mean near 0", 1, variance_at(0.0)),
        Stage("variance, mean near 100", 1, variance_at(1e2)),
        Stage("variance, mean near 10000", 3, variance_at(1e4)),
        Stage("mean, rstd, x_hat", 2, others),
        Stage("rows of 1 to 4096", 1, lengths, follows=True),
        Stage("degenerate rows", 1, flat, interface=True),  # numbers that never change may pass it
        Stage("float32 throughout", 3, in_float32, interface=True),
        Stage("stored in float16", 2, stored_in_float16, follows=True),
    ),
    forbidden=FORBIDDEN,
)

MERGE = Task(
    name="merge-blocks",
    homework="hw5",
    title="the statistics of two blocks together",
    entry="merge_blocks",
    signature="merge_blocks(n1, mean1, squares1, n2, mean2, squares2) -> (n, mean, squares)",
    shapes=(
        ("n1, n2", "(M,) float32, how many numbers each block has; 0 is allowed"),
        ("mean1, mean2", "(M,) their means; 0 for an empty block"),
        ("squares1, squares2", "(M,) their sums of squared deviations"),
        ("n", "(M,) how many numbers both have"),
        ("mean", "(M,) the mean of both"),
        ("squares", "(M,) the sum of squared deviations of both, from their common mean"),
    ),
    equations=("fp-blocks", "fp-merge", "fp-welford"),
    oracle=MergeOracle(),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True),
        Stage("inputs left alone", 1, inputs_untouched, interface=True),
        Stage("count and mean", 2, merged_at("n", "mean")),
        Stage("squares", 3, merged_at("squares")),
        Stage("empty blocks", 1, empty_blocks, follows=True),
        Stage("many blocks", 1, any_order, follows=True),
        Stage("float32 throughout", 1, merged_in_float32, interface=True),
    ),
    forbidden=FORBIDDEN,
)

HOMEWORK = Homework(
    name="hw5",
    title="A variance that survives an offset of 10000",
    time="2 to 3 hours",
    chapters=("floating_point", "floating_point_variance"),
    software="NumPy",
    libraries=("numpy",),
    tasks=(ROWS, MERGE),
)
