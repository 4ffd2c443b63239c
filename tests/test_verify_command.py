"""The command in a repository: what comments ask, what it prints, what it exits with, the hook and the action."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import UNSET, python
from tables import claims, rows

from normgrad.verify.__main__ import main
from normgrad.verify.report import annotation
from normgrad.verify.request import asked_by, requests_of

ROOT = Path(__file__).parents[1]
BIND = 'X = T("x"), W = T("weight"), Y = Out("y"), n = N, eps = eps, B = WHOLE, grid = rows'
KERNEL = f"""import torch
import triton
import triton.language as tl


# verify: {BIND};
#   rms_norm
@triton.jit
def kernel(X, W, Y, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    x = tl.load(X + row * n + cols, mask=mask, other=0.0)
    w = tl.load(W + cols, mask=mask)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(Y + row * n + cols, x * rstd * w, mask=mask)
"""
LAUNCHER = """

# verify: rms_norm
def rms_norm(x, weight, eps):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, weight, y, x.shape[1], eps, B=block)
    return y
"""
RIGHT = KERNEL + LAUNCHER
WRONG = RIGHT.replace("x * rstd * w, mask=mask)", "x * rstd, mask=mask)")
PAST = KERNEL.replace("x * rstd * w, mask=mask)", "x * rstd * w)  # here")
UNREAD = """import torch


# verify: rms_norm, outputs = y
def unread(x, weight, eps):
    return torch.unknown(x)  # here


def other(x):
    return x
"""
FUNCTIONS = """import torch


# verify: l2_norm(placement="inside"), outputs = y
def l2(x, eps):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + eps)


# verify: own_forward
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


# verify: size = N; rms_norm, outputs = y
class Layer(torch.nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * rstd * self.weight
"""
GRADIENTS = """import numpy as np


def forward(x, eps):
    return x / np.sqrt((x * x).mean(1, keepdims=True) + eps)


# verify: reference = forward, outputs = dx
# verify: g = dy; norm(weight=False), outputs = dx
def backward(g, x, eps):
    rstd = 1 / np.sqrt((x * x).mean(1, keepdims=True) + eps)
    x_hat = x * rstd
    return rstd * (g - x_hat * (x_hat * g).mean(1, keepdims=True))


def same(x, eps):
    return x * (eps + (x**2).sum(1, keepdims=True) / x.shape[1]) ** -0.5
"""
GRADIENTS = GRADIENTS.replace("# verify: reference", "# verify: g = dy; reference")
PROVED = "proved for every M and N"


@pytest.fixture
def repository(monkeypatch, tmp_path):
    """Writes files by their names, and makes their folder that of the command."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf8")
        return tmp_path

    return write


