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
from ...mistakes.catalogue import N_C1, N_C2, N_DW, N_DX, Mutant
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
NEGATED = """

def backward(*inputs, _right=backward):
    grads = list(_right(*inputs))
    grads[{at}] = -grads[{at}]
    return tuple(grads)
"""
EPS = 1e-5
OUTPUTS = "dx", "dw", "db"


@dataclass(frozen=True)
class Subject:
    """A wrong backward: what its author believed, where it shows, and the equation that it violates."""

    mutant: Mutant
    output: str
    equation: str

    def source(self) -> str:
        """Its text."""
        return text(self.mutant.edits["numpy"])

    def negated(self) -> str:
        """A right backward whose output of this name has the other sign."""
        return text() + NEGATED.format(at=OUTPUTS.index(self.output))


def _own(name, mistake, old, new):
    return Mutant(name, mistake, {"numpy": ((old, new),)})


# Off by a few millionths: a formula and a usual tolerance do not see it, a slope and a computed one do.
FAST = """
    v = 1 / rstd**2
    root = (0x5F3759DF - (v.astype(np.float32).view(np.int32) >> 1)).view(np.float32).astype(rstd.dtype)
    for _ in range(2):
        root = root * (1.5 - v * root * root / 2)
    dx = root * (wdy - c2 - x_hat * c1)
"""
OWN = {
    mutant.name: mutant
    for mutant in (
        _own("means of the batch", "the means run over the whole batch", N_C2, "c2 = wdy.mean()"),
        _own("fast root", "two steps of Newton make a fast inverse root exact", N_DX, FAST),
        _own("constant rows", "no row is ever constant", N_DX, N_DX + "    dx = dx * (s2 / s2)\n"),
        _own("no mean in dw", "dw sums dy * x * rstd", N_DW, N_DW.replace("x_hat", "p * rstd")),
        _own("M for N", "a row has as many entries as the batch has rows", N_C1, N_C1.replace("shape[-1]", "shape[0]")),
        _own("one rstd", "one rstd serves all rows", N_DX, N_DX.replace("rstd *", "rstd[:1] *")),
    )
}  # fmt: skip
# Where no row is constant it is right.
FLAT_ZERO = ((N_DX, N_DX + "    dx = dx * (s2 > 0)\n"),)


@cache
def subjects() -> tuple[Subject, ...]:
    """The thirteen wrong backwards, in the order of the stages."""
    return (
        Subject(find("c1 dropped"), "dx", "ln-dx"),
        Subject(find("c2 dropped"), "dx", "ln-dx"),
        Subject(OWN["fast root"], "dx", "ln-forward"),
        Subject(find("N - 1 for N"), "dx", "ln-dx"),
        Subject(find("weight after the projection"), "dx", "ln-names"),
        Subject(find("rstd missing in dw"), "dw", "ln-dw"),
        Subject(find("weight in dw"), "dw", "ln-dw"),
        Subject(find("mean over rows in db"), "db", "ln-db"),
        Subject(OWN["means of the batch"], "dx", "ln-names"),
        Subject(OWN["constant rows"], "dx", "ln-forward"),
        Subject(OWN["no mean in dw"], "dw", "ln-names"),
        Subject(OWN["M for N"], "dx", "ln-names"),
        Subject(OWN["one rstd"], "dx", "ln-dx"),
    )


@cache
def text(edits=()) -> str:
    """The package's backward after some edits, as a text that stands alone; its docstrings are left out."""
    source = edited(
        (Path(__file__).parents[2] / "numpy_ref.py").read_text(encoding="utf8"),
        edits,
        "numpy_ref.py",
    )
    functions = {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    parts, names = {}, ["backward"]
    while names:
        name = names.pop()
        parts[name] = functions[name]
        for node in ast.walk(functions[name]):
            if getattr(node, "id", "") in functions.keys() - parts.keys():
                names.append(node.id)
    functions["backward"].name = "_backward"
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
