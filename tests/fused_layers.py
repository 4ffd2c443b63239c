"""The layers of fused_layers.txt, and the same in torch, written without looking at the definitions."""

import re
from pathlib import Path

import sympy
import torch
from sympy.parsing.sympy_parser import auto_number, parse_expr
from torch.nn import functional

from normgrad import symbolic
from normgrad.symbolic import Defs, dim, index, largest, mean, tensor, total

M, N = dim("M"), dim("N")
r = index("r")
MATRICES = "x g residual y p q x_hat e silu t h dy dx dg rows"
ROWS = "mean v m z k s"
VOCABULARY = {
    **vars(sympy),
    **vars(symbolic),
    **dict(zip("ijrl", index(*"ijrl"), strict=True)),
    **{name: tensor(name, M, N) for name in MATRICES.split()},
    **{name: tensor(name, N) for name in ("w", "b", "u", "dw", "db")},
    **{name: tensor(name, M) for name in ROWS.split()},
    **{name: tensor(name, M, positive=True) for name in ("rstd", "norm", "D")},
    "M": M,
    "N": N,
    "eps": tensor("eps", positive=True),
    "a": tensor("a"),
    "add": lambda e, letter=r: over(total, N, e, letter),
    "avg": lambda e, letter=r: over(mean, N, e, letter),
    "greatest": lambda e: over(largest, N, e, r),
    "over_rows": lambda e: over(total, M, e, r),
}


def over(kind, size, e, letter):
    """A sum, mean or maximum of an expression over a letter."""
    return kind(size, lambda bound: e.xreplace({letter: bound}))


def read(text):
    """The expression of a text; a name that is not in the vocabulary is an error."""
    return parse_expr(text, VOCABULARY, (auto_number,), {})


def definitions(lines):
    """[(head, formula)] of lines `head := formula`."""
    return [tuple(map(read, line.split(" := "))) for line in lines]


def beside(name):
    """A text file of the tests without its comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf8")
    return re.sub("^#.*\n", "", text, flags=re.M)


def arguments_of(name, letters="ij", more=(), defs=None):
    """The arguments of Fused for a layer of the table.

    Args:  letters: of the rows and of the columns; more: further lines; defs: where they go
    """
    head, *lines = BLOCKS[name].splitlines()
    renamed = dict(zip("ij", letters, strict=True))
    lines = [re.sub(r"\b[ij]\b", lambda m: renamed[m[0]], line) for line in lines]
    outputs, _, scalars = head.partition("; ")
    defs = Defs() if defs is None else defs
    for left, formula in definitions([*lines, *more]):
        defs[left] = formula
    return {
        "defs": defs,
        "outputs": list(read(f"[{outputs or 'y[{}, {}]'.format(*letters)}]")),
        "scalars": read(f"[{scalars}]"),
        "name": name,
    }


BLOCKS = dict(
    re.findall(r"^\[(\w+)\] ?(.*(?:\n.+)*)", beside("fused_layers.txt"), re.M)
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


def with_sink(x):
    return torch.softmax(torch.cat([x, torch.zeros_like(x[..., :1])], -1), -1)[..., :-1]


def centred_twice(x, k, w, b):
    k = k[..., None]
    return w * torch.tanh(x) * k + w * (x + b) * (x - k).mean(-1, keepdim=True)


# {name: the layer in torch}
IN_TORCH = {
    "rms_norm": lambda x, w, eps: rms(x, w, eps),
    "layer_norm": lambda x, w, b, eps: layer_norm(x, w, b, eps),
    "add_layer_norm": lambda x, residual, w, b, eps: (
        layer_norm(x + residual, w, b, eps),
        x + residual,
    ),
    "l2_norm": lambda x, eps: x / (of_sum(x**2) + eps).sqrt(),
    "l2_clamp": lambda x, eps: functional.normalize(x, dim=-1, eps=eps),
    "gated_rms_norm": lambda x, g, w, eps: rms(x, w, eps) * functional.silu(g),
    "softmax": lambda x: torch.softmax(x, -1),
    "scaled_residual": lambda x, residual, w, a, eps: (
        rms(a * x + residual, w, eps),
        a * x + residual,
    ),
    "dyt": lambda x, w, b, a: w * torch.tanh(a * x) + b,
    "log_sum_exp": lambda x: torch.logsumexp(x, -1),
    "l4_norm": lambda x, eps: x / (of_sum(x**4) + eps) ** 0.25,
    "row_scaled": lambda x, k, w, eps: k[..., None] * rms(torch.relu(x), w, eps),
    "softmax_with_sink": with_sink,
    "tempered_softmax": lambda x, a: torch.softmax(a * x, -1),
    "centred_twice": centred_twice,
    "one_line": lambda x, w: layer_norm(x, w, None, 0.05),
    "three_vectors": lambda x, w, b, u: w * x / (of_sum(x**2) + 1) + b + u * x**2,
    "pooled": lambda x, b: (x + b).mean(-1),
}
