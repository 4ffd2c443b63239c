"""The stage that looks at how an autograd Function is built: what it keeps, and where its backward reads."""

from __future__ import annotations

from ..diagnosis.named import named
from ..oracles.norms import USUAL
from ..words import Wrong, compare

BYTES = 8  # of one float64


def structure(exam) -> str:
    """What is saved and how many bytes, no globals read, and two layers do not disturb each other."""
    problems = [*_globals(exam), *_saved(exam), *_two_layers(exam)]
    if problems:
        keys = dict.fromkeys(key for key, _ in problems)
        raise Wrong(" ".join(words for _, words in problems), diagnoses=[named(key) for key in keys])
    return "It keeps what a backward needs, reads no globals, and two layers stay apart."


def _globals(exam):
    names = exam.student.look(exam.task.entry)["globals"]
    if names:
        yield (
            "global-read",
            f"It reads the module's variable{'s' * (len(names) > 1)} {', '.join(names)}: another layer would put its "
            "own values there. Hand over what backward needs with ctx.save_for_backward.",
        )


def _saved(exam):
    """(key, complaint) about bytes; a backward needs x, the weight and two statistics of each row."""
    trial = exam.trials(("random",))[0]
    request = exam.task.oracle.request(trial, op="saved")
    kept = exam.ask(request).facts.get("saved", [])
    storages = {each["storage"]: each for each in kept}
    rows, columns = trial.case.x.shape
    allowed = BYTES * (rows * columns + columns + 2 * rows)
    needed = sum(each["bytes"] for each in storages.values())
    if needed > allowed:
        listed = ", ".join(f"{each['name'] or 'an intermediate'} {tuple(each['shape'])}" for each in storages.values())
        yield (
            "saves-too-much",
            f"It keeps {needed} bytes from forward to backward, where x, weight and two numbers a row are {allowed}: "
            f"{listed}.",
        )
    outside = [each["how"] for each in kept if each["how"] != "save_for_backward"]
    if outside:
        words = f"It keeps tensors as {', '.join(outside)}; autograd only looks after what ctx.save_for_backward holds."
        yield "kept-on-ctx", words


def _two_layers(exam):
    """(key, complaint) where a second layer, run in between, changes what a first one's backward gives."""
    trial = exam.trials(USUAL)[0]
    other = exam.rng().standard_normal(trial.case.weight.shape)
    alone = exam.answers(trial)
    outcome = exam.ask(exam.task.oracle.request(trial, op="two_layers", extra={"other": other}))
    known = exam.task.oracle.expected(trial)
    for name, numbers in exam.named(outcome, trial, "float64").items():
        if compare(name, numbers, alone[name], 2 * known[name][1])[2]:
            words = f"{name} of one layer is another when a second layer runs between its forward and its backward."
            yield "global-read", words
            return
