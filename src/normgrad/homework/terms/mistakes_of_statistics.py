"""Misconceptions about which row is normalized and by what; they reach y, dx and dw."""

from __future__ import annotations

from .entry import CENTRED, PLAIN, Misconception

LENGTH = "The rows have the right direction and the wrong length: look at the denominator."
P_RSTD = ("p", "rstd")


def _everywhere(*stats, **more):
    """The same statistics in y, dx and dw."""
    changes = tuple({"stats": each} for each in stats)
    return {"y": changes, "dw": changes, "dx": (*changes, *more.get("dx", ()))}


def _axes(axis):
    """c1, c2 or both along another axis; there it matters which powers of rstd stand inside of the mean."""
    one = [{"a1": axis, "e1": 2, "v2": ("q",)}, {"a1": axis}, {"a1": axis, "e1": 0, "v2": ("x_hat", "rstd")},
           {"a1": axis, "e1": 0, "v1": ("q",), "v2": ("x_hat", "rstd", "rstd")}]  # fmt: skip
    other = [{"a2": axis}, {"a2": axis, "e2": 0, "v3": ("rstd",)}]
    return [*one, *other, *(c1 | c2 for c1 in one for c2 in other)]


STATISTICS = (
    Misconception(
        "y-for-x_hat",
        "y stands where x_hat belongs: weight and bias are forgotten",
        "y is the normalized row",
        "Look at which row the cotangent is multiplied by.",
        looks={
            "dx": ({"v": ("y",)}, {"v1": ("y",)}, {"v2": ("y",)}, {"v2": ("y",), "w1": 0, "sc1": 0}),
            "dw": ({"v": ("y",)},),
        },
    ),
    Misconception(
        "x-for-x_hat",
        "x stands where x_hat belongs: it is neither centred nor scaled",
        "the row that came in is the row that counts",
        "Look at which row the cotangent is multiplied by.",
        looks={
            "dx": ({"v": ("p",)}, {"v1": ("p",)}, {"v2": ("p",)}, {"v": ("x",)}),
            "dw": ({"v": ("p",)}, {"v": ("x",)}),
            "y": ({"v": ("p",)}, {"v": ("x",)}),
        },
    ),
    Misconception(
        "centring-missing",
        "The rows are not centred",
        "dividing by the spread is enough",
        "Look at what is subtracted from the row.",
        looks={
            "dx": (
                *({name: P_RSTD} for name in ("v", "v1", "v2")),
                *({"stats": "centring"} | more for more in ({}, {"k2": 0})),
            ),
            "dw": ({"v": P_RSTD}, {"stats": "centring"}),
            "y": ({"v": P_RSTD}, {"stats": "centring"}),
        },
        when=CENTRED,
    ),
    Misconception(
        "centring-added",
        "The rows are centred, in a norm that does not centre",
        "every norm subtracts the mean",
        "Look at what is subtracted from the row.",
        looks=_everywhere("centring", dx=({"stats": "centring", "k2": 1},)),
        when=PLAIN,
    ),
    Misconception(
        "variance-uncentred",
        "The squares of the row before centring are averaged",
        "the mean square is the variance",
        LENGTH,
        looks=_everywhere("uncentred variance"),
        when=CENTRED,
    ),
    Misconception(
        "variance-for-mean-square",
        "The variance stands for the mean square: the row is centred before it is squared",
        "every norm divides by the standard deviation",
        LENGTH,
        looks=_everywhere("variance for mean square"),
        when=PLAIN,
    ),
    Misconception(
        "padding-counted",
        "The columns past N are counted in the variance",
        "what is masked when it is loaded stays 0",
        "Look at what the padding columns hold after the row is centred.",
        "kern-padded-variance",
        looks=_everywhere("padding counted"),
        when=CENTRED,
        alone=True,
    ),
    Misconception(
        "residual-left-out",
        "The residual is left out: the statistics are those of x alone",
        "the residual is added for the next layer only",
        "Look at which row is normalized.",
        {"y": "res-forward", "dx": "res-forward"},
        looks=_everywhere("x alone"),
    ),
    Misconception(
        "wrong-axis",
        "A statistic or a mean runs over the rows, or over the whole matrix",
        "axis=0 is the axis of the features",
        "Each row is a matter of its own: look at the axes.",
        looks={
            "dx": (
                *({"stats": "axis 0"} | more for more in ({}, {"a": 0})),
                *({"stats": "no axis"} | more for more in ({}, {"a": None})),
                *(change for axis in (0, None) for change in _axes(axis)),
            ),
            "dw": ({"stats": "axis 0"}, {"stats": "no axis"}),
            "y": ({"stats": "axis 0"}, {"stats": "no axis"}),
        },
    ),
    Misconception(
        "reduce-exchanged",
        "Sum and mean of the squares are exchanged",
        "the norm of a row and its root mean square are one thing",
        LENGTH,
        looks=_everywhere("other reduce", dx=({"stats": "other reduce", "k1": "other n"},)),
    ),
    Misconception(
        "root-missing",
        "The root is missing: the row is divided by the variance",
        "rstd is one over the variance",
        LENGTH,
        looks=_everywhere("no root"),
    ),
    Misconception(
        "eps-on-sum",
        "eps stands beside the sum where it belongs beside the mean, or the other way round",
        "eps may stand beside the sum as well as beside the mean",
        LENGTH,
        "eps-sum-mean",
        looks=_everywhere("eps on sum"),
    ),
    Misconception(
        "eps-missing",
        "eps is missing",
        "eps is too small to matter",
        LENGTH,
        looks=_everywhere("eps missing", dx=({"stats": "eps missing, rstd alone"},)),
    ),
    Misconception(
        "eps-placement",
        "eps stands elsewhere in the denominator",
        "inside the root, outside it and as a floor are the same",
        LENGTH,
        "eps-kappa",
        looks=_everywhere(
            *(f"eps {where}{own}" for where in ("inside", "outside", "clamp") for own in ("", ", its kappa")),
            dx=tuple({"stats": f"eps {where}, rstd alone"} for where in ("inside", "outside", "clamp")),
        ),
    ),
    Misconception(
        "eps-squared", "eps is squared", "eps is a length like s", LENGTH, looks=_everywhere("eps squared"), alone=True
    ),
    Misconception(
        "eps-value",
        "eps has another value",
        "any small eps will do",
        LENGTH,
        looks=_everywhere(*(f"eps = {eps}" for eps in ("0.001", "1e-05", "1e-06", "1e-08", "1e-12"))),
        alone=True,
    ),
    Misconception(
        "narrow-statistics",
        "rstd is kept in a 16-bit dtype",
        "the statistics may be kept in the input's dtype",
        "Nothing is wrong with the formula. Look at the dtype of each intermediate result.",
        looks=_everywhere("bfloat16 rstd", "truncated rstd", "float16 rstd"),
        alone=True,
    ),
)
