"""What people wrote who knew nothing of the grader: each solution is told what it is, and nothing that it is not."""

import numpy as np
import pytest
from homework_solutions import changed, checked, named

import normgrad.homework as hw


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    return checked(task, changed(hw.describe(task).homework, *edits))


C1 = "c1 = (x_hat * wdy).mean(-1, keepdims=True)"
BEFORE = "    dw = (dy * x_hat).sum(0)\n    return dx, dw\n"
SLOPES = """    h, dx, w = 1e-6, np.empty_like(x), weight
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        ys = [w * a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) for a in (up, down)]
        dx[i] = (dy * (ys[0] - ys[1])).sum() / (2 * h)
"""
STD = "1 / np.sqrt((x * x).mean(-1) + eps)"
F_OUT, LN_DX = "x_hat * weight, rstd", "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw ="
HAT = "x_hat = (x - mean[:, None]) * rstd"
RETURN = "return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None"
Y_OUT = "return (x_hat * wide(weight) + wide(bias)).to(x.dtype)"

# {what was written: (task, edits of the reference, the names that the report gives, the stage that fails)}
WRONG = {
    "a row is left out": (
        "layernorm-backward",
        [("db = dy.sum(0)\n    return", "db = dy[1:].sum(0)\n    return")],
        "rows-left-out",
        "db",
    ),
    "results swapped, of an operator": (
        "norm-project",
        [("return dx, dweight, dbias", "return dx, dbias, dweight")],
        "results-swapped",
    ),
    "a division by 8": (
        "rmsnorm-backward",
        [(C1, C1.replace(".mean(-1", ".sum(-1") + " / 8")],
        "one-shape",
        "dx, row by row",
    ),
    "five rows of eight": (
        "rmsnorm-forward",
        [("x * rstd[:, None]", "x.reshape(5, 8) * rstd[:, None]")],
        "one-shape",
        "y",
    ),
    "five sums": (
        "layernorm-backward",
        [
            (
                "db = dy.sum(0)\n    return",
                "db = sum(dy[i] for i in range(5))\n    return",
            )
        ],
        "one-shape",
        "db",
    ),
    "results swapped, in NumPy": (
        "layernorm-backward",
        [("    return dx, dw, db\n", "    return dx, db, dw\n")],
        "results-swapped",
    ),
    "results swapped, expressions": (
        "parameter-sums",
        [("return dw, db", "return db, dw")],
        "results-swapped",
    ),
    "a projection over its own length": (
        "rmsnorm-backward",
        [
            (
                C1,
                "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x_hat**2).sum(-1, keepdims=True)",
            )
        ],
        "unknown",
    ),
    "central differences": ("rmsnorm-backward", [(BEFORE, SLOPES + BEFORE)], "unknown"),
    "computed in float32": (
        "rmsnorm-backward",
        [("x_hat = x * rstd\n", "x_hat = (x * rstd).astype(np.float32)\n")],
        "narrow-arithmetic",
    ),
    "computed in float32 by torch": (
        "layernorm-function",
        [
            (
                "return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t",
                "return t.float()",
            )
        ],
        "narrow-arithmetic",
    ),
    "eps is left out in rstd alone": (
        "rmsnorm-forward",
        [(F_OUT, "x_hat * weight, 1 / np.sqrt((x * x).mean(-1))")],
        "eps-missing",
    ),
    "the variance is returned": (
        "rmsnorm-forward",
        [(F_OUT, "x_hat * weight, 1 / rstd**2")],
        "variance-for-rstd",
    ),
    "two mistakes in one root": (
        "rmsnorm-forward",
        [(STD, "1 / (np.linalg.norm(x, axis=-1) + eps)")],
        "eps-placement reduce-exchanged",
    ),
    "summed over the rows, divided by N": (
        "rmsnorm-backward",
        [(C1, "c1 = (x_hat * wdy).sum(0) / x.shape[1]")],
        "wrong-axis",
    ),
    "c1 and c2 in each other's place": (
        "layernorm-backward",
        [(LN_DX, LN_DX.replace("c2 - x_hat * c1", "c1 - x_hat * c2"))],
        "c1-for-c2",
    ),
    "mean and rstd in each other's place": (
        "layernorm-backward",
        [(HAT, "mean, rstd = rstd[:, 0], mean[:, None]\n    " + HAT)],
        "unknown",
    ),
    "y is saved": (
        "layernorm-function",
        [
            (
                "ctx.save_for_backward(x, weight)\n        ctx.eps = eps\n        "
                + Y_OUT,
                "ctx.eps = eps\n        y = "
                + Y_OUT[7:]
                + "\n        ctx.save_for_backward(y, weight)\n        "
                "return y",
            )
        ],
        "",
    ),
    "None comes first": (
        "layernorm-function",
        [(RETURN, "return None, " + RETURN[7:-6])],
        "gradient-misplaced",
    ),
    "a flag of another input": (
        "layernorm-function",
        [
            (
                RETURN,
                "db = db if ctx.needs_input_grad[3] else None\n        "
                "return dx.to(x.dtype), dw.to(weight.dtype), db, None",
            )
        ],
        "gradient-missing",
    ),
    "summed along the row": (
        "layernorm-function",
        [
            (
                "dw, db = (dy * x_hat).sum(0), dy.sum(0)",
                "dw, db = (dy * x_hat).sum(-1), dy.sum(-1)",
            )
        ],
        "wrong-axis",
    ),
    "no gradient is wanted": (
        "layernorm-function",
        [
            (
                Y_OUT,
                "y = " + Y_OUT[7:] + "\n        "
                "ctx.mark_non_differentiable(y)\n        return y",
            )
        ],
        "not-differentiable",
    ),
    "torch's own function": (
        "layernorm-function",
        [
            (
                Y_OUT,
                "y = torch.nn.functional.layer_norm(x, x.shape[1:])\n        " + Y_OUT,
            )
        ],
        "library-call",
    ),
    "rows counted to N": (
        "parameter-sums",
        [("db = Sum(dy[i, j], (i, 1, M))", "db = Sum(dy[i, j], (i, 1, N))")],
        "lengths-exchanged",
    ),
    "the weight squared": (
        "jacobian-layouts",
        [
            (
                "numerator = w[b] * (KroneckerDelta(a, b) - 1 / N)",
                "numerator = w[b] * KroneckerDelta(a, b) - w[a] * w[b] / N",
            )
        ],
        "factor-extra",
    ),
    "one shift for all rows": (
        "stable-normalize",
        [
            ("first = wide.mean(-1, keepdims=True)", "first = wide[:1, :1]"),
            (
                "q = q - left\n    var = (q * q).mean(-1)",
                "var = (q * q).mean(-1) - left[:, 0] ** 2\n    q = q - left",
            ),
        ],
        "digits-lost",
        "variance, mean near 10000",
    ),
    "no eps": (
        "rmsnorm-forward",
        [(STD, "1 / np.sqrt((x * x).mean(-1))")],
        "eps-missing",
    ),
    "a guard for eps": (
        "rmsnorm-forward",
        [(STD, "1 / np.maximum(np.sqrt((x * x).mean(-1)), eps)")],
        "eps-placement",
    ),
    "rstd is a column": (
        "rmsnorm-forward",
        [("weight, rstd\n", "weight, rstd[:, None]\n")],
        "axis-of-one",
        "signature and shapes",
    ),
    "dw is a row": (
        "rmsnorm-backward",
        [("(dy * x_hat).sum(0)", "(dy * x_hat).sum(0, keepdims=True)")],
        "axis-of-one",
        "signature and shapes",
    ),
    "no None for eps": (
        "layernorm-function",
        [("db.to(weight.dtype), None", "db.to(weight.dtype)")],
        "nones-left-out",
        "signature and shapes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_others_wrote_has_its_name(name):
    task, edits, expected, *stage = WRONG[name]
    report = report_of(task, *edits)
    assert set(named(report)) == set(expected.split()) and not report.passed, report
    assert not stage or not report[stage[0]].passed, report
    if stage == ["signature and shapes"]:  # a slip in the form costs the form alone
        assert report.points == report.max_points - report[stage[0]].max_points


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
