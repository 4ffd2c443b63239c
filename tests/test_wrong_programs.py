"""Each wrong program is rejected: by the contract at one of its points, or by the check that stands beside it."""

import json
import sys
from importlib import import_module
from pathlib import Path

import copies
import covering
import killing
import numpy as np
import pytest
from torch.autograd.gradcheck import GradcheckError
from wrong_programs import BESIDE_THE_CONTRACT, IN_BOOK, UNSEEN, explicit_backward

from normgrad.checks import cases, contract
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants

RECORD = json.loads(killing.RECORD.read_text())
BACKWARD = [mutant for mutant in mutants.MUTANTS if mutant.backward]
SOURCES = ("torch_ops/rows", "triton_kernels/launch", "numba_kernels/launch")
REJECTED = (AssertionError, GradcheckError, pytest.fail.Exception)
EXTENSION = Path(__file__).parents[1] / "book/_ext/normgrad_book"
sys.path.insert(0, str(EXTENSION.parent))


# What overflows on its way to a wrong number warns.
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("program", [*killing.PROGRAMS, *BESIDE_THE_CONTRACT], ids=str)
def test_a_wrong_program_is_rejected(program, tmp_path):
    if program.check is None:
        first = RECORD.get(str(program), 0)
        assert killing.killed_at(program, first) is not None
        return
    if program in IN_BOOK:
        name = Path(program.path).name
        text = (EXTENSION / name).read_text()
        (tmp_path / name).write_text(mutants.edited(text, program.edits, str(program)))
        qualified = f"normgrad_book._wrong_{tmp_path.name}"
        package = mutants.imported(qualified, tmp_path / name)
    else:
        package = copies.copied({program.path: program.edits}, str(program))
        with mutants.plain_python():
            import_module(f"{package}.numba_kernels")
    with pytest.raises(REJECTED):
        program.check(package)
    if isinstance(package, str):
        copies.forget(package)


@pytest.mark.parametrize("program", IN_BOOK, ids=str)
def test_the_book_passes(program):
    program.check(import_module(f"normgrad_book.{Path(program.path).stem}"))


@pytest.mark.parametrize(
    "check", {explicit_backward, *(program.check for program in UNSEEN)}
)
def test_the_package_passes(check):
    check("normgrad")


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
    unedited = copies.Edit("no change", "sympy", mutants.SOURCES["sympy"], ())
    with copies.opened(unedited) as copy:
        for point in covering.points_of("sympy")[:10]:
            covering.check_point(copy, point)
        killing.prove(copy)


@pytest.mark.parametrize("mutant", BACKWARD, ids=lambda mutant: mutant.name)
def test_differences_and_gradcheck_reject_every_wrong_backward(mutant, rng):
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    spec = SPECS[mutant.spec]
    with pytest.raises(AssertionError):
        contract.check_differences(mutants.mutated(mutant, "numpy"), case, spec, rng)
    with pytest.raises(AssertionError):
        contract.check_gradcheck(mutants.mutated(mutant, "torch"), case, spec)
