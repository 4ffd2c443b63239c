"""What comes to verify from outside: texts, bindings, arguments and the command; nothing of it is run."""

import builtins
import shlex
import time
from pathlib import Path  # noqa: F401 - verify_refusals.txt names it

import numpy as np
import pytest
from sympy import sqrt  # noqa: F401 - verify_refusals.txt names it
from tables import claims, rows
from verify_kernels import HEAD
from verify_triton import BASES

from normgrad.homework.reading.letters import expression
from normgrad.verify import (
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
from normgrad.verify.__main__ import main
from normgrad.verify.binding import Launch, resolved
from normgrad.verify.definitions import NUMBERS
from normgrad.verify.programs import input_of
from normgrad.verify.request import norm_of, parsed
from normgrad.verify.text import LONGEST, module_of, value_of
from normgrad.verify.verdict import REFUTED

RMS, LAYER = norm(), norm(center=True, bias=True)
NAMES = RMS.tensors | NUMBERS
MEAN = NAMES["mean"]

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


# (a text without the head of its file, what its verdict says)
NORM = "x * weight / {}.sqrt((x * x).mean(-1, {}=True) + eps)"
TORCH_NORM, NUMPY_NORM = NORM.format("torch", "keepdim"), NORM.format("np", "keepdims")
HEADLESS = (
    (f"def f(x, weight, eps):\n    return {TORCH_NORM}", "nothing: import torch"),
    (f"def f(x, weight, eps):\n    return {NUMPY_NORM}", "nothing: import numpy as np"),
    (
        "def f(x, weight, eps):\n    return F.rms_norm(x, x.shape[-1:], weight, eps)",
        "nothing: import torch.nn.functional as F",
    ),
    (
        f"def f(x, weight, eps):\n    return 2 * {TORCH_NORM}",
        "nothing: import torch",
    ),
    (
        f"def f(x, weight, eps):\n    import math\n    return {TORCH_NORM}",
        "the name torch",
    ),
    (f"import math\ndef f(x, weight, eps):\n    return {TORCH_NORM}", "the name torch"),
    ("def f(x, weight, eps):\n    return x * weight * jnp.sqrt(eps)", "the name jnp"),
)


PAIR = """
def layernorm_forward(x, gamma, beta, ln_param):
    eps = ln_param.get("eps", 1e-5)
    mean = x.mean(axis=1, keepdims=True)
    std = np.sqrt(x.var(axis=1, keepdims=True) + eps)
    cache = ((x - mean) / std, gamma, std)
    return gamma * cache[0] + beta, cache


def layernorm_backward(dout, cache):
    x_hat, gamma, std = cache
    dgamma, dbeta = (dout * x_hat).sum(0), dout.sum(0)
    dx_hat = dout * gamma
    projection = (dx_hat * x_hat).mean(axis=1, keepdims=True)
    dx = (dx_hat - dx_hat.mean(axis=1, keepdims=True) - x_hat * projection) / std
    return dx, dgamma, dbeta
"""
PAIR_OF_TORCH = """
class LayerNorm:
    @staticmethod
    def forward(x, w, b):
        B, T, C = x.size()
        mean = x.sum(-1, keepdim=True) / C
        rstd = (((x - mean) ** 2).sum(-1, keepdim=True) / C + 1e-5) ** -0.5
        return (x - mean) * rstd * w + b, (x, w, mean, rstd)

    @staticmethod
    def backward(dout, cache):
        x, w, mean, rstd = cache
        x_hat = (x - mean) * rstd
        db, dw = dout.sum((0, 1)), (dout * x_hat).sum((0, 1))
        dx_hat = dout * w
        dx = dx_hat - dx_hat.mean(-1, keepdim=True)
        dx -= x_hat * (dx_hat * x_hat).mean(-1, keepdim=True)
        return dx * rstd, dw, db
"""


@pytest.mark.parametrize(
    ("text", "change"),
    [(PAIR, (" - x_hat * projection", "")), (PAIR_OF_TORCH, ("dx * rstd", "dx"))],
)
def test_a_backward_is_read_after_its_forward(text, change):
    """Where the text has both, and ends with the backward or with the class of the two; no name is given."""
    verdict = verify(text, LAYER)
    assert verdict and set(verdict.outputs) == {"y", "dx", "dw", "db"}, verdict
    verdict = verify(text.replace(*change), LAYER)
    assert verdict.kind == REFUTED and not verdict.outputs["dx"], verdict


@pytest.mark.parametrize(("text", "words"), HEADLESS)
def test_a_text_that_imports_nothing_has_the_usual_imports(text, words):
    """A text that imports something is read as it stands: without its import of torch it ends in a NameError."""
    verdict = verify(text, RMS)
    assert words in str(verdict), verdict
    assert bool(verdict) is ("nothing" in words and "2 *" not in text), verdict
    if "nothing" in words:
        assert verify(text, RMS, run=True).kind == verdict.kind


def is_identifier_or_empty(text):
    """Whether a text is the name of a tensor, or one that a plain text may be."""
    return text.strip().isidentifier()


@pytest.mark.parametrize("text", [*rows("verify_texts.txt"), *LONG])
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


# the command

KERNEL = BASES["saved"][0]

FILES = {
    "right": KERNEL.replace("FACTOR", "saved"),
    "wrong": KERNEL.replace("FACTOR", "saved * 2"),
    "past": KERNEL.replace("FACTOR, mask=mask)", "saved)"),
    "unread": KERNEL.replace("FACTOR", "tl.cumsum(x, 0)"),
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


@pytest.mark.parametrize(("code", "_", "row"), list(claims("verify_exits.txt")))
def test_the_exit_status_says_what_was_found(
    monkeypatch, tmp_path, capsys, code, _, row
):
    names, words, changed = (part.strip() for part in row.split("|"))
    names, code = names.split(), int(code)
    text, kernels = several(*names)
    words = (*LAUNCH, *kernels, *shlex.split(words))
    bound = dict(part.split("=", 1) for part in [changed] if part)
    assert command(monkeypatch, tmp_path, text, *words, **bound) == code
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
    assert "program: invalid or missing encoding" in capsys.readouterr().err


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
    for kind in ("proved for every", "refuted", "not read", "wrong", "no binding"):
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
        "binding": BASES["saved"][1],
        "grid": "rows",
        "definitions": RMS,
        "kernel": "kernel",
    }
    names = {name: value for name, value in changed.items() if name[0].isupper()}
    names |= {name: value for name, value in changed.items() if name == "n"}
    options |= {name: changed[name] for name in changed if name not in names}
    if names:
        options["binding"] = BASES["saved"][1] | names
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


def product(name):
    """An autograd Function of x times an argument of this name; its gradient is g, and the first is wrong."""
    return f"""import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, {name}):
        ctx.save_for_backward(x, {name})
        return x * {name}
    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        return a * a, 2 * a * x
"""


@pytest.mark.parametrize(("error", "_", "row"), list(claims("verify_refusals.txt")))
def test_a_call_that_makes_no_sense_is_refused(error, _, row):
    call, _, words = row.partition(" | ")
    words = f"^(verify_loops|verify|T.__init__)?{words}"
    with pytest.raises(getattr(builtins, error), match=words):
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
