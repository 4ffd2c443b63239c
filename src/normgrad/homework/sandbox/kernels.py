"""Calls that watch how a student's kernels work: what they touch, and what torch does beside them.

Nothing of normgrad is imported here; torch and triton are imported where they are used.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import sys
import types

import numpy as np

from .operations import held, operation, returned
from .source import codes, reached, read

# What a launcher does with a matrix beside launching kernels: ask, make room, look at it in another way, copy it.
QUIET = frozenset(
    "get set dim size stride numel element_size itemsize data_ptr storage untyped_storage storage_offset "
    "is_contiguous is_floating_point type len bool int repr hash new_empty new_zeros new_ones new_full empty "
    "empty_like empty_strided zeros zeros_like ones_like full_like as_strided clone contiguous copy_ copy detach "
    "detach_ double expand fill fill_ flatten float getitem half index_select iter narrow permute ravel "
    "requires_grad reshape select set_ setitem split squeeze t to transpose unbind unsqueeze view view_as "
    "zero_ zero cpu new_tensor resolve_neg".split()
)
# What makes room, and fills it with one number or the whole numbers.
FRESH = frozenset(
    "empty empty_like empty_strided new_empty zeros zeros_like new_zeros ones ones_like new_ones full full_like "
    "new_full arange".split()
)
# What hands memory to NumPy, which may write to it.
LENT = ("numpy", "array", "dlpack")
EMPTY = ("new_empty", "empty", "empty_like", "empty_strided")
COMPILED = "triton was imported to compile: set TRITON_INTERPRET=1 in the environment before triton is first imported"


# What Python's own functions do in a kernel is done while it is compiled.
COMPILE_TIME = frozenset(
    "range min max len int float bool abs print isinstance tuple".split()
)
TYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
         "int8": "i8", "bool": "i1"}  # fmt: skip
MOST_SOURCES = 40


@functools.lru_cache(
    maxsize=MOST_SOURCES
)  # a launcher launches the same kernel again and again
def _steps(code):
    """(name of the instruction, its argument) of what a function does, functions in it included."""
    return [
        (step.opname, step.argval)
        for each in codes(code)
        for step in dis.get_instructions(each)
    ]


def _read(function):
    """(name, value) of all that a function reads from its module, its closure and Python, functions in it included."""
    space = {**vars(__import__("builtins")), **function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    with contextlib.suppress(ValueError):  # a cell that is not filled yet
        space |= {name: cell.cell_contents for name, cell in cells}
    for does, what in _steps(function.__code__):
        if does in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") and what in space:
            yield what, space[what]
        elif does == "IMPORT_NAME" or what == "handle":
            yield str(what), np


def described(function, arguments) -> dict:
    """A kernel as plain data: its source, those of what it calls, its arguments, and "foreign", names of what is not
    Triton's in it.

    Args:  function: the Python function under @triton.jit; arguments: {name: what it was launched with}
    """
    found = {"kernel": function.__name__, "sources": [], "modules": {}, "names": {}, "globals": {}, "foreign": [],
             "types": {}, "constants": {}, "whole": True}  # fmt: skip
    left, seen = [function], set()
    while left and len(seen) < MOST_SOURCES:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        with contextlib.suppress(OSError, TypeError):
            found["sources"].insert(
                0, inspect.getsource(each).splitlines()
            )  # no text that is sent is long
        for name, value in _read(each):
            home = str(getattr(value, "__module__", "") or "")
            if (
                isinstance(value, types.ModuleType)
                and value.__name__.partition(".")[0] == "triton"
            ):
                found["modules"][name] = value.__name__
            elif isinstance(held := getattr(value, "value", value), (int, float, str)):
                annotated = "constexpr" in str(
                    each.__globals__.get("__annotations__", {}).get(name)
                )
                found["globals"][name] = [held, annotated or held is not value]
            elif type(value).__name__ == "constexpr":
                found["whole"] = False
            elif isinstance(
                getattr(value, "fn", None), types.FunctionType
            ) and not home.startswith("triton.language"):
                left.append(value.fn)
            elif (
                name == "interpreter_semantic"
            ):  # what the interpreter itself puts there
                continue
            elif home.partition(".")[0] == "triton":
                found["names"][name] = (home, getattr(value, "__name__", name))
            elif isinstance(value, types.ModuleType) or hasattr(value, "shape"):
                found["foreign"].append(name)
            elif callable(value) and not (home == "builtins" and name in COMPILE_TIME):
                found["foreign"].append(name)
    for name, value in arguments.items():
        if hasattr(value, "untyped_storage"):
            found["types"][name] = "*" + TYPES.get(
                str(value.dtype).removeprefix("torch."), "fp32"
            )
        elif type(value).__name__ == "dtype":
            found["constants"][name] = ["dtype", str(getattr(value, "name", value))]
        elif value is None or "constexpr" in str(function.__annotations__.get(name)):
            found["constants"][name] = (
                value if isinstance(value, (int, float, str)) else None
            )
        else:
            found["types"][name] = "fp32" if isinstance(value, float) else "i32"
    return found


class Launch:
    """What the programs of one launch read and write. Args: kernel: as described gives it; tensors: {argument: tensor};
    places: whether to remember which program touched what"""

    def __init__(self, kernel, tensors, places):
        self.kernel, self.places, self.programs, self.atomics = (
            kernel["kernel"],
            places,
            0,
            0,
        )
        self.described, self.torch = kernel, []
        self.ranges, self.outside, self.written = {}, {}, set()
        self.foreign, self.foreign_read = {}, set()
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            self.ranges[name] = (
                storage.data_ptr(),
                storage.data_ptr() + storage.nbytes(),
            )
        self.seen = {"reads": [], "writes": []}

    def note(self, kind, addresses, mask, size, program):
        """The part of the mask that stays inside of the tensors; what does not is remembered."""
        addresses, mask = np.broadcast_arrays(
            addresses.astype(np.int64), mask.astype(bool)
        )
        inside = np.zeros(addresses.shape, bool)
        for start, end in self.ranges.values():
            inside |= (addresses >= start) & (addresses + size <= end)
        stray = addresses[mask & ~inside]
        if stray.size:
            ends = {
                name: abs(end - int(stray.flat[0]))
                for name, (_, end) in self.ranges.items()
            }
            words = f"{kind} outside of {min(ends, key=ends.get)}"
            self.outside[words] = self.outside.get(words, 0) + int(stray.size)
        if self.places:
            touched = np.unique(addresses[mask & inside])
            self.seen[kind].append(
                np.stack([touched, np.full_like(touched, program)], -1)
            )
        if kind == "writes":
            self.wrote(addresses[mask & inside])
        for name, (start, end) in self.foreign.items():
            reached = (addresses >= start) & (addresses < end) & mask & inside
            if kind == "reads" and reached.any():
                self.foreign_read.add(name)
        return mask & inside

    def wrote(self, addresses) -> None:
        """Remembers the tensors that addresses lie in."""
        for start, end in self.ranges.values():
            if ((addresses >= start) & (addresses < end)).any():
                self.written.add(start)

    def shared(self) -> int:
        """How many addresses one program writes that another one writes or reads."""
        writes, reads = (
            np.concatenate([np.zeros((0, 2), np.int64), *self.seen[kind]])
            for kind in ("writes", "reads")
        )
        both = np.unique(np.concatenate([writes, reads]), axis=0)
        touched, programs = np.unique(both[:, 0], return_counts=True)
        return int(np.isin(touched[programs > 1], writes[:, 0]).sum())

    def facts(self) -> dict:
        """Plain data for the grader."""
        read, written = (
            sum(len(each) for each in self.seen[kind]) for kind in ("reads", "writes")
        )
        foreign = sorted({*self.described["foreign"], *self.torch})
        return {"kernel": self.kernel, "described": self.described, "foreign": foreign, "programs": self.programs,
                "foreign data": sorted(self.foreign_read), "outside": self.outside, "shared": self.shared(),
                "atomics": self.atomics, "read": read, "written": written}  # fmt: skip


def _watch_builder(builder, running, undefined):
    """Replaces the interpreter's accesses to memory by ones that look first; returns the names replaced.

    Args:  undefined: whether a load without `other` gives NaN past its mask, where a GPU gives any number
    """
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    kind = type(builder)

    def look(what, ptrs, mask):
        (x, y, z), (nx, ny, nz) = builder.grid_idx, builder.grid_dim
        launch = running[-1]
        launch.programs = nx * ny * nz
        size = ptrs.get_element_ty().primitive_bitwidth // 8
        seen = (
            mask if isinstance(mask, np.ndarray) else mask.data
        )  # of a block pointer it comes as it is
        noted = launch.note(what, ptrs.data, seen, size, (x * ny + y) * nz + z)
        return TensorHandle(
            noted, getattr(mask, "dtype", None) if seen is not mask else tl.int1
        )

    def load(ptrs, mask, *rest):
        seen = look("reads", ptrs, mask)
        found = kind.create_masked_load(builder, ptrs, seen, *rest)
        if undefined and rest[0] is None and found.data.dtype.kind == "f":
            found.data = np.where(seen.data, found.data, found.data.dtype.type("nan"))
        return found

    def store(ptrs, value, mask, *rest):
        return kind.create_masked_store(
            builder, ptrs, value, look("writes", ptrs, mask), *rest
        )

    def atomic(how, ptrs, *rest):
        running[-1].atomics += 1
        running[-1].wrote(ptrs.data.astype(np.int64))
        return kind.create_atomic_rmw(builder, how, ptrs, *rest)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw = atomic
    return "create_masked_load", "create_masked_store", "create_atomic_rmw"


@contextlib.contextmanager
def launches_watched(running, places, written, known=None, undefined=False):
    """The list of Launches made meanwhile; running: a list that holds the one that is under way; places: as Launch;
    written: a set that the addresses of tensors with results of kernels are added to; known: addresses of tensors with
    numbers of the inputs, None where nothing is known; undefined: as _watch_builder."""
    from triton.runtime import interpreter

    builder, executor, found = (
        interpreter.interpreter_builder,
        interpreter.GridExecutor,
        [],
    )
    original = executor.__call__

    def launched(self, *args, **kwargs):
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        tensors = {
            name: value
            for name, value in named.items()
            if hasattr(value, "untyped_storage")
        }
        found.append(Launch(described(inspect.unwrap(self.fn), named), tensors, places))
        running.append(found[-1])
        if known is not None:
            found[-1].foreign = _foreign(tensors, found[-1].ranges, known | written)
        try:
            return original(self, *args, **kwargs)
        finally:
            written.update(running.pop().written)

    names = _watch_builder(builder, running, undefined)
    executor.__call__ = launched
    try:
        yield found
    finally:
        executor.__call__ = original
        for name in names:
            vars(builder).pop(name, None)


def _foreign(tensors, ranges, known) -> dict:
    """{argument: range} of tensors whose numbers come from no input and no kernel; a single number may."""
    return {
        name: ranges[name]
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and tensor.numel() > 1
        if tensor.untyped_storage().data_ptr() not in known
    }


def _torch_watched(pointers, running, names, written, known):
    """A mode that notes torch's own arithmetic on the tensors with these storages, outside of launches; what torch
    makes of a kernel's results is added to those in written, what it makes of known numbers to those in known."""
    import torch
    from torch.overrides import TorchFunctionMode

    inputs = frozenset(known)

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            given = (*args, *(kwargs or {}).values())
            flat = [
                each
                for arg in given
                for each in (arg if isinstance(arg, (list, tuple)) else [arg])
            ]
            tensors = [each for each in flat if isinstance(each, torch.Tensor)]
            name = getattr(func, "__name__", "").strip("_")
            if running and name not in QUIET and name not in running[-1].torch:
                running[-1].torch.append(name)
            if not running and name not in QUIET and name not in names:
                if any(
                    tensor.untyped_storage().data_ptr() in pointers
                    for tensor in tensors
                ):
                    names.append(name)
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and any(
                t.untyped_storage().data_ptr() in written for t in tensors
            ):
                written.add(result.untyped_storage().data_ptr())
            if not running:
                _trace(name, tensors, result, inputs, known, written)
            if name in EMPTY and result.is_floating_point():
                result.fill_(
                    float("nan")
                )  # what is never written must not look right by chance
            return result

    return Watch()


