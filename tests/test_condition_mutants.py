"""The tests of the covering contract: what is wrong under a condition only is met by some point, on its own backend."""

import condition_mutants
import copies
import covering
import derivatives
import pytest
from condition_mutants import COMPILED, KINDS, OTHERS, first_failure

SOURCES = ("torch_ops/rows", "triton_kernels/launch", "numba_kernels/launch")


@pytest.fixture
def backend(request):
    """The backend on a copy of the package with a mutant in it."""
    mutant = request.param
    name = copies.copied({mutant.path: mutant.edits}, str(mutant))
    # What a mutant overflows on its way to a wrong number is its own business.
    yield copies.backend_of(mutant.backend, name)
    copies.forget(name)


def every(mutants):
    return pytest.mark.parametrize("backend", mutants, ids=str, indirect=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@every([*KINDS, *COMPILED, *OTHERS])
def test_some_point_meets_the_condition(backend):
    assert first_failure(backend, backend.name) is not None


@every([one for one in KINDS if "third derivative" in one.name])
def test_the_third_derivative_is_seen_by_backward_alone(backend, monkeypatch):
    monkeypatch.setattr(derivatives, "_forward", lambda *_: None)
    near = derivatives._near
    monkeypatch.setattr(derivatives, "_near", lambda title, *a: None if a[0] is None else near(title, *a))
    _, error = first_failure(backend, backend.name)
    assert "derivative 3 by backward" in str(error)


# NumPy warns of an overflow where compiled code does not.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_copy_without_a_change_keeps_the_contract():
    name = copies.copied({f"{path}.py": () for path in SOURCES}, "no change")
    for backend in ("numpy", "torch", "triton", "numba"):
        copy = copies.backend_of(backend, name)
        module = copy.module if backend == "numpy" else copy.rows_module()
        assert module.__name__.startswith(name)
        for point in covering.points_of(backend)[:10]:
            covering.check_point(copy, point)
    copies.forget(name)


def test_each_mutant_has_a_name_of_its_own():
    names = [str(one) for one in (*KINDS, *COMPILED, *OTHERS)]
    assert len(set(names)) == len(names) and len(OTHERS) >= 15
    assert {one.backend for one in KINDS} == {"numpy", "torch", "triton"}
    with pytest.raises(ValueError, match="occurs 0 times, needs 1"):
        copies.copied({"spec.py": (("no such text", ""),)}, condition_mutants.SPEC("x", "a", "b").name)
