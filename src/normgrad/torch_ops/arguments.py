"""Checks of what the torch API is given, the kernels behind a backend's name, and tensors as rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.compiler import is_compiling
from torch.types import Device

from ..spec import Axes, check_axes, check_head_axis, check_heads, check_shapes
from ..versions import check_interpreter, not_installed
from . import rows as torch_rows
from .differentiable import DTYPES, promoted
from .distributed import check as check_shared
from .distributed import is_distributed

Backend = Literal["auto", "torch", "triton", "numba"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
# What a compiler traces with is known besides: its tensors reach shapes and dtypes alone, never a kernel.
PLAIN = (torch.Tensor, torch.nn.Parameter)
TRACED = (FakeTensor, FunctionalTensor)
TENSORS = (*PLAIN, *TRACED)
# The modes of FakeTensorMode, make_fx and AOTAutograd; those of users see all operations of a kernel.
TRACERS = tuple(torch._C._TorchDispatchModeKey.__members__.values())


@dataclass(frozen=True)
class Options:
    """What the forward and the backward are asked for besides the spec.

    Args:  out_dtype of y; residual_dtype of residual_out; round_residual: whether the sum as residual_out holds it is
           what is normalized; portable_sums: whether dw and db are summed in one order, however many multiprocessors
           a GPU has; per_head: whether weight and bias are (H, N), a row for each head
    """

    out_dtype: torch.dtype
    residual_dtype: torch.dtype
    round_residual: bool = True
    portable_sums: bool = False
    per_head: bool = False

    @property
    def of_forward(self) -> dict[str, Any]:
        """The keywords of a forward."""
        dtypes = {"out_dtype": self.out_dtype, "residual_dtype": self.residual_dtype}
        return {**dtypes, "round_residual": self.round_residual}


def check_dtype(name: str, dtype: torch.dtype | None) -> None:
    """A dtype of the operator or None, or an error that names the argument."""
    if dtype is not None and (
        not isinstance(dtype, torch.dtype) or dtype not in DTYPES
    ):
        raise TypeError(
            f"{name}: got {dtype!r}, needs torch.float64, float32, float16, bfloat16 or None"
        )


def check_device(name: str, device: Device) -> None:
    """What torch takes for a device, or None, or an error that names the argument; whether it is there torch says."""
    try:
        device is None or torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        kinds = "a torch.device or the name of one, such as 'cpu' or 'cuda:0', or None"
        raise TypeError(
            f"{name}: got {type(device).__name__} {device!r}, needs {kinds}"
        ) from error


def check_flag(name: str, flag: bool) -> None:
    """True or False, or an error that names the argument."""
    if not isinstance(flag, bool):
        raise TypeError(
            f"{name}: got {type(flag).__name__} {flag!r}, needs True or False"
        )


def check_options(
    input: Tensor,
    residual: Tensor | None,
    heads: int | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    round_residual: bool = True,
    portable_sums: bool = False,
) -> Options:
    """Options with a dtype for each None; an error that names the argument for what is no such option.

    heads has been checked beside the shapes.

    float64 is refused where neither input nor residual has it: the statistics are in float32 then, and so is the sum.
    """
    sum_dtype = promoted(input, residual)
    allowed = DTYPES if sum_dtype == torch.float64 else DTYPES[1:]
    for name, dtype in (("out_dtype", out_dtype), ("residual_dtype", residual_dtype)):
        check_dtype(name, dtype)
        if dtype is not None and dtype not in allowed:
            raise ValueError(
                f"{name}: got {dtype}, needs float32, float16 or bfloat16, as no summand is in float64"
            )
    check_flag("round_residual", round_residual)
    check_flag("portable_sums", portable_sums)
    dtypes = (out_dtype or input.dtype, residual_dtype or sum_dtype)
    return Options(*dtypes, round_residual, portable_sums, heads is not None)


def check_backend(backend: Backend) -> None:
    """One of the backends' names, or an error that lists them."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(
            f"backend: got {backend!r}, needs one of {', '.join(map(repr, BACKENDS))}"
        )


@lru_cache
def _compiled(name: str) -> ModuleType:
    """The module of numba's or triton's kernels, imported when it is asked for; an import statement asks each time."""
    try:
        return import_module(f"..{name}_kernels", __package__)
    except ModuleNotFoundError as error:
        extra = "cpu" if name == "numba" else name
        words = f"backend: got {name!r}, which needs {name}, and it is not installed"
        raise not_installed(error, name, extra, words) from error


def kernels_of(backend: Backend, device: torch.device) -> ModuleType:
    """The module of a backend's name whose forward and backward run on tensors of a device."""
    check_backend(backend)
    if backend == "torch" or (backend == "auto" and device.type != "cuda"):
        return torch_rows
    kernels = _compiled("numba" if backend == "numba" else "triton")
    kernels.check_device(device)
    if backend == "triton" and device.type != "cuda":
        check_interpreter()
    return kernels


