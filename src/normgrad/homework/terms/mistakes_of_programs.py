"""Misconceptions about what a program does beside its formula: blocks and masks, memory, races, and formats.

Most have no look of their own: the stage that sees them names them. A wrong count or a wrong eps is found as a formula.
"""

from __future__ import annotations

from .entry import STREAM, Misconception

# What makes numbers wrong although no formula is.
SPOILS = ("out-of-bounds", "race", "rows-left-out", "stride-ignored")
# What a block that is wider than a row does to a formula.
BLOCKS = ("block-for-columns", "padding-counted")
PROGRAMS = (
    Misconception(
        "block-for-columns",
        "A mean is divided by the width of the block, not by the number of columns",
        "a block is as wide as the row",
        "Look at what the sums are divided by, for rows that do not fill their block.",
        "kern-tile",
        looks={
            "dx": ({"k1": "N/B"}, {"k2": "N/B"}, {"k1": "N/B", "k2": "N/B"}),
            "y": tuple({"stats": f"{which} of the block"} for which in ("mean", "variance", "statistics")),
        },
        when=STREAM,
        alone=True,
    ),
    Misconception(
        "out-of-bounds",
        "A program reads or writes past the end of its tensor",
        "a block is as wide as the row, and the rows fill the programs",
        "Look at the mask of each load and store, for the last columns and for the last rows.",
        "kern-tile",
    ),
    Misconception(
        "stride-ignored",
        "The strides of an input are ignored",
        "the rows of a matrix lie one behind the other",
        "Look at how far apart two rows are, and two entries of a row.",
    ),
    Misconception(
        "one-shape",
        "It is right for one shape of x, and not for another",
        "x has the shape that it has in the example",
        "Look for a number of rows or columns, or a power of two, that the code takes for granted.",
    ),
    Misconception(
        "results-swapped",
        "Right results are returned in the wrong order",
        "the caller knows which result is which",
        "Compare what the last line returns with the signature.",
    ),
    Misconception(
        "axis-of-one",
        "A result has an axis of length 1 too many, or too few",
        "keepdims changes nothing",
        "Which axes does the signature name for this result?",
    ),
    Misconception(
        "nones-left-out",
        "backward returns less than one gradient for each input",
        "an input without a gradient needs no place",
        "Count the inputs of forward, eps among them. What stands in the place of each?",
    ),
    Misconception(
        "rows-left-out",
        "Some rows are never computed",
        "the rows are a multiple of what the programs take",
        "Count the rows that all programs together take.",
    ),
    Misconception(
        "race",
        "Two programs share a place in memory, and one of them writes there",
        "programs run one after the other",
        "Look at which program writes where.",
    ),
    Misconception(
        "atomics",
        "Programs add to one place with atomics",
        "the order of a sum does not matter",
        "Look at which programs add to one place, and in which order they do it.",
    ),
    Misconception(
        "work-outside",
        "torch computes what the kernel should",
        "one more pass over the matrix costs nothing",
        "Look at what the launcher does with whole matrices.",
    ),
    Misconception(
        "python-in-kernel",
        "A kernel computes with Python or torch in its body",
        "what the interpreter runs is a kernel",
        "Which lines of the kernel would a GPU not know?",
    ),
    Misconception(
        "sum-not-rounded",
        "The sum is normalized before it is rounded",
        "what is stored is what was computed",
        "Look at which row the statistics belong to: the one that is returned, or the one before it was stored.",
        "res-forward",
    ),
    Misconception(
        "eps-rounded",
        "eps is rounded to float32 on its way",
        "a number has the format of the arrays that it meets",
        "Nothing is wrong with the formula. Look at the format in which eps arrives.",
    ),
    Misconception(
        "narrow-intermediate",
        "An intermediate result is kept in 16 bits",
        "arithmetic may have the format of the inputs",
        "Nothing is wrong with the formula. Look at the format of each intermediate result.",
    ),
    Misconception(
        "wide-arithmetic",
        "Computed in a wider format than float32",
        "more digits are the way out",
        "Look at the format of each intermediate result.",
        "fp-correction",
    ),
    Misconception(
        "input-overwritten",
        "An input is written to",
        "an argument belongs to the function that gets it",
        "Look at which names stand for the same memory.",
    ),
    Misconception(
        "warns",
        "Something is computed that has no value, and thrown away",
        "what is not used does no harm",
        "Look at what is computed before one of two results is chosen.",
    ),
    Misconception(
        "global-read",
        "A gradient reads a variable that all layers share",
        "there is one layer",
        "Look at where each number of the backward comes from.",
    ),
    Misconception(
        "saves-too-much",
        "More is kept from forward to backward than backward needs",
        "what is computed once should be kept",
        "Which of the kept tensors can be computed again from the others?",
        "ln-forward",
    ),
    Misconception(
        "kept-on-ctx",
        "A tensor is kept where autograd does not look after it",
        "ctx is a place like any other",
        "Look at how each tensor gets from forward to backward.",
    ),
    Misconception(
        "constant-to-autograd",
        "Something that depends on the inputs is a constant to the second derivative",
        "what forward computed, or what is detached, still knows where it came from",
        "Look at how each tensor of backward is connected with the inputs.",
        "twice-dx",
    ),
    Misconception(
        "root-for-reciprocal",
        "The root stands where its reciprocal belongs",
        "rstd is the root mean square",
        "Which unit does it have, when the row has metres?",
    ),
    Misconception(
        "deviation-for-variance",
        "The standard deviation stands where the variance belongs",
        "both measure how far a row spreads",
        "Look at what happens when a row is multiplied by a number.",
        "fp-statistics",
    ),
    Misconception(
        "empty-blocks",
        "Two empty blocks are divided by zero",
        "together two blocks have at least one number",
        "Try two blocks without any number.",
        "fp-merge",
    ),
)