@pytest.fixture
def command(monkeypatch, capsys):
    """(the exit status, what is printed, what is said of errors) of the command with these words."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["normgrad-verify", *map(str, words)])
        try:
            code = main()
        except SystemExit as exit:
            code = exit.code
        return (code, *capsys.readouterr())

    return run


def heads(out):
    """{function: the first line of its verdict} of what is printed."""
    found = re.findall(r"^\S+:\d+: (\w+)\n(.*)$", out, re.M)
    return {name: line.partition(":")[0] for name, line in found}


# comments


def shown(request):
    """A request in words."""
    words = [f"{name} is {text}" for name, text in request.bound.items()]
    described = {
        "grid": request.grid,
        "against": request.definitions,
        "reference": request.reference,
        "outputs": " ".join(request.outputs or ()),
    }
    words += [f"{name} {text}" for name, text in described.items() if text]
    return ", ".join(words)


COMMENTS = [
    (heading, *line.split(" -- ")) for heading, _, line in claims("verify_comments.txt")
]


@pytest.mark.parametrize(
    ("comment", "words"), [row[1:] for row in COMMENTS if row[0] == "asked"]
)
def test_what_a_comment_asks(comment, words):
    assert shown(asked_by(comment, "f")) == words
    text = f"# verify: {comment}\ndef f(x):\n    return x\n"
    requests, errors, others = requests_of(text)
    assert [shown(request) for request in requests] == [words]
    assert errors == others == []


@pytest.mark.parametrize(
    ("comment", "words"), [row[1:] for row in COMMENTS if row[0] == "wrong"]
)
def test_a_comment_that_asks_for_nothing_is_named(repository, command, comment, words):
    repository(kernels=RIGHT.replace(f"{BIND};\n#   rms_norm", comment))
    code, out, err = command("kernels.py")
    assert code == 2 and err.startswith(f"kernels.py:6: comment: {words}")
    assert heads(out) == {"rms_norm": PROVED}


@pytest.mark.parametrize(
    ("comment", "words"), [row[1:] for row in COMMENTS if row[0] == "refused"]
)
def test_what_a_comment_may_not_ask(repository, command, comment, words):
    folder = repository(kernels=KERNEL.replace(f"{BIND};\n#   rms_norm", comment))
    code, _, err = command("kernels.py")
    assert code == 2 and err.startswith("kernels.py:6: comment: ") and words in err
    assert [path.name for path in folder.iterdir()] == ["kernels.py"]


@pytest.mark.parametrize("text", rows("verify_texts.txt"))
def test_no_comment_is_run(repository, command, tmp_path, text):
    text = text.replace("FILE", str(tmp_path / "made"))
    wrong = {
        "bound": f'X = {text}, Y = Out("y"), grid = rows; rms_norm',
        "grid": f'X = T("x"), Y = Out("y"), grid = {text}; rms_norm',
        "norm": f'X = T("x"), Y = Out("y"), grid = rows; norm(weight_offset={text})',
        "all": text,
    }
    files = {
        name: KERNEL.replace(f"{BIND};\n#   rms_norm", comment)
        for name, comment in wrong.items()
    }
    function = f"# verify: x = {text}; rms_norm, outputs = y\ndef f(x):\n    return x\n"
    folder = repository(**files, function=function)
    before = sorted(folder.iterdir())
    code, out, err = command(".", "--comments")
    assert code == 2 and PROVED not in out
    for name in ("bound", "norm", "all"):
        assert f"{name}.py:6: comment: " in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "option", ["run", "library", "name", "seconds", "outputs", "program", "definitions"]
)
def test_a_comment_reaches_no_option_of_verify(repository, command, option):
    text = "from pathlib import Path\nPath('made').touch()\n" + UNREAD
    comment = f"# verify: {option} = True; rms_norm"
    folder = repository(file=text.replace("# verify: rms_norm", comment))
    code, _, err = command("file.py")
    assert (
        code == 2 and f"file.py:6: comment: {option}: is an argument of verify" in err
    )
    code, _, err = command("file.py::unread", "--bind", f"{option}=True", "--norm", "")
    assert code == 2 and f"{option}: is an argument of verify" in err
    assert not (folder / "made").exists()


def test_a_long_comment_is_refused():
    start = "# verify: rms_norm, outputs = "
    for length in (4000, 6000):
        text = f"{start}{'a' * length}\ndef f(x):\n    return x\n"
        requests, errors, _ = requests_of(text)
        assert len(requests) == (length < 5000) and len(errors) == (length > 5000)
    assert "characters, needs at most 5000" in str(errors[0])


PLACES = {
    "def f(x):\n    # verify: rms_norm\n    return x": 2,
    "# verify: rms_norm\n\ndef f(x):\n    return x": 1,
    "# verify: rms_norm": 1,
    "def f(x):  # verify: rms_norm\n    return x": 1,
    "class A:\n    # verify: rms_norm\n    def f(x):\n        return x": 2,
    "@g\n# verify: rms_norm\ndef f(x):\n    return x": 2,
}


@pytest.mark.parametrize(("text", "line"), list(PLACES.items()))
def test_a_comment_stands_above_a_function(text, line):
    requests, errors, _ = requests_of(text)
    assert requests == [] and [error.line for error in errors] == [line]
    assert "stands above no function" in str(errors[0])


def test_a_comment_above_one_of_two_functions_of_a_name_is_refused():
    comment = "    # verify: layer_norm\n"
    for first, second in ((comment, ""), ("", comment)):
        body = "    def f(x):\n        return x\n"
        text = f"if 1:\n{first}{body}else:\n{second}{body}"
        requests, errors, _ = requests_of(text)
        assert requests == [] and "f is defined more than once" in str(errors[0])


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("# Verify: rms_norm", 1),
        ("# verify : rms_norm", 1),
        ("# VERIFY: layer_norm", 1),
        ("# verify rms_norm", 1),
        ("# verify that it is rms_norm", 0),
        ("# verified: rms_norm", 0),
    ],
)
def test_a_comment_that_is_spelled_otherwise_is_named(comment, count):
    requests, errors, _ = requests_of(f"{comment}\ndef f(x):\n    return x\n")
    assert requests == [] and len(errors) == count
    assert all("needs '# verify:'" in str(error) for error in errors)


def test_comments_above_a_decorator_beside_others_and_several_of_one_function():
    text = """# what it is
