"""Homework 4: residual add and LayerNorm in one Triton kernel, forward and backward, in the interpreter."""

from ...spec import LAYER_NORM
from ..checks.values import degenerate, gradcheck, inputs_untouched, signature
from ..task import Stage, homework, task
from .checks import StreamOracle, launches, narrow, rows, sizes

AFFINE = ("weight", "bias")
# The interpreter is slow: stages that draw the same inputs share what the launchers return for them.
USUAL, SIZED = "usual rows", "sizes"


def oracle(arguments, results):
    """That of a launcher."""
    return StreamOracle(LAYER_NORM, AFFINE, arguments, results)


FORWARD = task(
    "addnorm-forward",
    oracle(
        ("x", "residual", "weight", "bias", "eps"),
        ("y", "residual_out", "mean", "rstd"),
    ),
    (
        Stage("signature and shapes", 1, signature, interface=True, inputs=USUAL),
        Stage("inputs left alone", 1, inputs_untouched, interface=True, inputs=USUAL),
        Stage("residual_out", 1, rows("residual_out"), inputs=USUAL),
        Stage("mean, rstd", 1, rows("mean", "rstd"), inputs=USUAL),
        Stage("y", 4, rows("y"), inputs=USUAL),
        Stage("sizes and strides", 2, sizes, follows=True, inputs=SIZED),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("kernels", 2, launches(1), interface=True, inputs=SIZED),
        Stage("float32 and float16", 1, narrow, follows=True),
    ),
)

BACKWARD = task(
    "addnorm-backward",
    oracle(
        ("dy", "dresidual_out", "residual_out", "weight", "mean", "rstd"),
        ("dx", "dresidual", "dw", "db"),
    ),
    (
        Stage("signature and shapes", 1, signature, interface=True, inputs=USUAL),
        Stage("inputs left alone", 1, inputs_untouched, interface=True, inputs=USUAL),
        Stage("db, dw", 3, rows("db", "dw"), inputs=USUAL, derived=True),
        Stage("dx, row by row", 4, rows("dx"), inputs=USUAL, derived=True),
        Stage("dresidual", 1, rows("dresidual"), inputs=USUAL),
        Stage("sizes and strides", 1, sizes, follows=True, inputs=SIZED),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("gradcheck", 1, gradcheck, follows=True, inputs=USUAL),
        Stage("kernels", 2, launches(3), interface=True, inputs=SIZED),
        Stage("float32 and float16", 1, narrow, follows=True),
    ),
)

HOMEWORK = homework("hw4", FORWARD, BACKWARD)
