"""Right answers for the tasks about rounding: rows far from 0, their statistics, and what any good way may lose.

A mean may be off as far as a sum in pieces of 16 and then in pairs can be, the variance as far as two passes with such
a mean, or the corrected way in any order, can be ({eq}`fp-bounds`); both are computed from the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ...checks.tolerance import ELEMENTWISE, SAFETY, SMALLEST, round_to, unit_roundoff
from ..diagnosis.variance import diagnose_merge, diagnose_rstd, diagnose_variance
from ..sandbox.student import Given, Request
from .norms import DEGENERATE, USUAL

OFFSETS = (0.0, 1e2, 1e4)
LENGTHS = (1, 2, 3, 17, 256, 1000, 4096)
EPS = 1e-5
PIECE = 16


def mean_error(x) -> np.ndarray:
    """How far off the mean of each row may be."""
    n = x.shape[-1]
    steps = min(n, PIECE + max(1, n - 1).bit_length())
    return SAFETY * steps * unit_roundoff("float32") * np.abs(x).max(-1, initial=0) + SMALLEST["float32"]


def variance_error(x, var) -> np.ndarray:
    """How far off the variance of each row may be."""
    n, u = x.shape[-1], unit_roundoff("float32")
    sums = (n + 6) * u
    loose = n * u * np.abs(x).max(-1, initial=0)
    corrected = SAFETY * sums * (np.sqrt(var) + 2 * loose) ** 2
    return np.maximum(corrected, SAFETY * sums * var + mean_error(x) ** 2) + SMALLEST["float32"]


@dataclass(frozen=True)
class RowsTrial:
    """Rows for one call. Args: name: what they are, in words; x (M, N), held in float64"""

    name: str
    x: np.ndarray
    eps: float = EPS

    @property
    def case(self):
        """What the grader reads shapes from."""
        return SimpleNamespace(x=self.x)

    def diagnose(self, output, numbers):
        """What is wrong with a variance or an rstd; numbers: (var, mean) or (rstd, var) as they came back."""
        if output == "rstd":
            return diagnose_rstd(*numbers, self.eps)
        if output != "var":
            return []
        error = mean_error(self.x), variance_error(self.x, self.x.var(-1))
        return diagnose_variance(self.x, *numbers, *error)


def far_rows(rng, rows, columns, offset, scale=1.0) -> RowsTrial:
    """Rows of deviation near 1 about an offset, all multiplied by a scale."""
    x = scale * (
        offset * rng.uniform(0.9, 1, (rows, 1)) + rng.uniform(0.5, 2, (rows, 1)) * rng.standard_normal((rows, columns))
    )
    return RowsTrial(f"rows of {columns} with a mean near {offset:g}", round_to(x, "float32"))


@dataclass(frozen=True)
class RowsOracle:
    """Statistics and normalized rows in float32."""

    arguments: tuple[str, ...] = ("x", "eps")
    results: tuple[str, ...] = ("x_hat", "mean", "var", "rstd")
    op: str = "call"
    kind: str = "numpy"
    base: str = "float32"
    dtypes: tuple[str, ...] = ("float16",)
    # A wrong variance is looked at with the mean that came back, a wrong rstd with the variance.
    beside = {"var": "mean", "rstd": "var"}

    def trials(self, rng, draw, kinds=USUAL) -> list[RowsTrial]:
        """Ordinary rows, or the degenerate ones."""
        if kinds != DEGENERATE:
            return [far_rows(rng, draw.rows, draw.columns, 1.0, draw.scale)]
        flat = np.array([0, 1, 0.1, 1e2, 1e4])[:, None] * np.ones(draw.columns)
        found = {"constant rows": flat, "no rows": flat[:0], "one column": 1e4 * rng.uniform(0.5, 1, (draw.rows, 1))}
        return [RowsTrial(name, round_to(x, "float32")) for name, x in found.items()]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        given = Given("x", round_to(trial.x, dtype), dtype, layout=layout), Given("eps", trial.eps, kind="scalar")
        return Request(op or self.op, given)

    def expected(self, trial, dtype="float32") -> dict:
        """{result: (value, bound)} of the numbers that the dtype holds; statistics are float32 always."""
        x, u, eps = round_to(trial.x, dtype), unit_roundoff("float32"), trial.eps
        mean, var = x.mean(-1), x.var(-1)
        e_mean, e_var = mean_error(x), variance_error(x, var)
        rstd = 1 / np.sqrt(var + eps)
        widest = 1 / np.sqrt(np.maximum(var - e_var, 0) + eps) - rstd
        e_rstd = widest + ELEMENTWISE * u * rstd
        x_hat = (x - mean[:, None]) * rstd[:, None]
        e_hat = (e_mean * (rstd + e_rstd))[:, None] + np.abs(x_hat) * (e_rstd / rstd + ELEMENTWISE * u)[:, None]
        e_hat = e_hat + unit_roundoff(dtype) * (np.abs(x_hat) + e_hat) + SMALLEST[dtype]
        return {"x_hat": (x_hat, e_hat), "mean": (mean, e_mean), "var": (var, e_var), "rstd": (rstd, e_rstd)}


@dataclass(frozen=True)
class MergeTrial:
    """Pairs of blocks, one pair an entry. Args: parts: {argument: (M,)}, held in float64"""

    name: str
    parts: dict

    @property
    def case(self):
        """What the grader reads shapes from."""
        return SimpleNamespace(x=self.parts["n1"][:, None])

    def merged(self):
        """(n, mean, squares) of each pair.  {eq}`fp-merge`"""
        n1, mean1, squares1, n2, mean2, squares2 = self.parts.values()
        n, d = n1 + n2, mean2 - mean1
        some = np.maximum(n, 1)
        return n, mean1 + n2 / some * d, squares1 + squares2 + n1 * n2 / some * d**2

    def diagnose(self, output, numbers):
        """What is wrong with a merged mean or sum of squares."""
        return diagnose_merge(output, numbers, self.parts, MergeOracle().expected(self)[output])


@dataclass(frozen=True)
class MergeOracle:
    """The statistics of two blocks together."""

    arguments: tuple[str, ...] = ("n1", "mean1", "squares1", "n2", "mean2", "squares2")
    results: tuple[str, ...] = ("n", "mean", "squares")
    op: str = "call"
    kind: str = "numpy"
    base: str = "float32"

    def trials(self, rng, draw, kinds=USUAL, offset=1.0) -> list[MergeTrial]:
        """Blocks of random lengths, or empty ones and blocks of one."""
        m, number = draw.rows, lambda *edges: rng.uniform(*edges, draw.rows)
        lengths = [rng.integers(1, 4096, m) for _ in range(2)]
        if kinds == DEGENERATE:
            lengths = [np.resize(each, m) for each in ((0, 3, 0, 1), (5, 0, 0, 1))]
        parts = {}
        for place, n in enumerate(lengths, start=1):
            there = (n > 0) * draw.scale
            parts |= {f"n{place}": n, f"mean{place}": there * (offset * number(0.9, 1) + number(-2, 2)),
                      f"squares{place}": there * draw.scale * np.maximum(n - 1, 0) * number(0.5, 2)}  # fmt: skip
        name = "empty blocks and blocks of one" if kinds == DEGENERATE else f"blocks with means near {offset:g}"
        return [MergeTrial(name, {key: round_to(np.asarray(a, float), "float32") for key, a in parts.items()})]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        return Request(op or self.op, tuple(Given(name, trial.parts[name], dtype) for name in self.arguments))

    def expected(self, trial, dtype="float32") -> dict:
        """{result: (value, bound)}: nothing cancels in the right formula, so a few roundings are all."""
        n, mean, squares = trial.merged()
        size = np.maximum(np.abs(trial.parts["mean1"]), np.abs(trial.parts["mean2"]))
        u, tiny = SAFETY * ELEMENTWISE * unit_roundoff(dtype), SMALLEST[dtype]
        return {"n": (n, 0 * n), "mean": (mean, u * size + tiny), "squares": (squares, u * squares + tiny)}


def with_outlier(trial: RowsTrial) -> RowsTrial:
    """The trial with the first entry of each row far from the others."""
    x = trial.x.copy()
    x[:, 0] += 100
    return replace(trial, x=round_to(x, "float32"), name=f"{trial.name}, the first entry far off")
