"""Shared by all tests: the generators that everything random comes from."""

import os

import numpy as np
import pytest
from notebook_summary import pytest_terminal_summary  # noqa: F401


def pytest_configure(config):
    """Triton compiles for the `gpu` tests and interprets for all others; one process can do only one of the two."""
    if config.option.markexpr != "gpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def rng():
    """NumPy's generator, the same for every test."""
    return np.random.default_rng(20240504)


@pytest.fixture
def torch():
    """torch, or a skip."""
    return pytest.importorskip("torch")


@pytest.fixture
def libraries(request, torch):
    """Skips a case of the homework about kernels where there is no Triton."""
    if any("hw4" in str(value) or "addnorm" in str(value) for value in request.node.callspec.params.values()):
        pytest.importorskip("triton")


@pytest.fixture
def torch_rng():
    """torch's generator, the same for every test."""
    torch = pytest.importorskip("torch")
    return torch.Generator().manual_seed(20240504)


@pytest.fixture
def few_calls(monkeypatch):
    """The GPU benchmark makes few calls of each implementation."""
    from normgrad.bench import measure

    for name, count in (("CALLS", 2), ("HOST_CALLS", 1), ("HOST_ROUNDS", 1)):
        monkeypatch.setattr(measure, name, count)
