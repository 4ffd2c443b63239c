"""Every argument of every public function and module reaches what it is for, and the table that says so can fail."""

import pytest
import wiring

import normgrad


@pytest.mark.parametrize("row", wiring.rows(normgrad), ids=", ".join)
def test_an_argument_changes_what_comes_out(row):
    assert wiring.matters(normgrad, row)


def test_every_public_name_is_in_the_table():
    """A new function or module has rows, or a word why not; a new argument needs a variation by itself."""
    subjects = {
        name.partition(",")[0].partition(" of ")[0].removesuffix(".forward")
        for name in wiring.SUBJECTS
    }
    subjects |= {name for name in wiring.SUBJECTS if name.startswith("numpy_ref")}
    public = wiring.public_names(normgrad)
    assert public == (subjects & public) | set(wiring.EXCLUDED)
    assert not subjects & set(wiring.EXCLUDED)
