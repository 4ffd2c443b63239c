"""The two kernels of a program as readable Triton: a line for each definition, with its index form beside it."""

from __future__ import annotations

import hashlib
import linecache
from decimal import Decimal
from functools import cache
from types import ModuleType

from sympy import (
    Add,
    Expr,
    Heaviside,
    Indexed,
    Max,
    Mul,
    Pow,
    Rational,
    S,
    Sum,
    exp,
    factor_terms,
    log,
    tanh,
)
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from ..symbolic.calculus import free_letters
from ..symbolic.elementary import sigmoid
from ..symbolic.measured import Largest
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import N, i, j
from .layer import COLUMN, NUMBER, ROW, TILE, NotFused, names_in, text_of
from .program import Program

CALLS = {exp: "tl.exp", log: "tl.log", sigmoid: "tl.sigmoid", tanh: "tanh"}
WIDTH = 96  # a line with its index form beside it; longer ones have it above
# How tightly a text binds: a sum, a product, a factor, a name or a call.
SUM, PRODUCT, FACTOR, WHOLE = range(1, 5)
# What an expression is past the edge of the matrix: 0, a number, or perhaps not even that.
ZERO, NUMBERS, UNKNOWN = range(3)


def source(program: Program) -> str:
    """The text of a module with the kernels name_forward and name_backward."""
    kernels = [_forward(program), _backward(program)]
    used = [name for name in ("cast", "load_columns", "load_tile", "store_partial", "store_tile")
            if any(f"{name}(" in line for lines in kernels for line in lines)]  # fmt: skip
    head = [f"from normgrad.triton_kernels.arithmetic import {', '.join(used)}",
            "from normgrad.triton_kernels.interpreter import tl, triton"]  # fmt: skip
    if any(" tanh(" in line or "(tanh(" in line for lines in kernels for line in lines):
        head.insert(0, "from normgrad.fused.arithmetic import tanh")
    return "\n".join([*head, "", "", *kernels[0], "", "", *kernels[1], ""])


