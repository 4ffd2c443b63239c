"""Homework 6, the reverse: a test that rejects thirteen wrong backwards and no right one."""

from ..checks.exam import OwnInputs
from ..task import Homework, Stage, Task
from .checks import accepts_right, rejects

WRONG_ONES = 13


CHECK = Task(
    name="gradient-test",
    homework="hw6",
    title="a test of LayerNorm's backward",
    entry="check_backward",
    signature="check_backward(backward) -> None, or raises AssertionError",
    equations=("ln-forward", "ln-dx", "ln-dw", "ln-db", "ln-names"),
    oracle=OwnInputs(("backward",)),
    stages=(
        Stage("right backwards pass", 5, accepts_right),
        *(
            Stage(f"wrong backward {n}", 1, rejects(n), interface=True)
            for n in range(1, WRONG_ONES + 1)
        ),
    ),
)

HOMEWORK = Homework(
    name="hw6",
    title="The reverse: a test that rejects thirteen wrong backwards",
    time="2 to 3 hours",
    chapters=("layer_norm", "testing_gradients", "bugs"),
    software="NumPy",
    libraries=("numpy",),
    tasks=(CHECK,),
)
