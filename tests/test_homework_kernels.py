"""Homework 4: what only a look at memory, masks and names shows, and what is read from a kernel's text."""

import re
from pathlib import Path

import pytest
from homework_solutions import changed, checked, flat, named
from wrong_solutions import wrong

import normgrad.homework as hw
from normgrad.homework.hw4 import gpu
from normgrad.homework.reading.kernels import OF_NO_TENSOR, _without_bindings
from normgrad.homework.solutions import solution
from normgrad.mistakes.edits import edited

pytest.importorskip("triton")

FORWARD, BACKWARD = "addnorm-forward", "addnorm-backward"
MEAN, EPS = "mean = tl.sum(p, axis=1) / N", "tl.sum(q * q, axis=1) / N + EPS)"
HEAD, JIT = "import torch\n", "@triton.jit\ndef forward_kernel"
SAME = "p.handle.data[:] = np.sqrt(np.square(p.handle.data)) * np.sign(p.handle.data)"


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    return checked(task, changed("hw4", *edits))


# {what the kernel takes for the row stride: (task, edit)}
STRIDES = {
    "x for residual": (
        FORWARD,
        ("x.stride(0), residual.stride(0),", "x.stride(0), x.stride(0),"),
    ),
    "columns": (
        FORWARD,
        ("x.stride(0), residual.stride(0),", "x.stride(1), residual.stride(1),"),
    ),
    "dy for dresidual_out": (
        BACKWARD,
        ("dy.stride(0), stream.stride(0),", "dy.stride(0), dy.stride(0),"),
    ),
    "dy for residual_out": (BACKWARD, ("p.stride(0), N=n", "dy.stride(0), N=n")),
}


@pytest.mark.parametrize("name", STRIDES)
def test_each_matrix_has_a_row_stride_of_its_own(name):
    task, edit = STRIDES[name]
    report = report_of(task, edit)
    assert not report.passed
    assert "stride-ignored" in named(report) or name == "columns", report


STRIDED = (Path(__file__).parent / "homework_strided.py").read_text(encoding="utf8")
# (what is written instead, the mistake that the launcher's reading names)
ROWS_IN_TURN = (
    (("stream + rstd *", "rstd * (stream +"), ("x_hat * c1)", "x_hat * c1))"), "dresidual-scaled"),
    (("dw += dy * x_hat", "dw += wdy * x_hat"), "weight-in-dw"),
)  # fmt: skip


@pytest.mark.parametrize("case", ROWS_IN_TURN, ids=lambda case: case[-1])
def test_a_launcher_is_read_with_its_kernel(tmp_path, case):
    """A kernel whose rows are known from its launcher alone, which hands in the strides."""
    *edits, key = case
    text = solution("hw4") + "\n\n" + edited(STRIDED, edits, "homework_strided.py")
    (tmp_path / "solution.py").write_text(text, encoding="utf8")
    report = hw.grade_file(tmp_path / "solution.py", "hw4")[1]
    assert key in named(report), (named(report), report)


def test_a_backward_of_rows_in_turn_is_right(tmp_path):
    (tmp_path / "solution.py").write_text(solution("hw4") + "\n\n" + STRIDED)
    assert hw.grade_file(tmp_path / "solution.py", "hw4")[1].passed


