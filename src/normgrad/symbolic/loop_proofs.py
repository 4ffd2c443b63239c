"""What the kernels in loops store, proved from their text to be what the definitions say: `kernel_proofs` for Numba."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from sympy import S

from ..spec import PLACED, PLACEMENTS
from .derivations import family
from .kernel_proofs import BACKWARD, FORWARD, NAMES, Case, compared, proved
from .loop_text import Full, Most, read
from .notation import tensor, total
from .symbols import M, N, eps, j
from .text_reader import Verdict

OUTPUTS = {
    "forward": FORWARD,
    "backward": {name: e for name, e in BACKWARD.items() if name != "dresidual"},
    "reduce_partials": {"total": total(M, lambda r: tensor("partial", M, N)[r, j])},
}


def constants(case: Case, kernel: str) -> dict:
    """What the launcher gives a kernel for a variant."""
    given = {
        "center": case.center,
        "n": N if case.mean else S.One,
        "zero": S.Zero,
        "scale": family.c,
        "eps": eps,
        "most": Most(),
    }
    given["placement"] = S(list(PLACEMENTS).index(PLACED[case.piece]))
    if not case.residual:
        given |= dict.fromkeys(("residual", "residual_out", "dresidual_out"))
    if not case.weight:
        given |= {"weight": Full(S.One), "dw": None}
    if not case.bias:
        given |= {"bias": Full(S.Zero), "db": None}
    if not case.dx:
        given["dx"] = None
    if kernel == "backward" and not case.center:
        given["mean"] = Full(S.Zero)
    return given


def claims(
    case: Case, package: str = "normgrad.numba_kernels"
) -> tuple[dict, set[str]]:
    """({(kernel, output): (what the text stores, what it is to be)}, what is assumed) of a variant.

    Raises:  Unread for a text that is not followed, and for an output that is missing
    """
    pairs, assumed, module = {}, set(), import_module(f"{package}.kernels")
    for name, outputs in OUTPUTS.items():
        arguments = constants(case, name)
        reading = read(
            getattr(module, name),
            arguments,
            case.piece != "clamped",
            case.piece == "zero",
            NAMES,
        )
        wanted = {
            output: e
            for output, e in outputs.items()
            if arguments.get(output, 0) is not None
        }
        if name == "forward" and not case.center:
            wanted["mean"] = S.Zero
        pairs |= compared(name, reading, wanted)
        assumed |= set(reading.assumptions)
    return pairs, assumed


def prove_loops(case: Case, package: str = "normgrad.numba_kernels") -> Verdict:
    """Prove what each kernel of a package stores for a variant, for every number of rows and columns.

    Args:     case: a variant; package: the import name of the kernels, or of a copy of them
    Returns:  {(kernel, output): Proof}, which prints with what is assumed
    Raises:   NotProved, with a counterexample where one is found; Unread for a text that is wrong in itself
    """
    # The launcher hands in the weight with its offset added.
    return proved(replace(case, offset=False), *claims(case, package))
