"""The kernels' text, read back: every number that they store is proved from the text, for every M and N."""

from __future__ import annotations

import ast

from sympy import S, evaluate

from ..symbolic.notation import Partial
from ..symbolic.proof import NotProved, Proof, prove
from ..symbolic.symbols import M, N, i, p
from ..verify.api import verify
from ..verify.binding import FLOAT, ROWS, WHOLE, Out, T, letter
from ..verify.definitions import Norm
from ..verify.verdict import Claim, Verdict, whole
from .layer import COLUMN, LETTERS, TILE, Layer, NotFused, entry
from .program import Program

# Functions of the package that are taken for what their names say.
HELPERS = {"cast(value, DTYPE)": "value", "tanh(x)": "tl.extra.libdevice.tanh(x)"}


def prove_independence(layer: Layer) -> dict[str, Proof]:
    """Prove that a row's largest number, which the output does not depend on, may be any; NotFused where it does."""
    proofs = {}
    for name in layer.maxima:
        slope = Partial(layer.at(layer.output), layer.at(name, {i: p}))
        claim = f"{layer.output} does not depend on {name}"
        try:
            proofs[claim] = prove(slope, S.Zero, layer.definitions(layer.lines))
        except NotProved as refusal:
            why = "the largest of a row, through which no derivative is taken"
            raise NotFused(f"{layer.output}: depends on {name}, {why}") from refusal
    return proofs


def prove_kernels(program: Program, source: str) -> Verdict:
    """Read two kernels: they store the output as it is defined, and the derivatives of the loss.

    Args:    program: what they were written from, of which only names and definitions are used
             source: the text of both kernels
    Returns: Verdict, with one for each output and each gradient
    """
    layer = program.layer
    with evaluate(True):
        defs = layer.definitions({**program.forward, **layer.lines})
        largest = {layer.at(name): e for name, e in layer.maxima.items()}
        stored = {name: layer.at(name) for name in (layer.output, *program.saved)}
        forward = _read(layer, source, "forward", Norm(defs, stored, largest))
        gradients = {}
        for name in layer.inputs:
            # under a name of its own, which the definitions do not use
            head = entry(f"d{name}_of_loss", layer.kind(name))
            defs[head] = layer.gradient(name)
            gradients[f"d{name}"] = head
        backward = _read(layer, source, "backward", Norm(defs, gradients, largest))
    assumed = dict.fromkeys((*forward.assumptions, *backward.assumptions))
    outputs = {**_outputs(forward, "forward"), **_outputs(backward, "backward")}
    claim = Claim(
        layer.name,
        where=forward.where + backward.where,
        numbers=forward.numbers + backward.numbers,
    )
    return whole(outputs, claim, assumed)


def _outputs(verdict, way):
    """{tensor: Verdict} of a kernel's pointers; {way: the verdict} of one that is not read."""
    outputs = verdict.outputs or {way: verdict}
    return {name.removesuffix("_ptr"): part for name, part in outputs.items()}


def _read(layer, source, way, definitions):
    """The verdict on one kernel."""
    kernel = f"{layer.name}_{way}"
    tree = next(n for n in ast.parse(source).body if getattr(n, "name", "") == kernel)
    names = [argument.arg for argument in tree.args.args]
    sizes = {"M": M, "N": N, "ACC": FLOAT, "ROWS": ROWS, "BLOCK": WHOLE}
    binding = {name: sizes[name] for name in names if name in sizes}
    binding |= {name: layer.tensors[name] for name in layer.constants}
    for pointer in names:
        name = pointer.removesuffix("_ptr")
        if name == pointer:
            continue
        kind = layer.kind(name)
        indices = ", ".join(map(str, LETTERS[kind]))
        if name in definitions.outputs:
            share = "p" if kind == COLUMN else ""
            binding[pointer] = Out(name, f"{share} {indices}")
        else:
            stride = letter(f"{name}_step") * letter("VECTOR") if kind == TILE else None
            binding[pointer] = T(layer.tensors[name], indices, stride)
    grid = "row tiles" if way == "forward" else "programs"
    return verify(source, binding, grid, definitions, kernel=kernel, helpers=HELPERS)
