"""The registry of proved equations: every "=" holds for every size, and entry by entry."""

import pytest

from normgrad.symbolic import (
    equation,
    equations,
)

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
