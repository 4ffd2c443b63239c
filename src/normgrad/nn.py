"""Modules: LayerNorm and RMSNorm with torch.nn's parameters and state_dict, and AddNorm for a residual stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.types import Device

from .spec import Axes, check_axes, check_eps, check_weight_offset
from .torch_ops.api import add_layer_norm, add_rms_norm, layer_norm, rms_norm
from .torch_ops.arguments import Backend, check_backend, check_device, check_dtype, check_flag


class _Norm(torch.nn.Module):
    """The parameters, named and shaped as in torch.nn, so that either state_dict loads into the other's module."""

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float | None,
        affine: bool,
        bias: bool,
        device: Device,
        dtype: torch.dtype | None,
        *,
        weight_offset: float,
        out_dtype: torch.dtype | None,
        backend: Backend,
    ) -> None:
        super().__init__()
        shape = check_axes(normalized_shape)
        if eps is not None:
            check_eps(eps)
        check_backend(backend)
        for name, flag in (("elementwise_affine", affine), ("bias", bias)):
            check_flag(name, flag)
        for name, one in (("dtype", dtype), ("out_dtype", out_dtype)):
            check_dtype(name, one)
        check_device("device", device)
        self.weight_offset = check_weight_offset(shape if affine else None, weight_offset)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, affine
        self.out_dtype, self.backend = out_dtype, backend
        factory = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.full(shape, 1 - self.weight_offset, **factory)) if affine else None
        self.bias = torch.nn.Parameter(torch.zeros(shape, **factory)) if affine and bias else None

    def reset_parameters(self) -> None:
        """Weight 1 - weight_offset and bias 0, as after construction."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1 - self.weight_offset)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        out = "" if self.weight_offset == 0 else f"weight_offset={self.weight_offset}, "
        out += "" if self.out_dtype is None else f"out_dtype={self.out_dtype}, "
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}, {out}backend={self.backend!r}"
        )

    def _keywords(self) -> dict[str, Any]:
        return {"weight_offset": self.weight_offset, "out_dtype": self.out_dtype, "backend": self.backend}


class LayerNorm(_Norm):
    """LayerNorm as torch.nn.LayerNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps, elementwise_affine, bias, device, dtype as in torch;
           weight_offset: what is added to the weight, which begins at 1 - weight_offset; out_dtype, backend as
           normgrad.normalize
    """

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        weight_offset: float = 0.0,
        out_dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> None:
        check_eps(eps)
        options = {"weight_offset": weight_offset, "out_dtype": out_dtype, "backend": backend}
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device, dtype, **options)

    def forward(self, input: Tensor) -> Tensor:
        """layer_norm of input (..., *normalized_shape) with the module's weight, bias and eps."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, **self._keywords())


class RMSNorm(_Norm):
    """RMSNorm as torch.nn.RMSNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps (None means the statistics' machine epsilon),
           elementwise_affine, device, dtype as in torch; weight_offset: what is added to the weight, which begins at
           1 - weight_offset: 1.0 in Gemma; out_dtype, backend as normgrad.normalize
    """

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        weight_offset: float = 0.0,
        out_dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> None:
        options = {"weight_offset": weight_offset, "out_dtype": out_dtype, "backend": backend}
        super().__init__(normalized_shape, eps, elementwise_affine, False, device, dtype, **options)

    def forward(self, input: Tensor) -> Tensor:
        """rms_norm of input (..., *normalized_shape) with the module's weight and eps."""
        return rms_norm(input, self.normalized_shape, self.weight, self.eps, **self._keywords())


class AddNorm(torch.nn.Module):
    """Residual add and norm in one: (norm(input + residual), input + residual).

    Args:  norm: the LayerNorm or RMSNorm of this module whose weight, bias, eps, weight_offset, out_dtype and backend
           are used; residual_dtype, round_residual as normgrad.normalize
    """

    def __init__(
        self, norm: LayerNorm | RMSNorm, *, residual_dtype: torch.dtype | None = None, round_residual: bool = True
    ) -> None:
        super().__init__()
        if not isinstance(norm, _Norm):
            got = f"{type(norm).__module__}.{type(norm).__name__}"  # torch has a LayerNorm, too
            raise TypeError(f"norm: got {got}, needs a normgrad.nn.LayerNorm or normgrad.nn.RMSNorm")
        check_dtype("residual_dtype", residual_dtype)
        check_flag("round_residual", round_residual)
        self.norm, self.residual_dtype, self.round_residual = norm, residual_dtype, round_residual

    def extra_repr(self) -> str:
        """What the representation says besides the norm."""
        return f"residual_dtype={self.residual_dtype}, round_residual={self.round_residual}"

    def forward(self, input: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """(output, residual_out) for input and residual (..., *normalized_shape)."""
        norm, keywords = self.norm, self.norm._keywords()
        keywords |= {"residual_dtype": self.residual_dtype, "round_residual": self.round_residual}
        arguments = (input, residual, norm.normalized_shape, norm.weight)
        if isinstance(norm, LayerNorm):
            return add_layer_norm(*arguments, norm.bias, norm.eps, **keywords)
        return add_rms_norm(*arguments, norm.eps, **keywords)
