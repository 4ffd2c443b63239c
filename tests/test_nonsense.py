"""Nonsense in every argument of the public API: an error in words, or one of the few values that do make sense."""

import re

import numpy as np
import pytest
import torch
import wiring

import normgrad

WORDS = re.compile(r"[\w. \[\]]+: got .+, needs ", re.DOTALL)
SHAPE = wiring.SHAPE


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
WAYS = tuple(f"teaching.double_backward.layer_norm, {way}" for way in ("recompute", "statistics", "explicit"))
STACKS = tuple(name for name in wiring.SUBJECTS if name.startswith("residual."))
ROWS_ALONE = (
    *(("normalize", "input"), ("layer_norm", "input"), ("rms_norm", "input")),
    *(("nn.LayerNorm.forward", "input"), ("nn.RMSNorm.forward", "input")),
    *((name, "x") for name in (*STACKS, *WAYS)),
)
ROOTS = (
    "NormSpec",
    "NormSpec, numpy_ref.forward",
    "NormSpec, numpy_ref.backward",
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
    **dict.fromkeys(("round_residual", "portable_sums", "elementwise_affine"), {"true"}),
    # Without a weight or a residual of another shape, rows of any number are as good.
    **{f"{name}, {argument}": {"no rows", "row"} for name, argument in ROWS_ALONE},
    "l2_norm, input": {"no rows", "no columns", "swapped", "row", "5 columns", "meta"},
    "nn.LayerNorm, bias": {"true"},
    "nn.AddNorm of LayerNorm, bias": {"true"},
    **{f"{name}, eps": {*NUMBERS, "None"} for name in ROOTS},
}


@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name, subject in wiring.SUBJECTS.items() for argument in subject.arguments(normgrad)],
)
def test_nonsense_is_refused_in_words(name, argument):
    subject = wiring.SUBJECTS[name]
    given = subject.given(normgrad)
    sense = SENSE.get(f"{name}, {argument}", SENSE.get(argument, set()))
    arrays = name.startswith("numpy_ref") and argument not in ("spec", "saved")
    for value, nonsense in (_arrays() if arrays else _nonsense()).items():
        if argument == "final_norm" and callable(nonsense):
            continue  # what it needs is a callable
        try:
            if name in STACKS:
                subject.target(normgrad)(**given | {argument: nonsense})
            else:
                subject.call(normgrad, given | {argument: nonsense})
        except (TypeError, ValueError) as error:
            assert WORDS.match(str(error)), f"{value}: {error}"
        else:
            assert value in sense, f"{value} is taken"
