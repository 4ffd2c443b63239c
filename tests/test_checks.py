"""The checkers themselves: a wrong number is rejected, NaN never passes, bounds and roundings are what they say."""

from dataclasses import replace

import numpy as np
import pytest

from normgrad import LAYER_NORM, ledger, numpy_ref
from normgrad.checks import cases, contract, tolerance
from normgrad.checks.backends import NumpyBackend
from normgrad.symbolic import NotProved


class Off:
    """numpy_ref with its gradients multiplied by a factor."""

    def __init__(self, factor):
        self.factor = factor
        self.forward = numpy_ref.forward

    def backward(self, dy, saved, dresidual_out=None):
        grads = numpy_ref.backward(dy, saved, dresidual_out)
        return numpy_ref.Grads(grads.dx * self.factor, grads.dweight, grads.dbias)


@pytest.mark.parametrize("factor", [1 + 1e-12, np.nan])
def test_values_slightly_off_are_rejected(factor, rng):
    with pytest.raises(AssertionError, match="dx"):
        contract.check_values(NumpyBackend(Off(factor)), cases.draw(rng), LAYER_NORM)


@pytest.mark.parametrize("factor", [1 + 1e-6, np.nan])
def test_slopes_slightly_off_are_rejected(factor, rng):
    with pytest.raises(AssertionError, match="central differences"):
        contract.check_differences(
            NumpyBackend(Off(factor)), cases.draw(rng), LAYER_NORM, rng
        )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bfloat16_rounding_is_torchs(rng, dtype):
    import torch

    numbers = np.concatenate(
        [rng.standard_normal(1000) * 10.0**k for k in range(-30, 30, 6)]
    )
    ties = 1 + np.arange(64) * 2.0**-8
    for array in (numbers.astype(np.float32).astype(np.float64), ties):
        theirs = torch.tensor(array, dtype=torch.float32).bfloat16().double().numpy()
        assert np.array_equal(tolerance.round_to(array, "bfloat16"), theirs)
    assert np.array_equal(
        tolerance.round_to(ties, dtype), ties.astype(dtype).astype(np.float64)
    )


def test_ledger_entries():
    (entry,) = ledger.prove("ln-dx")
    assert entry.kind == "proved-for-every-n"
    with pytest.raises(ValueError, match="ln-dx"):
        ledger.prove("ln-dxx")
    with pytest.raises(ValueError, match="source"):
        ledger.cite("eq", "")
    (entry,) = ledger.follows("eq", "ln-dx", "ln-dw", because="they are added")
    assert (entry.kind, entry.follows_from, entry.claim) == (
        "follows-from",
        ("ln-dx", "ln-dw"),
        "they are added",
    )
    assert str(entry) == "eq: follows from ln-dx, ln-dw\n    they are added"
    bundle = ledger.define("a", "b")._repr_mimebundle_()
    assert [e["label"] for e in bundle[ledger.MIME]] == ["a", "b"]


def test_a_registered_equation_that_follows_is_worked_out(monkeypatch):
    from normgrad.symbolic import equation, registry

    right = equation("ln-dw")
    wrong = replace(right, chains=((right.chain[0], 2 * right.chain[-1]),))
    monkeypatch.setattr(registry, "_read", {"ln-dw": right, "ln-db": wrong}.get)
    (entry,) = ledger.follows("ln-dw", "ln-dx", because="it is a matter of columns")
    assert (
        entry.claim == right.claim
        and entry.because == "it is a matter of columns"
        and entry.seconds is not None
    )
    with pytest.raises(NotProved):
        ledger.follows("ln-db", "ln-dx", because="it is a matter of columns")
