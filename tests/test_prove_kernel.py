"""What the page "Prove a kernel" asks: each ready-made text gets its verdict, any text an answer, and none is run."""

import json
import re
from pathlib import Path

import prove_kernel
import pytest

TABLE = Path(prove_kernel.__file__).with_name("kernels.txt")
EXAMPLES = prove_kernel.examples(TABLE.read_text(encoding="utf8"))
MENU = {row["name"]: row for row in prove_kernel.menu()}
SCALE = "def scale(dy, g):\n    return dy * g, dy.sum(0)\n"
BACKWARD = "def backward(dout, x, w):\n    dx = dout * w\n    return dx\n"
FORWARD = "def forward(x, w):\n    out = x * w\n    return out\n"


def asked(text, definition="rms", **question):
    """The answer to a question, with the flags that are usual for a definition."""
    flags = {name: MENU[definition].get(name, False) for name in ("weight", "bias")}
    question = {"text": text, "definition": definition, "flags": flags} | question
    return json.loads(prove_kernel.answer(json.dumps(question)))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_each_example_gets_its_verdict(example):
    question = {"name": example["name"], "definition": example["definition"]}
    answer = asked(example["text"], **question)
    if "verdict" not in answer:
        fields = dict(answer["form"])
        answer = asked(example["text"], fields=fields, confirmed=True, **question)
    verdict = answer["verdict"]
    assert verdict["kind"] == example["kind"]
    assert re.search(example["pattern"], json.dumps(verdict))


def test_a_refuted_text_has_a_formula_and_a_table():
    (example,) = [one for one in EXAMPLES if "c2" in one["title"]]
    verdict = asked(example["text"], example["definition"])["verdict"]
    assert r"\sum" in verdict["latex"]
    names = [name for name, _ in verdict["table"]]
    assert names[:2] == ["M", "N"]
    assert names[-2:] == ["dx, the program", "dx, the definition"]
    assert verdict["outputs"]["dw"]["kind"].startswith("proved")


def test_lines_that_a_verdict_names_are_told():
    (example,) = [one for one in EXAMPLES if "mask" in one["title"]]
    verdict = asked(example["text"])["verdict"]
    lines = example["text"].splitlines()
    assert [lines[line - 1].split(" = ")[0].strip() for line in verdict["lines"]] == [
        "x"
    ]


def test_nothing_is_checked_of_a_bare_kernel_before_its_form_is_confirmed():
    (example,) = [one for one in EXAMPLES if "without" in one["title"]]
    answer = asked(example["text"])
    assert "verdict" not in answer and "error" not in answer
    form = dict(answer["form"])
    assert form["w_ptr"] == 'T("weight")' and form["grid"] == "rows"
    form["w_ptr"] = 'T("bias")'
    answer = asked(example["text"], fields=form, confirmed=True)
    assert answer["verdict"]["kind"] == "refuted"
    assert dict(answer["form"])["w_ptr"] == 'T("bias")'


def test_a_comment_above_a_kernel_fills_its_form_in():
    (example,) = [one for one in EXAMPLES if "without" in one["title"]]
    comment = '# verify: x_ptr = T("x"), n_cols = N, grid = row tiles; rms_norm\n'
    text = example["text"].replace("@triton.jit", comment + "@triton.jit")
    form = dict(asked(text)["form"])
    assert form["grid"] == "row tiles" and form["x_ptr"] == 'T("x")'
    assert form["w_ptr"] == ""


# {a text: what is said}
SENTENCES = {
    "": "The box is empty",
    " \n": "The box is empty",
    "def f(:": "This is not Python: invalid syntax, line 1",
    "x = 1\n" * 2000: "no function, class or kernel",
    "\0\1": "This is not Python: source code string cannot contain null bytes",
    "(" * 5000: "This is not Python: too many nested parentheses",
    "x" * 300_001: "This text has 300,001 characters, and the box takes 300,000",
}


