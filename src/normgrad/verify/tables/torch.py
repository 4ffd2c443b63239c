"""The functions of torch and the methods of its tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add, mul, sub, truediv

from sympy import Rational, S, exp, log, prod

from ...symbolic.elementary import sigmoid
from ..arrays import (
    HALVES,
    UNNAMED,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    Split,
    Stride,
    Wrong,
    arithmetic,
    array,
    average,
    axis_of,
    by_rows,
    chosen,
    copied,
    einsum,
    elementwise,
    expanded,
    floats,
    greatest,
    keep_rounding,
    matmul,
    number,
    of_one_rounding,
    plain,
    power,
    reshaped,
    sizes_of,
    state,
    strides_of,
    total,
    use_rounded,
)
from ..binding import letter
from ..values import Unsupported
from .elementary import functions
from .numpy import (
    BOUNDS,
    CONSTANTS,
    FOLDS,
    OPERATIONS,
    SPREADS,
    cast,
    clipped,
    contiguous,
    eye,
    filled,
    filled_like,
    folded,
    item,
    itself,
    length,
    of_bound,
    of_operation,
    of_row,
    of_vectors,
    promoted_dtype,
    raveled,
    size,
    spread,
    squeezed,
    stacked,
    swapped,
    transposed,
    unsqueezed,
)
from .signatures import (
    Address,
    Device,
    Fields,
    Guard,
    Indices,
    Integers,
    Largest,
    TrainedParameter,
    each,
    table,
    wrong,
)


def addcmul(a, tensor1, tensor2, value):
    """a + value * tensor1 * tensor2."""
    if len({floats(part).dtype for part in (a, tensor1, tensor2)}) > 1:
        raise NotRead("addcmul of tensors of two dtypes, which torch refuses")
    product = arithmetic("Mult", arithmetic("Mult", tensor1, tensor2), value)
    return arithmetic("Add", a, product)


def vector_norm(a, ord, axis, keepdims):
    """torch.linalg.vector_norm."""
    if type(ord) is not int or ord != 2:
        raise NotRead("another norm than the root of the sum of squares")
    return length(a, None, axis, keepdims)


def with_mean(a, axis, correction, keepdims):
    """torch.var_mean."""
    mean = folded(average, a, axis, keepdims)
    return spread(itself, a, axis, correction, keepdims), mean


def turned(a):
    """Tensor.t."""
    if a.ndim > 2:
        raise Misfit(f"t of a tensor with {a.ndim} axes")
    return transposed(a)


def expand(a, sizes):
    """Tensor.expand, in which -1 stands for the size that is there."""
    if -1 in sizes[: len(sizes) - a.ndim]:
        raise NotRead("expand with -1 for an axis that is not there")
    sizes = list(sizes)
    if len(sizes) < a.ndim:
        raise Misfit(f"expand to {len(sizes)} sizes of a tensor with {a.ndim} axes")
    for axis in range(-a.ndim, 0):
        if sizes[axis] == -1:
            sizes[axis] = size(a)[axis]
    return expanded(a, sizes)


def to(a, targets, dtype, device):
    """Tensor.to: a dtype, that of a tensor, or none."""
    names = [name for name in targets if not isinstance(name, Device)]
    if len(names) + (dtype is not None) > 1:
        raise NotRead("to with two dtypes")
    if not names:
        return a if dtype is None else cast(a, dtype)
    (name,) = names
    return type_as(a, name) if isinstance(name, Array) else cast(a, name)


def type_as(a, other):
    """The tensor in the dtype of another."""
    return cast(a, DType("torch", floats(other, "a cast to the dtype").dtype))


def detach(a):
    """The tensor, through which no gradient passes."""
    state().cut = True
    return Array(a.memory, a.shape, a.axes, a.turns)


def in_place(run, a, *values):
    """add_ and the like: the result is written into the tensor."""
    result = run(a, *values)
    for value in values:
        if isinstance(value, Array) and value.memory is a.memory:
            raise NotRead("an operation in place with a view of the tensor itself")
    if result.shape != a.shape:
        raise Misfit("a result in place that has another shape")
    a.write(result.e)
    of_one_rounding(a, result)
    return a


def changed(operation, *values):
    """An operation in place, by the name of its node."""
    return in_place(partial(arithmetic, operation), *values)


def by_row(run):
    """What a method does with a tensor of two axes, of one of three, too."""

    def split(a, *values):
        result = run(by_rows(a), *values)
        return type(a)(result) if isinstance(a, Split) else result

    return split


def flattened(a, start, end):
    """Tensor.flatten: the axes from start to end as one."""
    first = axis_of(a, start)
    last = axis_of(a, end)
    if first > last:
        raise NotRead("flatten with start_dim after end_dim")
    if first == last:
        return a
    if (first, last) != (0, a.ndim - 1):
        raise NotRead("flatten of some axes of a tensor of three or more")
    return raveled(a)


def viewed(a, shape):
    """Tensor.view and reshape: a view, where only axes of one entry come and go."""
    return reshaped(a, shape, copy=False)


def stride(a, dim=None):
    """Tensor.stride: from entry to entry along an axis."""
    if not state().way:
        raise NotRead("strides of a tensor, by which its values do not depend")
    strides = [Stride(e, "int", memory=a.memory) for e in strides_of(a)]
    return tuple(strides) if dim is None else strides[axis_of(a, dim)]


BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def element_size(a):
    """Tensor.element_size: bytes."""
    if floats(a).dtype == UNNAMED:
        state().dtypes.add("asked for")
    if state().way:
        state().way.shared["element size"] = True
    if a.dtype not in BYTES:
        raise NotRead(f"the size of an entry of the dtype {a.dtype}")
    return BYTES[a.dtype]


def is_contiguous(a):
    """Tensor.is_contiguous."""
    if not state().way or a.memory.row_stride is not None:
        raise NotRead("whether a tensor is contiguous, where its rows may lie apart")
    a = by_rows(a)
    ordered = [axis for axis in a.axes if axis is not None]
    missing = len(a.memory.shape) - len(ordered)
    if ordered != sorted(ordered) or missing and a.axes != a.axes[-len(ordered) :]:
        raise NotRead("whether a view is contiguous")
    return True


def parameter(a, requires_grad):
    """torch.nn.Parameter, whose entries training changes, and with them those of the tensor that it is made of."""
    a.memory.is_lost = not a.memory.argument
    return TrainedParameter(a.shape)


def initial(tensor, *numbers):
    """A function of torch.nn.init: what a parameter begins as says nothing of what it is when it is used."""
    if not isinstance(tensor, TrainedParameter):
        raise NotRead("a function of torch.nn.init of other than a parameter")
    return tensor


def properties(device):
    """torch.cuda.get_device_properties: the number of multiprocessors is any."""
    name = "multi_processor_count"
    return Fields({name: Scalar(letter(name), "int")})


def made(e, sizes, dtype, device):
    """torch.empty, zeros and ones; without a device it is on the CPU."""
    if isinstance(dtype, Integers):
        if e != 0:
            raise NotRead("a tensor of integers other than zeros")
        result = array(sizes_of(sizes), e, "torch", UNNAMED, kind="int")
    else:
        result = filled("torch", e, sizes, dtype)
    by_rows(result).memory.is_on_cpu = device is None
    if device is None and not state().way:
        state().words.append("tensors are where torch makes one without a device")
    by_rows(result).memory.is_ordered = True
    return result


def check_dense(sizes, strides):
    """Refuses strides with which the entries do not follow each other; an axis of one entry may have any."""
    step = S.One
    pairs = zip(sizes_of(sizes), strides, strict=True)
    for entries, own in reversed(list(pairs)):
        if entries != 1 and plain(own) != step:
            raise NotRead(f"a tensor of {sizes} whose entries lie apart")
        step *= entries


def strided(sizes, strides, dtype):
    """The memory on a GPU that torch's compiler allocates."""
    check_dense(sizes, strides)
    return made(None, sizes, dtype, Device())


