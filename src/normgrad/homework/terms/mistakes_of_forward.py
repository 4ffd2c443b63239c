"""Misconceptions about weight, scale, bias and cotangent, in y and on the way back."""

from __future__ import annotations

from .entry import BIAS, NO_BIAS, SCALE, WEIGHT, Misconception

SHAPES = (
    Misconception(
        "weight-missing",
        "The weight is missing: dy stands for wdy",
        "the weight only scales the output",
        "Follow the weight from y back to x.",
        looks={"dx": ({"w": 0},), "y": ({"w": 0},)},
        when=WEIGHT,
    ),
    Misconception(
        "weight-twice",
        "The weight is multiplied in twice",
        "the weight belongs in dy and in the Jacobian",
        "Follow the weight from y back to x.",
        looks={"dx": ({"w": 2}, {"wp": 1}), "y": ({"w": 2},)},
        when=WEIGHT,
    ),
    Misconception(
        "weight-after",
        "The weight is applied after the projection: the Jacobian, not its transpose",
        "the weight commutes with the Jacobian",
        "Follow the weight from y back to x.",
        looks={"dx": ({"w": 0, "wp": 1},)},
        when=WEIGHT,
    ),
    Misconception(
        "weight-in-some-terms",
        "Some terms have dy where others have wdy",
        "the weight belongs to one term, not to the cotangent",
        "Follow the weight from y back to x.",
        looks={"dx": ({"w0": 0}, {"w1": 0}, {"w2": 0}, {"w1": 0, "w2": 0}, {"w0": 0, "w2": 0}, {"w0": 0, "w1": 0})},
        when=WEIGHT,
    ),
    Misconception(
        "weight-divided",
        "Divided by the weight",
        "going back undoes the weight",
        "Follow the weight from y back to x.",
        looks={"dx": ({"w": -1},), "dw": ({"w": -1},), "y": ({"w": -1},)},
        when=WEIGHT,
    ),
    Misconception(
        "scale-missing",
        "The constant scale is missing",
        "a constant has no gradient, so it plays no part",
        "Follow the constant scale from y back.",
        looks={"dx": ({"sc": 0},), "dw": ({"sc": 0},), "y": ({"sc": 0},)},
        when=SCALE,
    ),
    Misconception(
        "scale-twice",
        "The constant scale is multiplied in twice",
        "the scale belongs in the cotangent and in the normalized row",
        "Follow the constant scale from y back.",
        looks={"dx": ({"sc": 2},), "dw": ({"sc": 2},), "y": ({"sc": 2},)},
        when=SCALE,
    ),
    Misconception(
        "zero",
        "Nothing arrives: the result is 0",
        "the operator has no gradient here",
        "A result of 0 is not expected here.",
        looks={output: ({"all": 0},) for output in ("dx", "dw", "db", "y")},
        alone=True,
    ),
    Misconception(
        "ones-for-dy",
        "dy is replaced by ones: the gradient of the sum of y",
        "the loss is the sum of the outputs",
        "The gradient must change when dy changes.",
        looks={"dx": ({"dy": ()},), "dw": ({"dy": ()},), "db": ({"dy": ()},)},
    ),
    Misconception(
        "y-for-dy",
        "y stands where dy belongs",
        "the output is its own cotangent",
        "The gradient must change when dy changes.",
        looks={"dx": ({"dy": ("y",)},), "dw": ({"dy": ("y",)},), "db": ({"dy": ("y",)},)},
        alone=True,
    ),
    Misconception(
        "negated",
        "The sign is the other way round",
        "a gradient points downhill",
        "Look at the sign.",
        looks={output: ({"all": -1},) for output in ("dx", "dw", "db", "y")},
    ),
    Misconception(
        "identity",
        "dy is handed on as it is, or x is",
        "the norm leaves what it gets as it is",
        "The operator is not the identity.",
        looks={
            "dx": tuple({"k1": 0, "k2": 0, "e0": 0, "w0": 0, "sc": 0} | more for more in ({}, {"kg": 0})),
            "y": tuple({"v": (row,), "sc": 0, "w": 0, "kb": 0} for row in ("p", "x")),
        },
        alone=True,
    ),
)

OUTPUT = (
    Misconception(
        "bias-missing",
        "The bias is missing, or has the wrong sign or factor",
        "the bias is optional",
        "Look at what the bias adds to y.",
        looks={"y": ({"kb": 0}, {"kb": -1}, {"kb": 2})},
        when=BIAS,
    ),
    Misconception(
        "bias-weighted",
        "The bias is multiplied by the weight",
        "weight and bias may be applied in either order",
        "Look at the order of weight and bias.",
        looks={"y": ({"bw": 1},)},
        when=BIAS,
    ),
    Misconception(
        "weight-plus-one",
        "1 + weight stands for the weight",
        "the weight is stored as its distance from 1",
        "Follow the weight to y.",
        looks={"y": ({"kw1": 1},), "dx": ({"w": "1+weight"},)},
        when=WEIGHT,
    ),
    Misconception(
        "absent-bias-one",
        "An absent bias is taken for 1",
        "no weight and no bias mean 1 and 1",
        "What does an absent bias add?",
        looks={"y": ({"one": 1},)},
        when=NO_BIAS,
    ),
    Misconception(
        "stream-added-to-y",
        "The residual, or the sum, is added to y after the norm",
        "the residual connection ends at y",
        "y is the norm's output alone.",
        "res-forward",
        looks={"y": ({"kr": 1}, {"kp": 1}, {"stats": "x alone", "kr": 1}, {"stats": "x alone", "kp": 1})},
    ),
)
