"""The second witness of a proof: the program is run at small sizes, beside the definitions evaluated by NumPy.

A reading may believe what is not so: a function that is not what it is called, a state, a rule of its own that is
wrong. What a run refutes is never said to be proved. A run that agrees proves nothing, and is not mentioned.
"""

from __future__ import annotations

import inspect
import linecache
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import compress, product
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from ..dtypes import NAMES, unit_roundoff
from ..symbolic.definitions import Defs
from ..symbolic.symbols import M, N, eps, i, j
from ..tolerance import LARGEST, SAFETY
from .arrays import State
from .binding import AXIS_OF, FLOAT, LIMIT, PROGRAM, PROGRAM_COUNT, PROGRAMS, Filled, T
from .functions import Input
from .memory import entry_of
from .point import Point
from .python_objects import EPSILONS_OF_MODELS, SIZES_OF_MODELS, Config, flat
from .text import module_of
from .values import BEFORE
from .verdict import Verdict

# M and N: unequal, each of them the smaller one, and 1; rows of one entry alone would hide what centring makes 0.
SIZES = ((2, 3), (1, 4), (4, 1), (5, 2), (7, 6))
SEED = 20261128
SECONDS = 20
# how often a run is looked at, and how much longer one may take that sleeps
EVERY, IDLE = 0.05, 6
# units of roundoff for operations that what was read no longer has
CANCELLED = 64
# A run may lose as many digits as the largest value on its way has before the point: what was read of (x + 1e8) - 1e8
# is x, and a run has half of its digits. What differs by more refutes a proof, and a run that may lose this share of a
# value says nothing.
MOST_LOST = 1e-3
REFUTED_BY_RUN = "the reading proves it and a run refutes it: please report"
# {name: the values of an output}
Results = Mapping[str, Any]
Run = Callable[[Point], Iterator[tuple[str, Results]]]


class Disagreement(Exception):
    """What a run did that the proof excludes, in words."""


def function_of(text: str, name: str) -> Callable:
    """A function or class of a module's text after it is run; without a name its last."""
    names: dict[str, Any] = {"__name__": "program"}
    # torch.jit.script asks for a function's lines
    lines = text.splitlines(keepends=True)
    linecache.cache["program"] = len(text), None, lines, "program"
    exec(compile(module_of(text), "program", "exec", dont_inherit=True), names)
    functions = [
        value
        for value in names.values()
        if callable(value) and getattr(value, "__module__", "") == "program"
    ]
    return names[name] if name else functions[-1]


def confronted(
    verdict: Verdict,
    run: Run,
    defs: Defs,
    heads: Mapping[str, Expr],
    noted: State,
    values: Mapping[str, float] | None = None,
) -> Verdict:
    """The verdict, unless the program, run at SIZES, gives something else than the definitions.

    Args:  verdict: proved; run: what it gives at a Point, once or several times, with words for each time
           defs, heads: the definitions, and {name: the head that an output is to be}
           noted: of the reading; values: of names that are not drawn
    """
    dtypes = noted.dtypes & {*NAMES} | {"float64"}
    unit, clock = max(map(unit_roundoff, dtypes)), _Clock()
    written = [*noted.domain, *[1 / (a - b) for a, b in noted.kinks if a != b]]
    agreed = False

    def disagreement(point, loss):
        """What a run does that the proof excludes, if it may lose digits; None for nothing."""
        try:
            _compare(point, clock, run(point), verdict, heads, loss)
        except Disagreement as reason:
            return reason
        return None

    for sizes in SIZES:
        point = Point(sizes, defs, np.random.default_rng(SEED), unit)
        point.values |= values or {}
        reason = disagreement(point, 1)
        if reason and all(map(point.defines, written)):
            loss = max([1, *map(point.largest, noted.values)])
            if CANCELLED * unit * loss > MOST_LOST:
                continue
            reason = disagreement(point, loss)
            if reason:
                place = f"M = {sizes[0]}, N = {sizes[1]}, seed {SEED}"
                return verdict.unread(f"{REFUTED_BY_RUN}. {place}: {reason}")
        agreed = agreed or not reason
    if agreed:
        return verdict
    words = "is not defined, or loses all digits, where it was run"
    return verdict.unread(f"what was read {words}")


