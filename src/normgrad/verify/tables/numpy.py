"""The functions of NumPy and the methods of its arrays, and what they have in common with torch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import mul

from sympy import KroneckerDelta, Max, Min, S

from ..arrays import (
    AXES,
    HALVES,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    arithmetic,
    array,
    average,
    axes_of,
    axis_of,
    check_defined,
    check_no_targets,
    chosen,
    copied,
    einsum,
    elementwise,
    expanded,
    floats,
    greatest,
    is_integer,
    is_number,
    is_statistic,
    keep_rounding,
    like,
    matmul,
    moved,
    note_overflow,
    number,
    of_one_rounding,
    perhaps_view,
    plain,
    reshaped,
    sizes_of,
    state,
    total,
    variance,
)
from ..over_rows import Listed
from .elementary import LOGARITHMS, functions
from .signatures import Known, each, table, wrong

# the dtype of a new array
DEFAULT = {"numpy": "float64", "torch": "float32"}
OPERATIONS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mult",
    "divide true_divide": "Div",
}
BOUNDS = {"maximum": Max, "minimum": Min}
CONSTANTS = {"zeros": S.Zero, "ones": S.One, "empty": None}


# dtypes, and NumPy's letters for them
LETTERS = {
    "float64": "f8 d double float64",
    "float32": "f4 f single float32",
    "float16": "f2 e half float16",
}


def name_of_dtype(library, dtype):
    """The name of a dtype of floats; Python's own float is NumPy's float64."""
    match dtype:
        case str() if library == "numpy":
            for name, letters in LETTERS.items():
                if dtype in letters.split():
                    return name
        case Known("math", "float") if library == "numpy":
            return "float64"
        case DType() if dtype.library == library:
            return dtype.name
    raise NotRead("a dtype that is not one of floats of the library")


def promoted_dtype(library, values):
    """The dtype of floats that some dtypes, or arrays, have together."""
    names = set()
    for value in values:
        is_array = isinstance(value, Array) and value.kind == "float" and value.ndim
        names.add(value.dtype if is_array else name_of_dtype(library, value))
    return DType(library, names.pop() if len(names) == 1 else "mixed")


def cast(a, dtype, copy=False):
    """The array in another dtype of floats: itself where it has it, unless copy."""
    if not isinstance(a, Array):
        raise NotRead(f"a cast of {type(a).__name__}")
    check_no_targets(a)
    name = name_of_dtype(a.library, dtype)
    if name in HALVES and a.e is not None and is_statistic(a.shape, a.e):
        state().narrow.append((f"a row's statistic in {name}", state().line))
    if a.kind == "float" and a.dtype == name != "mixed" and not copy:
        if name in HALVES:
            keep_rounding(a, a.e)
        return a
    new = of_one_rounding(array(a.shape, a.e, a.library, name), a)
    keep_rounding(new, a.e)
    if {a.dtype, name} == set(HALVES):
        new.memory.rounded += ((name, state().line),)
    same = "mixed" in (a.dtype, name) and not copy
    return perhaps_view(a, new) if same else new


def of_dtype(dtype, value):
    """np.float32(value), which is the array itself where it has this dtype."""
    if dtype.library != "numpy":
        raise NotRead("a call of a dtype")
    state().dtypes.add(dtype.name)
    if is_number(value):
        return number(plain(value), "float")
    return cast(value, dtype)


# elementwise


def noted(row, e):
    """An elementary function of an entry."""
    if row.needs:
        check_defined(row.f, e)
    result = row.f(e)
    state().exponentials.taken(result, state().line, state().maxima)
    if not LOGARITHMS.isdisjoint(row.names):
        note_overflow(state().exponentials.of_logarithm(e, state().line))
    return result


root = partial(noted, functions("numpy")["sqrt"])


def as_arrays(whole, *values):
    """Numbers as NumPy's, where no array is among them; whole: whether integers would stay ones."""
    if not all(map(is_number, values)):
        return values
    if bool in map(type, values) or whole and all(map(is_integer, values)):
        raise NotRead("an array of integers")
    return [array((), plain(value), "numpy", "float64") for value in values]


def of_row(row, x):
    """An elementary function."""
    return elementwise(partial(noted, row), *as_arrays(row.whole, x))


def of_operation(operation, x1, x2):
    """A function that Python has an operator for."""
    return arithmetic(operation, *as_arrays(operation != "Div", x1, x2))


def of_bound(f, x1, x2):
    """The larger, or the smaller, of two."""
    return elementwise(f, *as_arrays(True, x1, x2), is_chosen=True)


