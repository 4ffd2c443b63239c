"""The registry of proved equations: every "=" holds for every size, is well set, and runs as array code."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from sympy import Symbol, sqrt

from normgrad import L2_NORM, LAYER_NORM, LAYER_NORM_STD, RMS_NORM, NormSpec
from normgrad.checks.tolerance import unit_roundoff
from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    as_written,
    backend,
    delta,
    differentiate,
    dim,
    equation,
    equations,
    index,
    latex,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.codegen import compile, source
from normgrad.symbolic.conditions import side_conditions
from normgrad.symbolic.derivations import layer_norm_theorem as theorem
from normgrad.symbolic.registry import DEFINITION, FOLLOWS, PROVED
from normgrad.symbolic.symbols import N, i, j, k, p

LABELS = list(equations())


@pytest.mark.parametrize("label", LABELS)
def test_every_step_is_proved_for_every_size(label):
    assert len(equation(label).prove()) == len(equation(label).steps) >= 1


@pytest.mark.parametrize("label", LABELS)
def test_every_step_holds_entry_by_entry(label):
    assert equation(label).check_fixed((2, 3)) >= len(equation(label).steps)


@pytest.mark.parametrize("label", LABELS)
def test_display(label):
    one = equation(label)
    text = one.latex()
    assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(
        r"\right"
    )
    assert ("aligned" in text) == (len(one.steps) > 1 or one.wide)
    assert not re.search(r"\\newcommand|\$|\\_r|Dummy|Local|Partial|1 \\cdot", text)
    assert one.kind in (DEFINITION, FOLLOWS, PROVED) and one.claim.endswith(".")
    assert len(one.whys) in (0, len(one.steps))


def test_a_display_is_the_object_that_is_proved():
    one = equation("ln-dx")
    assert one.latex().endswith(
        "\\\\[3pt]\n &= \\mathrm{rstd}_{i} (\\mathrm{wdy}_{ij} - c_{2,i} - \\hat{x}_{ij} c_{1,i})\n\\end{aligned}"
    )
    assert [latex(side) for side in one.prove()[-1].lhs.args] == ["L", "x_{ij}"]


def test_bound_letters_avoid_every_name_in_use():
    r, s, n = index("r", "s"), tensor("s"), dim("N")
    x = tensor("x", n)
    with as_written():
        e = x[r[0]] * s * total(n, lambda a: x[a] * total(n, lambda b: x[a] * x[b]))
    assert latex(e) == r"x_{r} s \sum_{t=1}^{N} x_{t} \sum_{l=1}^{N} x_{t} x_{l}"


def test_an_unknown_label_names_its_neighbours():
    with pytest.raises(ValueError, match="'ln-dxx'.*ln-dx"):
        equation("ln-dxx")


def test_side_conditions_use_the_names_of_the_definitions():
    assert list(map(str, equation("ln-entry-std").side_conditions)) == ["sigma > 0"]
    assert list(map(str, equation("norm-dx-outside").side_conditions)) == ["s[i] > 0"]
    assert equation("ln-dx").side_conditions == ()


def test_a_name_that_is_positive_makes_no_condition():
    n = theorem.n
    with as_written():
        defs = theorem.with_gradients()
        carried_out = differentiate(
            Partial(n.L, n.w[j]), defs
        )  # over the root of N^2 eps + ..., which D_i stands for
        assert side_conditions([carried_out], defs) == ()


def test_a_certificate_is_one_polynomial_for_both_sides():
    certificate = equation("ln-entry-jacobian").prove()[0].certificate()
    assert certificate.polynomial.is_Add and certificate.letters
    assert "both sides times" in str(certificate)


def test_a_proof_displays_its_claim_and_conditions():
    proof = equation("ln-entry-std").prove()[-1]
    assert str(proof).startswith("proved for every N, where sigma > 0: ")
    shown = proof._repr_mimebundle_()
    assert r"\text{proved for every }N\text{, where }\sigma > 0" in shown["text/latex"]
    assert shown["text/markdown"].endswith(r"proved for every $N$, where $\sigma > 0$")


def test_definitions_refuse_what_they_cannot_mean():
    x, y, f = tensor("x", N), tensor("y", N), tensor("f")
    defs = Defs()
    with pytest.raises(ValueError, match=r"free indices \['k'\]"):
        defs[f] = x[k]
    defs[y[j]] = 2 * x[j]
    with pytest.raises(ValueError, match="defined already"):
        defs[y[k]] = x[k]
    with pytest.raises(ValueError, match="use Local"):
        prove(Partial(y[j] ** 2, y[k]), 0, defs)


def test_a_cell_of_definitions_may_be_run_again():
    x, y, z = tensor("x", N), tensor("y", N), tensor("z", N)
    defs = Defs()
    for _ in range(2):
        defs[y[j]] = x[j] * total(
            N, lambda r: x[r] * total(N, lambda s: x[r] * x[s] ** 2)
        )
        defs[z[j]] = 1 / N * y[j]
    assert len(list(defs)) == 2
    with pytest.raises(ValueError, match="defined already"):
        defs[y[j]] = x[j] * total(
            N, lambda r: x[r] * total(N, lambda s: x[s] * x[s] ** 2)
        )
    with pytest.raises(ValueError, match="defined already"):
        defs[z[k]] = 1 / N * y[k]


def test_local_and_total_derivatives_differ():
    x, q, average = tensor("x", N), tensor("q", N), tensor("mean")
    defs = Defs()
    defs[average] = mean(N, lambda r: x[r])
    defs[q[j]] = x[j] - average
    prove(defs.local(q[j], x[k]), delta(j, k), defs)
    prove(Partial(q[j], x[k]), delta(j, k) - 1 / N, defs)
    with pytest.raises(NotProved, match="refuted"):
        prove(Partial(q[j], x[k]), delta(j, k), defs)
    assert (
        latex(defs.local(q[j], x[k]))
        == r"\left( \frac{\partial q_{j}}{\partial x_{k}} \right)_{\mathrm{mean}}"
    )


def test_importing_the_package_leaves_sympy_out():
    code = "import sys, normgrad; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- the formula that is proved is the function that runs


def _operator(x, residual, weight, bias, spec):
    p = x + residual
    q = p - p.mean(-1, keepdim=True) if spec.center else p
    s2 = (q * q).sum(-1, keepdim=True) / spec.count(x.shape[-1])
    D = {
        "inside": lambda: torch.sqrt(s2 + spec.eps),
        "outside": lambda: torch.sqrt(s2) + spec.eps,
        "clamp": lambda: torch.sqrt(s2).clamp(min=spec.eps),
    }[spec.placement]()
    return spec.scale * q / D * weight + bias, p


# Rows of five and seven numbers meet some tens of roundings on either side.
ROUNDINGS = 256 * unit_roundoff("float64")
SPECS = [
    LAYER_NORM,
    LAYER_NORM_STD,
    RMS_NORM,
    L2_NORM,
    L2_NORM.replace(eps=50.0),
    RMS_NORM.replace(eps=0.5),
]
SPECS += [
    NormSpec(center=True, reduce="sum", scale=1.7, eps=e, placement="outside")
    for e in (0, 0.3)
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_backend_agrees_with_autograd(spec):
    draw = np.random.default_rng(5)
    x, residual, dy, dresidual = draw.normal(size=(4, 2, 3, 5))
    weight, bias = draw.normal(size=(2, 5))
    leaves = [
        torch.tensor(array, requires_grad=True) for array in (x, residual, weight, bias)
    ]
    y, p = _operator(*leaves, spec.resolve(np.finfo(np.float64).eps))
    torch.autograd.backward([y, p], [torch.tensor(dy), torch.tensor(dresidual)])
    got_y, got_p, got_mean, rstd = backend.forward(x, weight, bias, residual, spec)
    dx, dw, db = backend.backward(dy, x, weight, bias, residual, dresidual, spec)
    gradients = [leaf.grad.numpy() for leaf in leaves]
    for got, want in zip(
        (got_y, got_p, dx, dx, dw, db), (y, p, *gradients), strict=True
    ):
        want = want.detach().numpy() if isinstance(want, torch.Tensor) else want
        assert np.abs(got - want).max() <= ROUNDINGS * max(1, np.abs(want).max())
    assert rstd.shape == (2, 3) and (got_mean is None) == (not spec.center)


def test_backend_keeps_the_convention_at_a_constant_row():
    dx, _, _ = backend.backward(
        np.ones((1, 4)), np.full((1, 4), 2.0), None, None, None, None, LAYER_NORM_STD
    )
    np.testing.assert_array_equal(dx, np.zeros((1, 4)))


@pytest.mark.parametrize("dialect", ["numpy", "torch"])
def test_the_proved_dx_runs_in_both_dialects(dialect):
    defs, n = theorem.layer_norm(), theorem.n
    defs[n.dx[i, j]] = theorem.dx_by_entries()
    draw = np.random.default_rng(6)
    x, dy = draw.normal(size=(2, 3, 7))
    w = draw.normal(size=7)
    leaf = torch.tensor(x, requires_grad=True)
    torch.nn.functional.layer_norm(leaf, (7,), torch.tensor(w), eps=0.1).backward(
        torch.tensor(dy)
    )
    make = torch.tensor if dialect == "torch" else np.array
    (dx,) = compile(defs, [n.dx[i, j]], dialect)(
        x=make(x), dy=make(dy), w=make(w), eps=0.1
    )
    assert (
        np.abs(np.asarray(dx) - leaf.grad.numpy()).max()
        <= ROUNDINGS * np.abs(leaf.grad.numpy()).max()
    )


def test_array_code_of_deltas_and_transposed_axes():
    x, out = tensor("x", N), tensor("J", N, N)
    defs = Defs()
    defs[out[j, k]] = 2 * x[j] * delta(k, j) - x[k] / N + x[j] * 0
    values = np.arange(1.0, 4.0)
    (got,) = compile(defs, [out[j, k]])(x=values)
    np.testing.assert_allclose(got, 2 * np.diag(values) - values[None, :] / 3)
    assert "def compute(*, x):" in source(defs, [out[j, k]])


def test_code_refuses_an_unknown_dialect_and_an_undefined_output():
    defs = theorem.layer_norm()
    with pytest.raises(ValueError, match="'fortran'"):
        source(defs, [theorem.n.y[i, j]], "fortran")
    with pytest.raises(ValueError, match="not defined"):
        source(defs, [tensor("nothing", N)[j]])


def test_symbols_of_a_claim_may_be_any_letters():
    size, (a, c) = dim("K"), index("a", "c")
    z, offset = tensor("z", size), Symbol("eps", positive=True)
    root = sqrt(mean(size, lambda r: z[r] ** 2) + offset)
    prove(
        Partial(z[a] / root, z[c]),
        (delta(a, c) - z[a] * z[c] / (size * root**2)) / root,
    )
    assert p != i