def is_traced(t) -> bool:
    """Whether torch.compile, export, make_fx or torch.jit.trace writes down what runs, or shapes alone are computed.

    They see torch's operations, and not what a kernel writes to memory.
    """
    return (
        is_compiling()
        or type(t) in TRACED
        or torch.jit.is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        and any(torch._C._get_dispatch_mode(key) is not None for key in TRACERS)
    )


def check_memory(name: str, t: Tensor) -> None:
    """A dense tensor of torch's own type, or an error that names the argument.

    A kernel reads the memory at data_ptr. Where a subclass keeps its numbers elsewhere (jagged tensors, DTensor), that
    memory is nobody's, and what a subclass does to torch's operations a kernel does not know.
    """
    if type(t) not in TENSORS:
        kind = f"{type(t).__module__}.{type(t).__qualname__}"
        only = (
            " itself: kernels know no subclass of it"
            if isinstance(t, torch.Tensor)
            else ""
        )
        raise TypeError(f"{name}: got {kind}, needs a torch.Tensor{only}")
    if t.is_nested:
        makes = "torch.nn.TransformerEncoder makes none with enable_nested_tensor=False"
        raise TypeError(f"{name}: got a nested tensor, needs a dense one; {makes}")
    if t.layout != torch.strided:
        raise TypeError(f"{name}: got a {t.layout} tensor, needs a dense one")


def check_tensors(
    input: Tensor,
    *,
    name: str = "input",
    shared: bool = False,
    **further: Tensor | None,
) -> None:
    """Floating-point tensors on one device, or an error that names the argument, what it got and what it needs.

    Args:  shared: whether all of them may be DTensors on one mesh
    """
    first, shared = name, shared and is_distributed(input)
    for name, t in ((first, input), *further.items()):
        if t is None and name != first:
            continue
        if shared:
            check_shared(name, t, input, first)
        else:
            check_memory(name, t)
        if t.dtype not in DTYPES:
            raise TypeError(
                f"{name}: got dtype {t.dtype}, needs float64, float32, float16 or bfloat16"
            )
        if t.device != input.device:
            raise ValueError(
                f"{name}: got device {t.device}, needs {input.device}, the device of {first}"
            )


def check_normalized_shape(
    input: Tensor,
    normalized_shape: Axes,
    residual: Tensor | None = None,
    heads: int | None = None,
    **affine: Tensor | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(heads, axes) as tuples of sizes, or an error that names the argument, what it got and what it needs."""
    check_tensors(input, shared=True, residual=residual, **affine)
    axes = _axes(normalized_shape)
    of_heads = check_heads(heads, *affine.values())
    if input.shape[-len(axes) :] != axes:
        raise ValueError(
            f"normalized_shape: got {axes}, needs the last axes of input, whose shape is {tuple(input.shape)}"
        )
    if of_heads:
        check_head_axis(of_heads, tuple(input.shape[: -len(axes)]), "input")
    for name, t in affine.items():
        if t is not None and t.shape != of_heads + axes:
            needs = f"{of_heads + axes}, {'heads and ' if of_heads else ''}the normalized_shape"
            raise ValueError(f"{name}: got shape {tuple(t.shape)}, needs {needs}")
    if residual is not None:
        check_shapes(input, None, None, residual, name="input")
    return of_heads, axes


def _axes(normalized_shape):
    """As check_axes; a tracer holds the size of a tensor as a symbol, which is compared with input's alone."""
    sizes = normalized_shape
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    if any(isinstance(size, torch.SymInt) for size in sizes):
        return tuple(sizes)
    return check_axes(normalized_shape)


def rows(per_head, *tensors):
    """Tensors (..., N) of one shape as rows (M, N), or as (M, H, N) where that copies fewer of them; None for None.

    The first tensor is not None.

    A slice of a fused QKV tensor has two strides, of its rows and of its heads. With a weight for each head H is the
    last of the leading axes; otherwise any place between two of them may be where the strides part.
    """
    shape = tensors[0].shape
    if len(shape) == 2 and not per_head:
        return tensors
    there = [t for t in tensors if t is not None]
    if per_head:
        split = len(shape) - 2
    elif len(shape) < 2 or all(t.is_contiguous() for t in there):
        split = 0
    else:
        split = min(
            range(len(shape) - 1),
            key=lambda axis: sum(not _merges(t, axis) for t in there),
        )
    lead = (math.prod(shape[split:-1]),)
    if split or per_head:
        lead = (math.prod(shape[:split]), *lead)
    sizes = (*lead, shape[-1])
    return [t if t is None or t.shape == sizes else t.reshape(sizes) for t in tensors]


def _merges(t, split):
    """Whether the leading axes before the split and those behind it have one stride each."""
    return _one_stride(t, 0, split) and _one_stride(t, split, t.dim() - 1)


def _one_stride(t, start, stop):
    axes = [
        (t.shape[axis], t.stride(axis))
        for axis in range(start, stop)
        if t.shape[axis] != 1
    ]
    return all(outer == size * inner for (_, outer), (size, inner) in pairwise(axes))


def shaped(t, shape):
    """The rows in another shape, not as a view: a view that a Function returns may not be modified in place."""
    return t if t is None or t.shape == shape else torch.ops.aten._unsafe_view(t, shape)
