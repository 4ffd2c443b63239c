"""More attacks on the grader: other ways to a derivative, forged replies, long and deep sources, and false alarms."""

import json
import sys

import numpy as np
import pytest

import normgrad.homework as hw
from normgrad.homework import folder, grade_file
from normgrad.homework.student import hidden, remote, static, wire

SECONDS = 2.0
DEF = "import numpy as np\ndef rmsnorm_backward(dy, x, weight, rstd):\n    "
LN = "import numpy as np, torch, sys\ndef layernorm_backward(dy, x, weight, mean, rstd):\n    "
# LayerNorm of tensors made from the arrays, with the eps that rstd says.
FORWARD = (
    "t = torch.tensor; x_, w_, b_ = (t(a).requires_grad_() for a in (x, weight, 0 * weight)); g = t(dy)\n"
    "    q = x_ - x_.mean(-1, keepdim=True); v = (q * q).mean(-1); e = (t(rstd)**-2 - v).detach()\n"
    "    y = q * ((v + e)**-0.5)[:, None] * w_ + b_\n    "
)
CALL = (
    "    g = f(t(dy), t(x), [x.shape[1]], t(mean)[:, None], t(rstd)[:, None], t(weight), t(weight), [True] * 3)\n"
    "    return tuple(a.numpy() for a in g)\n"
)
NATIVE = "t, f = torch.tensor, torch.ops.aten.native_layer_norm_backward\n" + CALL


def graded(place, source, homework="hw2", seconds=SECONDS):
    """The Reports of a solution.py with this text."""
    (place / "solution.py").write_text(source, encoding="utf8")
    return grade_file(place / "solution.py", homework, seconds=seconds)


def text(report):
    return " ".join(str(report).split())


# Points that were not earned


TORCHS_OWN = {
    "the engine": (LN + FORWARD + "from torch.autograd.graph import _engine_run_backward as run\n"
                   "    run((y,), (g,), False, False, (), True, accumulate_grad=True)\n"
                   "    return x_.grad.numpy(), w_.grad.numpy(), b_.grad.numpy()", "switched off here"),
    "the engine's class": (LN + FORWARD + "torch._C._ImperativeEngine().run_backward(\n"
                           "        (y,), (g,), False, False, (), True, accumulate_grad=True)\n"
                           "    return x_.grad.numpy(), w_.grad.numpy(), b_.grad.numpy()", "switched off here"),
    "the engine's object": (LN + FORWARD + "torch.autograd.Variable._execution_engine.run_backward(\n"
                            "        (y,), (g,), False, False, (), True, accumulate_grad=True)\n"
                            "    return x_.grad.numpy(), w_.grad.numpy(), b_.grad.numpy()", "NoneType"),
    "torch.func": (LN + "torch.func.grad(lambda a: a.sum())(torch.tensor(x))", "switched off here"),
    "an operator by parts of its name": (
        LN + "t, f = torch.tensor, getattr(torch.ops.aten, 'native_layer_norm_' + 'backward')\n" + CALL,
        "switched off here"),
    "an alias": (LN.replace("layernorm_backward", "work") + NATIVE + "layernorm_backward = work", "It uses native_"),
    "a block": ("if True:\n    " + (LN + NATIVE).replace("\n", "\n    ") + "\n", "It uses native_"),
    "the grader's own grad": (
        LN + FORWARD + "f = sys._getframe()\n    while '_AUTOGRAD' not in f.f_globals: f = f.f_back\n"
        "    grad = f.f_globals['_AUTOGRAD']['grad']\n    return tuple(a.numpy() for a in grad(y, (x_, w_, b_), g))",
        "looked at the grader's own frames"),
    "a file by torch": (LN + "torch.from_file('solution.py', size=9, dtype=torch.uint8)", "reads and writes no files"),
}  # fmt: skip


@pytest.mark.parametrize("name", TORCHS_OWN)
def test_torch_does_not_do_the_work(torch, tmp_path, name):
    source, words = TORCHS_OWN[name]
    report = graded(tmp_path, source, "hw3")[0]
    assert report.points == 0 and words in text(report), report


@pytest.mark.parametrize("way", ["the identity", "a constant"])
def test_a_gradient_of_a_wrong_forward_earns_nothing(torch, way):
    """Slopes of the student's own y agree with its gradients, whatever y is."""

    class LayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, bias, eps):
            ctx.save_for_backward(weight)
            return x * (way == "the identity")

        @staticmethod
        def backward(ctx, dy):
            (weight,) = ctx.saved_tensors
            return dy * (way == "the identity"), 0 * weight, 0 * weight, None

    report = hw.check("layernorm-function", LayerNorm)
    assert report.points == 0 and "Put y right first" in report["gradcheck"].message


