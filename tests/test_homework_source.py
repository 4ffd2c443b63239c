"""What the code of a solution says before it runs."""

import pytest

from normgrad.homework.sandbox.source import look


def looked(source, **names):
    exec(source, names)
    return look(names["f"])


def layer_norm(x):
    """A library's function: its globals are not those of a solution."""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("EPS = 1e-5\ndef f(x): return x * EPS", []),
        ("g = None\ndef f(x): return x * g", ["g"]),
        ("def f(x):\n    global g\n    g = x", ["g"]),
        ("g = [1]\ndef h(x): return g\ndef f(x): return h(x)", ["g"]),
        ("g = [1]\ndef f(x): return (lambda: g)()", ["g"]),
        ("g = [1]\nclass f:\n    def apply(self): return g", ["g"]),
        ("g = 1\ndef f(g): return g", []),
        ("import math\ndef f(x): return math.sqrt(x)", []),
    ],
)
def test_globals_that_a_function_reads(source, names):
    assert looked(source)["globals"] == names


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("def f(x): return F.layer_norm(x)", True),
        ("def f(x): return 'layer_norm'  # layer_norm", False),
        ("def g(x): return torch.layer_norm(x)\ndef f(x): return g(x)", True),
        ("def g(x): return torch.layer_norm(x)\ndef f(x): return x", False),
        ("ln = norm\ndef f(x): return ln(x)", True),
        ("def f(x): return [norm(each) for each in x]", True),
        ("f = lambda x: torch.layer_norm(x)", True),
        ("def g(x): return torch.layer_norm(x)\nf = g", True),
        ("x = norm(1)\ndef f(x): return x", False),
    ],
)
def test_names_that_a_function_uses(source, used):
    """Also those of a library's function that it has under another name."""
    assert ("layer_norm" in looked(source, norm=layer_norm)["names"]) == used
