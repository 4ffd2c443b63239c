"""One shape, measured: which implementations are right, and the rounds that interleave those that are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from . import guard
from .contenders import Unavailable, reference
from .plan import Shape, sets
from .record import COPY
from .work import Inputs, call, copies

# Calls in one replay, at least: what stands between two replays is shared by so many.
CALLS = 16
# Seconds that one timing takes, about, and rounds whose times are dropped: the clocks of an idle GPU rise in them.
TIMING, WARM_ROUNDS = 5e-3, 3
# Calls whose host time is taken together, few enough that the queue of launches never fills, and how often.
HOST_CALLS, HOST_ROUNDS = 20, 5


@dataclass
class Timed:
    """One implementation in one direction: how a run is made, and its times."""

    call: object
    count: int
    calls: int
    run: object = None
    method: str = "graph"
    repeats: int = 1
    seconds: list = field(default_factory=list)
    host_seconds: list = field(default_factory=list)

    def work(self):
        """All calls of one run; results of a set live until the set's turn comes again, so that no two share memory."""
        kept = [None] * self.count
        for k in range(self.calls):
            kept[k % self.count] = None
            kept[k % self.count] = self.call(k % self.count)
        return kept

    def prepare(self, device):
        """Warm up, capture where that works, and find how many runs make one timing."""
        for _ in range(2):
            self.work()
        device.synchronize()
        try:
            self.run = device.capture(self.work)
        except Exception as error:
            self.run, self.method = self.work, f"events ({_first_line(error)})"
        device.seconds(self.run, 1)
        once = device.seconds(self.run, 1)
        self.repeats = max(1, math.ceil(TIMING / once)) if once > 0 else 1

    def time(self, device):
        """One timing: device seconds of one call."""
        self.seconds.append(device.seconds(self.run, self.repeats) / self.calls)

    def time_host(self, device):
        """Host seconds of one call that is not replayed, from an idle device on; the device's time is no part of it."""
        device.synchronize()
        start = device.clock()
        for k in range(HOST_CALLS):
            self.call(k % self.count)
        self.host_seconds.append((device.clock() - start) / HOST_CALLS)
        device.synchronize()

    def release(self):
        """Keep the times alone: graphs, outputs and buffers go."""
        self.call = self.run = None


def _first_line(error):
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"


def admitted(shape: Shape, builders: dict, inputs: Inputs):
    """({name: function}, {name: differences}, {name: why it is not timed}), by comparison with the reference.

    Args:  shape; builders: as contenders.contenders; inputs: the set that is compared on
    """
    right = guard.outcome(reference(shape.operator), inputs.arguments, inputs.cotangents)
    allowed = guard.limit(shape.dtype, shape.rows, shape.columns)
    functions, found, refused = {}, {}, {}
    for name, build in builders.items():
        try:
            function = build(shape.operator)
            found[name] = guard.differences(guard.outcome(function, inputs.arguments, inputs.cotangents), right)
        except Unavailable as error:
            refused[name] = str(error)
        except Exception as error:
            refused[name] = _first_line(error)
        else:
            wrong = guard.refusal(found[name], allowed)
            if wrong is None:
                functions[name] = function
            else:
                refused[name] = wrong
    return functions, found, refused


def direction(shape: Shape, which: str, functions: dict, drawn, device, generator, rounds: int):
    """({name: Timed}, {name: why it was not timed}) of one direction, the copy of the same bytes among them.

    Args:  shape; which: the direction; functions: {name: function}; drawn: the sets; device: as device.Cuda;
           generator: on that device; rounds: at least 1
    """
    device.fresh()
    moved = shape.moved(which).total
    count = min(len(drawn), sets(moved, device.l2_bytes))
    calls = count * math.ceil(CALLS / count)
    timed, failed = {COPY: Timed(copies(moved, count, device.torch_device, generator), count, calls)}, {}
    timed[COPY].prepare(device)
    for name, function in functions.items():
        try:
            one = Timed(call(function, which, drawn[:count]), count, calls)
            one.prepare(device)
        except Exception as error:
            failed[name] = _first_line(error)
        else:
            timed[name] = one
    _rounds(timed, device, rounds)
    for one in timed.values():
        one.release()
    return timed, failed


def _rounds(timed, device, rounds):
    """Time every implementation once a round, in an order that rotates; the warm rounds are dropped."""
    names = list(timed)
    for round_ in range(WARM_ROUNDS + rounds):
        for k in range(len(names)):
            timed[names[(round_ + k) % len(names)]].time(device)
    for one in timed.values():
        del one.seconds[:WARM_ROUNDS]
        for _ in range(HOST_ROUNDS):
            one.time_host(device)