def test_numbers_that_never_change_earn_nothing():
    """Of constant rows they are right."""

    def stable_normalize(x, eps):
        zero = np.zeros(len(x), np.float32)
        return x * 0, x[:, 0].astype(np.float32), zero, zero + np.float32(eps**-0.5)

    report = hw.check("stable-normalize", stable_normalize)
    assert report["degenerate rows"].passed and report.points == 0, report


COPIES = """
import numpy as np, torch, triton, triton.language as tl
@triton.jit
def copy(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + at, tl.load(x_ptr + at))
def numbers(t): return np.array(t.tolist()).reshape(tuple(t.shape))
def addnorm_forward(x, residual, weight, bias, eps):
    x = x.contiguous()
    copy[(x.numel(),)](x, torch.empty_like(x), N=1)
    p = numbers(x) + numbers(residual)
    mean = p.mean(-1)
    rstd = (p.var(-1) + eps)**-0.5
    y = (p - mean[:, None]) * rstd[:, None] * numbers(weight) + numbers(bias)
    return tuple(torch.tensor(a) for a in (y, p, mean, rstd))
"""


def test_numpy_does_not_do_the_work_of_a_kernel(torch, tmp_path):
    pytest.importorskip("triton")
    (report, _) = graded(tmp_path, COPIES, "hw4", seconds=5)
    assert report.points == 0 and "No result was written by a Triton kernel" in report["y"].message, report


def test_numbers_taken_out_of_a_matrix_are_seen(torch, tmp_path):
    """What NumPy makes of them, a kernel should."""
    pytest.importorskip("triton")
    old = "    m, n = x.shape\n"
    source = folder.solution("hw4")
    assert source.count(old) == 1
    (report, _) = graded(tmp_path, source.replace(old, "    x.tolist()\n" + old), "hw4", seconds=5)
    assert "tolist" in report["kernels"].message and report.points < report.max_points, report


# What the student's process may not do


FRAMES = (
    "import sys; sys._getframe()",
    "import inspect; inspect.stack()",
    "import traceback; list(traceback.walk_stack(None))",
    "g = (i for i in ()); g.gi_frame",
    "try: 1 / 0\n    except ZeroDivisionError as e: e.__traceback__.tb_frame",
)


@pytest.mark.parametrize("line", FRAMES)
def test_the_graders_frames_are_not_looked_at(tmp_path, line):
    report = graded(tmp_path, DEF + line + "\n    return dy, weight")[1]
    assert report.points == 0 and "looked at the grader's own frames" in text(report)


def test_a_traceback_may_be_printed(tmp_path):
    lines = (
        "import collections, logging, traceback\nPair = collections.namedtuple('Pair', 'a b')\ntry: 1 / 0\n"
        "except ZeroDivisionError: traceback.print_exc(); logging.exception('x')\ntraceback.print_stack()\n"
    )
    assert all(report.passed for report in graded(tmp_path, lines + folder.solution("hw2")))


