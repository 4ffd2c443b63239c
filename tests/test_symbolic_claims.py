"""Claims as students type them: each is proved, refuted by a point, or refused in words, and never by SymPy."""

import re
import time
from collections import Counter

import pytest
from symbolic_claims import CLAIMS, PROVED, REFUSED, REFUTED

from normgrad.symbolic import Counterexample, Defs, NotProved, prove
from normgrad.symbolic.proof import lettered

ANSWERS: list[tuple[float, str, str]] = []


def _answer(lhs, rhs, defs):
    try:
        prove(lhs, rhs, defs)
    except NotProved as refusal:
        assert isinstance(refusal.counterexample, Counterexample), refusal
        return REFUTED, str(refusal)
    except (TypeError, ValueError, NotImplementedError) as refusal:
        return REFUSED, str(refusal)
    return PROVED, ""


@pytest.mark.parametrize("claim", CLAIMS, ids=map(str, range(1, len(CLAIMS) + 1)))
def test_a_claim_gets_the_answer_that_is_due(claim):
    lhs, rhs, due, *more = claim
    start = time.perf_counter()
    answer, words = _answer(
        lhs, rhs, more[0] if more and isinstance(more[0], Defs) else None
    )
    seconds = time.perf_counter() - start
    text = " = ".join(
        side if isinstance(side, str) else lettered(side)[0]
        for side in map(_shown, (lhs, rhs))
    )
    ANSWERS.append((seconds, answer, text))
    assert answer == due, words
    assert due != REFUSED or re.search(more[0], words), words
    assert seconds < 20


def _shown(side):
    return side if hasattr(side, "atoms") else str(side)


def test_how_many_of_each(capsys):
    counts = Counter(due for _, _, due, *_ in CLAIMS)
    assert len(CLAIMS) == 124 and min(counts.values()) >= 10
    # the whole table is printed by pytest -s
    print(
        "",
        *[
            f"{seconds:6.2f} s  {answer:8} {text[:90]}"
            for seconds, answer, text in ANSWERS
        ],
        sep="\n",
    )
    with capsys.disabled():
        print(
            f"\n{len(CLAIMS)} claims: {dict(counts)}, {sum(seconds for seconds, *_ in ANSWERS):.1f} s"
        )
