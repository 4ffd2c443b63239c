"""Kernels as text: right ones, written in different ways, and wrong ones that look right to a careless reader.

A wrong one is an edit of a right one, and computes something else for some rows, launch or number of columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from homework_solutions import of_source
from sympy import S, sqrt, tanh
from tables import claims, parts

from normgrad.mistakes.edits import edited
from normgrad.symbolic import Defs
from normgrad.symbolic.symbols import eps
from normgrad.verify import (
    COLUMNS,
    ROWS,
    WHOLE,
    InOut,
    M,
    N,
    Norm,
    Out,
    T,
    norm,
    verify,
)
from normgrad.verify.binding import PROGRAM, PROGRAM_COUNT
from normgrad.verify.definitions import at, columns, entry, rows


def defined(**formulas):
    """Defs of formulas by name."""
    defs = Defs()
    for name, formula in formulas.items():
        defs[entry(name)] = formula
    return defs


RMS, ADDED = norm().defs, norm(residual=True).defs
IDENTITY = defined(y=at.x)
SQUARES = columns(at.x**2)
L2 = defined(y=at.x / sqrt(SQUARES))
CLAMPED = norm(reduce="sum", placement="clamp").defs
Y, RSTD, GRADIENTS = dict(y="y"), dict(rstd="rstd"), dict(dx="dx", dw="dw")


@dataclass(frozen=True)
class Program:
    """A kernel as text, and what it is to store.

    Args:  text: its module, of a Triton kernel or of loops
           outputs: {argument: the definition that it is to hold}, of one that held another: InOut
    """

    text: str
    outputs: dict
    defs: Defs

    def edited(self, *edits: tuple[str, str], **changes) -> Program:
        """The program after each edit (old, new), of a text that it has once; changes: of its other fields."""
        return replace(self, text=edited(self.text, edits, "program"), **changes)

    @property
    def is_triton(self):
        """Whether it is a Triton kernel, and no loop."""
        return "tl." in self.text

    def launch(self):
        """(text, binding, grid, definitions) of a Triton kernel; loops have no grid."""
        header = re.search(r"def kernel\((.*)\)", self.text)[1]
        names = header.replace(": tl.constexpr", "").split(", ")
        binding = {}
        for name in names:
            tensor = name.removesuffix("_ptr")
            output = self.outputs.get(tensor)
            if name in VALUES:
                binding[name] = VALUES[name]
            elif output == "dw" and {"program", "M"} & {*names}:
                binding[name] = Out("dw", "p, j")
            elif output == tensor:
                binding[name] = Out(output)
            elif output:
                binding[name] = InOut(tensor, then=output)
            elif tensor != name or not self.is_triton:
                binding[name] = T(tensor)
        definitions = Norm(self.defs, {o: entry(o) for o in self.outputs.values()})
        grid = "programs" if "M" in names else "rows"
        if "ROWS" in names:
            grid = "row tiles"
            binding["BLOCK"] = COLUMNS
        text = re.sub(r"^def ", "@triton.jit\ndef ", self.text, flags=re.MULTILINE)
        return HEAD + text, binding, grid, definitions

    def verdict(self, run):
        """The Verdict of its reader; run: whether a proof of loops is confronted with a run."""
        text, binding, grid, definitions = self.launch()
        if not self.is_triton:
            kernel = of_source(f"import numpy as np\n{self.text}")["kernel"]
            return verify(kernel, binding, definitions, run=run)
        helpers = {"cast(value, DTYPE)": "value"} if "ROWS" in binding else {}
        return verify(
            text, binding, grid, definitions, kernel="kernel", helpers=helpers
        )


VALUES = {
    "M": M,
    "N": N,
    "EPS": eps,
    "eps": eps,
    "BLOCK": WHOLE,
    "ROWS": ROWS,
    "program": PROGRAM,
    "programs": PROGRAM_COUNT,
}
HEAD = """
import triton
import triton.language as tl
from normgrad.triton_kernels.arithmetic import load_tile, store_tile
"""

FORWARD = Program(
    """
def kernel(x_ptr, weight_ptr, y_ptr, N, EPS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / N + EPS)
    y = x * rstd * weight
    tl.store(y_ptr + row * N + cols, y, mask=mask)
""",
    Y,
    RMS,
)
COPY = Program(
    """
def kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    a = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
    tl.store(y_ptr + row * N + cols, a, mask=mask)
""",
    Y,
    IDENTITY,
)
BACKWARD = Program(
    """
