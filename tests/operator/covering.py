"""The contract over conditions: every pair of them in a set of points, each point on every backend that takes it.

What a spec is made of meets in every combination, everything else in pairs. A mistake that shows only for odd N above
8, or only for the sum with eps outside, is met by some point, whatever else the point has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import prod
from unittest import mock

import numpy as np
from pairwise import Point, chosen, cover

from normgrad.checks import contract
from normgrad.checks.backends import INPUTS, get
from normgrad.checks.cases import Case
from normgrad.checks.tolerance import LARGEST, Dtypes
from normgrad.dtypes import NAMES
from normgrad.spec import PLACEMENTS, NormSpec

SPEC = ("center", "reduce", "placement", "eps", "scale")
PRESENT = {
    "none": (),
    "weight": ("weight",),
    "bias": ("bias",),
    "mixed signs": ("weight", "bias"),
    "with zeros": ("weight", "bias"),
}
PATTERNS = tuple(two for count in range(1, 5) for two in combinations(INPUTS, count))
LIMIT = "near float16's limit"
DTYPES_OF_OTHERS = tuple(
    f"{name} dtype" for name in ("residual", "weight", "bias", "out", "stored")
)
OTHER_DTYPE = (None, *NAMES)  # None: that of x
FACTORS = {
    "center": (True, False),
    "reduce": ("mean", "sum"),
    "placement": tuple(PLACEMENTS),
    "eps": (0.0, 1e-12, 1e-5, 0.1),
    "scale": (1.0, -1.7, 2.5),
    "weight_offset": (0.0, 1.0, -0.5),
    "columns": tuple(range(1, 71)),
    "lead": (
        (),
        (0,),
        (1,),
        (2,),
        (7,),
        (40,),
        (3, 87),
        (2, 3),
        (2, 1, 3),
        (2, 2, 2, 2),
    ),
    "residual": ("none", "sum unused", "sum used"),
    "affine": tuple(PRESENT),
    "dtype": NAMES,
    **dict.fromkeys(DTYPES_OF_OTHERS, OTHER_DTYPE),
    "rounded": (True, False),
    "layout": ("contiguous", "strided", "transposed", "sliced", "expanded", "negated"),
    "heads": (False, True),
    "rows": ("random", "far from 0", "constant and zero", "constant far from 0"),
    "magnitude": (1e-30, 1e-15, 1e-4, 1.0, LIMIT, 1e10, 1e20, 1e30),
    "wanted": PATTERNS,
    "blocks": ("one", "of rows", "of columns"),
}
# Rows longer than a block of every kernel, and what else is too long to be met in pairs.
LONG = {name: levels[0] for name, levels in FACTORS.items()} | {
    "eps": 1e-5,
    "columns": 1000,
    "lead": (3,),
    "residual": "sum used",
    "affine": "mixed signs",
    "dtype": "float64",
    "magnitude": 1.0,
    "wanted": INPUTS,
}
FAR, FLAT, NEAR_10000 = FACTORS["rows"][1:]
# Backends that correct a mean by the mean of what is left.
CORRECTED = ("numpy", "torch", "triton", "numba")
LONGEST = LONG | {"columns": 20000, "dtype": "bfloat16", "lead": (2,)}
ROWS = (
    LONG,
    LONG | {"rows": FAR},
    LONGEST | {"dtype": "float32", "lead": (15,)},
    LONGEST | {"lead": (15,)},
    LONGEST | {"rows": FAR, "rounded": False},
    LONGEST | {"rows": FAR, "residual dtype": "float32"},
    # Long enough for a sum of equal numbers to be rounded by more than a mean is.
    LONG | {"rows": NEAR_10000, "lead": (40,)},
    LONG | {"rows": NEAR_10000, "lead": (40,), "dtype": "float32"},
    LONG
    | {"rows": NEAR_10000, "lead": (4,), "dtype": "float32", "blocks": "of columns"},
)
# The leading axes whose last one may be heads: few, since each of them is a program of Triton's.
HEADS = ((1,), (2,), (7,), (2, 3), (2, 1, 3), (2, 2, 2, 2))
# Magnitudes that float16 cannot hold.
UNHELD = (1e-30, 1e-15, 1e10, 1e20, 1e30)
# Where second and third derivatives are neither lost in rounding nor too large to be held.
MODERATE = (1e-4, 1.0)
# The blocks of a point that has several: rows of a tile, columns of a swept block.
BLOCK_ROWS, BLOCK_COLUMNS = 16, 16


def allowed(part: Point) -> bool:
    """Whether some point has these levels."""
    inputs = (
        {"x"}
        | ({"residual"} if part.get("residual") != "none" else set())
        | set(PRESENT[part["affine"]] if "affine" in part else ("weight", "bias"))
    )
    if not inputs.issuperset(part.get("wanted", ())):
        return False
    affine = PRESENT[part.get("affine", "mixed signs")]
    if "weight" not in affine and (
        part.get("weight_offset", 0) != 0 or part.get("weight dtype")
    ):
        return False
    if (
        "bias" not in affine
        and part.get("bias dtype")
        or not affine
        and part.get("heads")
    ):
        return False
    lead = part.get("lead", (2,))
    if (
        part.get("heads")
        and lead not in HEADS
        or part.get("layout") == "sliced"
        and not lead
    ):
        return False
    return _has_dtypes(part) and _has_values(part)


def _has_dtypes(part):
    """Whether there is a sum where its dtypes are asked for, with a summand in float64 where that is to be stored."""
    of_sum = (
        part.get("residual dtype"),
        part.get("stored dtype"),
        not part.get("rounded", True),
    )
    if part.get("residual") == "none" and any(of_sum):
        return False
    if part.get("rows") == NEAR_10000 and (
        # Equal numbers, and their mean from before they are rounded: what is centred is a rounding.
        not part.get("rounded", True)
        # The square of a mean's rounding leaves the range of float32 in SymPy's code, which corrects no mean.
        or part.get("magnitude") in (1e20, 1e30)
    ):
        return False
    held = (part.get("dtype"), *of_sum[:2])
    if "float16" in held and part.get("magnitude") in UNHELD:
        return False
    wide = part.get("dtype", "float64") == "float64"
    if part.get("residual") != "none":
        wide = wide or part.get("residual dtype", "float64") == "float64"
    return wide or "float64" not in (part.get("out dtype"), part.get("stored dtype"))


def _has_values(part):
    """Whether a row has a value without eps: not one that is constant as it is, or once its numbers are rounded."""
    if part.get("eps") != 0.0:
        return True
    narrow = {"float16", "bfloat16"} & {
        part.get(name) for name in ("dtype", "residual dtype", "stored dtype")
    }
    constant = part.get("rows") in (FLAT, NEAR_10000)
    if constant or part.get("rows") == FAR and narrow:
        return False
    return (part.get("center"), part.get("columns")) != (True, 1)


@cache
def points() -> tuple[Point, ...]:
    """The set, the same at every call."""
    return (*cover(FACTORS, allowed, SPEC), *ROWS)


def coarse(point: Point) -> Point:
    """The point, its columns as a class: even or odd, and between which powers of two."""
    columns = point["columns"]
    return {**point, "columns": (columns % 2, (columns - 1).bit_length())}


@cache
def points_of(backend: str) -> tuple[Point, ...]:
    """The points that a backend runs: all of a dtype that it has.

    Triton's interpreter takes 20 to 200 ms for one. It runs those that are needed to cover every spec, every number of
    columns, and every pair with the columns taken by class.
    """
    of_dtype = [point for point in points() if point["dtype"] in get(backend).dtypes]
    if backend != "triton":
        return tuple(of_dtype)
    return tuple(
        chosen(
            of_dtype,
            coarse,
            lambda p: {"columns": p["columns"]},
            lambda p: {"spec": tuple(p[name] for name in SPEC)},
        )
    )


def dtypes_of(point: Point, backend: str) -> str | Dtypes:
    """The dtypes of a point's arrays; NumPy and SymPy run in one alone."""
    if backend in ("numpy", "sympy"):
        return point["dtype"]
    return Dtypes(point["dtype"], *map(point.get, DTYPES_OF_OTHERS), point["rounded"])


