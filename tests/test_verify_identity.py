"""A function is what it is, and not what it is called: objects of this process that have others' names."""

import builtins
import functools
import inspect
from types import FunctionType

import numpy as np
import pytest
from homework_solutions import of_source

from normgrad.verify import Out, T, norm, verify
from normgrad.verify.classes import OF_MODULE
from normgrad.verify.verdict import NOT_READ, PROVED

LAYER = norm(center=True, bias=True)


def db_of_numpy(dy):
    return np.sum(dy, axis=0)


def db_of_python(dy):
    return sum([row for row in dy])


class Mean:
    """A mean that is called sum."""

    __name__ = "sum"

    def __call__(self, a, axis=None):
        return a.mean(axis)


def test_a_function_of_numpy_that_is_another_is_not_read(monkeypatch):
    assert verify(db_of_numpy, LAYER, outputs=("db",)).kind == PROVED

    def sum(a, axis=None):
        return a.mean(axis)

    sum.__module__ = "numpy"
    sum._implementation = np.sum
    others = np.mean, np.nansum, sum, functools.partial(np.sum), np.add, Mean()
    for other in others:
        monkeypatch.setattr(np, "sum", other)
        verdict = verify(db_of_numpy, LAYER, outputs=("db",))
        assert verdict.kind == NOT_READ and "numpy.sum" in verdict.why, other


def test_a_builtin_that_is_another_is_not_read(monkeypatch):
    assert verify(db_of_python, LAYER, outputs=("db",)).kind == PROVED
    for other in (max, lambda values: 0):
        monkeypatch.setattr(builtins, "sum", other)
        verdict = verify(db_of_python, LAYER, outputs=("db",))
        monkeypatch.undo()
        assert verdict.kind == NOT_READ and "sum" in verdict.why, other


def zero(values):
    return 0


OTHER = object()
total = sum


def db_by_another_name(dy):
    return total([row for row in dy])


def db_or_twice(dy):
    return dy.sum(0) if OTHER is None else 2 * dy.sum(0)


def test_another_name_for_a_builtin_is_asked_for_its_object(monkeypatch):
    assert verify(db_by_another_name, LAYER, outputs=("db",)).kind == PROVED
    monkeypatch.setitem(globals(), "total", zero)
    monkeypatch.setattr(builtins, "sum", zero)
    verdict = verify(db_by_another_name, LAYER, outputs=("db",))
    monkeypatch.undo()
    assert verdict.kind == NOT_READ and "Python's own" in verdict.why


def test_an_object_of_a_kind_that_is_not_read_is_no_none():
    verdict = verify(db_or_twice, LAYER, outputs=("db",))
    assert verdict.kind == NOT_READ and "object from outside" in verdict.why


def test_a_function_with_builtins_of_its_own_is_not_read():
    names = {"__builtins__": vars(builtins) | {"sum": max}}
    other = FunctionType(db_of_python.__code__, names)
    verdict = verify(other, LAYER, outputs=("db",))
    assert verdict.kind == NOT_READ and "other builtins" in verdict.why


def test_a_module_s_own_name_shadows_a_builtin(monkeypatch):
    monkeypatch.setitem(globals(), "sum", sorted)
    assert verify(db_of_python, LAYER, outputs=("db",)).kind == NOT_READ


def test_a_module_s_own_name_shadows_a_library(monkeypatch):
    monkeypatch.setitem(globals(), "np", pytest)
    assert verify(db_of_numpy, LAYER, outputs=("db",)).kind == NOT_READ


def test_what_is_written_as_wrapped_is_not_what_runs():
    def twice(dy):
        return 2 * dy.sum(0)

    assert verify(twice, LAYER, outputs=("db",)).kind != PROVED
    twice.__wrapped__ = db_of_numpy
    assert verify(twice, LAYER, outputs=("db",)).kind == NOT_READ


# Of torch.


TORCH = """
import torch
from torch.autograd.function import once_differentiable


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mean = x.mean(1, keepdim=True)
        rstd = ((x - mean).square().mean(1, keepdim=True) + eps).rsqrt()
        x_hat = (x - mean) * rstd
        ctx.save_for_backward(x_hat, weight, rstd)
        return x_hat * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x_hat, weight, rstd = ctx.saved_tensors
        wdy = dy * weight
        c1 = (wdy * x_hat).mean(1, keepdim=True)
        dx = rstd * (wdy - wdy.mean(1, keepdim=True) - x_hat * c1)
        return dx, (dy * x_hat).sum(0), dy.sum(0), None
"""


