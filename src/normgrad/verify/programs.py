"""A NumPy or torch function against the definitions of a norm: what it returns, proved for every M and N.

The function is read, not run; its arguments and results are known by their names of the field, or are named by the
caller. The verdict prints which is which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Dummy, Expr, Indexed, S

from ..symbolic.calculus import index_ranges
from ..symbolic.conditions import side_conditions
from ..symbolic.proof import lettered
from ..symbolic.symbols import M, N, eps, i, j
from .arrays import ONE, Array, Misfit, NotTraced, in_words
from .definitions import TENSORS, Norm
from .definitions import entry as head_of
from .functions import (
    Input,
    Trace,
    cotangents_of,
    entry,
    library_of,
    parameters_of,
    trace,
)
from .verdict import NOT_READ, WRONG, Verdict, compare, whole

ALSO = {
    "w": "weight",
    "gamma": "weight",
    "b": "bias",
    "beta": "bias",
    "mu": "mean",
    "epsilon": "eps",
    "grad_output": "dy",
    "dweight": "dw",
    "dbias": "db",
}
GRADIENT = {
    "x": "dx",
    "residual": "dresidual",
    "weight": "dw",
    "bias": "db",
    "gate": "dgate",
}
ORDER = "y residual_out mean rstd".split(), "dx dresidual dw db dgate".split()
REAL = "real numbers: rounding, overflow and NaN are left out; M and N are at least 1"


def input_of(words: Any) -> Input | None:
    """What an argument is, from its name of the field: "x", "rstd", or "rstd[:, None]" for the shape (M, 1)."""
    if not isinstance(words, str):
        return None
    name, bracket, _ = words.partition("[:, None]")
    name = ALSO.get(name, name)
    if name == "eps":
        return Input(eps)
    if name not in TENSORS:
        return None
    head = head_of(name)
    shape = tuple(head.base.shape)
    return Input(head, (*shape, ONE) if bracket else shape)


def _bound(names, needed, inputs):
    """{parameter: Input or plain value}."""
    bound = {}
    for name in names:
        told = inputs.get(name)
        value = input_of(name if told is None else told)
        if value is None and told is not None:
            value = told
        if value is not None:
            bound[name] = value
        elif name in needed:
            raise ValueError(
                f"{name}: which of the definitions' tensors it is, is not known; "
                f'say it, as {name}="x"; there are {", ".join(TENSORS)}'
            )
    return bound


def _with_columns(inputs):
    """The inputs with the statistics of the rows as columns, (M, 1)."""
    return {
        name: Input(value.head, (M, ONE))
        if isinstance(value, Input) and value.shape == (M,)
        else value
        for name, value in inputs.items()
    }


def _in_words(inputs, library):
    kind = {"numpy": "NumPy arrays", "torch": "tensors"}[library]
    parts = []
    for name, value in inputs.items():
        if not isinstance(value, Input):
            parts.append(f"{name} = {value!r}")
        elif isinstance(value.head, Indexed):
            role = value.head.base.label
            same = "" if str(role) == name else f", the {role}"
            parts.append(f"{name} {in_words(value.shape)}{same}")
        else:
            parts.append(f"{name} > 0")
    return f"{kind} of one dtype of floats: {'; '.join(parts)}"


def verify_function(
    program: Any,
    definitions: Norm,
    outputs: Sequence[str] | None = None,
    library: str | None = None,
    name: str = "",
    seconds: float = 20,
    **inputs: Any,
) -> Verdict:
    """Whether a function, or an autograd Function, computes what the definitions say.

    Args:     program: a function, a subclass of torch.autograd.Function, or the text of a module
              definitions: a norm, as `norm(center=True, bias=True)`; outputs: what the function returns, as ("dx", "dw")
              library: "numpy" or "torch", the arguments' own; name: of the function in a text
              seconds: how long a proof may take; inputs: what a parameter is, as g="dy" or rstd="rstd[:, None]"
    Returns:  Verdict, one for each output
    Raises:   ValueError for a parameter or an output that is not known by its name; TypeError for what is no program
    """
    library = library or library_of(program)
    try:
        names, needed, is_class = parameters_of(program, name)
    except NotTraced as reason:
        return _refused(reason)
    for parameter in inputs:
        if parameter not in names:
            raise ValueError(f"{parameter}: is no parameter of the program: {names}")
    bound = _bound(names, needed, inputs)
    cotangents = []
    if is_class:
        parameters = cotangents_of(program, name)
        cotangents = list(_bound(parameters, parameters, {}).values())
    first = None
    for variant in _variants(bound, inputs):
        try:
            traced = trace(program, variant, cotangents, library, name)
            verdict = _compared(traced, definitions, variant, outputs, library, seconds)
        except NotTraced as reason:
            verdict = _refused(reason)
        if verdict:
            return verdict
        first = first if first is not None else verdict
        if verdict.kind not in (WRONG, NOT_READ):
            return verdict
    return first


def _variants(bound, inputs):
    """The inputs, and where nothing was said of a statistic's shape, those with statistics of shape (M, 1)."""
    told = any(isinstance(value, str) and "[" in value for value in inputs.values())
    columns = _with_columns(bound)
    return [bound] if told or columns == bound else [bound, columns]


