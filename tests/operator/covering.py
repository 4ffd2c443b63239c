"""The contract over conditions: every pair of them in a set of points, each point on every backend that takes it.

What a spec is made of meets in every combination, everything else in pairs. A mistake that shows only for odd N above
8, or only for the sum with eps outside, is met by some point, whatever else the point has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import prod

import numpy as np
from pairwise import Point, chosen, cover

from normgrad.checks import contract
from normgrad.checks.backends import INPUTS, get
from normgrad.checks.cases import Case
from normgrad.checks.tolerance import LARGEST
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
FACTORS = {
    "center": (True, False),
    "reduce": ("mean", "sum"),
    "placement": tuple(PLACEMENTS),
    "eps": (0.0, 1e-12, 1e-5, 0.1),
    "scale": (1.0, -1.7, 2.5),
    "weight_offset": (0.0, 1.0, -0.5),
    "columns": tuple(range(1, 71)),
    "lead": ((), (1,), (2,), (7,), (40,), (3, 87), (2, 3), (2, 1, 3), (2, 2, 2, 2)),
    "residual": ("none", "sum unused", "sum used"),
    "affine": tuple(PRESENT),
    "dtype": ("float64", "float32", "float16", "bfloat16"),
    "magnitude": (1e-30, 1e-15, 1e-4, 1.0, LIMIT, 1e10, 1e20, 1e30),
    "wanted": PATTERNS,
    "blocks": ("one", "of rows", "of columns"),
}
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
    if part.get("dtype") == "float16" and part.get("magnitude") in (1e-30, 1e-15, 1e10, 1e20, 1e30):
        return False
    if part.get("weight_offset", 0) != 0 and "weight" not in PRESENT[part.get("affine", "weight")]:
        return False
    # A centred row of one number is zero, and has no value without eps.
    return (part.get("center"), part.get("columns"), part.get("eps")) != (True, 1, 0.0)


@cache
def points() -> tuple[Point, ...]:
    """The set, the same at every call."""
    return tuple(cover(FACTORS, allowed, SPEC))


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
            of_dtype, coarse, lambda p: {"columns": p["columns"]}, lambda p: {"spec": tuple(p[name] for name in SPEC)}
        )
    )


def spec_of(point: Point) -> NormSpec:
    """The spec of a point."""
    return NormSpec(**{name: point[name] for name in (*SPEC, "weight_offset")})


def _affine(rng, kind, columns):
    weight, bias = rng.standard_normal((2, columns))
    if kind == "with zeros":
        weight[rng.integers(columns) :: 3] = 0
        bias[rng.integers(columns) :: 3] = 0
    present = PRESENT[kind]
    return weight if "weight" in present else None, bias if "bias" in present else None


def _drawn(point, rng):
    rows, columns = prod(point["lead"]), point["columns"]
    x, residual, dresidual_out, noise = rng.standard_normal((4, rows, columns))
    x = x + rng.uniform(-1, 1, (rows, 1))
    if point["residual"] == "none":
        residual = dresidual_out = None
    elif point["residual"] == "sum unused":
        dresidual_out = None
    weight, bias = _affine(rng, point["affine"], columns)
    p = x if residual is None else x + residual
    # Along x_hat and 1 as well, so that c1 and c2 are seen at every N.
    along = (p - p.mean(-1, keepdims=True)) * rng.uniform(0.5, 1, (rows, 1)) + rng.uniform(0.5, 1, (rows, 1))
    dy = noise + along * (1 if weight is None else np.sign(spec_of(point).weight_offset + weight))

    def sized(a, part=0.95 if residual is None else 0.475):
        # The sum of x and any other residual of the same kind is below the limit, too.
        at_limit = point["magnitude"] == LIMIT
        return a * (part * LARGEST["float16"] / np.abs(a).max(initial=1) if at_limit else point["magnitude"])

    x, residual = sized(x), None if residual is None else sized(residual)
    name = ", ".join(f"{name} {level}" for name, level in point.items())
    return Case(name, x, weight, bias, residual, dy, dresidual_out, "contiguous", point["lead"], point["wanted"])


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
    rng, spec = np.random.default_rng([points().index(point), beside is not None]), spec_of(point)
    while True:
        case = _drawn(point, rng)
        if beside is not None:
            case = replace(beside, **{name: getattr(case, name) for name in point["wanted"]})
        if contract.defined(case, spec, point["dtype"]) and not _at_a_corner(case, spec):
            return case


@contextmanager
def blocked(backend, point: Point) -> Iterator[None]:
    """The backend's blocks made small while the context lasts: several of rows, or of columns where it has those."""
    settings = []
    if point["blocks"] != "one" and hasattr(backend, "rows_module"):
        module, columns = backend.rows_module(), point["columns"]
        by_rows = point["blocks"] == "of rows"
        if backend.name == "torch":
            settings = [(module, "BLOCK_ELEMENTS", 3 * columns if by_rows else 1)]
        elif backend.name == "numba":
            settings = [(module.launch, "ELEMENTS_PER_PROGRAM", 3 * columns if by_rows else 1)]
        elif by_rows:
            tile = BLOCK_ROWS << (columns - 1).bit_length()
            settings = [(module.configuration, name, tile) for name in ("FORWARD_TILE", "BACKWARD_TILE")]
        else:
            limits = {4: BLOCK_COLUMNS, 8: BLOCK_COLUMNS}
            settings = [(module.configuration, name, limits) for name in ("FORWARD_COLUMNS", "BACKWARD_COLUMNS")]
            settings.append((module.configuration, "SWEEP_BLOCK", BLOCK_COLUMNS))
        if backend.name == "triton":
            settings.append((module.configuration, "REDUCTION_TILE", (2, BLOCK_COLUMNS)))
    before = [getattr(module, name) for module, name, _ in settings]
    try:
        for module, name, value in settings:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(settings, before, strict=True):
            setattr(module, name, value)


def check_point(backend, point: Point, derivatives: bool = True) -> None:
    """Everything that the contract asks of a backend at a point.

    Values and gradients; for torch also the gradients that may be differentiated again, tangents, mapped inputs and
    higher derivatives, which are the same code whatever the kernels.

    Raises:  AssertionError, as the contract's checks
    """
    backend, case, spec, dtype = get(backend), case_of(point), spec_of(point), point["dtype"]
    with blocked(backend, point):
        contract.check_values(backend, case, spec, dtype)
    if backend.name != "torch" or not derivatives:
        return
    import derivatives as further

    index = points().index(point)
    rng = np.random.default_rng([index, 2])
    contract.check_values(backend.differentiable(), case, spec, dtype)
    further.check_tangents(backend, case, spec, dtype, rng)
    further.check_mapped(backend, case, case_of(point, case), spec, dtype, rng)
    if dtype == "float64" and point["magnitude"] in MODERATE:
        further.check_higher(backend, case, spec, rng, third=case.x.size <= 64)
