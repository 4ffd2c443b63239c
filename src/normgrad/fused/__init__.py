"""Bring your own norm: the package derives, proves and writes what a layer of rows needs, from its definitions.

Modules in the order of reading: layer (what definitions say), naming (what stands within a line), backward (lines of
the gradients), program (what is read, saved and computed again), kernel_source (two Triton kernels as text), read_back
(what the text stores, proved), call and launch (torch), operator (`Fused`), gated
(gated_rms_norm, a layer made so).
"""

from .gated import gated_rms_norm
from .layer import NotFused
from .operator import Fused

__all__ = ["Fused", "NotFused", "gated_rms_norm"]
