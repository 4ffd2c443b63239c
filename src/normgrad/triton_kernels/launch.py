"""forward and backward on rows of torch tensors: what is allocated, which kernels are launched, and how often."""

from __future__ import annotations

import math

import torch

from ..torch_ops.differentiable import accumulator, promoted
from ..torch_ops.rows import unwritten
from . import configuration
from .interpreter import ONE_AT_A_TIME, tl, triton
from .reduction import reduce_partials
from .rows import backward_rows, forward_rows
from .sweeps import backward_columns, forward_sweeps, row_sums

ALIGNMENT = 16  # bytes that a thread loads or stores at once
MOST_HEADS = 65535  # programs along an axis of the grid that is not its first


# Triton 3.2 gives a compiled kernel no constants, later ones do.
KEEPS = tuple(map(int, triton.__version__.split(".")[:2])) > (3, 2)
# What Triton compiled, and its constants, by all that it was compiled for: Triton takes longer to look for it than the
# rest of a forward takes before its launch.
_compiled = {}


def _kinds(arguments):
    """What of each argument Triton compiles a kernel for, whether or not the kernel asks it not to."""
    for argument in arguments:
        if argument is None:
            yield None
        elif isinstance(argument, int):
            yield argument == 1, argument % ALIGNMENT == 0, -(2**31) <= argument < 2**31
        else:
            yield argument.dtype, argument.data_ptr() % ALIGNMENT == 0


def launch_kernel(kernel, grid, *arguments, **options):
    """Launch on the device of the tensors: Triton itself takes the current one, whatever the tensors lie on."""
    tensor = next(t for t in arguments if t is not None)
    key = (kernel, tensor.device, *_kinds(arguments), *options.values())
    with ONE_AT_A_TIME, torch.cuda.device_of(tensor):
        if kept := _compiled.get(key):
            found, constants = kept
            found[(*grid, 1, 1)[:3]](*arguments, *constants)
            return
        # Said outright, since its default is announced to change: fused multiply-adds, at every version of Triton.
        found = kernel[grid](*arguments, **options, enable_fp_fusion=True)
    if found is not None and KEEPS:  # the interpreter compiles nothing
        _compiled[key] = (
            found,
            tuple(options[name] for name in kernel.arg_names[len(arguments) :]),
        )


def stride_unit(n):
    """Every row stride is passed as a multiple of this, so that the compiler knows what divides it."""
    return math.gcd(n, ALIGNMENT)


def aligned_rows(t):
    """Adjacent columns, rows any multiple of stride_unit apart, on an address that a GPU reads 16 bytes from.

    What is laid out otherwise is copied: else a kernel would have to be compiled once more for each layout. A kernel
    sees memory, not torch's lazy negation.
    """
    if t is None or (
        t.is_contiguous() and not t.is_neg() and t.data_ptr() % ALIGNMENT == 0
    ):
        return t
    t = t.resolve_neg()
    adjacent = t.stride(-1) == 1 or t.shape[-1] == 1
    if not adjacent or any(
        stride % stride_unit(t.shape[-1]) for stride in t.stride()[:-1]
    ):
        t = t.contiguous()
    return t if t.data_ptr() % ALIGNMENT == 0 else t.clone()


def _vectors(t):
    """A weight or a bias, those of all heads without gaps."""
    return None if t is None else aligned_rows(t.contiguous())


def step_of(t, axis=0):
    """The row stride, or another, as a kernel wants it."""
    return 0 if t is None else t.stride(axis) // stride_unit(t.shape[-1])


def steps_of(*tensors):
    """The row strides, the number of heads and the strides from head to head, None for what there is not."""
    first = next(t for t in tensors if t is not None)
    steps = [step_of(t) for t in tensors]
    if first.dim() == 2:
        return *steps, None, *[None] * len(tensors)
    return *steps, first.shape[1], *(step_of(t, 1) for t in tensors)


