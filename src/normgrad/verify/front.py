"""verify: of a Triton kernel by its binding and grid, of a function by what its arguments are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import api, loops, programs
from .definitions import Norm
from .instead import named
from .verdict import Verdict


def verify(program: Any, *described: Any, **options: Any) -> Verdict:
    """Whether a program computes what definitions say, for every number of rows M and of columns N.

    verify(kernel, binding, grid, definitions) is `api.verify`, of a Triton kernel.
    verify(kernel, binding, definitions) is `loops.verify_loops`, of a kernel in loops, such as Numba's.
    verify(function, definitions) is `programs.verify_function`, of a NumPy or torch function, an autograd Function or
    a module's text; the definitions are a norm, or a forward whose gradients are worked out. Triton kernels that it
    launches are read with it. "kernels.py::name" is a function, or a class, of a file.

    A text, a file and a Triton kernel are read, and not run. Of a function object, a verdict is confronted with a run
    at small sizes, beside the definitions evaluated by NumPy, before it is printed; run=False leaves that out, and
    run=True executes the text of a NumPy or torch function as well. What is refuted has numbers: Verdict.replay().

    Returns:  Verdict, with one for each output
    Raises:   what these raise: ValueError for what is not known by its name, TypeError for what is not a program
    """
    kernel = "binding" in options or described and isinstance(described[0], Mapping)
    kernel = kernel or len(described) > 2 and isinstance(described[2], Norm)
    if kernel and "name" in options:
        got = f"name: got {options['name']!r}"
        raise ValueError(f"{got}, needs none beside a binding, as kernel= has")
    launched = "grid" in options or len(described) > 2
    if not kernel:
        read = programs.verify_function
    elif launched:
        read = api.verify
    else:
        read = loops.verify_loops
    if read is api.verify and "run" in options:
        raise ValueError("run: a Triton kernel is read, and not run; leave it out")
    verdict = read(program, *described, **options)
    for definitions in (*described, options.get("definitions")):
        if isinstance(definitions, Norm):
            return named(verdict, definitions)
    return verdict