def kernel(dy_ptr, x_ptr, weight_ptr, rstd_ptr, dx_ptr, dw_ptr, M, N, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    weight = tl.load(weight_ptr + cols, mask=mask, other=0)
    dw = tl.zeros_like(weight)
    for row in range(program, M, tl.num_programs(0)):
        dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0)
        x = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
        rstd = tl.load(rstd_ptr + row)
        x_hat = x * rstd
        wdy = weight * dy
        c1 = tl.sum(x_hat * wdy, axis=0) / N
        dx = rstd * (wdy - x_hat * c1)
        tl.store(dx_ptr + row * N + cols, dx, mask=mask)
        dw += dy * x_hat
    tl.store(dw_ptr + program * N + cols, dw, mask=mask)
""",
    GRADIENTS,
    RMS,
)
IN_PLACE = Program(
    """
def kernel(x_ptr, residual_ptr, weight_ptr, y_ptr, N, EPS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
    residual = tl.load(residual_ptr + row * N + cols, mask=mask, other=0)
    tl.store(residual_ptr + row * N + cols, x + residual, mask=mask)
    p = tl.load(residual_ptr + row * N + cols, mask=mask, other=0)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0)
    rstd = 1 / tl.sqrt(tl.sum(p * p, axis=0) / N + EPS)
    tl.store(y_ptr + row * N + cols, p * rstd * weight, mask=mask)
""",
    dict(y="y", residual="residual_out"),
    ADDED,
)
SWEEPS = Program(
    """
