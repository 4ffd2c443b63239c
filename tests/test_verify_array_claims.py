"""Programs of arrays and loops, each with the verdict that it is due, in a table that is read here; proofs are run."""

import re
from inspect import signature

import pytest
from homework_solutions import of_source
from tables import blocks

from normgrad.verify import PROGRAM, PROGRAM_COUNT, Out, T, eps, norm, verify
from normgrad.verify.verdict import NOT_READ, PROVED, REFUTED, WRONG

NORMS = {"rms": norm(), "layer": norm(center=True, bias=True)}
KINDS = {"proved": PROVED, "refuted": REFUTED, "not read": NOT_READ, "wrong": WRONG}
LINES = {
    "numpy": "import math\nimport numpy as np\n",
    "torch": "import math\nimport torch\n",
}
LINES["loops"] = LINES["numpy"]
HEADER = r"(\w+) (\w+) (\S+)(?: (\w+)=(.*?))?(?: -- (.*))?"


def cases():
    """The columns of the test for each program of the table."""
    program = ""
    for kind, header, text in blocks("verify_array_claims.txt"):
        library, name, outputs, given, said, words = re.fullmatch(
            HEADER, header
        ).groups()
        program = text or program
        said = {given: said} if given else {}
        case = KINDS[kind], words or "", library, name, outputs, said, program
        yield pytest.param(*case, id=f"{header} {program}"[:150].replace("\n", "|"))


@pytest.mark.parametrize(
    ("kind", "words", "library", "name", "outputs", "said", "program"), list(cases())
)
def test_a_program_of_arrays_has_the_verdict_that_it_is_due(
    kind, words, library, name, outputs, said, program
):
    if library == "torch":
        pytest.importorskip("torch")
    text = LINES[library] + program + "\n"
    outputs = None if outputs == "-" else outputs.split(",")
    if library == "loops":
        verdict = of_loops(text, NORMS[name], outputs, said)
    else:
        definitions = (text, "forward") if name == "forward" else NORMS[name]
        options = {"library": library, "run": True, "name": "f"}
        verdict = verify(text, definitions, outputs, **options, **said)
    assert verdict.kind == kind, verdict
    assert words in str(verdict)
    assert not set(said) & set(re.findall(r"\w+(?=\[)", str(verdict.counterexample)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"    return {' + '.join(['x'] * 2000)}\n", "line 4: too deep"),
        ("    x = x * eps + 1\n" * 700 + "    return x\n", "too deep"),
        ("    x = np.exp(x)\n" * 700 + "    return x\n", "too deep"),
    ],
)
def test_what_is_too_deep_is_not_read(body, words):
    text = LINES["numpy"] + "def f(x, eps):\n" + body
    verdict = verify(text, NORMS["rms"], ("y",))
    assert verdict.kind == NOT_READ and f"{words} to be followed" in str(verdict)


def of_loops(text, definitions, outputs, said):
    function = of_source(text)["f"]
    binding = {}
    launched = {"eps": eps, "program": PROGRAM, "programs": PROGRAM_COUNT}
    for name in signature(function).parameters:
        if name in launched:
            binding[name] = launched[name]
        elif name in outputs:
            binding[name] = Out(name)
        elif name in said:
            binding[name] = T(said[name], "i")
        else:
            binding[name] = T(name)
    return verify(function, binding, definitions)
