"""normgrad: gradients of normalization layers, derived, proved for every N, and implemented five times.

Importing the package needs NumPy alone; torch, triton and sympy are loaded by the first use of a name that needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .spec import L2_NORM, LAYER_NORM, LAYER_NORM_STD, RMS_NORM, NormSpec

__version__ = "0.1.0"

_LAZY = {
    "layer_norm": "torch_ops.api",
    "rms_norm": "torch_ops.api",
    "l2_norm": "torch_ops.api",
    "add_layer_norm": "torch_ops.api",
    "add_rms_norm": "torch_ops.api",
    "normalize": "torch_ops.api",
    "add_normalize": "torch_ops.api",
    "gated_rms_norm": "fused",
    "Fused": "fused",
    "doctor": "doctor",
}
_MODULES = (
    "bench",
    "checks",
    "fused",
    "homework",
    "ledger",
    "mistakes",
    "nn",
    "numba_kernels",
    "numpy_ref",
    "prove",
    "residual",
    "symbolic",
    "teaching",
    "torch_ops",
    "triton_kernels",
)

# Written out, as the imports below are, for those who read the text and run nothing: checkers, completion.
__all__ = [
    "L2_NORM",
    "LAYER_NORM",
    "LAYER_NORM_STD",
    "RMS_NORM",
    "NormSpec",
    "layer_norm",
    "rms_norm",
    "l2_norm",
    "add_layer_norm",
    "add_rms_norm",
    "normalize",
    "add_normalize",
    "gated_rms_norm",
    "Fused",
    "doctor",
]

if TYPE_CHECKING:
    from . import bench as bench
    from . import checks as checks
    from . import fused as fused
    from . import homework as homework
    from . import ledger as ledger
    from . import mistakes as mistakes
    from . import nn as nn
    from . import numba_kernels as numba_kernels
    from . import numpy_ref as numpy_ref
    from . import prove as prove
    from . import residual as residual
    from . import symbolic as symbolic
    from . import teaching as teaching
    from . import torch_ops as torch_ops
    from . import triton_kernels as triton_kernels
    from .doctor import doctor
    from .fused import Fused, gated_rms_norm
    from .torch_ops.api import (
        add_layer_norm,
        add_normalize,
        add_rms_norm,
        l2_norm,
        layer_norm,
        normalize,
        rms_norm,
    )
else:
    # Checkers would take any name for one that is here.
    def __getattr__(name):
        if name in _LAZY:
            value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
            globals()[name] = value
            return value
        if name in _MODULES:
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY, *_MODULES])
