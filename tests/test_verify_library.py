"""The tables of library functions against NumPy and torch: what a row accepts runs there and gives what is read."""

import contextlib
import itertools
import random
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from points import set_maxima
from sympy import S, evaluate
from tables import claims

from normgrad.symbolic.symbols import M, N, i, j, k, p
from normgrad.verify import verify
from normgrad.verify.arrays import (
    Array,
    DType,
    NotRead,
    Scalar,
    Wrong,
    compared,
    moved,
    number,
    state,
    total,
    tracing,
)
from normgrad.verify.definitions import norm
from normgrad.verify.functions import entry
from normgrad.verify.point import Point
from normgrad.verify.programs import input_of
from normgrad.verify.tables.libraries import FLOATS, METHODS, TABLES

DEFS = norm().defs
SIZES = 4, 3
COUNT = 5  # random calls of each row
SIZED = "(M,N) (N,) (M,1) (M,-1) [M,N] M N F (F,) (F,N)".split()  # F is M as a float
TEXTS = "0 1 -1 2 None True False (0,1) (0,) (0,-1) (1,0) () [0] (1,) 'ij->i' 'ij,j->i'"
NAMES = (
    "a x array object prototype input A axis dim keepdims keepdim dtype ddof correction "
    "unbiased min max a_min a_max ord p value device copy axes"
)


def arguments(kind):
    """(a Point, {text of an argument: (its value in a run, its value in a reading)})."""
    module = pytest.importorskip(kind)
    point, pairs = Point(SIZES, DEFS, np.random.default_rng(0)), {}
    for name, role in (("x", "x"), ("w", "weight"), ("r", "rstd")):
        given = input_of(name, role)
        run = point.tensor(given.head).copy()
        if kind == "torch":
            run = module.from_numpy(run)
        pairs[name] = run, given.value()
    x, read = pairs["x"]
    pairs["x.T"] = x.T, moved(read, [1, 0])
    pairs["w[None]"] = pairs["w"][0][None], moved(pairs["w"][1], [None, 0])
    pairs["x > 0"] = x > 0, compared("Gt", read, 0)
    pairs["x.sum()"] = x.sum(), total(read, [0, 1])
    pairs["float32"] = module.float32, DType(kind, "float32")
    pairs["0.5"] = 0.5, Scalar(S.Half, "float")
    for text in TEXTS.split():
        pairs[text] = eval(text), eval(text)
    sizes = {"M": number(M, "int"), "N": number(N, "int")}
    sizes["F"] = Scalar(M, "float")
    for text in SIZED:
        run = eval(text, dict(zip("MNF", (*SIZES, float(SIZES[0])), strict=True)))
        pairs[text] = run, eval(text, dict(sizes))
    return point, pairs


def rows(kind):
    """(name, whether it is a method) of every row."""
    names = [(name, False) for name in TABLES[kind]]
    return names + [(name, True) for name in METHODS[kind]]


def call(kind, name, is_method, values, named):
    """What is false, in words, of the reading of a call."""
    with tracing(kind, "float64"), evaluate(True):
        point, pairs = arguments(kind)
        run = [pairs[text][0] for text in values]
        read = [pairs[text][1] for text in values]
        run_named = {key: pairs[text][0] for key, text in named.items()}
        read_named = {key: pairs[text][1] for key, text in named.items()}
        row = TABLES[kind].get(name)
        owner = pytest.importorskip(kind)
        if is_method:
            owner = run.pop(0)
            row = replace(METHODS[kind][name], owner=(read.pop(0),))
        got = needed = None
        try:
            got = row(*read, **read_named)
        except Exception as reason:  # in a reading, any is a NotRead
            got = reason if isinstance(reason, NotRead) else NotRead(str(reason))
        try:
            function = reduce(getattr, name.split("."), owner)
            with np.errstate(all="ignore"):
                needed = function(*run, **run_named)
        except Exception as reason:  # whatever a library says of a call
            needed = reason
        return difference(got, needed, point, pairs.values())


def difference(got, needed, point, pairs):
    """What is false of a reading beside a run, in words."""
    raises = isinstance(needed, Exception)
    if isinstance(got, Wrong):
        return "" if raises else "called wrong, and runs"
    if isinstance(got, NotRead):
        return ""
    if raises:
        return f"read, and raises {needed}"
    if isinstance(got, tuple):
        parts = [
            difference(*both, point, pairs) for both in zip(got, needed, strict=True)
        ]
        return " ".join(parts).strip()
    if not isinstance(got, Array):
        return ""
    for run, read in pairs:
        if isinstance(read, Array) and got.memory is not read.memory:
            fixed = got.memory.fixed and read.memory.fixed
            if not fixed and shares(needed, run):
                return "a view that is read as a copy"
    if tuple(needed.shape) != point.shape(got.shape):
        return f"has the shape {needed.shape}, read as {got.shape}"
    if not got.memory.written or M * N in got.shape:
        return ""
    values = np.array(needed.tolist(), float)
    letters = {M: [i, p], N: [j, k]}
    axes = [letters[size].pop(0) for size in got.shape if size != 1]
    set_maxima(point, state().maxima)
    read = np.reshape(point.value(entry(got, axes), axes), values.shape)
    near = 1e-9 if "float64" in str(needed.dtype) else 1e-2
    same = np.allclose(values, read, rtol=near, atol=near)
    return "" if same or np.isnan(values).any() else f"is {values}, read as {read}"


