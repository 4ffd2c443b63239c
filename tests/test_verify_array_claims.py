"""Programs of arrays and loops, each with the verdict that it is due, in a table that is read here; proofs are run."""

import re
from inspect import signature

import numpy as np
import pytest
from homework_solutions import of_source
from replays import ran_as_read
from tables import blocks, claims, edits

from normgrad.mistakes.edits import edited
from normgrad.verify import (
    LIMIT,
    PROGRAM,
    PROGRAM_COUNT,
    Out,
    T,
    eps,
    log_softmax,
    norm,
    softmax,
    verify,
)
from normgrad.verify.verdict import NOT_READ, PROVED, REFUTED, WRONG

NORMS = {"rms": norm(), "layer": norm(center=True, bias=True), "own": None}
NORMS |= {"softmax": softmax(), "log_softmax": log_softmax()}
KINDS = {"proved": PROVED, "refuted": REFUTED, "not read": NOT_READ, "wrong": WRONG}
KINDS[WRONG] = WRONG
LINES = {
    "numpy": "import math\nimport numpy as np\n",
    "torch": "import math\nimport torch\n",
}
LINES["loops"] = LINES["numpy"]
# Right programs, into which verify_array_guards.txt puts lines.
RIGHT = {
    "numpy": """
def f(x, weight, eps):
    r = 1 / np.sqrt((x * x).mean(1, keepdims=True) + eps)
    y = x * r * weight
    return y
""",
    "torch": """
def f(x, weight, eps):
    r = (x.square().mean(1, keepdim=True) + eps).rsqrt()
    y = x * r * weight
    return y
""",
    "loops": """
def f(x, weight, eps, y):
    M, N = x.shape
    for i in range(M):
        s = 0.0
        for j in range(N):
            s += x[i, j] ** 2
        for j in range(N):
            y[i, j] = x[i, j] / np.sqrt(s / N + eps) * weight[j]
""",
    "sums": """
def f(dy, x, rstd, dw, program, programs):
    M, N = x.shape
    for i in range(M * program // programs, M * (program + 1) // programs):
        for j in range(N):
            dw[program, j] += dy[i, j] * x[i, j] * rstd[i]
""",
}
SHARE = "range(M * program // programs, M * (program + 1) // programs)"
RIGHT["shared"] = RIGHT["loops"].replace("range(M)", SHARE)
RIGHT["shared"] = RIGHT["shared"].replace("y):", "y, program, programs):")
OUTPUTS = {"y": Out("y"), "t": Out("rstd"), "dw": Out("dw", "p, j")}
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


def verdict_on(library, name, outputs, said, program):
    """The verdict on a program of the table."""
    if library == "torch":
        pytest.importorskip("torch")
    text = LINES[library] + program + "\n"
    outputs = None if outputs == "-" else outputs.split(",")
    if library == "loops":
        stored = {name: Out(name) for name in outputs}
        return of_loops(text, NORMS[name], stored, said)
    definitions = (text, "forward") if name == "forward" else NORMS[name]
    options = {"library": library, "run": True, "name": "f"}
    return verify(text, definitions, outputs, **options, **said)


@pytest.mark.parametrize(
    ("kind", "words", "library", "name", "outputs", "said", "program"), list(cases())
)
def test_a_program_of_arrays_has_the_verdict_that_it_is_due(
    kind, words, library, name, outputs, said, program
):
    verdict = verdict_on(library, name, outputs, said, program)
    assert verdict.kind == kind, verdict
    assert words in str(verdict)
    assert not set(said) & set(re.findall(r"\w+(?=\[)", str(verdict.counterexample)))
    if kind == REFUTED:
        for replay in ran_as_read(verdict):
            assert replay.is_as_read and not replay.is_misread


def idioms():
    """The columns of the test for each program of verify_idioms.txt."""
    for kind, header, text in blocks("verify_idioms.txt"):
        about, _, words = header.partition(" -- ")
        library, norm_name, name = about.split()
        case = KINDS.get(kind), words, library, norm_name, name, text
        yield pytest.param(*case, id=f"{about} {text}"[:150].replace("\n", "|"))


@pytest.mark.parametrize(
    ("kind", "words", "library", "norm_name", "name", "text"), list(idioms())
)
def test_a_program_as_people_write_it_has_the_verdict_that_it_is_due(
    kind, words, library, norm_name, name, text
):
    if library == "torch":
        pytest.importorskip("torch")
    asked = LINES[library] + text + "\n", NORMS[norm_name]
    options = {"library": library, "name": name, "run": True}
    if kind is None:
        with pytest.raises(ValueError, match=re.escape(words)):
            verify(*asked, **options)
        return
    verdict = verify(*asked, **options)
    assert verdict.kind == kind, verdict
    assert words in str(verdict)


