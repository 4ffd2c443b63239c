"""A kernel under observation: in Triton's interpreter each load and store is seen, and so are races and strays.

`with watch() as seen:` around launches; then `seen.requested`, `seen.races()`, `seen.outside()`, `seen.log("dw")`.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
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

    @property
    def sides(self) -> tuple[str, ...]:
        """What it does: "load", "store", or both for an atomic."""
        return ("load", "store") if self.kind == "atomic" else (self.kind,)


@dataclass
class Launch:
    """One launch: the kernel's name, its tensors, what programs do not see of each other, its accesses in order."""

    kernel: str
    arguments: list[Argument]
    memory: Programs
    accesses: list[Access] = field(default_factory=list)

    def lanes(self, kind, builder, pointers, mask) -> np.ndarray:
        """The lanes of an access that are made: none outside of the arguments' memory."""
        lanes = np.ones((), bool) if mask is None else mask.data.astype(bool)
        addresses, lanes = np.broadcast_arrays(pointers.data.astype(np.int64), lanes)
        (x, y, z), (_, ny, nz) = builder.grid_idx, builder.grid_dim
        size = pointers.get_element_ty().primitive_bitwidth // 8
        access = Access(kind, (x * ny + y) * nz + z, size, addresses, lanes)
        self.accesses.append(access)
        allowed = np.zeros(lanes.shape, bool)
        for argument in self.arguments:
            allowed |= argument.reachable(addresses, size)
        self.memory.before(access, lanes & allowed)
        return lanes & allowed

    @property
    def programs(self) -> int:
        """The number of its programs."""
        return 1 + max((access.program for access in self.accesses), default=-1)

    @property
    def requested(self) -> int:
        """Bytes that the launch loads plus bytes that it stores, as often as they are asked for."""
        return sum(
            access.size * access.touched.size * len(access.sides)
            for access in self.accesses
        )

    def nearest(self, address: int) -> Argument:
        """The argument that the address lies in, or the one nearest to it."""
        return min(self.arguments, key=lambda argument: argument.distance(address))

    def inside(self, access: Access) -> np.ndarray:
        """Which of the touched addresses are numbers of some argument."""
        lies_inside = np.zeros(access.touched.shape, bool)
        for argument in self.arguments:
            lies_inside |= argument.holds(access.touched)
        return lies_inside

    def races(self):
        """(address, programs that load it, programs that store it) for each address of a race."""
        users = defaultdict(lambda: {"load": set(), "store": set(), "atomic": set()})
        for access in self.accesses:
            for address in access.touched[self.inside(access)].tolist():
                users[address][access.kind].add(access.program)
        for address, programs in sorted(users.items()):
            loads, stores, updates = programs.values()
            several = len(loads | stores | updates) > 1
            # Atomics alone do not race with each other.
            if several and (stores or updates) and (loads or stores):
                yield address, loads | updates, stores | updates


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
        sizes = {}
        for launch in self.launches:
            for access in launch.accesses:
                for side in access.sides:
                    reached = sizes.setdefault((side, access.size), [])
                    reached.append(access.touched)
        return sum(
            size * len(np.unique(np.concatenate(reached)))
            for (_, size), reached in sizes.items()
        )

    def races(self) -> Table:
        """The places that one program stores to and another one loads from or stores to in the same launch.

        Nothing orders the programs of a launch, so the result depends on luck. Atomics alone are no race. What a lock
        protects is listed all the same: the watcher sees addresses, not intentions.

        Returns:  a Table of (kernel, place, loaded by, stored by), which is empty where there is no race
        """
        rows = []
        for launch in self.launches:
            for address, loads, stores in launch.races():
                argument = launch.nearest(address)
                facts = launch.kernel, argument.name, numbers(loads), numbers(stores)
                rows.append((facts, argument.index(address)))
        shown = [
            (kernel, place, loads, stores)
            for (kernel, _, loads, stores), place in merged(rows)
        ]
        titles = ("kernel", "place", "loaded by programs", "stored by programs")
        return Table("race", titles, shown)

    def outside(self) -> Table:
        """The accesses to memory that is no number of any argument; they are kept from memory, and loads give 0.

        An access that leaves one argument and hits a number of another one by chance cannot be told from a right one.

        Returns:  a Table of (kernel, program, what it does, argument, offsets, those that exist), empty if all is well
        """
        rows = []
        for launch in self.launches:
            for access in launch.accesses:
                stray = access.touched[~launch.inside(access)]
                if not stray.size:
                    continue
                nearest = launch.nearest(int(stray[0]))
                first = int(stray.min() - nearest.start) // access.size
                last = int(stray.max() - nearest.start) // access.size
                which = str(first) if first == last else f"{first} to {last}"
                who = launch.kernel, access.program, access.kind
                rows.append((*who, nearest.name, which, nearest.extent()))
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
            for access in launch.accesses:
                if access.touched.size:
                    argument = launch.nearest(int(access.touched[0]))
                    sizes[argument.name] = argument.bytes
                    sides = moved.setdefault(argument.name, {"load": 0, "store": 0})
                    for side in access.sides:
                        sides[side] += access.size * access.touched.size
        rows = [
            (name, sides["load"], sides["store"], sizes[name])
            for name, sides in moved.items()
        ]
        return Table("argument", ("argument", "loaded", "stored", "it has"), rows)


