"""The entries whose result is wrong by a formula or by a rounding."""

from __future__ import annotations

from functools import partial

from ...spec import L2_NORM, LAYER_NORM, RMS_NORM
from . import checks, formulas, harm, looks, ours, precision, usual
from .entry import INPUT_ONLY, NORM, PLAIN, ROWS, STRONG, WITH_STREAM, Bug, values
from .looks import Look

RMS = RMS_NORM.replace(eps=1e-6)
GEMMA = RMS.replace(weight_offset=1.0)

FORMULAS = (
    values(
        "weight twice",
        "each entry of dx carries its weight",
        formulas.weight_twice,
        None,
        Look("weights of both signs", looks.rows(8, 64, *PLAIN, "bias"), RMS),
        Look("weight 1", looks.unit_weight(8, 64, *PLAIN, "bias"), RMS, allowed=usual.FIXED["float32"]),
        "dx",
        key="y-for-x_hat",
    ),
    values(
        "offset forgotten",
        "a constant has no gradient",
        formulas.offset_forgotten,
        None,
        Look("an offset of 1, random dy", looks.rows(8, 64, *PLAIN, "bias"), GEMMA),
        Look("only y", looks.rows(8, 64, *PLAIN, "bias"), GEMMA, allowed=usual.FIXED["float32"], outputs=("y",)),
        "dx",
    ),
    values(
        "no dw",
        "norm weights are frozen",
        formulas.no_weight_gradient,
        None,
        STRONG,
        INPUT_ONLY,
        "dw",
        "dw is absent",
        key="gradient-missing",
    ),
    values(
        "residual first",
        "both gradients meet at the norm's output",
        formulas.residual_first,
        None,
        WITH_STREAM,
        Look("only y in the loss", looks.rows(8, 64, "dresidual_out"), LAYER_NORM, allowed=usual.FIXED["float32"]),
        "dx",
        key="dresidual-through-norm",
    ),
    values(
        "first block",
        "no residual came in, so none has a gradient",
        formulas.first_block,
        None,
        Look("residual returned, none given", looks.rows(8, 64, "residual"), LAYER_NORM),
        Look("a residual is given", ROWS, LAYER_NORM, allowed=usual.FIXED["float32"]),
        "dx",
        key="dresidual-forgotten",
    ),
    Bug(
        "gate order",
        "the stream joins wherever dx is at hand",
        formulas.gate_order_wrong,
        formulas.gate_order_right,
        checks.check_gate,
        "the gradients give the slope",
        partial(checks.check_gate, stream=0.0),
        "dgate",
        harm.gated,
        ours=ours.gate,
        backends=ours.AUTOGRAD,
    ),
    values(
        "eps on the sum",
        "eps is too small to matter",
        formulas.eps_on_the_sum,
        None,
        Look("rows of size 0.001", looks.rows(8, 64, *PLAIN, scale=1e-3), LAYER_NORM),
        Look("rows of size 1", NORM, LAYER_NORM, allowed=usual.FIXED["float32"], outputs=("y",)),
        "y",
        key="eps-on-sum",
    ),
)

PRECISION = (
    values(
        "one pass",
        "E[x^2] - E[x]^2 is the variance",
        precision.one_pass,
        None,
        Look("float16, mean 8", looks.rows(8, 512, *PLAIN, offset=8), LAYER_NORM, "float16"),
        Look("float32, mean 0", looks.rows(8, 512, *PLAIN), LAYER_NORM, "float32", usual.FIXED["float32"]),
        "y",
        key="one-pass-variance",
    ),
    values(
        "16-bit offset",
        "1 + w is a weight like any other",
        precision.offset_in_dtype,
        None,
        Look("computed bounds", looks.rows(8, 64, *PLAIN, "bias"), GEMMA, "bfloat16"),
        Look("0.05", looks.rows(8, 64, *PLAIN, "bias"), GEMMA, "bfloat16", usual.FIXED["bfloat16"], ("y",)),
        "y",
        harm=harm.factors,
        unit="factors for 128 weights",
    ),
    values(
        "16-bit statistics",
        "two numbers a row are not worth 32 bits",
        precision.statistics_in_dtype,
        None,
        Look("bfloat16, mean 100", looks.rows(64, 512, *PLAIN, offset=100), LAYER_NORM, "bfloat16"),
        Look("mean 0", looks.rows(64, 512, *PLAIN), LAYER_NORM, "bfloat16", usual.FIXED["bfloat16"], ("y", "dx")),
        "dw",
        r"d[xw]\[",
        key="narrow-statistics",
    ),
    values(
        "gradient from y",
        "y is x_hat, so x need not be kept",
        precision.gradient_from_y,
        None,
        Look("dy nearly along y", looks.along_x(64, 128), L2_NORM, "bfloat16"),
        Look("random dy", looks.rows(64, 128, *PLAIN, "weight", "bias"), L2_NORM, "bfloat16", usual.FIXED["bfloat16"]),
        "dx",
        key="narrow-intermediate",
    ),
    values(
        "16-bit partial sums",
        "dw is stored in 16 bits anyway",
        precision.partial_sums_in_dtype,
        None,
        Look("bfloat16, 256 rows", looks.rows(256, 16, *PLAIN), LAYER_NORM, "bfloat16"),
        Look(
            "float16, dy scaled by 0.1",
            looks.rows(256, 16, *PLAIN, dy=0.1),
            LAYER_NORM,
            "float16",
            usual.FIXED["float16"],
        ),
        "dw",
        harm=harm.many_rows,
        key="narrow-intermediate",
    ),
    Bug(
        "order of arrival",
        "addition is commutative",
        precision.in_order_of_arrival,
        precision.in_fixed_order,
        checks.check_order,
        "other bits",
        usual.one_order,
        "entries of dw whose bits change",
        harm.changed,
        backends=(),
        key="atomics",
    ),
)
