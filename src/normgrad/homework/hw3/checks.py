"""LayerNorm as an autograd Function: its right answers, the gradients of its gradients, and how it is built."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ... import numpy_ref
from ...checks.finite_difference import complex_step
from ...checks.tolerance import ELEMENTWISE, SAFETY, unit_roundoff
from ..checks.norms import DEGENERATE, USUAL, NormOracle, Trial
from ..checks.values import GRADIENTS
from ..messages import INPUTS, WRONG_BEFORE, Wrong, a, compare, small
from ..named import named
from ..sandbox.student import Given, Request


@dataclass(frozen=True)
class FunctionOracle(NormOracle):
    """LayerNorm as a torch.autograd.Function: its output, its gradients, and theirs."""

    op: str = "gradients"
    kind: str = "torch"
    dtypes: tuple[str, ...] = ("float32", "bfloat16")

    def request(
        self,
        trial: Trial,
        dtype="float64",
        layout="contiguous",
        op="gradients",
        only=(),
        **options,
    ) -> Request:
        """The call that a trial leads to; the cotangent dy comes after the Function's own arguments.

        Args:  only: the arguments that require a gradient, where not all of them do
        """
        trial = trial.rounded(dtype)
        given = [replace(g, grad=g.kind != "scalar" and (not only or g.name in only))
                 for g in self.given(trial, dtype, layout)]  # fmt: skip
        given.append(
            Given(
                "dy",
                trial.case.dy,
                dtype,
                self.kind,
                grad="second" in options,
                layout=layout,
            )
        )
        extra = [
            Given(name, value, dtype, self.kind)
            for name, value in options.pop("extra", {}).items()
        ]
        differentiable = [g.name for g in given if g.grad and g.name != "dy"]
        options |= {"inputs": self.arguments, "differentiable": differentiable}
        return Request(op, (*given, *extra), options)


def directional_cotangents(rng, trial: Trial) -> dict:
    """Random cotangents ddx, ddw, ddb of dx, dw, db."""
    names = {"ddx": trial.case.x, "ddw": trial.case.weight, "ddb": trial.case.bias}
    return {name: rng.standard_normal(like.shape) for name, like in names.items()}


# What second gradients are taken of.
TWICE = ("dy", "x", "weight")


def _pairing(trial, cotangents):
    """<ddx, dx> + <ddw, dw> + <ddb, db> as a function of one of TWICE, complex numbers allowed."""

    def with_(name, array):
        parts = {
            each: getattr(trial.case, each).astype(complex) for each in (*TWICE, "bias")
        } | {name: array}
        saved = numpy_ref.forward(
            parts["x"], parts["weight"], parts["bias"], spec=trial.spec
        )
        grads = numpy_ref.backward(parts["dy"], saved)
        pairs = zip(
            cotangents.values(), (grads.dx, grads.dweight, grads.dbias), strict=True
        )
        return sum((cotangent * grad).sum() for cotangent, grad in pairs)

    return with_


def second_gradients(trial, cotangents) -> dict:
    """{input: (value, bound)}: the gradients of that sum, entry by entry by the complex step."""
    pairing, found = _pairing(trial, cotangents), {}
    for name, bound in second_bounds(trial, **cotangents).items():
        at = getattr(trial.case, name)
        value = np.empty(at.shape)
        for index in np.ndindex(at.shape):
            unit = np.zeros(at.shape)
            unit[index] = 1
            value[index] = complex_step(
                lambda t, unit=unit, name=name, at=at: pairing(name, at + t * unit), 0.0
            )
        found[name] = (value, bound)
    return found


def _mean(t):
    return t.mean(-1, keepdims=True)


def second_bounds(trial, ddx, ddw, ddb) -> dict:
    """Bounds of the second gradients in float64: their closed formula with every minus a plus, times the rounding.

    {eq}`twice-dx`, {eq}`twice-dy`, {eq}`twice-dw` and {eq}`twice-parameters-grad`, each term by its absolute value;
    x_hat by the size of the row over its deviation, whose rounding it carries.
    """
    case, saved = trial.case, trial.forward()
    rstd = saved.rstd[:, None]
    x_hat = (
        np.abs(case.x).max(-1, keepdims=True, initial=0)
        + np.abs(case.x - saved.mean[:, None])
    ) * rstd
    ddx, ddw, ddb, dy, weight = (
        np.abs(t) for t in (ddx, ddw, ddb, case.dy, case.weight)
    )
    wdy, direction = dy * weight + _mean(dy * weight), ddx + _mean(ddx)

    def projected(v):
        return rstd * (v + _mean(v) + x_hat * _mean(x_hat * v))

    c1, e1 = _mean(x_hat * wdy), _mean(x_hat * direction)
    bent = c1 * direction + e1 * wdy + x_hat * (_mean(wdy * direction) + 3 * c1 * e1)
    sizes = {
        "dy": weight * projected(ddx) + ddw * x_hat + ddb,
        "x": projected(ddw * dy) + rstd**2 * bent,
        "weight": (dy * projected(ddx)).sum(0),
    }
    terms = unit_roundoff("float64") * (sum(case.x.shape) + ELEMENTWISE)
    return {name: SAFETY * ELEMENTWISE * terms * size for name, size in sizes.items()}


def without_rows(trial, rows):
    """The trial with only its first rows: the complex step takes one call an entry."""
    case = trial.case
    return replace(trial, case=replace(case, x=case.x[:rows], dy=case.dy[:rows]))


CONSTANT, NO_SLOPE = (named("constant-to-autograd"),), (named("no-slope"),)
BY_HAND = (named("second-by-hand"),)
COPIED = (
    "Where the rows lie one behind the other it is right: forward makes a copy of other inputs and saves that, and "
    "torch sees no path from them to what is made of it. Save the inputs as they came."
)
# Rows without spread, where a root of the variance alone has no slope; a row of one entry is such a row.
FLAT = (DEGENERATE[0], DEGENERATE[-1])


def gradgradcheck(exam) -> str:
    """What the gradients pass on when they are differentiated: against the complex step of the reference."""
    rng, worst = exam.rng("directions"), (0.0, 1.0)
    trials = [(trial, "contiguous") for trial in (*exam.trials(), *exam.trials(FLAT))]
    for trial, layout in [*trials, (exam.trials()[0], "strided")]:
        trial = without_rows(trial, 3)
        cotangents = directional_cotangents(rng, trial)
        got, first = exam.answers(trial), exam.task.oracle.expected(trial)
        there = got if layout == "contiguous" else exam.answers(trial, layout=layout)
        if any(
            compare(name, each[name], *first[name])[2]
            for each in (got, there)
            for name in ("dx", "dw", "db")
        ):
            raise Wrong(WRONG_BEFORE)
        twice = {"cotangents": list(cotangents), "inputs": list(TWICE)}
        request = exam.task.oracle.request(
            trial, layout=layout, second=twice, extra=cotangents
        )
        outcome = exam.ask(request)
        shapes = [value.numbers.shape for value in outcome.values]
        if outcome.facts.get("graph") != len(cotangents) or not any(
            map(math.prod, shapes)
        ):
            raise Wrong(
                "The gradients cannot be differentiated: they are not connected to x, weight and dy. In backward use "
                "tensors from ctx.saved_tensors and operations that autograd follows, without .detach(), no_grad or "
                "once_differentiable.",
                diagnoses=CONSTANT,
            )
        known = second_gradients(trial, cotangents)
        for (name, (value, bound)), got in zip(
            known.items(), outcome.values, strict=True
        ):
            if got.numbers.shape != value.shape:
                got = replace(got, numbers=np.zeros(value.shape))
            error, allowed, words = compare(
                f"the second gradient for {name}, at ", got.numbers, value, bound
            )
            if words and trial.case.name in FLAT and not np.isfinite(got.numbers).all():
                raise Wrong(
                    f"{INPUTS}{trial.name}. Differentiated again, {words}",
                    diagnoses=NO_SLOPE,
                )
            if words and layout == "strided":
                strided = f"{INPUTS}{trial.name}, every second column of a wider array."
                raise Wrong(
                    f"{strided} Differentiated again, {words} {COPIED}",
                    diagnoses=CONSTANT,
                )
            if words:
                paths, why = _lost(exam, trial, cotangents), _cut(exam, trial)
                said = (
                    f"torch sees {paths}: something on it is a constant to torch. {why}"
                )
                by_hand, key = "", CONSTANT
                if outcome.facts["by hand"]:
                    by_hand, key = " by a Function that you wrote,", BY_HAND
                    said = f"That Function has {paths}: what does its backward take for a constant?"
                raise Wrong(
                    f"{INPUTS}{trial.name}. Differentiated again,{by_hand} {words} {said}",
                    diagnoses=key,
                )
            if np.isfinite(allowed) and allowed:
                worst = max(worst, (error, allowed), key=lambda pair: pair[0] / pair[1])
    return f"Second gradients agree: largest error {small(worst[0])}, allowed {small(worst[1])}."


def _lost(exam, trial, cotangents) -> str:
    """Which paths from the inputs to the gradients torch does not see, or not as they are."""
    paths = []
    for at, gradient in enumerate(("dx", "dw", "db")):
        alone = {name: u * (k == at) for k, (name, u) in enumerate(cotangents.items())}
        twice = {"cotangents": list(alone), "inputs": list(TWICE)}
        outcome = exam.ask(exam.task.oracle.request(trial, second=twice, extra=alone))
        for (name, (right, bound)), got in zip(
            second_gradients(trial, alone).items(), outcome.values, strict=True
        ):
            numbers = (
                got.numbers
                if got.numbers.shape == right.shape
                else np.zeros(right.shape)
            )
            if compare("", numbers, right, bound)[2]:
                paths.append(
                    f"{'only a part of the' if numbers.any() else 'no'} path from {name} to {gradient}"
                )
    return ", ".join(paths)


def _cut(exam, trial) -> str:
    """What may have cut a path off."""
    kept = exam.ask(exam.task.oracle.request(trial, op="saved")).facts["saved"]
    made = [
        f"an intermediate {tuple(each['shape'])}" for each in kept if not each["name"]
    ]
    cut = "Look in backward for .detach(), .data, .item(), no_grad and new tensors."
    if made:
        cut = f"What forward made and saved ({', '.join(made)}) is a constant: compute it from the inputs again. {cut}"
    return cut


def structure(exam) -> str:
    """What is saved and how many bytes, no globals read, and two layers do not disturb each other."""
    problems = [*_globals(exam), *_saved(exam), *_two_layers(exam), *_each_alone(exam)]
    if problems:
        keys = dict.fromkeys(key for key, _ in problems)
        raise Wrong(
            " ".join(words for _, words in problems),
            diagnoses=[named(key) for key in keys],
        )
    return "It keeps what a backward needs, reads no globals, two layers stay apart, and so do the gradients."


def _globals(exam):
    names = exam.student.look(exam.task.entry)["globals"]
    if names:
        yield (
            "global-read",
            f"It reads the module's variable{'s' * (len(names) > 1)} {', '.join(names)}: another layer would put its "
            "own values there. Hand over what backward needs with ctx.save_for_backward.",
        )


# The bytes of a number of x, of one of the weight, which may be kept in float32, and of a statistic.
BYTES = {"float64": (8, 8, 8), "bfloat16": (2, 4, 4)}


WIDENED = " Keep x and the weight as they came, and widen them in backward."


def _saved(exam):
    """(key, complaint) about bytes; a backward needs x, the weight and two statistics of each row."""
    trial = exam.trials(("random",))[0]
    rows, columns = trial.case.x.shape
    for dtype, (number, parameter, statistic) in BYTES.items():
        kept = exam.ask(exam.task.oracle.request(trial, dtype, op="saved")).facts.get(
            "saved", []
        )
        storages = {each["storage"]: each for each in kept}
        allowed = number * rows * columns + parameter * columns + 2 * statistic * rows
        needed = sum(each["bytes"] for each in storages.values())
        if needed > allowed:
            listed = ", ".join(
                f"{each['name'] or 'an intermediate'} {tuple(each['shape'])} in {each['bytes']} bytes"
                for each in storages.values()
            )
            yield (
                "saves-too-much",
                f"For x in {dtype} it keeps {needed} bytes from forward to backward, where x, weight and two numbers a "
                f"row are {allowed}: {listed}." + WIDENED * (dtype != "float64"),
            )
            break
    outside = dict.fromkeys(
        each["how"] for each in kept if each["how"] != "save_for_backward"
    )
    if outside:
        words = f"It keeps tensors as {', '.join(outside)}; autograd only looks after what ctx.save_for_backward holds."
        yield "kept-on-ctx", words


def _two_layers(exam):
    """(key, complaint) where a second layer, run in between, changes what a first one's backward gives."""
    trial = exam.trials(USUAL)[0]
    other = exam.rng().standard_normal(trial.case.weight.shape)
    alone = exam.answers(trial)
    outcome = exam.ask(
        exam.task.oracle.request(trial, op="two_layers", extra={"other": other})
    )
    known, again = exam.task.oracle.expected(trial), exam.answers(trial)
    for name, numbers in exam.named(outcome, trial, "float64").items():
        if compare(name, again[name], alone[name], 2 * known[name][1])[2]:
            return  # another answer without a second layer, too
        if compare(name, numbers, alone[name], 2 * known[name][1])[2]:
            words = f"{name} of one layer is another when a second layer runs between its forward and its backward."
            yield "global-read", words
            return


def _each_alone(exam):
    """(key, complaint) where an input gets another gradient, or none, when it is the only one that asks for one."""
    trial = exam.trials(USUAL)[0]
    together, known = exam.answers(trial), exam.task.oracle.expected(trial)
    inputs = [name for name in exam.task.oracle.arguments if name in GRADIENTS]
    for name in inputs:
        gradient, outcome = (
            GRADIENTS[name],
            exam.ask(exam.task.oracle.request(trial, only=(name,))),
        )
        got = outcome.values[-1]
        if got.numbers.shape != together[gradient].shape:
            said = f"{gradient} is {a(got.facts.get('type'))}"
        elif not compare(
            gradient, got.numbers, together[gradient], 2 * known[gradient][1]
        )[2]:
            continue
        else:
            said = f"{gradient} is another one"
        others = " and ".join(each for each in inputs if each != name)
        words = f"Where {others} need no gradient, {said}. ctx.needs_input_grad has a flag for each input."
        yield "needs-another", words
        return
