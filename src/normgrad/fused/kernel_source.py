"""The two kernels of a program as readable Triton: a line for each definition, with its index form beside it."""

from __future__ import annotations

import hashlib
import linecache
from functools import cache
from types import ModuleType

from sympy import (
    Add,
    Expr,
    Heaviside,
    Indexed,
    Integer,
    Max,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    exp,
    factor_terms,
    log,
    tanh,
)

from ..symbolic.calculus import free_letters
from ..symbolic.codegen import label
from ..symbolic.elementary import sigmoid
from ..symbolic.measured import Largest
from ..symbolic.signs import is_nonnegative, is_positive
from ..symbolic.symbols import i, j
from .layer import COLUMN, ROW, SHAPES, TILE, NotFused, names_in
from .program import Program

CALLS = {exp: "tl.exp", log: "tl.log", sigmoid: "tl.sigmoid", tanh: "tanh"}
HELPERS = ("load_columns", "load_tile", "store_partial", "store_tile")
WIDTH = 96  # a line with its index form beside it; longer ones have it above
# How tightly a text binds: a sum, a product, a factor, a name or a call.
SUM, PRODUCT, FACTOR, WHOLE = range(1, 5)
# What an expression is past the edge of the matrix: 0, a number, or perhaps not even that.
ZERO, NUMBERS, UNKNOWN = range(3)


def source(program: Program) -> str:
    """The text of a module with the kernels name_forward and name_backward."""
    kernels = "\n".join([*_forward(program), "", "", *_backward(program), ""])
    used = [name for name in HELPERS if f"{name}(" in kernels]
    imports = [
        f"from normgrad.triton_kernels.arithmetic import {', '.join(used)}",
        "from normgrad.triton_kernels.interpreter import tl, triton",
    ]
    if "= tanh(" in kernels or " tanh(" in kernels or "(tanh(" in kernels:
        imports.insert(0, "from normgrad.fused.arithmetic import tanh")
    return "\n".join([*imports, "", "", kernels])


