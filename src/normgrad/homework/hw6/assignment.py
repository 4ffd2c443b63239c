"""Homework 6, the reverse: a test that rejects thirteen wrong backwards and no right one."""

from ..checks.exam import OwnInputs
from ..task import Stage, homework, task
from .checks import accepts_right, rejects

WRONG_ONES = 13


CHECK = task(
    "gradient-test",
    oracle=OwnInputs(("backward",)),
    stages=(
        Stage("right backwards pass", 5, accepts_right),
        *(
            Stage(f"wrong backward {n}", 1, rejects(n), interface=True)
            for n in range(1, WRONG_ONES + 1)
        ),
    ),
)

HOMEWORK = homework("hw6", CHECK)
