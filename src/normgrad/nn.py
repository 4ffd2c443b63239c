"""Modules: LayerNorm and RMSNorm with torch.nn's parameters and state_dict, and AddNorm for a residual stream."""

from __future__ import annotations

import torch

from .spec import check_axes, check_eps
from .torch_arguments import check_backend
from .torch_functional import add_layer_norm, add_rms_norm, layer_norm, rms_norm


class _Norm(torch.nn.Module):
    """The parameters, named and shaped as in torch.nn, so that either state_dict loads into the other's module."""

    def __init__(self, normalized_shape, eps, affine, bias, backend, device, dtype):
        super().__init__()
        shape = check_axes(normalized_shape)
        if eps is not None:
            check_eps(eps)
        check_backend(backend)
        self.normalized_shape, self.eps, self.elementwise_affine, self.backend = shape, eps, affine, backend
        factory = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.ones(shape, **factory)) if affine else None
        self.bias = torch.nn.Parameter(torch.zeros(shape, **factory)) if affine and bias else None

    def reset_parameters(self):
        """Weight 1 and bias 0, as after construction."""
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}, backend={self.backend!r}"
        )


class LayerNorm(_Norm):
    """LayerNorm as torch.nn.LayerNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps, elementwise_affine, bias, device, dtype as in torch;
           backend as normgrad.normalize
    """

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
        *,
        backend="auto",
    ):
        super().__init__(normalized_shape, eps, elementwise_affine, bias, backend, device, dtype)

    def forward(self, input):
        """layer_norm of input (..., *normalized_shape) with the module's weight, bias and eps."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, backend=self.backend)


class RMSNorm(_Norm):
    """RMSNorm as torch.nn.RMSNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps (None means the statistics' machine epsilon),
           elementwise_affine, device, dtype as in torch; backend as normgrad.normalize
    """

    def __init__(
        self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None, *, backend="auto"
    ):
        super().__init__(normalized_shape, eps, elementwise_affine, False, backend, device, dtype)

    def forward(self, input):
        """rms_norm of input (..., *normalized_shape) with the module's weight and eps."""
        return rms_norm(input, self.normalized_shape, self.weight, self.eps, backend=self.backend)


class AddNorm(torch.nn.Module):
    """Residual add and norm in one: (norm(input + residual), input + residual).

    Args:  norm: the LayerNorm or RMSNorm of this module whose weight, bias, eps and backend are used
    """

    def __init__(self, norm):
        super().__init__()
        if not isinstance(norm, _Norm):
            got = f"{type(norm).__module__}.{type(norm).__name__}"  # torch has a LayerNorm, too
            raise TypeError(f"norm: got {got}, needs a normgrad.nn.LayerNorm or normgrad.nn.RMSNorm")
        self.norm = norm

    def forward(self, input, residual):
        """(output, residual_out) for input and residual (..., *normalized_shape)."""
        norm = self.norm
        if isinstance(norm, LayerNorm):
            return add_layer_norm(
                input, residual, norm.normalized_shape, norm.weight, norm.bias, norm.eps, backend=norm.backend
            )
        return add_rms_norm(input, residual, norm.normalized_shape, norm.weight, norm.eps, backend=norm.backend)
