"""Fused layers on torch tensors: what is allocated and launched, and torch's own form where no kernel can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch
from torch.autograd import forward_ad

from ..spec import check_finite
from ..torch_ops.arguments import check_tensors, is_traced
from ..torch_ops.autograd import in_operations, is_batched
from ..torch_ops.differentiable import accumulator
from ..versions import conflict_here

# The longest rows by the bytes of an accumulator, and the warps of a block that holds one. Beyond what the package's
# own kernels hold, a thread has 64 registers, and the compiler may keep numbers in memory: `compile` says how many.
MOST_COLUMNS = {4: 32768, 8: 16384}
MOST_WARPS = 32


@dataclass(frozen=True)
class Programs:
    """A layer as it is called and launched, in names alone.

    Args:  matrices, vectors: inputs (..., N) and (N,), in the order of a call; constants: numbers without a gradient
           saved: numbers of the rows that the forward leaves for the backward; loaded: inputs and constants that the
           backward rests on; cotangent: the name of the output's
           forward, backward: {name: rows} -> a tuple of (M, N) and (N,), in torch operations
           kernels: the same in Triton, None where there is no Triton, and for the layer in torch
    """

    name: str
    matrices: tuple[str, ...]
    vectors: tuple[str, ...]
    constants: tuple[str, ...]
    saved: tuple[str, ...]
    loaded: tuple[str, ...]
    cotangent: str = "dy"
    forward: Callable | None = None
    backward: Callable | None = None
    kernels: tuple | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What gets a gradient."""
        return self.matrices + self.vectors

    def kernels_run(self, t: torch.Tensor) -> bool:
        """Whether the kernels can run on a tensor's device: on a CPU, in Triton's interpreter alone."""
        if self.kernels is None:
            return False
        device = t.device.type
        return device == "cuda" or device == "cpu" and interprets()


def interprets() -> bool:
    """Whether Triton's interpreter runs kernels here: it was chosen, and it gets along with NumPy."""
    from ..triton_kernels.interpreter import INTERPRETED

    return INTERPRETED and not conflict_here()


def check_arguments(programs: Programs, arguments: dict) -> tuple[list, dict]:
    """(the inputs in order, the constants by name); TypeError or ValueError by name where they do not fit."""
    names = (*programs.inputs, *programs.constants)
    takes = f"{programs.name} takes {', '.join(names)}"
    for name in arguments:
        if name not in names:
            raise TypeError(f"{name}: is no input; {takes}")
    for name in names:
        if arguments.get(name) is None:
            raise TypeError(f"{name}: is missing; {takes}")
    constants = {name: arguments[name] for name in programs.constants}
    for name, number in constants.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{name}: got {type(number).__name__}, needs a number; what needs a gradient is a vector "
                            "over the columns")  # fmt: skip
        check_finite(name, number)
    inputs = {name: arguments[name] for name in programs.inputs}
    first, *following = inputs
    check_tensors(
        inputs[first], name=first, **{name: inputs[name] for name in following}
    )
    shape = tuple(inputs[first].shape)
    if len(shape) < 1 or shape[-1] < 1:
        raise ValueError(
            f"{first}: got the shape {shape}, needs (..., N) with at least one column"
        )
    for name, t in inputs.items():
        needs = shape if name in programs.matrices else shape[-1:]
        if tuple(t.shape) != needs:
            raise ValueError(
                f"{name}: got the shape {tuple(t.shape)}, needs {needs} beside {first}"
            )
    return list(inputs.values()), constants


class Rows(torch.autograd.Function):
    """The output of a fused layer; saves the inputs and the numbers of the rows that its backward reads."""

    @staticmethod
    def forward(ctx, programs, constants, *inputs):
        ctx.in_torch = not programs.kernels_run(inputs[0])
        ctx.programs, ctx.constants = programs, constants
        ctx.like = [(t.shape, t.dtype) for t in inputs]
        if ctx.in_torch:
            y, saved = forward_in_torch(programs, constants, inputs), []
        else:
            y, *saved = forward_kernel(programs, constants, inputs)
        loaded = [
            t
            for name, t in zip(programs.inputs, inputs, strict=True)
            if name in programs.loaded
        ]
        ctx.save_for_backward(*loaded, *saved)
        return y.reshape(inputs[0].shape)

    @staticmethod
    def backward(ctx, dy):
        programs, needed = ctx.programs, ctx.needs_input_grad[2:]
        names = [name for name in programs.inputs if name in programs.loaded]
        names += [] if ctx.in_torch else programs.saved
        values = dict(zip(names, ctx.saved_tensors, strict=True))
        values = {programs.cotangent: dy, **values}
        # torch's operations can be differentiated again
        if ctx.in_torch or in_operations(dy):
            gradients = backward_in_torch(programs, ctx.constants, values)
        else:
            dtypes = [
                dtype if need else None
                for (_, dtype), need in zip(ctx.like, needed, strict=True)
            ]
            gradients = backward_kernel(programs, ctx.constants, values, dtypes)
        grads = [
            gradient.reshape(shape).to(dtype) if need else None
            for gradient, (shape, dtype), need in zip(
                gradients, ctx.like, needed, strict=True
            )
        ]
        return None, None, *grads


def run(programs: Programs, constants: dict, *inputs):
    """The output by Rows, or in torch's operations, which tracers and transforms differentiate themselves."""
    if is_traced(inputs[0]) or is_batched() or forward_ad._current_level >= 0:
        return forward_in_torch(programs, constants, inputs).reshape(inputs[0].shape)
    return Rows.apply(programs, constants, *inputs)