@pytest.mark.parametrize(
    ("verdict", "_", "line"), list(claims("verify_array_guards.txt"))
)
def test_a_right_program_with_other_lines_has_the_verdict_that_it_is_due(
    verdict, _, line
):
    about, words = line.partition(" -- ")[::2]
    base, _, text = about.partition(": ")
    library = "torch" if base == "torch" else "numpy"
    if library == "torch" or "torch" in text:
        pytest.importorskip("torch")
    if " => " not in text:
        text = rf"return y => {text}\n    return y"
    program = edited(LINES[library] + RIGHT[base], edits(text), base)
    if base in ("numpy", "torch"):
        result = verify(program, NORMS["rms"], ("y",), library=library, name="f")
    else:
        result = of_loops(program, NORMS["rms"], OUTPUTS, {})
    assert result.kind == KINDS[verdict], result
    assert words in str(result)


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


def test_a_number_that_is_taken_for_0_stands_in_the_claim():
    edit = (
        "y[i, j] = x[i, j] / np.sqrt(s / N + eps) * weight[j]",
        ("y[i, j] = 3.0 if s > 0 else x[i, j] / np.sqrt(s / N + eps) * weight[j]"),
    )
    text = edited(LINES["loops"] + RIGHT["loops"], [edit], "loops")
    assert of_loops(text, NORMS["rms"], OUTPUTS, {}).kind != PROVED
    verdict = of_loops(text, NORMS["rms"], OUTPUTS, {}, zero=True)
    assert verdict and "Sum(x[i, r]**2, (r, 1, N)) is 0 in every row" in verdict.claim


REFERENCES = """
x.mean(1) | x.mean(1, keepdims=True)
x.mean(1, keepdims=True) | x.mean(1)
x.mean(1, keepdims=True) | x.mean(1, keepdims=True)
x.mean(0) | x.mean(0, keepdims=True)
x.mean(0) | x.mean(0)[:, None]
x.mean(0, keepdims=True) | x.mean(0, keepdims=True)
x.mean(0, keepdims=True) | x.mean(0)[None]
x | x[None]
x[:, None] | x
x[:, None] | x[None]
x[None] | x[None]
x.sum() | x.sum()
x.sum() | x.sum()[None]
x.sum()[None] | x.sum((0, 1), keepdims=True)
(x, x.mean(1)) | (x, x.mean(1))
(x, x.mean(1)) | (x, x.mean(1, keepdims=True))
"""


@pytest.mark.parametrize("row", REFERENCES.split("\n")[1:-1])
def test_a_result_has_the_axes_of_its_reference_s(row):
    texts, shapes = [], []
    for name, result in zip("fg", row.split(" | "), strict=True):
        text = f"{LINES['numpy']}def {name}(x):\n    return {result}\n"
        results = of_source(text)[name](np.ones((3, 5)))
        parts = results if isinstance(results, tuple) else (results,)
        shapes.append([np.shape(part) for part in parts])
        texts.append(text)
    verdict = verify(texts[0], (texts[1], "g"), name="f")
    assert bool(verdict) == (shapes[0] == shapes[1]), verdict
    assert bool(verdict) or (
        "f returns y" in verdict.why and ", and g as (" in str(verdict)
    )


def test_a_number_whose_defaults_differ_stands_in_the_claim():
    words = "for one eps given to both, as their defaults differ: 1e-06 and 1e-05"
    for own, other, is_said in (
        ("eps=1e-6", "eps=1e-5", True),
        ("epsilon=1e-6", "eps=1e-5", True),
        ("eps=1e-6", "eps=1e-6", False),
        ("eps", "eps=1e-5", False),
    ):
        text = f"def f(x, {own}):\n    return x * {own.partition('=')[0]}\n"
        text += f"def g(x, {other}):\n    return x * eps\n"
        verdict = verify(text, (text, "g"), name="f", library="numpy")
        assert verdict and (words in str(verdict).split("\n")[0]) == is_said
    text = "def f(x, k=2):\n    return x * k\ndef g(x, k=3):\n    return x * k\n"
    verdict = verify(text, (text, "g"), name="f", library="numpy")
    assert verdict.kind == REFUTED


@pytest.mark.parametrize("name", ["weigth", "runn", "rstd"])
def test_a_word_that_names_no_parameter_is_refused_beside_a_forward(name):
    text = "def f(dy, x):\n    return dy\ndef g(x, shift=0):\n    return x + shift\n"
    options = {"name": "f", "library": "numpy"}
    assert verify(LINES["numpy"] + text, (text, "g"), ("dx",), **options)
    assert verify(LINES["numpy"] + text, (text, "g"), ("dx",), **options, shift="N")
    with pytest.raises(ValueError, match=f"^{name}: is no parameter of the program or"):
        verify(text, (text, "g"), ("dx",), **options, **{name: "rstd"})


def of_loops(text, definitions, outputs, said, **options):
    function = of_source(text)["f"]
    binding = {}
    launched = {"eps": eps, "program": PROGRAM, "programs": PROGRAM_COUNT}
    launched["most"] = LIMIT
    for name in signature(function).parameters:
        if name in launched:
            binding[name] = launched[name]
        elif name in outputs:
            binding[name] = outputs[name]
        elif name in said:
            binding[name] = T(said[name], "i")
        else:
            binding[name] = T(name)
    return verify(function, binding, definitions, **options)
