"""What the grader says: about results of the wrong kind, endless code, formulas, and commands that are wrong."""

import numpy as np
import pytest

import normgrad.homework as hw
from normgrad.homework import __main__ as shell
from normgrad.homework import solutions
from normgrad.homework.task import Draw
from normgrad.homework.wrong import wrong

DEF = "def rmsnorm_backward(dy, x, weight, rstd):\n    "


def report_of(tmp_path, body, **options):
    (tmp_path / "solution.py").write_text(body, encoding="utf8")
    return hw.grade_file(tmp_path / "solution.py", "hw2", **options)[1]


def mistake(name, task="rmsnorm-backward"):
    """The report of a wrong solution of homework 2."""
    names = {}
    exec(
        next(
            each for each in wrong("hw2") if (each.name, each.task) == (name, task)
        ).source("hw2"),
        names,
    )
    return hw.check(task, names[task.replace("-", "_")], feedback="coefficients")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("None", "What came back is None: is a return missing?"),
        ("{'dx': dy}", "What came back is a dict."),
        ("weight, dy", "The results come in the order dx, dw."),
        ("1, 2", "dx is an int, needs a numpy.ndarray of shape (5, 8)."),
    ],
)
def test_results_of_the_wrong_kind(result, words):
    report = hw.check(
        "rmsnorm-backward", eval(f"lambda dy, x, weight, rstd: ({result})")
    )
    assert words in report.stages[0].message and report.points == 0


def test_a_loop_is_named_by_its_line(tmp_path):
    report = report_of(tmp_path, DEF + "while True: x = x + 1\n", seconds=0.5)
    assert (
        "Line 2 in rmsnorm_backward: while True: x = x + 1" in report.stages[0].message
    )


def test_an_answer_that_takes_long_is_no_loop():
    """The student's function has returned: what takes the time is what the grader does with its answer."""
    sympy = pytest.importorskip("sympy")
    letters = sympy.symbols("r:12", integer=True)

    def contract_delta(x, w, k, N):
        return sympy.Sum(w[k] * x[k], *((each, 1, N) for each in letters))

    messages = [
        stage.message
        for stage in hw.check("contract-delta", contract_delta, seconds=0.2).stages
    ]
    assert "had returned" in messages[0] and not any(
        "loop" in message for message in messages
    ), messages


def test_a_task_after_one_that_never_ends_is_graded(tmp_path):
    """With less time, and in full."""
    text = solutions.solution("hw2").replace(
        "    rstd = 1 / np", "    while True:\n        pass\n    rstd = 1 / np"
    )
    (tmp_path / "solution.py").write_text(text, encoding="utf8")
    forward, backward = hw.grade_file(tmp_path / "solution.py", "hw2", seconds=0.5)
    assert forward.points == 0 and backward.passed


def test_a_test_that_keeps_the_first_backward_for_its_reference_is_told_so(tmp_path):
    """It sees that each backward is itself; in one process it would be right after a right one."""
    kept = """
    rng = np.random.default_rng(0)
    x, weight, bias, dy = draw(rng, 4, 7)
    found = backward(dy, x, weight, *layernorm_forward(x, weight, bias)[1:])
    for one, other in zip(found, vars(draw).setdefault("kept", found)):
        assert np.allclose(one, other)
    return
"""
    text = solutions.solution("hw6").replace(
        "    rng = np.random.default_rng(0)\n", kept
    )
    (tmp_path / "solution.py").write_text(text, encoding="utf8")
    (report,) = hw.grade_file(tmp_path / "solution.py", "hw6")
    assert "what the first backward gives, kept for all others" in str(report), report


def test_what_is_printed_is_shown_from_the_beginning():
    def prints(dy, x, weight, rstd):
        print("here")
        print("\n".join(f"line {number}" for number in range(40)))
        return dy, weight

    text = str(hw.check("rmsnorm-backward", prints)).splitlines()
    at = text.index("  It printed, at first:")
    assert text[at + 1 : at + 3] == ["    here", "    line 0"] and text[-1] == "    ..."


def test_a_formula_comes_with_its_names():
    """Every name beside the arguments is explained once in a report."""
    text = str(mistake("sum for mean"))
    assert text.count("where     x_hat = x * rstd, wdy = dy * weight") == 1


