"""Difference tests that the pages and Homework 6 teach: a right gradient passes whatever is drawn, a wrong one fails.

The pages' own cells are run on rows that they do not draw: every small row of integers, rows far from 0, constant
rows, rows of zeros, rows of very different size.
"""

import itertools
import runpy
from pathlib import Path

import numpy as np
import page_cells
import pytest

from normgrad.homework.hw6 import backwards

ROOT = Path(__file__).parents[1]
SOLUTION = ROOT / "src/normgrad/homework/hw6/solution.py"
EPS = 1e-5
MEANS = (0, 1, 10, 100, 1e3, 1e4)
SCALES = (1e-6, 1, 1e6)


def page_names(page, *wanted):
    """The namespace of a page's cells that define some names, and of the cells that those need."""
    cells = page_cells.page_cells.of_page(ROOT / f"book/{page}.md")
    namespace = page_cells.as_on_a_page()
    chosen = page_cells.page_cells.needed(
        cells, lambda cell: set(wanted) & cell.defines
    )
    for cell in chosen:
        page_cells.execute(cell, namespace)
    return namespace


# -- One row: no weight, no eps; every entry by itself -----------------------------


@pytest.fixture(scope="module")
def one_row():
    """accepts(dx, x, dy) of the page, and its gradient(x, dy)."""
    names = page_names("one_row", "test", "backward")
    names["print"] = lambda *words: None

    def gradient(x, dy):
        return names["backward"](dy, names["forward"](x), 1 / x.std())

    return names["test"], gradient


def test_every_small_row_of_integers_passes(one_row):
    accepts, gradient = one_row
    rows = [row for row in itertools.product(range(6), repeat=4) if len(set(row)) > 1]
    pairs = list(itertools.product(np.array(rows, float), np.eye(4)))
    assert len(pairs) == 5160
    assert all(accepts(gradient(x, dy), x, dy) for x, dy in pairs)


def test_the_row_of_the_smallest_case_passes(one_row):
    accepts, gradient = one_row
    x = np.array([1.0, 2.0, 3.0])
    dy = np.array([0.0, 1.0, 0.0])
    assert accepts(gradient(x, dy), x, dy)
    assert not accepts(dy / x.std(), x, dy)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mean", MEANS)
def test_a_row_far_from_0_passes_and_its_wrong_gradients_fail(one_row, mean, scale):
    accepts, gradient = one_row
    rng = np.random.default_rng(1)
    for columns in (3, 8, 8, 8, 100):
        x = scale * (rng.standard_normal(columns) + mean)
        dy = rng.standard_normal(columns)
        assert accepts(gradient(x, dy), x, dy)
        x_hat = (x - x.mean()) / x.std()
        c1 = np.mean(x_hat * dy)
        assert not accepts(dy / x.std(), x, dy)
        assert not accepts((dy - dy.mean()) / x.std(), x, dy)
        assert not accepts((dy - x_hat * c1) / x.std(), x, dy)
        assert not accepts(1.01 * gradient(x, dy), x, dy)


# -- M rows, with a weight, a bias and eps ------------------------------------------


def batches(rng):
    """(x, weight, bias, dy): integers, means up to 10,000, constant rows, zeros, rows of very different size."""
    rows = [np.array(row, float) for row in itertools.product(range(-2, 3), repeat=3)]
    for row in rows:
        for dy in np.eye(3):
            yield row[None], np.ones(3), np.zeros(3), dy[None]
    for mean in MEANS:
        x = rng.standard_normal((4, 8)) + mean
        yield x, *rng.standard_normal((2, 8)), rng.standard_normal((4, 8))
        x = np.geomspace(1e-6, 1e6, 4)[:, None] * x
        yield x, *rng.standard_normal((2, 8)), rng.standard_normal((4, 8))
    for constant in (0, 0.1, 1, 1e4):
        x = rng.standard_normal((3, 6))
        x[0] = constant
        yield x, *rng.standard_normal((2, 6)), rng.standard_normal((3, 6))
        yield x[:1], np.ones(6), np.zeros(6), np.ones((1, 6))
        yield x[:1], np.ones(6), np.zeros(6), np.eye(6)[:1]
    yield np.zeros((2, 5)), np.zeros(5), np.zeros(5), np.zeros((2, 5))


def statistics(x):
    """(mean, rstd) of every row, in shape (M,)."""
    q = x - x.mean(-1, keepdims=True)
    return x.mean(-1), 1 / np.sqrt((q * q).mean(-1) + EPS)


def function(source):
    """The backward of a text of Homework 6."""
    namespace = {}
    exec(source, namespace)
    return namespace["backward"]


RIGHT = [function(source) for source in backwards.RIGHT.values()]
# Those of the thirteen whose dx lacks a term: seen at any mean, where the row has a slope at all.
LACKING = [function(subject.source()) for subject in backwards.SUBJECTS[:2]]


def on_testing_gradients(rng):
    """rejects(backward, x, weight, bias, dy) by the `test` of the page Testing gradients."""
    names = page_names("testing_gradients", "test")
    names["print"] = lambda *words: None

    def rejects(backward, x, weight, bias, dy):
        names.update(X=x, W=weight, B=bias, dY=dy)
        mean, rstd = statistics(x)
        direction = rng.standard_normal(x.shape) / rstd[:, None]
        dx = backward(dy, x, weight, mean, rstd)[0]
        return not names["test"](dx, direction)

    return rejects


def on_layer_norm(rng):
    """The same by `agrees` of the page LayerNorm, whose `directional` gets the size from the page's loss."""
    names = page_names("layer_norm", "agrees")
    names["print"] = lambda *words: None

    class Scaled:
        """Directions as large as the deviations of the rows."""

        def standard_normal(self, shape):
            drawn = rng.standard_normal(shape)
            return drawn / self.rstd[:, None] if len(shape) == 2 else drawn

    names["rng"] = scaled = Scaled()

    def rejects(backward, x, weight, bias, dy):
        names.update(dY=dy, inputs={"x": x, "weight": weight, "bias": bias})
        mean, scaled.rstd = statistics(x)
        grads = backward(dy, x, weight, mean, scaled.rstd)
        pairs = zip(("x", "weight", "bias"), grads, strict=True)
        return not all([names["agrees"](name, grad) for name, grad in pairs])

    return rejects


def in_homework_6(rng):
    """The same by the comparison of Homework 6's solution."""
    solution = runpy.run_path(str(SOLUTION))

    def rejects(backward, *batch):
        try:
            solution["compare"](rng, backward, *batch)
        except AssertionError:
            return True
        return False

    return rejects


@pytest.mark.parametrize(
    "taught",
    [on_testing_gradients, on_layer_norm, in_homework_6],
    ids=lambda f: f.__name__,
)
def test_a_right_backward_passes_whatever_is_drawn(taught):
    rejects = taught(np.random.default_rng(2))
    for batch in batches(np.random.default_rng(3)):
        for backward in RIGHT:
            assert not rejects(backward, *batch), batch


@pytest.mark.parametrize(
    "taught",
    [on_testing_gradients, on_layer_norm, in_homework_6],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("mean", MEANS)
def test_a_term_that_is_missing_is_seen_at_every_mean(taught, mean):
    rng = np.random.default_rng(4)
    rejects = taught(rng)
    for _ in range(20):
        x, dy = rng.standard_normal((2, 4, 8))
        weight, bias = rng.standard_normal((2, 8))
        for backward in LACKING:
            assert rejects(backward, x + mean, weight, bias, dy)
