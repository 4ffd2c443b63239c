"""Stages about rounding: rows at an offset, rows of every length, the formats of the arithmetic, stored in 16 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...checks.tolerance import ELEMENTWISE, LARGEST, SAFETY, round_to, unit_roundoff
from ..diagnosis.named import named
from ..diagnosis.variance import spacing
from ..oracles.accuracy import LENGTHS, OFFSETS, MergeTrial, far_rows, with_outlier
from ..oracles.norms import DEGENERATE, USUAL
from ..task import MOST_ROWS
from ..words import INPUTS, OUT_OF_TIME, Wrong, compare
from .values import two_shapes

# Lengths of the blocks that a row is cut into.
BLOCKS = (5, 12, 73, 110, 1, 199, 112)
# Rows of far_rows are at most this much larger than their scale.
SPREAD = 2e4
KEEP = "A kernel has float32: keep to it, and choose the formula."
# A row of so many numbers has all digits of its variance by chance, about three times in four, and never so many rows.
EXACT_ROWS, EXACT_LENGTH = MOST_ROWS, 1000
# Half a spacing, and what deviations lose that are rounded before they are squared elsewhere.
NEAREST = 0.5 + 0.125
WIDE = ("float64", "complex128", "float128", "longdouble", "complex256")


def _trials(exam, offset, lengths):
    """Rows of these lengths, and one row more for each."""
    rng, draw = exam.rng(), exam.draw
    return [far_rows(rng, draw.rows + more, n, offset, draw.scale) for more, n in enumerate(lengths)]


def variance_at(offset):
    """A stage: the variance of rows with this mean."""

    def stage(exam) -> str:
        first, *others = _trials(exam, offset, (exam.draw.columns, 64, 512))
        if not offset:  # far from 0, rounding may be what is wrong for the longer rows alone
            two_shapes(exam, [first], others, ("var",))
        return exam.compare([first, *others, with_outlier(others[0])], ("var",))

    return stage


def others(exam) -> str:
    """mean, rstd and the normalized rows at every offset."""
    trials = [trial for offset in OFFSETS for trial in _trials(exam, offset, (exam.draw.columns, 64))]
    return exam.compare(trials, ("mean", "rstd", "x_hat"))


def lengths(exam) -> str:
    """Rows of 1 to 4096 numbers, near 0 and far from it."""
    trials = [trial for offset in (0.0, 1e4) for trial in _trials(exam, offset, LENGTHS)]
    exam.compare(trials, exam.task.oracle.results)
    return f"Right for rows of {', '.join(map(str, LENGTHS))} numbers."


def flat(exam) -> str:
    """Constant rows, whose variance is 0 and never negative, no rows, one column."""
    for trial in exam.trials(DEGENERATE):
        exam.compare([trial], exam.task.oracle.results)
        if (exam.answers(trial)["var"] < 0).any():
            raise Wrong(f"{INPUTS}{trial.name}. A variance is negative: the root of it is not a number.")
    return "Constant rows, no rows and one column are right."


def in_float32(exam) -> str:
    """The arithmetic goes through float32 alone, as a kernel's does."""
    if _wider(exam):
        raise Wrong("Its variances have digits that float32 arithmetic loses, and are right where the square of one "
                    f"deviation is more than a float32 can hold: it computes in a wider format. {KEEP}",
                    diagnoses=[named("wide-arithmetic")])  # fmt: skip
    return "All of the arithmetic is in float32."


