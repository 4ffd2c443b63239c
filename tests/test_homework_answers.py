"""Answers that are right in another way, answers that are wrong in ways of their own, and what is no attack at all."""

import numpy as np
import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.homework import grade_file, solutions

DEF = "import numpy as np\ndef rmsnorm_backward(dy, x, weight, rstd):\n    "


def graded(place, source, homework="hw2", seconds=2.0):
    """The Reports of a solution.py with this text."""
    (place / "solution.py").write_text(source, encoding="utf8")
    return grade_file(place / "solution.py", homework, seconds=seconds)


def text(report):
    return " ".join(str(report).split())


# No attack


LINES = {
    "a traceback is printed": (
        "hw2", "import collections, logging, traceback\nPair = collections.namedtuple('Pair', 'a b')\ntry: 1 / 0\n"
               "except ZeroDivisionError: traceback.print_exc(); logging.exception('x')\ntraceback.print_stack()\n"),
    "json's encoder is another": ("hw2", "import json\njson._default_encoder.encode = lambda h: 1 / 0\n"),
    "what is printed": ("hw2", "print('y' * 10**7)\n"),
    "a module beside it": ("hw2", "import helpers\nassert helpers.ONE == 1\n"),
    "float64 for torch": ("hw3", "import torch\ntorch.set_default_dtype(torch.float64)\n"),
    "anomalies": ("hw3", "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
                         "torch.testing.assert_close(torch.ones(2), torch.ones(2))\n"),
}  # fmt: skip


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", LINES)
def test_a_right_solution_may_begin_like_this(tmp_path, name):
    homework, lines = LINES[name]
    if homework == "hw3":
        pytest.importorskip("torch")
    (tmp_path / "helpers.py").write_text("ONE = 1\n", encoding="utf8")
    for report in graded(
        tmp_path, lines + solutions.solution(homework), homework, seconds=10
    ):
        assert report.passed, report


def test_what_a_library_does_not_implement_is_no_stub(tmp_path):
    throws = "return next(_ for _ in ()) if not dy.size else (_ for _ in ()).throw(NotImplementedError('not for Half'))"
    report = graded(tmp_path, DEF + throws)[1]
    assert "not for Half" in text(report) and not report.stub
    assert graded(tmp_path, DEF + "raise NotImplementedError('later')")[1].stub


def test_numbers_that_are_none_warn_nobody(recwarn):
    hw.check(
        "rmsnorm-backward", lambda dy, x, weight, rstd: (x * np.inf, weight * np.nan)
    )
    assert [str(each.message) for each in recwarn] == []


def test_what_a_class_says_about_its_array_does_not_count():
    class Lies(np.ndarray):
        dtype = property(lambda self: np.dtype("float64"))

    def narrow(dy, x, weight, rstd):
        return dy.astype(np.float32).view(Lies), weight

    assert (
        "dx has dtype float32"
        in hw.check("rmsnorm-backward", narrow)["signature and shapes"].message
    )


# One slip in the form


def slip(entry, old, new, homework):
    """The reference's entry with one text replaced."""
    source = solutions.solution(homework)
    assert source.count(old) == 1
    return of_source(source.replace(old, new))[entry]


