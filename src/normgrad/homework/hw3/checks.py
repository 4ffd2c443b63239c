"""LayerNorm as an autograd Function: its right answers, the gradients of its gradients, and how it is built."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import numpy_ref
from ...checks.finite_difference import complex_step
from ...tolerance import ELEMENTWISE, SAFETY, unit_roundoff
from ..checks.norms import DEGENERATE, USUAL, NormOracle, Trial
from ..checks.values import GRADIENTS
from ..messages import INPUTS, WRONG_BEFORE, Wrong, a, compare, largest
from ..named import named
from ..sandbox.student import Given, Request


@dataclass(frozen=True)
class FunctionOracle(NormOracle):
    """LayerNorm as a torch.autograd.Function: its output, its gradients, and theirs."""

    op: str = "gradients"
    kind: str = "torch"
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    cotangents: tuple[str, ...] = ("dy",)

    def request(
        self,
        trial: Trial,
        dtype="float64",
        layout="contiguous",
        op="gradients",
        only=(),
        **options,
    ) -> Request:
        """The call that a trial leads to; the cotangents come after the Function's own arguments.

        Args:  only: the arguments that require a gradient, where not all of them do
        """
        trial = trial.rounded(dtype)
        arguments = [replace(g, grad=g.kind != "scalar" and (not only or g.name in only))
                 for g in self.given(trial, dtype, layout)]  # fmt: skip
        options |= {
            "inputs": self.arguments,
            "differentiable": [g.name for g in arguments if g.grad],
            "cotangents": self.cotangents,
            "outputs": self.results[: len(self.cotangents)],
        }
        for name in self.cotangents:
            sent, grad = getattr(trial.case, name), name == "dy" and "second" in options
            arguments.append(Given(name, sent, dtype, self.kind, grad, layout))
        for name, value in options.pop("extra", {}).items():
            arguments.append(Given(name, value, dtype, self.kind))
        return Request(op, tuple(arguments), options)


def directional_cotangents(rng, trial: Trial) -> dict:
    """Random cotangents ddx, ddw, ddb of dx, dw, db."""
    names = {"ddx": trial.case.x, "ddw": trial.case.weight, "ddb": trial.case.bias}
    return {name: rng.standard_normal(like.shape) for name, like in names.items()}


# What second gradients are taken of, and what they are the gradients of.
TWICE, FIRST = ("dy", "x", "weight"), ("dx", "dw", "db")


def second_gradients(trial, cotangents) -> dict:
    """{input: (value, bound)} of the gradients of <ddx, dx> + <ddw, dw> + <ddb, db>, by the complex step."""
    names, gradients = (*TWICE, "bias"), {}

    def paired(name, array):
        parts = {name: getattr(trial.case, name).astype(complex) for name in names}
        dy, *inputs = (parts | {name: array}).values()
        grads = numpy_ref.backward(dy, numpy_ref.forward(*inputs, spec=trial.spec))
        pairs = zip(
            cotangents.values(), (grads.dx, grads.dweight, grads.dbias), strict=True
        )
        return sum((cotangent * grad).sum() for cotangent, grad in pairs)

    for name, bound in second_bounds(trial, **cotangents).items():
        at = getattr(trial.case, name)
        value = np.empty(at.shape)
        for index in np.ndindex(at.shape):
            unit = np.zeros(at.shape)
            unit[index] = 1
            value[index] = complex_step(
                lambda t, unit=unit, name=name, at=at: paired(name, at + t * unit), 0.0
            )
        gradients[name] = (value, bound)
    return gradients


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
    weight, count = (
        weight + abs(trial.spec.weight_offset),
        trial.spec.count(x_hat.shape[-1]),
    )
    wdy, direction = dy * weight + _mean(dy * weight), ddx + _mean(ddx)

    def reduced(v):
        return v.sum(-1, keepdims=True) / count

    def projected(v):
        return rstd * (v + _mean(v) + x_hat * reduced(x_hat * v))

    c1, e1 = reduced(x_hat * wdy), reduced(x_hat * direction)
    bent = c1 * direction + e1 * wdy + x_hat * (reduced(wdy * direction) + 3 * c1 * e1)
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


CONSTANT, NO_SLOPE = "constant-to-autograd", "no-slope"
COPIED = (
    "Where the rows lie one behind the other it is right: forward makes a copy of other inputs and saves that, and "
    "torch sees no path from them to what is made of it. Save the inputs as they came."
)
# Rows without spread, where a root of the variance alone has no slope; a row of one entry is such a row.
FLAT = (DEGENERATE[0], DEGENERATE[-1])


def gradgradcheck(exam) -> str:
    """What the gradients pass on when they are differentiated: against the complex step of the reference."""
    rng, usual, errors = exam.rng("directions"), exam.trials(), []
    trials = [(trial, "contiguous") for trial in (*usual, *exam.trials(FLAT))]
    for trial, layout in [*trials, (usual[0], "strided")]:
        trial = without_rows(trial, 3)
        cotangents = directional_cotangents(rng, trial)
        _first_are_right(exam, trial, layout)
        facts, passed_on = _passed_on(exam, trial, cotangents, layout)
        if facts["graph"] != len(cotangents) or facts["unused"]:
            raise Wrong(
                "The gradients cannot be differentiated: they are not connected to x, weight and dy. In backward use "
                "tensors from ctx.saved_tensors and operations that autograd follows, without .detach(), no_grad or "
                "once_differentiable.",
                key=CONSTANT,
            )
        for _, numbers, error, allowed, words in passed_on:
            errors.append((error, allowed))
            if not words:
                continue
            start, key = f"{INPUTS}{trial.name}. Differentiated again,", CONSTANT
            if trial.case.name in FLAT and not np.isfinite(numbers).all():
                raise Wrong(f"{start} {words}", key=NO_SLOPE)
            if layout == "strided":
                strided = f"{INPUTS}{trial.name}, every second column of a wider array."
                words = f"{strided} Differentiated again, {words} {COPIED}"
                raise Wrong(words, key=CONSTANT)
            paths = _lost(exam, trial, cotangents)
            said = f"torch sees {paths}: something on it is a constant to torch. {_cut(exam, trial)}"
            if facts["by hand"]:
                start, key = f"{start} by a Function that you wrote,", "second-by-hand"
                said = f"That Function has {paths}: what does its backward take for a constant?"
            raise Wrong(f"{start} {words} {said}", key=key)
    return f"Second gradients agree: {largest(errors)}"


def _first_are_right(exam, trial, layout) -> None:
    """Raises Wrong where a first gradient is wrong."""
    expected = exam.oracle.expected(trial)
    for where in {"contiguous", layout}:
        got = exam.answers(trial, layout=where)
        if any(compare(name, got[name], *expected[name])[2] for name in FIRST):
            raise Wrong(WRONG_BEFORE)


def _passed_on(exam, trial, cotangents, layout="contiguous"):
    """(facts, rows) of what the gradients send to each input: its name, the numbers, and what compare says of them."""
    twice = {"cotangents": list(cotangents), "inputs": list(TWICE)}
    request = exam.oracle.request(trial, layout=layout, second=twice, extra=cotangents)
    outcome, rows = exam.ask(request), []
    sent = [value.numbers for value in outcome.values]
    for numbers, (name, (value, bound)) in zip(
        sent, second_gradients(trial, cotangents).items(), strict=False
    ):
        if numbers.shape != value.shape:
            numbers = np.zeros(value.shape)
        which = f"the second gradient for {name}, at "
        rows.append((name, numbers, *compare(which, numbers, value, bound)))
    unused = not any(numbers.size for numbers in sent)
    return outcome.facts | {"unused": unused}, rows


def _lost(exam, trial, cotangents) -> str:
    """Which paths from the inputs to the gradients torch does not see, or not as they are."""
    paths = []
    for gradient, cotangent in zip(FIRST, cotangents, strict=True):
        alone = {name: u * (name == cotangent) for name, u in cotangents.items()}
        for name, numbers, *_, words in _passed_on(exam, trial, alone)[1]:
            how = "only a part of the" if numbers.any() else "no"
            if words:
                paths.append(f"{how} path from {name} to {gradient}")
    return ", ".join(paths)


def _cut(exam, trial) -> str:
    """What may have cut a path off."""
    kept = exam.ask(exam.oracle.request(trial, op="saved")).facts["saved"]
    shapes = [str(tuple(tensor["shape"])) for tensor in kept if not tensor["name"]]
    cut = "Look in backward for .detach(), .data, .item(), no_grad and new tensors."
    if not shapes:
        return cut
    words = f"What forward made and saved (an intermediate {', '.join(shapes)})"
    return f"{words} is a constant: compute it from the inputs again. {cut}"


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
        kept = exam.ask(exam.oracle.request(trial, dtype, op="saved")).facts.get(
            "saved", []
        )
        storages = {tensor["storage"]: tensor for tensor in kept}
        allowed = number * rows * columns + parameter * columns + 2 * statistic * rows
        needed = sum(tensor["bytes"] for tensor in storages.values())
        if needed > allowed:
            listed = ", ".join(
                f"{tensor['name'] or 'an intermediate'} {tuple(tensor['shape'])} in {tensor['bytes']} bytes"
                for tensor in storages.values()
            )
            yield (
                "saves-too-much",
                f"For x in {dtype} it keeps {needed} bytes from forward to backward, where x, weight and two numbers a "
                f"row are {allowed}: {listed}." + WIDENED * (dtype != "float64"),
            )
            break
    outside = dict.fromkeys(
        tensor["how"] for tensor in kept if tensor["how"] != "save_for_backward"
    )
    if outside:
        words = f"It keeps tensors as {', '.join(outside)}; autograd only looks after what ctx.save_for_backward holds."
        yield "kept-on-ctx", words


def _two_layers(exam):
    """(key, complaint) where a second layer, run in between, changes what a first one's backward gives."""
    trial = exam.trials(USUAL)[0]
    weight = exam.rng().standard_normal(trial.case.weight.shape)
    alone = exam.answers(trial)
    outcome = exam.ask(
        exam.oracle.request(trial, op="two_layers", extra={"other": weight})
    )
    expected, again = exam.oracle.expected(trial), exam.answers(trial)
    for name, numbers in exam.named(outcome, trial, "float64").items():
        if compare(name, again[name], alone[name], 2 * expected[name][1])[2]:
            return  # another answer without a second layer, too
        if compare(name, numbers, alone[name], 2 * expected[name][1])[2]:
            words = f"{name} of one layer is another when a second layer runs between its forward and its backward."
            yield "global-read", words
            return


def _each_alone(exam):
    """(key, complaint) where an input gets another gradient, or none, when it is the only one that asks for one."""
    trial = exam.trials(USUAL)[0]
    together, expected = exam.answers(trial), exam.oracle.expected(trial)
    inputs = [name for name in exam.oracle.arguments if name in GRADIENTS]
    for name in inputs:
        gradient, outcome = (
            GRADIENTS[name],
            exam.ask(exam.oracle.request(trial, only=(name,))),
        )
        got = outcome.values[-1]
        if np.array_equal(got.numbers, together[gradient], equal_nan=True):
            continue
        if got.numbers.shape != together[gradient].shape:
            said = f"{gradient} is {a(got.facts.get('type'))}"
        elif not compare(
            gradient, got.numbers, together[gradient], 2 * expected[gradient][1]
        )[2]:
            continue
        else:
            said = f"{gradient} is another one"
        needless = " and ".join(argument for argument in inputs if argument != name)
        words = f"Where {needless} need no gradient, {said}. ctx.needs_input_grad has a flag for each input."
        yield "needs-another", words
        return
