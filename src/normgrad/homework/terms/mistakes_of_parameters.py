"""Misconceptions about dw and db: which rows are summed, and what stands under the sum."""

from __future__ import annotations

from .entry import SCALE, WEIGHT, Misconception

SUMMED = "Look at how the rows are put together."

PARAMETERS = (
    Misconception(
        "rows-averaged",
        "The mean over the rows stands for their sum",
        "a batch averages its gradients",
        SUMMED,
        looks={"dw": ({"red": "mean"},), "db": ({"red": "mean"},), "dx": ({"k": "1/M"}, {"all": "1/M"})},
    ),
    Misconception(
        "rows-not-summed",
        "One row stands for the sum over all rows",
        "each row overwrites the gradient",
        SUMMED,
        looks={"dw": ({"red": "last"}, {"red": "first"}), "db": ({"red": "last"}, {"red": "first"})},
    ),
    Misconception(
        "weight-in-dw",
        "dw contains the weight",
        "dw sums wdy * x_hat",
        "What does y's derivative by the weight still contain?",
        looks={"dw": ({"w": 1}, {"w": 2})},
        when=WEIGHT,
    ),
    Misconception(
        "weight-in-db",
        "db contains the weight",
        "db sums wdy",
        "What does y's derivative by the bias still contain?",
        looks={"db": ({"w": 1}, {"w": 2})},
        when=WEIGHT,
    ),
    Misconception(
        "dw-is-db",
        "x_hat is missing in dw, which is db",
        "weight and bias have one gradient",
        "What does y's derivative by the weight still contain?",
        looks={"dw": ({"v": (), "sc": 0}, {"v": ()})},
    ),
    Misconception(
        "db-is-dw",
        "db contains x_hat, it is dw",
        "weight and bias have one gradient",
        "What does y's derivative by the bias still contain?",
        looks={"db": ({"v": ("x_hat",), "sc": 1}, {"v": ("x_hat",)})},
    ),
    Misconception(
        "rstd-in-db",
        "db contains rstd",
        "everything on the way back is scaled by rstd",
        "What does y's derivative by the bias still contain?",
        looks={"db": ({"e": 1},)},
    ),
    Misconception(
        "scale-in-db",
        "db contains the constant scale",
        "the scale multiplies the bias too",
        "What does y's derivative by the bias still contain?",
        looks={"db": ({"sc": 1},)},
        when=SCALE,
    ),
    Misconception(
        "product-of-sums",
        "The product of two sums stands for the sum of the products",
        "sums may be taken factor by factor",
        SUMMED,
        looks={"dw": ({"split": True}, {"split": True, "red": "mean"})},
        alone=True,
    ),
)