def _of_rows(programs, values: dict) -> dict:
    """The values by name, matrices with one axis of rows."""
    matrices = (*programs.matrices, programs.cotangent)
    return {
        name: t.reshape(-1, t.shape[-1]) if name in matrices else t
        for name, t in values.items()
    }


def _inputs(programs, inputs):
    """The inputs by name, and the dtype of the output: what torch would make of all matrices."""
    dtype = inputs[0].dtype
    for t in inputs[1 : len(programs.matrices)]:
        dtype = torch.promote_types(dtype, t.dtype)
    return _of_rows(programs, dict(zip(programs.inputs, inputs, strict=True))), dtype


def forward_in_torch(programs: Programs, constants: dict, inputs):
    """The output (M, N) in torch's operations."""
    values, dtype = _inputs(programs, inputs)
    wide = {name: t.to(accumulator(dtype)) for name, t in values.items()}
    (y,) = programs.forward(**wide, **constants)
    return y.to(dtype)


def backward_in_torch(programs: Programs, constants: dict, values: dict):
    """The gradients by all inputs in torch's operations, of the cotangent and the inputs by name."""
    acc = accumulator(values[programs.cotangent].dtype)
    wide = {name: t.to(acc) for name, t in _of_rows(programs, values).items()}
    wide |= constants
    return programs.backward(
        **{name: wide[name] for name in (programs.cotangent, *programs.loaded)}
    )


# kernels


def forward_kernel(programs: Programs, constants: dict, inputs) -> list:
    """[the output (M, N), numbers (M,) of the rows that the backward needs]."""
    from ..triton_kernels import configuration, launch

    values, dtype = _inputs(programs, inputs)
    acc = accumulator(dtype)
    tensors = [launch.aligned_rows(t) for t in values.values()]
    m, n = tensors[0].shape
    tile = _whole_rows(configuration.forward_tile(n, acc.itemsize), n, acc)
    stored = [tensors[0].new_empty((m, n), dtype=dtype)]
    stored += [tensors[0].new_empty(m, dtype=acc) for _ in programs.saved]
    if m > 0:
        options = _options(n, acc, constants, tile)
        _launch(programs.kernels[0], -(-m // tile.rows), tensors, stored, m, options)
    return stored


def backward_kernel(
    programs: Programs, constants: dict, values: dict, dtypes: list
) -> list:
    """The gradients by all inputs, None for those without a dtype.

    Args:  values: the cotangent, the inputs that are loaded and what was saved, by name
    """
    from ..triton_kernels import configuration, launch

    matrices = len(programs.matrices)
    tensors = list(map(launch.aligned_rows, _of_rows(programs, values).values()))
    dy, acc = tensors[0], accumulator(tensors[0].dtype)
    (m, n), device = dy.shape, configuration.device_of(dy)
    tile = _whole_rows(configuration.backward_tile(n, acc.itemsize), n, acc)
    count = configuration.programs(max(m, 1), n, tile, device, False)
    # where there are no rows nothing is launched, and nothing would write them
    new = dy.new_empty if m > 0 else dy.new_zeros
    shapes = [(m, n)] * matrices + [(n,)] * len(programs.vectors)
    gradients = [
        None if dtype is None else new(shape, dtype=dtype)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    if m > 0:
        sums = gradients[matrices:]
        partial = [
            None if total is None else dy.new_empty((count, n), dtype=acc)
            for total in sums
        ]
        streams = [t for t in tensors if t.dim() == 2]
        options = _options(n, acc, constants, tile)
        options |= launch.stage_options(tile, device, *streams)
        # as the package's own backward, which says why
        odd = options["VECTOR"] == 1 and dy.element_size() > 2
        if not odd and tile.warps <= configuration.WARPS_PER_MULTIPROCESSOR:
            options |= configuration.REGISTERS
        stored = [*gradients[:matrices], *partial]
        _launch(programs.kernels[1], count, tensors, stored, m, options)
        for start in range(0, len(sums), 2):
            pair = slice(start, start + 2)
            launch.reduce_sums(partial[pair], sums[pair], count, n)
    return gradients


def _whole_rows(tile, n, acc):
    """The package's tile; for a row that the package would sweep over, all warps that a block can have."""
    from ..triton_kernels.configuration import Tile

    most = MOST_COLUMNS[acc.itemsize]
    if n > most:
        raise ValueError(
            f"N: got {n} columns, and a program holds rows of at most {most}; use .torch for longer ones"
        )
    if tile.sweeps:
        return Tile(1, 1 << (n - 1).bit_length(), MOST_WARPS, sweeps=False)
    return tile


def _options(n, acc, constants, tile):
    from ..triton_kernels import launch
    from ..triton_kernels.interpreter import tl

    sums = tl.float64 if acc == torch.float64 else tl.float32
    options = {"N": n, "VECTOR": launch.stride_unit(n), "ACC": sums}
    return options | launch.tile_options(tile) | constants


def _launch(kernel, count, tensors, stored, m, options):
    from ..triton_kernels import launch

    steps = [launch.step_of(t) for t in tensors if t.dim() == 2]
    # rows past M are rows of zeros; what the interpreter says of their quotients concerns no number that is stored
    with numpy.errstate(all="ignore"):
        launch.launch_kernel(kernel, (count,), *tensors, *stored, m, *steps, **options)
