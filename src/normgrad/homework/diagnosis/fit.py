"""Least squares: over all rows at once, row by row, and sparse in a dictionary; and the noise they are held to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...checks.tolerance import unit_roundoff
from .formulas import Arrays, Part, Setting, Term, right

# Two directions that agree to half the digits are one: the coefficients of both would be rounding errors.
SAME = unit_roundoff("float64") ** 0.5
SEARCHED = 256
# More terms than any formula here has fit anything.
MOST_TERMS, BEAM = 5, 8


@dataclass(frozen=True)
class Fit:
    """Coefficients of terms, how far off each may be, and what is left.

    Args:  terms; coefficients and uncertainty, one a term; left: the output less the fit, as a flat array
    """

    terms: tuple[Term, ...]
    coefficients: np.ndarray
    uncertainty: np.ndarray
    left: np.ndarray

    def parts(self) -> list[Part]:
        """The fit as parts of a formula, without the terms whose coefficient may be 0."""
        each = zip(self.terms, self.coefficients, self.uncertainty, strict=True)
        return [Part("", term, float(c)) for term, c, e in each if abs(c) > e]


def spread(count: int) -> np.ndarray:
    """The places of so many entries, at most SEARCHED of them, evenly apart."""
    return np.unique(np.linspace(0, count - 1, min(count, SEARCHED)).astype(int))


class Target:
    """An output to be explained: its finite entries, the right formula, and the noise that a formula is allowed.

    Args:  output: "dx", "dresidual", "dw", "db" or "y"; got: what the student returned; arrays: the case
    """

    def __init__(self, output: str, got: np.ndarray, arrays: Arrays):
        self.output, self.whole, self.arrays, self.shape = (
            output,
            got,
            arrays,
            got.shape,
        )
        self.setting = Setting.of(arrays.case, arrays.spec)
        self.right = right(output, self.setting)
        self.finite = np.isfinite(got).ravel()
        # Among so many entries candidates are sought; what is found must hold in all of them.
        self.some = spread(got.size)
        self.got = got.ravel()[self.finite]
        self.bound = np.broadcast_to(getattr(arrays.bounds, output), got.shape)
        self.right_size = self._size(self.right.parts)

    @property
    def expected(self) -> np.ndarray:
        """The right output."""
        grads = self.arrays.grads
        outputs = {"y": self.arrays.saved.y, "dw": grads.dweight, "db": grads.dbias}
        return outputs.get(self.output, grads.dx)

    def _size(self, parts):
        sizes = (abs(part.coefficient) * self.arrays.size(part.term) for part in parts)
        return np.broadcast_to(sum(sizes, np.zeros(())), self.shape).max(
            -1, keepdims=True, initial=0
        )

    def matrix(self, terms) -> np.ndarray:
        """The terms as columns, on the finite entries."""
        columns = [
            np.broadcast_to(self.arrays.value(term), self.shape).ravel()[self.finite]
            for term in terms
        ]
        return np.stack(columns, 1) if columns else np.zeros((self.got.size, 0))

    def prediction(self, parts) -> np.ndarray:
        """What a formula gives, on the finite entries."""
        return self.matrix([part.term for part in parts]) @ np.array(
            [part.coefficient for part in parts]
        )

    def noise(self, parts) -> np.ndarray:
        """How far a student's result may be from a formula: the right one's bound, grown with the formula's terms."""
        size = self._size(parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            grown = np.fmax(1, size / self.right_size)
        out = unit_roundoff(self.arrays.dtypes[self.output])
        bound = np.broadcast_to(self.bound * grown, self.shape).ravel()[self.finite]
        return bound + 2 * out * np.abs(self.prediction(parts))

    def distance(self, parts) -> float:
        """The largest error in units of the noise: at most 1 where the formula explains the output."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            error, noise = np.abs(self.got - self.prediction(parts)), self.noise(parts)
            ratio = np.where(error == 0, 0, error / noise)
        return float(np.where(np.isfinite(noise), ratio, np.inf).max(initial=0))

    def residual(self, prediction) -> float:
        """|got - prediction| / |got|."""
        size = np.linalg.norm(self.got)
        left = np.linalg.norm(self.got - prediction)
        return float(left / size) if size else float(left)


def independent(matrix: np.ndarray) -> list[int]:
    """The columns that are no combination of those before them."""
    basis, kept = np.zeros((len(matrix), 0)), []
    for at, column in enumerate(matrix.T):
        size = np.linalg.norm(column)
        if not size or not np.isfinite(size):
            continue
        rest = column / size
        for _ in range(2):
            rest = rest - basis @ (basis.T @ rest)
        if np.linalg.norm(rest) > SAME:
            kept.append(at)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return kept


def over_rows(target: Target, terms, noise: np.ndarray) -> Fit:
    """One coefficient a term for all rows, by least squares; terms that repeat earlier ones are left out.

    Args:  noise: how far each finite entry may be off, which makes the uncertainty of the coefficients
    """
    matrix = target.matrix(terms)
    kept = independent(matrix)
    matrix, terms = matrix[:, kept], tuple(terms[at] for at in kept)
    sizes = np.linalg.norm(matrix, axis=0)
    inverse = np.linalg.pinv(matrix / sizes) / sizes[:, None]
    coefficients = inverse @ target.got
    return Fit(
        terms, coefficients, np.abs(inverse) @ noise, target.got - matrix @ coefficients
    )


def by_row(got: np.ndarray, terms: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of each row on its own (rows, terms), and what is left of each row.

    Args:  got (M, N); terms: arrays (M, N)
    """
    coefficients, left = np.zeros((len(got), len(terms))), np.zeros_like(got)
    for i, row in enumerate(got):
        matrix = np.stack([term[i] for term in terms], 1)
        kept = independent(matrix)
        if kept:
            sizes = np.linalg.norm(matrix[:, kept], axis=0)
            coefficients[i, kept] = (
                np.linalg.lstsq(matrix[:, kept] / sizes, row, rcond=None)[0] / sizes
            )
        left[i] = row - matrix @ coefficients[i]
    return coefficients, left


def sparse(target: Target, terms, noise: np.ndarray) -> Fit:
    """The fewest terms of a dictionary, at most MOST_TERMS, sought one by one from the BEAM best sets so far."""
    few = spread(target.got.size)
    matrix, got, noise_of_few = target.matrix(terms)[few], target.got[few], noise[few]
    sizes = np.linalg.norm(matrix, axis=0)
    good = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    # A set: its columns, what the columns outside it have besides it, and what it leaves of the output.
    sets = [((), matrix[:, good] / sizes[good], got)]
    for _ in range(min(MOST_TERMS, len(good), max(0, got.size - 1))):
        sets = _longer(sets)
        if np.all(np.abs(sets[0][2]) <= noise_of_few):
            break
    return over_rows(target, [terms[good[at]] for at in sorted(sets[0][0])], noise)


def _longer(sets):
    """The sets with one more column that leave least of the output."""
    found = {}
    for chosen, rest, left in sets:
        length = np.linalg.norm(rest, axis=0)
        unit = np.where(length > SAME, rest / np.where(length > SAME, length, 1), 0)
        along = left @ unit
        for at in np.argsort(-np.abs(along), kind="stable")[:BEAM]:
            key = frozenset((*chosen, int(at)))
            if key not in found:
                found[key] = (
                    float(left @ left - along[at] ** 2),
                    chosen,
                    int(at),
                    rest,
                    left,
                    unit[:, at],
                )
    best = sorted(found.values(), key=lambda each: each[0])[:BEAM]
    return [
        ((*chosen, at), rest - np.outer(unit, unit @ rest), left - unit * (unit @ left))
        for _, chosen, at, rest, left, unit in best
    ]
