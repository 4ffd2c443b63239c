"""The package's own kernels in every variant of the operator, held against the definitions that a norm has.

A test proves that they are those of `derivations.family`, whose gradients are proved by norm-dx-..., eps-theorem-dw and
eps-theorem-db.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sympy import S, Symbol

from ..spec import PLACED
from ..symbolic.derivations import family
from ..symbolic.notation import tensor
from ..symbolic.symbols import M, N, eps, i
from .api import verify
from .binding import (
    COLUMNS,
    FLOAT,
    ROWS,
    WHOLE,
    Out,
    T,
    letter,
)
from .definitions import OFFSET, Norm, entry, operator
from .header import parameters
from .source import Source
from .verdict import Claim, Verdict, whole

FOLDER = Path(__file__).parents[1] / "triton_kernels"
PIECES = [piece for piece in PLACED if piece != "clamped"]
HEADS, VECTOR = letter("heads"), letter("VECTOR")
HEAD = Symbol("head", integer=True, nonnegative=True)
zero = tensor("zero", M)
MATRICES = ("x", "residual", "dy", "dresidual_out", "p")
NAMES = {"p": "residual_out"}
VECTORS = ("weight", "bias")


@dataclass(frozen=True)
class Case:
    """One variant of the operator.

    Args:  center, mean: whether rows are centred, and squares averaged
           piece: "inside", "outside", "clamp", or "zero", a row of zeros with eps outside, where kappa is 0
           residual, weight, bias: whether there is one; dx: whether it is wanted
           dresidual: whether it is an array of its own; offset: whether weight_offset is other than 0
           heads: "" where an input has one row stride, "strides" where it has two, "weights" where each head has a
           weight of its own besides: then M, x, w and all others are those of one head
    """

    center: bool
    mean: bool
    piece: str
    residual: bool = True
    weight: bool = True
    bias: bool = True
    dx: bool = True
    dresidual: bool = False
    offset: bool = False
    heads: str = ""

    def __str__(self):
        words = ["centred" if self.center else "as it is"]
        words += ["mean" if self.mean else "sum", self.piece]
        words += [
            f"no {name}"
            for name in ("residual", "weight", "bias", "dx")
            if not getattr(self, name)
        ]
        words += [name for name in ("dresidual", "offset") if getattr(self, name)]
        return ", ".join(words + [f"{self.heads} of heads"] * bool(self.heads))

    @property
    def absent(self) -> set[str]:
        """The tensors that the variant lacks."""
        tensors = {
            "center": {"mean"},
            "residual": {"residual", "residual_out", "dresidual_out"},
            "weight": {"weight", "dw"},
            "bias": {"bias", "db"},
            "dx": {"dx"},
            "dresidual": {"dresidual"},
        }
        lacking = [names for flag, names in tensors.items() if not getattr(self, flag)]
        return set().union(*lacking)

    def definitions(self) -> Norm:
        """The operator and its backward as definitions, with the two sums of a row that row_sums stores."""
        return _definitions(self)

    def binding(self, names: list[str], stored: tuple[str, ...]) -> dict:
        """What the launcher gives a kernel: {argument: what it is}.

        Args:  names: of the kernel's arguments; stored: the tensors that it stores
        """
        binding = {
            "M": M * HEADS if self.heads == "weights" else M,
            "N": N,
            "CENTER": self.center,
            "MEAN": self.mean,
            "SCALE": family.c,
            "OFFSET": OFFSET if self.offset else 0,
            "EPS": eps,
            "PLACEMENT": PLACED[self.piece],
            "ROUND": True,
            "PER_HEAD": self.heads == "weights",
            "ACC": FLOAT,
            "ROWS": ROWS,
            "BLOCK": COLUMNS if "STAGES" in names and "TWICE" not in names else WHOLE,
            "heads": HEADS if self.heads else None,
        }
        for name in names:
            held = name.removesuffix("_ptr")
            if name.endswith("_ptr") and held in self.absent:
                binding[name] = None
            elif name.endswith("_ptr"):
                binding[name] = self._pointer(Out if held in stored else T, held)
        return {name: value for name, value in binding.items() if name in names}

    def _pointer(self, kind, name):
        """A pointer, by the strides of its rows."""
        share, head = (HEADS, HEAD) if self.heads == "weights" else (1, 0)
        role = NAMES.get(name, name)
        if name in VECTORS:
            return kind(role, "j", start=head * N)
        if name in ("dw", "db"):
            return kind(role, "p, j", share * N, start=head * N)
        if name not in MATRICES or kind is Out:
            columns = N if entry(role).rank == 2 else 1
            index = "i, j" if columns == N else "i"
            return kind(role, index, share * columns, start=head * columns)
        stride = letter(f"{name}_step") * VECTOR
        to_head = letter(f"{name}_head_step") * VECTOR
        if self.heads == "strides":
            return kind(role, "i, j", stride, heads=(HEADS, to_head))
        return kind(role, "i, j", stride, start=head * to_head)


@cache
def _definitions(case):
    offset = S.Zero
    if case.offset:
        offset = OFFSET
    defs = operator(case.piece, case.absent, case.center, case.mean, family.c, offset)
    defs[zero[i]] = S.Zero
    names = (*FORWARD, *BACKWARD, "c1", "c2")
    return Norm(defs, {name: entry(name) for name in names} | {"zero": zero[i]})


FORWARD = ("y", "residual_out", "mean", "rstd")
BACKWARD = ("dx", "dresidual", "dw", "db")
# {kernel: (its module, what it stores, the grid)}
KERNELS = {
    "forward_rows": ("rows", FORWARD, ("row tiles",)),
    "backward_rows": ("rows", BACKWARD, ("programs",)),
    "backward_rows, rows read twice": ("rows", BACKWARD, ("programs",)),
    "forward_sweeps": ("sweeps", FORWARD, ("row tiles",)),
    "row_sums": ("sweeps", ("c1", "c2"), ("row tiles",)),
    "backward_columns": ("sweeps", BACKWARD, ("programs", "column tiles")),
}


# What rounds to a dtype; the interpreter's bfloat16 is made of bits, which are not read.
ROUNDING = {"cast(value, DTYPE)": "value"}


def _casts_as_here(folder):
    """Whether a copy of the kernels has the package's own cast."""
    here, there = [
        Source((place / "arithmetic.py").read_text(encoding="utf8")).function("cast")
        for place in (FOLDER, folder)
    ]
    return ast.dump(here) == ast.dump(there)


