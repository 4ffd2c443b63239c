"""Homeworks 1, 6 and 7: expressions at numbers, tests that are tested, operators that nobody has analysed."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import normgrad.homework as hw
from normgrad import numpy_ref
from normgrad.checks.cases import draw
from normgrad.checks.tolerance import bounds
from normgrad.homework import solutions
from normgrad.homework.grade import grade_file
from normgrad.homework.hw6 import backwards
from normgrad.homework.hw6 import checks as hw6
from normgrad.homework.sandbox import remote
from normgrad.homework.sandbox.operations import function
from normgrad.homework.task import homeworks


def graded(place, homework, source):
    """The Reports of a solution.py with this text."""
    (place / "solution.py").write_text(source, encoding="utf8")
    return grade_file(place / "solution.py", homework, seconds=1.0)


def flat(report):
    """The report as one line."""
    return " ".join(str(report).split())


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A second for loading, too."""
    monkeypatch.setattr(remote, "LOAD_SECONDS", 2.0)


# The backwards that a test is tried on


def layer_norm_inputs(rng, rows=4, columns=7):
    """((dy, x, weight, mean, rstd), the reference's gradients, the bounds)."""
    case = draw(rng, rows, columns).without("residual", "dresidual_out")
    saved = numpy_ref.forward(case.x, case.weight, case.bias)
    inputs = case.dy, case.x, case.weight, saved.mean, saved.rstd
    return (
        inputs,
        numpy_ref.backward(case.dy, saved),
        bounds(case.dy, None, saved, "float64"),
    )


@pytest.mark.parametrize("how", backwards.RIGHT)
def test_right_backwards_are_right(rng, how):
    inputs, grads, allowed = layer_norm_inputs(rng)
    found = function(backwards.RIGHT[how]())(*inputs)
    for got, known, bound in zip(found, (grads.dx, grads.dweight, grads.dbias), (allowed.dx, allowed.dw, allowed.db),
                                 strict=True):  # fmt: skip
        assert (np.abs(got - known) <= bound).all()
    assert max(hw6.off(inputs, found).values()) < 1e-12


@pytest.mark.parametrize(
    "subject", backwards.subjects(), ids=lambda subject: subject.mutant.name
)
def test_wrong_backwards_are_wrong_where_they_say(rng, subject):
    """In the output that the stage names, and nowhere else; their text does not say what is wrong."""
    inputs, _, _ = layer_norm_inputs(rng)
    inputs[1][0] = 0.5
    mean, rstd = (
        getattr(numpy_ref.forward(inputs[1]), name) for name in ("mean", "rstd")
    )
    given = *inputs[:3], mean, rstd
    with np.errstate(invalid="ignore"):
        off = hw6.off(given, function(subject.source())(*given))
    assert [name for name in backwards.OUTPUTS if off[name] > 1e-9] == [subject.output]
    assert (
        subject.mutant.name not in subject.source()
        and subject.mutant.mistake not in subject.source()
    )


def test_the_promised_sentence():
    """A belief, why it was not seen, and the equation."""
    text = solutions.solution("hw6")
    old = "normal(columns), normal(columns), normal((rows, columns))"
    assert text.count(old) == 1
    names = {}
    exec(
        text.replace(
            old, "np.ones(columns), np.zeros(columns), np.ones((rows, columns))"
        ),
        names,
    )
    message = hw.check("gradient-test", names["check_backward"], feedback="equation")[
        "wrong backward 1"
    ].message
    assert (
        "rstd does not depend on x" in message
        and "loss that sums up y" in message
        and "ln-dx" in message
    )


