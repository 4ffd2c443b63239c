"""A program is an equation: it is read from its text and proved for every M and N, or its wrong term is named.

verify(kernel, binding, grid, definitions) reads a Triton kernel; it is not run. verify(kernel, binding, definitions)
reads a kernel in loops, such as Numba's. verify(function, definitions) reads a NumPy or torch function, or an autograd
Function. A text or a file is only read. A function object is run after it is proved or refuted, at small sizes, and
what a run contradicts is neither; run=False leaves that out, run=True executes a function's text as well. One of five
verdicts:

A function that launches kernels is read with them: `kernel[grid](...)` binds what it hands in, and what the kernel
stores is what the function returns. verify("kernels.py::rms_norm", norm()) reads a file and those of its package. The
first line says for which strides and shapes, and on which sizes an error is raised instead.

- proved for every M and N: what is stored is the definition, under the assumptions that are printed;
- proved if masked lanes hold 0: it is, if a masked load without `other` gives 0, which Triton leaves open;
- wrong in itself: whatever the definitions, it does not compile, reads or writes past the end, leaves out places, or
  its result depends on the launcher's choice of a block;
- refuted: it stores something else: the difference, term by term, and a small input for which the two differ;
- not read: the first line that is not followed, and why, or what could not be decided. Nothing is said then about it,
  nor about what differs by less than 1e-7 of its size, as a rounded number in the text does.

What is trusted, and no more:

1. The binding and the grid, all of which the verdict repeats: shapes, strides, sizes, flags, the blocks' promises. A
   number in the grid is that of the one program that is looked at, and no count: it accuses no kernel that asks for it.
2. Numbers are exact. A cast between dtypes of floating point changes digits only; all other casts of numbers, bitcasts
   and narrow integers are refused. Tensors are of dtypes with which a kernel compiles. Integers have Triton's widths:
   a program's number, a lane, an argument and what is made of them are int32 until they are cast. The first line says
   where none of them wraps, as `with M*stride < 2^31 (line 9)`, for rows below M and columns below N. A size, stride or
   argument alone is taken to be below 2^31, also with blocks or programs added. It says as well where digits
   are lost whatever the dtypes: in sums and statistics below float32, in a value that is rounded to 16 bits and used,
   in a variance mean(x**2) - mean(x)**2 however it is written, in exp(x) / sum(exp(x)). A store is no use. An
   argument, or x + residual, may be of 16 bits itself, so a cast of it is not said.
3. Different arguments do not overlap in memory, nor do the rows of an output. A program reads again what it stored;
   for a number without lanes the first line says where no barrier stands between, as another thread may store it.
4. Two `tl.arange` of one length are one row of lanes. `tl.sum`, `tl.where`, masks and broadcasting are as documented;
   an unknown function or argument is refused. A name that is imported from elsewhere is what its last part says; what
   the text itself may bind again is refused, and so is a decorator besides jit, libentry, and heuristics and autotune
   whose values stand in the text. What a default, a flag or an argument that is not bound decides is in the claim.
5. The table of `places`: which rows or columns an index covers once, in one program and in all together.
6. The rules of `sums`: a sum counts where every tile is in it once; until then it may only be added to its like, or
   multiplied by what stands outside it. Of what a loop carries, each turn may only add, or move by one step; a mean and
   its sum of squares are proved by `welford`, by induction.
7. `nan` for what is not known, in the lanes past the end: it is neither summed nor stored, times 0 neither. The
    largest of a row, and of all tiles up to one, is any number, which may be another one at each turn (`maxima`); so is
    the first entry of a row of an array.
8. The prover of normgrad.symbolic, and the definitions, whose gradients a test proves.

Of a kernel in loops 1, 2, 3 and 8 hold, and every program runs once; all programs together take each row once in
`range(M * program // programs, M * (program + 1) // programs)`, and nowhere else may a program depend on its number.
The package's own `load`, `store`, `row`, `own`, `held` and `send` are what they say. Of a NumPy or torch function 2
and 8 hold, and:

9. Its arguments have the shapes that the verdict prints and one dtype of floats; they are what they are called, such as
   rstd the definitions' rstd, or what the caller says, as rms="1/rstd[:, None]" or, bound to a kernel's argument,
   T("1/rstd", "i"). Of what a module holds besides functions, numbers are as they are now. A name that says nothing,
   as a_2, is guessed in the order of the field: a proof alone is told of a guess, and says it. A backward that takes
   what its forward returns beside y, as in `layernorm_backward(dout, cache)`, is read after it, with its arguments. Of
   a class of no base __init__, forward (or its __call__) and backward are called in turn; its arrays np.ones(size) are
   parameters, and what its backward stores as self.dw, self.d_gamma and the like are gradients.
10. The statements and expressions of `interpreter`, the rows of `tables`, and the arrays of `arrays`, in which no
   size is ever put in. What is not known there is refused: a keyword, a branch on a size, a loop over some rows. What
   a loop writes, it reads at the same turn alone. What the `__init__` of a layer makes lasts from call to call: forward
   looks into it, and does not change it.
11. Where values are compared, the two sides differ; what is divided by is not 0: the first line of the verdict says
   both. Such a condition leaves out single points: one that leaves out more, as Max(x, 0) not 0 does, is refused.

Where no argument is eps, a program that writes a number for it is compared with the definitions at this number, and
the first line says which. A function without gradients may be compared with another function: its results in order.

Of a function that launches kernels 2 to 11 hold, and:

12. Strides and sizes are what the call hands in; columns and vectors lie side by side. A tensor of three axes is taken
    as (B, T, N) with M = B T where the function refuses two, and vectors as (T, N), one for each t, where those do not
    fit. A block, or a number of programs, is any: a proof holds for all. Too few programs, a block that is no power of
    2, and rows or columns that are left out are wrong in itself, unless another statement may write what is left out;
    so is what Triton 3.7.1 does not compile. A tile has at most 2^20 lanes: for a longer row none is compiled.
    Where a launcher writes in place, the first line says over which arguments it may write. The lock of Triton's
    tutorial is read as it stands in locks.py; where no barrier stands before it is given back, the first line says so.
    What a package decides elsewhere may be said, as helpers={"dispatch": "lambda f: f"}: the first line repeats it.
13. All imports succeed, those in a `try`, too; a text that imports nothing has the usual ones of np, torch, nn, F,
    math, triton and tl. A statement of the module that is not read leaves its names unread. It is taken to raise no
    error and to change nothing that is read, and so are other files of a package. One that calls what may change
    another function, or a state of a library, is refused. Tensors are on a GPU of NVIDIA's.

README.md follows a kernel and a function through the files of this package, and says which program each rule stops.
"""

from ..symbolic.symbols import M, N, eps
from .binding import (
    CHUNK,
    COLUMNS,
    FLOAT,
    LIMIT,
    PROGRAM,
    PROGRAM_COUNT,
    ROWS,
    WHOLE,
    Filled,
    InOut,
    Out,
    T,
)
from .definitions import OFFSET, Norm, cross_entropy, log_softmax, norm, softmax
from .front import verify
from .verdict import Verdict

__all__ = [
    "CHUNK",
    "COLUMNS",
    "FLOAT",
    "LIMIT",
    "M",
    "N",
    "OFFSET",
    "PROGRAM",
    "PROGRAM_COUNT",
    "ROWS",
    "WHOLE",
    "Filled",
    "InOut",
    "Norm",
    "Out",
    "T",
    "Verdict",
    "cross_entropy",
    "eps",
    "log_softmax",
    "norm",
    "softmax",
    "verify",
]
