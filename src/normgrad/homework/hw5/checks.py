"""Statistics in float32 of rows far from 0: right answers, what any good way may lose, and the stages.

A mean may be off as far as a sum in pieces of 16 and then in pairs can be, the variance as far as two passes with such
a mean, or the corrected way in any order, can be ({eq}`fp-bounds`); both are computed from the row.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ...tolerance import (
    ELEMENTWISE,
    SAFETY,
    SIGNIFICAND,
    SMALLEST,
    round_to,
    unit_roundoff,
)
from ..checks.norms import DEGENERATE, USUAL
from ..checks.values import two_shapes
from ..messages import INPUTS, OUT_OF_TIME, Wrong
from ..named import named
from ..sandbox.student import Given, Request

OFFSETS = (0.0, 1e2, 1e4)
LENGTHS = (1, 2, 3, 17, 256, 1000, 4096)
EPS = 1e-5
FLAT_ROWS, FLAT_COLUMNS = 64, 31
PIECE = 16
U = unit_roundoff("float32")
# Kinds of blocks: long ones, whose counts a float32 holds, and no int32 their product.
LONG = ("long",)
BLOCK_NAMES = {
    DEGENERATE: "empty blocks and blocks of one",
    LONG: "blocks of 1024 to 4 million numbers",
}
KEEP = "A kernel has float32: keep to it, and choose the formula."
WIDE, LOST = "wide-arithmetic", "digits-lost"
# A row of so many numbers has all digits of its variance by chance, about three times in four, and never so many rows.
EXACT_ROWS, EXACT_LENGTH = 64, 1000
# Half a spacing, and what deviations lose that are rounded before they are squared elsewhere.
NEAREST = 0.5 + 0.125
SMALLEST_SIZE = 1e-30


def spacing(size) -> np.ndarray:
    """The distance between float32 numbers of a size."""
    exponent = np.floor(np.log2(np.maximum(size, SMALLEST_SIZE)))
    return 2.0 ** (exponent + 1 - SIGNIFICAND["float32"])


def mean_error(x) -> np.ndarray:
    """How far off the mean of each row may be."""
    n = x.shape[-1]
    steps = min(n, PIECE + max(1, n - 1).bit_length())
    largest = np.abs(x).max(-1, initial=0)
    return SAFETY * steps * U * largest + SMALLEST["float32"]


def variance_error(x, var) -> np.ndarray:
    """How far off the variance of each row may be."""
    n = x.shape[-1]
    sums = SAFETY * (n + 6) * U
    loose = n * U * np.abs(x).max(-1, initial=0)
    corrected = sums * (np.sqrt(var) + 2 * loose) ** 2
    two_passes = sums * var + mean_error(x) ** 2
    return np.maximum(corrected, two_passes) + SMALLEST["float32"]


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


def far_rows(rng, rows, columns, offset, scale=1.0) -> RowsTrial:
    """Rows of deviation near 1 about an offset, all multiplied by a scale."""
    means = offset * rng.uniform(0.9, 1, (rows, 1))
    spreads = rng.uniform(0.5, 2, (rows, 1))
    x = scale * (means + spreads * rng.standard_normal((rows, columns)))
    name = f"rows of {columns} with a mean near {offset:g}"
    return RowsTrial(name, round_to(x, "float32"))


@dataclass(frozen=True)
class RowsOracle:
    """Statistics and normalized rows in float32."""

    arguments: tuple[str, ...] = ("x", "eps")
    results: tuple[str, ...] = ("x_hat", "mean", "var", "rstd")
    op: str = "call"
    kind: str = "numpy"
    base: str = "float32"
    dtypes: tuple[str, ...] = ("float16",)

    def trials(self, rng, draw, kinds=USUAL) -> list[RowsTrial]:
        """Ordinary rows, or the degenerate ones."""
        if kinds != DEGENERATE:
            rows = 1 if kinds == ("one row",) else draw.rows
            return [far_rows(rng, rows, draw.columns, 1.0)]
        flat = np.array([0, 1, 0.1, 1e2, 1e4])[:, None] * np.ones(draw.columns)
        # A variance that may be negative is so in about one row in ten.
        many = rng.uniform(0.5, 1, (FLAT_ROWS, 1)) * np.ones(FLAT_COLUMNS)
        inputs = {
            "constant rows": flat,
            "many constant rows": many,
            "no rows": flat[:0],
            "one column": 1e4 * rng.uniform(0.5, 1, (draw.rows, 1)),
        }
        return [RowsTrial(name, round_to(x, "float32")) for name, x in inputs.items()]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        x = Given("x", round_to(trial.x, dtype), dtype, layout=layout)
        return Request(op or self.op, (x, Given("eps", trial.eps, kind="scalar")))

    def expected(self, trial, dtype="float32") -> dict:
        """{result: (value, bound)} of the numbers that the dtype holds; statistics are float32 always."""
        x, eps = round_to(trial.x, dtype), trial.eps
        mean, var = x.mean(-1), x.var(-1)
        e_mean, e_var = mean_error(x), variance_error(x, var)
        rstd = 1 / np.sqrt(var + eps)
        largest = 1 / np.sqrt(np.maximum(var - e_var, 0) + eps)
        e_rstd = largest - rstd + ELEMENTWISE * U * rstd
        x_hat = (x - mean[:, None]) * rstd[:, None]
        share = e_rstd / rstd + ELEMENTWISE * U
        e_hat = (e_mean * (rstd + e_rstd))[:, None] + np.abs(x_hat) * share[:, None]
        e_hat = e_hat + unit_roundoff(dtype) * (np.abs(x_hat) + e_hat) + SMALLEST[dtype]
        return {
            "x_hat": (x_hat, e_hat),
            "mean": (mean, e_mean),
            "var": (var, e_var),
            "rstd": (rstd, e_rstd),
        }


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
        share = n2 / np.maximum(n, 1)
        return n, mean1 + share * d, squares1 + squares2 + n1 * share * d**2


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
        m = draw.rows
        times = 2**10 if kinds == LONG else 1
        lengths = [times * rng.integers(1, 4096, m) for _ in range(2)]
        if kinds == DEGENERATE:
            lengths = [np.resize((0, 3, 0, 1), m), np.resize((5, 0, 0, 1), m)]
        parts = {}
        for block, n in enumerate(lengths, start=1):
            mean = offset * rng.uniform(0.9, 1, m) + rng.uniform(-2, 2, m)
            spread = np.maximum(n - 1, 0) * rng.uniform(0.5, 2, m)
            parts[f"n{block}"] = round_to(n.astype(float), "float32")
            parts[f"mean{block}"] = round_to((n > 0) * mean, "float32")
            parts[f"squares{block}"] = round_to(spread, "float32")
        name = BLOCK_NAMES.get(kinds, f"blocks with means near {offset:g}")
        return [MergeTrial(name, parts)]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        arguments = [Given(name, trial.parts[name], dtype) for name in self.arguments]
        return Request(op or self.op, tuple(arguments))

    def expected(self, trial, dtype="float32") -> dict:
        """{result: (value, bound)}: nothing cancels in the right formula, so a few roundings are all."""
        n, mean, squares = trial.merged()
        size = np.maximum(np.abs(trial.parts["mean1"]), np.abs(trial.parts["mean2"]))
        u, tiny = SAFETY * ELEMENTWISE * unit_roundoff(dtype), SMALLEST[dtype]
        return {
            "n": (n, 0 * n),
            "mean": (mean, u * size + tiny),
            "squares": (squares, u * squares + tiny),
        }


def with_outlier(trial: RowsTrial) -> RowsTrial:
    """The trial with the first entry of each row far from the others."""
    x = trial.x.copy()
    x[:, 0] += 100
    return RowsTrial(f"{trial.name}, the first entry far off", round_to(x, "float32"))


def rows_of_lengths(exam, offset, lengths) -> list[RowsTrial]:
    """Rows of these lengths, and one row more for each."""
    rng, draw = exam.rng(), exam.draw
    return [
        far_rows(rng, draw.rows + more, n, offset) for more, n in enumerate(lengths)
    ]


def variance_at(offset):
    """A stage: the variance of rows with this mean."""

    def stage(exam) -> str:
        usual, *longer = rows_of_lengths(exam, offset, (exam.draw.columns, 64, 512))
        if not offset:
            # Far from 0, rounding may be what is wrong for the longer rows alone.
            two_shapes(exam, [usual], longer, ("var",))
        return compared(exam, [usual, *longer, with_outlier(longer[0])], ("var",))

    return stage


def compared(exam, trials, names) -> str:
    """As Exam.compare; of wrong numbers also the line at which float32 and more digits part, where they do."""
    try:
        return exam.compare(trials, names)
    except Wrong as wrong:
        if not wrong.evidence:
            raise
        name, _, trial = wrong.evidence[0]
        request = exam.oracle.request(trial, op="formats")
        outcome = exam.student.call(exam.task.entry, request)
        places = outcome.facts.get("places", [])
        parted = dict(zip(exam.oracle.results, places, strict=False)).get(name)
        if not parted:
            raise
        words = (
            f"{wrong} With more digits, the same steps give another {name}. The two part in line {parted['line']}: "
            f"{parted['code']}"
        )
        raise Wrong(words, wrong.evidence, key=LOST) from None


def others(exam) -> str:
    """mean, rstd and the normalized rows at every offset."""
    rng, draw = exam.rng("small"), exam.draw
    small = far_rows(rng, draw.rows, draw.columns, 1.0, EPS**0.5)
    name = f"rows of {draw.columns} with a variance near eps"
    trials = [replace(small, name=name)]
    for offset in OFFSETS:
        trials += rows_of_lengths(exam, offset, (draw.columns, 64))
    return compared(exam, trials, ("mean", "rstd", "x_hat"))


def lengths(exam) -> str:
    """Rows of 1 to 4096 numbers, near 0 and far from it."""
    far = rows_of_lengths(exam, OFFSETS[-1], (exam.draw.columns, 64, 512))
    for offset in (0.0, 1e4):
        trials = rows_of_lengths(exam, offset, LENGTHS)
        try:
            compared(exam, trials, exam.oracle.results)
        except Wrong as wrong:
            keys = {diagnosis.misconception for diagnosis in wrong.diagnoses}
            if LOST in keys and exam.is_right(far):
                wrong.diagnoses = (named("long-sum"),)
            raise
    return f"Right for rows of {', '.join(map(str, LENGTHS))} numbers."


def flat(exam) -> str:
    """Constant rows, whose variance is 0 and never negative, no rows, one column."""
    for trial in exam.trials(DEGENERATE):
        if (exam.answers(trial)["var"] < 0).any():
            words = (
                "A variance is negative: what rounding leaves of a difference may be."
            )
            raise Wrong(f"{INPUTS}{trial.name}. {words}")
        exam.compare([trial], exam.oracle.results)
    return "Constant rows, no rows and one column are right."


def in_float32(exam) -> str:
    """The arithmetic goes through float32 alone, as a kernel's does."""
    if _wider(exam):
        words = (
            "Its variances have digits that float32 arithmetic loses, and are right where the square of one deviation "
            f"is more than a float32 can hold: it computes in a wider format. {KEEP}"
        )
        raise Wrong(words, key=WIDE)
    (trial,) = rows_of_lengths(exam, OFFSETS[1], (exam.draw.columns,))
    _check_formats(exam, trial)
    return "All of the arithmetic is in float32."


