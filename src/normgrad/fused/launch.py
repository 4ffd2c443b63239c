"""Fused layers on torch tensors: what is allocated and launched, and torch's own form where no kernel can run."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from ..torch_ops.arguments import is_traced
from ..torch_ops.autograd import in_operations, is_batched
from ..torch_ops.differentiable import accumulator
from .call import COLUMN, NUMBER, ROW, TILE, Forms, interprets

# The longest rows by the bytes of an accumulator, and the warps of a block that holds one. Beyond what the package's
# own kernels hold, a thread has 64 registers, and the compiler may keep numbers in memory: `compile` says how many.
MOST_COLUMNS = {4: 32768, 8: 16384}
MOST_WARPS = 32


class Rows(torch.autograd.Function):
    """The outputs of a fused layer, (..., N) or (...); saves what its backward reads."""

    @staticmethod
    def forward(ctx, forms, in_torch, constants, *inputs):
        call = forms.call
        in_torch = in_torch or not _kernels_run(forms, inputs[0])
        values = stored(forms, in_torch, constants, inputs)
        ctx.forms, ctx.in_torch, ctx.constants, ctx.names = (
            forms,
            in_torch,
            constants,
            _saved_names(forms),
        )
        ctx.save_for_backward(*[values[name] for name in ctx.names])
        ctx.like = [(t.shape, t.dtype) for t in inputs]
        return tuple(values[name] for name in call.outputs)

    @staticmethod
    def backward(ctx, *cotangents):
        call, kinds = ctx.forms.call, ctx.forms.call.kinds
        seeds = dict(zip(call.seeds.values(), cotangents, strict=True))
        values = dict(zip(ctx.names, ctx.saved_tensors, strict=True)) | seeds
        values = {name: _flat(t, kinds[name]) for name, t in values.items()}
        wanted = {name: like for name, like, need in
                  zip(call.inputs, ctx.like, ctx.needs_input_grad[3:], strict=True) if need}  # fmt: skip
        # torch's operations can be differentiated again
        run = (
            _backward_in_torch
            if ctx.in_torch or in_operations(*cotangents)
            else backward_kernel
        )
        shape = next(
            shape
            for name, (shape, _) in zip(call.inputs, ctx.like, strict=True)
            if kinds[name] == TILE
        )
        found = run(
            ctx.forms, values, ctx.constants, wanted, (shape[:-1].numel(), shape[-1])
        )
        # one and the same tensor where two inputs have one gradient: autograd then copies it before it becomes both
        keys = {
            name: (call.gradients[name], shape, dtype)
            for name, (shape, dtype) in wanted.items()
        }
        grads = {
            key: found[key[0]].reshape(key[1]).to(key[2]) for key in set(keys.values())
        }
        return None, None, None, *[grads.get(keys.get(name)) for name in call.inputs]


def run(forms: Forms, in_torch: bool, constants: dict, *inputs):
    """The outputs by Rows, or in torch's operations, which tracers and transforms differentiate themselves."""
    if is_traced(inputs[0]) or is_batched() or forward_ad._current_level >= 0:
        values = stored(forms, True, constants, inputs)
        return tuple(values[name] for name in forms.call.outputs)
    return Rows.apply(forms, in_torch, constants, *inputs)


def stored(forms: Forms, in_torch: bool, constants: dict, inputs) -> dict:
    """{name: the inputs and what the forward stores}, the outputs in the shape of the inputs."""
    call = forms.call
    given = dict(zip(call.inputs, inputs, strict=True))
    shape = next(t.shape for name, t in given.items() if call.kinds[name] == TILE)
    forward = _forward_in_torch if in_torch else forward_kernel
    flat = {name: _flat(t, call.kinds[name]) for name, t in given.items()}
    found = forward(forms, flat, constants)
    lead = {TILE: shape, ROW: shape[:-1]}
    for name in call.outputs:
        found[name] = found[name].reshape(lead[call.kinds[name]])
    return {**given, **found}


def _saved_names(forms):
    return list(dict.fromkeys((*forms.call.kept, *forms.sources)))


def _flat(t, kind):
    """Rows of a matrix, and the numbers of all rows in one line."""
    return (
        t.reshape(-1, t.shape[-1])
        if kind == TILE
        else t.reshape(-1)
        if kind == ROW
        else t
    )


def _kernels_run(forms, t):
    """Whether the kernels can run on a tensor's device: on a CPU, in Triton's interpreter alone."""
    return forms.kernels is not None and (
        t.device.type == "cuda" or t.device.type == "cpu" and interprets()
    )


def _widest(call, values):
    """The dtype of the outputs: what torch would make of all matrices together."""
    found = None
    for name in call.inputs:
        if call.kinds[name] == TILE:
            found = (
                values[name].dtype
                if found is None
                else torch.promote_types(found, values[name].dtype)
            )
    return found


def _forward_in_torch(forms, values, constants):
    call, dtype = forms.call, _widest(forms.call, values)
    acc = accumulator(dtype)
    found = forms.forward(
        **{name: t.to(acc) for name, t in values.items()}, **constants
    )
    return {
        name: t.to(dtype if call.kinds[name] == TILE else acc)
        for name, t in zip(call.stored, found, strict=True)
    }


def _backward_in_torch(forms, values, constants, wanted, sizes):
    call, (m, n) = forms.call, sizes
    acc = accumulator(values[call.seeds[call.outputs[0]]].dtype)
    given = {
        name: values[name].to(acc) for name in (*forms.sources, *call.seeds.values())
    }
    return {**given, **forms.backward(**given, **constants, M=m, N=n)}


