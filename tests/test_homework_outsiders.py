"""What people wrote who knew nothing of the grader: each solution is told what it is, and nothing that it is not."""

import numpy as np
import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.hw4 import gpu


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    pytest.importorskip({"hw3": "torch", "hw4": "triton"}.get(homework := hw.describe(task).homework, "numpy"))
    source = solutions.solution(homework)
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


def test_a_second_mistake_in_rows_without_spread_is_not_hidden():
    dx = "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw"
    wrong = "dx = np.where((x == x[:, :1]).all(-1)[:, None], 0, rstd * (wdy - c2 + x_hat * c1))\n    dw"
    assert keys(report_of("layernorm-backward", (dx, wrong))) == {"projection-sign", "flat-row"}


def test_a_guard_is_not_taken_for_a_missing_eps():
    """Ordinary rows do not tell one from the other, rows without spread do."""
    old = "1 / np.sqrt((x * x).mean(-1) + eps)"
    for new, key in (("1 / np.sqrt((x * x).mean(-1))", "eps-missing"),
                     ("1 / np.maximum(np.sqrt((x * x).mean(-1)), eps)", "eps-placement")):  # fmt: skip
        assert keys(report_of("rmsnorm-forward", (old, new))) == {key}


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
    assert words in report["gradgradcheck"].message and "forward made" not in str(report), report
    assert keys(report) == {"constant-to-autograd"}


