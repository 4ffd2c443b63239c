"""Bad input is refused by name: the error says which argument, what it got and what it needs."""

import numpy as np
import pytest
import torch

import normgrad
from normgrad import ledger, nn, numpy_ref, residual, symbolic
from normgrad.checks import backends, cases, contract, tolerance
from normgrad.mistakes import mutants
from normgrad.spec import NormSpec, check_axes
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.induction import induction
from normgrad.symbolic.opaque import derivative, opaque
from normgrad.symbolic.recurrences import Recurrences
from normgrad.symbolic.symbols import M, N, i, j
from normgrad.symbolic.trace import trace

X, W = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.ones(4)

SPEC_ERRORS = [
    ({"reduce": "max"}, ValueError, "reduce: got 'max', needs one of 'mean', 'sum'"),
    ({"placement": "under"}, ValueError, "placement: got 'under', needs one of 'inside', 'outside', 'clamp'"),
    ({"eps": -1e-5}, ValueError, "eps: got -1e-05, needs a number that is at least 0"),
    ({"eps": float("nan")}, ValueError, "eps: got nan, needs a finite number"),
    ({"eps": "small"}, TypeError, "eps: got str 'small', needs a real number"),
    ({"scale": float("inf")}, ValueError, "scale: got inf, needs a finite number"),
    ({"center": "False"}, TypeError, "center: got str 'False', needs True or False"),
    ({"center": None}, TypeError, "center: got NoneType None"),
    ({"reduce": np.array(["mean", "sum"])}, ValueError, r"reduce: got array\(.*, needs one of 'mean', 'sum'"),
    ({"scale": True}, TypeError, "scale: got bool True, needs a real number"),
]

