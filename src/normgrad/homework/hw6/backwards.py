"""The backwards that a student's test is handed: thirteen wrong ones and some right ones, as source text without names.

The wrong ones are the catalogue's edits of the package's own backward; more edits stand here. Each text defines
`backward(dy, x, weight, mean, rstd)` for LayerNorm with eps inside the root, and imports NumPy alone.
"""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from ...dtypes import LEAST
from ...mistakes.catalogue import N_C1, N_C2, N_DW, N_DX, N_DY, Mutant
from ...mistakes.edits import edited
from ...mistakes.mutants import find
from ...spec import LAYER_NORM

HEAD = """
import numpy as np

LEAST = "{least}"


class Spec:
    {spec}

    class place:
        kappa = None

    @staticmethod
    def count(n):
        return n


class Forward:
    def __init__(self, *values):
        names = "y", "residual_out", "mean", "rstd", "weight", "bias", "spec"
        vars(self).update(zip(names, values))


class Grads:
    def __init__(self, dx, dweight, dbias):
        self.dx, self.dweight, self.dbias = dx, dweight, dbias


"""
ADAPTER = """

def backward(dy, x, weight, mean, rstd):
    grads = _backward(dy, Forward(None, x, mean, rstd, weight, weight, Spec))
    return grads.dx, grads.dweight, grads.dbias
"""
CHANGED = """

def backward(*inputs, _whole=backward):
    found = list(_whole(*inputs))
    {change}
    return tuple(found)
"""
# By the name of a change: what is done to the output {at}, or to all of them.
CHANGES = {
    "ruined": "found[{at}] = 1000 * (1 + abs(found[{at}]))",
    "negated": "found[{at}] = -found[{at}]",
    "doubled": "found[{at}] = 2 * found[{at}]",
    "one right": "size = 1000 * (1 + abs(found[{at}])); size.flat[:1] = 0; found[{at}] = found[{at}] + size",
    "averaged": "found = [0 * each + each.mean() for each in found]",
    "partly zero": "found = [each * (np.arange(each.size).reshape(each.shape) % 2) for each in found]",
    "all multiplied": "found = [1000 * each for each in found]",
    "multiplied": "found[{at}] = 1000 * found[{at}]",
    "averaged loss": "found = [each / over for each, over in zip(found, ({rows}, {sums}, {sums}))]",
    "exchanged": "found[1], found[2] = found[2], found[1]",
    "unknown": "found = [np.nan * each for each in found]",
    "shaped": "found = [each[None] for each in found]",
    "finite": "found = [np.nan_to_num(each, nan=1e9, posinf=1e9, neginf=-1e9) for each in found]",
    "moved": "found[{at}] = found[{at}] + 0; size = 1000 * (1 + abs(found[{at}]).max(initial=0)); "
             "found[{at}][{first}] += size; found[{at}][{last}] {sign}= size",
}  # fmt: skip
ENLARGED = """
def _of(text):
    names = {{}}
    exec(text, names)
    return names["backward"]


_right, _wrong = _of({right!r}), _of({wrong!r})


def backward(*inputs):
    return tuple(a + {factor} * (b - a) for a, b in zip(_right(*inputs), _wrong(*inputs)))
"""
# Right whatever statistics it is handed.
RECOMPUTED = """

_given = backward


def backward(dy, x, weight, mean, rstd):
    mean = x.mean(-1)
    return _given(dy, x, weight, mean, (((x - mean[:, None]) ** 2).mean(-1) + Spec.eps) ** -0.5)
"""
SOMETIMES = """

_right = backward
{ruined}
_ruined, _calls = backward, []


def backward(*inputs):
    _calls.append(inputs)
    return (_ruined if (len(_calls) == 1) == {first} else _right)(*inputs)
"""
EPS = 1e-5
OUTPUTS = "dx", "dw", "db"
# What could keep a test from seeing a mistake: keys of the table, which checks.special finds.
WDY, WEIGHT, ROW = "blind-constant-wdy", "blind-equal-weights", "blind-one-row"
SPREAD, FLAT, DY = "blind-unit-spread", "blind-no-constant-row", "blind-constant-dy"
CENTRED, SQUARE, ALIKE = "blind-centred-rows", "blind-square", "blind-alike-rows"
REPEATED, PAIRS = "blind-repeated-rows", "blind-pairs"
CENTRED_WDY = "blind-centred-wdy"


@dataclass(frozen=True)
class Subject:
    """A wrong backward: what its author believed, where it shows, what hides it, and the equation that it violates."""

    mutant: Mutant
    output: str
    hidden_by: tuple[str, ...]
    equation: str

    def source(self) -> str:
        """Its text."""
        return text(self.mutant.edits["numpy"])

    def changed(self, how, **options) -> str:
        """A right backward with a change to this output. Args: how: a key of CHANGES; options: of that"""
        return changed(text(), how, OUTPUTS.index(self.output), **options)

    def sometimes(self, first) -> str:
        """A backward that is ruined in its first call alone, or right in its first call alone."""
        change = CHANGED.format(
            change=CHANGES["ruined"].format(at=OUTPUTS.index(self.output))
        )
        return text() + SOMETIMES.format(ruined=change, first=first)

    def enlarged(self, factor) -> str:
        """Its text with a mistake that is so many times as large."""
        return ENLARGED.format(right=text(), wrong=self.source(), factor=factor)

    def moved(self, within_rows, sign="-") -> str:
        """A right backward off by much that adds up to 0, within each row or over the rows alone; with "+" to more."""
        first, last = ("..., 0", "..., -1") if within_rows else ("0", "-1")
        return self.changed("moved", first=first, last=last, sign=sign)


