"""What a reading says: the difference of an edit, exactly; what was believed, where one edit explains it."""

import time

import homework_edits
import homework_variants
import pytest
from homework_solutions import checked
from wrong_solutions import wrong

from normgrad.homework import solutions
from normgrad.homework.gravity import GRAVITY
from normgrad.homework.named import named
from normgrad.homework.reading import beliefs, child
from normgrad.homework.reading.child import in_child
from normgrad.homework.reading.tasks import RIGHT, Reads, read
from normgrad.homework.task import find
from normgrad.mistakes.edits import edited
from normgrad.mistakes.table import MISTAKES

MOST, FEW = 8, 4


@pytest.mark.parametrize(
    "task", sorted(homework_edits.SUBJECTS.keys() - {"layernorm-function"})
)
def test_random_edits_are_read_back(task):
    """All but one have their difference or a change that is run, and what a run does not confirm is not said."""
    if task in homework_edits.KERNELS:
        pytest.importorskip("triton")
    if task in ("learned power", "instance norm"):
        pytest.importorskip("torch")
    most = MOST if task in homework_edits.TASKS else FEW
    read_back = homework_edits.read_edits(task, most, seed=1)
    assert len(read_back) == most
    assert not any(edit.false for edit in read_back), read_back
    assert sum(edit.is_exact for edit in read_back) >= most - 1, read_back


@pytest.mark.parametrize(("name", "function"), homework_variants.RIGHT)
def test_nothing_is_said_of_what_is_right(name, function):
    task = find(name)
    if task.reads is not None:
        titles = {each.title for each in read(task.reads, "", function, {"y", "dx"})}
        assert not titles or titles.pop().startswith((RIGHT, "Not read"))


def test_what_was_done_to_a_term_stands_for_one_mistake():
    rows = [
        row for own in MISTAKES.values() if own.edits for row in own.edits.split("|")
    ]
    assert len(beliefs.KEYS) == len(rows) + 1, rows  # no edits, no row
    for row in beliefs.KEYS.keys() - {""}:
        edits = row.split(" & ")
        assert edits == sorted(edits) and all("; " in edit for edit in edits), row


