"""The one operator as data, its presets, and the argument checks that every backend shares.

For rows of length N, with everything computed per row:

    p = x + residual
    q = p - center * mean(p)
    s = sqrt(reduce(q**2))
    D = sqrt(s**2 + eps)  |  s + eps  |  max(s, eps)
    y = scale * (q / D) * (weight_offset + weight) + bias
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

REDUCTIONS = ("mean", "sum")
Axes = int | tuple[int, ...] | list[int]


@dataclass(frozen=True)
class Piece:
    """One side of a placement, where one formula holds for D and one for kappa.

    Args:  name: the end of its equations' labels; where: its domain, empty where that is everything; words: where eps
           stands, empty where D has no derivative; edge: whether `where` takes its first value there, not its second
    """

    name: str
    where: str = ""
    words: str = ""
    edge: bool = False


@dataclass(frozen=True)
class Placement:
    """A place of eps: all that follows from where it stands, but for the kernels, which have two functions each.

    Args:  denominator: D(s, eps, m) for s = sqrt(reduce(q**2)) and m, which is numpy, torch or what stands for them and
           has sqrt(a) and where(edge, a, b)
           kappa: D * D'(s) / s for s > 0, as denominator, an array like s; None for "inside" alone, where kappa
           is 1 and code computes D as sqrt(s**2 + eps) from s**2
           differentiable: whether D has all derivatives at a row of size s and within a step of it, of (s, eps, step)
           pieces: one where D and kappa are one formula for all s, else the two sides of an edge
    """

    denominator: Callable[[Any, Any, Any], Any]
    kappa: Callable[[Any, Any, Any], Any] | None
    differentiable: Callable[[float, float, float], bool]
    pieces: tuple[Piece, ...]


def _inside(s, eps, m):
    return m.sqrt(s**2 + eps)


def _outside(s, eps, m):
    return s + eps


def _outside_kappa(s, eps, m):
    return m.where(s <= 0, 0, (s + eps) / s)


def _clamp(s, eps, m):
    return m.where(
        s <= eps, eps, s
    )  # in this order, where s is not a number neither is D


def _clamp_kappa(s, eps, m):
    return m.where(s <= eps, 0, 1)


PLACEMENTS = {
    "inside": Placement(
        denominator=_inside,
        kappa=None,
        differentiable=lambda s, eps, step: s > step or eps > 0,
        pieces=(Piece("inside", words="inside the root"),),
    ),
    "outside": Placement(
        denominator=_outside,
        kappa=_outside_kappa,
        differentiable=lambda s, eps, step: s > step,
        pieces=(
            Piece("outside", "s > 0", "added to s"),
            Piece("zero", "s = 0", edge=True),
        ),
    ),
    "clamp": Placement(
        denominator=_clamp,
        kappa=_clamp_kappa,
        differentiable=lambda s, eps, step: abs(s - eps) > step,
        pieces=(
            Piece("clamp", "s > eps", "as a floor that s exceeds"),
            Piece("clamped", "s < eps", "as a floor that s does not reach", edge=True),
        ),
    ),
}
# {name of a piece: the placement that it is of}
PLACED = {
    piece.name: name
    for name, placement in PLACEMENTS.items()
    for piece in placement.pieces
}


@dataclass(frozen=True)
class NormSpec:
    """Which normalization: centred or not, mean or sum of squares, scale, and where eps stands.

    Args:    center: subtract the row's mean first
             reduce: "mean" or "sum", how the squares of a row are reduced
             scale: the constant c that multiplies the normalized row
             eps: at least 0; None means the machine epsilon of the statistics' dtype, float32 for 16-bit inputs (what
             torch's rms_norm computes, measured with 2.13; its documentation names the input's dtype)
             placement: where eps stands in the denominator D of s = sqrt(reduce(q**2)):
                 "inside" sqrt(s**2 + eps), "outside" s + eps, "clamp" max(s, eps)
             weight_offset: the constant that is added to the weight, in the dtype of the statistics: 1 where the weight
             is stored as its distance from 1, as in Gemma 1 to 3; what has an offset needs a weight
    Raises:  ValueError or TypeError naming the field, what it got and what it needs
    """

    center: bool = True
    reduce: Literal["mean", "sum"] = "mean"
    scale: float = 1.0
    eps: float | None = 1e-5
    placement: Literal["inside", "outside", "clamp"] = "inside"
    weight_offset: float = 0.0

    def __post_init__(self) -> None:
        for name, allowed in (("reduce", REDUCTIONS), ("placement", PLACEMENTS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(
                    f"{name}: got {value!r}, needs one of {', '.join(map(repr, allowed))}"
                )
        if not isinstance(self.center, (bool, Integral)) or self.center not in (0, 1):
            raise TypeError(
                f"center: got {type(self.center).__name__} {self.center!r}, needs True or False"
            )
        object.__setattr__(self, "center", bool(self.center))
        for name in ("scale", "weight_offset"):
            object.__setattr__(self, name, check_finite(name, getattr(self, name)))
        if self.eps is not None:
            object.__setattr__(self, "eps", check_eps(self.eps))

    def replace(self, **changes: Any) -> NormSpec:
        """The same spec with some fields changed: ``RMS_NORM.replace(eps=1e-6)``."""
        names = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in names:
                raise TypeError(
                    f"changes: got {name!r}, needs fields among {', '.join(map(repr, names))}"
                )
        # dataclasses.replace does the same, and the compiler of torch 2.6 does not trace it.
        return type(self)(**{name: getattr(self, name) for name in names} | changes)

    def resolve(self, machine_epsilon: float) -> NormSpec:
        """The spec with a number for eps: its own, or the machine epsilon where eps is None."""
        return (
            self if self.eps is not None else self.replace(eps=float(machine_epsilon))
        )

    @property
    def place(self) -> Placement:
        """What follows from where eps stands."""
        return PLACEMENTS[self.placement]

    def count(self, columns: int) -> int:
        """n of the gradient formula: N where the squares are averaged, 1 where they are summed."""
        return columns if self.reduce == "mean" else 1


def check_finite(name: str, value: float) -> float:
    """A finite real number as a float; anything else is refused by name."""
    # To ask whether it is a Real takes ten times as long. A compiler can compare numbers that it holds as symbols.
    if type(value) is float and -math.inf < value < math.inf:
        return (
            value + 0.0
        )  # 0.0 and -0.0 are equal, so results that are kept must not differ between them
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{name}: got {type(value).__name__} {value!r}, needs a real number"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not -math.inf < number < math.inf:
        raise ValueError(f"{name}: got {value!r}, needs a finite number")
    return number + 0.0


def check_eps(eps: float) -> float:
    """eps as a float; negative, infinite and non-numeric values are refused by name."""
    number = check_finite("eps", eps)
    if number < 0:
        raise ValueError(f"eps: got {eps!r}, needs a number that is at least 0")
    return number


LAYER_NORM = NormSpec()
LAYER_NORM_STD = NormSpec(placement="outside")
RMS_NORM = NormSpec(center=False, eps=None)
L2_NORM = NormSpec(center=False, reduce="sum", eps=1e-12, placement="clamp")


def check_axes(normalized_shape: Axes) -> tuple[int, ...]:
    """The sizes of the normalized axes as a tuple; TypeError or ValueError by name for anything but sizes from 1 on."""
    if (
        type(normalized_shape) is int and 0 < normalized_shape < 2**63
    ):  # in a tenth of the time
        return (normalized_shape,)
    alone = isinstance(normalized_shape, Integral) and not isinstance(
        normalized_shape, bool
    )
    axes = (normalized_shape,) if alone else normalized_shape
    integers = isinstance(axes, (tuple, list)) and all(
        isinstance(axis, Integral) and not isinstance(axis, bool) for axis in axes
    )
    if not integers:
        size = getattr(normalized_shape, "shape", None)
        value = repr(normalized_shape)
        if isinstance(size, tuple):
            value = f"of shape {tuple(size)}"
        got = f"{type(normalized_shape).__name__} {value}"
        raise TypeError(f"normalized_shape: got {got}, needs an int or a tuple of ints")
    if not axes or min(axes) < 1:
        raise ValueError(
            f"normalized_shape: got {tuple(axes)}, needs at least one axis, each of length at least 1"
        )
    if max(axes) >= 2**63:
        raise ValueError(
            f"normalized_shape: got {tuple(axes)}, needs axes of a length below 2**63"
        )
    return tuple(int(axis) for axis in axes)


def check_spec(spec: NormSpec) -> NormSpec:
    """The spec itself; anything else is refused by name."""
    if not isinstance(spec, NormSpec):
        raise TypeError(
            f"spec: got {type(spec).__name__}, needs a NormSpec such as normgrad.LAYER_NORM"
        )
    return spec


def check_weight_offset(weight: Any, weight_offset: float) -> float:
    """weight_offset as a float; other than 0 it needs a weight to be added to, as an absent weight is a factor of 1."""
    number = check_finite("weight_offset", weight_offset)
    if weight is None and number != 0:
        raise ValueError(
            f"weight_offset: got {number} without a weight, needs 0.0 there"
        )
    return number


def check_heads(heads: Any, *vectors: Any) -> tuple[int, ...]:
    """The axis of weight and bias that counts heads: (heads,), or () where heads is None and one vector is for all.

    Args:    vectors: weight and bias, one of which heads ask for
    Raises:  TypeError or ValueError that names heads, what it got and what it needs
    """
    if heads is None:
        return ()
    if isinstance(heads, bool) or not isinstance(heads, Integral):
        raise TypeError(
            f"heads: got {type(heads).__name__} {heads!r}, needs an int or None"
        )
    if not 1 <= heads < 2**63:
        raise ValueError(
            f"heads: got {heads!r}, needs at least 1 and less than 2**63, or None"
        )
    if all(vector is None for vector in vectors):
        raise ValueError(
            f"heads: got {heads!r} without a weight or a bias, needs None there"
        )
    return (int(heads),)


def check_head_axis(heads: tuple[int, ...], lead: tuple[int, ...], name: str) -> None:
    """Nothing, or a ValueError where the axis before the normalized ones is not that of the heads.

    Args:  heads: as check_heads returns it, not empty; lead: the axes before the normalized ones; name: of their array
    """
    if lead[-1:] != heads:
        needs = "the axis before the normalized ones of"
        raise ValueError(
            f"heads: got {heads[0]}, needs {needs} {name}, whose leading axes are {lead}"
        )


def check_shapes(
    x: Any,
    weight: Any,
    bias: Any,
    residual: Any,
    name: str = "x",
    heads: int | None = None,
) -> None:
    """Shapes of the operator's arguments, whatever array library they come from.

    Args:    x (..., N) with N at least 1; weight, bias (N,) or None; residual of x's shape or None; heads: None, or H
             where x is (..., H, N) and weight and bias are (H, N)
    Raises:  ValueError naming the argument, the shape received and the shape required
    """
    shape = tuple(x.shape)
    if len(shape) < 1 or shape[-1] < 1:
        raise ValueError(
            f"{name}: got shape {shape}, needs at least one axis and a last axis of length at least 1"
        )
    of_heads = check_heads(heads, weight, bias)
    if of_heads:
        check_head_axis(of_heads, shape[:-1], name)
    needed, axes = (
        (*of_heads, shape[-1]),
        "the last two axes" if of_heads else "the last axis",
    )
    for argument, array in (("weight", weight), ("bias", bias)):
        if array is not None and tuple(array.shape) != needed:
            raise ValueError(
                f"{argument}: got shape {tuple(array.shape)}, needs {needed}, {axes} of {name} {shape}"
            )
    if residual is not None and tuple(residual.shape) != shape:
        raise ValueError(
            f"residual: got shape {tuple(residual.shape)}, needs {shape}, the shape of {name}"
        )