def _check_formats(exam, trial):
    """Raises Wrong where an array in float64 is computed from those in float32."""
    computed = []
    with suppress(Wrong):  # what cannot be watched is not held against anybody
        request = exam.oracle.request(trial, op="formats")
        computed = exam.ask(request).facts["computed"]
    if "float64" in computed:
        words = (
            "It is given float32, and computes in float64 on the way, as NumPy does where an array of float32 meets "
            f"one of whole numbers, or where a sum has that dtype. {KEEP}"
        )
        raise Wrong(words, key=WIDE)


def merged_in_float32(exam) -> str:
    """The merge goes through float32 alone; one sum of rounded products is not rounded right in all of many pairs."""
    oracle, draw = exam.oracle, replace(exam.draw, rows=EXACT_ROWS)
    exact = True
    for offset in OFFSETS:
        (trial,) = oracle.trials(exam.rng(), draw, offset=offset)
        squares = trial.merged()[2]
        off = np.abs(exam.answers(trial)["squares"] - squares)
        exact = exact and (off <= NEAREST * spacing(squares)).all()
    if exact:
        pairs = len(OFFSETS) * EXACT_ROWS
        words = (
            f"All of its squares have every digit of a float32, in {pairs} pairs of blocks. float32 arithmetic loses "
            f"some: it computes in a wider format. {KEEP}"
        )
        raise Wrong(words, key=WIDE)
    _check_formats(exam, trial)
    return "All of the arithmetic is in float32."


