"""Homework 7: a project, a norm of the student's own with the checks that fit any operator."""

from ..checks.exam import OwnInputs
from ..task import Stage, homework, task
from .checks import (
    declared,
    described,
    first_gradient,
    float32,
    gives_gradients,
    leaves_inputs,
    linear,
    other_gradients,
    second_derivatives,
)

PROJECT = task(
    "norm-project",
    oracle=OwnInputs(),
    stages=(
        Stage("description", 1, described, interface=True),
        Stage("shapes and dtypes", 1, gives_gradients, interface=True),
        Stage("inputs left alone", 1, leaves_inputs, interface=True),
        Stage("gradient of the first input", 6, first_gradient, derived=True),
        Stage("gradients of the others", 3, other_gradients, derived=True),
        Stage("linear in dy", 1, linear, interface=True, follows=True),
        Stage("second derivatives", 2, second_derivatives, interface=True, follows=True),
        Stage("degenerate inputs", 2, declared, interface=True),
        Stage("float32", 3, float32, interface=True),
    ),
)  # fmt: skip

HOMEWORK = homework("hw7", PROJECT)
