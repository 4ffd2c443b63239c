"""Homework 6: what a test is given and remembers."""

import numpy as np
import pytest
from homework_solutions import graded

from normgrad.homework.sandbox import operations

MEMORY = """
import numpy as np
SEEN = []

def check_backward(backward):
    rng = np.random.default_rng(0)
    x, weight, dy = rng.standard_normal((4, 6)), rng.standard_normal(6), rng.standard_normal((4, 6))
    found = np.concatenate([np.ravel(a) for a in backward(dy, x, weight, x.mean(-1), 1 / x.std(-1))])
    assert found.any() and np.isfinite(found).all()
    SEEN.append(found)
    assert np.allclose(found, SEEN[0])
"""
# Of a test that knows nothing but that zeros and NaN are wrong: the right ones pass, and none of these is a NaN.
NOTHING_LEARNED = 5


def test_what_a_test_remembers_in_the_shell_is_gone(tmp_path):
    """Every backward meets a process of its own."""
    (report,) = graded(tmp_path, MEMORY, "hw6")
    assert report.points == NOTHING_LEARNED, report


def test_inputs_that_do_not_fit_are_refused_by_name():
    ones, row = np.ones((2, 3)), np.ones(2)
    for inputs, words in (
        ([ones, ones, np.ones(2), row, row], "weight: got shape"),
        ([ones, np.ones((2, 0)), np.ones(0), row, row], "needs (M, N) with a column"),
        ([ones.astype(object), ones, np.ones(3), row, row], "dy: got dtype object"),
        (
            [np.ones((2, 50_000))] * 2 + [np.ones(50_000), row, row],
            "at most 100000 numbers",
        ),
    ):
        with pytest.raises(
            (ValueError, TypeError), match=words.replace("(", r"\(").replace(")", r"\)")
        ):
            operations.fitting(inputs)
