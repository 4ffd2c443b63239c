"""The entries about memory, about autograd and the compiler, and about tests that cannot fail."""

from __future__ import annotations

from functools import partial

from ...spec import LAYER_NORM
from . import checks, formulas, graph, harm, looks, memory, ours, usual
from .entry import AT_ONE, EIGHTH, INPUT_ONLY, NORM, PLAIN, STRONG, WITH_STREAM, Bug, values
from .looks import Look

MEMORY = (
    Bug(
        "written over dy",
        "nobody needs dy after the backward",
        memory.over_dy,
        memory.gradients,
        checks.check_cotangent,
        "dy was overwritten",
        usual.one_call,
        "dx of norm(x) + x",
        harm.shared_cotangent,
        ours=ours.gradients,
    ),
    values("dw too late", "dy is still in its buffer", memory.dw_too_late, None, STRONG, INPUT_ONLY, "dw"),
    values(
        "buffer dropped",
        "a name that is None was never given",
        memory.buffer_dropped,
        None,
        WITH_STREAM,
        Look("no residual", NORM, LAYER_NORM, allowed=usual.FIXED["float32"]),
        "residual_out",
        r"y\[",
    ),
    Bug(
        "stride of x",
        "x and dy have one shape, so one layout",
        memory.stride_of_x,
        memory.gradients,
        checks.check_layouts,
        "columns first",
        partial(checks.check_layouts, layouts=usual.dense),
        "dx of a transposed dy",
        harm.transposed,
        ours=ours.gradients,
    ),
    Bug(
        "32-bit offset",
        "row * stride is an index, and indices are int",
        memory.offset_in_32_bits,
        memory.offset_in_64_bits,
        checks.check_offsets,
        "begins at -",
        partial(checks.check_offsets, stride=8192),
        "rows misplaced, of 100,000 x 65,536",
        harm.wrapped,
        backends=(),
    ),
    Bug(
        "one row too many",
        "rows are numbered up to M",
        memory.one_row_too_many,
        memory.rows_as_many_as_there_are,
        checks.check_stays_inside,
        "past the last row",
        partial(checks.check_stays_inside, counts=(4, 8)),
        "memory past the end",
        harm.past_the_end,
        "numbers",
        backends=(),
    ),
    values(
        "no rows",
        "a batch is never empty",
        memory.no_rows,
        memory.at_least_one_program,
        Look("no rows", looks.rows(0, 64, *PLAIN), LAYER_NORM),
        STRONG,
        "dw",
        "by zero",
        unit="crash",
    ),
)

GRAPH = (
    Bug(
        "cut graph",
        "a backward is only ever run once",
        graph.Layer(graph.CutGraph),
        graph.Layer(graph.WholeGraph),
        checks.check_second,
        "Jacobian mismatch|expected to be zero",
        usual.first_derivative,
        "gradient of a gradient penalty",
        harm.penalty,
        backends=ours.AUTOGRAD,
    ),
    Bug(
        "a kernel per batch",
        "a constant makes the loop fast",
        graph.key_with_rows,
        graph.key_without_rows,
        checks.check_one_variant,
        "ask for [12][0-9] compiled",
        usual.one_length,
        "kernels compiled for 20 batch sizes",
        harm.variants,
        "",
        backends=(),
    ),
)

TESTS = (
    values(
        "sum as loss",
        "any loss tests a gradient",
        formulas.dx_is_zero,
        None,
        STRONG,
        Look(
            "loss y.sum(), weight 1", looks.sum_loss(8, 64), LAYER_NORM, allowed=usual.FIXED["float32"], outputs=("dx",)
        ),
        "dx",
    ),
    values("weight of ones", "a fresh layer is a layer", formulas.weight_left_out, None, STRONG, AT_ONE, "dx"),
    values(
        "one-sided",
        "a small maximum is a small error",
        formulas.off_by_a_thousand,
        None,
        STRONG,
        usual.one_sided,
        "y",
        harm=harm.furthest,
        unit="",
    ),
    Bug(
        "a buffer and itself",
        "two results that agree are right",
        memory.twice_over_dy,
        memory.gradients,
        checks.check_cotangent,
        "dy was overwritten",
        usual.two_calls_agree,
        "dx",
        harm.doubled,
        ours=ours.gradients,
    ),
    values(
        "a fixed tolerance",
        "0.05 is small",
        formulas.projection_dropped,
        None,
        Look("dy along x_hat and 1, N = 4096", looks.aligned(4, 4096), LAYER_NORM, "bfloat16"),
        EIGHTH,
        "dx",
    ),
)
