"""What people wrote who knew nothing of the grader: each solution is told what it is, and nothing that it is not."""

import numpy as np
import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.hw4 import gpu


def report_of(task, *edits):
    """The report on the reference with some texts replaced."""
    pytest.importorskip(
        {"hw3": "torch", "hw4": "triton"}.get(
            homework := hw.describe(task).homework, "numpy"
        )
    )
    source = solutions.solution(homework)
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return hw.check(task, of_source(source)[hw.describe(task).entry])


def keys(report):
    return {each.misconception for each in report.diagnoses}


# Sizes that stand in the code


C1 = "c1 = (x_hat * wdy).mean(-1, keepdims=True)"
ADDED, LAST = (
    "dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None]) + stream",
    "tl.sum(q * q, axis=1) / N",
)
ONE_SHAPE = {
    "a division by 8": (
        "rmsnorm-backward",
        "dx, row by row",
        [(C1, C1.replace(".mean(-1", ".sum(-1") + " / 8")],
    ),
    "five rows of eight": (
        "rmsnorm-forward",
        "y",
        [("x * rstd[:, None]", "x.reshape(5, 8) * rstd[:, None]")],
    ),
    "five sums": (
        "layernorm-backward",
        "db",
        [
            (
                "db = dy.sum(0)\n    return",
                "db = sum(dy[i] for i in range(5))\n    return",
            )
        ],
    ),
    "a variance of eight": (
        "stable-normalize",
        "variance, mean near 0",
        [("var = (q * q).mean(-1)", "var = (q * q).sum(-1) / np.float32(8)")],
    ),
    "a division by 8 in a kernel": (
        "addnorm-forward",
        "y",
        [(LAST, "tl.sum(q * q, axis=1) / 8")],
    ),
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
    "residual_out with dy's stride": (
        "addnorm-backward",
        "p.stride(0), N=n",
        "dy.stride(0), N=n",
    ),
}


@pytest.mark.parametrize("name", STRIDES)
def test_each_argument_has_strides_of_its_own(name):
    task, old, new = STRIDES[name]
    report = report_of(task, (old, new))
    assert not report["sizes and strides"].passed and keys(report) == {
        "stride-ignored"
    }, report


X = "x = tl.load(x_ptr + at * x_step + cols[None, :], mask=mask, other=0)"
STORE = (
    "tl.store(y_ptr + at * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)"
)


@pytest.mark.parametrize("old", [X, STORE])
def test_a_kernel_without_a_mask_has_lost_most_points(old):
    report = report_of(
        "addnorm-forward",
        (old, old.replace(", mask=mask", "").replace(", other=0", "")),
    )
    assert (
        keys(report) == {"out-of-bounds"} and report.points < report.max_points / 4
    ), report


