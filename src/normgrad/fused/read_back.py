"""The kernels' text, read back: every number that they store is proved from the text, for every M and N."""

from __future__ import annotations

from sympy import Expr, S, evaluate

from ..symbolic.kernel_text import read
from ..symbolic.notation import Partial, tensor
from ..symbolic.proof import NotProved, Proof, prove
from ..symbolic.symbols import M, i, p
from ..symbolic.text_reader import Unread, Verdict
from .layer import Layer, NotFused, loss_gradient
from .program import Program


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


def prove_kernels(program: Program, forward, backward) -> Verdict:
    """Prove what two kernels store: the outputs as they are defined, and the derivatives of the loss.

    Args:    program: what they were written from, of which only names and definitions are used
             forward, backward: kernels, as text that can be read
    Returns: {what is stored: Proof}, which prints with what is assumed
    Raises:  NotProved, Unread
    """
    layer = program.layer
    with evaluate(True):
        defs = layer.definitions()
        for name, e in program.forward.items():
            if name not in {*layer.lines, *layer.maxima}:
                defs[layer.at(name)] = e  # what the layer's own lines do not name
        stored, assumed = _stored(layer, forward, program.stored)
        proofs = {
            name: prove(e, layer.at(name), defs, where=name)
            for name, e in stored.items()
        }
        stored, more = _stored(layer, backward, program.written)
        for name, gradient in program.gradients.items():
            e = stored.get(gradient, layer.at(gradient))
            proofs[f"d{name}"] = prove(
                loss_gradient(layer, name), e, defs, where=f"d{name}"
            )
    return Verdict(proofs, dict.fromkeys(assumed + more))


def _stored(layer, kernel, wanted) -> tuple[dict[str, Expr], tuple[str, ...]]:
    """What a kernel's text stores, with the layer's names for the largest of the rows, and what is assumed."""
    constants = {name: layer.tensors[name] for name in layer.constants}
    reading = read(kernel, constants, above=None, names=layer.tensors)
    if set(reading.stored) != set(wanted):
        raise Unread(
            f"{kernel.__name__} stores {sorted(reading.stored)}, needs {sorted(wanted)}"
        )
    if reading.overwritten:
        raise Unread(
            f"{kernel.__name__} overwrites {sorted(reading.overwritten)}, which it reads"
        )
    named = {}
    for found, e in reading.maxima.items():
        for name, body in layer.maxima.items():
            try:
                prove(e, body, layer.definitions())
            except NotProved:
                continue
            named[tensor(found, M)] = layer.tensors[name]
        if tensor(found, M) not in named:
            raise Unread(
                f"{kernel.__name__} takes the largest of {e}, which no definition does"
            )
    return {
        name: e.xreplace(named) for name, e in reading.stored.items()
    }, reading.assumptions
