"""The designs of the page on speed: right, predicted by the count of bytes, and refused where one is wrong."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numba")

from normgrad.teaching import bytes as traffic  # noqa: E402
from normgrad.teaching import designs  # noqa: E402

SHAPE = {"rows": 7, "columns": 64, "dtype": "float32"}


def test_every_design_is_measured_beside_its_prediction():
    measured = designs.measure(7, 64, rounds=3)
    assert (
        list(measured)[0] == "copy"
        and measured["copy"].predicted == measured["copy"].median == 1
    )
    for design in measured.values():
        assert 0 < design.low <= design.median <= design.high and design.seconds > 0
    copied = 2 * 4 * 7 * 64
    floor = traffic.moved("layer_norm", "backward", **SHAPE).total
    assert measured["backward, persistent"].predicted == floor / copied
    # Activations read and written, two of them a copy; what is a row's or a column's vanishes.
    large = designs.designs(300, 1024, torch.Generator().manual_seed(0))
    copied = large["copy"].moved.total
    arrays = {"copy": 2, "copy, new memory": 2, "forward": 2, "add, then norm": 5, "add and norm": 4,
              "backward, matrix": 6, "backward, two kernels": 5, "backward, persistent": 3}  # fmt: skip
    assert {
        name: round(2 * design.moved.total / copied, 1)
        for name, design in large.items()
    } == arrays
