"""What every Triton kernel of the package stores, proved from its text to be what the definitions say.

The definitions are those of `derivations.family`, whose gradients are proved by
norm-dx-... and eps-theorem-dx.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import product

from sympy import Expr, Indexed, S, Symbol

from ..spec import PLACED
from .definitions import Defs
from .derivations import family
from .kernel_text import HEAD, HEADS, WHOLE, read
from .notation import tensor, total
from .proof import prove
from .symbols import M, N, eps, i, j
from .text_reader import Reading, Unread, Verdict

c1, c2 = tensor("c1", M), tensor("c2", M)
NAMES = {"weight": "w", "bias": "b"}
# What a kernel asks of the constant is whether it is 0.
OFFSET = Symbol("w0", real=True, nonzero=True)


@dataclass(frozen=True)
class Case:
    """One variant of the operator.

    Args:  center, mean: whether rows are centred, and squares averaged
           piece: of `family.branches`; "zero" is a row of zeros with eps outside, where kappa is 0
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
        parts = [
            "centred" if self.center else "as it is",
            "mean" if self.mean else "sum",
            self.piece,
        ]
        lacks = [
            f"no {name}"
            for name in ("residual", "weight", "bias", "dx")
            if not getattr(self, name)
        ]
        lacks += [name for name in ("dresidual", "offset") if getattr(self, name)]
        return ", ".join(parts + lacks + [f"{self.heads} of heads"] * bool(self.heads))

    @property
    def constants(self) -> dict:
        """What the launcher gives a kernel for this variant."""
        pointers = {
            "center": ("mean",),
            "residual": ("residual", "residual_out", "dresidual_out"),
            "weight": ("weight", "dw"),
            "bias": ("bias", "db"),
            "dx": ("dx",),
            "dresidual": ("dresidual",),
        }
        absent = [
            name
            for flag, names in pointers.items()
            if not getattr(self, flag)
            for name in names
        ]
        flags = {
            "CENTER": self.center,
            "MEAN": self.mean,
            "PLACEMENT": PLACED[self.piece],
            "ROUND": True,
        }
        flags |= {
            "heads": HEADS if self.heads else None,
            "PER_HEAD": self.heads == "weights",
        }
        numbers = {"SCALE": family.c, "OFFSET": self.weight_offset, "EPS": eps}
        return flags | numbers | {f"{name}_ptr": None for name in absent}

    @property
    def weight_offset(self) -> Expr:
        """The constant that is added to the weight."""
        return OFFSET if self.offset else S.Zero

    def definitions(self) -> Defs:
        """The operator and its backward as definitions, and the two sums that row_sums keeps."""
        branch = family.branches()[self.piece]
        general = family.operator(branch.denominator, branch.factor)
        general[c1[i]] = (
            family.kappa[i]
            / family.n
            * total(N, lambda t: family.r[i, t] * family.wdy[i, t])
        )
        general[c2[i]] = family.a / N * total(N, lambda t: family.wdy[i, t])
        values = {} if self.residual else {family.residual: 0, family.dresidual_out: 0}
        values |= ({} if self.weight else {family.w: 1}) | (
            {} if self.bias else {family.b: 0}
        )
        numbers = {
            family.a: S(int(self.center)),
            family.n: N if self.mean else S.One,
            family.w0: self.weight_offset,
        }
        special = Defs()
        for head, e in general:
            special[head] = e.replace(
                lambda part: isinstance(part, Indexed) and part.base in values,
                lambda part: S(values[part.base]),
            ).xreplace(numbers)
        return special


