"""A test that the student writes: right backwards must pass it, wrong ones must not, and why one does."""

from __future__ import annotations

from functools import partial

import numpy as np

from ... import numpy_ref
from ...checks.tolerance import unit_roundoff
from ...mistakes.table import find
from ...spec import LAYER_NORM
from ..checks.exam import IMPATIENT_SECONDS
from ..diagnosis.named import named
from ..messages import OUT_OF_TIME, Wrong
from ..sandbox.student import Request
from .backwards import (
    ALIKE,
    BELIEFS,
    CENTRED,
    CENTRED_WDY,
    DY,
    FLAT,
    FLAT_ZERO,
    MEAN,
    MEANS,
    OUTPUTS,
    PAIRS,
    RECOMPUTED,
    REPEATED,
    RIGHT,
    ROW,
    SPREAD,
    SQUARE,
    UNWEIGHTED,
    WDY,
    WEIGHT,
    ZERO_ROW,
    ZEROS,
    changed,
    subjects,
    text,
)

OTHERS = "other-statistics"
NOT_A_NUMBER = 1e300
NEARLY_ONE = 1e-3
# Two float64 numbers that came from a product each may differ by this much and still be meant to be equal.
EQUAL = 16 * np.finfo(np.float64).eps
# Terms that add up to no more of the size of a row were made to add up to 0.
BALANCED = 1e-9


def right(dy, x, weight, mean, rstd):
    """(dx, dw, db) of LayerNorm.  {eq}`ln-dx`, {eq}`ln-dw`, {eq}`ln-db`"""
    saved = numpy_ref.Forward(None, x, mean, rstd, weight, weight, LAYER_NORM)
    grads = numpy_ref.backward(dy, saved)
    return grads.dx, grads.dweight, grads.dbias


def off(given, found) -> dict:
    """{gradient: largest error over the size of its terms}: where terms cancel, an error like rounding is no error.

    Where all terms of an entry are 0, or rounding beside those of other rows, its error is taken over the size of the
    others.
    """
    dy, _, weight, _, rstd = given
    wdy = np.abs(dy * weight).max(-1, keepdims=True, initial=0)
    wdy = np.where(wdy > BALANCED * wdy.max(initial=0), wdy, wdy.max(initial=0))
    sizes, shares = (rstd[:, None] * wdy, np.abs(dy).sum(0), np.abs(dy).sum(0)), {}
    for name, got, known, size in zip(
        OUTPUTS, found, right(*given), sizes, strict=True
    ):
        size = np.where(size > 0, size, size.max(initial=0))
        share = (np.abs(got - known) / np.maximum(size, np.finfo(np.float64).tiny)).max(
            initial=0
        )
        shares[name] = float(share) if np.isfinite(share) else NOT_A_NUMBER
    return shares


def special(given) -> dict:
    """What is special about the inputs of one call."""
    narrow = any(array.dtype != np.float64 for array in given[:2])
    whole = any(array.dtype.kind in "iub" for array in given)
    dy, x, weight, mean, rstd = (array.astype(np.float64) for array in given)
    wdy = dy * weight
    return {
        WDY: bool(
            (np.abs(wdy - wdy[..., :1]) <= EQUAL * np.abs(wdy).max(initial=0)).all()
        ),
        WEIGHT: bool((weight == weight[:1]).all()),
        ROW: len(x) == 1,
        SPREAD: bool((np.abs(rstd - 1) < NEARLY_ONE).all()),
        DY: bool((dy == dy.flat[0]).all()) if dy.size else True,
        CENTRED: bool((np.abs(mean) * rstd < NEARLY_ONE).all()),
        CENTRED_WDY: bool(
            (np.abs(wdy.sum(-1)) <= BALANCED * np.abs(wdy).sum(-1).max(initial=0)).all()
        ),
        SQUARE: x.shape[0] == x.shape[1],
        ALIKE: bool((np.ptp(rstd) < NEARLY_ONE * rstd).all()) if rstd.size else True,
        FLAT: bool((np.ptp(x, axis=-1) > 0).all()) if x.size else True,
        PAIRS: x.shape[1] <= 2 and _hardly_moves(dy, x, weight, mean, rstd),
        REPEATED: bool((x == x[:1]).all() and (dy == dy[:1]).all()),
        "narrow": narrow,
        "whole": whole,
    }


