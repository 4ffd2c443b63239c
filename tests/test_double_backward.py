"""The three ways to a differentiable backward, the proved formulas behind them, and what must be refused."""

import pytest
import torch
import torch.nn.functional as F
from near import near
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from normgrad.teaching import double_backward

PARAMETERS = [(True, True), (True, False), (False, True), (False, False)]
EPS = 0.1


@pytest.fixture
def draw(torch_rng):
    """A function from a shape to a leaf of standard normal numbers in float64."""
    return lambda *shape: torch.randn(
        *shape, generator=torch_rng, dtype=torch.float64, requires_grad=True
    )


def _layer(way, weight, bias):
    """A function of the tensors that are there."""

    def function(x, *parameters):
        rest_of_inputs = iter(parameters)
        w, b = (next(rest_of_inputs) if there else None for there in (weight, bias))
        return double_backward.layer_norm(way, x, w, b, EPS)

    return function


def _inputs(draw, weight, bias, *shape):
    return (draw(*shape), *(draw(shape[-1]) for there in (weight, bias) if there))


def _gradients(function, inputs, dy):
    return torch.autograd.grad(function(*inputs), inputs, dy, create_graph=True)


def _second(function, inputs, dy, cotangents):
    return torch.autograd.grad(
        _gradients(function, inputs, dy), (dy, *inputs), cotangents, allow_unused=True
    )


def test_eps_is_torchs_where_none_is_given(draw):
    x = draw(2, 5) / 256
    assert near(double_backward.layer_norm("explicit", x), F.layer_norm(x, (5,)))


@pytest.mark.parametrize("weight, bias", PARAMETERS)
@pytest.mark.parametrize("way", double_backward.WAYS)
def test_values_are_torchs(draw, way, weight, bias):
    inputs, dy = _inputs(draw, weight, bias, 2, 3, 5), draw(2, 3, 5)
    cotangents = [draw(*t.shape).detach() for t in inputs]

    def theirs(x, *parameters):
        rest_of_inputs = iter(parameters)
        # torch's second derivative stops with an error where a bias comes without a weight (seen with 2.13)
        w, b = (
            next(rest_of_inputs) if there else torch.full_like(x[0, 0], value)
            for there, value in ((weight, 1), (bias, 0))
        )
        return F.layer_norm(x, (5,), w, b, EPS)

    ours = _layer(way, weight, bias)
    assert near(ours(*inputs), theirs(*inputs))
    for derivatives in (_gradients, lambda *a: _second(*a, cotangents)):
        for got, want in zip(
            derivatives(ours, inputs, dy), derivatives(theirs, inputs, dy), strict=True
        ):
            if (
                want is None or got is None
            ):  # a bias moves no gradient: absent on one side, 0 on the other
                assert all(t is None or not t.any() for t in (got, want))
            else:
                assert near(got, want)


@pytest.mark.parametrize("way", ["statistics", "explicit"])
def test_third_derivatives_are_those_of_recomputing(draw, way):
    inputs, dy, cotangents = _inputs(draw, True, True, 2, 5), draw(2, 5), draw(2, 2, 5)

    def third(way):
        layer = _layer(way, True, True)
        dx = _gradients(layer, inputs, dy)[0]
        second = torch.autograd.grad(dx, inputs[0], cotangents[0], create_graph=True)
        return torch.autograd.grad(second, inputs[:2], cotangents[1])

    for derivative, expected in zip(third(way), third("recompute"), strict=True):
        assert near(derivative, expected)


# -- what must be refused


def test_cotangents_of_the_statistics_are_needed(draw):
    class Deaf(double_backward.StatisticsNorm):
        @staticmethod
        def backward(ctx, dy, dmean, drstd):
            return double_backward.StatisticsNorm.backward(
                ctx, dy, torch.zeros_like(dmean), torch.zeros_like(drstd)
            )

    inputs = (*_inputs(draw, True, True, 2, 4),)
    assert gradcheck(lambda *t: Deaf.apply(*t, EPS)[0], inputs)
    with pytest.raises(GradcheckError):
        gradgradcheck(lambda *t: Deaf.apply(*t, EPS)[0], inputs)