CALL_ERRORS = [
    (lambda: normgrad.layer_norm(X, 5), ValueError, r"normalized_shape: got \(5,\), needs the last axes of input"),
    (lambda: normgrad.layer_norm(X, ()), ValueError, r"normalized_shape: got \(\)"),
    (lambda: normgrad.layer_norm(X, 4.0), TypeError, "normalized_shape: got float 4.0, needs an int"),
    (lambda: normgrad.layer_norm(X, 4, W[:3]), ValueError, r"weight: got shape \(3,\), needs \(4,\)"),
    (lambda: normgrad.layer_norm(X, 4, None, W[:3]), ValueError, r"bias: got shape \(3,\), needs \(4,\)"),
    (lambda: normgrad.layer_norm(X.long(), 4), TypeError, "input: got dtype torch.int64, needs float64"),
    (lambda: normgrad.layer_norm(X, 4, W.long()), TypeError, "weight: got dtype torch.int64"),
    (lambda: normgrad.layer_norm(X.numpy(), 4), TypeError, "input: got numpy.ndarray, needs a torch.Tensor"),
    (lambda: normgrad.layer_norm(X, 4, W.numpy()), TypeError, "weight: got numpy.ndarray"),
    (lambda: normgrad.layer_norm(X, 4, eps=-1.0), ValueError, "eps: got -1.0, needs a number that is at least 0"),
    (lambda: normgrad.layer_norm(X, 4, eps=None), TypeError, "eps: got NoneType None, needs a real number"),
    (lambda: normgrad.layer_norm(X, 4, backend="cuda"), ValueError, "backend: got 'cuda', needs one of 'auto'"),
    (lambda: normgrad.layer_norm(X, 4, W.to("meta")), ValueError, "weight: got device meta, needs cpu"),
    (lambda: normgrad.layer_norm(torch.empty(3, 0), 0), ValueError, r"normalized_shape: got \(0,\), needs"),
    (lambda: normgrad.layer_norm(X, 4, eps=torch.tensor(1e-5)), TypeError, "eps: got Tensor .*, needs a real number"),
    (lambda: normgrad.layer_norm(X, 4, eps=10**400), ValueError, "eps: got 10+, needs a finite number"),
    (lambda: normgrad.layer_norm(X, True), TypeError, "normalized_shape: got bool True, needs an int"),
    (lambda: normgrad.l2_norm(X, True), ValueError, "dim: got True, needs an axis of input"),
    (lambda: normgrad.l2_norm(X.to("meta"), backend="triton"), ValueError, "backend: 'triton' got a meta tensor"),
    (lambda: normgrad.l2_norm(X.to("meta"), backend="numba"), ValueError, "'numba' got a meta tensor, needs one on"),
    (lambda: nn.LayerNorm(0), ValueError, r"normalized_shape: got \(0,\), needs at least one axis"),
    (lambda: nn.RMSNorm(4.0), TypeError, "normalized_shape: got float 4.0, needs an int"),
    (lambda: nn.LayerNorm(4, eps=-1), ValueError, "eps: got -1, needs a number that is at least 0"),
    (lambda: nn.LayerNorm(4, backend="x"), ValueError, "backend: got 'x', needs one of"),
    (lambda: normgrad.rms_norm(X, 4, eps="tiny"), TypeError, "eps: got str 'tiny'"),
    (lambda: normgrad.l2_norm(X, dim=2), ValueError, "dim: got 2, needs an axis of input"),
    (lambda: normgrad.l2_norm(X, dim="last"), ValueError, "dim: got 'last', needs an axis of input"),
    (lambda: normgrad.l2_norm(torch.tensor(1.0)), ValueError, "dim: got -1, needs an axis of input"),
    (lambda: normgrad.add_layer_norm(X, X[:2], 4), ValueError, r"residual: got shape \(2, 4\), needs \(3, 4\)"),
    (lambda: normgrad.add_layer_norm(X, None, 4), TypeError, "residual: got None, needs a torch.Tensor"),
    (lambda: normgrad.add_normalize(X, None), TypeError, "residual: got None, needs a torch.Tensor"),
    (lambda: normgrad.add_rms_norm(X, X.int(), 4), TypeError, "residual: got dtype torch.int32"),
    (lambda: normgrad.normalize(X, spec="layer_norm"), TypeError, "spec: got str, needs a NormSpec"),
    (lambda: normgrad.normalize(X, out_dtype="float16"), TypeError, "out_dtype: got 'float16', needs torch.float64"),
    (lambda: normgrad.layer_norm(X, 4, out_dtype=torch.int32), TypeError, "out_dtype: got torch.int32, needs"),
    (lambda: normgrad.l2_norm(X, out_dtype=torch.float64), ValueError, "out_dtype: got torch.float64, needs float32"),
    (
        lambda: normgrad.add_rms_norm(X, X.half(), 4, residual_dtype=torch.float64),
        ValueError,
        "residual_dtype: got torch.float64, needs float32, float16 or bfloat16",
    ),
    (lambda: normgrad.add_normalize(X, X, residual_dtype=np.float32), TypeError, "residual_dtype: got <class 'numpy"),
    (lambda: normgrad.add_layer_norm(X, X, 4, round_residual=1), TypeError, "round_residual: got int 1, needs True or"),
    (lambda: normgrad.normalize(X, portable_sums=None), TypeError, "portable_sums: got NoneType None, needs True"),
    (lambda: nn.LayerNorm(4, out_dtype=float), TypeError, "out_dtype: got <class 'float'>, needs torch.float64"),
    (lambda: nn.AddNorm(nn.RMSNorm(4), residual_dtype=2), TypeError, "residual_dtype: got 2, needs torch.float64"),
    (lambda: nn.AddNorm(nn.RMSNorm(4), round_residual="no"), TypeError, "round_residual: got str 'no', needs True"),
    (lambda: normgrad.normalize(torch.tensor(1.0)), ValueError, r"input: got shape \(\), needs at least one axis"),
    (lambda: normgrad.rms_norm(X, 4, backend=np.ones(4)), ValueError, "backend: got array.*, needs one of 'auto'"),
    (lambda: nn.LayerNorm(4, bias="x"), TypeError, "bias: got str 'x', needs True or False"),
    (lambda: nn.RMSNorm(4, elementwise_affine=1), TypeError, "elementwise_affine: got int 1, needs True or False"),
    (lambda: nn.LayerNorm(4, eps=None), TypeError, "eps: got NoneType None, needs a real number"),
    (lambda: nn.LayerNorm(4, device="gpu"), TypeError, "device: got str .gpu., needs a torch.device or"),
    (lambda: nn.RMSNorm(4, casting="x"), ValueError, "casting: got 'x', needs 'once' or 'llama'"),
    (
        lambda: nn.RMSNorm(4, elementwise_affine=False, casting="llama"),
        ValueError,
        "casting: got 'llama' without a weight, needs 'once' there",
    ),
    (
        lambda: nn.RMSNorm(4, weight_offset=1, casting="llama"),
        ValueError,
        "casting: got 'llama' with weight_offset 1.0, needs 'once' there",
    ),
    (
        lambda: nn.RMSNorm(4, out_dtype=torch.float32, casting="llama"),
        ValueError,
        "casting: got 'llama' with out_dtype torch.float32, needs 'once' there",
    ),
    (lambda: nn.replace_norms(torch.nn.Linear(2, 2), backend="x"), ValueError, "backend: got 'x', needs one of"),
    (lambda: nn.replace_norms(torch.nn.LayerNorm), TypeError, "model: got type, needs a torch.nn.Module"),
    (lambda: nn.RMSNorm(4, dtype=torch.int32), TypeError, "dtype: got torch.int32, needs torch.float64"),
    (lambda: nn.RMSNorm(10**400), ValueError, r"normalized_shape: got \(10+,\), needs axes of a length below 2\*\*63"),
    (lambda: residual.naive_stack(X, X.sum(), []), TypeError, "layers: got Tensor, needs a sequence of callables"),
    (lambda: normgrad.RMS_NORM.replace(epsilon=1), TypeError, "changes: got 'epsilon', needs fields among 'center', "),
]

