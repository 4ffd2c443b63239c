"""All tables together: what a name of a library leads to."""

from __future__ import annotations

from typing import Any

from ..arrays import DType
from .numpy import METHODS as NUMPY_METHODS
from .numpy import NUMPY
from .python import HOST as MATH_HOST
from .python import LOGGING, MATH
from .signatures import Integers
from .torch import CASTS, TORCH
from .torch import HOST as TORCH_HOST
from .torch import METHODS as TORCH_METHODS
from .triton import TRITON

# the dtypes of floats; the first is that in which programs are run
FLOATS = {
    "numpy": ("float64", "float32", "float16"),
    "torch": ("float64", "float32", "float16", "bfloat16"),
}
TABLES = {"numpy": NUMPY, "torch": TORCH, "math": MATH, "triton": TRITON}
TABLES |= {"logging": {}, "numbers": {}}
METHODS = {"numpy": NUMPY_METHODS, "torch": TORCH_METHODS}
# of functions that launch kernels alone: {path: what it leads to}
HOST: dict[str, Any] = {f"math.{name}": value for name, value in MATH_HOST.items()}
HOST |= {"torch.int32": Integers()}
HOST |= {f"logging.{name}": value for name, value in LOGGING.items()}
HOST |= {f"torch.{name}": value for name, value in TORCH_HOST.items()}
# {path: what it leads to}
MEMBERS: dict[str, Any] = {
    f"{library}.{name}": value
    for library, names in TABLES.items()
    for name, value in names.items()
} | {"numpy.newaxis": None}
for _library, _names in FLOATS.items():
    MEMBERS |= {f"{_library}.{name}": DType(_library, name) for name in _names}
for _name in FLOATS["torch"]:
    MEMBERS[f"triton.language.{_name}"] = DType("triton", _name)
for _name, _dtype in CASTS.items():
    MEMBERS[f"torch.{_name}"] = DType("torch", _dtype)
