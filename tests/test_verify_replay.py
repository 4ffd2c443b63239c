"""Refutations in numbers: what NumPy and Triton's interpreter give for the inputs is what was read.

What arrays, autograd Functions and launchers give is compared where their tables are read.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from replays import point_of, replays
from sympy import Gt, Rational
from verify_kernels import HEAD, KERNELS
from verify_triton import edited_base

from normgrad import LAYER_NORM, RMS_NORM, numpy_ref
from normgrad.verify import COLUMNS, WHOLE, N, eps, norm, verify
from normgrad.verify.binding import resolved
from normgrad.verify.definitions import at
from normgrad.verify.verdict import NOT_READ, PROVED, REFUTED, WRONG, beside_run

FORWARD = """
import numpy as np

def f(x, weight, eps):
    rstd = 1 / np.sqrt((x * x).sum(-1, keepdims=True) + eps)
    return x * rstd * weight
"""
BACKWARD = """
import numpy as np

def f(dy, x, weight, mean, rstd):
    x_hat = (x - mean[:, None]) * rstd[:, None]
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    dx = rstd[:, None] * (wdy - x_hat * c1)
    dw = (dy * x_hat).sum(0) + 1
    db = dy.sum(0) * 2
    return dx, dw, db
"""


def interpreted(text, binding, grid, definitions, output):
    """What a kernel stores in Triton's interpreter for the inputs of a replay, by argument."""
    from test_verify_interpreter import Run, launch

    binding, definitions = resolved(binding, definitions)
    grid = grid if isinstance(grid, str) else grid[0]
    sizes = output.replay().sizes
    run = Run(binding, grid, definitions, sizes["M"], sizes["N"])
    run.point = point_of(output)
    run.blocks |= {WHOLE: sizes.get("B", 32), COLUMNS: sizes.get("B", 4)}
    launch(text, run)
    stored = {}
    for name, (_, view) in run.memory.items():
        stored[name] = view.numpy()
        if "p" in binding[name].letters:
            stored[name] = stored[name].sum(0)
    return stored


def test_a_kernel_stores_what_was_read():
    pytest.importorskip("triton")
    from verify_triton import programs

    count = 0
    for kind, _, _, program, _ in programs():
        if kind != "refuted":
            continue
        verdict = verify(*program, kernel="kernel")
        for name, output, replay in replays(verdict):
            stored = interpreted(*program, output)[name]
            needed = np.array(replay.stored)
            np.testing.assert_allclose(stored.reshape(needed.shape), needed, 1e-5)
            count += 1
    assert count >= 16


def test_a_replay_is_four_lines_for_a_report():
    verdict = verify(FORWARD, norm(), ["y"])
    first, inputs, stored, defined = str(verdict.replay()).split("\n")
    at = str(list(verdict.replay().at))
    assert first.startswith(f"y{at} is ") and ", defined " in first
    assert inputs.startswith("inputs: M=2, N=3, eps=") and ", x=[[" in inputs
    assert stored.startswith("stored: y = [[") and defined.startswith("defined: y = [[")
    assert f"  fails at {inputs.removeprefix('inputs: ')}: {first}\n" in str(verdict)
    assert "run: y = [[" in str(verify(FORWARD, norm(), ["y"], run=True).replay())
    data = verdict.data()["replay"]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["sizes"] == {"M": 2, "N": 3} and data["inputs"]["x"][0][0] == 2
    assert replace(verdict.replay(), stored=math.nan).data()["stored"] is None


@pytest.mark.parametrize("side", ["y", "dx", "dw", "db"])
def test_what_is_defined_is_numpy_ref(side):
    verdict = verify(BACKWARD, norm(center=True, bias=True))
    spec, output = LAYER_NORM, None
    if side == "y":
        verdict, spec = verify(FORWARD, norm(), ["y"]), RMS_NORM
    output = verdict.outputs[side]
    replay = output.replay()
    given = {name: np.array(value) for name, value in replay.inputs.items()}
    x = given.get("x", np.ones_like(given.get("dy")))
    weight = given.get("weight", np.ones(x.shape[1]))
    spec = spec.replace(eps=float(given.get("eps", 1)))
    saved = numpy_ref.forward(x, weight, None, spec=spec)
    needed = saved.y
    if side != "y":
        saved = numpy_ref.forward(x, weight, np.ones_like(weight), spec=spec)
        grads = numpy_ref.backward(given["dy"], saved)
        needed = {"dx": grads.dx, "dw": grads.dweight, "db": grads.dbias}[side]
    np.testing.assert_allclose(replay.defined, needed, 1e-9)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "every P-th tile of rows",
            "row_mask[:, None] & col_mask[None, :]",
            "col_mask[None, :]",
            "its mask needs rows < M; at M = 3, BR = 2 it reads row 3",
        ),
        (
            "the last tile with a mask",
            "range(0, end, B)",
            "range(0, N, B)",
            "its mask needs columns < N; at N = 3, B = 2 it reads column 3",
        ),
        (
            "a guard of the rows",
            "if row < m:",
            "if row < n:",
            "rows < N, not where rows < M; at M = 3, N = 2 it leaves out row 2",
        ),
        (
            "a guard of the rows",
            "if row < m:",
            "if row <= m:",
            "rows < M + 1, not where rows < M; at M = 3, K = 2 it reads row 3",
        ),
    ],
)
def test_what_is_wrong_in_itself_names_sizes(name, old, new, words):
    text, *launch = KERNELS[name]
    assert old in text
    verdict = verify(HEAD + text.replace(old, new), *launch, kernel="kernel")
    assert verdict.kind == WRONG and words in str(verdict)


