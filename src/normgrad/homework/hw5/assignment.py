"""Homework 5: a variance that survives an offset of 1e4, in float32."""

from ..checks.values import INTERFACE
from ..reading.tasks import Reads
from ..task import Stage, homework, task
from .checks import (
    MergeOracle,
    RowsOracle,
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

ROWS = task(
    "stable-normalize",
    oracle=RowsOracle(),
    stages=(
        *INTERFACE,
        Stage("variance, mean near 0", 1, variance_at(0.0)),
        Stage("variance, mean near 100", 1, variance_at(1e2)),
        Stage("variance, mean near 10000", 3, variance_at(1e4)),
        Stage("mean, rstd, x_hat", 2, others),
        Stage("rows of 1 to 4096", 1, lengths, follows=True),
        Stage(
            "degenerate rows", 1, flat, interface=True
        ),  # numbers that never change may pass it
        Stage("float32 throughout", 3, in_float32, interface=True),
        Stage("stored in float16", 2, stored_in_float16, follows=True),
    ),
    reads=Reads(
        RowsOracle.results,
        dict.fromkeys(("mean", "var", "rstd", "x_hat"), "fp-statistics"),
        inputs={"x": "x", "eps": "eps"},
        right="hw5",
    ),
)

MERGE = task(
    "merge-blocks",
    oracle=MergeOracle(),
    stages=(
        *INTERFACE,
        Stage("count and mean", 2, merged_at("n", "mean")),
        Stage("squares", 4, merged_at("squares")),
        Stage("empty blocks", 1, empty_blocks, follows=True),
        Stage("float32 throughout", 1, merged_in_float32, interface=True),
    ),
    reads=Reads(
        MergeOracle.results,
        dict.fromkeys(MergeOracle.results, "fp-merge"),
        inputs=dict.fromkeys(MergeOracle.arguments, "(M,)"),
        right="hw5",
    ),
)

HOMEWORK = homework("hw5", ROWS, MERGE)