def _trace(name, tensors, result, inputs, known, written) -> None:
    """Adds the storages of a result to those with known numbers, or takes them out."""
    storages = _storages(tensors)
    if name in LENT:
        made, whole = storages - inputs, False
    else:
        # What writes to its first argument may return nothing.
        made = _storages(tensors[:1] if result is None else returned(result))
        whole = name in FRESH or bool(storages) and storages <= known | written
    if whole:
        known |= made
    else:
        known -= made
        written -= made


def _in_variables(target):
    """The tensors in variables of the module that a function or a class reads."""
    for function in reached(target):
        for value in read(function).values():
            container = isinstance(value, (list, tuple, set, dict))
            own = getattr(value, "__module__", "") == function.__module__
            if container or hasattr(value, "untyped_storage"):
                yield from held(value)
            elif own and isinstance(value, type):
                yield from held(list(vars(value).values()))


def _storages(values) -> set[int]:
    """The addresses of the memory of the tensors among some values."""
    return {
        v.untyped_storage().data_ptr() for v in values if hasattr(v, "untyped_storage")
    }


def warm_up():
    """Imports Triton and torch's overrides, before the student's code is watched and its time is counted."""
    import torch
    import triton.language  # noqa: F401

    with _torch_watched(set(), [], [], set(), set()):
        torch.zeros(1).clone()


