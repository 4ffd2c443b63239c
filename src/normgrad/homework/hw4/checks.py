"""A norm with a residual in kernels: its right answers, rows and sizes that no tile fits, and what programs touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ... import numpy_ref
from ...checks.cases import Case
from ..checks.norms import NormOracle, Trial
from ..checks.values import low_precision, same_again, two_shapes
from ..messages import Wrong
from ..named import named
from ..reading import kernels
from ..sandbox.student import Request
from . import gpu

NO_KERNEL = "No result was written by a Triton kernel. Launch one that writes them."

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
    read_as: tuple[str, str] = ("kernels", "wide")

    def taken(self, case: Case) -> Case:
        """The case with both halves of the sum."""
        return case

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
        facts = outcome.facts
        for launch in facts["launches"]:
            kernel = launch["kernel"]
            for stray, count in launch["outside"].items():
                words = f"{kernel} {stray} ({count} numbers): {MASK}"
                raise Wrong(words, key="out-of-bounds")
            if launch["foreign data"]:
                names = ", ".join(launch["foreign data"])
                words = (
                    f"{kernel} reads {names}, whose numbers come from no input and no kernel: NumPy or Python computed "
                    "them. Compute them in the kernel."
                )
                raise Wrong(words, key="work-outside")
            if launch["foreign"]:
                names = ", ".join(launch["foreign"][:3])
                words = (
                    f"{kernel} uses {names} in its body. No GPU runs Python. Write it with triton.language, and "
                    "helpers under @triton.jit."
                )
                raise Wrong(words, key="python-in-kernel")
        rows = all(np.size(argument.value) for argument in request.arguments)
        if rows and not facts["own"] and (facts["torch"] or not facts["launches"]):
            raise Wrong(NO_KERNEL)


# (M, N): a power of two plus one, fewer columns than any block, many rows for few programs, one block more or less,
# more columns than a block whose width stands in the code.
SIZES = ((9, 5), (37, 3), (2, 13), (3, 33), (2, 1030))


def rows(*names):
    """A stage that compares some results, as value."""

    def stage(exam) -> str:
        *usual, longer, square = exam.trials()
        try:
            return two_shapes(exam, usual, [longer, square], names)
        except Wrong as wrong:
            raise _with_reading(exam, wrong) from None

    return stage


def _with_reading(exam, wrong) -> Wrong:
    """The same Wrong; where numbers are, with what the kernels store by their text, once in a report."""
    if wrong.evidence and "read" not in exam.shared:
        (trial,) = _of_size(exam, *kernels.SHAPE)
        exam.shared["read"] = kernels.readings(exam, trial)
        wrong.diagnoses = (*wrong.diagnoses, *exam.shared["read"])
    return wrong


def sizes(exam) -> str:
    """M not a multiple of the programs, N not a power of two, inputs that are rows of a wider matrix."""
    trials = [trial for m, n in SIZES for trial in _of_size(exam, m, n)]
    names = exam.oracle.results
    try:
        exam.compare(trials, names, apart=True)
    except Wrong as wrong:
        if wrong.diagnoses:
            raise Wrong(str(wrong)) from None
        raise _with_reading(exam, wrong) from None
    try:
        exam.compare(trials[:1], names, layout="wide")
    except Wrong as wrong:
        # The same numbers were right one line above, so it is where they lie.
        same_again(exam, trials[0], exam.answers(trials[0], apart=True))
        key = ""
        if wrong.evidence or MASK in str(wrong):
            key = "stride-ignored"
        words = str(wrong).replace(MASK, STRIDES)
        raise Wrong(words, stub=wrong.stub, key=key) from None
    shapes = ", ".join(f"({m}, {n})" for m, n in SIZES)
    return f"Right for the shapes {shapes}, and for rows of a wider matrix."


def _usually_right(exam) -> bool:
    """Whether the results are right for the shapes of the other stages."""
    usual = exam.trials()
    return exam.is_right([usual[0], usual[-1]])


def _of_size(exam, rows, columns):
    sized = SimpleNamespace(rows=rows, columns=columns)
    return exam.oracle.trials(exam.rng(), sized, ("random",))


def launches(most):
    """A stage that looks at what the kernels touch; most: the largest number of launches."""

    def stage(exam) -> str:
        for rows, columns in SIZES:
            (trial,) = _of_size(exam, rows, columns)
            outcome = exam.ask(exam.oracle.request(trial, apart=True))
            exam.named(outcome, trial, exam.base)
            for words, key in problems(outcome.facts, most):
                shape = f"For x of shape ({rows}, {columns})"
                raise Wrong(f"{shape}: {words}", key=key)
        _past_the_mask(exam)
        last = outcome.facts["launches"]
        # It takes some seconds, which are well spent on kernels that are right otherwise.
        if _usually_right(exam):
            refused = gpu.refusal([launch["described"] for launch in last])
            if refused:
                raise Wrong(f"The interpreter runs it, a GPU would not: {refused}")
        read, written = (
            sum(launch[kind] for launch in last) / (rows * columns)
            for kind in ("read", "written")
        )
        counted = f"{len(last)} launch" + "es" * (len(last) > 1)
        return f"{counted}; {read:.1f} numbers read and {written:.1f} written for each entry of x."

    return stage


def _past_the_mask(exam) -> None:
    """Raises Wrong where results are right only because the interpreter loads 0 past a mask without `other`."""
    trials, names = _of_size(exam, *SIZES[0]), exam.oracle.results
    try:
        exam.compare(trials, names, apart=True)
    except Wrong:  # another stage says why
        return
    for option, key, words in MASKED:
        try:
            exam.compare(trials, names, **{option: True})
        except Wrong as wrong:
            raise Wrong(f"{words}: {wrong}", key=key) from None


MASKED = (
    ("again", "another-answer", "Called once more in the same process, with other numbers, it gives another result"),
    ("undefined", "masked-lanes", "Where its mask is false, a load without other= gives 0 in the interpreter, any "
     "number on a GPU. With NaN there"),
)  # fmt: skip


def problems(facts, most) -> list[tuple[str, str]]:
    """(what is wrong with the launches of one call, in words; the key of the mistake), the worst first."""
    problems, launches = [], facts["launches"]
    for launch in launches:
        kernel = launch["kernel"]
        if launch["shared"]:
            words = (
                f"{kernel} is a race: of its {launch['programs']} programs, one writes to {launch['shared']} places "
                "that another one reads or writes. The interpreter runs them one after the other, a GPU does not."
            )
            problems.append((words, "race"))
        if launch["atomics"]:
            words = (
                f"{kernel} adds with atomics: the order, and with it the last bits, differ from run to run. Give each "
                "program a row of partial sums of its own."
            )
            problems.append((words, "atomics"))
    if facts["torch"]:
        names = ", ".join(facts["torch"][:3])
        words = f"torch computes with whole matrices ({names}). That is the kernel's work: fuse it."
        problems.append((words, "work-outside"))
    if len(launches) > most:
        words = f"{len(launches)} kernels were launched, at most {most} are needed."
        problems.append((words, ""))
    return problems


def narrow(exam) -> str:
    """float32 and float16."""
    try:
        return low_precision(exam, _of_the_unrounded)
    except Wrong as wrong:
        if not wrong.diagnoses or _named_so(wrong, "digits-lost"):
            raise _with_reading(exam, wrong) from None
        is_either = _named_so(wrong, NARROW) and not _named_so(wrong, UNROUNDED)
        if "y" not in exam.oracle.results or not is_either:
            raise
        # Two mistakes look like that, and numbers do not tell which.
        words = "If it does: is the sum normalized before it is rounded?"
        raise Wrong(f"{wrong} {words}") from None


UNROUNDED, NARROW = "sum-not-rounded", "narrow-intermediate"


def _named_so(wrong, key) -> bool:
    return key in {each.misconception for each in wrong.diagnoses}


def _of_the_unrounded(exam, evidence, dtype) -> list:
    """A Diagnosis where a wrong result is that of the sum before it was rounded."""
    for output, numbers, trial in evidence:
        unrounded = replace(trial.rounded(dtype), dtype="float64").forward()
        value = getattr(unrounded, output, None)
        bound = exam.oracle.expected(trial, dtype)[output][1]
        if value is not None and (np.abs(numbers - value) <= bound).all():
            return [named(UNROUNDED)]
    return []
