"""Homework 6: write a test that rejects thirteen wrong backwards.

Check with `pytest` in this folder, or with `python -m normgrad.homework check .`
"""

import numpy as np

EPS = 1e-5


### BEGIN SOLUTION
ROUNDOFF = 2.0**-53
STEP = ROUNDOFF ** (1 / 3)
### END SOLUTION


def layernorm_forward(x, weight, bias):
    """LayerNorm of every row: (y, mean, rstd). Given; it is right."""
    mean = x.mean(-1)
    q = x - mean[:, None]
    rstd = 1 / np.sqrt((q * q).mean(-1) + EPS)
    return q * rstd[:, None] * weight + bias, mean, rstd


### BEGIN SOLUTION
def draw(rng, rows, columns):
    """(x, weight, bias, dy) with rows of different size, and everything random."""
    scale = np.geomspace(0.1, 10, rows)[:, None]
    x = scale * (rng.standard_normal((rows, columns)) + rng.uniform(-2, 2, (rows, 1)))
    normal = rng.standard_normal
    return x, normal(columns), normal(columns), normal((rows, columns))


def slope(arrays, ways, dy):
    """(slope of the loss <dy, y> along a direction, how far off it may be): two central differences."""

    def loss(t):
        x, weight, bias = (a + t * way for a, way in zip(arrays, ways, strict=True))
        y, _, rstd = layernorm_forward(x, weight, bias)
        far = np.abs(x).mean(-1) * rstd  # what subtracting a mean costs
        size = np.abs(y) + np.abs(bias) + far[:, None] * np.abs(weight)
        return (dy * y).sum(), (np.abs(dy) * size).sum()

    def central(h):
        (up, size_up), (down, size_down) = loss(h), loss(-h)
        return (up - down) / (2 * h), (size_up + size_down) / (2 * h)

    (coarse, _), (fine, noise) = central(STEP), central(STEP / 2)
    terms = sum(a.size for a in arrays)
    return (4 * fine - coarse) / 3, abs(fine - coarse) + 4 * terms * ROUNDOFF * noise


def compare(rng, backward, x, weight, bias, dy):
    """One direction for x, one for the weight, one for the bias; the direction of x is as large as its rows vary."""
    _, mean, rstd = layernorm_forward(x, weight, bias)
    grads = backward(dy.copy(), x.copy(), weight.copy(), mean, rstd)
    arrays = (x, weight, bias)
    for at, (name, grad) in enumerate(zip(("dx", "dw", "db"), grads, strict=True)):
        ways = [np.zeros_like(a) for a in arrays]
        size = 1 / rstd[:, None] if name == "dx" else 1
        ways[at] = size * rng.standard_normal(arrays[at].shape)
        value, allowed = slope(arrays, ways, dy)
        claimed = (grad * ways[at]).sum()
        words = f"{name}: slope {claimed:.9g}, needs {value:.9g}"
        assert abs(claimed - value) <= allowed, words


### END SOLUTION


def check_backward(backward):
    """Raises AssertionError if a backward of LayerNorm is wrong, returns nothing if it is right.

    Args:     backward: backward(dy, x, weight, mean, rstd) -> (dx, dw, db), with dy, x (M, N), weight (N,), and
              mean, rstd (M,) as layernorm_forward returns them; the inputs are yours to choose
    Equations: ln-forward, ln-dx, ln-dw, ln-db (chapter LayerNorm); the chapter Testing gradients
    """
    ### BEGIN SOLUTION
    rng = np.random.default_rng(0)
    for rows, columns in ((4, 7), (3, 16), (1, 5)):
        compare(rng, backward, *draw(rng, rows, columns))
    x, weight, bias, dy = draw(rng, 2, 6)
    x[0] = 0.5
    compare(rng, backward, x, weight, bias, dy)
    ### END SOLUTION
