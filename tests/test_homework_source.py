"""What the text of a solution says before it runs."""

import pytest

import normgrad.homework as hw
from normgrad.homework.student import static


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("EPS = 1e-5\ndef f(x): return x * EPS", []),
        ("g = None\ndef f(x): return x * g", ["g"]),
        ("def f(x):\n    global g\n    g = x", ["g"]),
        ("g = [1]\ndef h(x): return g\ndef f(x): return h(x)", ["g"]),
        ("g = 1\ndef f(g): return g", []),
        ("import math\ndef f(x): return math.sqrt(x)", []),
        ("def f(x): return (", []),
    ],
)
def test_globals_that_a_function_reads(source, found):
    assert static.globals_in_source(source, "f") == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x): return F.layer_norm(x)", ["layer_norm"]),
        ("def f(x): return 'layer_norm'  # layer_norm", []),
        ("def g(x): return torch.layer_norm(x)\ndef f(x): return g(x)", ["layer_norm"]),
        ("def g(x): return torch.layer_norm(x)\ndef f(x): return x", []),
    ],
)
def test_forbidden_names(source, found):
    assert static.forbidden_in_source(source, "f", ("layer_norm",)) == found


def test_torch_may_not_do_the_work(tmp_path, torch):
    """By name it is seen before it runs, by another way while it runs."""
    body = "    @staticmethod\n    def forward(ctx, x, w, b, eps):\n        return {}\n    @staticmethod\n" \
           "    def backward(ctx, dy): raise ValueError\n"  # fmt: skip
    ways = {"torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)": "It uses layer_norm",
            "getattr(torch, 'layer_' + 'norm')(x, x.shape[-1:], w, b, eps)": "switched off here"}  # fmt: skip
    for way, words in ways.items():
        source = "import torch\nclass LayerNorm(torch.autograd.Function):\n" + body.format(way)
        (tmp_path / "solution.py").write_text(source, encoding="utf8")
        report = hw.grade_file(tmp_path / "solution.py", "hw3")[1]
        assert report.points == 0 and words in report.stages[0].message
