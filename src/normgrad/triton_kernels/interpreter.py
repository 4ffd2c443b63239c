"""Triton itself, imported to compile where there is a GPU and to interpret where there is none.

In the interpreter the kernels are run by NumPy, block by block: slow, and the same arithmetic.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

import torch

if "triton" not in sys.modules and not torch.cuda.is_available():
    # Triton chooses between compiler and interpreter once, when it is first imported.
    os.environ.setdefault("TRITON_INTERPRET", "1")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

INTERPRETED = not isinstance(tl.sum, triton.JITFunction)
# The interpreter keeps the running program's place in one global.
ONE_AT_A_TIME = threading.RLock() if INTERPRETED else contextlib.nullcontext()


def check_device(device):
    """An error, with the remedy, where the kernels cannot run on the device as Triton was imported."""
    if device.type not in ("cuda", "cpu"):
        raise ValueError(
            f"backend: 'triton' got a {device.type} tensor, needs one on a CUDA device or the CPU"
        )
    if device.type != "cuda" and not INTERPRETED:
        raise RuntimeError(
            f"backend: 'triton' on a {device.type} tensor needs Triton's interpreter, but triton was imported to "
            "compile; set the environment variable TRITON_INTERPRET=1 before the process first imports triton"
        )