def _hardly_moves(*given) -> bool:
    """Whether dx is nearly 0 beside its terms, in every row."""
    dy, _, weight, _, rstd = given
    terms = rstd[:, None] * np.abs(dy * weight).max(-1, keepdims=True, initial=0)
    return bool((np.abs(right(*given)[0]) <= HARDLY * terms).all())


def summed(calls) -> dict:
    """{"shared": what all calls have in common, "size": of the largest gradient, "off": the worst errors}.

    Args:  calls: ((dy, x, weight, mean, rstd), (dx, dw, db)) of each call
    """
    with np.errstate(all="ignore"):
        looked = [special(given) for given, _ in calls]
        shares = [
            off([array.astype(np.float64) for array in given], found)
            for given, found in calls
        ]
    shared = (
        [name for name in looked[0] if all(look[name] for look in looked)]
        if looked
        else []
    )
    size = max(
        (np.abs(array).max(initial=0) for _, found in calls for array in found),
        default=0.0,
    )
    worst = {
        name: max((share[name] for share in shares), default=0.0) for name in OUTPUTS
    }
    with np.errstate(all="ignore"):
        beside = {name: max((_beside(right(*map(_wide, given))[at], found[at]) for given, found in calls), default=0.0)
                  for at, name in enumerate(OUTPUTS)}  # fmt: skip
    return {
        "shared": shared,
        "size": float(size),
        "off": worst,
        "beside": beside,
        "last": _scales(calls),
    }


def _wide(array):
    return array.astype(np.float64)


def _beside(known, found) -> float:
    """The error of a gradient over its largest entry."""
    share = np.abs(found - known).max(initial=0) / max(
        np.abs(known).max(initial=0), np.finfo(np.float64).tiny
    )
    return float(share) if np.isfinite(share) else NOT_A_NUMBER


def _scales(calls) -> tuple[float, float]:
    """(the most that a row of the last call is away from 0, over its spread; the largest rstd there)."""
    if not calls or not calls[-1][0][1].size:
        return 0.0, 0.0
    _, x, _, _, rstd = map(_wide, calls[-1][0])
    return float((np.abs(x).max(-1) * rstd).max()), float(rstd.max())


# Half the digits of float64: what is off by more, a test with a computed tolerance sees; rounding is far below.
VISIBLE = unit_roundoff("float64") ** 0.5
HARDLY, DROWNED = 0.01, 1e-3
# Differences, as a share of the largest gradient, that rounding and truncation make, in float64 and below it.
SMALL, NARROW = 1e-6, 1e-5
# A test that ran out of time so often is given less of it from then on.
LATE = 2
# From here on a row is far from 0 for its spread, or narrow for a usual step.
FAR, NARROW_ROW = 1e5, 100
# So many times the size of its terms no tolerance lets an error be.
HUGE = 1000
NOTHING, WRONG_REFERENCE = "zeros", "reference-wrong"
# Where a line of the student's own raises what it was that ended the call.
RAISED = ": raise "
BLIND = (WDY, WEIGHT, ROW, SPREAD, DY, REPEATED)
SILENT = "verdict-not-raised"
INPUTS, COMPARED = (
    "your inputs cannot show it",
    "your inputs show it, and your comparison lets it pass",
)
# A test that says nothing violates no equation.
NO_EQUATION = ("never-called", "verdict-turned", "taken-in-another-order", SILENT)


class Returned(Wrong):
    """A test that returned True or False."""


def _tried(exam) -> dict:
    """{what was handed over: facts, or the Wrong that it ended in} of all backwards, each in a call of its own."""
    if "tried" not in exam.shared:
        found, late, seconds = {}, 0, exam.student.seconds
        sources = {how: make() for how, make in RIGHT.items()} | {NOTHING: ZEROS}
        sources |= {
            number: subject.source()
            for number, subject in enumerate(subjects(), start=1)
        }
        for which, source in sources.items():
            found[which] = facts = _try(
                exam,
                source,
                min(seconds, IMPATIENT_SECONDS) if late >= LATE else seconds,
            )
            late += isinstance(facts, Wrong) and OUT_OF_TIME in str(facts)
            if isinstance(facts, Wrong) and facts.stub:
                raise facts
        exam.shared["tried"] = found
    return exam.shared["tried"]


