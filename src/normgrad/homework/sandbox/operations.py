"""One call of a student's code on given arrays, in this process or in the student's own, by the name of an operation.

Nothing of normgrad is imported here; torch and SymPy are imported where they are used.
"""

from __future__ import annotations

import contextlib
import copy
import linecache
import sys
import traceback
import warnings

import numpy as np

from .refusals import grad

OPERATIONS, KEPT_NAME = {}, 60
# torch's functions that make room and write nothing there
EMPTY = ("new_empty", "empty", "empty_like", "empty_strided")


def poisoned():
    """A mode in which what is never written does not look right by chance: torch.empty holds NaN."""
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    from torch.overrides import TorchFunctionMode

    class Poisoned(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            is_empty = getattr(func, "__name__", "") in EMPTY
            if is_empty and result.is_floating_point():
                result.fill_(float("nan"))
            return result

    return Poisoned()


def operation(function):
    """Registers a way to call the student's code under the function's name."""
    OPERATIONS[function.__name__] = function
    return function


def _laid_out(array, layout, more):
    """(view, memory) of an array; more: 1 for the first argument with a layout, 2 for the second, and so on.

    The memory between strided columns holds NaN, so that code that does not look at strides is seen.
    """
    if layout == "contiguous":
        return array, array
    array = array.T if layout == "transposed" else array
    step = 1 + more if layout == "strided" else 1
    columns = array.shape[-1] * step
    memory = np.full(
        (*array.shape[:-1], columns + (more if step == 1 else 0)), np.nan, array.dtype
    )
    view = memory[..., :columns:step]
    view[...] = array
    return (view.T if layout == "transposed" else view), memory


def build(spec: dict, arrays):
    """(argument, memory) that a spec describes: the argument is a view of the memory where its dtype allows one.

    Args:  arrays: an iterator of the request's arrays
    """
    if spec["kind"] == "scalar":
        return spec["value"], np.zeros(0)
    array, memory = _laid_out(next(arrays), spec["layout"], spec["more"])
    if spec["kind"] == "numpy":
        return array, memory
    import torch

    dtype = getattr(torch, spec["dtype"])
    # Triton's interpreter refuses an empty tensor whose memory is not torch's own.
    tensor = (
        torch.from_numpy(array).to(dtype)
        if array.size
        else torch.zeros(array.shape, dtype=dtype)
    )
    return (tensor.requires_grad_() if spec["grad"] else tensor), memory


def returned(value) -> list:
    """What a call returned, as a list: a tuple or list of results, or one result."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def summary(value) -> tuple[dict, np.ndarray]:
    """(facts, numbers) of one result: its type, dtype and shape, and its numbers as float64 where it has any."""
    facts = {"type": type(value).__name__[:KEPT_NAME]}
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        facts |= {"kind": "tensor", "dtype": str(value.dtype).removeprefix("torch.")}
        floating = value.dtype.is_floating_point
        value = (
            value.detach().double().cpu().numpy() if floating else np.zeros(value.shape)
        )
    elif isinstance(value, np.ndarray):
        value = np.ndarray.view(
            value, np.ndarray
        )  # a class made from it may say anything about itself
        facts |= {"kind": "ndarray", "dtype": str(value.dtype)}
        value = (
            value.astype(np.float64)
            if value.dtype.kind in "fiu"
            else np.zeros(value.shape)
        )
    else:
        return facts | {"kind": "other", "shape": []}, np.zeros(0)
    return facts | {"shape": list(value.shape)}, value


@operation
def call(target, arguments, options):
    """The results of a plain function."""
    return target(*arguments.values()), {}


@operation
def warned(target, arguments, options):
    """The results of a plain function, and the first warning that NumPy gave on the way."""
    with (
        warnings.catch_warnings(record=True) as caught,
        np.errstate(divide="warn", invalid="warn", over="warn"),
    ):
        warnings.simplefilter("always")
        result = target(*arguments.values())
    said = [
        str(warning.message)[:KEPT_NAME]
        for warning in caught
        if issubclass(warning.category, RuntimeWarning)
    ]
    return result, {"warning": said[0] if said else ""}


def _apply(target, arguments, options, facts):
    """The outputs of an autograd Function."""
    import torch

    if not (isinstance(target, type) and issubclass(target, torch.autograd.Function)):
        kind = (
            "class of another kind"
            if isinstance(target, type)
            else type(target).__name__
        )
        raise TypeError(
            f"{options['entry']} is a {kind}, needs a class made from torch.autograd.Function"
        )
    # torch's own apply: one of the student's could leave the derivative to torch.
    own = torch.autograd.Function.apply.__func__
    inputs = [arguments[name] for name in options["inputs"]]
    return returned(own(_padded(target, facts), *inputs))


def _padded(target, facts):
    """The same Function, whose backward may leave out the last None; facts: where it is said that it did."""

    def backward(ctx, *cotangents):
        results = target.backward(ctx, *cotangents)
        grads = results if isinstance(results, tuple) else (results,)
        left = ctx.needs_input_grad[len(grads) :]
        if not left or any(left):
            return results
        facts["left out"] = len(left)
        return *grads, *(None for _ in left)

    return type(target.__name__, (target,), {"backward": staticmethod(backward)})


def _sent(outputs, arguments, options):
    """(outputs of a Function that have a cotangent, their cotangents).

    Raises:  TypeError where there are too few outputs
    """
    names = options["cotangents"]
    if len(outputs) < len(names):
        count = f"{len(outputs)} result{'s' * (len(outputs) != 1)}"
        raise TypeError(f"forward returned {count}, needs {len(names)}")
    return outputs[: len(names)], [arguments[name] for name in names]


@operation
def apply(target, arguments, options):
    """The output of an autograd Function."""
    return _apply(target, arguments, options, {}), {}


@operation
def gradients(target, arguments, options):
    """The output of an autograd Function, then the gradients of its differentiable inputs, then second ones.

    With the cotangents dy of y and ddx, ddw, ddb of the gradients: y, dx, dw, db, and what these send to dy, x, weight.
    """
    facts = {}
    outputs, sent = _sent(_apply(target, arguments, options, facts), arguments, options)
    inputs = [arguments[name] for name in options["differentiable"]]
    twice = options.get("second")
    grads = grad(outputs, inputs, sent, create_graph=bool(twice), allow_unused=True)
    if not twice:
        return [*outputs, *grads], facts
    cotangents = [arguments[name] for name in twice["cotangents"]]
    facts["by hand"] = _by_hand(grads)
    second, facts["graph"] = _onward(
        grads, cotangents, [arguments[name] for name in twice["inputs"]]
    )
    return second, facts


def _onward(grads, cotangents, inputs):
    """(what the gradients pass on to inputs when torch differentiates them, how many of them it can differentiate)."""
    pairs = [
        (g, u)
        for g, u in zip(grads, cotangents, strict=True)
        if g is not None and g.requires_grad
    ]
    if not pairs:
        return [], 0
    ends, cotangents = zip(*pairs, strict=True)
    return list(grad(ends, inputs, cotangents, allow_unused=True)), len(pairs)


def _by_hand(grads) -> bool:
    """Whether a Function of the student's stands between the gradients and the inputs."""
    from torch.autograd.function import BackwardCFunction

    nodes, visited = (
        [g.grad_fn for g in grads if g is not None and g.requires_grad],
        set(),
    )
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        if isinstance(node, BackwardCFunction):
            return True
        visited.add(node)
        nodes += [function for function, _ in node.next_functions]
    return False


@operation
def two_layers(target, arguments, options):
    """The gradients of a first layer, after a second one with another weight and eps went forward and backward."""
    outputs, sent = _sent(_apply(target, arguments, options, {}), arguments, options)
    # With tensors of its own, so that what it writes to its inputs is not taken for what it leaves behind.
    own = {name: value.detach().clone().requires_grad_(value.requires_grad) if hasattr(value, "detach") else value
           for name, value in arguments.items()}  # fmt: skip
    swapped = own | {"weight": own["other"], "eps": 4 * own["eps"]}
    outputs_of_other, cotangents = _sent(
        _apply(target, swapped, options, {}), own, options
    )
    grad(outputs_of_other, swapped["x"], cotangents, allow_unused=True)
    inputs = [arguments[name] for name in options["differentiable"]]
    return [*outputs, *grad(outputs, inputs, sent, allow_unused=True)], {}


def held(value, deep=3):
    """The tensors in a value: itself, or in a list, a dictionary, a closure, a partial, an object's attributes."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif deep:
        inside = (
            [*value]
            if isinstance(value, (list, tuple, set))
            else [*getattr(value, "__dict__", {}).values()]
        )
        inside += value.values() if isinstance(value, dict) else ()
        inside += [
            getattr(value, name, None)
            for name in ("__self__", "__defaults__", "args", "keywords")
        ]
        with contextlib.suppress(ValueError):  # a cell that is not filled
            inside += [
                cell.cell_contents for cell in getattr(value, "__closure__", None) or ()
            ]
        for part in inside:
            yield from held(part, deep - 1)


@operation
def saved(target, arguments, options):
    """No results, but the tensors that the Function keeps for its backward: name, shape, bytes."""
    import torch

    kept, names = [], {}

    def note(tensor, how):
        name = names.get((tensor.data_ptr(), tuple(tensor.shape)), "")
        kept.append({"name": name, "how": how, "shape": list(tensor.shape), "storage": tensor.data_ptr(),
                     "bytes": tensor.nbytes})  # fmt: skip
        return tensor

    names |= {
        (t.data_ptr(), tuple(t.shape)): n
        for n, t in arguments.items()
        if isinstance(t, torch.Tensor)
    }
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: note(tensor, "save_for_backward"), lambda t: t
    ):
        results = _apply(target, arguments, options, {})
    for name, value in (
        vars(results[0].grad_fn).items() if results[0].grad_fn is not None else ()
    ):
        for entry in held(value):
            note(entry, f"ctx.{name}")
    for entry in kept:
        if not entry["name"] and (results[0].data_ptr(), list(results[0].shape)) == (
            entry["storage"],
            entry["shape"],
        ):
            entry["name"] = "y"
    return [], {"saved": kept}


def perform(target, request: dict, arrays) -> tuple[list, dict, list[str]]:
    """(results as (facts, numbers), facts of the call, names of the inputs that changed) of one request.

    Args:  request: "op", a name in OPERATIONS; "arguments", specs for build; "options", what the operation needs
           arrays: those of the arguments, in their order
    """
    left = iter(arrays)
    built = {spec["name"]: build(spec, left) for spec in request["arguments"]}
    arguments = {name: argument for name, (argument, _) in built.items()}

    def seen(name):
        return built[name][1].tobytes(), tuple(getattr(arguments[name], "shape", ()))

    before = {name: seen(name) for name in built}
    with poisoned():
        result, facts = OPERATIONS[request["op"]](target, arguments, request["options"])
    changed = [name for name in built if seen(name) != before[name]]
    return [summary(part) for part in returned(result)], facts, changed


@operation
def program(target, arguments, options):
    """What options["run"], a function of the grader's own text options["source"], makes of a student's code."""
    names = {"__name__": "program"}
    exec(
        compile(options["source"], __file__, "exec"), names
    )  # under this name, no line of it passes for the student's
    return names[options["run"]](target, arguments, options, grad)


def _method(target, name):
    function = getattr(target, name, None)
    if not callable(function):
        raise TypeError(f"the operator has no function {name}")
    return function


@operation
def operator_inputs(target, arguments, options):
    """All arrays that the operator's own `inputs` or `degenerate` draws, one set after the other, and their names."""
    drawn = _method(target, options["method"])(np.random.default_rng(options["seed"]))
    arrays, names = [], []
    for inputs in returned(drawn):
        if not isinstance(inputs, dict):
            words = "must return dictionaries, {name: array}"
            raise TypeError(f"{options['method']} {words}")
        arrays += inputs.values()
        names.append(list(map(str, inputs)))
    return arrays, {"names": names}


@operation
def operator_call(target, arguments, options):
    """What one of the operator's functions returns.

    With a number "earlier" in the options, so many arguments at the end go to forward before. With a name "version",
    the last argument holds versions of that argument, and each of them is a call with copies of the others.
    """
    function, values = _method(target, options["method"]), list(arguments.values())
    if name := options.get("version"):
        *names, versions = arguments
        results = []
        for version in arguments[versions]:
            copies = copy.deepcopy({kept: arguments[kept] for kept in names})
            copies[name] = version
            results.append(function(*copies.values()))
        return results, {}
    if earlier := options.get("earlier"):
        _method(target, "forward")(*values[-earlier:])
        del values[-earlier:]
    return function(*values), {}


@operation
def operator_second(target, arguments, options):
    """What the gradients pass on when torch differentiates the student's backward: to dy, then to each input."""
    import torch

    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.save_for_backward(*tensors)
            return _method(target, "forward")(*tensors)

        @staticmethod
        def backward(ctx, dy):
            return tuple(_method(target, "backward")(dy, *ctx.saved_tensors))

    cotangents = [arguments[f"u_{name}"] for name in options["names"]]
    tensors = [arguments[name] for name in options["names"]]
    grads = grad(Wrapped.apply(*tensors), tensors, arguments["dy"], create_graph=True)
    ways = [arguments["dy"], *tensors]
    passed, count = _onward(grads, cotangents, ways)
    for at, gradient in enumerate(passed):
        if gradient is None:
            passed[at] = torch.zeros_like(ways[at])
    return passed, {"graph": count}


KEPT_TEXT = 300


def objects_of(kinds) -> dict:
    """{name: SymPy object} of (name, kind) pairs: an indexed array, a letter for an index, or a length."""
    import sympy

    def made(name, kind):
        return (
            sympy.IndexedBase(name)
            if kind == "array"
            else sympy.Symbol(name, integer=True, positive=True)
        )

    return {name: made(name, kind) for name, kind in kinds}


def _entry(entry, arrays):
    """The number in an array's place, counted from 1; None where there is no such place."""
    import sympy

    array, index = (
        arrays.get(str(entry.base)),
        [int(i) if i.is_Integer else 0 for i in entry.indices],
    )
    if array is None or len(index) != array.ndim:
        return None
    if not all(1 <= i <= n for i, n in zip(index, array.shape, strict=True)):
        return None
    return sympy.Rational(float(array[tuple(i - 1 for i in index)]))


def _worth(expression, point, arrays):
    """An expression at a point; an entry that is not there, and a letter without a number, stay what they are."""
    import sympy

    done = expression.subs(point).doit()
    values = {entry: _entry(entry, arrays) for entry in done.atoms(sympy.Indexed)}
    return done.xreplace({e: value for e, value in values.items() if value is not None})


def number_at(expression, point, arrays, notes=None) -> float:
    """The value at one point; NaN and a note where something is left that has none."""
    import sympy

    notes = {"left": set(), "outside": set()} if notes is None else notes
    try:
        value = _worth(expression, point, arrays).doit()
    except ValueError:  # a sum from 0 of an index that is positive by its symbol
        return np.nan
    entries = value.atoms(sympy.Indexed)
    notes["outside"] |= {str(entry) for entry in entries}
    if value.free_symbols or not value.is_number:
        missing = {
            entry.base.label
            for entry in entries
            if not any(i.free_symbols for i in entry.indices)
        }
        notes["left"] |= {
            str(symbol)
            for symbol in value.free_symbols - missing
            if not isinstance(symbol, sympy.Indexed)
        }
        return np.nan
    return float(value) if value.is_extended_real else np.nan


def _described(expression, arguments) -> dict:
    """What the grader wants to know about the form of an expression. Args: arguments: {name: what it is}"""
    import sympy

    sums, letters = expression.atoms(sympy.Sum), set()
    for symbol in expression.free_symbols:
        base = isinstance(arguments.get(str(symbol)), sympy.IndexedBase)
        if not (base or isinstance(symbol, sympy.Indexed)):
            letters.add(symbol)
    summed = {limit[0] for one_sum in sums for limit in one_sum.limits}
    twice = [
        str(entry)
        for entry in expression.atoms(sympy.Indexed)
        if len(set(entry.indices)) < len(entry.indices)
    ]
    # A case that asks whether two letters agree is a delta, too.
    deltas = (sympy.KroneckerDelta, sympy.Equality, sympy.Unequality)
    return {
        "text": str(expression)[:KEPT_TEXT],
        "free": sorted(map(str, letters)),
        "namesakes": sorted(str(s) for s in letters if arguments.get(str(s), s) != s),
        "counted": sorted(str(s) for s in summed if s in arguments.values()),
        "twice": sorted(twice)[:1],
        "deltas": sums_with(sums, deltas, lambda delta: delta.free_symbols),
        "nested": any(
            len(one_sum.limits) > 1 or one_sum.function.has(sympy.Sum)
            for one_sum in sums
        ),
        "idle": sum(
            not one_sum.function.free_symbols & {limit[0] for limit in one_sum.limits}
            for one_sum in sums
        ),
        # A sum begins with an entry 0 where its letter begins at 0 and is an index as it is.
        "from zero": sums_with(
            [
                one_sum
                for one_sum in sums
                if any(limit[1:2] == (0,) for limit in one_sum.limits)
            ],
            sympy.Indexed,
            lambda entry: entry.indices,
        ),
        "floors": expression.has(sympy.floor),
    }


def sums_with(sums, kind, letters_of) -> int:
    """How many sums have something of a kind inside that has their own letter.

    Args:  kind: a class or several; letters_of: takes it, returns its letters
    """
    count = 0
    for one_sum in sums:
        letters = {limit[0] for limit in one_sum.limits}
        parts = one_sum.function.atoms(*np.atleast_1d(kind))
        count += any(letters & set(letters_of(part)) for part in parts)
    return count


@operation
def written(target, arguments, options):
    """The answers of a function of SymPy objects: numbers at every point of a grid, and the form of each answer.

    With an "at" in the options, a number for each of some letters, these are numbers already when it is called.
    """
    import sympy

    of_sympy = objects_of(options["kinds"])
    fixed = {name: sympy.Integer(n) for name, n in options.get("at", {}).items()}
    result = target(*(of_sympy | fixed).values())
    results = [*result] if isinstance(result, sympy.Tuple) else returned(result)
    points = [
        {of_sympy[name]: sympy.Integer(value) for name, value in point.items()}
        for point in options["points"]
    ]
    numbers, forms = [], []
    for answer in results:
        if not isinstance(answer, (sympy.Expr, int, float)) or isinstance(answer, bool):
            forms.append({"type": type(answer).__name__})
            numbers.append(np.zeros(0))
            continue
        expression, notes = sympy.sympify(answer), {"left": set(), "outside": set()}
        values = [number_at(expression, point, arguments, notes) for point in points]
        numbers.append(np.array(values))
        notes = {name: sorted(words)[:5] for name, words in notes.items()}
        forms.append(_described(expression, of_sympy) | notes)
    return numbers, {"forms": forms}


KEPT_MESSAGE = 300
# Far more than a test needs in one call; what all calls together hand over and get is kept up to the second number.
MOST_NUMBERS, KEPT_NUMBERS = 100_000, 200_000
NAMES = ("dy", "x", "weight", "mean", "rstd")


def function(source: str):
    """The `backward` that a text defines, in a namespace of its own."""
    names = {"__name__": "given"}
    exec(compile(source, "<backward>", "exec"), names)
    return names["backward"]


def fitting(inputs) -> list:
    """The inputs as arrays of numbers whose shapes fit together; integers count as float64.

    Raises:  TypeError or ValueError that names what is wrong with them
    """
    arrays = dict(zip(NAMES, map(np.array, inputs), strict=True))
    if sum(array.size for array in arrays.values()) > MOST_NUMBERS:
        raise ValueError(f"backward takes at most {MOST_NUMBERS} numbers a call")
    shape = arrays["x"].shape
    if len(shape) != 2 or not shape[1]:
        raise ValueError(f"x: got shape {shape}, needs (M, N) with a column at least")
    rows, columns = shape
    shapes = shape, shape, (columns,), (rows,), (rows,)
    for (name, array), needs in zip(arrays.items(), shapes, strict=True):
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
            raise TypeError(f"{name}: got dtype {array.dtype}, needs float64")
        if array.shape != needs:
            got = f"got shape {array.shape}, needs {needs}"
            raise ValueError(f"{name}: {got} for x of shape {shape}")
        if array.dtype.kind != "f":
            arrays[name] = array.astype(np.float64)
    return list(arrays.values())


@operation
def examine(target, arguments, options):
    """Whether a test rejects the backward of options["source"], in which words, and what went in and came out."""
    right, calls = function(options["source"]), []

    def backward(dy, x, weight, mean, rstd):
        arrays = fitting((dy, x, weight, mean, rstd))
        with np.errstate(all="ignore"):
            grads = right(*(array.copy() for array in arrays))
        calls.append((*arrays, *(np.array(array) for array in grads)))
        return grads

    facts = {"rejected": False, "words": ""}
    try:
        facts["answer"] = type(target(backward)).__name__
    except AssertionError as error:
        words = str(error) or _asserted(error, target, calls)
        facts |= {"rejected": True, "words": words[:KEPT_MESSAGE]}
    facts["calls"], kept, size = len(calls), [], 0
    for call in calls:
        size += sum(array.size for array in call)
        if size <= KEPT_NUMBERS:
            kept += call
    return kept, facts


def _asserted(error, target, calls) -> str:
    """The student's own line of an assert without words, and the shape of x in the call before it."""
    name, words = getattr(target, "__code__", examine.__code__).co_filename, ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == name:
            words = f"line {line}: {linecache.getline(name, line).strip()}"
    return words + (f", after x of shape {calls[-1][1].shape}" if calls else "")


def warm_up(libraries) -> None:
    """Uses torch's autograd and SymPy once: they import the rest of themselves then, before anything is refused."""
    if "torch" in libraries:
        import torch

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                return 2 * ctx.saved_tensors[0] * dy

        # With cotangents of a shape: to compare shapes, torch imports SymPy.
        x, dy = torch.ones(2, requires_grad=True), torch.ones(2)
        (dx,) = grad(Square.apply(x), x, dy, create_graph=True)
        grad(dx, x, dy)
    if "sympy" in libraries:
        import sympy

        r, x = sympy.Symbol("r", integer=True), sympy.IndexedBase("x")
        total = sympy.Sum(sympy.KroneckerDelta(r, 2) * x[r], (r, 1, 3))
        str(float(total.doit().xreplace({x[2]: sympy.Rational(1, 2)})))
        str(total)
