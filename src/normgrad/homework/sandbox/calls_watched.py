"""Calls that watch how a student's kernels work: what they touch, and what torch does beside them.

Nothing of normgrad is imported here; torch and triton are imported where they are used.
"""

from __future__ import annotations

import contextlib
import sys

import numpy as np

OPERATIONS = {}
# What a launcher does with a matrix beside launching kernels: ask, make room, look at it in another way, copy it.
QUIET = frozenset(
    "get set dim size stride numel element_size itemsize data_ptr storage untyped_storage storage_offset "
    "is_contiguous is_floating_point type len bool int repr hash new_empty new_zeros new_ones new_full empty "
    "empty_like empty_strided zeros zeros_like ones_like full_like as_strided clone contiguous copy_ copy detach "
    "detach_ double expand fill fill_ flatten float getitem half index_select iter narrow permute ravel "
    "requires_grad reshape select set_ setitem split squeeze t to transpose unbind unsqueeze view view_as "
    "zero_ zero cpu new_tensor resolve_neg".split()
)
EMPTY = ("new_empty", "empty", "empty_like", "empty_strided")
COMPILED = "triton was imported to compile: set TRITON_INTERPRET=1 in the environment before triton is first imported"


def operation(function):
    """Registers a way to call the student's code under the function's name."""
    OPERATIONS[function.__name__] = function
    return function


