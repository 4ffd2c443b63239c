"""A kernel under observation: in Triton's interpreter each load and store is seen, and so are races and strays.

`with watch() as seen:` around launches; then `seen.requested`, `seen.races()`, `seen.outside()`, `seen.log("dw")`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .places import Argument, Table, merged, numbers

COMPILED = (
    "watch: needs Triton's interpreter, but triton was imported to compile; "
    "set the environment variable TRITON_INTERPRET=1 before triton is first imported"
)


@dataclass(frozen=True)
class Access:
    """One load, store or atomic of a program: its kind, the program's number, bytes of a number, addresses and mask."""

    kind: str
    program: int
    size: int
    addresses: np.ndarray
    mask: np.ndarray

    @property
    def touched(self) -> np.ndarray:
        """The addresses that the mask lets through."""
        return self.addresses[self.mask]

    def does(self, side: str) -> bool:
        """Whether it loads, or stores; an atomic does both. Args: side: "load" or "store"."""
        return self.kind in (side, "atomic")


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
        total = 0
        for access in self.accesses:
            total += (
                access.size
                * access.touched.size
                * (access.does("load") + access.does("store"))
            )
        return total

    def argument(self, access: Access) -> Argument:
        """The argument that the access goes to: the one that its first address lies in, or nearest to."""
        first = int(access.touched.flat[0])
        return min(self.arguments, key=lambda argument: argument.distance(first))

    def inside(self, access: Access) -> np.ndarray:
        """Which of the touched addresses are numbers of some argument."""
        lies_inside = np.zeros(access.touched.shape, bool)
        for argument in self.arguments:
            lies_inside |= argument.holds(access.touched)
        return lies_inside

    def races(self):
        """(address, programs that load it, that store it, that update it atomically) for each address of a race."""
        kinds = ("load", "store", "atomic")
        parts = [np.zeros((0, 3), np.int64)]
        for access in self.accesses:
            touched = np.unique(access.touched[self.inside(access)])
            who, kind_of = (
                np.full_like(touched, number)
                for number in (access.program, kinds.index(access.kind))
            )
            parts.append(np.stack([touched, who, kind_of], -1))
        rows = np.unique(np.concatenate(parts), axis=0)
        several = np.unique(rows[:, :2], axis=0)[:, 0]
        shared, programs = np.unique(several, return_counts=True)
        changed = np.unique(rows[rows[:, 2] > 0, 0])
        plain = np.unique(
            rows[rows[:, 2] < 2, 0]
        )  # atomics alone do not race with each other
        for address in shared[
            (programs > 1) & np.isin(shared, changed) & np.isin(shared, plain)
        ]:
            rows_at = rows[
                np.searchsorted(rows[:, 0], address) : np.searchsorted(
                    rows[:, 0], address, "right"
                )
            ]
            yield (
                int(address),
                *(
                    tuple(rows_at[rows_at[:, 2] == kind, 1].tolist())
                    for kind in range(3)
                ),
            )


class Seen:
    """What kernels did while they were watched, launch by launch."""

    def __init__(self):
        self.launches: list[Launch] = []

    @property
    def requested(self) -> int:
        """Bytes loaded plus bytes stored by all launches, as often as asked for; masked lanes do not count."""
        return sum(launch.requested for launch in self.launches)

    @property
    def distinct(self) -> int:
        """Bytes at different addresses, loaded plus stored: what is left if every repeated access hits a cache."""
        total = 0
        for side in ("load", "store"):
            addresses = {}
            for launch in self.launches:
                for access in launch.accesses:
                    if access.does(side):
                        addresses.setdefault(access.size, []).append(access.touched)
            total += sum(
                size * len(np.unique(np.concatenate(parts)))
                for size, parts in addresses.items()
            )
        return total

    def races(self) -> Table:
        """The places that one program stores to and another one loads from or stores to in the same launch.

        Nothing orders the programs of a launch, so the result depends on luck. Atomics alone are no race. What a lock
        protects is listed all the same: the watcher sees addresses, not intentions.

        Returns:  a Table of (kernel, place, loaded by, stored by), which is empty where there is no race
        """
        rows = []
        for launch in self.launches:
            for address, loads, stores, updates in launch.races():
                argument = next(
                    candidate
                    for candidate in launch.arguments
                    if candidate.holds(np.array([address])).any()
                )
                programs = numbers((*loads, *updates)), numbers((*stores, *updates))
                rows.append(
                    ((launch.kernel, argument.name, *programs), argument.index(address))
                )
        shown = [
            (kernel, place, loads, stores)
            for (kernel, _, loads, stores), place in merged(rows)
        ]
        return Table(
            "race",
            ("kernel", "place", "loaded by programs", "stored by programs"),
            shown,
        )

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
                    nearest = min(
                        launch.arguments,
                        key=lambda argument, at=int(stray[0]): argument.distance(at),
                    )
                    offsets = (
                        int(end - nearest.start) // access.size
                        for end in (stray.min(), stray.max())
                    )
                    which = " to ".join(map(str, dict.fromkeys(offsets)))
                    rows.append(
                        (
                            launch.kernel,
                            access.program,
                            access.kind,
                            nearest.name,
                            which,
                            nearest.extent(),
                        )
                    )
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
                        places = merged(
                            [((to.name,), to.index(int(address))) for address in inside]
                        )
                        where = ", ".join(place for _, place in places)
                        rows.append((launch.kernel, access.program, access.kind, where))
        return Table("access", ("kernel", "program", "does", "place"), rows)

    def arguments(self) -> Table:
        """Bytes by argument: (argument, bytes loaded, bytes stored, bytes that it has), over all launches."""
        moved, sizes = {}, {}
        for launch in self.launches:
            for access in filter(lambda access: access.touched.size, launch.accesses):
                to = launch.argument(access)
                sizes[to.name] = to.bytes
                sides = moved.setdefault(to.name, {"load": 0, "store": 0})
                for side in sides:
                    sides[side] += access.size * access.touched.size * access.does(side)
        rows = [
            (name, sides["load"], sides["store"], sizes[name])
            for name, sides in moved.items()
        ]
        return Table("argument", ("argument", "loaded", "stored", "it has"), rows)


