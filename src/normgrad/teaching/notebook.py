"""What the first cell of a chapter's notebook calls: which Triton fits, and which cells go without.

Triton is made for Linux. Elsewhere, or where it cannot be had, a cell that needs it is skipped and says so. What such a
cell would have defined is then missing, so the cells that use it are skipped too.
"""

from __future__ import annotations

import ast
import dis
import types
import warnings

from ..doctor import installed, missing_triton

__all__ = [
    "MARK",
    "SKIPPED",
    "Skipping",
    "installed",
    "missing_triton",
    "names",
    "start",
]

# The first line of a cell that needs Triton, whether or not it names it.
MARK = "# needs Triton"
SKIPPED = "Skipped: this cell needs Triton, which is not installed here. The chapter goes on without it."
# How bytecode asks for a name that no function or comprehension has for itself.
GLOBAL = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME"}


def start():
    """From here on, cells that need Triton are skipped where there is none; where there is, nothing changes.

    Returns:  nothing
    """
    from IPython import get_ipython

    transformers = get_ipython().input_transformers_post
    transformers[:] = [step for step in transformers if not isinstance(step, Skipping)]
    if not installed("triton"):
        transformers.append(Skipping())


class Skipping:
    """A transformer of IPython's: the lines of a cell in, the lines to run out.

    What the reader sees and edits stays as it is; what runs in its place is one line, which says why nothing else does.
    """

    def __init__(self):
        self.missing = set()

    def __call__(self, lines):  # noqa: D102
        source = "".join(lines)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = compile(
                    source,
                    "cell",
                    "exec",
                    ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
                    dont_inherit=True,
                )
        except (SyntaxError, ValueError):
            return lines
        used, bound, imports_triton = names(code)
        if source.startswith(MARK) or imports_triton or used & self.missing:
            self.missing |= bound
            return [f"print({SKIPPED!r})\n"]
        self.missing -= bound
        return lines


def names(code):
    """(names that a cell takes from earlier cells, names that it leaves to later ones, whether it imports Triton).

    Read off the bytecode, which has the names in the order in which they are needed, and knows each one's scope.
    """
    used, bound, called_later, imports_triton = set(), set(), set(), False
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            bound.add(step.argval)
        elif step.opname in GLOBAL and step.argval not in bound:
            used.add(step.argval)
        elif step.opcode in dis.hasname:
            parts = str(step.argval).split(".")
            imports_triton |= "triton_kernels" in parts or (
                step.opname == "IMPORT_NAME" and parts[0] == "triton"
            )
    # What the body of a function uses is needed when it is called, which is after the cell has defined all it defines.
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            used_inside, _, imports_inside = names(inner)
            called_later |= used_inside
            imports_triton |= imports_inside
    return used | called_later - bound, bound, imports_triton
