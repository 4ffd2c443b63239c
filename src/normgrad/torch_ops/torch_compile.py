"""The operator as two operators of torch's own kind, normgrad::forward and normgrad::backward, for torch.compile.

A compiler does not look into them: it plans around one node with known shapes, and runs the same kernels as eager mode,
so that values and gradients are the same bits. Schemas know tensors and plain scalars only: a spec and the options
travel as their fields, and a tensor that is not there is empty where it is an output.

An operator has a first derivative and no tangent. So `normalize` takes the plain formulas instead where a
transform of torch.func or forward mode is open inside the compiled function, and torch itself refuses to differentiate
a compiled backward (torch 2.11 takes what it returns for a constant, of its own layer_norm as well). In eager mode
normalize uses the autograd.Function, whose derivatives are of any order.

A program that torch.export, torch.onnx.export or torch.jit.trace writes holds the plain formulas, in torch's operations
alone: it runs where this package is not installed.
"""

from __future__ import annotations

import math
from dataclasses import fields

import torch
from torch.autograd import forward_ad

from ..spec import NormSpec
from . import differentiable
from .arguments import Options, kernels_of, rows, shaped
from .autograd import Normalize, keep
from .differentiable import accumulator, promoted

SPEC = "bool center, str reduce, float scale, float eps, str placement, float weight_offset"
OPTIONS = "ScalarType out_dtype, ScalarType residual_dtype, bool round_residual, bool portable_sums, bool per_head"
WANTED = "ScalarType? dx, ScalarType? dresidual, ScalarType? dw, ScalarType? db"
FORWARD = f"(Tensor x, Tensor? residual, Tensor? weight, Tensor? bias, {SPEC}, {OPTIONS}, str backend)"
BACKWARD = (
    "(Tensor dy, Tensor? dresidual_out, Tensor p, Tensor? weight, Tensor? mean, Tensor rstd, "
    f"{SPEC}, {WANTED}, bool portable_sums, bool per_head, str backend)"
)
FOUR = "(Tensor, Tensor, Tensor, Tensor)"
SPEC_FIELDS = len(fields(NormSpec))


def scalars_of(record) -> tuple:
    """The fields of a spec or of options, in the order of the schema; dataclasses.astuple not every compiler traces."""
    return tuple(getattr(record, field.name) for field in fields(record))


def _given(scalars):
    """(spec, options, backend) from the scalars of normgrad::forward."""
    return (
        NormSpec(*scalars[:SPEC_FIELDS]),
        Options(*scalars[SPEC_FIELDS:-1]),
        scalars[-1],
    )


@torch.library.custom_op(
    "normgrad::forward", mutates_args=(), schema=f"{FORWARD} -> {FOUR}"
)
def forward(x, residual, weight, bias, *scalars):
    """(y, residual_out, mean, rstd) of x (..., N); residual_out and mean are empty where there is none."""
    spec, options, backend = _given(scalars)
    p, its = rows(options.per_head, x, residual)
    y, residual_out, mean, rstd = kernels_of(backend, x.device).forward(
        p, weight, bias, its, spec, **options.of_forward
    )
    residual_out = (
        x.new_empty(0, dtype=options.residual_dtype)
        if residual is None
        else shaped(residual_out, x.shape)
    )
    return (
        shaped(y, x.shape),
        residual_out,
        rstd.new_empty(0) if mean is None else mean,
        rstd,
    )


@forward.register_fake
def _(x, residual, weight, bias, *scalars):
    spec, options, _ = _given(scalars)
    acc, m = accumulator(promoted(x, residual)), math.prod(x.shape[:-1])
    residual_out = x.new_empty(
        0 if residual is None else x.shape, dtype=options.residual_dtype
    )
    mean = x.new_empty(m if spec.center else 0, dtype=acc)
    return (
        x.new_empty(x.shape, dtype=options.out_dtype),
        residual_out,
        mean,
        x.new_empty(m, dtype=acc),
    )


def _setup_context(ctx, inputs, output):
    *tensors, scalars = *inputs[:4], inputs[4:]
    spec, options, backend = _given(scalars)
    y, residual_out, mean, rstd = output
    statistics = (mean if spec.center else None, rstd)
    keep(
        ctx,
        (*tensors, spec, _Operator(backend), options),
        (y, residual_out, *statistics),
    )
    empty = () if tensors[1] is not None else (residual_out,)
    ctx.mark_non_differentiable(mean, rstd, *empty)