NUMPY_ERRORS = [
    (lambda: numpy_ref.forward(X), TypeError, "x: got Tensor, needs a numpy.ndarray"),
    (lambda: numpy_ref.forward(np.arange(4)), TypeError, "x: got dtype int64, needs a floating-point dtype"),
    (lambda: numpy_ref.forward(np.ones((2, 3)), np.ones(2)), ValueError, r"weight: got shape \(2,\), needs \(3,\)"),
    (lambda: numpy_ref.forward(np.ones((2, 0))), ValueError, r"x: got shape \(2, 0\), needs"),
    (lambda: numpy_ref.forward(np.ones((2, 3)), residual=np.ones(3)), ValueError, r"residual: got shape \(3,\)"),
    (lambda: numpy_ref.forward(np.ones((2, 3)), spec=None), TypeError, "spec: got NoneType, needs a NormSpec"),
    (
        lambda: numpy_ref.backward(np.ones((2, 2)), numpy_ref.forward(np.ones((2, 3)))),
        ValueError,
        r"dy: got shape \(2, 2\), needs \(2, 3\)",
    ),
    (lambda: numpy_ref.forward(np.eye(3).view(np.matrix)), TypeError, "x: got matrix, needs a numpy.ndarray itself"),
    (lambda: numpy_ref.forward(np.ma.masked_array(np.ones(3))), TypeError, "x: got MaskedArray, needs a numpy.ndarray"),
    (lambda: numpy_ref.backward(np.ones(3), None), TypeError, "saved: got NoneType, needs what forward returned"),
]

