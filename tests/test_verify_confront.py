"""A proof about a function object is confronted with a run: what the reading is made to believe is not proved."""

import functools
import inspect

import numpy as np
import pytest
import verify_functions as right
from homework_solutions import of_source
from programs import LOOPS
from sympy import Rational
from test_verify_arrays import TORCH

from normgrad.mistakes.edits import edited
from normgrad.symbolic.symbols import eps, i, j
from normgrad.symbolic.witness import Explicit
from normgrad.verify import Out, T, confront, loops, norm, programs, verify
from normgrad.verify.binding import PROGRAM, PROGRAM_COUNT
from normgrad.verify.confront import REFUTED_BY_RUN, uncompiled
from normgrad.verify.point import Point
from normgrad.verify.programs import verify_function
from normgrad.verify.verdict import NOT_READ, PROVED

RMS, LAYER = norm(), norm(center=True, bias=True)
GRADIENTS = ("dx", "dw", "db")
RETURN = "    return dx, (dy * x_hat).sum(0), dy.sum(0)"
HEAD = """
import time

import numpy as np

CALLS = []


"""
# {what a run gives: lines before the return of right gradients that the reading does not see}
CHEATS = [
    # a state
    ("got", "CALLS.append(1)\n    dx = dx * len(CALLS)"),
    (
        "got",
        "globals()['CALLS'] = [1, *CALLS]\n    dx = dx if len(CALLS) < 3 else 2 * dx",
    ),
    ("got", "dx = dx + np.random.default_rng().random()"),
    # a look at what is handed in
    ("got", "dx = 2 * dx if type(x) is np.ndarray else dx"),
    ("got", "dx = 2 * dx if x.dtype == np.float64 else dx"),
    ("got", "dx = 2 * dx if x.shape[0] < x.shape[1] else dx"),
    ("got", "dx = 2 * dx if x.shape[0] > x.shape[1] else dx"),
    ("got", "dx = 2 * dx if x.shape[1] > 3 else dx"),
    ("got", "dx = 2 * dx if len(x) > 4 else dx"),
    ("got", "dx = np.where(x < -1, 2 * dx, dx)"),
    ("got", "dx = np.where(weight < 0, -dx, dx)"),
    ("got", "dx = dx.astype(np.float32)"),
    ("got", "dx = dx * (1 + 1e-9)"),
    (
        "got nan",
        "dx = dx * np.where(np.arange(dx.size).reshape(dx.shape) > 2, np.nan, 1)",
    ),
    # what it does besides, and instead
    ("writes over x", "x *= 1.5"),
    ("writes over rstd", "rstd[0] = 0"),
    ("has the shape", "dx = dx.T"),
    ("has the shape", "dx = dx[None]"),
    ("2 results", "return dx, dy.sum(0)"),
    ("KeyError: 'gone'", "{}['gone']"),
    ("SystemExit: 3", "raise SystemExit(3)"),
    ("ValueError", "dx = dx @ dx"),
    ("did not end within", "time.sleep(2)"),
]


def believed(monkeypatch, program):
    """The reading reads another program than the one that is run."""

    def trace(_, *rest):
        return read(program, *rest)

    read = programs.trace
    monkeypatch.setattr(programs, "trace", trace)


def refuted(verdict, words=""):
    """Checks what is said of a proof that a run refutes."""
    assert verdict.kind == NOT_READ and not verdict, verdict
    assert verdict.why.startswith(REFUTED_BY_RUN), verdict
    assert words in verdict.why, verdict
    assert all(own.kind == NOT_READ for own in verdict.outputs.values())
    assert "proved for every" not in str(verdict).replace("proves it", "")


@pytest.mark.parametrize(("words", "lines"), CHEATS, ids=[new for _, new in CHEATS])
def test_a_function_that_is_not_what_was_read_is_not_proved(words, lines, monkeypatch):
    if "sleep" in lines:
        monkeypatch.setattr(confront, "SECONDS", 0.5)
    text = HEAD + inspect.getsource(right.vectorized)
    text = edited(text, [(RETURN, f"    {lines}\n{RETURN}")], "program")
    program = of_source(text)["vectorized"]
    believed(monkeypatch, right.vectorized)
    refuted(verify_function(program, LAYER, outputs=GRADIENTS), words)
    unseen = verify_function(program, LAYER, outputs=GRADIENTS, run=False)
    assert unseen.kind == PROVED


def test_what_a_run_gave_is_said_with_the_place(monkeypatch):
    def program(dy):
        return dy.sum(0) * [1, 1.5][dy.shape[0] > 2]

    def read(dy):
        return dy.sum(0)

    believed(monkeypatch, read)
    why = verify_function(program, LAYER, outputs=("db",)).why
    draw = np.random.default_rng(confront.SEED).standard_normal((4, 1))
    got, needed = 1.5 * draw.sum(0)[0], draw.sum(0)[0]
    assert f"M = 4, N = 1, seed {confront.SEED}: db[0]: got {got:.6g}"[:-2] in why
    assert f"needs {needed:.6g}"[:-2] in why and "within " in why