def verify_kernel(case: Case, title: str, folder: Path = FOLDER) -> Verdict:
    """Read one kernel of KERNELS for a variant.

    Args:  title: of KERNELS; the rest as prove_kernels
    """
    module, stored, grid = KERNELS[title]
    file, (kernel, _, twice) = folder / f"{module}.py", title.partition(", ")
    source = Source(file.read_text(encoding="utf8"), file)
    names, _ = parameters(source.function(kernel))
    binding = case.binding(names, stored)
    if "TWICE" in names:
        binding["TWICE"] = bool(twice)
    if case.heads == "weights":
        grid = (*grid, (HEAD, HEADS))
    return verify(
        file,
        binding,
        grid,
        case.definitions(),
        kernel=kernel,
        helpers=ROUNDING if _casts_as_here(folder) else {},
        zero=case.piece == "zero",
    )


def prove_kernels(case: Case, folder: Path = FOLDER) -> Verdict:
    """Read every Triton kernel of the package for a variant, for every number of rows and columns.

    Args:     case: a variant; folder: of the kernels, or of a copy of them
    Returns:  Verdict, with one for each output of each kernel
    """
    outputs, assumed, where, numbers = {}, [], (), ()
    for title in KERNELS:
        verdict = verify_kernel(case, title, folder)
        parts = verdict.outputs or {"": verdict}
        outputs |= {f"{title}: {name}": part for name, part in parts.items()}
        assumed += verdict.assumptions
        where += verdict.where
        numbers += verdict.numbers
    claim = Claim(str(case), where=where, numbers=tuple(dict.fromkeys(numbers)))
    return whole(outputs, claim, assumed)
