"""What the button below an equation copies and shows, made from the registry without a site."""

import sys
from pathlib import Path

import numpy as np
import pytest

from normgrad import numpy_ref
from normgrad.checks.tolerance import bounds
from normgrad.spec import LAYER_NORM
from normgrad.symbolic import equation, equations

pytest.importorskip("myst_nb", reason="the book's packages are not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "book/_ext"))

from normgrad_book.objects import LONGEST_LINE, code, proof  # noqa: E402


def run(label, dialect, arrays):
    """What the copied module's only function returns, given what it asks for by name."""
    scope = {}
    exec(code(equation(label), dialect), scope)
    return scope[label.replace("-", "_")](**arrays)


@pytest.fixture
def arrays(rng):
    shapes = {"x": (3, 5), "dy": (3, 5), "w": (5,)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()} | {
        "eps": 0.1
    }


@pytest.mark.parametrize(
    "label, gradient, bound", [("ln-dx", "dx", "dx"), ("ln-dw", "dweight", "dw")]
)
def test_copied_code_computes_the_gradients_of_layer_norm(
    arrays, torch, label, gradient, bound
):
    saved = numpy_ref.forward(
        arrays["x"],
        arrays["w"],
        np.zeros(5),
        spec=LAYER_NORM.replace(eps=arrays["eps"]),
    )
    right = getattr(numpy_ref.backward(arrays["dy"], saved), gradient)
    allowed = getattr(bounds(arrays["dy"], None, saved, "float64"), bound)
    inputs = (
        arrays
        if label == "ln-dx"
        else {name: arrays[name] for name in ("x", "dy", "eps")}
    )
    tensors = {
        name: torch.as_tensor(value, dtype=torch.float64)
        for name, value in inputs.items()
    }
    for gradients in (
        *run(label, "numpy", inputs),
        *[t.numpy() for t in run(label, "torch", tensors)],
    ):
        assert (abs(gradients - right) <= allowed).all()


def test_most_equations_have_code_and_what_has_none_says_nothing():
    written = {
        label: code(statement, "numpy") for label, statement in equations().items()
    }
    assert sum(map(bool, written.values())) >= 0.75 * len(written)
    for label, text in written.items():
        assert not text or text.startswith(
            f"import numpy\n\n\ndef {label.replace('-', '_')}(*"
        ), label
        compile(text, label, "exec")
    assert written["eps-theorem-dx"] == ""  # about any denominator


def test_a_proof_goes_from_the_claim_to_one_polynomial():
    rows = proof(equation("ln-dx"))
    assert rows[0][0] == "the claim"
    assert {"definitions", "R2 differentiate", "R4 contract"} <= {
        rule for rule, _ in rows
    }
    ends = [shown.split("=", 1)[1] for rule, shown in rows if rule == "R8 clear"]
    assert len(ends) == 2 and ends[0] == ends[1]
    assert max(len(shown) for _, shown in rows) <= LONGEST_LINE
    assert proof(equation("ln-names")) == []  # a definition
