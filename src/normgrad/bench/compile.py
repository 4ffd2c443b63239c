"""Every kernel variant, compiled for GPUs that need not be here: registers, spills, shared memory, width of access.

The launchers themselves say what they would launch: they are called with tensors that have a shape and no memory, and
each launch is recorded instead of made.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from ..spec import L2_NORM, LAYER_NORM, RMS_NORM

# Backend, architecture, lanes of a warp, and the shared memory a block may have, in bytes (CUDA C programming guide,
# table of compute capabilities; AMD CDNA3 instruction set: 64 KiB of local data share).
TARGETS = {
    "sm_75": ("cuda", 75, 32, 64 << 10),
    "sm_80": ("cuda", 80, 32, 163 << 10),
    "sm_89": ("cuda", 89, 32, 99 << 10),
    "sm_90": ("cuda", 90, 32, 227 << 10),
    "sm_100": ("cuda", 100, 32, 227 << 10),
    "gfx942": ("hip", "gfx942", 64, 64 << 10),
}
# The spec, and whether there is a residual.
OPERATORS = {
    "layer_norm": (LAYER_NORM, False),
    "rms_norm": (RMS_NORM.replace(eps=1e-6), False),
    "l2_norm": (L2_NORM, False),
    "add_layer_norm": (LAYER_NORM, True),
    "add_rms_norm": (RMS_NORM.replace(eps=1e-6), True),
}
DTYPES = ("bfloat16", "float16", "float32")
COLUMNS = (128, 512, 1024, 4096, 8192, 65536)
ROWS, MULTIPROCESSORS = 4096, 132


@dataclass(frozen=True)
class Launch:
    """One launch as Triton would see it: argument types, which of them are multiples of 16, constants, options."""

    kernel: object
    signature: tuple
    multiples: tuple
    constants: tuple
    options: tuple


@dataclass(frozen=True)
class Record:
    """What a compiled variant needs; load_bits and store_bits are the widest access to global memory."""

    kernel: str
    operator: str
    dtype: str
    columns: int
    target: str
    warps: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    shared_limit: int
    load_bits: int
    store_bits: int


def _kernels():
    """The kernels as the compiler takes them; RuntimeError where Triton was imported to interpret."""
    os.environ.setdefault("TRITON_INTERPRET", "0")
    from .. import triton_kernels

    if triton_kernels.INTERPRETED:
        raise RuntimeError("TRITON_INTERPRET: got 1, needs 0 in a process that has not imported triton yet")
    return triton_kernels


def launches(operator: str, dtype: str, columns: int) -> list[Launch]:
    """What forward and backward of an operator launch for rows of a length.

    Args:  operator: one of OPERATORS; dtype: of input, residual and parameters; columns N
    """
    import torch

    kernels, (spec, has_residual), found = _kernels(), OPERATORS[operator], []
    x, w = (torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape in ((ROWS, columns), (columns,)))
    residual, bias = x if has_residual else None, w if spec is LAYER_NORM else None
    weight = None if operator == "l2_norm" else w
    originals = kernels._launch, kernels._programs
    kernels._launch = lambda kernel, grid, *arguments, **options: found.append(_launch(kernel, arguments, options))
    kernels._programs = lambda m, device: min(m, kernels.PROGRAMS_PER_MULTIPROCESSOR * MULTIPROCESSORS)
    try:
        _, p, mean, rstd = kernels.forward(x, weight, bias, residual, spec)
        p = x if p is None else p
        kernels.backward(x, residual, p, weight, mean, rstd, spec, True, weight is not None, bias is not None)
    finally:
        kernels._launch, kernels._programs = originals
    return found


def _launch(kernel, arguments, options):
    import torch

    pointers = {torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32", torch.float64: "*fp64"}
    kinds = [pointers[a.dtype] if isinstance(a, torch.Tensor) else "i32" for a in arguments]
    # torch's allocator hands out addresses that are multiples of 512
    multiples = [place for place, a in enumerate(arguments) if isinstance(a, torch.Tensor) or a % 16 == 0]
    constants = {name: value for name, value in options.items() if name in kernel.arg_names}
    others = {name: value for name, value in options.items() if name not in constants}
    return Launch(kernel, tuple(kinds), tuple(multiples), tuple(constants.items()), tuple(others.items()))


def compiled(launch: Launch, target: str):
    """The launch's kernel, compiled for a target; no GPU is needed."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names, constants = launch.kernel.arg_names, dict(launch.constants)
    kinds = dict(zip(names, launch.signature, strict=False)) | dict.fromkeys(constants, "constexpr")
    values = {(names.index(name),): value for name, value in constants.items()}
    attributes = {(place,): [["tt.divisibility", 16]] for place in launch.multiples}
    source = ASTSource(launch.kernel, {name: kinds[name] for name in names}, values, attributes)
    return triton.compile(source, target=GPUTarget(*TARGETS[target][:3]), options=dict(launch.options))


def _widest(text, pattern):
    widths = [int(count or 1) * int(bits) for count, bits in re.findall(pattern, text)]
    return max(widths, default=0)


def _nvidia(made):
    """(registers, spilled bytes, load bits, store bits), the first two from the machine code."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(made.asm["cubin"])
        command = [str(tool), "--dump-resource-usage", str(file)]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = {name: int(value) for name, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", usage)}
    access = r"\b{}\.global(?:\.[a-zA-Z][\w:]*)*?(?:\.v(\d))?\.[bfsu](\d+)\b"
    widths = [_widest(made.asm["ptx"], access.format(kind)) for kind in ("ld", "st")]
    return used["REG"], used["STACK"] + used["LOCAL"], *widths


def _amd(made):
    text = made.asm["amdgcn"]
    counted = {name: int(value) for name, value in re.findall(r"\.(vgpr_count|vgpr_spill_count): *(\d+)", text)}
    counts = [re.findall(rf"(?:global|buffer|flat)_{kind}_dword(?:x(\d))?", text) for kind in ("load", "store")]
    widths = [max((32 * int(count or 1) for count in found), default=0) for found in counts]
    return counted["vgpr_count"], 4 * counted["vgpr_spill_count"], *widths


def record(launch: Launch, operator: str, dtype: str, columns: int, target: str) -> Record:
    """Compile one launch and read the result."""
    made = compiled(launch, target)
    registers, spilled, load_bits, store_bits = (_nvidia if TARGETS[target][0] == "cuda" else _amd)(made)
    name, warps, limit = launch.kernel.__name__, made.metadata.num_warps, TARGETS[target][3]
    shared = made.metadata.shared
    return Record(
        name, operator, dtype, columns, target, warps, registers, spilled, shared, limit, load_bits, store_bits
    )


def run(file, operators=OPERATORS, dtypes=DTYPES, columns=COLUMNS, targets=TARGETS):
    """Compile what the operators launch, each variant once a target, and write one record for each into a JSON file."""
    seen = {}
    for operator in operators:
        for dtype in dtypes:
            for n in columns:
                for launch in launches(operator, dtype, n):
                    seen.setdefault(launch, (operator, dtype, n))
    records = []
    for number, (launch, where) in enumerate(seen.items(), start=1):
        records += [asdict(record(launch, *where, target)) for target in targets]
        print(f"\r{number} of {len(seen)} variants", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    import triton

    Path(file).write_text(json.dumps({"triton": triton.__version__, "records": records}, indent=1) + "\n")
    spilling = sum(one["spilled_bytes"] > 0 for one in records)
    print(f"{len(records)} compiled kernels, {spilling} of them spill registers")
