"""Where digits are lost is named in the first line of a proof, and no other line is."""

import re

import pytest
from launchers import FUNCTION, HEAD, ROWS
from tables import blocks
from test_verify_array_claims import of_loops

from normgrad.verify import (
    CHUNK,
    COLUMNS,
    WHOLE,
    M,
    N,
    Out,
    T,
    eps,
    log_softmax,
    norm,
    softmax,
    verify,
)

NORMS = {"rms": norm(), "layer": norm(center=True, bias=True)}
NORMS |= {gate: norm(gate=gate) for gate in ("swish", "sigmoid")}
NORMS |= {"softmax": softmax(), "logsoftmax": log_softmax()}
NORMS["residual"] = norm(residual=True)
LIBRARIES = {"torch": "import torch\n", "numpy": "import math\nimport numpy as np\n"}
LIBRARIES |= {"launch": HEAD, "triton": HEAD}
LIBRARIES["loops"] = LIBRARIES["numpy"]
MATRIX = {"stride": "s"}
INPUTS = {"X": T("x", **MATRIX), "W": T("weight"), "n": N, "eps": eps, "B": WHOLE}
FORWARD = INPUTS | {"Y": Out("y", **MATRIX)}
WITH_BIAS = FORWARD | {"Bi": T("bias")}
BACKWARD = INPUTS | {"DY": T("dy", **MATRIX), "R": T("rstd")}
BACKWARD |= {"DX": Out("dx", **MATRIX)}
SUMS = {"DY": T("dy", **MATRIX), "X": T("x", **MATRIX), "R": T("rstd"), "B": WHOLE}
SUMS |= {"DW": Out("dw", "p, j", **MATRIX), "m": M, "n": N, "K": CHUNK}
# of the table's kernels: {what is in place of the outputs: the binding, of which a kernel has a part}
BINDINGS = {"fwd": FORWARD, "soft": FORWARD, "fwdb": WITH_BIAS, "bwd": BACKWARD}
BINDINGS |= {"fwdc": WITH_BIAS | {"B": COLUMNS}, "dw": SUMS}
BINDINGS |= {"bwdln": BACKWARD | {"MU": T("mean")}}
BINDINGS |= {"gate": FORWARD | {"G": T("gate", **MATRIX)}}

NUMPY = """import numpy as np

def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdims=True)
    var = VARIANCE
    return (x - mean) / np.sqrt(var + eps) * weight + bias
"""
TORCH = """import torch

def layer_norm(x, weight, bias, eps):
    z = x.CAST
    mean = z.mean(-1, keepdim=True)
    var = (z * z).mean(-1, keepdim=True) - mean * mean
    return ((z - mean) * torch.rsqrt(var + eps) * weight + bias).to(x.dtype)
"""
WORDS = "with a difference of nearly equal numbers (line {})"


def first_line(text):
    """The first line of a function's verdict, which is a proof."""
    layer = norm(center=True, bias=True)
    verdict = verify(text, layer, outputs=("y",))
    assert verdict, verdict
    return str(verdict).split("\n")[0]


@pytest.mark.parametrize(
    "variance",
    [
        "(x * x).mean(-1, keepdims=True) - mean * mean",
        "(x * x).mean(-1, keepdims=True) - mean**2",
        "-(mean**2) + np.mean(x**2, -1, keepdims=True)",
        "np.mean(np.square(x), -1, keepdims=True) - np.square(mean)",
        "((x * x).sum(-1, keepdims=True) - x.sum(-1, keepdims=True) * mean) / x.shape[1]",
        "np.mean((x - 3) ** 2, -1, keepdims=True) - np.mean(x - 3, -1, keepdims=True) ** 2",
        "np.subtract(np.mean(x * x, -1, keepdims=True), np.square(mean))",
        "np.mean(x * x - mean * mean, -1, keepdims=True)",
        "(np.sum(x * x, -1, keepdims=True) - x.shape[1] * mean * mean) / x.shape[1]",
        "np.mean(x * x - 2 * mean * x + mean * mean, -1, keepdims=True)",
        "np.mean(x * x - x * mean, -1, keepdims=True)",
        "np.mean(x * (x - mean), -1, keepdims=True)",
        "np.mean((x - mean) * (x + mean), -1, keepdims=True)",
        "np.einsum('ij,ij->i', x - mean, x)[:, None] / x.shape[1]",
        "np.mean(x * x, -1, keepdims=True); var -= mean * mean",
        "(np.sqrt(np.mean(x * x, -1, keepdims=True)) - mean)"
        " * (np.sqrt(np.mean(x * x, -1, keepdims=True)) + mean)",
    ],
)
def test_a_variance_in_one_pass_is_named(variance):
    line = first_line(NUMPY.replace("VARIANCE", variance))
    assert line.endswith(WORDS.format(5))