def _wider(exam) -> bool:
    """Whether the variances are those of a wider format, by whatever way: numbers of Python, fractions, more digits.

    Two signs, and both are needed. A sum that makes up for its rounding gives all digits in float32, but the squares of
    these rows overflow there; rows that are scaled first do not overflow, but their sums are rounded.
    """
    rng = exam.rng()
    near = [far_rows(rng, EXACT_ROWS, EXACT_LENGTH, offset) for offset in OFFSETS[:2]]
    large = far_rows(rng, EXACT_ROWS, 64, 0.0, 2.0**62)
    large.x[:, 0] = 2.0**65
    if not all(_within(exam, trial, NEAREST) for trial in near):
        return False
    try:
        return _within(exam, large, EXACT_LENGTH)
    except Wrong as wrong:  # float32 may say that it overflows
        if OUT_OF_TIME in str(wrong):
            raise
        return False


def _within(exam, trial, spacings) -> bool:
    """Whether all variances are right up to so many spacings of a float32."""
    var = trial.x.var(-1)
    off = np.abs(exam.answers(trial)["var"] - var)
    return bool((off <= spacings * spacing(var)).all())


def stored_in_float16(exam) -> str:
    """Rows that come in float16, whose squares overflow there; the mean is up to 1e4."""
    rng, draw = exam.rng(), exam.draw
    trials = [
        far_rows(rng, draw.rows, n, offset)
        for offset in OFFSETS
        for n in (draw.columns, 256)
    ]
    try:
        return exam.compare(trials, exam.oracle.results, "float16")
    except Wrong as wrong:
        stored = [replace(trial, x=round_to(trial.x, "float16")) for trial in trials]
        if not wrong.evidence or not exam.is_right(stored):
            raise
        advice = "Compute in float32 and round x_hat once, at the end."
        raise Wrong(f"{wrong} {advice}", key="narrow-intermediate") from None


def merged_at(*names):
    """A stage: what the merge returns for blocks at every offset."""

    def stage(exam) -> str:
        oracle, rng, trials = exam.oracle, exam.rng(), []
        for less, offset in enumerate(OFFSETS):
            draw = replace(exam.draw, rows=max(2, exam.draw.rows - less))
            trials += oracle.trials(rng, draw, USUAL, offset)
        sentence = compared(exam, trials, names)
        try:
            exam.compare(oracle.trials(rng, exam.draw, LONG), names)
        except Wrong as wrong:
            words = "Shorter blocks are merged right. Two such counts have a product that no int32 holds."
            raise Wrong(f"{wrong} {words}") from None
        return sentence

    return stage


def empty_blocks(exam) -> str:
    """An empty block changes nothing; two empty blocks are an empty block."""
    exam.compare(exam.trials(DEGENERATE), exam.oracle.results)
    return "Empty blocks and blocks of one are right."
