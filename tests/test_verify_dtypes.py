"""The dtypes that verify takes values to have are those that Triton gives them, in its interpreter."""

import importlib
import itertools

import numpy as np
import pytest

triton = pytest.importorskip("triton")
torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from normgrad.triton_kernels.interpreter import INTERPRETED  # noqa: E402
from normgrad.verify.language import FUNCTIONS, HOMES, has_function  # noqa: E402
from normgrad.verify.tables.dtypes import (  # noqa: E402
    BITS,
    FLOATS,
    HALVES,
    LARGER,
    LARGEST,
    LONG,
    PYTHON,
    narrower,
    promoted,
    replaced,
    results,
)
from normgrad.verify.tables.elementary import functions  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of bits that are no number
    pytest.mark.skipif(not INTERPRETED, reason="Triton was imported to compile"),
]
NAMES = {getattr(tl, name): name for name in BITS}
NUMBERS = {"bool": bool, "int": int, "float": float}
PAIRS = [*itertools.product(sorted(BITS), sorted([*BITS, *PYTHON]))]


def triton_tensor(name):
    """Four lanes of a dtype."""
    dtype = getattr(tl, name)
    ones = np.ones(4, interpreter._get_np_dtype(dtype))
    handle = interpreter.TensorHandle(ones, dtype)
    return tl.tensor(handle, tl.block_type(dtype, [4]))


def operand(name):
    """A tensor of a dtype, or 0 in the text, which the interpreter has for every dtype."""
    return NUMBERS[name]() if name in NUMBERS else triton_tensor(name)


def dtype_of(function, *names, **options):
    """The dtype of what a function of Triton returns, None where it refuses."""
    semantic = interpreter.interpreter_semantic
    operands = [operand(name) for name in names]
    try:
        value = function(*operands, _semantic=semantic, **options)
    except (AssertionError, KeyError, TypeError, ValueError):
        return None
    return NAMES[value.dtype]


def only(names):
    """The one name of a set, None for none."""
    (name,) = names or {None}
    return name


def where(x, y, _semantic):
    return tl.where(triton_tensor("int1"), x, y, _semantic=_semantic)


def divided(x, y, _semantic):
    return _semantic.truediv(x, y)


@pytest.mark.parametrize(
    ("function", "operator"), [(tl.add, "Add"), (where, "Add"), (divided, "Div")]
)
def test_an_operation_has_triton_s_dtype_for_all_pairs(function, operator):
    for a, b in [*PAIRS, *[(b, a) for a, b in PAIRS]]:
        found = only(results(frozenset({a}), frozenset({b}), operator))
        assert found == dtype_of(function, a, b), (a, b)


def test_a_pair_of_dtypes_is_promoted_as_triton_promotes_it():
    semantic = interpreter.interpreter_semantic
    for (a, b), quotient in itertools.product(PAIRS, (False, True)):
        dtypes = [getattr(tl, PYTHON.get(name, name)) for name in (a, b)]
        try:
            dtype = semantic.computation_type_impl(
                dtypes[0], False, dtypes[1], b in PYTHON, quotient
            )
        except TypeError:
            assert promoted(a, b, quotient) is None
        else:
            assert promoted(a, b, quotient) == NAMES[dtype], (a, b, quotient)


def test_the_larger_of_two_has_triton_s_dtype_for_all_pairs():
    for a, b in PAIRS:
        pair = [replaced(replaced(frozenset({n})), LARGER) for n in (a, b)]
        assert only(results(*pair)) == dtype_of(tl.maximum, a, b), (a, b)


def test_numbers_of_the_text_are_python_s():
    for a, b in itertools.product(NUMBERS, repeat=2):
        pair = frozenset({a}), frozenset({b})
        values = NUMBERS[a](1), NUMBERS[b](1)
        assert only(results(*pair)) == type(values[0] + values[1]).__name__
        assert only(results(*pair, "Div")) == type(values[0] / values[1]).__name__
        assert only(results(*pair, "Mod")) == type(values[0] % values[1]).__name__


def cast(x, dtype, _semantic):
    return tl.cast(x, dtype, fp_downcast_rounding="rtne", _semantic=_semantic)


def test_a_cast_that_is_told_how_to_round_is_to_fewer_bits():
    for a, b in itertools.product(sorted(BITS), repeat=2):
        (fewer,) = narrower(frozenset({a}), frozenset({b}))
        is_cast = dtype_of(cast, a, dtype=getattr(tl, b)) == b
        assert is_cast == (fewer is not False), (a, b)


HAVE = [
    (home, name)
    for home in HOMES
    for name in FUNCTIONS
    if has_function(home, name) and home != "triton.language.extra.libdevice"
]
SEEN = []


@triton.jit
def recorded(start, function: tl.constexpr, dtype: tl.constexpr):
    SEEN.append(function(tl.zeros((4,), dtype)).dtype)


def run(function, name):
    """The dtype of what a function that is text itself makes of a tile."""
    recorded[(1,)](torch.zeros(1), function, getattr(tl, name))
    return NAMES[SEEN.pop()]


@pytest.mark.parametrize(("home", "name"), HAVE)
def test_a_function_takes_the_dtypes_that_triton_has_it_for(home, name):
    row = functions(home.rpartition(".")[2])[name]
    function = getattr(importlib.import_module(home), name)
    if name == "sigmoid":
        assert {run(function, dtype) for dtype in row.takes} == row.takes
        with pytest.raises(Exception, match="Expected dtype"):
            run(function, "float16")
        return
    for dtype in sorted(BITS):
        expected = dtype if dtype in row.takes else None
        try:
            assert dtype_of(function, dtype) == expected
        except NotImplementedError:  # libdevice's of a dtype that it takes
            assert expected


@pytest.mark.parametrize(
    ("function", "table"), [(tl.sum, {}), (tl.max, LARGEST)], ids=["sum", "max"]
)
def test_what_a_tile_is_reduced_to_has_triton_s_dtype(function, table):
    for name in (*HALVES, *LONG, "float8e5", "int32", "int64"):
        assert run(function, name) == table.get(name, name)


def test_a_dtype_that_depends_on_the_tensors_is_one_of_several():
    assert results(FLOATS, frozenset({"float32"})) == {"float32", "float64"}
    assert results(FLOATS, frozenset({"int"})) == FLOATS