def array_of(
    run: Run,
    name: str,
    sizes: Mapping[str, int],
    inputs: Mapping[str, Any],
    defs: Defs,
    like: Any,
) -> Any:
    """What a run gives for inputs, as lists of rows; words where it gives no such array.

    Args:  run, name: of the program and of the output there; like: an array of the shape that is needed
    """
    point = Point((sizes["M"], sizes["N"]), defs, np.random.default_rng(SEED))
    point.values = {key: np.array(value, float) for key, value in inputs.items()}
    steps, clock, shape = run(point), _Clock(), np.shape(like)
    try:
        while step := clock.next(steps):
            got = np.asarray(step[1].get(name, ()), float)
            if got.size == np.prod(shape):
                return got.reshape(shape).tolist()
    except (Disagreement, TypeError, ValueError) as reason:
        return str(reason)
    return f"it gives no {name} of the shape {shape}"


class _Clock:
    """The time that a program has, over all of its runs."""

    def __init__(self):
        self.left = SECONDS

    def next(self, steps):
        """The next of what a program gives, None after the last; whatever it raises is a Disagreement."""
        results = []

        def step():
            try:
                results.append(next(steps, None))
            except BaseException as reason:  # a program may raise any
                results.append(reason)

        start, start_at_work = time.monotonic(), time.process_time()
        at_work = waited = 0.0
        thread = threading.Thread(target=step, daemon=True)
        thread.start()
        # one that sleeps is waited for longer: a busy machine decides nothing
        while thread.is_alive() and at_work < self.left and waited < IDLE * self.left:
            thread.join(EVERY)
            waited = time.monotonic() - start
            at_work = time.process_time() - start_at_work
        self.left -= max(at_work, waited / IDLE)
        result = Disagreement(f"it did not end within {SECONDS} seconds")
        if results:
            (result,) = results
        if isinstance(result, Disagreement):
            raise result
        if isinstance(result, BaseException):
            raise Disagreement(f"{type(result).__name__}: {result}")
        return result


def _compare(point, clock, steps, verdict, heads, loss):
    """Compares every output that a run gives with its definition; loss: the factor by which roundings may grow."""
    defined = {}
    while step := clock.next(steps):
        words, results = step
        for name, got in results.items():
            if name not in defined:
                head = heads[name]
                letters = [letter for letter in (i, j) if head.has(letter)]
                needed, error = point.bounded(head, letters)
                stored = getattr(verdict.outputs.get(name), "stored", None)
                if stored is not None:
                    error = error + point.bounded(stored, letters)[1]
                # x*3/3 is rounded, although what is read of it is x
                units = loss * CANCELLED * point.unit * (1 + np.abs(needed))
                defined[name] = needed, units + SAFETY * error
            _compare_entries(f"{name}{{}}{words}", got, *defined[name])


def _compare_entries(place, got, needed, error):
    """Compares an output; place: its name, and where its place stands."""
    got = np.asarray(got, float)
    if got.shape not in (needed.shape, (*needed.shape, 1)):
        shapes = f" has the shape {got.shape}, needs {needed.shape}"
        raise Disagreement(place.format(shapes))
    got = got.reshape(needed.shape)
    # where the definition has no value, the proof says nothing
    defined = np.isfinite(needed) & np.isfinite(error)
    for at in np.argwhere(defined & ~(np.abs(got - needed) <= error))[:1]:
        at = tuple(at.tolist())
        numbers = f"got {got[at]:.17g}, needs {needed[at]:.17g} within {error[at]:.1g}"
        raise Disagreement(f"{place.format(list(at) or '')}: {numbers}")


def _argument(point, value):
    """What an argument of a function is at a point: an array of its own, a number, or the plain value."""
    if isinstance(value, Symbol):
        return point.shape((value,))[0]
    if isinstance(value, Config):
        numbers = dict.fromkeys(SIZES_OF_MODELS, point.sizes[N])
        numbers |= dict.fromkeys(EPSILONS_OF_MODELS, float(point.tensor(eps)))
        return SimpleNamespace(**numbers)
    if not isinstance(value, Input):
        return value
    entries = point.tensor(value.head)
    if not value.shape:
        return float(entries)
    return np.array(np.reshape(entries, point.shape(value.shape)))


