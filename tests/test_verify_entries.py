"""What a text offers to be checked, and a verdict as data."""

import json

import pytest
from processes import python
from tables import blocks, rows

from normgrad.verify import WHOLE, N, Out, T, eps, norm, verify
from normgrad.verify.entries import KINDS, entries
from normgrad.verify.text import NotPython, module_of
from normgrad.verify.verdict import KINDS as VERDICTS


@pytest.mark.parametrize(("_", "listed", "text"), list(blocks("verify_entries.txt")))
def test_what_a_text_offers(_, listed, text):
    shown = []
    for entry in entries(text):
        star = "*" if entry.helper else ""
        shown.append(f"{star}{entry.name}: {entry.kind}")
        assert entry.kind in KINDS
        line = text.split("\n")[entry.line - 1]
        assert line.strip().startswith((f"def {entry.name}(", f"class {entry.name}"))
    assert ", ".join(shown) == listed


GARBAGE = {
    "def f(:": 1,
    "x = 1\n\ndef f(x)\n    return x": 3,
    "x = 1\nreturn x": 2,
    "(" * 5000: None,
    "-" * 100000 + "1": None,
    "x = 1\n\0": None,
}


@pytest.mark.parametrize(("text", "line"), list(GARBAGE.items()))
def test_garbage_is_a_syntax_error_with_its_line(text, line):
    with pytest.raises(SyntaxError, match="^program: got a text that is ") as error:
        entries(text)
    assert line is None or error.value.lineno == line
    assert isinstance(error.value, NotPython) and isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)


def test_a_warning_of_pythons_is_no_error():
    assert module_of('x = "\\d"').body
    assert [entry.name for entry in entries('def f(x):\n    "\\d"\n    return x')] == [
        "f"
    ]


@pytest.mark.parametrize("text", rows("verify_texts.txt"))
def test_no_text_is_run(text, tmp_path):
    file = tmp_path / "made"
    text = text.replace("FILE", str(file))
    try:
        assert not [entry for entry in entries(text) if entry.kind not in KINDS]
    except SyntaxError:
        pass
    assert not file.exists()


KERNEL = """import triton
import triton.language as tl

@triton.jit
def kernel(X, W, Y, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * n + cols, mask=mask, other=0.0)
    w = tl.load(W + cols, mask=mask)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(Y + row * n + cols, x * rstd * w, mask=mask)
"""
CHANGES = {
    "right": ("", ""),
    "refuted": ("x * rstd * w", "x * rstd * rstd * w"),
    "not read": ("x * rstd * w", "tl.unknown(x)"),
    "wrong": ("* n + cols, x * rstd * w, mask=mask", "* n + cols, x * rstd * w"),
    "masked": (", mask=mask, other=0.0", ", mask=mask"),
}


def verdict_of(change):
    """The verdict on the kernel, as an edit leaves it."""
    binding = {"X": T("x"), "W": T("weight"), "Y": Out("y"), "n": N, "eps": eps}
    text = KERNEL.replace(*CHANGES[change])
    return verify(text, binding | {"B": WHOLE}, "rows", norm())


@pytest.mark.parametrize("change", CHANGES)
def test_a_verdict_is_data(change):
    verdict = verdict_of(change)
    data = json.loads(json.dumps(verdict.data()))
    assert data["kind"] == verdict.kind and data["kind"] in VERDICTS
    assert data["claim"] == verdict.claim and data["why"] == verdict.why
    assert data["line"] == verdict.line
    assert list(data["outputs"]) == list(verdict.outputs)
    shown = str(verdict)
    assert shown.startswith(f"{data['kind']}: {data['claim']}".removesuffix(": "))
    for line in data["assumptions"]:
        assert f"  {line}" in shown.split("\n")
    for term in data["difference"]:
        assert term.removeprefix("-") in shown
    if change == "refuted":
        assert data["difference"] and data["counterexample"] in shown
        assert data["outputs"]["Y"]["difference"] == data["difference"]
    else:
        assert data["difference"] == [] and data["counterexample"] is None


def test_conditions_have_their_lines():
    text = KERNEL.replace("* rstd * w", "* rstd * w * w / w")
    binding = {"X": T("x"), "W": T("weight"), "Y": Out("y"), "n": N, "eps": eps}
    data = verify(text, binding | {"B": WHOLE}, "rows", norm()).data()
    assert data["where"] == [{"words": "weight[j] is not 0", "line": 12}]
    json.dumps(data)


def test_neither_torch_nor_triton_is_imported():
    code = (
        "from normgrad.verify.entries import entries; import sys; print(*sys.modules)"
    )
    done = python("-c", code)
    assert not {"torch", "triton", "numba"} & set(done.stdout.split()), done.stderr
    assert "normgrad.verify.entries" in done.stdout
