"""What the forward of one torch.nn.Module finds under self, and whether it is a norm for every N.

verify reads functions, and asks for what is under self by its name: a number as it is now, or a method. A number that
is N, or a root of N, is that of the rows, and the verdict says so.
"""

from __future__ import annotations

import dis
from collections.abc import Mapping
from functools import cache
from types import FunctionType
from typing import Any

import torch

from .spec import NormSpec

PLAIN = (bool, int, float, str, type(None), torch.dtype)
POWERS = (0.5, -0.5, -1.0)
SECONDS = 10
# How many functions deep a forward is looked at, and what a norm calls there.
DEPTH = 3
FUNCTIONS = {"layer_norm", "rms_norm"}
LENGTHS = FUNCTIONS | {"normalize", "norm", "vector_norm", "std", "std_mean"}
SUMS = {"mean", "sum", "var", "var_mean"}
ROOTS = {"sqrt", "rsqrt"}

# The operator of spec.py in torch's operations; what is absent is left out.
DENOMINATORS = {
    "inside": "torch.sqrt(squares + {eps!r})",
    "outside": "torch.sqrt(squares) + {eps!r}",
    "clamp": "torch.sqrt(squares).clamp(min={eps!r})",
}


class Forward:
    """What a module's forward finds under self, besides parameters and buffers that have a role.

    Args:  columns: N, 0 for a norm of any N; training: what self.training is
    """

    def __init__(self, module: torch.nn.Module, columns: int, training: bool):
        self.kinds = type(module).__mro__
        self.own = {**vars(module), **module._buffers, **module._parameters}
        self.own["training"] = training
        numbers: dict[str, Any] = {}
        for kind in reversed(self.kinds):
            numbers |= vars(kind)
        numbers |= self.own
        # {attribute: its value}, with N in the place of what is N
        plain = {name: _in_columns(value, columns) for name, value in numbers.items()}
        self.numbers = {k: v for k, v in plain.items() if v is not NotImplemented}
        # {(attribute, the class above which it is looked up): its value}, of what was asked for
        self.asked: dict[tuple[str, type | None], Any] = {}

    def look(self, name: str, above: type | None = None) -> Any:
        """A number, or the function of a method; above: the class in which super() stands, None without it.

        Raises:  NotRead for what is neither
        """
        from .verify.values import NotRead

        value, kinds = self.numbers.get(name), self.kinds
        if above is not None:
            kinds = kinds[kinds.index(above) + 1 :]
        if above is not None or name not in self.numbers:
            owner = next(
                (kind for kind in kinds if name in vars(kind)), torch.nn.Module
            )
            value = vars(owner).get(name)
            is_set = above is None and name in self.own
            is_method = isinstance(value, FunctionType | staticmethod)
            if owner is torch.nn.Module or is_set or not is_method:
                raise NotRead(f"self.{name}")
        self.asked[name, above] = value
        return value

    def sizes(self) -> list[str]:
        """What is said of the numbers that were asked for, as "dim = N"."""
        words = []
        for (name, _), value in self.asked.items():
            for part in value if isinstance(value, tuple) else (value,):
                if hasattr(part, "free_symbols"):
                    words.append(f"{name} = {part}")
        return words


def _in_columns(value, columns):
    """A number, flag, text, dtype or None, or a tuple of such; N in the place of N, or of a root of it.

    NotImplemented for what is none of these.
    """
    from sympy import Rational

    from .symbolic.symbols import N

    if type(value) in (tuple, list, torch.Size):
        parts = tuple(_in_columns(part, columns) for part in value)
        return NotImplemented if NotImplemented in parts else parts
    if columns and type(value) is int and value == columns:
        return N
    for power in POWERS if columns and type(value) is float else ():
        if value == columns**power:
            return N ** Rational(power)
    return value if type(value) in PLAIN else NotImplemented


def _has_plain_attributes(kind):
    """Whether self.name is what torch.nn.Module makes of it."""
    names = ("__getattr__", "__getattribute__")
    return all(getattr(kind, n) is getattr(torch.nn.Module, n) for n in names)


