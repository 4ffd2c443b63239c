"""What is refused: bad values of arguments, in words that say which argument, what it got and what it needs."""

import re

import numpy as np
import pytest
import torch
import wiring

import normgrad
from normgrad import ledger, nn, residual, symbolic
from normgrad.checks import backends, tolerance
from normgrad.spec import NormSpec, check_axes
from normgrad.symbolic import backend as sympy_backend
from normgrad.symbolic.adjoint import reverse
from normgrad.symbolic.symbols import M, N, i, j

SHAPE = wiring.SHAPE
X, W = torch.ones(SHAPE), torch.ones(4)
ONES = np.ones((2, 3))
META = X.to("meta")
HUGE = 10**400
GEMMA = normgrad.RMS_NORM.replace(weight_offset=1.0)
NAMED = "needs one of 'auto'"
WAY = "teaching.double_backward.layer_norm, explicit"
NO_WEIGHT = "got 1.0 without a weight, needs 0.0 there"
H = SHAPE[1]
PER_HEAD = torch.ones(H, 4)
# {error: [(function, argument, bad value, words after the argument's name, other arguments)]}
REFUSED = {
    ValueError: [
        ("NormSpec", "reduce", "max", "got 'max', needs one of 'mean', 'sum'"),
        (
            "NormSpec",
            "reduce",
            np.array(["mean", "sum"]),
            r"got array\(.*, needs one of 'mean', 'sum'",
        ),
        (
            "NormSpec",
            "placement",
            "under",
            "got 'under', needs one of 'inside', 'outside', 'clamp'",
        ),
        (
            "layer_norm",
            "normalized_shape",
            5,
            r"got \(5,\), needs the last axes of input",
        ),
        ("layer_norm", "normalized_shape", (), r"got \(\)"),
        (
            "layer_norm",
            "normalized_shape",
            0,
            r"got \(0,\), needs",
            {"input": torch.empty(3, 0)},
        ),
        ("layer_norm", "weight", W[:3], r"got shape \(3,\), needs \(4,\)"),
        ("layer_norm", "weight", W.to("meta"), "got device meta, needs cpu"),
        ("layer_norm", "bias", W[:3], r"got shape \(3,\), needs \(4,\)"),
        ("layer_norm", "backend", "cuda", f"got 'cuda', {NAMED}"),
        ("rms_norm", "backend", np.ones(4), f"got array.*, {NAMED}"),
        ("rms_norm", "weight", PER_HEAD, r"got shape \(3, 4\), needs \(4,\), "),
        ("rms_norm", "weight", W, r"got shape \(4,\), needs \(3, 4\)", {"heads": H}),
        ("rms_norm", "weight_offset", 1.0, NO_WEIGHT, {"weight": None}),
        (
            "rms_norm",
            "heads",
            2,
            "got 2, needs the axis before the norm",
            {"weight": PER_HEAD[:2]},
        ),
        (
            "rms_norm",
            "heads",
            H,
            "got 3, needs the axis before",
            {"input": W, "weight": PER_HEAD},
        ),
        ("rms_norm", "heads", H, "got 3 without a weight or a bias", {"weight": None}),
        ("rms_norm", "heads", 0, "got 0, needs at least 1", {"weight": PER_HEAD}),
        (
            "layer_norm",
            "bias",
            W,
            r"got shape \(4,\), needs \(3, 4\)",
            {"heads": H, "weight": PER_HEAD},
        ),
        ("l2_norm", "dim", True, "got True, needs an axis of input"),
        ("l2_norm", "dim", 3, "got 3, needs an axis of input"),
        ("l2_norm", "dim", "last", "got 'last', needs an axis of input"),
        (
            "l2_norm",
            "dim",
            -1,
            "got -1, needs an axis of input",
            {"input": torch.tensor(1.0)},
        ),
        ("l2_norm", "backend", "triton", "'triton' got a meta tensor", {"input": META}),
        (
            "l2_norm",
            "backend",
            "numba",
            "'numba' got a meta tensor, needs one on",
            {"input": META},
        ),
        ("l2_norm", "out_dtype", torch.float64, "got torch.float64, needs float32"),
        (
            "add_layer_norm",
            "residual",
            X[:1],
            r"got shape \(1, 3, 4\), needs \(2, 3, 4\)",
        ),
        (
            "add_rms_norm",
            "residual_dtype",
            torch.float64,
            "got torch.float64, needs float32, float16 or bfloat16",
        ),
        (
            "normalize",
            "input",
            torch.tensor(1.0),
            r"got shape \(\), needs at least one axis",
        ),
        (
            "normalize",
            "weight",
            PER_HEAD,
            r"got shape \(3, 4\), needs \(4,\), the last axis of",
        ),
        (
            "normalize",
            "weight_offset",
            None,
            NO_WEIGHT,
            {"spec": GEMMA, "weight": None},
        ),
        ("nn.LayerNorm", "normalized_shape", 0, r"got \(0,\), needs at least one axis"),
        ("nn.LayerNorm", "backend", "x", f"got 'x', {NAMED}"),
        (
            "nn.LayerNorm",
            "weight_offset",
            1.0,
            NO_WEIGHT,
            {"elementwise_affine": False},
        ),
        (
            "nn.RMSNorm",
            "normalized_shape",
            HUGE,
            r"got \(10+,\), needs axes of a length below 2\*\*63",
        ),
        (
            "nn.RMSNorm",
            "heads",
            H,
            "got 3 without a weight or a bias",
            {"elementwise_affine": False},
        ),
        ("nn.RMSNorm", "casting", "x", "got 'x', needs 'once' or 'llama'"),
        (
            "nn.RMSNorm",
            "casting",
            "llama",
            "got 'llama' without a weight",
            {"elementwise_affine": False},
        ),
        (
            "nn.RMSNorm",
            "casting",
            "llama",
            "got 'llama' with weight_offset 1.0",
            {"weight_offset": 1},
        ),
        (
            "nn.RMSNorm",
            "casting",
            "llama",
            "got 'llama' with out_dtype",
            {"out_dtype": torch.float32},
        ),
        ("nn.replace_norms", "backend", "x", f"got 'x', {NAMED}"),
        ("numpy_ref.forward", "x", np.ones((2, 0)), r"got shape \(2, 0\), needs"),
        ("numpy_ref.forward", "weight", np.ones(2), r"got shape \(2,\), needs \(4,\)"),
        (
            "numpy_ref.forward",
            "weight",
            np.ones(4),
            r"got shape \(4,\), needs \(3, 4\)",
            {"heads": H},
        ),
        ("numpy_ref.forward", "residual", np.ones(3), r"got shape \(3,\)"),
        (
            "numpy_ref.forward",
            "weight_offset",
            None,
            NO_WEIGHT,
            {"spec": GEMMA, "weight": None},
        ),
        (
            "numpy_ref.backward",
            "dy",
            np.ones((2, 2)),
            r"got shape \(2, 2\), needs \(2, 3, 4\)",
        ),
        (
            WAY,
            "way",
            "twice",
            "got 'twice', needs one of 'recompute', 'statistics', 'explicit'",
        ),
        (WAY, "way", ["explicit"], r"got \['explicit'\], needs"),
        (WAY, "x", X[..., :0], r"got shape \(2, 3, 0\), needs"),
        (WAY, "weight", X, r"got shape \(2, 3, 4\), needs \(4,\)"),
        (WAY, "weight", W.to("meta"), "got device meta, needs cpu, the device of x"),
        (WAY, "bias", W[:1], r"got shape \(1,\), needs \(4,\)"),
    ],
    TypeError: [
        ("layer_norm", "weight", W.long(), "got dtype torch.int64"),
        ("layer_norm", "weight", W.numpy(), "got numpy.ndarray"),
        ("layer_norm", "input", X.long(), "got dtype torch.int64, needs float64"),
        ("layer_norm", "input", X.numpy(), "got numpy.ndarray, needs a torch.Tensor"),
        ("layer_norm", "eps", torch.tensor(1e-5), "got Tensor .*, needs a real number"),
        ("layer_norm", "out_dtype", torch.int32, "got torch.int32, needs"),
        (
            "rms_norm",
            "heads",
            True,
            "got bool True, needs an int or None",
            {"weight": PER_HEAD},
        ),
        ("add_rms_norm", "residual", X.int(), "got dtype torch.int32"),
        ("nn.LayerNorm", "device", "gpu", "got str .gpu., needs a torch.device or"),
        ("nn.RMSNorm", "dtype", torch.int32, "got torch.int32, needs torch.float64"),
        (
            "nn.AddNorm",
            "norm",
            torch.nn.Linear(4, 4),
            r"got torch\..*Linear, needs a normgrad.nn.LayerNorm or",
        ),
        ("numpy_ref.forward", "x", X, "got Tensor, needs a numpy.ndarray"),
        (
            "numpy_ref.forward",
            "x",
            np.arange(4),
            "got dtype int64, needs a floating-point dtype",
        ),
        (
            "numpy_ref.forward",
            "x",
            ONES.view(np.matrix),
            "got matrix, needs a numpy.ndarray itself",
        ),
        (
            "numpy_ref.forward",
            "x",
            np.ma.masked_array(ONES),
            "got MaskedArray, needs a numpy.ndarray",
        ),
        (WAY, "x", X.numpy(), "got numpy.ndarray, needs a torch.Tensor"),
        (WAY, "x", X.int(), "got dtype torch.int32, needs float64"),
    ],
}

