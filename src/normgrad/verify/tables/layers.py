"""The layers of torch.nn that a program may be made of, as torch 2.13 documents them: read as a program's own are."""

from __future__ import annotations

TEXT = """
from torch import nn, ones, zeros


class LayerNorm(nn.Module):
    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight, self.bias = None, None
        if elementwise_affine:
            options = {"device": device, "dtype": dtype}
            self.weight = nn.Parameter(ones(normalized_shape, **options))
            if bias:
                self.bias = nn.Parameter(zeros(normalized_shape, **options))
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            nn.init.ones_(self.weight)
            if self.bias is not None:
                nn.init.zeros_(self.bias)

    def forward(self, input):
        return nn.functional.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )


class RMSNorm(nn.Module):
    def __init__(
        self,
        normalized_shape,
        eps=None,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = None
        if elementwise_affine:
            options = {"device": device, "dtype": dtype}
            self.weight = nn.Parameter(ones(normalized_shape, **options))
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            nn.init.ones_(self.weight)

    def forward(self, x):
        return nn.functional.rms_norm(
            x, self.normalized_shape, self.weight, self.eps
        )
"""
# {path: the name of a class of the text}
LAYERS = {f"torch.nn.{name}": name for name in ("LayerNorm", "RMSNorm")}
