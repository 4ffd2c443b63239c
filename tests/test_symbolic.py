"""The registry of proved equations: every "=" holds for every size, is well set, and runs as array code."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sympy import Abs, sign

from normgrad import symbolic
from normgrad.checks.tolerance import unit_roundoff
from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    as_written,
    check_fixed,
    delta,
    equation,
    equations,
    mean,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.calculus import resolve
from normgrad.symbolic.chains import DEFINITION, FOLLOWS, PROVED
from normgrad.symbolic.codegen import compile, source
from normgrad.symbolic.conditions import side_conditions
from normgrad.symbolic.symbols import M, N, alphabet, i, j, k

LABELS = list(equations())
n = alphabet(M)


@pytest.mark.parametrize("label", LABELS)
def test_every_step_is_proved_for_every_size(label):
    assert len(equation(label).prove()) == len(equation(label).steps) >= 1


@pytest.mark.parametrize("label", LABELS)
def test_every_step_holds_entry_by_entry(label):
    assert equation(label).check_fixed((2, 3)) >= len(equation(label).steps)


@pytest.mark.parametrize("label", LABELS)
def test_display(label):
    statement = equation(label)
    text = statement.latex()
    assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(
        r"\right"
    )
    assert ("aligned" in text) == (len(statement.steps) > 1 or statement.wide)
    assert not re.search(r"\\newcommand|\$|\\_r|Dummy|Local|Partial|1 \\cdot", text)
    assert statement.kind in (DEFINITION, FOLLOWS, PROVED) and statement.claim.endswith(
        "."
    )
    assert len(statement.whys) in (0, len(statement.steps))


def test_an_unknown_label_names_its_neighbours():
    with pytest.raises(ValueError, match="'ln-dxx'.*ln-dx"):
        equation("ln-dxx")


def test_side_conditions_use_the_names_of_the_definitions():
    assert list(map(str, equation("ln-entry-std").side_conditions)) == ["sigma > 0"]
    assert list(map(str, equation("norm-dx-outside").side_conditions)) == ["s[i] > 0"]
    assert equation("ln-dx").side_conditions == ()


def test_a_name_that_is_positive_makes_no_condition():
    defs = equation("ln-dx").defs
    # over the root of N^2 eps + ..., which D_i stands for
    carried_out = resolve(defs.unfold(Partial(n.L, n.w[j]), ()))
    with as_written():
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


def test_a_total_derivative_by_a_defined_quantity_cuts_its_own_line():
    """What the quantity is made of does not vary with it, and all that is made of it does, on any way."""
    x, q, y, f = tensor("x", N), tensor("q", N), tensor("y", N), tensor("f")
    defs = Defs()
    defs[q[j]] = x[j] - mean(N, lambda r: x[r])
    defs[y[j]] = q[j] * total(N, lambda r: q[r] * x[r])
    defs[f] = total(N, lambda r: y[r] ** 2 + Abs(q[r]) * x[r])
    right = total(N, lambda r: 2 * y[r] * Partial(y[r], q[k])) + sign(q[k]) * x[k]
    slope = delta(j, k) * total(N, lambda r: q[r] * x[r]) + q[j] * x[k]
    for lhs, rhs in ((Partial(y[j], q[k]), slope), (Partial(f, q[k]), right)):
        proof = prove(lhs, rhs, defs)
        assert check_fixed(lhs, rhs, (2, 3), defs)
        with pytest.raises(NotProved) as refusal:
            prove(lhs, rhs + x[k], defs)
        assert refusal.value.counterexample is not None
    assert [str(condition) for condition in proof.side_conditions] == ["Ne(q[j], 0)"]


def test_a_cell_of_definitions_may_be_run_again():
    x, y = tensor("x", N), tensor("y", N)
    defs = Defs()
    for _ in range(2):
        defs[y[j]] = x[j] * total(N, lambda r: x[r] * total(N, lambda s: x[s] ** 2))
    assert len(list(defs)) == 1
    with pytest.raises(ValueError, match="defined already"):
        defs[y[j]] = x[j] * total(N, lambda r: x[r] * total(N, lambda s: x[r] ** 2))


def test_importing_the_package_leaves_sympy_out():
    code = "import sys, normgrad; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- the formula that is proved is the function that runs


# Rows of five and seven numbers meet some tens of roundings on either side.
ROUNDINGS = 256 * unit_roundoff("float64")


@pytest.mark.parametrize("dialect", ["numpy", "torch"])
def test_the_proved_dx_runs_in_both_dialects(dialect):
    defs, statement = Defs(), equation("ln-dx")
    for head, formula in statement.defs.reached(statement.chain[-1]):
        defs[head] = formula
    defs[n.dx[i, j]] = statement.chain[-1]
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
    defs = equation("ln-forward").defs
    with pytest.raises(ValueError, match="'fortran'"):
        source(defs, [n.y[i, j]], "fortran")
    with pytest.raises(ValueError, match="not defined"):
        source(defs, [tensor("nothing", N)[j]])


# -- the sources


def test_the_sources_use_none_of_the_unsafe_calls():
    folder = Path(symbolic.__file__).parent
    unsafe = re.compile(r"\.doit\(|\.subs\(|\bcse\(|lambdify\(|\bIdx\(")
    files = [
        path.name for path in folder.rglob("*.py") if unsafe.search(path.read_text())
    ]
    assert files == []


def test_the_second_witness_does_not_use_the_normal_form():
    text = (Path(symbolic.__file__).parent / "witness.py").read_text()
    assert not re.search(r"from \.(normal_form|proof)", text)
