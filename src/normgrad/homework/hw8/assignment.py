"""Homework 8: the student's layer trains a small model; the bytes of its kernels are counted, gradients go by depth."""

from ...spec import LAYER_NORM
from ..checks.exam import OwnInputs
from ..checks.values import (
    degenerate,
    inputs_untouched,
    low_precision,
    signature,
)
from ..hw3.assignment import AFFINE
from ..hw3.checks import structure
from ..hw4.checks import rows
from ..reading.kernels import LABELS, NORM
from ..reading.tasks import Reads
from ..task import Stage, homework, task
from .checks import LayerOracle, by_depth, bytes_within, returns_norms, trains

# The interpreter is slow: stages that draw the same inputs share what the layer returns for them.
USUAL, COUNTED = "usual rows", "bytes"

LAYER = task(
    "addnorm-layer",
    oracle=LayerOracle(LAYER_NORM, AFFINE, ("x", "residual", "weight", "bias", "eps"),
                       ("y", "residual_out", "dx", "dresidual", "dw", "db")),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True, inputs=USUAL),
        Stage("inputs left alone", 1, inputs_untouched, interface=True, inputs=USUAL),
        Stage("residual_out, y", 3, rows("residual_out", "y"), inputs=USUAL),
        Stage("db, dw", 2, rows("db", "dw"), inputs=USUAL, derived=True),
        Stage("dx, row by row", 3, rows("dx"), inputs=USUAL, derived=True),
        Stage("dresidual", 1, rows("dresidual"), inputs=USUAL),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("float32", 1, low_precision, follows=True),
        Stage("structure", 2, structure, interface=True),
        Stage("training", 4, trains, follows=True),
        Stage("bytes within 50 % of the floor", 2, bytes_within(1.5), interface=True, inputs=COUNTED),
        Stage("bytes within 5 % of the floor", 2, bytes_within(1.05), interface=True, inputs=COUNTED),
    ),
    reads=Reads(("y", "residual_out"), LABELS, NORM, "torch"),
)  # fmt: skip

NORMS = task(
    "gradient-norms",
    oracle=OwnInputs(("dy", "norms", "branches")),
    stages=(
        Stage("signature and shapes", 1, returns_norms, interface=True),
        Stage("norms by depth", 5, by_depth((5, 2))),
        Stage("one norm, no branch", 1, by_depth((0,)), follows=True),
    ),
)

HOMEWORK = homework("hw8", LAYER, NORMS)
