"""Stages for tasks about a norm: how it is called, its values, its slopes, narrow dtypes and what is wrong there."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ...checks.finite_difference import directional, inner
from ..messages import INPUTS, OUT_OF_TIME, Wrong, compare, largest, small
from ..named import named
from ..task import Stage
from .norms import DEGENERATE, OFFSET, USUAL

WRITTEN, STRIDES = "input-overwritten", "stride-ignored"


LAYOUTS = {
    "strided": "every second column of a wider array",
    "transposed": "a transposed array",
}


def signature(exam) -> str:
    """It can be called as described, and returns arrays of the right number, type, shape and dtype."""
    trial = exam.trials(("random",))[0]
    exam.answers(trial)
    for trial in exam.trials(("one row",)):
        with suppress(Wrong):  # whose place is at another stage
            exam.answers(trial)
    if exam.slips:
        words = " ".join(exam.slips)
        raise Wrong(
            f"{words} The numbers are compared all the same.",
            diagnoses=map(named, exam.slips.values()),
        )
    return "It takes and returns what the signature says."


def inputs_untouched(exam, forward="", eps=0.0) -> str:
    """No input is written to, and the results depend on the inputs alone: not on their memory, not on other calls.

    Args:  forward, eps: as between_calls
    """
    trial = exam.trials(("random",))[0]
    outcome = exam.ask(exam.oracle.request(trial, exam.base))
    if outcome.changed:
        names = ", ".join(outcome.changed)
        raise Wrong(
            f"It changed its input {names} in place. Copy what you want to write to.",
            key=WRITTEN,
        )
    plain = exam.named(outcome, trial, exam.base)
    if not all(np.isfinite(numbers).all() for numbers in plain.values()):
        raise Wrong("The results are not finite, so nothing can be said about them.")
    for layout in LAYOUTS:
        other = exam.ask(exam.oracle.request(trial, exam.base, layout))
        if other.changed:
            raise Wrong(
                f"It changed its input {', '.join(other.changed)} in place.",
                key=WRITTEN,
            )
        if changed := _changed(exam, other, trial, plain):
            same_again(exam, trial, plain)
            how = LAYOUTS[layout]
            key = STRIDES * exam.is_right([trial])
            name, words = changed
            words = f"With the matrices as {how}, the same numbers give another {name}. {words}"
            raise Wrong(words, key=key)
    if exam.oracle.op == "call":
        between_calls(exam, trial, plain)
        if forward:
            between_calls(exam, trial, plain, forward, eps)
    return "Inputs unchanged; strided and transposed inputs give the same, and so does another call."


INTERFACE = (
    Stage("signature and shapes", 1, signature, interface=True),
    Stage("inputs left alone", 1, inputs_untouched, interface=True),
)


def _changed(exam, outcome, trial, before):
    """(name, how) of the first result that is not what it was in the call before; None where all are."""
    known = exam.oracle.expected(trial, exam.base)
    for name, got in exam.named(outcome, trial, exam.base).items():
        # Two right results may differ by twice the bound; one that ignores strides is NaN or far off.
        if words := compare(name, got, before[name], 2 * known[name][1])[2]:
            return name, words
    return None


def same_again(exam, trial, before) -> None:
    """Raises Wrong where the very same call gives something else than before."""
    request = exam.oracle.request(trial, exam.base)
    # The option makes it another request than that of before: the answer to that is kept.
    outcome = exam.ask(replace(request, options=request.options | {"again": True}))
    if changed := _changed(exam, outcome, trial, before):
        raise Wrong(
            f"The same call, made twice, gives two results. {changed[1]}",
            key="another-answer",
        )


# A call, others with other numbers, and the first once more, all in one process: what is kept is seen there alone.
BETWEEN = """
import numpy as np

def between(target, arguments, options, grad):
    given = list(arguments.values())
    first = target(*given)
    kept = [np.copy(each) for each in first]
    other = {name: 1.5 * each + 0.25 if getattr(each, "dtype", None) in ("f4", "f8") else each
             for name, each in arguments.items()}
    try:
        if options["forward"]:
            target.__globals__[options["forward"]](other["x"], other["weight"], options["eps"])
        else:
            target(*other.values())
    except Exception:
        pass
    changed = [at for at in range(len(kept)) if not np.array_equal(first[at], kept[at], equal_nan=True)]
    return target(*given), {"overwritten": changed}
