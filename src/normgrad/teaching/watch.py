"""A kernel under observation: in Triton's interpreter each load and store is seen, and so are races and strays.

`with watch() as seen:` around launches; then `seen.requested`, `seen.races()`, `seen.outside()`, `seen.log("dw")`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .at_once import Programs
from .counted import Access, Accesses, accesses
from .places import Argument, Table, merged, numbers

COMPILED = (
    "watch: needs Triton's interpreter, but triton was imported to compile; "
    "set the environment variable TRITON_INTERPRET=1 before triton is first imported"
)


@dataclass
class Launch:
    """One launch: the kernel's name, the number of its programs, its tensors, and its accesses in order."""

    kernel: str
    arguments: list[Argument]
    accesses: list[Access] = field(default_factory=list)
    programs: int = 0

    @property
    def requested(self) -> int:
        """Bytes that the launch loads plus bytes that it stores, as often as they are asked for."""
        counted = Accesses()
        for access in self.accesses:
            counted.add(access)
        return counted.requested

    def argument(self, access: Access) -> Argument:
        """The argument that the access goes to: the one that its first address lies in, or nearest to."""
        first = int(access.touched.flat[0])
        return min(self.arguments, key=lambda argument: argument.distance(first))

    def inside(self, access: Access) -> np.ndarray:
        """Which of the touched addresses are numbers of some argument."""
        found = np.zeros(access.touched.shape, bool)
        for argument in self.arguments:
            found |= argument.holds(access.touched)
        return found

    def races(self):
        """(address, programs that load it, that store it, that update it atomically) for each address of a race."""
        kinds = ("load", "store", "atomic")
        parts = [np.zeros((0, 3), np.int64)]
        for access in self.accesses:
            touched = np.unique(access.touched[self.inside(access)])
            who, what = (np.full_like(touched, one) for one in (access.program, kinds.index(access.kind)))
            parts.append(np.stack([touched, who, what], -1))
        rows = np.unique(np.concatenate(parts), axis=0)
        several = np.unique(rows[:, :2], axis=0)[:, 0]
        shared, programs = np.unique(several, return_counts=True)
        changed = np.unique(rows[rows[:, 2] > 0, 0])
        plain = np.unique(rows[rows[:, 2] < 2, 0])  # atomics alone do not race with each other
        for address in shared[(programs > 1) & np.isin(shared, changed) & np.isin(shared, plain)]:
            found = rows[np.searchsorted(rows[:, 0], address) : np.searchsorted(rows[:, 0], address, "right")]
            yield int(address), *(tuple(found[found[:, 2] == kind, 1].tolist()) for kind in range(3))