def _heads(per_head, t):
    """How many heads have programs of their own, 1 where all share a weight."""
    if not per_head:
        return 1
    tokens, heads, _ = t.shape
    # A tile may reach past the last row by its own size: 32-bit numbers of such rows would turn negative, and below M.
    past = max(configuration.FORWARD_TILE, configuration.BACKWARD_TILE)
    short = tokens * heads < 2**31 <= (tokens + past) * heads
    if heads > MOST_HEADS or short:
        rows = f"{heads} of {tokens} rows each, needs at most {MOST_HEADS}, and room for a tile below 2**31 rows in all"
        raise ValueError(f"heads: got {rows}")
    return heads


def kernel_options(n, acc, spec, per_head):
    """What a kernel is compiled for: the row's length, the dtype of the sums and the spec."""
    return {
        "N": n,
        "VECTOR": stride_unit(n),
        "CENTER": spec.center,
        "MEAN": spec.reduce == "mean",
        "SCALE": spec.scale,
        "OFFSET": spec.weight_offset,
        "EPS": spec.eps,
        "PLACEMENT": spec.placement,
        "PER_HEAD": per_head,
        "ACC": tl.float64 if acc == torch.float64 else tl.float32,
    }


def tile_options(tile):
    """The sizes of a tile, and the warps that share it."""
    return {"ROWS": tile.rows, "BLOCK": tile.block, "num_warps": tile.warps}


def stage_options(tile, device, *streams):
    """STAGES for a loop that loads a tile, or a row of one, of each of the streams."""
    bytes_per_column = sum(t.element_size() for t in streams if t is not None)
    return {"STAGES": configuration.stages(tile, bytes_per_column, device)}


