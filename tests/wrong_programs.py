"""Wrong programs that the covering set does not meet, each beside the check that it fails and the package passes.

The contract rejects those of `condition_mutants`, `signs` and the catalogue; these are about wiring, derivatives of
derivatives, fused layers, layouts, reports and the book.
"""

import csv
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
import torch
import wiring
from copies import Edit
from docutils import nodes
from docutils.utils import new_document
from sympy import S

from normgrad.checks.tolerance import unit_roundoff

ROUNDINGS = 64


def fused(package: str, line: Callable):
    """A fused layer y = line(x, x_hat, vectors) of one mean square, and its module of letters."""
    symbolic = import_module(f"{package}.symbolic")
    M, N, (i, j) = symbolic.dim("M"), symbolic.dim("N"), symbolic.index("i", "j")
    x, y, g, x_hat = (symbolic.tensor(name, M, N) for name in ("x", "y", "g", "x_hat"))
    w, b, u = (symbolic.tensor(name, N) for name in ("w", "b", "u"))
    rstd = symbolic.tensor("rstd", M, positive=True)
    defs = symbolic.Defs()
    size = symbolic.mean(N, lambda r: x[i, r] ** 2) + 1
    defs[rstd[i]] = 1 / size
    defs[x_hat[i, j]] = x[i, j] * rstd[i]
    defs[y[i, j]] = line(x[i, j], x_hat[i, j], g[i, j], w[j], b[j], u[j])
    return import_module(f"{package}.fused").Fused(defs, [y[i, j]], name="layer")


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
    layer = fused(package, lambda x, x_hat, g, w, b, u: w * x_hat + b + u * x * x)
    x = normal(3, 5)
    vectors = {
        name: normal(5, seed=2 + n).requires_grad_() for n, name in enumerate("wbu")
    }
    dy = normal(3, 5, seed=9)
    expected = (
        vectors["w"] * x / ((x * x).mean(-1, keepdim=True) + 1)
        + vectors["b"]
        + vectors["u"] * x * x
    )
    leaves = list(vectors.values())
    grads = torch.autograd.grad(layer(x=x, **vectors), leaves, dy)
    for grad, right in zip(
        grads, torch.autograd.grad(expected, leaves, dy), strict=True
    ):
        same(grad, right)


def two_dtypes(package):
    layer = fused(package, lambda x, x_hat, g, w, b, u: x_hat + g)
    x, g = normal(2, 3).to(torch.bfloat16), normal(2, 3, seed=2).float()
    wide = x.float()
    y = layer(x=x, g=g)
    assert y.dtype == torch.float32
    same(y, wide / ((wide * wide).mean(-1, keepdim=True) + 1) + g, "float32")


def undecided(package):
    mutants = import_module(f"{package}.fused.mutants")
    refusal = import_module(f"{package}.symbolic.proof").NotProved(S.One, S.One, None)
    assert not mutants.Mutant("dx", None, None, refusal).refuted


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


def wrong(name, path, old, new, check):
    return Edit(name, "torch", path, ((old, new),), check=check)


def wired(name, path, old, new, subject, argument):
    """A program in which an argument does not reach what it is for."""
    # What is wrong with the operators of a compiler, only a compiler meets.
    compiled = path == "torch_ops/torch_compile.py"

    def reaches(package):
        module = import_module(package)
        assert wiring.finding(module, subject, argument, compiled) is None

    return wrong(name, path, old, new, reaches)


def explicit_backward(package):
    """Derivatives of the explicit backward of LayerNorm against differences."""
    layer = import_module(f"{package}.teaching.double_backward").layer_norm
    inputs = [normal(2, 4), normal(4, seed=2), normal(4, seed=3)]

    def function(*tensors):
        return layer("explicit", *tensors, 0.1)

    leaves = [t.requires_grad_() for t in inputs]
    assert torch.autograd.gradcheck(function, leaves)
    torch.autograd.gradgradcheck(function, leaves)