def _try(exam, source, seconds, **options):
    """The facts of one run of the student's test on the backward of a text, or the Wrong that it ended in."""
    exam.student.begin(seconds)
    try:
        outcome = exam.ask(Request("examine", (), {"source": source, **options}))
        facts = outcome.facts
        if not facts["rejected"] and facts["answer"] == "bool":
            raise Returned("It returned True or False. Raise AssertionError where the backward is wrong, and return "
                           "nothing.")  # fmt: skip
        if not facts["calls"]:
            raise Wrong(
                "It never called the backward that it was given.",
                diagnoses=(_named("never-called"),),
            )
    except Wrong as error:
        return error
    return facts | summed(_calls(outcome.values))


def _calls(values):
    """(inputs, results) of each call that was kept, in the formats that they had."""
    arrays = [value.numbers.astype(value.facts["dtype"]) for value in values]
    return [
        (arrays[at : at + 5], arrays[at + 5 : at + 8])
        for at in range(0, len(arrays), 8)
    ]


def _facts(exam, which):
    """What is known of one run.

    Raises:  Wrong where it ended in something else than a verdict
    """
    facts = _tried(exam)[which]
    if isinstance(facts, Returned):
        raise Wrong(str(facts), diagnoses=_silent(exam))
    if isinstance(facts, Wrong) and RAISED in str(facts) and _rights_pass(exam):
        words = f"{facts} Only AssertionError counts as a rejection."
        raise Wrong(
            words, diagnoses=(_named(SILENT, found="a verdict in another exception"),)
        )
    if isinstance(facts, Wrong):
        raise facts
    return facts


def _rights_pass(exam) -> bool:
    return all(
        isinstance(_tried(exam)[how], dict) and not _tried(exam)[how]["rejected"]
        for how in RIGHT
    )


def _silent(exam) -> tuple:
    """One Diagnosis where the test cannot say no: it rejects nothing, and returns a verdict, has nothing to raise,
    catches what it raises, or passes what no comparison passes.

    A return of True after assertions that do reject is another matter.
    """
    found = _tried(exam).values()
    if any(isinstance(facts, dict) and facts["rejected"] for facts in found):
        return ()
    if any(isinstance(facts, Returned) for facts in found):
        return (_named(SILENT, found="a verdict that is returned"),)
    if not exam.student.look(exam.task.entry)["raises"]:
        return (_named(SILENT, found="a verdict that is dropped"),)
    if _asked(exam, ZEROS, watched=True).get("caught"):
        return (_named(SILENT, found="a verdict that your own test catches"),)
    worst = [changed(text(), "ruined", at) for at in range(len(OUTPUTS))]
    worst += [changed(text(), how) for how in ("unknown", "shaped")]
    always = all(_passes(exam, each) for each in worst)
    return (_named(SILENT, found="a verdict that is always true"),) if always else ()


def _asked(exam, source, **options) -> dict:
    """The facts of one more run, on the backward of a text; none where it ended in something else than a verdict."""
    known, key = exam.shared.setdefault("asked", {}), (source, repr(options))
    if key not in known:
        known[key] = _try(exam, source, exam.student.seconds, **options)
    return known[key] if isinstance(known[key], dict) else {}


def _passes(exam, source) -> bool:
    return not _asked(exam, source).get("rejected", True)


def accepts_right(exam) -> str:
    """Right backwards pass, however they are written; and a backward of zeros does not."""
    for how in RIGHT:
        if (facts := _facts(exam, how))["rejected"]:
            if _turned_round(exam):
                words = f"It rejects a right backward ({how}), and passes one of zeros, and one that is far off."
                raise Wrong(words, diagnoses=(_named("verdict-turned"),))
            belief = _agreed(exam)
            agrees = f'it passes a backward whose author believes: "{belief}"'
            rounding = (
                f"a tolerance below {facts['gap']:.0e}, the error of what you compare with"
                if _by_rounding(facts)
                else ""
            )
            found = (
                _named(WRONG_REFERENCE, found=agrees)
                if belief
                else _named("false-alarm", found=rounding)
            )
            others = _passes(exam, text() + RECOMPUTED)
            if facts["moved"] and not (belief or others):
                words = f"It rejects a right backward ({how}). When it does, several entries of its x are not those " \
                        "that the backward was handed."  # fmt: skip
                raise Wrong(words, diagnoses=(_named("not-put-back"),))
            if _passes(exam, changed(text(), "exchanged")):
                words = "It rejects right backwards, and passes one whose gradients come in another order."
                raise Wrong(words, diagnoses=(_named("taken-in-another-order"),))
            raise Wrong(
                _alarm(how, facts, belief, others),
                diagnoses=(_named(OTHERS) if others else found,),
            )
    facts = _facts(exam, NOTHING)
    if not facts["rejected"]:
        blind = (_named(WDY),) if WDY in facts["shared"] else ()
        why = (
            f"{find(WDY, 'hw6').title}: there dx is 0 anyway. "
            if blind and exam.feedback != "hint"
            else ""
        )
        whole = (
            "Some of your inputs are whole numbers, in which a small step is lost. "
            * ("whole" in facts["shared"])
        )
        words = f"It accepts a backward that returns zeros. {why}{whole}Raise AssertionError when a gradient is wrong."
        silent, mostly = (
            _silent(exam),
            sum(_rejected(exam, n) for n in range(1, len(subjects()) + 1)),
        )
        zeros = (
            (_of_zeros(exam),)
            if not (silent or blind) and 2 * mostly > len(subjects())
            else ()
        )
        raise Wrong(words, diagnoses=(*silent, *blind, *zeros))
    return f"{len(RIGHT)} right backwards pass; a backward of zeros does not."