class Seen:
    """What kernels did while they were watched: launches, and counted, the Accesses of all of them."""

    def __init__(self):
        self.launches: list[Launch] = []
        self.counted = Accesses()

    @property
    def requested(self) -> int:
        """Bytes loaded plus bytes stored by all launches, as often as asked for; masked lanes do not count."""
        return self.counted.requested

    @property
    def distinct(self) -> int:
        """Bytes at different addresses, loaded plus stored: what is left if every repeated access hits a cache."""
        return self.counted.distinct

    def races(self) -> Table:
        """The places that one program stores to and another one loads from or stores to in the same launch.

        Nothing orders the programs of a launch, so the result depends on luck. Atomics alone are no race. What a lock
        protects is listed all the same: the watcher sees addresses, not intentions.

        Returns:  a Table of (kernel, place, loaded by, stored by), which is empty where there is no race
        """
        rows = []
        for launch in self.launches:
            for address, loads, stores, updates in launch.races():
                argument = next(one for one in launch.arguments if one.holds(np.array([address])).any())
                programs = numbers((*loads, *updates)), numbers((*stores, *updates))
                rows.append(((launch.kernel, argument.name, *programs), argument.index(address)))
        shown = [(kernel, place, loads, stores) for (kernel, _, loads, stores), place in merged(rows)]
        return Table("race", ("kernel", "place", "loaded by programs", "stored by programs"), shown)

    def outside(self) -> Table:
        """The accesses to memory that is no number of any argument; they are kept from memory, and loads give 0.

        An access that leaves one argument and hits a number of another one by chance cannot be told from a right one.

        Returns:  a Table of (kernel, program, what it does, argument, offsets, those that exist), empty if all is well
        """
        rows = []
        for launch in self.launches:
            for access in launch.accesses:
                stray = access.touched[~launch.inside(access)]
                if stray.size:
                    nearest = min(launch.arguments, key=lambda one, at=int(stray[0]): one.distance(at))
                    offsets = (int(end - nearest.start) // access.size for end in (stray.min(), stray.max()))
                    which = " to ".join(map(str, dict.fromkeys(offsets)))
                    rows.append((launch.kernel, access.program, access.kind, nearest.name, which, nearest.extent()))
        titles = ("kernel", "program", "does", "argument", "offsets", "it has")
        return Table("access outside", titles, list(dict.fromkeys(rows)))

    def log(self, argument: str | None = None) -> Table:
        """All accesses in the order in which the interpreter made them; argument: of this one alone."""
        rows = []
        for launch in self.launches:
            for access in launch.accesses:
                for to in launch.arguments:
                    inside = np.unique(access.touched[to.holds(access.touched)])
                    if inside.size and argument in (None, to.name):
                        places = merged([((to.name,), to.index(int(address))) for address in inside])
                        what = ", ".join(place for _, place in places)
                        rows.append((launch.kernel, access.program, access.kind, what))
        return Table("access", ("kernel", "program", "does", "place"), rows)

    def arguments(self) -> Table:
        """Bytes by argument: (argument, bytes loaded, bytes stored, bytes that it has), over all launches."""
        found, sizes = {}, {}
        for launch in self.launches:
            for access in filter(lambda one: one.touched.size, launch.accesses):
                to = launch.argument(access)
                sizes[to.name] = to.bytes
                sides = found.setdefault(to.name, {"load": 0, "store": 0})
                for side in sides:
                    sides[side] += access.size * access.touched.size * (access.kind in (side, "atomic"))
        rows = [(name, sides["load"], sides["store"], sizes[name]) for name, sides in found.items()]
        return Table("argument", ("argument", "loaded", "stored", "it has"), rows)


class _Watcher:
    """Notes launches and accesses in a Seen. Args: at_once: as watch"""

    def __init__(self, at_once):
        self.seen, self.at_once, self.running = Seen(), at_once, []

    def look(self, access):
        """The mask that an access is made with: nothing outside of the arguments' memory."""
        if not self.running:
            return access.mask
        launch, programs = self.running[-1]
        launch.accesses.append(access)
        launch.programs = max(launch.programs, access.program + 1)
        self.seen.counted.add(access)
        allowed = np.zeros(access.mask.shape, bool)
        for argument in launch.arguments:
            allowed |= argument.reachable(access.addresses, access.size)
        if programs is not None:
            programs.before(access, access.mask & allowed)
        return access.mask & allowed

    def launched(self, executor, original, args, kwargs):
        """What a launch returns, watched."""
        named = dict(zip(executor.arg_names, args, strict=False)) | kwargs
        tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
        launch = Launch(executor.fn.__name__, [Argument(name, tensor) for name, tensor in tensors.items()])
        self.seen.launches.append(launch)
        programs = Programs(tensors.values()) if self.at_once else None
        self.running.append((launch, programs))
        try:
            # The interpreter copies arguments to the CPU and back with torch, which is no part of the kernel.
            with _disable_current_modes():
                return original(executor, *args, **kwargs)
        finally:
            self.running.pop()
            if programs is not None:
                programs.end()


@contextlib.contextmanager
def watch(at_once: bool = False):
    """A context that watches the Triton kernels launched in it; its value is a Seen.

    Args:    at_once: let no program see what another program of its launch stores, as may happen on a GPU, where they
             run at the same time; stores then take effect in the order of the programs. A kernel without a race gives
             the same numbers either way. The interpreter alone runs one program after the other
    Raises:  RuntimeError where Triton was imported to compile; ValueError for a tensor that is not on the CPU
    """
    from ..triton_kernels.interpreter import INTERPRETED

    if not INTERPRETED:
        raise RuntimeError(COMPILED)
    from triton.runtime.interpreter import GridExecutor

    watcher, original = _Watcher(at_once), GridExecutor.__call__
    GridExecutor.__call__ = lambda self, *args, **kwargs: watcher.launched(self, original, args, kwargs)
    try:
        with accesses(watcher.look):
            yield watcher.seen
    finally:
        GridExecutor.__call__ = original
