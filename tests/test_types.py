"""Types of the public face: a checker knows them, and no argument or result is left out."""

import inspect
from importlib import import_module

import pytest
import type_checkers

FUNCTIONS = {
    "normgrad": """
        add_layer_norm add_normalize add_rms_norm doctor l2_norm layer_norm normalize rms_norm
    """,
    "normgrad.nn": "replace_norms",
    "normgrad.residual": "fused_post_norm fused_stack naive_post_norm naive_stack",
    "normgrad.numpy_ref": "backward forward",
    "normgrad.ledger": "check cite define follows prove prove_small",
    "normgrad.checks.cases": "cases draw",
    "normgrad.checks.contract": """
        check_differences check_gradcheck check_values check_within compared defined differentiable lost_rows reference
    """,
    "normgrad.checks.backends": "get",
    "normgrad.checks.finite_difference": "best_step central complex_step directional inner",
    "normgrad.checks.tolerance": "accumulator bounds promoted round_to tangent_bound unit_roundoff",
    "normgrad.checks.variance": """
        bound chan corrected in_blocks in_order in_pairs one_pass rounding shifted two_pass welford
    """,
}
CLASSES = {
    "normgrad": "NormSpec Fused",
    "normgrad.nn": "AddNorm GatedRMSNorm LayerNorm RMSNorm ReplacedNorms",
    "normgrad.checks.backends": "NumpyBackend SympyBackend TorchBackend",
    "normgrad.checks.cases": "Case",
    "normgrad.checks.tolerance": "Dtypes",
}


def methods(owner):
    """The functions of a class that a user calls."""
    named = {
        name: value for name, value in vars(owner).items() if inspect.isfunction(value)
    }
    return [
        value
        for name, value in named.items()
        if name in ("__init__", "__call__") or not name.startswith("_")
    ]


def bare(function):
    """The arguments without a type, and `return` where the result has none."""
    signature, empty = inspect.signature(function), inspect.Signature.empty
    own = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is empty and name != "self"
    ]
    return own + ["return"] * (signature.return_annotation is empty)


@pytest.mark.parametrize("module", FUNCTIONS)
def test_every_argument_and_result_has_a_type(module):
    pytest.importorskip("torch")
    pytest.importorskip("sympy")
    functions = [
        getattr(import_module(module), name) for name in FUNCTIONS[module].split()
    ]
    assert {
        function.__name__: bare(function) for function in functions if bare(function)
    } == {}


@pytest.mark.parametrize("module", CLASSES)
def test_every_method_has_types(module):
    pytest.importorskip("torch")
    pytest.importorskip("sympy")
    owners = [getattr(import_module(module), name) for name in CLASSES[module].split()]
    assert {
        method.__qualname__: bare(method)
        for owner in owners
        for method in methods(owner)
        if bare(method)
    } == {}


@pytest.mark.sampled(of=3)
def test_mypy_refuses_the_wrong_lines_and_no_other():
    pytest.importorskip("mypy")
    assert len(type_checkers.wrong_lines()) >= 10
    assert set(type_checkers.found("mypy")) == type_checkers.wrong_lines()