C1, DX = (
    "c1 = (x_hat * wdy).mean(-1, keepdims=True)",
    "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw = (dy",
)
# {edits of LayerNorm's backward: (output, its equation, what is believed)}; the rest stands in test_homework_wrong.py
READ = {
    "c2 has another sign": (
        [(DX, DX.replace("- c2", "+ c2"))],
        "dx = rstd * wdy + rstd * mean(wdy) - rstd * x_hat * mean(x_hat * wdy)",
        ["c2-sign"],
    ),
    "means of each other": (
        [(DX, DX.replace("c2 - x_hat * c1", "c1 - x_hat * c2"))],
        "dx = rstd * wdy - rstd * mean(x_hat * wdy) - rstd * x_hat * mean(wdy)",
        ["c1-for-c2"],
    ),
    "two edits of one term have no name": (
        [(C1, "c1 = 2 * wdy.mean(-1, keepdims=True)")],
        "dx = rstd * wdy - rstd * mean(wdy) - 2 * rstd * x_hat * mean(wdy)",
        ["unknown"],
    ),
    "nor have two edits of every term": (
        [("wdy = weight * dy\n    c1", "wdy = x_hat * dy\n    c1")],
        "dx = rstd * x_hat * dy - rstd * mean(x_hat * dy)"
        " - rstd * x_hat * mean(x_hat**2 * dy)",
        ["unknown"],
    ),
    "a sum over the rows": (
        [("db = dy.sum(0)\n    return", "db = dy.sum(0) / len(dy)\n    return")],
        "db = mean(dy, axis=0)",
        ["rows-averaged"],
    ),
    "centred with the mean of a column": (
        [("x_hat = (x - mean[:, None]) * rstd", "x_hat = (x - x.mean(0)) * rstd")],
        "dx = rstd * wdy - rstd * mean(wdy) - rstd * x_hat * mean(x_hat * wdy),"
        " x_hat = rstd * (x - mean(x, axis=0))",
        ["wrong-axis"] * 2,
    ),
    "a number for N": (
        [(C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / 8")],
        "dx = rstd * wdy - rstd * mean(wdy) - rstd * x_hat * sum(x_hat * wdy) / 8",
        ["one-shape"],
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_equation_and_what_was_believed(name):
    edits, equation, keys = READ[name]
    text = edited(solutions.solution("hw3"), edits, name)
    task = find("layernorm-backward")
    shown = read(task.reads, task.entry, text, {"dx", "dw", "db"})
    assert [each.misconception for each in shown] == keys
    assert shown[0].implemented == equation and shown[0].difference


# None of them is the mean of a column.
OTHERWISE = {
    "twice the mean": "x_hat = (x - 2 * x.mean(0)) * rstd",
    "the sum": "x_hat = (x - x.sum(0)) * rstd",
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_no_equation_has_an_index_that_is_free_and_summed(name):
    edit = ("x_hat = (x - mean[:, None]) * rstd", OTHERWISE[name])
    text = edited(solutions.solution("hw3"), [edit], name)
    task = find("layernorm-backward")
    shown = read(task.reads, task.entry, text, {"dx", "dw", "db"})
    assert not any("over i" in each.implemented for each in shown), shown
    assert "wrong-axis" not in {each.misconception for each in shown}, shown


RMS = "1 / np.sqrt((x * x).mean(-1) + eps)"
RETURNED = ("x_hat * weight, rstd", "x_hat * weight, {}")
# {what rmsnorm_forward returns as rstd, and its root: (key, equation) of each thing that is said}
ROOTS = {
    ("1 / rstd", RMS): [("root-for-reciprocal", "rstd = sqrt(eps + mean(x**2))")],
    ("1 / rstd**2", RMS): [("variance-for-rstd", "rstd = eps + mean(x**2)")],
    ("rstd**2", RMS): [("unknown", "rstd = 1 / (eps + mean(x**2))")],
    ("1 / rstd", "1 / (np.sqrt((x * x).mean(-1)) + eps)"): [
        ("eps-placement", "y = weight * x_hat, x_hat = x / (sqrt(mean(x**2)) + eps)"),
        ("root-for-reciprocal", "rstd = sqrt(mean(x**2)) + eps"),
    ],
    ("rstd", "1 / (np.sqrt((x * x).mean(-1)) + eps)"): [
        ("eps-placement", "y = weight * x_hat, rstd = 1 / (sqrt(mean(x**2)) + eps)"),
    ],
    ("rstd", "1 / np.sqrt((x * x).mean(-1) + eps**2)"): [
        ("eps-squared", "y = weight * x_hat, rstd = 1 / sqrt(eps**2 + mean(x**2))"),
    ],
}


@pytest.mark.parametrize("case", ROOTS)
def test_what_is_returned_as_rstd_is_written_out(case):
    returned, root = case
    text = solutions.solution("hw2").replace(RMS, root)
    text = text.replace(RETURNED[0], RETURNED[1].format(returned))
    task = find("rmsnorm-forward")
    outputs = {"rstd"} if root == RMS else {"y", "rstd"}
    shown = read(task.reads, task.entry, text, outputs)
    assert [(each.misconception, each.implemented) for each in shown] == ROOTS[case]


NUMBERS = {
    "1e-5": "backward's eps is the number 1e-05, not forward's argument",
    "0.001": "backward's eps is the number 0.001, not forward's argument",
    "0": "eps is missing",
}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_for_eps_is_no_other_place_of_it(torch, number):
    edit = ("normalized(wide(x), ctx.eps)", f"normalized(wide(x), {number})")
    report = checked(
        "layernorm-function", edited(solutions.solution("hw3"), [edit], "")
    )
    assert NUMBERS[number] in [each.title for each in report.diagnoses], report


MEAN = "mean = tl.sum(p, axis=1) / N"
RSTD = "rstd = 1 / tl.sqrt(tl.sum(q * q, axis=1) / N + EPS)"
Q = "q = tl.where(mask, p - mean[:, None], 0)"
# {edit of a kernel: (task, one of its equations)}
OF_KERNELS = {
    (RSTD, "rstd = 1 / tl.sqrt(EPS)"): (
        "addnorm-forward",
        "y = bias + weight * x_hat, rstd = 1 / sqrt(eps)",
    ),
    (MEAN, "mean = tl.sum(p, axis=1)"): (
        "addnorm-forward",
        "mean = sum(residual) + sum(x)",
    ),
    (Q, "q = tl.where(mask, p / mean[:, None], 0)"): (
        "addnorm-forward",
        "y = bias + rstd * weight * residual_out / mean,"
        " rstd = 1 / sqrt(1 + eps + 1 / mean**2 * mean(q**2))",
    ),
    ("- x_hat * c1[:, None])", "- x_hat / c1[:, None])"): (
        "addnorm-backward",
        "dx = dresidual_out + rstd * wdy - N * rstd * x_hat / sum(x_hat * wdy)"
        " - rstd * mean(wdy)",
    ),
}


@pytest.mark.parametrize("edit", OF_KERNELS)
def test_an_equation_of_a_kernel(edit):
    pytest.importorskip("triton")
    task, equation = OF_KERNELS[edit]
    subject = homework_edits.Kernels(task)
    said = subject.said(edited(subject.solution, [edit], task))
    assert equation in {diagnosis.implemented for diagnosis in said}, said


def test_what_is_given_up_is_said():
    """By processor time: one that only waits is not given up before another is done."""

    def endless():
        while True:
            pass

    def waiting():
        time.sleep(3)
        return []

    def hungry():
        raise MemoryError

    for reader, why in ((endless, "after 1 s of"), (hungry, "for want of")):
        (diagnosis,) = in_child(reader, seconds=1)
        assert f"was given up {why}" in diagnosis.title and not diagnosis.measured
    assert in_child(waiting, seconds=1) == in_child(lambda: 1 / 0) == []


# Of each homework that is read, wrong solutions, some with a mistake that costs more than its stages.
GRADED = [
    ("hw1", "the delta is 1"),
    ("hw2", "sum for mean"),
    ("hw3", "rstd is a constant"),
    ("hw4", "eps outside the root"),
    ("hw5", "one pass, clamped at 0"),
    ("hw5", "x times its deviation"),
]


@pytest.mark.parametrize(("homework", "name"), GRADED)
def test_no_points_depend_on_a_reading(monkeypatch, libraries, homework, name):
    """They are the same where a reading says nothing, and where it says every grave mistake."""
    mistake = next(each for each in wrong(homework) if each.name == name)
    source, points = mistake.source(homework), []
    for said in ((), [named(key) for key in GRAVITY]):
        monkeypatch.setattr(child, "_in_child", lambda *_, said=said: said)
        report = checked(mistake.task, source)
        points.append([report.points, [stage.points for stage in report.stages]])
        keys = {diagnosis.misconception for diagnosis in report.diagnoses}
    assert points[0] == points[1] and {*GRAVITY} <= keys


# {a change of a solution: (task, the results that are wrong, words of what is said first)}
WHERE_RIGHT = {
    "blocks without a guard": (
        [("share = n2 / np.maximum(n, 1)", "share = n2 / n")],
        "merge-blocks",
        {"mean", "squares"},
        "right for every M and N where n1[i] + n2[i] is not 0",
    ),
    "a count of at least 1": (
        [("n = n1 + n2", "n = np.maximum(n1 + n2, 1)")],
        "merge-blocks",
        {"n"},
        "right for every M and N where n1[i] + n2[i] is at least 1",
    ),
    "another count": (
        [("n = n1 + n2", "n = n1 + 2 * n2")],
        "merge-blocks",
        {"n"},
        "The equation of n is another one",
    ),
    "eps left out of x_hat": (
        [("(q * rstd[:, None])", "(q / np.sqrt(var)[:, None])")],
        "stable-normalize",
        {"x_hat"},
        "eps is missing",
    ),
    "a number for eps": (
        [
            (
                "x_hat = x * rstd\n",
                "rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)\n"
                "    x_hat = x * rstd\n",
            )
        ],
        "rmsnorm-backward",
        {"dx", "dw"},
        "eps is the number 1e-05 of the text",
    ),
    "a number of the module for eps": (
        [
            ("import numpy as np\n", "import numpy as np\nEPS = 1e-5\n"),
            (
                "x_hat = x * rstd\n",
                "rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)\n"
                "    x_hat = x * rstd\n",
            ),
        ],
        "rmsnorm-backward",
        {"dx", "dw"},
        "eps is the number 1e-05 of the text",
    ),
}


@pytest.mark.parametrize("name", WHERE_RIGHT)
def test_a_formula_is_called_right_only_where_it_is(name):
    edits, task, wrong_results, words = WHERE_RIGHT[name]
    task = find(task)
    text = edited(solutions.solution(task.homework), edits, name)
    shown = read(task.reads, task.entry, text, wrong_results)
    assert words in shown[0].title, shown


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("np.round(x, 6)", "Line 3 rounds numbers to some decimals"),
        ("x.round(6)", "Line 3 rounds numbers to some decimals"),
        ("x * (x == x)", "Not read: line 3, a comparison of numbers in arrays"),
    ],
)
def test_a_line_that_rounds_is_named_and_no_other(line, title):
    """verify speaks of what may be rounded where a text compares two arrays, too."""
    text = f"import numpy as np\ndef f(x, weight, eps):\n    return {line}\n"
    reads = Reads(("y",), {})
    (diagnosis,) = read(reads, "f", text, ["y"])
    assert diagnosis.title.startswith(title), diagnosis