WIDEST = "torch.promote_types(found, values[name].dtype)"
REFUTED = "self.refusal is not None and self.refusal.counterexample is not None"
EPS = "spec.resolve(torch.finfo(accumulator(promoted(input, residual))).eps)"
SHAPES = "((2, -1), (2, 1, -1), (1, 2, 1, -1))"
POINTS = "*(points.get(task, 0) for task in tasks)"
UNSEEN = [
    wrong(
        "a third vector of parameters is not added up",
        "fused/launch.py",
        "for place in range(0, len(names), 2):",
        "for place in range(0, min(len(names), 2), 2):",
        three_vectors,
    ),
    wrong(
        "the dtype of the first of two inputs",
        "fused/launch.py",
        WIDEST,
        "found",
        two_dtypes,
    ),
    wrong(
        "columns with a stride of 0 are read as adjacent ones",
        "triton_kernels/launch.py",
        "adjacent = t.stride(-1) == 1 or",
        "adjacent = t.stride(-1) <= 1 or",
        layouts,
    ),
    wrong(
        "any column stride is taken for 1",
        "triton_kernels/launch.py",
        "if not adjacent or any(",
        "if any(",
        layouts,
    ),
    wrong(
        "a negated view is read as it lies in memory",
        "triton_kernels/launch.py",
        "t = t.resolve_neg()",
        "t = t",
        layouts,
    ),
    wrong(
        "an undecided change counts as refuted",
        "fused/mutants.py",
        REFUTED,
        "self.refusal is not None",
        undecided,
    ),
    wrong(
        "eps of x's dtype where the residual is wider",
        "torch_ops/prepare.py",
        EPS,
        EPS.replace("promoted(input, residual)", "input.dtype"),
        eps_of_two_dtypes,
    ),
    wrong(
        "a norm is compared with three axes at most",
        "torch_ops/recognition.py",
        SHAPES,
        "((2, -1),)",
        norms_of_many_axes,
    ),
    wrong(
        "a norm is compared with four axes at most",
        "torch_ops/recognition.py",
        SHAPES,
        "((2, -1), (2, 1, -1))",
        norms_of_many_axes,
    ),
    wrong(
        "a layer may return another shape of as many numbers",
        "residual.py",
        "z.shape != y.shape",
        "z.numel() != y.numel()",
        layer_of_another_shape,
    ),
    wrong(
        "a student without a report has no columns",
        "homework/classroom.py",
        POINTS,
        "*points.values()",
        class_with_a_missing_report,
    ),
]


def figures_are_in_the_key(execution):
    with TemporaryDirectory() as folder:
        figures = Path(folder, "book/figures")
        figures.mkdir(parents=True)
        (figures / "curves.py").write_text("a = 1")
        before = execution.source_key(Path(folder))
        (figures / "curves.py").write_text("a = 2")
        assert execution.source_key(Path(folder)) != before


def badge_of_the_first_entry(ledger_page):
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


IN_BOOK = [
    wrong(
        "figures are left out of the key of the execution cache",
        "book/execution.py",
        '[*(root / "src").rglob("*"), *(root / "book/figures").rglob("*")]',
        '(root / "src").rglob("*")',
        figures_are_in_the_key,
    ),
    wrong(
        "a badge of the last entry",
        "book/ledger_page.py",
        "node, entries[label][0])",
        "node, entries[label][-1])",
        badge_of_the_first_entry,
    ),
]

