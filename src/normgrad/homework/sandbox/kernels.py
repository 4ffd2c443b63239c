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
        for part in codes(code)
        for step in dis.get_instructions(part)
    ]


def _read(function):
    """(name, value) of all that a function reads from its module, its closure and Python, functions in it included."""
    space = {**vars(__import__("builtins")), **function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    with contextlib.suppress(ValueError):  # a cell that is not filled yet
        space |= {name: cell.cell_contents for name, cell in cells}
    for does, argument in _steps(function.__code__):
        if does in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") and argument in space:
            yield argument, space[argument]
        elif does == "IMPORT_NAME" or argument == "handle":
            yield str(argument), np


def described(function, arguments) -> dict:
    """A kernel as plain data: its source, those of what it calls, its arguments, and "foreign", names of what is not
    Triton's in it.

    Args:  function: the Python function under @triton.jit; arguments: {name: what it was launched with}
    """
    kernel = {"kernel": function.__name__, "sources": [], "modules": {}, "names": {}, "globals": {}, "foreign": [],
              "types": {}, "constants": {}, "whole": True}  # fmt: skip
    functions = [function]
    for part in functions:
        with contextlib.suppress(OSError, TypeError):
            # No text that is sent is long.
            kernel["sources"].insert(0, inspect.getsource(part).splitlines())
        for name, value in _read(part):
            _describe(kernel, part, name, value)
            called = _called(value)
            if called and called not in functions and len(functions) < MOST_SOURCES:
                functions.append(called)
    for name, value in arguments.items():
        constant = "constexpr" in str(function.__annotations__.get(name))
        if hasattr(value, "untyped_storage"):
            dtype = str(value.dtype).removeprefix("torch.")
            kernel["types"][name] = "*" + TYPES.get(dtype, "fp32")
        elif type(value).__name__ == "dtype":
            kernel["constants"][name] = ["dtype", str(getattr(value, "name", value))]
        elif value is None or constant:
            plain = isinstance(value, (int, float, str))
            kernel["constants"][name] = value if plain else None
        else:
            kernel["types"][name] = "fp32" if isinstance(value, float) else "i32"
    return kernel


def _home(value) -> str:
    """The module that a value is from, or is."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", "") or "")


def _called(value):
    """The function under another @triton.jit; None for what is none, or Triton's own."""
    function = getattr(value, "fn", None)
    own = not _home(value).startswith("triton.language")
    return function if own and isinstance(function, types.FunctionType) else None


def _describe(kernel, function, name, value) -> None:
    """Adds what a name in a kernel stands for."""
    plain = getattr(value, "value", value)
    is_module, home = isinstance(value, types.ModuleType), _home(value)
    if isinstance(plain, (int, float, str)) and not is_module:
        annotations = function.__globals__.get("__annotations__", {})
        constant = "constexpr" in str(annotations.get(name)) or plain is not value
        kernel["globals"][name] = [plain, constant]
    elif type(value).__name__ == "constexpr":
        kernel["whole"] = False
    elif _called(value) or name == "interpreter_semantic":
        return  # its source comes besides; the interpreter itself puts the other one there
    elif home.partition(".")[0] == "triton":
        if is_module:
            kernel["modules"][name] = home
        else:
            kernel["names"][name] = (home, getattr(value, "__name__", name))
    elif is_module or hasattr(value, "shape"):
        kernel["foreign"].append(name)
    elif callable(value) and not (home == "builtins" and name in COMPILE_TIME):
        kernel["foreign"].append(name)


class Launch:
    """What the programs of one launch read and write.

    Args:  kernel: as described gives it; arguments: {name: value}; places: whether to remember which program touched
           what; known: addresses of storages with numbers of inputs and kernels
    """

    def __init__(self, kernel, arguments, places, traced):
        self.described, self.arguments, self.places = kernel, arguments, places
        self.programs, self.atomics, self.torch = 0, 0, []
        self.ranges, self.foreign, self.foreign_read = {}, {}, set()
        self.outside, self.written = {}, set()
        self.seen = {"reads": [], "writes": []}
        for name, value in arguments.items():
            if not hasattr(value, "untyped_storage"):
                continue
            storage = value.untyped_storage()
            start = storage.data_ptr()
            self.ranges[name] = start, start + storage.nbytes()
            # A single number may come from anywhere.
            if value.is_floating_point() and value.numel() > 1 and start not in traced:
                self.foreign[name] = self.ranges[name]

    def note(self, kind, addresses, mask, size, program):
        """The part of the mask that stays inside of the tensors; what does not is remembered."""
        mask = mask.astype(bool)
        addresses, mask = np.broadcast_arrays(addresses.astype(np.int64), mask)
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
        touched = np.unique(addresses[mask & inside])
        if self.places:
            programs = np.full_like(touched, program)
            self.seen[kind].append(np.stack([touched, programs], -1))
        if kind == "writes":
            self.wrote(touched)
        for name, bounds in self.foreign.items():
            if kind == "reads" and _reaches(touched, bounds):
                self.foreign_read.add(name)
        return mask & inside

    def wrote(self, addresses) -> None:
        """Remembers the tensors that addresses lie in."""
        for bounds in self.ranges.values():
            if _reaches(addresses, bounds):
                self.written.add(bounds[0])

    def shared(self) -> int:
        """How many addresses one program writes that another one writes or reads."""
        nothing = np.zeros((0, 2), np.int64)
        writes = np.concatenate([nothing, *self.seen["writes"]])
        both = np.concatenate([writes, *self.seen["reads"]])
        touched, programs = np.unique(np.unique(both, axis=0)[:, 0], return_counts=True)
        return int(np.isin(touched[programs > 1], writes[:, 0]).sum())

    def facts(self, inputs, results) -> dict:
        """Plain data for the grader. Args: inputs: {name: tensor}; results: {address: which one}"""
        return {
            "kernel": self.described["kernel"],
            "described": self.described,
            "arguments": {
                name: _what(value, inputs, results, self.written)
                for name, value in self.arguments.items()
            },
            "foreign": sorted({*self.described["foreign"], *self.torch}),
            "programs": self.programs,
            "foreign data": sorted(self.foreign_read),
            "outside": self.outside,
            "shared": self.shared(),
            "atomics": self.atomics,
            "read": sum(len(places) for places in self.seen["reads"]),
            "written": sum(len(places) for places in self.seen["writes"]),
        }


def _reaches(addresses, bounds) -> bool:
    start, end = bounds
    return bool(((addresses >= start) & (addresses < end)).any())


def _what(value, inputs, results, written) -> dict:
    """What an argument of a kernel is: an input or a result of the launcher, a block, a number, a dtype.

    A copy of an input, as .contiguous() makes one, is that input, also where the launcher returns it as it is.

    Args:  written: the storages that the launch wrote to
    """
    if hasattr(value, "untyped_storage"):
        address = value.data_ptr()
        names = [name for name, own in inputs.items() if own.data_ptr() == address]
        copied = [name for name, own in inputs.items() if _is_copy(value, own)]
        is_written = value.untyped_storage().data_ptr() in written
        if address in results and not names and (is_written or not copied):
            return {"result": results[address]}
        names += copied
        stride = value.stride(0) if value.dim() == 2 else 1
        return {"input": names[0], "stride": stride} if names else {}
    if type(value).__name__ == "dtype":
        return {"dtype": True}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return {}
    block = isinstance(value, int) and value > 1 and value & (value - 1) == 0
    return {"block" if block else "number": value}


def _is_copy(value, tensor) -> bool:
    """Whether a tensor has the shape and the numbers of another one."""
    if value.shape != tensor.shape or value.numel() < 2:
        return False
    return bool((value == tensor.to(value.dtype)).all())


def _watch_builder(builder, running, undefined):
    """Replaces the interpreter's accesses to memory by ones that look first; returns the names replaced.

    Args:  undefined: whether a load without `other` gives NaN past its mask, where a GPU gives any number
    """
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    kind = type(builder)

    def look(access, ptrs, mask):
        (x, y, z), (nx, ny, nz) = builder.grid_idx, builder.grid_dim
        launch = running[-1]
        launch.programs = nx * ny * nz
        size = ptrs.get_element_ty().primitive_bitwidth // 8
        # Of a block pointer the mask comes as it is.
        plain = mask if isinstance(mask, np.ndarray) else mask.data
        inside = launch.note(access, ptrs.data, plain, size, (x * ny + y) * nz + z)
        dtype = tl.int1 if plain is mask else getattr(mask, "dtype", None)
        return TensorHandle(inside, dtype)

    def load(ptrs, mask, *options):
        within = look("reads", ptrs, mask)
        loaded = kind.create_masked_load(builder, ptrs, within, *options)
        if undefined and options[0] is None and loaded.data.dtype.kind == "f":
            nan = loaded.data.dtype.type("nan")
            loaded.data = np.where(within.data, loaded.data, nan)
        return loaded

    def store(ptrs, value, mask, *options):
        mask = look("writes", ptrs, mask)
        return kind.create_masked_store(builder, ptrs, value, mask, *options)

    def atomic(how, ptrs, *options):
        running[-1].atomics += 1
        running[-1].wrote(ptrs.data.astype(np.int64))
        return kind.create_atomic_rmw(builder, how, ptrs, *options)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw = atomic
    return "create_masked_load", "create_masked_store", "create_atomic_rmw"


@contextlib.contextmanager
def launches_watched(running, places, written, traced, undefined=False):
    """The list of Launches made meanwhile.

    Args:  running: a list that holds the one that is under way; places: as Launch; written, known: sets of addresses
           of storages, written by kernels, which are added to, or with numbers of the inputs; undefined: as
           _watch_builder
    """
    from triton.runtime import interpreter

    builder, executor = interpreter.interpreter_builder, interpreter.GridExecutor
    launches, original = [], executor.__call__

    def launched(self, *args, **kwargs):
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        kernel = described(inspect.unwrap(self.fn), named)
        launches.append(Launch(kernel, named, places, traced | written))
        running.append(launches[-1])
        try:
            return original(self, *args, **kwargs)
        finally:
            written.update(running.pop().written)

    names = _watch_builder(builder, running, undefined)
    executor.__call__ = launched
    try:
        yield launches
    finally:
        executor.__call__ = original
        for name in names:
            vars(builder).pop(name, None)


def _torch_watched(pointers, running, names, written, traced):
    """A mode that notes torch's own arithmetic on the tensors with these storages, outside of launches; what torch
    makes of a kernel's results is added to those in written, what it makes of known numbers to those in known."""
    import torch
    from torch.overrides import TorchFunctionMode

    inputs = frozenset(traced)

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            values = []
            for arg in (*args, *(kwargs or {}).values()):
                values += arg if isinstance(arg, (list, tuple)) else [arg]
            tensors = [value for value in values if isinstance(value, torch.Tensor)]
            storages = _storages(tensors)
            name = getattr(func, "__name__", "").strip("_")
            computed = running[-1].torch if running else names
            computes = name not in QUIET and name not in computed
            if computes and (running or storages & pointers):
                computed.append(name)
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and storages & written:
                written.add(result.untyped_storage().data_ptr())
            if not running:
                _trace(name, tensors, result, inputs, traced, written)
            return result

    return Watch()


def _trace(name, tensors, result, inputs, traced, written) -> None:
    """Adds the storages of a result to those with known numbers, or takes them out."""
    storages = _storages(tensors)
    if name in LENT:
        changed, whole = storages - inputs, False
    else:
        # What writes to its first argument may return nothing.
        changed = _storages(tensors[:1] if result is None else returned(result))
        whole = name in FRESH or bool(storages) and storages <= traced | written
    if whole:
        traced |= changed
    else:
        traced -= changed
        written -= changed


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
    values = list(arguments.values())
    if options.get("apart"):
        # In the grader's buffer, where one input ends, another one begins.
        values = [v.clone() if isinstance(v, torch.Tensor) else v for v in values]
    tensors = {
        name: value
        for name, value in zip(arguments, values, strict=True)
        if isinstance(value, torch.Tensor)
    }
    matrices = _storages(t for t in tensors.values() if t.dim() == 2)
    if options.get("again"):
        moved = [1 - v if isinstance(v, torch.Tensor) else v for v in values]
        with contextlib.suppress(Exception):
            target(*moved)
    running, names, written = [], [], set()
    # What stands in variables is from an earlier call: another stage sees that.
    traced = _storages([*values, *_in_variables(reader or target)])
    watched = _torch_watched(matrices, running, names, written, traced)
    apart, undefined = bool(options.get("apart")), bool(options.get("undefined"))
    with (
        launches_watched(running, apart, written, traced, undefined) as launches,
        watched,
    ):
        result = target(*values)
    results = returned(result)
    inputs = {str(name): tensor for name, tensor in tensors.items()}
    outputs = {}
    for number, value in enumerate(results):
        if isinstance(value, torch.Tensor):
            outputs.setdefault(value.data_ptr(), number)
    return results, {
        "launches": [launch.facts(inputs, outputs) for launch in launches],
        "torch": names,
        "own": bool(_storages(results) & written),
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
    ctx, count, names = Context(), len(options["cotangents"]), {}

    def forward(*inputs):
        names.update(zip(map(id, inputs), arguments, strict=False))
        return _forward(target, ctx, inputs)

    def backward(*sent):
        ctx.saved_tensors = sent[count:]
        return [
            gradient
            for gradient in target.backward(ctx, *sent[:count])
            if gradient is not None
        ]

    own = dict(list(arguments.items())[:-count])
    outputs, there = kernels(forward, own, options, target)
    names |= zip(map(id, outputs), options["outputs"], strict=False)
    saved = {names.get(id(t), str(k)): t for k, t in enumerate(ctx.saved_tensors)}
    sent = dict(list(arguments.items())[-count:]) | saved
    gradients, back = kernels(backward, sent, options, target)
    for launch in back["launches"]:
        for argument in launch["arguments"].values():
            if "result" in argument:
                argument["result"] += len(outputs)
    facts = {name: there[name] + back[name] for name in ("launches", "torch")}
    return [*returned(outputs), *gradients], facts | {
        "own": there["own"] and back["own"]
    }