def forward(
    x,
    weight,
    bias,
    residual,
    spec,
    *,
    out_dtype=None,
    residual_dtype=None,
    round_residual=True,
):
    """(y, residual_out, mean, rstd) for rows x (M, N) or (M, H, N), by one kernel launch.

    Args, Returns: as torch_rows.forward
    Numerics: sums in float32, in float64 for float64; the variance is centred first; y of a row is the same bits
              whatever the number of rows and the row's place among them
    """
    m, n = math.prod(x.shape[:-1]), x.shape[-1]
    acc = accumulator(promoted(x, residual))
    per_head = any(t is not None and t.dim() == 2 for t in (weight, bias))
    heads = _heads(per_head, x)
    x, residual = aligned_rows(x), aligned_rows(residual)
    weight, bias = _vectors(weight), _vectors(bias)
    y = unwritten(x, out_dtype or x.dtype)
    residual_out = (
        None
        if residual is None
        else unwritten(x, residual_dtype or promoted(x, residual))
    )
    mean = x.new_empty(m, dtype=acc) if spec.center else None
    rstd = x.new_empty(m, dtype=acc)
    if m > 0:
        mixed = residual is not None and residual.dtype != x.dtype
        tile = configuration.forward_tile(n, acc.itemsize, mixed)
        options = {
            **kernel_options(n, acc, spec, per_head),
            "ROUND": round_residual,
            **tile_options(tile),
        }
        if tile.sweeps:
            options |= stage_options(
                tile, configuration.device_of(x), x, residual, weight, bias
            )
        launch_kernel(
            forward_sweeps if tile.sweeps else forward_rows, (-(-m // (tile.rows * heads)), heads),
            x, residual, weight, bias, y, residual_out, mean, rstd, m, *steps_of(x, residual), **options,
        )  # fmt: skip
    return y, residual_out, mean, rstd


def backward(
    dy,
    dresidual_out,
    p,
    weight,
    mean,
    rstd,
    spec,
    dtypes,
    *,
    portable_sums=False,
    per_head=False,
):
    """(dx, dresidual, dw, db) for rows p = x + residual, by two kernel launches, three for long rows.

    Args, Returns: as torch_rows.backward
    Numerics: as forward; dx of a row is the same bits whatever the number of rows and the row's place; dw and db are
              summed without locks or atomics, in the same order at every run, with portable_sums in an order that
              depends on M and N alone, not on the number of multiprocessors
    """
    m, n, acc = math.prod(p.shape[:-1]), p.shape[-1], rstd.dtype
    dy, dresidual_out, p, weight = (
        aligned_rows(dy),
        aligned_rows(dresidual_out),
        aligned_rows(p),
        _vectors(weight),
    )
    heads, vector = _heads(per_head, p), p.shape[-1 - per_head :]
    dx_dtype, dresidual_dtype, *sum_dtypes = dtypes
    first = dx_dtype or dresidual_dtype
    dx = None if first is None else unwritten(p, first)
    second = dresidual_dtype is not None and dresidual_dtype != first
    dresidual = unwritten(p, dresidual_dtype) if second else None
    # Where there are no rows nothing is launched, and nothing would write them.
    new_sum = p.new_empty if m > 0 else p.new_zeros
    sums = [
        None if dtype is None else new_sum(vector, dtype=dtype) for dtype in sum_dtypes
    ]
    if m > 0:
        device = configuration.device_of(p)
        light = not spec.center and dy.dtype == p.dtype and p.element_size() == 2
        tile = configuration.backward_tile(n, acc.itemsize, light)
        programs = configuration.programs(
            m // heads, n, tile, device, portable_sums, heads
        )
        partial = [
            None if total is None else p.new_empty(programs, *vector, dtype=acc)
            for total in sums
        ]
        inputs = (dy, dresidual_out, p, weight, mean, rstd)
        steps = (m, *steps_of(dy, dresidual_out, p))
        streams = (
            (dy, dresidual_out, p, weight) if tile.sweeps else (dy, dresidual_out, p)
        )
        options = {**kernel_options(n, acc, spec, per_head), **tile_options(tile)}
        options |= stage_options(tile, device, *streams)
        outputs, grid = (dx, dresidual, *partial), (programs, heads)
        if tile.sweeps:
            _backward_sweeps(inputs, outputs, steps, grid, options)
        else:
            _backward_rows(
                inputs, outputs, steps, grid, {**options, "TWICE": tile.twice}
            )
        reduce_sums(partial, sums, programs, vector.numel())
    return (
        dx if dx_dtype is not None else None,
        _second(dx, dresidual, dresidual_dtype),
        *sums,
    )


def _second(dx, dresidual, dtype):
    if dtype is None:
        return None
    return dx if dresidual is None else dresidual


def _backward_rows(inputs, outputs, steps, grid, options):
    # Rows of an odd length are read element by element; in float32 the addresses need the registers then.
    odd = options["VECTOR"] == 1 and inputs[2].element_size() > 2
    # Of 1024 threads each has 64 registers in any case.
    registers = {} if odd or options["TWICE"] else configuration.REGISTERS
    launch_kernel(
        backward_rows, grid, *inputs, *outputs, *steps, **options, **registers
    )


def _backward_sweeps(inputs, outputs, steps, grid, options):
    (dy, _, p, weight, mean, rstd), (programs, heads) = inputs, grid
    c1 = c2 = None
    if outputs[0] is not None:
        c1, c2 = torch.empty_like(rstd), torch.empty_like(rstd)
        m, dy_step, _, p_step, of, dy_head_step, _, p_head_step = steps
        launch_kernel(
            row_sums, (-(-m // (options["ROWS"] * heads)), heads),
            dy, p, weight, mean, rstd, c1, c2, m, dy_step, p_step, of, dy_head_step, p_head_step, **options,
        )  # fmt: skip
    grid = (programs, -(-options["N"] // options["BLOCK"]), heads)
    options = {
        name: value
        for name, value in options.items()
        if name not in ("MEAN", "EPS", "PLACEMENT")
    }
    launch_kernel(backward_columns, grid, *inputs, c1, c2, *outputs, *steps, **options)


def reduce_sums(partial, sums, programs, n):
    """One launch for dw and db; none where neither is wanted."""
    pairs = [pair for pair in zip(partial, sums, strict=True) if pair[1] is not None]
    if not pairs:
        return
    (first, second), (first_sum, second_sum) = zip(
        *pairs, *[(None, None)] * (2 - len(pairs)), strict=True
    )
    rows, block = configuration.REDUCTION_TILE
    block = min(block, 1 << (n - 1).bit_length())
    launch_kernel(
        reduce_partials, (-(-n // block), len(pairs)),
        first, second, first_sum, second_sum, programs, N=n, ROWS=rows, BLOCK=block,
        num_warps=configuration.REDUCTION_WARPS,
    )  # fmt: skip
