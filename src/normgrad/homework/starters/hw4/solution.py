"""Homework 4: residual add and LayerNorm in Triton. Replace each `raise NotImplementedError`.

Write the kernels, functions marked @triton.jit, above the two launchers. Check with `pytest` in this folder, or with
`python -m normgrad.homework check .`
"""

import torch  # noqa: F401
import triton  # noqa: F401
import triton.language as tl  # noqa: F401


def addnorm_forward(x, residual, weight, bias, eps):
    """The sum of x and residual, and LayerNorm of its rows, by one launch of one kernel.

    Args:     x, residual (M, N), float64, float32 or float16; weight, bias (N,); eps: a number, under the root
    Returns:  (y, residual_out, mean, rstd): y, residual_out (M, N) in the dtype of x; mean, rstd (M,) of the rows of
              residual_out, float64 for float64 and else float32
    Equations: res-forward (chapter Residual add and norm, fused), kern-padded-variance (chapter Kernels)
    """
    raise NotImplementedError


def addnorm_backward(dy, dresidual_out, residual_out, weight, mean, rstd):
    """The gradients of both halves of the sum, of weight and of bias, by at most three launches.

    Args:     dy, dresidual_out, residual_out (M, N); weight (N,); mean, rstd (M,) as the forward returned them
    Returns:  (dx, dresidual, dw, db): dx, dresidual (M, N), which may be one tensor; dw, db (N,)
    Equations: res-dx, res-dx-layer-norm with the names of res-names (chapter Residual add and norm, fused),
               ln-dw, ln-db (chapter LayerNorm)
    """
    raise NotImplementedError
