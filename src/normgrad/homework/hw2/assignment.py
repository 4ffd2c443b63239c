"""Homework 2: RMSNorm forward and backward in NumPy."""

from ...spec import RMS_NORM
from ..checks.norms import NormOracle
from ..checks.values import (
    INTERFACE,
    degenerate,
    from_arguments,
    gradcheck,
    low_precision,
    quietly_degenerate,
    signature,
    value,
)
from ..reading.tasks import RMS, Reads
from ..task import Stage, homework, task

SPEC = RMS_NORM.replace(eps=1e-5)


FORWARD = task(
    "rmsnorm-forward",
    oracle=NormOracle(SPEC, ("weight",), ("x", "weight", "eps"), ("y", "rstd")),
    stages=(
        *INTERFACE,
        Stage("rstd", 1, value("rstd")),
        Stage("y", 3, value("y")),
        Stage("degenerate rows", 1, quietly_degenerate, follows=True),
        Stage("float32", 1, low_precision, follows=True),
    ),
    reads=Reads(("y", "rstd"), RMS),
)

BACKWARD = task(
    "rmsnorm-backward",
    oracle=NormOracle(SPEC, ("weight",), ("dy", "x", "weight", "rstd"), ("dx", "dw")),
    stages=(
        Stage("signature and shapes", 1, signature, interface=True),
        Stage(
            "inputs left alone",
            1,
            from_arguments("rmsnorm_forward", SPEC.eps),
            interface=True,
        ),
        Stage("dw", 2, value("dw"), derived=True),
        Stage("dx, row by row", 5, value("dx"), derived=True),
        Stage("degenerate rows", 1, degenerate, follows=True),
        Stage("gradcheck", 1, gradcheck, follows=True),
        Stage("float32", 1, low_precision, follows=True),
    ),
    reads=Reads(("dx", "dw"), RMS),
)

HOMEWORK = homework("hw2", FORWARD, BACKWARD)