class Programs:
    """Lets the programs of a launch start from the same memory, as if none saw what another one stores."""

    def __init__(self, tensors):
        self.memory = {}
        for tensor in tensors:
            storage = tensor.untyped_storage()
            if storage.nbytes():
                alive = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
                self.memory[storage.data_ptr()] = (alive, alive.copy())
        self.running, self.stored, self.updated, self.results = None, [], [], []

    def before(self, access, mask) -> None:
        """Called before each access with the mask that it is made with."""
        if access.program != self.running:
            self.end_program()
            self.running = access.program
        if access.kind != "load":
            kept = self.stored if access.kind == "store" else self.updated
            kept.append(
                (access.addresses[mask][:, None] + np.arange(access.size)).ravel()
            )

    def end_program(self) -> None:
        """Remember what the program stored, and put memory back to what it was; atomics stay."""
        for start, (alive, first) in self.memory.items():
            for places, keep in ((self.updated, None), (self.stored, self.results)):
                for addresses in places:
                    at = (
                        addresses[
                            (addresses >= start) & (addresses < start + alive.size)
                        ]
                        - start
                    )
                    if keep is None:
                        first[at] = alive[at]
                    else:
                        keep.append((alive, at, alive[at]))
            alive[:] = first
        self.stored, self.updated = [], []

    def end(self) -> None:
        """Store everything, in the order of the programs."""
        self.end_program()
        for alive, at, values in self.results:
            alive[at] = values


class _Watcher:
    """Notes launches and accesses in a Seen. Args: at_once: as watch"""

    def __init__(self, at_once):
        self.seen, self.at_once, self.running = Seen(), at_once, []

    def mask(self, kind, builder, pointers, mask):
        """The mask that an access is made with: nothing outside of the arguments' memory."""
        if not self.running:
            return mask
        from triton.runtime.interpreter import TensorHandle

        if mask is None:
            mask = TensorHandle(np.ones(pointers.data.shape, bool), pointers.dtype)
        (x, y, z), (_, ny, nz) = builder.grid_idx, builder.grid_dim
        size = pointers.get_element_ty().primitive_bitwidth // 8
        addresses, lanes = np.broadcast_arrays(
            pointers.data.astype(np.int64), mask.data.astype(bool)
        )
        access = Access(kind, (x * ny + y) * nz + z, size, addresses, lanes)
        launch, programs = self.running[-1]
        launch.accesses.append(access)
        launch.programs = max(launch.programs, access.program + 1)
        allowed = np.zeros(lanes.shape, bool)
        for argument in launch.arguments:
            allowed |= argument.reachable(addresses, size)
        if programs is not None:
            programs.before(access, lanes & allowed)
        return TensorHandle(lanes & allowed, mask.dtype)

    def launched(self, executor, original, args, kwargs):
        """What a launch returns, watched."""
        named = dict(zip(executor.arg_names, args, strict=False)) | kwargs
        tensors = {
            name: value
            for name, value in named.items()
            if isinstance(value, torch.Tensor)
        }
        launch = Launch(
            executor.fn.__name__,
            [Argument(name, tensor) for name, tensor in tensors.items()],
        )
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


# (a method of the interpreter's, kind of access, where its pointers stand, where its mask, if it has one)
ACCESSES = (
    ("create_masked_load", "load", 0, 1),
    ("create_masked_store", "store", 0, 2),
    ("create_atomic_rmw", "atomic", 1, 3),
    ("create_atomic_cas", "atomic", 0, None),
)


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
    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    watcher, call = _Watcher(at_once), GridExecutor.__call__

    def watched(original, kind, pointers_at, mask_at):
        def access(builder, *values):
            parts, pointers = list(values), values[pointers_at]
            mask = None if mask_at is None else values[mask_at]
            allowed = watcher.mask(kind, builder, pointers, mask)
            if mask is not None:
                parts[mask_at] = allowed
            return original(builder, *parts)

        return access

    def launched(executor, *args, **kwargs):
        return watcher.launched(executor, call, args, kwargs)

    with contextlib.ExitStack() as replaced:
        replaced.enter_context(patch.object(GridExecutor, "__call__", launched))
        for name, *how in ACCESSES:
            access = watched(getattr(InterpreterBuilder, name), *how)
            replaced.enter_context(patch.object(InterpreterBuilder, name, access))
        yield watcher.seen
