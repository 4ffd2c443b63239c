"""Every plus and minus of every backward and forward is turned round, one at a time; the contract must reject each."""

import ast
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from copies import backend_of, copied

import normgrad
from normgrad.checks import cases, contract
from normgrad.checks.backends import NumpyBackend, SympyBackend, TorchBackend
from normgrad.checks.cases import SPECS
from normgrad.mistakes import mutants
from normgrad.torch_ops import autograd as torch_autograd

SOURCE = Path(normgrad.__file__).parent
FUNCTIONS = {
    "spec.py": ("_inside", "_outside", "_outside_kappa"),
    "numpy_ref.py": ("_rows", "_denominator", "_kappa", "backward"),
    "torch_ops/rows.py": ("_rstd", "backward", "_input_gradient"),
    "torch_ops/differentiable.py": ("statistics", "vjp", "jvp"),
    "triton_kernels/arithmetic.py": (
        "denominator",
        "kappa",
        "centred",
        "row_means",
        "input_gradient",
        "store_input_gradient",
        "add_parameter_gradients",
    ),
    "symbolic/derivations/family.py": ("operator",),
}
# LayerNorm has no kappa: one spec with eps outside the root and one with a clamp go with it, and one with a scale.
CHECKED = [SPECS[name] for name in ("layer_norm_std", "l2_clamp", "centred_sum_scaled", "layer_norm")]


# What is added to an address: turned round, a kernel reads memory that is not its own.
ADDRESSES = re.compile(r"\W*(col|row|program|tl\.arange)\b")


def signs(name):
    """(line, column) just before every binary + and - of the functions, and every +=."""
    source = (SOURCE / name).read_text()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and function.name in FUNCTIONS[name]:
            for node in ast.walk(function):
                if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub)):
                    left = node.left if isinstance(node, ast.BinOp) else node.target
                    line, column = left.end_lineno, left.end_col_offset
                    if not ADDRESSES.match(source.splitlines()[line - 1][column:]):
                        yield line, column


SITES = [pytest.param(name, line, column, id=f"{name}:{line}:{column}")
         for name in FUNCTIONS for line, column in sorted(set(signs(name)))]  # fmt: skip


def flipped(name, line, column):
    """The module with the first sign after that place turned round."""
    lines = (SOURCE / name).read_text().splitlines(keepends=True)
    head, tail = lines[line - 1][:column], lines[line - 1][column:]
    at = min(tail.index(sign) for sign in "+-" if sign in tail)
    lines[line - 1] = head + tail[:at] + {"+": "-", "-": "+"}[tail[at]] + tail[at + 1 :]
    return loaded(name, "".join(lines), f"sign_{line}_{column}")


def loaded(name, text, label):
    """The module with another text; one of a package, inside its package; spec.py, the name of a copy of all."""
    if name == "spec.py":
        return copied({name: (((SOURCE / name).read_text(), text),)}, label)
    folder, _, file = name.partition("/")
    if folder == "triton_kernels":
        return mutants.package(folder, {file: text}, label)
    return mutants.module(name, text, label)


def backends(name, module, monkeypatch):
    if name == "spec.py":
        proved = SympyBackend(import_module(f"{module}.symbolic.backend"))
        return [backend_of("numpy", module), backend_of("torch", module), proved]
    if name == "numpy_ref.py":
        return [NumpyBackend(module)]
    if name == "symbolic/derivations/family.py":
        return [SympyBackend(mutants.sympy_backend(module))]
    if name == "torch_ops/differentiable.py":
        monkeypatch.setattr(torch_autograd, "differentiable", module)
        return [TorchBackend("torch", create_graph=True)]
    return [TorchBackend("triton" if name.startswith("triton") else "torch", module)]


def check(name, module, monkeypatch):
    """The contract on a module in the place of its original; raises where it does not hold."""
    _, case, *_, of_heads = cases.cases(np.random.default_rng(5), 3, 5)
    aligned = replace(case, dy=case.dy + 1)
    for backend in backends(name, module, monkeypatch):
        for spec in CHECKED:
            contract.check_values(backend, aligned, spec)
            if name == "torch_ops/differentiable.py":
                contract.check_gradcheck(backend, aligned, spec, forward_mode=True)
        if name.startswith(("torch_ops", "numpy_ref")):
            contract.check_values(backend, of_heads, CHECKED[-1])
        if name == "symbolic/derivations/family.py":
            next(e for e in backend.module.family.equations() if e.label == "norm-dx-inside").prove()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_source_as_it_is_passes(name, monkeypatch):
    check(name, loaded(name, (SOURCE / name).read_text(), "as_it_is"), monkeypatch)


@pytest.mark.parametrize(("name", "line", "column"), SITES)
def test_a_sign_turned_round_is_rejected(name, line, column, monkeypatch):
    with pytest.raises(Exception):  # noqa: B017 - a refusal, a proof that fails, an array of the wrong shape: all are loud
        check(name, flipped(name, line, column), monkeypatch)