def merged_in_float32(exam) -> str:
    """The merge goes through float32 alone; one sum of rounded products is not rounded right in all of many pairs."""
    oracle, draw = exam.task.oracle, replace(exam.draw, rows=MOST_ROWS)
    trials = [trial for offset in OFFSETS for trial in oracle.trials(exam.rng(), draw, offset=offset)]
    pairs = [(exam.answers(trial)["squares"], trial.merged()[2]) for trial in trials]
    if all((np.abs(got - known) <= NEAREST * spacing(known)).all() for got, known in pairs):
        raise Wrong(f"All of its squares have every digit of a float32, in {len(pairs) * MOST_ROWS} pairs of blocks. "
                    f"float32 arithmetic loses some: it computes in a wider format. {KEEP}",
                    diagnoses=[named("wide-arithmetic")])  # fmt: skip
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
    known = trial.x.var(-1)
    return bool((np.abs(exam.answers(trial)["var"] - known) <= spacings * spacing(known)).all())


def stored_in_float16(exam) -> str:
    """Rows that come in float16, whose squares overflow there; the mean is up to 1e4."""
    rng, draw = exam.rng(), exam.draw
    scale = min(draw.scale, LARGEST["float16"] / SPREAD)
    trials = [far_rows(rng, draw.rows, n, offset, scale) for offset in OFFSETS for n in (draw.columns, 256)]
    try:
        return exam.compare(trials, exam.task.oracle.results, "float16")
    except Wrong as wrong:
        words = f"{wrong} Compute in float32 and round x_hat once, at the end."
        raise Wrong(words, stub=wrong.stub, diagnoses=_computed_in_float16(exam, trials[0])) from None


def _computed_in_float16(exam, trial):
    """A Diagnosis where arithmetic, and not only a conversion, has 16 bits."""
    try:
        outcome = exam.ask(exam.task.oracle.request(trial, "float16", op="formats"))
    except Wrong:
        return []
    return [named("narrow-intermediate")] if "float16" in outcome.facts["computed"] else []


def merged_at(*names):
    """A stage: what the merge returns for blocks at every offset."""

    def stage(exam) -> str:
        oracle, rng = exam.task.oracle, exam.rng()
        draws = [replace(exam.draw, rows=max(2, exam.draw.rows - less)) for less in range(len(OFFSETS))]
        trials = [oracle.trials(rng, *each)[0] for each in zip(draws, [USUAL] * len(OFFSETS), OFFSETS, strict=True)]
        return exam.compare(trials, names)

    return stage


def empty_blocks(exam) -> str:
    """An empty block changes nothing; two empty blocks are an empty block."""
    exam.compare(exam.trials(DEGENERATE), exam.task.oracle.results)
    return "Empty blocks and blocks of one are right."


def any_order(exam) -> str:
    """A row cut into blocks has the same statistics, whatever the order in which they are merged."""
    oracle, rng, (trial,) = exam.task.oracle, exam.rng(), _trials(exam, 1e4, (sum(BLOCKS),))
    parts = []
    for block in np.split(trial.x, np.cumsum(BLOCKS)[:-1], axis=-1):
        n = block.shape[1]
        whole = np.full(len(block), float(n)), block.mean(-1), n * block.var(-1)
        parts.append([round_to(each, "float32") for each in whole])
    while len(parts) > 1:
        both = [each for _ in range(2) for each in parts.pop(int(rng.integers(len(parts))))]
        got = exam.answers(MergeTrial("blocks of a row", dict(zip(oracle.arguments, both, strict=True))))
        parts.append([got[name] for name in oracle.results])
    value = trial.x.var(-1)
    # A block's mean is off by e after its rounding and the merges'; by Cauchy-Schwarz that moves v so far at most.
    e = (1 + ELEMENTWISE * len(BLOCKS)) * unit_roundoff("float32") * np.abs(trial.x).max(-1)
    bound = SAFETY * (2 * e * np.sqrt(value) + e**2 + ELEMENTWISE * len(BLOCKS) * unit_roundoff("float32") * value)
    words = compare("squares / n", parts[0][2] / sum(BLOCKS), value, bound)[2]
    if words:
        raise Wrong(f"{INPUTS}rows in {len(BLOCKS)} blocks, merged in some order. {words}")
    return f"Rows in {len(BLOCKS)} blocks, merged in some order, keep their variance."