@pytest.mark.parametrize(
    ("name", "yours", "needed"),
    [
        ("eps outside the root", "rstd = 1 / (s + eps)", "rstd = 1 / sqrt(s**2 + eps)"),
        ("the row is centred", "s**2 = mean((x - mean(x))**2)", "s**2 = mean(x**2)"),
    ],
)
def test_the_needed_formula_answers_the_one_that_was_found(name, yours, needed):
    """Two formulas that differ in a statistic do not look the same."""
    diagnosis = mistake(name, "rmsnorm-forward").diagnoses[0]
    assert diagnosis.implemented.endswith(
        f"[where {yours}]"
    ) and diagnosis.right.endswith(f"[where {needed}]")


def test_a_mistake_in_three_results_has_one_heading():
    """N - 1 reaches y, dw and dx: the name once, the formulas three times."""
    pytest.importorskip("torch")
    names = {}
    found = next(
        each
        for each in wrong("hw3")
        if each.misconception == "bessel" and each.task == "layernorm-function"
    )
    exec(found.source("hw3"), names)
    report = hw.check("layernorm-function", names["LayerNorm"], feedback="coefficients")
    same = [each for each in report.diagnoses if each.misconception == "bessel"]
    assert len(same) > 1
    for text in (str(report), report._repr_html_()):
        assert text.count(same[0].title) == 1 and text.count("needed") == len(same)


def test_pytest_says_which_term(tmp_path):
    """The first stage that fails carries the diagnosis; those that follow do not repeat the numbers."""
    (tmp_path / "solution.py").write_text(next(each for each in wrong("hw2") if each.name == "sum for mean"
                                          and each.task == "rmsnorm-backward").source("hw2"))  # fmt: skip
    _, backward = hw.grade_file(tmp_path / "solution.py", "hw2")
    assert (
        "The part of dx along x_hat is wrong" in backward.told("dx, row by row").message
    )
    assert backward.told("gradcheck").message == "follows from the above"


# Wrong arguments


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: hw.check("rmsnorm_backward", print),
            "task: got 'rmsnorm_backward', needs rmsnorm-backward$",
        ),
        (
            lambda: hw.check("rms", print),
            "needs one of rmsnorm-forward, rmsnorm-backward, gradient-norms$",
        ),
        (lambda: hw.check(print, "rmsnorm-backward"), "task: got the function print"),
        (
            lambda: hw.check("rmsnorm-backward", None),
            "target: got None, needs the function or class itself",
        ),
        (lambda: hw.check("rmsnorm-backward", print, seed="3"), "seed: got '3'"),
        (lambda: hw.check("rmsnorm-backward", print, seconds="5"), "seconds: got '5'"),
        (
            lambda: hw.check("rmsnorm-backward", print, seconds=float("nan")),
            "seconds: got nan",
        ),
        (lambda: hw.describe("hw2"), "needs one of rmsnorm-forward, rmsnorm-backward$"),
        (lambda: hw.tasks("hw9"), "homework: got 'hw9', needs one of hw1, hw2"),
        (lambda: hw.grade_file("nowhere.py", "hw2"), "path: got 'nowhere.py'"),
        (
            lambda: Draw(scale=1e300),
            "scale: got 1e\\+300, needs a number from 1e-06 to 1e\\+06",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, words):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        call()


def test_an_integer_of_numpy_is_a_seed():
    assert Draw(np.int64(3)) == Draw(3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("new hw2 --to {file}", "is a file; needs the name of a folder"),
        ("new hw2 --to {file}/below", "Not a directory"),
        ("check {folder}/nowhere", "which does not exist"),
        ("check {folder}/empty", "which holds no solution.py"),
        ("check {folder} --homework hw2 --seconds nan", "seconds: got nan"),
        ("check {folder} --homework hw2 --json {folder}", "Is a directory"),
        (
            "check {folder} --homework hw2 --json {folder}/no/a.json",
            "No such file or directory",
        ),
        ("check {folder} --homework hw2 --seed-file {folder}/no", "cannot be read"),
        ("check {folder} --homework hw2 --seed-file {folder}", "cannot be read"),
        ("check {folder} --homework hw2 --seed-file {file}", "which is not text"),
        ("export nbgrader hw2 --to {file}", "Not a directory"),
    ],
)
def test_a_wrong_command_says_what_it_needs(tmp_path, capsys, arguments, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    (tmp_path / "solution.py").write_text("")
    words_given = arguments.format(folder=tmp_path, file=tmp_path / "file").split()
    assert shell.main(words_given) == 2
    said = capsys.readouterr()
    assert words in said.err and not said.out


def test_a_file_of_another_name_is_graded(tmp_path, capsys):
    (tmp_path / "ada.py").write_text(solutions.solution("hw2"), encoding="utf8")
    assert shell.main(["check", str(tmp_path / "ada.py")]) == 0
    assert "20 of 20 points" in capsys.readouterr().out
