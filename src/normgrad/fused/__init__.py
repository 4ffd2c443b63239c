"""Bring your own norm: the package derives, proves and writes what a layer of rows needs, from its definitions.

Modules in the order of reading: layer (what definitions say), steps (names for what stands within a line), backward
(lines of the gradients), program (what is saved and computed again), kernel_source (two Triton kernels as text),
read_back (what the text stores, proved), launch (torch), operator (`Fused`), gated_layers (two layers made so), gated
(gated_rms_norm, which runs their kernels as they were written into gated_kernels, and needs no SymPy), gated_torch
(its form in torch).
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .gated import gated_rms_norm

__all__ = ["Fused", "NotFused", "gated_rms_norm"]

if TYPE_CHECKING:
    from .layer import NotFused
    from .operator import Fused
else:

    def __getattr__(name):
        modules = {"Fused": "operator", "NotFused": "layer"}
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{modules[name]}", __name__), name)
