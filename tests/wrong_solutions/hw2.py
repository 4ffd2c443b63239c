"""Wrong solutions of homework 2: what a wrong RMSNorm and its wrong gradients look like."""

from wrong_solutions import Wrong

Y, RSTD, DX, DW = "y", "rstd", "dx, row by row", "dw"
F_RSTD, F_X_HAT, F_OUT = (
    "1 / np.sqrt((x * x).mean(-1) + eps)",
    "x_hat = x * rstd[:, None]",
    "x_hat * weight, rstd",
)
C1, B_DX, B_WDY, B_DW = (
    "c1 = (x_hat * wdy).mean(-1, keepdims=True)",
    "dx = rstd * (wdy - x_hat * c1)",
    "wdy = weight * dy",
    "dw = (dy * x_hat).sum(0)",
)


def forward(name, old, new, stage=Y, misconception=""):
    """A wrong rmsnorm_forward."""
    return Wrong(name, "rmsnorm-forward", ((old, new),), stage, misconception)


def backward(name, old, new, stage=DX, misconception=""):
    """A wrong rmsnorm_backward."""
    return Wrong(name, "rmsnorm-backward", ((old, new),), stage, misconception)


WRONG = (
    Wrong("what the last forward left", "rmsnorm-backward",
          ((F_X_HAT, "x_hat = rmsnorm_forward.kept = x * rstd[:, None]"),
           (f"{B_WDY}\n", f'x_hat = vars(rmsnorm_forward).pop("kept", x_hat)\n    {B_WDY}\n')),
          "inputs left alone", "another-answer"),
    forward("one y for all calls", F_OUT, "np.multiply(x_hat, weight, out=vars(rmsnorm_forward).setdefault("
            "str((x.shape, x.dtype)), np.empty_like(x))), rstd", "inputs left alone", "memory-shared"),
    forward("no axis for one row", F_OUT, "x_hat * weight, rstd.squeeze()", "signature and shapes", "axis-of-one"),
    backward("written over", B_DX, "dx = wdy\n    for j in range(x.shape[1]):\n        c1 = (x_hat * dx).mean(-1)\n"
             "        dx[:, j] = rstd[:, 0] * (dx[:, j] - x_hat[:, j] * c1)", misconception="unknown"),
    forward("eps outside the root", F_RSTD, "1 / (np.sqrt((x * x).mean(-1)) + eps)", Y, "eps-placement"),
    forward("eps beside the sum", F_RSTD, "1 / np.sqrt(((x * x).sum(-1) + eps) / x.shape[-1])", Y, "eps-on-sum"),
    forward("the mean squared", F_RSTD, "1 / np.sqrt(x.mean(-1) ** 2 + eps)", Y, "mean-squared"),
    forward("no eps", F_RSTD, "1 / np.sqrt((x * x).mean(-1))", Y, "eps-missing"),
    forward("sum for mean", F_RSTD, "1 / np.sqrt((x * x).sum(-1) + eps)", Y, "reduce-exchanged"),
    forward("N - 1", F_RSTD, "1 / np.sqrt((x * x).sum(-1) / (x.shape[-1] - 1) + eps)", Y, "bessel"),
    forward("the row is centred", F_RSTD, "1 / np.sqrt(x.var(-1) + eps)", Y, "variance-for-mean-square"),
    forward("the mean of absolute values", F_RSTD, "1 / (np.abs(x).mean(-1) + eps)", Y, "absolute-values"),
    forward("the mean square for rstd", F_OUT, "x_hat * weight, (x * x).mean(-1) + eps", RSTD, "variance-for-rstd"),
    forward("rms for rstd", F_OUT, "x_hat * weight, 1 / rstd", RSTD, "root-for-reciprocal"),
    forward("the weight is forgotten", F_OUT, "x_hat, rstd", Y, "weight-missing"),
    forward("chooses after the logarithm", F_RSTD, "np.where(x.any(-1), np.exp(-np.log((x * x).mean(-1)) / 2)"
            " / np.sqrt(1 + eps / (x * x).mean(-1)), eps**-0.5)", "degenerate rows", "warns"),
    forward("the row scaled before eps", F_RSTD, "1 / np.sqrt((x * x).mean(-1) + eps * np.abs(x).max(-1) ** 2)", Y,
            "not-finite"),
    forward("the weight in other columns", F_OUT, "x_hat * np.repeat(weight, len(x)).reshape(x.shape), rstd", Y,
            "rows-mixed"),
    forward("eps as a floor", F_RSTD, "1 / np.sqrt(np.maximum((x * x).mean(-1), eps))", Y, "eps-placement"),
    forward("the weight before the statistics", F_RSTD, "1 / np.sqrt(((weight * x)**2).mean(-1) + eps)", Y,
            "weight-in-statistics"),
    forward("centred, over the root mean square", F_X_HAT,
            "x_hat = (x - x.mean(-1, keepdims=True)) * rstd[:, None]", Y, "centring-added"),
    forward("zero rows stay zero", F_OUT, "x_hat * weight, np.where(x.any(-1), rstd, 0)", "degenerate rows",
            "flat-row"),
    forward("over the columns", "(x * x).mean(-1)", "(x * x).mean()", Y),
    forward("writes into x", F_X_HAT, "x *= rstd[:, None]; x_hat = x", "inputs left alone", "input-overwritten"),
    backward("dw by way of y", B_DW, "dw = (dy * x_hat * weight).sum(0) / weight", "degenerate rows", "not-finite"),
    backward("rstd is a constant", B_DX, "dx = rstd * wdy", DX, "c1-dropped"),
    backward("plus for minus", B_DX, "dx = rstd * (wdy + x_hat * c1)", DX, "projection-sign"),
    backward("sum for mean", C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True)", DX, "sum-for-mean-c1"),
    backward("the matrix for a row", C1, "c1 = (x_hat * wdy).sum() / x.shape[-1]", DX, "matrix-summed"),
    backward("the weight in other columns", B_WDY, "wdy = np.repeat(weight, len(x)).reshape(x.shape) * dy", DX,
             "rows-mixed"),
    backward("N - 1", C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x.shape[-1] - 1)", DX, "bessel"),
    backward("divided by M", C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / len(x)", DX, "divided-by-rows"),
    backward("no gradient for zero rows", B_DX, B_DX + " * x.any(-1, keepdims=True)", "degenerate rows", "flat-row"),
    backward("no weight", B_WDY, "wdy = dy", DX, "weight-missing"),
    backward("the weight twice", B_WDY, "wdy = weight * weight * dy", DX, "weight-twice"),
    backward("the weight comes last", C1 + "\n    " + B_DX,
             "c1 = (x_hat * dy).mean(-1, keepdims=True)\n    dx = weight * rstd * (dy - x_hat * c1)", DX,
             "weight-after"),
    backward("no rstd in dx", B_DX, "dx = wdy - x_hat * c1", DX, "rstd-missing"),
    backward("x for x_hat in dx", B_DX, "dx = rstd * (wdy - x * c1)", DX, "projection-power"),
    backward("centred as in LayerNorm", B_DX, "dx = rstd * (wdy - wdy.mean(-1, keepdims=True) - x_hat * c1)", DX,
             "c2-added"),
    backward("x for x_hat in dw", B_DW, "dw = (dy * x).sum(0)", DW, "rstd-missing"),
    backward("the weight in dw", B_DW, "dw = (wdy * x_hat).sum(0)", DW, "weight-in-dw"),
    backward("a mean over the rows", B_DW, "dw = (dy * x_hat).mean(0)", DW, "rows-averaged"),
)  # fmt: skip
