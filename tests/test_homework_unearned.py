"""Points that nobody earned: the reference by another door, numbers for a derivation, kernels that only copy."""

from importlib.util import find_spec
from pathlib import Path

import homework_shortcuts as shortcuts
import pytest
from homework_solutions import changed, graded

import normgrad
from normgrad.homework import solutions
from normgrad.homework.report import to_json
from normgrad.homework.sandbox import disk

PACKAGE = Path(normgrad.__path__[0])
DOORS = {
    homework: shortcuts.doors(
        str(PACKAGE / f"homework/{homework}/solution.py"), homework
    )
    for homework in ("hw2", "hw3")
}


def points(tmp_path, source, homework):
    """(points of each task, the whole report as text) of a solution.py with this text."""
    reports = graded(tmp_path, source, homework)
    return [report.points for report in reports], "\n".join(map(str, reports))


@pytest.mark.parametrize("door", DOORS["hw2"])
def test_neither_the_reference_nor_another_students_file_is_there_to_be_read(
    tmp_path, door
):
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
    other = tmp_path / "bob/solution.py"
    other.write_text(solutions.solution("hw2"), encoding="utf8")
    for doors in (DOORS["hw2"], shortcuts.doors(str(other), "hw2")):
        assert points(tmp_path / "ada", doors[door], "hw2")[0] == [0, 0]


def test_nor_by_what_torch_opens(torch, tmp_path):
    source = DOORS["hw3"]["torch.from_file"]
    assert points(tmp_path, source, "hw3")[0] == [0, 0]


# Each module that is not offered, among them every answer.
HIDDEN = (
    "numpy_ref torch_ops nn residual fused homework mistakes triton_kernels".split()
)
HIDDEN += ["symbolic.derivations", "symbolic.backend", "ledger.formulas", "teaching"]


@pytest.mark.parametrize("name", HIDDEN)
def test_a_module_with_answers_is_refused_by_name(tmp_path, name):
    source = "import importlib\nfound = importlib.import_module('normgrad.{}')\n"
    earned, text = points(tmp_path, source.format(name), "hw2")
    assert earned == [0, 0]
    assert f"imported normgrad.{name}; of normgrad it may import" in " ".join(
        text.split()
    )


def test_what_is_offered_can_be_imported_and_read_and_nothing_else(tmp_path):
    """At the top and late, and the text of a module as well: of the package these files are readable, and no others."""
    own = disk.files_of(str(PACKAGE))
    files = sorted(map(str, PACKAGE.rglob("*.*")))
    source = f"""
from normgrad.checks.finite_difference import central
from normgrad.symbolic import prove
import importlib, os
def rmsnorm_forward(x, weight, eps):
    for name in {disk.OFFERED!r}:
        importlib.import_module(name)
    for file in {files!r}:
        try:
            open(file).read()
            readable = True
        except OSError:
            readable = False
        if readable != (file in {own!r}) and "/sandbox/" not in file:
            raise ValueError(file)
    rstd = 1 / ((x * x).mean(-1) + eps)**0.5
    return x * rstd[:, None] * weight, rstd
"""
    assert points(tmp_path, source, "hw2")[0] == [8, 0]
    assert all(Path(file).is_file() for file in own)


def test_differences_may_check_what_is_derived(tmp_path):
    """In a test of the student's own, which no graded function calls."""
    source = (
        solutions.solution("hw2")
        + """

from normgrad.checks.finite_difference import directional
from normgrad.checks.tolerance import unit_roundoff

def check_slope(f, x):
    return directional(lambda a: (f(a), 1.0), [x], [1j * x]).value < unit_roundoff("float64")
"""
    )
    assert points(tmp_path, source, "hw2")[0] == [8, 12]


@pytest.mark.parametrize("way", shortcuts.SLOPES)
def test_a_derivative_by_numbers_is_not_derived(tmp_path, way):
    earned, text = points(tmp_path, shortcuts.by_numbers(shortcuts.SLOPES[way]), "hw2")
    assert earned[0] == 8 and earned[1] <= 5, text
    assert "asks for a derivative that you have derived" in " ".join(text.split())


def test_differences_in_float64_have_not_the_digits_of_a_derivation(tmp_path):
    """Of the eighth order, on a function that is smooth."""
    (rmsnorm_forward, rmsnorm_backward), _ = points(tmp_path, shortcuts.HIGH, "hw2")
    assert rmsnorm_forward == 8 and rmsnorm_backward <= 6


DUAL = "class Dual:\n    def __add__(self, other): ...\n    __mul__ = __add__\n\n\ndef rmsnorm_backward"
FLAGGED = {
    "rmsnorm_forward(x, weight, 0)": "calls rmsnorm_forward: are its gradients differences of that?",
    "Dual": "computes with Dual, numbers of its own: does their arithmetic differentiate?",
}


@pytest.mark.parametrize("line", FLAGGED)
def test_what_cannot_be_told_is_flagged_to_the_teacher(tmp_path, line):
    """It costs nothing by that, and the student's report says nothing of it."""
    old = "    wdy = weight * dy\n"
    edits = (old, f"    {line}\n{old}"), ("def rmsnorm_backward", DUAL)
    reports = graded(tmp_path, changed("hw2", *edits), "hw2")
    flag = f"rmsnorm_backward {FLAGGED[line]}"
    assert [report.points for report in reports] == [8, 12]
    assert reports[1].flags == [flag] and flag in to_json(reports)
    assert flag not in str(reports[1])


@pytest.mark.parametrize("name", ["OVERRIDDEN", "NODES"])
def test_torch_differentiates_no_forward(torch, tmp_path, name):
    assert points(tmp_path, getattr(shortcuts, name), "hw3")[0] == [0, 0]


@pytest.mark.parametrize("way", shortcuts.COPIES)
def test_a_kernel_that_copies_computes_nothing(torch, tmp_path, way):
    pytest.importorskip("triton")
    earned, text = points(tmp_path, shortcuts.COPIES[way], "hw4")
    assert earned == [0, 0] and "come from no input and no kernel" in " ".join(
        text.split()
    )


@pytest.mark.parametrize("way", shortcuts.WIDER)
def test_more_digits_than_float32_are_seen_by_any_name(tmp_path, way):
    earned, _ = points(tmp_path, shortcuts.WIDER[way], "hw5")
    assert earned[0] <= 13


@pytest.mark.skipif(not find_spec("matplotlib"), reason="needs matplotlib")
def test_what_an_import_does_is_not_the_students_doing(tmp_path, monkeypatch):
    """matplotlib makes a folder for its settings; the same call by the student's own code is refused."""
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "none/yet"))
    source = "import matplotlib.pyplot as plt\n" + solutions.solution("hw2")
    folder = tmp_path / "ada"
    folder.mkdir()
    assert points(folder, source, "hw2")[0] == [8, 12]
    assert (tmp_path / "none/yet").is_dir()
    earned, text = points(
        folder, f"import os\nos.mkdir({str(folder / 'x')!r})\n" + source, "hw2"
    )
    assert earned == [0, 0] and "called os.mkdir" in text