def _of_zeros(exam):
    """What a test that passes zeros, and hardly anything else that is wrong, lets pass.

    Along its own answer g it finds the slope g * dx, and g * g is the same for a g of equal entries, the mean of dx.
    """
    if _passes(exam, changed(text(), "averaged")):
        return _named("zero-passes", right="directions that the backward does not give")
    return _named(
        "zeros-not-compared"
        if _passes(exam, changed(text(), "partly zero"))
        else "zero-passes"
    )


def _turned_round(exam) -> bool:
    """Whether a test that rejects right backwards passes zeros, and numbers far off: no reference explains that."""
    zeros, far = _tried(exam)[NOTHING], text()
    for at in range(len(OUTPUTS)):
        far = changed(far, "ruined", at)
    return isinstance(zeros, dict) and not zeros["rejected"] and _passes(exam, far)


def _rejected(exam, number) -> bool:
    facts = _tried(exam)[number]
    return isinstance(facts, dict) and facts["rejected"]


def _agreed(exam) -> str:
    """What a test that rejects right backwards takes for right, as far as it is a belief that is known; else ""."""
    beliefs = {
        number: subject.mutant.mistake
        for number, subject in enumerate(subjects(), start=1)
    }
    for number, belief in beliefs.items():
        facts = _tried(exam)[number]
        if (
            isinstance(facts, dict)
            and not facts["rejected"]
            and VISIBLE < max(facts["off"].values()) < NOT_A_NUMBER
        ):
            return belief
    known = next(
        (each.mistake for each in BELIEFS if _passes(exam, text(each.edits["numpy"]))),
        "",
    )
    if known:
        return known
    means = (
        changed(text(), "averaged loss", rows=rows, sums=sums) for rows, sums in MEANS
    )
    return MEAN if any(_passes(exam, each) for each in means) else ""


def _alarm(how, facts, belief, others) -> str:
    said = f' It said: "{facts["words"]}".' if facts["words"] else ""
    narrow = (
        " Your inputs are narrower than float64." if "narrow" in facts["shared"] else ""
    )
    if others:
        advice = "It was handed another mean or rstd than layernorm_forward returns for that x."
    elif belief:
        advice = "What you compare with has a mistake of its own."
    else:
        near = (
            f"What you compare with is off by {facts['gap'] or 0:.0e}, and you allow less: that may be rounding, the "
            "truncation of a difference, or a slight mistake of its own, such as an entry that is not put back, or "
            "eps left out."
        )
        either = "Either what you compare with is wrong, as where an entry of x is not put back, or you allow less " \
                 "than rounding and the truncation of a difference, which can be computed."  # fmt: skip
        advice = (near if _by_rounding(facts) else either) + _of_the_rows(
            *facts["last"]
        )
    return (
        f"It rejects a right backward ({how}), whose largest error is {max(facts['off'].values()):.0e} of the size "
        f"of its terms.{said}{narrow} {advice}"
    )


def _of_the_rows(away, rstd) -> str:
    """What is special about the rows of the last call for a difference, if anything is."""
    roundoff = unit_roundoff("float64")
    if away >= FAR:
        return f" In the last call x is up to {away:.0e} times the spread of its row, so rounding x alone moves it " \
               f"by {roundoff * away:.0e} of that."  # fmt: skip
    if rstd >= NARROW_ROW:
        return f" If it takes central differences: where rstd is {rstd:.0f}, as in your last call, a good step is " \
               f"near {roundoff ** (1 / 3) / rstd:.0e}; a longer one truncates, a shorter one rounds more."  # fmt: skip
    return ""


