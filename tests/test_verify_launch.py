"""Functions that launch kernels: what is proved runs right in Triton's interpreter, and what is accused does not."""

import contextlib
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from launchers import BASES, DEFINITIONS, NORM, TOLD, imported, launcher, sizes_of
from replays import replays
from tables import FOLDER, claims

from normgrad.mistakes.edits import edited
from normgrad.verify import N, cross_entropy, norm, verify
from normgrad.verify.tables.libraries import HOST
from normgrad.verify.tables.torch import HOST_METHODS
from normgrad.verify.tables.triton import TRITON
from normgrad.verify.verdict import KINDS, NOT_READ, PROVED, REFUTED

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
LINES = list(claims("verify_launchers.txt"))
# what a run on the CPU may answer by an access outside of the tensors' memory; what the interpreter does not refuse
OUTSIDE = (
    "past the end|not where rows <|apart, and they lie|has no argument|makes a constant|num_warps="
    "|float that is compiled in|as Triton takes|NameError: unmade|while it compiles"
)


def is_right(base, module, M, N, apart, axes, heads=1):
    """Whether a launcher gives y, and dx and dw, at sizes.

    Args:  apart: whether the rows of x lie further apart than N; axes: of x
           heads: how many rows have a weight of their own
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((M, N + 3 * apart), generator=generator)[:, :N]
    weight = torch.randn((heads, N), generator=generator)
    if heads == 1:
        weight = weight[0]
    dy = torch.randn((M, N), generator=generator)
    eps, wide = 1e-2, x.double().requires_grad_()
    w = weight.double().requires_grad_()
    rows = torch.arange(M) % heads
    scale = w if heads == 1 else w[rows]
    y = wide * (wide.square().mean(1, keepdim=True) + eps).rsqrt() * scale
    dx, dw = torch.autograd.grad(y, (wide, w), dy.double())
    given = x.clone() if not apart else x
    if axes == 3:
        leading = (1, M) if heads == 1 else (M // heads, heads)
        given = given.view(*leading, N)
    try:
        if base in ("FUNCTION", "LOCKS"):
            given.requires_grad_()
            weight.requires_grad_()
            result = module.RMSNorm.apply(given, weight, eps)
            gradients = torch.autograd.grad(result, (given, weight), dy)
        elif base == "LAYER":
            layer = module.RMSNorm(N, eps=3e-2)
            layer.weight.data.copy_(weight)
            y = wide * (wide.square().mean(1, keepdim=True) + 3e-2).rsqrt() * w
            result, gradients = layer(given), ()
        elif base == "CROSS_ENTROPY":
            labels = torch.randint(N, (M,), generator=generator)
            y = torch.nn.functional.cross_entropy(wide, labels, reduction="none")
            (dx,) = torch.autograd.grad(y, wide, dy[:, 0].double())
            result = module.CrossEntropy.apply(given.requires_grad_(), labels)
            gradients = torch.autograd.grad(result, given, dy[:, 0])
        elif base == "SOFTMAX":
            y = torch.softmax(wide, dim=1)
            result, gradients = module.softmax(given), ()
        elif base == "HANDED":
            result, gradients = torch.full((M, N), float("nan")), ()
            module.rms_norm(given, weight, result, eps)
        else:
            result, gradients = module.rms_norm(given, weight, eps), ()
    except Exception:
        return False
    if isinstance(result, tuple):
        result = result[0]
    pairs = zip((result, *gradients), (y, dx, dw), strict=False)
    return all(
        torch.allclose(a.detach().double().reshape(b.shape), b, atol=1e-4)
        for a, b in pairs
    )


def returns_what_was_read(base, module, verdict):
    """Assert that a launcher gives, for the inputs of its only replay, what was read."""
    ((_, _, replay),) = replays(verdict)
    shape, eps = tuple(replay.sizes.values()), replay.inputs.get("eps", 1e-2)
    absent = {"x": torch.ones(shape), "dy": torch.ones(shape)}
    absent["weight"] = torch.ones(shape[1])
    x, weight, dy = (
        torch.tensor(replay.inputs.get(name, absent[name].tolist()))
        for name in ("x", "weight", "dy")
    )
    if "vectors (T, N)" in str(verdict):
        x, weight = x[:, None], weight[None]  # one head
    with warnings.catch_warnings():
        # masked lanes
        warnings.filterwarnings("ignore", "divide by zero encountered in log")
        got = returned(base, module, replay, x, weight, dy, eps)
    result = got[replay.output].numpy().reshape(np.shape(replay.stored))
    np.testing.assert_allclose(result, replay.stored, 1e-4)


def returned(base, module, replay, x, weight, dy, eps):
    """{output: what a launcher gives for the inputs of a replay}."""
    got = {}
    if base in ("FUNCTION", "LOCKS"):
        x.requires_grad_()
        weight.requires_grad_()
        result = module.RMSNorm.apply(x, weight, eps)
        got["y"] = result.detach()
        if replay.output != "y":
            gradients = torch.autograd.grad(result, (x, weight), dy)
            got["dx"], got["dw"] = gradients
    elif base == "LAYER":
        layer = module.RMSNorm(x.shape[-1], eps=eps)
        layer.weight.data.copy_(weight)
        got["y"] = layer(x).detach()
    elif base == "CROSS_ENTROPY":
        x.requires_grad_()
        labels = torch.tensor(replay.inputs["onehot"]).argmax(1)
        result = module.CrossEntropy.apply(x, labels)
        dloss = torch.tensor(replay.inputs["dloss"])
        (got["dx"],) = torch.autograd.grad(result, x, dloss)
    elif base == "SOFTMAX":
        got["y"] = module.softmax(x)
    elif base == "HANDED":
        got["y"] = torch.empty(x.shape)
        module.rms_norm(x, weight, got["y"], eps)
    else:
        got["y"] = module.rms_norm(x, weight, eps)
    return got


@pytest.fixture
def poisoned(monkeypatch):
    """torch.empty whose entries are nan, and a GPU that is there."""
    for name in ("empty", "empty_like"):
        plain = getattr(torch, name)

        def filled(*args, plain=plain, **options):
            return plain(*args, **options).fill_(float("nan"))

        monkeypatch.setattr(torch, name, filled)
    properties = SimpleNamespace(multi_processor_count=2)
    for name, value in {
        "device": contextlib.nullcontext,
        "set_device": lambda device: None,
        "synchronize": lambda: None,
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "get_device_properties": lambda device: properties,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)


@pytest.mark.parametrize(("kind", "_", "line"), LINES)
def test_a_launcher_is_what_runs(kind, _, line, poisoned, tmp_path):
    base, text, words = launcher(line)
    verdict = verify(text, DEFINITIONS[base], **TOLD[base])
    assert verdict.kind == next(k for k in KINDS if k.startswith(kind)), verdict
    assert re.search(words, str(verdict)), verdict
    if kind == "proved":
        assert re.search(words, str(verdict).split("\n")[0])
    runs = "autotune" not in text  # which measures times on a GPU
    text = text.replace("x.is_cuda", "not x.is_cuda").replace('"cuda"', '"cpu"')
    if kind == REFUTED:
        returns_what_was_read(base, imported(text, tmp_path), verdict)
    if kind == NOT_READ or not runs or re.search(OUTSIDE, str(verdict)):
        return
    sizes = sizes_of(verdict, (3, 5))
    axes, heads = 3 if "(B, T, N)" in str(verdict) else 2, 1
    if "vectors (T, N)" in str(verdict):
        sizes, heads = (6, 5), 3
    try:
        module = imported(text, tmp_path)
    except (AttributeError, NameError):
        assert kind != "proved"
        return
    assert is_right(base, module, *sizes, False, axes, heads) == (kind == "proved")
    if "any stride from N on" in str(verdict) and base != "LAYER":
        assert is_right(base, module, *sizes, True, axes)


def test_y_of_the_definitions_is_another_tensor_than_an_argument_y():
    text = "import torch\n\ndef f(x, y):\n    return y\n"
    assert verify(text, norm(weight=False), ("y",), y="(M, N)").kind == NOT_READ


def test_every_function_of_a_launcher_has_a_line():
    table = (FOLDER / "verify_launchers.txt").read_text(encoding="utf8")
    text = "\n".join([table, *BASES.values()])
    for path in HOST:
        assert path in text, path
    for name in HOST_METHODS:
        assert f".{name}(" in text, name
    for name in TRITON:
        assert f"{name.removeprefix('language.')}(" in text, name


def test_a_layer_is_the_reference_of_another(tmp_path):
    text = """import torch