class _Text:
    """Expressions as the code of a kernel.

    A number of each row is [ROWS], a matrix [ROWS, BLOCK], a vector over the columns [1, BLOCK].

    Args:  program: kinds of the names; loaded: what is loaded, and so 0 past the edge
    """

    def __init__(self, program, loaded, lines):
        self.layer, self.past = program.layer, {i: {}, j: {}}
        for letter, known in self.past.items():
            for name in loaded:
                # what is positive is loaded as 1 in rows that are not there, so that nothing is divided by 0
                ones = (
                    self.layer.kind(name) == ROW
                    and self.layer.tensors[name].is_positive
                )
                known[name] = NUMBERS if ones else ZERO
            for name, e in lines.items():
                known[name] = self.edge(e, letter)

    # past the edge

    def edge(self, e: Expr, letter) -> int:
        """What e is where the letter has left the matrix, as far as it can be seen."""
        if e == 0:
            return ZERO
        if letter not in free_letters(e):
            return NUMBERS
        if isinstance(e, Indexed):
            return self.past[letter].get(text_of(e), UNKNOWN)
        if isinstance(e, Sum):
            return self.edge(e.function.xreplace({e.limits[0][0]: j}), letter)
        if isinstance(e, Largest):
            return self.edge(e.args[0], letter)
        edges = [self.edge(part, letter) for part in e.args]
        if isinstance(e, Mul):
            return UNKNOWN if UNKNOWN in edges else min(edges)
        if isinstance(e, Pow):
            return self._edge_of_power(e, edges[0])
        if isinstance(e, exp):
            return (
                NUMBERS if edges == [ZERO] else UNKNOWN
            )  # it might be infinite, and 0 times that is no number
        if isinstance(e, sigmoid | Heaviside):
            return UNKNOWN if UNKNOWN in edges else NUMBERS
        return max(edges) if isinstance(e, Add | Max | tanh) else UNKNOWN

    def _edge_of_power(self, e, base):
        if e.exp.is_positive:
            return (
                base
                if e.exp.is_Integer or base == ZERO or is_nonnegative(e.base)
                else UNKNOWN
            )
        return NUMBERS if base != UNKNOWN and is_positive(e.base) else UNKNOWN

    def masked(self, code, masks):
        """The code with 0 past the edge."""
        return f"tl.where({' & '.join(masks)}, {code}, 0)" if masks else code

    # code

    def text(self, e: Expr, tile: bool, least: int = SUM) -> str:
        """The code of e, in parentheses where it binds less tightly than asked; tile: whether it is to have columns."""
        letters = free_letters(e)
        if tile and letters == {i}:
            return f"{self.text(e, False, WHOLE)}[:, None]"
        code, binds = self._code(e, tile)
        return f"({code})" if binds < least else code

    def _code(self, e, tile):
        if isinstance(e, Indexed) or e.is_Symbol:
            return text_of(e), WHOLE
        if e.is_Integer:
            return str(e), WHOLE if e >= 0 else SUM
        if e.is_Rational:
            return (
                (decimal(e), WHOLE if e > 0 else SUM)
                if decimal(e)
                else (f"{e.p} / {e.q}", PRODUCT)
            )
        if e.is_number:
            raise NotFused(
                f"{e}: is no fraction; write one that is near enough, as Rational(797885, 1000000)"
            )
        if isinstance(e, Add):
            return self._sum_of_terms(e, tile), SUM
        if isinstance(e, Mul):
            return self._product(e, tile)
        if isinstance(e, Pow):
            return self._power(e, tile)
        if isinstance(e, Sum):
            body = e.function.xreplace({e.limits[0][0]: j})
            masks = ["inside"] * (self.edge(body, j) != ZERO)
            return f"tl.sum({self.masked(self.text(body, True), masks)}, axis=1)", WHOLE
        if isinstance(e, Largest):
            return (
                f'tl.max(tl.where(inside, {self.text(e.args[0], True)}, float("-inf")), axis=1)',
                WHOLE,
            )
        if isinstance(e, Max) and len(e.args) == 2:
            # not tl.maximum, which would take a plain number through float32
            one, other = (
                self.text(part, tile)
                for part in sorted(e.args, key=lambda part: not part.atoms(Indexed))
            )
            return f"tl.where({one} > {other}, {one}, {other})", WHOLE
        if isinstance(e, Heaviside):
            return f"tl.where({self._comparison(e.args[0], tile)}, 1.0, 0.0)", WHOLE
        if type(e) in CALLS:
            return f"{CALLS[type(e)]}({self.text(e.args[0], tile)})", WHOLE
        known = "sqrt, exp, log, sigmoid, tanh and Max"
        raise NotFused(
            f"{e}: a kernel has no code for {type(e).__name__}; known are {known}"
        )

    def _comparison(self, e, tile):
        """e > 0 as a comparison of its two terms, where it is a difference: a rounded difference may be 0."""
        terms = Add.make_args(e)
        minus = [term for term in terms if term.could_extract_minus_sign()]
        plus = [term for term in terms if term not in minus]
        return f"{self.text(Add(*plus), tile)} > {self.text(-Add(*minus), tile)}"

    def _sum_of_terms(self, e, tile):
        first, *rest = _terms(e)
        code = self.text(first, tile)
        for sign, term in map(_signed, rest):
            code += f" {sign} {self.text(term, tile, PRODUCT)}"
        return code

    def _product(self, e, tile):
        if e.could_extract_minus_sign():
            return f"-{self.text(-e, tile, PRODUCT)}", SUM
        factors = e.as_ordered_factors()
        if tile:
            # what a row has in common is multiplied once a row
            common = [factor for factor in factors if not free_letters(factor) - {i}]
            varying = [factor for factor in factors if factor not in common]
            if varying and any(free_letters(factor) for factor in common):
                return (
                    f"{self.text(Mul(*varying), True, PRODUCT)} * {self.text(Mul(*common), True, FACTOR)}",
                    PRODUCT,
                )
        above, below = [], []
        for factor in factors:
            if isinstance(factor, Pow) and factor.exp.is_negative:
                below += self._repeated(1 / factor)
            elif isinstance(factor, Rational) and factor.q > 10 and decimal(factor):
                above = [factor, *above]
            elif isinstance(factor, Rational):
                above = ([] if factor.p == 1 else [Rational(factor.p)]) + above
                below = ([] if factor.q == 1 else [Rational(factor.q)]) + below
            else:
                above += self._repeated(factor)
        # numbers first, then those of the rows, so that a power of a small one is never formed by itself
        code = " * ".join(
            self.text(factor, tile, PRODUCT if position == 0 else FACTOR)
            for position, factor in enumerate(above)
        )
        return (code or "1") + "".join(
            f" / {self.text(factor, tile, FACTOR)}" for factor in below
        ), PRODUCT

    def is_known(self, e):
        """Whether the compiler knows the number, so that it is no tensor."""
        return not e.atoms(Indexed) and names_in(e) <= set(self.layer.constants)

    @staticmethod
    def _repeated(e):
        """A whole power of a tensor's entry as its factors."""
        if (
            isinstance(e, Pow)
            and e.exp.is_Integer
            and e.exp > 0
            and e.base.atoms(Indexed)
        ):
            return [e.base] * int(e.exp)
        return [e]

    def _power(self, e, tile):
        base, exponent = e.args
        if exponent.is_negative:
            return f"1 / {self.text(1 / e, tile, FACTOR)}", PRODUCT
        if exponent == S.Half and self.is_known(base):
            return f"{self.text(base, tile, WHOLE)} ** 0.5", FACTOR
        if exponent == S.Half:
            return f"tl.sqrt({self.text(base, tile)})", WHOLE
        if exponent.is_Integer:
            if isinstance(base, Indexed | N.func):
                return " * ".join(
                    [self.text(base, tile, FACTOR)] * int(exponent)
                ), PRODUCT
            return " * ".join([self.text(base, tile, WHOLE)] * int(exponent)), PRODUCT
        if (exponent - S.Half).is_Integer:
            whole = self.text(base ** (exponent - S.Half), tile, PRODUCT)
            return f"{whole} * tl.sqrt({self.text(base, tile)})", PRODUCT
        if exponent.is_Rational and exponent.q in (4, 8, 16):
            return f"tl.sqrt({self.text(base ** (2 * exponent), tile)})", WHOLE
        raise NotFused(
            f"{e}: a kernel has no code for this power; roots are square roots, and roots of those"
        )


