"""How a task's program is read, and what is shown out about the outputs that are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...mistakes.table import UNKNOWN
from ..named import Diagnosis, named
from .child import SECONDS, in_child

EPS_SECONDS = 4
RIGHT = "The formula is right for every M and N"
DIGITS = (
    "Nothing is wrong with the formula, read with exact numbers. Look at what becomes of the digits on the way: at the "
    "difference of two numbers that are nearly equal, at the dtype of each intermediate result, at rows without spread."
)
BRANCHES = (
    "Where that does not hold, look at what your text gives. Elsewhere, look at what becomes of the digits: at the "
    "difference of two numbers that are nearly equal, at the dtype of each intermediate result."
)
LONGEST = 160
UNREAD = (
    "Your equation cannot be shown: what that line does is not followed in letters."
)
# verify's reasons for np.round(x, 6), torch.round(x) and x.round(6)
ROUNDING = re.compile(r"(numpy\.|torch\.|the attribute )(round|around)\b.*")
ROUNDS = "Where would an equation of the chapter round? Its digits are lost there."
OPEN = (
    "It is right at some numbers at most. Look at what a bound, a branch or an absolute value in it does to rows of "
    "small and of large numbers."
)
# {output: the label of its registered equation} of the norms that homeworks ask for
RMS = {"y": "rms-forward", "rstd": "rms-statistics", "dx": "rms-dx", "dw": "rms-dw"}
LN = {"y": "ln-forward", "dx": "ln-dx", "dw": "ln-dw", "db": "ln-db"}


@dataclass(frozen=True)
class Reads:
    """How a task's program is read.

    Args:  outputs: what it returns; labels: {output: label}; norm: the options of normgrad.verify.norm
           library: of its arrays
           inputs: {argument: what it is, as "x" or "(M,)"} of a function that is not a norm
           right: the homework whose solution it is compared with then
    """

    outputs: tuple[str, ...]
    labels: dict[str, str]
    norm: dict = field(default_factory=dict)
    library: str = "numpy"
    inputs: dict[str, str] = field(default_factory=dict)
    right: str = ""


def read(reads: Reads, entry: str, program, wrong: Iterable[str]) -> list[Diagnosis]:
    """What the reading of a program says about outputs that are wrong; [] where it cannot be read.

    Args:  entry: the name of the function or class; program: the text of the module, or the function or class
           wrong: the outputs that the contract has found wrong
    """
    wrong = set(wrong)
    if not wrong:
        return []
    try:  # SymPy takes a second to load, and a homework in NumPy that is right does without it
        from . import beliefs  # noqa: F401
    except ImportError:
        return []
    return in_child(
        lambda: _read(reads, entry, program, wrong), SECONDS + 2 * EPS_SECONDS
    )


def _read(reads, entry, program, wrong):
    if reads.inputs:
        return _read_plain(reads, entry, program, wrong)
    from ...verify import norm
    from ...verify.programs import verify_function
    from .beliefs import diagnoses
    from .equations import equations_of

    definitions = norm(**reads.norm)
    verdict = verify_function(
        program, definitions, reads.outputs, reads.library,
        entry if isinstance(program, str) else "", SECONDS / 2, run=False,
    )  # fmt: skip
    shown: list[Diagnosis] = []
    for output in wrong & set(verdict.outputs):
        own = verdict.outputs[output]
        if own and is_one_pass(own.stored, definitions):
            return [named("one-pass-variance")]
    if verdict.line and not verdict.outputs:
        return [_unread(verdict.kind, verdict.line, verdict.why)]
    if wrong and all(verdict.outputs.get(output) for output in wrong):
        number = _number_for_eps(verdict)
        if number:
            return [
                named("eps-number", title=f"eps is the number {number} of the text")
            ]
        return [right([condition.words for condition in verdict.where])]
    for equation in equations_of(verdict, definitions, SECONDS / 2):
        if equation.output in wrong:
            label = reads.labels.get(equation.output, "")
            more = diagnoses(equation, label)
            if more[0].misconception == UNKNOWN:
                more = (
                    _of_eps(verdict.outputs[equation.output].case, definitions, label)
                    or more
                )
            keys = {diagnosis.misconception for diagnosis in shown}
            for diagnosis in more:  # of rstd, that of y has been named
                if equation.output != "rstd" or diagnosis.misconception not in keys:
                    shown.append(diagnosis)
    return shown or _without_terms(verdict, wrong, reads.labels)


def _without_terms(verdict, wrong, labels):
    """What is said of an output whose equation is no sum of terms of the field: the equation, or that it is open.

    For a mean of absolute values, and for an rstd that is cut off at a number.
    """
    from ...symbolic.proof import lettered
    from ...verify.verdict import REFUTED
    from .beliefs import UNNAMED
    from .equations import LONGEST

    for output, own in verdict.outputs.items():
        if output not in wrong or own.is_proof:
            continue
        if own.kind != REFUTED:
            title = f"The equation of {output} is another one at some numbers"
            return [Diagnosis(UNKNOWN, title, OPEN)]
        title = f"The equation of {output} is another one"
        diagnosis = Diagnosis(UNKNOWN, title, UNNAMED, labels.get(output, ""))
        text = f"{output} = {lettered(own.stored)[0]}"
        if len(text) <= LONGEST:
            diagnosis.implemented = text
        return [diagnosis]
    return []


def _number_for_eps(verdict):
    """The number for eps, which no argument is, at which a program was proved; "" for none.

    For `1 / np.sqrt((x * x).mean(-1) + 1e-5)` in a backward, and for EPS = 1e-5 of its module. It stops "the formula is
    right", which it is at one eps.
    """
    from sympy import Rational

    from ...verify.programs import ANY_EPS

    settings = [words for claim in verdict.claims for words in claim.settings]
    numbers = [words for words in settings if words.startswith("eps=")]
    numbers += [words for words in verdict.assumptions if words.endswith(ANY_EPS)]
    number = numbers[0].partition("=")[2] if numbers else ""
    number = number.removesuffix(ANY_EPS)
    return f"{float(Rational(number.strip())):g}" if number else ""


def right(conditions: Iterable[str]) -> Diagnosis:
    """What is said of equations that are all right. Args: conditions: under which, as "n[i] is not 0" """
    words = " and ".join(dict.fromkeys(conditions))
    if not words:
        return Diagnosis(UNKNOWN, RIGHT, DIGITS)
    if len(words) > LONGEST:
        words = "no denominator is 0 and the two sides of each comparison differ"
    return Diagnosis(UNKNOWN, f"{RIGHT} where {words}", BRANCHES)


def _of_eps(case, definitions, label):
    """A Diagnosis of an output that is right but for eps, which its equation in terms of rstd does not show."""
    from ...spec import PLACEMENTS
    from ...verify.instead import is_stored, norms
    from ...verify.verdict import compare

    if case is None:
        return []
    without, key, title = definitions.at_eps(0).defs, "", ""
    if compare(case.stored, case.defined, without, seconds=EPS_SECONDS):
        key = "eps-missing"
    for placement in () if key else PLACEMENTS:
        options = definitions.arguments | {"placement": placement}
        if key or not is_stored(case, norms(**options)):
            continue
        key = "eps-placement"
        if placement == definitions.arguments["placement"]:
            key, title = "eps-number", _of_number(case)
    if not key:
        return []
    diagnosis = named(key, title=title)
    diagnosis.equation = label
    return [diagnosis]


def _of_number(case):
    """What is said of a number that stands for eps."""
    from ...verify.verdict import eps_of

    number = float(eps_of(case.stored)[0])
    if str(case.defined).startswith(("y[", "rstd[")):
        return f"eps is the number {number:g}, not the argument"
    return f"backward's eps is the number {number:g}, not forward's argument"


def _unread(kind, line, why):
    """What is said of a line that is not followed."""
    if ROUNDING.fullmatch(why):
        return Diagnosis(
            UNKNOWN, f"Line {line} rounds numbers to some decimals", ROUNDS
        )
    return Diagnosis(UNKNOWN, f"{kind.capitalize()}: line {line}, {why}", UNREAD)


def _read_plain(reads, entry, program, wrong):
    """As _read, of a function that is not a norm."""
    from ...verify.values import NotRead
    from ...verify.verdict import NOT_READ
    from ..solutions import solution
    from .plain import differing

    try:
        return differing(reads, entry, program, solution(reads.right), wrong)
    except NotRead as reason:
        return [_unread(NOT_READ, reason.line, str(reason))] if reason.line else []


def is_one_pass(stored, definitions) -> bool:
    """Whether a norm that centres has the squares of x itself, or of x + residual, summed up."""
    from ...verify.difference import MEAN, X_HAT, i, j
    from .equations import sums_squares_of_x

    return definitions.defs.body(X_HAT[i, j]).has(MEAN) and sums_squares_of_x(stored)