DEFS, SEED = symbolic.Defs(), symbolic.tensor("dy", M, N)
# {error: [(a call of what is not in the table of the public API, all of its words)]}
CALLS = {
    TypeError: [
        (
            lambda: residual.naive_stack(X, X.sum(), []),
            "layers: got Tensor, needs a sequence of callables",
        ),
        (
            lambda: normgrad.RMS_NORM.replace(epsilon=1),
            "changes: got 'epsilon', needs fields among 'center', ",
        ),
        (lambda: ledger.prove(None), "label: got NoneType, needs the label"),
        (
            lambda: symbolic.prove(1, 1, {M: N}),
            "defs: got dict, needs a normgrad.symbolic.Defs",
        ),
        (
            lambda: reverse({}, SEED[i, j], SEED),
            "defs: got dict, needs a normgrad.symbolic.Defs",
        ),
        (
            lambda: reverse(DEFS, SEED[i, j], "dy"),
            "seed: got str, needs the name of a cotangent",
        ),
    ],
    ValueError: [
        (
            lambda: check_axes((4, 2**63)),
            "normalized_shape: got .*needs axes of a length below",
        ),
        (
            lambda: sympy_backend.forward(ONES, None, None, None, GEMMA),
            f"weight_offset: {NO_WEIGHT}",
        ),
        (
            lambda: tolerance.unit_roundoff("float8"),
            "dtype: got 'float8', needs one of 'float64', 'float32'",
        ),
        (
            lambda: tolerance.unit_roundoff(np.float32),
            "dtype: got <class 'numpy.float32'>, needs one of",
        ),
        (
            lambda: tolerance.Dtypes("float32", out=torch.float16),
            "dtype: got torch.float16, needs one of",
        ),
        (lambda: backends.get("jax"), "backend: got 'jax', needs one of 'numpy'"),
        (
            lambda: ledger.prove_small("ln-dx", sizes=()),
            r"sizes: got \(\), needs a sequence of at least one",
        ),
        (lambda: reverse(DEFS, SEED[i, j], SEED), ".*not defined here"),
    ],
}
GATED = [
    ({"input": None}, "input: got builtins.NoneType"),
    (
        {"gate": None},
        "gate: got None, needs a torch.Tensor; without a gate use rms_norm",
    ),
    (
        {"gate": X[:1]},
        r"gate: got shape \(1, 3, 4\), needs \(2, 3, 4\), the shape of input",
    ),
    ({"weight": X}, r"weight: got shape \(2, 3, 4\), needs \(4,\)"),
    ({"eps": 0}, "eps: got 0, needs a positive number"),
    ({"eps": -1}, "eps: got -1, needs"),
    ({"input": X.long()}, "input: got dtype torch.int64"),
    ({"gate_first": 1}, "gate_first: got int 1, needs True or False"),
]
GATED_MODULE = [
    ({"normalized_shape": (2, 3)}, r"normalized_shape: got \(2, 3\), needs one axis"),
    ({"eps": 0}, "eps: got 0, needs a positive number"),
    ({"gate_first": 1}, "gate_first: got int 1"),
    ({"dtype": torch.int8}, "dtype: got torch.int8"),
    (
        {"normalized_shape": 3},
        r"normalized_shape: got \(3,\), needs the last axes of input",
    ),
    (
        {"normalized_shape": 3, "elementwise_affine": False},
        r"normalized_shape: got \(3,\), needs",
    ),
]


