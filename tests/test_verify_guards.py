"""Each refusal of verify, and each condition that it states, by the smallest kernel that only this one stops."""

from pathlib import Path

import pytest
from test_verify_welford import BINDING, END, LAST_APART, LAYER, MASKED, MERGED, START
from verify_kernels import KERNELS
from verify_triton import BASES, ERROR, edited_base

from normgrad.verify import verify
from normgrad.verify.__main__ import axes_of, parsed

RUNNING = {"last apart": LAST_APART, "running": MASKED, "merged": MERGED}
for name, loop in RUNNING.items():
    BASES[name] = START + loop + END, BINDING, "rows", LAYER
TABLE = Path(__file__).with_name("verify_guards.txt")
ROWS = [
    row
    for row in TABLE.read_text(encoding="utf8").splitlines()
    if "||" in row and row[0] != "#"
]


def program_of(base, edits, changes):
    """(text, binding, grid, definitions) of a row."""
    edits = edits.replace("\\n", "\n").split(" ;; ") if edits else []
    pairs = [tuple(edit.split(" =>")) for edit in edits]
    pairs = [(old, new.removeprefix(" ")) for old, new in pairs]
    BASES.setdefault(base, KERNELS.get(base))
    text, binding, grid, definitions = edited_base(base, pairs, {})
    for change in filter(None, changes.split(" ;; ")):
        name, _, value = change.partition("=")
        if name == "grid":
            grid = axes_of(value)
        elif value:
            binding[name] = parsed(value)
        else:
            del binding[name]
    return text, binding, grid, definitions


@pytest.mark.parametrize("row", ROWS)
def test_a_guard_refuses_what_only_it_stops(row):
    *program, answer = (field.strip() for field in row.split("||"))
    program = program_of(*program)
    kind, _, words = answer.partition(": ")
    if kind == ERROR:
        with pytest.raises(ValueError, match=words):
            verify(*program, kernel="kernel")
        return
    result = verify(*program, kernel="kernel", seconds=10)
    assert result.kind == kind and words in str(result), str(result)
