"""A binding guessed from a kernel's names: a form that a person fills in, and never a verdict."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from sympy import Expr

from ..symbolic.symbols import M, N, eps
from .binding import CHUNK, COLUMNS, FLOAT, ROWS, WHOLE, Out, T
from .header import parameters
from .source import Source

UNKNOWN = "?"
CHOICES = (
    'T("x"), Out("y"), T("1/rstd", "i"), M, N, eps, WHOLE, a number, a flag or None'
)

# {tensor: its names in packages and in what models write, without case, _ptr and underscores}
POINTERS = {
    "x": "x|in|input|inp|inputtensor|inputmatrix|inputdata|data|hiddenstates|primals3|logits",
    "y": "y|out|output|outputtensor|outputmatrix|o",
    "weight": "w|weights?|gamma|scale|rmsw|rmsweights?|primals1",
    "bias": "b|bias|beta|shift|primals2",
    "residual": "res|residual",
    "residual_out": "s|resout|residualout",
    "mean": "mean|mu|outmean",
    "rstd": "r|rstd|invrms|invvar|invstd|outrstd",
    "target": "targets?|labels?",
    "loss": "loss|losses",
    "lse": "lse|logsumexp",
    "dloss": "dloss|dlosses",
    "dy": "dy|do|dout|gradout|gradoutput|grady",
    "dx": "dx|gradin|gradinput|gradx|dxptr|dlogits",
    "dw": "dw|dweight|gradweight|gradw|dgamma",
    "db": "db|dbias|gradbias|gradb|dbeta",
}
VALUES = (
    (M, "m|nrows|t"),
    (N, "n|ncols|cols|d|hiddensize|nc|nsize|dim|normalizedshape|nfeatures|dmodel"),
    (eps, "eps|epsilon"),
    (CHUNK, "rowsperprogram|blocksperprogram|bs"),
    (ROWS, "rows|rowsper(block|tile)|blockrows?|blockm|br|bt|blocksizem|tilem"),
    (FLOAT, ".*dtype"),
    (WHOLE, "block|blocksize|blockcols?|blockn|bd|b|tilen"),
)


def plain_name(name: str) -> str:
    """A parameter's name without its case, a last _ptr and underscores."""
    return re.sub(r"_ptr$|_", "", name.lower())


def tensor_of(name: str) -> str | None:
    """The tensor that a parameter is by its name; None for a name that says nothing."""
    return _meant(POINTERS.items(), plain_name(name))


def size_of(name: str) -> Expr | None:
    """M, N or eps, as a parameter's name says; None for another name."""
    return _meant(VALUES[:3], plain_name(name))


def propose(source: Source, kernel: str) -> tuple[dict, tuple]:
    """(binding, grid) by the names of a kernel's arguments.

    Arguments of unknown names are left out, and all of those whose names stand for one thing.
    """
    function = source.function(kernel)
    names, _ = parameters(function)
    plain = {name: plain_name(name) for name in names}
    text = ast.unparse(function)
    backward = any(tensor_of(name) in ("dy", "dloss") for name in names)
    outputs = {"y", "residual_out", "mean", "rstd", "loss", "lse"}
    if backward:
        outputs = {"dx", "dw", "db"}
    binding: dict = {}
    for name, word in plain.items():
        tensor, value = tensor_of(name), _meant(VALUES, word)
        if tensor and not re.search(rf"\b{name}: tl.constexpr", text):
            kind = Out if tensor in outputs else T
            index = "p, j" if tensor in ("dw", "db") else None
            start, stride = name.removesuffix("_ptr"), None
            pattern = rf"{start}_(row_)?stride|stride_{word}"
            if tensor not in ("mean", "rstd"):
                pattern += "|(row_)?stride"
            if tensor not in ("weight", "bias"):
                stride = next((n for n in names if re.fullmatch(pattern, n)), None)
            binding[name] = kind(tensor, index, stride)
        elif value is not None:
            binding[name] = value
    meanings = {name: getattr(b, "name", b) for name, b in binding.items()}
    for name, meaning in meanings.items():
        if [*meanings.values()].count(meaning) > 1:
            del binding[name]
    if re.search(r"(?<!a)range\([^\n]*(BLOCK_(SIZE|N|C)|TILE_N|BD)", text):
        binding = {k: COLUMNS if v is WHOLE else v for k, v in binding.items()}
    grid = "rows"
    if CHUNK in binding.values() or "num_programs" in text:
        grid = "programs"
    elif ROWS in binding.values():
        grid = "row tiles"
    return binding, (grid,)


def _meant(table, word):
    """The first key whose pattern a word fits; None for none."""
    return next((key for key, words in table if re.fullmatch(words, word)), None)


def form(source: Source, kernel: str, written: Callable[[object], str]) -> str:
    """What is to be filled in, confirmed and given to the command, by the names of a kernel's arguments.

    Args:  written: how a bound value is typed
    """
    binding, grid = propose(source, kernel)
    pointers = [bound for bound in binding.values() if isinstance(bound, T)]
    strides = {bound.stride for bound in pointers}
    lines = [f"{kernel}: fill in each {UNKNOWN}, correct what is not so, and give it:"]
    for name in parameters(source.function(kernel))[0]:
        if name in binding:
            lines.append(f"  --bind '{name}={written(binding[name])}'")
        elif name not in strides:
            lines.append(f"  --bind '{name}={UNKNOWN}'")
    tensors = {bound.name for bound in pointers}
    center = True if "mean" in tensors else UNKNOWN
    words = [f"center={center}", f"bias={bool(tensors & {'bias', 'db'})}"]
    words += [
        f"{name}=True" for name in ("residual", "dresidual_out") if name in tensors
    ]
    lines.append(f"  --grid '{', '.join(grid)}'")
    lines.append(f"  --norm '{', '.join(words)}'")
    lines.append(f"{UNKNOWN} is one of {CHOICES}; what is not bound is any integer.")
    return "\n".join(lines)