def clipped(a, least, largest):
    """The entries between two bounds."""
    bounds = [bound for bound in (least, largest) if bound is not None]
    if not bounds:
        raise NotRead("a clip without bounds")
    if a.library == "torch" and len({isinstance(b, Array) for b in bounds}) > 1:
        raise NotRead("a clamp between a tensor and a number, which torch refuses")
    for f, bound in ((Max, least), (Min, largest)):
        if bound is not None:
            a = elementwise(f, a, bound, is_chosen=True)
    return a


# reductions


def folded(f, a, axis=None, keepdims=False, dtype=None):
    """A sum or a mean."""
    if dtype is not None:
        a = cast(a, dtype)
    return f(a, axes_of(a, axis), keepdims)


def numpy_folded(f, a, axis, dtype, keepdims):
    """np.sum and np.mean."""
    return folded(f, a, axis, keepdims, dtype)


def spread(f, a, axis, correction, keepdims):
    """A variance, or with f a deviation."""
    return elementwise(f, variance(a, axes_of(a, axis), keepdims, plain(correction)))


def itself(e):
    """e."""
    return e


FOLDS = {"sum": total, "mean": average}
SPREADS = {"var": itself, "std": root}


def length(a, ord, axis, keepdims):
    """The root of the sum of squares."""
    if ord is not None and (ord != 2 or len(axes_of(a, axis)) != 1):
        raise NotRead("another norm than the root of the sum of squares")
    squares = elementwise(mul, a, a)
    return elementwise(root, total(squares, axes_of(a, axis), keepdims))


# new arrays


def filled(library, e, shape, dtype=None, device=None):
    """A new array of one value; for None its entries must be written before they are read."""
    name = DEFAULT[library] if dtype is None else name_of_dtype(library, dtype)
    result = array(sizes_of(shape), e, library, name)
    result.memory.written = e is not None
    if library == "numpy" and not shape:
        result.memory.fixed = "an array without axes"
    return result


def size(a, dim=None):
    """The sizes of an array, or one of them."""
    numbers = tuple(number(s, "int") for s in a.shape)
    return numbers if dim is None else numbers[axis_of(a, dim)]


def filled_like(e, a, dtype, device=None):
    """A new array of one value, of the shape of another."""
    if dtype is None:
        dtype = DType(a.library, a.dtype)
    return filled(a.library, e, size(a), dtype)


def eye(library, n, dtype, device=None):
    """The identity matrix."""
    result = filled(library, S.One, (n, n), dtype)
    if result.shape[0] != 1:
        result.memory.e = KroneckerDelta(AXES[1], AXES[0])
    return result


def as_array(a, dtype=None):
    """np.asarray."""
    if is_integer(a) and dtype is None:
        raise NotRead("an array of integers")
    if is_number(a):
        return filled("numpy", plain(a), (), dtype)
    a = stacked(a) if isinstance(a, Listed) else floats(a)
    if not a.ndim:
        raise NotRead("an array of a number of NumPy's")
    return a if dtype is None else cast(a, dtype)


def new_array(a, dtype):
    """np.array."""
    result = as_array(a, dtype)
    return copied(result) if result is a else result


def stacked(values, axis=0):
    """np.stack and torch.stack of a list with an entry for each row."""
    if not isinstance(values, Listed) or axis != 0:
        raise NotRead("a stack of another list than one entry per row")
    is_torch = state().library == "torch"
    if is_integer(values.entry) or is_number(values.entry) and is_torch:
        raise NotRead("a stack of integers, or of numbers in torch")
    return rows_of(values)


def rows_of(values):
    """A list with an entry for each row as an array."""
    entry, turn = values.entry, values.turn
    if is_number(entry):
        entry = array((), plain(entry), state().library, state().dtype)
    e = entry.memory.e.xreplace({turn.letter: AXES[entry.ndim]})
    return of_one_rounding(like(entry, (turn.size, *entry.shape), e), entry)


# shapes


def transposed(a, axes=None):
    """Axes in another order; all of them the other way round for None."""
    if axes is None:
        return moved(a, range(a.ndim)[::-1])
    axes = axes if isinstance(axes, tuple | list) else [axes]
    order = [axis_of(a, axis) for axis in axes]
    if sorted(order) != list(range(a.ndim)):
        raise Misfit("a transpose that leaves out an axis, or has one twice")
    return moved(a, order)


def swapped(a, first, second):
    """The array with two axes in each other's place."""
    first, second = axis_of(a, first), axis_of(a, second)
    other = {first: second, second: first}
    return moved(a, [other.get(axis, axis) for axis in range(a.ndim)])


