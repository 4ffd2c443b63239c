"""Wrong programs that the covering set does not meet, each beside the check that it fails and the package passes.

The contract rejects the others of the list, `signs` and the catalogue; these are about wiring, derivatives of
derivatives, fused layers, layouts, reports and the book.
"""

import csv
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
import torch
import wiring
from copies import listed
from fused_layers import IN_TORCH, names_of

from normgrad.checks.tolerance import unit_roundoff

ROUNDINGS = 64


def fused(package, name):
    """A fused layer of fused_layers.txt."""
    y = names_of(name, package=package)["y"]
    return import_module(f"{package}.fused").Fused(y)


def normal(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def same(result, expected, dtype="float64"):
    """Equal up to some tens of roundings."""
    result, expected = result.detach(), expected.detach()
    scale = max(1.0, float(expected.abs().max()))
    distance = float((result.double() - expected.double()).abs().max())
    assert distance <= ROUNDINGS * unit_roundoff(dtype) * scale


def three_vectors(package):
    layer, dy = fused(package, "three_vectors"), normal(3, 5, seed=9)
    vectors = {name: normal(5, seed=2 + n) for n, name in enumerate("wbu")}
    inputs = {"x": normal(3, 5), **vectors}
    leaves = [t.requires_grad_() for t in inputs.values()]
    grads, right = (
        torch.autograd.grad(norm(**inputs), leaves, dy)
        for norm in (layer, IN_TORCH["three_vectors"])
    )
    for result, expected in zip(grads, right, strict=True):
        same(result, expected)


def two_dtypes(package):
    layer = fused(package, "gated_rms_norm")
    inputs = {"x": normal(2, 3, seed=2).float(), "g": normal(2, 3).bfloat16()}
    inputs |= {"w": normal(3, seed=3).float(), "eps": 0.1}
    y = layer(**inputs)
    assert y.dtype == torch.float32
    inputs["g"] = inputs["g"].float()
    same(y, IN_TORCH["gated_rms_norm"](**inputs), "float32")


def eps_of_two_dtypes(package):
    x, residual = 1e-9 * normal(2, 3).float(), 1e-9 * normal(2, 3, seed=2)
    y, _ = import_module(package).add_rms_norm(x, residual, 3, backend="torch")
    p = x.double() + residual
    eps = torch.finfo(torch.float64).eps
    same(y, p / (p * p).mean(-1, keepdim=True).add(eps).sqrt(), "float32")


class CentredNorm(torch.nn.Module):
    """An RMSNorm of the last axis, which is centred where the input has so many axes."""

    def __init__(self, axes):
        super().__init__()
        self.weight = torch.nn.Parameter(normal(4).float())
        self.axes = axes

    def forward(self, x):
        rows = x.float()
        if x.dim() == self.axes:
            rows = rows - rows.mean(-1, keepdim=True)
        x_hat = rows * (rows * rows).mean(-1, keepdim=True).add(1e-6).rsqrt()
        return (self.weight.float() * x_hat).to(x.dtype)


def norms_of_many_axes(package):
    nn = import_module(f"{package}.nn")
    for axes in (4, 5):
        model = torch.nn.Sequential(CentredNorm(axes))
        nn.replace_norms(model, backend="torch")
        assert isinstance(model[0], CentredNorm)


def layer_of_another_shape(package):
    residual = import_module(f"{package}.residual")
    norm = import_module(f"{package}.nn").RMSNorm(4, backend="torch")
    with pytest.raises(ValueError, match="output of layers"):
        residual.fused_stack(
            normal(1, 2, 4), [lambda y: y.reshape(2, 1, 4)], [norm], norm
        )


def class_with_a_missing_report(package):
    classroom = import_module(f"{package}.homework.classroom")
    report = {"points": 3, "tasks": [{"task": "norm-project", "points": 3}]}
    grades = [
        classroom.Grade("a", report),
        classroom.Grade("b", note="no solution.py"),
    ]
    with TemporaryDirectory() as folder:
        path = classroom.write_table(grades, Path(folder), "hw7")
        head, *rows = csv.reader(path.read_text(encoding="utf8").splitlines())
    assert [len(row) for row in rows] == [len(head)] * 2
    assert rows[1][-1] == "no solution.py" and set(rows[1][3:-1]) == {"0"}


LAYOUTS = {
    "one number": lambda t: t[:1, :1].expand(t.shape),
    "one column": lambda t: t[:, :1].expand(t.shape),
    "one row": lambda t: t[:1].expand(t.shape),
    "columns first": lambda t: t.T.contiguous().T,
    "every second column": lambda t: t.repeat_interleave(2, 1)[:, ::2],
    "negated": lambda t: torch._neg_view(-t),
}
OF_VECTORS = {
    "one number": lambda t: t[:1].expand(t.shape),
    "every second": lambda t: t.repeat_interleave(2)[::2],
    "negated": lambda t: torch._neg_view(-t),
}
MATRICES = ("x", "residual", "dy", "dresidual_out")


def gradients(package, backend, x, residual, weight, dy, dresidual_out):
    """Outputs and gradients of an add + LayerNorm."""
    leaves = [t.detach().requires_grad_() for t in (x, residual, weight)]
    operator = import_module(package)
    outputs = operator.add_layer_norm(*leaves[:2], 5, leaves[2], backend=backend)
    return *outputs, *torch.autograd.grad(outputs, leaves, (dy, dresidual_out))


WIDE, BRAIN = torch.float64, torch.bfloat16
# Numba's kernels see 16 bits as words.
DTYPES = {"torch": WIDE, "triton": WIDE, "numba": BRAIN}


def layouts(package):
    """Each tensor as a view, with strides of 0 as the gradient of a sum has, and in memory of its own."""
    for backend, dtype in DTYPES.items():
        for viewed in (*MATRICES, "weight"):
            for view in (OF_VECTORS if viewed == "weight" else LAYOUTS).values():
                drawn = normal(4, 3, 5)
                tensors = dict(zip(MATRICES, drawn, strict=True))
                tensors["weight"] = normal(5, seed=7)
                tensors = {name: t.to(dtype) for name, t in tensors.items()}
                tensors[viewed] = view(tensors[viewed])
                results = gradients(package, backend, **tensors)
                memory = torch.contiguous_format
                tensors[viewed] = tensors[viewed].clone(memory_format=memory)
                expected = gradients(package, backend, **tensors)
                for result, right in zip(results, expected, strict=True):
                    if dtype == BRAIN:
                        assert torch.equal(result, right)
                    else:
                        same(result, right)


def explicit_backward(package):
    """Derivatives of the explicit backward of LayerNorm against differences."""
    layer = import_module(f"{package}.teaching.double_backward").layer_norm
    inputs = [normal(2, 4), normal(4, seed=2), normal(4, seed=3)]

    def function(*tensors):
        return layer("explicit", *tensors, 0.1)

    leaves = [t.requires_grad_() for t in inputs]
    assert torch.autograd.gradcheck(function, leaves)
    torch.autograd.gradgradcheck(function, leaves)


def figures_are_in_the_key(execution):
    with TemporaryDirectory() as folder:
        figures = Path(folder, "book/figures")
        figures.mkdir(parents=True)
        (figures / "curves.py").write_text("a = 1")
        before = execution.source_key(Path(folder))
        (figures / "curves.py").write_text("a = 2")
        assert execution.source_key(Path(folder)) != before


def badge_of_the_first_entry(ledger_page):
    nodes = import_module("docutils.nodes")
    new_document = import_module("docutils.utils").new_document
    kinds = ("proved", "checked")
    entries = [{"label": "rms-dx", "kind": kind, "claim": kind} for kind in kinds]
    domain = SimpleNamespace(
        entries=lambda: {"rms-dx": entries},
        equations=lambda: {
            "rms-dx": SimpleNamespace(docname="rms_norm", label="rms-dx")
        },
        page="ledger",
    )
    env = SimpleNamespace(get_domain=lambda name: domain, toc_fignumbers={})
    builder = SimpleNamespace(format="html", get_relative_uri=lambda page, to: to)
    document = new_document("rms_norm")
    document += nodes.math_block(label="rms-dx", known="for every N")
    ledger_page.add_badges(
        SimpleNamespace(env=env, builder=builder), document, "rms_norm"
    )
    (badge,) = document.findall(nodes.reference)
    assert badge["classes"] == ["ledger-proved"]


def wired(package, subject, argument, compiled):
    """The argument of the subject changes what comes out."""
    row = wiring.finding(import_module(package), subject, argument, compiled)
    assert row is None


def check_of(fails, path):
    """The check that a program of the list fails, a function of the name of a package or of a module of the book."""
    kind, _, named = fails.partition(" ")
    if kind == "check":
        return globals()[named]
    # What is wrong with the operators of a compiler, only a compiler meets.
    compiled = path == "torch_ops/torch_compile.py"
    subject, argument = named.split(": ")
    return partial(wired, subject=subject, argument=argument, compiled=compiled)


# (program, check): those that no point of the contract rejects.
CHECKED = [
    (program, check_of(fails, program.path))
    for fails, program in listed()
    if program.backend in ("check", "wired")
]
