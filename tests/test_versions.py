"""What is said of versions that do not go together, and what becomes of the call."""

import importlib

import pytest

from normgrad import versions


@pytest.mark.parametrize(
    ("triton", "numpy", "conflict"),
    [
        ("3.6.0", "2.4.0", True),
        ("3.2.0", "2.5.1", True),
        ("3.6.0", "2.3.5", False),
        ("3.7.1", "2.4.6", False),
        ("3.10.0", "2.10.0", False),
    ],
)
def test_the_interpreter_and_numpy(triton, numpy, conflict):
    said = versions.interpreter_conflict(triton, numpy)
    assert bool(said) is conflict
    assert (
        not conflict
        or "triton==3.7.1" in said
        and "numpy<2.4" in said
        and triton in said
    )


@pytest.fixture
def conflict(monkeypatch):
    """A process whose Triton's interpreter does not go with its NumPy."""
    pytest.importorskip("triton")
    versions.conflict_here.cache_clear()
    installed = {"triton": "3.6.0", "numpy": "2.4.0"}
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: installed.get(name) or real(name)
    )
    yield
    versions.conflict_here.cache_clear()


def test_a_call_refuses_in_words(conflict, torch):
    import normgrad

    with pytest.raises(
        RuntimeError,
        match="backend: 'triton' on the CPU, and the interpreter of Triton 3.6.0 fails",
    ):
        normgrad.l2_norm(torch.ones(2, 4), backend="triton")
    assert normgrad.l2_norm(torch.ones(2, 4), backend="torch")[0, 0] == 0.5


def test_the_doctor_says_so(conflict, capsys):
    import normgrad

    normgrad.doctor()
    assert (
        "the interpreter of Triton 3.6.0 fails with NumPy 2.4.0"
        in capsys.readouterr().out
    )


def test_a_fused_layer_runs_in_torch_then(conflict):
    from normgrad.fused.launch import interprets

    assert not interprets()
