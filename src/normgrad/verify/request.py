"""What is asked of a program, as text: what its arguments are, its grid, and the definitions that it is held against.

A request is typed after options of the command, or stands in a comment directly above a function, a class or a kernel:

    # verify: layer_norm
    # verify: rms_norm, outputs = dx dw
    # verify: g = dy, rms = 1/rstd[:, None]; rms_norm, outputs = dx
    # verify: X = T("x"), Y = Out("y"), n = N, B = WHOLE, grid = rows; rms_norm(weight=False)
    # verify: reference = forward, outputs = dx
    # verify: own_forward

    comment     "# verify:" [arguments ";"] what
    arguments   NAME = VALUE {"," NAME = VALUE}; of a kernel also grid = AXIS, or (AXIS, AXIS)
    VALUE       of a kernel's argument as after --bind; of a function's a number, a flag, None, or what verify takes
    what        definitions {"," option}, or options alone
    definitions layer_norm, rms_norm, l2_norm, each also with arguments of norm, as layer_norm(bias=False); norm(...);
                softmax, log_softmax, cross_entropy;
                own_forward, of an autograd Function whose gradients are those of its own forward
    option      outputs = NAME {NAME}; reference = FUNCTION, or FILE.py::FUNCTION, a forward: it is held against its
                results, or the gradients that are worked out of them

It goes on in the comment's next line where a line ends in "," or ";". Several comments above one function are several
requests. Nothing of a text is run: it is read by the whitelist of `text`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from . import binding, programs
from .definitions import (
    NUMBERS,
    Norm,
    call_of,
    cross_entropy,
    log_softmax,
    norm,
    softmax,
)
from .entries import FUNCTION, NUMBA, TRITON, Entry, definitions_of, entries_of
from .front import verify
from .source import is_file, text_of
from .text import module_of, tree_of, value_of
from .verdict import NOT_READ, Verdict

VALUES = NUMBERS | {word: getattr(binding, word) for word in binding.WORDS}
CALLS = {kind.__name__: kind for kind in (binding.T, binding.Out, binding.InOut)}
# {the name of definitions: what makes them}
DEFINITIONS = {
    "layer_norm": partial(norm, center=True, bias=True),
    "rms_norm": norm,
    "l2_norm": partial(norm, reduce="sum", placement="clamp", weight=False),
    "norm": norm,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "cross_entropy": cross_entropy,
}
OWN_FORWARD = "own_forward"
OPTIONS = ("outputs", "reference")
COMMENT = re.compile(r"#\s*verify:")
# a comment that is meant to ask, and asks for nothing: another spelling of the word, or no colon
MISSPELLED = re.compile(rf"#\s*verify\s*(:|\s({'|'.join(DEFINITIONS)})\b)", re.I)
ASSIGNED = re.compile(r"(\w+)\s*=(?!=)\s*(.*)", re.DOTALL)
NEEDED = "stands above no function, needs one of the module, or its decorators, in the next line"
SPELLING = "needs '# verify:' in small letters, with a colon"
# the letters of a comment with the lines that it goes on in
LONGEST = 5000


def written(bound) -> str:
    """A bound value as it is typed after --bind."""
    names = [name for name, value in VALUES.items() if value is bound]
    return names[0] if names else repr(bound).replace("'", '"')


def parsed(text: str, argument: str = "text"):
    """A value that was typed: T("x"), N, WHOLE, a number, a flag or None."""
    return value_of(argument, text, VALUES, CALLS, words=True)


def norm_of(text: str) -> Norm:
    """The definitions that a text asks for, as "center=True, bias=True" or "layer_norm(bias=False)"."""
    name = text.partition("(")[0].strip()
    call = f"norm({text})"
    if name in DEFINITIONS:
        call = text if "(" in text else f"{name}()"
    return value_of("--norm", call, NUMBERS, DEFINITIONS, words=True)


def in_full(text: str) -> str:
    """What definitions a text asks for, for the reader of a verdict."""
    arguments = norm_of(text).arguments
    # softmax and its like take none
    call = call_of(arguments) if arguments else f"{text.removesuffix('()')}()"
    return f"normgrad.verify.{call}"


def axes_of(text: str) -> tuple[str | int, ...]:
    """A grid that was typed, as "programs, column tiles" or "column tiles, 0"."""
    axes = [axis.strip() for axis in text.split(",")]
    return tuple(int(axis) if axis.isdecimal() else axis for axis in axes)


class CommentError(ValueError):
    """A comment that asks for nothing that is known. Args: line: of the comment"""

    def __init__(self, message: str, line: int):
        super().__init__(f"comment: {message}")
        self.line = line


@dataclass(frozen=True)
class Request:
    """What is asked of one program.

    Args:  name: of the function, "" for the one kernel of a file; kind: of entries.KINDS; line: of its definition
           bound: {argument: what it is}; grid: as it is typed, None for a function
           definitions: as after --norm; reference: a function, as "forward" or "file.py::forward"; outputs: their names
           asked: the line of the comment that asks for it
    """

    name: str
    kind: str = FUNCTION
    line: int = 1
    bound: Mapping[str, str] = field(default_factory=dict)
    grid: str | None = None
    definitions: str | None = None
    reference: str | None = None
    outputs: tuple[str, ...] | None = None
    asked: int | None = None

    @property
    def is_kernel(self) -> bool:
        """Whether it is of a kernel of Triton's, by a binding."""
        return self.grid is not None or self.kind == TRITON

    @property
    def against(self) -> str:
        """What the program is held against, in words."""
        if self.reference:
            return self.reference
        if self.definitions is None or self.definitions == OWN_FORWARD:
            return "the gradients of its own forward"
        return in_full(self.definitions)

    def verdict(self, path: Path) -> Verdict:
        """The verdict on the program of a file, of which nothing is run.

        Raises:  TypeError or ValueError for what is asked wrongly, what the functions of verify raise
        """
        if self.kind == NUMBA:
            why = "a kernel in loops is read from its object, which nothing has that runs nothing"
            return Verdict(NOT_READ, why=f"{why}: give it to verify in Python")
        if self.is_kernel:
            return self._of_kernel(path)
        for name in self.bound:
            if name in (*programs.OPTIONS, "program", "binding"):
                raise ValueError(f"{name}: is an argument of verify, and no parameter")
        inputs = {name: argument_of(name, text) for name, text in self.bound.items()}
        return verify(
            path, self._against(path), self.outputs, name=self.name, run=False, **inputs
        )

    def _of_kernel(self, path):
        if self.reference or self.outputs or self.definitions in (None, OWN_FORWARD):
            needs = "needs definitions of a norm, a binding that names its outputs, and a grid"
            raise ValueError(f"{self.name}: is a kernel of Triton's, {needs}")
        if not self.bound or self.grid is None:
            needs = (
                'needs what its arguments are and a grid, as X = T("x"), grid = rows'
            )
            raise ValueError(f"{self.name}: is a kernel of Triton's, {needs}")
        bound = {name: parsed(text, name) for name, text in self.bound.items()}
        grid, operator = axes_of(self.grid), norm_of(self.definitions)
        return verify(path, bound, grid, operator, kernel=self.name or None)

    def _against(self, path):
        """The definitions: a norm, the text of a forward with its name, or None for a Function's own forward."""
        if self.reference is None:
            if self.definitions in (None, OWN_FORWARD):
                return None
            return norm_of(self.definitions)
        if self.definitions is not None:
            raise ValueError("reference: got one beside a norm, needs one of them")
        file, _, name = self.reference.rpartition("::")
        if not name.isidentifier():
            needs = "needs the name of a function, or file.py::name"
            raise ValueError(f"reference: got {self.reference!r}, {needs}")
        if file:
            path = path.parent / file
        if not is_file(path):
            raise ValueError(f"reference: got {self.reference!r}, which is in no file")
        return text_of(path), name


