"""Every argument of every public function and module reaches what it is for, and the table that says so can fail."""

import pytest
import wiring

import normgrad


@pytest.mark.parametrize("row", wiring.rows(normgrad), ids=", ".join)
def test_an_argument_changes_what_comes_out(row):
    assert wiring.matters(normgrad, row)
