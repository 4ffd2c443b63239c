"""What the reader of Triton says of decorators, defaults, flags and what does not compile, by a table."""

import pytest
from verify_kernels import HEAD
from verify_triton import BASES, ERROR, KINDS

from normgrad.verify import verify


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_told_by_the_table(kind):
    for base, edits, change, verdict, words in KINDS[kind]:
        text, binding, *launch = BASES[base]
        for old, new in edits:
            assert old in text
            text = text.replace(old, new, 1)
        binding = {**binding, **change}
        if verdict == ERROR:
            with pytest.raises(ValueError, match=words):
                verify(HEAD + text, binding, *launch, kernel="kernel")
            continue
        result = verify(HEAD + text, binding, *launch, kernel="kernel")
        assert result.kind == verdict and words in str(result), f"{edits}: {result}"
