"""Right solutions, the reference's and others, in any style: all of them have full marks."""

import homework_variants
import homework_variants_other
import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.homework import solutions
from normgrad.homework.grade import grade_task
from normgrad.homework.sandbox.student import Local
from normgrad.homework.task import Draw, find, homeworks

# Where the inputs are the student's own, the seed has nothing to change.
NO_SEEDS = ("gradient-test",)


@pytest.mark.parametrize("name", hw.tasks())
def test_the_reference_has_full_marks(libraries, name, torch, seeds):
    """No false alarm over up to 200 seeds, in every dtype of a task."""
    task = find(name)
    target = of_source(solutions.solution(task.homework))[task.entry]
    for seed in seeds(3 if name in NO_SEEDS else 200):
        report = hw.check(name, target, seed=seed)
        assert report.passed, report


@pytest.mark.parametrize(
    ("name", "function"), homework_variants.RIGHT + homework_variants_other.RIGHT
)
def test_a_right_solution_may_be_written_differently(name, function, seeds):
    for seed in seeds(3 if name in NO_SEEDS or find(name).library == "sympy" else 20):
        report = hw.check(name, function, seed=seed)
        assert report.passed, report


@pytest.mark.parametrize("name", ["einsum", "setup_context"])
def test_a_right_function_may_be_written_differently(torch, name, seeds):
    for seed in seeds(20):
        report = hw.check(
            "layernorm-function", homework_variants.torch_functions()[name], seed=seed
        )
        assert report.passed, report


def test_right_kernels_may_be_written_differently(torch):
    pytest.importorskip("triton")
    import homework_kernels

    for seed in range(3):
        report = hw.check("addnorm-forward", homework_kernels.swept, seed=seed)
        assert report.passed, report


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("draw", [Draw(7, 2, 2), Draw(7, 13, 64)])
def test_other_sizes(torch, draw):
    pytest.importorskip("triton")
    for name in homeworks():
        names = of_source(solutions.solution(name))
        for task in homeworks()[name].tasks:
            with Local({task.entry: names[task.entry]}) as student:
                report = grade_task(task, student, draw)
            assert report.passed, report
