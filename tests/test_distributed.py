"""Rows shared among processes: the contract, in processes of their own."""

import re
from pathlib import Path

import pytest
from processes import python

pytest.importorskip("triton")


@pytest.mark.parametrize(
    "processes", [2, pytest.param(4, marks=pytest.mark.sampled(of=5))]
)
def test_the_contract_holds_in_every_placement(processes, request):
    script = Path(__file__).with_name("distributed_norms.py")
    whole = request.config.option.whole
    done = python(script, processes, *[] if whole else ["some"], timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    # settings of placements, functions, dtypes, and backends, where not one of them by turns
    settings = {2: 6, 4: 10}[processes]
    assert len(re.findall(r": y \d", done.stdout)) == settings * 3 * 2 * (
        3 if whole else 1
    )
