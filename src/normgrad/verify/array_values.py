"""What operations make of the values of a NumPy or torch program: arrays, numbers, tuples, dtypes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy
from sympy import Expr, Rational

from ..symbolic.symbols import M, N
from .arrays import (
    UNNAMED,
    Array,
    DType,
    Misfit,
    NotRead,
    Scalar,
    Wrong,
    arithmetic,
    compared,
    floats,
    indexed,
    inverted,
    is_number,
    kind_of,
    moved,
    note_stride,
    number,
    plain,
    state,
)
from .genuine import check_tensor
from .launch import JitKernel, Launched
from .over_rows import Turn
from .python_objects import Named
from .tables.libraries import METHODS
from .tables.python import LONGEST
from .tables.signatures import Device
from .tables.torch import HOST_METHODS
from .values import Limit, Unsupported

ON_GPU = "tensors are on a GPU of NVIDIA's"


def _check_count(count):
    """Refuses a tuple that no program of arrays has, and that may fill the memory, as (0,) * 10**10 does."""
    if count > LONGEST:
        raise NotRead(f"a tuple or a list of {count} values")


def decided(relation: Any, words: str) -> bool:
    """A relation between sizes, where it is the same at every size."""
    answer = sympy.sympify(relation)
    if answer in (sympy.true, sympy.false):
        return bool(answer)
    way = state().way
    if way and all(side.is_integer for side in answer.args):
        return way.holds(answer)
    raise NotRead(f"a branch on {words}")


def truth(value: Any) -> bool | None:
    """Whether a value counts as true; None for an entry of an array, at the turn of a loop."""
    match value:
        case Scalar():
            return not same(value, 0)
        case Array(kind="bool", ndim=0) if value.memory.e in (0, 1):
            return value.memory.e == 1
        case Array(ndim=0) if state().loops:
            return None
        case None | int() | str() | tuple() | list() | dict():
            return bool(value)
    raise NotRead("a branch on values")


def difference_of(a: Any, b: Any) -> Expr:
    """a - b of two numbers that are compared.

    A float that arithmetic made is refused: 0.1 + 0.2 == 0.3 holds for real numbers, and not for Python's.
    """
    numbers = []
    note_stride(a, b)
    for value in (a, b):
        e = plain(value)
        if getattr(value, "rounded", False):
            raise NotRead(f"a branch on {e}, a float that arithmetic has rounded")
        if kind_of(value) == "float" and e.is_number:
            e = Rational(float(e))  # 1e23 is no power of 10
        numbers.append(e)
    return sympy.expand(numbers[0] - numbers[1])


def same(a: Any, b: Any) -> bool:
    """a == b, for all but arrays."""
    if is_number(a) and is_number(b):
        return decided(
            sympy.Eq(difference_of(a, b), 0), f"whether {plain(a)} = {plain(b)}"
        )
    match a, b:
        case Device(), Device():
            return True
        case DType(), DType():
            if "mixed" in (a.name, b.name):
                raise NotRead("a comparison of the dtype of what has two")
            return a == b
        case (tuple(), tuple()) | (list(), list()):
            pairs = zip(a, b, strict=False)
            return len(a) == len(b) and all([same(p, q) for p, q in pairs])
    plain_kinds = (str, int, type(None), Scalar, tuple, list)
    if isinstance(a, plain_kinds) and isinstance(b, plain_kinds):
        return type(a) is type(b) and a == b
    raise NotRead("values compared for equality")


def are_compared(a: Any, b: Any) -> bool:
    """Whether entries of an array are compared with a number, or with those of another array."""
    kinds = [isinstance(value, Array) for value in (a, b)]
    return any(kinds) and (all(kinds) or is_number(a) or is_number(b))


def _identical(a, b):
    match a, b:
        case DType(), DType():
            return same(a, b)
        case (None, _) | (_, None) | (bool(), bool()):
            return a is b
    raise NotRead("an identity of other than None")


# what a reader calls the values of a program
KINDS_OF_VALUES = {
    "Device": "a device",
    "FunctionClass": "an autograd Function",
    "Instance": "a layer",
    "JitKernel": "a kernel",
    "Scalar": "a number",
}


def _kind_of(value):
    """What a value is, in words of the field."""
    if isinstance(value, Named):
        return f"{value.name}, which is not read"
    kind = type(value).__name__
    return KINDS_OF_VALUES.get(kind, f"a {kind}")


ORDER = {
    "Lt": sympy.StrictLessThan,
    "LtE": sympy.LessThan,
    "Gt": sympy.StrictGreaterThan,
    "GtE": sympy.GreaterThan,
}


class Values:
    """Operations of values; live: whether objects are read, whose libraries are those of this process.

    line: of the operation that is read
    """

    def __init__(self):
        self.live = False

    def integer(self, value: int) -> int:
        """An integer as it is written."""
        return value

    def real(self, value: Rational) -> Scalar:
        """A float as it is written."""
        return Scalar(value, "float")

    truth = staticmethod(truth)

    def decided(self, value) -> bool:
        """Whether a value counts as true, which is the same at every size."""
        answer = truth(value)
        if answer is None:
            raise NotRead("a branch on values")
        return answer

    def opposite(self, value):
        """`not` of a value."""
        return not self.decided(value)

    def negative(self, value):
        """-value."""
        if isinstance(value, Scalar):
            return replace(value, e=-value.e)
        return arithmetic("Mult", -1, value)

    def unary(self, operation, value):
        """`+` of a number, `~` of truth values."""
        if operation == "UAdd" and is_number(value):
            return value
        if operation == "Invert" and getattr(value, "kind", "") == "bool":
            return inverted(value)
        raise NotRead(f"{operation} of {type(value).__name__}")

    def operate(self, operation, left, right):
        """An operation of two values."""
        kinds = {type(left), type(right)}
        if operation == "Add" and kinds in ({tuple}, {list}):
            _check_count(len(left) + len(right))
            return left + right
        if operation == "Mult" and kinds == {tuple, int}:
            values, count = (left, right) if isinstance(left, tuple) else (right, left)
            _check_count(len(values) * count)
            return values * count
        for value in (left, right):
            if isinstance(value, Turn):
                raise NotRead("arithmetic with the number of a row, or of a column")
            if not (is_number(value) or isinstance(value, Array)):
                raise NotRead(f"{operation} of {type(value).__name__}")
        return arithmetic(operation, left, right)

    def compare(self, operation, left, right):
        """A comparison."""
        if operation in ("Is", "IsNot"):
            return _identical(left, right) == (operation == "Is")
        if operation in ("Eq", "NotEq") and are_compared(left, right):
            return compared(operation, left, right)
        if operation in ("Eq", "NotEq"):
            return same(left, right) == (operation == "Eq")
        if operation in ("In", "NotIn"):
            if isinstance(right, dict) and isinstance(left, str):
                return (left in right) == (operation == "In")
            if not isinstance(right, tuple | list):
                raise NotRead(f"in {type(right).__name__}")
            return any([same(left, v) for v in right]) == (operation == "In")
        if is_number(left) and is_number(right):
            relation = ORDER[operation](difference_of(left, right), 0)
            return decided(relation, f"{plain(left)} and {plain(right)}")
        if isinstance(right, Limit) and operation in ("Lt", "LtE"):
            state().words.append(f"no number is larger than {right.least}")
            return True
        for value in (left, right):
            if not isinstance(value, Array | Scalar | int):
                raise NotRead(f"a comparison of {type(value).__name__}")
        return compared(operation, left, right)

    def item(self, owner, key):
        """owner[key]: an entry, or a view."""
        if isinstance(owner, Array):
            return indexed(owner, key)
        if isinstance(owner, JitKernel):
            return Launched(owner, key)
        check_key(owner, key)
        return owner[key]

    def attribute(self, owner, name):
        """owner.name, of an array."""
        if isinstance(owner, Device) and name == "type" and state().way:
            state().words.append(ON_GPU)
            return "cuda"
        if isinstance(owner, Device) and name == "index" and state().way:
            return owner
        if not isinstance(owner, Array):
            raise NotRead(f"the attribute {name} of {_kind_of(owner)}")
        if name == "shape":
            return tuple(number(size, "int") for size in owner.shape)
        if name == "ndim":
            return owner.ndim
        if name == "T" and owner.ndim <= 2 or name == "mT" and owner.ndim == 2:
            return moved(owner, range(owner.ndim)[::-1])
        if name == "dtype":
            floats(owner, "the dtype")
            if owner.dtype == UNNAMED:
                state().dtypes.add("asked for")
                raise NotRead("which dtype the arguments have")
            return DType(owner.library, owner.dtype)
        if name == "size" and owner.library == "numpy":
            return number(sympy.prod(owner.shape), "int")
        if name == "device" and owner.library == "torch":
            return Device()
        if name == "is_cuda" and owner.library == "torch" and state().way:
            state().words.append(ON_GPU)
            return True
        method = METHODS[owner.library].get(name)
        if method is None and owner.library == "torch" and state().way:
            method = HOST_METHODS.get(name)
        if method is None:
            raise NotRead(f"the attribute {name} of an array of {owner.library}")
        if self.live and owner.library == "torch":
            check_tensor(name)
        return replace(method, owner=(owner,))


def check_key(owner: Any, key: Any) -> None:
    """Refuse what is no entry of a tuple, a list or a dict."""
    match owner, key:
        case dict(), str() | DType():
            if key not in owner and isinstance(key, DType):
                raise Unsupported(f"no key {key.name}")
            if key not in owner:
                raise Wrong(f"no key {key!r}")
        case (tuple() | list(), slice(start=start, stop=stop, step=step)):
            if not {type(start), type(stop), type(step)} <= {int, type(None)}:
                raise NotRead("an index that is no plain number")
        case (tuple() | list(), int()) if type(key) is int:
            if not -len(owner) <= key < len(owner):
                of_a_shape = any(isinstance(part, Scalar) for part in owner)
                # all entries one after the other have one axis, whatever shape they were taken to have
                is_flat = of_a_shape and [plain(part) for part in owner] == [M * N]
                kind = Misfit if of_a_shape and not is_flat else Wrong
                raise kind(f"index {key} of {len(owner)} values")
        case _:
            raise NotRead(f"an index of {type(owner).__name__} by {type(key).__name__}")
