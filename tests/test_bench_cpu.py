"""The benchmark of a CPU on shapes of a few rows: its rounds, and that nothing wrong is timed."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numba")

import cpu_times  # noqa: E402
from timing import OPERATORS, Shape  # noqa: E402

SMALL = Shape("add_layer_norm", "float32", 6, 5)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """One call a timing; torch's number of threads is put back."""
    monkeypatch.setattr(cpu_times, "ELEMENTS_PER_TIMING", 1)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def others(monkeypatch):
    """Sets what another process has run by the beginning and after each round; before it was first seen, nothing."""

    def set_to(*seconds):
        turns = iter(seconds)
        monkeypatch.setattr(cpu_times, "_ran_elsewhere", lambda: {"other": next(turns)})

    return set_to


def test_rounds_beside_other_work_are_tried_again(others, torch_rng):
    functions = cpu_times.implementations("add_layer_norm")
    others(7, 67, 67, 67, 67)
    times, clean = cpu_times.measure(SMALL, functions, 3, torch_rng)
    assert clean == 3 and list(times) == ["numba", "torch", "normgrad", "copy"]
    assert all(len(seconds) == 3 and min(seconds) > 0 for seconds in times.values())
    others(*range(0, 60000, 60))
    times, clean = cpu_times.measure(SMALL, functions, 2, torch_rng)
    assert clean == 0 and len(times["copy"]) == 2


def test_nothing_wrong_is_timed(torch_rng):
    def wrong(x, residual, weight, bias):
        p = x + residual
        return torch.layer_norm(p, p.shape[-1:], weight, bias, eps=0.1), p

    with pytest.raises(ValueError, match="wrong: differs from the reference: y by"):
        cpu_times.measure(SMALL, {"wrong": wrong}, 1, torch_rng)
    with pytest.raises(
        ValueError, match="operator: got 'batch_norm', needs one of 'layer_norm'"
    ):
        cpu_times.implementations("batch_norm")


@pytest.mark.parametrize("operator", OPERATORS)
def test_baselines_are_the_same_layer(operator, torch_rng):
    functions = cpu_times.implementations(operator, baselines=True)
    assert ("source" in functions) == operator.endswith("layer_norm")
    cpu_times.measure(Shape(operator, "float32", 6, 5), functions, 1, torch_rng)
