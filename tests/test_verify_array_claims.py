"""Programs of arrays and loops, each with the verdict that it is due, in a table that is read here; proofs are run."""

import re
from inspect import signature
from pathlib import Path

import pytest
from homework_solutions import of_source

from normgrad.verify import Out, T, eps, norm, verify
from normgrad.verify.verdict import NOT_READ, PROVED, REFUTED, WRONG

TABLE = Path(__file__).with_name("verify_array_claims.txt").read_text(encoding="utf8")
NORMS = {"rms": norm(), "layer": norm(center=True, bias=True)}
KINDS = {"proved": PROVED, "refuted": REFUTED, "not read": NOT_READ, "wrong": WRONG}
LINES = {
    "numpy": "import math\nimport numpy as np\n",
    "torch": "import math\nimport torch\n",
}
LINES["loops"] = LINES["numpy"]
OUTPUTS = ("y", "mean", "rstd", "dx", "dw", "db")


def cases():
    """(kind, words that the verdict says, library, definitions, outputs, program) of the table."""
    for block in re.split(r"\n\n+", TABLE):
        header, _, program = block.partition("\n")
        if found := re.fullmatch(r"\[(.*?)\] (\w+) (\w+) (\S+)(?: -- (.*))?", header):
            kind, library, name, outputs, words = found.groups()
            case = KINDS[kind], words or "", library, name, outputs.split(","), program
            yield pytest.param(*case, id=program.replace("\n", "|")[:150])


@pytest.mark.parametrize(
    ("kind", "words", "library", "name", "outputs", "program"), list(cases())
)
def test_a_program_of_arrays_has_the_verdict_that_it_is_due(
    kind, words, library, name, outputs, program
):
    if library == "torch":
        pytest.importorskip("torch")
    text = LINES[library] + program + "\n"
    if library == "loops":
        verdict = of_loops(text, NORMS[name], outputs)
    else:
        options = {"outputs": outputs, "library": library, "run": True}
        verdict = verify(text, NORMS[name], **options)
    assert verdict.kind == kind, verdict
    assert words in str(verdict)


def of_loops(text, definitions, outputs):
    function = of_source(text)["f"]
    binding = {}
    for name in signature(function).parameters:
        if name == "eps":
            binding[name] = eps
        elif name in outputs:
            binding[name] = Out(name)
        else:
            binding[name] = T(name)
    return verify(function, binding, definitions)


OF_RMS = """
def f(dy, x, weight, rms):
    x_hat = x / rms[:, None]
    wdy = dy * weight
    c1 = (wdy * x_hat).mean(1, keepdims=True)
    return (wdy - x_hat * c1) / rms[:, None]
"""


@pytest.mark.parametrize(
    ("old", "new", "said", "kind"),
    [
        ("", "", "(M,)", NOT_READ),
        ("- x_hat", "+ x_hat", "(M,)", NOT_READ),
        ("/ rms", "* rms", "rstd", PROVED),
        ("/ rms", "/ rms", "rstd", REFUTED),
    ],
)
def test_nothing_is_refuted_by_a_tensor_that_nobody_defined(old, new, said, kind):
    text = OF_RMS.replace(old, new)
    verdict = verify(text, NORMS["rms"], outputs=("dx",), rms=said)
    assert verdict.kind == kind, verdict
    assert "no tensor of the definitions" in verdict.why or kind != NOT_READ
