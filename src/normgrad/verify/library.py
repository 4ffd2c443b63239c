"""What a traced program may call: functions and methods of NumPy, torch and math, under their own names.

Every function here has the parameters of its model that are followed, in the model's order. Any other parameter is
refused, and so is every name that is not in the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from operator import add, mul, neg, sub
from typing import Any

from sympy import Abs, Expr, KroneckerDelta, Max, Min, Rational, S, exp, tanh

from ..symbolic.elementary import sigmoid
from ..symbolic.symbols import M
from .arrays import (
    AXES,
    FLOOR,
    PROGRAM,
    PROGRAMS,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    Wrong,
    arithmetic,
    array,
    average,
    axes_of,
    axis_of,
    chosen,
    copied,
    einsum,
    elementwise,
    expanded,
    floats,
    indexed,
    is_integer,
    is_number,
    like,
    logarithm,
    matmul,
    moved,
    number,
    perhaps_view,
    plain,
    power,
    reshaped,
    sizes_of,
    state,
    total,
    variance,
)
from .over_rows import Listed, Once, Rows

# {library: its dtypes of floats}
# the first is that in which programs are run
FLOATS = {
    "numpy": {name: name for name in ("float64", "float32", "float16")},
    "torch": {name: name for name in ("float64", "float32", "float16", "bfloat16")}
    | {"half": "float16", "float": "float32", "double": "float64"},
}
# {library: {a name of a parameter: its name here}}; a name here that is not among the names is none there
PARAMETERS = {
    "numpy": {},
    "torch": {"input": "a", "dim": "axis", "axis": "axis"}
    | {"keepdim": "keepdims", "keepdims": "keepdims"},
    "math": {},
}
OF_NORMS = {"dim": "axis", "keepdim": "keepdims"}
# {(library, function): likewise}, for those that differ
NAMED_APART = {
    ("torch", "norm"): OF_NORMS | {"p": "ord"},
    ("torch", "linalg.norm"): OF_NORMS,
    ("torch", "linalg.vector_norm"): OF_NORMS,
}
# the most turns of a loop over values
LONGEST = 1000
DEFAULT = {"numpy": "float64", "torch": "float32"}
LAYER_NORM_EPS = Scalar(Rational("1e-5"), "float")


# the default of a parameter for which None is another value than none
ABSENT = object()


class Device:
    """Where tensors are; all of a program's are on one device."""


@dataclass(frozen=True)
class Known:
    """A function of a library.

    Args:  library: its module; name: for errors; run: what it does here
    """

    library: str
    name: str
    run: Callable[..., Any]

    def __call__(self, *args, **options):
        default = PARAMETERS[self.library]
        names = NAMED_APART.get((self.library, self.name), default)
        if set(options) & (set(names.values()) - set(names)):
            raise NotRead(f"a parameter that {self.name} does not have by this name")
        named = {names.get(name, name): value for name, value in options.items()}
        if len(named) < len(options):
            raise NotRead("a parameter under both of its names")
        try:
            signature(self.run).bind(*args, **named)
        except TypeError as reason:
            raise NotRead(f"{self.name}: {reason}") from None
        for value in (*args, *options.values()):
            if isinstance(value, Array) and self.library not in ("math", value.library):
                raise NotRead(f"{self.name} of an array of {value.library}")
        return self.run(*args, **named)


def flag(value: Any) -> bool:
    """A parameter that is True or False."""
    if not isinstance(value, bool):
        raise NotRead(f"keepdims that is {type(value).__name__}, not a bool")
    return value


# dtypes


def name_of_dtype(library: str, dtype: Any) -> str:
    """The name of a dtype of floats; Python's own float is NumPy's float64."""
    if library == "numpy" and dtype is BUILTINS["float"]:
        return "float64"
    if not isinstance(dtype, DType) or dtype.library != library:
        raise NotRead("a dtype that is not one of floats of the library")
    return dtype.name