def compared(
    module: torch.nn.Module,
    roles: Mapping[str, str],
    columns: int,
    spec: NormSpec,
    verdicts: dict[Any, Any],
    gate: str = "",
) -> tuple[bool | None, str]:
    """Whether a module's forward is the norm of a spec for every M and N, in real numbers, and in words for which.

    What was read to its end and is not proved is False, and the words are how it differs, or why it is not decided;
    what is not read is None.

    Args:  roles: {name of a parameter or buffer: "weight" or "bias"}; columns: N, 0 for a norm of any N
           verdicts: those by what was read; is added to
           gate: "first" or "last" of a forward of two tensors, whose second is a gate by silu
    """
    if spec.eps is None:
        return None, "eps is that of the dtype"
    try:
        from .verify import verify
        from .verify.programs import input_of
        from .verify.python_objects import Live
        from .verify.values import NotRead
        from .verify.verdict import ALIKE, UNDECIDED
    except ModuleNotFoundError as error:
        return None, f"there is no {error.name}"
    kind = type(module)
    if not _has_plain_attributes(kind):
        return None, f"{kind.__name__}, which looks its attributes up"
    text = reference_text(spec, set(roles.values()), columns, gate)
    tensors = {name: input_of(role, role) for name, role in roles.items()}
    inputs = {"self_columns": "N"}
    sizes: dict[str, None] = {}
    for training in (False, True):
        forward = Forward(module, columns, training)
        key = kind, text, repr(roles), repr(forward.numbers)
        try:
            if key not in verdicts:
                function = forward.look("forward")
                taken = function.__code__.co_varnames
                values = Live(forward.look, tensors), "x", *["gate"] * bool(gate)
                inputs |= dict(zip(taken, values, strict=False))
                options = {"run": False, "seconds": SECONDS, **inputs}
                verdict = verify(function, (text, "norm"), **options)
                verdicts[key] = verdict, list(forward.asked)
            verdict, asked = verdicts[key]
            for name, above in asked:
                forward.look(name, above)
        except NotRead as reason:
            return None, str(reason)
        if verdict.difference:
            return False, "; ".join(
                filter(None, [*map(str, verdict.difference), verdict.why])
            )
        if not verdict:
            is_read = verdict.why.startswith((ALIKE, UNDECIDED))
            return False if is_read else None, verdict.why
        sizes |= dict.fromkeys(forward.sizes())
        if ("training", None) not in asked:
            break
    return True, ", ".join(sizes)


def reference_text(
    spec: NormSpec, present: set[str], columns: int, gate: str = ""
) -> str:
    """The operator of a spec as a function of torch, an absent weight or bias left out."""
    arguments = "x, gate" if gate else "x"
    lines = [f"def norm({arguments}, weight, bias, self_columns):"]
    if gate == "first":
        lines.append("x = x * torch.nn.functional.silu(gate)")
    if spec.center:
        lines.append("x = x - x.mean(-1, keepdim=True)")
    lines.append(f"squares = (x * x).{spec.reduce}(-1, keepdim=True)")
    lines.append(f"y = x / ({DENOMINATORS[spec.placement].format(eps=spec.eps)})")
    scale = repr(spec.scale)
    for power in POWERS:
        if columns and spec.scale == columns**power:
            scale = f"self_columns ** {power}"
    if spec.scale != 1:
        lines.append(f"y = y * {scale}")
    if "weight" in present:
        offset = f"{spec.weight_offset!r} + " if spec.weight_offset else ""
        lines.append(f"y = y * ({offset}weight)")
    if "bias" in present:
        lines.append("y = y + bias")
    if gate == "last":
        lines.append("y = y * torch.nn.functional.silu(gate)")
    lines.append("return y")
    return "import torch\n" + "\n    ".join(lines) + "\n"


@cache
def _names_called(kind: type) -> frozenset[str]:
    """The attributes and functions that a class's forward asks for, by its code; those of the module itself left out.

    Its methods and the functions of Python's that it calls are followed, three deep; torch's own are not.
    """
    names: set[str] = set()
    waiting = [(getattr(kind, "forward", None), DEPTH)]
    visited = set()
    while waiting:
        function, depth = waiting.pop()
        if not isinstance(function, FunctionType) or function in visited:
            continue
        visited.add(function)
        last = None
        for step in dis.get_instructions(function):
            name = step.argval
            if isinstance(name, tuple):
                name = name[-1]
            if step.opname.startswith("LOAD_FAST"):
                last = name
                continue
            if step.opname.startswith("LOAD") and isinstance(name, str):
                value = function.__globals__.get(name)
                is_of_torch = getattr(value, "__module__", "").startswith("torch")
                if last == "self":
                    value, is_of_torch = getattr(kind, name, None), False
                elif step.opname != "LOAD_CONST":
                    names.add(name)
                if name == "super":
                    above = [vars(base).get("forward") for base in kind.__mro__[1:]]
                    waiting += [(forward, depth) for forward in above]
                if depth and not is_of_torch:
                    waiting.append((value, depth - 1))
            elif step.opname == "LOAD_CONST" and name in (0.5, -0.5):
                names.add("sqrt")
            last = None
    return frozenset(names)


def reduces(kind: type) -> bool:
    """Whether a class's forward has a sum, or a length, of torch's."""
    is_of_torch = kind.__module__.startswith("torch.")
    return not is_of_torch and bool(_names_called(kind) & (SUMS | LENGTHS))


def has_root(kind: type) -> bool:
    """Whether a class's forward has a root of a sum, or a length."""
    names = _names_called(kind)
    return reduces(kind) and bool(names & LENGTHS or names & ROOTS)


def calls_norm(kind: type) -> str:
    """The norm that a class's forward calls as a function of torch's; "" for none."""
    if kind.__module__.startswith("torch."):
        return ""
    return min(_names_called(kind) & FUNCTIONS, default="")
