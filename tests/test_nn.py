"""Modules load torch.nn's state and agree with it."""

import pytest
import torch
from near import near

import normgrad
from normgrad import nn

PAIRS = [
    (lambda m, **kw: m.LayerNorm(6, **kw), {}),
    (lambda m, **kw: m.LayerNorm((2, 6), **kw), {"eps": 1e-3}),
    (lambda m, **kw: m.LayerNorm(6, **kw), {"bias": False}),
    (lambda m, **kw: m.LayerNorm(6, **kw), {"elementwise_affine": False}),
    (lambda m, **kw: m.RMSNorm(6, **kw), {}),
    (lambda m, **kw: m.RMSNorm([2, 6], **kw), {"eps": 1e-3}),
]


@pytest.mark.parametrize(("make", "options"), PAIRS)
def test_state_and_values_are_torchs(make, options, torch_rng):
    theirs, ours = (
        make(torch.nn, dtype=torch.float64, **options),
        make(nn, dtype=torch.float64, **options),
    )
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 2, 6, generator=torch_rng, dtype=torch.float64)
    assert near(ours(x), theirs(x))
    assert [tuple(p.shape) for p in ours.parameters()] == [
        tuple(p.shape) for p in theirs.parameters()
    ]


def test_reset_parameters_and_repr():
    norm = nn.LayerNorm(3, backend="torch")
    torch.nn.init.zeros_(norm.weight)
    norm.reset_parameters()
    assert norm.weight.tolist() == [1, 1, 1]
    assert (
        repr(norm)
        == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True, backend='torch')"
    )


# casting="llama": x_hat is rounded before the weight is multiplied

EPS = 0.1


@pytest.fixture
def llama(torch_rng):
    """A module with a weight of both signs, in a dtype and of a backend."""

    def make(dtype=torch.bfloat16, backend="torch"):
        norm = nn.RMSNorm(6, eps=EPS, dtype=dtype, casting="llama", backend=backend)
        torch.nn.init.normal_(norm.weight, generator=torch_rng)
        return norm

    return make


@pytest.mark.parametrize("backend", ["torch", "triton", "numba"])
def test_llama_rounds_twice(backend, llama, torch_rng):
    pytest.importorskip({"triton": "triton", "numba": "numba"}.get(backend, "torch"))
    norm = llama(backend=backend)
    x, residual = torch.randn(2, 8, 6, generator=torch_rng).bfloat16()
    rows = x.double()
    x_hat = (rows / (rows.pow(2).mean(-1, keepdim=True) + EPS).sqrt()).bfloat16()
    assert torch.equal(norm(x), norm.weight * x_hat)
    assert not torch.equal(
        norm(x), normgrad.rms_norm(x, 6, norm.weight, EPS, backend="torch")
    )
    y, p = nn.AddNorm(norm, residual_dtype=torch.float32, round_residual=False)(
        x, residual
    )
    x_hat, expected = normgrad.add_rms_norm(
        x,
        residual,
        6,
        None,
        EPS,
        residual_dtype=torch.float32,
        round_residual=False,
        backend="torch",
    )
    assert torch.equal(y, norm.weight * x_hat) and torch.equal(p, expected)


def test_llama_has_the_promoted_dtype_and_a_weight_in_float32_keeps_its_digits(
    llama, torch_rng
):
    norm = llama(torch.float32)
    x = torch.randn(8, 6, generator=torch_rng).bfloat16()
    assert (
        torch.equal(
            norm(x), norm.weight * normgrad.rms_norm(x, 6, None, EPS, backend="torch")
        )
        and norm(x).dtype == torch.float32
    )


def test_llama_broadcasts_no_weight(llama):
    norm = llama()
    norm.weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    for call in (norm, lambda x: nn.AddNorm(norm)(x, x)):
        with pytest.raises(
            ValueError,
            match=r"^weight: got shape \(1,\), needs \(6,\), the normalized_shape$",
        ):
            call(torch.ones(2, 6, dtype=torch.bfloat16))


# Normalize: any spec, by names of its own

OUTSIDE = normgrad.NormSpec(placement="outside", eps=0.1, weight_offset=1.0)


@pytest.mark.parametrize("casting", ["once", "llama"])
@pytest.mark.parametrize("heads", [None, 2])
def test_normalize_is_the_function_of_its_parameters(heads, casting, torch_rng):
    names = {"weight_name": "gain", "bias_name": "shift"}
    options = {"bias": True, "heads": heads, "casting": casting, "backend": "torch"}
    norm = nn.Normalize(OUTSIDE, 6, **options, **names)
    assert list(dict(norm.named_parameters())) == ["gain", "shift"]
    assert not norm.gain.any() and not norm.shift.any()
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    x = torch.randn(4, 2, 6, generator=torch_rng)
    weight, bias = norm.gain, norm.shift
    expected = normgrad.normalize(
        x, weight, bias, spec=OUTSIDE, heads=heads, backend="torch"
    )
    torch.testing.assert_close(norm(x), expected)
    rows = x.bfloat16()
    x_hat = normgrad.normalize(
        rows, spec=OUTSIDE.replace(weight_offset=0.0), backend="torch"
    )
    if casting == "llama":
        assert torch.equal(norm(rows), x_hat * (1 + weight) + bias)
    norm.reset_parameters()
    assert not norm.gain.any() and not norm.shift.any()
    assert "weight='gain', bias='shift'" in repr(norm)


