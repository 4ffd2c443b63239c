"""Each wrong program is rejected: by the contract at one of its points, or by the check that stands beside it."""

import json
from importlib import import_module
from pathlib import Path

import copies
import covering
import killing
import numpy as np
import pytest
from torch.autograd.gradcheck import GradcheckError
from wrong_programs import CHECKED

from normgrad.checks import cases, contract
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants

RECORD = json.loads(killing.RECORD.read_text())
BACKWARD = [mutant for mutant in mutants.MUTANTS if mutant.backward]
SOURCES = ("torch_ops/rows", "triton_kernels/launch", "numba_kernels/launch")
REJECTED = (AssertionError, GradcheckError, pytest.fail.Exception)
EXTENSION = Path(__file__).parents[1] / "book/_ext/normgrad_book"


# What overflows on its way to a wrong number warns.
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("program", killing.PROGRAMS, ids=str)
def test_the_contract_rejects(program):
    assert killing.killed_at(program, RECORD.get(str(program), 0)) is not None


def in_the_book(program, folder):
    """The edited module of the book's extension."""
    file = folder / Path(program.path).name
    text = (EXTENSION / file.name).read_text()
    file.write_text(mutants.edited(text, program.edits, str(program)))
    return mutants.imported(f"normgrad_book._wrong_{file.stem}", file)


def right_one(program):
    """What the program is an edit of."""
    if program.path.startswith("book/"):
        return import_module(f"normgrad_book.{Path(program.path).stem}")
    return "normgrad"


@pytest.mark.parametrize(
    ("program", "check"),
    [pytest.param(*checked, id=str(checked[0])) for checked in CHECKED],
)
def test_a_check_rejects_the_wrong_program(program, check, tmp_path):
    check(right_one(program))
    if program.path.startswith("book/"):
        with pytest.raises(REJECTED):
            check(in_the_book(program, tmp_path))
        return
    package = copies.copied({program.path: program.edits}, str(program))
    with copies.plain_python():
        import_module(f"{package}.numba_kernels")
    with pytest.raises(REJECTED):
        check(package)
    copies.forget(package)


# NumPy warns of an overflow where compiled code does not.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_copy_without_a_change_keeps_the_contract():
    name = copies.copied({f"{path}.py": () for path in SOURCES}, "no change")
    for backend in ("numpy", "sympy", "torch", "triton", "numba"):
        copy = copies.backend_of(backend, name)
        module = copy.module if hasattr(copy, "module") else copy.rows_module()
        assert module.__name__.startswith(name)
        for point in covering.points_of(backend)[:10]:
            covering.check_point(copy, point)
    copies.forget(name)
    unedited = copies.Edit("no change", "sympy", "symbolic/derivations/family.py", ())
    with copies.opened(unedited) as copy:
        for point in covering.points_of("sympy")[:10]:
            covering.check_point(copy, point)
        killing.prove(copy)


@pytest.mark.parametrize("mutant", BACKWARD, ids=lambda mutant: mutant.name)
def test_differences_and_gradcheck_reject_every_wrong_backward(mutant, rng):
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    spec, wrong = SPECS[mutant.spec], mutants.mutated(mutant)
    with pytest.raises(AssertionError):
        contract.check_differences(wrong, case, spec, rng)
    with pytest.raises(AssertionError):
        contract.check_gradcheck(wrong, case, spec)