def reinterpreted(a, sizes, strides, offset):
    """A view of such memory from its beginning on."""
    check_dense(sizes, strides)
    if offset != 0:
        raise NotRead("a view that begins inside of its memory")
    return viewed(a, sizes)


def laid_out(a):
    """Tensor.contiguous, whose rows follow each other."""
    result = contiguous(a)
    result.memory.is_ordered = True
    return result


def available():
    """torch.cuda.is_available."""
    state().words.append("torch.cuda.is_available()")
    return True


def on_gpu(device, index=None):
    """torch.device, of a GPU."""
    if device is None:
        raise NotRead("a device None, which torch refuses")
    return device


def nothing(*values):
    """What changes no value."""


def new_like(e, a, sizes, dtype):
    """Tensor.new_empty and new_zeros."""
    dtype = DType("torch", floats(a).dtype) if dtype is None else dtype
    return filled("torch", e, sizes, dtype)


def zeroed(a):
    """Tensor.zero_."""
    a.write(S.Zero)
    return a


def with_indices(a, axis, keepdims):
    """torch.max over an axis."""
    return Largest((greatest(a, [axis_of(a, axis)], keepdims), Indices()))


# the norms of torch.nn.functional, and softmax, by their definitions

EPS = Scalar(Rational("1e-5"), "float")


