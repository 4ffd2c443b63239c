"""Whether what a name stands for in this process is what a library has made: asked of the object.

`np.mean = np.sum` leaves the name and changes the function. What is defined in C has its name for good; a function of
Python's has the file of its code.
"""

from __future__ import annotations

import builtins
import sys
from inspect import getattr_static
from pathlib import Path
from types import FunctionType
from typing import Any

from .values import NotRead

# {a name: the one that its object has}
OTHER_NAMES = {
    "abs": "absolute",
    "true_divide": "divide",
    "rtruediv": "rdiv",
    "itruediv": "idiv",
    "pos": "positive",
}
# whose types are written in Python, or made while it runs
HEAP_TYPE = 1 << 9
OPERATORS = [
    f"__{name}__"
    for name in (
        "add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv pow rpow matmul rmatmul "
        "neg pos abs len iter gt lt ge le and or invert getitem setitem"
    ).split()
]


def is_from(library: str, function: FunctionType) -> bool:
    """Whether the code of a function of Python's is in a library's folder."""
    folder = Path(sys.modules[library].__file__).parent
    return Path(function.__code__.co_filename).is_relative_to(folder)


def is_genuine(library: str, name: str, value: Any) -> bool:
    """Whether a function, or a type, is the library's own of that name; name: as "linalg.norm"."""
    if isinstance(value, FunctionType):
        return _is_called(name, value) and is_from(library, value)
    if type(value).__flags__ & HEAP_TYPE:
        return False
    if isinstance(value, type):
        home = value.__module__.partition(".")[0]
        return _is_called(name, value) and home == library
    inner = getattr(value, "_implementation", None)  # of what NumPy dispatches
    if isinstance(inner, FunctionType):
        return is_genuine(library, name, inner)
    return _is_called(name, value)


def _is_called(name, value):
    """Whether an object has a name, by itself or by its code."""
    last = name.rpartition(".")[2].strip("_")
    names = last, OTHER_NAMES.get(last), name.replace(".", "_")
    called = getattr(value, "__name__", "").strip("_")
    return called in names


def member(path: str) -> Any:
    """What a path such as "numpy.linalg.norm" leads to in this process; None where it leads nowhere."""
    library, *names = path.split(".")
    value = sys.modules.get(library)
    for name in names:
        value = getattr(value, name, None)
    return value


def check_member(path: str) -> None:
    """Refuse a function of a library that is another one by now; path: as of `member`."""
    value, (library, _, name) = member(path), path.partition(".")
    if value is None and path == "numpy.newaxis":
        return
    if library == "torch" and type(value).__name__ == "dtype":
        return
    if not is_genuine(library, name, value):
        raise NotRead(f"{path}, which is not the library's own by now")


def check_tensor(name: str) -> None:
    """Refuse a method of torch.Tensor that is another one by now."""
    value = getattr_static(sys.modules["torch"].Tensor, name, None)
    if not is_genuine("torch", name, value):
        raise NotRead(f"torch.Tensor.{name}, which is not torch's own by now")


def check_builtin(name: str) -> None:
    """Refuse a builtin that is another one by now."""
    value = getattr(builtins, name, None)
    made = getattr(value, "__flags__", 0) & HEAP_TYPE or isinstance(value, FunctionType)
    if made or getattr(value, "__module__", "") != "builtins" or value.__name__ != name:
        raise NotRead(f"{name}, which is not Python's own by now")