@pytest.mark.parametrize("text", SENTENCES, ids=lambda text: repr(text[:12]))
def test_what_is_no_program_is_answered_in_a_sentence(text):
    answer = asked(text)
    assert (
        answer["error"].startswith(SENTENCES[text])
        or SENTENCES[text] in answer["error"]
    )
    assert "verdict" not in answer


def test_no_line_of_a_text_is_run(tmp_path):
    mark = tmp_path / "mark"
    lines = ["import os", f"os.system('touch {mark}')", f"open({str(mark)!r}, 'w')"]
    text = "\n".join([*lines, SCALE])
    assert asked(text)["entries"][0]["name"] == "scale"
    for field in (f"open({str(mark)!r}, 'w')", "__import__('os').getcwd()"):
        answer = asked(text, fields={"g": field, "returns": field})
        assert answer.keys() & {"error", "verdict"}
    assert not mark.exists()


def test_a_name_that_is_not_known_is_asked_for():
    answer = asked(SCALE)
    assert "g: is not known by its name: say below" in answer["error"]
    assert [name for name, _ in answer["form"]] == ["dy", "g", "returns"]
    fields = {"g": "weight"}
    answer = asked(SCALE, fields=fields)
    assert answer["error"].startswith("The text has no name for what it returns")
    answer = asked(SCALE, fields=fields | {"returns": "dx, dw"})
    assert answer["verdict"]["kind"] == "refuted"


def test_a_function_of_the_readers_is_what_a_text_is_compared_with():
    again = FORWARD.replace("forward", "again").replace("x * w", "w * x")
    fields = {"w": "(N,)"}
    answer = asked(again, "reference", reference=FORWARD, fields=fields)
    assert answer["verdict"]["kind"].startswith("proved")
    other = again.replace("w * x", "w + x")
    answer = asked(other, "reference", reference=FORWARD, fields=fields)
    assert answer["verdict"]["kind"] == "refuted"


def test_so_are_its_gradients():
    fields = {"dout": "dout", "w": "(N,)"}
    answer = asked(BACKWARD, "reference", reference=FORWARD, fields=fields)
    assert answer["verdict"]["kind"].startswith("proved")
    wrong = BACKWARD.replace("dout * w", "dout + w")
    answer = asked(wrong, "reference", reference=FORWARD, fields=fields)
    assert answer["verdict"]["kind"] == "refuted"
    for reference in ("", "x = 1", "def f(:"):
        assert "error" in asked(BACKWARD, "reference", reference=reference)


def test_an_autograd_function_is_compared_with_its_own_forward():
    (right,) = [one for one in EXAMPLES if "forward and" in one["title"]]
    assert asked(right["text"], "forward")["verdict"]["kind"].startswith("proved")
    (wrong,) = [one for one in EXAMPLES if "c2" in one["title"]]
    assert asked(wrong["text"], "forward")["verdict"]["kind"] == "refuted"


def test_one_of_several_functions_is_chosen():
    text = EXAMPLES[0]["text"]
    assert [entry["name"] for entry in asked(text)["entries"]] == [
        "rms_norm",
        "rms_kernel",
    ]
    assert asked(f"\ufeff{text}")["verdict"]["kind"].startswith("proved")
    answer = asked(text, name="rms_kernel")
    assert answer["name"] == "rms_kernel" and "verdict" not in answer
    assert asked(text, name="of another text")["name"] == "rms_norm"


@pytest.mark.parametrize("name", sorted(prove_kernel.NORMS))
def test_each_norm_of_the_menu_is_one(name):
    _, weight, bias, options = prove_kernel.NORMS[name]
    for flags in ({"weight": weight, "bias": bias}, {"weight_offset": 1}):
        assert prove_kernel.norm(**options | flags).outputs


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_is_what_its_function_of_torch_is(name):
    text = "import torch\n\ndef f(x):\n    return torch.NAME(x, dim=DIM)\n"
    text = text.replace("NAME", name)
    right = asked(text.replace("DIM", "-1"), name)
    assert right["verdict"]["kind"].startswith("proved")
    assert asked(text.replace("DIM", "0"), name)["verdict"]["kind"] == "refuted"
