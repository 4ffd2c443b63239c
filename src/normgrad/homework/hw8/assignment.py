"""Homework 8: the student's layer trains a small model; the bytes of its kernels are counted, gradients go by depth."""

from ...spec import LAYER_NORM
from ..checks.exam import OwnInputs
from ..checks.values import (
    degenerate,
    inputs_untouched,
    low_precision,
    signature,
)
from ..hw3.assignment import AFFINE, FORBIDDEN
from ..hw3.checks import structure
from ..hw4.checks import rows
from ..reading.kernels import LABELS, NORM
from ..reading.tasks import Reads
from ..task import Homework, Stage, Task
from .checks import LayerOracle, by_depth, bytes_within, returns_norms, trains

# The interpreter is slow: stages that draw the same inputs share what the layer returns for them.
USUAL, COUNTED = "usual rows", "bytes"

LAYER = Task(
    name="addnorm-layer",
    homework="hw8",
    title="residual add and LayerNorm as a layer that trains, on kernels",
    entry="AddNorm",
    signature="AddNorm.apply(x, residual, weight, bias, eps) -> (y, residual_out)",
    equations=("res-forward", "res-dx", "res-dx-layer-norm", "res-names", "ln-dw", "ln-db"),
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
    library="triton",
    forbidden=FORBIDDEN,
    patience=4,  # the interpreter takes a millisecond for what a GPU does in none, and a training has many launches
    # A layer in torch; kernels are read in homework 4.
    reads=Reads(("y", "residual_out"), LABELS, NORM, "torch"),
)  # fmt: skip

NORMS = Task(
    name="gradient-norms",
    homework="hw8",
    title="the size of the gradient at every place of a stack",
    entry="gradient_norms",
    signature="gradient_norms(dy, norms, branches) -> a tensor with a number for each norm",
    equations=("res-fused-backward", "res-identity-path", "diff-fan-out"),
    oracle=OwnInputs(("dy", "norms", "branches")),
    stages=(
        Stage("signature and shapes", 1, returns_norms, interface=True),
        Stage("norms by depth", 5, by_depth((5, 2))),
        Stage("one norm, no branch", 1, by_depth((0,)), follows=True),
    ),
    library="torch",
)

HOMEWORK = Homework(
    name="hw8",
    title="A project: your own layer trains a model",
    time="6 to 8 hours",
    chapters=("residual", "residual_stack", "bytes", "kernels"),
    software="torch and Triton, no GPU",
    libraries=("torch", "triton"),
    tasks=(LAYER, NORMS),
)