FORGED = {
    "a method of the server": ("import sys\nsys.modules['__main__'].Server.call = None",
                               "replaced __main__.Server.call"),
    "what looks for changes": ("import sys\nsys.modules['__main__'].Server.__getattribute__ = lambda s, n: list",
                               "replaced __main__.Server.__getattribute__"),
    "json": ("import json\njson.JSONEncoder.encode = lambda s, h: '{}'", "replaced json.JSONEncoder.encode"),
    "a data base": ("import sqlite3\nsqlite3.connect('x.db')", "imported sqlite3"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_replies_are_not_forged(tmp_path, name):
    line, words = FORGED[name]
    for report in graded(tmp_path, f"{line}\n{folder.solution('hw2')}"):
        assert report.points == 0 and words in text(report), report
    assert [path.name for path in tmp_path.iterdir()] == ["solution.py"]


def test_jsons_own_encoder_does_not_write_replies(tmp_path):
    lie = "import json\njson._default_encoder.encode = lambda h: 1 / 0\n"
    assert all(report.passed for report in graded(tmp_path, lie + folder.solution("hw2")))


WRITE = """import fcntl, os, struct
    text = b'{{"shapes": [], "ticket": "x", "printed": [Infinity, ""], "more": "' + b'x' * {size} + b'"}}'
    ends = [n for n in range(3, 12) if os.path.exists(f'/dev/fd/{{n}}') and fcntl.fcntl(n, fcntl.F_GETFL) & 3 == 1]
    while True:
        for n in ends: os.write(n, struct.pack('>QQ', len(text), 0) + text)
"""


@pytest.mark.parametrize("size", [1, 2**22])
def test_a_process_that_writes_replies_without_end_is_ended(tmp_path, size):
    report = graded(tmp_path, DEF + WRITE.format(size=size), seconds=1)[1]
    assert report.points == 0 and "pipe" in text(report), report


def test_replies_that_nobody_reads_do_not_pile_up():
    class Endless:
        message = wire.pack({})

        def __init__(self):
            self.left = b""

        def read(self, count):
            self.left = self.left or self.message
            part, self.left = self.left[:count], self.left[count:]
            return part

    replies = remote.queue.Queue(remote.UNREAD)
    remote._listen(Endless(), replies)
    assert replies.qsize() == remote.UNREAD


@pytest.mark.parametrize("shape", ["[1e999]", "[1000000000000000000000]", "[-1, -8]", '"ab"', "[[2]]"])
def test_a_shape_that_is_none_is_garbled(shape):
    import io

    header = f'{{"shapes": [{shape}]}}'.encode()
    with pytest.raises(wire.Garbled):
        wire.read(io.BytesIO(wire.LENGTHS.pack(len(header), 64) + header + bytes(64)))


def test_words_of_a_student_do_not_steer_the_terminal(tmp_path):
    source = DEF + "raise type('E\\x1b[31m', (Exception,), {})('\\x1b[2J' * 9)"
    report = graded(tmp_path, source)[1]
    assert "\x1b" not in str(report) + json.dumps([stage.message for stage in report.stages])
    report = graded(tmp_path, DEF + "return type('X' * 10**6, (), {})(), weight")[1]
    assert len(str(report)) < 3000


SOURCES = {
    "long": ("a = 1\n" * 400_000, "at most 1048576 are read"),
    "deep": ("a = " + "-" * 100_000 + "1\n", "When solution.py was loaded"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_nobody_can_read(tmp_path, name):
    lines, words = SOURCES[name]
    for report in graded(tmp_path, folder.solution("hw2") + lines):
        assert report.points == 0 and words in text(report), report


def test_numbers_that_are_none_warn_nobody(recwarn):
    hw.check("rmsnorm-backward", lambda dy, x, weight, rstd: (x * np.inf, weight * np.nan))
    assert [str(each.message) for each in recwarn] == []


def test_what_a_class_says_about_its_array_does_not_count():
    class Lies(np.ndarray):
        dtype = property(lambda self: np.dtype("float64"))

    def narrow(dy, x, weight, rstd):
        return dy.astype(np.float32).view(Lies), weight

    assert "dx has dtype float32" in hw.check("rmsnorm-backward", narrow)["signature and shapes"].message


# False alarms


SETTINGS = (
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_device('cpu')",
    "torch.autograd.set_detect_anomaly(True)",
    "torch.testing.assert_close(torch.ones(2), torch.ones(2))",
)


@pytest.mark.parametrize("line", SETTINGS)
def test_settings_of_torch_are_no_attack(torch, tmp_path, line):
    for report in graded(tmp_path, f"import torch\n{line}\n{folder.solution('hw3')}", "hw3", seconds=10):
        assert report.passed, report


def test_what_a_library_does_not_implement_is_no_stub(tmp_path):
    throws = "return next(_ for _ in ()) if not dy.size else (_ for _ in ()).throw(NotImplementedError('not for Half'))"
    report = graded(tmp_path, DEF + throws)[1]
    assert "not for Half" in text(report) and not report.stub
    assert graded(tmp_path, DEF + "raise NotImplementedError('later')")[1].stub


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from torch import layer_norm as ln\ndef f(x): return ln(x)", ["layer_norm"]),
        ("import torch\nwork = torch.layer_norm\ndef f(x): return work(x)", ["layer_norm"]),
        ("f = lambda x: torch.layer_norm(x)", ["layer_norm"]),
        ("try:\n    def f(x): return torch.layer_norm(x)\nexcept E: pass", ["layer_norm"]),
        ("x = torch.layer_norm(1)\ndef f(x): return x", []),
        ("y = torch.layer_norm(1)\ndef f(x):\n    y = x\n    return y", []),
        ("if 0: pass\n" + "elif 0: pass\n" * 400 + "def f(x): return x", []),
    ],
)
def test_forbidden_names_by_another_name(source, found):
    assert static.forbidden_in_source(source, "f", ("layer_norm",)) == found


def test_a_private_function_keeps_its_names():
    names = {"step": lambda n: n - 1}
    exec("def down(n): return 0 if n == 0 else 1 + down(step(n))", names)
    mine = hidden.private(names["down"], step=names["step"])
    names["step"] = names["down"] = None
    assert mine(3) == 3


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
        dx[i] = rstd[i] * ((np.eye(n, dtype=x.dtype) - np.outer(row, row) / x.dtype.type(n)) @ (weight * dy[i]))
    return dx, np.diag(dy.T @ x_hat).copy()


def by_two_numbers(dy, x, weight, mean, rstd):
    """dx = a wdy + b x + c, with three numbers a row."""
    g, n = dy * weight, x.shape[1]
    b = (g.sum(1) * mean - (g * x).sum(1)) * rstd**3 / n
    c = -b * mean - g.sum(1) * rstd / n
    x_hat = (x - mean[:, None]) * rstd[:, None]
    return rstd[:, None] * g + b[:, None] * x + c[:, None], (dy * x_hat).sum(0), dy.sum(0)


def by_products(x, eps):
    """Means as products with a vector of 1 / N, after the first entry is taken off."""
    wide = x.astype(np.float32)
    share, first = np.full(wide.shape[1], np.float32(1) / np.float32(wide.shape[1]), np.float32), wide[:, :1]
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
    "c1 and c2 exchanged": (lambda g, h, r, w, dy: r * (g - mean(h * g) - h * mean(g)), "unknown",
                            "dx = rstd * (wdy - x_hat * mean(wdy) - mean(x_hat * wdy))"),
    "the weight once more in c1": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean(h * g * w)), "unknown",
                                   "dx = rstd * (wdy - mean(wdy) - x_hat * mean(weight * x_hat * wdy))"),
    "mean of dy beside the bracket": (lambda g, h, r, w, dy: r * (g - h * mean(h * g)) - mean(dy), "unknown",
                                      "dx = rstd * (wdy - x_hat * mean(x_hat * wdy)) - mean(dy)"),
    "the root of rstd": (lambda g, h, r, w, dy: np.sqrt(r) * (g - mean(g) - h * mean(h * g)), "unknown", ""),
    "the last column left out of c1": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean((h * g)[:, :-1])),
                                       "unknown", ""),
    "half of it": (lambda g, h, r, w, dy: r * (g - mean(g) - h * mean(h * g)) / 2, "constant-factor",
                   "dx = 1 / 2 * rstd * (wdy - mean(wdy) - x_hat * mean(x_hat * wdy))"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRONG_DX)
