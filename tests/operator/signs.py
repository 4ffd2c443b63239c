"""Every plus and minus of every backward and forward turned round, one at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from copies import Edit

from normgrad.mistakes.mutants import PACKAGE

# (file, the backend whose points meet it, the functions whose signs are turned round)
FUNCTIONS = (
    ("spec.py", "sympy", ("_inside",)),
    ("spec.py", "torch", ("_outside", "_outside_kappa")),
    ("numpy_ref.py", "numpy", ("_rows", "_denominator", "_kappa", "backward")),
    ("torch_ops/rows.py", "torch", ("_rstd", "backward", "_input_gradient")),
    ("torch_ops/differentiable.py", "torch", ("statistics", "vjp", "jvp")),
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


def _signs(source, functions) -> Iterator[tuple[str, int]]:
    """(function, offset) of every binary + and -, and every +=, of the functions."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or function.name not in functions:
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(
                node.op, (ast.Add, ast.Sub)
            ):
                left = node.left if isinstance(node, ast.BinOp) else node.target
                start = starts[left.end_lineno - 1] + left.end_col_offset
                if not ADDRESSES.match(source[start:].partition("\n")[0]):
                    found[start + re.search(r"[+-]", source[start:]).start()] = (
                        function.name
                    )
    for offset in sorted(found):
        yield found[offset], offset


def signs() -> list[Edit]:
    """One wrong program for each sign."""
    edits = []
    for path, backend, functions in FUNCTIONS:
        source = (PACKAGE / path).read_text()
        for number, (function, at) in enumerate(_signs(source, functions)):
            turned = source[:at] + {"+": "-", "-": "+"}[source[at]] + source[at + 1 :]
            edits.append(
                Edit(
                    f"sign {number}, in {function}", backend, path, ((source, turned),)
                )
            )
    return edits
