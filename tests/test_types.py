"""Types of the public face: a checker knows them, and no argument or result is left out."""

import pytest
import type_checkers


@pytest.mark.sampled(of=3)
def test_mypy_refuses_the_wrong_lines_and_no_other():
    pytest.importorskip("mypy")
    assert len(type_checkers.wrong_lines()) >= 10
    assert set(type_checkers.found("mypy")) == type_checkers.wrong_lines()