class Reference(torch.nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""
    assert verify(text, norm(), outputs=("y",), dim=N).kind == PROVED


@pytest.mark.parametrize(
    ("made", "used", "kind"),
    [
        ("Parameter(weight)", "weight", PROVED),
        ("Parameter(2 * weight)", "weight", NOT_READ),
        ("Parameter(weight)\n        self.other = weight", "other", NOT_READ),
    ],
)
def test_a_layer_is_handed_its_weight(made, used, kind):
    text = BASES["LAYER"].replace("self, dim", "self, weight")
    text = text.replace("Parameter(torch.ones(dim))", made)
    text = text.replace("x, self.weight", f"x, self.{used}")
    assert verify(text, NORM, outputs=("y",)).kind == kind


CROSS_ENTROPY = """import torch
import triton
import triton.language as tl

@triton.jit
def kernel(X, T, L, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    target = tl.load(T + row)
    x = tl.load(X + row * stride + cols, mask=cols < n, other=-float("inf"))
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    tl.store(L + row, lse - tl.load(X + row * stride + target))

def loss_of(x, target):
    target = TARGET
    M, N = x.shape
    loss = torch.empty(M, dtype=torch.float32, device=x.device)
    kernel[(M,)](x, target, loss, x.stride(0), N, B=triton.next_power_of_2(N))
    return loss
"""


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("target", PROVED),
        ("target.contiguous().view(-1)", PROVED),
        ("target.float()", NOT_READ),
        ("target.to(x.dtype)", NOT_READ),
        ("target * 1.0", NOT_READ),
        ("torch.where(target == 0, target, target)", NOT_READ),
    ],
)
def test_a_target_is_an_index(target, kind):
    """An address plus a float, which `target.float()` makes, does not compile."""
    text = CROSS_ENTROPY.replace("TARGET", target)
    assert verify(text, cross_entropy()).kind == kind