@operation
def kernels(target, arguments, options, reader=None):
    """The results of a launcher whose kernels are kept inside of their tensors, and what they and torch did.

    Facts: "launches", of every kernel that it launched; "torch", names of torch's arithmetic on whole matrices; "own",
    whether a result is a kernel's, or made of one. reader: whose variables count as known, where it is not the target.
    """
    import torch

    if "triton" not in sys.modules:
        return target(*arguments.values()), {"launches": [], "torch": [], "own": False}
    import triton
    import triton.language as tl

    if isinstance(tl.sum, triton.JITFunction):
        raise RuntimeError(COMPILED)
    given = list(arguments.values())
    if options.get(
        "apart"
    ):  # in the grader's buffer, where one input ends, another one begins
        given = [
            value.clone() if isinstance(value, torch.Tensor) else value
            for value in given
        ]
    matrices = {
        t.untyped_storage().data_ptr()
        for t in given
        if isinstance(t, torch.Tensor) and t.dim() == 2
    }
    if options.get("again"):
        with contextlib.suppress(Exception):
            target(
                *[
                    1 - value if isinstance(value, torch.Tensor) else value
                    for value in given
                ]
            )
    running, names, written = [], [], set()
    # What stands in variables is from an earlier call: another stage sees that.
    known = _storages([*given, *_in_variables(reader or target)])
    watched = _torch_watched(matrices, running, names, written, known)
    apart, undefined = bool(options.get("apart")), bool(options.get("undefined"))
    with launches_watched(running, apart, written, known, undefined) as found, watched:
        result = target(*given)
    results = returned(result)
    own = any(
        r.untyped_storage().data_ptr() in written
        for r in results
        if isinstance(r, torch.Tensor)
    )
    return results, {
        "launches": [launch.facts() for launch in found],
        "torch": names,
        "own": own,
    }


