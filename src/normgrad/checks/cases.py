"""Hostile inputs, seeded: one generator for the tests, the chapters and the homework.

A case holds float64 arrays; ``rounded`` gives them the values of a narrower dtype, so that every backend and the
oracle start from the same numbers. Cotangents are random, weights have mixed signs: with a cotangent of ones, or a
weight of ones, a backward that is wrong can pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from ..spec import L2_NORM, LAYER_NORM, LAYER_NORM_STD, RMS_NORM, NormSpec
from ..tolerance import Dtypes, round_to

ARRAYS = ("x", "weight", "bias", "residual", "dy", "dresidual_out")
MATRICES = ("x", "residual", "dy", "dresidual_out")
VECTORS = ("weight", "bias", "dw", "db")

# The presets, the source text's operator (sum, scale, no eps), and the remaining pairs of centring and placement.
# An eps of 0.3 to 0.5 stands beside rows of size 0.1 to 10, so that the clamp is met on both of its sides.
SPECS = {
    "layer_norm": LAYER_NORM,
    "layer_norm_std": LAYER_NORM_STD.replace(eps=0.3),
    "rms_norm": RMS_NORM.replace(eps=1e-6),
    "l2_norm": L2_NORM,
    "centred_sum_scaled": NormSpec(center=True, reduce="sum", scale=-1.7, eps=0.0),
    "plain_sum_scaled": NormSpec(center=False, reduce="sum", scale=2.5, eps=0.0),
    "rms_outside": NormSpec(center=False, eps=0.3, placement="outside"),
    "l2_outside": NormSpec(center=False, reduce="sum", eps=0.3, placement="outside"),
    "layer_norm_clamp": NormSpec(center=True, eps=0.5, placement="clamp"),
    "rms_norm_offset": RMS_NORM.replace(eps=1e-6, weight_offset=1.0),
    "l2_clamp": NormSpec(center=False, reduce="sum", eps=0.5, placement="clamp"),
}


def changed(record, names, change) -> dict[str, np.ndarray | None]:
    """{name: change(name, array)} of a record's arrays, None for those that it lacks."""
    arrays = {name: getattr(record, name) for name in names}
    return {
        name: None if array is None else change(name, array)
        for name, array in arrays.items()
    }


def of_head(record, head: int, heads: int, names) -> dict[str, np.ndarray | None]:
    """{name: what belongs to one head} of a record's arrays: its rows, or its row of what has one a head."""
    rows = slice(head, None, heads)
    return changed(
        record, names, lambda name, array: array[head if name in VECTORS else rows]
    )


@dataclass(frozen=True)
class Case:
    """One set of inputs and cotangents, float64: x, residual, dy, dresidual_out (M, N); weight, bias (N,).

    Args:  layout: "contiguous", "strided" (every second column of a wider array), "transposed" (the first axis last in
           memory), "expanded" (one row, repeated), "negated" (torch's lazy minus of what the memory holds) or
           "sliced" (some of more heads, of another number for each array: two strides, of tokens and of heads)
           lead: the axes before the last one of the arrays that a backend is given, None means (M,)
           wanted: the inputs whose gradients are asked for, None means all
           heads: H where weight and bias are (H, N) and row r is that of head r % H, None where all rows share them
    """

    name: str
    x: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None
    residual: np.ndarray | None
    dy: np.ndarray
    dresidual_out: np.ndarray | None
    layout: str = "contiguous"
    lead: tuple[int, ...] | None = None
    wanted: tuple[str, ...] | None = None
    heads: int | None = None

    @property
    def exact_sum(self) -> np.ndarray:
        """x + residual (M, N), x without a residual."""
        return self.x if self.residual is None else self.x + self.residual

    def by_head(self) -> list[Case]:
        """The rows of each head with its weight and bias, as a case of its own; the case where all share them."""
        if self.heads is None:
            return [self]
        parts = []
        for head in range(self.heads):
            part = replace(self, **of_head(self, head, self.heads, ARRAYS))
            name = f"{self.name}, head {head}"
            part = replace(part, name=name, layout="contiguous", lead=None, heads=None)
            parts.append(part)
        return parts

    def rounded(self, dtype: str | Dtypes) -> Case:
        """The case with every number rounded to the nearest of its dtype, still held in float64."""
        dtypes = Dtypes.of(dtype)
        arrays = changed(self, ARRAYS, lambda name, a: round_to(a, dtypes[name]))
        return replace(self, **arrays)

    def summed(self, dtype: str | Dtypes) -> np.ndarray:
        """p = x + residual (M, N), as residual_out holds it, or in the dtype of the sums where it is not rounded."""
        dtypes = Dtypes.of(dtype)
        if self.residual is None:
            return self.x
        stored = dtypes["residual_out"] if dtypes.round_residual else dtypes.accumulator
        return round_to(self.exact_sum, stored)

    def without(self, *names: str) -> Case:
        """The case without some of weight, bias, residual and dresidual_out."""
        return replace(
            self, **dict.fromkeys(names), name=f"{self.name}, no {' no '.join(names)}"
        )


