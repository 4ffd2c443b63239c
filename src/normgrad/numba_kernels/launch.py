"""forward and backward on rows of torch tensors in the CPU's memory: what is allocated, and who runs which program."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from ..torch_ops.differentiable import accumulator, cast, full_weight, promoted, total
from ..torch_ops.rows import unwritten
from . import kernels

# Programs of a launch, whatever the number of threads, so that dw and db are the same bits with any of them.
PROGRAMS = 16
# Elements that one more program is worth: it costs some 20 microseconds to hand it to a thread.
ELEMENTS_PER_PROGRAM = 32768
# NumPy's view of a tensor of 16 bits.
WORDS = {torch.bfloat16: torch.uint16, torch.float16: torch.int16}
NUMBERS = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.bfloat16: np.uint16,
    torch.float16: np.int16,
}
# Rows of more columns are summed in float64, which takes up to 70 % longer on 16 bits in cache. In float32 s of a row
# of 10**7 columns is off by 1.6e-5 of itself.
LONG = 2**15
# The largest rstd of a row whose squares are numbers with all their digits.
MOST = {torch.float64: np.float64(2.0**511), torch.float32: np.float32(2.0**63)}


# What GNU OpenMP calls in each of its threads; the argument is not used.
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@lru_cache(maxsize=1)
def _openmp():
    """GOMP_parallel of the GNU OpenMP that torch runs on; None in a forked process, or where torch has another one.

    torch's workers keep a core busy for some milliseconds after each of its operations, waiting for the next one. Other
    threads would have to share the cores with them: a third of the speed between two operations of torch.
    """
    if FORKED:
        return None
    for file in Path(torch.__file__).parent.glob("lib/libgomp*"):
        run = ctypes.CDLL(str(file)).GOMP_parallel
        run.argtypes, run.restype = (
            (BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint),
            None,
        )
        return run
    return None


@lru_cache(maxsize=1)
def _threads():
    """The threads that run programs beside the caller's own where torch's cannot, started when they are needed."""
    return ThreadPoolExecutor(os.cpu_count(), "normgrad")


def _is_forked() -> bool:
    """Whether the process began as a copy of another one, by what Linux says of it."""
    stat = Path("/proc/self/stat")
    if not stat.is_file():
        return False
    flags = stat.read_text().rpartition(")")[2].split()[6]
    return int(flags) & PF_FORKNOEXEC != 0


def _after_fork():
    global FORKED
    FORKED = True
    _threads.cache_clear()
    _openmp.cache_clear()


# A forked process has none of its parent's threads: it starts its own. GNU OpenMP would wait for the parent's for ever.
PF_FORKNOEXEC = 0x40
FORKED = _is_forked()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_device(device):
    """An error where the kernels cannot run on the device."""
    if device.type != "cpu":
        raise ValueError(
            f"backend: 'numba' got a {device.type} tensor, needs one on the CPU"
        )


def programs(m: int, n: int) -> int:
    """How many programs share m rows of n columns; the order of the sums dw and db follows from it."""
    return max(1, min(PROGRAMS, m, m * n // ELEMENTS_PER_PROGRAM))


def _launch(kernel, count, *arguments):
    """Run each of the programs once, in as many threads as torch takes."""
    if count == 1:
        kernel(0, 1, *arguments)
        return
    waiting, errors = iter(range(count)), []

    def run(_=None):
        try:
            for program in waiting:
                kernel(program, count, *arguments)
        except BaseException as error:  # C has nobody to raise it to
            errors.append(error)

    _in_threads(run, min(count, torch.get_num_threads()))
    if errors:
        raise errors[0]


def _in_threads(run: Callable, count: int):
    """Call run in the caller's thread and in others, count in all."""
    if (parallel := _openmp()) is not None:
        parallel(BODY(run), None, count, 0)
        return
    others = [_threads().submit(run) for _ in range(count - 1)]
    run()
    for other in others:
        if not other.cancel():
            other.result()


def _common(acc, first, *others):
    """The one dtype of all that are there, where its sums are in acc; else acc."""
    for dtype in others:
        if dtype is not None and dtype != first:
            return acc
    return first if accumulator(first) == acc else acc


def _plain(t, dtype):
    """The tensor in a dtype; a kernel sees memory, not torch's lazy negation."""
    if t.dtype != dtype:
        return t.to(dtype)
    return t.resolve_neg() if t.is_neg() else t


def _rows(dtype, *tensors):
    """What kernels.row takes for each of the rows (M, N) or (M, H, N); None for None.

    All without gaps, or all with a stride of rows and one of heads, where one of them is laid out so: then no other
    mixture has to be compiled. What has gaps in its rows is copied.
    """
    found = [None if t is None else _plain(t, dtype) for t in tensors]
    if not any(
        [t is not None and t.dim() != 2 and not t.is_contiguous() for t in found]
    ):
        return [None if t is None else _array(_flat(t.contiguous())) for t in found]
    return [
        None if t is None else _strided(t if t.stride(-1) == 1 else t.contiguous())
        for t in found
    ]


def _flat(t):
    """Rows without gaps as (M, N)."""
    return t if t.dim() == 2 else t.view(-1, t.shape[-1])


def _strided(t):
    """(memory, heads, step, head_step, N) of rows (M, H, N) with their numbers next to each other."""
    (m, heads, n), (step, head_step, _) = t.shape, t.stride()
    memory = t.as_strided(((m - 1) * step + (heads - 1) * head_step + n,), (1,))
    return _array(memory), heads, step, head_step, n


