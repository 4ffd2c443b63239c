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
    return {diagnosis.misconception for diagnosis in report.diagnoses}


C1 = "c1 = (x_hat * wdy).mean(-1, keepdims=True)"
LAST = "tl.sum(q * q, axis=1) / N"
X = "x = tl.load(x_ptr + at * x_step + cols[None, :], mask=mask, other=0)"
STORE = (
    "tl.store(y_ptr + at * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)"
)
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
MEAN, EPS = "mean = tl.sum(p, axis=1) / N", "tl.sum(q * q, axis=1) / N + EPS)"
HEAD, JIT = "import torch\n", "@triton.jit\ndef forward_kernel"
STD = "1 / np.sqrt((x * x).mean(-1) + eps)"
F_OUT, LN_DX = "x_hat * weight, rstd", "dx = rstd * (wdy - c2 - x_hat * c1)\n    dw"
HAT, SAVED = "x_hat = (x - mean[:, None]) * rstd", "x, weight = ctx.saved_tensors"
RETURN = "return dx.to(x.dtype), dw.to(weight.dtype), db.to(weight.dtype), None"
Y_OUT = "return (x_hat * wide(weight) + wide(bias)).to(x.dtype)"

# {what was written: (task, edits of the reference, the names that the report gives, the stage that fails)}
WRONG = {
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
    "a variance of eight": (
        "stable-normalize",
        [("var = (q * q).mean(-1)", "var = (q * q).sum(-1) / np.float32(8)")],
        "one-shape",
        "variance, mean near 0",
    ),
    "a division by 8 in a kernel": (
        "addnorm-forward",
        [(LAST, "tl.sum(q * q, axis=1) / 8")],
        "one-shape",
        "y",
    ),
    "the residual with x's stride": (
        "addnorm-forward",
        [("x.stride(0), residual.stride(0),", "x.stride(0), x.stride(0),")],
        "stride-ignored",
        "sizes and strides",
    ),
    "dresidual_out with dy's stride": (
        "addnorm-backward",
        [("dy.stride(0), stream.stride(0),", "dy.stride(0), dy.stride(0),")],
        "stride-ignored",
        "sizes and strides",
    ),
    "residual_out with dy's stride": (
        "addnorm-backward",
        [("p.stride(0), N=n", "dy.stride(0), N=n")],
        "stride-ignored",
        "sizes and strides",
    ),
    "lost: rows of y alone": (
        "addnorm-forward",
        [
            (
                STORE,
                STORE.replace("mask=mask", "mask=mask & (rows < M // 4 * 4)[:, None]"),
            )
        ],
        "rows-left-out",
    ),
    "lost: rows of all": (
        "addnorm-forward",
        [("forward_kernel[(triton.cdiv(m, tile),)]", "forward_kernel[(m // tile,)]")],
        "rows-left-out",
    ),
    "lost: rows of dw": (
        "addnorm-backward",
        [
            (
                "dw += dy * x_hat",
                "dw += tl.where((rows < M - 1)[:, None], dy * x_hat, 0)",
            )
        ],
        "rows-left-out",
    ),
    "lost: rows of db, in NumPy": (
        "layernorm-backward",
        [("db = dy.sum(0)\n    return", "db = dy[1:].sum(0)\n    return")],
        "rows-left-out",
    ),
    "results swapped, in a circle": (
        "stable-normalize",
        [("(first + left)[:, 0], var, rstd", "var, rstd, (first + left)[:, 0]")],
        "results-swapped",
    ),
    "results swapped, mean and squares": (
        "merge-blocks",
        [("return n, mean, squares", "return n, squares, mean")],
        "results-swapped",
    ),
    "results swapped, mean and rstd": (
        "addnorm-forward",
        [("return y, residual_out, mean, rstd", "return y, residual_out, rstd, mean")],
        "results-swapped",
    ),
    "results swapped, in NumPy": (
        "layernorm-backward",
        [("    return dx, dw, db\n", "    return dx, db, dw\n")],
        "results-swapped",
    ),
    "results swapped, of an operator": (
        "norm-project",
        [("return dx, dweight, dbias", "return dx, dbias, dweight")],
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
        "projection-exact",
    ),
    "central differences": ("rmsnorm-backward", [(BEFORE, SLOPES + BEFORE)], "unknown"),
    "rounded to six digits": (
        "rmsnorm-backward",
        [(DX, "dx = np.round(rstd * (wdy - x_hat * c1), 6)")],
        "unknown",
    ),
    "rstd to four digits": (
        "rmsnorm-forward",
        [("x * rstd[:, None]", "x * np.round(rstd, 4)[:, None]")],
        "rstd-value",
    ),
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
    "Python in a kernel: torch": (
        "addnorm-forward",
        [(MEAN, MEAN + " + torch.zeros(1).sin().item()")],
        "python-in-kernel",
    ),
    "Python in a kernel: NumPy": (
        "addnorm-forward",
        [
            (
                MEAN,
                MEAN
                + "\n    p.handle.data[:] = np.sqrt(np.square(p.handle.data)) * np.sign(p.handle.data)",
            ),
            (HEAD, HEAD + "import numpy as np\n"),
        ],
        "python-in-kernel",
    ),
    "Python in a kernel: a function of Python": (
        "addnorm-forward",
        [(EPS, EPS + " * one()"), (JIT, "def one():\n    return 1.0\n\n\n" + JIT)],
        "python-in-kernel",
    ),
    "Python in a kernel: an import": (
        "addnorm-forward",
        [(MEAN, "import math\n    mean = tl.sum(p, axis=1) / N + math.sin(0.0)")],
        "python-in-kernel",
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
    "c1 goes on": ("rmsnorm-backward", [(C1, C1 + ".cumsum(0)")], "rows-mixed"),
    "the rstd of the first row": (
        "rmsnorm-backward",
        [(DX, DX.replace("rstd *", "rstd[:1] *"))],
        "rows-mixed",
    ),
    "the c1 of the last row": ("rmsnorm-backward", [(C1, C1 + "[-1:]")], "rows-mixed"),
    "a factor that counts rows": (
        "rmsnorm-backward",
        [(C1, C1 + " * np.arange(3, 3 + len(x))[:, None]")],
        "coefficient-c1",
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
        "inputs-exchanged",
    ),
    "the weight is taken for x": (
        "layernorm-function",
        [(SAVED, "weight, x = ctx.saved_tensors")],
        "inputs-exchanged",
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
        "y-for-x",
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
    "rows one column apart": (
        "addnorm-forward",
        [("x.stride(0), residual.stride(0),", "x.stride(1), residual.stride(1),")],
        "stride-ignored",
    ),
    "one row of the residual": (
        "addnorm-forward",
        [("residual_ptr + at * residual_step + cols", "residual_ptr + cols")],
        "rows-mixed",
    ),
    "half of the sum is stored": (
        "addnorm-forward",
        [("cols[None, :], stored, mask", "cols[None, :], x, mask")],
        "residual-left-out",
    ),
    "rows from the last to the first": (
        "addnorm-forward",
        [
            ("rstd_ptr + rows, rstd", "rstd_ptr + M - 1 - rows, rstd"),
            ("mean_ptr + rows, mean", "mean_ptr + M - 1 - rows, mean"),
        ],
        "rows-mixed",
    ),
    "the median": (
        "stable-normalize",
        [
            (
                "first = wide.mean(-1, keepdims=True)",
                "first = np.sort(wide)[:, x.shape[1] // 2, None]",
            ),
            ("q = q - left\n    var", "var"),
            ("(first + left)", "first"),
        ],
        "rough-mean",
    ),
    "eps after the root": (
        "stable-normalize",
        [
            (
                "1 / np.sqrt(var + np.float32(eps))",
                "1 / np.sqrt(np.maximum(var, np.float32(1e-30))) + np.float32(eps)",
            )
        ],
        "eps-placement",
    ),
    "float64 by its name": (
        "stable-normalize",
        [("wide = x.astype(np.float32)", "wide = x.astype(np.float64)")],
        "wide-arithmetic",
    ),
    "a factor upside down": (
        "merge-blocks",
        [("n1 * share * d * d", "np.maximum(n, 1) * d * d")],
        "merge-between",
    ),
    "sums by their lengths": (
        "merge-blocks",
        [("squares1 + squares2", "n1 * squares1 + n2 * squares2")],
        "merge-within",
    ),
    "a mean of its own": (
        "merge-blocks",
        [("mean1 + share * d", "mean1 + share * share * d")],
        "merge-weights",
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
    "a gain that forgets rstd": (
        "norm-project",
        [
            (
                "dweight = (dy * x_hat.reshape(x.shape))",
                "dweight = (dy * (x_hat / rstd).reshape(x.shape))",
            )
        ],
        "row-factor",
    ),
    "the stream begins with dy": (
        "gradient-norms",
        [("stream, found = torch.zeros_like(dy)", "stream, found = dy")],
        "stream-begins",
    ),
    "the branch of another gradient": (
        "gradient-norms",
        [("dy = branches[k - 1](stream)", "dy = branches[k - 1](dy)")],
        "branch-passed-by",
    ),
    "another norm": (
        "gradient-norms",
        [("stream.square().sum().sqrt()", "stream.square().mean().sqrt()")],
        "squared-norm",
    ),
    "a second mistake in rows without spread": (
        "layernorm-backward",
        [
            (
                LN_DX,
                LN_DX.replace(
                    "rstd * (wdy - c2 - x_hat * c1)",
                    "np.where((x == x[:, :1]).all(-1)[:, None], 0, rstd * (wdy - c2 + x_hat * c1))",
                ),
            )
        ],
        "projection-sign flat-row",
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
    assert keys(report) == set(expected.split()) and not report.passed, report
    assert not stage or not report[stage[0]].passed, report
    assert "python" not in expected or report.points == 0
    if stage == ["signature and shapes"]:  # a slip in the form costs the form alone
        assert report.points == report.max_points - report[stage[0]].max_points


@pytest.mark.parametrize("old", [X, STORE])
def test_a_kernel_without_a_mask_has_lost_most_points(old):
    report = report_of(
        "addnorm-forward",
        (old, old.replace(", mask=mask", "").replace(", other=0", "")),
    )
    assert (
        keys(report) == {"out-of-bounds"} and report.points < report.max_points / 4
    ), report


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


GPU = {
    "a loop over a list": ([(MEAN, MEAN + "\n    for _ in [0]:\n        mean = mean + 0")], "Look at"),
    "a global number": ([(EPS, "tl.sum(q * q, axis=1) / N + EPS + ZERO)"), (HEAD, HEAD + "ZERO = 0.0\n")], "ZERO"),
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
        titles = [diagnosis.title for diagnosis in report.diagnoses]
        assert len(titles) == len(expected), report
        assert all(
            words in title for words, title in zip(expected, titles, strict=True)
        ), report


def test_a_warning_on_a_row_of_zeros_costs_the_point_that_the_page_promises():
    def warns(x, weight, eps):
        size = np.sqrt((x * x).mean(-1))
        scale = np.where(size > 0, size / size, 1)
        rstd = 1 / np.sqrt(size**2 + eps)
        return x * (scale * rstd)[:, None] * weight, rstd

    report = hw.check("rmsnorm-forward", warns)
    assert report.points == report.max_points - 1 and keys(report) == {"warns"}, report


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