class Context:
    """What forward and backward of an autograd Function are handed where no autograd runs."""

    saved_tensors, needs_input_grad = (), (True,) * 8

    def save_for_backward(self, *tensors):
        """Keeps the tensors."""
        self.saved_tensors = tensors

    def set_materialize_grads(self, value):
        """Nothing: all cotangents are there."""


def _forward(target, ctx, inputs):
    """The outputs of an autograd Function in either style."""
    import torch

    if target.setup_context is torch.autograd.Function.setup_context:
        return target.forward(ctx, *inputs)
    outputs = target.forward(*inputs)
    target.setup_context(ctx, inputs, outputs)
    return outputs


@operation
def layer_kernels(target, arguments, options):
    """As kernels, of an autograd Function's forward and then its backward; the cotangents are the last arguments.

    Backward is handed what forward saved, so that torch's arithmetic on that is seen as well; "own" is true of both.
    """
    ctx, count, given = Context(), len(options["cotangents"]), list(arguments.values())

    def forward(*inputs):
        return _forward(target, ctx, inputs)

    def backward(*sent):
        ctx.saved_tensors = sent[count:]
        return [
            each for each in target.backward(ctx, *sent[:count]) if each is not None
        ]

    outputs, there = kernels(forward, dict(enumerate(given[:-count])), options, target)
    sent = dict(enumerate([*given[-count:], *ctx.saved_tensors]))
    gradients, back = kernels(backward, sent, options, target)
    facts = {name: there[name] + back[name] for name in ("launches", "torch")}
    return [*returned(outputs), *gradients], facts | {
        "own": there["own"] and back["own"]
    }