"""


def between_calls(exam, trial, plain, forward="", eps=0.0) -> None:
    """Raises Wrong where another call changes what an earlier one returned, or what the next one returns.

    Args:  forward: the student's function that is called between, with eps; the task's own without a name
    """
    oracle = exam.oracle
    options = {"source": BETWEEN, "run": "between", "forward": forward, "eps": eps}
    try:
        outcome = exam.ask(
            replace(oracle.request(trial, exam.base), op="program", options=options)
        )
    except Wrong as wrong:
        if forward and OUT_OF_TIME in str(
            wrong
        ):  # the forward has, and that is the other task's matter
            return
        raise
    if changed := _changed(exam, outcome, trial, plain):
        which = (
            f"After {forward} has had other rows"
            if forward
            else "After a call with other numbers"
        )
        words = f"{which}, the same call gives another {changed[0]}. {changed[1]}"
        raise Wrong(
            f"{words} Take what it needs from its own arguments.",
            key="another-answer",
        )
    if names := [
        name
        for at, name in enumerate(oracle.results)
        if at in outcome.facts["overwritten"]
    ]:
        words = f"The next call, with other numbers, changes the {' and the '.join(names)} that this one has returned."
        raise Wrong(words, key="memory-shared")


def from_arguments(forward, eps):
    """A stage: as inputs_untouched, also where the student's forward of this name has just had other rows."""
    return partial(inputs_untouched, forward=forward, eps=eps)


def value(*names):
    """A stage that compares some results, element by element, on every usual kind of rows."""
    return partial(_value, names=names)


def _value(exam, names) -> str:
    *usual, longer, square = exam.trials()
    return two_shapes(exam, usual, [longer, square], names)


def two_shapes(exam, trials, others, names) -> str:
    """As Exam.compare, for trials of one shape and then for others: what is wrong for these alone has a name."""
    sentence = exam.compare(trials, names)
    try:
        exam.compare(others, names)
    except Wrong as wrong:
        if wrong.stub or OUT_OF_TIME in str(wrong):
            raise
        words = (
            str(wrong)
            if str(wrong).startswith(INPUTS)
            else f"{INPUTS}{others[0].name}. {wrong}"
        )
        diagnoses = wrong.diagnoses or [named("one-shape")]
        raise Wrong(
            f"{words} For x of shape {trials[0].case.x.shape} it is right.",
            diagnoses=diagnoses,
        ) from None
    return sentence


def degenerate(exam) -> str:
    """Rows without variance, rows of zeros, no rows, one row, one column."""
    try:
        exam.compare(
            [*exam.trials(DEGENERATE), *_weight_of_0(exam)], exam.oracle.results
        )
    except Wrong as wrong:
        if wrong.evidence:
            wrong.diagnoses = _of_flat_rows(exam, wrong.evidence)
        raise
    return "Constant rows, zero rows, no rows, one row and one column are right."


def _of_flat_rows(exam, evidence) -> tuple:
    """One Diagnosis of results that are wrong for degenerate rows, by their numbers; none where these do not tell."""
    if not any(trial.case.x.size for *_, trial in evidence):
        return (named("no-rows"),)
    left = False
    for name, numbers, trial in evidence:
        if not np.isfinite(numbers).all():
            return (named("not-finite"),)
        if np.ptp(trial.case.exact_sum, axis=-1).all():
            return ()
        value, bound = exam.oracle.expected(trial)[name]
        stream = trial.case.dresidual_out if name in ("dx", "dresidual") else None
        wrong = np.abs(numbers - value) > bound
        left = left or (numbers - (0 if stream is None else stream))[wrong].any()
    names = tuple({name: 0 for name, *_ in evidence})
    with suppress(Wrong):
        exam.compare(exam.trials(), names)  # only there it may be wrong
        return () if left else (named("flat-row"),)
    return ()


def _weight_of_0(exam) -> list:
    """Ordinary rows with a weight that is 0: nobody divides by it."""
    trial = exam.trials(("random",))[0]
    if trial.case.weight is None:
        return []
    weight = trial.case.weight.copy()
    weight[0] = 0
    return [
        replace(trial, case=replace(trial.case, weight=weight, name="a weight of 0"))
    ]


def quietly_degenerate(exam) -> str:
    """As degenerate, and NumPy has nothing to warn of on a constant row and a row of zeros."""
    said = degenerate(exam)
    (trial,) = exam.trials(DEGENERATE[:1])
    if words := exam.ask(replace(exam.oracle.request(trial), op="warned")).facts[
        "warning"
    ]:
        raise Wrong(f"{INPUTS}{trial.name}. The results are right, but NumPy warned: {words}. Compute nothing there "
                    "that is thrown away afterwards.", key="warns")  # fmt: skip
    return said


