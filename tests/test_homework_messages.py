"""What the grader says: about results of the wrong kind, endless code, formulas, and commands that are wrong."""

import numpy as np
import pytest
import sympy
from homework_solutions import graded

import normgrad.homework as hw
from normgrad.homework import __main__ as shell
from normgrad.homework import messages, solutions
from normgrad.homework.sandbox.student import Outcome
from normgrad.homework.task import Draw, find

DEF = "def rmsnorm_backward(dy, x, weight, rstd):\n    "


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
    text = DEF + "while True: x = x + 1\n"
    _, report = graded(tmp_path, text, "hw2", seconds=0.5)
    assert (
        "Line 2 in rmsnorm_backward: while True: x = x + 1" in report.stages[0].message
    )


def test_an_answer_that_takes_long_is_no_loop():
    """The student's function has returned: what takes the time is what the grader does with its answer."""
    letters = sympy.symbols("r:12", integer=True)

    def contract_delta(x, w, k, N):
        return sympy.Sum(
            w[sum(letters)] * x[k], *((letter, 1, N) for letter in letters)
        )

    messages = [
        stage.message
        for stage in hw.check("contract-delta", contract_delta, seconds=0.2).stages
    ]
    assert "had returned" in messages[0] and not any(
        "loop" in message for message in messages
    ), messages


# Wrong arguments


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: hw.check("rmsnorm_backward", print),
            "task: got 'rmsnorm_backward', needs one of .*, rmsnorm-backward, ",
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
        (lambda: hw.describe("hw2"), "task: got 'hw2', needs one of "),
        (lambda: hw.misconceptions("cotangents"), "needs one of .*, cotangent, "),
        (
            lambda: hw.check("rmsnorm-backward", print, feedback="all"),
            "feedback: got 'all'",
        ),
        (lambda: Draw(seed=-1), "seed: got -1"),
        (lambda: hw.tasks("hw9"), "homework: got 'hw9', needs one of hw1, hw2"),
        (lambda: hw.grade_file("nowhere.py", "hw2"), "path: got 'nowhere.py'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, words):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        call()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("new hw2 --to {file}", "is a file; needs the name of a folder"),
        ("new hw2 --to {file}/below", "Not a directory"),
        ("check {folder}/nowhere", "which does not exist"),
        ("check {folder}/empty", "which has no solution.py and no notebook"),
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


# What a call's failure is called


def failed(**facts):
    return Outcome(None, {"what": "raised", "bases": [], **facts})


LINE = {"line": 3, "function": "f", "code": "y = g(x)"}
FAILURES = {
    "died with a status": (failed(what="died", code=3), "exit status 3. Take calls"),
    "died of a signal": (failed(what="died", code=-11), "SIGSEGV, a crash"),
    "refused": (
        failed(type="E", message="called os.kill", bases=["Refused"]),
        "Your code called os.kill, which a graded solution may not do.",
    ),
    "exit": (failed(type="SystemExit", message="0"), "Your code called exit."),
    "recursion": (failed(type="RecursionError", message="m"), "without end"),
    "memory": (
        failed(type="MemoryError", bases=["MemoryError"]),
        "more memory than the 2 GB",
    ),
    "torch's memory": (
        failed(type="RuntimeError", message="you can't allocate memory"),
        "more memory than the 2 GB",
    ),
    "no GPU": (
        failed(type="RuntimeError", message="0 active drivers"),
        "Take it off the kernel.",
    ),
    "too many arguments": (
        failed(type="TypeError", message="takes 1 positional argument"),
        "It could not be called with (dy, x, weight, rstd). TypeError: takes 1",
    ),
    "an argument of a library's function": (
        failed(type="TypeError", message="takes 1 positional argument", **LINE),
        "Your code raised TypeError: takes 1 positional argument. Line 3 in f: y = g(x)",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_by_its_cause(name):
    outcome, words = FAILURES[name]
    assert words in str(messages.failure(outcome, find("rmsnorm-backward")))


@pytest.mark.parametrize(
    ("shape", "wrong", "words"),
    [
        ((3,), [1], "1 of 3 entries are wrong."),
        ((1, 2), [0], "The row is wrong, in column 0 of 2."),
        ((2, 2), [1, 2], "All rows are wrong."),
        ((3, 2), [1, 5], "Every second row is wrong, from row 0 on."),
        ((4, 2), [2, 3, 6], "Every second row is wrong, from row 1 on."),
        ((4, 2), [0, 3], "Rows 0, 1 are wrong, of 4 rows."),
        ((2, 3), [0, 4], "All rows are wrong, in columns 0, 1 of 3."),
        ((2, 2, 2), [1, 6], "2 of 4 rows are wrong."),
    ],
)
def test_wrong_entries_are_counted(shape, wrong, words):
    got, expected = np.zeros(shape), np.zeros(shape)
    got.flat[wrong] = 1
    error, bound, sentence = messages.compare("dx", got, expected, 0.5)
    assert (error, bound) == (1, 0.5) and sentence.endswith(words)
