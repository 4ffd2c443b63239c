"""The tests of the tests: the contract rejects every wrong program of the operator, on the backend that it is of."""

import json

import copies
import covering
import killing
import numpy as np
import pytest

from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants

RECORD = json.loads(killing.RECORD.read_text())
BACKWARD = [mutant for mutant in mutants.MUTANTS if mutant.backward]
SOURCES = ("torch_ops/rows", "triton_kernels/launch", "numba_kernels/launch")


# What overflows on its way to a wrong number warns.
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("program", killing.PROGRAMS, ids=str)
def test_the_contract_rejects(program):
    assert killing.killed_at(program, RECORD.get(str(program), 0)) is not None


def test_each_wrong_program_has_a_name_of_its_own():
    assert (
        len({str(program) for program in killing.PROGRAMS})
        == len(killing.PROGRAMS)
        == len(RECORD)
    )


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
    with copies.opened(
        copies.Edit("no change", "sympy", mutants.SOURCES["sympy"], ())
    ) as copy:
        for point in covering.points_of("sympy")[:10]:
            covering.check_point(copy, point)
        killing.prove(copy)


@pytest.mark.parametrize("backend", NAMES)
def test_a_page_loads_a_mutant_that_values_reject(backend):
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    with pytest.raises(AssertionError):
        contract.check_values(
            mutants.mutated(mutants.find("c1 dropped"), backend),
            case,
            SPECS["layer_norm"],
        )


@pytest.mark.parametrize("mutant", BACKWARD, ids=lambda mutant: mutant.name)
def test_differences_and_gradcheck_reject_every_wrong_backward(mutant, rng):
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    spec = SPECS[mutant.spec]
    with pytest.raises(AssertionError):
        contract.check_differences(mutants.mutated(mutant, "numpy"), case, spec, rng)
    with pytest.raises(AssertionError):
        contract.check_gradcheck(mutants.mutated(mutant, "torch"), case, spec)


def test_an_edit_that_does_not_apply_is_refused():
    with pytest.raises(ValueError, match="occurs 2 times, needs 1"):
        mutants.edited("a a", (("a", "b"),), "a mutant")
    with pytest.raises(ValueError, match="occurs 0 times, needs 1"):
        copies.copied({"spec.py": (("no such text", ""),)}, "a copy")
    with pytest.raises(ValueError, match="'c1 dropped'"):
        mutants.find("c3 dropped")