def low_precision(exam, explain=lambda exam, evidence, dtype: []) -> str:
    """The narrow dtypes: results come in the dtype of x and are as close as sums in float32 can be.

    Args:  explain: gives the diagnoses of what is wrong in a narrow dtype alone, where numbers tell more
    """
    oracle, sentences = exam.oracle, []
    for dtype in oracle.dtypes:
        trials = exam.trials((*USUAL, *OFFSET))
        try:
            sentences.append(
                f"{dtype}: {exam.compare(trials, oracle.results, dtype).lower()}"
            )
        except Wrong as wrong:
            if wrong.evidence and {trial.name for *_, trial in wrong.evidence} <= {
                *OFFSET
            }:
                key = "digits-lost"
                if _are_flat_rows(exam, wrong.evidence, dtype):
                    key = "flat-row"
                wrong.diagnoses = [named(key)]
            if not wrong.evidence or not _is_rounding(exam, wrong.evidence, dtype):
                raise
            if found := explain(exam, wrong.evidence, dtype):
                raise Wrong(str(wrong), diagnoses=found) from None
            words = f"{wrong} Compute in float32 and round once, at the end."
            raise Wrong(words, key="narrow-intermediate") from None
    return " ".join(sentences)


def _are_flat_rows(exam, evidence, dtype) -> bool:
    """Whether all is right without the rows to which a dtype leaves no spread, as bfloat16 does far from 0."""
    trials = {id(trial): trial.rounded(dtype) for *_, trial in evidence}
    trials_cut = []
    for trial in trials.values():
        rows = np.ptp(trial.case.exact_sum, axis=-1) > 0
        if rows.all():
            return False
        trials_cut.append(_of_rows(trial, rows))
    return exam.is_right(trials_cut, dtype)


def _of_rows(trial, rows):
    """A trial of some of its rows. Args: rows: a truth value for each"""
    arrays = {
        name: array[rows]
        for name in ("x", "residual", "dy", "dresidual_out")
        if (array := getattr(trial.case, name)) is not None
    }
    return replace(trial, case=replace(trial.case, **arrays))


GRADIENTS = {"x": "dx", "weight": "dw", "bias": "db", "residual": "dresidual"}


def gradcheck(exam) -> str:
    """The gradients against central differences of the forward, along random directions, row by row scaled."""
    rng, errors = exam.rng("directions"), []
    for trial in exam.trials():
        names, inputs, loss = exam.oracle.loss(trial)
        if exam.oracle.op == "gradients":
            loss = _own_loss(exam, trial, names, loss)
        got = exam.answers(trial)
        if "y" in got and compare("y", got["y"], *exam.oracle.expected(trial)["y"])[2]:
            raise Wrong(
                f"{INPUTS}{trial.name}. The slopes are those of your own y, which is wrong. Put y right first."
            )
        spread = trial.case.x.std(-1, keepdims=True)
        direction = [
            rng.standard_normal(a.shape) * (spread if a.ndim == 2 else 1)
            for a in inputs
        ]
        slope = directional(loss, inputs, direction)
        pairs = zip(names, direction, strict=True)
        claimed = sum(inner(got[GRADIENTS[name]], v) for name, v in pairs)
        error = abs(claimed - slope.value)
        if not error <= slope.tolerance:
            raise Wrong(
                f"{INPUTS}{trial.name}. Along a random direction the gradients give the slope {claimed:.9g}, central "
                f"differences {slope.value:.9g}: off by {small(error)}, where {small(slope.tolerance)} is allowed."
            )
        errors.append((error, slope.tolerance))
    return f"Slopes agree: {largest(errors)}"


def _own_loss(exam, trial, names, reference_loss):
    """The loss <dy, y> of the student's own forward."""

    def loss(*arrays):
        moved = replace(
            trial, case=replace(trial.case, **dict(zip(names, arrays, strict=True)))
        )
        y = exam.answers(moved, names=("y",))["y"]
        return float((trial.case.dy * y).sum()), reference_loss(*arrays)[1]

    return loss


def _is_rounding(exam, evidence, dtype) -> bool:
    """Whether results that are wrong in 16 bits are right in float32 and in the wide dtype."""
    trials = list({id(trial): trial.rounded(dtype) for *_, trial in evidence}.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtypes = (exam.base, "float32") if "16" in dtype else ()
        return bool(dtypes) and all(exam.is_right(trials, each) for each in dtypes)
