"""What a compiled kernel needs, read from its machine code and from the assembly before it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_PTX_ACCESS = r"\b{}\.global(?:\.[a-zA-Z][\w:]*)*?(?:\.v(\d))?\.[bfsu](\d+)\b"
# cp.async loads into shared memory; its third operand is the number of bytes.
_PTX_ASYNC = (
    r"\bcp\.async\.c[ag]\.shared[\w.:]*\s*\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)"
)
_AMD_ACCESS = (
    r"\b(?:global|buffer|flat)_{}(?:_lds)?_(?:dword(?:x(\d))?|[us]?(short|byte))"
)
_AMD_SMALL = {"short": 16, "byte": 8}
# In PTX and in AMD's assembly.
_BARRIER = re.compile(r"\b(?:bar(?:rier)?(?:\.cta)?\.sync|s_barrier)\b")


@dataclass(frozen=True)
class Code:
    """Registers of a thread, bytes spilled to memory, the widest access to global memory in bits, and the assembly.

    assembly: "ptx" or "amdgcn", which text is
    """

    registers: int
    spilled_bytes: int
    load_bits: int
    store_bits: int
    assembly: str
    text: str

    @property
    def barriers(self) -> int:
        """At how many instructions the warps of a program wait for each other."""
        return len(_BARRIER.findall(self.text))


def ptx_widths(text: str) -> tuple[int, int]:
    """Bits of the widest load from and the widest store to global memory, in PTX of any version."""
    load, store = (
        [
            int(count or 1) * int(bits)
            for count, bits in re.findall(_PTX_ACCESS.format(kind), text)
        ]
        for kind in ("ld", "st")
    )
    load += [8 * int(count, 0) for count in re.findall(_PTX_ASYNC, text)]
    return max(load, default=0), max(store, default=0)


def amdgcn_widths(text: str) -> tuple[int, int]:
    """The same in AMD's assembly."""
    load, store = (
        [
            _AMD_SMALL.get(small) or 32 * int(count or 1)
            for count, small in re.findall(_AMD_ACCESS.format(kind), text)
        ]
        for kind in ("load", "store")
    )
    return max(load, default=0), max(store, default=0)


def tool(name: str) -> str:
    """One of NVIDIA's programs that come with Triton."""
    import triton

    return str(Path(triton.__file__).parent / "backends/nvidia/bin" / name)


def _nvidia(kernel) -> Code:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(kernel.asm["cubin"])
        command = [tool("cuobjdump"), "--dump-resource-usage", str(file)]
        usage = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
    used = {
        name: int(value)
        for name, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", usage)
    }
    text = kernel.asm["ptx"]
    return Code(
        used["REG"], used["STACK"] + used["LOCAL"], *ptx_widths(text), "ptx", text
    )


def _amd(kernel) -> Code:
    text = kernel.asm["amdgcn"]
    counted = {
        name: int(value)
        for name, value in re.findall(r"\.(vgpr_count|vgpr_spill_count): *(\d+)", text)
    }
    spilled = 4 * counted["vgpr_spill_count"]
    return Code(counted["vgpr_count"], spilled, *amdgcn_widths(text), "amdgcn", text)


def read(kernel) -> Code:
    """What a kernel that triton.compile returned needs."""
    return _nvidia(kernel) if "cubin" in kernel.asm else _amd(kernel)