@pytest.mark.parametrize(
    ("error", "row"),
    [
        pytest.param(error, row, id=f"{row[0]}, {row[1]}: {row[3]}")
        for error, rows in REFUSED.items()
        for row in rows
    ],
)
def test_a_bad_value_is_refused(error, row):
    name, argument, bad, words, *more = row
    subject = wiring.SUBJECTS[name]
    changed = {argument: bad} if argument in subject.arguments(normgrad) else {}
    for arguments in more:
        changed |= arguments
    with pytest.raises(error, match=f"^{argument}: {words}"):
        subject.call(normgrad, subject.given(normgrad) | changed)


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        pytest.param(error, *row, id=row[1])
        for error, rows in CALLS.items()
        for row in rows
    ],
)
def test_a_call_is_refused(error, call, words):
    with pytest.raises(error, match=f"^{words}"):
        call()


@pytest.mark.parametrize(("changed", "words"), GATED, ids=[words for _, words in GATED])
def test_gated_rms_norm_refuses(changed, words):
    pytest.importorskip("triton")
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        normgrad.gated_rms_norm(
            **{"input": X, "gate": X, "weight": W, "eps": 1e-6} | changed
        )


@pytest.mark.parametrize(
    ("changed", "words"), GATED_MODULE, ids=[words for _, words in GATED_MODULE]
)
def test_the_gated_module_refuses(changed, words):
    pytest.importorskip("triton")
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        nn.GatedRMSNorm(**{"normalized_shape": 4} | changed)(X, X)


