"""Rows of numbers in one byte each and a scale, in torch's operations."""

from __future__ import annotations

import torch

from ..dtypes import QUANTIZED

DTYPES = {getattr(torch, name): largest for name, largest in QUANTIZED.items()}


def quantize(y: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """(quantized, scale) of rows y (..., N), which are not rounded yet; scale is (..., 1) in y's dtype.

    Numerics: as normgrad.numpy_ref.quantized
    """
    largest = torch.amax(torch.abs(y), -1, keepdim=True)
    scale = largest / DTYPES[dtype]
    divisor = torch.where(largest == 0, 1, scale)
    normal = (divisor >= torch.finfo(y.dtype).tiny) & torch.isfinite(divisor)
    divisor = torch.where(normal, divisor, torch.nan)
    t = y / divisor
    t = torch.where(t == t, torch.round(t), 0) if dtype == torch.int8 else t.float()
    return t.to(dtype), torch.where(largest == 0, largest, divisor)