TEST = "import numpy as np\ndef check_backward(backward):\n    "
# Loops, exits and imports are those of test_homework_attacks.py, whatever is called.
HOSTILE_TESTS = {
    "asserts nothing": ("backward(*[np.ones((2, 2))] * 2, *[np.ones(2)] * 3)", "accepts a backward that returns zeros"),
    "asserts always": ("backward(*[np.ones((2, 2))] * 2, *[np.ones(2)] * 3); assert False", "rejects a right backward"),
    "never calls": ("assert False", "never called"),
    "another exception": ("backward(1)", "TypeError"),
    "too much": ("backward(*[np.ones((9, 10**5))] * 2, *[np.ones(10**5)] * 3)", "at most 100000 numbers"),
    "shapes that do not fit": ("backward(*[np.ones((9, 1))] * 2, *[np.ones(9)] * 3)", "weight: got shape (9,), needs"),
    "complex numbers": ("backward(*[np.ones((2, 2), complex)] * 2, *[np.ones(2)] * 3)", "dy: got dtype complex128"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_TESTS)
def test_a_hostile_test_ends_in_a_report(tmp_path, name):
    source, words = HOSTILE_TESTS[name]
    (report,) = graded(tmp_path, "hw6", TEST + source)
    assert (
        report.points == 0
        and words in flat(report)
        and "The grader itself" not in flat(report)
    )


# Expressions


SYMBOLS = "from sympy import *\ndef cotangent(w, dy, j, N):\n    "
HOSTILE_EXPRESSIONS = {
    "a text": ("return '__import__(\"os\")._exit(0)'", "dx is a str"),
    "None": ("return None", "dx is None"),
    "too many": ("return w[j], dy[j]", "returned 2 results, needs 1: dx"),
    "NaN": ("return nan", "does not depend on j"),
    "a number": ("return 3", "does not depend on j"),
    "another letter": ("return w[j] * Symbol('t')", "t is free"),
    "outside": ("return w[j] * dy[j + 1]", "which is not there"),
    "endless": ("return Sum(w[j], (Symbol('t'), 1, oo))", "Your dx is"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_EXPRESSIONS)
def test_a_hostile_expression_ends_in_a_report(tmp_path, name):
    pytest.importorskip("sympy")
    source, words = HOSTILE_EXPRESSIONS[name]
    report = {each.task: each for each in graded(tmp_path, "hw1", SYMBOLS + source)}[
        "cotangent"
    ]
    assert (
        report.points == 0
        and words in flat(report)
        and "The grader itself" not in flat(report)
    )


# Operators of the student's own


OPERATOR = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng): return {inputs}
    @staticmethod
    def degenerate(rng): return [Operator.inputs(rng)]
    @staticmethod
    def forward(x): return {forward}
    @staticmethod
    def backward(dy, x): return {backward}
"""
PLAIN = {"inputs": '{"x": rng.standard_normal((3, 4))}', "forward": "(x * x).sum(-1)",
         "backward": "2 * x * dy[:, None]"}  # fmt: skip
HOSTILE_OPERATORS = {
    "the input": ({"forward": "x", "backward": "dy"}, "returns one of its inputs"),
    "a constant": (
        {"forward": "0 * x", "backward": "0 * dy"},
        "the same y for other inputs",
    ),
    "NaN": ({"forward": "x * np.nan", "backward": "dy * np.nan"}, "not finite"),
    "float32": (
        {"inputs": '{"x": rng.standard_normal((3, 4)).astype("f4")}'},
        "needs float64",
    ),
    "a list": ({"inputs": '{"x": [1.0]}'}, "as a list"),
    "no dictionary": ({"inputs": "3"}, "dictionaries"),
    "too large": (
        {"inputs": '{"x": rng.standard_normal((30, 40))}'},
        "more than 400 numbers",
    ),
    "None": ({"backward": "None"}, "The gradient for x is None"),
}


def operator(**changes):
    """The Operator of a text."""
    names = {}
    exec(OPERATOR.format(**PLAIN | changes), names)
    return names["Operator"]


def test_a_plain_operator_has_full_marks():
    report = hw.check("norm-project", operator())
    assert report.passed, report


@pytest.mark.parametrize("name", HOSTILE_OPERATORS)
def test_a_hostile_operator_ends_in_a_report(name):
    changes, words = HOSTILE_OPERATORS[name]
    report = hw.check("norm-project", operator(**changes), seconds=0.5)
    assert (
        report.points == 0
        and words.lower() in flat(report).lower()
        and "The grader itself" not in flat(report)
    )


def test_a_gradient_that_is_right_for_special_inputs_alone_is_told_so():
    """x / |x| on rows of length 1, without the factor 1 / |x|."""
    unit = "{'x': (lambda v: v / np.sqrt((v * v).sum(-1, keepdims=True)))(rng.standard_normal((3, 4)))}"
    length, along = (
        "np.sqrt((x * x).sum(-1, keepdims=True))",
        "(dy * x).sum(-1, keepdims=True)",
    )
    report = hw.check("norm-project", operator(
        inputs=unit, forward=f"x / {length}", backward=f"dy - x * {along} / {length}**2"))  # fmt: skip
    assert "right for the inputs that you draw" in flat(
        report
    ) and "the gradient for x" in flat(report), report


def test_a_backward_that_refuses_other_inputs_is_told_what_it_raised():
    """No word of its gradients, which are right."""
    nearby = "1e-9 < np.abs(x - x.round(3)).max() < 1e-4"  # as differences move them
    report = hw.check("norm-project", operator(backward=f"1 / 0 if {nearby} else 2 * x * dy[:, None]",
                                               inputs='{"x": rng.standard_normal((3, 4)).round(3)}'))  # fmt: skip
    stage = report["second derivatives"]
    assert (
        not stage.passed
        and "ZeroDivisionError" in stage.message
        and "gradients are wrong" not in stage.message
    )


def test_an_overflow_is_told_how_large_the_inputs_are():
    softmax = "np.exp(x) / np.exp(x).sum(-1, keepdims=True)"
    large = operator(
        forward=softmax,
        backward=f"(lambda y: y * (dy - (dy * y).sum(-1, keepdims=True)))({softmax})",
    )
    large.degenerate = staticmethod(lambda rng: [{"x": 1000 * np.eye(3)}])
    assert "The inputs go up to 1e+03" in flat(hw.check("norm-project", large))


@pytest.mark.parametrize(
    ("detached", "words"), [(False, ""), (True, "looks like a constant")]
)
def test_an_operator_in_torch(tmp_path, detached, words):
    """The second worked example; and one whose backward hides from torch that rstd depends on x."""
    pytest.importorskip("torch")
    source = Path(__file__).with_name("homework_gated.py").read_text(encoding="utf8")
    old = "        open_ = torch.sigmoid(gate)\n"
    assert source.count(old) == 1
    source = source.replace(old, old + "        rstd = rstd.detach()\n" * detached)
    (tmp_path / "solution.py").write_text(source, encoding="utf8")
    (report,) = grade_file(tmp_path / "solution.py", "hw7")
    assert report.passed != detached and words in flat(report), report


def test_a_librarys_own_part_is_no_replacement():
    """numpy.random is loaded when it is first used, in the middle of a student's call."""
    import subprocess
    import sys

    code = (
        "import normgrad.homework as hw\n"
        "def f(dy, x, weight, rstd):\n"
        "    import numpy as np\n"
        "    np.random.default_rng(0), np.fft.fft(x)\n"
        "    return dy, weight\n"
        "report = str(hw.check('rmsnorm-backward', f))\n"
        "assert 'replaced' not in report, report\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# The pages


CELL = re.compile(
    r"^```\{code-cell\}.*?\n(?:---\n.*?---\n|(?::[^\n]*\n)*)(.*?)^```$", re.M | re.S
)


@pytest.mark.parametrize("solved", [False, True], ids=["stubs", "reference"])
@pytest.mark.parametrize("homework", ["hw1", "hw6", "hw7"])
def test_a_page_runs(homework, solved):
    """From top to bottom, with the stubs and with the reference in their place."""
    pytest.importorskip("sympy")
    page = Path(__file__).parents[1] / "book" / f"{homework}.md"
    names, reports = {"__name__": "page"}, []
    stub, tasks = "raise NotImplementedError", homeworks()[homework].tasks
    checks = [f'hw.check("{task.name}", {task.entry})' for task in tasks]
    for code in CELL.findall(page.read_text(encoding="utf8")):
        cell = solutions.solution(homework) if solved and stub in code else code
        *before, last = ast.parse(cell).body
        exec(compile(ast.Module(before, []), homework, "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), homework, "eval"), names)
            reports += [shown] if ast.unparse(last).replace("'", '"') in checks else []
        else:
            exec(compile(ast.Module([last], []), homework, "exec"), names)
    assert [report.passed if solved else report.stub for report in reports] == [
        True
    ] * len(tasks)