def cast(a: Array, dtype: Any, copy: bool = False) -> Array:
    """The array in another dtype of floats: itself where it has it, unless copy."""
    if not isinstance(a, Array):
        raise NotRead(f"a cast of {type(a).__name__}")
    name = name_of_dtype(a.library, dtype)
    if a.kind == "float" and a.dtype == name and name != "mixed" and not copy:
        return a
    new = array(a.shape, a.e, a.library, name)
    same = "mixed" in (a.dtype, name) and not copy
    return perhaps_view(a, new) if same else new


def of_dtype(dtype: DType, value: Any) -> Any:
    """np.float32(value)."""
    if dtype.library != "numpy":
        raise NotRead("a call of a dtype")
    state().dtypes.add(dtype.name)
    if is_number(value):
        return number(plain(value), "float")
    return cast(value, dtype, copy=True)


# elementwise


def numeric(value: Any) -> Any:
    """What NumPy's elementwise functions take: an array of floats, or a number as one without axes."""
    if is_number(value) and not isinstance(value, bool):
        return array((), plain(value), "numpy", "float64")
    return floats(value)


def root(e: Expr) -> Expr:
    """sqrt(e)."""
    return power(e, S.Half)


ENTRIES: dict[str, Callable[[Expr], Expr]] = {
    "sqrt": root,
    "square": lambda e: e**2,
    "reciprocal": lambda e: power(e, S.NegativeOne),
    "abs": Abs,
    "absolute": Abs,
    "exp": exp,
    "log": logarithm,
    "tanh": tanh,
    "negative": neg,
}
TO_FLOATS = (root, exp, logarithm, tanh)
TORCH_ENTRIES = ENTRIES | {
    "rsqrt": lambda e: power(e, -S.Half),
    "sigmoid": sigmoid,
    "neg": neg,
}
OPERATIONS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mult",
    "divide": "Div",
    "true_divide": "Div",
}
TORCH_OPERATIONS = OPERATIONS | {
    "mul": "Mult",
    "div": "Div",
    "pow": "Pow",
    "sub": "Sub",
}


def entrywise(f, operand, count=1):
    """A function of arrays, entry by entry; operand: what a library takes as one."""

    def run(*values):
        if len(values) != count:
            raise NotRead(f"{len(values)} values, needs {count}")
        if all(map(is_integer, values)) and f not in TO_FLOATS:
            raise NotRead("an array of integers")
        return elementwise(f, *map(operand, values))

    return run


def numpy_binary(operation):
    """A function of two arrays or numbers, as NumPy has it."""

    def run(x1, x2, /):
        if is_integer(x1) and is_integer(x2) and operation != "Div":
            raise NotRead("an array of integers")
        if is_number(x1) and is_number(x2):
            x1 = numeric(x1)
        return arithmetic(operation, x1, x2)

    return run


def torch_binary(operation):
    """A function of a tensor and a tensor or number, as torch has it; `pow` of both."""
    return lambda a, other, /: arithmetic(operation, floats(a), other)


def clipped(a, min=None, max=None):
    """a.clip(min, max)."""
    a = floats(a)
    if min is None and max is None:
        raise NotRead("a clip without bounds")
    kinds = {isinstance(bound, Array) for bound in (min, max) if bound is not None}
    if a.library == "torch" and len(kinds) > 1:
        raise NotRead("a clamp between a tensor and a number, which torch refuses")
    for f, bound in ((Max, min), (Min, max)):
        if isinstance(bound, Array):
            floats(bound)
        if bound is not None:
            a = elementwise(f, a, bound)
    return a


def _addcmul(a, tensor1, tensor2, *, value=1):
    if len({floats(part).dtype for part in (a, tensor1, tensor2)}) > 1:
        raise NotRead("addcmul of tensors of two dtypes, which torch refuses")
    if not is_number(value):
        raise NotRead("addcmul with a value that is not a number")
    product = arithmetic("Mult", arithmetic("Mult", tensor1, tensor2), value)
    return arithmetic("Add", a, product)


# reductions


def reduction(f):
    """np.sum and np.mean."""

    def run(a, axis=None, dtype=None, *, keepdims=False):
        result = f(floats(a), axes_of(a, axis), flag(keepdims))
        return result if dtype is None else cast(result, dtype)

    return run


numpy_sum, numpy_mean = reduction(total), reduction(average)