def _array(t):
    """The tensor's memory as NumPy sees it."""
    words = WORDS.get(t.dtype)
    return (t if words is None else t.view(words)).numpy(force=True)


def _vector(t, n, acc, absent):
    """weight or bias in the dtype of the sums, and what stands for it where there is none.

    A copy: torch resizes no memory that NumPy has seen, and FSDP2 resizes that of parameters.
    """
    if t is None:
        return np.full(n, absent, NUMBERS[acc])
    return _array(_plain(t, acc).clone(memory_format=torch.contiguous_format))


def _weight(weight, n, acc, spec):
    """weight_offset + weight, once for all rows; ones where there is no weight."""
    return _vector(
        None if weight is None else full_weight(weight, acc, spec), n, acc, 1
    )


def _absent(rows, dtype):
    """Rows without columns."""
    return np.empty((rows, 0), NUMBERS[dtype])


@lru_cache(maxsize=256)
def _numbers(spec, n, acc):
    """N, n, the zero of the sums over a row, center, scale, eps and placement, in the dtype of the statistics."""
    number, place = NUMBERS[acc], getattr(kernels, spec.placement.upper())
    zero = np.float64(0) if n > LONG else number(0)
    return (
        number(n),
        number(spec.count(n)),
        zero,
        spec.center,
        number(spec.scale),
        number(spec.eps),
        place,
    )


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
    """(y, residual_out, mean, rstd) for rows x (M, N) or (M, H, N), by one launch.

    Args, Returns: as torch_rows.forward
    Numerics: sums in float32, in float64 for float64 and for rows of more than LONG columns; to the mean the mean of
              p - mean is added; the variance is centred first; y of a row is the same bits whatever the number of rows
              and the row's place among them. Where x, residual, y and residual_out are of one dtype each crosses memory
              once; else torch converts them to the dtype of the sums, and back
    """
    n, acc = x.shape[-1], accumulator(promoted(x, residual))
    m, out_dtype = x.numel() // n, out_dtype or x.dtype
    dtypes, residual_out = [x.dtype, out_dtype], None
    if residual is not None:
        residual_dtype = residual_dtype or promoted(x, residual)
        dtypes += [residual.dtype, residual_dtype if round_residual else acc]
    dtype = _common(acc, *dtypes)
    summands, sums = None, _absent(m, dtype)
    if residual is not None and dtype == residual_dtype:
        residual_out = unwritten(x, dtype)
        summands, sums = residual, _array(_flat(residual_out))
    elif residual is not None:
        x, residual_out = total(
            x.detach(), residual.detach(), residual_dtype, round_residual
        )
    y = unwritten(x, dtype)
    mean, rstd = np.empty(m, NUMBERS[acc]), np.empty(m, NUMBERS[acc])
    x, summands = _rows(dtype, x, summands)
    summands = _absent(m, dtype) if summands is None else summands
    inputs = (x, summands, _weight(weight, n, acc, spec), _vector(bias, n, acc, 0))
    outputs = (_array(_flat(y)), sums, mean, rstd)
    _launch(
        kernels.forward,
        programs(m, n),
        *inputs,
        *outputs,
        *_numbers(spec, n, acc),
        MOST[acc],
    )
    mean = torch.from_numpy(mean) if spec.center else None
    return cast(y, out_dtype), residual_out, mean, torch.from_numpy(rstd)


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
    """(dx, dresidual, dw, db) for rows p = x + residual, by one launch and a sum for dw and db each.

    Args, Returns: as torch_rows.backward
    Numerics: as forward; dx of a row is the same bits whatever the number of rows and the row's place, but may have
              others where dw or db is not asked for: one loop makes both sums and these two; dw and db are summed in an
              order that depends on M and N alone, with portable_sums or without
    """
    m, n, acc = rstd.numel(), p.shape[-1], rstd.dtype
    count, vector = programs(m, n), p.shape[-1 - per_head :]
    wanted = {one for one in dtypes[:2] if one is not None}
    dtype = _common(
        acc,
        dy.dtype,
        p.dtype,
        None if dresidual_out is None else dresidual_out.dtype,
        *wanted,
    )
    dx = unwritten(p, dtype) if wanted else None
    partial = [
        _absent(count, acc) if one is None else np.zeros((count, *vector), NUMBERS[acc])
        for one in dtypes[2:]
    ]
    dy_rows, from_sum, p_rows = _rows(dtype, dy, dresidual_out, p)
    from_sum = _absent(m, dtype) if from_sum is None else from_sum
    # Rows that are not centred have the mean 0.
    mean = np.zeros(m, NUMBERS[acc]) if mean is None else _array(mean)
    inputs = (dy_rows, from_sum, p_rows, _weight(weight, n, acc, spec), mean)
    outputs = (_absent(m, dtype) if dx is None else _array(_flat(dx)), *partial)
    _launch(
        kernels.backward,
        count,
        *inputs,
        _array(rstd),
        *outputs,
        *_numbers(spec, n, acc),
    )
    made = {one: cast(dx, one) for one in wanted}
    return made.get(dtypes[0]), made.get(dtypes[1]), *map(_reduced, partial, dtypes[2:])


def _reduced(partial, dtype):
    """The programs' sums, added up and rounded once; None where they are not wanted."""
    if dtype is None:
        return None
    if len(partial) == 1:
        return cast(torch.from_numpy(partial[0]), dtype)
    sums = np.zeros(partial[0].size, partial.dtype)
    kernels.reduce_partials(partial.reshape(len(partial), -1), sums)
    return cast(torch.from_numpy(sums.reshape(partial.shape[1:])), dtype)
