"""What the kernels in loops store, proved from their text to be what the definitions say: `kernel_proofs` for Numba."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from sympy import Expr, S

from .derivations import family
from .kernel_proofs import BACKWARD, FORWARD, NAMES, Case, compared, proved
from .loop_text import Full, Most, read
from .notation import tensor, total
from .proof import Proof
from .symbols import M, N, eps, j

OUTPUTS = {
    "forward": FORWARD,
    "backward": {name: e for name, e in BACKWARD.items() if name != "dresidual"},
    "reduce_partials": {"total": total(M, lambda r: tensor("partial", M, N)[r, j])},
}


def constants(case: Case, kernel: str) -> dict:
    """What the launcher gives a kernel for a variant."""
    given = {"center": case.center, "n": N if case.mean else S.One, "scale": family.c, "eps": eps, "most": Most()}
    given["placement"] = S({"inside": 0, "outside": 1, "zero": 1, "clamp": 2, "clamped": 2}[case.piece])
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


def claims(case: Case, package: str = "normgrad.numba_kernels") -> dict[tuple[str, str], tuple[Expr, Expr]]:
    """{(kernel, output): (what the text stores, what it is to be in the definitions)} of a variant.

    Raises:  Unread for a text that is not followed, and for an output that is missing
    """
    found, module = {}, import_module(f"{package}.kernels")
    for name, outputs in OUTPUTS.items():
        given = constants(case, name)
        stored = read(getattr(module, name), given, case.piece != "clamped", case.piece == "zero", NAMES).stored
        wanted = {output: e for output, e in outputs.items() if given.get(output, 0) is not None}
        if name == "forward" and not case.center:
            wanted["mean"] = S.Zero
        found |= compared(name, stored, wanted)
    return found


def prove_loops(case: Case, package: str = "normgrad.numba_kernels") -> dict[tuple[str, str], Proof]:
    """Prove what each kernel of a package stores for a variant, for every number of rows and columns.

    Args:     case: a variant; package: the import name of the kernels, or of a copy of them
    Returns:  {(kernel, output): Proof}
    Raises:   NotProved, with a counterexample where one is found; Unread for a text that is wrong in itself
    """
    # The launcher hands in the weight with its offset added.
    return proved(replace(case, offset=False), claims(case, package))
