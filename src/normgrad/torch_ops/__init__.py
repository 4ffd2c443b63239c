"""The operator in torch: its functional API, its autograd.Function, its operators for compilers, its rows."""

from ..versions import without_torch

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise without_torch(error) from error
