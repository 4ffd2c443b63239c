"""A proof about a function object is confronted with a run: what the reading is made to believe is not proved."""

import functools
import inspect

import numpy as np
import pytest
import verify_functions as right
from homework_solutions import of_source
from programs import LOOPS
from sympy import Rational
from tables import blocks, edits, lines

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
CHEATS = {kind: text.split("\n") for kind, _, text in blocks("verify_cheats.txt")}


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


@pytest.mark.parametrize("row", CHEATS["numpy"])
def test_a_function_that_is_not_what_was_read_is_not_proved(row, monkeypatch):
    cheat, _, words = lines(row).partition(" -- ")
    if "sleep" in cheat:
        monkeypatch.setattr(confront, "SECONDS", 0.5)
    text = HEAD + inspect.getsource(right.vectorized)
    text = edited(text, [(RETURN, f"    {cheat}\n{RETURN}")], "program")
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


# Of an autograd Function.


@pytest.mark.parametrize("row", CHEATS["torch"])
def test_an_autograd_function_that_is_not_what_was_read_is_not_proved(
    row, monkeypatch, torch
):
    text, _, words = row.partition(" -- ")
    program = of_source(edited(right.RMS_FUNCTION, edits(text), "program"))["RMS"]
    believed(monkeypatch, of_source(right.RMS_FUNCTION)["RMS"])
    for definitions in (RMS, None):
        refuted(verify_function(program, definitions), words)


def test_an_autograd_function_whose_apply_is_another_is_not_proved(torch):
    text = f"{right.RMS_FUNCTION}\n    @classmethod\n    def apply(cls, *arguments):\n"
    text += "        return 2 * super().apply(*arguments)\n"
    assert verify_function(of_source(text)["RMS"], RMS).kind == NOT_READ


# Of loops.

BINDING = {
    "program": PROGRAM,
    "programs": PROGRAM_COUNT,
    "x": T("x"),
    "weight": T("weight"),
    "y": Out("y"),
    "eps": eps,
}


@pytest.mark.parametrize("row", CHEATS["loops"])
def test_loops_that_are_not_what_was_read_are_not_proved(row, monkeypatch):
    def admit(self, value):
        return read(self, kernel if value is program else value)

    text = f"import numpy as np\n{LOOPS.text}"
    kernel = of_source(text)["kernel"]
    changed, _, words = row.partition(" -- ")
    program = of_source(edited(text, edits(changed), "program"))["kernel"]
    read = loops.Compiled.__call__
    monkeypatch.setattr(loops.Compiled, "__call__", admit)
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


def test_digits_that_a_run_may_lose_excuse_no_more_than_these(monkeypatch):
    def program(dy):
        return (dy + 1e8 - 1e8).sum(0) * 1.001

    def read(dy):
        return (dy + 1e8 - 1e8).sum(0)

    believed(monkeypatch, read)
    assert verify_function(read, LAYER, outputs=("db",)).kind == PROVED
    refuted(verify_function(program, LAYER, outputs=("db",)), "db[0]: got ")


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