def _by_rounding(facts) -> bool:
    """Whether a right backward was rejected for a difference that no wrong formula makes."""
    small = NARROW if "narrow" in facts["shared"] else SMALL
    return facts["gap"] is not None and facts["gap"] <= small * facts["size"]


def rejects(number):
    """The stage of one wrong backward, counted from 1."""
    return partial(_rejects, number=number)


def _rejects(exam, number) -> str:
    subject, facts = subjects()[number - 1], _facts(exam, number)
    if facts["rejected"]:
        if _first_of_its_output(subject) and _passes(exam, subject.changed("negated")):
            if PAIRS in facts["shared"] and subject.output == "dx":
                raise Wrong(f"Number {number} is rejected, but a backward passes whose dx is many times the right one, "
                            "or has the other sign.", diagnoses=(_named(PAIRS, subject.equation),))  # fmt: skip
            if _of_laws(exam, subject):
                words = "dx passes with its sign turned, and without the weight in it, twice as long."
                raise Wrong(f"Number {number} is rejected, but a {words}",
                            diagnoses=(_named("properties-alone", subject.equation),))  # fmt: skip
            longer = _any_length(exam, subject)
            words = (
                "is many times the right one" if longer else "is right up to its sign"
            )
            raise Wrong(
                f"Number {number} is rejected, but a backward passes whose {subject.output} {words}.",
                diagnoses=(
                    _named(
                        _of_length(exam, subject) if longer else "sign-passes",
                        subject.equation,
                    ),
                ),
            )
        every = range(1, len(subjects()) + 1)
        if (
            subject.mutant is ZERO_ROW
            and all(_rejected(exam, which) for which in (NOTHING, *every))
            and _passes(exam, text(FLAT_ZERO.edits["numpy"]))
        ):
            raise Wrong(
                f"Number {number} is rejected, but a backward passes whose dx is 0 on constant rows.",
                diagnoses=(_named("zeros-not-compared", subject.equation),),
            )
        return f'Rejected. Its author believed: "{subject.mutant.mistake}".'
    reason, side, key = _why(exam, subject, facts)
    short = f"Number {number} passes your test. Its {subject.output} is wrong; {side}."
    long = f'It passes your test. Its author believed: "{subject.mutant.mistake}". {reason} See {subject.equation}.'
    drowned = key == "loose-tolerance" and _drowned(facts, subject.output)
    found = "one tolerance for all rows, in which small rows drown" if drowned else ""
    if key == "another-answer":
        found = "what the first backward gives, kept for all others"
    raise Wrong(
        short if exam.feedback == "hint" else long,
        diagnoses=(_named(key, subject.equation, found),),
    )


def _first_of_its_output(subject) -> bool:
    return subject == next(one for one in subjects() if one.output == subject.output)


def _why(exam, subject, facts):
    """(a sentence, whose fault it is, a key): the inputs hide the mistake, or the comparison lets it pass."""
    off, output, shared = facts["off"][subject.output], subject.output, facts["shared"]
    hiding = [name for name in subject.hidden_by if name in shared]
    if PAIRS in shared and output == "dx":
        hiding.append(PAIRS)
    if off <= VISIBLE:
        hiding += [name for name in BLIND if name in shared]
    if hiding and off < HARDLY:
        key = hiding[0]
        why = find(key, "hw6").title
        return (
            f"{why}: there its {output} is right, or nearly, so no comparison can see it.",
            INPUTS,
            key,
        )
    if off <= VISIBLE:
        words = f"On your inputs its {output} is right, up to {off:.0e}: they cannot show this mistake."
        return words, INPUTS, "blind-inputs"
    share = (
        "not a number"
        if off >= NOT_A_NUMBER
        else f"off by {off:.2g} of the size of its terms"
    )
    beside = facts["beside"][output]
    drowned = (
        f": beside the largest {output}, of another row, it is {beside:.0e}"
        if _drowned(facts, output)
        else ""
    )
    words = f"On your inputs its {output} is {share}, and your comparison lets that pass{drowned}."
    return words, COMPARED, _let_pass(exam, subject, off)


def _drowned(facts, output) -> bool:
    """Whether an error that is large in its own row is small beside the other rows."""
    return (
        NOT_A_NUMBER > facts["off"][output] >= HARDLY
        and facts["beside"][output] <= DROWNED
    )


