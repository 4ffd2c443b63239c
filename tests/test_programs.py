"""Kernels are proved in whichever way they are written, and nothing that is wrong is."""

import pytest
from programs import RIGHT, WRONG

from normgrad.verify.verdict import NOT_READ, REFUTED
from normgrad.verify.verdict import WRONG as WRONG_IN_ITSELF


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_proved_and_says_what_it_assumes(program):
    verdict = program.verdict()
    assert verdict and len(verdict.outputs) == len(program.outputs)
    assert all(f"assumed: {text}" in str(verdict) for text in verdict.assumptions)
    assert any("overlap" in text for text in verdict.assumptions)


@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_proved(program):
    verdict = program.verdict()
    assert verdict.kind in (NOT_READ, WRONG_IN_ITSELF, REFUTED)
    assert verdict.counterexample if verdict.kind == REFUTED else verdict.why
