"""The operator for torch: one autograd.Function over two sets of kernels, and the functional API.

The forward and the first backward run the backend's kernels. Wherever a derivative may be differentiated again, it is
computed by normgrad.torch_formula from the inputs, so that second and higher derivatives and torch.func are right.
"""

from __future__ import annotations

import math
from numbers import Integral

import torch

from . import torch_formula, torch_rows
from .spec import L2_NORM, LAYER_NORM, RMS_NORM, check_eps, check_shapes, check_spec
from .torch_arguments import check_backend, check_tensors, flatten


class Normalize(torch.autograd.Function):
    """(y, residual_out, mean, rstd) of x (..., N); saves x (with a residual: residual_out), weight and the statistics.

    The kernels see rows (M, N). The rows are made here, not by the caller, so that backward hands out one and the same
    tensor as dx and dresidual: autograd then copies it before it becomes the .grad of both.
    """

    @staticmethod
    def forward(x, residual, weight, bias, spec, kernels):
        y, residual_out, mean, rstd = kernels.forward(_rows(x), weight, bias, _rows(residual), spec)
        return _shaped(y, x.shape), _shaped(residual_out, x.shape), mean, rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, residual, weight, bias, ctx.spec, ctx.kernels = inputs
        _, residual_out, mean, rstd = output
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(statistic for statistic in (mean, rstd) if statistic is not None))
        ctx.dtypes = [None if t is None else t.dtype for t in (x, residual, weight, bias)]
        ctx.save_for_backward(x if residual is None else residual_out, weight, mean, rstd)
        ctx.save_for_forward(x, residual, weight)

    @staticmethod
    def backward(ctx, dy, dresidual_out, _dmean, _drstd):
        p, weight, mean, rstd = ctx.saved_tensors
        need_x, need_residual, need_dw, need_db = ctx.needs_input_grad[:4]
        if dy is None:
            dx, dw, db = dresidual_out, p.new_zeros(p.shape[-1]), p.new_zeros(p.shape[-1])
        elif torch.is_grad_enabled():
            dx, dw, db = torch_formula.vjp(dy, p, weight, ctx.spec)
            dx = dx if dresidual_out is None else dx + dresidual_out
        else:
            needs = (need_x or need_residual, need_dw, need_db)
            rows = (_rows(dy), _rows(dresidual_out), _rows(p), weight, mean, rstd)
            dx, dw, db = ctx.kernels.backward(*rows, ctx.spec, *needs)
            dx = None if dx is None else dx.reshape(p.shape)
        needed = zip((dx, dx, dw, db), ctx.needs_input_grad, ctx.dtypes, strict=False)
        grads = [grad.to(dtype) if need and grad is not None else None for grad, need, dtype in needed]
        return *grads, None, None

    @staticmethod
    def jvp(ctx, x_dot, residual_dot, weight_dot, bias_dot, _spec, _kernels):
        x, residual, weight = ctx.saved_tensors
        p = x if residual is None else x + residual
        moves = [tangent.to(p.dtype) for tangent in (x_dot, residual_dot) if tangent is not None]
        p_dot = sum(moves[1:], moves[0]) if moves else None
        y_dot = torch_formula.jvp(p, p_dot, weight, weight_dot, bias_dot, ctx.spec).to(x.dtype)
        if residual is None:
            return y_dot, None, None, None
        return y_dot, torch.zeros_like(p) if p_dot is None else p_dot, None, None

    @staticmethod
    def vmap(info, in_dims, x, residual, weight, bias, spec, kernels):
        return _vmap(info.batch_size, in_dims, x, residual, weight, bias, spec, kernels)


def _rows(t):
    return None if t is None else t.reshape(math.prod(t.shape[:-1]), t.shape[-1])


def _shaped(t, shape):
    """The rows in another shape, not as a view: a view that a Function returns may not be modified in place."""
    return None if t is None else torch.ops.aten._unsafe_view(t, shape)


