"""What differs between the versions of Triton, 3.2 to 3.9, when a kernel is compiled without being launched."""

from __future__ import annotations

import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

try:  # Triton 3.2
    from triton.backends.compiler import AttrsDescriptor
except ImportError:
    AttrsDescriptor = None


def source(kernel, types, multiples, constants) -> ASTSource:
    """A kernel and what is known of its arguments, as the compiler of this version takes them.

    Args:  types: {argument: Triton's name of its type}; multiples: the arguments that 16 divides; constants: {argument:
           value}, for constexprs, for None and for integers that are 1
    """
    names = kernel.arg_names
    if AttrsDescriptor is not None:
        # Constants by name and out of the signature; what divides an argument by its place.
        return ASTSource(kernel, dict(types), dict(constants), AttrsDescriptor.from_hints(
            {names.index(name): 16 for name in multiples}
        ))  # fmt: skip
    kinds = {name: types.get(name, "constexpr") for name in names}
    places = {(names.index(name),): value for name, value in constants.items()}
    return ASTSource(kernel, kinds, places, {(names.index(name),): [["tt.divisibility", 16]] for name in multiples})


@triton.jit
def _convert(from_ptr, to_ptr):
    tl.store(to_ptr, tl.load(from_ptr).to(tl.float32))


def refusal(target: GPUTarget, pointer: str) -> str | None:
    """Why this Triton has no such GPU, or no such dtype on it; None where it compiles a kernel that only converts.

    Triton 3.2 knows no sm_100, has no linker of its own for gfx942, and on sm_75 no bfloat16.
    """
    made = source(_convert, {"from_ptr": pointer, "to_ptr": "*fp32"}, (), {})
    try:
        # Triton 3.9 warns unless it is told whether to fuse.
        triton.compile(made, target=target, options={"enable_fp_fusion": True})
    except Exception as error:  # a RuntimeError, an Exception or a class of the backend, by version
        telling = re.search(r"[^;:\n]*(?:requires|not (?:defined|found|supported))[^;\n]*", str(error))
        return telling[0].strip() if telling else repr(error)
    return None