@pytest.mark.parametrize(
    "variance",
    [
        "((x - mean) ** 2).mean(-1, keepdims=True)",
        "x.var(-1, keepdims=True)",
        "np.mean((x - mean) ** 2, -1, keepdims=True) - np.mean(x - mean, -1, keepdims=True) ** 2",
        "np.mean((x - mean) ** 2, -1, keepdims=True); var -= np.mean(x - mean) ** 2 * 0",
        "np.mean((x - mean) ** 2, -1, keepdims=True) + 0 * np.sum(x * (x - x.mean()))",
    ],
)
def test_a_variance_in_two_passes_is_not(variance):
    assert "nearly equal" not in first_line(NUMPY.replace("VARIANCE", variance))


@pytest.mark.parametrize(
    ("cast", "is_named"), [("float()", True), ("double()", False), ("half()", True)]
)
def test_a_variance_in_float64_of_any_tensor_loses_no_digit_of_it(cast, is_named):
    line = first_line(TORCH.replace("CAST", cast))
    assert (WORDS.format(6) in line) == is_named


def test_a_launcher_has_the_digits_of_its_kernels():
    text = ROWS.replace("tl.sum(x * x", "tl.sum((x * x).to(tl.float16)")
    line = str(verify(text, norm())).split("\n")[0]
    assert ", with sums in float16 (line 12), with M*x_row_stride < 2^31" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("np.mean((x * x).astype(np.float16), -1, keepdims=True)", "sums in float16"),
        ("np.mean(x * x, -1, keepdims=True, dtype=np.float16)", "sums in float16"),
        (
            "np.einsum('ij,ij->i', x.astype(np.float16), x.astype(np.float16))[:, None] / x.shape[1]",
            "sums in float16",
        ),
        (
            "np.mean(x * x, -1, keepdims=True).astype(np.float16)",
            "a row's statistic in float16",
        ),
        ("np.mean((x * x).astype(np.float32), -1, keepdims=True)", ""),
        ("np.mean(x * x, -1, keepdims=True)", ""),
        ("np.mean((x.astype(np.float16) * x).astype(x.dtype), -1, keepdims=True)", ""),
    ],
)
def test_a_sum_in_16_bits_is_named(text, words):
    """Below float32 whatever the tensors' dtype: a cast of each column, as the last row has, is none of a sum."""
    function = f"""import numpy as np

def rms_norm(x, weight, eps):
    square = {text}
    return x / np.sqrt(square + eps) * weight
"""
    line = str(verify(function, norm(), outputs=("y",))).split("\n")[0]
    assert line.startswith("proved")
    assert ("float16" in line) == bool(words)
    assert f"with {words} (line 4)" in line or not words


def test_torch_rounds_a_sum_to_16_bits():
    function = """import torch

def rms_norm(x, weight, eps):
    square = (x * x).mean(-1, keepdim=True, dtype=torch.bfloat16)
    return x * torch.rsqrt(square + eps) * weight
"""
    line = str(verify(function, norm(), outputs=("y",))).split("\n")[0]
    assert "with sums rounded to bfloat16 (line 4)" in line


@pytest.mark.parametrize(
    "body",
    [
        "F.layer_norm(x.half(), (x.shape[-1],), weight.half(), bias.half(), eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps).half()",
    ],
)
def test_what_torch_adds_up_in_float32_is_not_said_to_be_in_16_bits(body):
    function = f"""import torch
import torch.nn.functional as F

def layer_norm(x, weight, bias, eps):
    m = x.mean(-1, keepdim=True)
    return {body}
"""
    assert "float16" not in first_line(function)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_statistic_is_as_wide_as_its_tensor(dtype):
    text = FUNCTION.replace("(M,), dtype=torch.float32", f"(M,), dtype=torch.{dtype}")
    line = str(verify(text, norm())).split("\n")[0]
    words = f"with a row's statistic in {dtype} "
    assert line.startswith("proved") and (words in line) == (dtype != "float32")


