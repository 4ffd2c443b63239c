"""A NumPy or torch function against the definitions of a norm: what it returns, proved for every M and N.

The function is read, not run; its arguments and results are known by their names of the field, or are named by the
caller. The verdict prints which is which.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import compress, product
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any

from sympy import (
    Indexed,
    IndexedBase,
    Integer,
    Rational,
    S,
    Symbol,
    Tuple,
    evaluate,
)

from ..symbolic.calculus import RangeError
from ..symbolic.definitions import Defs
from ..symbolic.notation import Partial, tensor
from ..symbolic.patience import OutOfPatience, clock, limited
from ..symbolic.proof import lettered
from ..symbolic.symbols import M, N, eps, i, j
from ..symbolic.witness import counterexample
from .arrays import (
    ONE,
    TWO_AXES,
    UNNAMED,
    Array,
    NotRead,
    State,
    Wrong,
    is_number,
    plain,
)
from .binding import check_roles
from .certain import refusal
from .conditions import concluded, conditions_of
from .definitions import (
    ALSO,
    ENTRIES,
    GRADIENT,
    LETTERS,
    LOSS,
    NUMBERS,
    TENSORS,
    Norm,
    columns,
    no_tensor,
    norm,
    rows,
)
from .difference import field_terms
from .digits import ROUNDED, cancelling, vanishing
from .entries import definitions_of
from .functions import (
    BESIDE,
    Input,
    Trace,
    entry,
    launches,
    library_of,
    parameters_of,
    trace,
)
from .guesses import UnknownName, guesses
from .interpreter import Raised
from .maxima import check_steady, of_maxima
from .over_rows import Listed
from .pairs import with_forward
from .places import CEILING, FLOOR
from .python_objects import flat
from .replay import Case
from .sizes import Way, at_columns, next_power_of_2, of_sizes
from .source import is_file, text_of
from .text import (
    TextOfFile,
    check_seconds,
    check_type,
    module_of,
    value_of,
    with_helpers,
)
from .values import Misfit
from .verdict import (
    KINDS,
    MORE,
    NOT_READ,
    REFUTED,
    WRONG,
    Claim,
    Verdict,
    at_its_eps,
    beside_run,
    compare,
    if_zero,
    joined,
    refused,
)
from .widths import INTEGERS, below

# what a parameter without a default is, where no other one is it
ALONE = {"scale": "weight", "shift": "bias"}
# what is assumed of a number of the program's module
ANY_EPS = "is eps, and may be any positive number"
# what a forward may call its only result, too
RESULTS = ALSO | dict.fromkeys(("out", "output", "o", "result"), "y")
OF_GRADIENTS = {"dy", "dresidual_out", "wdy", "c1", "c2", *GRADIENT.values()}
OPTIONAL = ("residual", "weight", "bias", "gate")
COUNTS = {"M": M, "N": N}
SHAPES = {"(M, N)": (M, N), "(N,)": (N,), "(M,)": (M,)}
SUMS = {i: rows, j: columns}
OPTIONS = ("definitions", "outputs", "library", "name", "seconds", "run", "helpers")
UNFOLLOWED = (NotRead, NotImplementedError, OutOfPatience, RangeError, RecursionError)
DIFFERS = (
    "another formula for another dtype: a branch on a dtype may change digits only"
)
GIVEN = "given_"
LEADING_ROWS = "for tensors (B, T, N) with the strides (T N, N, 1), M = B T"
PACKED = "entries of a row, and vectors, lie side by side"
TRUSTED = (
    "all imports succeed, those in a `try`, too; lines of the module that are not read raise no error, and neither "
    "they nor other files change what is read"
)
REAL = "real numbers: rounding, overflow and NaN are left out; M and N are at least 1"


def input_of(name: str, words: Any, definitions: Norm | None = None) -> Input | None:
    """What an argument is; None for what is no text, or a word that is no tensor's name.

    Args:    name: of the parameter
             words: its name of the field, as "x"; "rstd[:, None]" for the shape (M, 1); "(M, N)" for a tensor of its
             own; an expression of the definitions, as "1/rstd[:, None]"
    Raises:  ValueError for a text that is none of these
    """
    if not isinstance(words, str):
        return None
    if words in SHAPES:
        shape = SHAPES[words]
        # y of the definitions is another tensor than an argument y
        own_name = f"{GIVEN}{name}" if name in TENSORS else name
        return Input(_indexed(own_name, shape), shape, is_free=True)
    plain, bracket, rest = words.partition("[:, None]")
    plain = ALSO.get(plain, plain)
    is_name = not rest and plain.isidentifier()
    if is_name:
        e = {"eps": eps, **ENTRIES}.get(plain)
        if e is None:
            return None
    else:
        tensors = {} if definitions is None else definitions.tensors
        e = value_of(name, plain + bracket + rest, tensors | NUMBERS)
        if definitions is not None:
            definitions.where_defined(name, e)
    shape = tuple(size for size, letter in LETTERS.items() if e.has(letter))
    if "None" in words:
        if is_name or shape == (M,):
            shape = (*shape, ONE)
        elif shape == (N,):
            shape = (ONE, N)
    return Input(e, shape)


def _bound(names, needed, inputs, shared, definitions=None):
    """{parameter: Input or plain value}.

    Args:  inputs: what the caller said of parameters; shared: {name: Input} of a forward's results
    """
    bound, unknown = {}, []
    for name in names:
        told = inputs.get(name, name)
        role = ALONE.get(name)
        if role and name in needed and name not in inputs and role not in names:
            told = role
        value = told
        if not isinstance(told, str):
            pass
        elif name in inputs and told in COUNTS:
            value = COUNTS[told]
        else:
            value = shared.get(told) or shared.get(ALSO.get(told))
            value = value or input_of(name, told, definitions)
            if value is None and input_of(name, name):
                needs = f"needs a tensor's name, as {', '.join(TENSORS)}, or its shape"
                raise ValueError(f"{name}: got {told!r}, {needs}")
            value = value or inputs.get(name)
        if value is not None or name in inputs:
            bound[name] = value
        elif name in (*OPTIONS, "program", "binding"):
            raise ValueError(
                f"{name}: is a parameter of the program and an argument of verify, "
                "which cannot say what it is; needs another name in the program"
            )
        elif name in needed:
            unknown.append(name)
    if unknown:
        name = unknown[0]
        words = (
            f"{name}: is not known by its name; say which tensor it is, as "
            f'{name}="x", {name}="1/rstd[:, None]" or {name}="(M, N)", or that it '
            f'is a size, as {name}="N"; tensors are {", ".join(TENSORS)}'
        )
        raise UnknownName(words, unknown)
    check_roles({name: _role(value) or None for name, value in bound.items()})
    return bound


def _in_words(inputs, library):
    kind = {"numpy": "NumPy arrays", "torch": "tensors"}[library]
    parts = []
    for name, value in inputs.items():
        if not isinstance(value, Input):
            parts.append(f"{name} = {value!r}")
        elif _is_tensor(value):
            role = _role(value)
            same = "" if role.removeprefix(GIVEN) == name else f", the {role}"
            parts.append(f"{name} {value.shape}{same}")
        elif value.head == eps:
            parts.append(f"{name} > 0")
        else:
            shape = f" {value.shape}," if value.shape else ""
            parts.append(f"{name}{shape} = {lettered(value.head)[0]}")
    return f"{kind} of one dtype of floats: {'; '.join(parts)}"


def verify_function(
    program: Any,
    definitions: Norm | Any = None,
    outputs: Sequence[str] | None = None,
    library: str | None = None,
    name: str = "",
    seconds: float = 20,
    run: bool | None = None,
    helpers: Mapping[str, str] | None = None,
    **inputs: Any,
) -> Verdict:
    """Whether a function, or an autograd Function, computes what the definitions say.

    Args:     program: a function, a subclass of torch.autograd.Function, or the text of a module
              definitions: a norm, as `norm(center=True, bias=True)`; or a forward, as a function or as (a text, its
              name): its results in their order, and where the program has gradients, those that are worked out;
              an autograd Function without definitions is compared with the gradients of its own forward
              outputs: what the function returns, as ("dx", "dw"), where it does not return names of the field
              name: of the function in a text
              library: "numpy" or "torch", the arguments' own; seconds: after how many a proof is given up
              run: whether a proof is confronted with a run; None: of an object it is, and a text is only read; True
              executes a text as a module
              helpers: {an expression of a module's text: what it is}, taken for granted, as {"dispatch": "lambda f: f",
              "IS_AMD": "False"}
              inputs: what a parameter is, as g="dy", rstd="rstd[:, None]", q="(M, N)" or a size, as dim="N"
    Returns:  Verdict, one for each output
    Raises:   ValueError for a parameter or an output that is not known by its name; TypeError for what is no program
    """
    program, name = located(program, name)
    if isinstance(program, str):
        program, name, results = with_forward(
            program, name, lambda key: key in inputs or input_of(key, key) is not None
        )
        if results:
            outputs = ["y", *outputs] if outputs else results
    _check_options(definitions, outputs, name, seconds)
    check_type("run", run, bool, NoneType)
    if name and not isinstance(program, str):
        raise ValueError(f"name: got {name!r}, needs none where program is no text")
    if helpers and not isinstance(program, str):
        raise ValueError("helpers: got some, needs none where program is no text")
    granted = [f"where {call} is {text}" for call, text in (helpers or {}).items()]
    if helpers:
        program = with_helpers(program, helpers)
    try:
        said = library
        others = "numpy"
        if not isinstance(definitions, Norm | None):
            forward = definitions[0] if isinstance(definitions, tuple) else definitions
            with suppress(ValueError):  # which is said of the definitions later
                others = library_of(forward)
        library = said or library_of(program, others)
        claim = _Claim(program, name, library, outputs, seconds, run)
        for switch in claim.switches:
            if inputs.get(switch) is True:
                del inputs[switch]
        inputs = claim.columns | inputs
        if definitions is None and not claim.is_class:
            raise ValueError(
                "definitions: got None, needs a norm or a forward function"
            )
        shared, asked = {}, definitions
        if not isinstance(definitions, Norm | None):
            definitions, shared = claim.of_forward(definitions, inputs, run, said)
        elif definitions is not None:
            claim.free = [
                key
                for key, told in inputs.items()
                if isinstance(told, str) and told in SHAPES
            ]
        try:
            names = claim.names_given(inputs, definitions)
            bound = _bound(names, claim.needed, inputs, shared, definitions)
        except ValueError as reason:
            if claim.refusal is not None:
                return refused(claim.refusal)
            options, tried = (outputs, said, name, seconds, run, None), []
            for guess in claim.guesses(reason, inputs, asked):
                tried.append(
                    ", ".join(f"{key}={value!r}" for key, value in guess.items())
                )
                verdict = refused(NotRead(""))
                with suppress(ValueError):
                    verdict = verify_function(
                        program, asked, *options, **inputs, **guess
                    )
                empty = [f"for {key}={{}}" for key, value in guess.items() if not value]
                is_told = len(empty) == len(guess) and verdict.kind == REFUTED
                if not any(value in TENSORS for value in guess.values() if value):
                    is_told |= verdict.kind == NOT_READ and bool(verdict.why)
                if verdict.is_proof or is_told:
                    return _claiming(verdict, *empty, *granted)
            if tried:
                words = f"{reason}; it is not proved with {tried[0]}"
                raise UnknownName(words, reason.names) from None
            raise
        names, places = claim.names, "the program"
        if claim.forward:
            names, places = [*names, *claim.forward.names], f"{places} or its forward"
        unknown = set(inputs).difference(names)
        if unknown:
            raise ValueError(
                f"{min(unknown)}: is no parameter of {places}, needs one of "
                f"{', '.join(dict.fromkeys(names))}, or an option: {', '.join(OPTIONS)}"
            )
    except NotRead as reason:
        return refused(reason)
    # rstd may be (M, 1) where nobody says (M,): a shape that the caller says, or that a forward is read with, is the
    # only one, or dy * u beside a forward x * u[:, None] is proved for another argument than the forward's
    vectors = {}
    for name, value in bound.items():
        told = inputs.get(name)
        is_told = isinstance(told, str) and (told in SHAPES or told.isidentifier())
        is_open = claim.forward is None and not is_told
        if is_open and isinstance(value, Input) and value.shape == (M,):
            vectors[name] = Input(value.head, (M, ONE))

    def judge(definitions):
        return _judged(claim, definitions, bound, vectors)

    with evaluate(True):
        if definitions is None:
            verdict = judge(definitions)
        else:
            arguments = [getattr(value, "head", value) for value in bound.values()]
            verdict = at_its_eps(judge, definitions, arguments)
    if verdict.kind == NOT_READ and claim.refusal is not None:
        return refused(claim.refusal)
    return _claiming(verdict, *granted)


def _judged(claim, definitions, bound, vectors):
    """The verdict with vectors as (M,), else as (M, 1)."""
    verdicts = [claim.verdict(definitions, bound)]
    is_misfit = claim.misfits
    if vectors and not verdicts[0].is_proof:
        verdicts.append(claim.verdict(definitions, bound | vectors))
    if verdicts[-1].is_proof:
        return verdicts[-1]
    if verdicts[0].kind == NOT_READ and not is_misfit:
        # the other shape accuses no program that is not followed with the first
        return verdicts[0]
    refuted = [verdict for verdict in verdicts if verdict.kind == REFUTED]
    first, last = [*refuted, *verdicts][0], verdicts[-1]
    if first.kind == WRONG and first.why != last.why:
        return _taken(first, bound)
    return first


def located(program: Any, name: str) -> tuple[Any, str]:
    """(the text of a file, a function's name) of "kernels.py::norm" or a Path; all else as it is."""
    if not isinstance(program, Path):
        if not isinstance(program, str) or "\n" in program:
            return program, name
        path, _, last = program.partition("::")
        if not path.endswith(".py"):
            return program, name
        program, name = Path(path), name or last
    if not is_file(program):
        raise ValueError(f"program: got {str(program)!r}, which is no file")
    text = TextOfFile(text_of(program))
    text.file = program.resolve()
    return text, name


def _check_options(definitions, outputs, name, seconds):
    """TypeError or ValueError for an option of another type."""
    is_norm_itself = definitions is norm
    if isinstance(definitions, tuple):
        is_known = list(map(type, definitions)) == [str, str]
    else:
        types = (Norm, str, FunctionType, type, NoneType)
        is_known = isinstance(definitions, types)
    if is_norm_itself or not is_known:
        needs = "a norm as norm() makes one, a forward function, or (a text, its name)"
        raise TypeError(f"definitions: got {definitions!r}, needs {needs}")
    check_type("name", name, str)
    check_seconds(seconds)
    check_type("outputs", outputs, list, tuple, NoneType)
    for output in outputs or ():
        check_type("outputs: a name", output, str)
    if outputs is not None and not outputs:
        raise ValueError("outputs: got none, needs a name for each result")


@dataclass
class _Claim:
    """A program, its parameters, and what the caller said of its results."""

    program: Any
    name: str
    library: str
    outputs: Sequence | None = None
    seconds: float = 0
    run: bool | None = None
    forward: _Claim | None = None
    free: Sequence = ()
    cotangents: Mapping = field(default_factory=dict)
    way: Way | None = None
    misfits: bool = False

    def __post_init__(self):
        if self.library not in ("numpy", "torch"):
            needs = "needs 'numpy' or 'torch'"
            raise ValueError(f"library: got {self.library!r}, {needs}")
        is_function = isinstance(self.program, FunctionType)
        if self.library == "torch" and is_function and "torch" not in sys.modules:
            raise ValueError("library: got 'torch', needs torch to be imported")
        self.parameters = parameters = parameters_of(self.program, self.name)
        self.names, self.needed = parameters.names, parameters.needed
        self.defaults, self.switches = parameters.defaults, parameters.switches
        self.is_class = parameters.is_class
        # {result: its shape in a forward, where the program is compared with one}
        self.shapes = {}
        self.columns = dict.fromkeys(parameters.columns, "N")
        if self.is_class and self.library != "torch":
            raise ValueError(
                f"library: got {self.library!r}, needs 'torch' for a Function"
            )
        self.launches = launches(self.program)
        if self.run is None:
            self.run = not (isinstance(self.program, str) or self.launches)

    @cached_property
    def refusal(self) -> Wrong | None:
        """What is sure to be refused of a text that launches kernels, whatever its arguments are."""
        is_text = isinstance(self.program, str) and self.launches
        return refusal(self.program, self.name) if is_text else None

    def of_forward(self, forward, inputs, run, said):
        """The definitions that a forward function is, and {name: Input} of its results and their gradients.

        Args:  inputs: what the caller said of parameters; said: the library that he said
        """
        forward, name = forward if isinstance(forward, tuple) else (forward, "")
        try:
            library = library_of(forward, self.library, said)
            claim = _Claim(forward, name, library, run=run)
            # where the program has no eps, it is compared with a forward's default
            roles = {ALSO.get(name, name) for name in self.names}
            known = [
                name
                for name in claim.names
                if name in claim.needed or ALSO.get(name, name) in roles
            ]
            bound = _bound(known, claim.needed, claim.columns | inputs, {})
            traced = claim.trace(bound)
            conditions_of(traced.noted, Defs())
        except NotRead as reason:
            where = f", line {reason.line}" if reason.line else ""
            raise NotRead(f"definitions{where}: {reason}") from None
        except (TypeError, ValueError) as reason:
            message = re.sub("^(program|name|library): ", "", str(reason))
            raise type(reason)(f"definitions: {message}") from None
        if traced.noted.cut and claim.library == "torch" and not claim.is_class:
            raise NotRead(
                "definitions: a forward through part of which torch passes no "
                "gradient; needs one without detach and no_grad"
            )
        if traced.written:
            words = f"that writes over {', '.join(traced.written)}"
            raise NotRead(f"definitions: a forward {words}; needs one on a copy")
        shared, cotangents = {}, {}
        roles = {inputs.get(name, name) for name in self.names}
        roles |= {ALSO.get(role) for role in roles}
        outputs = names_of(traced, bound)
        for name, value in zip(outputs, traced.outputs, strict=True):
            shared[name] = _input_like(name, value)
            shared[f"d{name}"] = _input_like(f"d{name}", value)
            if f"d{name}" in roles or self.is_class:
                cotangents[name] = shared[f"d{name}"]
        if self.is_class:
            self.cotangents = cotangents
        elif not cotangents and roles & OF_GRADIENTS:
            raise ValueError(
                f"program: needs a gradient of one of {outputs}, as d{outputs[0]}"
            )
        if self.is_class or not cotangents:
            # one by one: results in another order, under the forward's names, are another program's
            if self.outputs not in (None, outputs, tuple(outputs)):
                needs = f"needs none: they are the definitions' {outputs}"
                raise ValueError(f"outputs: got {self.outputs}, {needs}")
            self.outputs = outputs
            pairs = zip(outputs, traced.outputs, strict=True)
            self.shapes = {name: value.shape for name, value in pairs}
        claim.ran, self.forward = (bound, outputs, traced, ()), claim
        return own(traced, bound, cotangents), shared

    def names_given(self, inputs, definitions):
        """The parameters that are not left out.

        For `residual=None` beside a norm without a residual. It stops a program from being refused for the second
        result that it has where there is one.
        """
        if not isinstance(definitions, Norm):
            return self.names
        lacking = set(OPTIONAL) - set(definitions.tensors)
        return [
            name
            for name in self.names
            if name in inputs
            or self.defaults.get(name, name) is not None
            or ALSO.get(name, name) not in lacking
        ]

    def guesses(self, reason, inputs, definitions):
        """What the parameters of unknown names may be, of a norm's definitions, or of a forward in its order."""
        if not isinstance(reason, UnknownName):
            return
        unknown = reason.names
        if isinstance(definitions, Norm):
            names = [name for name in self.names if name not in unknown]
            taken = {str(inputs.get(name, name)) for name in names}
            taken |= {ALSO.get(name) for name in taken}
            yield from guesses(self.parameters, unknown, taken, definitions)
        elif self.forward and len(self.needed) == len(self.forward.needed):
            pairs = zip(self.needed, self.forward.needed, strict=True)
            yield {name: role for name, role in pairs if name in unknown}

    def verdict(self, definitions, bound):
        """The verdict for arguments; of a launcher over all ways through its branches on sizes."""
        if self.launches:
            return self._over_strides(definitions, bound)
        verdict = self._on_way(definitions, bound)
        if self.misfits and isinstance(self.program, str) and self.library == "torch":
            # for B, T, N = x.shape
            self.misfits, way = False, Way(apart=False, leading=True)
            split = self._over_ways(definitions, bound, way)
            self.way = None
            if split.is_proof or split.accuses or "for 3 names" in verdict.why:
                return _claiming(split, LEADING_ROWS)
        return verdict

    def _over_strides(self, definitions, bound):
        """The verdict for rows of any stride, else for contiguous tensors, else for such ones of three axes."""
        apart = self._over_ways(definitions, bound, Way(apart=True))
        if apart.is_proof:
            return _claiming(apart, "for rows of any stride from N on")
        dense = self._over_ways(definitions, bound, Way(apart=False))
        if dense.is_proof:
            why = f"rows that lie further apart: {apart.why or apart.kind}"
            return replace(
                _claiming(dense, "for tensors with the strides (N, 1)"), why=why
            )
        result, words = dense, LEADING_ROWS
        for heads in (False, True) if self.misfits else ():
            self.misfits = False
            way = Way(apart=False, leading=True, heads=heads)
            split = self._over_ways(definitions, bound, way)
            if heads:
                words += ", and vectors (T, N), one for each t"
            split = _claiming(split, words)
            if split.is_proof:
                return split
            if result is dense and not self.misfits:
                result = split
        return result

    def _over_ways(self, definitions, bound, way):
        """The worst verdict of all ways through branches on sizes, those left out on which an error is raised.

        A way accuses where sizes are found at which a launch takes it.
        """
        verdicts, raised, errors, shared = [], [], [], way.shared
        while way is not None:
            self.way = way
            try:
                verdict = self._on_way(definitions, bound)
            except Raised as reason:
                raised.append(way.words())
                errors.append(reason)
            else:
                verdict = _at_sizes(verdict, way)
                verdicts.append(verdict)
                if verdict.kind == REFUTED:
                    break
            way = way.following()
        if not verdicts:
            self.misfits = True
            reason = NotRead(f"{errors[0]}, for every M and N")
            reason.line = errors[0].line
            return refused(reason)
        worst = max(verdicts, key=lambda verdict: KINDS.index(verdict.kind))
        if not worst.is_proof:
            return worst
        result = replace(reduce(joined, verdicts), kind=worst.kind)
        start = "where it raises no error, as it does where"
        if "element size" in shared:
            start = "where it raises no error for any dtype, as it does for one where"
        words = [f"{start} {text}" for text in raised]
        return _claiming(result, *words)

    def _on_way(self, definitions, bound):
        """The verdict on one way; where it rests on a guess, only a proof is one."""
        self.guess, self.guessed, self.memo = "", (), {}
        try:
            if self.is_class:
                verdict, definitions = self._of_class(definitions, bound)
            else:
                traced = _without_none(self.trace(bound), definitions)
                if self.outputs is None:
                    traced = traced.without_cache()
                names = self._outputs(traced, definitions, bound)
                claims = self._named(names, traced.outputs, definitions)
                verdict = self._verdict(traced, definitions, claims, bound)
                self.ran = bound, list(claims), traced, ()
            for claim in (self, self.forward):
                if verdict and claim and claim.run:
                    verdict = claim.confronted(verdict, definitions, self.values)
            if verdict.kind == REFUTED:
                verdict = self._in_numbers(verdict)
        except Misfit as reason:
            self.misfits = True
            verdict = _taken(refused(reason), bound)
        except Raised:
            raise
        except UNFOLLOWED as reason:
            verdict = refused(reason)
        why = ""
        if verdict.kind == REFUTED and self._free_in(verdict):
            why = no_tensor(", ".join(self._free_in(verdict)))
        elif self.guess and verdict.accuses:
            guessed = [verdict.outputs.get(name) for name in self.guessed]
            if not (guessed and all(guessed)):
                why = f"it is not what is defined, if {self.guess}; say outputs"
        if why:
            return verdict.unread(why)
        return verdict

    def _free_in(self, verdict):
        """The arguments of which nothing but a shape is said, in what a verdict is on."""
        parts = [verdict, *verdict.outputs.values()]
        stored = Tuple(*[part.stored for part in parts if part.stored is not None])
        names = {str(base).removeprefix(GIVEN) for base in stored.atoms(IndexedBase)}
        return [name for name in self.free if name in names]

    def confronted(self, verdict, definitions, values):
        """The verdict, unless a run refutes it; values: {"eps": its number}, where it is a number in the program.

        A program that takes no tensors of float64 has no run beside it, which the verdict says: for a layer_norm with
        weight.float(). Without it such a run, which raises an error, is taken for one that refutes the proof.
        """
        from .confront import confronted

        defs, outputs, noted = definitions.defs, definitions.outputs, self.ran[2].noted
        if noted.dtype not in (UNNAMED, "float64"):
            words = "there is no run beside it, as it takes no tensors of float64"
            return replace(verdict, assumptions=(*verdict.assumptions, words))
        return confronted(verdict, self._runs(), defs, outputs, noted, values)

    def _in_numbers(self, verdict):
        """A refutation with what its numbers need, unless a run at them gives what is defined."""
        for output in verdict.outputs.values():
            if output.case:
                for number in self.values.values():
                    output.case.given = {eps: Rational(str(number))}
                output.case.fits = self.way and self.way.holds_at
        return beside_run(verdict, self._runs()) if self.run and self.ran else verdict

    def _runs(self):
        """The run of the program, as it was traced."""
        from . import confront

        bound, names, traced, cotangents = self.ran
        tensors = {key: value for key, value in bound.items() if _is_tensor(value)}
        gradients = {}
        if cotangents:
            gradients = {k: gradient_of(_role(v), names) for k, v in tensors.items()}

        leading = self.way and self.way.leading
        is_flat = TWO_AXES in traced.noted.narrowed
        of_rows = {k for k, v in tensors.items() if v.shape[:1] == (M,)}

        def call(arguments):
            if not leading:
                return called(arguments)
            split = {k: confront.with_leading(arguments[k]) for k in of_rows}
            results = flat(called(arguments | split))
            return [confront.without_leading(a, is_flat) for a in results]

        def called(arguments):
            target = self.program
            if isinstance(target, str):
                target = confront.function_of(target, self.name)
            if self.is_class:
                return target.apply(*confront.in_order(target.forward, arguments))
            if self.parameters.plain:
                return confront.of_plain(target, arguments, traced.names)
            if isinstance(target, type):
                return confront.of_layer(target, arguments, self.switches)
            result = target(**arguments)
            return result[0] if traced.container == BESIDE else result

        heads = [getattr(cotangent, "head", None) for cotangent in cotangents]
        return confront.of_function(call, self.library, bound, names, gradients, heads)

    def trace(self, bound: dict, cotangents: Sequence = (), flags=None) -> Trace:
        """The program's outputs for arguments."""
        arguments = self.program, bound, cotangents, self.library, self.name
        return trace(*arguments, flags, self.way)

    def _outputs(self, traced, definitions, bound):
        """What the results are: what the caller says, else their names; y of a program that takes no gradient.

        A result x of a program that takes dy is dx.
        """
        names, count = traced.names or [], len(traced.outputs)
        takes_gradients = bool(OF_GRADIENTS & set(map(_role, bound.values())))
        is_forward = len(names) == 1 and not takes_gradients
        known, outputs = RESULTS if is_forward else ALSO, set(definitions.outputs)
        own = called = [known.get(name, name) for name in names]
        if takes_gradients and set(names) <= set(GRADIENT) - outputs:
            own = [GRADIENT[name] for name in names]
        if not set(own) <= outputs or len(set(own)) < len(own):
            own = []
        if "dict" in traced.container and own:
            if self.outputs and set(self.outputs) != set(own):
                words = f"it returns {', '.join(own)}, and outputs are {self.outputs}"
                raise NotRead(words)
            return own
        if self.outputs is not None:
            if len(self.outputs) != count:
                raise NotRead(f"{count} results, and outputs are {self.outputs}")
            return self.outputs
        if not (own or takes_gradients):
            own = _by_shape(traced.outputs)
            if own and count > 1:
                self.guess, self.guessed = f"its results are {', '.join(own)}", own
        if not own:
            words = 'a name for each result, such as ("dx", "dw")'
            raise ValueError(f"outputs: got None, needs {words}")
        if called and set(own).isdisjoint(called):
            self.guess = f"its results {', '.join(names)} are {', '.join(own)}"
        return own

    def _named(self, names, values, definitions):
        """{output of the definitions: what the program returns for it}."""
        if len(names) != len(values):
            words = f"it returns {len(values)} results, and not {', '.join(names)}"
            raise NotRead(f"{words}; say outputs")
        unknown = [name for name in names if name not in definitions.outputs]
        needs = f"needs some of {list(definitions.outputs)}"
        if unknown and self.outputs is None:
            raise NotRead(f"its result is taken for {', '.join(unknown)}; {needs}")
        if unknown:
            raise ValueError(f"outputs: got {unknown}, {needs}")
        return dict(zip(names, values, strict=True))

    def _of_class(self, definitions, bound):
        """(the verdict on an autograd Function, whichever of its arguments need a gradient; its definitions).

        Where the backward is not followed, what the forward returns may be refuted. It is not proved without gradients.
        """
        forward = self.trace(bound)
        passed, count = forward.passed, len(forward.outputs)
        if passed is None:
            raise NotRead(
                "a backward with other parameters than ctx and gradients: name one for "
                "each result of forward"
            )
        if len(passed) != count:
            raise Wrong(f"backward takes {len(passed)} gradients of {count} results")
        if all(forward.marked):
            raise Wrong("every result of forward is marked as not differentiable")
        if definitions is None:
            names = names_of(forward, bound)
            cotangents = list(map(_input_like, passed, forward.outputs))
        else:
            names = self._outputs(forward, definitions, bound)
            cotangents = [
                self.cotangents.get(name) or input_of("", f"d{name}") for name in names
            ]
            # torch hands over a gradient of the shape that a result has: (M, 1) of what the definitions have as (M,)
            pairs = zip(forward.outputs, cotangents, strict=False)
            for position, (value, given) in enumerate(pairs):
                if given and isinstance(value, Array):
                    sizes = [size for size in value.shape if size != 1]
                    if sizes == list(given.head.base.shape):
                        cotangents[position] = replace(given, shape=value.shape)
            _check_cotangents(names, cotangents, forward.marked, definitions)
        for position, marked in enumerate(forward.marked):
            if marked:
                cotangents[position] = None
        if definitions is None:
            given = dict(zip(names, cotangents, strict=True))
            definitions = own(forward, bound, given)
        tensors = [k for k, a in bound.items() if _is_tensor(a) and not a.is_target]
        result = None
        for needed in product((True, False), repeat=len(tensors)):
            flags = dict(zip(tensors, needed, strict=True))
            try:
                traced = self.trace(bound, cotangents if any(needed) else (), flags)
            except UNFOLLOWED as reason:
                if isinstance(reason, Wrong | Raised):
                    raise
                claims = self._named(names, forward.outputs, definitions)
                verdict = self._verdict(forward, definitions, claims, bound)
                if verdict.kind != REFUTED:
                    raise
                self.ran = ()
                return verdict, definitions
            claims = self._named(names, traced.outputs, definitions)
            for name in compress(tensors, needed):
                output = gradient_of(_role(bound[name]), names)
                if output not in definitions.outputs:
                    raise NotRead(
                        f"{output}, which the definitions lack: they need another "
                        "argument of norm, or are a Norm with this output"
                    )
                claims[output] = traced.gradients[name]
            verdict = self._verdict(traced, definitions, claims, bound)
            if result is None:
                result, self.ran = verdict, (bound, names, traced, cotangents)
            elif verdict:
                result = joined(result, verdict)
            else:
                words = ", ".join(f"{name}: {flag}" for name, flag in flags.items())
                why = f"where needs_input_grad is {words}: {verdict.why}"
                self.ran = ()
                return replace(verdict, why=why), definitions
            if not (traced.asked and verdict):
                break
        return result, definitions

    def _verdict(self, traced, definitions, claims, bound):
        constants, state = {*traced.constants.values()}, traced.noted
        if self.forward:
            beside = self.forward.ran[2]
            constants.update(beside.constants.values())
            # a gradient of x + s - s is one only where s has a value
            state = state.beside(beside.noted)
        if len(constants) > 1:
            raise NotRead(
                "another eps than that of the forward: write one number in both, or a "
                "parameter eps"
            )
        self.values = dict(zip(["eps"], map(float, constants), strict=False))
        written = traced.written
        if self.launches:
            # what launchers write in place is said; autograd asks for arguments as they were
            written = [name for name in written if self.is_class and name in bound]
        if written:
            kind = WRONG if self.is_class else NOT_READ
            return Verdict(kind, why=f"it writes over {', '.join(written)}")
        assumptions = [REAL, _in_words(bound, self.library)]
        assumptions += [
            f"{name} = {value} {ANY_EPS}" for name, value in traced.constants.items()
        ]
        verdicts, heads, self.maxima = {}, [], state.maxima
        for name, value in claims.items():
            verdicts[name] = self._of_output(name, value, definitions)
            if verdicts[name].kind == WRONG and isinstance(value, Array):
                verdicts[name] = _taken(verdicts[name], bound)
            head, shape = definitions.outputs[name], getattr(value, "shape", ())
            is_wider = len(shape) > len(getattr(head, "indices", ()))
            heads.append(f"{head} as {shape}" if is_wider else str(head))
        if state.filled:
            verdicts, words = if_zero(verdicts, state.filled)
            assumptions.append(words)
        results, clauses = f"{self.called()} returns {', '.join(heads)}", []
        if traced.container:
            results += f" in {traced.container}"
        for name, marked in zip(claims, traced.marked, strict=False):
            if marked:
                clauses.append(f"for {name} marked as not differentiable")
        for name, value in bound.items():
            is_optional = name not in self.needed or name in self.switches
            if is_optional and _is_tensor(value):
                clauses.append(f"for {name} given")
        if traced.written:
            clauses.append(f"and may write over {', '.join(traced.written)}")
        for name in traced.unjudged:
            clauses.append(f"self.{name} of its backward left out")
        last = max(bound, key=self.names.index, default="")
        for words in state.narrowed:
            clauses.append(f"for {words}")
        if self.forward:
            clauses += self._other_defaults(bound)
        for name, value in traced.defaults.items():
            clauses.append(f"for {name}={getattr(value, 'e', value)}")
            # torch asks for a gradient of it, too, once it is given
            if self.is_class and name in self.names[self.names.index(last) + 1 :]:
                clauses.append(f"where {name} is left out")
        if self.launches:
            assumptions += [f"{PACKED}; {TRUSTED}", INTEGERS]
        numbers = *digits_of(state), *below(state.widths)
        claim = Claim(results, clauses=tuple(clauses), numbers=numbers)
        verdict = noted(state, definitions, verdicts, claim, assumptions)
        if traced.differs and verdict.is_proof:
            return verdict.unread(DIFFERS)
        if traced.differs and verdict.accuses:
            # v = x.float() is x itself in float32, and v.mul_(2) changes it
            return _claiming(verdict, f"for arrays of {traced.differs}")
        return verdict

    def _of_output(self, name, value, definitions):
        """The verdict on a result, once for all choices of the arguments that need a gradient."""
        key = name, value
        if isinstance(value, Array):
            key = name, value.shape, *lettered(value.unnoted())
        if key not in self.memo:
            self._check_shape(name, value)
            verdict = _of_output(name, value, definitions, self.seconds, self.shapes)
            self.memo[key] = of_maxima(verdict, self.maxima)
        return self.memo[key]

    def _check_shape(self, name, value):
        """Refuses a result that has other axes of one entry than that of the forward it is compared with.

        For x.mean(0, keepdim=True) in both. It stops x.mean(1) beside x.mean(1, keepdim=True), which are broadcast
        against each other to (M, M).
        """
        shape, own = self.shapes.get(name), getattr(value, "shape", None)
        if None in (shape, own) or shape == own:
            return
        if [e for e in shape if e != 1] == [e for e in own if e != 1]:
            words = f"{self.called()} returns {name} as {own}"
            raise NotRead(f"{words}, and {self.forward.called()} as {shape}")

    def called(self):
        """What the program is called: of a text with several functions, and no name that is said, the last."""
        if isinstance(self.program, str) and not self.name:
            names = [node.name for node in definitions_of(module_of(self.program))]
            return names[-1] if len(names) > 1 else "the program"
        return self.name or getattr(self.program, "__name__", "the program")

    def _other_defaults(self, bound):
        """What a claim says of numbers that are one argument of both, and whose defaults are two.

        For eps=1e-6 in a program and 1e-5 in its forward, which differ where neither is given.
        """
        roles = {ALSO.get(name, name): name for name in bound}
        for name, value in self.forward.defaults.items():
            own = self.defaults.get(roles.get(ALSO.get(name, name), ""))
            if is_number(own) and is_number(value) and plain(own) != plain(value):
                pair = f"{float(plain(own)):g} and {float(plain(value)):g}"
                yield f"for one {name} given to both, as their defaults differ: {pair}"


def _claiming(verdict, *clauses):
    """The verdict with more clauses in its claims."""
    claims = [replace(c, clauses=(*c.clauses, *clauses)) for c in verdict.claims]
    return replace(verdict, claims=tuple(claims))


def _at_sizes(verdict, way):
    """The verdict on one way with sizes for it; without any it accuses nobody."""
    # a block is a power of 2, and N = 3 is no multiple of it
    past_end = "past the end: its mask needs columns < N" in verdict.why
    if not verdict.accuses or not (way.choices or past_end):
        return verdict
    if verdict.kind == REFUTED:
        points = [verdict, *verdict.outputs.values()]
        points = [v.counterexample for v in points if v.counterexample is not None]
        if any(way.holds_at(getattr(at, "numbers", {})) for at in points):
            return verdict
        words = f"refuted for other sizes than those where {way.words()}"
        return verdict.unread(f"{words}, on the way of which it is")
    if "M = " in verdict.why:
        return verdict
    sizes = way.no_power(N)
    if not sizes:
        words = f"{verdict.kind} where {way.words()}, which may be where it is right"
        return verdict.unread(f"{words}: {verdict.why}")
    return replace(verdict, why=f"at {sizes}: {verdict.why}".removesuffix(": "))


def gradient_of(role: str, outputs: Sequence[str]) -> str:
    """The name of the gradient with respect to an input; to_x where the outputs are gradients themselves."""
    if set(outputs) & set(GRADIENT.values()):
        return f"to_{role}"
    return GRADIENT.get(role, f"d{role}")


def names_of(forward: Trace, inputs: Mapping[str, Any]) -> list[str]:
    """The names of a forward's results: its own; else dx, dw, db where it takes dy, and y, y1, y2 where it does not."""
    names = ["y", *[f"y{k}" for k in range(1, len(forward.outputs))]]
    roles = set(map(_role, inputs.values()))
    if "dy" in roles:
        names = ["dx", "dw", "db"][: len(names)]
    given = forward.names or names
    distinct = len(set(given)) == len(given) and roles.isdisjoint(given)
    return given if distinct else names


def _check_cotangents(names, cotangents, marked, definitions):
    """Refuse results of forward whose gradients the definitions leave out, or have where torch passes none.

    A Function that drops the gradient of a second result has the gradients of a norm whose loss knows y alone. A result
    that is marked as not differentiable has no gradient, whatever its backward does with it.
    """
    for name, cotangent, is_marked in zip(names, cotangents, marked, strict=True):
        known = False
        if cotangent is not None:
            base = cotangent.head.base
            known = any(formula.has(base) for _, formula in definitions.defs)
        if known and is_marked:
            words = f"{name}, which is marked as not differentiable, and whose gradient"
            raise NotRead(f"{words} d{name} the definitions have")
        if not known and not is_marked:
            words = f"the result {name}, whose gradient d{name} the definitions lack"
            if name == "residual_out":
                words += "; say norm(residual=True, dresidual_out=True)"
            raise NotRead(
                f"{words}; a result without one is marked as not differentiable"
            )


def _is_tensor(value):
    return isinstance(value, Input) and isinstance(value.head, Indexed)


def _role(value):
    """The name of what an argument is."""
    if not isinstance(value, Input):
        return ""
    return str(getattr(value.head, "base", value.head))


def _input_like(name, output):
    """A tensor of its own with the shape of a result."""
    if not isinstance(output, Array):
        raise NotRead(f"{name} is {type(output).__name__}, no array")
    sizes = tuple(size for size in output.shape if size != 1)
    if len(set(sizes)) < len(sizes):
        raise NotRead(f"{name} has two axes of {sizes[0]} entries")
    return Input(_indexed(name, sizes), output.shape)


def own(
    forward: Trace, inputs: Mapping[str, Any], cotangents: Mapping[str, Input]
) -> Norm:
    """The definitions that a forward is, and the gradients of its loss.

    Args:  inputs: what it was traced with; cotangents: of its results, by name
    """
    defs, outputs, loss = Defs(), {}, S.Zero
    names = names_of(forward, inputs)
    # for forward(ctx, x, g) beside backward(ctx, g): one symbol for both would prove a backward that returns g*g, where
    # one g is the argument and the other the gradient
    symbols = {str(LOSS), *names, *(_role(c) for c in cotangents.values())}
    symbols |= {gradient_of(_role(a), names) for a in inputs.values() if _is_tensor(a)}
    for name, value in inputs.items():
        if _role(value) in symbols:
            raise ValueError(
                f"{name}: is the name of an argument of forward, and of a result or a "
                "gradient; needs another name in the program"
            )
    for name, value in zip(names, forward.outputs, strict=True):
        head = outputs[name] = _input_like(name, value).head
        indices = getattr(head, "indices", ())
        stored = defs[head] = entry(value, indices)
        if cotangents.get(name):
            check_steady(stored, forward.noted.maxima)
            term = cotangents[name].head * head
            for index in indices:
                term = SUMS[index](term)
            loss += term
    defs[LOSS] = loss
    for value in inputs.values():
        if _is_tensor(value):
            name = gradient_of(_role(value), names)
            outputs[name] = _indexed(name, value.head.base.shape)
            defs[outputs[name]] = Partial(LOSS, value.head)
    return Norm(defs, outputs)


def _without_none(traced, definitions):
    """A trace without the results that are None, of which the definitions have none of that name.

    For `return dx, dw, dz` where z is not given. It stops a y that is None from being left out.
    """
    names = traced.names
    if names is None or len(names) != len(traced.outputs) or "dict" in traced.container:
        return traced
    pairs = [
        (name, value)
        for name, value in zip(names, traced.outputs, strict=True)
        if value is not None or ALSO.get(name, name) in definitions.outputs
    ]
    if not pairs or len(pairs) == len(names):
        return traced
    names, outputs = map(list, zip(*pairs, strict=True))
    return replace(traced, names=names, outputs=outputs)


def _by_shape(values):
    """The results of a forward by their shapes: y, residual_out, mean and rstd in this order; None for others."""
    are_of_rows = list(map(_is_of_rows, values))
    count = sum(are_of_rows)
    matrices = ["y", "residual_out"][: len(values) - count]
    names = matrices + ["mean", "rstd"][2 - count :]
    in_order = are_of_rows == sorted(are_of_rows)
    return names if matrices and in_order and len(names) == len(values) else None


def _is_of_rows(value):
    """Whether a result has one number for each row."""
    return [size for size in getattr(value, "shape", ()) if size != 1] == [M]


def _of_output(name, value, definitions, seconds, shapes):
    head = definitions.outputs[name]
    shape = tuple(head.base.shape) if isinstance(head, Indexed) else ()
    shape = shapes.get(name, shape)
    if isinstance(value, Listed):
        why = f"{name} is a list of rows; return np.array or torch.stack of it"
        return Verdict(NOT_READ, why=why)
    if not isinstance(value, Array):
        words = f"{name} is {type(value).__name__}, no array"
        if value is None and compare(S.Zero, head, definitions.defs).kind != REFUTED:
            return Verdict(NOT_READ, why=f"{words}, where 0 is defined")
        return Verdict(WRONG, why=words)
    if value.kind != "float":
        return Verdict(NOT_READ, why=f"{name} is an array of truth values")
    column = shape == (M,) and value.shape == (M, ONE)
    if value.shape != shape and not column:
        why = f"{name} has the shape {value.shape}, needs {shape}"
        sizes = [size for size in value.shape if size != 1]
        kind = NOT_READ if sizes == list(shape) else WRONG
        return Verdict(kind, why=why)
    stored = entry(value, getattr(head, "indices", ()))
    deadline = clock() + MORE * seconds
    claim = f"{name} = {head}"
    if stored.has(next_power_of_2, CEILING, FLOOR):
        return _with_sizes(stored, head, definitions.defs, claim, seconds)
    verdict = compare(stored, head, definitions.defs, claim, seconds)
    if verdict.kind == REFUTED:
        left = deadline - clock()
        with suppress(NotImplementedError, OutOfPatience, ValueError), limited(left):
            terms = field_terms(stored - head, definitions)
            shorter = min(verdict.difference, terms, key=lambda parts: len(str(parts)))
            return replace(verdict, difference=shorter)
    return verdict


def _with_sizes(stored, head, defs, claim, seconds):
    """The verdict on what depends on next_power_of_2(N), or on cdiv(N, B), as masked lanes that a sum counts make it.

    It is proved where it holds for any number in the place of each, and refuted by the numbers at N = 3.
    """
    letters = {}
    for part in of_sizes(stored):
        sign = {"positive": True} if part.is_positive else {}
        letters[part] = Symbol(f"{part}", integer=True, **sign)
    verdict = compare(stored.xreplace(letters), head, defs, claim, seconds)
    if verdict:
        return verdict
    words = " and ".join(map(str, letters))
    numbers, at = at_columns(stored, {N: Integer(3)}), None
    if numbers is None:
        return verdict.unread(f"what is stored depends on {words}")
    with suppress(NotImplementedError, OutOfPatience, ValueError), limited(seconds):
        at = counterexample(stored.xreplace(numbers), head, defs, columns=(3,))
    if at is None:
        return verdict.unread(f"what is stored depends on {words}")
    parts = [f"{part} is {number}" for part, number in numbers.items()]
    why, case = f"{', '.join(parts)} at N = 3", Case(stored, head, defs, at)
    return replace(verdict, kind=REFUTED, counterexample=at, why=why, case=case)


def _taken(verdict, bound):
    """What does not fit the shapes that arguments are taken to have is not read, and no fault of the program."""
    tensors = {name: value for name, value in bound.items() if _is_tensor(value)}
    taken = [f"{name} as {value.shape}" for name, value in tensors.items()]
    words = ", ".join(taken).replace(" as ", " is taken as ", 1)
    how = 'another shape is said as rstd="rstd[:, None]" or q="(M, N)"'
    return verdict.unread(f"{verdict.why}; {words}; {how}, and more axes are not read")


def digits_of(state: State) -> tuple[str, ...]:
    """What a claim says of digits that a trace has seen lost."""
    words = dict.fromkeys(state.numbers)
    if state.cancelling:
        words[cancelling(state.cancelling)] = None
    words |= dict.fromkeys(vanishing(state.exponentials))
    sums = {line for kind, line in state.narrow if not kind.startswith(ROUNDED)}
    for kind, line in state.narrow:
        if line not in sums or not kind.startswith(ROUNDED):
            words[f"with {kind} (line {line})"] = None
    return tuple(words)


def noted(
    state: State,
    definitions: Norm,
    verdicts: dict,
    claim: Claim,
    assumptions: list[str],
) -> Verdict:
    """The verdict on a program, with what its divisions, roots and comparisons rest on.

    Args:    state: of its trace; verdicts: {output: Verdict}; assumptions: what else it rests on
    Raises:  Wrong where no input has what the operations need
    """
    conditions = conditions_of(state, definitions.defs)
    assumptions = [*assumptions, *state.words]
    return concluded(
        verdicts, claim, assumptions, conditions, definitions, {}, state.maxima
    )


def _indexed(name, sizes):
    """A tensor's entry at the indices of its sizes; a scalar where there are none."""
    base = tensor(name, *sizes)
    return base[tuple(map(LETTERS.get, sizes))] if sizes else base