LOST = {
    "rows of y alone": (
        "addnorm-forward",
        [
            (
                STORE,
                STORE.replace("mask=mask", "mask=mask & (rows < M // 4 * 4)[:, None]"),
            )
        ],
    ),
    "rows of all": (
        "addnorm-forward",
        [("forward_kernel[(triton.cdiv(m, tile),)]", "forward_kernel[(m // tile,)]")],
    ),
    "rows of dw": (
        "addnorm-backward",
        [
            (
                "dw += dy * x_hat",
                "dw += tl.where((rows < M - 1)[:, None], dy * x_hat, 0)",
            )
        ],
    ),
    "rows of db, in NumPy": (
        "layernorm-backward",
        [("db = dy.sum(0)\n    return", "db = dy[1:].sum(0)\n    return")],
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_row_is_named(name):
    task, edits = LOST[name]
    report = report_of(task, *edits)
    assert keys(report) == {"rows-left-out"}, report


def test_a_second_mistake_in_rows_without_spread_is_not_hidden():
    dx = "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw"
    wrong = "dx = np.where((x == x[:, :1]).all(-1)[:, None], 0, rstd * (wdy - c2 + x_hat * c1))\n    dw"
    assert keys(report_of("layernorm-backward", (dx, wrong))) == {
        "projection-sign",
        "flat-row",
    }


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
    assert words in report["gradgradcheck"].message and "forward made" not in str(
        report
    ), report
    assert keys(report) == {"constant-to-autograd"}


SWAPPED = {
    "mean and var": (
        "stable-normalize",
        "(first + left)[:, 0], var, rstd",
        "var, (first + left)[:, 0], rstd",
    ),
    "in a circle": (
        "stable-normalize",
        "(first + left)[:, 0], var, rstd",
        "var, rstd, (first + left)[:, 0]",
    ),
    "mean and squares": (
        "merge-blocks",
        "return n, mean, squares",
        "return n, squares, mean",
    ),
    "mean and rstd": (
        "addnorm-forward",
        "return y, residual_out, mean, rstd",
        "return y, residual_out, rstd, mean",
    ),
    "dw and db": ("addnorm-backward", "return dx, dx, dw, db", "return dx, dx, db, dw"),
    "in NumPy": (
        "layernorm-backward",
        "    return dx, dw, db\n",
        "    return dx, db, dw\n",
    ),
    "of an operator": (
        "norm-project",
        "return dx, dweight, dbias",
        "return dx, dbias, dweight",
    ),
    "expressions": ("parameter-sums", "return dw, db", "return db, dw"),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_results_in_another_order_are_named(name):
    task, old, new = SWAPPED[name]
    report = report_of(task, (old, new))
    assert keys(report) == {"results-swapped"}, report


# No name from the size of an error


DX, BEFORE = (
    "dx = rstd * (wdy - x_hat * c1)",
    "    dw = (dy * x_hat).sum(0)\n    return dx, dw\n",
)
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
        [
            (
                C1,
                "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x_hat**2).sum(-1, keepdims=True)",
            )
        ],
        {"projection-exact"},
    ),
    "central differences": (
        "rmsnorm-backward",
        [(BEFORE, SLOPES + BEFORE)],
        {"unknown"},
    ),
    "rounded to six digits": (
        "rmsnorm-backward",
        [(DX, "dx = np.round(rstd * (wdy - x_hat * c1), 6)")],
        {"unknown"},
    ),
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
        [
            (
                "return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t",
                "return t.float()",
            )
        ],
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
    assert (
        (not words and report.passed)
        or "a GPU would not: forward_kernel does not compile" in said
        and words in said
    )


def test_the_shell_says_what_would_not_compile(tmp_path):
    pytest.importorskip("triton")
    source = solutions.solution("hw4")
    for old, new in GPU["a global number"][0]:
        source = source.replace(old, new)
    (tmp_path / "solution.py").write_text(source, encoding="utf8")
    report, _ = hw.grade_file(tmp_path / "solution.py", "hw4")
    assert (
        "a GPU would not: forward_kernel does not compile" in report["kernels"].message
    ), report


def test_block_pointers_are_right():
    import homework_kernels

    for seed in range(3):
        report = hw.check(
            "addnorm-forward", homework_kernels.by_block_pointers, seed=seed
        )
        assert report.passed, report


def test_the_limits_of_autotune_are_said():
    kernel = "@triton.jit\ndef forward_kernel"
    tuned = (
        "@triton.autotune([triton.Config({}, num_warps=n) for n in (2, 4)], ['N'])\n"
        + kernel
    )
    report = report_of("addnorm-forward", (kernel, tuned))
    assert "triton.autotune tries its configurations on a GPU, and none is here" in str(
        report
    )


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
        assert all(
            words in title for words, title in zip(expected, titles, strict=True)
        ), report


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
    ("task", "function"),
    [("rmsnorm-forward", divided_where), ("stable-normalize", normalized_where)],
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
    "a statement": {
        "modules": {"tl": "triton.language\nimport os; os.mkdir('forged')\nimport os"}
    },
    "a name": {"names": {"builtins": ("triton.language.core", "builtins")}},
    "a name of a module": {
        "sources": [
            ["def kernel(x):", "    tl.core.builtins.exec('import os; os.mkdir(1)')"]
        ]
    },
    "a default": {"sources": [["def kernel(x=tl.mkdir(1)):", "    pass"]]},
    "getattr": {"sources": [["def kernel(x):", "    getattr(tl, 'core')"]]},
}


@pytest.mark.parametrize("name", FORGED)
def test_what_describes_a_kernel_is_not_run(tmp_path, name):
    """It comes from the student's process, who may say anything."""
    pytest.importorskip("triton")
    sources = [["def kernel(x):", "    tl.store(x, 0)"]]
    kernel = {
        "modules": {"tl": "triton.language"},
        "names": {},
        "globals": {},
        "sources": sources,
        "kernel": "kernel",
    }
    assert callable(gpu._module(kernel, str(tmp_path), f"right_{len(name)}").kernel)
    with pytest.raises((ValueError, ImportError)):
        gpu._module(kernel | FORGED[name], str(tmp_path), f"forged_{len(name)}")


# What others wrote once more, each in a way of its own

STD = "1 / np.sqrt((x * x).mean(-1) + eps)"
F_OUT, LN_DX = "x_hat * weight, rstd", "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw"
HAT, SAVED = "x_hat = (x - mean[:, None]) * rstd", "x, weight = ctx.saved_tensors"
RETURN = "return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None"
Y_OUT = "return (x_hat * wide(weight) + wide(bias)).to(x.dtype)"
NAMED = {
    "eps is left out in rstd alone": ("rmsnorm-forward", [(F_OUT, "x_hat * weight, 1 / np.sqrt((x * x).mean(-1))")],
                                      {"eps-missing"}),
    "the variance is returned": ("rmsnorm-forward", [(F_OUT, "x_hat * weight, 1 / rstd**2")],
                                 {"variance-for-rstd"}),
    "two mistakes in one root": ("rmsnorm-forward", [(STD, "1 / (np.linalg.norm(x, axis=-1) + eps)")],
                                 {"reduce-exchanged", "eps-placement"}),
    "c1 goes on": ("rmsnorm-backward", [(C1, C1 + ".cumsum(0)")], {"rows-mixed"}),
    "the rstd of the first row": ("rmsnorm-backward", [(DX, DX.replace("rstd *", "rstd[:1] *"))], {"rows-mixed"}),
    "the c1 of the last row": ("rmsnorm-backward", [(C1, C1 + "[-1:]")], {"rows-mixed"}),
    "a factor that counts rows": ("rmsnorm-backward", [(C1, C1 + " * np.arange(3, 3 + len(x))[:, None]")],
                                  {"coefficient-c1"}),
    "summed over the rows, divided by N": ("rmsnorm-backward", [(C1, "c1 = (x_hat * wdy).sum(0) / x.shape[1]")],
                                           {"wrong-axis"}),
    "c1 and c2 in each other's place": (
        "layernorm-backward", [(LN_DX, LN_DX.replace("c2 - x_hat * c1", "c1 - x_hat * c2"))], {"c1-for-c2"}),
    "mean and rstd in each other's place": (
        "layernorm-backward", [(HAT, "mean, rstd = rstd[:, 0], mean[:, None]\n    " + HAT)], {"inputs-exchanged"}),
    "the weight is taken for x": ("layernorm-function", [(SAVED, "weight, x = ctx.saved_tensors")],
                                  {"inputs-exchanged"}),
    "y is saved": ("layernorm-function", [("ctx.save_for_backward(x, weight)\n        ctx.eps = eps\n        " + Y_OUT,
                   "ctx.eps = eps\n        y = " + Y_OUT[7:] + "\n        ctx.save_for_backward(y, weight)\n        "
                   "return y")], {"y-for-x"}),
    "None comes first": ("layernorm-function", [(RETURN, "return None, " + RETURN[7:-6])], {"gradient-misplaced"}),
    "a flag of another input": ("layernorm-function", [(RETURN, "db = db if ctx.needs_input_grad[3] else None\n        "
                                "return dx.to(x.dtype), dw.to(weight.dtype), db, None")], {"gradient-missing"}),
    "summed along the row": ("layernorm-function", [("dw, db = (dy * x_hat).sum(0), dy.sum(0)",
                             "dw, db = (dy * x_hat).sum(-1), dy.sum(-1)")], {"wrong-axis"}),
    "no gradient is wanted": ("layernorm-function", [(Y_OUT, "y = " + Y_OUT[7:] + "\n        "
                              "ctx.mark_non_differentiable(y)\n        return y")], {"not-differentiable"}),
    "torch's own function": ("layernorm-function", [
        (Y_OUT, "y = torch.nn.functional.layer_norm(x, x.shape[1:])\n        " + Y_OUT)], {"library-call"}),
    "rows one column apart": ("addnorm-forward", [
        ("x.stride(0), residual.stride(0),", "x.stride(1), residual.stride(1),")], {"stride-ignored"}),
    "one row of the residual": ("addnorm-forward", [
        ("residual_ptr + at * residual_step + cols", "residual_ptr + cols")], {"rows-mixed"}),
    "half of the sum is stored": ("addnorm-forward", [("cols[None, :], stored, mask", "cols[None, :], x, mask")],
                                  {"residual-left-out"}),
    "rows from the last to the first": ("addnorm-forward", [
        ("rstd_ptr + rows, rstd", "rstd_ptr + M - 1 - rows, rstd"),
        ("mean_ptr + rows, mean", "mean_ptr + M - 1 - rows, mean")], {"rows-mixed"}),
    "the median": ("stable-normalize", [
        ("first = wide.mean(-1, keepdims=True)", "first = np.sort(wide)[:, x.shape[1] // 2, None]"),
        ("q = q - left\n    var", "var"), ("(first + left)", "first")], {"rough-mean"}),
    "eps after the root": ("stable-normalize", [("1 / np.sqrt(var + np.float32(eps))", "1 / np.sqrt(np.maximum(var, "
                           "np.float32(1e-30))) + np.float32(eps)")], {"eps-placement"}),
    "float64 by its name": ("stable-normalize", [("wide = x.astype(np.float32)", "wide = x.astype(np.float64)")],
                            {"wide-arithmetic"}),
    "a factor upside down": ("merge-blocks", [("n1 * share * d * d", "np.maximum(n, 1) * d * d")], {"merge-between"}),
    "sums by their lengths": ("merge-blocks", [("squares1 + squares2", "n1 * squares1 + n2 * squares2")],
                              {"merge-within"}),
    "a mean of its own": ("merge-blocks", [("mean1 + share * d", "mean1 + share * share * d")], {"merge-weights"}),
    "rows counted to N": ("parameter-sums", [("db = Sum(dy[i, j], (i, 1, M))", "db = Sum(dy[i, j], (i, 1, N))")],
                          {"lengths-exchanged"}),
    "the weight squared": ("jacobian-layouts", [("numerator = w[b] * (KroneckerDelta(a, b) - 1 / N)",
                           "numerator = w[b] * KroneckerDelta(a, b) - w[a] * w[b] / N")], {"factor-extra"}),
    "a gain that forgets rstd": ("norm-project", [
        ("dweight = (dy * x_hat.reshape(x.shape))", "dweight = (dy * (x_hat / rstd).reshape(x.shape))")],
        {"row-factor"}),
    "the stream begins with dy": ("gradient-norms", [("stream, found = torch.zeros_like(dy)", "stream, found = dy")],
                                  {"stream-begins"}),
    "the branch of another gradient": ("gradient-norms", [("dy = branches[k - 1](stream)", "dy = branches[k - 1](dy)")],
                                       {"branch-passed-by"}),
    "another norm": ("gradient-norms", [("stream.square().sum().sqrt()", "stream.square().mean().sqrt()")],
                     {"squared-norm"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_what_others_wrote_has_its_name(name):
    task, edits, expected = NAMED[name]
    report = report_of(task, *edits)
    assert keys(report) == expected and not report.passed, report


# Tests of the student's own: entry by entry, with one line that is not what it seems

ENTRIES = """
import numpy as np
def layernorm_forward(x, weight, bias):
    mean = x.mean(-1)
    q = x - mean[:, None]
    rstd = 1 / np.sqrt((q * q).mean(-1) + 1e-5)
    return q * rstd[:, None] * weight + bias, mean, rstd
def slopes(dy, *arrays):
    for array in arrays:
        found = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -2e-6):
                array[at] += step
                ends.append((dy * layernorm_forward(*arrays)[0]).sum())
            array[at] += 1e-6
            found[at] = (ends[0] - ends[1]) / 2e-6
        yield found
def check_backward(backward):
    rng = np.random.default_rng(3)
    x = rng.normal(1, 2, (4, 6)) * [[1], [1], [2], [0.5]]
    x[3] = 2
    weight, bias, dy = rng.normal(0, 1, 6), rng.normal(0, 1, 6), rng.normal(0, 1, (4, 6))
    wrong = 0
    _, mean, rstd = layernorm_forward(x, weight, bias)
    for got, known in zip(backward(dy, x, weight, mean, rstd), slopes(dy, x, weight, bias)):
        {}
"""
NEAR = "np.isclose(got, known, rtol=1e-6, atol=1e-7)"
ONE_LINE = {
    "all": (f"assert {NEAR}.all()", set()),
    "a tuple": (f"close = ({NEAR}.all(), 'wrong'); assert close", {"verdict-not-raised"}),
    "a list": (f"close = [{NEAR}.all()]; assert close", {"verdict-not-raised"}),
    "any": (f"assert {NEAR}.any()", {"one-entry-passes"}),
    "the first row": (f"assert np.atleast_2d({NEAR})[0].all()", {"size-passes"}),
    "counted": (f"wrong += (~{NEAR}).sum(); assert wrong < 12", {"size-passes"}),
    "directions": ("assert (got * known).sum() > (1 - 1e-8) * np.linalg.norm(got) * np.linalg.norm(known)",
                   {"multiple-passes"}),
    "sizes": ("assert np.isclose(abs(got), abs(known), rtol=1e-6, atol=1e-7).all()", {"sign-passes"}),
    "NaN": ("assert not (np.abs(got - known) > 1e-5 * (1 + np.abs(known))).any()", {"nan-passes"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_LINE)
def test_what_a_test_lets_pass_is_tried(name):
    line, expected = ONE_LINE[name]
    report = hw.check(
        "gradient-test", of_source(ENTRIES.format(line))["check_backward"]
    )
    assert keys(report) - {"loose-tolerance"} == expected, report
