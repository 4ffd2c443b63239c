"""What the figures that move compute with: written from proved definitions, and held against the NumPy reference."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from normgrad import LAYER_NORM, NormSpec, numpy_ref
from normgrad.checks import tolerance
from normgrad.checks.cases import draw
from normgrad.spec import PLACEMENTS
from normgrad_book import live_functions as live


@pytest.fixture(scope="module")
def node():
    """The Node that comes with playwright."""
    driver = pytest.importorskip("playwright._impl._driver")
    return driver.compute_driver_executable()[0]


@pytest.fixture
def run(node):
    """run(code, calls): what JavaScript's functions return for each {"name", "inputs"}; as outputs by name."""

    def run(code, calls, rounding="(value) => value"):
        script = (
            f"{code}\nconst calls = {json.dumps(calls)};\nconst f = {rounding};\n"
            "console.log(JSON.stringify(calls.map(({name, inputs}) => eval(name)(inputs, f))));"
        )
        done = subprocess.run(
            [node, "-"], input=script, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return [
            {name: np.array(value) for name, value in outputs.items()}
            for outputs in json.loads(done.stdout)
        ]

    return run


def as_lists(arrays):
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in arrays.items()
    }


def norm_inputs(case, spec):
    constants = {
        "a": float(spec.center),
        "c": spec.scale,
        "eps": spec.eps,
        "n": spec.count(case.x.shape[1]),
    }
    constants |= {"w0": spec.weight_offset}
    arrays = {"x": case.x, "residual": case.residual, "w": case.weight, "b": case.bias}
    return as_lists(
        arrays | {"dy": case.dy, "dresidual_out": case.dresidual_out} | constants
    )


def test_norms_agree_with_the_reference(run, rng):
    """Fifty settings of rows, columns, sizes, eps, its place, centring, reduction, scale and offset."""
    settings = []
    for number in range(50):
        case = draw(rng, rows=int(rng.integers(1, 5)), columns=int(rng.integers(1, 9)))
        size = 10 ** rng.uniform(-2, 2)
        spec = NormSpec(
            center=bool(rng.integers(2)),
            reduce=("mean", "sum")[number % 2],
            scale=rng.uniform(0.5, 2),
            weight_offset=rng.uniform(-1, 1),
            eps=10 ** rng.uniform(-8, 0),
            placement=list(PLACEMENTS)[number % 3],
        )
        settings.append(
            (replace(case, x=size * case.x, residual=size * case.residual), spec)
        )
    calls = [
        {"name": f"norm_{spec.placement}", "inputs": norm_inputs(case, spec)}
        for case, spec in settings
    ]
    for (case, spec), outputs in zip(
        settings, run(live.written("eps"), calls), strict=True
    ):
        saved = numpy_ref.forward(case.x, case.weight, case.bias, case.residual, spec)
        bound = tolerance.bounds(case.dy, case.dresidual_out, saved, "float64")
        grads = numpy_ref.backward(case.dy, saved, case.dresidual_out)
        assert (abs(outputs["y"] - saved.y) <= bound.y).all(), spec
        assert (abs(outputs["dp"] - grads.dx) <= bound.dx).all(), spec


def plain_layer_norm(rng, rows, columns):
    """A case without residual, its reference and the bounds."""
    case = draw(rng, rows, columns).without("residual", "dresidual_out")
    saved = numpy_ref.forward(case.x, case.weight, case.bias)
    return (
        case,
        numpy_ref.backward(case.dy, saved),
        tolerance.bounds(case.dy, None, saved, "float64"),
    )


def test_the_graph_agrees_with_the_reference_and_misses_what_is_cut(run, rng):
    case, grads, bound = plain_layer_norm(rng, 2, 5)
    whole = as_lists({"x": case.x, "w": case.weight, "dy": case.dy}) | {
        "eps": LAYER_NORM.eps
    }
    whole |= dict.fromkeys(live.ARROWS, 1)
    calls = [{"name": "graph", "inputs": whole | {arrow: 0}} for arrow in live.ARROWS]
    right, *cut = run(
        live.written("graph"), [{"name": "graph", "inputs": whole}, *calls]
    )
    assert (abs(right["dx"] - grads.dx) <= bound.dx).all()
    for arrow, outputs in zip(live.ARROWS, cut, strict=True):
        assert (abs(outputs["dx"] - grads.dx) > bound.dx).any(), arrow
