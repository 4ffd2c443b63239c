"""Submissions that loop, exit, crash, cheat or lie: each ends in a report, and none earns a point."""

import io
import sys
import time

import numpy as np
import pytest
from homework_solutions import changed, flat, graded

import normgrad
from normgrad.homework import solutions
from normgrad.homework.grade import check
from normgrad.homework.sandbox import remote, running, wire
from normgrad.homework.sandbox.student import Given, Request

ROOT = str(normgrad.__path__[0])
SECONDS = 1.0
DEF = "import numpy as np\ndef rmsnorm_backward(dy, x, weight, rstd):\n    "
# What a cheat would do with the reference, once it has it.
USE = "saved = ref.forward(x, weight, spec=RMS)\n    g = ref.backward(dy, saved)\n    return g.dx, g.dweight\n"

# name: (solution.py, words that the report of rmsnorm-backward must contain)
HOSTILE = {
    "endless loop": (DEF + "while True: pass", "had not finished after 1 s"),
    "loops when loaded": ("while True: pass", "When solution.py was loaded, your code had not finished"),
    "sys.exit": (DEF + "import sys; sys.exit(0)", "called exit"),
    "os._exit": (DEF + "import os; os._exit(3)", "ended its process with exit status 3"),
    "kills the grader": (DEF + "import os; os.kill(os.getppid(), 9)", "called os.kill"),
    "eight gigabytes": (DEF + "a = np.ones(2**30); return dy * a[0], weight", "more memory than the 2 GB"),
    "recursion": (DEF + "return rmsnorm_backward(dy, x, weight, rstd)", "called itself without end"),
    "crash": (DEF + "raise_ = np.frombuffer; import faulthandler; faulthandler._sigsegv()", "SIGSEGV"),
    "raises": (DEF + "return dy[99], weight", "Line 3 in rmsnorm_backward: return dy[99], weight"),
    "syntax error": ("def rmsnorm_backward(dy:\n  return", "SyntaxError"),
    "a long source": ("a = 1\n" * 400_000, "at most 1048576 are read"),
    "a deep source": ("a = " + "-" * 100_000 + "1\n", "When solution.py was loaded"),
    "raises what does not print": (DEF + "class E(Exception):\n        def __str__(self): raise ValueError\n"
                                   "    raise E", "raised E"),
    "a long name": (DEF + "return type('X' * 10**6, (), {})(), weight", "dx is a XXX"),
    "NaN": (DEF + "return x * np.nan, weight * np.nan", "numbers are not finite"),
    "strings": (DEF + "return dy.astype(str), weight", "has dtype"),
    "a wrong shape": (DEF + "return dy.T.copy(), weight", "dx has shape (8, 5), needs (5, 8)"),
    "too much": (DEF + "return np.broadcast_to(1.0, (10**9,)), weight", "more"),
    "an array that lies": (DEF + "class A(np.ndarray):\n        shape = property(lambda s: (5, 8))\n"
                           "    return np.zeros(3).view(A), weight", "dx"),
    "patches numpy": ("import numpy as np\nnp.abs = lambda a: a * 0\n" + DEF + "return dy, weight", "off by"),
    "patches builtins": (DEF + "import builtins; builtins.zip = lambda *a, **k: []\n    return dy, weight",
                         "ended its process"),
    "patches what calls it": (DEF + "import sys; sys.modules['sandbox.operations'].perform = None\n    "
                              "return dy, weight", "off by"),
    "patches what writes": ("import sys; sys.modules['sandbox.wire'].pack = lambda *a: b'x' * 99\n" + DEF
                            + "return dy, weight", "pipe"),
    "says what it likes of itself": ("import sys; sys.modules['sandbox.source'].look = lambda t: {'names': 7}\n"
                                     + DEF + "return dy, weight", "pipe"),
    "has failed as nobody fails": (DEF + "import sys; sys.modules['sandbox.running'].told = lambda error: 7\n    1 / 0",
                                   "pipe"),
    "writes to the grader's pipe": (DEF + "import os\n    for n in range(3, 12):\n        try: os.write(n, b'x' * 99)\n"
                                    "        except OSError: pass\n    return dy, weight", "pipe"),
    "writes without end": (DEF + "import os\n    while True:\n        for n in range(3, 12):\n"
                           "            try: os.write(n, b'\\0' * 2**16)\n            except OSError: pass", "pipe"),
    "imports the reference": ("from normgrad import numpy_ref as ref, RMS_NORM as RMS\n" + DEF + USE,
                              "imported normgrad"),
    "imports it late": (DEF + "import importlib; ref = importlib.import_module('normgrad.numpy_ref')\n    " + USE,
                        "of normgrad" if "site-packages" in ROOT else "normgrad"),
    "reads the source": (DEF + f"exec(open({ROOT + '/numpy_ref.py'!r}).read(), globals())",
                         "opened a file of normgrad"),
    "loads the source": (DEF + "from importlib.util import spec_from_file_location as s, module_from_spec as m\n    "
                         f"k = s('ref', {ROOT + '/numpy_ref.py'!r}); ref = m(k); k.loader.exec_module(ref)\n    " + USE,
                         "opened a file of normgrad"),
    "reads the grader's memory": (DEF + "import os; open(f'/proc/{os.getppid()}/mem', 'rb')",
                                  "opened a file that is not in its own folder"),
    "starts a process": (DEF + "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import normgrad'])",
                         "called subprocess.Popen"),
    "forks": (DEF + "import os; os.fork()", "called os.fork"),
    "C pointers": (DEF + "import ctypes; ctypes.CDLL(None)", "ctypes"),
    "a data base": (DEF + "import sqlite3; sqlite3.connect('x.db')", "called sqlite3.connect"),
    "writes a file": (DEF + "open('test_hw2.py', 'w').write('')", "opened a file to write it"),
    "torch": (DEF + "import torch", "imported torch"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Time limits of a second also for loading; NumPy is loaded already then."""
    monkeypatch.setattr(remote, "LOAD_SECONDS", SECONDS)


def ends_without_points(reports, words):
    """The last of some Reports has the words in it, and none has points."""
    last = reports[-1]
    assert words in flat(last), str(last)
    assert [report.points for report in reports] == [0] * len(reports)
    assert len(last.stages) == len(last.of.stages)
    assert (
        "Traceback" not in str(last)
        and "The grader itself" not in str(last)
        and "\x1b" not in last.to_json()
    )
    assert max(map(len, str(last).splitlines())) <= 80 and len(str(last)) < 5000


@pytest.mark.parametrize("name", HOSTILE)
def test_ends_in_a_report_without_points(tmp_path, name):
    source, words = HOSTILE[name]
    ends_without_points(graded(tmp_path, source, "hw2", seconds=SECONDS), words)
    assert [path.name for path in tmp_path.iterdir()] == ["solution.py"]


# torch does not do the work


CLASS = """import torch
class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        return {forward}
    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        {backward}
"""
GRADIENTS = "return dy, dy.sum(0), dy.sum(0), None"
OWN_NORM = "getattr(torch, 'layer_' + 'norm')(x, x.shape[-1:], weight, bias, eps)"
FUNCTIONS = {
    "loops in backward": ("x", "while True: pass", "had not finished after 1 s"),
    "eight gigabytes": ("x + torch.ones(2**30).sum()", GRADIENTS, "more memory than the 2 GB"),
    "lets torch differentiate": ("x * 1", "return torch.autograd.grad(x, (x, weight), dy)", "switched off here"),
    "patches torch": ("setattr(torch, 'abs', torch.zeros_like) or x * 1", GRADIENTS, "off by"),
    "patches a tensor's methods": ("setattr(torch.Tensor, 'double', None) or x * 1", GRADIENTS, "not callable"),
    "torch's norm": ("torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)", GRADIENTS,
                     "It uses layer_norm"),
    "torch's norm by parts of its name": (OWN_NORM, GRADIENTS, "switched off here"),
}  # fmt: skip

LN = "import numpy as np, torch, sys\ndef layernorm_backward(dy, x, weight, mean, rstd):\n    "
# LayerNorm of tensors made from the arrays, with the eps that rstd says.
FORWARD = (
    "t = torch.tensor; x_, w_, b_ = (t(a).requires_grad_() for a in (x, weight, 0 * weight)); g = t(dy)\n"
    "    q = x_ - x_.mean(-1, keepdim=True); v = (q * q).mean(-1); e = (t(rstd)**-2 - v).detach()\n"
    "    y = q * ((v + e)**-0.5)[:, None] * w_ + b_\n    "
)
FOUND = "\n    return tuple(a.numpy() for a in g)"
GIVEN = "t(dy), t(x), [x.shape[1]], t(mean)[:, None], t(rstd)[:, None], t(weight), t(weight), [True] * 3"
CALL = f"\n    g = f({GIVEN})" + FOUND
NATIVE = "t, f = torch.tensor, torch.ops.aten.native_layer_norm_backward" + CALL
TORCHS_OWN = {
    "grad": (FORWARD + "g = torch.autograd.grad(y, (x_, w_, b_), g)" + FOUND, "switched off here"),
    "backward": (FORWARD + "y.backward(g); g = x_.grad, w_.grad, b_.grad" + FOUND, "switched off here"),
    "the engine": (FORWARD + "from torch.autograd.graph import _engine_run_backward as run\n"
                   "    run((y,), (g,), False, False, (), True, accumulate_grad=True)\n"
                   "    return x_.grad.numpy(), w_.grad.numpy(), b_.grad.numpy()", "It uses _engine_run_backward"),
    "torch.func": ("g = [torch.func.grad(lambda a: a.sum())(torch.tensor(x))]" + FOUND, "switched off here"),
    "an operator": (NATIVE, "It uses native_"),
    "an operator by parts of its name": (
        "t, f = torch.tensor, getattr(torch.ops.aten, 'native_layer_norm_' + 'backward')" + CALL, "switched off here"),
}  # fmt: skip


def whole(name):
    """(solution.py, words) of an attack on homework 3."""
    if name in FUNCTIONS:
        forward, backward, words = FUNCTIONS[name]
        return CLASS.format(forward=forward, backward=backward), words
    source, words = TORCHS_OWN[name]
    return CLASS.format(forward="x", backward=GRADIENTS) + LN + source, words


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", [*FUNCTIONS, *TORCHS_OWN])
def test_torch_does_not_do_the_work(torch, tmp_path, name):
    source, words = whole(name)
    if name in FUNCTIONS:
        ends_without_points(graded(tmp_path, source, "hw3", seconds=SECONDS), words)
    else:
        ends_without_points(graded(tmp_path, source, "hw3", seconds=5.0)[:1], words)


@pytest.mark.parametrize("way", ["alias", "block", "alias of the operator"])
def test_a_name_is_seen_wherever_it_stands(torch, tmp_path, way):
    source = {
        "alias": LN.replace("layernorm_backward", "work")
        + NATIVE
        + "\nlayernorm_backward = work",
        "block": "if True:\n    " + (LN + NATIVE).replace("\n", "\n    ") + "\n",
        "alias of the operator": "import torch\nf = torch.native_layer_norm\n"
        + LN
        + "return f(dy)",
    }[way]
    reports = graded(tmp_path, source, "hw3", seconds=SECONDS)
    ends_without_points(reports[:1], "It uses native_")


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
    (report, _) = graded(tmp_path, COPIES, "hw4", seconds=SECONDS)
    assert (
        report.points == 0
        and "No result was written by a Triton kernel" in report["y"].message
    ), report


def test_numbers_taken_out_of_a_matrix_are_seen(torch, tmp_path):
    """What NumPy makes of them, a kernel should."""
    pytest.importorskip("triton")
    line = "    m, n = x.shape\n"
    source = changed("hw4", (line, "    x.tolist()\n" + line))
    (report, _) = graded(tmp_path, source, "hw4")
    assert (
        "tolist" in report["kernels"].message and report.points < report.max_points
    ), report


# Points that were not earned


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

    report = check("layernorm-function", LayerNorm)
    assert report.points == 0 and "Put y right first" in report["gradcheck"].message


def test_numbers_that_never_change_earn_nothing():
    """Of constant rows they are right."""

    def stable_normalize(x, eps):
        zero = np.zeros(len(x), np.float32)
        return x * 0, x[:, 0].astype(np.float32), zero, zero + np.float32(eps**-0.5)

    report = check("stable-normalize", stable_normalize)
    assert report["degenerate rows"].passed and report.points == 0, report


# What costs its stage alone


def test_a_changed_input_fails_its_stage_only_and_costs_half(tmp_path):
    """Whoever calls it has lost numbers, which no right result makes up for."""
    old = "    wdy = weight * dy\n"
    source = changed("hw2", (old, old + "    rstd *= 1 + 2**-50\n"))
    _, backward = graded(tmp_path, source, "hw2", seconds=SECONDS)
    assert "changed its input rstd in place" in backward["inputs left alone"].message
    assert [stage.full for stage in backward.stages].count(False) == 1
    assert backward.points == backward.max_points // 2
    assert "costs 50% of the points at least: the caller's" in str(backward)


def test_one_bad_stage_does_not_end_the_others(tmp_path):
    """A crash on degenerate rows leaves the points of the other stages."""
    old = "    rstd = rstd[:, None]\n"
    crash = "    import os\n    if len(x) == 0: os._exit(1)\n"
    source = changed("hw2", (old, crash + old))
    forward, backward = graded(tmp_path, source, "hw2", seconds=SECONDS)
    assert forward.passed and not backward["degenerate rows"].passed
    assert backward.points == backward.max_points - 1


def test_where_the_system_cannot_fork(tmp_path, monkeypatch):
    """Each call has a process of its own all the same, and one that hangs is ended."""
    monkeypatch.setattr(remote.Remote, "forks", False)
    monkeypatch.setattr(remote, "MORE_SECONDS", 1)
    (tmp_path / "solution.py").write_text(
        "SEEN = []\ndef f(x):\n    SEEN.append(x)\n    while x > 1: pass\n    return len(SEEN) * x\n"
    )
    with remote.Remote(tmp_path / "solution.py", ("numpy",), ("f",)) as student:
        for value in (1.0, 2.0, 1.0):
            student.begin(SECONDS)
            argument = Given("x", np.full(1, value))
            outcome = student.call("f", Request("call", (argument,)))
            assert (
                outcome.failure["what"] == "time"
                if value > 1
                else outcome.values[0].numbers == 1
            ), outcome


# In one process


def test_in_a_notebook():
    def loops(dy, x, weight, rstd):
        while True:
            pass

    report = check("rmsnorm-backward", loops, seconds=0.2)
    assert "had not finished" in flat(report) and report.points == 0


def test_what_else_a_machine_does_is_not_the_students_time():
    """A call that waits is stopped after its stage's time; many that wait a little are not."""
    names = {}
    exec(solutions.solution("hw2"), names)

    def waits(*arguments):
        time.sleep(0.25)
        return names["rmsnorm_forward"](*arguments)

    report = check("rmsnorm-forward", waits, seconds=1.0)
    assert report.passed and report["float32"].seconds > 1.0, report


# Messages


def message(text, *arrays):
    """Bytes that somebody made up as a message."""
    stream = io.BytesIO()
    for array in (np.frombuffer(text.encode(), np.uint8), *arrays):
        np.lib.format.write_array(stream, array)
    return stream.getvalue()


GARBLED = {
    "no array": b"x" * 99,
    "no JSON": message("{"),
    "no object": message("[1]"),
    "too few": message('{"arrays": 2}', np.ones(3)),
    "deep": message("[" * 10**5),
    "objects": message('{"arrays": 1}', np.array([None])),
    "texts": message('{"arrays": 1}', np.array(["a"])),
    "larger than it is": message('{"arrays": 1}', np.ones(3)).replace(b"(3,)", b"(9,)"),
}


@pytest.mark.parametrize("name", GARBLED)
def test_what_is_no_message_is_garbled(name):
    """Nothing is unpickled, and nothing is believed about its size."""
    with pytest.raises(wire.Garbled):
        wire.unpack(GARBLED[name])


def test_a_message_that_is_cut_or_too_long_is_garbled():
    sent = wire.pack({"a": 1}, [np.arange(6.0)])
    for cut in (3, len(sent) // 2):
        with pytest.raises(wire.Garbled):
            wire.receive(io.BytesIO(sent[:cut]))
    with pytest.raises(EOFError):
        wire.receive(io.BytesIO(b""))
    with pytest.raises(wire.Garbled, match="at most"):
        wire.pack({}, [np.zeros(wire.LARGEST)])


def test_an_import_under_way_ends_before_the_time_is_up(tmp_path, monkeypatch):
    """Half a module would stay for good in a notebook's process."""
    slow = "import time\nfor _ in range(30):\n    time.sleep(0.01)\nwhole = True\n"
    (tmp_path / "slow_library.py").write_text(slow, encoding="utf8")
    libraries = (*running._libraries(), str(tmp_path))
    monkeypatch.setattr(running, "_libraries", lambda: libraries)
    monkeypatch.syspath_prepend(tmp_path)

    def endless():
        import slow_library

        while slow_library.whole:
            pass

    assert running.limited(endless, 0.05)[1]["type"] == "TimeUp"
    assert sys.modules.pop("slow_library").whole