class _Text:
    """Expressions as the code of a kernel.

    A number of each row is [ROWS], a matrix [ROWS, BLOCK], a vector over the columns [1, BLOCK].

    Args:  program: kinds of the names; loaded: what is loaded, and so 0 past the edge; lines: what is computed
    """

    def __init__(self, program, loaded, lines):
        layer = self.layer = program.layer
        self.past = {}
        for letter in (i, j):
            for name in loaded:
                # what is positive is loaded as 1 in rows that are not there, so that nothing is divided by 0
                ones = layer.kind(name) == ROW and layer.tensors[name].is_positive
                self.past[name, letter] = NUMBERS if ones else ZERO
            for name, e in lines.items():
                self.past[name, letter] = self.edge(e, letter)

    # past the edge

    def edge(self, e: Expr, letter) -> int:
        """What e is where the letter has left the matrix, as far as it can be seen."""
        if letter not in free_letters(e):
            return NUMBERS
        if isinstance(e, Indexed):
            return self.past.get((label(e), letter), UNKNOWN)
        if isinstance(e, Sum | Largest):
            return self.edge(_opened(e), letter)
        edges = [self.edge(part, letter) for part in e.args]
        if isinstance(e, Pow):
            return self._edge_of_power(e, edges[0])
        if isinstance(e, Add | Max | tanh):
            return max(edges)
        if UNKNOWN in edges:
            return UNKNOWN
        if isinstance(e, Mul):
            return min(edges)
        if isinstance(e, sigmoid | Heaviside) or edges == [ZERO]:
            return UNKNOWN if isinstance(e, log) else NUMBERS
        return (
            UNKNOWN  # an exponential might be infinite, and 0 times that is no number
        )

    def _edge_of_power(self, e, base):
        if e.exp.is_positive:
            defined = e.exp.is_Integer or base == ZERO or is_nonnegative(e.base)
            return base if defined else UNKNOWN
        return NUMBERS if base != UNKNOWN and is_positive(e.base) else UNKNOWN

    def masked(self, e: Expr, letter, mask: str) -> str:
        """The code of a matrix that is summed, with 0 past the edge."""
        code = self.text(e, True)
        return code if self.edge(e, letter) == ZERO else f"tl.where({mask}, {code}, 0)"

    # code

    def text(self, e: Expr, tile: bool, least: int = SUM) -> str:
        """The code of e, in parentheses where it binds less tightly than asked; tile: whether it is to have columns."""
        if tile and free_letters(e) == {i}:
            return f"{self.text(e, False, WHOLE)}[:, None]"
        code, binds = self._code(e, tile)
        return f"({code})" if binds < least else code

    def _code(self, e, tile):
        if isinstance(e, Indexed) or e.is_Symbol:
            return label(e), WHOLE
        if e.is_Integer:
            return str(e), WHOLE if e >= 0 else SUM
        if e.is_Rational:
            return f"{e.p} / {e.q}", PRODUCT if e > 0 else SUM
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
            return f"tl.sum({self.masked(_opened(e), j, 'inside')}, axis=1)", WHOLE
        if isinstance(e, Largest):
            masked = f'tl.where(inside, {self.text(_opened(e), True)}, float("-inf"))'
            return f"tl.max({masked}, axis=1)", WHOLE
        if isinstance(e, Max):
            # not tl.maximum, which would take a plain number through float32
            parts = sorted(e.args, key=lambda part: not part.atoms(Indexed))
            first, second = (self.text(part, tile) for part in parts)
            return f"tl.where({first} > {second}, {first}, {second})", WHOLE
        if isinstance(e, Heaviside):
            return f"tl.where({self._comparison(e.args[0], tile)}, 1.0, 0.0)", WHOLE
        return f"{CALLS[type(e)]}({self.text(e.args[0], tile)})", WHOLE

    def _comparison(self, e, tile):
        """e > 0 as a comparison of its two terms, where it is a difference: a rounded difference may be 0."""
        minus = [term for term in Add.make_args(e) if term.could_extract_minus_sign()]
        first, second = e - Add(*minus), -Add(*minus)
        return f"{self.text(first, tile)} > {self.text(second, tile)}"

    def _sum_of_terms(self, e, tile):
        terms = e.as_ordered_terms()
        first, *following = sorted(
            terms, key=lambda term: term.could_extract_minus_sign()
        )
        code = self.text(first, tile)
        for term in following:
            if term.could_extract_minus_sign():
                code += f" - {self.text(-term, tile, PRODUCT)}"
            else:
                code += f" + {self.text(term, tile, PRODUCT)}"
        return code

    def _product(self, e, tile):
        if e.could_extract_minus_sign():
            return f"-{self.text(-e, tile, PRODUCT)}", SUM
        number, product = e.as_coeff_Mul(rational=True)
        if tile:
            factors = e.as_ordered_factors()
            # what a row has in common is multiplied once a row
            common = [factor for factor in factors if not free_letters(factor) - {i}]
            varying = [factor for factor in factors if factor not in common]
            if varying and any(free_letters(factor) for factor in common):
                columns = self.text(Mul(*varying), True, PRODUCT)
                return f"{columns} * {self.text(Mul(*common), True, FACTOR)}", PRODUCT
        above, below = [Integer(number.p)], [Integer(number.q)]
        for factor in product.as_ordered_factors():
            if isinstance(factor, Pow) and factor.exp.is_negative:
                below += _repeated(1 / factor)
            else:
                above += _repeated(factor)
        above, below = ([f for f in side if f != 1] for side in (above, below))
        # numbers first, then those of the rows, so that a power of a small one is never formed by itself
        first, *following = above or [S.One]
        code = self.text(first, tile, PRODUCT)
        code += "".join(f" * {self.text(f, tile, FACTOR)}" for f in following)
        code += "".join(f" / {self.text(f, tile, FACTOR)}" for f in below)
        return code, PRODUCT

    def _power(self, e, tile):
        base, exponent = e.args
        if exponent.is_negative:
            return f"1 / {self.text(1 / e, tile, FACTOR)}", PRODUCT
        if exponent == S.Half and not base.atoms(Indexed):
            # the compiler knows the number, so that it is no tensor
            return f"{self.text(base, tile, WHOLE)} ** 0.5", FACTOR
        if exponent == S.Half:
            return f"tl.sqrt({self.text(base, tile)})", WHOLE
        if exponent.is_Integer:
            return " * ".join([self.text(base, tile, WHOLE)] * int(exponent)), PRODUCT
        if (exponent - S.Half).is_Integer:
            whole = self.text(base ** (exponent - S.Half), tile, PRODUCT)
            return f"{whole} * tl.sqrt({self.text(base, tile)})", PRODUCT
        # a root of a root
        return f"tl.sqrt({self.text(base ** (2 * exponent), tile)})", WHOLE


def _repeated(e):
    """A whole power of a tensor's entry as its factors."""
    if isinstance(e, Pow) and e.exp.is_Integer and e.base.atoms(Indexed):
        return [e.base] * int(e.exp)
    return [e]


def _opened(e):
    """What a sum or a maximum over the columns is taken of, at column j."""
    letter = e.args[1] if isinstance(e, Largest) else e.limits[0][0]
    return e.args[0].xreplace({letter: j})


def _with_form(code, name, e, program, summed=""):
    """A line of code, and the definition that it is, as SymPy prints it."""
    limits = [limit for part in e.atoms(Sum) for limit in part.limits]
    form = e.xreplace({limit[0]: Symbol("r") for limit in limits})
    form = f"# {program.layer.at(name)} = {summed}{form}"
    return [f"{code}  {form}"] if len(code) + len(form) < WIDTH else [form, code]


