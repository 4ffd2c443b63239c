"""Every formula that verify compares a program with is proved: a gradient is the derivative of the loss."""

from itertools import product

import pytest

from normgrad.symbolic import Partial, prove
from normgrad.verify.definitions import GATES, LOSS, OFFSET, entry, norm

FULL = dict(residual=True, bias=True, weight_offset=OFFSET, dresidual_out=True)
GRADIENTS = {
    "dx": "x",
    "dresidual": "residual",
    "dw": "weight",
    "db": "bias",
    "dgate": "gate",
}


@pytest.mark.parametrize("options", [FULL, dict(weight=False)], ids=["full", "plain"])
@pytest.mark.parametrize(
    ("center", "reduce", "placement", "gate"),
    [
        *product((True,), ("mean",), ("inside",), GATES),
        *product((False,), ("sum",), ("inside",), GATES),
        (True, "sum", "inside", "none"),
        (False, "mean", "inside", "none"),
        (True, "mean", "outside", "none"),
        (False, "sum", "outside", "none"),
    ],
)
def test_gradients_are_derivatives_of_the_loss(
    center, reduce, placement, gate, options
):
    defined = norm(
        center=center, reduce=reduce, placement=placement, gate=gate, **options
    )
    for gradient, name in GRADIENTS.items():
        head = defined.outputs[gradient]
        if defined.defs.unfold(defined.defs.line(LOSS)[1]).has(entry(name).base):
            assert prove(Partial(LOSS, entry(name)), head, defined.defs)


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="placement: got 'under', needs one of"):
        norm(placement="under")
