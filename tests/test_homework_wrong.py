"""Wrong solutions: each loses the points that it should, and the report says why."""

import pytest
from homework_solutions import checked, graded, named, of_source
from wrong_solutions import wrong

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.task import find, homeworks

# Some mistakes show a second belief, which is named, too: what torch computes in float16 is rounded there.
ALSO = {
    "torch does the last step": {"narrow-intermediate"},
    "dw and db exchanged": {"db-is-dw"},
    "the mean of absolute values": {"eps-placement"},
    "one-pass variance": {"digits-lost"},
    "one pass": {"digits-lost"},
    "one pass, clamped at 0": {"digits-lost"},
    "one pass, divided last": {"digits-lost"},
    "one pass by einsum": {"digits-lost"},
    "a shift of 10000": {"digits-lost"},
    "the mean is rounded to 16 bits": {"digits-lost"},
    "saves x_hat and rstd": {"saves-too-much"},
}
# What a report says where it has no name.
OPEN = {"unknown", "one-shape", "not-finite"}
WRONG = [
    pytest.param(name, entry, id=f"{entry.task}-{entry.name}")
    for name in homeworks()
    for entry in wrong(name)
]


@pytest.mark.parametrize(("homework", "mistake"), WRONG)
def test_a_wrong_solution_is_caught_and_named(libraries, homework, mistake):
    """It loses the points of the stage that it should; what is named is the belief behind it, and nothing else."""
    task = find(mistake.task)
    report = checked(mistake.task, mistake.source(homework))
    assert not report[mistake.stage].passed and len(report.stages) == len(
        task.stages
    ), report
    expected = {mistake.misconception} - {""}
    also = ALSO.get(mistake.name, set())
    assert expected <= set(named(report)) <= expected | also | OPEN, report


@pytest.mark.parametrize("variant", ["never set", "set by forward"])
def test_the_function_of_source_003_is_caught(torch, tmp_path, variant):
    """It saves intermediates and reads a global weight; where the global is right, the structure and the second
    derivative still are not."""
    import inspect

    import wrong_layer

    edits = {
        "from normgrad import LAYER_NORM\n": "",
        "LAYER_NORM.eps": "eps",
        "class SavesIntermediates": "class LayerNorm",
        "weight, bias):": "weight, bias, eps):",
        "dy.sum(0)\n": "dy.sum(0), None\n",
    }
    if variant == "set by forward":
        edits |= {
            "        mean = x": "        global gamma\n        gamma = weight\n        mean = x"
        }
    source = inspect.getsource(wrong_layer)
    for old, new in edits.items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    report = graded(tmp_path, source, "hw3")[1]
    assert not report["structure"].passed and not report["gradgradcheck"].passed
    if variant == "set by forward":
        assert report["dx, row by row"].passed
        for words in (
            "variable gamma",
            "bytes from forward to backward",
            "second layer",
        ):
            assert words in report["structure"].message


def test_a_forward_earns_its_points_without_a_backward(torch):
    text = solutions.solution("hw3")
    whole = of_source(text)["LayerNorm"]

    class ForwardOnly(whole):
        @staticmethod
        def backward(ctx, dy):
            raise NotImplementedError

    report = hw.check("layernorm-function", ForwardOnly)
    assert report["forward"].points == report["forward"].max_points == report.points
    assert "not implemented yet" in str(report)


KERNEL = """
import torch, triton, triton.language as tl
@triton.jit
def copy(x_ptr, y_ptr, mean_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y_ptr + row * N + cols, tl.load(y_ptr + cols, mask=cols < N), mask=cols < N)
def addnorm_forward(x, residual, weight, bias, eps):
    (m, n), x = x.shape, x.contiguous()
    y, mean = torch.empty_like(x), x.new_zeros(m)
    copy[(m,)](x, y, mean, N=n, BLOCK=triton.next_power_of_2(n))
    return y, y, mean, mean
"""


def test_a_race_between_a_reader_and_a_writer_is_seen(torch):
    pytest.importorskip("triton")
    report = checked("addnorm-forward", KERNEL)
    assert "copy is a race" in report["kernels"].message


def test_points_for_the_interface_are_earned():
    """A function of the right shape that returns nothing right has no points."""
    report = hw.check("rmsnorm-backward", lambda dy, x, weight, rstd: (dy, weight))
    assert report["signature and shapes"].passed and report.points == 0
