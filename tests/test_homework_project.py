"""Homework 7 as students do it: operators of their own, right and wrong, and some on which nothing can be learned."""

import pytest
from homework_operators import OPERATORS, TRIVIAL, WEIGHT_NORM
from homework_solutions import changed, checked, flat, graded, of_source

import normgrad.homework as hw

WRONG = [(name, belief) for name, (_, wrong) in OPERATORS.items() for belief in wrong]


def written(name, belief=None):
    """(source, what the wrong gradient should lead to) of an operator."""
    source, wrong = OPERATORS[name]
    if belief is None:
        return source, None
    (old, new), *expected = wrong[belief]
    assert source.count(old) == 1, old
    return source.replace(old, new), expected


@pytest.mark.parametrize("name", OPERATORS)
def test_a_right_operator_has_full_marks(name):
    target = of_source(written(name)[0])["Operator"]
    for seed in range(20):
        report = hw.check("norm-project", target, seed=seed)
        assert report.passed, report


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_right_operator_has_full_marks_in_the_shell(tmp_path, name):
    (report,) = graded(tmp_path, written(name)[0], "hw7")
    assert report.passed, report


@pytest.mark.parametrize(("name", "belief"), WRONG)
def test_a_wrong_gradient_is_found_where_it_is(name, belief):
    source, (stage, array) = written(name, belief)
    target = of_source(source)["Operator"]
    for seed in range(5):
        report = hw.check("norm-project", target, seed=seed)
        assert not report[stage].passed and report.points < report.max_points, report
        assert f"The gradient for {array}, at" in report[stage].message, report


PLAIN = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng): return {{"x": rng.standard_normal((3, 4)){more}}}
    @staticmethod
    def degenerate(rng): return [Operator.inputs(rng)]
    @staticmethod
    def forward(x{names}): return {forward}
    @staticmethod
    def backward(dy, x{names}): return {backward}
"""


@pytest.mark.parametrize("name", TRIVIAL)
def test_a_trivial_operator_is_told_what_is_missing(name):
    """No points for a gradient that is the same everywhere, and a sentence about what a project needs."""
    forward, backward, words = TRIVIAL[name]
    source = PLAIN.format(more="", names="", forward=forward, backward=backward)
    for seed in range(5):
        report = checked("norm-project", source, seed=seed)
        assert report.points == 0 and "The grader itself" not in str(report)
        message = report["description"].message
        assert words in message and "the rubric" in message, report


def test_what_forward_does_not_use_is_named():
    source = PLAIN.format(more=', "bias": rng.standard_normal(4)', names=", bias", forward="(x * x).sum(-1)",
                          backward="(2 * x * dy[:, None], 0 * bias)")  # fmt: skip
    report = checked("norm-project", source)
    assert "y does not depend on bias" in report["description"].message


SCALED = """
import numpy as np
class Operator:
    kept = {}
    @staticmethod
    def inputs(rng):
        return {"x": rng.standard_normal((5, 6)), "u": rng.standard_normal(6)}
    @staticmethod
    def degenerate(rng):
        return [{"x": np.zeros((2, 4)), "u": rng.standard_normal(4)}]
    @staticmethod
    def forward(x, u):
        rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
        Operator.kept["rstd"] = rstd
        return u * x * rstd
    @staticmethod
    def backward(dy, x, u):
        rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
        x_hat = x * rstd
        wdy = dy * u
        return rstd * (wdy - x_hat * (x_hat * wdy).mean(-1, keepdims=True)), (dy * x_hat).sum(0)
"""


def test_a_backward_that_needs_what_forward_kept_is_told_so(tmp_path):
    own = "        rstd = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)\n        x_hat"
    text = SCALED.replace(own, '        rstd = Operator.kept["rstd"]\n        x_hat')
    (report,) = graded(tmp_path, text, "hw7")
    assert "KeyError" in report["shapes and dtypes"].message, report
    assert "it reads what forward has kept" in report["shapes and dtypes"].message, (
        report
    )


Y = "return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]"
WDY = "wdy = grouped(dy * weight[:, None])"


def test_a_bias_that_cancels_is_allowed_its_rounding():
    """It moves neither y nor its own gradient, and both are sums in which it, or dy, was taken off again."""
    y = Y.removeprefix("return ")
    centred = f"y = {y}\n        return y - y.mean(2, keepdims=True)"
    dy = f"dy = dy - dy.mean(2, keepdims=True)\n        {WDY}"
    report = checked("norm-project", changed("hw7", (Y, centred), (WDY, dy)))
    assert report.passed, report


READ = {
    "weight norm": ("the length is a constant", "yours less what forward has: 1000000"),
    "mean absolute value": (
        "no weight",
        "The gradient for x is right where weight is 1",
    ),
    "softmax": (
        "temperature once",
        "stands where -(dz * x).sum() / temperature / temperature makes the gradient right",
    ),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("where", ["cell", "shell"])
def test_a_forward_that_can_be_read_has_its_gradients_worked_out(tmp_path, name, where):
    belief, words = READ[name]
    source, _ = written(name, belief)
    if where == "shell":
        (report,) = graded(tmp_path, source, "hw7")
    else:
        report = checked("norm-project", source, feedback="solution")
    assert words in flat(report), report


# One change of the text makes each of them right.
NEARLY = {
    "parentheses": WEIGHT_NORM.replace(
        "r * (dy - unit * dg[:, None])", "r * dy - unit * dg[:, None]"
    ),
    "a sum too many": changed(
        "hw7", ("wdy.mean(-1, keepdims=True)", "wdy.mean(-1, keepdims=True).sum()")
    ),
}


@pytest.mark.parametrize("name", NEARLY)
def test_parentheses_and_a_sum_too_many_are_found(name):
    report = checked("norm-project", NEARLY[name])
    assert "right with one change of line" in flat(report), report
