"""A binding guessed from a kernel's names, to be read and corrected by a person before it is used."""

from __future__ import annotations

import ast
import re

from ..symbolic.symbols import M, N, eps
from .binding import CHUNK, COLUMNS, FLOAT, ROWS, WHOLE, Out, T
from .source import Source

# {tensor: the names that packages give its pointer, without case, _ptr and underscores}
POINTERS = {
    "x": "x|in|input|inp",
    "y": "y|out|output|o",
    "weight": "w|weight|weights|gamma",
    "bias": "b|bias|beta",
    "residual": "res|residual",
    "residual_out": "s|resout|residualout",
    "mean": "mean|mu|outmean",
    "rstd": "r|rstd|invrms|invvar|outrstd",
    "dy": "dy|do|gradout",
    "dx": "dx|gradin|dxptr",
    "dw": "dw|dweight",
    "db": "db|dbias",
}
VALUES = (
    (M, "m|nrows|t"),
    (N, "n|ncols|cols|d|hiddensize|nc"),
    (eps, "eps|epsilon"),
    (CHUNK, "rowsperprogram|blocksperprogram|bs"),
    (ROWS, "rows|rowsper(block|tile)|blockrows?|blockm|br|bt|blocksizem|tilem"),
    (FLOAT, ".*dtype"),
    (WHOLE, "block|blocksize|blockcols?|blockn|bd|b|tilen"),
)


def propose(source: Source, kernel: str) -> tuple[dict, tuple]:
    """(binding, grid) by the names of a kernel's arguments; arguments of unknown names are left out."""
    function = source.function(kernel)
    names = [argument.arg for argument in function.args.args]
    plain = {name: re.sub(r"_ptr$|_", "", name.lower()) for name in names}
    text = ast.unparse(function)
    backward = any(re.fullmatch(POINTERS["dy"], word) for word in plain.values())
    outputs = {"dx", "dw", "db"} if backward else {"y", "residual_out", "mean", "rstd"}
    binding: dict = {}
    pointers = POINTERS.items()
    for name, word in plain.items():
        is_pointer = not re.search(rf"\b{name}: tl.constexpr", text)
        tensor = next((t for t, words in pointers if re.fullmatch(words, word)), None)
        value = next((v for v, words in VALUES if re.fullmatch(words, word)), None)
        if tensor is not None and is_pointer:
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
    swept = re.search(r"(?<!a)range\([^\n]*(BLOCK_(SIZE|N|C)|TILE_N|BD)", text)
    if swept:
        binding = {k: COLUMNS if v is WHOLE else v for k, v in binding.items()}
    grid = "rows"
    if CHUNK in binding.values() or "num_programs" in text:
        grid = "programs"
    elif ROWS in binding.values():
        grid = "row tiles"
    return binding, (grid,)