DISPATCHED = BASES["ROWS"].replace(
    "def rms_norm",
    "from elsewhere import dispatch, size_of\n\n\n@dispatch\ndef rms_norm",
)
DISPATCHED = DISPATCHED.replace("triton.next_power_of_2(N)", "size_of(N, 2)")
SAID = {"dispatch": "lambda f: f", "size_of(N, 2)": "triton.next_power_of_2(N)"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sums_of_all_programs_in_16_bits_are_said(dtype):
    zeros = f"torch.zeros((N,), dtype=torch.{dtype}"
    edits = [
        ("tl.store(P + tl.program_id(0) * n + cols", "tl.atomic_add(P + cols"),
        ("torch.empty((P, N), dtype=torch.float32", zeros),
        ("partial.sum(0)", "partial"),
    ]
    text = edited(BASES["FUNCTION"], edits, "FUNCTION")
    claim, *_ = str(verify(text, norm(), name="RMSNorm")).splitlines()
    assert claim.startswith(PROVED)
    assert (f"with sums in {dtype}" in claim) == (dtype != "float32")


def test_what_an_expression_is_said_to_be_stands_in_the_claim():
    verdict = verify(DISPATCHED, NORM, helpers=SAID, **TOLD["ROWS"])
    assert verdict.kind == PROVED
    words = "where dispatch is lambda f: f, where size_of(N, 2) is triton.next_power"
    assert words in str(verdict).split("\n")[0]
    assert verify(DISPATCHED, NORM, **TOLD["ROWS"]).kind == NOT_READ
    for wrong in ({"dispatch": "lambda f: 2 * f"}, {"size_of(N, 2)": "N"}):
        verdict = verify(DISPATCHED, NORM, helpers={**SAID, **wrong}, **TOLD["ROWS"])
        assert verdict.kind != PROVED


@pytest.mark.parametrize(
    ("helpers", "words"),
    [
        ({"nothing": "1"}, "got nothing, needs what begins with a name"),
        ({"weight": "1"}, "and no function binds"),
        ({"dispatch": "1 +"}, "needs one expression"),
        ({"kernel = 1": "1"}, "needs one expression"),
    ],
)
def test_what_no_expression_is_said_to_be_is_refused(helpers, words):
    with pytest.raises(ValueError, match=words):
        verify(DISPATCHED, NORM, helpers=helpers, **TOLD["ROWS"])
    with pytest.raises(ValueError, match="where program is no text"):
        verify(is_right, NORM, helpers=helpers)


def test_a_file_is_read_with_its_package(tmp_path):
    _, text, _ = launcher("ROWS:")
    package = tmp_path / "layers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    kernels, host = text.split("\n\n\ndef rms_norm")
    (package / "kernels.py").write_text(kernels + "\n")
    head = "import torch\nimport triton\n\nfrom layers.kernels import kernel\n"
    (package / "norms.py").write_text(f"{head}\n\ndef rms_norm{host}")
    verdict = verify(f"{package / 'norms.py'}::rms_norm", norm(), outputs=("y",))
    assert verdict.kind == PROVED, verdict
    with pytest.raises(ValueError, match="which is no file"):
        verify(f"{package / 'missing.py'}::rms_norm", norm())
