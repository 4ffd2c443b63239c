"""The kernels' text, read back: every number that they store is proved from the text, for every M and N."""

from __future__ import annotations

import ast

from sympy import S, evaluate

from ..symbolic.notation import Partial, tensor
from ..symbolic.proof import NotProved, Proof, prove
from ..symbolic.symbols import M, N, i, p
from ..verify.api import verify
from ..verify.binding import FLOAT, ROWS, WHOLE, Out, T, letter
from ..verify.definitions import Norm
from ..verify.verdict import Verdict, compare, whole
from .layer import (
    COLUMN,
    NUMBER,
    PLACES,
    ROW,
    SHAPES,
    TILE,
    Layer,
    NotFused,
    loss_gradient,
)
from .program import Program

# Functions of the package that are taken for what their names say.
HELPERS = {"cast(value, DTYPE)": "value", "tanh(x)": "tl.tanh(x)"}
INDICES = {TILE: "i, j", ROW: "i", COLUMN: "j", NUMBER: ""}


def prove_independence(layer: Layer) -> dict[str, Proof]:
    """Prove that no output depends on a row's largest number, which then may be any number; NotFused where one does."""
    defs, proofs = layer.definitions(), {}
    for name in layer.maxima:
        for output in layer.outputs:
            try:
                claim = Partial(layer.at(output), layer.at(name, {i: p}))
                proofs[f"{output} does not depend on {name}"] = prove(
                    claim, S.Zero, defs
                )
            except NotProved as refusal:
                why = "the largest of a row, through which no derivative is taken"
                raise NotFused(f"{output}: depends on {name}, {why}") from refusal
    return proofs


def prove_kernels(program: Program, source: str) -> Verdict:
    """Read two kernels: they store the outputs as they are defined, and the derivatives of the loss.

    Args:    program: what they were written from, of which only names and definitions are used
             source: the text of both kernels
    Returns: Verdict, with one for each output and each gradient
    """
    layer = program.layer
    with evaluate(True):
        defs = layer.definitions()
        for name, e in program.forward.items():
            if name not in {*layer.lines, *layer.maxima}:
                defs[layer.at(name)] = e  # what the layer's own lines do not name
        largest = {layer.at(name): e for name, e in layer.maxima.items()}
        stored = {name: layer.at(name) for name in program.stored}
        forward = _read(layer, source, "forward", Norm(defs, stored, largest))
        written, handed_on = {}, {}
        for name, gradient in program.gradients.items():
            slope = loss_gradient(layer, name)
            if gradient in program.written and gradient not in written:
                written[gradient] = _named(layer, gradient)
                defs[written[gradient]] = slope
            else:
                head = written.get(gradient, layer.at(gradient))
                handed_on[f"d{name}"] = compare(slope, head, defs)
        backward = _read(layer, source, "backward", Norm(defs, written, largest))
    assumed = dict.fromkeys((*forward.assumptions, *backward.assumptions))
    outputs = {**_outputs(forward, "forward"), **handed_on}
    for name, verdict in _outputs(backward, "backward").items():
        inputs = [
            key for key, gradient in program.gradients.items() if gradient == name
        ]
        outputs[f"d{inputs[0]}" if inputs else name] = verdict
    return whole(outputs, layer.name, assumed)


def _named(layer, gradient):
    """A gradient's entry under a name of its own, which the definitions do not use."""
    kind = layer.kind(gradient)
    head = tensor(f"{gradient}_of_loss", *SHAPES[kind])
    return head[PLACES[kind]] if PLACES[kind] else head


def _outputs(verdict, way):
    """{tensor: Verdict} of a kernel's pointers; {way: the verdict} of one that is not read."""
    outputs = verdict.outputs or {way: verdict}
    return {name.removesuffix("_ptr"): part for name, part in outputs.items()}


def _read(layer, source, way, definitions):
    """The verdict on one kernel."""
    kernel = f"{layer.name}_{way}"
    tree = next(n for n in ast.parse(source).body if getattr(n, "name", "") == kernel)
    names = [argument.arg for argument in tree.args.args]
    known = {"M": M, "N": N, "ACC": FLOAT, "ROWS": ROWS, "BLOCK": WHOLE}
    binding = {name: known[name] for name in names if name in known}
    binding |= {name: layer.tensors[name] for name in layer.constants if name in names}
    for name in names:
        held = name.removesuffix("_ptr")
        if held == name:
            continue
        kind = layer.kind(held)
        if held in definitions.outputs:
            share = "p" if kind in (COLUMN, NUMBER) and way == "backward" else ""
            binding[name] = Out(held, f"{share} {INDICES[kind]}")
        else:
            stride = letter(f"{held}_step") * letter("VECTOR") if kind == TILE else None
            binding[name] = T(layer.tensors[held], INDICES[kind], stride)
    grid = "row tiles" if way == "forward" else "programs"
    return verify(source, binding, grid, definitions, kernel=kernel, helpers=HELPERS)
