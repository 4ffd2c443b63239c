"""What language models write: the facts are consistent, texts are told apart, and what is called is found."""

import json
import re
from pathlib import Path

import model_programs
import pytest
from model_programs import (
    PROGRAM,
    WHAT,
    calls_of,
    job_of,
    judged,
    ran,
    with_imports,
)

from normgrad.verify.verdict import IF_ZERO, KINDS, PROVED, REFUTED, WRONG

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "src/normgrad/verify/model_programs.json").read_text(encoding="utf8")
ROWS = json.loads(TEXT)["rows"]
JUDGED = [row for row in ROWS if row.get("verdict") in KINDS]
PAGE = (ROOT / "book/model_programs.md").read_text(encoding="utf8")
KERNEL = """
@triton.jit
def kernel(X, W, Y, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    x = tl.load(X + row * n + cols, mask=cols < n, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    w = tl.load(W + cols, mask=cols < n)
    tl.store(Y + row * n + cols, x * rstd * w, mask=cols < n)

"""
HOST = """
def rms_norm(input, gamma, epsilon=1e-5):
    M, N = input.shape
    input = input.contiguous()
    out = torch.empty_like(input)
    kernel[(M,)](input, gamma, out, N, epsilon, triton.next_power_of_2(N))
    return out
"""
PROGRAM_TEXT = KERNEL + HOST


def test_the_facts_are_those_of_the_rules():
    assert len({row["record"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row["what"] in WHAT
        assert row["model"] in model_programs.MODELS.values()
        assert (row.get("verdict") in KINDS) == (row["what"] == PROGRAM)
        # facts alone: no name, no line of a model's text
        assert set(row) <= model_programs.FACTS
    for row in JUDGED:
        assert bool(row["kind"]) == (row["verdict"] not in (PROVED, IF_ZERO)), row
        # a verdict that a run contradicts is looked at before it is kept
        assert row.get("borne out", True), row


def test_each_kind_of_what_is_wrong_stands_on_the_page():
    for row in JUDGED:
        if row["verdict"] in (WRONG, REFUTED):
            assert row["kind"].lower() in PAGE.lower(), row["kind"]


@pytest.mark.parametrize(
    ("text", "what", "names"),
    [
        ("def f(:", "does not parse", []),
        ("def f(x):\n    return x", "no kernel", []),
        (KERNEL, "no launcher", []),
        (PROGRAM_TEXT, PROGRAM, ["rms_norm"]),
        (f"{PROGRAM_TEXT}\ndef test():\n    rms_norm(1, 2)", PROGRAM, ["rms_norm"]),
        (
            f"{PROGRAM_TEXT}\nclass F(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x, w):\n"
            "        return rms_norm(x, w)\n",
            PROGRAM,
            ["applied"],
        ),
    ],
)
def test_what_is_called_is_found(text, what, names):
    found, calls = calls_of(text, "rms")
    assert (found, [call.name for call in calls]) == (what, names)


def test_a_call_is_bound_by_the_names_of_its_parameters():
    (call,) = calls_of(PROGRAM_TEXT, "rms")[1]
    assert call.bound == {"input": "x", "gamma": "weight", "epsilon": "eps"}
    assert call.outputs == ["y"]
    assert with_imports("import torch\ntorch.empty(3)").startswith("pass\n")
    assert with_imports("x = tl.zeros").startswith("import triton.language as tl")


@pytest.mark.parametrize(
    ("old", "new", "verdict", "kind"),
    [
        ("", "", PROVED, ""),
        ("triton.next_power_of_2(N)", "64", WRONG, "a block shorter than the row"),
        ("triton.next_power_of_2(N)", "N", WRONG, "no power of 2"),
        ("(M,)]", "((M,),)]", WRONG, "a launch that Triton refuses"),
        ("return out", "return result", WRONG, "a name that nothing has"),
        ("other=0.0", "other=1.0", REFUTED, "lanes past the row's end"),
        ("n + eps)", "n + 1e-5)", REFUTED, "the eps that is given is not used"),
        ("n + eps)", "n + 2 * eps)", REFUTED, "another formula"),
    ],
)
def test_a_verdict_has_a_kind(old, new, verdict, kind):
    text = PROGRAM_TEXT.replace(old, new)
    (call,) = calls_of(text, "rms")[1]
    facts = judged(text, call, "rms")
    assert facts["verdict"] == verdict, facts
    assert bool(re.search(kind, facts["kind"])) or facts["kind"] == kind


SOFTMAX = """
@triton.jit
def kernel(X, Y, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    x = tl.load(X + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)


def softmax(input_tensor, dim, scale=1.0):
    M, N = input_tensor.shape
    assert dim == -1
    input_tensor = input_tensor.contiguous()
    out = torch.empty_like(input_tensor)
    kernel[(M,)](input_tensor, out, N, triton.next_power_of_2(N))
    return out
"""


def test_softmax_is_judged_over_the_last_axis():
    (call,) = calls_of(SOFTMAX, "softmax")[1]
    assert call.bound == {"input_tensor": "x", "dim": -1}
    assert judged(SOFTMAX, call, "softmax")["verdict"] == PROVED
    assert judged(SOFTMAX, call, "log_softmax")["verdict"] == REFUTED
    pytest.importorskip("triton")
    record = {"id": "", "kind": ["softmax"], "task": "softmax.py", "code": SOFTMAX}
    job = job_of(record, call, "", usual=False, sizes=[(3, 5)])
    assert ran([job], False) == [[{"y": "right"}]]
    assert ran([{**job, "operator": "log_softmax"}], False) == [[{"y": "wrong"}]]


def test_a_run_finds_what_is_wrong():
    pytest.importorskip("triton")
    right = {"id": "", "kind": ["rms"], "task": "", "code": PROGRAM_TEXT}
    past = {**right, "code": PROGRAM_TEXT.replace("other=0.0", "other=1.0")}
    jobs = []
    for record in (right, past):
        (call,) = calls_of(record["code"], "rms")[1]
        jobs.append(job_of(record, call, "", usual=False, sizes=[(3, 5), (2, 4)]))
    first, second = ran(jobs, False)
    assert first == [{"y": "right"}, {"y": "right"}]
    assert second == [{"y": "wrong"}, {"y": "right"}]