def _terms(e):
    """The terms of a sum, those without a minus first."""
    return sorted(e.as_ordered_terms(), key=_is_negative)


def _is_negative(term):
    return term.could_extract_minus_sign()


def _signed(term):
    return ("-", -term) if _is_negative(term) else ("+", term)


def decimal(e: Rational) -> str:
    """A fraction as the decimal that it is, "" where it is none of at most twelve places."""
    scaled = e * 10**12
    return (
        format(Decimal(int(scaled)).scaleb(-12).normalize(), "f")
        if scaled.is_Integer
        else ""
    )


class _Index(StrPrinter):
    """Expressions in index form, a sum as sum_r(...)."""

    def _print_Add(self, e, order=None):
        first, *rest = _terms(e)
        text = self._print(first)
        for sign, term in map(_signed, rest):
            text += f" {sign} {self.parenthesize(term, PRECEDENCE['Mul'], strict=True)}"
        return text

    def _print_Sum(self, e):
        letters = dict(
            zip([limit[0] for limit in e.limits], map(type(N), "rs"), strict=False)
        )
        return f"sum_{''.join(map(str, letters.values()))}({self._print(e.function.xreplace(letters))})"

    def _print_Largest(self, e):
        return f"max_r({self._print(e.args[0].xreplace({e.args[1]: type(N)('r')}))})"