def torch_reduction(run):
    """torch.sum and torch.mean, by NumPy's."""

    def of_torch(a, axis=ABSENT, keepdims=ABSENT, *, dtype=None):
        if axis is ABSENT and keepdims is not ABSENT:
            raise Wrong("keepdim without dim, which torch refuses")
        axis = None if axis is ABSENT else axis
        keepdims = False if keepdims is ABSENT else keepdims
        return run(a, axis, dtype, keepdims=keepdims)

    return of_torch


def numpy_variance(f):
    """np.var and np.std: f of the mean square deviation."""

    def run(a, axis=None, *, ddof=0, keepdims=False):
        if not is_number(ddof):
            raise NotRead("a correction that is not a number")
        axes = axes_of(a, axis)
        return elementwise(f, variance(floats(a), axes, flag(keepdims), plain(ddof)))

    return run


def torch_variance(f):
    """torch.var and torch.std."""
    of_numpy = numpy_variance(f)

    def run(a, axis=None, unbiased=ABSENT, keepdims=False, *, correction=ABSENT):
        if unbiased is not ABSENT and correction is not ABSENT:
            raise Wrong("a variance with unbiased and correction, which torch refuses")
        if correction is ABSENT:
            correction = 1 if unbiased is ABSENT else int(flag(unbiased))
        return of_numpy(a, axis, ddof=correction, keepdims=keepdims)

    return run


def itself(e: Expr) -> Expr:
    """e."""
    return e


torch_var = torch_variance(itself)


def _torch_var_mean(
    a, axis=None, unbiased=ABSENT, keepdims=False, *, correction=ABSENT
):
    var = torch_var(a, axis, unbiased, keepdims, correction=correction)
    return var, numpy_mean(a, axis, keepdims=keepdims)


def length(a, /, ord=None, axis=None, keepdims=False):
    """The root of the sum of squares."""
    if ord is not None and (ord != 2 or len(axes_of(a, axis)) != 1):
        raise NotRead("another norm than the root of the sum of squares")
    squares = elementwise(mul, floats(a), a)
    return elementwise(root, numpy_sum(squares, axis, keepdims=keepdims))


def vector_norm(a, /, ord=2, axis=None, keepdims=False):
    """torch.linalg.vector_norm."""
    if type(ord) is not int or ord != 2:
        raise NotRead("another norm than the root of the sum of squares")
    return length(a, None, axis, keepdims)


# new arrays


def shape_of(sizes: tuple) -> tuple:
    """A shape that is given as one tuple, or size by size."""
    return tuple(sizes_of(_sequence(sizes)))


def filled(library: str, shape: tuple, e: Expr | None, dtype: Any) -> Array:
    """A new array of one value; for None its entries must be written before they are read."""
    name = DEFAULT[library]
    if dtype is not None:
        name = name_of_dtype(library, dtype)
    result = array(shape, e, library, name)
    result.memory.written = e is not None
    if library == "numpy" and not shape:
        result.memory.fixed = "an array without axes"
    return result


def numpy_filled(value):
    """np.zeros, np.ones, np.empty."""
    return lambda shape, dtype=None: filled("numpy", shape_of((shape,)), value, dtype)


def torch_filled(value):
    """torch.zeros, torch.ones, torch.empty."""

    def run(*size, dtype=None, device=None):
        if not size:
            raise Wrong("a tensor without a size, which torch refuses")
        _check_device(device)
        return filled("torch", shape_of(size), value, dtype)

    return run


def numpy_like(value):
    """np.zeros_like, np.ones_like, np.empty_like."""

    def run(a, /, dtype=None):
        own = DType(floats(a).library, a.dtype) if dtype is None else dtype
        return filled(a.library, a.shape, value, own)

    return run


def torch_like(value):
    """torch.zeros_like, torch.ones_like, torch.empty_like."""
    like_numpy = numpy_like(value)

    def run(a, *, dtype=None, device=None):
        _check_device(device)
        return like_numpy(a, dtype)

    return run


def eye(library):
    """np.eye, torch.eye."""

    def run(n, /, *, dtype=None, device=None):
        _check_device(device)
        shape = shape_of((n, n))
        result = filled(library, shape, S.One, dtype)
        if shape[0] != 1:
            result.memory.e = KroneckerDelta(AXES[1], AXES[0])
        return result

    return run


