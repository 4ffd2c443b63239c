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
P, K, W = dim("P"), dim("K"), dim("W")


def _letters(*names: str):
    return tuple(Symbol(name, positive=True) for name in names)


e, A, F, S, V, Q = _letters("e", "A", "F", "S", "V", "Q")
forward, backward, add_forward, add_backward = _letters("forward", "backward", "add_forward", "add_backward")
addition, two_kernels, matrix, persistent, P_0 = _letters("addition", "two_kernels", "matrix", "persistent", "P0")
rms, layer, rms_add, layer_add = _letters("rms", "layer", "rms_add", "layer_add")
intensity, operations, moved, bandwidth, rate = _letters("intensity", "operations", "bytes", "bandwidth", "rate")
in_flight, duration, latency = _letters("in_flight", "T", "latency")
live, per_thread, programs, registers = _letters("live", "per_thread", "programs", "R")
size = tensor("size", K, positive=True)


def sizes() -> Defs:
    """Bytes of each kind of array, counted number by number.

    A activations, F as many numbers in float32, S a statistic, V a parameter, Q the partial rows of a parameter.
    """
    defs = Defs()
    defs[A] = e * over_all(lambda r, s: ONE)
    defs[F] = 4 * over_all(lambda r, s: ONE)
    defs[S] = 4 * total(M, lambda r: ONE)
    defs[V] = e * total(N, lambda s: ONE)
    defs[Q] = 4 * total(P, lambda r: total(N, lambda s: ONE))
    return defs


def kernels() -> Defs:
    """Bytes of LayerNorm's kernels; each bracket is what one kernel reads or what it writes."""
    defs = sizes()
    defs[forward] = (A + 2 * V) + (A + 2 * S)
    defs[backward] = (2 * A + 2 * S + V) + (A + 2 * V)
    defs[add_forward] = (2 * A + 2 * V) + (2 * A + 2 * S)
    defs[add_backward] = (3 * A + 2 * S + V) + (A + 2 * V)
    defs[addition] = 2 * A + A
    defs[two_kernels] = (2 * A + 2 * S + V) + A + (2 * A + 2 * S) + 2 * V
    defs[matrix] = (2 * A + 2 * S + V) + (A + F) + (A + F) + 2 * V
    defs[persistent] = (2 * A + 2 * S + V) + (A + 2 * Q) + 2 * Q + 2 * V
    defs[P_0] = M * (e * N + 4) / (8 * N)
    return defs


def published() -> Defs:
    """One timed backward of source 000's repository, gradients kept: kernels, column sums, additions to .grad."""
    defs = sizes()
    defs[rms] = (2 * A + S + V) + (A + F) + (F + V) + 3 * A
    defs[layer] = (2 * A + 2 * S + V) + (A + F) + (F + V) + (A + V) + 3 * A
    defs[rms_add] = A + (4 * A + S + V) + (A + F) + (F + V) + 6 * A
    defs[layer_add] = A + (4 * A + 2 * S + V) + (A + F) + (F + V) + (A + V) + 6 * A
    return defs


def _floor():
    defs, entries = kernels(), M * N
    yield definition("bytes-sizes", "Bytes of each kind of array.", defs, A, F, S, V, Q)
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
    yield together(
        "bytes-fusing", "A separate addition moves one array more forward and two more backward.", defs,
        (addition + forward - add_forward, A, e * M * N), (backward + addition - add_backward, 2 * A, 2 * e * M * N),
        kind=FOLLOWS,
    )  # fmt: skip


def _designs():
    defs, entries = kernels(), M * N
    yield definition(
        "bytes-designs", "Bytes of three ways to sum dw and db over the rows.", defs, two_kernels, matrix, persistent
    )
    yield together(
        "bytes-over-floor", "What each way moves beyond the floor.", defs,
        (two_kernels - backward, 2 * A + 2 * S, 2 * e * M * N + 8 * M),
        (matrix - backward, 2 * F + A, (8 + e) * M * N), (persistent - backward, 4 * Q, 16 * P * N),
        kind=FOLLOWS,
    )  # fmt: skip
    yield proved(
        "bytes-partials", "The price of the partial rows, as a share of the three arrays of the floor.", defs,
        (persistent - backward) / (3 * A), 16 * P / (3 * e * M),
        kind=FOLLOWS,
    )  # fmt: skip
    yield definition("bytes-even-rows", "The number of partial rows at which nothing is gained.", defs, P_0)
    yield proved(
        "bytes-break-even", "Partial rows are the lighter way as long as there are fewer than P0 of them.", defs,
        (two_kernels - persistent) / entries, 16 * (P_0 - P) / M,
        kind=FOLLOWS,
    )  # fmt: skip


def _published():
    defs, entries = published(), M * N
    yield definition(
        "bytes-published", "Bytes in the timed region of a published benchmark.", defs,
        rms, layer, rms_add, layer_add,
    )  # fmt: skip
    yield together(
        "bytes-published-entry", "The same per entry.", defs,
        (rms / entries, 6 * e + 8 + 4 / N + 2 * e / M), (layer / entries, 7 * e + 8 + 8 / N + 3 * e / M),
        (rms_add / entries, 12 * e + 8 + 4 / N + 2 * e / M),
        (layer_add / entries, 13 * e + 8 + 8 / N + 3 * e / M),
        kind=FOLLOWS,
    )  # fmt: skip


def _roofline():
    defs = Defs()
    defs[intensity] = operations / moved
    yield definition("bytes-intensity", "Arithmetic intensity: operations per byte.", defs, intensity)
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
        "bytes-in-flight", "K requests in a time T, each of them under way for the latency.", defs, bandwidth, in_flight
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
    """The equations labelled bytes-...: sizes, kernels, the floor, what is beyond it, and what the machine needs."""
    for section in (_roofline, _floor, _designs, _little, _registers, _published):
        yield from section()