def kernel(x_ptr, y_ptr, M, N, EPS, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = load_tile(x_ptr, rows, cols, M, N, N, 1)
        squares += x * x
    norm = tl.sqrt(tl.sum(squares, axis=1))
    for start in tl.range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = load_tile(x_ptr, rows, cols, M, N, N, 1)
        store_tile(y_ptr, x / tl.where(rows < M, norm, 1)[:, None], rows, cols, M, N)
""",
    Y,
    L2,
)
CLAMP = Program(
    """
def kernel(x_ptr, rstd_ptr, N, EPS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0)
    s = tl.sqrt(tl.sum(x * x, axis=0))
    rstd = 1 / tl.where(s > EPS, s, EPS)
    most = 2.0**511 if rstd.dtype == tl.float64 else 2.0**63
    tl.store(rstd_ptr + row, tl.where((rstd > 0) & (rstd <= most), rstd, float("nan")))
""",
    RSTD,
    CLAMPED,
)
LOOPS = Program(
    """
def kernel(program, programs, x, weight, y, eps):
    M, N = x.shape
    for i in range(M * program // programs, M * (program + 1) // programs):
        squares = np.float32(0)
        for j in range(N):
            squares += x[i, j] * x[i, j]
        rstd = 1 / np.sqrt(squares / N + eps)
        for j in range(N):
            y[i, j] = x[i, j] * rstd * weight[j]
""",
    Y,
    RMS,
)
LOOP_COPY = Program(
    """
def kernel(program, programs, x, y):
    M, N = x.shape
    for i in range(M * program // programs, M * (program + 1) // programs):
        for j in range(N):
            a = x[i, j]
            y[i, j] = a
""",
    Y,
    IDENTITY,
)
LOOP_CLAMP = Program(
    """
def kernel(program, programs, x, rstd, eps):
    M, N = x.shape
    for i in range(M * program // programs, M * (program + 1) // programs):
        squares = np.float32(0)
        for j in range(N):
            squares += x[i, j] * x[i, j]
        s = np.sqrt(squares)
        rstd[i] = 1 / (s if s > eps else eps)
""",
    RSTD,
    CLAMPED,
)
LOOP_BACKWARD = Program(
    """
def kernel(program, programs, dy, x, weight, rstd, dx, dw):
    M, N = x.shape
    for i in range(M * program // programs, M * (program + 1) // programs):
        c1 = np.float32(0)
        for j in range(N):
            c1 += weight[j] * dy[i, j] * x[i, j] * rstd[i]
            dw[program, j] += dy[i, j] * x[i, j] * rstd[i]
        for j in range(N):
            dx[i, j] = rstd[i] * (weight[j] * dy[i, j] - x[i, j] * rstd[i] * c1 / N)
""",
    GRADIENTS,
    RMS,
)

LOOP_BACKWARD_ALONE = LOOP_BACKWARD.edited(
    ("kernel(program, programs, ", "kernel("),
    ("range(M * program // programs, M * (program + 1) // programs)", "range(M)"),
    ("dw[program, j]", "dw[j]"),
)

LOADED = "    a = tl.load(x_ptr + row * N + cols, mask=mask, other=0)\n"
AT = "row * N + cols"
STORE_DX = "        tl.store(dx_ptr + row * N + cols, dx, mask=mask)\n"
DY_AGAIN = "dy = tl.load(dy_ptr + row * N + cols, mask=mask, other=0)\n"
OVER_DY = BACKWARD.edited(
    (
        f"{STORE_DX}        dw += dy * x_hat\n",
        f"{STORE_DX}        {DY_AGAIN}        dw += dy * x_hat\n",
    ),
    ("tl.store(dx_ptr", "tl.store(dy_ptr"),
    outputs=dict(dy="dx", dw="dw"),
)
TANH_COPY = COPY.edited(defs=defined(y=tanh(at.x)))
TWICE_X = COPY.edited(
    (LOADED, f"{LOADED}    tl.store(x_ptr + {AT}, 2 * a, mask=mask)\n{LOADED}"),
    outputs=dict(x="x_hat", y="y"),
    defs=defined(y=at.x, x_hat=2 * at.x),
)


def edited_programs(kind):
    """{what it is: the program} of a kind of verify_programs.txt."""
    return {
        about: globals()[base].edited(*pairs)
        for base, note, line in claims("verify_programs.txt")
        for about, pairs, _ in [parts(line)]
        if note == kind
    }


OF_PROGRAM = "range(M * program // programs, M * (program + 1) // programs)"
TOTAL = """
    total = np.float32(0)
    for k in range(M):
        total += rstd[k]
"""
LOOP_TOTAL = Program(
    f"""
def kernel(program, programs, x, rstd, y):
    M, N = x.shape
    for i in {OF_PROGRAM}:
        squares = np.float32(0)
        for j in range(N):
            squares += x[i, j] * x[i, j]
        rstd[i] = squares{TOTAL}
    for i in {OF_PROGRAM}:
        for j in range(N):
            y[i, j] = x[i, j] * total
""",
    dict(rstd="c1", y="y"),
    defined(c1=SQUARES, y=at.x * rows(SQUARES)),
)
# {what is wrong: the program}: a kernel that computes something else, and none of them may be proved.
WRONG = {
    "dw is taken from dy after dx is written over it": OVER_DY,
    "wdy is written over dy, and dw is taken from it": BACKWARD.edited(
        (
            "        wdy = weight * dy\n",
            f"        tl.store(dy_ptr + {AT}, weight * dy, mask=mask)\n        wdy = weight * dy\n",
        ),
        (
            "        dw += dy * x_hat\n",
            f"        {DY_AGAIN}        dw += dy * x_hat\n",
        ),
        outputs=GRADIENTS | dict(dy="wdy"),
    ),
    "2x is stored over x, and x is read again": TWICE_X,
    "y is 0 when it is read": COPY.edited(
        (
            LOADED,
            f"    tl.store(y_ptr + {AT}, 0 * cols, mask=mask)\n{LOADED.replace('x_ptr', 'y_ptr')}",
        ),
        (f"y_ptr + {AT}, a", f"x_ptr + {AT}, a"),
        outputs=dict(x="x_hat", y="residual_out"),
        defs=defined(x_hat=at.y, residual_out=S.Zero),
    ),
    "every program doubles rstd in each block of columns": SWEEPS.edited(
        ("def kernel(x_ptr", "def kernel(rstd_ptr, x_ptr"),
        (
            "        squares += x * x\n",
            "        squares += x * x\n        rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0)\n"
            "        tl.store(rstd_ptr + rows, 2 * rstd, mask=rows < M)\n",
        ),
        outputs=dict(y="y", rstd="c1"),
        defs=defined(y=at.x / sqrt(SQUARES), c1=2 * at.rstd),
    ),
    "a sum over statistics that other programs store": LOOP_TOTAL,
    "a sum over rows that other programs overwrite": LOOP_TOTAL.edited(
        ("total += rstd[k]", "for r in range(N):\n            total += x[k, r]"),
        ("y[i, j] =", "x[i, j] ="),
        outputs=dict(rstd="c1", x="x_hat"),
        defs=defined(c1=SQUARES, x_hat=at.x),
    ),
} | edited_programs("wrong")


# {how it is written: the program}: right ones.
RIGHT = {
    "a row a program": FORWARD,
    "rows by turns": BACKWARD,
    "sum and norm in place": IN_PLACE,
    "x is overwritten by y": FORWARD.edited(
        ("tl.store(y_ptr", "tl.store(x_ptr"), outputs=dict(x="y")
    ),
    "blocks of columns": SWEEPS,
    "a floor under the norm": CLAMP,
    "copied": COPY,
    "loops": LOOPS,
    "loops, backward": LOOP_BACKWARD,
    "all rows in one loop": LOOP_BACKWARD_ALONE,
    "a floor in a loop": LOOP_CLAMP,
    "over x in a loop": LOOPS.edited(("y[i, j] =", "x[i, j] ="), outputs=dict(x="y")),
} | edited_programs("right")