def test_no_diagnosis_comes_from_inputs_that_any_formula_explains(name):
    """One row, or one column, is explained by a wrong factor whatever was computed; ordinary rows are not."""
    formula, key, implemented = WRONG_DX[name]

    def wrong(dy, x, weight, mean, rstd):
        r = rstd[:, None]
        h = (x - mean[:, None]) * r
        return formula(weight * dy, h, r, weight, dy), (dy * h).sum(0), dy.sum(0)

    (diagnosis,) = hw.check("layernorm-backward", wrong).diagnoses
    assert (diagnosis.misconception, diagnosis.implemented) == (key, implemented)


def test_a_part_that_nobody_sees_is_no_other_rstd():
    """x_hat * x_hat averages to 1, so almost nothing is left, in which a third power is not seen."""

    def wrong(dy, x, weight, rstd):
        x_hat, wdy = x * rstd[:, None], weight * dy
        return rstd[:, None] * (wdy - wdy * mean(x_hat * x_hat)), (dy * x_hat).sum(0)

    assert "rstd-value" not in [each.misconception for each in hw.check("rmsnorm-backward", wrong).diagnoses]


def test_a_small_change_in_all_rows_is_no_rounding():
    """Normalized twice, rows are shorter by eps / 2; rounding to 16 bits would leave one of them farther off."""

    def wrong(x, weight, eps):
        rstd = ((x * x).mean(-1) + eps) ** -0.5
        x_hat = x * rstd[:, None]
        return x_hat * ((x_hat**2).mean(-1) + eps)[:, None] ** -0.5 * weight, rstd

    assert [each.misconception for each in hw.check("rmsnorm-forward", wrong).diagnoses] == ["rstd-value"]


def test_without_triton_nothing_is_said_about_the_number_of_results(monkeypatch):
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    pytest.importorskip("torch")
    report = hw.check("addnorm-forward", lambda x, *rest: (x, x, x[:, 0], x[:, 0]))
    assert "returned 0" not in text(report) and "No result was written by a Triton kernel" in report["kernels"].message
