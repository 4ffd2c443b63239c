"""Homework 7: a project, a norm of the student's own with the checks that fit any operator."""

from ..checks.exam import OwnInputs
from ..task import Homework, Stage, Task
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

PROJECT = Task(
    name="norm-project",
    homework="hw7",
    title="an operator of your own: forward, backward, inputs",
    entry="Operator",
    signature="class Operator with inputs(rng), degenerate(rng), forward(*inputs) -> y, backward(dy, *inputs) -> grads",
    equations=("index-loss", "index-gradient", "diff-fan-out"),
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
    library="numpy",
    forbidden=("layer_norm", "group_norm", "rms_norm", "batch_norm", "instance_norm", "native_group_norm",
               "native_layer_norm", "vjp", "jacrev", "jacfwd", "backward_hook"),
)  # fmt: skip

HOMEWORK = Homework(
    name="hw7",
    title="A project: a norm of your own",
    time="6 to 10 hours",
    chapters=("notation", "differentials", "testing_gradients", "layer_norm"),
    software="NumPy or torch",
    libraries=("numpy", "torch"),
    tasks=(PROJECT,),
)
