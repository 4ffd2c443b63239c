"""What the launchers would launch, on GPUs that need not be here, for every operator, dtype and row length in use.

The launchers themselves say so: they are called with tensors that have a shape and no memory, and each launch is
recorded where Triton would make it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..spec import L2_NORM, LAYER_NORM, RMS_NORM


@dataclass(frozen=True)
class Target:
    """A GPU as Triton names it, the shared memory that a block may have, in bytes, and its multiprocessors."""

    backend: str
    arch: int | str
    lanes: int
    shared_bytes: int
    multiprocessors: int


# Shared memory: CUDA C programming guide, table of compute capabilities; AMD CDNA3 instruction set (64 KiB of local
# data share). Multiprocessors: of T4, A100, L40S, H100, B200 and MI300X.
TARGETS = {
    "sm_75": Target("cuda", 75, 32, 64 << 10, 40),
    "sm_80": Target("cuda", 80, 32, 163 << 10, 108),
    "sm_89": Target("cuda", 89, 32, 99 << 10, 142),
    "sm_90": Target("cuda", 90, 32, 227 << 10, 132),
    "sm_100": Target("cuda", 100, 32, 227 << 10, 148),
    "gfx942": Target("hip", "gfx942", 64, 64 << 10, 304),
}


RMS = RMS_NORM.replace(eps=1e-6)
# A spec, and the dtype of the residual: None for none, x's own ("same") or one by name.
OPERATORS = {
    "layer_norm": (LAYER_NORM, None),
    "rms_norm": (RMS, None),
    "l2_norm": (L2_NORM, None),
    "add_layer_norm": (LAYER_NORM, "same"),
    "add_rms_norm": (RMS, "same"),
    "add_rms_norm_float32_residual": (RMS, "float32"),
}
DTYPES = ("bfloat16", "float16", "float32")
COLUMNS = (128, 512, 1001, 1024, 2048, 4096, 5120, 8192, 16384, 32768, 65536)
ROWS = 4096
POINTERS = {"bfloat16": "*bf16", "float16": "*fp16", "float32": "*fp32", "float64": "*fp64",
            "int8": "*i8", "uint8": "*u8", "float8_e4m3fn": "*fp8e4nv"}  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """One launch as Triton would see it.

    types: of the run-time arguments; multiples: those that 16 divides; constants: constexprs and what is as fixed as
    they are; options: warps and the like. All but multiples are (name, value) pairs.
    """

    kernel: object
    types: tuple
    multiples: tuple
    constants: tuple
    options: tuple


def compiler():
    """Triton, imported to compile; RuntimeError where this process has imported it to interpret."""
    os.environ.setdefault("TRITON_INTERPRET", "0")
    from ..triton_kernels import INTERPRETED

    if INTERPRETED:
        raise RuntimeError(
            "TRITON_INTERPRET: got 1, needs 0 in a process that has not imported triton yet"
        )
    import triton

    return triton


def launches(operator: str, dtype: str, columns: int, target: str) -> list[Launch]:
    """What forward and backward of an operator launch for rows of a length on a GPU.

    Args:  operator: one of OPERATORS; dtype: of input and parameters; columns N; target: one of TARGETS
    """
    import torch

    compiler()
    from ..triton_kernels import launch

    spec, residual_dtype = OPERATORS[operator]
    if residual_dtype == "same":
        residual_dtype = dtype

    def empty(*shape, dtype=dtype):
        return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")

    x, dy = empty(ROWS, columns), empty(ROWS, columns)
    residual = residual_dtype and empty(ROWS, columns, dtype=residual_dtype)
    weight = None if spec == L2_NORM else empty(columns)
    bias = empty(columns) if spec == LAYER_NORM else None

    def run():
        _, p, mean, rstd = launch.forward(x, weight, bias, residual, spec)
        dtypes = [None if t is None else t.dtype for t in (x, residual, weight, bias)]
        launch.backward(dy, p, x if p is None else p, weight, mean, rstd, spec, dtypes)

    return recorded(run, target)


def recorded(run, target: str) -> list[Launch]:
    """What a function that is given tensors without memory would launch on a GPU."""
    jitted, recorded_launches = compiler().JITFunction, []
    from ..triton_kernels import configuration

    device = configuration.Device(
        TARGETS[target].multiprocessors, TARGETS[target].shared_bytes
    )
    originals = jitted.run, configuration.device_of, configuration.MOST_WARPS

    def run_recorded(kernel, *arguments, grid, warmup, **options):
        recorded_launches.append(_seen(kernel, arguments, options))

    jitted.run = run_recorded
    configuration.device_of = lambda tensor: device
    configuration.MOST_WARPS = configuration.MOST_THREADS // TARGETS[target].lanes
    try:
        run()
    finally:
        jitted.run, configuration.device_of, configuration.MOST_WARPS = originals
    return recorded_launches


def _seen(kernel, arguments, options) -> Launch:
    """A launch's arguments, specialized as Triton's own launcher does."""
    import torch

    types, multiples, constants = {}, [], {}
    for parameter, value in zip(kernel.params, arguments, strict=False):
        free, name = parameter.do_not_specialize, parameter.name
        if isinstance(value, torch.Tensor):
            # torch's allocator hands out addresses that are multiples of 512
            types[name], multiples = (
                POINTERS[str(value.dtype).removeprefix("torch.")],
                [*multiples, name],
            )
        elif value is None or (value == 1 and not free):
            constants[name] = value
        else:
            types[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if (
                value % 16 == 0
                and not free
                and not parameter.do_not_specialize_on_alignment
            ):
                multiples.append(name)
    constants |= {
        name: value for name, value in options.items() if name in kernel.arg_names
    }
    options_left = [
        (name, value) for name, value in options.items() if name not in constants
    ]
    return Launch(
        kernel,
        tuple(types.items()),
        tuple(multiples),
        tuple(constants.items()),
        tuple(options_left),
    )


def variants(operators, dtypes, columns, targets) -> dict:
    """{(launch, target): (operator, dtype, columns)}, each variant once, with the first that launches it."""
    first_uses = {}
    for target in targets:
        for operator in operators:
            for dtype in dtypes:
                for n in columns:
                    for launch in launches(operator, dtype, n, target):
                        first_uses.setdefault((launch, target), (operator, dtype, n))
    return first_uses
