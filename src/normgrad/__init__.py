"""normgrad: gradients of normalization layers, derived, proved for every N, and implemented four times.

Importing the package needs NumPy alone; torch, triton and sympy are loaded by the first use of a name that needs them.
"""

from importlib import import_module

from .spec import L2_NORM, LAYER_NORM, LAYER_NORM_STD, RMS_NORM, NormSpec

__version__ = "0.1.0"

_LAZY = {
    "layer_norm": "torch_ops.api",
    "rms_norm": "torch_ops.api",
    "l2_norm": "torch_ops.api",
    "add_layer_norm": "torch_ops.api",
    "add_rms_norm": "torch_ops.api",
    "normalize": "torch_ops.api",
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
    "residual",
    "symbolic",
    "teaching",
    "torch_ops",
    "triton_kernels",
)

__all__ = ["L2_NORM", "LAYER_NORM", "LAYER_NORM_STD", "RMS_NORM", "NormSpec", *_LAZY]


def __getattr__(name):
    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY, *_MODULES])
