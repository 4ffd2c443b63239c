"""The table of mistakes: what was believed, a hint that gives nothing away, the equation it violates, and its look.

A look is a change of the right recipe (formulas.py), one or several an output: {"k1": 0} is a dx in which the
coefficient of x_hat * c1 is 0. Two changes that name different fields make a double mistake. Mistakes without a look
are named by the stage that sees them. Where two cannot be told apart, the earlier one is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNKNOWN, REFUSED = "unknown", "hidden-by-rounding"
# What makes numbers wrong although no formula is.
SPOILS = ("out-of-bounds", "race", "rows-left-out", "stride-ignored")
# What a block that is wider than a row does to a formula.
BLOCKS = ("block-for-columns", "padding-counted")


@dataclass(frozen=True)
class Mistake:
    """A belief that leads to something wrong.

    Args:  key; title, what is wrong, naming the term; belief, what its author held for true; hint, which names no term
           and no coefficient
           equation: the label of the violated equation where it is not the output's own, or {output: label}
           looks: {output: changes of the right recipe}, "dx" standing for dresidual too
           when: "centred", "plain", "weight", "bias", "no bias" or "stream": the settings in which it has a meaning
           alone: whether it is left out of double mistakes; found, right: what is there and what is needed, where
           that is always the same
    """

    key: str
    title: str
    belief: str
    hint: str
    equation: str | dict[str, str] = ""
    looks: dict[str, list[dict]] = field(default_factory=dict)
    when: str = ""
    alone: bool = False
    found: str = ""
    right: str = ""

    def fits(self, setting) -> bool:
        """Whether it has a meaning in a setting: without a weight, none is forgotten."""
        center = setting.spec.center
        return {"centred": center, "plain": not center, "weight": setting.weight, "bias": setting.bias,
                "no bias": not setting.bias, "stream": setting.stream}.get(self.when, True)  # fmt: skip


def _(key, title, belief, hint, equation="", when="", alone=False, found="", right="", **looks):
    return Mistake(key, title, belief, hint, equation, looks, when, alone, found, right)


def _rows(*stats, dx=()):
    """Looks of statistics that are wrong wherever they are used; dx: looks of dx alone."""
    own = [{"stats": each} for each in stats]
    return {"y": own, "dw": own, "dx": [*own, *dx]}


def _over(axis):
    """Looks of a dx whose c1, c2 or both are means along another axis: rstd stands before the mean, or within it."""
    c1 = [{"e1": 2, "v2": ("q",)}, {}, {"e1": 0, "v2": ("x_hat", "rstd")},
          {"e1": 0, "v1": ("q",), "v2": ("x_hat", "rstd", "rstd")}]  # fmt: skip
    c1 = [{"a1": axis} | each for each in c1]
    c2 = [{"a2": axis}, {"a2": axis, "e2": 0, "v3": ("rstd",)}]
    return [*c1, *c2, *(one | other for one in c1 for other in c2)]


DENOMINATOR = "The rows have the right direction and the wrong length: look at the denominator."
STREAM, WEIGHT = "Look at how dresidual_out enters dx.", "Follow the weight from y back to x."
PROJECTION = "The part of dx along x_hat is wrong."
MISTAKES = {each.key: each for each in (
    _("c1-dropped", "rstd's dependence on x is ignored: - x_hat * c1 is missing", "rstd does not depend on x",
      PROJECTION, dx=[{"k1": 0}]),
    _("c2-dropped", "The mean's dependence on x is ignored: - c2 is missing", "the mean does not depend on x",
      "The part of dx that is the same in a whole row is wrong.", when="centred", dx=[{"k2": 0}]),
    _("statistics-constant", "Mean and rstd are treated as constants: - c2 and - x_hat * c1 are missing",
      "the statistics are numbers, not functions of x", "dx is more than the cotangent times the local derivative.",
      when="centred", dx=[{"k1": 0, "k2": 0}]),
    _("projection-sign", "x_hat * c1 is added, not subtracted", "the derivative of 1 / D has no minus sign", PROJECTION,
      dx=[{"k1": -1}]),
    _("c2-sign", "c2 is added, not subtracted", "the derivative of p - mean by the mean is 1",
      "The part of dx that is the same in a whole row is wrong.", when="centred", dx=[{"k2": -1}]),
    _("bessel", "Divided by N - 1, not by N", "the variance of a row is Bessel's",
      "Look at what the sums are divided by.", dx=[{"k1": "N/(N-1)"}, {"stats": "bessel"}, {"stats": "bessel",
      "k1": "N/(N-1)"}, {"k2": "N/(N-1)"}, {"k1": "N/(N-1)", "k2": "N/(N-1)"}, {"stats": "bessel, rstd alone"}],
      dw=[{"stats": "bessel"}], y=[{"stats": "bessel"}]),
    _("sum-for-mean-c1", "c1 is a sum, not a mean", "the squares are summed, not averaged", PROJECTION,
      dx=[{"k1": "N"}]),
    _("sum-for-mean-c2", "c2 is a sum, not a mean", "the adjoint of a mean is a sum",
      "The part of dx that is the same in a whole row is wrong.", when="centred", dx=[{"k2": "N"}]),
    _("divided-twice", "A mean is divided by N once more", "the derivative of a mean needs its own 1 / N",
      "Look at what the sums are divided by.", dx=[{"k1": "1/N"}, {"k2": "1/N"}, {"k1": "1/N", "k2": "1/N"}]),
    _("factor-two", "x_hat * c1 has the factor 2 or 1 / 2",
      "the 2 of the square and the 1 / 2 of the root do not cancel", PROJECTION, dx=[{"k1": 2}, {"k1": "1/2"}]),
    _("divided-by-rows", "Divided by M, the number of rows, not by N", "x.shape[0] is the length of a row",
      "Look at what the sums are divided by.", dx=[{"k1": "N/M"}, {"k2": "N/M"}, {"k1": "N/M", "k2": "N/M"}],
      y=[{"stats": "squares divided by M"}, {"stats": "divided by M"}]),
    _("c2-added", "c2 is subtracted in a norm that does not centre", "every norm has LayerNorm's gradient",
      "The part of dx that is the same in a whole row is wrong.", when="plain", dx=[{"k2": 1}]),
    _("dresidual-forgotten", "dresidual_out is not added", "only y feeds the loss", STREAM, equation="res-dx",
      when="stream", dx=[{"kg": 0}]),
    _("dresidual-through-norm", "dresidual_out goes through the norm", "both cotangents enter at y", STREAM,
      equation="res-dx", when="stream", dx=[{"kg": 0, "dy": ("dy+g", )}, {"dy": ("dy+g", )}], dw=[{"dy": ("dy+g", )}],
      db=[{"dy": ("dy+g", )}]),
    _("dresidual-sign", "dresidual_out is subtracted", "the stream's gradient is taken off the norm's", STREAM,
      equation="res-dx", when="stream", dx=[{"kg": -1}]),
    _("dresidual-twice", "dresidual_out is added twice", "x and residual each bring it in", STREAM, equation="res-dx",
      when="stream", dx=[{"kg": 2}]),
    _("dresidual-halved", "dresidual_out is halved", "x and residual share the gradient of their sum", STREAM,
      equation="res-dx", when="stream", dx=[{"kg": "1/2"}, {"all": "1/2"}]),
    _("dresidual-scaled", "dresidual_out is multiplied by rstd or by the weight",
      "everything that reaches x is scaled like wdy", STREAM, equation="res-dx", when="stream", dx=[{"eg": 1},
      {"wg": 1}, {"eg": 1, "wg": 1}]),
    _("dresidual-alone", "Only dresidual_out arrives, the norm's part is missing",
      "the residual bypasses the norm, so its gradient does too",
      "The gradient of the residual is more than the stream's.", equation="res-dx", when="stream", dx=[{"k0": 0,
      "k1": 0, "k2": 0}]),
    _("weight-missing", "The weight is missing: dy stands for wdy", "the weight only scales the output", WEIGHT,
      when="weight", dx=[{"w": 0}], y=[{"w": 0}]),
    _("weight-twice", "The weight is multiplied in twice", "the weight belongs in dy and in the Jacobian", WEIGHT,
      when="weight", dx=[{"w": 2}, {"wp": 1}], y=[{"w": 2}]),
    _("weight-after", "The weight is applied after the projection: the Jacobian, not its transpose",
      "the weight commutes with the Jacobian", WEIGHT, when="weight", dx=[{"w": 0, "wp": 1}]),
    _("weight-in-some-terms", "Some terms have dy where others have wdy",
      "the weight belongs to one term, not to the cotangent", WEIGHT, when="weight", dx=[{"w0": 0}, {"w1": 0},
      {"w2": 0}, {"w1": 0, "w2": 0}, {"w0": 0, "w2": 0}, {"w0": 0, "w1": 0}]),
    _("weight-divided", "Divided by the weight", "going back undoes the weight", WEIGHT, when="weight", dx=[{"w": -1}],
      dw=[{"w": -1}], y=[{"w": -1}]),
    _("zero", "Nothing arrives: the result is 0", "the operator has no gradient here",
      "A result of 0 is not expected here.", alone=True, dx=[{"all": 0}], dw=[{"all": 0}], db=[{"all": 0}],
      y=[{"all": 0}]),
    _("ones-for-dy", "dy is replaced by ones: the gradient of the sum of y", "the loss is the sum of the outputs",
      "The gradient must change when dy changes.", dx=[{"dy": ()}], dw=[{"dy": ()}], db=[{"dy": ()}]),
    _("y-for-dy", "y stands where dy belongs", "the output is its own cotangent",
      "The gradient must change when dy changes.", alone=True, dx=[{"dy": ("y", )}], dw=[{"dy": ("y", )}],
      db=[{"dy": ("y", )}]),
    _("negated", "The sign is the other way round", "a gradient points downhill", "Look at the sign.", dx=[{"all": -1}],
      dw=[{"all": -1}], db=[{"all": -1}], y=[{"all": -1}]),
    _("identity", "dy is handed on as it is, or x is", "the norm leaves what it gets as it is",
      "The operator is not the identity.", alone=True, dx=[{"k1": 0, "k2": 0, "e0": 0, "w0": 0}, {"k1": 0, "k2": 0,
      "e0": 0, "w0": 0, "kg": 0}], y=[{"v": ("p", ), "w": 0, "kb": 0}, {"v": ("x", ), "w": 0, "kb": 0}]),
    _("rstd-missing", "The factor rstd is missing", "the projection alone is the gradient, and q is the normalized row",
      "The size is wrong, most of all on rows that are large or small.", dx=[{"e": 0}], dw=[{"v": ("q", )}],
      y=[{"v": ("q", )}]),
    _("rstd-twice", "A factor rstd too many", "rstd is not yet in x_hat, or not yet in wdy",
      "The size is wrong, most of all on rows that are large or small.", dx=[{"e": 2}, {"e": 3}], dw=[{"e": 1},
      {"e": 2}], y=[{"v": ("x_hat", "rstd")}]),
    _("rstd-inverted", "D stands where rstd belongs", "rstd is the denominator, not its reciprocal",
      "The size is wrong, most of all on rows that are large or small.", dx=[{"e": -1}], dw=[{"v": ("q", "D")}],
      y=[{"v": ("q", "D")}]),
    _("projection-power", "The projection has the wrong power of rstd",
      "the projection divides by the standard deviation, not by the variance", PROJECTION, dx=[{"e1": 0}, {"e1": 2},
      {"e1": 3}, {"e1": -1}]),
    _("rstd-in-some-terms", "rstd multiplies some of the terms only", "rstd belongs to one term, not to the bracket",
      "Look at which terms the leading factor multiplies.", dx=[{"e2": 0}, {"e1": 0, "e2": 0}, {"e0": 0}, {"e0": 0,
      "e2": 0}, {"e2": 2}, {"e0": 0, "e1": 0}]),
    _("factor-n", "The sums are there, N or its reciprocal is missing or stands at the wrong terms",
      "the N of the closed form may be left out", "Compare how often each term is divided by the number of columns.",
      dx=[{"k": "N"}, {"k": "1/N"}, {"all": "N"}, {"all": "1/N"}, {"k0": "N"}, {"k0": "1/N"}], dw=[{"all": "1/N"}]),
    _("not-reduced", "x_hat * wdy, or wdy, is not averaged over the row", "the Jacobian is diagonal",
      "Each entry of a row moves all outputs of the row.", alone=True, dx=[{"red1": "none"}, {"red1": "none",
      "k1": "1/N"}, {"red1": "none", "k1": "1/N", "red2": "none", "k2": "1/N"}, {"red1": "none", "red2": "none"},
      {"red2": "none"}, {"red2": "none", "k2": "1/N"}]),
    _("projection-exact", "The projection is divided by the sum of the squares of x_hat, not by N",
      "the squares of x_hat add up to N, eps or not", PROJECTION, dx=[{"v": ("q / s", )}]),
    _("x_hat-missing", "x_hat is missing beside c1, or within it",
      "c1 is subtracted as it is, or c1 is the mean of wdy", PROJECTION, dx=[{"v1": ()}, {"v2": ()}, {"v": ()},
      {"split": True}]),
    _("rows-averaged", "The mean over the rows stands for their sum", "a batch averages its gradients",
      "Look at how the rows are put together.", dw=[{"red": "mean"}], db=[{"red": "mean"}], dx=[{"k": "1/M"},
      {"all": "1/M"}]),
    _("rows-not-summed", "One row stands for the sum over all rows", "each row overwrites the gradient",
      "Look at how the rows are put together.", dw=[{"red": "last"}, {"red": "first"}], db=[{"red": "last"},
      {"red": "first"}]),
    _("weight-in-dw", "dw contains the weight", "dw sums wdy * x_hat",
      "What does y's derivative by the weight still contain?", when="weight", dw=[{"w": 1}, {"w": 2}]),
    _("weight-in-db", "db contains the weight", "db sums wdy", "What does y's derivative by the bias still contain?",
      when="weight", db=[{"w": 1}, {"w": 2}]),
    _("dw-is-db", "x_hat is missing in dw, which is db", "weight and bias have one gradient",
      "What does y's derivative by the weight still contain?", dw=[{"v": ()}]),
    _("db-is-dw", "db contains x_hat, it is dw", "weight and bias have one gradient",
      "What does y's derivative by the bias still contain?", db=[{"v": ("x_hat", )}]),
    _("rstd-in-db", "db contains rstd", "everything on the way back is scaled by rstd",
      "What does y's derivative by the bias still contain?", db=[{"e": 1}]),
    _("product-of-sums", "The product of two sums stands for the sum of the products",
      "sums may be taken factor by factor", "Look at how the rows are put together.", alone=True, dw=[{"split": True},
      {"split": True, "red": "mean"}]),
    _("y-for-x_hat", "y stands where x_hat belongs: weight and bias are forgotten", "y is the normalized row",
      "Look at which row the cotangent is multiplied by.", dx=[{"v": ("y", )}, {"v1": ("y", )}, {"v2": ("y", )},
      {"v2": ("y", ), "w1": 0}], dw=[{"v": ("y", )}]),
    _("x-for-x_hat", "x stands where x_hat belongs: it is neither centred nor scaled",
      "the row that came in is the row that counts", "Look at which row the cotangent is multiplied by.",
      dx=[{"v": ("p", )}, {"v1": ("p", )}, {"v2": ("p", )}, {"v": ("x", )}], dw=[{"v": ("p", )}, {"v": ("x", )}],
      y=[{"v": ("p", )}, {"v": ("x", )}]),
    _("centring-missing", "The rows are not centred", "dividing by the spread is enough",
      "Look at what is subtracted from the row.", when="centred", dx=[{"v": ("p", "rstd")}, {"v1": ("p", "rstd")},
      {"v2": ("p", "rstd")}, {"stats": "centring"}, {"stats": "centring", "k2": 0}], dw=[{"v": ("p", "rstd")},
      {"stats": "centring"}], y=[{"v": ("p", "rstd")}, {"stats": "centring"}]),
    _("centring-added", "The rows are centred, in a norm that does not centre", "every norm subtracts the mean",
      "Look at what is subtracted from the row.", when="plain", **_rows("centring", "centred row",
      dx=[{"stats": "centring", "k2": 1}])),
    _("variance-uncentred", "The squares of the row before centring are averaged", "the mean square is the variance",
      DENOMINATOR, when="centred", **_rows("uncentred variance")),
    _("variance-for-mean-square", "The variance stands for the mean square: the row is centred before it is squared",
      "every norm divides by the standard deviation", DENOMINATOR, when="plain", **_rows("variance for mean square")),
    _("padding-counted", "The columns past N are counted in the variance", "what is masked when it is loaded stays 0",
      "Look at what the padding columns hold after the row is centred.", equation="kern-padded-variance",
      when="centred", alone=True, **_rows("padding counted")),
    _("weight-in-statistics", "The row is multiplied by the weight before its statistics are taken",
      "weight and normalization may be applied in either order", DENOMINATOR, when="weight",
      y=[{"stats": "weighted squares"}, {"stats": "weighted row", "w": 0}]),
    _("residual-left-out", "The residual is left out: the statistics are those of x alone",
      "the residual is added for the next layer only", "Look at which row is normalized.", equation={"y": "res-forward",
      "dx": "res-forward"}, **_rows("x alone")),
    _("wrong-axis", "A statistic, a mean or a sum runs over the wrong axis, or over the whole matrix",
      "axis=0 is the axis of the features", "Each row is a matter of its own: look at the axes.",
      dx=[{"stats": "axis 0"}, {"stats": "axis 0", "a": 0}, {"stats": "no axis"}, {"stats": "no axis", "a": None},
      *_over(0), *_over(None)], dw=[{"stats": "axis 0"}, {"stats": "no axis"}, {"red": "total"}],
      db=[{"red": "total"}], y=[{"stats": "axis 0"}, {"stats": "no axis"}]),
    _("reduce-exchanged", "Sum and mean of the squares are exchanged",
      "the norm of a row and its root mean square are one thing", DENOMINATOR, **_rows("other reduce",
      dx=[{"stats": "other reduce", "k1": "N"}])),
    _("root-missing", "The root is missing: the row is divided by the variance", "rstd is one over the variance",
      DENOMINATOR, **_rows("no root")),
    _("eps-on-sum", "eps stands beside the sum where it belongs beside the mean, or the other way round",
      "eps may stand beside the sum as well as beside the mean", DENOMINATOR, equation="eps-sum-mean",
      **_rows("eps on sum")),
    _("eps-missing", "eps is missing", "eps is too small to matter", DENOMINATOR, **_rows("eps missing",
      dx=[{"stats": "eps missing, rstd alone"}])),
    _("eps-placement", "eps is not added under the root",
      "inside the root, outside it and as a floor are the same", DENOMINATOR, equation="eps-kappa",
      **_rows("eps outside", "eps clamp", "eps floor", dx=[{"stats": "eps outside, rstd alone"},
      {"stats": "eps clamp, rstd alone"}])),
    _("eps-squared", "eps is squared", "eps is a length like s", DENOMINATOR, alone=True, **_rows("eps squared")),
    _("eps-value", "eps has another value", "any small eps will do", DENOMINATOR, alone=True, **_rows("eps = 0.001",
      "eps = 1e-05", "eps = 1e-06", "eps = 1e-08", "eps = 1e-12")),
    _("narrow-statistics", "rstd is kept in a 16-bit dtype", "the statistics may be kept in the input's dtype",
      "Nothing is wrong with the formula. Look at the dtype of each intermediate result.", alone=True,
      **_rows("bfloat16 rstd", "truncated rstd", "float16 rstd")),
    _("bias-missing", "The bias is missing, or has the wrong sign or factor", "the bias is optional",
      "Look at what the bias adds to y.", when="bias", y=[{"kb": 0}, {"kb": -1}, {"kb": 2}]),
    _("bias-weighted", "The bias is multiplied by the weight", "weight and bias may be applied in either order",
      "Look at the order of weight and bias.", when="bias", y=[{"bw": 1}]),
    _("weight-plus-one", "1 + weight stands for the weight", "the weight is stored as its distance from 1",
      "Follow the weight to y.", when="weight", y=[{"kw1": 1}], dx=[{"w": "1+weight"}]),
    _("absent-bias-one", "An absent bias is taken for 1", "no weight and no bias mean 1 and 1",
      "What does an absent bias add?", when="no bias", y=[{"one": 1}]),
    _("stream-added-to-y", "The residual, or the sum, is added to y after the norm",
      "the residual connection ends at y", "y is the norm's output alone.", equation="res-forward", y=[{"kr": 1},
      {"kp": 1}, {"stats": "x alone", "kr": 1}, {"stats": "x alone", "kp": 1}]),
    _("block-for-columns", "A mean is divided by the width of the block, not by the number of columns",
      "a block is as wide as the row", "Look at what the sums are divided by, for rows that do not fill their block.",
      equation="kern-tile", when="stream", alone=True, dx=[{"k1": "N/B"}, {"k2": "N/B"}, {"k1": "N/B", "k2": "N/B"}],
      y=[{"stats": "mean of the block"}, {"stats": "variance of the block"}, {"stats": "statistics of the block"}]),
    _("out-of-bounds", "A program reads or writes past the end of its tensor",
      "a block is as wide as the row, and the rows fill the programs",
      "Look at the mask of each load and store, for the last columns and for the last rows.", equation="kern-tile"),
    _("stride-ignored", "The strides of an input are ignored", "the rows of a matrix lie one behind the other",
      "Look at how far apart two rows are, and two entries of a row."),
    _("one-shape", "It is right for one shape of x, and not for another", "x has the shape that it has in the example",
      "Look for a number of rows or columns, or a power of two, that the code takes for granted."),
    _("results-swapped", "Right results are returned in the wrong order", "the caller knows which result is which",
      "Compare what the last line returns with the signature."),
    _("axis-of-one", "A result has an axis of length 1 too many, or too few", "keepdims changes nothing",
      "Which axes does the signature name for this result?"),
    _("whole-numbers", "A result has a dtype of whole numbers", "numbers without a fraction need no point",
      "Compare the dtype of each result with the signature."),
    _("nones-left-out", "backward returns less than one gradient for each input",
      "an input without a gradient needs no place",
      "Count the inputs of forward, eps among them. What stands in the place of each?"),
    _("rows-left-out", "Some rows are left out, or overwritten", "the rows are a multiple of what is taken at once",
      "Count the rows that are taken. Is what one row adds to a sum still there after the next one?"),
    _("flat-row", "Where s is 0 the result is 0, and the formula gives another value",
      "a row without spread is a case of its own", "What does the formula give for such a row, eps under the root?"),
    _("no-rows", "A sum over no rows is not 0", "where there is nothing to do, nothing need be written",
      "What is the sum of no numbers? Who writes it when there is no row?"),
    _("race", "Two programs share a place in memory, and one of them writes there", "programs run one after the other",
      "Look at which program writes where."),
    _("atomics", "Programs add to one place with atomics", "the order of a sum does not matter",
      "Look at which programs add to one place, and in which order they do it."),
    _("work-outside", "torch computes what the kernel should", "one more pass over the matrix costs nothing",
      "Look at what the launcher does with whole matrices."),
    _("python-in-kernel", "A kernel computes with Python or torch in its body", "what the interpreter runs is a kernel",
      "Which lines of the kernel would a GPU not know?"),
    _("sum-not-rounded", "The sum is normalized before it is rounded", "what is stored is what was computed",
      "Look at which row the statistics belong to: the one that is returned, or the one before it was stored.",
      equation="res-forward"),
    _("eps-rounded", "eps is rounded to float32 on its way", "a number has the format of the arrays that it meets",
      "Nothing is wrong with the formula. Look at the format in which eps arrives."),
    _("narrow-intermediate", "An intermediate result is kept in 16 bits",
      "arithmetic may have the format of the inputs",
      "Nothing is wrong with the formula. Look at the format of each intermediate result."),
    _("wide-arithmetic", "Computed in a wider format than float32", "more digits are the way out",
      "Look at the format of each intermediate result.", equation="fp-correction"),
    _("input-overwritten", "An input is written to", "an argument belongs to the function that gets it",
      "Look at which names stand for the same memory."),
    _("warns", "Something is computed that has no value, and thrown away", "what is not used does no harm",
      "Look at what is computed before one of two results is chosen."),
    _("global-read", "A gradient reads a variable that all layers share", "there is one layer",
      "Look at where each number of the backward comes from."),
    _("saves-too-much", "More is kept from forward to backward than backward needs",
      "what is computed once should be kept", "Which of the kept tensors can be computed again from the others?",
      equation="ln-forward"),
    _("kept-on-ctx", "A tensor is kept where autograd does not look after it", "ctx is a place like any other",
      "Look at how each tensor gets from forward to backward."),
    _("constant-to-autograd", "Something that depends on the inputs is a constant to the second derivative",
      "what forward computed, or what is detached, still knows where it came from",
      "Look at how each tensor of backward is connected with the inputs.", equation="twice-dx"),
    _("root-for-reciprocal", "The root stands where its reciprocal belongs", "rstd is the root mean square",
      "Which unit does it have, when the row has metres?"),
    _("deviation-for-variance", "The standard deviation stands where the variance belongs",
      "both measure how far a row spreads", "Look at what happens when a row is multiplied by a number.",
      equation="fp-statistics"),
    _("empty-blocks", "Two empty blocks are divided by zero", "together two blocks have at least one number",
      "Try two blocks without any number.", equation="fp-merge"),
    _("coefficient-u", "The first term has a wrong factor", "wdy reaches dx with a factor of its own",
      "The part of dx that carries wdy itself is wrong."),
    _("coefficient-c1", "x_hat * c1 has a wrong factor", "the derivative of rstd is another multiple of x_hat * c1",
      PROJECTION),
    _("coefficient-c2", "c2 has a wrong factor", "the derivative of the mean is another multiple of c2",
      "The part of dx that is the same in a whole row is wrong."),
    _("coefficient-g", "dresidual_out has a wrong factor", "the stream's gradient is scaled on its way past the norm",
      "Look at what dresidual_out adds to dx.", equation="res-dx"),
    _("constant-factor", "The whole gradient is multiplied by a constant", "a constant factor does not matter",
      "The direction is right, the length is not."),
    _("coefficient-bias", "The bias has a wrong factor", "the bias is scaled", "Look at what the bias adds to y."),
    _("rstd-value", "rstd has another value", "the statistics of the row are others",
      "The rows have the right direction and the wrong length: look at rstd."),
    _("one-pass-variance", "The variance is the mean of the squares less the square of the mean",
      "mean(x**2) - mean**2 is the variance and costs one pass",
      "Nothing is wrong with the formula. Look at rows whose mean is large beside their deviations.",
      equation="fp-one-pass"),
    _("rough-mean", "The squares are taken about a number that is not the mean",
      "a mean that is nearly right is right enough", "Look at how far the mean itself is off.",
      equation="fp-wrong-mean"),
    _("rows-mixed", "Alone each row is right, together they are not", "one number lies near all rows",
      "What do you compute, choose or decide for all of them at once? Do it for each one on its own.",
      equation="fp-statistics"),
    _("fixed-number", "A number that is the same for every row enters the variance", "one number lies near all rows",
      "Which number in your code does not change when a row does? What is taken off a row must be its own: an entry.",
      equation="fp-shifted", right="twice a row has four times its variance"),
    _("running-mean", "Means of parts of a row are rounded, each at the size of the row's mean",
      "what is right on paper for each entry is right for the row",
      "Nothing is wrong with the formula. What could you take off the row before it begins?", equation="fp-welford",
      found="a mean that is rounded many times on its way", right="the same, for a row less one of its entries"),
    _("offset-kept", "Digits are lost where the mean is large", "what is right near 0 is right far from it",
      "Which of your numbers on the way are as large as the mean, or as its square?", equation="fp-shifted",
      found="right for the row less its first entry, and wrong for the row", right="as many digits for both"),
    _("deviation-not-squared", "Deviations are multiplied by x, not by themselves", "the deviations add up to 0",
      "What do your deviations add up to, and what is that multiplied by?", equation="fp-correction"),
    _("block-distances", "Variances of blocks are averaged: the distances between the blocks' means are missing",
      "a variance is the mean of its parts' variances", "Try a row of two blocks without any spread of their own.",
      equation="fp-merge"),
    _("eps-in-variance", "The variance that is returned contains eps", "var is what stands under the root",
      "What is the variance of a constant row?", equation="fp-statistics"),
    _("shift-not-added", "The mean is not that of the row: a shift is not added back",
      "the mean of the shifted row is the row's", "Which row is your mean the mean of?", equation="fp-shifted",
      right="mean = shift + mean(x - shift)"),
    _("columns-left-out", "Entries of a row are left out of its sums", "a row is a whole number of blocks",
      "Change one entry of a row after the other, the last ones, too. Which results do not move?",
      equation="fp-statistics", right="every entry of a row moves its mean and its variance"),
    _("merge-within", "The blocks' own squares enter wrongly: they are sums, and add up",
      "squares are averaged as variances are", "Try two blocks with the same mean.", equation="fp-merge"),
    _("merge-denominator", "A constant is added to n where n divides", "a small number does no harm",
      "Which pairs need help with the division, and which ones does your help change?", equation="fp-merge"),
    _("merge-between", "The distance between the blocks' means enters the squares wrongly",
      "the squares of two blocks add up", "Try two blocks without any spread of their own.", equation="fp-merge"),
    _("merge-weights", "The blocks' means have wrong weights", "each block counts alike",
      "Try a long block and a short one.", equation="fp-merge"),
    _("narrow-arithmetic", "Computed in float32, where float64 is asked for",
      "the dtype of the intermediate results does not matter", "Look at the dtype of each intermediate result."),
    _("division-by-zero", "A row without spread is divided by zero", "s is never 0",
      "Look at rows that are constant, or zero.", equation="norm-forward"),
    _("not-finite", "The result is not finite", "no row leads to an infinity or to 0 / 0",
      "Some results are infinite or not a number."),
)}  # fmt: skip


def _own(homework, *entries):
    return {(homework, each.key): each for each in entries}


STEP = "Which step of a derivation could go wrong here?"
# What the stages of one homework name, some of it by a key that others have, too, and what has no name:
# {(homework, key): mistake}.
OWN = {
    **_own("",
    _(UNKNOWN, "No known misconception", "nobody is known to believe this",
      "The result is wrong in a way that the table does not know. The nearest formula is shown."),
    _(REFUSED, "The rounding hides which term is wrong", "any of several beliefs leads here",
      "The result is wrong, but several formulas fit it within its rounding errors. Check it in float64."),
    ),
    **_own("hw1",
    _("letter-left-free", "A letter is free on the right alone", "a letter sums itself",
      "Which letters does the left side have?", "index-delta"),
    _("delta-not-contracted", "A delta is still summed over", "a sum with a delta is short enough",
      "Which terms of the sum are not 0?", "index-delta"),
    _("counted-from-zero", "A sum begins with an entry 0", "indices are Python's",
      "Which entry is the first one of a row, and which is the last?", "index-mean"),
    _("term-sign", "A term has the wrong sign", "plus and minus can be put right at the end",
      "Go through your terms one at a time. Which way does y move when only that path is open?"),
    _("mean-is-a-sum", "A sum where the mean belongs", "1/N is a detail", "What became of 1/N?"),
    _("term-factor", "A term has another factor", "a constant factor is a detail",
      "Write your answer out for rows of one entry and of two. Which factor has to change, and how?"),
    _("delta-is-one", "The delta is missing", "every entry reacts to every other",
      "Which entries react directly, and which only through a sum?"),
    _("delta-half-contracted", "The letter was renamed in one factor only", "a delta renames its neighbour",
      "When the sum is gone, its letter is gone from every factor.", "index-delta"),
    _("delta-on-every-term", "The delta was contracted in a term that has none", "a delta is contracted everywhere",
      "Split the sum at the minus sign first. Which of the two sums has a delta?", "index-delta"),
    _("local-for-total", "The path through the mean is missing", "the mean does not move",
      "How many paths lead from one entry to the other?", "index-total"),
    _("total-for-local", "The total derivative stands for the local one", "there is one derivative",
      "What is held fixed does not change, so it has no derivative.", "index-local"),
    _("weight-on-one-path", "The weight is missing on the path through the mean", "the mean is that of x",
      "The mean is taken of w x, not of x.", "index-jacobian"),
    _("transposed-layout", "The Jacobian and its transpose have changed places", "there is one layout",
      "Which letter has the weight of an input, and which that of an output?", "index-jacobian-transposed"),
    _("free-letter-summed", "The free letter was summed over", "every letter is summed over",
      "Which letters does the left side have?", "index-gradient"),
    _("mean-of-the-column", "The mean of the column, not of the row", "a mean is a mean",
      "The mean of a row sums over the column index.", "index-mean"),
    _("not-centred", "x stands where the centred row belongs", "the weight multiplies the row that came in",
      "What is w_j multiplied by in the forward?", "pg-dw"),
    _("delta-extra", "A term has a delta too many", "a derivative begins with a delta",
      "Which entries move when one entry of the row does?"),
    _("factor-left-out", "A factor is missing in a term", "what is multiplied by can be added later",
      "Which arrays does each term of the question have?"),
    _("factor-extra", "A term has a factor too many", "a factor that stands there stays there",
      "Which arrays does each term of the question have?"),
    _("letters-exchanged", "A term has another letter", "the letters say it by themselves",
      "Write the answer out for rows of two entries. Which entry does each term have?"),
    _("sum-for-entry", "A sum stands where one entry belongs", "what was summed stays summed",
      "Write the answer out for rows of two entries. How many does each term have?"),
    _("entry-for-sum", "One entry stands where a sum belongs", "a letter does for all of its values",
      "Write the answer out for rows of two entries. How many does each term have?"),
    _("sum-split", "A product of sums stands where a sum of products belongs", "a sum of products is a product of sums",
      "Write both out for rows of two entries."),
    _("pulled-out", "A factor with the letter of the sum was taken out of it", "every factor comes out of a sum",
      "Which factors depend on the letter that is summed over?"),
    _("arrays-exchanged", "Two arrays have changed places in a term", "what is centred does not matter",
      "Which array is summed along the row, and which is not?"),
    _("rows-apart", "A sum over all rows stands where each row has its own", "one mean does for all rows",
      "How many means does a table of M rows have?"),
    _("rows-averaged", "A mean over the rows where a sum belongs", "the loss is a mean over the batch",
      "The loss adds up over the rows. Does anything divide by M?"),
    _("term-missing", "A term is missing", "there is one path", "Count the paths, or the terms after multiplying out."),
    _("term-extra", "A term too many", "one more path leads there",
      "Which term of the question leads to each of yours?"),
    _("term-replaced", "A term is another one", "the terms are alike",
      "Write both sides out for rows of two entries, and compare them term by term."),
    _("another-formula", "Your answer is another formula", "the steps were right",
      "Write both sides out for rows of two entries, and compare them term by term."),
    _("text-for-expression", "A text stands where an expression belongs", "what prints alike is alike",
      "What can SymPy put in the place of a letter in what you return?"),
    ),
    **_own("hw6",
    _("blind-constant-wdy", "In every call weight * dy is constant along each row, as for a loss that sums up y",
      "any loss will do",
      "Multiply your dy by your weight and look at one row of the product. What is dx for such a row, whatever x is?",
      "vacuous-ones", found="weight * dy with equal entries in each row",
      right="rows of weight * dy with different entries"),
    _("blind-equal-weights", "In every call all weights are equal", "weights of 1 are the usual ones",
      "Take two formulas that differ only in where the weight stands. On which inputs do they differ?",
      found="equal weights", right="weights of different size and of both signs"),
    _("blind-one-row", "In every call x has one row, where a sum, a mean and a mix of rows look alike",
      "each row is a matter of its own",
      "Some sums run along a row, others down the rows. Can your inputs tell one from the other?",
      found="x with one row", right="x with several rows"),
    _("blind-unit-spread", "In every call rstd is 1, up to a thousandth", "inputs are normalized",
      "Which quantities are worth 1 on all of your inputs? A factor of 1 cannot be missed.",
      found="rstd = 1 in every row", right="rows of different size"),
    _("blind-constant-dy", "In every call all entries of dy are equal", "any loss will do",
      "What does your test know of dy, if every dy is the same number? Where does it have to stand in dx and dw?",
      found="a dy with equal entries", right="a dy with different entries"),
    _("blind-centred-rows", "In every call the mean of every row is 0", "inputs are centred",
      "What does your test know of the mean, if it is worth nothing on all of your inputs?",
      found="rows with the mean 0", right="rows with means of different size"),
    _("blind-square", "In every call x has as many rows as columns", "a square is a matrix like others",
      "Some sums are divided by a number of entries. By which one? Can your inputs tell?",
      found="x with M = N", right="x with different numbers of rows and columns"),
    _("blind-alike-rows", "In every call all rows have the same rstd, up to a thousandth", "one row is like another",
      "Each row has its own statistics. What does your test say if all rows take those of the first?",
      found="the same rstd in every row of a call", right="rows of different size in one call"),
    _("blind-no-constant-row", "No row that you try is constant", "random rows are all rows",
      "Which rows does the forward take that you do not try? Which of them are special for a norm?",
      found="rows with different entries", right="a row with equal entries among them"),
    _("blind-inputs", "The inputs hide the mistake", "what agrees once agrees always",
      "Go through the terms of the formula. Which of them is 0, or equal to another one, on all of your inputs?",
      found="inputs on which wrong and right agree", right="inputs on which no term is 0 by chance"),
    _("nan-passes", "NaN passes the comparison", "what is not larger is smaller",
      "What does your comparison say about NaN?", found="a comparison that is false for NaN",
      right="a comparison that demands a small error"),
    _("loose-tolerance", "The tolerance hides the mistake", "a tolerance is a matter of taste",
      "How large is the error of what you compare with? How large is your tolerance?", "fd-best-step",
      found="a tolerance larger than the mistake", right="a tolerance as large as the error of the difference"),
    _("one-sign-passes", "An error of one sign passes, however large; of the other sign it does not",
      "an error makes a number larger", "What does your comparison say of a gradient that is far too small?",
      found="a comparison that one sign passes", right="a comparison of the absolute value"),
    _("rows-summed", "An error of dx that adds up to 0 in each row passes, however large",
      "one direction is as good as another", "What does LayerNorm do when all entries of a row move alike?",
      found="of dx only the sums of its rows are compared", right="entries, or directions that differ within a row"),
    _("totals-compared", "An error that adds up to 0 passes, however large", "a sum sees all of its terms",
      "Which errors does a sum over all entries hide?", found="only totals are compared",
      right="entries, or directions that are random in each entry"),
    _("size-passes", "This error passes, however large it is made", "one look sees everything",
      "Which entries of the gradients, and which of their sums, does your test look at?",
      found="a comparison that this error does not reach", right="a comparison of all entries, or along random ways"),
    _("false-alarm", "A right backward is rejected", "a stricter test is a better one",
      "Is what you compare with right? Is the tolerance larger than its error, at your step and in your dtype?",
      "fd-best-step", right="a tolerance as large as the error of the difference"),
    _("reference-wrong", "What the test compares with is wrong", "what I derived is right",
      "Where does the number that you compare with come from? Which loss is it the slope of, and what moves with x?",
      right="the slope of sum(dy * y), with the given forward called again"),
    _("never-called", "The backward under test is never called", "the formula is what is tested",
      "Which line of your test hands numbers to the backward?", found="no call of the backward",
      right="a call with inputs that you draw"),
    _("verdict-not-raised", "The verdict does not leave the test as an AssertionError",
      "whoever calls a test reads what it returns",
      "What does somebody who calls your test learn from it, when two numbers disagree?",
      found="a verdict that is returned, or dropped", right="an AssertionError"),
    *(_(f"{name}-not-compared", f"{name} is not compared with anything", "one gradient stands for all",
      "Change the results of a right backward by hand, one at a time. Which change does your test notice?",
      found=f"a comparison without {name}", right="a comparison of dx, dw and db") for name in ("dx", "dw", "db")),
    ),
    **_own("hw7",
    _("equal-entries", "All entries of an input are equal", "ones are inputs like others",
      "Which wrong gradients look right on such an input?"),
    _("input-not-drawn", "An input is the same in every draw", "one draw says all",
      "What does a second draw show that the first did not?"),
    _("not-repeatable", "The same generator gives other inputs", "any random number will do",
      "Where does each of your random numbers come from?"),
    _("returns-an-input", "Forward returns one of its inputs", "the identity is an operator, too", STEP),
    _("constant-output", "Forward gives the same y for all inputs", "a constant is an operator, too", STEP),
    _("affine-forward", "Forward is affine in its inputs", "a matrix is an operator, too", STEP),
    _("entry-by-entry", "Each entry of y depends on one entry of the inputs alone", "an activation is a norm", STEP),
    _("gradient-missing", "An input gets no gradient", "parameters need none",
      "Which inputs move y? How many gradients does backward return?"),
    _("wrong-axis", "A gradient is summed over the wrong axes", "every gradient sums over the batch",
      "Which entries of y does one entry of the input reach?"),
    _("not-linear", "Backward is not linear in dy", "dy is an input like others",
      "What must happen to a gradient when dy is twice as large?"),
    _("nothing-degenerate", "No degenerate inputs are declared", "nothing here divides by 0",
      "On which inputs might a result not be finite?"),
    _("zero-unguarded", "On a degenerate input something is 0 that must not be 0", "no spread is ever 0",
      "What does forward compute on that input, step by step, and which of the steps has no answer?"),
    _("gradient-zero", "A gradient is zero", "the operator has no gradient here", "Does the input reach the output?",
      "index-gradient"),
    _("sign", "A gradient has the wrong sign", "a gradient points downhill",
      "Where does a minus come from in your derivation?", "index-gradient"),
    _("constant-factor", "A gradient is multiplied by a constant", "a constant factor does not matter",
      "A mean where a sum belongs, or the other way round?", "index-gradient"),
    _("path-through-a-mean", "In each row a gradient is off by one number", "the mean does not depend on the input",
      "Is there a statistic whose dependence on the input is left out?", "index-gradient"),
    _("path-through-a-scale", "In each row a gradient is off by a multiple of the input",
      "a size does not depend on the input",
      "How does a size, such as a root mean square, move when the input does? Check that path and its factor.",
      "index-gradient"),
    _("paths-through-both", "The paths through a mean and through a size are both wrong",
      "a mean is divided by the number of rows", "What are the sums divided by, in forward and in backward?",
      "index-gradient"),
    _("path-to-others", "What each entry does to the others has a wrong factor", "the Jacobian is diagonal",
      "Each entry of the input moves other entries of y, too. On which way, and how far?", "index-gradient"),
    _("summed-derivative", "The derivative of what is summed up is wrong", "what is summed is the input itself",
      "What does forward sum up? What is its derivative by one entry?", "index-gradient"),
    _("wrong-reach", "A gradient reads dy where y does not depend on the input",
      "a gradient spreads like its forward", "Which entries of y does one entry of the input reach? Only from there "
      "does dy come back to it.", "index-gradient"),
    _("wrong-derivative", "A gradient has a factor that depends on its input alone",
      "the derivative of a product is one factor's", "What does forward make of this input? Write down the derivative "
      "of that; a product has two terms.", "index-gradient"),
    _("row-factor", "In each row of y a gradient has another wrong factor", "an input that stands twice counts once",
      "In how many places of the forward does this input stand? Each of them adds a term.", "diff-fan-out"),
    _("factor-left-out", "A gradient is what it would be if another input were 1", "a factor only scales the output",
      "Where does that other input stand in the forward? Follow it back.", "index-gradient"),
    _("factor-last", "A gradient is multiplied by another input at the end", "a factor commutes with the Jacobian",
      "Does the forward multiply by it before or after the statistics?", "index-gradient"),
    ),
    **_own("hw8",
    _("above-the-floor", "The kernels ask for more bytes than one visit to each number takes",
      "bytes that were read once are free",
      "Which of your tensors does more than one load or store visit, and how often?"),
    _("stream-cut", "The gradient of the stream is not handed on from place to place", "every place has one use, its y",
      "The sum at a place is used twice. Where does its second use send a gradient?", "res-fused-backward"),
    _("stream-twice", "The gradient of the stream is added twice", "norms[k] knows nothing of the stream",
      "What does norms[k] do with its second argument?", "res-fused-backward"),
    _("order-reversed", "The places come in the wrong order", "the way back is the order of the answer",
      "Which place does your first number belong to?"),
    _("squared-norm", "A norm lacks its root, or the sum in it is a mean", "any measure of size is a norm",
      "What is the norm of a matrix of ones?"),
    ),
}  # fmt: skip
SHARED = {"hw1": ("results-swapped",),
          "hw7": ("input-overwritten", "wide-arithmetic", "narrow-intermediate", "results-swapped"),
          "hw8": tuple(MISTAKES)}  # fmt: skip


def titles(homework: str = "") -> dict[str, str]:
    """{key: title} of what the stages of one homework name; of all mistakes of gradients without a homework."""
    own = {key: each.title for (name, key), each in OWN.items() if name == homework and name}
    return own | {key: MISTAKES[key].title for key in (SHARED.get(homework, ()) if homework else MISTAKES)}


def find(key: str, homework: str = "") -> Mistake:
    """The mistake of a key; ValueError for a key that is not in the table."""
    found = OWN.get((homework, key)) or MISTAKES.get(key)
    if found is None:
        raise ValueError(f"key: got {key!r}, needs one of {', '.join(map(repr, MISTAKES))}")
    return found


@dataclass(frozen=True)
class Diagnosis:
    """One mistake that a wrong result shows, or that none is known.

    The level "hint" is hint; "equation" adds equation and title; "coefficients" adds the rest.

    Args:  misconception: a key of the table or of a stage, "unknown", or "hidden-by-rounding"; title; hint
           equation: the label of the registered equation that is violated
           implemented, right: the two formulas, or what is there and what is needed; where: what their names stand for
           coefficients: {term: its coefficient in what was implemented}, the right terms included
           residual: |got - implemented| / |got|; confidence: from 0 to 1, how far the noise leaves the next
           explanation behind
    """

    misconception: str
    title: str
    hint: str
    equation: str = ""
    implemented: str = ""
    right: str = ""
    where: tuple[str, ...] = ()
    coefficients: dict[str, float] = field(default_factory=dict)
    residual: float = 0.0
    confidence: float = 1.0


def own_equation(output: str, setting) -> str:
    """The label of the equation that says what an output must be."""
    preset = "ln" if setting.spec.center else "rms"
    if output in ("dx", "dresidual"):
        stream = "res-dx-layer-norm" if setting.spec.center else "res-dx-rms-norm"
        return stream if setting.stream else f"{preset}-dx"
    return {"y": f"{preset}-forward", "dw": f"{preset}-dw", "db": "pg-db"}[output]


def equation(key: str, output: str, setting) -> str:
    """The label of the equation that a mistake violates in an output."""
    own = own_equation(output, setting)
    named = find(key).equation
    found = named.get(output, own) if isinstance(named, dict) else named or own
    # The stream's equation is the one that holds for every norm; the preset's own is closer to the student's task.
    return own if found == "res-dx" and own.startswith("res-dx") else found


def named(key: str, found="", right="", equation="", homework="", title="") -> Diagnosis:
    """The Diagnosis of a mistake that is seen otherwise than by its terms.

    Args:  key: of the table; found: the formula that was implemented, where there is one; right: the right one
           equation: the label, where it is not the mistake's own; homework: whose table it is looked up in first
           title: where it names an input
    """
    entry = find(key, homework)
    found, right = found or entry.found, right or entry.right
    return Diagnosis(key, title or entry.title, entry.hint, equation or entry.equation, found, right)