def _check_device(device):
    if device is not None and not isinstance(device, Device):
        raise NotRead("a device that is not the arguments' own")


def as_array(a, dtype=None):
    """np.asarray."""
    if is_integer(a) and dtype is None:
        raise NotRead("an array of integers")
    if is_number(a):
        return filled("numpy", (), plain(a), dtype)
    a = stacked(a) if isinstance(a, Listed) else floats(a)
    if not a.ndim:
        raise NotRead("an array of a number of NumPy's")
    return a if dtype is None else cast(a, dtype)


def new_array(a, /, dtype=None):
    """np.array."""
    result = as_array(a, dtype)
    return copied(result) if result is a else result


def stacked(values: Any, /, axis: int = 0) -> Array:
    """np.stack and torch.stack of a list with an entry for each row."""
    if not isinstance(values, Listed) or axis != 0:
        raise NotRead("a stack of another list than one entry per row")
    is_torch = state().library == "torch"
    if is_integer(values.entry) or is_number(values.entry) and is_torch:
        raise NotRead("a stack of integers, or of numbers in torch")
    return rows_of(values)


def rows_of(values: Listed) -> Array:
    """A list with an entry for each row as an array."""
    entry, turn = values.entry, values.turn
    if is_number(entry):
        entry = array((), plain(entry), state().library, state().dtype)
    e = entry.memory.e.xreplace({turn.letter: AXES[entry.ndim]})
    return like(entry, (turn.size, *entry.shape), e)


# shapes


def _sequence(values):
    """Axes or sizes that are given as one tuple, or one by one."""
    if len(values) == 1 and isinstance(values[0], tuple | list):
        return tuple(values[0])
    return values


def transposed(a, *axes):
    """Axes in another order; all of them the other way round for none."""
    if axes in ((), (None,)) and (not axes or a.library == "numpy"):
        return moved(a, range(a.ndim)[::-1])
    axes = _sequence(axes)
    order = [axis_of(a, axis) for axis in axes]
    if sorted(order) != list(range(a.ndim)):
        raise Misfit("a transpose that leaves out an axis, or has one twice")
    return moved(a, order)


def _swapped(a, first, second, /):
    first, second = axis_of(a, first), axis_of(a, second)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return moved(a, order)


def _torch_t(a):
    if a.ndim > 2:
        raise Misfit(f"t of a tensor with {a.ndim} axes")
    return transposed(a)


def _reshape_method(self, *shape):
    if not shape:
        raise Wrong("a reshape without a shape")
    return reshaped(self, _sequence(shape))


def _raveled(a):
    return reshaped(a, (-1,))


def _unsqueezed(a, axis):
    if a.library == "numpy" and not a.ndim:
        raise NotRead("an axis that a number of NumPy's gets")
    order = list(range(a.ndim))
    order.insert(axis_of(a, axis, more=1), None)
    return moved(a, order)


def _squeezed(a, axis):
    at = axis_of(a, axis)
    if a.shape[at] != 1:
        words = f"squeeze of an axis of {a.shape[at]} entries"
        raise Misfit(words) if a.library == "numpy" else NotRead(words)
    view = moved(a, [axis for axis in range(a.ndim) if axis != at])
    if view.shape or a.library == "torch":
        return view
    return perhaps_view(a, copied(view))


def _numpy_broadcast_to(a, shape):
    return perhaps_view(a, copied(expanded(a, _sequence((shape,)))))


def _expand(self, *size):
    sizes = list(_sequence(size))
    if not size:
        raise Wrong("expand without sizes")
    if -1 in sizes[: len(sizes) - self.ndim]:
        raise NotRead("expand with -1 for an axis that is not there")
    for axis in range(-self.ndim, 0):
        if sizes[axis] == -1:
            sizes[axis] = _size(self)[axis]
    return expanded(self, sizes)


def _expand_as(self, other):
    return expanded(self, _size(other))


