"""What the reader of Triton says of decorators, defaults, flags and what does not compile, by a table."""

import pytest
from verify_triton import ERROR, KINDS, edited_base

from normgrad.verify import verify


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_told_by_the_table(kind):
    for base, edits, change, verdict, words in KINDS[kind]:
        program = edited_base(base, edits, change)
        if verdict == ERROR:
            with pytest.raises(ValueError, match=words):
                verify(*program, kernel="kernel")
            continue
        result = verify(*program, kernel="kernel")
        assert result.kind == verdict and words in str(result), f"{edits}: {result}"