# What each kernel stores, and the name for it in the definitions.
FORWARD = {
    "y": family.y[i, j],
    "residual_out": family.p[i, j],
    "mean": family.average[i],
    "rstd": family.rstd[i],
}
BACKWARD = {
    "dx": family.dp[i, j],
    "dresidual": family.dp[i, j],
    "dw": family.dw[j],
    "db": family.db[j],
}
KERNELS = {
    ("rows", "forward_rows"): FORWARD,
    ("rows", "backward_rows"): BACKWARD,
    ("rows", "backward_rows, rows read twice"): BACKWARD,
    ("sweeps", "forward_sweeps"): FORWARD,
    ("sweeps", "row_sums"): {"c1": c1[i], "c2": c2[i]},
    ("sweeps", "backward_columns"): BACKWARD,
}
CASES = tuple(Case(*one) for one in product((True, False), (True, False), PLACED))
CASES += (
    Case(True, True, "inside", residual=False, weight=False, bias=False),
    Case(False, True, "inside", residual=False, bias=False),
    Case(False, False, "clamp", residual=False, weight=False, bias=False),
    Case(True, True, "outside", weight=False, dx=False),
    Case(True, True, "inside", dresidual=True),
    Case(True, True, "inside", offset=True),
    Case(False, False, "outside", residual=False, bias=False, offset=True),
    Case(True, True, "inside", heads="strides"),
    Case(False, False, "clamp", residual=False, bias=False, heads="strides"),
    Case(True, True, "inside", dresidual=True, heads="weights"),
    Case(
        False, True, "outside", residual=False, bias=False, offset=True, heads="weights"
    ),
    Case(False, False, "clamp", dx=False, heads="weights"),
)


def compared(
    kernel: str, reading: Reading, wanted: dict[str, Expr]
) -> dict[tuple[str, str], tuple[Expr, Expr]]:
    """{(kernel, output): (what is stored, what it is to be)} of a kernel; Unread where it stores other outputs.

    What a kernel compares with eps or 0 has to be s, of whose pieces a case takes one.
    """
    if set(reading.stored) != set(wanted):
        raise Unread(
            f"{kernel} stores {sorted(reading.stored)}, needs {sorted(wanted)}"
        )
    if reading.overwritten:
        raise Unread(
            f"{kernel} overwrites {sorted(reading.overwritten)}, which it reads"
        )
    pairs = {
        (kernel, output): (reading.stored[output], e) for output, e in wanted.items()
    }
    return pairs | {
        (kernel, f"norm {n}"): (norm, family.s[i])
        for n, norm in enumerate(sorted(reading.norms, key=str))
    }


def claims(
    case: Case, package: str = "normgrad.triton_kernels"
) -> tuple[dict, set[str]]:
    """({(kernel, output): (what the text stores, the name in the definitions)}, what is assumed) of a variant.

    Raises:  Unread for a text that is not followed, and for an output that is missing
    """
    pairs, assumed = {}, set()
    for (module, name), outputs in KERNELS.items():
        kernel = getattr(import_module(f"{package}.{module}"), name.partition(",")[0])
        # Heads are along the axis of the grid that columns leave free.
        axis = (
            {"program_id_2" if name == "backward_columns" else "program_id_1": HEAD}
            if case.heads == "weights"
            else {}
        )
        constants = case.constants | axis | {"TWICE": "twice" in name}
        reading = read(
            kernel, constants, case.piece != "clamped", case.piece == "zero", NAMES
        )
        if module == "sweeps" and WHOLE in reading.assumed:
            raise Unread(f"{name}: takes the first block of columns for the whole row")
        wanted = {
            output: e
            for output, e in outputs.items()
            if case.constants.get(f"{output}_ptr", 0) is not None
        }
        pairs |= compared(name, reading, wanted)
        assumed |= set(reading.assumptions)
    return pairs, assumed


def proved(
    case: Case, pairs: dict[tuple[str, str], tuple[Expr, Expr]], assumed: set[str]
) -> Verdict:
    """The proof of each claim about a variant; NotProved where there is none."""
    defs = case.definitions()
    proofs = {
        place: prove(e, name, defs, where=", ".join(place))
        for place, (e, name) in pairs.items()
    }
    return Verdict(proofs, sorted(assumed))


def prove_kernels(case: Case, package: str = "normgrad.triton_kernels") -> Verdict:
    """Prove what each kernel of a package stores for a variant, for every number of rows and columns.

    Args:     case: a variant; package: the import name of the kernels, or of a copy of them
    Returns:  {(kernel, output): Proof}, which prints with what is assumed
    Raises:   NotProved, with a counterexample where one is found; Unread for a text that is wrong in itself
    """
    return proved(case, *claims(case, package))