def _vmap(size, in_dims, x, residual, weight, bias, spec, kernels):
    """The mapped axis becomes more rows; a mapped weight or bias is applied to the plain rows afterwards."""

    def front(t, dim):
        if t is None:
            return None
        return t.movedim(dim, 0) if dim is not None else t.expand(size, *t.shape)

    x, residual = front(x, in_dims[0]), front(residual, in_dims[1])
    affine_mapped = in_dims[2] is not None or in_dims[3] is not None
    arguments = (None, None) if affine_mapped else (weight, bias)
    y, residual_out, *statistics = Normalize.apply(x, residual, *arguments, spec, kernels)
    for t, dim, combine in ((weight, in_dims[2], torch.mul), (bias, in_dims[3], torch.add)):
        if affine_mapped and t is not None:
            between = (1,) * (x.dim() - 2)
            y = combine(y, t if dim is None else t.movedim(dim, 0).reshape(size, *between, -1)).to(x.dtype)
    out = (y, residual_out, *(None if t is None else t.reshape(size, -1) for t in statistics))
    return out, tuple(None if t is None else 0 for t in out)


def _forward_over_forward():
    """Whether two forward-mode transforms are nested here.

    torch differentiates the tangents of an autograd.Function as if they were constants there (seen with 2.13: the
    second forward derivative of x**3 is 0), so the plain formula has to take over.
    """
    if torch.compiler.is_compiling():  # the tracer cannot follow the look below, and warns
        return False
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return sum(level.key() == torch._C._functorch.TransformType.Jvp for level in stack) > 1


def _kernels(backend, device):
    check_backend(backend)
    if backend == "torch" or (backend == "auto" and device.type != "cuda"):
        return torch_rows
    from . import triton_kernels

    triton_kernels.check_device(device)
    return triton_kernels


def normalize(input, weight=None, bias=None, residual=None, *, spec=LAYER_NORM, return_residual=False, backend="auto"):
    """The operator on the last axis, whatever the spec.

    p = x + residual,  q = p - center * mean(p)                                           {eq}`norm-forward`
    y = scale * q / D(sqrt(reduce(q**2)), eps) * weight + bias

    Args:     input, residual (..., N); weight, bias (N,), absent means 1 and 0; spec a NormSpec;
              return_residual: return p as well; backend "torch", "triton" or "auto" (triton on a GPU tensor)
    Returns:  y (..., N) in input.dtype, or (y, residual_out) with residual_out in the promoted dtype of input and
              residual; without a residual residual_out is input itself
    Numerics: statistics and sums in float32 (float64 for float64); the rounded sum is what is normalized and saved
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    check_tensors(input, weight=weight, bias=bias, residual=residual)
    check_shapes(input, weight, bias, residual, name="input")
    p_dtype = input.dtype if residual is None else torch.promote_types(input.dtype, residual.dtype)
    spec = check_spec(spec).resolve(torch.finfo(torch_formula.accumulator(p_dtype)).eps)
    kernels = _kernels(backend, input.device)
    if _forward_over_forward():
        y, residual_out = torch_formula.forward(input, residual, weight, bias, spec)
    else:
        y, residual_out, _, _ = Normalize.apply(input, residual, weight, bias, spec, kernels)
    if not return_residual:
        return y
    return y, input if residual is None else residual_out


def _as(t, input):
    """In input's shape; the very tensor where it has that already, since a view may not be modified in place."""
    return t if t.shape == input.shape else t.reshape(input.shape)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, backend="auto"):
    """LayerNorm over the last axes, as torch.nn.functional.layer_norm.

    y = (x - mean) * rstd * weight + bias,  rstd = 1 / sqrt(var + eps)                    {eq}`ln-forward`

    Args:     input (..., *normalized_shape); weight, bias normalized_shape or None; eps at least 0;
              backend as normalize
    Returns:  y in input's shape and dtype
    Numerics: as normalize; the variance is centred first (two passes)
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Ba, Kiros and Hinton 2016, arXiv:1607.06450
    """
    x, _, weight, bias = flatten(input, normalized_shape, weight=weight, bias=bias)
    spec = LAYER_NORM.replace(eps=check_eps(eps))
    return _as(normalize(x, weight, bias, spec=spec, backend=backend), input)