# verify: g = dy,
#   rms = 1/rstd;
#     rms_norm, outputs = dx
#verify: layer_norm
# noqa
@first
@second(
    1
)
def f(g, rms):
    return "# verify: nothing"
"""
    requests, errors, others = requests_of(text)
    words = "g is dy, rms is 1/rstd, against rms_norm, outputs dx"
    assert [shown(request) for request in requests] == [words, "against layer_norm"]
    assert [(request.asked, request.line) for request in requests] == [(2, 11), (5, 11)]
    assert errors == others == []


# a repository


def test_a_repository_is_checked_by_its_comments(repository, command):
    repository(
        right=RIGHT, pack__wrong=WRONG, functions=FUNCTIONS, gradients=GRADIENTS,
        unread=UNREAD,
    )  # fmt: skip
    code, out, err = command(".")
    assert (code, err) == (1, "")
    found = re.findall(r"^(\S+:\d+: \w+)\n(.*?)(?::|$)", out, re.M)
    assert found == [
        ("functions.py:5: l2", PROVED),
        ("functions.py:10: Square", PROVED),
        ("functions.py:23: Layer", PROVED),
        ("gradients.py:10: backward", PROVED),
        ("gradients.py:10: backward", PROVED),
        ("pack/wrong.py:9: kernel", "refuted"),
        ("pack/wrong.py:20: rms_norm", "refuted"),
        ("right.py:9: kernel", PROVED),
        ("right.py:20: rms_norm", PROVED),
        ("unread.py:6: unread", "not read"),
    ]
    summary = f"10 checked: 7 {PROVED}, 1 not read, 2 refuted"
    assert out.endswith(f"{summary}; 3 functions of 2 files have no comment\n")
    assert "checked against forward\n" in out
    assert "checked against normgrad.verify.norm()" in out


def test_a_file_and_a_function_are_chosen(repository, command):
    folder = repository(right=RIGHT, wrong=WRONG)
    code, out, _ = command("right.py::rms_norm")
    assert code == 0 and heads(out) == {"rms_norm": PROVED}
    absolute, out, _ = command(folder / "right.py")
    assert absolute == 0 and out.startswith("right.py:9: kernel\n")
    code, out, _ = command("wrong.py", "--kernel", "kernel")
    assert code == 1 and heads(out) == {"kernel": "refuted"}


TYPED = {
    "right.py --norm rms_norm": f"{PROVED}: rms_norm returns y",
    "right.py::rms_norm --norm=": f"{PROVED}: rms_norm returns y",
    "right.py --norm layer_norm(bias=False)": "refuted: rms_norm returns y",
    "functions.py::Square": f"{PROVED}: Square returns y",
    "functions.py::Square --norm own_forward": f"{PROVED}: Square returns y",
    "functions.py::Layer --bind size=N --norm rms_norm --outputs y": f"{PROVED}: Layer",
    "gradients.py::backward --reference forward --bind g=dy --outputs dx": (
        f"{PROVED}: backward returns dx"
    ),
    "gradients.py::backward --reference gradients.py::forward --bind g=dy --outputs dx": (
        f"{PROVED}: backward returns dx"
    ),
    "gradients.py::same --reference forward --outputs y": f"{PROVED}: same returns y",
    "unread.py::unread --norm rms_norm --outputs y": "not read",
}
STATUSES = {PROVED: 0, "refuted": 1, "not read": 3}


@pytest.mark.parametrize(("words", "found"), list(TYPED.items()))
def test_functions_are_checked_by_what_is_typed(repository, command, words, found):
    files = {"right": RIGHT, "functions": FUNCTIONS, "gradients": GRADIENTS}
    texts = {name: re.sub("# verify:.*\n", "", text) for name, text in files.items()}
    repository(**texts, unread=UNREAD)
    code, out, err = command(*words.split())
    assert err == "" and code == STATUSES[found.partition(":")[0]]
    assert out.startswith(found) and out.count("checked against ") == 1
    assert ("\n  it is y[i, j] of norm()\n" in out) == found.startswith("refuted")


USAGE = {
    "functions.py --norm rms_norm": "got no name, needs one of Square, Layer, l2, as",
    ". --norm rms_norm": "got a folder, needs a file",
    "right.py --norm rms": "rms is not allowed",
    "right.py::norm --norm rms_norm": "name: got 'norm', needs a function",
    "functions.py::l2 --outputs y --norm rms_norm --reference l2": "one of them",
    "functions.py::l2 --outputs y --reference 1": "reference: got '1', needs the name",
    "functions.py::l2 --outputs y --reference .::f": "reference: got '.::f', which is in no",
    "functions.py::l2 --outputs y": "definitions: got None",
    "none.py": "none.py",
    "none.py --norm rms_norm": "none.py",
    "right.py --write-baseline": "needs --baseline FILE",
    "right.py --baseline none.json": "--baseline: none.json",
    "two.py --norm rms_norm": "kernel: got None, needs one of first, second",
    "plain.py": "definitions: got None, needs a norm",
    "plain": "got 1 files without a comment",
    "right.py --run": "unrecognized arguments: --run",
}


@pytest.mark.parametrize(("words", "message"), list(USAGE.items()))
def test_what_is_typed_wrongly_is_bad_usage(repository, command, words, message):
    plain = "def norm(x):\n    return x\n"
    bare = re.sub("# verify:.*\n#.*\n", "", KERNEL)
    two = bare.replace("def kernel", "def first") + bare.replace(
        "def kernel", "def second"
    )
    repository(
        right=RIGHT, functions=FUNCTIONS, plain=plain, plain__file=plain, two=two
    )
    code, out, err = command(*words.split())
    assert code == 2 and message in err, err
    assert heads(out) == {}


def test_files_without_comments_are_no_bad_usage_beside_the_option(repository, command):
    repository(plain="def norm(x):\n    return x\n", text="x = 1\n")
    code, out, _ = command("plain.py", "text.py", "--comments")
    assert code == 0
    assert out == "0 checked; 1 functions of 1 files have no comment\n"


def test_nothing_of_a_file_is_run(repository, command):
    start = "import os\nos.system('touch made')\nopen('made', 'w')\n"
    folder = repository(hostile=start + RIGHT, wrong=start + UNREAD)
    command(".", "--json")
    command(".", "--format", "github")
    command("hostile.py::rms_norm", "--norm", "rms_norm")
    command("wrong.py::other", "--norm", "rms_norm", "--outputs", "y")
    assert sorted(path.name for path in folder.iterdir()) == ["hostile.py", "wrong.py"]


def test_what_is_no_python_is_said_where_it_may_have_comments(repository, command):
    broken = "x = 1\ndef f(x:\n    return x\n"
    folder = repository(right=RIGHT, broken=broken)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "file.py").write_text(WRONG)
    (folder / "folder.py").mkdir()
    code, out, err = command(".")
    assert (code, err) == (0, "") and heads(out) == {
        "kernel": PROVED,
        "rms_norm": PROVED,
    }
    assert command("broken.py", "right.py", "--comments")[0] == 0
    code, _, err = command("broken.py", "right.py")
    assert code == 2 and err.startswith(
        "broken.py:2: program: got a text that is not P"
    )
    repository(broken="# verify: rms_norm\n" + broken)
    code, out, err = command(".")
    assert code == 2 and err.startswith(
        "broken.py:3: program: got a text that is not P"
    )
    assert heads(out) == {"kernel": PROVED, "rms_norm": PROVED}
    (folder / "broken.py").write_bytes(b"\xff\xfe# verify: rms_norm\n")
    code, _, err = command(".")
    assert code == 2 and err.startswith("broken.py:1: ")


def test_a_failure_of_the_reader_is_not_read(repository, command, monkeypatch):
    def fails(*arguments, **options):
        raise KeyError("x")

    repository(right=RIGHT)
    monkeypatch.setattr("normgrad.verify.programs.verify_function", fails)
    code, out, _ = command("right.py")
    assert code == 3 and heads(out) == {"kernel": PROVED, "rms_norm": "not read"}
    assert "not followed: KeyError: 'x'" in out


def test_a_kernel_in_loops_is_not_read(repository, command):
    text = 'import numba\n# verify: x = T("x"), y = Out("y"); rms_norm\n'
    repository(loops=text + "@numba.njit\ndef loops(x, y):\n    y[0, 0] = x[0, 0]\n")
    code, out, _ = command("loops.py")
    assert code == 3 and "read from its object" in out


# formats


def test_json_has_all_of_each_verdict(repository, command):
    repository(right=RIGHT, unread=UNREAD, broken="# verify: rms\n" + UNREAD)
    code, out, err = command(".", "--json")
    assert code == 2 and err.startswith("4 checked: ")
    data = json.loads(out)
    places = [(row["file"], row["name"], row["line"]) for row in data]
    assert places == [
        ("broken.py", "", 1),
        ("broken.py", "unread", 7),
        ("right.py", "kernel", 9),
        ("right.py", "rms_norm", 20),
        ("unread.py", "unread", 6),
    ]
    assert data[0]["error"].startswith("comment: stands above no function")
    assert data[2]["kind"] == PROVED
    assert data[2]["claim"] == "kernel: Y = y[i, j], with M*N < 2^31 (line 13)"
    assert data[2]["seconds"] > 0 and data[2]["assumptions"] and not data[2]["known"]
    assert data[4]["why"] == "torch.unknown"
    assert command(".", "--format", "json")[0] == 2


def test_an_annotation_is_escaped():
    line = annotation("error", "50 %: a,\r\nb", "a,b:%.py", 3, "x: y\n")
    assert line == (
        "::error file=a%2Cb%3A%25.py,line=3,title=x%3A y%0A::50 %25: a,%0D%0Ab"
    )
    assert annotation("notice", "::x") == "::notice::::x"


def annotations(out):
    """(level, file, line, message) of GitHub's workflow commands; all that is printed is of them."""
    pattern = r"::(\w+)(?: file=([^,:]+),line=(\d+),title=[^:]*)?::(.*)"
    return [re.fullmatch(pattern, line).groups() for line in out.splitlines()]