def test_a_maximum_that_is_subtracted_lets_nothing_overflow():
    function = """import numpy as np

def log_softmax(x):
    z = x - x.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))
"""
    assert "overflows" not in str(verify(function, log_softmax(), outputs=("y",)))


def table():
    """The columns of the next test, for each program of the table."""
    for words, header, text in blocks("verify_digits.txt"):
        yield pytest.param(words, *header.split(), text, id=f"{words} {text[:150]}")


@pytest.mark.parametrize(("words", "library", "name", "outputs", "text"), list(table()))
def test_a_program_that_loses_digits_is_named_and_no_other(
    words, library, name, outputs, text
):
    text = LIBRARIES[library] + text
    marked = [at for at, line in enumerate(text.split("\n"), 1) if "# <<" in line]
    if library == "triton":
        (header,) = re.findall(r"^def kernel\((.*)\):$", text, flags=re.M)
        names = re.findall(r"\w+(?=,|:|$)", header.replace(" tl.constexpr", ""))
        binding = {key: e for key, e in BINDINGS[outputs].items() if key in names}
        grid = "programs" if outputs == "dw" else "rows"
        verdict = verify(text, binding, grid, NORMS[name])
    elif library == "loops":
        stored = {key: Out(key) for key in outputs.split(",")}
        verdict = of_loops(text, NORMS[name], stored, {})
    else:
        outputs = None if outputs == "-" else outputs.split(",")
        verdict = verify(text, NORMS[name], outputs)
    assert verdict, verdict
    lost = [said for said in verdict.numbers if "2^31" not in said]
    assert len(lost) == len(marked), lost
    for said, line in zip(lost, marked, strict=True):
        assert words in said and said.endswith(f"(line {line})")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("x * rstd * w, => (x * rstd).to(tl.float16) * w,", "line 14"),
        ("x * rstd * w, => -2 * (x * rstd).to(tl.float16) * (-0.5 * w),", "line 14"),
        ("x * rstd * w, => (x * rstd).to(tl.float16).to(tl.float32) * w,", "line 14"),
        ("x * rstd * w, => tl.where(mask, (x * rstd * w).to(tl.float16), 0.0),", ""),
        ("x * rstd * w, => -2 * (x * rstd * w).to(tl.float16) / -2,", ""),
        ("x * rstd * w, => x * rstd * (2 * w.to(tl.float16)) / 2,", ""),
        ("x * rstd * w, => x.to(tl.bfloat16) * rstd * w,", ""),
        ("x * rstd * w, => tl.maximum(x.to(tl.float16), x) * rstd * w,", ""),
    ],
)
def test_a_value_in_16_bits_that_is_used_further_is_named(edit, words):
    """A power of 2, a sign and a store lose no digit; an entry of a tensor may be of 16 bits itself."""
    old, new = edit.split(" => ")
    assert old in ROWS
    line = str(verify(ROWS.replace(old, new), norm())).split("\n")[0]
    assert line.startswith("proved")
    assert ("intermediate values in float16" in line) == bool(words)
    assert words in line


@pytest.mark.parametrize(
    ("lines", "is_named"),
    [
        ("h = (x * r).half(); h *= weight; return h", True),
        ("h = (x * r).half(); return h.mul_(weight)", True),
        ("h = (x * r).half().clone(); return h * weight", True),
        ("h = torch.where(x > 0, (x * r).half(), x * r); return h * weight", True),
        (
            "h = (x * r).half(); h = torch.stack([a for a in h]); return h * weight",
            True,
        ),
        (
            "h = (x * r).half(); z = torch.zeros_like(x); z[:] = h; return z * weight",
            True,
        ),
        ("h = (x * r * weight).half(); return -2 * h / -2", False),
        ("h = (x * r * weight).half(); return h.clone().float()", False),
        ("h = (x * r * weight).half(); return torch.maximum(h, h)", False),
        ("h = x.half(); z = weight.half(); return h.float() * r * z", False),
    ],
)
def test_torch_rounds_what_is_used_further(lines, is_named):
    """Where it is copied, chosen or written between as well; in the same line here, which is named once."""
    function = f"""import torch

def rms_norm(x, weight, eps):
    r = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    {lines}
"""
    verdict = verify(function, norm(), outputs=("y",))
    assert verdict, verdict
    words = ("with intermediate values in float16 (line 5)",)
    assert verdict.numbers == (words if is_named else ())
