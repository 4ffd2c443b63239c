"""Misconceptions about the factors of dx and dw: rstd, kappa, N, and what is averaged over a row."""

from __future__ import annotations

from .entry import KAPPA, MEAN, Misconception
from .mistakes_of_dx import ALONG

POWERS = (
    Misconception(
        "rstd-missing",
        "The factor rstd is missing",
        "the projection alone is the gradient, and q is the normalized row",
        "The size is wrong, most of all on rows that are large or small.",
        looks={"dx": ({"e": 0},), "dw": ({"v": ("q",)},), "y": ({"v": ("q",)},)},
    ),
    Misconception(
        "rstd-twice",
        "A factor rstd too many",
        "rstd is not yet in x_hat, or not yet in wdy",
        "The size is wrong, most of all on rows that are large or small.",
        looks={"dx": ({"e": 2}, {"e": 3}), "dw": ({"e": 1}, {"e": 2}), "y": ({"v": ("x_hat", "rstd")},)},
    ),
    Misconception(
        "rstd-inverted",
        "D stands where rstd belongs",
        "rstd is the denominator, not its reciprocal",
        "The size is wrong, most of all on rows that are large or small.",
        looks={"dx": ({"e": -1},), "dw": ({"v": ("q", "D")},), "y": ({"v": ("q", "D")},)},
    ),
    Misconception(
        "projection-power",
        "The projection has the wrong power of rstd",
        "the projection divides by the standard deviation, not by the variance",
        ALONG,
        looks={"dx": ({"e1": 0}, {"e1": 2}, {"e1": 3}, {"e1": -1})},
    ),
    Misconception(
        "rstd-in-some-terms",
        "rstd multiplies some of the terms only",
        "rstd belongs to one term, not to the bracket",
        "Look at which terms the leading factor multiplies.",
        looks={"dx": ({"e2": 0}, {"e1": 0, "e2": 0}, {"e0": 0}, {"e0": 0, "e2": 0}, {"e2": 2}, {"e0": 0, "e1": 0})},
    ),
    Misconception(
        "kappa-ignored",
        "kappa is missing: where eps stands does not reach the gradient",
        "eps leaves the gradient as it is",
        ALONG,
        "eps-rstd-slope",
        looks={"dx": ({"kap": 0},)},
        when=KAPPA,
    ),
    Misconception(
        "kappa-wrong",
        "kappa is inverted or squared",
        "D / s and s / D are one factor",
        ALONG,
        "eps-kappa",
        looks={"dx": ({"kap": -1}, {"kap": 2})},
        when=KAPPA,
    ),
    Misconception(
        "factor-n",
        "The sums are there, N or its reciprocal is missing or stands at the wrong terms",
        "the N of the closed form may be left out",
        "Compare how often each term is divided by the number of columns.",
        looks={
            "dx": ({"k": "N"}, {"k": "1/N"}, {"all": "N"}, {"all": "1/N"}, {"k0": "N"}, {"k0": "1/N"}),
            "dw": ({"all": "1/N"},),
        },
    ),
    Misconception(
        "not-reduced",
        "x_hat * wdy, or wdy, is not averaged over the row",
        "the Jacobian is diagonal",
        "Each entry of a row moves all outputs of the row.",
        looks={
            "dx": (
                {"red1": "none"},
                {"red1": "none", "k1": "1/N"},
                {"red1": "none", "k1": "1/N", "red2": "none", "k2": "1/N"},
                {"red1": "none", "red2": "none"},
                {"red2": "none"},
                {"red2": "none", "k2": "1/N"},
            )
        },
        alone=True,
    ),
    Misconception(
        "projection-exact",
        "The projection is divided by the sum of the squares of x_hat, not by N",
        "the squares of x_hat add up to N, eps or not",
        ALONG,
        looks={"dx": ({"v": ("q / s",)},)},
        when=MEAN,
    ),
    Misconception(
        "x_hat-missing",
        "x_hat is missing beside c1, or within it",
        "c1 is subtracted as it is, or c1 is the mean of wdy",
        ALONG,
        looks={"dx": ({"v1": ()}, {"v2": ()}, {"v": ()}, {"split": True})},
    ),
)