def of_vectors(text):
    """A product of two vectors, as einsum writes it."""

    def run(a, b, /):
        if floats(a).ndim != 1 or floats(b).ndim != 1:
            raise NotRead("a product of other than two vectors")
        return einsum(text, a, b)

    return run


# methods that only one library has


def _astype(self, dtype, *, copy=True):
    return cast(self, dtype, flag(copy))


def to(self, *targets, dtype=None, device=None):
    """Tensor.to."""
    _check_device(device)
    names = list(targets) if dtype is None else [*targets, dtype]
    names = [name for name in names if not isinstance(name, Device)]
    if len(names) > 1:
        raise NotRead("to with two dtypes")
    if not names:
        return self
    if dtype is None and isinstance(names[0], Array):
        return _type_as(self, names[0])
    return cast(self, names[0])


def _type_as(self, other):
    return cast(self, DType("torch", floats(other, "a cast to the dtype").dtype))


def cast_to(name):
    """Tensor.float and the like."""
    return lambda self: cast(self, DType("torch", name))


def _detach(self):
    state().cut = True
    return Array(self.memory, self.shape, self.axes, self.turns)


def _size(self, dim=None):
    sizes = tuple(number(s, "int") for s in self.shape)
    return sizes if dim is None else sizes[axis_of(self, dim)]


def item(self):
    """A number of Python's."""
    if floats(self).ndim:
        raise NotRead("an array as a number")
    state().cut = True
    return Scalar(self.e, "float", True)


def in_place(run):
    """add_ and the like: the result is written into the tensor."""

    def write(self, *args, **options):
        result = Known("torch", "an operation in place", run)(self, *args, **options)
        for value in (*args, *options.values()):
            if isinstance(value, Array) and value.memory is self.memory:
                raise NotRead("an operation in place with a view of the tensor itself")
        if result.shape != self.shape:
            raise Misfit("a result in place that has another shape")
        self.write(result.e)
        return self

    return write


# the norms of torch.nn.functional, by their definitions


def _normalized(a, normalized_shape, weight, bias, eps, center):
    """(a - mean) / sqrt(mean((a - mean)**2) + eps) * weight + bias; without center the mean counts as 0."""
    if not isinstance(normalized_shape, tuple | list) or not is_number(eps):
        raise NotRead("a norm of torch without a tuple of sizes, or a number eps")
    sizes = tuple(sizes_of(normalized_shape))
    shape = floats(a).shape
    axes = range(len(shape))[-len(sizes) :]
    if not sizes or shape[-len(sizes) :] != sizes:
        raise Misfit(f"normalized_shape {sizes} of {shape}")
    if center:
        a = elementwise(sub, a, average(a, axes, keep=True))
    squares = average(elementwise(mul, a, a), axes, keep=True)
    a = elementwise(lambda e, s, c: e * power(s + c, -S.Half), a, squares, eps)
    for f, vector in ((mul, weight), (add, bias)):
        if vector is None:
            continue
        if floats(vector).shape != sizes:
            raise Misfit(f"a weight or bias of the shape {vector.shape}")
        a = elementwise(f, a, vector)
    return a


def layer_norm(a, normalized_shape, weight=None, bias=None, eps=LAYER_NORM_EPS):
    """torch.nn.functional.layer_norm."""
    return _normalized(a, normalized_shape, weight, bias, eps, True)


def rms_norm(a, normalized_shape, weight=None, eps=None):
    """torch.nn.functional.rms_norm; its own eps is not read, since it depends on the dtype."""
    return _normalized(a, normalized_shape, weight, None, eps, False)


# the tables


def contiguous(a: Array) -> Array:
    """np.ascontiguousarray and Tensor.contiguous."""
    if a.library == "numpy" and not a.ndim:
        raise NotRead("ascontiguousarray of a number, which gets an axis")
    return perhaps_view(a, copied(a))


def _flattened(a):
    return copied(_raveled(a))


