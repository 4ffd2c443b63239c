"""The operator for torch: one autograd.Function over the kernels of a backend.

dx = rstd * (wdy - c2 - x_hat * c1) is written down in more than one place. Normalize.backward chooses:

    the backend's kernels   where nobody asks for a graph of the gradient: `_input_gradient` in torch_ops/rows.py,
                            `input_gradient` in triton_kernels/arithmetic.py, `backward` in numba_kernels/kernels.py
    differentiable.vjp      where the gradient may be differentiated again (create_graph): from the inputs,
                            so that second and higher derivatives are right; and where cotangents come in a batch
                            (is_grads_batched, vmap) or a tracer writes the backward down, which see no kernel
    neither                 where no cotangent of y arrives: dx is dresidual_out

A function that torch.compile traces takes the same branches, the first by an operator (torch_ops/torch_compile.py).
Where a transform of torch.func or forward mode is open, no Function runs: torch differentiates and maps the operations
of differentiable.forward itself, tangents of tangents included.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch._C._functorch import unwrap_if_dead
from torch.autograd import forward_ad

from . import differentiable
from .arguments import check_memory, is_traced, rows, shaped
from .distributed import finished


class Normalize(torch.autograd.Function):
    """(y, residual_out) of x (..., N); saves x (with a residual: residual_out), weight and the statistics.

    The kernels see rows (M, N) or (M, H, N). The rows are made here, not by the caller, so that backward hands out one
    and the same tensor as dx and dresidual: autograd then copies it before it becomes the .grad of both.
    """

    @staticmethod
    def forward(ctx, *inputs):
        x, residual, weight, bias, spec, kernels, options = inputs
        p, its = rows(options.per_head, x, residual)
        y, residual_out, mean, rstd = kernels.forward(
            p, weight, bias, its, spec, out_dtype=options.out_dtype, residual_dtype=options.residual_dtype,
            round_residual=options.round_residual,
        )  # fmt: skip
        if p is not x:
            y, residual_out = shaped(y, x.shape), shaped(residual_out, x.shape)
        keep(ctx, inputs, (y, residual_out, mean, rstd))
        return y, residual_out

    @staticmethod
    def backward(ctx, dy, dresidual_out, *_):
        # A cotangent can be a subclass where no input was one.
        dy, dresidual_out = (
            _cotangent("dy", dy),
            _cotangent("dresidual_out", dresidual_out),
        )
        p, weight, mean, rstd = ctx.saved_tensors
        grad_dtypes = [
            dtype if need else None
            for dtype, need in zip(ctx.dtypes, ctx.needs_input_grad, strict=False)
        ]
        per_head = ctx.options.per_head
        if dy is None:
            dw = db = p.new_zeros(p.shape[-1 - per_head :])
            dx = dresidual = dresidual_out
        elif in_operations(
            dy, dresidual_out, operator=not isinstance(ctx.kernels, ModuleType)
        ):
            dx, dw, db = differentiable.vjp(
                dy, p.to(rstd.dtype), weight, ctx.spec, per_head
            )
            dx = dresidual = dx if dresidual_out is None else dx + dresidual_out
        else:
            arguments = (*rows(per_head, dy, dresidual_out, p), weight, mean, rstd)
            options = {"portable_sums": ctx.options.portable_sums, "per_head": per_head}
            grads = ctx.kernels.backward(*arguments, ctx.spec, grad_dtypes, **options)
            return *_one_or_two(p.shape, *grads[:2]), *grads[2:], None, None, None
        needed = zip((dx, dresidual, dw, db), grad_dtypes, strict=True)
        grads = [
            grad.to(dtype) if dtype is not None and grad is not None else None
            for grad, dtype in needed
        ]
        return *grads, None, None, None


def keep(ctx, inputs, output):
    """What backward reads."""
    x, residual, weight, bias, ctx.spec, ctx.kernels, ctx.options = inputs
    _, residual_out, mean, rstd = output
    ctx.set_materialize_grads(False)
    ctx.dtypes = [None if t is None else t.dtype for t in (x, residual, weight, bias)]
    ctx.save_for_backward(x if residual is None else residual_out, weight, mean, rstd)


_apply = super(torch.autograd.Function, Normalize).apply


def apply(x, residual, weight, bias, spec, kernels, options):
    """(y, residual_out) by Normalize, or in torch's operations where a transform or a tangent is about.

    Function.apply would first look for the signature of the forward: half of the time of a small batch.
    """
    transformed = torch._C._are_functorch_transforms_active()
    if transformed or forward_ad._current_level >= 0:
        return differentiable.forward(
            x, residual, weight, bias, spec, **options.of_forward
        )
    tensors = [
        None if t is None else unwrap_if_dead(t) for t in (x, residual, weight, bias)
    ]
    return _apply(*tensors, spec, kernels, options)


def is_batched(*cotangents) -> bool:
    """Whether a transform of torch.func is open, or the older vmap, by which torch.autograd batches cotangents."""
    return torch._C._are_functorch_transforms_active() or any(
        t is not None and torch._C._functorch.is_legacy_batchedtensor(t)
        for t in cotangents
    )


def in_operations(*cotangents, operator: bool = False) -> bool:
    """Whether a backward has to be in torch's operations: it is differentiated, batched or traced.

    Args:  operator: whether the kernels are called by an operator, which a tracer knows
    """
    return (
        torch.is_grad_enabled()
        or is_batched(*cotangents)
        or not operator
        and any(is_traced(t) for t in cotangents)
    )


def _cotangent(name, t):
    """The tensor that a kernel may read; None for None."""
    if t is not None:
        t = finished(t)
        check_memory(name, t)
    return t


def _one_or_two(shape, dx, dresidual):
    """Both in another shape, and still one tensor where they are one."""
    first = dx if dx is None or dx.shape == shape else dx.reshape(shape)
    if dresidual is None or dresidual is dx:
        return first, None if dresidual is None else first
    return first, dresidual.reshape(shape)
