"""What the reader of Triton says of decorators, defaults, flags and what does not compile, by a table."""

import pytest
from verify_triton import ERROR, programs

from normgrad.verify import verify

PROGRAMS = list(programs())


@pytest.mark.parametrize(
    ("kind", "program", "words"),
    [(kind, program, words) for kind, _, _, program, words in PROGRAMS],
    ids=[f"{kind} {line}" for kind, _, line, *_ in PROGRAMS],
)
def test_a_program_has_the_verdict_that_it_is_due(kind, program, words):
    if kind == ERROR:
        with pytest.raises(ValueError, match=words):
            verify(*program, kernel="kernel")
        return
    verdict = verify(*program, kernel="kernel")
    assert verdict.kind.removesuffix(" for every M and N") == kind, verdict
    assert words in str(verdict)
    assert "rms[" not in str(verdict.counterexample)
