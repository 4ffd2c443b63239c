"""`python -m normgrad.bench compile` with any Triton from 3.2 on.

What a version cannot compile for, whatever the kernel, is left out and named in the file.
"""

from __future__ import annotations

import os
import re

os.environ["TRITON_INTERPRET"] = (
    "0"  # before anything imports triton, which reads it once
)

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from normgrad.bench import __main__ as command  # noqa: E402
from normgrad.bench import compile  # noqa: E402
from normgrad.bench.launches import POINTERS  # noqa: E402


@triton.jit
def _convert(from_ptr, to_ptr):
    tl.store(to_ptr, tl.load(from_ptr).to(tl.float32))


def refusal(target, pointer: str) -> str | None:
    """Why this Triton has no such GPU, or no such dtype on it; None where it compiles a kernel that only converts.

    Triton 3.2 knows no sm_100, has no linker of its own for gfx942, and on sm_75 no bfloat16.
    """
    ast_source = compile.source(
        _convert, {"from_ptr": pointer, "to_ptr": "*fp32"}, (), {}
    )
    try:
        # Triton 3.9 warns unless it is told whether to fuse.
        triton.compile(ast_source, target=target, options={"enable_fp_fusion": True})
    except Exception as error:
        # a RuntimeError, an Exception or a class of the backend, by version
        telling = re.search(
            r"[^;:\n]*(?:requires|not (?:defined|found|supported))[^;\n]*", str(error)
        )
        return telling[0].strip() if telling else repr(error)
    return None


def refusals(dtypes, targets) -> dict[str, str]:
    """{"GPU" or "dtype on GPU": why} for what this Triton cannot compile for."""
    reasons = {}
    for target in targets:
        gpu = compile.gpu_target(target)
        reasons[target] = refusal(gpu, POINTERS["float32"])
        if reasons[target] is None:
            reasons |= {
                f"{dtype} on {target}": refusal(gpu, POINTERS[dtype])
                for dtype in dtypes
            }
    return {name: why for name, why in reasons.items() if why}


def main() -> None:
    """The package's command, in the words of this Triton."""
    run = compile.run

    def run_without_refused(file, dtypes, targets, **options):
        return run(
            file,
            dtypes=dtypes,
            targets=targets,
            refused=refusals(dtypes, targets),
            **options,
        )

    compile.run = run_without_refused
    command.main()


if __name__ == "__main__":
    main()