def rms_norm(input, normalized_shape, weight=None, eps=None, *, backend="auto"):
    """RMSNorm over the last axes, as torch.nn.functional.rms_norm.

    y = x * rstd * weight,  rstd = 1 / sqrt(mean(x**2) + eps)                             {eq}`rms-forward`

    Args:     input (..., *normalized_shape); weight normalized_shape or None; eps at least 0, None means the machine
              epsilon of the statistics' dtype, as torch computes it; backend as normalize
    Returns:  y in input's shape and dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    Source:   Zhang and Sennrich 2019, arXiv:1910.07467
    """
    x, _, weight = flatten(input, normalized_shape, weight=weight)
    spec = RMS_NORM.replace(eps=None if eps is None else check_eps(eps))
    return _as(normalize(x, weight, spec=spec, backend=backend), input)


def l2_norm(input, dim=-1, eps=1e-12, *, backend="auto"):
    """L2 normalization along one axis, as torch.nn.functional.normalize.

    y = x / max(sqrt(sum(x**2)), eps)                                                     {eq}`l2-clamp`

    Args:     input, any shape with at least one axis; dim the axis; eps at least 0; backend as normalize
    Returns:  y in input's shape and dtype
    Numerics: as normalize
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    check_tensors(input)
    if isinstance(dim, bool) or not isinstance(dim, Integral) or not -input.dim() <= dim < input.dim():
        raise ValueError(f"dim: got {dim!r}, needs an axis of input, whose shape is {tuple(input.shape)}")
    y = normalize(input.movedim(dim, -1), spec=L2_NORM.replace(eps=check_eps(eps)), backend=backend)
    return y.movedim(-1, dim)


def add_layer_norm(input, residual, normalized_shape, weight=None, bias=None, eps=1e-5, *, backend="auto"):
    """(output, residual_out): LayerNorm of the sum input + residual, and the sum.

    residual_out = input + residual,  output = layer_norm(residual_out)                   {eq}`res-forward`

    Args:     input, residual (..., *normalized_shape); the rest as layer_norm
    Returns:  output in input.dtype; residual_out in the promoted dtype of input and residual
    Numerics: as normalize; in one dtype bitwise what layer_norm(input + residual) gives
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    x, residual, weight, bias = flatten(input, normalized_shape, residual, weight=weight, bias=bias)
    return _add_norm(input, x, residual, weight, bias, LAYER_NORM.replace(eps=check_eps(eps)), backend)


def add_rms_norm(input, residual, normalized_shape, weight=None, eps=None, *, backend="auto"):
    """(output, residual_out): RMSNorm of the sum input + residual, and the sum.

    residual_out = input + residual,  output = rms_norm(residual_out)

    Args:     input, residual (..., *normalized_shape); the rest as rms_norm
    Returns:  output in input.dtype; residual_out in the promoted dtype of input and residual
    Numerics: as normalize; in one dtype bitwise what rms_norm(input + residual) gives
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    x, residual, weight = flatten(input, normalized_shape, residual, weight=weight)
    spec = RMS_NORM.replace(eps=None if eps is None else check_eps(eps))
    return _add_norm(input, x, residual, weight, None, spec, backend)


def _add_norm(input, x, residual, weight, bias, spec, backend):
    if residual is None:
        raise TypeError("residual: got None, needs a torch.Tensor; without a residual use layer_norm or rms_norm")
    y, residual_out = normalize(x, weight, bias, residual, spec=spec, return_residual=True, backend=backend)
    return _as(y, input), _as(residual_out, input)
