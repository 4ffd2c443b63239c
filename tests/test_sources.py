"""The mistakes of the three sources, one by one: each is wrong in numbers, and a check of this project catches it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import wrong_layer
from torch.autograd.gradcheck import GradcheckError

import normgrad
from normgrad import LAYER_NORM, NormSpec, numpy_ref
from normgrad.checks import contract
from normgrad.checks.backends import NAMES, TorchBackend, get
from normgrad.checks.cases import cases, draw
from normgrad.checks.tolerance import unit_roundoff
from normgrad.mistakes import mutants

ROUNDINGS = 64 * unit_roundoff("float64")


def plain(case):
    return case.without("residual", "dresidual_out")


def close(got, expected):
    return np.allclose(
        got, expected, rtol=ROUNDINGS, atol=ROUNDINGS * np.abs(expected).max()
    )


# -- source 000


@pytest.mark.parametrize("backend", NAMES)
def test_an_absent_bias_is_0_and_not_1(backend, rng):
    absent = plain(draw(rng)).without("weight", "bias")
    zeros = replace(absent, weight=np.ones(7), bias=np.zeros(7))
    ones = replace(zeros, bias=np.ones(7))
    y, neutral, shifted = (
        get(backend).run(case, LAYER_NORM, "float64").y
        for case in (absent, zeros, ones)
    )
    assert close(y, neutral) and not close(y, shifted)


@pytest.mark.parametrize("backend", NAMES)
def test_without_eps_a_constant_row_has_no_value(backend, rng):
    flat = plain(cases(rng)[4])
    with np.errstate(divide="ignore", invalid="ignore"):
        without, with_eps = (
            get(backend).run(flat, NormSpec(eps=eps), "float64") for eps in (0.0, 1e-5)
        )
    assert not np.isfinite(without.y[0]).any() and not np.isfinite(without.dx[0]).any()
    assert np.isfinite(with_eps.y).all() and np.isfinite(with_eps.dx).all()


def test_parameter_gradients_are_sums_over_the_batch(rng):
    case = plain(draw(rng))
    x, weight, bias, dy = (
        torch.tensor(getattr(case, name)) for name in ("x", "weight", "bias", "dy")
    )
    _, pull = torch.func.vjp(
        lambda w, b: torch.nn.functional.layer_norm(x, (7,), w, b), weight, bias
    )
    x_hat = numpy_ref.forward(case.x).y
    of_a_row = {"dw": case.dy * x_hat, "db": case.dy}
    for exact, summands in zip(pull(dy), of_a_row.values(), strict=True):
        assert close(summands.sum(0), exact.numpy())
        assert summands.shape != exact.shape and not close(summands[-1], exact.numpy())


def test_the_residual_gradient_is_an_equation_and_not_an_assignment(rng):
    """dx = dx + dr; dy = dx, executed in the other order, loses dr in one of the two."""
    case = draw(rng)
    saved = numpy_ref.forward(case.x, case.weight, case.bias, case.residual)
    exact = numpy_ref.backward(case.dy, saved, case.dresidual_out).dx
    dx = numpy_ref.backward(case.dy, saved).dx
    dresidual, dx = dx, dx + case.dresidual_out
    assert close(dx, exact) and not close(dresidual, exact)


def test_a_reference_that_doubles_the_row_is_blind_without_eps(rng):
    """norm(x + x) for norm(x + residual): for eps = 0 the scale drops out, and a test on residual = x sees nothing."""
    x = draw(rng).x
    for eps, same in ((0.0, True), (0.1, False)):
        spec = NormSpec(eps=eps)
        assert (
            close(
                numpy_ref.forward(x + x, spec=spec).y, numpy_ref.forward(x, spec=spec).y
            )
            == same
        )


# -- source 001


def test_the_transposed_layout_is_wrong_with_a_weight_vector(rng):
    case = plain(draw(rng, 1))
    x, weight, dy = (torch.tensor(a) for a in (case.x[0], case.weight, case.dy[0]))
    for w, harmless in ((torch.full_like(weight, 0.7), True), (weight, False)):
        J = torch.func.jacrev(
            lambda x, w=w: normgrad.layer_norm(x, 7, w, backend="torch")
        )(x)
        exact = torch.func.vjp(
            lambda x, w=w: normgrad.layer_norm(x, 7, w, backend="torch"), x
        )[1](dy)[0].numpy()
        assert close((J.T @ dy).numpy(), exact)
        assert close((J @ dy).numpy(), exact) == harmless
        # the layer without the weight: what it scales is dy, and not dx
        plain_J = J / w[:, None]
        assert close((plain_J.T @ (w * dy)).numpy(), exact)
        assert close((w * (plain_J.T @ dy)).numpy(), exact) == harmless


# -- source 003


def tensors(case):
    return [
        torch.tensor(getattr(case, name), requires_grad=True)
        for name in ("x", "weight", "bias")
    ]


def test_a_weight_from_the_module_scope_gives_another_layers_gradient(rng, monkeypatch):
    case = plain(draw(rng, 3, 5))
    inputs, dy = tensors(case), torch.tensor(case.dy)
    exact = contract.reference(case, LAYER_NORM, "float64")[1].dx
    own, ones, short = (
        inputs[1].detach(),
        torch.ones(5, dtype=torch.float64),
        torch.ones(4, dtype=torch.float64),
    )
    for weight, right in ((own, True), (ones, False)):
        monkeypatch.setattr(wrong_layer, "gamma", weight)
        dx = torch.autograd.grad(
            wrong_layer.SavesIntermediates.apply(*inputs), inputs[0], dy
        )[0]
        assert close(dx.numpy(), exact) == right
    for weight, error in ((None, TypeError), (short, RuntimeError)):
        monkeypatch.setattr(wrong_layer, "gamma", weight)
        with pytest.raises(error):
            torch.autograd.grad(
                wrong_layer.SavesIntermediates.apply(*inputs), inputs[0], dy
            )
    monkeypatch.setattr(wrong_layer, "gamma", ones)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(wrong_layer.SavesIntermediates.apply, inputs)


def test_saved_intermediates_are_wrong_in_the_second_derivative_only(rng, monkeypatch):
    inputs = tensors(plain(draw(rng, 2, 4)))
    monkeypatch.setattr(wrong_layer, "gamma", inputs[1].detach())
    assert torch.autograd.gradcheck(wrong_layer.SavesIntermediates.apply, inputs)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(wrong_layer.SavesIntermediates.apply, inputs)
    assert torch.autograd.gradgradcheck(
        lambda x, w, b: normgrad.layer_norm(x, 4, w, b, backend="torch"), inputs
    )


# The source's arguments: half of what they let pass is what the test is about.
LOOSE = {"eps": 1e-6, "atol": 0.1, "rtol": 0.1}


def test_tolerances_of_a_tenth_let_a_wrong_backward_pass(rng):
    wrong = mutants.mutated(mutants.find("c2 dropped"))
    uniform = replace(
        plain(draw(rng, 2, 64)),
        x=rng.random((2, 64)),
        weight=rng.random(64),
        bias=rng.random(64),
    )
    function, inputs = wrong.function(uniform, LAYER_NORM)
    assert torch.autograd.gradcheck(function, inputs, **LOOSE)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(function, inputs)
    function, inputs = TorchBackend("torch").function(uniform, LAYER_NORM)
    assert torch.autograd.gradcheck(function, inputs)


def test_the_roundings_inside_a_float32_forward_fail_gradcheck():
    """The source's seed, shapes and step: rounding the step fails no entry, and rounding the outputs a handful."""
    torch.manual_seed(42)
    shapes = ((32, 64), 64, 64)
    x, weight, bias = (torch.rand(n, dtype=torch.float64).float() for n in shapes)

    def forward(p):
        q = p - p.mean(-1, keepdim=True)
        sigma = (q.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return q / sigma * weight.to(p.dtype) + bias.to(p.dtype)

    jacobian = torch.func.vmap(torch.func.jacrev(forward))(x.double())

    def rejected(step, inside, output):
        """How many entries differ by more than the source's tolerances of 0.1, where these dtypes round."""
        ends = []
        for h in (1e-6, -1e-6):
            moved = x.to(step)[:, None] + h * torch.eye(64, dtype=step)
            ends.append(forward(moved.to(inside)).to(output).double())
        measured = ((ends[0] - ends[1]) / 2e-6).transpose(1, 2)
        return int(((jacobian - measured).abs() > 0.1 + 0.1 * measured.abs()).sum())

    double, single = torch.float64, torch.float32
    assert rejected(double, double, double) == rejected(single, double, double) == 0
    assert rejected(double, double, single) < 20 > rejected(single, double, single)
    assert rejected(single, single, single) > 200


def test_the_sources_formulas_pass_its_own_comparison_in_float32(rng, monkeypatch):
    """128 rows of 256 numbers from [0, 1), as in the source, against torch's function at torch's default tolerances."""
    x, weight, bias, dy = (torch.tensor(rng.random(shape), dtype=torch.float32) for shape in
                           ((128, 256), 256, 256, (128, 256)))  # fmt: skip
    monkeypatch.setattr(wrong_layer, "gamma", weight.clone())
    leaves = [t.requires_grad_() for t in (x, weight, bias)]
    expected = torch.autograd.grad(
        torch.nn.functional.layer_norm(x, (256,), weight, bias), leaves, dy
    )
    for layer in (
        wrong_layer.SavesIntermediates.apply,
        lambda x, w, b: normgrad.layer_norm(x, 256, w, b, backend="torch"),
    ):
        for got, theirs in zip(
            torch.autograd.grad(layer(*leaves), leaves, dy), expected, strict=True
        ):
            torch.testing.assert_close(got, theirs)
