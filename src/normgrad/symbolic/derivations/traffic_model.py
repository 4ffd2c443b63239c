"""Bytes moved by LayerNorm and its backward, as sums over named arrays; with them the roofline and Little's law.

The same sums for every operator and dtype, as numbers, are in `normgrad.teaching.bytes`. What is no definition here
rearranges definitions: it follows from them, and is no theorem.
"""

from __future__ import annotations

from sympy import Integer, Symbol

from ..definitions import Defs
from ..notation import dim, tensor, total
from ..registry import FOLLOWS, definition, proved, together
from ..symbols import M, N, over_all

ONE = Integer(1)
K, W = dim("K"), dim("W")


def _letters(*names: str):
    return tuple(Symbol(name, positive=True) for name in names)


e, A, S, V = _letters("e", "A", "S", "V")
forward, backward, add_forward, add_backward = _letters(
    "forward", "backward", "add_forward", "add_backward"
)
(addition,) = _letters("addition")
intensity, operations, moved, bandwidth, rate = _letters(
    "intensity", "operations", "bytes", "bandwidth", "rate"
)
in_flight, duration, latency = _letters("in_flight", "T", "latency")
live, per_thread, programs, registers = _letters("live", "per_thread", "programs", "R")
size = tensor("size", K, positive=True)


def sizes() -> Defs:
    """Bytes of each kind of array, counted number by number: A activations, S a statistic, V a parameter."""
    defs = Defs()
    defs[A] = e * over_all(lambda r, s: ONE)
    defs[S] = 4 * total(M, lambda r: ONE)
    defs[V] = e * total(N, lambda s: ONE)
    return defs


def kernels() -> Defs:
    """Bytes of LayerNorm's kernels; each bracket is what one kernel reads or what it writes."""
    defs = sizes()
    defs[forward] = (A + 2 * V) + (A + 2 * S)
    defs[backward] = (2 * A + 2 * S + V) + (A + 2 * V)
    defs[add_forward] = (2 * A + 2 * V) + (2 * A + 2 * S)
    defs[add_backward] = (3 * A + 2 * S + V) + (A + 2 * V)
    defs[addition] = 2 * A + A
    return defs


def _floor():
    defs, entries = kernels(), M * N
    yield definition("bytes-sizes", "Bytes of each kind of array.", defs, A, S, V)
    yield definition(
        "bytes-kernels", "Bytes of LayerNorm's kernels, read and written.", defs,
        forward, backward, add_forward, add_backward, addition,
    )  # fmt: skip
    yield together(
        "bytes-floor", "The floor per entry: each input read once, each output written once.", defs,
        (forward / entries, 2 * e + 8 / N + 2 * e / M), (backward / entries, 3 * e + 8 / N + 3 * e / M),
        (add_forward / entries, 4 * e + 8 / N + 2 * e / M), (add_backward / entries, 4 * e + 8 / N + 3 * e / M),
        kind=FOLLOWS,
    )  # fmt: skip


def _roofline():
    defs = Defs()
    defs[intensity] = operations / moved
    yield definition(
        "bytes-intensity", "Arithmetic intensity: operations per byte.", defs, intensity
    )
    yield proved(
        "bytes-ridge", "Moving takes longer than computing exactly below the intensity rate / bandwidth.", defs,
        moved / bandwidth - operations / rate, moved / rate * (rate / bandwidth - intensity),
        kind=FOLLOWS,
    )  # fmt: skip


def _little():
    defs = Defs()
    defs[bandwidth] = 1 / duration * total(K, lambda r: size[r])
    defs[in_flight] = 1 / duration * total(K, lambda r: size[r] * latency)
    yield definition(
        "bytes-in-flight",
        "K requests in a time T, each of them under way for the latency.",
        defs,
        bandwidth,
        in_flight,
    )
    yield proved(
        "bytes-little", "Little's law: bytes under way are bandwidth times latency.", defs,
        in_flight, bandwidth * latency,
        kind=FOLLOWS,
    )  # fmt: skip


def _registers():
    defs = Defs()
    defs[per_thread] = live * N / (32 * W)
    defs[programs] = registers / (32 * W * per_thread)
    yield definition(
        "bytes-registers",
        "Registers of a thread, and programs that fit on a multiprocessor.",
        defs,
        per_thread,
        programs,
    )
    yield proved(
        "bytes-programs", "How many programs fit does not depend on the number of warps.", defs,
        programs, registers / (live * N),
        kind=FOLLOWS,
    )  # fmt: skip


def equations():
    """The equations labelled bytes-...: sizes, kernels, the floor, and what the machine needs."""
    for section in (_roofline, _floor, _little, _registers):
        yield from section()