# The lines that are edited, each written once.
NORM_CALL = "return _normalized(call, input, None, weight, bias)[0]\n\n\ndef rms_norm"
NORM_ASKED = (
    "out_dtype)\n    call = prepare(LAYER_NORM, input, None, weight, bias, *asked)"
)
NORM_BACKEND = "backend, " + NORM_ASKED
RMS_ASKED = "weight_offset, heads, backend, out_dtype)\n    call = prepare(RMS_NORM, input, None, weight, None, *asked)"
RMS_EPS = "eps, " + RMS_ASKED
ADD_ASKED = (
    "eps, weight_offset, heads, backend, out_dtype, residual_dtype, round_residual)\n"
    "    call = prepare(LAYER_NORM, input, residual"
)
L2_AXIS = "    x = input.movedim(dim, -1)\n"
L2_CALL = "prepare(L2_NORM, x, None, None, None, OF_INPUT, eps, 0.0,"
NORM_KEYWORDS = (
    'return {**of_weight, "out_dtype": self.out_dtype, "backend": self.backend}'
)
OF_WEIGHT = 'of_weight = {"weight_offset": self.weight_offset, "heads": self.heads}'
ADD_KEYWORDS = 'keywords |= {"residual_dtype": self.residual_dtype, "round_residual": self.round_residual}'
OPTIONS = (
    "dtypes = (out_dtype or input.dtype, residual_dtype or sum_dtype)\n"
    "    return Options(*dtypes, round_residual, portable_sums, heads is not None)"
)
OF_FORWARD = '"round_residual": self.round_residual}'
KERNELS = "return kernels_of(name, self.device)"
TOTAL = "differentiable.total(x, residual, residual_dtype, ctx.options.round_residual)"
SUMMED = '"portable_sums": ctx.options.portable_sums'
OPERATOR = "*scalars_of(spec), *scalars_of(options), backend)"
BACKWARD = "tensors, *scalars_of(spec), *dtypes, portable_sums, per_head, self.backend)"
PARAMETER = "self.weight = torch.nn.Parameter(weight) if affine else None"
FINAL = "return x if final_norm is None else final_norm(x)"
# Name, file, old and new text, and the subject and the argument of `wiring` whose rows find it.
WIRED = [
    wired(
        "add_layer_norm ignores eps",
        "torch_ops/api.py",
        ADD_ASKED,
        ADD_ASKED.replace("eps, weight", "1e-5, weight"),
        "add_layer_norm",
        "eps",
    ),
    wired(
        "layer_norm ignores out_dtype",
        "torch_ops/api.py",
        NORM_ASKED,
        NORM_ASKED.replace("out_dtype", "None"),
        "layer_norm",
        "out_dtype",
    ),
    wired(
        "layer_norm ignores bias",
        "torch_ops/api.py",
        NORM_CALL,
        NORM_CALL.replace("bias)", "None)"),
        "layer_norm",
        "bias",
    ),
    wired(
        "layer_norm ignores backend",
        "torch_ops/api.py",
        NORM_BACKEND,
        NORM_BACKEND.replace("backend", '"auto"'),
        "layer_norm",
        "backend",
    ),
    wired(
        "rms_norm ignores out_dtype",
        "torch_ops/api.py",
        RMS_ASKED,
        RMS_ASKED.replace("out_dtype", "None"),
        "rms_norm",
        "out_dtype",
    ),
    wired(
        "rms_norm ignores eps",
        "torch_ops/api.py",
        RMS_EPS,
        RMS_EPS.replace("eps,", "None,"),
        "rms_norm",
        "eps",
    ),
    wired(
        "rms_norm ignores weight_offset",
        "torch_ops/api.py",
        RMS_ASKED,
        RMS_ASKED.replace("weight_offset", "0.0"),
        "rms_norm",
        "weight_offset",
    ),
    wired(
        "modules ignore weight_offset",
        "nn.py",
        OF_WEIGHT,
        OF_WEIGHT.replace("self.weight_offset", "0.0"),
        "nn.AddNorm of RMSNorm",
        "weight_offset",
    ),
    wired(
        "the operator has no weight_offset",
        "torch_ops/torch_compile.py",
        "NormSpec(*scalars[:SPEC_FIELDS]), Options",
        "NormSpec(*scalars[: SPEC_FIELDS - 1]), Options",
        "NormSpec",
        "weight_offset",
    ),
    wired(
        "l2_norm takes the last axis",
        "torch_ops/api.py",
        L2_AXIS,
        f"    dim = -1\n{L2_AXIS}",
        "l2_norm",
        "dim",
    ),
    wired(
        "l2_norm ignores eps",
        "torch_ops/api.py",
        L2_CALL,
        L2_CALL.replace("eps", "1e-12"),
        "l2_norm",
        "eps",
    ),
    wired(
        "the sum is always rounded",
        "torch_ops/arguments.py",
        OPTIONS,
        OPTIONS.replace("round_residual,", "True,"),
        "add_rms_norm",
        "round_residual",
    ),
    wired(
        "the sum has no dtype of its own",
        "torch_ops/arguments.py",
        OPTIONS,
        OPTIONS.replace("residual_dtype or ", ""),
        "add_layer_norm",
        "residual_dtype",
    ),
    wired(
        "sums are never portable",
        "torch_ops/arguments.py",
        OPTIONS,
        OPTIONS.replace("portable_sums,", "False,"),
        "add_normalize",
        "portable_sums",
    ),
    wired(
        "autograd forgets portable sums",
        "torch_ops/autograd.py",
        SUMMED,
        '"portable_sums": False',
        "add_normalize",
        "portable_sums",
    ),
    wired(
        "the kernel forgets how the sum is rounded",
        "torch_ops/arguments.py",
        OF_FORWARD,
        OF_FORWARD.replace("self.round_residual", "True"),
        "add_normalize",
        "round_residual",
    ),
    wired(
        "tangents forget how the sum is rounded",
        "torch_ops/autograd.py",
        TOTAL,
        TOTAL.replace(", ctx.options.round_residual", ", True"),
        "add_normalize",
        "round_residual",
    ),
    wired(
        "every backend is the same",
        "torch_ops/prepare.py",
        KERNELS,
        KERNELS.replace("name", '"torch"'),
        "add_normalize",
        "backend",
    ),
    wired(
        "the operator has one backend",
        "torch_ops/torch_compile.py",
        OPERATOR,
        OPERATOR.replace("backend)", '"torch")'),
        "add_normalize",
        "backend",
    ),
    wired(
        "the operator's backward has one backend",
        "torch_ops/torch_compile.py",
        BACKWARD,
        BACKWARD.replace("self.backend", '"torch"'),
        "add_normalize",
        "backend",
    ),
    wired(
        "the operator's sums are never portable",
        "torch_ops/torch_compile.py",
        BACKWARD,
        BACKWARD.replace("portable_sums,", "False,"),
        "add_normalize",
        "portable_sums",
    ),
    wired(
        "AddNorm ignores its LayerNorm's eps",
        "nn.py",
        "norm.bias, norm.eps, **",
        "norm.bias, **",
        "nn.AddNorm",
        "norm",
    ),
    wired(
        "AddNorm ignores its RMSNorm's eps",
        "nn.py",
        "add_rms_norm(*arguments, norm.eps, **",
        "add_rms_norm(*arguments, **",
        "nn.AddNorm of RMSNorm",
        "eps",
    ),
    wired(
        "AddNorm always rounds",
        "nn.py",
        ADD_KEYWORDS,
        ADD_KEYWORDS.replace("self.round_residual", "True"),
        "nn.AddNorm",
        "round_residual",
    ),
    wired(
        "AddNorm's sum has no dtype of its own",
        "nn.py",
        ADD_KEYWORDS,
        ADD_KEYWORDS.replace("self.residual_dtype", "None"),
        "nn.AddNorm",
        "residual_dtype",
    ),
    wired(
        "AddNorm ignores the bias",
        "nn.py",
        "norm.bias, norm.eps, **",
        "None, norm.eps, **",
        "nn.AddNorm of LayerNorm",
        "bias",
    ),
    wired(
        "modules ignore out_dtype",
        "nn.py",
        NORM_KEYWORDS,
        NORM_KEYWORDS.replace("self.out_dtype", "None"),
        "nn.AddNorm of LayerNorm",
        "out_dtype",
    ),
    wired(
        "modules ignore backend",
        "nn.py",
        NORM_KEYWORDS,
        NORM_KEYWORDS.replace("self.backend", '"auto"'),
        "nn.RMSNorm",
        "backend",
    ),
    wired(
        "modules have one casting",
        "nn.py",
        'if self.casting == "llama":',
        'if self.casting == "LLAMA":',
        "nn.RMSNorm",
        "casting",
    ),
    wired(
        "AddNorm has one casting",
        "nn.py",
        'if norm.casting == "llama":',
        'if norm.casting == "LLAMA":',
        "nn.AddNorm of RMSNorm",
        "casting",
    ),
    wired(
        "replaced norms have one backend",
        "nn.py",
        'spec.weight_offset, "backend": backend}',
        'spec.weight_offset, "backend": "torch"}',
        "nn.replace_norms",
        "backend",
    ),
    wired(
        "modules ignore dtype",
        "nn.py",
        '"dtype": dtype}',
        '"dtype": None}',
        "nn.LayerNorm",
        "dtype",
    ),
    wired(
        "modules ignore device",
        "nn.py",
        '{"device": device, ',
        '{"device": None, ',
        "nn.LayerNorm",
        "device",
    ),
    wired(
        "a norm is always affine",
        "nn.py",
        PARAMETER,
        PARAMETER.removesuffix(" if affine else None"),
        "nn.RMSNorm",
        "elementwise_affine",
    ),
    wired(
        "the final norm is forgotten",
        "residual.py",
        FINAL,
        "return x",
        "residual.naive_stack",
        "final_norm",
    ),
    wired(
        "the reference ignores the bias",
        "numpy_ref.py",
        "        y = y + bias\n",
        "        pass\n",
        "numpy_ref.forward",
        "bias",
    ),
]

EXPLICIT = {
    "coefficient 4": ("3 * c1 * e1", "4 * c1 * e1"),
    "cov dropped": ("(cov - 3 * c1 * e1)", "(-3 * c1 * e1)"),
    "wdy not centred": ("centred(wdy)", "wdy"),
    "ddx not centred": ("centred(ddx)", "ddx"),
    "sign": ("- rstd.square() * bent", "+ rstd.square() * bent"),
    "rstd once": ("rstd.square() * bent", "rstd * bent"),
    "c1 dropped": ("c1 * ddq + ", ""),
    "e1 dropped": ("e1 * centred(wdy) + ", ""),
    "ddw dropped": ("projected(ddw * dy, x_hat, rstd) - ", "-"),
    "weight missing": ("times(x_hat_dot, weight)", "x_hat_dot"),
}
SECOND = [
    wrong(name, "teaching/double_backward.py", *edit, explicit_backward)
    for name, edit in EXPLICIT.items()
]
BESIDE_THE_CONTRACT = [*UNSEEN, *IN_BOOK, *WIRED, *SECOND]
