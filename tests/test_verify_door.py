"""What comes to verify from outside: texts, bindings, arguments and the command; nothing of it is run."""

import builtins
import time
from pathlib import Path

import numpy as np
import pytest
from sympy import sqrt  # noqa: F401 - verify_refusals.txt names it
from verify_kernels import HEAD

from normgrad.homework.reading.letters import expression
from normgrad.verify import (
    WHOLE,
    Filled,
    InOut,
    M,
    N,
    Norm,
    Out,
    T,
    norm,
    verify,
)
from normgrad.verify.__main__ import main, norm_of, parsed
from normgrad.verify.binding import Launch, resolved
from normgrad.verify.definitions import NUMBERS, no_tensor
from normgrad.verify.programs import input_of
from normgrad.verify.text import LONGEST, module_of, value_of

RMS, LAYER = norm(), norm(center=True, bias=True)
NAMES = RMS.tensors | NUMBERS
MEAN = NAMES["mean"]
TABLES = Path(__file__).parent


def lines(name):
    """The lines of a table."""
    text = (TABLES / name).read_text(encoding="utf8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


# texts

LONG = (
    "(" * 300,
    "-" * 900 + "1",
    "1" + "+1" * 499,
    "rstd" + " " * LONGEST + "+ 1",
    "9" * 900 + "**64",
    "rstd\0",
    "\0",
    "",
    " ",
    "\n",
    "# nothing",
)
DOORS = (
    lambda text: value_of("rms", text, NAMES),
    parsed,
    lambda text: norm_of(f"weight_offset={text}"),
    lambda text: resolved({"R": T(text, "i"), "Y": Out("y")}, RMS),
    lambda text: input_of("rms", text, RMS),
)
WORDS = ("not allowed", "needs one", "is no ", "number", "deeply", "characters")


def is_identifier_or_empty(text):
    """Whether a text is the name of a tensor, or one that a plain text may be."""
    return text.strip().isidentifier()


@pytest.mark.parametrize("text", [*lines("verify_texts.txt"), *LONG])
def test_no_text_is_run(text, tmp_path):
    file = tmp_path / "made"
    text = text.replace("FILE", str(file))
    doors = DOORS
    if is_identifier_or_empty(text):
        doors = DOORS[:3]
    for door in doors:
        start = time.perf_counter()
        with pytest.raises((TypeError, ValueError)) as refused:
            door(text)
        assert time.perf_counter() - start < 2
        assert len(str(refused.value)) < 700
    assert not file.exists()


def test_what_is_not_allowed_is_named_and_what_is():
    with pytest.raises(ValueError, match=r"^rms: got '1/rsdt': rsdt is not allowed"):
        value_of("rms", "1/rsdt", NAMES)
    with pytest.raises(ValueError, match=r"allowed are numbers, .* rstd, .*eps, M, N"):
        value_of("rms", "1/rsdt", NAMES)
    with pytest.raises(ValueError, match=r"^--bind X: got 'T\(\"x\", k\)': k is not a"):
        parsed('T("x", k)', "--bind X")


ROWS = {
    "1/rstd": "1/rstd[i]",
    "1/rstd[:, None]": "1/rstd[i]",
    " 1 / rstd [ i ] ": "1/rstd[i]",
    "x[i, j] * weight[None, :]": "weight[j]*x[i, j]",
    "sqrt(1/rstd**2 - eps)": "sqrt(-eps + rstd[i]**(-2))",
    "rsqrt(rstd)": "1/sqrt(rstd[i])",
    "-rstd + +1": "1 - rstd[i]",
    "1e-5": "1/100000",
    "2**-3": "1/8",
    "N - 1": "N - 1",
    "Abs(mean)": "Abs(mean[i])",
}


@pytest.mark.parametrize(("text", "shown"), list(ROWS.items()))
def test_an_expression_is_what_it_says(text, shown):
    assert str(value_of("rms", text, NAMES)) == shown


BOUND = (
    'T("x")',
    'T("x", stride="X_stride")',
    'Out("dw", "p, j", stride=N)',
    'InOut("x", then="y")',
    "WHOLE",
    "N",
    "2*M",
    "True",
    "None",
    '"mean"',
    "-1",
    'T("x", heads=(4, "s"))',
)


@pytest.mark.parametrize("text", BOUND)
def test_a_binding_is_typed_as_it_is_printed(text):
    shown = repr(parsed(text)).replace("'", '"')
    words = "a block of at least N columns"
    assert shown == text or shown == f'"{words}"'


def test_a_printed_answer_with_a_power_that_fills_the_memory_is_not_worked_out():
    for text in ("9**9**9", "x[j]**(9**9**9)", "x.base", "-" * 900 + "1"):
        with pytest.raises(ValueError, match="text: got|exponent|nested"):
            expression(text, {"x": (N,)})


# statistics that are saved

KERNEL = """
@triton.jit
def kernel(X, W, Y, RMS, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * n + cols, mask=mask, other=0.0)
    w = tl.load(W + cols, mask=mask, other=0.0)
    saved = tl.load(RMS + row)
    tl.store(Y + row * n + cols, x * w * FACTOR, mask=mask)
"""
ARGUMENTS = {
    "X": T("x"),
    "W": T("weight"),
    "Y": Out("y"),
    "RMS": T("rstd"),
    "n": N,
    "B": WHOLE,
}
PROVED, REFUTED, NOT_READ = "proved for every M and N", "refuted", "not read"
SAVED = (
    ("1 / saved", T("1/rstd", "i"), PROVED),
    ("saved", T("1/rstd", "i"), REFUTED),
    ("1 / (saved * saved)", T("1/rstd", "i"), REFUTED),
    ("1 / saved", T("1/rstd**2", "i"), REFUTED),
    ("1 / tl.sqrt(saved)", T("1/rstd**2", "i"), PROVED),
    ("1 / tl.sqrt(saved + 2)", T("1/rstd**2 - 2", "i"), PROVED),
    ("1 / tl.sqrt(saved + 1)", T("1/rstd**2 - 2", "i"), REFUTED),
    ("saved * 0.5", T("2*rstd", "i"), PROVED),
    ("saved * saved", T("sqrt(rstd)", "i"), PROVED),
    ("1 / saved", T("rms", "i"), NOT_READ),
    ("saved", T("rms", "i"), NOT_READ),
    ("saved", T("rstd"), PROVED),
    ("1 / saved", T("rstd"), REFUTED),
)


@pytest.mark.parametrize(("factor", "bound", "kind"), SAVED)
def test_a_saved_statistic_is_an_expression_of_the_definitions(factor, bound, kind):
    text = HEAD + KERNEL.replace("FACTOR", factor)
    verdict = verify(text, ARGUMENTS | {"RMS": bound}, "rows", RMS, kernel="kernel")
    assert verdict.kind == kind, verdict
    if bound.name == "rms":
        assert verdict.why == no_tensor("rms") and verdict.counterexample is None
    if kind == REFUTED:
        assert not str(verdict.counterexample).count("rms[")


def test_a_proof_says_where_what_is_saved_has_a_value():
    text = HEAD + KERNEL.replace("FACTOR", "saved * rstd")
    text = text.replace("RMS, n", "RMS, R, n")
    text = text.replace("    tl.store", "    rstd = tl.load(R + row)\n    tl.store")
    text = text.replace("saved * rstd", "rstd * saved / saved")
    bound = ARGUMENTS | {"RMS": T("1/mean", "i"), "R": T("rstd")}
    verdict = verify(text, bound, "rows", RMS, kernel="kernel")
    assert verdict and "where mean[i] is not 0" in verdict.claim


def test_what_a_kernel_saves_is_held_against_an_expression():
    root = (
        "    saved = tl.sqrt(tl.sum(x * x) / n + eps)\n    tl.store(RMS + row, saved)"
    )
    text = HEAD + KERNEL.replace("FACTOR", "1 / saved").replace(
        "    saved = tl.load(RMS + row)", root
    )
    text = text.replace("n, B:", "n, eps, B:")
    for name, kind in (("1/rstd", PROVED), ("1/rstd**2", REFUTED), ("rstd", REFUTED)):
        bound = ARGUMENTS | {"RMS": Out(name, "i"), "eps": NUMBERS["eps"]}
        verdict = verify(text, bound, "rows", RMS, kernel="kernel")
        assert verdict.kind == kind and verdict.outputs["Y"], verdict


def loop(x, w, rms, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * w[j] / rms[i]


@pytest.mark.parametrize(
    ("bound", "kind"),
    [
        (T("1/rstd", "i"), PROVED),
        (T("2/rstd", "i"), REFUTED),
        (T("rms", "i"), NOT_READ),
    ],
)
def test_a_loop_reads_a_saved_statistic(bound, kind):
    binding = {"x": T("x"), "w": T("weight"), "rms": bound, "y": Out("y")}
    verdict = verify(loop, binding, RMS)
    assert verdict.kind == kind, verdict


def by_column(dy, x, weight, rms):
    x_hat = x / rms
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    dx = (wdy - x_hat * c1) / rms
    dw = (dy * x_hat).sum(0)
    return dx, dw


def by_vector(dy, x, weight, rms):
    x_hat = x / rms[:, None]
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    dx = (wdy - x_hat * c1) / rms[:, None]
    dw = (dy * x_hat).sum(0)
    return dx, dw


def summed(dy, x, weight, rms):
    x_hat = x / rms
    wdy = dy * weight
    c1 = (x_hat * wdy).sum(-1, keepdims=True)
    dx = (wdy - x_hat * c1) / rms
    dw = (dy * x_hat).sum(0)
    return dx, dw


def of_variance(dy, x, weight, mean, rms, eps):
    rstd = 1 / np.sqrt(rms + eps)
    x_hat = (x - mean) * rstd
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd * (wdy - c2 - x_hat * c1)
    dw, db = (dy * x_hat).sum(0), dy.sum(0)
    return dx, dw, db


def forward(x, weight, eps):
    r = np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    y = x / r * weight
    return y, r


NAMED = (
    (by_column, RMS, "1/rstd[:, None]", PROVED),
    (by_column, RMS, "1/rstd", PROVED),
    (by_column, RMS, "1/rstd[i]", PROVED),
    (by_vector, RMS, "1/rstd", PROVED),
    (by_vector, RMS, "(1/rstd)*1", PROVED),
    (by_column, RMS, "2/rstd[:, None]", REFUTED),
    (by_column, RMS, "rstd[:, None]", REFUTED),
    (summed, RMS, "1/rstd[:, None]", REFUTED),
    (of_variance, LAYER, "1/rstd**2 - eps", PROVED),
    (of_variance, LAYER, "1/rstd**2", REFUTED),
    (of_variance, LAYER, "1/rstd[:, None]**2 - eps", PROVED),
    (by_column, forward, "r", PROVED),
    (by_column, forward, "1*r[:, None]", PROVED),
    (by_column, forward, "2*r[:, None]", REFUTED),
)


@pytest.mark.parametrize(("function", "definitions", "text", "kind"), NAMED)
def test_a_named_input_is_an_expression(function, definitions, text, kind):
    verdict = verify(function, definitions, rms=text)
    assert verdict.kind == kind, verdict
    if kind == REFUTED:
        assert "rms[" not in str(verdict.counterexample)


def of_two_shapes(dy, x, weight, mean, rstd):
    x_hat = (x - mean[:, None]) * rstd
    wdy = dy * weight
    c1 = (x_hat * wdy).mean(-1, keepdims=True)
    c2 = wdy.mean(-1, keepdims=True)
    dx = rstd * (wdy - c2 - x_hat * c1)
    dw, db = (dy * x_hat).sum(0), dy.sum(0)
    return dx, dw, db


def test_no_program_is_accused_of_a_shape_that_nobody_said():
    verdict = verify(of_two_shapes, LAYER)
    assert verdict.kind == NOT_READ
    words = "mean as (M,), rstd as (M,); another shape is said as rstd="
    assert words in verdict.why
    assert verify(of_two_shapes, LAYER, rstd="rstd[:, None]")


# the command

FILES = {
    "right": KERNEL.replace("FACTOR", "saved"),
    "wrong": KERNEL.replace("FACTOR", "saved * 2"),
    "past": KERNEL.replace("FACTOR, mask=mask)", "saved)"),
    "unread": KERNEL.replace("FACTOR", "tl.unknown(saved)"),
    "masked": KERNEL.replace("FACTOR", "tl.rsqrt(tl.sum(x * x) / n + RMS)").replace(
        ", other=0.0", ""
    ),
    "text": "def kernel(:",
    "data": "\0",
}
FILES["masked"] = FILES["masked"].replace("    saved = tl.load(RMS + row)\n", "")
FILES["masked_too"] = FILES["masked"]
BIND = {
    "X": 'T("x")',
    "W": 'T("weight")',
    "Y": 'Out("y")',
    "RMS": 'T("rstd")',
    "n": "N",
    "B": "WHOLE",
}
LAUNCH = ("--grid", "rows", "--norm", "")


def command(monkeypatch, tmp_path, text, *words, **changed):
    """The exit status of the command for a file of this text."""
    file = tmp_path / "kernels.py"
    if text is not None:
        file.write_text(HEAD + text)
    bound = BIND | changed
    arguments = [f"{name}={value}" for name, value in bound.items() if value]
    binds = [word for argument in arguments for word in ("--bind", argument)]
    monkeypatch.setattr("sys.argv", ["verify", str(file), *binds, *words])
    try:
        return main()
    except SystemExit as exit:
        return exit.code


def several(*names):
    """(a text with kernels of these names, the words that ask for all)."""
    texts = [FILES[name].replace("def kernel", f"def {name}") for name in names]
    words = [word for name in names for word in ("--kernel", name)]
    return "\n".join(texts), words


EPS = {"RMS": "eps"}
CODES = (
    (["right"], [], {}, 0),
    (["right"], ["--allow"], {}, 0),
    (["wrong"], [], {}, 1),
    (["past"], [], {}, 1),
    (["unread"], [], {}, 3),
    (["unread"], ["--allow"], {}, 3),
    (["wrong"], ["--allow"], {}, 1),
    (["masked"], [], EPS, 4),
    (["masked"], ["--allow"], EPS, 0),
    (["right", "wrong"], [], {}, 1),
    (["wrong", "unread"], [], {}, 1),
    (["unread", "wrong", "right"], [], {}, 1),
    (["right", "unread"], [], {}, 3),
    (["unread", "masked"], [], EPS, 3),
    (["masked", "masked_too"], [], EPS, 4),
    (["masked", "masked_too"], ["--allow"], EPS, 0),
    (["right"], [], {"RMS": 'T("rms", "i")'}, 3),
    (["right"], [], {"RMS": "?"}, 2),
    (["right"], [], {"RMS": "open"}, 2),
    (["right"], [], {"Q": "N"}, 2),
    (["right"], ["--bind", "X=N"], {}, 2),
    (["right"], ["--bind", "X"], {}, 2),
    (["right"], ["--grid", "row"], {}, 2),
    (["right"], ["--norm", "center"], {}, 2),
    (["right"], ["--norm", "center=1"], {}, 2),
    (["right"], ["--norm", "), norm("], {}, 2),
    (["right"], ["--norm", "centre=True"], {}, 2),
    (["right"], ["--kernel", "other"], {}, 2),
    (["right"], ["--as-proposed"], {}, 2),
    (["text"], [], {}, 2),
    (["data"], [], {}, 2),
)


@pytest.mark.parametrize(("names", "words", "changed", "code"), CODES)
def test_the_exit_status_says_what_was_found(
    monkeypatch, tmp_path, capsys, names, words, changed, code
):
    text, kernels = several(*names)
    words = (*LAUNCH, *kernels, *words)
    assert command(monkeypatch, tmp_path, text, *words, **changed) == code
    out, err = capsys.readouterr()
    assert bool(err) == (code == 2) and bool(out) == (code != 2)
    if code != 2:
        assert out.count("checked against normgrad.verify.norm()") == len(names)


def test_a_file_that_is_not_there_or_no_text_is_bad_usage(
    monkeypatch, tmp_path, capsys
):
    assert command(monkeypatch, tmp_path, None, *LAUNCH) == 2
    assert "which is no file and no text" in capsys.readouterr().err
    (tmp_path / "kernels.py").write_bytes(b"\xff\xfe\x00")
    assert command(monkeypatch, tmp_path, None, *LAUNCH) == 2
    assert "kernels.py: " in capsys.readouterr().err


def test_a_failure_of_the_reader_is_not_read(monkeypatch, tmp_path, capsys):
    def fails(*arguments, **options):
        raise KeyError("x")

    monkeypatch.setattr("normgrad.verify.api.verify", fails)
    assert command(monkeypatch, tmp_path, FILES["right"], *LAUNCH) == 3
    assert "not read\n  not followed: KeyError: 'x'" in capsys.readouterr().out


def test_the_help_says_the_exit_statuses(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["verify", "--help"])
    with pytest.raises(SystemExit) as exit:
        main()
    text = " ".join(capsys.readouterr().out.split())
    assert exit.value.code == 0 and "the worst, in the order 1, 3, 4, 0" in text


HEADS = {
    "def kernel(x_ptr, w_ptr, y_ptr, eps, N, BLOCK: tl.constexpr)": [
        'x_ptr=T("x")',
        'w_ptr=T("weight")',
        'y_ptr=Out("y")',
        "eps=eps",
        "N=N",
        "BLOCK=WHOLE",
        "center=?, bias=False",
    ],
    "def kernel(X, Y, W, B, X_row_stride, N, BLOCK: tl.constexpr)": [
        'X=T("x", stride="X_row_stride")',
        'Y=Out("y")',
        'W=T("weight")',
        'B=T("bias")',
        "N=N",
        "BLOCK=WHOLE",
        "center=?, bias=True",
    ],
    "def kernel(grad_ptr, X, DX, Rstd, inv_rms, N, B: tl.constexpr)": [
        "grad_ptr=?",
        'X=T("x")',
        'DX=Out("dx")',
        "Rstd=?",
        "inv_rms=?",
        "N=N",
        "B=WHOLE",
        "center=?, bias=False",
    ],
    "def kernel(dy, x, mean, rstd, dx, dw, db, M, N, HAS_W: tl.constexpr, B: tl.constexpr)": [
        'dy=T("dy")',
        'x=T("x")',
        'mean=T("mean")',
        'rstd=T("rstd")',
        'dx=Out("dx")',
        'dw=Out("dw", "p, j")',
        'db=Out("db", "p, j")',
        "M=M",
        "N=N",
        "HAS_W=?",
        "B=WHOLE",
        "center=True, bias=True",
    ],
}


@pytest.mark.parametrize(("head", "filled"), list(HEADS.items()))
def test_a_missing_binding_is_a_form_and_no_verdict(
    monkeypatch, tmp_path, capsys, head, filled
):
    text = f"@triton.jit\n{head}:\n    pass\n"
    if "grad_ptr" in head:
        filled = [line.replace('Out("dx")', 'T("dx")') for line in filled]
    missing = dict.fromkeys(BIND, "")
    assert command(monkeypatch, tmp_path, text, **missing) == 2
    out = capsys.readouterr().out
    shown = [line.split("'")[1] for line in out.splitlines() if "'" in line]
    assert [line for line in shown if line != "rows"] == filled
    for kind in (PROVED, REFUTED, NOT_READ, "wrong", "no binding"):
        assert kind not in out


@pytest.mark.parametrize("missing", ["--grid", "--norm"])
def test_nothing_is_guessed_beside_a_binding(monkeypatch, tmp_path, capsys, missing):
    at = LAUNCH.index(missing)
    words = LAUNCH[:at] + LAUNCH[at + 2 :]
    assert command(monkeypatch, tmp_path, FILES["right"], *words) == 2
    assert f"  {missing} '" in capsys.readouterr().out


# calls that make no sense


def right(x, weight, eps):
    r = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    y = x * r * weight
    return y


def kernel(**changed):
    """verify of a kernel, with some of its arguments, or of what is bound, changed."""
    options = {
        "program": HEAD + FILES["right"],
        "binding": ARGUMENTS,
        "grid": "rows",
        "definitions": RMS,
        "kernel": "kernel",
    }
    names = {name: value for name, value in changed.items() if name[0].isupper()}
    names |= {name: value for name, value in changed.items() if name == "n"}
    options |= {name: changed[name] for name in changed if name not in names}
    if names:
        options["binding"] = ARGUMENTS | names
    return verify(**options)


def pair(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]


def loops(**changed):
    """verify of a function in loops, with some of its arguments changed."""
    options = {
        "program": pair,
        "binding": {"x": T("x"), "y": Out("y")},
        "definitions": RMS,
    }
    return verify(**options | changed)


def refusals():
    """(error, call, words) of each line of the table."""
    for line in lines("verify_refusals.txt"):
        if line.startswith("["):
            error = getattr(builtins, line.strip("[]"))
        else:
            call, _, words = line.partition(" | ")
            yield pytest.param(error, call, words, id=line)


@pytest.mark.parametrize(("error", "call", "words"), list(refusals()))
def test_a_call_that_makes_no_sense_is_refused(error, call, words):
    with pytest.raises(error, match=f"^(verify_loops|verify|T.__init__)?{words}"):
        eval(call, globals())


def test_a_text_for_a_stride_is_never_evaluated(tmp_path):
    file = tmp_path / "made"
    text = f"__import__('pathlib').Path({str(file)!r}).touch()"
    launch = Launch({"n": text}, ("rows",))
    assert str(launch.stride("n")) == "n" and not file.exists()
    for refused in (
        lambda: Filled((M, N), text),
        lambda: Filled(text),
        lambda: norm(weight_offset=text),
        lambda: T("x", stride=text),
        lambda: kernel(X=T("x", stride="n"), n=text),
        lambda: InOut("x", "i, j", then=text) and kernel(Y=InOut("x", then=text)),
    ):
        with pytest.raises((TypeError, ValueError)):
            refused()
    assert not file.exists()


def test_a_text_that_is_no_program_is_no_module():
    with pytest.raises(ValueError, match="^program: got a text that is not Python"):
        module_of("def")
    assert isinstance(RMS, Norm)