SWAPPED = {
    "mean and var": ("stable-normalize", "(first + left)[:, 0], var, rstd", "var, (first + left)[:, 0], rstd"),
    "in a circle": ("stable-normalize", "(first + left)[:, 0], var, rstd", "var, rstd, (first + left)[:, 0]"),
    "mean and squares": ("merge-blocks", "return n, mean, squares", "return n, squares, mean"),
    "mean and rstd": ("addnorm-forward", "return y, residual_out, mean, rstd", "return y, residual_out, rstd, mean"),
    "dw and db": ("addnorm-backward", "return dx, dx, dw, db", "return dx, dx, db, dw"),
    "in NumPy": ("layernorm-backward", "    return dx, dw, db\n", "    return dx, db, dw\n"),
    "of an operator": ("norm-project", "return dx, dweight, dbias", "return dx, dbias, dweight"),
    "expressions": ("parameter-sums", "return dw, db", "return db, dw"),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_results_in_another_order_are_named(name):
    task, old, new = SWAPPED[name]
    report = report_of(task, (old, new))
    assert keys(report) == {"results-swapped"}, report


# No name from the size of an error


DX, BEFORE = "dx = rstd * (wdy - x_hat * c1)", "    dw = (dy * x_hat).sum(0)\n    return dx, dw\n"
SLOPES = """    h, dx, w = 1e-6, np.empty_like(x), weight
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        ys = [w * a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) for a in (up, down)]
        dx[i] = (dy * (ys[0] - ys[1])).sum() / (2 * h)
"""
SIZES = {
    "a projection over its own length": (
        "rmsnorm-backward",
        [(C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x_hat**2).sum(-1, keepdims=True)")],
        {"projection-exact"},
    ),
    "central differences": ("rmsnorm-backward", [(BEFORE, SLOPES + BEFORE)], {"unknown"}),
    "rounded to six digits": ("rmsnorm-backward", [(DX, "dx = np.round(rstd * (wdy - x_hat * c1), 6)")], {"unknown"}),
    "rstd to four digits": (
        "rmsnorm-forward",
        [("x * rstd[:, None]", "x * np.round(rstd, 4)[:, None]")],
        {"rstd-value"},
    ),
    "computed in float32": (
        "rmsnorm-backward",
        [("x_hat = x * rstd\n", "x_hat = (x * rstd).astype(np.float32)\n")],
        {"narrow-arithmetic"},
    ),
    "computed in float32 by torch": (
        "layernorm-function",
        [("return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t", "return t.float()")],
        {"narrow-arithmetic"},
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_small_error_is_not_taken_for_a_format(name):
    task, edits, expected = SIZES[name]
    assert keys(report_of(task, *edits)) == expected


# Homework 4 is Triton


MEAN, EPS = "mean = tl.sum(p, axis=1) / N", "tl.sum(q * q, axis=1) / N + EPS)"
HEAD, JIT = "import torch\n", "@triton.jit\ndef forward_kernel"
PYTHON = {
    "torch": [(MEAN, MEAN + " + torch.zeros(1).sin().item()")],
    "NumPy": [(MEAN, MEAN + "\n    p.handle.data[:] = np.sqrt(np.square(p.handle.data)) * np.sign(p.handle.data)"),
              (HEAD, HEAD + "import numpy as np\n")],
    "a function of Python": [(EPS, EPS + " * one()"), (JIT, "def one():\n    return 1.0\n\n\n" + JIT)],
    "an import": [(MEAN, "import math\n    mean = tl.sum(p, axis=1) / N + math.sin(0.0)")],
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_mathematics_of_python_in_a_kernel_is_worth_nothing(name):
    report = report_of("addnorm-forward", *PYTHON[name])
    assert report.points == 0 and keys(report) == {"python-in-kernel"}, report


GPU = {
    "a loop over a list": ([(MEAN, MEAN + "\n    for _ in [0]:\n        mean = mean + 0")], "Look at"),
    "a global number": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"), (HEAD, HEAD + "ZERO = 0.0\n")], "ZERO"),
    "a constant": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"),
                    (JIT, "ZERO = tl.constexpr(0.0)\n\n\n" + JIT)], ""),
    "an annotated constant": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"),
                               (JIT, "ZERO: tl.constexpr = 0.0\n\n\n" + JIT)], ""),
    "a helper under jit": ([("1 / tl.sqrt(" + EPS, "inverse(" + EPS), (JIT, "@triton.jit\ndef inverse(v):\n"
                            "    return 1 / tl.sqrt(v)\n\n\n" + JIT)], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", GPU)
def test_what_would_not_compile_for_a_gpu_is_said(name):
    edits, words = GPU[name]
    report = report_of("addnorm-forward", *edits)
    assert report["y"].passed, report
    said = report["kernels"].message
    assert (not words and report.passed) or "a GPU would not: forward_kernel does not compile" in said and words in said


def test_the_shell_says_what_would_not_compile(tmp_path):
    pytest.importorskip("triton")
    source = solutions.solution("hw4")
    for old, new in GPU["a global number"][0]:
        source = source.replace(old, new)
    (tmp_path / "solution.py").write_text(source, encoding="utf8")
    report, _ = hw.grade_file(tmp_path / "solution.py", "hw4")
    assert "a GPU would not: forward_kernel does not compile" in report["kernels"].message, report


def test_block_pointers_are_right():
    import homework_kernels

    for seed in range(3):
        report = hw.check("addnorm-forward", homework_kernels.by_block_pointers, seed=seed)
        assert report.passed, report


def test_the_limits_of_autotune_are_said():
    kernel = "@triton.jit\ndef forward_kernel"
    tuned = "@triton.autotune([triton.Config({}, num_warps=n) for n in (2, 4)], ['N'])\n" + kernel
    report = report_of("addnorm-forward", (kernel, tuned))
    assert "triton.autotune tries its configurations on a GPU, and none is here" in str(report)


# Homework 7 is the student's own operator

OPERATOR = """
import numpy as np
MASK = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
def window(a):
    return a + np.pad(a, ((0, 0), (1, 0)))[:, :-1]
def sigmoid(t):
    return 1 / (1 + np.exp(-t))
class Operator:
    @staticmethod
    def inputs(rng): return {{"x": rng.normal(0, 2, (4, 5)), "g": rng.normal(0, 1, (4, 5)), "w": rng.normal(0, 1, 5)}}
    @staticmethod
    def degenerate(rng): return [Operator.inputs(rng)]
    @staticmethod
    def forward(x, g, w):
        {forward}
    @staticmethod
    def backward(dy, x, g, w):
        {backward}
"""
LOCAL = ("d = 1 + window(x * x)", "return w * g * x / d",
         "dd = -dy * w * g * x / d**2",
         "return dy * w * g / d + 2 * x * window(dd), dy * w * x / d, (dy * g * x / d).sum(0)")  # fmt: skip
COLUMNS = ("q = x - x.mean(0)", "r = 1 / np.sqrt((q * q).mean(0) + 1e-3)", "return w * g * q * r", "u = w * g * dy",
           "dv = -0.5 * r**3 * (u * q).sum(0)", "dx = r * (u - u.mean(0)) + dv * q / len(x)",
           "return dx, dy * w * q * r, (dy * g * q * r).sum(0)")  # fmt: skip
GATE = ("r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)", "s = sigmoid(g)", "return w * x * r * g * s",
        "u = dy * w * g * s", "dx = r * (u - x * r * (u * x * r).mean(-1, keepdims=True))",
        "return dx, dy * w * x * r * s * (1 - s), (dy * x * r).sum(0)")  # fmt: skip
MASKED = ("m = MASK.astype(x.dtype)", "n = m.sum(-1, keepdims=True)",
          "q = m * (x - (m * x).sum(-1, keepdims=True) / n)", "return w * g * q", "u = dy * w * g",
          "return m * (u - u.sum(-1, keepdims=True) / n), dy * w * q, (dy * g * q).sum(0)")  # fmt: skip
OWN = {
    "the window of the forward": (LOCAL, 2, ["dy goes to x on the ways from x to y"]),
    "a factor 2 of the variance": (COLUMNS, 3, ["The path through a size of x is 1/2 times what is needed"]),
    "one term of a product, and no gate": (GATE, 3, ["The gradient for g is off by a factor that depends on g alone",
                                                     "The gradient for w does not depend on g"]),
    "masked cotangents": (MASKED, 4, ["does not depend on x, but the gradient for x reads dy["]),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_the_path_that_a_gradient_takes_is_named(name):
    lines, own, expected = OWN[name]
    shared = [line for line in lines[: own - 1] if not line.startswith("return")]
    text = ["\n        ".join(part) for part in (lines[:own], (*shared, *lines[own:]))]
    names = {}
    exec(OPERATOR.format(forward=text[0], backward=text[1]), names)
    for seed in range(2):
        report = hw.check("norm-project", names["Operator"], seed=seed)
        titles = [each.title for each in report.diagnoses]
        assert len(titles) == len(expected), report
        assert all(words in title for words, title in zip(expected, titles, strict=True)), report


# Where nothing is wrong, and where nothing is done


def divided_where(x, weight, eps):
    """A row of zeros is left alone by np.divide."""
    size = np.sqrt((x * x).mean(-1) + eps)
    rstd = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
    return x * rstd[:, None] * weight, rstd


def normalized_where(x, eps):
    """The reference of homework 5 with np.divide in its last step."""
    wide = x.astype(np.float32)
    first = wide.mean(-1, keepdims=True)
    q = wide - first
    left = q.mean(-1, keepdims=True)
    q = q - left
    var = (q * q).mean(-1)
    size = np.sqrt(var + np.float32(eps))
    rstd = np.divide(np.float32(1), size, out=np.zeros_like(size), where=size > 0)
    return (q * rstd[:, None]).astype(x.dtype), (first + left)[:, 0], var, rstd


@pytest.mark.parametrize(
    ("task", "function"), [("rmsnorm-forward", divided_where), ("stable-normalize", normalized_where)]
)
def test_a_division_where_it_makes_sense_is_right(task, function):
    for seed in range(5):
        report = hw.check(task, function, seed=seed)
        assert report.passed, report


def test_a_warning_on_a_row_of_zeros_costs_the_point_that_the_page_promises():
    def warns(x, weight, eps):
        size = np.sqrt((x * x).mean(-1))
        scale = np.where(size > 0, size / size, 1)
        rstd = 1 / np.sqrt(size**2 + eps)
        return x * (scale * rstd)[:, None] * weight, rstd

    report = hw.check("rmsnorm-forward", warns)
    assert report.points == report.max_points - 1 and keys(report) == {"warns"}, report


def test_the_formula_and_allclose_are_no_test():
    def by_formula(backward):
        rng = np.random.default_rng(3)
        x = rng.standard_normal((5, 8)) * 3 + 1
        x[0] = 0.5
        weight, dy = rng.standard_normal(8), rng.standard_normal((5, 8))
        mean, q = x.mean(-1), x - x.mean(-1, keepdims=True)
        rstd = 1 / np.sqrt((q * q).mean(-1) + 1e-5)
        x_hat, wdy = q * rstd[:, None], weight * dy
        c1, c2 = (x_hat * wdy).mean(-1, keepdims=True), wdy.mean(-1, keepdims=True)
        dx, dw, db = backward(dy, x, weight, mean, rstd)
        assert np.allclose(dx, rstd[:, None] * (wdy - c2 - x_hat * c1))
        assert np.allclose(dw, (dy * x_hat).sum(0)) and np.allclose(db, dy.sum(0))

    report = hw.check("gradient-test", by_formula)
    assert report["right backwards pass"].passed and not report.passed
    assert keys(report) == {"loose-tolerance"}, report


FORGED = {
    "a module": {"modules": {"tl": "triton.language", "os": "os"}},
    "a statement": {"modules": {"tl": "triton.language\nimport os; os.mkdir('forged')\nimport os"}},
    "a name": {"names": {"builtins": ("triton.language.core", "builtins")}},
    "a name of a module": {"sources": [["def kernel(x):", "    tl.core.builtins.exec('import os; os.mkdir(1)')"]]},
    "a default": {"sources": [["def kernel(x=tl.mkdir(1)):", "    pass"]]},
    "getattr": {"sources": [["def kernel(x):", "    getattr(tl, 'core')"]]},
}


@pytest.mark.parametrize("name", FORGED)
def test_what_describes_a_kernel_is_not_run(tmp_path, name):
    """It comes from the student's process, who may say anything."""
    pytest.importorskip("triton")
    sources = [["def kernel(x):", "    tl.store(x, 0)"]]
    kernel = {"modules": {"tl": "triton.language"}, "names": {}, "globals": {}, "sources": sources, "kernel": "kernel"}
    assert callable(gpu._module(kernel, str(tmp_path), f"right_{len(name)}").kernel)
    with pytest.raises((ValueError, ImportError)):
        gpu._module(kernel | FORGED[name], str(tmp_path), f"forged_{len(name)}")
