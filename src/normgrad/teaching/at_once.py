"""Programs of a launch that start at once: none sees what another one stores."""

from __future__ import annotations

import numpy as np
import torch


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
            kept.append((access.addresses[mask][:, None] + np.arange(access.size)).ravel())

    def end_program(self) -> None:
        """Remember what the program stored, and put memory back to what it was; atomics stay."""
        for start, (alive, first) in self.memory.items():
            for places, keep in ((self.updated, None), (self.stored, self.results)):
                for addresses in places:
                    at = addresses[(addresses >= start) & (addresses < start + alive.size)] - start
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
