"""What autograd and the compiler's cache see of a kernel."""

from __future__ import annotations

import torch

from ...checks.backends import TorchBackend
from ...spec import LAYER_NORM
from ...torch_ops import differentiable


class CutGraph(torch.autograd.Function):
    """LayerNorm; its backward is a kernel that autograd cannot see."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        y, _ = differentiable.forward(x, None, weight, bias, LAYER_NORM)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        with torch.no_grad():
            return differentiable.vjp(dy, x, weight, LAYER_NORM)


class WholeGraph(torch.autograd.Function):
    """The same formula in operations that autograd records."""

    forward = CutGraph.forward

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        return differentiable.vjp(dy, x, weight, LAYER_NORM)


class Layer(TorchBackend):
    """An autograd.Function of x, weight and bias as a backend.

    Args:  function: the class; create_graph: as TorchBackend
    """

    def __init__(self, function, create_graph=False):
        super().__init__("torch", create_graph=create_graph)
        self.name, self.function_class = function.__name__, function

    def differentiable(self):
        """The same, its gradients taken with create_graph."""
        return Layer(self.function_class, create_graph=True)

    def normalize(self, x, residual, weight, bias, spec):
        """(y, x) of tensors; no residual, and the spec is LayerNorm's."""
        if residual is not None or spec != LAYER_NORM:
            raise ValueError("residual, spec: this layer is a plain LayerNorm")
        return self.function_class.apply(x, weight, bias), x


BLOCK = 1024


def key_with_rows(rows):
    """The constants that a kernel is compiled for and found by."""
    rows_per_program = -(-rows // 132)
    return {"N": 1000, "BLOCK": BLOCK, "ROWS": rows_per_program}


def key_without_rows(rows):
    """The number of rows is an argument of the launch, and no constant."""
    return {"N": 1000, "BLOCK": BLOCK}