def _refused(reason):
    kind = WRONG if isinstance(reason, Misfit) else NOT_READ
    return Verdict(kind, line=reason.line, why=str(reason))


def _compared(traced: Trace, definitions, inputs, outputs, library, seconds):
    if traced.written:
        return Verdict(WRONG, why=f"it writes over {', '.join(traced.written)}")
    assumptions = [REAL, _in_words(inputs, library)]
    assumptions += [
        f"{name} = {value} is eps, and may be any positive number"
        for name, value in traced.constants.items()
    ]
    claims = _claims(traced, definitions, inputs, outputs)
    verdicts = {
        name: _of_output(name, value, definitions, seconds)
        for name, value in claims.items()
    }
    conditions = _conditions(traced, definitions)
    if S.false in conditions:
        return Verdict(WRONG, why="it divides by 0, or takes a root of what is negative")
    assumptions += [f"where {text}" for e in conditions for text in lettered(e)]
    for a, b in traced.noted.kinks:
        (text,) = lettered(_readable(a - b))
        assumptions.append(f"what is compared is not equal: {text} is not 0")
    return whole(verdicts, assumptions=assumptions)


def _of_output(name, value, definitions, seconds):
    head = definitions.outputs[name]
    shape = tuple(head.base.shape)
    if not isinstance(value, Array):
        return Verdict(WRONG, why=f"{name} is {type(value).__name__}, no array")
    allowed = [shape, (M, ONE)] if shape == (M,) else [shape]
    if value.shape not in allowed:
        why = f"{name} has the shape {in_words(value.shape)}, needs {in_words(shape)}"
        return Verdict(WRONG, why=why)
    stored = entry(value, head.indices)
    return compare(stored, head, definitions.defs, f"{name} = {head}", seconds)


def _claims(traced, definitions, inputs, outputs):
    """{output of the definitions: what the program returns for it}."""
    if traced.gradients:
        return _gradients(traced, definitions, inputs, outputs)
    values = traced.outputs
    names = outputs or _recognized(traced.names, definitions) or _by_shape(values, definitions, inputs)
    if len(names) != len(values):
        raise ValueError(f"outputs: got {len(names)} names for {len(values)} results")
    unknown = [name for name in names if name not in definitions.outputs]
    if unknown:
        raise ValueError(f"outputs: got {unknown}, needs some of {list(definitions.outputs)}")
    return dict(zip(names, values, strict=True))


def _gradients(traced, definitions, inputs, outputs):
    names = outputs or ORDER[0][: len(traced.outputs)]
    claims = dict(zip(names, traced.outputs, strict=True))
    if len(traced.gradients) != len(inputs):
        raise Misfit(f"backward returns {len(traced.gradients)} gradients for {len(inputs)} arguments")
    for value, gradient in zip(inputs.values(), traced.gradients, strict=True):
        tensor = isinstance(value, Input) and isinstance(value.head, Indexed)
        if tensor:
            claims[GRADIENT[str(value.head.base.label)]] = gradient
        elif gradient is not None:
            raise Misfit("a gradient of what is no tensor")
    return claims


def _recognized(names, definitions):
    """The names that a program has for its results, where all of them are names of the definitions' outputs."""
    if names is None:
        return None
    gradients = set(names) <= set(GRADIENT) and not set(names) & set(definitions.outputs)
    own = [ALSO.get(name, name) for name in names]
    own = [GRADIENT.get(name, name) if gradients else name for name in own]
    return own if set(own) <= set(definitions.outputs) and len(set(own)) == len(own) else None


def _by_shape(values, definitions, inputs):
    """The first output with its shape that is not taken, for each of the results."""
    heads = [value.head for value in inputs.values() if isinstance(value, Input)]
    backward = any(str(getattr(head, "base", "")) in ("dy", "dresidual_out", "wdy") for head in heads)
    left = [name for name in ORDER[backward] if name in definitions.outputs]
    if str(TENSORS["residual"]) not in [str(getattr(head, "base", "")) for head in heads]:
        left = [name for name in left if name not in ("dresidual", "residual_out")]
    names = []
    for value in values:
        shape = getattr(value, "shape", None)
        shape = (M,) if shape == (M, ONE) else shape
        fitting = [n for n in left if tuple(definitions.outputs[n].base.shape) == shape]
        if not fitting:
            words = in_words(shape) if shape is not None else type(value).__name__
            raise Misfit(f"a result of the shape {words}, for which there is no output")
        names.append(fitting[0])
        left.remove(fitting[0])
    return names


def _readable(e: Expr) -> Expr:
    """An expression of the trace in the book's indices, where each has one range."""
    ranges = index_ranges(e)
    letters = {M: [i, *"pk"], N: [j, *"qk"]}
    names = {}
    bound = {limit[0] for part in e.atoms(Indexed) for limit in getattr(part, "limits", ())}
    for letter, size in sorted(ranges.items(), key=str):
        if letter in bound or isinstance(letter, Dummy) and letter.name == "r":
            continue
        if size in letters and letters[size] and not isinstance(letters[size][0], str):
            names[letter] = letters[size].pop(0)
    return e.xreplace(names)


def _conditions(traced, definitions):
    """What must hold for everything that the program divides by, or takes a root of."""
    written = list(dict.fromkeys(map(_readable, traced.noted.domain)))
    return side_conditions(written, definitions.defs)
