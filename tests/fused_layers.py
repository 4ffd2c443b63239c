"""The layers of fused_layers.txt, and the same in torch, written without looking at the definitions."""

import re
from importlib import import_module
from pathlib import Path

import sympy
import torch
from sympy import IndexedBase, Sum, symbols
from sympy.parsing.sympy_parser import auto_number, parse_expr
from torch.nn import functional


def vocabulary(package="normgrad"):
    """The names that formulas are typed in."""
    symbolic = import_module(f"{package}.symbolic")
    letters = symbols("M N i j l r p", integer=True, positive=True)
    names = dict(zip("MNijlrp", letters, strict=True))
    M, N, r, p = (names[letter] for letter in "MNrp")
    for name in "x g y dy rows".split():
        names[name] = IndexedBase(name, shape=(M, N), real=True)
    for name in "wbua":
        names[name] = IndexedBase(name, shape=(N,), real=True)
    names["k"] = IndexedBase("k", shape=(M,), real=True)
    names["eps"] = sympy.Symbol("eps", positive=True)
    names["add"] = lambda e, letter=r: Sum(e, (letter, 1, N))
    names["avg"] = lambda e, letter=r: Sum(e, (letter, 1, N)) / N
    names["over_rows"] = lambda e: Sum(e, (p, 1, M))
    names["greatest"] = lambda e: symbolic.Largest(e, r, N)
    return {**vars(sympy), "sigmoid": symbolic.sigmoid, **names}


def read(text, names):
    """The expression of a text; a name that is not among the names is an error."""
    return parse_expr(text, names, (auto_number,), {})


def defined(lines, package="normgrad"):
    """The vocabulary with what lines `y[i, j] := formula` define."""
    define, names = import_module(f"{package}.prove").define, vocabulary(package)
    for line in lines:
        head, formula = line.split(" := ")
        name, *letters = re.findall(r"\w+", head)
        letters = [names[letter] for letter in letters]
        names[name] = define(name, *letters, read(formula, names))
    return names


def gradients_of(lines, names):
    """{x[i, j]: formula} of lines `x[i, j] := formula`."""
    return dict(
        tuple(read(side, names) for side in line.split(" := ")) for line in lines
    )


def beside(name):
    """A text file of the tests without its comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf8")
    return re.sub("^#.*\n", "", text, flags=re.M)


def names_of(name, letters="ij", more=(), package="normgrad"):
    """The vocabulary of a layer of the table, whose output is y; letters: of rows and columns; more: further lines."""
    renamed = dict(zip("ij", letters, strict=True))
    text = re.sub(r"\b[ij]\b", lambda m: renamed[m[0]], BLOCKS[name])
    return defined([*text.splitlines(), *more], package)


BLOCKS = dict(
    re.findall(r"^\[(\w+)\]\n(.*(?:\n.+)*)", beside("fused_layers.txt"), re.M)
)
REFUSED = [
    line.split(" -- ") for line in beside("fused_refusals.txt").split("\n") if line
]


def of_sum(rows):
    return rows.sum(-1, keepdim=True)


def rms(rows, weight, eps):
    return functional.rms_norm(rows, rows.shape[-1:], weight, eps)


def layer_norm(rows, weight, bias, eps):
    return functional.layer_norm(rows, rows.shape[-1:], weight, bias, eps)


def with_sink(x, w):
    zero = torch.zeros_like(x[..., :1])
    return w * torch.softmax(torch.cat([x, zero], -1), -1)[..., :-1]


# {name: the layer in torch}
IN_TORCH = {
    "rms_norm": lambda x, w, eps: rms(x, w, eps),
    "layer_norm": lambda x, w, b, eps: layer_norm(x, w, b, eps),
    "l2_clamp": lambda x, eps: functional.normalize(x, dim=-1, eps=eps),
    "gated_rms_norm": lambda x, g, w, eps: rms(x, w, eps) * functional.silu(g),
    "softmax": lambda x: torch.softmax(x, -1),
    "dyt": lambda x, w, b, a: w * torch.tanh(a * x) + b,
    "l4_norm": lambda x, eps: x / (of_sum(x**4) + eps) ** 0.25,
    "relu_first": lambda x, w, eps: rms(torch.relu(x), w, eps),
    "softmax_with_sink": with_sink,
    "centred_twice": lambda x, w, b: (
        w * torch.tanh(x) + w * (x + b) * x.mean(-1, keepdim=True)
    ),
    "one_line": lambda x, w: layer_norm(x, w, None, 0.05),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "by_mean": lambda x, w: w * x / (9 + x.mean(-1, keepdim=True)),
    "three_vectors": lambda x, w, b, u: w * x / (of_sum(x**2) + 1) + b + u * x**2,
}
