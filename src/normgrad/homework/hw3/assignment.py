"""Homework 3: LayerNorm's gradients in NumPy, then LayerNorm as an autograd Function, differentiable twice."""

from ...spec import LAYER_NORM
from ..checks.norms import NormOracle
from ..checks.values import (
    degenerate,
    gradcheck,
    inputs_untouched,
    low_precision,
    signature,
    value,
)
from ..reading.tasks import LN, Reads
from ..task import Homework, Stage, Task
from .checks import FunctionOracle, gradgradcheck, structure

AFFINE = ("weight", "bias")
GRADIENTS = ("ln-forward", "ln-dx", "ln-dw", "ln-db", "ln-names", "ln-proj-jacobian")
TWICE = ("twice-dx", "twice-dy", "twice-dw", "twice-parameters-grad")
# Functions that do the work; the process of a graded solution switches them off as well.
FORBIDDEN = (
    "layer_norm",
    "native_layer_norm",
    "native_layer_norm_backward",
    "vjp",
    "jacrev",
    "jacfwd",
)


BACKWARD = Task(
    name="layernorm-backward",
    homework="hw3",
    title="the gradients of LayerNorm in NumPy",
    entry="layernorm_backward",
    equations=GRADIENTS,
    oracle=NormOracle(
        LAYER_NORM, AFFINE, ("dy", "x", "weight", "mean", "rstd"), ("dx", "dw", "db")
    ),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True),
        Stage("inputs left alone", 1, inputs_untouched, interface=True),
        Stage("db", 1, value("db")),
        Stage("dw", 1, value("dw"), derived=True),
        Stage("dx, row by row", 3, value("dx"), derived=True),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("gradcheck", 1, gradcheck, follows=True),
        Stage("float32", 1, low_precision, follows=True),
    ),
    forbidden=FORBIDDEN,
    reads=Reads(("dx", "dw", "db"), LN, {"center": True, "bias": True}),
)

FUNCTION = Task(
    name="layernorm-function",
    homework="hw3",
    title="LayerNorm as a torch.autograd.Function, differentiable twice",
    entry="LayerNorm",
    signature="LayerNorm.apply(x, weight, bias, eps) -> y",
    equations=(*GRADIENTS, *TWICE),
    oracle=FunctionOracle(
        LAYER_NORM, AFFINE, ("x", "weight", "bias", "eps"), ("y", "dx", "dw", "db")
    ),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True),
        Stage("inputs left alone", 1, inputs_untouched, interface=True),
        Stage("forward", 2, value("y")),
        Stage("db, dw", 2, value("db", "dw"), derived=True),
        Stage("dx, row by row", 3, value("dx"), derived=True),
        Stage("degenerate rows", 2, degenerate, follows=True),
        Stage("gradcheck", 2, gradcheck, follows=True),
        Stage("gradgradcheck", 3, gradgradcheck, follows=True),
        Stage("structure", 2, structure, interface=True),
        Stage("float32 and bfloat16", 2, low_precision, follows=True),
    ),
    library="torch",
    forbidden=FORBIDDEN,
    reads=Reads(("y",), LN, {"center": True, "bias": True}, "torch"),
)

HOMEWORK = Homework(
    name="hw3",
    title="LayerNorm as an autograd Function, double backward included",
    time="4 to 6 hours",
    chapters=("layer_norm", "testing_gradients", "higher_derivatives"),
    software="NumPy and torch",
    libraries=("numpy", "torch"),
    tasks=(BACKWARD, FUNCTION),
)
