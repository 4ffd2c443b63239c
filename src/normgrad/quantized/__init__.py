"""The operator with its output in one byte a number and one scale a row, for inference: it has no gradient.

Modules in the order of reading: api (functions and what they refuse), operator (which code runs, in eager mode and in
torch.compile), rows (torch), kernel (Triton, one kernel), launch. The reference is `normgrad.numpy_ref.quantized`.
"""

from .api import add_rms_norm_quantized, normalize_quantized, rms_norm_quantized

__all__ = ["add_rms_norm_quantized", "normalize_quantized", "rms_norm_quantized"]