def normalized(center, a, normalized_shape, weight, bias, eps=EPS):
    """(a - mean) / sqrt(mean((a - mean)**2) + eps) * weight + bias; without center the mean counts as 0."""
    sizes = tuple(sizes_of(normalized_shape))
    axes = range(a.ndim)[-len(sizes) :]
    if not sizes or a.shape[-len(sizes) :] != sizes:
        raise Misfit(f"normalized_shape {sizes} of {a.shape}")
    dtype = a.dtype
    if center:
        check_dtypes(dtype, [part for part in (weight, bias) if part is not None])
    a = widened(a)
    if center:
        a = elementwise(sub, a, average(a, axes, keep=True))
    squares = average(elementwise(mul, a, a), axes, keep=True)
    a = elementwise(lambda e, s, c: e * power(s + c, -S.Half), a, squares, eps)
    for f, vector in ((mul, weight), (add, bias)):
        if vector is not None:
            if floats(vector).shape != sizes:
                raise Misfit(f"a weight or bias of the shape {vector.shape}")
            a = elementwise(f, a, vector)
    return narrowed(a, dtype)


def check_dtypes(dtype, vectors):
    """Refuses a layer_norm whose weight and bias have other dtypes than torch 2.13 takes on a CPU.

    For a tensor of 16 bits, whose weight and bias may both be float32. It stops x.float() beside weight.half(), which
    torch refuses for tensors of every dtype.
    """
    names = {floats(vector).dtype for vector in vectors}
    takes = {dtype, "float32"} if dtype in HALVES else {dtype}
    if len(names) > 1 or not names <= takes or "mixed" in names:
        parts = f"layer_norm of {dtype} with {' and '.join(sorted(names))}"
        why = "refuses on a CPU: cast weight and bias as the tensor is"
        raise Unsupported(f"{parts}, which torch {why}")


LEAST = Scalar(Rational("1e-12"), "float")


def of_length_one(a, p, dim, eps=LEAST):
    """a / max(length of a, eps); torch's dim is 1 where none is said."""
    if isinstance(p, Scalar) or p != 2:
        raise NotRead("another length than the root of the sum of squares")
    if dim is None:
        raise NotRead("the length of all entries")
    size = clipped(length(a, None, dim, True), eps, None)
    return elementwise(truediv, a, size)


def swish(a):
    """a times its sigmoid."""
    return elementwise(lambda e: e * sigmoid(e), a)


def widened(a):
    """A tensor of 16 bits as torch's own norms and softmax compute with it, in float32."""
    use_rounded(a)
    return array(a.shape, a.e, "torch", "float32") if a.dtype in HALVES else a


def narrowed(a, dtype):
    """A result of theirs, in the dtype of their argument."""
    if dtype == a.dtype:
        return a
    result = array(a.shape, a.e, "torch", dtype)
    if dtype in HALVES:
        keep_rounding(result, a.e)
    return result


def share(f, a, dim, dtype):
    """torch.softmax, with f a quotient; its logarithm, with f a difference."""
    a = a if dtype is None else cast(a, dtype)
    dtype, a = a.dtype, widened(a)
    whole = of_exponentials(a, axis_of(a, dim), True)
    if f is sub:
        result = elementwise(sub, a, elementwise(log, whole))
    else:
        result = elementwise(truediv, elementwise(exp, a), whole)
    return narrowed(result, dtype)


def of_exponentials(a, dim, keepdims):
    """The sum of the exponentials."""
    return folded(total, elementwise(exp, a), dim, keepdims)