PYTHON = {
    "torch": [(MEAN, MEAN + " + torch.zeros(1).sin().item()")],
    "NumPy": [(MEAN, f"{MEAN}\n    {SAME}"), (HEAD, HEAD + "import numpy as np\n")],
    "a function": [
        (EPS, EPS + " * one()"),
        (JIT, "def one():\n    return 1.0\n\n\n" + JIT),
    ],
    "an import": [(MEAN, f"import math\n    {MEAN} + math.sin(0.0)")],
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_in_a_kernel_earns_nothing(name):
    report = report_of(FORWARD, *PYTHON[name])
    assert report.points == 0 and "No GPU runs Python" in str(report), report


GPU = {
    "a loop over a list": ([(MEAN, MEAN + "\n    for _ in [0]:\n        mean = mean + 0")], "Look at"),
    "a global number": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"), (HEAD, HEAD + "ZERO = 0.0\n")], "ZERO"),
    "an annotated constant": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"),
                               (JIT, "ZERO: tl.constexpr = 0.0\n\n\n" + JIT)], ""),
    "a helper under jit": ([("1 / tl.sqrt(" + EPS, "inverse(" + EPS), (JIT, "@triton.jit\ndef inverse(v):\n"
                            "    return 1 / tl.sqrt(v)\n\n\n" + JIT)], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", GPU)
def test_what_would_not_compile_for_a_gpu_is_said(name):
    edits, words = GPU[name]
    report = report_of(FORWARD, *edits)
    assert report["y"].passed, report
    message = report["kernels"].message
    if not words:
        assert report.passed, report
    else:
        assert "a GPU would not: forward_kernel does not compile" in message
        assert words in message


FORGED = {
    "a module": {"modules": {"tl": "triton.language", "os": "os"}},
    "a statement": {
        "modules": {"tl": "triton.language\nimport os; os.mkdir('forged')\nimport os"}
    },
    "a name": {"names": {"builtins": ("triton.language.core", "builtins")}},
    "a name of a module": {
        "sources": [
            ["def kernel(x):", "    tl.core.builtins.exec('import os; os.mkdir(1)')"]
        ]
    },
    "a name of another module": {"names": {"run": ("os", "system")}},
    "a default": {"sources": [["def kernel(x=tl.mkdir(1)):", "    pass"]]},
    "getattr": {"sources": [["def kernel(x):", "    getattr(tl, 'core')"]]},
}
TRUE = {
    "modules": {"tl": "triton.language"},
    "names": {},
    "globals": {},
    "sources": [["def kernel(x):", "    tl.store(x, 0)"]],
    "kernel": "kernel",
}


@pytest.mark.parametrize("name", FORGED)
def test_what_describes_a_kernel_is_not_run(tmp_path, name):
    """It comes from the student's process, who may say anything."""
    number = list(FORGED).index(name)
    assert callable(gpu._module(TRUE, str(tmp_path), f"right_{number}").kernel)
    with pytest.raises((ValueError, ImportError)):
        gpu._module(TRUE | FORGED[name], str(tmp_path), f"forged_{number}")


READ = {
    "rstd is a constant": "the term rstd * x_hat * mean(x_hat * wdy) is missing",
    "dresidual_out is forgotten": "the term dresidual_out is missing",
    "the weight in db": "db = weight * sum(dy, axis=0)",
    "divided by the block": "what is stored depends on BLOCK",
    "eps outside the root": "eps stands outside of the root",
    "one mean for a tile": "Which numbers of a row come from another one?",
}


@pytest.mark.parametrize("name", READ)
def test_a_kernel_is_read_where_its_numbers_are_wrong(name):
    mistake = next(entry for entry in wrong("hw4") if entry.name == name)
    report = checked(mistake.task, mistake.source("hw4"), feedback="solution")
    assert READ[name] in flat(report), report


ROWS = "rows_of(x), rows_of(residual), accumulator(x)"
COPIES = (ROWS, "x.contiguous(), residual.contiguous(), accumulator(x)")
# What the kernel calls its pointers to x and to residual.
POINTERS = [("X", "R"), ("R", "X"), ("Rstd", "Mean"), ("x_ptr", "residual_ptr")]


def with_pointers(x, residual):
    """The reference with y = ... - bias, and other names of two pointers."""
    text = changed("hw4", COPIES, ("+ bias[None, :]", "- bias[None, :]"))
    text = re.sub(r"\bx_ptr\b", "first_ptr", text)
    text = re.sub(r"\bresidual_ptr\b", residual, text)
    return re.sub(r"\bfirst_ptr\b", x, text)


@pytest.mark.parametrize("names", POINTERS)
def test_a_copy_of_an_input_is_read_whatever_its_name(names):
    words = flat(checked(FORWARD, with_pointers(*names), feedback="solution"))
    assert "yours: y = -bias + weight * x_hat" in words, words


def test_what_is_no_input_is_said_without_the_provers_words():
    """A kernel reads 2 * x as "x_ptr": its name does not make it x, and no equation is shown of it."""
    double = (ROWS, ROWS.replace("(x),", "(2 * x),", 1))
    words = flat(report_of(FORWARD, double))
    assert "bind" not in words and "yours:" not in words, words
    why = "an address that is no pointer: bind pointers as T, Out or InOut; arguments that are not bound: R"
    assert _without_bindings(why) == OF_NO_TENSOR
    assert (
        _without_bindings("a flag is not bound; bind MASKED") == "a flag is not bound"
    )


def test_a_load_outside_of_a_tensor_has_nothing_to_do_with_rounding():
    text = changed("hw4").replace("mask = (rows < M)", "mask = (rows <= M)")
    message = checked(BACKWARD, text)["sizes and strides"].message
    assert "reads outside of" in message and "rounded" not in message, message


ONE_PASS = (
    "tl.sum(q * q, axis=1) / N + EPS",
    "tl.sum(p * p, axis=1) / N - mean * mean + EPS",
)
PADDED = ("q = tl.where(mask, p - mean[:, None], 0)", "q = p - mean[:, None]")
RACE = ("mine = tl.program_id(0) * N + cols", "mine = cols")
GRAVE = {
    "one pass": (FORWARD, ONE_PASS, 9),
    "no mask": (FORWARD, PADDED, 7),
    "a race": (BACKWARD, RACE, 4),
}


@pytest.mark.parametrize("name", GRAVE)
def test_points_follow_what_a_mistake_costs_in_practice(name):
    task, edit, most = GRAVE[name]
    report = report_of(task, edit)
    assert report.points <= most, report