@pytest.mark.parametrize(("tokens", "heads"), [(1, 65536), (2**31 // 3, 3)])
def test_more_rows_than_a_launch_can_number_are_refused(tokens, heads):
    pytest.importorskip("triton")
    from normgrad.triton_kernels import launch

    with pytest.raises(ValueError, match="^heads: got .*, needs at most 65535"):
        launch._heads(True, torch.empty(tokens, heads, 1, device="meta"))


def test_what_a_spec_takes():
    spec = NormSpec(center=1, scale=np.float32(2), eps=np.float64(0.5))
    assert (spec.center, type(spec.scale), type(spec.eps)) == (
        True,
        float,
        float,
    ) and type(spec.center) is bool
    assert NormSpec(eps=0).eps == 0 and check_axes(2**63 - 1) == (2**63 - 1,)
    assert (
        normgrad.LAYER_NORM != normgrad.LAYER_NORM.replace(eps=0.5) == NormSpec(eps=0.5)
    )
    assert hash(NormSpec(eps=0.5)) == hash(normgrad.LAYER_NORM.replace(eps=0.5))
    with pytest.raises(AttributeError):
        spec.eps = 0


# Nonsense: every argument of every public function, given anything.

# Arguments that others are held to: what does not fit may be said of those.
MEASURES = ("input", "x", "layers", "normalized_shape", "final_norm")


class _Nothing:
    """Has no meaning for anything."""


def _nonsense():
    """{name: value}; a generator can be used once."""
    return {
        "None": None,
        "text": "x",
        "empty text": "",
        "bytes": b"x",
        "auto": "auto",
        "true": True,
        "0": 0,
        "4": 4,
        "1.5": 1.5,
        "negative": -1.0,
        "nan": float("nan"),
        "infinite": float("inf"),
        "imaginary": 1j,
        "huge": 10**400,
        "list": [1, 2],
        "dict": {},
        "set": {4},
        "empty tuple": (),
        "(4,)": (4,),
        "(3, 4)": (3, 4),
        "texts": ("a",),
        "generator": (i for i in (4,)),
        "object": _Nothing(),
        "class": _Nothing,
        "function": len,
        "module": torch.nn.Linear(4, 4),
        "spec": normgrad.RMS_NORM,
        "float": float,
        "float32": torch.float32,
        "int32": torch.int32,
        "complex64": torch.complex64,
        "np.float32": np.float32,
        "np.float32(2)": np.float32(2),
        "np.int64(4)": np.int64(4),
        "array": np.ones(4, np.float32),
        "number": torch.tensor(1.5),
        "integers": torch.ones(SHAPE, dtype=torch.int32),
        "booleans": torch.ones(SHAPE, dtype=torch.bool),
        "complex": torch.ones(SHAPE, dtype=torch.complex64),
        "float8": torch.ones(SHAPE).to(torch.float8_e4m3fn),
        "meta": torch.ones(SHAPE, device="meta"),
        "sparse": torch.ones(SHAPE).to_sparse(),
        "no rows": torch.ones(0, 4),
        "no columns": torch.ones(3, 0),
        "swapped": torch.ones(SHAPE[::-1]),
        "row": torch.ones(4),
        "5 columns": torch.ones(2, 3, 5),
    }


def _arrays():
    return {
        "texts": np.full(SHAPE, "a"),
        "objects": np.ones(SHAPE, object),
        "integers": np.ones(SHAPE, int),
        "matrix": np.ones((3, 4)).view(np.matrix),
        "masked": np.ma.masked_array(np.ones(SHAPE)),
        "number": np.array(1.5),
        "no columns": np.ones((3, 0)),
        "no rows": np.ones((0, 4)),
        "5 columns": np.ones((2, 3, 5)),
        "list": [[1.0, 2.0]],
        "tensor": wiring.TENSORS["input"],
        "None": None,
        "text": "x",
        "object": _Nothing(),
    }


NUMBERS = {"0", "4", "1.5", "np.float32(2)", "np.int64(4)"}
# What makes sense: {argument, or subject and argument: names of values}.
WAYS = tuple(
    f"teaching.double_backward.layer_norm, {way}"
    for way in ("recompute", "statistics", "explicit")
)
STACKS = tuple(name for name in wiring.SUBJECTS if name.startswith("residual."))
ROWS_ALONE = (
    *(("normalize", "input"), ("layer_norm", "input"), ("rms_norm", "input")),
    *(("nn.LayerNorm.forward", "input"), ("nn.RMSNorm.forward", "input")),
    *((name, "x") for name in (*STACKS, *WAYS)),
)
ROOTS = (
    "NormSpec",
    "rms_norm",
    "add_rms_norm",
    "nn.RMSNorm",
    "nn.AddNorm of RMSNorm",
)
SENSE = {
    "residual": {"None"},
    "dresidual_out": {"None"},
    "weight": {"None", "row"},
    "bias": {"None", "row"},
    "normalized_shape": {"4", "np.int64(4)", "(4,)", "(3, 4)"},
    "eps": NUMBERS,
    "scale": {*NUMBERS, "negative"},
    "center": {"true", "0"},
    "weight_offset": {*NUMBERS, "negative"},
    "heads": {"None"},
    "spec": {"spec"},
    "dim": {"0"},
    "backend": {"auto"},
    "device": {"None"},
    "final_norm": {"None"},
    "model": {"module"},
    **dict.fromkeys(("out_dtype", "residual_dtype", "dtype"), {"None", "float32"}),
    **dict.fromkeys(
        ("round_residual", "portable_sums", "elementwise_affine"), {"true"}
    ),
    # Without a weight or a residual of another shape, rows of any number are as good.
    **{f"{name}, {argument}": {"no rows", "row"} for name, argument in ROWS_ALONE},
    "l2_norm, input": {"no rows", "no columns", "swapped", "row", "5 columns", "meta"},
    "nn.LayerNorm, bias": {"true"},
    "nn.AddNorm of LayerNorm, bias": {"true"},
    **{f"{name}, eps": {*NUMBERS, "None"} for name in ROOTS},
}


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name, subject in wiring.SUBJECTS.items()
        for argument in subject.arguments(normgrad)
    ],
)
def test_nonsense_is_refused_in_words(name, argument):
    subject = wiring.SUBJECTS[name]
    arguments = subject.given(normgrad)
    sense = SENSE.get(f"{name}, {argument}", SENSE.get(argument, set()))
    arrays = name.startswith("numpy_ref") and argument not in ("spec", "saved")
    said_of = r"[\w. \[\]]+" if argument in MEASURES else rf"{argument}[\[\]\d]*"
    for value, nonsense in (_arrays() if arrays else _nonsense()).items():
        if argument == "final_norm" and callable(nonsense):
            continue  # what it needs is a callable
        try:
            if name in STACKS:
                subject.target(normgrad)(**arguments | {argument: nonsense})
            else:
                subject.call(normgrad, arguments | {argument: nonsense})
        except (TypeError, ValueError) as error:
            assert re.match(rf"{said_of}: got .+, needs ", str(error), re.DOTALL), (
                f"{value}: {error}"
            )
        else:
            assert value in sense, f"{value} is taken"