def raveled(a):
    """The entries along one axis."""
    return reshaped(a, (-1,))


def unsqueezed(a, axis):
    """The array with a new axis."""
    if a.library == "numpy" and not a.ndim:
        raise NotRead("an axis that a number of NumPy's gets")
    order = list(range(a.ndim))
    order.insert(axis_of(a, axis, more=1), None)
    return moved(a, order)


def squeezed(a, axis):
    """The array without an axis of one entry."""
    at = axis_of(a, axis)
    if a.shape[at] != 1:
        words = f"squeeze of an axis of {a.shape[at]} entries"
        raise Misfit(words) if a.library == "numpy" else NotRead(words)
    view = moved(a, [axis for axis in range(a.ndim) if axis != at])
    if view.shape or a.library == "torch":
        return view
    return perhaps_view(a, copied(view))


def contiguous(a):
    """np.ascontiguousarray and Tensor.contiguous."""
    if a.library == "numpy" and not a.ndim:
        raise NotRead("ascontiguousarray of a number, which gets an axis")
    return perhaps_view(a, copied(a))


def of_vectors(text, a, b):
    """A product of two vectors, as einsum writes it."""
    if a.ndim != 1 or b.ndim != 1:
        raise NotRead("a product of other than two vectors")
    return einsum(text, (a, b))


def item(a):
    """A number of Python's."""
    if floats(a).ndim:
        raise NotRead("an array as a number")
    state().cut = True
    return Scalar(a.e, "float", True)


# of functions and methods
SHARED: dict[str, Callable] = {
    **each(
        "(a: floats, axis=None, dtype=None, *, keepdims: bool = False)",
        numpy_folded,
        FOLDS,
    ),
    **each(
        "(a: floats, axis=None, *, ddof: number = 0, keepdims: bool = False)",
        spread,
        SPREADS,
    ),
    "max(a: floats, axis=None, *, keepdims: bool = False)": partial(folded, greatest),
    "dot(a, b, /)": matmul,
    "copy(a)": copied,
    "swapaxes(a, first, second, /)": swapped,
    "ravel(a)": raveled,
    "squeeze(a, axis)": squeezed,
}
NUMPY = table(
    "numpy",
    {
        **SHARED,
        **each("(x: numeric, /)", of_row, functions("numpy")),
        **each("(x1, x2, /)", of_operation, OPERATIONS),
        "amax(a: floats, axis=None, *, keepdims: bool = False)": partial(
            folded, greatest
        ),
        "power(a: floats, other, /)": partial(arithmetic, "Pow"),
        **each("(x1: numeric, x2: numeric, /)", of_bound, BOUNDS),
        "clip(a: floats, a_min: numeric, a_max: numeric)": clipped,
        "where(condition, a, b, /)": chosen,
        "promote_types(type1: dtype, type2: dtype, /)": lambda *pair: promoted_dtype(
            "numpy", pair
        ),
        "result_type(*values)": lambda values: promoted_dtype("numpy", values),
        "linalg.norm(a: floats, /, ord=None, axis=None, keepdims: bool = False)": length,
        "matmul(a, b, /)": matmul,
        "outer(a: floats, b: floats, /)": partial(of_vectors, "i,j->ij"),
        "einsum(text, *arrays)": einsum,
        **each("(shape: shape, dtype=None)", partial(filled, "numpy"), CONSTANTS),
        **each("_like(a: floats, /, dtype=None)", filled_like, CONSTANTS),
        "eye(n, /, *, dtype=None)": partial(eye, "numpy"),
        "asarray(a, dtype=None)": as_array,
        "array(a, /, dtype=None)": new_array,
        "ascontiguousarray(a)": contiguous,
        "stack(values, /, axis=0)": stacked,
        "transpose(a, axes=None)": transposed,
        "reshape(a, shape: shape)": reshaped,
        "expand_dims(a, axis)": unsqueezed,
        "broadcast_to(a, shape: shape)": lambda a, shape: perhaps_view(
            a, copied(expanded(a, shape))
        ),
    },
)
METHODS = table(
    "numpy",
    {
        **SHARED,
        "clip(a: floats, min: numeric = None, max: numeric = None)": clipped,
        "astype(a, dtype, *, copy: bool = True)": cast,
        "flatten(a)": lambda a: copied(raveled(a)),
        "transpose(a, axes=None, /)": transposed,
        "transpose(a, *axes)": transposed,
        "reshape(a)": wrong("a reshape without a shape"),
        "reshape(a, *shape: sizes)": reshaped,
        "item(a)": item,
    },
)