# kernels


def forward_kernel(forms: Forms, values: dict, constants: dict) -> dict:
    """{name: what the forward stores} of the inputs by name, matrices as (M, N)."""
    from ..triton_kernels import configuration, launch

    call, dtype = forms.call, _widest(forms.call, values)
    acc = accumulator(dtype)
    tensors = [_laid_out(values[name]) for name in call.inputs]
    first = next(t for t in tensors if t.dim() == 2)
    m, n = first.shape
    tile = _whole_rows(configuration.forward_tile(n, acc.itemsize), n, acc)
    like = {TILE: ((m, n), dtype), ROW: ((m,), acc)}
    found = {name: first.new_empty(like[kind][0], dtype=like[kind][1])
             for name, kind in ((name, call.kinds[name]) for name in call.stored)}  # fmt: skip
    if m > 0:
        options = {**_options(n, acc), **launch.tile_options(tile)}
        options |= {name: constants[name] for name in call.forward_constants}
        _run(
            forms.kernels[0],
            -(-m // tile.rows),
            (*tensors, *found.values()),
            (m, *_steps(tensors)),
            options,
        )
    return found


def backward_kernel(
    forms: Forms, values: dict, constants: dict, wanted: dict, sizes: tuple[int, int]
) -> dict:
    """{name: gradient}, and the values themselves.

    Args:  wanted: {input: (shape, dtype)} of those that need a gradient; sizes: M and N
    """
    from ..triton_kernels import configuration, launch

    call, kinds = forms.call, forms.call.kinds
    if not call.written:
        return values
    tensors = {name: _laid_out(values[name]) for name in call.loaded}
    streams = [t for t in tensors.values() if t.dim() == 2]
    first, acc = (
        next(iter(tensors.values())),
        accumulator(values[call.seeds[call.outputs[0]]].dtype),
    )
    m, n = sizes
    device, tile = (
        configuration.device_of(first),
        _whole_rows(configuration.backward_tile(n, acc.itemsize), n, acc),
    )
    programs = configuration.programs(max(m, 1), n, tile, device, False)
    due = {
        call.gradients[name]: (kinds[name], dtype)
        for name, (_, dtype) in wanted.items()
    }
    shapes = {TILE: (m, n), ROW: (m,), COLUMN: (programs, n), NUMBER: (programs,)}
    # where there are no rows nothing is launched, and nothing would write them
    new = first.new_empty if m > 0 else first.new_zeros
    found = dict.fromkeys(call.written)
    for name, (kind, dtype) in due.items():
        if name in found:
            found[name] = new(shapes[kind], dtype=dtype if kind in (TILE, ROW) else acc)
    if m > 0 and any(t is not None for t in found.values()):
        stages = (
            launch.stage_options(tile, device, *streams) if streams else {"STAGES": 1}
        )
        options = {**_options(n, acc), **launch.tile_options(tile), **stages}
        options |= {one: constants[one] for one in call.backward_constants}
        # as the package's own backward, which says why
        odd = options["VECTOR"] == 1 and first.element_size() > 2
        options |= (
            {}
            if odd or tile.warps > configuration.WARPS_PER_MULTIPROCESSOR
            else configuration.REGISTERS
        )
        _run(
            forms.kernels[1],
            programs,
            (*tensors.values(), *found.values()),
            (m, *_steps(tensors.values())),
            options,
        )
    return {**values, **_added_up(found, due, programs, n)}


def _added_up(found, due, programs, n):
    """The shares of all programs, added up, two vectors a launch."""
    from ..triton_kernels import launch

    shares = {
        name: t for name, t in found.items() if t is not None and due[name][0] == COLUMN
    }
    sums = {name: t.new_zeros(n, dtype=due[name][1]) for name, t in shares.items()}
    names = list(shares)
    for place in range(0, len(names), 2):
        pair = names[place : place + 2]
        launch.reduce_sums(
            [shares[name] for name in pair], [sums[name] for name in pair], programs, n
        )
    numbers = {
        name: t.sum()
        for name, t in found.items()
        if t is not None and due[name][0] == NUMBER
    }
    return {**found, **sums, **numbers}


def _whole_rows(tile, n, acc):
    """The package's tile; for a row that the package would sweep over, all warps that a block can have."""
    from ..triton_kernels.configuration import Tile

    most = MOST_COLUMNS[acc.itemsize]
    if n > most:
        raise ValueError(
            f"N: got {n} columns, and a program holds rows of at most {most}; use .torch for longer ones"
        )
    return (
        Tile(1, 1 << (n - 1).bit_length(), MOST_WARPS, sweeps=False)
        if tile.sweeps
        else tile
    )


def _laid_out(t):
    from ..triton_kernels import launch

    return launch.aligned_rows(t) if t.dim() else t


def _options(n, acc):
    from ..triton_kernels import launch
    from ..triton_kernels.interpreter import tl

    return {
        "N": n,
        "VECTOR": launch.stride_unit(n),
        "ACC": tl.float64 if acc == torch.float64 else tl.float32,
    }


def _steps(tensors):
    from ..triton_kernels import launch

    return [launch.step_of(t) for t in tensors if t.dim() == 2]


def _run(kernel, programs, tensors, steps, options):
    import numpy

    from ..triton_kernels import launch

    # rows past M are rows of zeros; what the interpreter says of their quotients concerns no number that is stored
    with numpy.errstate(all="ignore"):
        launch.launch_kernel(kernel, (programs,), *tensors, *steps, **options)