def argument_of(name: str, text: str) -> Any:
    """What a function's parameter is: a number, a flag, None, or a text that verify_function reads."""
    tree = tree_of(name, text)
    try:
        value = ast.literal_eval(tree)
    except (TypeError, ValueError):
        return text
    return value if isinstance(value, bool | int | float | str | None) else text


def parts_of(text: str, separator: str) -> list[str]:
    """The parts of a text between separators, where these stand in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            if letter == quote:
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if letter == separator and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def asked_by(text: str, name: str, **described: Any) -> Request:
    """What a comment asks, without its "# verify:".

    Args:    name: of the function below it; described: the other fields of a Request
    Raises:  ValueError that names what is wrong, and what is needed
    """
    if len(text) > LONGEST:
        raise ValueError(f"got {len(text)} characters, needs at most {LONGEST}")
    *arguments, what = parts_of(text, ";")
    if len(arguments) > 1:
        raise ValueError("got more than one ';', needs one before the definitions")
    bound: dict[str, str] = {}
    for part in parts_of(arguments[0], ",") if arguments else ():
        _assign(bound, part, "before a ';' what an argument is, as x = T(\"x\")")
    grid = bound.pop("grid", None)
    if grid is not None and grid[:1] + grid[-1:] in ("()", '""', "''"):
        grid = grid[1:-1]
    first, *rest = parts_of(what, ",")
    definitions = None
    if not ASSIGNED.fullmatch(first):
        definitions = first
        known = {*DEFINITIONS, OWN_FORWARD}
        if first.partition("(")[0].strip() not in known:
            needs = ", ".join([*DEFINITIONS, OWN_FORWARD])
            raise ValueError(f"got {first!r}, needs one of {needs}")
    else:
        rest = [first, *rest]
    options: dict[str, str] = {}
    for part in rest:
        _assign(
            options, part, "after the definitions outputs = NAME or reference = NAME"
        )
    for option in options:
        if option not in OPTIONS:
            needs = "outputs or reference; what arguments are stands before a ';'"
            raise ValueError(f"got {option}, needs {needs}")
    outputs = None
    if "outputs" in options:
        outputs = tuple(options["outputs"].split())
    reference = options.get("reference")
    if definitions is None and reference is None:
        raise ValueError("got outputs alone, needs definitions, as rms_norm")
    return Request(
        name,
        bound=bound,
        grid=grid,
        definitions=definitions,
        reference=reference,
        outputs=outputs,
        **described,
    )


def _assign(pairs, part, needs):
    """Keeps NAME = VALUE of a comment."""
    assigned = ASSIGNED.fullmatch(part)
    if assigned is None or not assigned[1].isidentifier() or not assigned[2]:
        raise ValueError(f"got {part!r}, needs {needs}")
    if assigned[1] in pairs:
        raise ValueError(f"got {assigned[1]} twice, needs it once")
    pairs[assigned[1]] = assigned[2]


def requests_of(text: str) -> tuple[list[Request], list[CommentError], list[Entry]]:
    """(what the comments of a text ask, those that ask for nothing that is known, the entries that have none).

    Raises:  SyntaxError for what is not Python
    """
    tree = module_of(text)
    found = {entry.name: entry for entry in entries_of(tree)}
    below, counts = {}, Counter()
    for node in definitions_of(tree):
        below[min(part.lineno for part in (*node.decorator_list, node))] = node
        counts[node.name] += 1
    comments, beside = _comments(text)
    names = set()
    requests, errors = [], [CommentError(NEEDED, line) for line in beside]
    for line, comment in comments.items():
        start = COMMENT.match(comment)
        if start is None:
            if MISSPELLED.match(comment):
                errors.append(CommentError(f"got {comment!r}, {SPELLING}", line))
            continue
        last, asked = line, comment[start.end() :].strip()
        while asked.endswith((",", ";")) and last + 1 in comments:
            last += 1
            asked += " " + comments[last].lstrip("# ")
        while last + 1 in comments:
            last += 1
        node = below.get(last + 1)
        try:
            if node is None:
                raise ValueError(NEEDED)
            names.add(node.name)
            # for `if`, with a function in each branch: a verdict is on the last one of a name
            if counts[node.name] > 1:
                raise ValueError(f"{node.name} is defined more than once, needs a name")
            kind = getattr(found.get(node.name), "kind", FUNCTION)
            described = {"kind": kind, "line": node.lineno, "asked": line}
            requests.append(asked_by(asked, node.name, **described))
        except ValueError as reason:
            errors.append(CommentError(str(reason), line))
    others = [entry for entry in found.values() if not entry.helper]
    return requests, errors, [entry for entry in others if entry.name not in names]


def _comments(text):
    """({line: its comment} where there is nothing else, the lines where a request stands beside code)."""
    comments, beside = {}, []
    if not (COMMENT.search(text) or MISSPELLED.search(text)):
        return comments, beside
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.line.lstrip().startswith("#"):
            comments[token.start[0]] = token.string
        elif COMMENT.match(token.string):
            beside.append(token.start[0])
    return comments, beside