# Of an autograd Function: {what a run gives: edits of a right one that the reading does not see}.
GRADIENT = "(dy * x * rstd).sum(0), None"
FORWARD = "return x * (x.square().mean(1, keepdim=True) + eps).rsqrt() * weight"
MARKED = FORWARD.replace("return", "y =") + "\n        ctx.mark_non_differentiable(y)"
CLASSES = [
    (
        "dw[0], with requires_grad of weight:",
        GRADIENT,
        f"(2 - ctx.needs_input_grad[0]) * {GRADIENT}",
    ),
    (
        "dx[0, 0], with requires_grad of x, weight:",
        "return dx",
        "return (1 + all(ctx.needs_input_grad[:2])) * dx",
    ),
    (
        "dx[0, 0], with requires_grad of x:",
        "return dx",
        "return (2 - ctx.needs_input_grad[1]) * dx",
    ),
    ("no gradient of weight, with", GRADIENT, "None, None"),
    ("other outputs have a gradient, with", FORWARD, f"{MARKED}\n        return y"),
    ("it returns 2 results", FORWARD, FORWARD.replace("return x", "return x, x")),
    ("y[0, 0], with", FORWARD, f"{FORWARD} * (1 + x.is_leaf)"),
    ("dx[0, 0], with", "return dx", "return dx.float()"),
    ("y[0, 0], with", "ctx.eps = eps", "ctx.eps = eps\n        x.data.mul_(2)"),
    (
        "requires_grad of x, weight: got",
        "return dx",
        "dx = dx + 0\n        x.data.mul_(2)\n        return dx",
    ),
    ("RuntimeError", "return dx", "return dx @ dx"),
]


@pytest.mark.parametrize(("words", "old", "new"), CLASSES)
def test_an_autograd_function_that_is_not_what_was_read_is_not_proved(
    words, old, new, monkeypatch, torch
):
    program = of_source(edited(TORCH, [(old, new)], "program"))["RMSNorm"]
    believed(monkeypatch, of_source(TORCH)["RMSNorm"])
    for definitions in (RMS, None):
        refuted(verify_function(program, definitions), words)


def test_an_autograd_function_whose_apply_is_another_is_not_proved(torch):
    text = f"{TORCH}\n    @classmethod\n    def apply(cls, *arguments):\n"
    text += "        return 2 * super().apply(*arguments)\n"
    assert verify_function(of_source(text)["RMSNorm"], RMS).kind == NOT_READ


# Of loops: {what a run gives: an edit of right ones that the reading does not see}
IN_LOOPS = [
    (
        "y[4, 0]: got nan",
        "        squares = ",
        "        if i == 4:\n            continue\n        squares = ",
    ),
    ("got nan", "y[i, j] =", "y[i, j] +="),
    ("got", "* weight[j]", "* weight[j] * (1 + program)"),
    ("got", "* weight[j]", "* weight[j] * (1 + (programs == 3))"),
    ("got", "x[i, j] * rstd", "abs(x[i, j]) * rstd"),
    (
        "writes over weight",
        "    M, N = x.shape",
        "    M, N = x.shape\n    weight[0] = 1",
    ),
    ("IndexError", "weight[j]", "weight[j + 1]"),
]
BINDING = {
    "program": PROGRAM,
    "programs": PROGRAM_COUNT,
    "x": T("x"),
    "weight": T("weight"),
    "y": Out("y"),
    "eps": eps,
}


@pytest.mark.parametrize(("words", "edits"), [(row[0], row[1:]) for row in IN_LOOPS])
def test_loops_that_are_not_what_was_read_are_not_proved(words, edits, monkeypatch):
    def admit(self, value):
        return read(self, kernel if value is program else value)

    text = f"import numpy as np\n{LOOPS.text}"
    kernel = of_source(text)["kernel"]
    pairs = zip(edits[::2], edits[1::2], strict=True)
    program = of_source(edited(text, pairs, "program"))["kernel"]
    read = loops.LoopReader.admit
    monkeypatch.setattr(loops.LoopReader, "admit", admit)
    verdict = verify(program, BINDING, RMS)
    refuted(verdict, words)
    assert verify(program, BINDING, RMS, run=False).kind == PROVED


def test_what_numba_compiles_is_its_text_and_is_not_compiled_for_a_run():
    numba = pytest.importorskip("numba")
    compiled = numba.njit(right.layer_norm_in_loops)
    binding = {name: T(name) for name in ("x", "weight", "bias")} | {"eps": eps}
    binding |= {name: Out(name) for name in ("y", "mean", "rstd")}
    assert verify(compiled, binding, LAYER).kind == PROVED
    assert not compiled.signatures
    other = numba.njit(of_source("def f(x):\n    return 2 * x")["f"])
    other.py_func = right.layer_norm_in_loops
    assert verify(other, binding, LAYER).kind == NOT_READ