def test_one_number_stands_for_all_columns(torch_rng):
    norm = nn.Normalize(normgrad.L2_NORM, 1, backend="torch")
    torch.nn.init.constant_(norm.weight, 3.0)
    for columns in (5, 8):
        x = torch.randn(4, columns, generator=torch_rng)
        y = norm(x)
        torch.testing.assert_close(y, 3 * torch.nn.functional.normalize(x, dim=-1))
        (gradient,) = torch.autograd.grad(y, norm.weight, torch.ones_like(y))
        expected = torch.nn.functional.normalize(x, dim=-1).sum().reshape(1)
        torch.testing.assert_close(gradient, expected)


# What a constructor refuses, before any call
CONSTRUCTORS = {
    "nn.LayerNorm(4, eps=None)": "eps: got None",
    "nn.LayerNorm(4, eps=-1.0)": "eps: got -1.0",
    "nn.RMSNorm(4, eps=-1.0)": "eps: got -1.0",
    "nn.RMSNorm(4, backend='fast')": "backend: got 'fast'",
    "nn.RMSNorm(4, elementwise_affine=1)": "elementwise_affine: got int 1",
    "nn.LayerNorm(4, bias=1)": "bias: got int 1",
    "nn.RMSNorm(4, dtype=torch.int32)": "dtype: got torch.int32",
    "nn.RMSNorm(4, out_dtype=torch.int32)": "out_dtype: got torch.int32",
    "nn.RMSNorm(4, device=1.5)": "device: got ",
    "nn.RMSNorm(4, casting='late')": "casting: got 'late'",
    "nn.RMSNorm(4, elementwise_affine=False, casting='llama')": "casting: got 'llama'",
    "nn.AddNorm(torch.nn.LayerNorm(4))": "norm: got torch.nn.",
    "nn.AddNorm(nn.RMSNorm(4), residual_dtype=torch.int32)": "residual_dtype: got torch.int32",
    "nn.AddNorm(nn.RMSNorm(4), round_residual=1)": "round_residual: got int 1",
    "nn.GatedRMSNorm((2, 2))": r"normalized_shape: got \(2, 2\)",
    "nn.GatedRMSNorm(4, eps=0)": "eps: got 0, needs a positive number",
    "nn.GatedRMSNorm(4, eps=-1.0)": "eps: got -1.0",
    "nn.GatedRMSNorm(4, elementwise_affine=1)": "elementwise_affine: got int 1",
    "nn.GatedRMSNorm(4, gate_first=1)": "gate_first: got int 1",
    "nn.GatedRMSNorm(4, device=1.5)": "device: got ",
    "nn.GatedRMSNorm(4, dtype=torch.int32)": "dtype: got torch.int32",
    "nn.Normalize(4)": "spec: got int",
    "nn.Normalize(columns=(3, 4))": r"columns: got \(3, 4\), needs one size",
    "nn.Normalize(bias=True)": "bias: got True without columns, needs False there",
    "nn.Normalize(columns=4, bias=1)": "bias: got int 1",
    "nn.Normalize(heads=3)": "heads: got 3 without a weight or a bias",
    "nn.Normalize(normgrad.NormSpec(weight_offset=1.0))": "weight_offset: got 1.0 without",
    "nn.Normalize(columns=4, casting='late')": "casting: got 'late'",
    "nn.Normalize(casting='llama')": "casting: got 'llama' without a weight",
    "nn.Normalize(columns=4, casting='llama', out_dtype=torch.float32)": "casting: got 'llama' with out_dtype",
    "nn.Normalize(columns=4, backend='fast')": "backend: got 'fast'",
    "nn.Normalize(columns=4, device=1.5)": "device: got ",
    "nn.Normalize(columns=4, dtype=torch.int32)": "dtype: got torch.int32",
    "nn.Normalize(columns=4, out_dtype=torch.int32)": "out_dtype: got torch.int32",
    "nn.replace_norms(torch.nn.Linear(2, 2), rounding='x')": "rounding: got 'x', needs 'same' or 'once'",
    "nn.replace_norms(torch.nn.Linear(2, 2), backend='fast')": "backend: got 'fast'",
    "nn.replace_norms([torch.nn.LayerNorm(2)])": "model: got list",
}


@pytest.mark.parametrize("call", CONSTRUCTORS)
def test_a_constructor_refuses(call):
    with pytest.raises((TypeError, ValueError), match=f"^{CONSTRUCTORS[call]}"):
        eval(call, {"nn": nn, "normgrad": normgrad, "torch": torch})
