"""Small changes of right kernels, and the verdict that each is due, from a table of text."""

import test_verify_welford as welford
from tables import claims, lines, parts, value
from verify_kernels import HEAD, KERNELS

from normgrad.verify.package import HEAD as HEAD_NUMBER
from normgrad.verify.package import HEADS
from normgrad.verify.request import axes_of

ERROR = "error"  # the kind of a program that raises
FORWARD = """
@triton.jit
def kernel(x, y, w, s, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    a = tl.load(x + row * s + cols, mask=mask, other=0.0)
    r = tl.rsqrt(tl.sum(a * a, axis=0) / n + eps)
    g = tl.load(w + cols, mask=mask, other=0.0)
    tl.store(y + row * s + cols, a * r * g, mask=mask)
"""
# x is overwritten by y.
IN_PLACE = FORWARD.replace("y + row", "x + row").replace(" y,", "")
# As many lanes as there are columns.
LANES = FORWARD.replace(", B: tl.constexpr", "").replace("(0, B)", "(0, n)")
LANES = LANES.replace(" n, eps", " n: tl.constexpr, eps")
# What a kernel has saved is read.
SAVED = """
@triton.jit
def kernel(X, W, Y, RMS, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * n + cols, mask=mask, other=0.0)
    w = tl.load(W + cols, mask=mask, other=0.0)
    saved = tl.load(RMS + row)
    tl.store(Y + row * n + cols, x * w * FACTOR, mask=mask)
"""
# The rows of all heads in one number; axis 1 of the grid goes over the heads, each with a weight of its own.
OF_HEADS = """
@triton.jit
def kernel(x, y, w, m, n, h, eps, R: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(1)
    rows = (tl.program_id(0) * R + tl.arange(0, R)) * h + head
    cols = tl.arange(0, B)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    at = rows[:, None] * n + cols[None, :]
    a = tl.load(x + at, mask=mask, other=0.0)
    r = tl.rsqrt(tl.sum(a * a, axis=1) / n + eps)
    g = tl.load(w + head * n + cols, mask=cols < n, other=0.0)
    tl.store(y + at, a * r[:, None] * g[None, :], mask=mask)
"""
HEADS_ROWS = "stride=HEADS * N, start=HEAD * N"
BINDING = 'y=Out("y", stride="s"), w=T("weight"), n=N, eps=eps'
X = 'x=T("x", stride="s")'
BASES = {
    "forward": (FORWARD, f"{X}, {BINDING}, B=WHOLE"),
    "in place": (
        IN_PLACE,
        'x=InOut("x", stride="s", then="y"), w=T("weight"), n=N, eps=eps, B=WHOLE',
    ),
    "N lanes": (LANES, f"{X}, {BINDING}"),
    "saved": (
        SAVED,
        'X=T("x"), W=T("weight"), Y=Out("y"), RMS=T("rstd"), n=N, B=WHOLE',
    ),
}
BASES = {
    name: (text, *value(f'dict({bound}), "rows", norm()'))
    for name, (text, bound) in BASES.items()
}
BASES["heads"] = (
    OF_HEADS,
    *value(
        f'dict(x=T("x", {HEADS_ROWS}), y=Out("y", {HEADS_ROWS}), m=M * HEADS, h=HEADS, '
        'w=T("weight", start=HEAD * N), n=N, eps=eps, R=ROWS, B=WHOLE), '
        '("row tiles", (HEAD, HEADS)), norm()',
        HEAD=HEAD_NUMBER,
        HEADS=HEADS,
    ),
)
BASES["atomic"] = KERNELS["atomic additions"]
BASES["swept"] = KERNELS["a while loop"]
BASES["tiles"] = KERNELS["every P-th tile of rows"]
BASES = KERNELS | BASES
RUNNING = {"last apart": "LAST_APART", "running": "MASKED", "merged": "MERGED"}
for name, loop in RUNNING.items():
    text = welford.START + getattr(welford, loop) + welford.END
    BASES[name] = text, welford.BINDING, "rows", welford.LAYER


def edited_base(base, edits, change):
    """(text, binding, grid, definitions) of one of BASES with its edits."""
    text, binding, *launch = BASES[base]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return HEAD + text, binding | change, *launch


def programs(name="verify_triton_claims.txt"):
    """(verdict, kind, line, arguments of verify, words) of each line of a table."""
    for verdict, kind, line in claims(name):
        about, edits, words = parts(line)
        base, _, bound = about.partition(", ")
        change = value(f"dict({bound})")
        axes = change.pop("grid", None)
        text, binding, grid, definitions = edited_base(base, edits, change)
        grid = axes_of(axes) if axes else grid
        yield verdict, kind, line, (text, binding, grid, definitions), lines(words)
