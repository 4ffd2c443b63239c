"""What the button below an equation copies and shows, made from the registry without a site."""

from inspect import signature
from zlib import crc32

import numpy as np
import pytest
from sympy import evaluate

from normgrad.symbolic import equations
from normgrad.symbolic.codegen import compile, computation

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

from normgrad_book.objects import code, definitions  # noqa: E402

LEADING, COLUMNS = (3, 2), 5
ROWS = 6
# No entry is the result of more operations, each of which rounds once.
ROUNDING = 4096 * np.finfo(float).eps


def about_rows():
    """(label, NumPy's and torch's text, definitions, outputs) of equations whose function takes leading axes."""
    for label, statement in equations().items():
        text = code(statement, "numpy")
        if text.startswith("import numpy as np"):
            texts = text, code(statement, "torch")
            with evaluate(True):
                yield label, texts, *definitions(statement)


def by_index(defs, outputs, arrays, scalars):
    """The outputs as the function with an axis for each index has them: of all rows, or of one row after the other."""
    function, parts = compile(defs, outputs), computation(defs, outputs)
    shapes = {str(base.label): list(map(str, base.shape)) for base in parts.tensors}
    if any("M" in sizes for sizes in shapes.values()):
        flat = dict(arrays)
        for name, sizes in shapes.items():
            if "M" in sizes:
                flat[name] = arrays[name].reshape(ROWS, *[COLUMNS] * (len(sizes) - 1))
        return function(**flat, **scalars)
    rows = [
        function(**{n: a.reshape(ROWS, -1)[i] for n, a in arrays.items()}, **scalars)
        for i in range(ROWS)
    ]
    return [np.stack(values) for values in zip(*rows, strict=True)]


def test_copied_code_takes_leading_axes(torch):
    """Each function that a reader copies, on arrays of (3, 2, N), against the function with an axis for each index."""
    labels = []
    for label, texts, defs, outputs in about_rows():
        labels.append(label)
        rng = np.random.default_rng(crc32(label.encode()))
        parts = computation(defs, outputs)
        of_rows = any("M" in map(str, base.shape) for base in parts.tensors)
        shapes = {}
        for base in parts.tensors:
            sizes = list(map(str, base.shape))
            shape = (*LEADING, COLUMNS if "N" in sizes else 1)
            shapes[str(base.label)] = (
                shape if "M" in sizes or not of_rows else shape[-1:]
            )
        arrays = {
            name: rng.uniform(0.5, 2, size=shapes[name]) for name in sorted(shapes)
        }
        scalars = {str(s): rng.uniform(0.5, 2) for s in sorted(parts.scalars, key=str)}
        expected = by_index(defs, outputs, arrays, scalars)
        assert label != "ln-dx" or all("(dy, x, w, eps)" in text for text in texts)
        for text, module in zip(texts, (np, torch), strict=True):
            scope = {}
            exec(text, scope)
            function = scope[label.replace("-", "_")]
            inputs = {name: module.asarray(value) for name, value in arrays.items()}
            inputs |= scalars
            results = function(**{n: inputs[n] for n in signature(function).parameters})
            if len(outputs) == 1:
                results = [results]
            for result, right in zip(results, expected, strict=True):
                result = np.asarray(result)
                if result.ndim > 1:
                    result = result.reshape(ROWS, -1)
                if result.ndim > np.ndim(right):
                    result = result[:, 0]
                np.testing.assert_allclose(
                    np.broadcast_to(result, np.shape(right)),
                    right,
                    rtol=ROUNDING,
                    err_msg=label,
                )
    assert len(labels) > 90
