"""What a mistake costs at least, whatever the stages give: by what it would cost in practice."""

from __future__ import annotations

from math import ceil

# {key of a mistake: (the share of the task's points, why)}, the gravest first.
GRAVITY = {
    "race": (3 / 4, "on a GPU it gives other numbers from run to run"),
    "out-of-bounds": (3 / 4, "it writes or reads what belongs to somebody else"),
    "input-overwritten": (1 / 2, "the caller's numbers are destroyed"),
    "memory-shared": (1 / 2, "the next call changes what the caller holds"),
    "another-answer": (1 / 2, "the result depends on calls that came before"),
    "masked-lanes": (1 / 2, "on a GPU it sums numbers that nobody wrote"),
    "digits-lost": (1 / 3, "it loses all digits of rows far from 0, silently"),
    "stride-ignored": (1 / 4, "it reads other numbers of a view, silently"),
    "atomics": (1 / 4, "its last bits differ from run to run"),
}


def deduction(keys, earned: int, most: int) -> tuple[int, str]:
    """(points beyond those that stages have cost already, the key of the gravest mistake).

    Args:  keys: of the mistakes that a report names; earned: the sum of the stages; most: the task's points
    """
    shares = [(GRAVITY[key][0], key) for key in GRAVITY if key in set(keys)]
    if not shares:
        return 0, ""
    share, key = max(shares, key=lambda pair: pair[0])
    return max(0, ceil(share * most) - (most - earned)), key
