"""Statistics in float32 of rows far from 0: right answers, what any good way may lose, and the stages.

A mean may be off as far as a sum in pieces of 16 and then in pairs can be, the variance as far as two passes with such
a mean, or the corrected way in any order, can be ({eq}`fp-bounds`); both are computed from the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ...checks.tolerance import (
    ELEMENTWISE,
    LARGEST,
    SAFETY,
    SMALLEST,
    round_to,
    unit_roundoff,
)
from ..checks.norms import DEGENERATE, USUAL
from ..checks.values import two_shapes
from ..diagnosis.named import named
from ..messages import INPUTS, OUT_OF_TIME, Wrong, compare
from ..sandbox.student import Given, Request
from .diagnosis import spacing
from .probes import behind, explaining, pairs, rows

OFFSETS = (0.0, 1e2, 1e4)
LENGTHS = (1, 2, 3, 17, 256, 1000, 4096)
EPS = 1e-5
FLAT_ROWS, FLAT_COLUMNS = 64, 31
PIECE = 16


def mean_error(x) -> np.ndarray:
    """How far off the mean of each row may be."""
    n = x.shape[-1]
    steps = min(n, PIECE + max(1, n - 1).bit_length())
    return (
        SAFETY * steps * unit_roundoff("float32") * np.abs(x).max(-1, initial=0)
        + SMALLEST["float32"]
    )


def variance_error(x, var) -> np.ndarray:
    """How far off the variance of each row may be."""
    n, u = x.shape[-1], unit_roundoff("float32")
    sums = (n + 6) * u
    loose = n * u * np.abs(x).max(-1, initial=0)
    corrected = SAFETY * sums * (np.sqrt(var) + 2 * loose) ** 2
    return (
        np.maximum(corrected, SAFETY * sums * var + mean_error(x) ** 2)
        + SMALLEST["float32"]
    )


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

    def alone(self, at) -> RowsTrial:
        """One of the rows."""
        return replace(self, x=self.x[at : at + 1])


def far_rows(rng, rows, columns, offset, scale=1.0) -> RowsTrial:
    """Rows of deviation near 1 about an offset, all multiplied by a scale."""
    x = scale * (
        offset * rng.uniform(0.9, 1, (rows, 1))
        + rng.uniform(0.5, 2, (rows, 1)) * rng.standard_normal((rows, columns))
    )
    return RowsTrial(
        f"rows of {columns} with a mean near {offset:g}", round_to(x, "float32")
    )


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
            return [
                far_rows(
                    rng,
                    1 if kinds == ("one row",) else draw.rows,
                    draw.columns,
                    1.0,
                    draw.scale,
                )
            ]
        flat = np.array([0, 1, 0.1, 1e2, 1e4])[:, None] * np.ones(draw.columns)
        # A variance that may be negative is so in about one row in ten.
        many = rng.uniform(0.5, 1, (FLAT_ROWS, 1)) * np.ones(FLAT_COLUMNS)
        single = 1e4 * rng.uniform(0.5, 1, (draw.rows, 1))
        found = {
            "constant rows": flat,
            "many constant rows": many,
            "no rows": flat[:0],
            "one column": single,
        }
        return [RowsTrial(name, round_to(x, "float32")) for name, x in found.items()]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        given = (
            Given("x", round_to(trial.x, dtype), dtype, layout=layout),
            Given("eps", trial.eps, kind="scalar"),
        )
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
        e_hat = (e_mean * (rstd + e_rstd))[:, None] + np.abs(x_hat) * (
            e_rstd / rstd + ELEMENTWISE * u
        )[:, None]
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
        some = np.maximum(n, 1)
        return n, mean1 + n2 / some * d, squares1 + squares2 + n1 * n2 / some * d**2

    def alone(self, at) -> MergeTrial:
        """One of the pairs."""
        return replace(
            self, parts={name: part[at : at + 1] for name, part in self.parts.items()}
        )


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
        lengths = [
            rng.integers(1, 4096, m) * (2**10 if kinds == LONG else 1) for _ in range(2)
        ]
        if kinds == DEGENERATE:
            lengths = [np.resize(each, m) for each in ((0, 3, 0, 1), (5, 0, 0, 1))]
        parts = {}
        for place, n in enumerate(lengths, start=1):
            there = (n > 0) * draw.scale
            parts |= {f"n{place}": n, f"mean{place}": there * (offset * number(0.9, 1) + number(-2, 2)),
                      f"squares{place}": there * draw.scale * np.maximum(n - 1, 0) * number(0.5, 2)}  # fmt: skip
        names = {
            DEGENERATE: "empty blocks and blocks of one",
            LONG: "blocks of 1024 to 4 million numbers",
        }
        name = names.get(kinds, f"blocks with means near {offset:g}")
        return [
            MergeTrial(
                name,
                {
                    key: round_to(np.asarray(a, float), "float32")
                    for key, a in parts.items()
                },
            )
        ]

    def request(self, trial, dtype="float32", layout="contiguous", op=None) -> Request:
        """The call that a trial leads to."""
        return Request(
            op or self.op,
            tuple(Given(name, trial.parts[name], dtype) for name in self.arguments),
        )

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
    return replace(
        trial, x=round_to(x, "float32"), name=f"{trial.name}, the first entry far off"
    )


ONE_SHAPE = [named("one-shape")]
# Lengths of the blocks that a row is cut into.
BLOCKS = (5, 12, 73, 110, 1, 199, 112)
# Rows of far_rows are at most this much larger than their scale.
SPREAD = 2e4
# Kinds of blocks: long ones, whose counts a float32 holds, and no int32 their product.
LONG = ("long",)
KEEP = "A kernel has float32: keep to it, and choose the formula."
# A row of so many numbers has all digits of its variance by chance, about three times in four, and never so many rows.
EXACT_ROWS, EXACT_LENGTH = 64, 1000
# Half a spacing, and what deviations lose that are rounded before they are squared elsewhere.
NEAREST = 0.5 + 0.125


def _trials(exam, offset, lengths):
    """Rows of these lengths, and one row more for each."""
    rng, draw = exam.rng(), exam.draw
    return [
        far_rows(rng, draw.rows + more, n, offset, draw.scale)
        for more, n in enumerate(lengths)
    ]


def variance_at(offset):
    """A stage: the variance of rows with this mean."""

    def stage(exam) -> str:
        first, *others = _trials(exam, offset, (exam.draw.columns, 64, 512))
        with explaining(exam, rows):
            if (
                not offset
            ):  # far from 0, rounding may be what is wrong for the longer rows alone
                two_shapes(
                    exam,
                    [first],
                    others,
                    ("var",),
                    lambda wrong: behind(exam, wrong, rows) or ONE_SHAPE,
                )
            return exam.compare([first, *others, with_outlier(others[0])], ("var",))

    return stage


def others(exam) -> str:
    """mean, rstd and the normalized rows at every offset."""
    small = far_rows(
        exam.rng("small"), exam.draw.rows, exam.draw.columns, 1.0, EPS**0.5
    )
    trials = [
        replace(small, name=f"rows of {exam.draw.columns} with a variance near eps")
    ]
    trials += [
        trial
        for offset in OFFSETS
        for trial in _trials(exam, offset, (exam.draw.columns, 64))
    ]
    with explaining(exam, rows):
        return exam.compare(trials, ("mean", "rstd", "x_hat"))


def lengths(exam) -> str:
    """Rows of 1 to 4096 numbers, near 0 and far from it."""
    trials = [
        trial for offset in (0.0, 1e4) for trial in _trials(exam, offset, LENGTHS)
    ]
    with explaining(exam, rows):
        exam.compare(trials, exam.task.oracle.results)
    return f"Right for rows of {', '.join(map(str, LENGTHS))} numbers."


def flat(exam) -> str:
    """Constant rows, whose variance is 0 and never negative, no rows, one column."""
    for trial in exam.trials(DEGENERATE):
        if (exam.answers(trial)["var"] < 0).any():
            raise Wrong(
                f"{INPUTS}{trial.name}. A variance is negative: what rounding leaves of a difference may be."
            )
        try:
            with explaining(exam, rows):
                exam.compare([trial], exam.task.oracle.results)
        except Wrong as wrong:
            if wrong.stub or str(wrong).startswith(INPUTS):
                raise
            raise Wrong(
                f"{wrong} The inputs: {trial.name}.", diagnoses=wrong.diagnoses
            ) from None
    return "Constant rows, no rows and one column are right."


def in_float32(exam) -> str:
    """The arithmetic goes through float32 alone, as a kernel's does."""
    if _wider(exam):
        raise Wrong("Its variances have digits that float32 arithmetic loses, and are right where the square of one "
                    f"deviation is more than a float32 can hold: it computes in a wider format. {KEEP}",
                    diagnoses=[named("wide-arithmetic")])  # fmt: skip
    if "float64" in _computed(
        exam, _trials(exam, OFFSETS[1], (exam.draw.columns,))[0], "float32"
    ):
        raise Wrong("It is given float32, and computes in float64 on the way, as NumPy does where an array of float32 "
                    f"meets one of whole numbers, or where a sum has that dtype. {KEEP}",
                    diagnoses=[named("wide-arithmetic")])  # fmt: skip
    return "All of the arithmetic is in float32."


