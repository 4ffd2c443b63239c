"""The tests of the tests: every mutant is rejected by the contract, on every backend and at every N."""

import numpy as np
import pytest

from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants

MUTANTS = {mutant.name: mutant for mutant in mutants.MUTANTS}


def _rejected(backend, spec, columns, dtype="float64"):
    for case in cases.cases(np.random.default_rng(columns), 4, columns)[:4]:
        try:
            contract.check_values(backend, case, spec, dtype)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("name", MUTANTS)
def test_values_reject_every_mutant(name, backend):
    mutant = MUTANTS[name]
    wrong = mutants.mutated(mutant, backend)
    survived = [columns for columns in (2, 3, 7, 64, 1000) if not _rejected(wrong, SPECS[mutant.spec], columns)]
    assert survived == []


@pytest.mark.parametrize("name", MUTANTS)
def test_float32_rejects_every_mutant(name):
    mutant = MUTANTS[name]
    if mutant.name == "eps on the sum":
        # eps = 1e-5 beside a variance of 1 moves the output by 5e-6, below what float32 rows of N = 64 may be off.
        spec = SPECS[mutant.spec].replace(eps=0.5)
    else:
        spec = SPECS[mutant.spec]
    wrong = mutants.mutated(mutant, "torch")
    assert [columns for columns in (2, 7, 64) if not _rejected(wrong, spec, columns, "float32")] == []


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.backward])
def test_differences_reject_every_wrong_backward(name, backend, rng):
    mutant = MUTANTS[name]
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    with pytest.raises(AssertionError):
        contract.check_differences(mutants.mutated(mutant, backend), case, SPECS[mutant.spec], rng)


@pytest.mark.parametrize("name", [name for name, mutant in MUTANTS.items() if mutant.backward])
def test_gradcheck_rejects_every_wrong_backward(name):
    mutant = MUTANTS[name]
    case = cases.cases(np.random.default_rng(3), 3, 5)[1]
    with pytest.raises(AssertionError):
        contract.check_gradcheck(mutants.mutated(mutant, "torch"), case, SPECS[mutant.spec])


def test_an_edit_that_does_not_apply_is_refused():
    with pytest.raises(ValueError, match="occurs 2 times, needs 1"):
        mutants.edited("a a", (("a", "b"),), "a mutant")


def test_unknown_names_are_refused():
    assert mutants.find("c1 dropped").mistake
    with pytest.raises(ValueError, match="'c1 dropped'"):
        mutants.find("c3 dropped")
