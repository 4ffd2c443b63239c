"""Shared by all tests: the generators that everything random comes from."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    """NumPy's generator, the same for every test."""
    return np.random.default_rng(20240504)


@pytest.fixture
def torch_rng():
    """torch's generator, the same for every test."""
    torch = pytest.importorskip("torch")
    return torch.Generator().manual_seed(20240504)