def draw(
    rng: np.random.Generator, rows: int = 4, columns: int = 7, name: str = "random"
) -> Case:
    """A case of standard normal numbers: no unit weight, no constant cotangent.

    Args:     rng: the generator that everything random comes from; rows M, at least 0; columns N, at least 1
    Raises:   TypeError for another generator, ValueError for other sizes
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng: got {type(rng).__name__}, needs a numpy.random.Generator"
        )
    for axis, size, least in (("rows", rows, 0), ("columns", columns, 1)):
        if not isinstance(size, Integral) or size < least:
            raise ValueError(
                f"{axis}: got {size!r}, needs an integer that is at least {least}"
            )
    matrix, vector = (rows, columns), (columns,)
    x, residual, dy, dresidual_out = (rng.standard_normal(matrix) for _ in range(4))
    return Case(
        name,
        x,
        rng.standard_normal(vector),
        rng.standard_normal(vector),
        residual,
        dy,
        dresidual_out,
    )


def _scales(rng, rows, columns):
    case = draw(rng, rows, columns, "rows of different scale and offset")
    # The smallest row is shorter than the clamps of SPECS at every N, the others are not.
    scale = np.geomspace(0.02 / columns**0.5, 30, max(rows, 1))[:rows, None]
    offset = rng.uniform(-3, 3, (rows, 1))
    return replace(case, x=scale * (case.x + offset), residual=scale * case.residual)


def _aligned(rng, rows, columns):
    """dy = x_hat / weight plus 1 / weight, so that c1 and c2 are as large as wdy itself at every N."""
    case = draw(rng, rows, columns, "cotangent along x_hat and 1")
    p = case.x + case.residual
    x_hat = (
        (p - p.mean(-1, keepdims=True)) / p.std(-1, keepdims=True) if columns > 1 else p
    )
    weight = np.copysign(1 + np.abs(case.weight), case.weight)
    dy = (
        rng.uniform(0.5, 2, (rows, 1)) * x_hat + rng.uniform(0.5, 2, (rows, 1))
    ) / weight
    return replace(case, weight=weight, dy=dy)


def _offset(rng, rows, columns):
    case = draw(rng, rows, columns, "mean a thousand deviations away")
    return replace(case, x=case.x + 1e3)


def _flat(rng, rows, columns):
    case = draw(rng, max(rows, 3), columns, "a constant row and a zero row")
    x, residual = case.x.copy(), case.residual.copy()
    x[0], residual[0] = 1.5, 0.25
    x[1] = residual[1] = 0
    return replace(case, x=x, residual=residual)


def _expanded(rng, rows, columns):
    case = draw(rng, rows, columns, "expanded rows")
    repeated = {
        name: np.broadcast_to(getattr(case, name)[:1], (rows, columns))
        for name in ("x", "dy")
    }
    return replace(case, **repeated, layout="expanded")


def _of_heads(rng, rows, columns, own):
    """Rows of 3 heads as slices of more heads; own: each head has a weight and a bias of its own."""
    case = replace(
        draw(rng, 3 * rows, columns, "slices of heads"), layout="sliced", lead=(rows, 3)
    )
    if not own:
        return case
    weight, bias = rng.standard_normal((2, 3, columns))
    return replace(
        case, name="a weight for each head", weight=weight, bias=bias, heads=3
    )


def cases(rng: np.random.Generator, rows: int = 4, columns: int = 7) -> list[Case]:
    """Every kind of input the contract names, at the given size where the kind leaves it open.

    Args:     rng, rows, columns: as draw
    """
    plain = draw(rng, rows, columns)
    return [
        plain,
        _scales(rng, rows, columns),
        _aligned(rng, rows, columns),
        _offset(rng, rows, columns),
        _flat(rng, rows, columns),
        draw(rng, 0, columns, "no rows"),
        draw(rng, 1, columns, "one row"),
        draw(rng, rows, 1, "one column"),
        replace(draw(rng, rows, columns, "strided"), layout="strided"),
        _expanded(rng, rows, columns),
        plain.without("residual", "dresidual_out"),
        plain.without("weight"),
        plain.without("bias"),
        plain.without("weight", "bias", "residual", "dresidual_out"),
        plain.without("dresidual_out"),
        _of_heads(rng, rows, columns, own=False),
        _of_heads(rng, rows, columns, own=True),
    ]
