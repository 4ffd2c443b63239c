"""Which versions go together: what the call, the doctor and a notebook's first cell say of them."""

from __future__ import annotations

import importlib.metadata
import re
from functools import cache

# Before 3.7 the interpreter takes arrays of one element for numbers, which NumPy refuses since 2.4.
STRICT_NUMPY, FIRST_FOR_STRICT_NUMPY = (2, 4), "3.7.1"


def release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def interpreter_conflict(triton: str, numpy: str) -> str:
    """Why Triton's interpreter cannot run with this NumPy, and the remedy; nothing where it can."""
    if (
        release(triton) >= release(FIRST_FOR_STRICT_NUMPY)
        or release(numpy) < STRICT_NUMPY
    ):
        return ""
    strict = ".".join(map(str, STRICT_NUMPY))
    remedy = f'pip install --no-deps triton=={FIRST_FOR_STRICT_NUMPY}, or pip install "numpy<{strict}"'
    return f"the interpreter of Triton {triton} fails with NumPy {numpy}: {remedy}"


@cache
def conflict_here() -> str:
    """interpreter_conflict of what is installed."""
    return interpreter_conflict(
        importlib.metadata.version("triton"), importlib.metadata.version("numpy")
    )


def check_interpreter() -> None:
    """RuntimeError, with the remedy, where Triton's interpreter cannot run with the NumPy that is here."""
    if conflict_here():
        raise RuntimeError(f"backend: 'triton' on the CPU, and {conflict_here()}")


def not_installed(
    error: ModuleNotFoundError, name: str, extra: str, words: str
) -> ModuleNotFoundError:
    """What to raise where an import fails: where the library itself is missing, words and the command that installs it.

    Args:  error: of the import; name: of the library; extra: of this package, which installs it
    """
    if error.name != name:
        return error
    return ModuleNotFoundError(f"{words}: pip install normgrad[{extra}]", name=name)


def without_torch(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to raise where an import of torch fails."""
    return not_installed(
        error,
        "torch",
        "torch",
        "torch: not installed, and this part of normgrad needs it",
    )