def _load(program, name):
    kind = program.layer.kind(name)
    if kind == TILE:
        return f"{name} = load_tile({name}_ptr, rows, cols, M, {name}_step, N, VECTOR).to(ACC)"
    if kind == COLUMN:
        return f"{name} = load_columns({name}_ptr, cols, N, ACC)"
    absent = int(bool(program.layer.tensors[name].is_positive))
    return f"{name} = tl.load({name}_ptr + rows, mask=rows < M, other={absent}).to(ACC)"


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


def _head(program, way, loaded, stored, sizes):
    layer, shapes = program.layer, SHAPES
    steps = [f"{name}_step" for name in loaded if layer.kind(name) == TILE]
    listed = ", ".join(f'"{step}"' for step in ("M", *steps))
    lines = [
        f"@triton.jit(do_not_specialize=[{listed}])",
        f"def {layer.name}_{way}(",
    ]
    lines += [f"    {name}_ptr,  # {shapes[layer.kind(name)]}" for name in loaded]
    if way == "backward":
        shapes = {
            TILE: "(M, N), None where it is not needed",
            COLUMN: "(programs, N), each program its own row, None where it is not needed",
        }
    lines += [f"    {name}_ptr,  # {shapes[layer.kind(name)]}" for name in stored]
    lines += [f"    {name}," for name in ("M", *steps)]
    constants = (*layer.constants, "N", "VECTOR", "ACC", "ROWS", "BLOCK", *sizes)
    return [*lines, *[f"    {name}: tl.constexpr," for name in constants], "):"]


def _edge(name, mask, body):
    """The line that makes a mask, where a line uses it."""
    used = any(f"where({name}," in line for line in body)
    return [f"{name} = {mask}"] if used else []


def _indented(lines, by=1):
    return ["    " * by + line for line in lines]


def _body(program, code, lines, loaded, stored, guarded=False):
    """The lines of code of definitions, each after the loads that it is the first to need.

    Args:  loaded, stored: names; guarded: whether a store is left out where its pointer is None
    """
    waiting, body = list(loaded), []
    for name, e in lines.items():
        body += _late(program, waiting, e)
        if program.layer.kind(name) == COLUMN:
            e = factor_terms(e)
            share = f"{name} += {code.masked(e, i, 'filled')}"
            *above, store = _with_form(share, name, e, program, "sum over rows of ")
            body += above
        else:
            body += _with_form(_line(program, code, name, e), name, e, program)
            store = _store(program, name)
        if name in stored and guarded:
            body += [f"if {name}_ptr is not None:", f"    {store}"]
        elif name in stored:
            body.append(store)
    return body


def _forward(program):
    layer = program.layer
    code = _Text(program, layer.inputs, program.forward)
    stored = [layer.output, *program.saved]
    body = _body(program, code, program.forward, layer.inputs, stored)
    start = [
        f'"""{", ".join(stored)} of ROWS rows, each input read once and each output written once."""',
        "rows = tl.program_id(0).to(M.dtype) * ROWS + tl.arange(0, ROWS)",
        "cols = tl.arange(0, BLOCK)",
        *_edge("inside", "(cols < N)[None, :]", body),
    ]
    head = _head(program, "forward", layer.inputs, stored, ())
    return [*head, *_indented([*start, *body])]


def _backward(program):
    layer, gradients, lines = program.layer, program.gradients, program.backward
    loaded = [name for name in program.loaded if name in layer.inputs]
    loaded = [layer.cotangent, *loaded, *program.saved]
    vectors = [name for name in loaded if layer.kind(name) == COLUMN]
    of_rows = [name for name in loaded if name not in vectors]
    sums = [name for name in gradients if layer.kind(name) == COLUMN]
    code = _Text(
        program, loaded, {name: lines[name] for name in lines if name not in sums}
    )
    body = _body(program, code, lines, of_rows, gradients, guarded=True)
    does = f"{', '.join(gradients[: len(layer.matrices)])} of every programs-th tile of rows"
    if sums:
        does += f", and this program's share of {', '.join(sums)}"
    start = [
        f'"""{does}."""',
        "cols = tl.arange(0, BLOCK)",
        *_edge("inside", "(cols < N)[None, :]", body),
        *[_load(program, name) for name in vectors],
        *[f"{name} = tl.zeros([ROWS, BLOCK], ACC)" for name in sums],
        "for tile in tl.range(tl.program_id(0), (M - 1) // ROWS + 1, tl.num_programs(0), num_stages=STAGES):",
    ]
    turn = [
        "rows = tile * ROWS + tl.arange(0, ROWS)",
        *_edge("filled", "(rows < M)[:, None]", body),
    ]
    last = [f"store_partial({name}_ptr, {name}, cols, N)" for name in sums]
    head = _head(program, "backward", loaded, gradients, ("STAGES",))
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
    file = f"<fused {name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
    module.__file__ = file
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), vars(module))  # noqa: S102 - the text was written here
    return getattr(module, f"{name}_forward"), getattr(module, f"{name}_backward")
