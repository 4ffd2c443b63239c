"""What is refused: bad values of arguments, in words that say which argument, what it got and what it needs."""

import builtins
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import wiring

import normgrad
from normgrad import ledger, nn, residual, symbolic  # noqa: F401 - refusals.txt names them
from normgrad.checks import backends, tolerance  # noqa: F401
from normgrad.spec import NormSpec, check_axes
from normgrad.symbolic import backend as sympy_backend  # noqa: F401
from normgrad.symbolic.symbols import M, N  # noqa: F401

SHAPE = wiring.SHAPE
X, W = torch.ones(SHAPE), torch.ones(4)
ONES = np.ones((2, 3))
META = X.to("meta")
HUGE = 10**400
GEMMA = normgrad.RMS_NORM.replace(weight_offset=1.0)
WAY = "teaching.double_backward.layer_norm, explicit"
H = SHAPE[1]
PER_HEAD = torch.ones(H, 4)


class NamedParameter(torch.nn.Parameter):
    """A parameter of another type."""


def gated(**changed):
    """gated_rms_norm with some arguments changed."""
    pytest.importorskip("triton")
    return normgrad.gated_rms_norm(
        **{"input": X, "gate": X, "weight": W, "eps": 1e-6} | changed
    )


def gated_module(**changed):
    """A GatedRMSNorm with some arguments changed, and a call of it."""
    pytest.importorskip("triton")
    return nn.GatedRMSNorm(**{"normalized_shape": 4} | changed)(X, X)


def refused():
    """(error, columns) of each line of the table."""
    table = Path(__file__).with_name("refusals.txt")
    for line in table.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            error = getattr(builtins, line.strip("[]"))
        elif line and not line.startswith("#"):
            yield pytest.param(error, line.split(" | "), id=line)


def read(text):
    """The value of a text of the table."""
    return eval(text, globals())


@pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested tensors", "ignore:Sparse CSR tensor support"
)
@pytest.mark.parametrize(("error", "columns"), list(refused()))
def test_a_bad_value_is_refused(error, columns):
    if len(columns) == 2:
        with pytest.raises(error, match=f"^{columns[1]}"):
            read(columns[0])
        return
    name, argument, bad, words, *more = columns
    subject = wiring.SUBJECTS[WAY if name == "WAY" else name]
    changed = {argument: read(bad)} if argument in subject.arguments else {}
    for arguments in more:
        changed |= read(arguments)
    with pytest.raises(error, match=f"^{argument}: {words}"):
        subject.call(subject.base | changed)


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


class Nothing:
    """Has no meaning for anything."""


# Texts of values, as `read` reads them.
NONSENSE = """
None | "x" | "" | b"x" | "auto" | True | 0 | 4 | 1.5 | -1.0 | float("nan") | float("inf") | 1j | HUGE | [1, 2] | {}
{4} | () | (4,) | (3, 4) | ("a",) | (i for i in (4,)) | Nothing() | Nothing | len | torch.nn.Linear(4, 4)
normgrad.RMS_NORM | float | torch.float32 | torch.int32 | torch.complex64 | np.float32 | np.float32(2) | np.int64(4)
np.ones(4, np.float32) | torch.tensor(1.5) | X.int() | X.bool() | X.to(torch.complex64) | X.to(torch.float8_e4m3fn)
META | X.to_sparse() | torch.ones(0, 4) | torch.ones(3, 0) | torch.ones(SHAPE[::-1]) | W | torch.ones(2, 3, 5)
"""
ARRAYS = """
np.full(SHAPE, "a") | np.ones(SHAPE, object) | np.ones(SHAPE, int) | ONES.view(np.matrix) | np.ma.masked_array(ONES)
np.array(1.5) | np.ones((3, 0)) | np.ones((0, 4)) | np.ones((2, 3, 5)) | [[1.0, 2.0]] | X | None | "x" | Nothing()
"""
NUMBERS = "0 | 4 | 1.5 | np.float32(2) | np.int64(4)"
WAYS = tuple(
    f"teaching.double_backward.layer_norm, {way}"
    for way in ("recompute", "statistics", "explicit")
)
STACKS = tuple(name for name in wiring.SUBJECTS if name.startswith("residual."))
ROWS_ALONE = (
    *("normalize, input", "layer_norm, input", "rms_norm, input"),
    *("nn.LayerNorm.forward, input", "nn.RMSNorm.forward, input"),
    *(f"{name}, x" for name in (*STACKS, *WAYS)),
)
ROOTS = (
    "NormSpec",
    "rms_norm",
    "add_rms_norm",
    "nn.RMSNorm",
    "nn.AddNorm of RMSNorm",
)
# What makes sense: {argument, or subject and argument: texts of values}.
SENSE = {
    "residual": "None",
    "dresidual_out": "None",
    "weight": "None | W",
    "bias": "None | W",
    "normalized_shape": "4 | np.int64(4) | (4,) | (3, 4)",
    "eps": NUMBERS,
    "scale": f"{NUMBERS} | -1.0",
    "center": "True | 0",
    "weight_offset": f"{NUMBERS} | -1.0",
    "heads": "None",
    "spec": "normgrad.RMS_NORM",
    "dim": "0",
    "backend": '"auto"',
    "device": "None",
    "final_norm": "None",
    "model": "torch.nn.Linear(4, 4)",
    **dict.fromkeys(("out_dtype", "residual_dtype", "dtype"), "None | torch.float32"),
    **dict.fromkeys(("round_residual", "portable_sums", "elementwise_affine"), "True"),
    # Without a weight or a residual of another shape, rows of any number are as good.
    **dict.fromkeys(ROWS_ALONE, "torch.ones(0, 4) | W"),
    "l2_norm, input": "torch.ones(0, 4) | torch.ones(3, 0) | torch.ones(SHAPE[::-1]) | W | torch.ones(2, 3, 5) | META",
    "nn.LayerNorm, bias": "True",
    "nn.AddNorm of LayerNorm, bias": "True",
    **{f"{name}, eps": f"{NUMBERS} | None" for name in ROOTS},
}


def is_device(value):
    """Whether torch takes a number for a device, as it does where it has an accelerator."""
    if not isinstance(value, int | np.integer):
        return False
    try:
        torch.device(value)
    except (RuntimeError, TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name, subject in wiring.SUBJECTS.items()
        for argument in subject.arguments
    ],
)
def test_nonsense_is_refused_in_words(name, argument):
    subject = wiring.SUBJECTS[name]
    arguments = subject.base
    sense = SENSE.get(f"{name}, {argument}", SENSE.get(argument, "")).split(" | ")
    arrays = name.startswith("numpy_ref") and argument not in ("spec", "saved")
    said_of = r"[\w. \[\]]+" if argument in MEASURES else rf"{argument}[\[\]\d]*"
    values = ARRAYS if arrays else NONSENSE
    for value in values.strip().replace("\n", " | ").split(" | "):
        nonsense = read(value)
        if argument == "final_norm" and callable(nonsense):
            continue  # what it needs is a callable
        if argument == "device" and is_device(nonsense):
            continue  # the number of one, where torch has an accelerator
        try:
            if name in STACKS:
                subject.target(**arguments | {argument: nonsense})
            else:
                subject.call(arguments | {argument: nonsense})
        except (TypeError, ValueError) as error:
            assert re.match(rf"{said_of}: got .+, needs ", str(error), re.DOTALL), (
                f"{value}: {error}"
            )
        else:
            assert value in sense, f"{value} is taken"