def spec_of(point: Point) -> NormSpec:
    """The spec of a point."""
    return NormSpec(**{name: point[name] for name in (*SPEC, "weight_offset")})


def _affine(rng, point):
    heads = point["lead"][-1:] if point["heads"] else ()
    columns, present = point["columns"], PRESENT[point["affine"]]
    weight, bias = rng.standard_normal((2, *heads, columns))
    if point["affine"] == "with zeros":
        weight[..., rng.integers(columns) :: 3] = 0
        bias[..., rng.integers(columns) :: 3] = 0
    return weight if "weight" in present else None, bias if "bias" in present else None


def _drawn(point, rng):
    rows, columns = prod(point["lead"]), point["columns"]
    x, residual, dresidual_out, noise = rng.standard_normal((4, rows, columns))
    x = x + rng.uniform(-1, 1, (rows, 1)) + (2e3 if point["rows"] == FAR else 0)
    if point["rows"] == FLAT:
        x[::3], residual[::3] = 1.5, 0.25
        x[1::3] = residual[1::3] = 0
    if point["rows"] == NEAR_10000:
        x += 10000.3
        x[::2], residual[::2] = x[::2, :1], residual[::2, :1]
    if point["residual"] == "none":
        residual = dresidual_out = None
    elif point["residual"] == "sum unused":
        dresidual_out = None
    repeated = point["layout"] == "expanded"
    if repeated:
        x, noise = (np.repeat(a[:1], rows, 0) for a in (x, noise))
    weight, bias = _affine(rng, point)
    p = x if residual is None else x + residual
    # Along x_hat and 1 as well, so that c1 and c2 are seen at every N.
    along = (p - p.mean(-1, keepdims=True)) * rng.uniform(
        0.5, 1, (rows, 1)
    ) + rng.uniform(0.5, 1, (rows, 1))
    if weight is not None:
        signs = np.sign(spec_of(point).weight_offset + weight)
        along = along * (
            np.tile(signs, (rows // len(signs), 1)) if point["heads"] else signs
        )
    dy = noise + (along[:1] if repeated else along)

    def sized(a, part=0.95 if residual is None else 0.475):
        size = point["magnitude"]
        if (
            size == LIMIT
        ):  # the sum of x and any other residual of the same kind is below it, too
            size = part * LARGEST["float16"] / np.abs(a).max(initial=1)
        # A power of two: the sum of a row of equal numbers is exact then, and s is 0.
        return a * (2.0 ** np.floor(np.log2(size)) if point["rows"] == FLAT else size)

    x, residual = sized(x), None if residual is None else sized(residual)
    name = ", ".join(
        f"{name} {level}" for name, level in point.items() if level is not None
    )
    heads = point["lead"][-1] if point["heads"] else None
    arrays = (x, weight, bias, residual, dy, dresidual_out)
    return Case(name, *arrays, point["layout"], point["lead"], point["wanted"], heads)


def _at_a_corner(case, spec):
    """Whether some row's size is so near a clamp's eps that rounding decides on which side it is."""
    if spec.placement != "clamp" or spec.eps == 0:
        return False
    p = case.x if case.residual is None else case.x + case.residual
    q = p - (p.mean(-1, keepdims=True) if spec.center else 0)
    s = np.sqrt((q * q).sum(-1) / spec.count(q.shape[-1]))
    return bool((np.abs(s / spec.eps - 1) < 0.1).any())


def case_of(point: Point, beside: Case | None = None) -> Case:
    """The inputs and cotangents of a point: always the same; beside a case others for the inputs that move."""
    rng, spec = (
        np.random.default_rng([points().index(point), beside is not None]),
        spec_of(point),
    )
    for _ in range(1000):
        case = _drawn(point, rng)
        if beside is not None:
            case = replace(
                beside, **{name: getattr(case, name) for name in point["wanted"]}
            )
        if contract.defined(case, spec, dtypes_of(point, "torch")) and not _at_a_corner(
            case, spec
        ):
            return case
    raise ValueError(
        f"point: no draw has a value away from the corner of a clamp: {point}"
    )


@contextmanager
def blocked(backend, point: Point) -> Iterator[None]:
    """The backend's blocks made small while the context lasts: several of rows, or of columns where it has those."""
    settings = []  # (module, name, value)
    if point["blocks"] != "one" and hasattr(backend, "rows_module"):
        module, columns = backend.rows_module(), point["columns"]
        by_rows = point["blocks"] == "of rows"
        elements = 3 * columns if by_rows else 1
        if backend.name == "torch":
            settings = [(module, "BLOCK_ELEMENTS", elements)]
        elif backend.name == "numba":
            settings = [(module.launch, "ELEMENTS_PER_PROGRAM", elements)]
        else:
            names, limits = ("COLUMNS", {4: BLOCK_COLUMNS, 8: BLOCK_COLUMNS})
            if by_rows:
                names, limits = ("TILE", BLOCK_ROWS << (columns - 1).bit_length())
            values = {f"FORWARD_{names}": limits, f"BACKWARD_{names}": limits}
            values["REDUCTION_TILE"] = (2, BLOCK_COLUMNS)
            if not by_rows:
                values["SWEEP_BLOCK"] = BLOCK_COLUMNS
            settings = [(module.configuration, *item) for item in values.items()]
    with ExitStack() as stack:
        for setting in settings:
            stack.enter_context(mock.patch.object(*setting))
        yield


def check_point(backend, point: Point, derivatives: bool = True) -> None:
    """Everything that the contract asks of a backend at a point.

    Values and gradients; for torch also the gradients that may be differentiated again, tangents, mapped inputs and
    higher derivatives, which are the same code whatever the kernels.

    Raises:  AssertionError, as the contract's checks
    """
    backend, case, spec = get(backend), case_of(point), spec_of(point)
    dtypes = dtypes_of(point, backend.name)
    with blocked(backend, point):
        corrected = backend.name in CORRECTED
        contract.check_values(backend, case, spec, dtypes, corrected=corrected)
    index = points().index(point)
    rng = np.random.default_rng([index, 2])
    # Differences see float64 alone, whatever dtypes the other arrays have; a row of size 0 is smooth as far as eps is.
    smooth = (
        point["dtype"] == "float64"
        and point["magnitude"] in MODERATE
        and contract.differentiable(case, spec)
    )
    random = point["rows"] not in (FLAT, NEAR_10000)
    smooth = smooth and (random or spec.eps > contract.GRADCHECK_STEP)
    if backend.name == "numpy" and smooth:
        contract.check_differences(backend, case, spec, rng)
    if backend.name != "torch" or not derivatives:
        return
    import derivatives as further

    formula = backend.differentiable()
    contract.check_values(formula, case, spec, dtypes, corrected=True)
    further.check_tangents(backend, case, spec, dtypes, rng)
    further.check_mapped(backend, case, case_of(point, case), spec, dtypes, rng)
    if smooth:
        # Third differences of numbers near 10000 have lost too many digits.
        third = case.x.size <= 64 and point["rows"] != NEAR_10000
        further.check_higher(backend, case, spec, rng, third=third)