def _check_unchanged(arguments, before):
    for name, value in before.items():
        if isinstance(value, np.ndarray):
            after = _as_array(arguments[name])
            if not np.array_equal(after, value, equal_nan=True):
                raise Disagreement(f"it writes over {name}")


def _copies(values, library="numpy"):
    """Copies of arrays, by name, as the library has them; other values as they are."""
    copies = dict(values)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            copies[name] = value.copy()
            if library == "torch":
                copies[name] = import_module("torch").from_numpy(copies[name])
    return copies


def of_function(
    call: Callable,
    library: str,
    bound: Mapping[str, Any],
    names: Sequence[str],
    gradients: Mapping[str, str],
    cotangents: Sequence[Expr | None],
) -> Run:
    """The run of a function, or of an autograd Function for each choice of what requires a gradient.

    Args:  call: of {parameter: value}; bound: {parameter: Input or plain value}; names: of the results
           gradients: {argument: the name of its gradient}
           cotangents: of the results, None of one that is marked as not differentiable
    """

    def run(point):
        before = {name: _argument(point, value) for name, value in bound.items()}
        heads = {k: e for k, e in enumerate(cotangents) if e is not None}
        passed = {k: np.asarray(point.tensor(head)) for k, head in heads.items()}
        passed = _copies(passed, library)
        for pattern in product((True, False), repeat=len(gradients)):
            needed = list(compress(gradients, pattern))
            words = f", with requires_grad of {', '.join(needed) or 'nothing'}"
            arguments = _copies(before, library)
            inputs = [arguments[name].requires_grad_() for name in needed]
            with np.errstate(all="ignore"):
                returned = list(flat(call(arguments)))
            if len(returned) != len(names):
                raise Disagreement(f"it returns {len(returned)} results")
            arrays = map(_as_array, returned)
            yield words * bool(gradients), dict(zip(names, arrays, strict=True))
            if needed:
                have = {k: a for k, a in enumerate(returned) if a.requires_grad}
                if have.keys() != passed.keys():
                    raise Disagreement(f"other outputs have a gradient{words}")
                grad, outputs = import_module("torch.autograd").grad, [*have.values()]
                # of rows, a result may be a column
                slopes = [passed[k].reshape(a.shape) for k, a in have.items()]
                slopes = grad(outputs, inputs, slopes, materialize_grads=True)
                for name, slope in zip(needed, slopes, strict=True):
                    yield words, {gradients[name]: slope.numpy()}
            _check_unchanged(arguments, before)

    return run


def in_order(forward: Callable, named: Mapping[str, Any]) -> list:
    """The arguments of apply, which takes no names, with the defaults of those before the last that is given."""
    defaults = {}
    for name, parameter in inspect.signature(forward).parameters.items():
        if name in named or parameter.default is not parameter.empty:
            defaults[name] = parameter.default
    last = max([k for k, name in enumerate(defaults) if name in named], default=-1)
    return list((defaults | dict(named)).values())[: last + 1]


def of_layer(kind: type, named: Mapping[str, Any], switches: Sequence[str]) -> Any:
    """What a torch.nn.Module returns, made by its __init__, whose weights are those that are named.

    Args:  switches: the arguments of __init__ that say whether the parameter of their name is there
    """
    initial, forward = (
        [name for name in inspect.signature(method).parameters if name in named]
        for method in (kind.__init__, kind.forward)
    )
    given = {name: named[name] for name in initial}
    there = [name for name in switches if not isinstance(given.get(name), bool | None)]
    layer = kind(**given | dict.fromkeys(there, True))
    for name in {*set(named).difference(initial, forward), *there}:
        # the parameter itself is what it was, whatever names __init__ has given it
        owners = [
            part for part in layer.modules() if getattr(part, name, None) is not None
        ]
        getattr(owners[-1], name).data = named[name]
    return layer(**{name: named[name] for name in forward})


