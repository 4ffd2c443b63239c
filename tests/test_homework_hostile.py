"""Submissions that loop, exit, crash, cheat or lie: each ends in a report, and earns nothing that it did not earn."""

import pytest

import normgrad
from normgrad.homework import folder, grade_file
from normgrad.homework.grade import check, grade_task
from normgrad.homework.student import remote
from normgrad.homework.student.local import Local
from normgrad.homework.task import find

ROOT = str(normgrad.__path__[0])
SECONDS = 1.0
DEF = "import numpy as np\ndef rmsnorm_backward(dy, x, weight, rstd):\n    "
# What a cheat would do with the reference, once it has it.
USE = "saved = ref.forward(x, weight, spec=RMS)\n    g = ref.backward(dy, saved)\n    return g.dx, g.dweight\n"

# name: (solution.py, words that the report must contain)
HOSTILE = {
    "endless loop": (DEF + "while True: pass", "had not finished after 1 s"),
    "endless loop that swallows": (DEF + "while True:\n        try:\n            while True: pass\n"
                                   "        except BaseException: pass", "had not finished after"),
    "loops when loaded": ("while True: pass", "When solution.py was loaded, your code had not finished"),
    "sys.exit": (DEF + "import sys; sys.exit(0)", "called exit"),
    "sys.exit when loaded": ("import sys; sys.exit()", "When solution.py was loaded, your code called exit"),
    "os._exit": (DEF + "import os; os._exit(3)", "ended its process with exit status 3"),
    "kills the grader": (DEF + "import os; os.kill(os.getppid(), 9)", "called os.kill"),
    "eight gigabytes": (DEF + "a = np.ones(2**30); return dy * a[0], weight", "more memory than the 2 GB"),
    "recursion": (DEF + "return rmsnorm_backward(dy, x, weight, rstd)", "called itself without end"),
    "crash": (DEF + "raise_ = np.frombuffer; import faulthandler; faulthandler._sigsegv()", "SIGSEGV"),
    "raises": (DEF + "return dy[99], weight", "Line 3 in rmsnorm_backward: return dy[99], weight"),
    "raises when loaded": ("import numpy as np\nnp.zeros(-1)", "Line 2: np.zeros(-1)"),
    "syntax error": ("def rmsnorm_backward(dy:\n  return", "SyntaxError"),
    "raises what does not print": (DEF + "class E(Exception):\n        def __str__(self): raise ValueError\n"
                                   "    raise E", "raised E"),
    "NaN": (DEF + "return x * np.nan, weight * np.nan", "numbers are not finite"),
    "the input": (DEF + "return dy, weight", "needs"),
    "zeros": (DEF + "return 0 * dy, 0 * weight", "All rows are wrong"),
    "None": (DEF + "return None", "It returned one result, needs 2: dx, dw"),
    "a list of floats": (DEF + "return dy.tolist(), weight", "dx is a list, needs a numpy.ndarray"),
    "strings": (DEF + "return dy.astype(str), weight", "has dtype"),
    "a wrong shape": (DEF + "return dy.T.copy(), weight", "dx has shape (8, 5), needs (5, 8)"),
    "too much": (DEF + "return np.broadcast_to(1.0, (10**9,)), weight", "more"),
    "an array that lies": (DEF + "class A(np.ndarray):\n        shape = property(lambda s: (5, 8))\n"
                           "    return np.zeros(3).view(A), weight", "dx"),
    "patches numpy": ("import numpy as np\nnp.abs = lambda a: a * 0\n" + DEF + "return dy, weight",
                      "replaced numpy.abs"),
    "patches numpy late": (DEF + "np.isfinite = np.abs = lambda a: 0 * a\n    return dy, weight", "replaced numpy."),
    "patches builtins": (DEF + "import builtins; builtins.zip = lambda *a, **k: []\n    return dy, weight",
                         "replaced builtins.zip"),
    "patches the grader": (DEF + "import sys; m = sys.modules['__main__']\n"
                           "    m.told = m.guarded = lambda *a: None\n    return dy, weight", "replaced"),
    "writes to the grader's pipe": (DEF + "import os\n    for n in range(3, 12):\n        try: os.write(n, b'x' * 99)\n"
                                    "        except OSError: pass\n    return dy, weight", "pipe"),
    "imports the reference": ("from normgrad import numpy_ref as ref, RMS_NORM as RMS\n" + DEF + USE,
                              "imported normgrad"),
    "importlib": (DEF + "import importlib; ref = importlib.import_module('normgrad.numpy_ref')\n    " + USE,
                  "opened a file of normgrad"),
    "sys.modules": (DEF + "import sys; ref = sys.modules['normgrad.numpy_ref']\n    " + USE, "KeyError"),
    "sys.meta_path": (DEF + "import sys; sys.meta_path.clear(); import normgrad\n    " + USE, "imported normgrad"),
    "reads the source": (DEF + f"exec(open({ROOT + '/numpy_ref.py'!r}).read(), globals())",
                         "opened a file of normgrad"),
    "loads the source": (DEF + "from importlib.util import spec_from_file_location as s, module_from_spec as m\n    "
                         f"k = s('ref', {ROOT + '/numpy_ref.py'!r}); ref = m(k); k.loader.exec_module(ref)\n    " + USE,
                         "opened a file of normgrad"),
    "reads by folder": (DEF + f"import os; d = os.open({ROOT!r}, 0)\n    f = os.open('numpy_ref.py', 0, dir_fd=d)",
                        "looked into"),
    "reads the grader's memory": (DEF + "import os; open(f'/proc/{os.getppid()}/mem', 'rb')", "looked into the system"),
    "starts a process": (DEF + "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import normgrad'])",
                         "called subprocess.Popen"),
    "forks": (DEF + "import os; os.fork()", "called os.fork"),
    "C pointers": (DEF + "import ctypes; ctypes.CDLL(None)", "called ctypes.dlopen"),
    "writes a file": (DEF + "open('test_hw2.py', 'w').write('')", "opened a file to write it"),
    "torch": (DEF + "import torch", "imported torch"),
}  # fmt: skip