def logarithm(a, dim, keepdims):
    """torch.logsumexp."""
    if dim is None:
        raise Wrong("a TypeError: logsumexp with dim=None")
    return elementwise(log, of_exponentials(a, dim, keepdims))


SHARES = {"softmax": truediv, "log_softmax": sub}
UNBIASED = "(input: floats, dim=None, unbiased: bool = True, keepdim: bool = False)"
CORRECTED = "(input: floats, dim=None, *, correction: number, keepdim: bool = False)"
OVERCORRECTED = "(input, dim=None, unbiased=None, keepdim: bool = False, *, correction)"
TOO_MUCH = wrong("a variance with unbiased and correction, which torch refuses")
IN_PLACE = {"add": "Add", "sub": "Sub", "mul": "Mult", "div": "Div"}
CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
}
# of functions and methods
SHARED: dict[str, Callable] = {
    **each("(input: floats, /)", of_row, functions("torch")),
    **each(
        "(input: floats, other, /)",
        of_operation,
        OPERATIONS | IN_PLACE | {"pow": "Pow"},
    ),
    **each("(input: floats, other: floats, /)", of_bound, BOUNDS),
    **each("(input: floats, dim, keepdim: bool = False, *, dtype=None)", folded, FOLDS),
    "amax(input: floats, dim, keepdim: bool = False)": partial(folded, greatest),
    "max(input: floats, dim, keepdim: bool = False)": with_indices,
    "logsumexp(input: floats, dim, keepdim: bool = False)": logarithm,
    **each("(input: floats, dim, *, dtype=None)", share, SHARES),
    "sum mean(input, *, keepdim, dtype=None)": wrong(
        "keepdim without dim, which torch refuses"
    ),
    **each(
        "(input: floats, *, dim=None, keepdim: bool = False, dtype=None)", folded, FOLDS
    ),
    **each(UNBIASED, spread, SPREADS),
    **each(CORRECTED, spread, SPREADS),
    f"var std{OVERCORRECTED}": TOO_MUCH,
    "clamp clip(input: floats, min: numeric = None, max: numeric = None)": clipped,
    "clamp_min(input: floats, min: numeric)": lambda a, least: clipped(a, least, None),
    "clamp_max(input: floats, max: numeric)": lambda a, most: clipped(a, None, most),
    "relu(input: floats)": lambda a: clipped(a, 0, None),
    "addcmul(input, tensor1, tensor2, *, value: number = 1)": addcmul,
    "norm(a: floats, /, p=None, dim=None, keepdim: bool = False)": length,
    "matmul(a, b, /)": matmul,
    **each(
        "(a: floats, b: floats, /)", of_vectors, {"dot": "i,i->", "outer": "i,j->ij"}
    ),
    "unsqueeze(input, dim)": unsqueezed,
    "squeeze(input, dim)": squeezed,
    "transpose swapaxes(input, first, second, /)": swapped,
    "t(input)": turned,
    "ravel(input)": raveled,
    "clone(input)": copied,
    "detach(input)": detach,
}
TORCH = table(
    "torch",
    {
        **SHARED,
        f"var_mean{UNBIASED}": with_mean,
        f"var_mean{CORRECTED}": with_mean,
        f"var_mean{OVERCORRECTED}": TOO_MUCH,
        "where(condition, a, b, /)": chosen,
        "linalg.norm(a: floats, /, ord=None, dim=None, keepdim: bool = False)": length,
        "linalg.vector_norm(a: floats, /, ord=2, dim=None, keepdim: bool = False)": vector_norm,
        "promote_types(type1: dtype, type2: dtype)": lambda *pair: promoted_dtype(
            "torch", pair
        ),
        "einsum(text, *arrays)": einsum,
        "layer_norm nn.functional.layer_norm(input: floats, normalized_shape: list, "
        "weight=None, bias=None)": partial(normalized, True),
        "layer_norm nn.functional.layer_norm(input: floats, normalized_shape: list, "
        "weight=None, bias=None, eps: number = None)": partial(normalized, True),
        "rms_norm nn.functional.rms_norm(input: floats, normalized_shape: list, "
        "weight=None, eps: number = None)": lambda a, sizes, weight, eps: normalized(
            False, a, sizes, weight, None, eps
        ),
        "nn.functional.normalize(input: floats, p=2, dim=1)": of_length_one,
        "nn.functional.normalize(input: floats, p=2, dim=1, eps: number = None)": (
            of_length_one
        ),
        "nn.functional.silu(input: floats)": swish,
        "nn.functional.relu(input: floats)": lambda a: clipped(a, 0, None),
        "permute(input, dims: sizes)": transposed,
        **each(
            "(input: floats, dim, *, dtype=None)",
            share,
            {f"nn.functional.{name}": f for name, f in SHARES.items()},
        ),
        "zeros ones empty(*, dtype=None, device=None)": wrong(
            "a tensor without a size, which torch refuses"
        ),
        **each(
            "(*size: sizes, dtype=None, device: device = None)",
            made,
            CONSTANTS,
        ),
        **each(
            "_like(input: floats, /, *, dtype=None, device: device = None)",
            filled_like,
            CONSTANTS,
        ),
        "eye(n, /, *, dtype=None, device: device = None)": partial(eye, "torch"),
        "stack(input, /, dim=0)": stacked,
    },
)
METHODS = table(
    "torch",
    {
        **SHARED,
        **each("_(input: floats, other, /)", changed, IN_PLACE),
        "clamp_(input: floats, min: numeric = None, max: numeric = None)": partial(
            in_place, clipped
        ),
        **each("(self)", lambda name, a: cast(a, DType("torch", name)), CASTS),
        "permute(self, *dims: sizes)": transposed,
        "reshape view(self)": wrong("a reshape without a shape"),
        "reshape view(self, *shape: sizes)": viewed,
        "expand(self)": wrong("expand without sizes"),
        "expand(self, *size: sizes)": expand,
        "expand_as(self, other)": lambda a, other: expanded(a, size(other)),
        "contiguous(self)": by_row(laid_out),
        "flatten(self, start_dim: int = 0, end_dim: int = -1)": flattened,
        "to(self, *targets, dtype=None, device: device = None)": by_row(to),
        "type(self, dtype)": by_row(cast),
        "type_as(self, other)": by_row(type_as),
        "size(self, dim=None)": size,
        "dim(self)": lambda a: a.ndim,
        "item(self)": item,
    },
)
# of functions that launch kernels
HOST = table(
    "torch",
    {
        "nn.Parameter(data: floats, requires_grad: bool = True)": parameter,
        "nn.init.ones_ nn.init.zeros_(tensor)": initial,
        "nn.init.constant_(tensor, val)": initial,
        "nn.init.normal_(tensor, mean=0.0, std=1.0)": initial,
        "nn.init.uniform_(tensor, a=0.0, b=1.0)": initial,
        "cuda.get_device_properties(device: gpu = None)": properties,
        "cuda.current_device()": Device,
        "device(type: gpu, index=None, /)": on_gpu,
        "cuda.synchronize(device: gpu = None)": nothing,
        "cuda.set_device(device: gpu)": lambda device: nothing(on_gpu(device)),
        "cuda.is_available()": available,
        # of what torch's compiler writes
        "_C._dynamo.guards._empty_strided_cuda(size, stride, dtype)": strided,
        "ops.inductor._reinterpret_tensor(a, size, stride, offset)": reinterpreted,
        "_C._cuda_getCurrentRawStream(device)": nothing,
    },
)
GUARDS = table("torch", {"device _DeviceGuard(device: gpu)": lambda device: Guard()})
HOST_METHODS = table(
    "torch",
    {
        "view_as reshape_as(self, other)": lambda a, other: viewed(a, size(other)),
        "stride(self, dim=None)": stride,
        "numel(self)": lambda a: number(prod(a.shape, start=S.One), "int"),
        "element_size(self)": element_size,
        "is_contiguous(self)": is_contiguous,
        "new_empty new_zeros(self, *, dtype=None)": wrong(
            "a tensor without a size, which torch refuses"
        ),
        "new_empty(self, *size: sizes, dtype=None)": partial(new_like, None),
        "new_zeros(self, *size: sizes, dtype=None)": partial(new_like, S.Zero),
        "zero_(self)": zeroed,
        "cuda(self)": itself,
        "ndimension(self)": lambda a: a.ndim,
        "data_ptr(self)": lambda a: Address(),
    },
)
