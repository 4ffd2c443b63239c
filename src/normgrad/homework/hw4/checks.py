"""A norm with a residual in kernels: its right answers, rows and sizes that no tile fits, and what programs touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ... import numpy_ref
from ...checks.cases import Case
from ...checks.tolerance import ELEMENTWISE, LARGEST, unit_roundoff
from ...mistakes.table import BLOCKS
from ..checks.norms import AXES, NormOracle, Trial
from ..checks.values import low_precision, same_again, two_shapes
from ..diagnosis.diagnose import attributed
from ..diagnosis.named import named
from ..messages import Wrong
from ..sandbox.student import Request
from . import gpu

NO_KERNEL = "No result was written by a Triton kernel. Launch one that writes them."

# In Triton 1.0 / N is a float32.
FLOAT32_DIGITS = "It is right for one shape of x, and for another as far as float32 goes: a number is held in float32"


# What is said of a kernel that leaves its tensors, for which there are several reasons, and where it does so for rows
# of a wider matrix alone.
MASK = (
    "does a mask let too much through, is the address another one than you mean (how far apart are two rows of that "
    "tensor?), or is the tensor too small?"
)
STRIDES = (
    "not so where the rows of x lie one behind the other. Each matrix has a row stride of its own: which one does "
    "the kernel take there?"
)


@dataclass(frozen=True)
class StreamTrial(Trial):
    """A case with a residual; dtype: in which the sum is stored before it is normalized."""

    dtype: str = "float64"

    def forward(self) -> numpy_ref.Forward:
        """The reference's forward of the sum as residual_out holds it, in float64."""
        return numpy_ref.forward(
            self.case.summed(self.dtype),
            self.case.weight,
            self.case.bias,
            spec=self.spec,
        )

    def diagnose_residual_out(self, output, numbers) -> list:
        """One Diagnosis where one half of the sum came back."""
        both = (self.case.x, self.case.residual)
        if not all(each.any(-1).all() for each in both) or not any(
            np.array_equal(numbers, each) for each in both
        ):
            return []
        return [
            named(
                "residual-left-out",
                "one half of the sum",
                "residual_out = x + residual",
                "res-forward",
            )
        ]

    def rounded(self, dtype) -> StreamTrial:
        """The trial with numbers that the dtype holds."""
        return replace(self, case=self.case.rounded(dtype), dtype=dtype)


@dataclass(frozen=True)
class StreamOracle(NormOracle):
    """A fused residual add and norm, whose launchers take torch tensors."""

    op: str = "kernels"
    kind: str = "torch"
    dtypes: tuple[str, ...] = ("float32", "float16")
    trial: type = StreamTrial

    def scaled(self, case: Case, scale: float) -> Case:
        """Both halves of the sum, multiplied by a number."""
        return replace(case, x=scale * case.x, residual=scale * case.residual)

    def request(
        self, trial, dtype="float64", layout="contiguous", **options
    ) -> Request:
        """The call that a trial leads to.

        Args:  options: apart: whether every input has memory of its own; undefined: whether a load without `other`
               gives NaN past its mask; again: whether it was called before, with other numbers
        """
        return Request(
            self.op, tuple(self.given(trial.rounded(dtype), dtype, layout)), options
        )

    def admit(self, request, outcome) -> None:
        """Raises Wrong where nothing is to be earned: no result is a kernel's, or one leaves its tensors."""
        facts, rows = (
            outcome.facts,
            all(np.size(given.value) for given in request.arguments),
        )
        for launch in facts["launches"]:
            for place, count in launch["outside"].items():
                words = f"{launch['kernel']} {place} ({count} numbers): {MASK}"
                raise Wrong(words, diagnoses=[named("out-of-bounds")])
            if launch["foreign data"]:
                names = ", ".join(launch["foreign data"])
                words = f"{launch['kernel']} reads {names}, whose numbers come from no input and no kernel"
                raise Wrong(
                    f"{words}: NumPy or Python computed them. Compute them in the kernel.",
                    diagnoses=[named("work-outside")],
                )
            if launch["foreign"]:
                words = f"{launch['kernel']} uses {', '.join(launch['foreign'][:3])} in its body. No GPU runs Python."
                raise Wrong(f"{words} Write it with triton.language, and helpers under @triton.jit.",
                            diagnoses=[named("python-in-kernel")])  # fmt: skip
        if rows and not facts["own"] and (facts["torch"] or not facts["launches"]):
            # Memory that nothing was written to is none that torch wrote: a grid may be empty.
            raise Wrong(
                NO_KERNEL,
                diagnoses=() if _unwritten(outcome) else [named("work-outside")],
            )


def _unwritten(outcome) -> bool:
    """Whether no result holds a number: fresh memory holds NaN here."""
    return all(
        np.isnan(value.numbers).all()
        for value in outcome.values
        if value.numbers.dtype.kind == "f"
    )


# (M, N): a power of two plus one, fewer columns than any block, many rows for few programs, one block more or less,
# more columns than a block whose width stands in the code.
SIZES = ((9, 5), (37, 3), (2, 13), (3, 33), (2, 1030))
# Rows of the cases are at most this much larger than the scale that a draw asks for.
SPREAD = 4096


