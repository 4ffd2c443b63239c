"""Every formula that verify compares a program with is proved: a gradient is the derivative of the loss."""

from itertools import product

import pytest

from normgrad.symbolic import Partial, prove, tensor
from normgrad.symbolic.derivations import family
from normgrad.symbolic.symbols import M, N, i, j
from normgrad.verify import cross_entropy, log_softmax, softmax
from normgrad.verify.definitions import GATES, LOSS, OFFSET, entry, norm, place
from normgrad.verify.package import PIECES, Case
from normgrad.verify.programs import GRADIENT

FULL = dict(residual=True, bias=True, weight_offset=OFFSET, dresidual_out=True)


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
    for name, gradient in GRADIENT.items():
        head = defined.outputs[gradient]
        if defined.defs.unfold(defined.defs.line(LOSS)[1]).has(entry(name).base):
            assert prove(Partial(LOSS, entry(name)), head, defined.defs)


@pytest.mark.parametrize("define", [softmax, log_softmax, cross_entropy])
def test_gradients_of_what_is_no_norm_are_derivatives_of_the_loss(define):
    defined = define()
    assert prove(Partial(LOSS, entry("x")), defined.outputs["dx"], defined.defs)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(("center", "mean"), [(True, True), (False, False)])
def test_the_package_s_kernels_are_held_against_the_operator_of_the_book(
    center, mean, piece
):
    book = family.operator(*place(piece))
    own = Case(center, mean, piece, offset=True).definitions()
    flags = {family.a: int(center), family.n: N if mean else 1, family.w0: OFFSET}
    bases = {family.w: entry("weight").base, family.b: entry("bias").base}
    heads = {"y": family.y[i, j], "dx": family.dp[i, j]}
    heads |= {"dw": family.dw[j], "db": family.db[j]}
    for name, head in heads.items():
        e = book.unfold(head).xreplace(flags | bases)
        assert prove(e, own.outputs[name], own.defs)


def test_a_line_that_is_added_to_a_norm_is_in_no_other():
    own = tensor("own", M, N)[i, j]
    norm().defs[own] = entry("x")
    assert own not in norm().defs


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="placement: got 'under', needs one of"):
        norm(placement="under")
