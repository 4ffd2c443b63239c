"""The backwards that a student's test is handed: thirteen wrong ones and some right ones, as source text without names.

The wrong ones are edits of one right text. Each text defines `backward(dy, x, weight, mean, rstd)` for LayerNorm with
eps inside the root, and imports NumPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mistakes.edits import edited

BOOK = """
import numpy as np

def backward(dy, x, weight, mean, rstd):
    n, rstd = x.shape[-1], rstd[:, None]
    q = x - mean[:, None]
    s2 = (q * q).mean(-1, keepdims=True)
    x_hat = q * rstd
    wdy = weight * dy
    c1 = (x_hat * wdy).sum(-1, keepdims=True) / n
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd * (wdy - c2 - x_hat * c1)
    dw = (dy * x_hat).sum(0)
    db = dy.sum(0)
    return dx, dw, db
"""
CHANGED = """

def backward(*inputs, _right=backward):
    grads = list(_right(*inputs))
    grad = grads[{at}]
    grads[{at}] = {value}
    return tuple(grads)
"""
# {what is wrong with all entries of a gradient, as a report says it: what they are then}
ENTRIES = {
    "has the other sign.": "-grad",
    "is too small in every entry. Compare the sizes of the differences.": "grad - np.abs(grad) / 2",
    "is too large in every entry. Compare the sizes of the differences.": "grad + np.abs(grad) / 2",
}
OUTPUTS = "dx", "dw", "db"
WDY, C1, C2, DX, DW, DB = [
    next(row for row in BOOK.split("\n") if row.strip().startswith(f"{name} ="))
    for name in ("wdy", "c1", "c2", "dx", "dw", "db")
]


@dataclass(frozen=True)
class Subject:
    """A wrong backward. Args: mistake: what its author believed; output, equation: where it shows; edits: of BOOK"""

    mistake: str
    output: str
    equation: str
    edits: tuple[tuple[str, str], ...]

    def source(self) -> str:
        """Its text."""
        return edited(BOOK, self.edits, self.mistake)

    def changed(self, value: str) -> str:
        """A right backward but for its output of this name. Args: value: of ENTRIES"""
        return BOOK + CHANGED.format(at=OUTPUTS.index(self.output), value=value)


def _subject(mistake, output, equation, line, old, new):
    return Subject(mistake, output, equation, ((line, line.replace(old, new)),))


# Off by a few millionths: a formula and a usual tolerance do not see it, a slope and a computed one do.
FAST = """
    v = 1 / rstd**2
    root = (0x5F3759DF - (v.astype(np.float32).view(np.int32) >> 1)).view(np.float32).astype(rstd.dtype)
    for _ in range(2):
        root = root * (1.5 - v * root * root / 2)
    dx = root * (wdy - c2 - x_hat * c1)
"""
AFTER = ((WDY, "    wdy = dy"), (DX, DX.replace("rstd *", "weight * rstd *")))
FLAT = "no row is ever constant"
# The thirteen, in the order of the stages.
SUBJECTS = (
    _subject("rstd does not depend on x", "dx", "ln-dx", DX, " - x_hat * c1", ""),
    _subject("the mean does not depend on x", "dx", "ln-dx", DX, " - c2", ""),
    _subject("two steps of Newton make a fast inverse root exact", "dx", "ln-forward", DX, DX, FAST),
    _subject("the variance of a row is Bessel's", "dx", "ln-dx", C1, "/ n", "/ (n - 1)"),
    Subject("the weight commutes with the Jacobian", "dx", "ln-names", AFTER),
    _subject("dw sums dy * q", "dw", "ln-dw", DW, "x_hat", "q"),
    _subject("dw sums wdy * x_hat", "dw", "ln-dw", DW, "dy", "wdy"),
    _subject("a batch averages its gradients", "db", "ln-db", DB, "sum", "mean"),
    _subject("the means run over the whole batch", "dx", "ln-names", C2, "-1, keepdims=True", ""),
    _subject(FLAT, "dx", "ln-forward", DX, DX, f"{DX} * (s2 / s2)"),
    _subject("dw sums dy * x * rstd", "dw", "ln-names", DW, "x_hat", "x * rstd"),
    _subject("a row has as many entries as the batch has rows", "dx", "ln-names", C1, "/ n", "/ len(x)"),
    _subject("one rstd serves all rows", "dx", "ln-dx", DX, "rstd *", "rstd[:1] *"),
)  # fmt: skip
# Where no row is constant it is right.
FLAT_ZERO = edited(BOOK, ((DX, f"{DX} * (s2 > 0)"),), "0 on constant rows")

ZEROS = """
import numpy as np
def backward(dy, x, weight, mean, rstd):
    return np.zeros_like(x), np.zeros_like(weight), np.zeros_like(weight)
"""
MULTIPLIED_OUT = """
import numpy as np
def backward(dy, x, weight, mean, rstd):
    n, r = x.shape[-1], rstd[:, None]
    q = x - mean[:, None]
    g = dy * weight
    dx = g * r - r * (np.einsum("ij->i", g) / n)[:, None] - q * (rstd**3 * np.einsum("ij,ij->i", q, g) / n)[:, None]
    return dx, np.einsum("ij,ij,i->j", dy, q, rstd), np.einsum("ij->j", dy)
"""
IN_STAGES = """
import numpy as np
def backward(dy, x, weight, mean, rstd):
    n = x.shape[-1]
    dx, dw, db = np.empty_like(x), np.zeros_like(weight), np.zeros_like(weight)
    for i in reversed(range(len(x))):
        q = x[i] - mean[i]
        da = dy[i] * weight
        drstd = (da * q)[::-1].sum()
        dv = -drstd * rstd[i] ** 3 / 2
        dq = da * rstd[i] + dv * 2 * q / n
        dx[i] = dq - dq[::-1].sum() / n
        dw += dy[i] * q * rstd[i]
        db += dy[i]
    return dx, dw, db
"""
EXTENDED = """
import numpy as np
def backward(dy, x, weight, mean, rstd):
    kind = x.dtype
    dy, x, weight, mean, rstd = (a.astype(np.longdouble) for a in (dy, x, weight, mean, rstd))
    x_hat = x * rstd[:, None] - (mean * rstd)[:, None]
    a = dy * weight
    a = a - a.mean(-1, keepdims=True)
    dx = (a - x_hat * (a * x_hat).mean(-1, keepdims=True)) * rstd[:, None]
    return dx.astype(kind), (dy * x_hat).sum(0).astype(kind), dy.sum(0).astype(kind)
"""
RIGHT = {
    "as in the book": BOOK,
    "rstd multiplied out": MULTIPLIED_OUT,
    "one cotangent at a time, sums from the end": IN_STAGES,
    "computed in long double, rounded once": EXTENDED,
}