NUMPY: dict[str, Callable] = {
    **{name: entrywise(f, numeric) for name, f in ENTRIES.items()},
    **{name: numpy_binary(f) for name, f in OPERATIONS.items()},
    "power": torch_binary("Pow"),
    "maximum": entrywise(Max, numeric, 2),
    "minimum": entrywise(Min, numeric, 2),
    "clip": lambda a, a_min, a_max: clipped(a, a_min, a_max),
    "where": lambda condition, a, b, /: chosen(condition, a, b),
    "sum": numpy_sum,
    "mean": numpy_mean,
    "var": numpy_variance(itself),
    "std": numpy_variance(root),
    "linalg.norm": length,
    "matmul": matmul,
    "dot": matmul,
    "outer": of_vectors("i,j->ij"),
    "einsum": einsum,
    "zeros": numpy_filled(S.Zero),
    "ones": numpy_filled(S.One),
    "empty": numpy_filled(None),
    "zeros_like": numpy_like(S.Zero),
    "ones_like": numpy_like(S.One),
    "empty_like": numpy_like(None),
    "eye": eye("numpy"),
    "asarray": as_array,
    "ascontiguousarray": contiguous,
    "array": new_array,
    "copy": copied,
    "stack": stacked,
    "transpose": lambda a, axes=None: transposed(a, axes),
    "swapaxes": _swapped,
    "reshape": lambda a, shape: reshaped(a, _sequence((shape,))),
    "ravel": _raveled,
    "expand_dims": _unsqueezed,
    "squeeze": _squeezed,
    "broadcast_to": _numpy_broadcast_to,
}
_methods = "sum mean var std dot copy swapaxes ravel squeeze"
NUMPY_METHODS: dict[str, Callable] = {
    **{name: NUMPY[name] for name in _methods.split()},
    "clip": clipped,
    "astype": _astype,
    "flatten": _flattened,
    "transpose": transposed,
    "reshape": _reshape_method,
    "item": item,
}
SHARED: dict[str, Callable] = {
    **{name: entrywise(f, floats) for name, f in TORCH_ENTRIES.items()},
    **{name: torch_binary(f) for name, f in TORCH_OPERATIONS.items()},
    "maximum": entrywise(Max, floats, 2),
    "minimum": entrywise(Min, floats, 2),
    "clamp": clipped,
    "clip": clipped,
    "addcmul": _addcmul,
    "sum": torch_reduction(numpy_sum),
    "mean": torch_reduction(numpy_mean),
    "var": torch_var,
    "std": torch_variance(root),
    "norm": length,
    "matmul": matmul,
    "dot": of_vectors("i,i->"),
    "outer": of_vectors("i,j->ij"),
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "transpose": _swapped,
    "swapaxes": _swapped,
    "t": _torch_t,
    "ravel": _raveled,
    "clone": copied,
    "detach": _detach,
}
TORCH: dict[str, Callable] = SHARED | {
    "where": NUMPY["where"],
    "var_mean": _torch_var_mean,
    "linalg.norm": length,
    "linalg.vector_norm": vector_norm,
    "einsum": einsum,
    "nn.functional.layer_norm": layer_norm,
    "nn.functional.rms_norm": rms_norm,
    "zeros": torch_filled(S.Zero),
    "ones": torch_filled(S.One),
    "empty": torch_filled(None),
    "zeros_like": torch_like(S.Zero),
    "ones_like": torch_like(S.One),
    "empty_like": torch_like(None),
    "eye": eye("torch"),
    "stack": stacked,
}
TORCH_METHODS: dict[str, Callable] = SHARED | {
    "reshape": _reshape_method,
    "view": _reshape_method,
    "expand": _expand,
    "expand_as": _expand_as,
    "contiguous": contiguous,
    "flatten": _raveled,
    "to": to,
    "type_as": _type_as,
    "float": cast_to("float32"),
    "double": cast_to("float64"),
    "half": cast_to("float16"),
    "bfloat16": cast_to("bfloat16"),
    "size": _size,
    "dim": lambda a: a.ndim,
    "item": item,
}
TORCH_METHODS |= {
    f"{name}_": in_place(SHARED[name]) for name in "add sub mul div clamp".split()
}


def of_number(f):
    """A function of math, of a number or of an array without axes."""

    def run(x, /):
        value = item(x) if isinstance(x, Array) else x
        if not is_number(value):
            raise NotRead(f"a function of math of {type(value).__name__}")
        as_written = f is itself and is_number(x) and not getattr(x, "rounded", False)
        return Scalar(f(plain(value)), "float", not as_written)

    return run