def rows(*names):
    """A stage that compares some results, as value, and says so where programs leave rows out."""

    def stage(exam) -> str:
        *usual, other = exam.trials()
        try:
            return two_shapes(
                exam, usual, [other], names, lambda wrong: _of_shape(exam, wrong)
            )
        except Wrong as wrong:
            raise _without_rows(exam, wrong) from None

    return stage


def _of_shape(exam, wrong, **options) -> list:
    """Why kernels that are right for one shape are wrong for another."""
    if found := list(_without_rows(exam, wrong, **options).diagnoses):
        return found
    trials = list({id(trial): trial for _, _, trial in wrong.evidence}.values())
    try:
        exam.compare(trials, exam.task.oracle.results, **options)
    except Wrong as whole:  # statistics have no formula, and what is made of them has
        found = [
            each
            for each in attributed(whole.evidence)
            if each.misconception in (*BLOCKS, "rows-left-out")
        ]
    nearly = not options and _nearly(exam, wrong)
    return found or [named("one-shape", title=FLOAT32_DIGITS if nearly else "")]


def _nearly(exam, wrong) -> bool:
    """Whether float64 results are off by no more than rounding some numbers on the way to float32 makes them."""
    shares = []
    for output, got, trial in wrong.evidence:
        known = exam.task.oracle.expected(trial)[output][0]
        shares.append(
            np.abs(got - known).max(initial=0) / np.abs(known).max(initial=1e-300)
        )
    return bool(shares) and max(shares) <= ELEMENTWISE * unit_roundoff("float32")


def _without_rows(exam, wrong, **options) -> Wrong:
    """The same Wrong, or one that names the rows without results: then no formula is to blame."""
    for trial in {id(trial): trial for _, _, trial in wrong.evidence}.values():
        got, known = exam.answers(trial, **options), exam.task.oracle.expected(trial)
        by_rows = [name for name in known if AXES[name][0] == "M"]
        empty = np.array([_missing(got[name], known[name][0]) for name in by_rows])
        right = np.array([_right(got[name], *known[name]) for name in by_rows])
        if (empty & ~right).any() and right.any() and (empty | right).all():
            lost = np.flatnonzero((empty & ~right).any(0))
            words = f"{wrong} No program computes row {', '.join(map(str, lost[:8]))} of {empty.shape[1]}."
            return Wrong(words, diagnoses=[named("rows-left-out")])
        if times := _counted(trial, got, known):
            return Wrong(f"{wrong} {times}", diagnoses=[named("rows-counted-twice")])
        if right.all() and (
            sums := [name for name in known if np.isnan(got[name]).any()]
        ):
            words = f"{wrong} Memory that no program wrote is added up in {' and '.join(sums)}."
            return Wrong(words, diagnoses=[named("partials-unwritten")])
    return wrong


def _counted(trial, got, known) -> str:
    """A sentence where dw and db are right up to how often each row is counted in them, some of them several times."""
    if not {"dw", "db"} <= got.keys() or not len(trial.case.dy):
        return ""
    saved = trial.forward()
    x_hat = (saved.residual_out - saved.mean[:, None]) * saved.rstd[:, None]
    terms = np.concatenate([trial.case.dy * x_hat, trial.case.dy], axis=-1).T
    sums = np.concatenate([got["dw"], got["db"]])
    if not np.isfinite(sums).all() or len(terms) <= terms.shape[1]:
        return ""
    times, *_ = np.linalg.lstsq(terms, sums, rcond=None)
    bound = np.concatenate([known["dw"][1], known["db"][1]])
    whole = np.round(times)
    if (
        (np.abs(terms @ whole - sums) > bound * np.maximum(1, whole.max())).any()
        or whole.min() < 0
        or whole.max() < 2
    ):
        return ""
    rows = ", ".join(
        f"row {row} ({int(whole[row])} times)" for row in np.flatnonzero(whole > 1)[:4]
    )
    return f"dw and db count rows more than once: {rows}."


def _missing(got, known):
    """Row by row, whether nothing was ever written: fresh memory holds NaN here, or the zeros that were asked for."""
    got, known = got.reshape(len(got), -1), known.reshape(len(known), -1)
    return np.isnan(got).all(-1) | (got == 0).all(-1) & known.any(-1)


def _right(got, known, bound):
    return (np.abs(got - known) <= bound).reshape(len(got), -1).all(-1)


def sizes(exam) -> str:
    """M not a multiple of the programs, N not a power of two, inputs that are rows of a wider matrix."""
    trials = [trial for m, n in SIZES for trial in _of_size(exam, m, n)]
    names = exam.task.oracle.results
    try:
        exam.compare(trials, names, apart=True)
    except Wrong as wrong:
        found = wrong.diagnoses
        if not found and not wrong.stub and _usually_right(exam):
            found = _of_shape(exam, wrong, apart=True)
        raise Wrong(
            f"{wrong}{_columns_left(exam, wrong)}", stub=wrong.stub, diagnoses=found
        ) from None
    try:
        exam.compare(trials[:1], names, layout="wide")
    except (
        Wrong
    ) as wrong:  # the same numbers were right one line above, so it is where they lie
        same_again(exam, trials[0], exam.answers(trials[0], apart=True))
        found = (
            [named("stride-ignored")] if wrong.evidence or MASK in str(wrong) else ()
        )
        raise Wrong(
            str(wrong).replace(MASK, STRIDES), stub=wrong.stub, diagnoses=found
        ) from None
    shapes = ", ".join(f"({m}, {n})" for m, n in SIZES)
    return f"Right for the shapes {shapes}, and for rows of a wider matrix."


