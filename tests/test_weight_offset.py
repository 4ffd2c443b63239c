"""weight_offset: Gemma's 1 + w, added in the dtype of the sums, on every backend and by every way in."""

import pytest
import torch

import normgrad
from normgrad.bench.counted import interpreted
from normgrad.checks.cases import draw
from normgrad.checks.tolerance import unit_roundoff
from normgrad.spec import RMS_NORM

BACKENDS = ("torch", "triton", "numba")
GEMMA = RMS_NORM.replace(eps=1e-6, weight_offset=1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_weights_near_0_keep_their_digits(backend, torch_rng):
    """128 weights near 0.001: 1 + w has as many values as w, where 16 bits have three."""
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(backend, "torch"))
    weight = (1e-3 * torch.randn(128, generator=torch_rng)).bfloat16()
    assert len((1 + weight).unique()) <= 3
    options = {"out_dtype": torch.float32, "backend": backend, "weight_offset": 1.0}
    y = normgrad.rms_norm(torch.ones(1, 128).bfloat16(), 128, weight, 0.0, **options)
    assert (y[0] - (1 + weight.float())).abs().max() <= 4 * unit_roundoff("float32")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_weight_is_taken_for_the_sum_and_the_gradients_are_its(backend, torch_rng):
    """Every output and gradient is that of the weight 1 + w."""
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(backend, "torch"))
    x, residual, dy = torch.randn(3, 2, 3, 5, generator=torch_rng)
    weight = torch.randn(5, generator=torch_rng)

    def gradients(weight, **options):
        leaves = [t.clone().requires_grad_() for t in (x, residual, weight)]
        y, p = normgrad.add_rms_norm(*leaves[:2], 5, leaves[2], 1e-6, backend=backend, **options)
        return y, p, *torch.autograd.grad((y, p), leaves, (dy, dy.flip(0)))

    for one, other in zip(gradients(weight, weight_offset=1.0), gradients(1 + weight), strict=True):
        assert torch.equal(one, other)


def test_a_module_begins_where_its_factor_is_1(torch_rng):
    plain, offset = normgrad.nn.RMSNorm(5), normgrad.nn.RMSNorm(5, weight_offset=1.0)
    assert not offset.weight.any() and plain.weight.eq(1).all()
    x = torch.randn(3, 5, generator=torch_rng)
    assert torch.equal(plain(x), offset(x))
    assert "weight_offset=1.0" in repr(offset) and "weight_offset" not in repr(plain)
    torch.nn.init.ones_(offset.weight)
    offset.reset_parameters()
    assert not offset.weight.any()


def test_an_offset_requests_no_byte(rng):
    """The rows of both directions, counted in the interpreter: the constant is in the kernel's text."""
    pytest.importorskip("triton")
    from normgrad.triton_kernels import INTERPRETED

    if not INTERPRETED:
        pytest.skip("the interpreter counts")
    case = draw(rng, 6, 40)
    counted = []
    for spec in (GEMMA.replace(weight_offset=0.0), GEMMA):
        x, weight = (torch.tensor(a).bfloat16().requires_grad_() for a in (case.x, case.weight))
        with interpreted() as found:
            y = normgrad.normalize(x, weight, spec=spec, backend="triton")
            torch.autograd.grad(y, (x, weight), torch.tensor(case.dy).bfloat16())
        counted.append((found.requested, found.distinct))
    assert counted[0] == counted[1] and counted[0][0] > 0