CASE = cases.draw(np.random.default_rng(0), 2, 3)
CHECKS_ERRORS = [
    (lambda: tolerance.unit_roundoff("float8"), ValueError, "dtype: got 'float8', needs one of 'float64', 'float32'"),
    (lambda: tolerance.unit_roundoff(np.float32), ValueError, "dtype: got <class 'numpy.float32'>, needs one of"),
    (lambda: tolerance.accumulator("half"), ValueError, "dtype: got 'half', needs one of"),
    (lambda: tolerance.round_to(np.ones(3), None), ValueError, "dtype: got None, needs one of"),
    (lambda: tolerance.Dtypes("half"), ValueError, "dtype: got 'half', needs one of"),
    (lambda: tolerance.Dtypes("float32", out=torch.float16), ValueError, "dtype: got torch.float16, needs one of"),
    (lambda: cases.draw(0), TypeError, "rng: got int, needs a numpy.random.Generator"),
    (lambda: cases.cases(np.random.default_rng(0), 2, 0), ValueError, "columns: got 0, needs an integer .* at least 1"),
    (lambda: cases.draw(np.random.default_rng(0), -1), ValueError, "rows: got -1, needs an integer .* at least 0"),
    (lambda: backends.get(None), ValueError, "backend: got None, needs one of 'numpy', 'sympy', 'torch', 'triton'"),
    (lambda: mutants.mutated(mutants.MUTANTS[0], "jax"), ValueError, "backend: got 'jax', needs one of 'numpy'"),
    (lambda: contract.check_gradcheck("numpy", CASE, normgrad.LAYER_NORM), ValueError, "backend: got 'numpy', needs"),
    (lambda: ledger.prove_small("ln-dx", sizes=()), ValueError, r"sizes: got \(\), needs a sequence of at least one"),
    (lambda: ledger.prove(None), TypeError, "label: got NoneType, needs the label"),
]

DEFS, SEED = symbolic.Defs(), symbolic.tensor("dy", M, N)
SYMBOLIC_ERRORS = [
    (lambda: symbolic.prove(None, 1), TypeError, "lhs: got NoneType, needs a SymPy expression"),
    (lambda: symbolic.prove(1, [1]), TypeError, "rhs: got list, needs a SymPy expression"),
    (lambda: symbolic.prove(1, 1, {M: N}), TypeError, "defs: got dict, needs a normgrad.symbolic.Defs"),
    (lambda: trace(1, None), TypeError, "rhs: got NoneType, needs a SymPy expression"),
    (lambda: trace(1, 1, [M]), TypeError, "defs: got list, needs a normgrad.symbolic.Defs"),
    (lambda: reverse({}, SEED[i, j], SEED), TypeError, "defs: got dict, needs a normgrad.symbolic.Defs"),
    (lambda: reverse(DEFS, SEED[i, j], "dy"), TypeError, "seed: got str, needs the name of a cotangent"),
    (lambda: reverse(DEFS, SEED[i, j], SEED), ValueError, "not defined here"),
    (lambda: opaque(3), TypeError, "letter: got int, needs a name"),
    (lambda: opaque(""), ValueError, "letter: got an empty text, needs a name"),
    (lambda: opaque("f", 3), TypeError, "stand_in: got int, needs a function"),
    (lambda: derivative(3), TypeError, "function: got int, needs a function made by opaque"),
    (lambda: induction(None, [(1, 1)]), TypeError, "recurrences: got NoneType, needs a Recurrences"),
    (lambda: induction(Recurrences(M, N), []), ValueError, r"claims: got \[\], needs at least one pair"),
]


@pytest.mark.parametrize(("fields", "error", "message"), SPEC_ERRORS)
def test_a_spec_refuses(fields, error, message):
    with pytest.raises(error, match=message):
        NormSpec(**fields)


@pytest.mark.parametrize(("call", "error", "message"), CALL_ERRORS + NUMPY_ERRORS + CHECKS_ERRORS + SYMBOLIC_ERRORS)
def test_a_call_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_spec_is_frozen_and_comparable():
    spec = normgrad.LAYER_NORM.replace(eps=1e-3)
    assert spec != normgrad.LAYER_NORM
    assert spec == NormSpec(eps=1e-3)
    assert hash(spec) == hash(NormSpec(eps=1e-3))
    with pytest.raises(AttributeError):
        spec.eps = 0


def test_eps_zero_is_allowed():
    assert NormSpec(eps=0).eps == 0


def test_the_fields_of_a_spec_are_plain_numbers():
    spec = NormSpec(center=1, scale=np.float32(2), eps=np.float64(0.5))
    assert (spec.center, type(spec.scale), type(spec.eps)) == (True, float, float) and type(spec.center) is bool


def test_a_size_fits_into_64_bits():
    assert check_axes(2**63 - 1) == (2**63 - 1,)
    with pytest.raises(ValueError, match="needs axes of a length below"):
        check_axes((4, 2**63))
