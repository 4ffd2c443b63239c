"""A program is an equation: it is read from its text and proved for every M and N, or its wrong term is named.

verify(kernel, binding, grid, definitions) reads a Triton kernel; it is not run. One of six verdicts comes out:

- proved for every M and N: what is stored is the definition, under the assumptions that are printed;
- proved if masked lanes hold 0: it is, if a masked load without `other` gives 0, which Triton leaves open;
- equal at the sizes tried: not shown for other sizes;
- wrong in itself: whatever the definitions, it reads or writes past the end, leaves out places, or its result depends
  on the launcher's choice of a block;
- refuted: it stores something else: the difference, term by term, and values where the two differ;
- not read: the first line that is not followed, and why. Nothing is said then about the kernel.

What is trusted, and no more:

1. The binding and the grid, all of which the verdict repeats: shapes, strides, sizes, flags, the blocks' promises.
2. Numbers are exact. A cast between dtypes of floating point changes digits only; all other casts of numbers, bitcasts
   and narrow integers are refused. Integers do not overflow.
3. Different arguments do not overlap in memory. A program reads again what it stored before.
4. Two `tl.arange` of one length are one row of lanes. `tl.sum`, `tl.where`, masks and broadcasting are as documented;
   an unknown function or argument is refused. A name that is imported from elsewhere is what its last part says.
5. The table of `places`: which rows or columns an index covers once, in one program and in all together.
6. The rules of `sums`: a sum counts where every tile is in it once; until then it may only be added to its like, or
   multiplied by what stands outside it. Of what a loop carries, each turn may only add, or move by one step.
7. `nan` for what is not known, in the lanes past the end: it is neither summed nor stored, times 0 neither.
8. The prover of normgrad.symbolic, and the definitions, whose gradients a test proves.
"""

from ..symbolic.symbols import M, N, eps
from .api import verify
from .binding import (
    CHUNK,
    COLUMNS,
    FLOAT,
    PROGRAM_COUNT,
    ROWS,
    WHOLE,
    InOut,
    Out,
    T,
)
from .definitions import OFFSET, Norm, norm
from .verdict import Verdict

__all__ = [
    "CHUNK",
    "COLUMNS",
    "FLOAT",
    "M",
    "N",
    "OFFSET",
    "PROGRAM_COUNT",
    "ROWS",
    "WHOLE",
    "InOut",
    "Norm",
    "Out",
    "T",
    "Verdict",
    "eps",
    "norm",
    "verify",
]