def of_plain(
    kind: type, values: Mapping[str, Any], outputs: Sequence[str] | None
) -> list:
    """What forward and backward of a class of no base return, and the attributes that follow in the outputs."""
    forward = getattr(kind, "forward", None)
    call = vars(kind).get("__call__", forward)
    if not inspect.getfullargspec(call).varargs:
        forward = call
    methods = [kind.__init__, forward, getattr(kind, "backward", None)]
    layer, results, names = kind.__new__(kind), [], set(values)
    for method in filter(None, methods):
        own = names.intersection(inspect.signature(method).parameters)
        results.append(method(layer, **{name: values[name] for name in own}))
        names -= own
        if method is kind.__init__:
            for name in names.intersection(vars(layer)):
                setattr(layer, name, values[name])
    results = [result for result in flat(results[1:]) if result is not None]
    attributes = (outputs or ())[len(results) :]
    return results + [getattr(layer, name) for name in attributes]


def with_leading(a: Any) -> Any:
    """A tensor (M, ...) as (B, T, ...), with two or one for B."""
    count = 2 if a.shape[0] % 2 == 0 else 1
    return a.reshape(count, -1, *a.shape[1:])


def without_leading(a: Any, is_flat: bool) -> Any:
    """A result (B, T, ...) as (M, ...); any other as it is; is_flat: whether what has two axes is (M, N)."""
    is_split = a.ndim > 1 and not (is_flat and a.ndim == 2)
    return a.reshape(-1, *a.shape[2:]) if is_split else a


def _as_array(value):
    return value.detach().numpy() if hasattr(value, "detach") else value


def of_loops(
    program: Any,
    binding: Mapping[str, Any],
    outputs: Mapping[str, T],
    words: Sequence[str],
) -> Run:
    """The run of a kernel in loops, by all of its programs, as Python and not compiled.

    Args:  binding: {argument: what it is}; outputs: those of it that are stored; words: what the proof assumes
    """
    function = uncompiled(program, {})
    numbered = [name for name, bound in binding.items() if bound is PROGRAM]

    def run(point):
        programs = 1
        if numbered:
            programs = 2 if point.sizes[M] > 2 else 3
        point.sizes[PROGRAMS[0]] = programs
        before = {}
        for name, bound in binding.items():
            before[name] = _loop_argument(point, bound)
            if f"{name} {BEFORE}" in words:
                before[name][...] = 0
        arguments = _copies(before)
        for number in range(programs):
            arguments |= dict.fromkeys(numbered, number)
            with np.errstate(all="ignore"):
                function(**arguments)
        stored = {}
        for name, bound in outputs.items():
            del before[name]
            stored[name] = arguments[name]
            if "p" in bound.letters:
                stored[name] = stored[name].sum(0)
        _check_unchanged(arguments, before)
        yield "", stored

    return run


def uncompiled(value: Any, done: dict[FunctionType, FunctionType]) -> Any:
    """A function that Numba would compile, as the plain one that calls plain ones; done: those that were met."""
    function = value
    if type(value).__module__ == "numba.core.registry":
        function = value.py_func
    if not isinstance(function, FunctionType):
        return value
    if function not in done:
        done[function] = function
        before, plain = function.__globals__, {}
        for name in before.keys() & {*function.__code__.co_names}:
            plain[name] = uncompiled(before[name], done)
        if any(plain[name] is not before[name] for name in plain):
            code, defaults = function.__code__, function.__defaults__
            names, cells = before | plain, function.__closure__
            done[function] = FunctionType(code, names, code.co_name, defaults, cells)
    return done[function]


def _loop_argument(point, bound):
    """What an argument of a kernel in loops is at a point."""
    match bound:
        case T(letters=letters, before=before):
            axes = [AXIS_OF[letter] for letter in letters]
            if before is None:
                return np.full(point.shape(size for size, _ in axes), np.nan)
            return np.array(point.tensor(entry_of(before, axes)))
        case Filled(shape, value):
            lengths = [int(point.sizes.get(size, size)) for size in shape]
            return np.full(lengths, float(value))
        case Expr():
            value = float(point.value(bound, ()))
            return int(value) if bound.is_integer else value
    words = {PROGRAM_COUNT: point.sizes[PROGRAMS[0]], FLOAT: np.float64}
    words[LIMIT] = LARGEST["float64"]
    return words.get(bound, bound)