SLIPS = {
    "rstd is a column": (
        "rmsnorm-forward",
        "weight, rstd\n",
        "weight, rstd[:, None]\n",
        "axis-of-one",
    ),
    "dw is a row": (
        "rmsnorm-backward",
        "(dy * x_hat).sum(0)",
        "(dy * x_hat).sum(0, keepdims=True)",
        "axis-of-one",
    ),
    "no None for eps": (
        "layernorm-function",
        "db.to(weight.dtype), None",
        "db.to(weight.dtype)",
        "nones-left-out",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_the_form_costs_the_stage_of_the_form(name):
    """It is named, and what the numbers are worth is counted."""
    task, old, new, key = SLIPS[name]
    found = hw.describe(task)
    if found.library == "torch":
        pytest.importorskip("torch")
    report = hw.check(task, slip(found.entry, old, new, found.homework))
    first = report["signature and shapes"]
    assert report.points == report.max_points - first.max_points, report
    assert not first.passed and [each.misconception for each in report.diagnoses] == [
        key
    ]


def test_another_shape_is_no_slip():
    """Numbers of other rows or columns, or fewer of them, have no place to be compared at."""

    def flat(dy, x, weight, rstd):
        return dy.ravel(), weight

    assert hw.check("rmsnorm-backward", flat).points == 0


# Right, and written in another way


def by_hypot(x, weight, eps):
    """The root of the sum of squares, one entry after the other, without a square."""
    total = np.full(len(x), np.sqrt(x.shape[1] * x.dtype.type(eps)), x.dtype)
    for column in x.T:
        total = np.hypot(total, column)
    rstd = np.sqrt(x.dtype.type(x.shape[1])) / total
    return (x * weight) * rstd[:, None], rstd


def by_outer_products(dy, x, weight, rstd):
    """Every row's Jacobian as an outer product; dw as a diagonal."""
    x_hat, n, dx = x * rstd[:, None], x.shape[1], np.empty_like(x)
    for i, row in enumerate(x_hat):
        dx[i] = rstd[i] * (
            (np.eye(n, dtype=x.dtype) - np.outer(row, row) / x.dtype.type(n))
            @ (weight * dy[i])
        )
    return dx, np.diag(dy.T @ x_hat).copy()


def by_two_numbers(dy, x, weight, mean, rstd):
    """dx = a wdy + b x + c, with three numbers a row."""
    g, n = dy * weight, x.shape[1]
    b = (g.sum(1) * mean - (g * x).sum(1)) * rstd**3 / n
    c = -b * mean - g.sum(1) * rstd / n
    x_hat = (x - mean[:, None]) * rstd[:, None]
    return (
        rstd[:, None] * g + b[:, None] * x + c[:, None],
        (dy * x_hat).sum(0),
        dy.sum(0),
    )


def by_products(x, eps):
    """Means as products with a vector of 1 / N, after the first entry is taken off."""
    wide = x.astype(np.float32)
    share, first = (
        np.full(wide.shape[1], np.float32(1) / np.float32(wide.shape[1]), np.float32),
        wide[:, :1],
    )
    near = (wide - first) @ share
    q = wide - first - near[:, None]
    left = q @ share
    q = q - left[:, None]
    var = (q * q) @ share
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return (q * rstd[:, None]).astype(x.dtype), first[:, 0] + (near + left), var, rstd


RIGHT = {"rmsnorm-forward": by_hypot, "rmsnorm-backward": by_outer_products, "layernorm-backward": by_two_numbers,
         "stable-normalize": by_products}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_in_another_way(name):
    for seed in range(10):
        report = hw.check(name, RIGHT[name], seed=seed)
        assert report.passed, report


# Wrong, and what is said about it


def mean(a):
    return a.mean(-1, keepdims=True)


WRONG_DX = {
    "c1 and c2 exchanged": (lambda g, h, r, w, dy: r * (g - mean(h * g) - h * mean(g)), "c1-for-c2",
                            "dx = rstd * (wdy - mean(x_hat * wdy) - x_hat * mean(wdy))"),
    "the weight once more in c1": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean(h * g * w)), "unknown",
                                   "dx = rstd * (wdy - mean(wdy) - x_hat * mean(weight * x_hat * wdy))"),
    "mean of dy beside the bracket": (lambda g, h, r, w, dy: r * (g - h * mean(h * g)) - mean(dy),
                                      "weight-in-some-terms rstd-in-some-terms",
                                      "dx = rstd * wdy - mean(dy) - rstd * x_hat * mean(x_hat * wdy)"),
    "the root of rstd": (lambda g, h, r, w, dy: np.sqrt(r) * (g - mean(g) - h * mean(h * g)), "unknown", ""),
    "the last column left out of c1": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean((h * g)[:, :-1])),
                                       "coefficient-c1",
                                       "dx = rstd * (wdy - mean(wdy) - x_hat * mean(x_hat * wdy))   "
                                       "[where the factor is another one in each row]"),
    "half of it": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean(h * g)) / 2, "constant-factor",
                   "dx = 1 / 2 * rstd * (wdy - mean(wdy) - x_hat * mean(x_hat * wdy))"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRONG_DX)
def test_no_diagnosis_comes_from_inputs_that_any_formula_explains(name):
    """One row, or one column, is explained by a wrong factor whatever was computed; ordinary rows are not."""
    formula, expected, implemented = WRONG_DX[name]

    def wrong(dy, x, weight, mean, rstd):
        r = rstd[:, None]
        h = (x - mean[:, None]) * r
        return formula(weight * dy, h, r, weight, dy), (dy * h).sum(0), dy.sum(0)

    diagnoses = hw.check("layernorm-backward", wrong).diagnoses
    assert [each.misconception for each in diagnoses] == expected.split()
    assert {each.implemented for each in diagnoses} == {implemented}


def test_a_part_that_nobody_sees_is_no_other_rstd():
    """x_hat * x_hat averages to 1, so almost nothing is left, in which a third power is not seen."""

    def wrong(dy, x, weight, rstd):
        x_hat, wdy = x * rstd[:, None], weight * dy
        return rstd[:, None] * (wdy - wdy * mean(x_hat * x_hat)), (dy * x_hat).sum(0)

    assert "rstd-value" not in [
        each.misconception for each in hw.check("rmsnorm-backward", wrong).diagnoses
    ]


def test_a_small_change_in_all_rows_is_no_rounding():
    """Normalized twice, rows are shorter by eps / 2; rounding to 16 bits would leave one of them farther off."""

    def wrong(x, weight, eps):
        rstd = ((x * x).mean(-1) + eps) ** -0.5
        x_hat = x * rstd[:, None]
        return x_hat * ((x_hat**2).mean(-1) + eps)[:, None] ** -0.5 * weight, rstd

    assert [
        each.misconception for each in hw.check("rmsnorm-forward", wrong).diagnoses
    ] == ["rstd-value"]