def _with_form(code, name, e, program, summed=False):
    """A line of code, and the definition that it is."""
    body = _Index().doprint(e)
    body = f"sum over rows of {body}" if summed else body
    form = f"# {program.layer.at(name)} = {body}"
    return [f"{code}  {form}"] if len(code) + len(form) < WIDTH else [form, code]


def _load(program, name):
    kind = program.layer.kind(name)
    if kind == TILE:
        return f"{name} = load_tile({name}_ptr, rows, cols, M, {name}_step, N, VECTOR).to(ACC)"
    if kind == ROW:
        other = int(bool(program.layer.tensors[name].is_positive))
        return (
            f"{name} = tl.load({name}_ptr + rows, mask=rows < M, other={other}).to(ACC)"
        )
    if kind == COLUMN:
        return f"{name} = load_columns({name}_ptr, cols, N, ACC)"
    return f"{name} = tl.load({name}_ptr).to(ACC)"


def _line(program, code, name, e):
    """A definition as code; a matrix is [ROWS, BLOCK], also where all its rows or columns agree."""
    tile = program.layer.kind(name) == TILE
    if not tile or free_letters(e) == {i, j}:
        return f"{name} = {code.text(e, tile)}"
    return f"{name} = tl.zeros([ROWS, BLOCK], ACC) + {code.text(e, tile, PRODUCT)}"


def _store(program, name):
    if program.layer.kind(name) == TILE:
        return f"store_tile({name}_ptr, {name}, rows, cols, M, N)"
    return f"tl.store({name}_ptr + rows, {name}, mask=rows < M)"


def _late(program, waiting, e):
    """The loads that a line is the first to need: a number that is loaded late holds its register for less long."""
    due = [name for name in waiting if name in names_in(e)]
    for name in due:
        waiting.remove(name)
    return [_load(program, name) for name in due]


def _head(program, way, loaded, stored, constants, absent, more=()):
    kind = program.layer.kind
    steps = [f"{name}_step" for name in loaded if kind(name) == TILE]
    words = {TILE: "(M, N)", ROW: "(M,)", COLUMN: "(N,)", NUMBER: "one number"}
    shares = {
        COLUMN: "(programs, N), each program its own row",
        NUMBER: "(programs,), each program its own",
    }
    listed = ", ".join(f'"{step}"' for step in ("M", *steps))
    lines = [
        f"@triton.jit(do_not_specialize=[{listed}])",
        f"def {program.layer.name}_{way}(",
    ]
    lines += [f"    {name}_ptr,  # {words[kind(name)]}" for name in loaded]
    lines += [
        f"    {name}_ptr,  # {shares.get(kind(name), words[kind(name)])}{absent}"
        for name in stored
    ]
    lines += [f"    {name}," for name in ("M", *steps)]
    lines += [
        f"    {name}: tl.constexpr,"
        for name in (*constants, "N", "VECTOR", "ACC", "ROWS", "BLOCK", *more)
    ]
    return [*lines, "):"]


def _edges(body):
    """The masks that the lines name, each made once."""
    masks = {
        "inside": "inside = (cols < N)[None, :]",
        "filled": "filled = (rows < M)[:, None]",
    }
    return {name: line for name, line in masks.items() if any(f"where({name}" in text or f"& {name}" in text
                                                              for text in body)}  # fmt: skip


def _indented(lines, by=1):
    return ["    " * by + line for line in lines]


def _forward(program):
    layer = program.layer
    code, waiting, body = (
        _Text(program, layer.inputs, program.forward),
        list(layer.inputs),
        [],
    )
    for name, e in program.forward.items():
        body += _late(program, waiting, e)
        body += _with_form(_line(program, code, name, e), name, e, program)
        if name in layer.outputs and layer.users(name) and layer.kind(name) == TILE:
            body.append(
                f"{name} = cast({name}, {name}_ptr.dtype.element_ty).to(ACC)  # the number that is stored"
            )
        if name in program.stored:
            body.append(_store(program, name))
    outputs = ", ".join(program.stored)
    start = [
        f'"""{outputs} of ROWS rows, each input read once and each output written once."""',
        "rows = tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)",
        "cols = tl.arange(0, BLOCK)",
        *_edges(body).values(),
    ]
    constants = program.constants(program.forward)
    head = _head(program, "forward", layer.inputs, program.stored, constants, "")
    return [*head, *_indented([*start, *body])]


