"""All wrong programs of the operator, and the point at which the contract rejects each.

    python tests/operator/killing.py     writes the record of the points

The record is where a search begins: a program that survives its recorded point is run at all others.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path

from copies import Edit, listed, opened
from covering import check_point, points_of
from signs import signs

from normgrad.checks.backends import NAMES
from normgrad.mistakes import mutants

RECORD = Path(__file__).with_name("killing_points.json")
# What is wrong in torch's operations shows in float32, too; the list has the same mistakes of the other backends.
CATALOGUE = [
    Edit(mutant.name, "torch", mutants.SOURCE, mutant.edits, "float32")
    for mutant in mutants.MUTANTS
]
BY_HAND = [program for fails, program in listed() if program.backend in NAMES]
PROGRAMS = [*CATALOGUE, *BY_HAND, *signs()]


def prove(backend):
    """The proof of what the SymPy backend computes, whose loss no value shows."""
    next(
        equation
        for equation in backend.module.family.equations()
        if equation.label == "norm-dx-inside"
    ).prove()


def killed_at(program: Edit, first: int = 0) -> int | None:
    """The number of a point at which the contract rejects the program, `first` tried first; None for none.

    After SymPy's last point comes its proof.
    """
    points = [
        p
        for p in points_of(program.backend)
        if p["dtype"] == (program.dtype or p["dtype"])
    ]
    with opened(program) as backend:
        checks = [partial(check_point, backend, point) for point in points]
        if backend.name == "sympy":
            checks.append(partial(prove, backend))
        for number in sorted(range(len(checks)), key=lambda number: number != first):
            try:
                checks[number]()
            except Exception:  # a wrong program may raise anything
                return number
    return None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record = {}
    for program in PROGRAMS:
        record[str(program)] = killed_at(program, known.get(str(program), 0))
        print(record[str(program)], program, flush=True)
        RECORD.write_text(json.dumps(record, indent=0) + "\n")