def _let_pass(exam, subject, off) -> str:
    """The blind spot of a comparison that saw the mistake and said nothing.

    A tolerance is blamed for a small error only if no large one passes, which shows what is wrong with the comparison.
    """
    key = _blind_spot(exam, subject, off)
    if key != "loose-tolerance" or off >= HARDLY:
        return key
    for number, other in enumerate(subjects(), start=1):
        facts = _tried(exam)[number]
        if (
            isinstance(facts, dict)
            and not facts["rejected"]
            and facts["off"][other.output] >= HARDLY
        ):
            return _why(exam, other, facts)[2]
    return key


def _blind_spot(exam, subject, off) -> str:
    def passes(how, **options):
        return _passes(exam, subject.changed(how, **options))

    if _silent(exam):  # whose words stand at the first stage
        return SILENT
    if all(
        _passes(exam, subject.sometimes(first)) for first in (True, False)
    ) and not passes("ruined"):
        return "several-must-fail"
    if off >= NOT_A_NUMBER:
        if not _passes(exam, changed(subject.source(), "finite")):
            return "nan-passes"
        if not passes("ruined"):  # elsewhere
            return "one-entry-passes" if passes("one right") else "size-passes"
    if not _rights_pass(exam):
        return WRONG_REFERENCE
    if passes("ruined"):
        if _asked(exam, subject.changed("ruined"), before=text()).get("rejected"):
            return "another-answer"
        return (
            f"{subject.output}-not-compared"
            if _passes(exam, _ruined_alike(exam))
            else "size-passes"
        )
    if _of_laws(exam, subject):
        return "properties-alone"
    if passes("one right"):
        return "one-entry-passes"
    if not _passes(exam, subject.enlarged(1 / off)):
        return (
            _of_length(exam, subject)
            if off >= HARDLY and _any_length(exam, subject)
            else "loose-tolerance"
        )
    if not _passes(exam, subject.enlarged(-1 / off)):
        return (
            _of_length(exam, subject)
            if _any_length(exam, subject)
            else "one-sign-passes"
        )
    if _passes(exam, subject.moved(within_rows=True)) and not _passes(
        exam, subject.moved(within_rows=True, sign="+")
    ):
        rows = subject.output == "dx" and not _passes(
            exam, subject.moved(within_rows=False)
        )
        return "rows-summed" if rows else "totals-compared"
    if off >= HARDLY and not _drowned(
        _tried(exam)[1 + subjects().index(subject)], subject.output
    ):
        if _any_length(exam, subject):
            return _of_length(exam, subject)
    if not _passes(exam, subject.enlarged(HUGE / off)):
        return "loose-tolerance"
    return "properties-alone" if _of_properties(exam, subject) else "size-passes"


def _any_length(exam, subject) -> bool:
    """Whether a thousand times the right gradient passes, alone or with the others: twice is a matter of tolerance."""
    return any(
        _passes(exam, subject.changed(how)) for how in ("multiplied", "all multiplied")
    )


def _of_length(exam, subject) -> str:
    """What a test that passes any length of a gradient looks at: its direction, or what other gradients have, too."""
    return "properties-alone" if _of_properties(exam, subject) else "multiple-passes"


def _of_properties(exam, subject) -> bool:
    """Whether a long dx without the weight passes.

    It has another direction, and what LayerNorm's dx has: its rows know nothing of each other, it is linear in dy, and
    along 1 and, up to eps, along x_hat it adds up to 0.
    """
    return subject.output == "dx" and _passes(
        exam, changed(text(UNWEIGHTED), "multiplied", OUTPUTS.index("dx"))
    )


def _of_laws(exam, subject) -> bool:
    """Whether dx passes with its sign turned, and twice a dx without the weight: only its laws are looked at."""
    at = OUTPUTS.index("dx")
    unweighted = changed(text(UNWEIGHTED), "doubled", at)
    laws = (
        subject.output == "dx"
        and _passes(exam, subject.changed("negated"))
        and _passes(exam, unweighted)
    )
    return laws and not _passes(exam, subject.moved(within_rows=True))


def _ruined_alike(exam) -> str:
    """A backward of which all outputs are ruined that may be ruined one at a time: a test may count what is wrong."""
    source = text()
    for at in range(len(OUTPUTS)):
        if _passes(exam, changed(text(), "ruined", at)):
            source = changed(source, "ruined", at)
    return source


def _named(key, equation="ln-forward", found="", right=""):
    own = find(key, "hw6").equation
    return named(
        key,
        found,
        right,
        homework="hw6",
        equation="" if key in NO_EQUATION else own or equation,
    )
