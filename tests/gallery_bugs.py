"""Bugs of the gallery's table that checks of the package reject, each with its repair and a usual test."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from normgrad import L2_NORM, LAYER_NORM, RMS_NORM, numpy_ref
from normgrad.checks.backends import get
from normgrad.checks.cases import draw
from normgrad.mistakes.gallery import (
    Comparison,
    Written,
    rows,
    unit_weight,
)

PLAIN = ("residual", "dresidual_out")
FIXED = {"float32": 1e-4, "bfloat16": 5e-2}
GEMMA = RMS_NORM.replace(eps=1e-6, weight_offset=1.0)


@dataclass(frozen=True)
class Bug:
    """A wrong and a right operator, the check that tells them apart, what it says, and a test that accepts both.

    Args:  check: a function, or the name of the exhibit that has it
    """

    wrong: object
    right: object
    check: object
    complaint: str
    usual: object


def layer_norm_dx(p, weight, dy, mean, rstd):
    x_hat = (p - mean) * rstd
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    return rstd * (wdy - wdy.mean(-1, keepdims=True) - x_hat * c1)


# -- formulas


def offset_forgotten(x, weight, dy, rstd):
    """wdy is formed with the weight alone, which is stored as its distance from 1."""
    x_hat = x * rstd
    wdy = dy * weight
    return rstd * (wdy - x_hat * (x_hat * wdy).mean(-1, keepdims=True))


def no_weight_gradient():
    """The weight is taken to be frozen."""
    return None


def first_block(p, residual, weight, dy, dresidual_out, mean, rstd):
    """The cotangent of residual_out is read only where a residual came in."""
    dx = layer_norm_dx(p, weight, dy, mean, rstd)
    return dx if residual is None else dx + dresidual_out


# -- roundings


def offset_in_dtype(x, weight, rstd, store):
    """1 + weight, added where the weight lies, in its 16 bits."""
    return store(1 + weight) * x * rstd


def gradient_from_y(y, dy, rstd, store):
    """dx = rstd (dy - y <y, dy>) of L2 normalization, with y as it was stored."""
    y = store(y)
    return rstd * (dy - y * (y * dy).sum(-1, keepdims=True))


def along_x(rng):
    """A cotangent that is the row, but for one part in 300: little is left of dx."""
    drawn = draw(rng, 64, 128).without(*PLAIN, "weight", "bias")
    return replace(drawn, dy=drawn.x + drawn.dy / 300)


# -- memory and launches


def dw_too_late(p, mean, rstd, dx):
    """dw from the memory that held dy, after dx was written there."""
    return (dx * (p - mean) * rstd).sum(0)


def buffer_dropped(x):
    """The caller's buffer for the sum is forgotten; x is returned and saved."""
    return x


def shares(programs):
    """dw, summed by a number of programs, each over its share of the rows."""

    def dw(dy, p, mean, rstd):
        count = programs(len(dy))
        share = -(-len(dy) // count)
        terms = dy * (p - mean) * rstd
        return np.sum(
            [terms[k * share : (k + 1) * share].sum(0) for k in range(count)], 0
        )

    return dw


def twice_over_dy(x, weight, dy):
    """dx takes the place of dy, and is wrong by a factor of 2."""
    dx, dw = oracle(x, weight, dy)
    dy[...] = 2 * dx
    return dy, dw


def oracle(x, weight, dy):
    """(dx, dw) of LayerNorm for rows x, into new arrays."""
    grads = numpy_ref.backward(dy, numpy_ref.forward(x, weight))
    return grads.dx, grads.dweight


def two_calls_agree(gradients, rng):
    """Two implementations are given one dy, and their results are compared: here the same one twice."""
    case = draw(rng, 4, 8)
    first, second = (gradients(case.x, case.weight, case.dy)[0] for _ in range(2))
    assert np.array_equal(first, second)


# -- tests


def weight_left_out(p, dy, mean, rstd):
    """The weight scales the output and nothing else."""
    return layer_norm_dx(p, 1.0, dy, mean, rstd)


def off_by_a_thousand(y):
    return y + 1000


def one_sided(backend, rng):
    """max(expected - got), without an absolute value."""
    case = draw(rng, 4, 8).without(*PLAIN)
    got = get(backend).run(case, LAYER_NORM, "float64").y
    assert (numpy_ref.forward(case.x, case.weight, case.bias).y - got).max() <= FIXED[
        "bfloat16"
    ]


PLAIN_ROWS = rows(8, 64, *PLAIN)
STRONG = Comparison(PLAIN_ROWS, LAYER_NORM)
WITH_STREAM = Comparison(rows(8, 64), LAYER_NORM)
INPUT_ONLY = Comparison(PLAIN_ROWS, LAYER_NORM, allowed=1e-4, outputs=("y", "dx"))
OFFSET = rows(8, 64, *PLAIN, "bias")


def values(function, output, check, usual, complaint=""):
    """A bug whose check compares values with the oracle's."""
    return Bug(
        Written(function, output), Written(), check, complaint or rf"{output}\[", usual
    )


BUGS = {
    "offset forgotten": values(
        offset_forgotten,
        "dx",
        Comparison(OFFSET, GEMMA),
        Comparison(OFFSET, GEMMA, allowed=1e-4, outputs=("y",)),
    ),
    "no dw": values(no_weight_gradient, "dw", STRONG, INPUT_ONLY, "dw is absent"),
    "first block": values(
        first_block,
        "dx",
        Comparison(rows(8, 64, "residual"), LAYER_NORM),
        Comparison(rows(8, 64), LAYER_NORM, allowed=1e-4),
    ),
    "16-bit offset": values(
        offset_in_dtype,
        "y",
        Comparison(OFFSET, GEMMA, "bfloat16"),
        Comparison(OFFSET, GEMMA, "bfloat16", FIXED["bfloat16"], ("y",)),
    ),
    "gradient from y": values(
        gradient_from_y,
        "dx",
        Comparison(along_x, L2_NORM, "bfloat16"),
        Comparison(
            rows(64, 128, *PLAIN, "weight", "bias"),
            L2_NORM,
            "bfloat16",
            FIXED["bfloat16"],
        ),
    ),
    "dw too late": values(dw_too_late, "dw", STRONG, INPUT_ONLY),
    "buffer dropped": values(
        buffer_dropped,
        "residual_out",
        WITH_STREAM,
        Comparison(PLAIN_ROWS, LAYER_NORM, allowed=1e-4),
        r"y\[",
    ),
    "no rows": replace(
        values(
            shares(lambda m: min(m, 132)),
            "dw",
            Comparison(rows(0, 64, *PLAIN), LAYER_NORM),
            STRONG,
            "by zero",
        ),
        right=Written(shares(lambda m: max(1, min(m, 132))), "dw"),
    ),
    "weight of ones": values(
        weight_left_out,
        "dx",
        STRONG,
        Comparison(unit_weight(8, 64, *PLAIN), LAYER_NORM, allowed=1e-4),
    ),
    "one-sided": values(off_by_a_thousand, "y", STRONG, one_sided),
    "a buffer and itself": Bug(
        twice_over_dy,
        oracle,
        "written over dy",
        "dy was overwritten",
        two_calls_agree,
    ),
}
