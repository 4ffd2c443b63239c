"""Homework 3: LayerNorm's gradients in NumPy, then LayerNorm as an autograd Function, differentiable twice."""

from ...spec import LAYER_NORM
from ..checks.norms import NormOracle
from ..checks.values import (
    INTERFACE,
    degenerate,
    gradcheck,
    low_precision,
    value,
)
from ..reading.tasks import LN, Reads
from ..task import Stage, homework, task
from .checks import FunctionOracle, gradgradcheck, structure

AFFINE = ("weight", "bias")


BACKWARD = task(
    "layernorm-backward",
    oracle=NormOracle(
        LAYER_NORM, AFFINE, ("dy", "x", "weight", "mean", "rstd"), ("dx", "dw", "db")
    ),
    stages=(
        *INTERFACE,
        Stage("db", 1, value("db")),
        Stage("dw", 1, value("dw"), derived=True),
        Stage("dx, row by row", 3, value("dx"), derived=True),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("gradcheck", 1, gradcheck, follows=True),
        Stage("float32", 1, low_precision, follows=True),
    ),
    reads=Reads(("dx", "dw", "db"), LN, {"center": True, "bias": True}),
)

FUNCTION = task(
    "layernorm-function",
    oracle=FunctionOracle(
        LAYER_NORM, AFFINE, ("x", "weight", "bias", "eps"), ("y", "dx", "dw", "db")
    ),
    stages=(
        *INTERFACE,
        Stage("forward", 2, value("y")),
        Stage("db, dw", 2, value("db", "dw"), derived=True),
        Stage("dx, row by row", 3, value("dx"), derived=True),
        Stage("degenerate rows", 2, degenerate, follows=True),
        Stage("gradcheck", 2, gradcheck, follows=True),
        Stage("gradgradcheck", 3, gradgradcheck, follows=True),
        Stage("structure", 2, structure, interface=True),
        Stage("float32 and bfloat16", 2, low_precision, follows=True),
    ),
    reads=Reads(("y",), LN, {"center": True, "bias": True}, "torch"),
)

HOMEWORK = homework("hw3", BACKWARD, FUNCTION)
