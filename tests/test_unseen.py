"""Wrong programs that passed every test about them once: each check here passes, and fails on a copy with the edit."""

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from copies import copied, forget  # noqa: E402
from sympy import S  # noqa: E402

from normgrad.checks.tolerance import unit_roundoff  # noqa: E402
from normgrad.mistakes.edits import edited  # noqa: E402
from normgrad.mistakes.mutants import imported, plain_python  # noqa: E402

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


def class_with_a_missing_report(package, folder):
    classroom = import_module(f"{package}.homework.classroom")
    report = {"points": 3, "tasks": [{"task": "norm-project", "points": 3}]}
    grades = [
        classroom.Grade("a", report),
        classroom.Grade("b", note="no solution.py"),
    ]
    path = classroom.write_table(grades, folder, "hw7")
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


@dataclass(frozen=True)
class Unseen:
    """A wrong program and the check that it fails.

    Args:  name: what is wrong; path: of its file below the package; old, new: the edit; check: of a package's name
    """

    name: str
    path: str
    old: str
    new: str
    check: Callable

    def __str__(self):
        return self.name


WIDEST = "torch.promote_types(found, values[name].dtype)"
REFUTED = "self.refusal is not None and self.refusal.counterexample is not None"
EPS = "spec.resolve(torch.finfo(accumulator(promoted(input, residual))).eps)"
SHAPES = "((2, -1), (2, 1, -1), (1, 2, 1, -1))"
POINTS = "*(points.get(task, 0) for task in tasks)"
UNSEEN = (
    Unseen(
        "a third vector of parameters is not added up",
        "fused/launch.py",
        "for place in range(0, len(names), 2):",
        "for place in range(0, min(len(names), 2), 2):",
        three_vectors,
    ),
    Unseen(
        "the dtype of the first of two inputs",
        "fused/launch.py",
        WIDEST,
        "found",
        two_dtypes,
    ),
    Unseen(
        "columns with a stride of 0 are read as adjacent ones",
        "triton_kernels/launch.py",
        "adjacent = t.stride(-1) == 1 or",
        "adjacent = t.stride(-1) <= 1 or",
        layouts,
    ),
    Unseen(
        "any column stride is taken for 1",
        "triton_kernels/launch.py",
        "if not adjacent or any(",
        "if any(",
        layouts,
    ),
    Unseen(
        "a negated view is read as it lies in memory",
        "triton_kernels/launch.py",
        "t = t.resolve_neg()",
        "t = t",
        layouts,
    ),
    Unseen(
        "an undecided change counts as refuted",
        "fused/mutants.py",
        REFUTED,
        "self.refusal is not None",
        undecided,
    ),
    Unseen(
        "eps of x's dtype where the residual is wider",
        "torch_ops/prepare.py",
        EPS,
        EPS.replace("promoted(input, residual)", "input.dtype"),
        eps_of_two_dtypes,
    ),
    Unseen(
        "a norm is compared with three axes at most",
        "torch_ops/recognition.py",
        SHAPES,
        "((2, -1),)",
        norms_of_many_axes,
    ),
    Unseen(
        "a norm is compared with four axes at most",
        "torch_ops/recognition.py",
        SHAPES,
        "((2, -1), (2, 1, -1))",
        norms_of_many_axes,
    ),
    Unseen(
        "a layer may return another shape of as many numbers",
        "residual.py",
        "z.shape != y.shape",
        "z.numel() != y.numel()",
        layer_of_another_shape,
    ),
    Unseen(
        "a student without a report has no columns",
        "homework/classroom.py",
        POINTS,
        "*points.values()",
        class_with_a_missing_report,
    ),
)


# Of the book's extension, whose modules are edited one by one.
EXTENSION = Path(__file__).parents[1] / "book/_ext/normgrad_book"
sys.path.insert(0, str(EXTENSION.parent))


def figures_are_in_the_key(execution, folder):
    figures = folder / "book/figures"
    figures.mkdir(parents=True)
    (figures / "curves.py").write_text("a = 1")
    before = execution.source_key(folder)
    (figures / "curves.py").write_text("a = 2")
    assert execution.source_key(folder) != before


def badge_of_the_first_entry(ledger_page, folder):
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


IN_BOOK = (
    Unseen(
        "figures are left out of the key of the execution cache",
        "execution.py",
        '[*(root / "src").rglob("*"), *(root / "book/figures").rglob("*")]',
        '(root / "src").rglob("*")',
        figures_are_in_the_key,
    ),
    Unseen(
        "a badge of the last entry",
        "ledger_page.py",
        "node, entries[label][0])",
        "node, entries[label][-1])",
        badge_of_the_first_entry,
    ),
)


@pytest.mark.parametrize("wrong", IN_BOOK, ids=str)
def test_the_book(wrong, tmp_path):
    module = import_module(f"normgrad_book.{wrong.path.removesuffix('.py')}")
    wrong.check(module, tmp_path / "right")
    text = edited(
        (EXTENSION / wrong.path).read_text(), [(wrong.old, wrong.new)], wrong.name
    )
    file = tmp_path / wrong.path
    file.write_text(text)
    module = imported(f"normgrad_book._wrong_{file.stem}", file)
    with pytest.raises(AssertionError):
        wrong.check(module, tmp_path / "wrong")


CHECKS = {wrong.check.__name__: wrong.check for wrong in UNSEEN}


def checked(check, package, folder):
    if check is class_with_a_missing_report:
        check(package, folder)
    else:
        check(package)


@pytest.mark.parametrize("name", CHECKS)
def test_the_package_passes(name, tmp_path):
    checked(CHECKS[name], "normgrad", tmp_path)


@pytest.mark.parametrize("wrong", UNSEEN, ids=str)
def test_the_wrong_program_fails(wrong, tmp_path):
    package = copied({wrong.path: ((wrong.old, wrong.new),)}, wrong.name)
    try:
        with plain_python():
            import_module(f"{package}.numba_kernels")
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            checked(wrong.check, package, tmp_path)
    finally:
        forget(package)