def _backward(ctx, *cotangents):
    *grads, _, _, _ = Normalize.backward(ctx, *cotangents)
    return *grads, *(None for _ in ctx.needs_input_grad[4:])


forward.register_autograd(_backward, setup_context=_setup_context)


class _Operator:
    """normgrad::backward with the signature of a kernel module's backward."""

    def __init__(self, backend):
        self.backend = backend

    def backward(
        self,
        dy,
        dresidual_out,
        p,
        weight,
        mean,
        rstd,
        spec,
        dtypes,
        *,
        portable_sums,
        per_head,
    ):
        tensors = (dy, dresidual_out, p, weight, mean, rstd)
        grads = backward(
            *tensors, *scalars_of(spec), *dtypes, portable_sums, per_head, self.backend
        )
        dx, dresidual, dw, db = (
            None if dtype is None else grad
            for grad, dtype in zip(grads, dtypes, strict=True)
        )
        return dx, dx if dtypes[0] == dtypes[1] else dresidual, dw, db


@torch.library.custom_op(
    "normgrad::backward", mutates_args=(), schema=f"{BACKWARD} -> {FOUR}"
)
def backward(dy, dresidual_out, p, weight, mean, rstd, *scalars):
    """(dx, dresidual, dw, db) of rows p, (M, N) or (M, H, N); empty what is not wanted or, dresidual, would be dx."""
    spec, dtypes, portable_sums, per_head, backend = _asked(scalars)
    kernels = kernels_of(backend, p.device)
    arguments = (dy, dresidual_out, p, weight, mean, rstd, spec)
    grads = kernels.backward(
        *arguments, dtypes, portable_sums=portable_sums, per_head=per_head
    )
    return tuple(
        p.new_empty(0) if grad is None else grad for grad in _distinct(dtypes, grads)
    )


@backward.register_fake
def _(dy, dresidual_out, p, weight, mean, rstd, *scalars):
    _, dtypes, _, per_head, _ = _asked(scalars)
    vector = p.shape[-1 - per_head :]
    shapes = (p.shape, p.shape, vector, vector)
    outputs = zip(shapes, _distinct(dtypes, dtypes), strict=True)
    return tuple(
        p.new_empty(0) if dtype is None else p.new_empty(shape, dtype=dtype)
        for shape, dtype in outputs
    )


def _asked(scalars):
    """(spec, dtypes, portable_sums, per_head, backend) from the scalars of normgrad::backward."""
    return NormSpec(*scalars[:SPEC_FIELDS]), scalars[SPEC_FIELDS:-3], *scalars[-3:]


def _distinct(dtypes, grads):
    """The gradients without the dresidual that is dx: the outputs of an operator may not share memory."""
    dx, dresidual, dw, db = grads
    return dx, None if dtypes[0] == dtypes[1] else dresidual, dw, db


def _open_transforms() -> int:
    """How many transforms of torch.func are open; a compiler opens its own where the function that it traces does."""
    return torch._C._functorch.get_dynamic_layer_stack_depth()


# A compiler keeps one program for each stack of transforms, so it may take this for a constant; torch 2.11 cannot trace
# it. This is all that torch.compiler.assume_constant_result does, but that imports the compiler, and Triton with it:
# without a GPU Triton could then no longer interpret.
_open_transforms._dynamo_marked_constant = True


def transforms_are_open() -> bool:
    """Whether a transform of torch.func, or forward mode, is open inside the function that is compiled."""
    return _open_transforms() > 0 or forward_ad._current_level >= 0


def _exports() -> bool:
    """Whether a program is written that may leave the process.

    The flag itself: torch.compiler.is_exporting() is True in whatever torch 2.11 compiles. Before 2.7 there is none.
    """
    exporting = getattr(torch.compiler, "_is_exporting_flag", False)
    return exporting or torch.jit.is_tracing()


def normalize(x, residual, weight, bias, spec, backend, options):
    """(y, residual_out) by normgrad::forward; residual_out is None without a residual.

    An operator gets no tangents (seen with 2.13: jvp gives 0): where a transform is open the plain formulas take over.
    """
    if _exports() or transforms_are_open():
        return differentiable.forward(
            x, residual, weight, bias, spec, **options.of_forward
        )
    y, residual_out, _, _ = forward(
        x, residual, weight, bias, *scalars_of(spec), *scalars_of(options), backend
    )
    return y, None if residual is None else residual_out
