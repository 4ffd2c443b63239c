"""Right kernels in the house styles of published packages, and wrong ones, from tables of text.

KERNELS: {name: (text, binding, grid, definitions)}, where the text lacks its imports
ATTACKS: {name: [(what is there, what stands there instead, why it is wrong)]}; what is right says so
MISFITS: {kind: rows} of what stands around a kernel
"""

from tables import blocks, claims, edits, lines, value

from normgrad.symbolic import Defs, total
from normgrad.symbolic.symbols import j
from normgrad.verify import M, N, Norm
from normgrad.verify.definitions import tensor

HEAD = """import triton
import triton.language as tl
from triton.language.extra.libdevice import rsqrt

LLAMA: tl.constexpr = tl.constexpr(0)

"""
PART = tensor("part", M, N)
SUM = Norm(Defs(), {"sum": tensor("sum", N)[j]})
SUM.defs[SUM.outputs["sum"]] = total(M, lambda r: PART[r, j])

KERNELS = {
    name: (f"\n{text}\n", *value(launch, SUM=SUM))
    for name, launch, text in blocks("verify_kernels.txt")
}
ROW = KERNELS["a program for each row"][0]
ATTACKS = {name: [] for name in KERNELS}
for name, _, line in claims("verify_attacks.txt"):
    edit, _, why = line.partition(" -- ")
    ATTACKS[name].append((*edits(edit)[0], why))
MISFITS = {}
for kind, _, line in claims("verify_misfits.txt"):
    MISFITS.setdefault(kind, []).append(lines(line))
# What stands beside the kernel in its module, after a helper `inv` that it calls: statements may change a name of it.
HELPED = """
@triton.jit
def inv(v):
    return 1 / tl.sqrt(v)


@triton.jit
def inv2(v):
    return tl.sqrt(v)

""" + ROW.replace("rsqrt(square + eps)", "inv(square + eps)")
UNCHANGED = """
class Options:
    def __init__(self, rows):
        object.__setattr__(self, "rows", rows)
        self.fn = rows


FAST = getattr(tl, "rsqrt", None) is not None
"""