def _backward(program):
    layer, written = program.layer, program.written
    loaded = program.loaded
    own = {
        name: e
        for name, e in program.backward.items()
        if name not in written or layer.kind(name) in (TILE, ROW)
    }
    code, zeros, last, body = _Text(program, loaded, own), [], [], []
    waiting = [name for name in loaded if layer.kind(name) in (TILE, ROW)]
    for name, e in program.backward.items():
        body += _late(program, waiting, e)
        if name in own:
            body += _with_form(_line(program, code, name, e), name, e, program)
            if name in written:
                body += [f"if {name}_ptr is not None:", f"    {_store(program, name)}"]
            continue
        e = factor_terms(e)
        number = layer.kind(name) == NUMBER
        masks = ["inside"] * (
            number and j in free_letters(e) and code.edge(e, j) != ZERO
        )
        masks += ["filled"] * (code.edge(e, i) != ZERO)
        if number and j in free_letters(e):
            line = f"{name} += tl.sum({code.masked(code.text(e, True), masks)}, axis=1)"
        elif number:
            line = f"{name} += {code.masked(code.text(e, False), ['rows < M'] * bool(masks))}"
        else:
            line = f"{name} += {code.masked(code.text(e, True), masks)}"
        zeros.append(f"{name} = tl.zeros([{'ROWS' if number else 'ROWS, BLOCK'}], ACC)")
        form = _with_form(line, name, e, program, summed=True)
        body += [*form[:-1], f"if {name}_ptr is not None:", f"    {form[-1]}"]
        share = f"    tl.store({name}_ptr + tl.program_id(0), tl.sum({name}, axis=0))"
        last += (
            [f"if {name}_ptr is not None:", share]
            if number
            else [f"store_partial({name}_ptr, {name}, cols, N)"]
        )
    edges = _edges(body)
    tiles = ", ".join(name for name in written if name in own)
    shares = ", ".join(name for name in written if name not in own)
    does = [f"{tiles} of every programs-th tile of rows"] if tiles else []
    does += [f"this program's share of {shares}"] if shares else []
    start = [
        f'"""{", and ".join(does)}."""',
        "cols = tl.arange(0, BLOCK)",
        *[line for name, line in edges.items() if name == "inside"],
        *[
            _load(program, name)
            for name in loaded
            if layer.kind(name) in (COLUMN, NUMBER)
        ],
        *zeros,
        "for tile in tl.range(tl.program_id(0), (M - 1) // ROWS + 1, tl.num_programs(0), num_stages=STAGES):",
    ]
    turn = [
        "rows = tile * ROWS + tl.arange(0, ROWS)",
        *[line for name, line in edges.items() if name == "filled"],
    ]
    constants = program.constants(program.backward)
    head = _head(
        program,
        "backward",
        loaded,
        written,
        constants,
        ", None where it is not wanted",
        ("STAGES",),
    )
    return [*head, *_indented(start), *_indented([*turn, *body], 2), *_indented(last)]


@cache
def kernels_of(name: str, text: str) -> tuple | None:
    """The two kernels of a text, None without Triton; the same text gives the same kernels, which compile once."""
    try:
        # chooses between compiler and interpreter before it imports triton
        from ..triton_kernels import interpreter  # noqa: F401
    except ImportError:
        return None
    module = ModuleType(name)
    # Triton, and the proofs, read a kernel's text from its file
    module.__file__ = f"<fused {name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
    linecache.cache[module.__file__] = (
        len(text),
        None,
        text.splitlines(keepends=True),
        module.__file__,
    )
    exec(compile(text, module.__file__, "exec"), vars(module))  # noqa: S102 - the text was written here
    return getattr(module, f"{name}_forward"), getattr(module, f"{name}_backward")
