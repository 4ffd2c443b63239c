"""What people wrote who knew nothing of the grader: each solution is told what it is, and nothing that it is not."""

import numpy as np
import pytest
from homework_solutions import changed, checked, named
from tables import claims, parts

import normgrad.homework as hw


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    return checked(task, changed(hw.describe(task).homework, *edits))


def table():
    """{what was written: (task, edits of the reference, names, the stage that fails)}."""
    rows = {}
    for task, _, line in claims("homework_outsiders.txt"):
        name, pairs, words = parts(line)
        names, _, stage = words.partition(", ")
        rows[name] = task, pairs, set(names.split()) - {"nothing"}, stage
    return rows


WRONG = table()


@pytest.mark.parametrize("name", WRONG)
def test_what_others_wrote_has_its_name(name):
    task, pairs, expected, stage = WRONG[name]
    report = report_of(task, *pairs)
    assert set(named(report)) == expected and not report.passed, report
    assert not stage or not report[stage].passed, report
    if stage == "signature and shapes":  # a slip in the form costs the form alone
        assert report.points == report.max_points - report[stage].max_points


CUT = {
    "x_hat in dw": (("(dy * x_hat).sum(0), dy.sum(0)", "(dy * x_hat.detach()).sum(0), dy.sum(0)"),
                    "no path from x to dw:"),
    "the weight": (("wdy = wide(weight) * dy", "wdy = wide(weight.data) * dy"), "no path from weight to dx:"),
    "the mean": (("q = x - x.mean(-1, keepdim=True)", "q = x - x.mean(-1, keepdim=True).detach()"),
                 "only a part of the path from x to dx, only a part of the path from x to dw:"),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_the_path_that_autograd_does_not_see_is_named(name):
    edit, words = CUT[name]
    report = report_of("layernorm-function", edit)
    assert words in report["gradgradcheck"].message and "forward made" not in str(
        report
    ), report
    assert named(report) == ["constant-to-autograd"]


def test_a_warning_on_a_row_of_zeros_costs_the_point_that_the_page_promises():
    def warns(x, weight, eps):
        size = np.sqrt((x * x).mean(-1))
        scale = np.where(size > 0, size / size, 1)
        rstd = 1 / np.sqrt(size**2 + eps)
        return x * (scale * rstd)[:, None] * weight, rstd

    report = hw.check("rmsnorm-forward", warns)
    assert report.points == report.max_points - 1 and named(report) == ["warns"], report