def test_annotations_stand_at_the_line_that_is_wrong(repository, command):
    marked = RIGHT.replace("eps, B=block)", "epsilon, B=block)  # here")
    folder = repository(right=RIGHT, past=PAST, unread=UNREAD, marked=marked)
    code, out, _ = command(".", "--format", "github")
    *found, summary = annotations(out)
    assert code == 1 and len(found) == 3
    for level, file, line, message in found:
        lines = (folder / file).read_text().split("\n")
        assert level == "error" and lines[int(line) - 1].endswith("# here"), message
    assert summary[0] == "notice" and summary[3].startswith("6 checked: ")


def test_a_line_of_another_file_is_none_of_this_one(repository, command):
    launcher = "import torch\nimport triton\nfrom .past import kernel\n" + LAUNCHER
    past = PAST.replace(f"# verify: {BIND};\n#   rms_norm\n", "")
    repository(pack__past=past, pack__launch=launcher)
    code, out, _ = command("pack/launch.py", "--format", "github")
    assert code == 1
    *found, message = annotations(out)[0]
    assert found == ["error", "pack/launch.py", "7"]
    assert message.endswith("%0Aline 14 is one of launch.py, or of past.py")


def test_masked_lanes_are_a_status_of_their_own(repository, command):
    text = RIGHT.replace("other=0.0", "").replace("mask=mask, )", "mask=mask)")
    repository(masked=text)
    code, out, _ = command(".", "--format", "github")
    assert code == 4 and annotations(out)[0][0] == "error"
    code, out, _ = command(".", "--format", "github", "--allow")
    assert code == 0 and annotations(out)[0][0] == "warning"


