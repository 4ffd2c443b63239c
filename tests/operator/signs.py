"""Every plus and minus of every backward and forward turned round, one at a time."""

from __future__ import annotations

import ast
import re

from copies import Edit
from machine_mutants import machine_mutants

from normgrad.mistakes.mutants import PACKAGE

# (file, the backend whose points meet it, the functions whose signs are turned round)
FUNCTIONS = (
    ("spec.py", "sympy", ("_inside",)),
    ("spec.py", "torch", ("_outside", "_outside_kappa")),
    ("numpy_ref.py", "numpy", ("_rows", "_denominator", "_kappa", "backward")),
    ("torch_ops/rows.py", "torch", ("_rstd", "backward", "_input_gradient")),
    ("torch_ops/differentiable.py", "torch", ("statistics", "vjp")),
    (
        "triton_kernels/arithmetic.py",
        "triton",
        (
            "denominator",
            "kappa",
            "centred",
            "row_means",
            "input_gradient",
            "store_input_gradient",
            "add_parameter_gradients",
        ),
    ),
    ("symbolic/derivations/family.py", "sympy", ("operator",)),
)
# What is added to an address: turned round, a kernel reads memory that is not its own.
ADDRESSES = re.compile(r"\W*(col|row|program|tl\.arange)\b")


def signs() -> list[Edit]:
    """One wrong program for each sign."""
    edits = []
    for path, backend, functions in FUNCTIONS:
        source, number = (PACKAGE / path).read_text(), 0
        spans = {
            range(node.lineno, node.end_lineno + 1): node.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef) and node.name in functions
        }
        for mutant in machine_mutants(source):
            inside = [name for lines, name in spans.items() if mutant.line in lines]
            if not inside or mutant.kind != "operator" or mutant.old not in "+-":
                continue
            line, _, _ = source[mutant.start :].partition("\n")
            if not ADDRESSES.match(line[1:]):
                name = f"sign {number}, in {inside[-1]}"
                edit = source, mutant.applied(source)
                edits.append(Edit(name, backend, path, (edit,)))
                number += 1
    return edits