class Launch:
    """What the programs of one launch read and write. Args: tensors: {argument: tensor} of the kernel;
    places: whether to remember which program touched what"""

    def __init__(self, kernel, tensors, places):
        self.kernel, self.places, self.programs, self.atomics = kernel, places, 0, 0
        self.ranges, self.outside, self.written = {}, {}, set()
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            self.ranges[name] = (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
        self.seen = {"reads": [], "writes": []}

    def note(self, kind, addresses, mask, size, program):
        """The part of the mask that stays inside of the tensors; what does not is remembered."""
        addresses, mask = np.broadcast_arrays(addresses.astype(np.int64), mask.astype(bool))
        inside = np.zeros(addresses.shape, bool)
        for start, end in self.ranges.values():
            inside |= (addresses >= start) & (addresses + size <= end)
        stray = addresses[mask & ~inside]
        if stray.size:
            ends = {name: abs(end - int(stray.flat[0])) for name, (_, end) in self.ranges.items()}
            words = f"{kind} outside of {min(ends, key=ends.get)}"
            self.outside[words] = self.outside.get(words, 0) + int(stray.size)
        if self.places:
            touched = np.unique(addresses[mask & inside])
            self.seen[kind].append(np.stack([touched, np.full_like(touched, program)], -1))
        if kind == "writes":
            self.wrote(addresses[mask & inside])
        return mask & inside

    def wrote(self, addresses) -> None:
        """Remembers the tensors that addresses lie in."""
        for start, end in self.ranges.values():
            if ((addresses >= start) & (addresses < end)).any():
                self.written.add(start)

    def shared(self) -> int:
        """How many addresses one program writes that another one writes or reads."""
        writes, reads = (np.concatenate([np.zeros((0, 2), np.int64), *self.seen[kind]]) for kind in ("writes", "reads"))
        both = np.unique(np.concatenate([writes, reads]), axis=0)
        touched, programs = np.unique(both[:, 0], return_counts=True)
        return int(np.isin(touched[programs > 1], writes[:, 0]).sum())

    def facts(self) -> dict:
        """Plain data for the grader."""
        read, written = (sum(len(each) for each in self.seen[kind]) for kind in ("reads", "writes"))
        return {"kernel": self.kernel, "programs": self.programs, "outside": self.outside, "shared": self.shared(),
                "atomics": self.atomics, "read": read, "written": written}  # fmt: skip


def _watch_builder(builder, running):
    """Replaces the interpreter's accesses to memory by ones that look first; returns the names replaced."""
    from triton.runtime.interpreter import TensorHandle

    kind = type(builder)

    def look(what, ptrs, mask):
        (x, y, z), (nx, ny, nz) = builder.grid_idx, builder.grid_dim
        launch = running[-1]
        launch.programs = nx * ny * nz
        size = ptrs.get_element_ty().primitive_bitwidth // 8
        return TensorHandle(launch.note(what, ptrs.data, mask.data, size, (x * ny + y) * nz + z), mask.dtype)

    def load(ptrs, mask, *rest):
        return kind.create_masked_load(builder, ptrs, look("reads", ptrs, mask), *rest)

    def store(ptrs, value, mask, *rest):
        return kind.create_masked_store(builder, ptrs, value, look("writes", ptrs, mask), *rest)

    def atomic(how, ptrs, *rest):
        running[-1].atomics += 1
        running[-1].wrote(ptrs.data.astype(np.int64))
        return kind.create_atomic_rmw(builder, how, ptrs, *rest)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw = atomic
    return "create_masked_load", "create_masked_store", "create_atomic_rmw"


@contextlib.contextmanager
def launches_watched(running, places, written):
    """The list of Launches made meanwhile; running: a list that holds the one that is under way; places: as Launch;
    written: a set that the addresses of tensors with results of kernels are added to."""
    from triton.runtime import interpreter

    builder, executor, found = interpreter.interpreter_builder, interpreter.GridExecutor, []
    original = executor.__call__

    def launched(self, *args, **kwargs):
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        tensors = {name: value for name, value in named.items() if hasattr(value, "untyped_storage")}
        found.append(Launch(getattr(self.fn, "__name__", "a kernel"), tensors, places))
        running.append(found[-1])
        try:
            return original(self, *args, **kwargs)
        finally:
            written.update(running.pop().written)

    names = _watch_builder(builder, running)
    executor.__call__ = launched
    try:
        yield found
    finally:
        executor.__call__ = original
        for name in names:
            vars(builder).pop(name, None)


def _torch_watched(pointers, running, names, written):
    """A mode that notes torch's own arithmetic on the tensors with these storages, outside of launches; what torch
    makes of a kernel's results is added to those in written."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            given = (*args, *(kwargs or {}).values())
            flat = [each for arg in given for each in (arg if isinstance(arg, (list, tuple)) else [arg])]
            tensors = [each for each in flat if isinstance(each, torch.Tensor)]
            name = getattr(func, "__name__", "").strip("_")
            if not running and name not in QUIET and name not in names:
                if any(tensor.untyped_storage().data_ptr() in pointers for tensor in tensors):
                    names.append(name)
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and any(t.untyped_storage().data_ptr() in written for t in tensors):
                written.add(result.untyped_storage().data_ptr())
            if name in EMPTY and result.is_floating_point():
                result.fill_(float("nan"))  # what is never written must not look right by chance
            return result

    return Watch()


def warm_up():
    """Imports Triton and torch's overrides, before the student's code is watched and its time is counted."""
    import torch
    import triton.language  # noqa: F401

    with _torch_watched(set(), [], [], set()):
        torch.zeros(1).clone()


@operation
def kernels(target, arguments, options):
    """The results of a launcher whose kernels are kept inside of their tensors, and what they and torch did.

    Facts: "launches", of every kernel that it launched; "torch", names of torch's arithmetic on whole matrices; "own",
    whether a result is a kernel's, or made of one.
    """
    import torch

    if "triton" not in sys.modules:
        return target(*arguments.values()), {"launches": [], "torch": [], "own": False}
    import triton
    import triton.language as tl

    if isinstance(tl.sum, triton.JITFunction):
        raise RuntimeError(COMPILED)
    given = list(arguments.values())
    if options.get("apart"):  # in the grader's buffer, where one input ends, another one begins
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
    matrices = {t.untyped_storage().data_ptr() for t in given if isinstance(t, torch.Tensor) and t.dim() == 2}
    running, names, written = [], [], set()
    watched = _torch_watched(matrices, running, names, written)
    with launches_watched(running, bool(options.get("apart")), written) as found, watched:
        result = target(*given)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    own = any(r.untyped_storage().data_ptr() in written for r in results if isinstance(r, torch.Tensor))
    return results, {"launches": [launch.facts() for launch in found], "torch": names, "own": own}
