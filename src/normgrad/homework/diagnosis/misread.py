"""The right formula on wrong numbers: arrays that have changed places, rows that were read elsewhere, and statistics of
other rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...checks.tolerance import unit_roundoff
from .explain import Explained, flat_rows
from .fit import Target, by_row

# What float64 loses in ordinary rows of a few hundred entries, and in their statistics, is far below this share.
NEAR = 2**12 * unit_roundoff("float64")
# Half of the digits: what is nearer to the right result has lost digits, and is no result of other numbers.
DIGITS = unit_roundoff("float64") ** 0.5
MISREAD, SAVED_Y, MIXED, STRIDE = (
    "inputs-exchanged",
    "y-for-x",
    "rows-mixed",
    "stride-ignored",
)
OVERWRITTEN, OVERWRITTEN_WORDS = (
    "overwritten-on-the-way",
    "the means are taken of wdy and, in its place, dx",
)
MISPLACED, MISPLACED_WORDS = (
    "weight-misplaced",
    "the entries of weight stand in other columns",
)


def misread(target: Target, by_rows: bool) -> Explained | None:
    """What has no name, as the right formula of other numbers; None where it is not, or in a narrow format.

    Args:  by_rows: whether each row may have coefficients of its own, which says less than a formula that fits
    """
    if (
        target.arrays.dtypes.accumulator != "float64"
        or min(target.arrays.rows.p.shape) < 2
        or not target.finite.all()
    ):
        return None
    known, parts = _known(target), target.right.parts
    if (
        np.abs(target.whole - target.expected).max()
        <= DIGITS * np.abs(target.expected).max()
    ):
        return None
    for key, words, changed in _versions(target, known):
        if _near(target.whole, _output(target.output, known | changed)):
            return Explained((key,), parts, 1.0, words)
    if target.output in ("dw", "db"):
        return None
    if target.output == "y" and _weight_moved(target, known):
        return Explained((MISPLACED,), parts, 1.0, MISPLACED_WORDS)
    if target.output in ("dx", "dresidual") and _near(
        target.whole, _overwritten(known)
    ):
        return Explained((OVERWRITTEN,), parts, 1.0, OVERWRITTEN_WORDS)
    words = _of_other_rows(target, known)
    if words:
        return Explained((MIXED,), parts, 1.0, words)
    return _coefficients_of_rows(target, known) if by_rows else None


def _known(target) -> dict:
    """The arrays of the right formula by name; those of a row are columns."""
    arrays = target.arrays
    case, saved, p = arrays.case, arrays.saved, arrays.rows.p
    zero = np.zeros(p.shape[-1])
    mean = np.zeros((len(p), 1)) if saved.mean is None else saved.mean[:, None]
    weight, bias = (
        1 + zero if case.weight is None else case.weight,
        zero if case.bias is None else case.bias,
    )
    found = {"dy": case.dy, "p": p, "mean": mean, "rstd": saved.rstd[:, None], "weight": weight, "bias": bias,
             "g": 0 * p if case.dresidual_out is None else case.dresidual_out}  # fmt: skip
    return found | {"center": arrays.spec.center} | _means(found, arrays.spec.center)


def _means(a, center) -> dict:
    wdy, x_hat = a["weight"] * a["dy"], a.get("x_hat", (a["p"] - a["mean"]) * a["rstd"])
    return {
        "c1": (x_hat * wdy).mean(-1, keepdims=True),
        "c2": center * wdy.mean(-1, keepdims=True),
    }


def _output(output, a, **means) -> np.ndarray:
    """An output of the right formula; means: c1, c2 or the leading rstd where they are not those of the arrays."""
    x_hat = a.get("x_hat", (a["p"] - a["mean"]) * a["rstd"])
    if output == "y":
        row = (
            a["x_hat"]
            if "x_hat" in a
            else means.get("lead", a["rstd"]) * (a["p"] - a["mean"])
        )
        return row * a["weight"] + a["bias"]
    if output in ("dw", "db"):
        return (a["dy"] * x_hat if output == "dw" else a["dy"]).sum(0)
    m = _means(a | {"x_hat": x_hat}, a["center"]) | means
    return (
        means.get("lead", a["rstd"])
        * (a["weight"] * a["dy"] - m["c2"] - x_hat * m["c1"])
        + a["g"]
    )


def _near(got, other) -> bool:
    return got.shape == other.shape and bool(
        (np.abs(got - other) <= NEAR * np.abs(other).max()).all()
    )


def _versions(target, known):
    """(key, words, arrays in the place of the right ones)."""
    spec, p, weight = target.arrays.spec, known["p"], known["weight"]

    def of_rows(p):
        q = p - spec.center * p.mean(-1, keepdims=True)
        return {
            "p": p,
            "mean": p - q,
            "rstd": 1 / np.sqrt((q * q).mean(-1, keepdims=True) + spec.eps),
        }

    backward = target.output != "y"
    if spec.center:
        yield (
            MISREAD,
            "mean and rstd have changed places",
            {"mean": known["rstd"], "rstd": known["mean"]},
        )
        yield (
            "mean-not-scaled",
            "x_hat = p * rstd - mean",
            {"x_hat": p * known["rstd"] - known["mean"]},
        )
    repeated = np.repeat(weight, len(p)).reshape(p.shape)
    yield MISPLACED, MISPLACED_WORDS, {"weight": repeated}
    if backward:
        yield (
            MISREAD,
            "x and weight have changed places",
            of_rows(weight + 0 * p) | {"weight": p},
        )
        yield MISREAD, "x and dy have changed places", of_rows(known["dy"]) | {"dy": p}
        yield MISREAD, "x and dy have changed places", {"p": known["dy"], "dy": p}
        wdy = weight * known["dy"] + known["g"]
        for kept in (0 * p, known["g"]) if known["g"].any() else ():
            words = "dresidual_out is added to weight * dy, and goes through the norm with it"
            yield (
                "dresidual-through-norm",
                words,
                {"dy": wdy, "weight": 1 + 0 * weight, "g": kept},
            )
        y = _output("y", known)
        yield SAVED_Y, "y stands for x", of_rows(y)
        yield SAVED_Y, "y stands for x", {"p": y}
    else:
        yield (
            MISREAD,
            "weight and bias have changed places",
            {"weight": known["bias"], "bias": weight},
        )
    if target.output == "dw":
        averaged = known["rstd"].mean(0, keepdims=True) + 0 * known["rstd"]
        yield (
            MIXED,
            "the rstd of all rows, averaged, stands for that of each row",
            {"rstd": averaged},
        )
    if not backward:
        squares = (known["rstd"] ** -2 - spec.eps).cumsum(0)
        words = "the squares of a row contain those of the rows before"
        yield MIXED, words, {"rstd": (squares + spec.eps) ** -0.5}
    # What begins one entry later in each row was read with the distance of columns between rows.
    case = target.arrays.case
    matrices = {"dy": known["dy"], "p": p, "g": known["g"]}
    if not backward:
        matrices = {
            "x": case.x,
            "residual": 0 * p if case.residual is None else case.residual,
        }
    for name, matrix in matrices.items():
        moved = matrices | {name: matrix[:1] + 0 * matrix}
        words = f"row 0 of {name} stands for all of its rows"
        yield (
            MIXED,
            words,
            moved if backward else of_rows(moved["x"] + moved["residual"]),
        )
    for count in range(1, len(matrices) + 1):
        for names in combinations(matrices, count):
            moved = matrices | {name: _sliding(matrices[name]) for name in names}
            yield (
                STRIDE,
                "rows one entry apart",
                moved if backward else of_rows(moved["x"] + moved["residual"]),
            )


def _overwritten(a) -> np.ndarray:
    """dx where each entry is written to wdy, and the means of the next one are taken there."""
    found, x_hat = a["weight"] * a["dy"], (a["p"] - a["mean"]) * a["rstd"]
    for j in range(found.shape[1]):
        c1, c2 = (x_hat * found).mean(-1), a["center"] * found.mean(-1)
        found[:, j] = a["rstd"][:, 0] * (found[:, j] - c2 - x_hat[:, j] * c1)
    return found + a["g"]


def _weight_moved(target, a) -> bool:
    """Whether each entry of y is that of some entry of the weight."""
    x_hat = (a["p"] - a["mean"]) * a["rstd"]
    tried = x_hat[..., None] * a["weight"] + a["bias"][:, None]
    fits = np.abs(tried - target.whole[..., None]) <= NEAR * np.abs(target.whole).max()
    return bool(fits.any(-1).all())


def _sliding(a):
    return a.ravel()[np.add.outer(np.arange(len(a)), np.arange(a.shape[1]))]


def _of_other_rows(target, a) -> str:
    """Which row's statistics the rows have, where each has those of some row, of all rows, or sums that went on."""
    output, rows = target.output, len(a["p"])
    if output != "y":
        for factor in (1, a["rstd"]):  # it may stand before the sum, or within it
            carried = {
                name: factor * (a[name] / factor).cumsum(0) for name in ("c1", "c2")
            }
            for names in (("c1", "c2"), ("c1",), ("c2",)):
                if _near(
                    target.whole,
                    _output(output, a, **{name: carried[name] for name in names}),
                ):
                    return f"{' and '.join(names)} of a row contains those of the rows before"

    def of(names, j):
        others = {name: a[name][j] if j < rows else a[name].mean(0) for name in names}
        if names[0] == "lead":
            return _output(
                output, a, lead=a["rstd"][j] if j < rows else a["rstd"].mean(0)
            )
        return (
            _output(output, a | others)
            if {"mean", "rstd"} & {*names}
            else _output(output, a, **others)
        )

    a = a | {"lead": a["rstd"]}
    ways = (
        ("mean", "rstd"),
        ("mean",),
        ("rstd",),
        ("lead",),
        ("c1", "c2"),
        ("c1",),
        ("c2",),
    )
    for names in ways[: 4 if output == "y" else 7]:
        tried = np.stack([of(names, j) for j in range(rows + 1)])
        fits = (
            np.abs(tried - target.whole) <= NEAR * np.abs(tried).max(-1, keepdims=True)
        ).all(-1)
        if fits.any(0).all() and not np.diag(fits).all():
            i = int(np.diag(fits).argmin())
            j = int(fits[:, i].argmax())
            which = "rstd" if names[0] == "lead" else " and ".join(names)
            return f"row {i} has the {which} of {f'row {j}' if j < rows else 'all rows, averaged'}"
    return ""


def _coefficients_of_rows(target, a) -> Explained | None:
    """c1 or c2 with another factor in each row, where nothing else is wrong; both are so where x_hat is another row."""
    if (
        target.output == "y"
        or a["p"].shape[1] < 8
        or flat_rows(target.arrays.case, target.arrays.spec).any()
    ):
        return None
    wdy, x_hat = a["weight"] * a["dy"], (a["p"] - a["mean"]) * a["rstd"]
    terms = {"u": wdy, "c2": np.ones_like(wdy) * a["center"], "c1": x_hat}
    found, left = by_row(target.whole - a["g"], list(terms.values()))
    size = np.abs(target.whole).max(-1)
    right = np.concatenate([a["rstd"], -a["rstd"] * a["c2"], -a["rstd"] * a["c1"]], 1)
    off = (
        np.abs(found - right) > 2**20 * NEAR * np.abs(right).max(-1, keepdims=True)
    ).any(0)
    if (np.abs(left).max(-1) > NEAR * size).any() or off[0] or off.sum() != 1:
        return None
    keys = tuple(
        f"coefficient-{name}" for name, wrong in zip(terms, off, strict=True) if wrong
    )
    return Explained(
        keys, target.right.parts, 0.5, "the factor is another one in each row"
    )