def grade(place, source):
    """(forward, backward) Reports of a solution.py with this text."""
    (place / "solution.py").write_text(source, encoding="utf8")
    return grade_file(place / "solution.py", "hw2", seconds=SECONDS)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Time limits of a second also for loading; NumPy is loaded already then."""
    monkeypatch.setattr(remote, "LOAD_SECONDS", SECONDS)


@pytest.mark.parametrize("name", HOSTILE)
def test_ends_in_a_report_without_points(tmp_path, name):
    source, words = HOSTILE[name]
    forward, backward = grade(tmp_path, source)
    assert words in " ".join(str(backward).split()), str(backward)
    assert (forward.points, backward.points) == (0, 0)
    assert len(backward.stages) == len(find("rmsnorm-backward").stages)
    assert "Traceback" not in str(backward) and "The grader itself" not in str(backward)
    assert max(map(len, str(backward).splitlines())) <= 80


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
FUNCTIONS = {
    "loops in backward": ("x", "while True: pass", "had not finished after 1 s"),
    "exits in backward": ("x", "import os; os._exit(1)", "ended its process with exit status 1"),
    "eight gigabytes": ("x + torch.ones(2**30).sum()", GRADIENTS, "more memory than the 2 GB"),
    "the input": ("x * 1", "return dy, weight, weight, None", "needs"),
    "NaN": ("x * float('nan')", GRADIENTS, "numbers are not finite"),
    "too few gradients": ("x", "return dy", "incorrect number of gradients"),
    "None": ("x * 1", "return None, None, None, None", "dx is None, needs a torch.Tensor"),
    "lets torch differentiate": ("x * 1", "return torch.autograd.grad(x, (x, weight))", "switched off here"),
    "patches torch": ("setattr(torch, 'abs', torch.zeros_like) or x * 1", GRADIENTS, "replaced torch.abs"),
    "patches a tensor's methods": ("setattr(torch.Tensor, 'double', None) or x * 1", GRADIENTS, "torch.Tensor.double"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_autograd_function_ends_in_a_report_without_points(tmp_path, name):
    pytest.importorskip("torch")
    forward, backward, words = FUNCTIONS[name]
    (tmp_path / "solution.py").write_text(CLASS.format(forward=forward, backward=backward), encoding="utf8")
    reports = grade_file(tmp_path / "solution.py", "hw3", seconds=SECONDS)
    assert words in " ".join(str(reports[1]).split()), str(reports[1])
    assert [report.points for report in reports] == [0, 0]
    assert "The grader itself" not in str(reports[1])


def edited(old, new):
    """The reference solution of homework 2 with one text replaced."""
    source = folder.solution("hw2")
    assert source.count(old) == 1
    return source.replace(old, new)


def test_printing_ten_megabytes_is_no_mistake(tmp_path):
    _, backward = grade(tmp_path, edited("    wdy = weight * dy\n", "    print('y' * 10**7)\n    wdy = weight * dy\n"))
    assert backward.passed and "prints a lot" in str(backward)


def test_a_changed_input_costs_its_stage_only(tmp_path):
    source = edited("    wdy = weight * dy\n", "    wdy = weight * dy\n    rstd *= 1 + 2**-50\n")
    _, backward = grade(tmp_path, source)
    assert "changed its input rstd in place" in backward["inputs left alone"].message
    assert not backward["inputs left alone"].passed


def test_lies_about_a_changed_input_do_not_help(tmp_path):
    """The memory is the grader's: the student's process has no say in whether an input changed."""
    source = edited("    dw = (dy * x_hat).sum(0)\n", "    dw = (dy * x_hat).sum(0)\n    dy[:] = 0\n")
    _, backward = grade(tmp_path, source + "\nimport sys\nsys.modules['__main__'].Server.changed = lambda *a: ()\n")
    assert not backward["inputs left alone"].passed


def test_one_bad_stage_does_not_end_the_others(tmp_path):
    """The process is started again: a crash on degenerate rows leaves the points of the other stages."""
    old = "    rstd = rstd[:, None]\n"
    source = edited(old, "    import os\n    if len(x) == 0: os._exit(1)\n" + old)
    _, backward = grade(tmp_path, source)
    assert not backward["degenerate rows"].passed
    assert backward.points == backward.max_points - 1


def loops(dy, x, weight, rstd):
    while True:
        pass


def exits(dy, x, weight, rstd):
    raise SystemExit


def patches(dy, x, weight, rstd):
    import numpy as np

    np.abs = np.isfinite = lambda array: array * 0
    return dy, weight


def deep(dy, x, weight, rstd):
    return deep(dy, x, weight, rstd)


@pytest.mark.parametrize(
    ("function", "words"),
    [(loops, "had not finished"), (exits, "called exit"), (patches, "replaced numpy.abs"), (deep, "called itself")],
)
def test_in_a_notebook(function, words):
    import numpy as np

    abs_before = np.abs
    report = check("rmsnorm-backward", function, seconds=0.2)
    assert words in " ".join(str(report).split()) and report.points == 0
    assert np.abs is abs_before


def test_in_a_thread_without_signals():
    import threading

    found = []

    def run():
        with Local({"rmsnorm_backward": loops}) as student:
            found.append(grade_task(find("rmsnorm-backward"), student, seconds=0.2))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert found and "had not finished" in str(found[0])
