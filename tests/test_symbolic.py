"""The registry of proved equations: every "=" holds for every size, is well set, and runs as array code."""

import numpy as np
import pytest

from normgrad.checks.tolerance import unit_roundoff
from normgrad.symbolic import (
    Defs,
    delta,
    equation,
    equations,
    tensor,
)
from normgrad.symbolic.codegen import compile, source
from normgrad.symbolic.symbols import N, j, k

LABELS = list(equations())


@pytest.mark.parametrize("label", LABELS)
def test_every_step_is_proved_for_every_size(label):
    assert len(equation(label).prove()) == len(equation(label).steps) >= 1


@pytest.mark.parametrize("label", LABELS)
def test_every_step_holds_entry_by_entry(label):
    assert equation(label).check_fixed((2, 3)) >= len(equation(label).steps)


def test_side_conditions_use_the_names_of_the_definitions():
    needed = {
        "ln-entry-std": ["sigma > 0"],
        "norm-dx-outside": ["s[i] > 0"],
        "ln-dx": [],
    }
    for label, conditions in needed.items():
        (proof,) = equation(label).prove()
        assert list(map(str, proof.side_conditions)) == conditions


# -- the formula that is proved is the function that runs


# Rows of five and seven numbers meet some tens of roundings on either side.
ROUNDINGS = 256 * unit_roundoff("float64")


def test_array_code_of_deltas_and_transposed_axes():
    x, out = tensor("x", N), tensor("J", N, N)
    defs = Defs()
    defs[out[j, k]] = 2 * x[j] * delta(k, j) - x[k] / N + x[j] * 0
    values = np.arange(1.0, 4.0)
    (got,) = compile(defs, [out[j, k]])(x=values)
    expected = 2 * np.diag(values) - values[None, :] / 3
    assert np.abs(got - expected).max() <= ROUNDINGS * np.abs(expected).max()
    assert "def compute(*, x):" in source(defs, [out[j, k]])