def layer(**methods):
    """An autograd Function that is right, but for some methods."""
    kind = of_source(TORCH)["LayerNorm"]
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def test_a_class_whose_apply_is_another_is_not_read(torch):
    assert verify(layer(), LAYER).kind == PROVED
    for apply in (classmethod(lambda cls, *args: args[0]), staticmethod(torch.sum)):
        verdict = verify(layer(apply=apply), LAYER)
        assert verdict.kind == NOT_READ and "apply" in verdict.why


def test_a_class_whose_apply_its_metaclass_changes_is_not_read(torch):
    class Meta(type(torch.autograd.Function)):
        def __getattribute__(cls, name):
            if name == "apply":
                return lambda *args: args[0]
            return super().__getattribute__(name)

    verdict = verify(Meta("LayerNorm", (layer(),), {}), LAYER)
    assert verdict.kind == NOT_READ and "the metaclass of LayerNorm" in verdict.why


def test_the_apply_of_all_functions_is_torch_s_own(torch, monkeypatch):
    kind, apply = layer(), classmethod(lambda cls, *args: args[0])
    monkeypatch.setattr(torch.autograd.Function, "apply", apply)
    verdict = verify(kind, LAYER)
    monkeypatch.undo()
    assert verdict.kind == NOT_READ and "which is not torch's own" in verdict.why


def test_what_a_layer_may_not_replace_is_all_that_torch_s_module_has(torch):
    """What forward and print are for is a layer's own, and a type of torch's annotations is called by nobody."""
    own = {"forward", "extra_repr", "T_destination"}
    names = {n for n in dir(torch.nn.Module()) if not n.startswith("__")}
    assert names - own <= OF_MODULE


def test_a_forward_that_gets_the_class_is_not_read(torch):
    for wrapped in (classmethod, lambda function: function):
        verdict = verify(layer(forward=wrapped(layer().forward)), LAYER)
        assert verdict.kind == NOT_READ and "no static method" in verdict.why


def test_what_once_differentiable_calls_is_read_and_not_what_is_written_on_it(torch):
    right = layer()

    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return 2 * dy, None, None, None

    backward.__wrapped__ = right.backward.__wrapped__
    wrong = layer(backward=staticmethod(backward))
    assert verify(wrong, LAYER).kind != PROVED


def test_a_tensor_whose_methods_are_others_is_not_read(torch, monkeypatch):
    for name, other in (
        ("sum", torch.Tensor.mean),
        ("__mul__", torch.Tensor.__add__),
        ("rsqrt", lambda self: self),
    ):
        monkeypatch.setattr(torch.Tensor, name, other)
        verdict = verify(layer(), LAYER)
        monkeypatch.undo()
        assert verdict.kind == NOT_READ, name
        assert f"torch.Tensor.{name}, which is not torch's own" in verdict.why


TEXTS = """
import numpy as np; import math as np
import numpy as np; np = 3
import numpy as np; np.sum = np.mean
import numpy as np; setattr(np, "sum", np.mean)
import numpy as np; exec("np = None")
import numpy as np; globals()["np"] = None
import numpy as np; from other import np
import numpy as np; from other import *
import numpy as np; np.add.reduce = np.mean
import numpy as np; np = np.add
import torch as np
import other as np
import numpy as np; import numpy.linalg as np
from other import numpy as np
import numpy as np; [np for np in (1, 2)]; exec("")
import numpy as np; (np := 3)
import numpy as np; del np
import numpy as np; def np(): pass
import numpy as np; class np: pass
import numpy as np; vars()["np"] = 3
"""


@pytest.mark.parametrize("lines", TEXTS.strip().split("\n"))
def test_a_text_whose_np_is_another_is_not_read(lines):
    text = lines.replace("; ", "\n") + "\ndef f(dy):\n    return np.sum(dy, axis=0)\n"
    compile(text, "program", "exec")
    verdict = verify(text, LAYER, outputs=("db",), library="numpy")
    assert verdict.kind == NOT_READ, verdict


HELPER = """
import numpy as np
{}

def load(words, j):
{}


def f(x, y):
    M, N = x.shape
    for i in range(M):
        for j in range(N):
            y[i, j] = load(x[i], j)
"""
OTHER_NP = (
    "class np:\n    uint16 = np.dtype(float)\n    uint32 = float\n    float32 = int"
)


@pytest.mark.parametrize(("lines", "kind"), [("", PROVED), (OTHER_NP, NOT_READ)])
def test_the_text_of_the_package_s_helper_over_another_np_is_not_read(lines, kind):
    kernels = pytest.importorskip("normgrad.numba_kernels.kernels")
    body = inspect.getsource(kernels.load).partition("\n")[2]
    function = of_source(HELPER.format(lines, body))["f"]
    definitions = norm(residual=True)
    binding = {"x": T("residual_out"), "y": Out("residual_out")}
    verdict = verify(function, binding, definitions)
    assert verdict.kind == kind, verdict
