"""What is allocated and launched for rows in one byte a number: one kernel, a program for each tile of rows."""

from __future__ import annotations

import numpy
import torch

from ..torch_ops.formula import accumulator, promoted
from ..triton_kernels import configuration
from ..triton_kernels.interpreter import INTERPRETED
from ..triton_kernels.launch import _launch, _options, _rows, _step, _tile, _vectors
from .kernel import quantized_rows
from .rows import DTYPES

# The first NVIDIA GPUs with an instruction that rounds to float8_e4m3fn, as Triton uses it; others get its bits.
FLOAT8_CAPABILITY = (8, 9)


def _kind(dtype, device):
    if dtype == torch.int8:
        return "int8"
    there = device.type == "cuda" and not INTERPRETED and not torch.version.hip
    return "float8" if there and torch.cuda.get_device_capability(device) >= FLOAT8_CAPABILITY else "bits"


def forward(x, weight, bias, residual, spec, dtype, *, residual_dtype=None, round_residual=True, kind=None):
    """(quantized, scale, residual_out) for rows x (M, N), by one kernel launch; residual_out None without a residual.

    Args:    dtype: int8 or float8_e4m3fn; kind: how the kernel rounds, None means as the device of x can
             the rest as torch_rows.forward
    Raises:  ValueError for rows that no program holds whole
    """
    (m, n), acc = x.shape, accumulator(promoted(x, residual))
    tile = configuration.forward_tile(n, acc.itemsize, mixed=True)
    if tile.sweeps:
        most = configuration.FORWARD_COLUMNS[acc.itemsize] // 2
        needs = f"at most {most}, which a program holds; backend='torch' has no limit"
        raise ValueError(f"N: got {n} columns, needs {needs}")
    x, residual, weight, bias = _rows(x), _rows(residual), _vectors(weight), _vectors(bias)
    quantized, scale = x.new_empty(x.shape, dtype=dtype), x.new_empty(m, 1, dtype=acc)
    residual_out = None if residual is None else x.new_empty(x.shape, dtype=residual_dtype or promoted(x, residual))
    if m > 0:
        kind = kind or _kind(dtype, x.device)
        options = {name: value for name, value in _options(n, acc, spec, False).items() if name != "PER_HEAD"}
        options |= {"ROUND": round_residual, "KIND": kind, "Q": DTYPES[dtype], **_tile(tile)}
        # What the interpreter says of rows past M, or of NaN, concerns no number that is stored, or is meant.
        with numpy.errstate(all="ignore"):
            _launch(
                quantized_rows, (-(-m // tile.rows),), x, residual, weight, bias,
                quantized.view(torch.uint8) if kind == "bits" else quantized, scale, residual_out,
                m, _step(x), _step(residual), **options,
            )  # fmt: skip
    return quantized, scale, residual_out