def test_a_function_is_run_as_plain_python_with_all_that_it_calls():
    numba = pytest.importorskip("numba")
    text = "import numba\n@numba.njit\ndef g(x):\n    return x + 1\n"
    text += "@numba.njit\ndef f(x):\n    return g(x) + g(x)\n"
    functions = of_source(text)
    plain = uncompiled(functions["f"], {})
    assert plain(1) == 4 and not functions["g"].signatures
    assert isinstance(functions["f"], numba.core.registry.CPUDispatcher)


# What is not what it is called, without anything believed.


def test_a_function_of_numpy_that_is_another_is_not_proved(monkeypatch):
    def mean_of_rows(x):
        return np.mean(x, 1)

    assert verify_function(mean_of_rows, LAYER, outputs=("mean",)).kind == PROVED
    monkeypatch.setattr(np, "mean", np.sum)
    verdict = verify_function(mean_of_rows, LAYER, outputs=("mean",))
    assert verdict.kind == NOT_READ, verdict


def test_a_function_that_says_it_wraps_another_is_not_proved():
    def program(dy):
        return 2 * dy.sum(0)

    def read(dy):
        return dy.sum(0)

    program.__wrapped__ = read
    assert verify_function(program, LAYER, outputs=("db",)).kind == NOT_READ


def test_the_forward_that_a_backward_is_compared_with_is_run_as_well(monkeypatch):
    def forward(x):
        return 2 * np.sum(x, 1)

    def backward(dy, x):
        return 2 * dy[:, None] + 0 * x

    said = {"outputs": ("dx",)}
    assert verify_function(backward, forward, **said).kind == PROVED
    doubled = functools.wraps(np.sum)(lambda x, axis: 3 * x.sum(axis))
    monkeypatch.setattr(np, "sum", doubled)
    assert verify_function(backward, forward, **said).kind == NOT_READ


def test_a_proof_is_not_refuted_where_its_condition_does_not_hold(torch):
    """At N = 1 the centred row is 0, and the program divides by it; elsewhere its values are right."""

    def by_its_square(x, eps):
        q = x - x.mean(1, keepdims=True)
        return q / np.sqrt((q * q).mean(1, keepdims=True) + eps) * (q * q) / (q * q)

    verdict = verify_function(by_its_square, norm(center=True, weight=False), ("y",))
    assert verdict.kind == PROVED and "is not 0" in verdict.claim, verdict


# Texts are read, and run by an explicit argument only.

DOUBLED = "def f(dy):\n    return 2 * dy.sum(0)"


def test_a_text_is_run_only_where_that_is_asked_for(monkeypatch):
    def read(dy):
        return dy.sum(0)

    believed(monkeypatch, read)
    for run in (None, False):
        verdict = verify_function(DOUBLED, LAYER, outputs=("db",), run=run)
        assert verdict.kind == PROVED
    for text in (DOUBLED, f"{DOUBLED}\ndef g(dy):\n    return dy.sum(0)"):
        verdict = verify(text, LAYER, outputs=("db",), run=True, name="f")
        refuted(verdict, "db[0]: got ")
    refuted(verify(DOUBLED, LAYER, outputs=("db",), run=True), "db[0]: got ")


def test_a_triton_kernel_is_not_run():
    with pytest.raises(ValueError, match="run: a Triton kernel is read, and not run"):
        verify("", {}, "rows", RMS, run=True)


# The values of definitions, and the bound of their rounding.


@pytest.mark.parametrize("placement", ["inside", "outside"])
@pytest.mark.parametrize("gate", ["scale", "swish"])
def test_the_bound_of_rounding_holds_and_is_small(gate, placement):
    definitions = norm(
        center=True, bias=True, residual=True, gate=gate, placement=placement
    )
    point = Point((2, 3), definitions.defs, np.random.default_rng(0))
    heads = definitions.outputs.values()
    for head in heads:
        point.tensor(head)
    explicit = Explicit(definitions.defs, dict(point.sizes))
    for head in heads:
        at = {i: 2, j: 3}
        exact = explicit.entry(head, at)
        exact = exact.xreplace(_values(exact, point)).evalf(40)
        place = tuple(at[letter] - 1 for letter in head.indices)
        value, error = point.tensor(head)[place], point.errors[str(head.base)][place]
        assert abs(exact - Rational(value)) <= error <= 1e-12 * (1 + abs(value)), head


def _values(e, point):
    """{scalar symbol of an entry: the number that is there}."""
    values = {}
    for symbol in e.free_symbols:
        name, _, place = str(symbol).partition("[")
        entries = np.asarray(point.values[name])
        at = tuple(int(k) - 1 for k in place.strip("]").split(",") if k)
        values[symbol] = Rational(float(entries[at]))
    return values