class Programs:
    """Lets the programs of a launch start from the same memory, as if none saw what another one stores."""

    def __init__(self, tensors):
        # {where memory begins: (the memory, what it holds at first, what the program wrote by the kind of access)}
        self.memory, self.running, self.results = {}, None, []
        for tensor in tensors:
            storage = tensor.untyped_storage()
            if storage.nbytes():
                alive = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
                self.memory[storage.data_ptr()] = alive, alive.copy(), defaultdict(list)

    def before(self, access, mask) -> None:
        """Called before each access with the mask that it is made with."""
        if access.program != self.running:
            self.end_program()
            self.running = access.program
        for start, (alive, _, written) in self.memory.items():
            reached = access.addresses[mask][:, None] + np.arange(access.size)
            inside = (reached >= start) & (reached < start + alive.size)
            written[access.kind].append(reached[inside] - start)

    def end_program(self) -> None:
        """Remember what the program stored, and put memory back to what it was; atomics stay."""
        for alive, first, written in self.memory.values():
            for places in written["atomic"]:
                first[places] = alive[places]
            for places in written["store"]:
                self.results.append((alive, places, alive[places]))
            alive[:] = first
            written.clear()

    def end(self) -> None:
        """Store everything, in the order of the programs."""
        self.end_program()
        for alive, places, values in self.results:
            alive[places] = values


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
    from triton.runtime.interpreter import (
        GridExecutor,
        InterpreterBuilder,
        TensorHandle,
    )

    record, call = Seen(), GridExecutor.__call__

    def watched(original, kind, pointers_at, mask_at):
        def access(builder, *values):
            parts = list(values)
            mask = None if mask_at is None else values[mask_at]
            lanes = record.launches[-1].lanes(kind, builder, values[pointers_at], mask)
            if mask is not None:
                parts[mask_at] = TensorHandle(lanes, mask.dtype)
            return original(builder, *parts)

        return access

    def launched(executor, *args, **kwargs):
        named = dict(zip(executor.arg_names, args, strict=False)) | kwargs
        tensors = {n: t for n, t in named.items() if isinstance(t, torch.Tensor)}
        arguments = [Argument(name, tensor) for name, tensor in tensors.items()]
        memory = Programs(tensors.values() if at_once else ())
        record.launches.append(Launch(executor.fn.__name__, arguments, memory))
        try:
            # The interpreter copies arguments to the CPU and back with torch, which is no part of the kernel.
            with _disable_current_modes():
                return call(executor, *args, **kwargs)
        finally:
            memory.end()

    with contextlib.ExitStack() as replaced:
        replaced.enter_context(patch.object(GridExecutor, "__call__", launched))
        for name, *how in ACCESSES:
            access = watched(getattr(InterpreterBuilder, name), *how)
            replaced.enter_context(patch.object(InterpreterBuilder, name, access))
        yield record