# a baseline


def test_a_baseline_lets_known_refusals_pass_and_nothing_else(repository, command):
    folder = repository(right=RIGHT, pack__unread=UNREAD)
    known = ("--baseline", "known.json")
    assert command(".")[0] == 3
    code, out, _ = command(".", *known, "--write-baseline")
    assert code == 0 and "known.json: 1 that are not read are written" in out
    row = {"file": "pack/unread.py", "name": "unread", "reason": "torch.unknown"}
    assert json.loads((folder / "known.json").read_text()) == [row]
    code, out, _ = command(".", *known)
    assert code == 0 and "the baseline lists it as not read" in out
    assert "is read now" not in out
    code, out, _ = command(".", *known, "--format", "github")
    assert code == 0 and annotations(out)[0][:2] == ("warning", "pack/unread.py")
    code, out, _ = command(".", *known, "--json")
    assert [row["known"] for row in json.loads(out)] == [True, False, False]
    repository(new=UNREAD)
    assert command(".", *known)[0] == 3
    assert command("pack", *known)[0] == 0
    assert command("new.py", *known, "--write-baseline")[0] == 0
    names = [row["file"] for row in json.loads((folder / "known.json").read_text())]
    assert names == ["new.py", "pack/unread.py"]
    repository(new=WRONG.replace("rms_norm(x", "unread(x"))
    code, out, _ = command(".", *known)
    assert code == 1 and "known.json: new.py: unread is read now, and refuted" in out
    repository(
        new=UNREAD.replace(
            "torch.unknown(x)",
            "x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight",
        )
    )
    code, out, _ = command("new.py", *known)
    assert code == 0 and f"known.json: new.py: unread is read now, and {PROVED}" in out
    assert command(".", *known, "--write-baseline")[0] == 0
    names = [row["file"] for row in json.loads((folder / "known.json").read_text())]
    assert names == ["pack/unread.py"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "3",
        "[3]",
        '[{"file": "a.py"}]',
        '[{"file": "a.py", "name": 3, "reason": ""}]',
        "[" * 100000,
    ],
)
def test_a_file_that_is_no_baseline_is_bad_usage(repository, command, text):
    folder = repository(right=RIGHT)
    (folder / "known.json").write_text(text)
    code, out, err = command(".", "--baseline", "known.json")
    assert code == 2 and out == "" and "--baseline: known.json: " in err