def shares(a, b):
    """Whether two arrays have memory in common."""
    if hasattr(a, "untyped_storage") and hasattr(b, "untyped_storage"):
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return isinstance(a, np.ndarray) and np.shares_memory(a, np.asarray(b))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_what_a_row_accepts_runs_and_gives_what_is_read(kind):
    """Every row of the tables, with random arguments of all kinds, in any number, named and not."""
    draw = random.Random(20261128)
    texts = [*TEXTS.split(), *SIZED, "0.5", "float32", "x", "w", "r", "x.T", "w[None]"]
    texts += ["x > 0", "x.sum()"]
    for name, is_method in rows(kind):
        for _ in range(COUNT):
            values = [draw.choice(["x", "x", "w", "r", "x.sum()"])]
            values += draw.choices(texts, k=draw.choice([0, 1, 1, 2, 3]))
            keys = draw.sample(NAMES.split(), draw.choice([0, 0, 1]))
            named = {key: draw.choice(texts) for key in keys}
            false = call(kind, name, is_method, values, named)
            assert not false, (kind, name, is_method, values, named, false)


def named_calls(kind, name, is_method):
    """(values, named) of a row: each parameter by each of its names, beside what a call needs in its place."""
    table = METHODS[kind] if is_method else TABLES[kind]
    for header, _ in getattr(table[name], "overloads", ()):
        parameters = list(header.parameters.values())[1:]
        needed = [one for one in parameters if one.default is one.empty]
        needed = [one for one in needed if one.kind is one.POSITIONAL_OR_KEYWORD]
        for one in parameters:
            values = ["w"] * len(needed)
            if one in needed:
                values = values[: needed.index(one)]
            for key in {one.name, *ALSO.get(one.name, ())}:
                for text in ("None", "0", "x", "-1", "True"):
                    yield ["x", *values], {key: text}


ALSO = {"dim": ["axis"], "axis": ["dim"], "keepdim": ["keepdims"]}
ALSO |= {"keepdims": ["keepdim"], "unbiased": ["correction"], "ord": ["p"]}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_what_a_row_accepts_by_its_names_runs(kind):
    """As `F.softmax(x, axis=-1)` does not, which torch.softmax takes, nor `torch.logsumexp(x, dim=None)`."""
    for name, is_method in rows(kind):
        for values, named in named_calls(kind, name, is_method):
            false = call(kind, name, is_method, values, named)
            assert not false, (kind, name, is_method, values, named, false)


@pytest.mark.parametrize(
    ("verdict", "_", "line"), list(claims("verify_library_calls.txt"))
)
def test_a_call_is_read_as_the_library_has_it(verdict, _, line):
    kind, name, *words = line.split()
    named = dict(word.split("=", 1) for word in words if "=" in word)
    values = [word for word in words if "=" not in word]
    is_method, name = name.startswith("."), name.lstrip(".")
    assert not call(kind, name, is_method, values, named)
    with tracing(kind, "float64"), evaluate(True):
        _, pairs = arguments(kind)
        read = [pairs[text][1] for text in values]
        read_named = {key: pairs[text][1] for key, text in named.items()}
        row = TABLES[kind].get(name)
        if is_method:
            row = replace(METHODS[kind][name], owner=(read.pop(0),))
        got = "read"
        try:
            row(*read, **read_named)
        except NotRead as reason:
            got = "wrong" if isinstance(reason, Wrong) else "not read"
    assert got == verdict


CASTS = ("clone", "half", "float", "double")


@pytest.mark.parametrize("casts", list(itertools.product(CASTS, repeat=3)))
def test_a_layer_norm_of_other_dtypes_is_read_where_torch_takes_it(casts):
    torch = pytest.importorskip("torch", minversion="2.13")
    x, weight, bias = map("{}.{}()".format, ("x", "weight", "bias"), casts)
    text = f"""import torch


def f(x, weight, bias, eps):
    y = torch.nn.functional.layer_norm({x}, x.shape[1:], {weight}, {bias}, eps)
    return y.to(x.dtype)
"""
    taken = []
    for name in FLOATS["torch"]:
        tensors = torch.ones((3, 5)), torch.ones(5), torch.ones(5)
        tensors = [tensor.to(getattr(torch, name)) for tensor in tensors]
        pairs = zip(tensors, casts, strict=True)
        x, *affine = [getattr(tensor, cast)() for tensor, cast in pairs]
        with contextlib.suppress(RuntimeError):
            torch.nn.functional.layer_norm(x, (5,), *affine)
            taken.append(name)
    verdict = verify(text, norm(center=True, bias=True), name="f", run=False)
    assert bool(verdict) == bool(taken), verdict
    some = 0 < len(taken) < len(FLOATS["torch"])
    assert (f"for tensors of {', '.join(taken)}" in str(verdict)) == some, verdict
    assert bool(taken) or "which torch refuses on a CPU" in str(verdict)
