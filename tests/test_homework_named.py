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


DELTAS = {
    "cotangent": ("w, dy, j, N", "Sum(dy[r] * w[j] * (KroneckerDelta(r, j) - 1 / N), (r, 1, N))", "delta of j and r"),
    "contract-delta": ("x, w, k, N", "Sum(w[r] * (KroneckerDelta(k, r) - 1 / N) * x[r], (r, 1, N))",
                       "delta of k and r"),
}  # fmt: skip


@pytest.mark.parametrize("task", DELTAS)
def test_a_delta_is_told_in_the_letters_of_the_answer(task):
    arguments, answer, words = DELTAS[task]
    name = task.replace("-", "_")
    source = f"from sympy import *\nr = Symbol('r', integer=True)\ndef {name}({arguments}):\n    return {answer}\n"
    message = checked(task, source)["no delta is summed over"].message
    assert words in message, message
