"""Takes torch's own derivatives and norms away from a student's code; the grader's calls keep one way to differentiate.

The student's process loads this file by its path, so it imports nothing of normgrad; torch is imported where it is
used. What is taken away is what a student finds by reading torch, not all that an attacker could dig out.
"""

from __future__ import annotations

import contextlib
import sys
import types

BY_HAND = "this homework asks for the derivative by hand: torch's own is switched off here"
NO_FILES = "a graded solution reads and writes no files"
# {module of torch: names in it that differentiate, or that reach what does}
DERIVATIVES = {
    "torch": ("_make_dual",),
    "torch.Tensor": ("backward",),
    "torch.autograd": ("grad", "backward", "_engine_run_backward"),
    "torch.autograd.graph": ("_engine_run_backward",),
    "torch.autograd.variable": ("ImperativeEngine",),
    "torch.autograd.functional": ("vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"),
    "torch.autograd.forward_ad": ("make_dual", "enter_dual_level", "dual_level"),
    "torch.func": ("grad", "grad_and_value", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "hessian"),
    "torch._C": ("_ImperativeEngine",),
}
NORMS = (
    "layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "native_layer_norm",
    "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward", "native_batch_norm",
    "native_batch_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward",
)  # fmt: skip
HAVE_NORMS = ("torch", "torch.nn.functional", "torch._C._VariableFunctions", "torch._VF")
# What opens files in C++, where no audit event tells of it.
FILES = {"torch": ("from_file",), "torch._C": ("PyTorchFileReader", "PyTorchFileWriter")}


def private(function, **names):
    """A function with module variables of its own: what is taken away from its module is still there for it."""
    if not isinstance(function, types.FunctionType):
        return function
    space = {**function.__globals__, **names}
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    space[function.__name__] = made
    return made


def differentiate():
    """torch.autograd.grad, which will work on when the names that it uses are taken away."""
    import torch

    kept = types.SimpleNamespace(_execution_engine=torch.autograd.Variable._execution_engine)
    run = private(torch.autograd.graph._engine_run_backward, Variable=kept)
    return private(torch.autograd.grad, _engine_run_backward=run)


def _refusing(words):
    def refused(*args, **options):
        raise RuntimeError(words)

    return refused


def _place(path):
    """A module or a class by its path from torch, None where this torch has none."""
    if path in sys.modules:  # first: torch.autograd.variable is a function as well
        return sys.modules[path]
    before, _, name = path.rpartition(".")
    return getattr(_place(before), name, None) if before else None


def hide(calls) -> None:
    """Hides all of it, after the grader's calls were given what they need."""
    import torch

    calls._AUTOGRAD["grad"] = differentiate()
    torch.autograd.Variable._execution_engine = None
    by_hand, no_files = _refusing(BY_HAND), _refusing(NO_FILES)
    found = [(path, name, by_hand) for path, names in DERIVATIVES.items() for name in names]
    found += [(path, name, by_hand) for path in HAVE_NORMS for name in NORMS]
    found += [(path, name, no_files) for path, names in FILES.items() for name in names]
    for path, name, instead in found:
        place = _place(path)
        if hasattr(place, name):
            with contextlib.suppress(AttributeError, TypeError):  # a type of C may not be changed
                setattr(place, name, instead)
    for name in NORMS:
        _silence(getattr(torch.ops.aten, name, None), by_hand)


def _silence(operator, instead):
    """An operator of aten that raises when it is called; torch itself still looks its overloads up by name."""
    if operator is not None:
        for each in (operator, *(getattr(operator, name) for name in operator.overloads())):
            each._op = instead
