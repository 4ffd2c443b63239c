"""Mistakes that a stage names by what it sees: each name comes for its mistake, and not for one that looks like it."""

import pytest
from homework_solutions import checked, named

# Expressions


SUM = "w[k] * x[k] - Sum(w[r] * x[r], (r, {0}, N - 1 + {0})) / N"
EXPRESSIONS = {
    "from 0": ("contract-delta", SUM.format(0), ["counted-from-zero"]),
    "from 0, moved by one": (
        "contract-delta",
        SUM.format(0).replace("[r]", "[r + 1]"),
        [],
    ),
    "past the end": ("contract-delta", SUM.format(2), []),
    "a neighbour": (
        "contract-delta",
        "w[k] * x[k - 1]",
        ["another-index", "term-missing"],
    ),
    "a text": ("contract-delta", "'w[k]'", ["text-for-expression"]),
    "nothing": ("contract-delta", "None", []),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name):
    task, text, expected = EXPRESSIONS[name]
    source = f"from sympy import *\nr = Symbol('r', integer=True)\ndef contract_delta(x, w, k, N):\n    return {text}\n"
    report = checked(task, source)
    assert named(report) == expected and report.passed == (
        name == "from 0, moved by one"
    ), report