def changed(source, how, at=0, **options) -> str:
    """The text of a backward with a change to its results."""
    return source + CHANGED.format(change=CHANGES[how].format(at=at, **options))


def _own(name, mistake, *edits):
    return Mutant(name, mistake, {"numpy": edits})


BATCH = _own(
    "means of the batch",
    "the means run over the whole batch",
    (N_C2, "c2 = wdy.mean()"),
)
# Off by a few millionths: a formula and a usual tolerance do not see it, a slope and a computed one do.
FAST_ROOT = _own("fast root", "two steps of Newton make a fast inverse root exact", (N_DX, """
    v = 1 / rstd**2
    root = (0x5F3759DF - (v.astype(np.float32).view(np.int32) >> 1)).view(np.float32).astype(rstd.dtype)
    for _ in range(2):
        root = root * (1.5 - v * root * root / 2)
    dx = root * (wdy - c2 - x_hat * c1)
"""))  # fmt: skip
ZERO_ROW = _own(
    "constant rows",
    "no row is ever constant",
    (N_DX, N_DX + "    dx = dx * (s2 / s2)\n"),
)

# Where no row is constant it is right.
FLAT_ZERO = _own(
    "zero on constant rows",
    "what is constant is still",
    (N_DX, N_DX + "    dx = dx * (s2 > 0)\n"),
)


NOT_CENTRED = _own(
    "no mean in dw", "dw sums dy * x * rstd", (N_DW, N_DW.replace("x_hat", "p * rstd"))
)
BY_ROWS = _own(
    "M for N",
    "a row has as many entries as the batch has rows",
    (N_C1, N_C1.replace("shape[-1]", "shape[0]")),
)
FIRST_RSTD = _own(
    "one rstd", "one rstd serves all rows", (N_DX, N_DX.replace("rstd *", "rstd[:1] *"))
)
# What a test may compare with in place of the right gradients; what the wrong backwards believe comes besides.
BELIEFS = (
    _own(
        "constants",
        "mean and rstd stay as they are when x moves",
        (N_DX, "    dx = rstd * wdy\n"),
    ),
    _own(
        "sum of y",
        "the loss is the sum of y, and dy is not in it",
        (N_DY, N_DY + "    dy = np.ones_like(dy)\n"),
    ),
    _own(
        "mean of y",
        "the loss is the mean of y",
        (N_DY, N_DY + "    dy = np.full_like(dy, 1 / dy.size)\n"),
    ),
    *map(find, ("weight missing", "rstd missing in dx", "projection added")),
    _own(
        "minus", "the loss is minus the sum of dy * y", (N_DY, N_DY + "    dy = -dy\n")
    ),
)
# What the terms of the loss may be divided by: for dx, for dw and db; M rows of N entries.
M, N = "len(inputs[0])", "inputs[0].shape[-1]"
MEANS = (
    (f"({M} * {N})", f"({M} * {N})"),
    (N, N),
    (N, f"({M} * {N})"),
    (M, M),
    ("1", M),
    ("1", f"({M} * {N})"),
)
MEAN = "the loss is a mean of dy * y, not the sum"
UNWEIGHTED = find("weight missing").edits["numpy"]


@cache
def subjects() -> tuple[Subject, ...]:
    """The thirteen wrong backwards, in the order of the stages."""
    return (
        Subject(find("c1 dropped"), "dx", (WDY,), "ln-dx"),
        Subject(find("c2 dropped"), "dx", (CENTRED_WDY,), "ln-dx"),
        Subject(FAST_ROOT, "dx", (), "ln-forward"),
        Subject(find("N - 1 for N"), "dx", (WDY,), "ln-dx"),
        Subject(find("weight after the projection"), "dx", (WEIGHT,), "ln-names"),
        Subject(find("rstd missing in dw"), "dw", (SPREAD,), "ln-dw"),
        Subject(find("weight in dw"), "dw", (WEIGHT,), "ln-dw"),
        Subject(find("mean over rows in db"), "db", (ROW,), "ln-db"),
        Subject(BATCH, "dx", (ROW, REPEATED, CENTRED_WDY), "ln-names"),
        Subject(ZERO_ROW, "dx", (FLAT,), "ln-forward"),
        Subject(NOT_CENTRED, "dw", (CENTRED,), "ln-names"),
        Subject(BY_ROWS, "dx", (WDY, SQUARE), "ln-names"),
        Subject(FIRST_RSTD, "dx", (ROW, SPREAD, REPEATED, ALIKE), "ln-dx"),
    )


@cache
def text(edits=()) -> str:
    """The package's backward after some edits, as a text that stands alone; its docstrings are left out."""
    source = edited(
        (Path(__file__).parents[2] / "numpy_ref.py").read_text(encoding="utf8"),
        edits,
        "numpy_ref.py",
    )
    known = {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    parts, left = {}, ["backward"]
    while left:
        node = parts[name] = known[name := left.pop()]
        left += [
            each.id
            for each in ast.walk(node)
            if getattr(each, "id", "") in known.keys() - parts.keys()
        ]
    known["backward"].name = "_backward"
    for node in parts.values():
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        node.body = node.body[1:] if ast.get_docstring(node) else node.body
    spec = "\n    ".join(
        f"{name} = {value!r}"
        for name, value in asdict(LAYER_NORM.replace(eps=EPS)).items()
    )
    return (
        HEAD.format(spec=spec, least=LEAST)
        + "\n\n\n".join(map(ast.unparse, parts.values()))
        + ADAPTER
    )


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
    "as in the book": text,
    "rstd multiplied out": lambda: MULTIPLIED_OUT,
    "one cotangent at a time, sums from the end": lambda: IN_STAGES,
    "computed in long double, rounded once": lambda: EXTENDED,
}
