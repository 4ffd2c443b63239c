"""How a task's program is read, and what is found out about the outputs that are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..named import Diagnosis
from .child import SECONDS, in_child

# {output: the label of its registered equation} of the norms that homeworks ask for
RMS = {"y": "rms-forward", "rstd": "rms-statistics", "dx": "rms-dx", "dw": "rms-dw"}
LN = {"y": "ln-forward", "dx": "ln-dx", "dw": "ln-dw", "db": "ln-db"}


@dataclass(frozen=True)
class Reads:
    """How a task's program is read.

    Args:  outputs: what it returns; labels: {output: label}; norm: the options of normgrad.verify.norm
           library: of its arrays
    """

    outputs: tuple[str, ...]
    labels: dict[str, str]
    norm: dict = field(default_factory=dict)
    library: str = "numpy"


def read(reads: Reads, entry: str, program, wrong: Iterable[str]) -> list[Diagnosis]:
    """What the reading of a program says about outputs that are wrong; [] where it cannot be read.

    Args:  entry: the name of the function or class; program: the text of the module, or the function or class
           wrong: the outputs that the contract has found wrong
    """
    wrong = set(wrong)
    return in_child(lambda: _read(reads, entry, program, wrong)) if wrong else []


def _read(reads, entry, program, wrong):
    # SymPy takes a second to load, and a homework in NumPy that is right does without it.
    from ...verify import norm
    from ...verify.programs import verify_function
    from .beliefs import diagnoses
    from .equations import equations_of

    definitions = norm(**reads.norm)
    verdict = verify_function(
        program, definitions, reads.outputs, reads.library,
        entry if isinstance(program, str) else "", SECONDS / 2, run=False,
    )  # fmt: skip
    found: list[Diagnosis] = []
    for equation in equations_of(verdict, definitions, SECONDS / 2):
        if equation.output in wrong:
            named = diagnoses(equation, reads.labels.get(equation.output, ""))
            known = {each.misconception for each in found}
            if equation.output == "rstd":  # that of y has been named
                named = [each for each in named if each.misconception not in known]
            found += named
    return found
