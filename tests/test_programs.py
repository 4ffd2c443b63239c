"""The readers of kernels prove what is right in whichever way it is written, and nothing that is wrong."""

import pytest

pytest.importorskip("triton")

from programs import RIGHT, WRONG  # noqa: E402

from normgrad.symbolic import NotProved  # noqa: E402
from normgrad.symbolic.text_reader import Unread  # noqa: E402


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_proved_and_says_what_it_assumes(program):
    verdict = program.verdict()
    assert set(verdict) == set(program.outputs)
    assert all(f"assumed: {text}" in str(verdict) for text in verdict.assumed)
    assert any("overlap in memory" in text for text in verdict.assumed)


@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_proved(program):
    with pytest.raises((NotProved, Unread)) as refusal:
        program.verdict()
    assert isinstance(refusal.value, Unread) or refusal.value.counterexample