def merged_in_float32(exam) -> str:
    """The merge goes through float32 alone; one sum of rounded products is not rounded right in all of many pairs."""
    oracle, draw = exam.task.oracle, replace(exam.draw, rows=EXACT_ROWS)
    trials = [
        trial
        for offset in OFFSETS
        for trial in oracle.trials(exam.rng(), draw, offset=offset)
    ]
    pairs = [(exam.answers(trial)["squares"], trial.merged()[2]) for trial in trials]
    if all(
        (np.abs(got - known) <= NEAREST * spacing(known)).all() for got, known in pairs
    ):
        raise Wrong(f"All of its squares have every digit of a float32, in {len(pairs) * EXACT_ROWS} pairs of blocks. "
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
    return bool(
        (np.abs(exam.answers(trial)["var"] - known) <= spacings * spacing(known)).all()
    )


def stored_in_float16(exam) -> str:
    """Rows that come in float16, whose squares overflow there; the mean is up to 1e4."""
    rng, draw = exam.rng(), exam.draw
    scale = min(draw.scale, LARGEST["float16"] / SPREAD)
    trials = [
        far_rows(rng, draw.rows, n, offset, scale)
        for offset in OFFSETS
        for n in (draw.columns, 256)
    ]
    try:
        return exam.compare(trials, exam.task.oracle.results, "float16")
    except Wrong as wrong:
        narrow = "float16" in _computed(
            exam, trials[0], "float16"
        ) or _rounded_on_the_way(exam, wrong)
        found = [named("narrow-intermediate")] if narrow else []
        advice = (
            " Compute in float32 and round x_hat once, at the end." if found else ""
        )
        raise Wrong(f"{wrong}{advice}", stub=wrong.stub, diagnoses=found) from None


def _rounded_on_the_way(exam, wrong) -> bool:
    """Whether the first wrong statistic is in float16, or is a variance of deviations that were."""
    statistics = [
        name
        for name in ("mean", "var", "rstd")
        if any(name == each for each, _, _ in wrong.evidence)
    ]
    found = []
    for name, got, trial in wrong.evidence:
        if name in statistics[:1] and got.any():
            value, most = exam.task.oracle.expected(trial)[name]
            if not (np.abs(exam.answers(trial)[name] - value) <= most).all():
                return False  # wrong in float32 as well
            x = round_to(trial.x, "float16")
            deviations = round_to(x - x.mean(-1, keepdims=True), "float16")
            _, bound = exam.task.oracle.expected(trial, "float16")[name]
            near = np.abs(got - (deviations**2).mean(-1)) <= bound
            found.append(
                (round_to(got, "float16") == got).all() or name == "var" and near.all()
            )
    return bool(found) and all(found)


def _computed(exam, trial, dtype):
    """The formats that arithmetic on these rows has, beside conversions; none where that cannot be watched."""
    try:
        return exam.ask(exam.task.oracle.request(trial, dtype, op="formats")).facts[
            "computed"
        ]
    except Wrong:
        return []


def merged_at(*names):
    """A stage: what the merge returns for blocks at every offset."""

    def stage(exam) -> str:
        oracle, rng = exam.task.oracle, exam.rng()
        draws = [
            replace(exam.draw, rows=max(2, exam.draw.rows - less))
            for less in range(len(OFFSETS))
        ]
        trials = [
            oracle.trials(rng, *each)[0]
            for each in zip(draws, [USUAL] * len(OFFSETS), OFFSETS, strict=True)
        ]
        with explaining(exam, pairs):
            said = exam.compare(trials, names)
        try:
            exam.compare(oracle.trials(rng, exam.draw, LONG), names)
        except Wrong as wrong:
            words = "Shorter blocks are merged right. Two such counts have a product that no int32 holds."
            raise Wrong(f"{wrong} {words}") from None
        return said

    return stage


def empty_blocks(exam) -> str:
    """An empty block changes nothing; two empty blocks are an empty block."""
    with explaining(exam, pairs):
        exam.compare(exam.trials(DEGENERATE), exam.task.oracle.results)
    return "Empty blocks and blocks of one are right."


def any_order(exam) -> str:
    """A row cut into blocks has the same statistics, whatever the order in which they are merged."""
    oracle, rng, (trial,) = (
        exam.task.oracle,
        exam.rng(),
        _trials(exam, 1e4, (sum(BLOCKS),)),
    )
    parts = []
    for block in np.split(trial.x, np.cumsum(BLOCKS)[:-1], axis=-1):
        n = block.shape[1]
        whole = np.full(len(block), float(n)), block.mean(-1), n * block.var(-1)
        parts.append([round_to(each, "float32") for each in whole])
    while len(parts) > 1:
        both = [
            each for _ in range(2) for each in parts.pop(int(rng.integers(len(parts))))
        ]
        got = exam.answers(
            MergeTrial(
                "blocks of a row", dict(zip(oracle.arguments, both, strict=True))
            )
        )
        parts.append([got[name] for name in oracle.results])
    value = trial.x.var(-1)
    # A block's mean is off by e after its rounding and the merges'; by Cauchy-Schwarz that moves v so far at most.
    e = (
        (1 + ELEMENTWISE * len(BLOCKS))
        * unit_roundoff("float32")
        * np.abs(trial.x).max(-1)
    )
    bound = SAFETY * (
        2 * e * np.sqrt(value)
        + e**2
        + ELEMENTWISE * len(BLOCKS) * unit_roundoff("float32") * value
    )
    words = compare("squares / n", parts[0][2] / sum(BLOCKS), value, bound)[2]
    if words:
        raise Wrong(
            f"{INPUTS}rows in {len(BLOCKS)} blocks, merged in some order. {words}"
        )
    return f"Rows in {len(BLOCKS)} blocks, merged in some order, keep their variance."
