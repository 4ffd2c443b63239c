"""The header of a kernel: what the binding, the decorators and the annotations make of each argument.

A decorator may run a kernel several times, so that what several runs change is refused here as well.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..symbolic.symbols import N
from .binding import COLUMNS, ROWS, WHOLE, InOut, Same, T
from .decorators import (
    Decorators,
    compared_argument,
    is_arithmetic,
    is_power,
    is_whole,
)
from .names import UNSEEN, Given, Unbound, at_run_time, with_constant
from .source import is_constexpr
from .syntax import defaults_of, has_marks, positional
from .tables.dtypes import LONG_INTEGERS, UNSIGNED
from .values import Dtype, Index, NotRead, Number, Pointer, Wrong, uncompiled

# annotations that are a number's dtype
INTEGERS = ("int", "int32", "int64", "i32", "i64", "uint32", "u32")
NUMBERS = (*INTEGERS, "float", "float32", "fp32")
# {an annotation that changes nothing: what is bound to such an argument}
ANNOTATIONS = {
    # classes, which give an argument no dtype
    **dict.fromkeys(("tensor", "Tensor", "pointer_type"), object),
    "const": Pointer,
    **dict.fromkeys(INTEGERS, (Index, Unbound)),
    **dict.fromkeys(("float", "float32", "fp32"), Number),
    "bool": bool,
}
# {an annotation: the dtype of the integer}
DTYPE_OF = dict.fromkeys(("int64", "i64"), LONG_INTEGERS)
DTYPE_OF |= dict.fromkeys(("uint32", "u32"), UNSIGNED)


class Header:
    """Says what the arguments of a kernel are.

    Args:  reader: the Kernel, which has the binding and looks a name up
    """

    def __init__(self, reader):
        self.reader, self.tiles, self.launch = reader, reader.tiles, reader.launch

    def check_binding(self, kernel: str) -> None:
        """ValueError where the binding names what is no argument or constant, or gives text to a pointer or number."""
        function = self.reader.source.function(kernel)
        names, _ = parameters(function)
        for node in function.args.args:
            text = self.launch.arguments.get(node.arg)
            if not isinstance(text, str) or not isinstance(
                self.reader.names.argument(node.arg), Given
            ):
                continue
            if not is_constexpr(node):
                needs = f'needs T("{text}"), a number or a word for a size'
                raise ValueError(f"{node.arg}: got the text {text!r}, {needs}")
        for name, bound in self.launch.arguments.items():
            early = not self.reader.line and name.isupper() and not isinstance(bound, T)
            if name not in {*names, *self.tiles.constants} and not early:
                raise ValueError(
                    f"binding: got {name}, needs one of {', '.join(names)}"
                )

    def arguments(self, kernel: str) -> dict:
        """{argument: its value}, where the kernel begins; keeps what its decorators say."""
        source = self.reader.source
        function = source.function(kernel)
        names, defaults = parameters(function)
        self.decorators = Decorators(
            source, kernel, self.launch.meanings, is_called=self.launch.called
        )
        given = self._settings(names)
        for node in function.args.args:
            if is_constexpr(node):
                self.tiles.constexprs.add(node.arg)
        argument = self.reader.names.argument
        local = {name: argument(name, defaults.get(name), given) for name in names}
        for node in function.args.args:
            name = node.arg
            is_fixed = name in self.tiles.constexprs
            if not is_fixed:
                local[name] = at_run_time(local[name])
            elif isinstance(local[name], Index | Unbound):
                local[name] = replace(local[name], dtype=frozenset({"int"}))
            check_annotation(node, local[name])
            if dtype := DTYPE_OF.get(annotated(node)):
                local[name] = at_run_time(local[name], dtype)
            is_typed = name in self.decorators.variable or is_dtype(node)
            local[name] = with_constant(local[name], name, is_fixed, is_typed)
        return local

    def _settings(self, names):
        """{argument: the value that a decorator gives it}; refuses a binding that a decorator contradicts."""
        given = {}
        if self.launch.called:
            return given
        self.decorators.check_names(names)
        for setting in self.decorators.settings:
            name = setting.name
            promised = self.launch.arguments.get(name)
            value = self._set(setting)
            if name not in self.launch.arguments:
                seen = isinstance(value, bool | int | float | str | None)
                differs = name in given and given[name] != value
                given[name] = UNSEEN if differs or not seen else value
                continue
            if promised in (ROWS, COLUMNS):
                size = value is WHOLE or is_power(setting.value)
                agrees = size and self._computes(setting)
            elif promised is WHOLE:
                agrees = value is WHOLE
            elif value is UNSEEN and isinstance(promised, bool):
                agrees = compared_argument(setting)[1] is not None
            else:
                agrees = type(value) is type(promised) and value == promised
            if not agrees:
                raise NotRead(
                    f"{name} is {ast.unparse(setting.value)} by a decorator, "
                    f"and bound as {promised}",
                    setting.line,
                )
        return given

    def _set(self, setting):
        """What a decorator sets: a constant, WHOLE, whether an argument is None, or UNSEEN."""
        value = setting.value
        name, operator = compared_argument(setting)
        if isinstance(value, ast.Constant):
            return value.value
        if operator is not None and name in self.launch.arguments:
            absent = self.launch.arguments[name] is None
            return absent == isinstance(operator, ast.Is)
        bound = self.launch.arguments.get(name)
        if name and operator is None and isinstance(bound, bool):
            return bound
        columns = {name for name, e in self.launch.arguments.items() if e == N}
        whole = not setting.tuned and is_whole(value, setting.others, columns)
        return WHOLE if whole and self._computes(setting) else UNSEEN

    def _computes(self, setting):
        """Whether what a decorator sets is a number that it computes, and nothing else."""
        return is_arithmetic(setting.value, self.reader.source)

    def _memories(self, names):
        """The arguments that tensors are bound to, of which two may be one."""
        bound = {name: self.launch.arguments.get(name) for name in names}
        return [b.name if isinstance(b, Same) else name for name, b in bound.items()]

    def check_runs(self):
        """Refuses what several runs of a kernel change: autotune compares its configurations by running each.

        For a kernel that adds to memory, or writes over what it reads: what it leaves is that of all runs together.
        """
        for tuner in self.decorators.tuners:
            if tuner.runs == 1:
                continue
            kind = NotRead if tuner.runs is None else Wrong
            zeros = self.tiles.memory.zeros
            reset, restored = map(self._memories, (tuner.reset, tuner.restored))
            for name in reset + restored:
                if not isinstance(self.launch.arguments.get(name), T):
                    words = f"autotune resets {name}, which is no pointer"
                    raise NotRead(words, tuner.line)
            for name, bound in self.launch.arguments.items():
                stores = self.tiles.memory.stores.get(name, ())
                added = any(store.atomic for store in stores)
                words = ""
                if name in reset and getattr(bound, "before", None):
                    words = f"autotune sets {name} to 0, which the kernel reads"
                elif added and name not in reset + restored:
                    words = f"{name} is added to at each run of autotune, needs reset_to_zero"
                elif stores and name in zeros and name not in reset + restored:
                    kind = NotRead
                    words = f"{name} is read, and written at each run of autotune, needs reset_to_zero"
                elif stores and isinstance(bound, InOut) and name not in restored:
                    words = f"{name} is read and overwritten at each run of autotune, needs restore_value"
                if words:
                    raise kind(words, tuner.line)


def parameters(function: ast.FunctionDef) -> tuple[list[str], dict[str, ast.expr]]:
    """(the names of a function's parameters, {name: its default})."""
    args = function.args
    if args.kwarg or has_marks(args):
        raise NotRead(f"{function.name} takes any number of arguments, or has * or /")
    return positional(args), defaults_of(args)


def annotated(node: ast.arg) -> str:
    """The last part of an argument's annotation."""
    text = "" if node.annotation is None else ast.unparse(node.annotation)
    return text.strip("'\"").rpartition(".")[2]


def is_dtype(node: ast.arg) -> bool:
    """Whether an argument's annotation is a dtype of Triton's, with which a size that is 1 is no constant."""
    text = "" if node.annotation is None else ast.unparse(node.annotation)
    home = text.strip("'\"").rpartition(".")[0]
    return annotated(node) in NUMBERS and home in ("", "tl", "triton.language")


def check_annotation(node: ast.arg, value: object) -> None:
    """Refuse a dtype that a kernel's signature gives an argument, unless it holds what is bound.

    For an argument as N: tl.int8, to which Triton casts what it is given. Without it N = 300 is 44, and y is proved.
    """
    kinds = ANNOTATIONS.get(annotated(node))
    if isinstance(value, Given):
        value = value.value
    if is_constexpr(node):
        return
    if isinstance(value, str | Dtype):
        why = f"{node.arg} is a text or a dtype, and no tl.constexpr"
        raise uncompiled(why)
    if node.annotation is None or kinds and isinstance(value, kinds):
        return
    text = ast.unparse(node.annotation)
    words = f"{node.arg}: {text}, which may not hold what is bound"
    why = f"{words}; leave the annotation out, or bind what it holds"
    raise NotRead(why, node.lineno)
