"""What people wrote who knew nothing of the grader: each solution is told what it is, and nothing that it is not."""

import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.homework import folder


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    pytest.importorskip({"hw3": "torch", "hw4": "triton"}.get(homework := hw.describe(task).homework, "numpy"))
    source = folder.solution(homework)
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return hw.check(task, of_source(source)[hw.describe(task).entry])


def keys(report):
    return {each.misconception for each in report.diagnoses}


# Sizes that stand in the code


C1 = "c1 = (x_hat * wdy).mean(-1, keepdims=True)"
ADDED, LAST = "dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None]) + stream", "tl.sum(q * q, axis=1) / N"
ONE_SHAPE = {
    "a division by 8": ("rmsnorm-backward", "dx, row by row", [(C1, C1.replace(".mean(-1", ".sum(-1") + " / 8")]),
    "five rows of eight": ("rmsnorm-forward", "y", [("x * rstd[:, None]", "x.reshape(5, 8) * rstd[:, None]")]),
    "five sums": (
        "layernorm-backward",
        "db",
        [("db = dy.sum(0)\n    return", "db = sum(dy[i] for i in range(5))\n    return")],
    ),
    "a variance of eight": (
        "stable-normalize",
        "variance, mean near 0",
        [("var = (q * q).mean(-1)", "var = (q * q).sum(-1) / np.float32(8)")],
    ),
    "a division by 8 in a kernel": ("addnorm-forward", "y", [(LAST, "tl.sum(q * q, axis=1) / 8")]),
}


@pytest.mark.parametrize("name", ONE_SHAPE)
def test_a_size_that_stands_in_the_code(name):
    task, stage, edits = ONE_SHAPE[name]
    report = report_of(task, *edits)
    assert not report[stage].passed and keys(report) == {"one-shape"}, report


STRIDES = {
    "the residual with x's stride": (
        "addnorm-forward",
        "x.stride(0), residual.stride(0),",
        "x.stride(0), x.stride(0),",
    ),
    "dresidual_out with dy's stride": (
        "addnorm-backward",
        "dy.stride(0), stream.stride(0),",
        "dy.stride(0), dy.stride(0),",
    ),
    "residual_out with dy's stride": ("addnorm-backward", "p.stride(0), N=n", "dy.stride(0), N=n"),
}


@pytest.mark.parametrize("name", STRIDES)
def test_each_argument_has_strides_of_its_own(name):
    task, old, new = STRIDES[name]
    report = report_of(task, (old, new))
    assert not report["sizes and strides"].passed and keys(report) == {"stride-ignored"}, report


X = "x = tl.load(x_ptr + at * x_step + cols[None, :], mask=mask, other=0)"
STORE = "tl.store(y_ptr + at * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)"


@pytest.mark.parametrize("old", [X, STORE])
def test_a_kernel_without_a_mask_has_lost_most_points(old):
    report = report_of("addnorm-forward", (old, old.replace(", mask=mask", "").replace(", other=0", "")))
    assert keys(report) == {"out-of-bounds"} and report.points < report.max_points / 4, report


LOST = {
    "rows of y alone": (
        "addnorm-forward",
        [(STORE, STORE.replace("mask=mask", "mask=mask & (rows < M // 4 * 4)[:, None]"))],
    ),
    "rows of all": ("addnorm-forward", [("forward_kernel[(triton.cdiv(m, tile),)]", "forward_kernel[(m // tile,)]")]),
    "rows of dw": (
        "addnorm-backward",
        [("dw += dy * x_hat", "dw += tl.where((rows < M - 1)[:, None], dy * x_hat, 0)")],
    ),
    "rows of db, in NumPy": ("layernorm-backward", [("db = dy.sum(0)\n    return", "db = dy[1:].sum(0)\n    return")]),
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_row_is_named(name):
    task, edits = LOST[name]
    report = report_of(task, *edits)
    assert keys(report) == {"rows-left-out"}, report


SWAPPED = {
    "mean and var": ("stable-normalize", "(first + left)[:, 0], var, rstd", "var, (first + left)[:, 0], rstd"),
    "in a circle": ("stable-normalize", "(first + left)[:, 0], var, rstd", "var, rstd, (first + left)[:, 0]"),
    "mean and squares": ("merge-blocks", "return n, mean, squares", "return n, squares, mean"),
    "mean and rstd": ("addnorm-forward", "return y, residual_out, mean, rstd", "return y, residual_out, rstd, mean"),
    "dw and db": ("addnorm-backward", "return dx, dx, dw, db", "return dx, dx, db, dw"),
    "in NumPy": ("layernorm-backward", "    return dx, dw, db\n", "    return dx, db, dw\n"),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_results_in_another_order_are_named(name):
    task, old, new = SWAPPED[name]
    report = report_of(task, (old, new))
    assert keys(report) == {"results-swapped"}, report
