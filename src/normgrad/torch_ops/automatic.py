"""What backend="auto" runs: a table over device, norm, dtype and the number of entries, which is never timed.

On a GPU Triton's kernels. On a CPU torch's own kernels where they compute the same, Numba's where Numba is installed
and they are faster, and the torch formula for all else.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional

from ..spec import LAYER_NORM, RMS_NORM, NormSpec
from .arguments import PLAIN, TENSORS, Options, is_traced
from .differentiable import promoted

# torch.nn.functional.layer_norm and rms_norm: no name that a caller can ask for, since they know few of the arguments.
TORCH_OWN = "torch's own"
# Entries of x from which Numba's kernels take less time, forward and backward together, than torch's own (2 threads of
# an AMD EPYC: LayerNorm takes 2.6 times as long at (128, 256), 1.1 at (4096, 1024) and 0.4 at (2048, 8192); RMSNorm,
# which torch has no CPU kernel for, 1.0 at (4, 64), 0.7 at (128, 256) and 0.14 at (4096, 1024)), and than the formula,
# which in turn takes less time than torch's RMSNorm from there on.
NUMBA_BEATS_LAYER_NORM_FROM, NUMBA_FROM = 2**23, 2**12
WIDE = (torch.float32, torch.float64)


@cache
def numba_is_installed() -> bool:
    """Whether numba can be imported; it is imported when a call runs on it."""
    return find_spec("numba") is not None


def choose(spec: NormSpec, options: Options, tensors: tuple[Tensor | None, ...]) -> str:
    """The backend of a call that names none, or TORCH_OWN.

    Args:  spec with a number for eps; options; tensors: input, residual, weight and bias
    """
    input = tensors[0]
    if input.device.type != "cpu":
        return "auto"
    same = _torch_computes_the_same(spec, options, tensors)
    if is_traced(input):
        # The number of entries may be a symbol there, and a program that compares it holds for some numbers alone.
        return TORCH_OWN if same else "torch"
    numba_from = NUMBA_FROM
    if same and spec.center:
        numba_from = NUMBA_BEATS_LAYER_NORM_FROM
    if input.numel() >= numba_from and _numba_runs(tensors):
        return "numba"
    if same and (spec.center or input.numel() < NUMBA_FROM):
        return TORCH_OWN
    return "torch"


def _numba_runs(tensors):
    return numba_is_installed() and all(t is None or type(t) in PLAIN for t in tensors)


def _torch_computes_the_same(spec, options, tensors):
    """Whether torch.nn.functional has the norm, and computes it as exactly.

    In 16 bits torch rounds the statistics of LayerNorm, and RMSNorm's x_hat before it meets the weight: dx of
    LayerNorm is off by 0.004 in bfloat16 where 0.0003 is allowed here.
    """
    input, residual, _, bias = tensors
    dtype = promoted(input, residual)
    norm = LAYER_NORM if spec.center else RMS_NORM
    results = (options.out_dtype, options.residual_dtype)
    return (
        spec == norm.replace(eps=spec.eps)
        and (spec.center or bias is None)
        and dtype in WIDE
        and not options.per_head
        and not options.portable_sums
        and options.round_residual
        and all(result == dtype for result in results)
        and all(t is None or t.dtype == dtype for t in tensors)
        and all(t is None or type(t) in TENSORS for t in tensors)
    )


def run_torch_own(
    spec: NormSpec,
    axes: tuple[int, ...],
    input: Tensor,
    residual: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """(y, residual_out) by torch.nn.functional, in the dtype of input under autocast too."""
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return run_torch_own(spec, axes, input, residual, weight, bias)
    p = input if residual is None else input + residual
    if spec.center:
        y = functional.layer_norm(p, axes, weight, bias, spec.eps)
    else:
        y = functional.rms_norm(p, axes, weight, spec.eps)
    return y, None if residual is None else p