def _columns_left(exam, wrong) -> str:
    """A sentence where columns from some place on are never written."""
    for trial in {id(trial): trial for _, _, trial in wrong.evidence}.values():
        got, known = exam.answers(trial, apart=True), exam.task.oracle.expected(trial)
        for name in (name for name in known if AXES[name] == "MN"):
            empty = _missing(got[name].T, known[name][0].T)
            if empty.any() and not empty.all() and empty[empty.argmax() :].all():
                return f" No column of {name} from {empty.argmax()} on is computed."
    return ""


def _usually_right(exam) -> bool:
    """Whether the results are right for the shapes of the other stages, which name what is wrong there."""
    usual = exam.trials()
    return exam.is_right([usual[0], usual[-1]])


def _of_size(exam, rows, columns):
    sized = SimpleNamespace(rows=rows, columns=columns, scale=exam.draw.scale)
    return exam.task.oracle.trials(exam.rng(), sized, ("random",))


def launches(most):
    """A stage that looks at what the kernels touch; most: the largest number of launches."""

    def stage(exam) -> str:
        for rows, columns in SIZES:
            (trial,) = _of_size(exam, rows, columns)
            outcome = exam.ask(exam.task.oracle.request(trial, apart=True))
            exam.named(outcome, trial, exam.base)
            if found := problems(outcome.facts, most):
                words, key = found[0]
                diagnoses = [named(key)] if key else ()
                raise Wrong(
                    f"For x of shape ({rows}, {columns}): {words}", diagnoses=diagnoses
                )
        _past_the_mask(exam)
        # It takes some seconds, which are well spent on kernels that are right otherwise.
        if _usually_right(exam) and (
            refused := gpu.refusal(
                [each["described"] for each in outcome.facts["launches"]]
            )
        ):
            raise Wrong(f"The interpreter runs it, a GPU would not: {refused}")
        last = outcome.facts["launches"]
        read, written = (
            sum(launch[kind] for launch in last) / (rows * columns)
            for kind in ("read", "written")
        )
        counted = f"{len(last)} launch" + "es" * (len(last) > 1)
        return f"{counted}; {read:.1f} numbers read and {written:.1f} written for each entry of x."

    return stage


def _past_the_mask(exam) -> None:
    """Raises Wrong where results are right only because the interpreter loads 0 past a mask without `other`."""
    trials, names = _of_size(exam, *SIZES[0]), exam.task.oracle.results
    try:
        exam.compare(trials, names, apart=True)
    except Wrong:  # another stage says why
        return
    try:
        exam.compare(trials, names, again=True)
    except Wrong as wrong:
        words = "Called once more in the same process, with other numbers, it gives another result."
        raise Wrong(f"{words} {wrong}", diagnoses=[named("another-answer")]) from None
    try:
        exam.compare(trials, names, undefined=True)
    except Wrong as wrong:
        words = "Where its mask is false, a load without other= gives 0 in the interpreter, any number on a GPU."
        raise Wrong(
            f"{words} With NaN there: {wrong}", diagnoses=[named("masked-lanes")]
        ) from None


def problems(facts, most) -> list[tuple[str, str]]:
    """(what is wrong with the launches of one call, in words; the key of the mistake), the worst first."""
    found, all_launches = [], facts["launches"]
    for launch in all_launches:
        found += _of_launch(launch, launch["kernel"])
    if facts["torch"]:
        names = ", ".join(facts["torch"][:3])
        words = f"torch computes with whole matrices ({names}). That is the kernel's work: fuse it."
        found.append((words, "work-outside"))
    if len(all_launches) > most:
        found.append(
            (
                f"{len(all_launches)} kernels were launched, at most {most} are needed.",
                "",
            )
        )
    return found


def _of_launch(launch, kernel):
    if launch["shared"]:
        words = (
            f"{kernel} is a race: of its {launch['programs']} programs, one writes to {launch['shared']} places that "
            "another one reads or writes. The interpreter runs them one after the other, a GPU does not."
        )
        yield words, "race"
    if launch["atomics"]:
        words = (
            f"{kernel} adds with atomics: the order, and with it the last bits, differ from run to run. Give each "
            "program a row of partial sums of its own."
        )
        yield words, "atomics"


def narrow(exam) -> str:
    """float32 and float16, whose largest number is 65504: the scale of a draw is not to lead past it."""
    return low_precision(
        replace(
            exam,
            draw=replace(
                exam.draw, scale=min(exam.draw.scale, LARGEST["float16"] / SPREAD)
            ),
        )
    )