MATH: dict[str, Callable] = {
    "sqrt": of_number(root),
    "exp": of_number(exp),
    "log": of_number(logarithm),
}


def _as_int(x, /):
    if is_integer(x):
        return number(plain(x), "int")
    raise NotRead("int of what is not an integer")


def _length_of(x, /):
    if isinstance(x, Array):
        if not x.ndim:
            raise Misfit("len of an array without axes")
        return number(x.shape[0], "int")
    if isinstance(x, tuple | list | str | dict):
        return len(x)
    raise NotRead(f"len of {type(x).__name__}")


def summed_up(iterable, start=0, /):
    """sum of a list with an entry for each row, or of plain values."""
    values = iterable
    if isinstance(iterable, Listed):
        values = [total(rows_of(iterable), [0])]
        if is_number(iterable.entry):
            values = [number(values[0].e, "float")]
    if not isinstance(values, tuple | list):
        raise NotRead(f"a sum of {type(iterable).__name__}")
    for value in values:
        start = arithmetic("Add", start, value)
    return start


# loops


def iterated(value: Any) -> Rows | Sequence:
    """What a loop runs over: all rows, or values."""
    if isinstance(value, Array):
        if not value.ndim or value.shape[0] == 1:
            raise NotRead("a loop over an axis of one entry")
        return Rows(value.shape[0], lambda turn: indexed(value, (turn,)))
    if isinstance(value, Once):
        return value.taken(state().loops)
    if isinstance(value, Rows | tuple | list) and not getattr(value, "shared", False):
        return value
    raise NotRead(f"a loop over {type(value).__name__}")


# the block of rows of one program
SHARE = (FLOOR(M * PROGRAM, PROGRAMS), FLOOR(M * PROGRAM + M, PROGRAMS))


def _counted(*args):
    if not all(map(is_integer, args)):
        raise NotRead("a range of other than integers")
    if all(isinstance(end, int) for end in args):
        numbers = range(*args)
        if len(numbers) > LONGEST:
            raise NotRead(f"a loop of {len(numbers)} turns")
        return list(numbers)
    ends = tuple(map(plain, args))
    if ends == SHARE:
        return Rows(M, shared=True)
    size = ends[-1]
    if ends in ((size,), (0, size)) and size.is_Symbol:
        return Rows(size)
    raise NotRead("a loop over some rows or columns only")


def _rows(value):
    items = iterated(value)
    if not isinstance(items, Rows):
        raise NotRead("an enumerate or a zip of other than rows")
    return items


def _enumerated(iterable):
    rows = _rows(iterable)
    pairs = Rows(rows.size, lambda turn: (turn, rows.item(turn)))
    return Once(pairs, state().loops)


def _zipped(*values, strict=False):
    flag(strict)
    parts = list(map(_rows, values))
    if len({part.size for part in parts}) != 1:
        raise NotRead("a zip of other lengths than all rows")
    rows = Rows(parts[0].size, lambda turn: tuple(part.item(turn) for part in parts))
    return Once(rows, state().loops)


BUILTINS: dict[str, Any] = {
    name: Known("math", name, run)
    for name, run in {
        "float": of_number(itself),
        "int": _as_int,
        "abs": entrywise(Abs, floats),
        "len": _length_of,
        "sum": summed_up,
        "range": _counted,
        "enumerate": _enumerated,
        "zip": _zipped,
    }.items()
}
TABLES: dict[str, dict[str, Callable]] = {"numpy": NUMPY, "torch": TORCH, "math": MATH}
METHODS = {"numpy": NUMPY_METHODS, "torch": TORCH_METHODS}
# {path: what it leads to}
MEMBERS: dict[str, Any] = {"numpy.newaxis": None}
for _library, _table in TABLES.items():
    for _name, _run in _table.items():
        MEMBERS[f"{_library}.{_name}"] = Known(_library, _name, _run)
for _library, _names in FLOATS.items():
    for _name, _dtype in _names.items():
        MEMBERS[f"{_library}.{_name}"] = DType(_library, _dtype)
