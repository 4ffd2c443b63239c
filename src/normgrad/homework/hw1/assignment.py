"""Homework 1: index notation and layouts, answered in SymPy."""

from ..task import homework, task
from .checks import ExpressionOracle, stages

DELTA = task(
    "contract-delta",
    oracle=ExpressionOracle(("x", "w", "k", "N"), "contract-delta"),
    stages=stages(("value", 2)),
)  # fmt: skip

LOCAL = task(
    "local-and-total",
    oracle=ExpressionOracle(("x", "j", "k", "N"), "local-and-total"),
    stages=stages(("local", 1), ("total", 2), form=False),
)  # fmt: skip

LAYOUTS = task(
    "jacobian-layouts",
    oracle=ExpressionOracle(("w", "a", "b", "N"), "jacobian-layouts"),
    stages=stages(("numerator", 2), ("denominator", 1), form=False),
)  # fmt: skip

VJP = task(
    "cotangent",
    oracle=ExpressionOracle(("w", "dy", "j", "N"), "cotangent"),
    stages=stages(("dx", 3)),
)  # fmt: skip

SUMS = task(
    "parameter-sums",
    oracle=ExpressionOracle(("x", "dy", "j", "M", "N"), "parameter-sums"),
    stages=stages(("dw", 2), ("db", 1), form=False),
)  # fmt: skip

HOMEWORK = homework("hw1", DELTA, LOCAL, LAYOUTS, VJP, SUMS)
