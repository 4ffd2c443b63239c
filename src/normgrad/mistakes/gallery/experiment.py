"""All bugs of the gallery, and the experiment that is run on each of them."""

from __future__ import annotations

import re
import textwrap

import numpy as np

from .entry import REJECTED
from .wrong_handling import GRAPH, MEMORY, TESTS
from .wrong_numbers import FORMULAS, PRECISION

BUGS = {bug.name: bug for bug in (*FORMULAS, *PRECISION, *MEMORY, *GRAPH, *TESTS)}


def look(name: str) -> None:
    """Print what a bug does and how our check rejects it; a usual test accepts it.

    Args:    name: a key of BUGS
    Raises:  ValueError for another name; RuntimeError where our check accepts the bug; what the tests raise, where
             the usual one rejects the bug or ours the repaired version
    """
    if name not in BUGS:
        raise ValueError(f"name: got {name!r}, needs one of {', '.join(map(repr, BUGS))}")
    bug = BUGS[name]
    bug.usual(bug.wrong, np.random.default_rng(7))  # accepts the bug
    bug.check(bug.right, np.random.default_rng(7))  # accepts the repaired version
    try:
        bug.check(bug.wrong, np.random.default_rng(7))
    except REJECTED as error:
        first = str(error).splitlines()[0]
        found = re.sub(r"^.*?(float\d+|_out): ", "", first)
    else:
        raise RuntimeError(f"our check accepts the bug {name!r}")
    damage = bug.damage(np.random.default_rng(7))
    for line in (f"belief: {bug.belief}", f"damage: {damage}, {bug.output}", f"check: {found}"):
        print(textwrap.fill(line, 70, subsequent_indent="  ", break_long_words=False))