# elsewhere


def test_the_command_needs_numpy_and_sympy_alone(repository):
    repository(right=RIGHT, functions=FUNCTIONS, gradients=GRADIENTS)
    others = ("torch", "triton", "numba", "matplotlib", "IPython", "yaml")
    code = f"""import sys
sys.modules.update(dict.fromkeys({others}))
sys.argv = ["normgrad-verify", "."]
from normgrad.verify.__main__ import main
code = main()
print("loaded", [name for name in {others} if sys.modules[name]])
sys.exit(code)
"""
    done = python("-W", "error", "-c", code, env=UNSET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.endswith("loaded []\n") and f"7 checked: 7 {PROVED}" in done.stdout
    )


def test_neither_torch_nor_triton_is_imported_where_it_could_be(repository):
    repository(right=RIGHT, functions=FUNCTIONS)
    code = """import sys
sys.argv = ["normgrad-verify", "."]
from normgrad.verify.__main__ import main
main()
print("loaded", {"torch", "triton", "numba"} & set(sys.modules))
"""
    done = python("-c", code, env=UNSET)
    assert done.stdout.endswith("loaded set()\n"), done.stderr


def script(folder):
    """A folder with the console script that pyproject.toml names."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf8")
    module, name = re.search(r'^normgrad-verify = "(.+):(.+)"$', project, re.M).groups()
    folder.mkdir(parents=True)
    file = folder / "normgrad-verify"
    code = f"import sys\nfrom {module} import {name}\nsys.exit({name}())\n"
    file.write_text(f"#!{sys.executable}\n{code}", encoding="utf8")
    file.chmod(0o755)
    return folder


def shell(line, **environment):
    """(the exit status, what is printed) of a line of bash."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line]
    environment = {**UNSET, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_hook_runs_in_a_repository(repository, tmp_path_factory):
    folder = repository(right=RIGHT, wrong=WRONG, unread=UNREAD, plain="x = 1\n")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf8"))
    path = script(tmp_path_factory.mktemp("environment") / "bin")
    place = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    entry = hook["entry"]
    assert shell(f"{entry} right.py plain.py", **place)[0] == 0
    assert shell(f"{entry} plain.py", **place)[0] == 0
    code, out = shell(f"{entry} right.py wrong.py", **place)
    assert code == 1 and "wrong.py:20: rms_norm\nrefuted" in out
    assert shell(f"{entry} unread.py", **place)[0] == 3
    assert (
        shell(f"{entry} --baseline k.json --write-baseline unread.py", **place)[0] == 0
    )
    assert shell(f"{entry} --baseline k.json unread.py right.py", **place)[0] == 0
    assert (folder / "k.json").exists()
    project = (ROOT / "pyproject.toml").read_text(encoding="utf8")
    needed = re.search(r"^symbolic = \[(.+)\]$", project, re.M)[1]
    assert [needed.strip('"')] == hook["additional_dependencies"]


def test_the_action_runs_in_a_repository(repository, tmp_path_factory):
    repository(right=RIGHT, pack__wrong=WRONG, unread=UNREAD)
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf8"))
    temporary = tmp_path_factory.mktemp("runner")
    script(temporary / "normgrad-verify" / "bin")
    install, step = action["runs"]["steps"]
    assert "[symbolic]" in install["run"] and "pip install" in install["run"]

    def run(**inputs):
        values = {
            name: str(i["default"]) for name, i in action["inputs"].items()
        } | inputs
        given = {"RUNNER_TEMP": str(temporary)}
        for name, text in step["env"].items():
            given[name] = re.sub(
                r"\$\{\{ inputs\.(\w+) \}\}", lambda m: values[m[1]], text
            )
        return shell(step["run"], **given)

    code, out = run()
    assert code == 1
    found = [row[:3] for row in annotations(out)]
    assert ("error", "pack/wrong.py", "20") in found and (
        "error",
        "unread.py",
        "6",
    ) in found
    assert run(paths="right.py")[0] == 0
    assert run(paths="right.py unread.py")[0] == 3
    assert (
        run(
            paths="unread.py", baseline="known list.json", arguments="--write-baseline"
        )[0]
        == 0
    )
    code, out = run(paths="right.py unread.py", baseline="known list.json")
    assert code == 0 and annotations(out)[0][0] == "warning"
    assert run(paths="$(touch made) right.py")[0] == 2
    assert not Path("made").exists()