@pytest.mark.parametrize(
    ("name", "old", "new", "sizes"),
    [
        ("a program for each row", "/ n_cols", "/ B", {"B": 4}),
        (
            "the last tile with a mask",
            "mask=cols < N, other=0.0).to(tl.float32)\n        total",
            "mask=cols < N, other=1.0).to(tl.float32)\n        total",
            {"B": 2, "column_tiles": 2},
        ),
    ],
)
def test_what_depends_on_a_block_fails_at_one(name, old, new, sizes):
    text, *launch = KERNELS[name]
    assert old in text
    text = HEAD + text.replace(old, new)
    verdict = verify(text, *launch, kernel="kernel")
    assert verdict.kind == WRONG and "which the launcher chooses" in verdict.why
    assert verdict.replay().sizes == {"M": 2, "N": 3} | sizes
    assert f"  {verdict.replay().line}\n" in str(verdict)
    output = verdict.outputs[name_of_worst(verdict)]
    stored = interpreted(text, *launch, output)[name_of_worst(verdict)]
    needed = np.array(verdict.replay().stored)
    np.testing.assert_allclose(stored.reshape(needed.shape), needed, 1e-5)


def name_of_worst(verdict):
    """The first output that has numbers, all of which NumPy gives, too."""
    return replays(verdict)[0][0]


@pytest.mark.parametrize(
    ("row_of_zeros", "kind"),
    [("a * r * g + 1", REFUTED), ("2 * a * r * g", NOT_READ), ("a * r * g", PROVED)],
)
def test_a_refutation_by_a_row_of_zeros_is_one_in_numbers(row_of_zeros, kind):
    condition = "tl.sum(a * a) == 0"
    edit = "a * r * g, mask", f"tl.where({condition}, {row_of_zeros}, 2.0), mask"
    verdict = verify(*edited_base("forward", [edit], {}), zero=True)
    assert verdict.kind == kind
    for _, _, replay in replays(verdict):
        assert not np.any(replay.inputs["x"])
        assert np.all(np.array(replay.stored) == 1) and not np.any(replay.defined)


def test_what_is_not_refuted_has_no_numbers():
    right = FORWARD.replace(".sum(", ".mean(")
    assert verify(right, norm(), ["y"]).replay() is None
    unread = FORWARD.replace("x * rstd", "x @ rstd")
    assert verify(unread, norm(), ["y"]).replay() is None


def test_eps_is_the_number_that_the_text_has():
    text = FORWARD.replace(", eps)", ")").replace("+ eps", "+ EPS")
    text = text.replace("def f", "EPS = 1e-5\n\n\ndef f")
    replay = verify(text, norm(), ["y"], run=True).replay()
    assert replay.inputs["eps"] == 1e-5 and replay.is_as_read


def test_numbers_are_of_inputs_for_which_the_program_has_a_value():
    text = FORWARD.replace("(x * x)", "(x * x * x)")
    verdict = verify(text, norm(), ["y"])
    ((_, _, replay),) = replays(verdict)
    assert np.isfinite(replay.stored).all()


def test_numbers_meet_what_the_program_needs_and_are_of_its_sizes():
    (output,) = verify(FORWARD, norm(), ["y"]).outputs.values()
    assert np.any(np.array(output.replay().inputs["x"]) < 0)
    above = replace(output.case, relations=[Gt(at.x, 0)]).replay
    assert np.all(np.array(above.inputs["x"]) > 0)
    assert replace(output.case, relations=[Gt(-at.x - 100, 0)]).replay is None
    wide = replace(output.case, fits=lambda sizes: sizes[N] == 5).replay
    assert wide.sizes == {"M": 2, "N": 5} and len(wide.stored[0]) == 5
    assert replace(output.case, fits=lambda sizes: sizes[N] > 5).replay is None
    known = replace(output.case, given={eps: Rational(1, 4)}).replay
    assert known.inputs["eps"] == 0.25


def test_a_run_that_gives_what_is_defined_stops_an_accusation():
    verdict = verify(FORWARD, norm(), ["y"])
    (output,) = verdict.outputs.values()
    replay = output.replay()
    right = output.case.replay.defined
    output.case.__dict__.pop("replay")

    def run(point):
        yield "", {"y": np.array(right)}

    stopped = beside_run(verdict, run)
    assert stopped.kind == "not read" and "please report" in stopped.why
    assert stopped.replay() is None and replay.line in stopped.why


def test_a_run_that_gives_neither_is_shown():
    verdict = verify(FORWARD, norm(), ["y"])

    def run(point):
        yield "", {"y": np.full((2, 3), 1e3)}

    assert beside_run(verdict, run) is verdict
    assert "run: y = [[1000, " in str(verdict.replay())
    assert str(verdict.replay()).endswith(", which is not what was read")


def test_a_run_that_fails_is_shown():
    verdict = verify(FORWARD, norm(), ["y"])

    def run(point):
        raise ArithmeticError("no")
        yield

    assert beside_run(verdict, run) is verdict
    assert str(verdict.replay()).endswith("run: ArithmeticError: no")
