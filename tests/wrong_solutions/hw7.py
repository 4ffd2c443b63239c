"""Wrong solutions of homework 7: what goes wrong when one derives a backward alone."""

from wrong_solutions import of

FIRST, OTHERS, SHAPES, ALONE = "gradient of the first input", "gradients of the others", "shapes and dtypes", \
    "inputs left alone"  # fmt: skip
DX = "dx = (rstd * (wdy - c2 - x_hat * c1)).reshape(x.shape)"
C1, C2 = (
    "c1 = (x_hat * wdy).mean(-1, keepdims=True)",
    "c2 = wdy.mean(-1, keepdims=True)",
)
WDY, DW, DB = "wdy = grouped(dy * weight[:, None])", "dweight = (dy * x_hat.reshape(x.shape)).sum((0, 2))", \
    "dbias = dy.sum((0, 2))"  # fmt: skip
RSTD = "rstd = 1 / np.sqrt((q * q).mean(-1, keepdims=True) + EPS)"
AGAIN = "x_hat, rstd = statistics(x)"
X = "x = scale * (rng.standard_normal((2, 4, 3)) + rng.uniform(-2, 2, (2, 4, 1)))"
DRAWN = '"weight": rng.standard_normal(4), '
SETS = 'return [usual | {"x": flat}, usual | {"x": none}, short | {"x": single}]'
Y = "return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]"
RETURN = "return dx, dweight, dbias"


project = of("norm-project", FIRST)


WRONG = (
    project("rstd is a constant", (DX, DX.replace(" - x_hat * c1", "")), misconception="path-missing"),
    project("the mean is a constant", (DX, DX.replace(" - c2", "")), misconception="path-missing"),
    project("dropout", (Y, f"{Y} * (np.random.random(x.shape) < 0.8)"), stage=ALONE, misconception="another-answer"),
    project("the minus sign is lost", (RETURN, "return -dx, dweight, dbias"), misconception="negated"),
    project("N - 1", (C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x_hat.shape[-1] - 1)")),
    project("rows for groups", (C1, "c1 = (x_hat * wdy).mean((0, -1), keepdims=True)")),
    project("both means over the places alone", (C1, "c1 = (x_hat * wdy).sum(-1, keepdims=True) / x.shape[-1]"),
            (C2, "c2 = wdy.sum(-1, keepdims=True) / x.shape[-1]")),
    project("no weight", (WDY, "wdy = grouped(dy)"), misconception="factor-left-out"),
    project("the weight comes last", (WDY, "wdy = grouped(dy)"),
            (RETURN, "dx = dx * weight[:, None]\n        " + RETURN)),
    project("a mean over the examples", (DB, "dbias = dy.sum(2).mean(0)"), stage=OTHERS,
             misconception="constant-factor"),
    project("no gradient for the bias", (DB, "dbias = 0 * bias"), stage=OTHERS, misconception="zero"),
    project("summed over one axis", (DW, "dweight = (dy * x_hat.reshape(x.shape)).sum(0)"), stage=SHAPES,
             misconception="wrong-axis"),
    project("one gradient missing", (RETURN, "return dx, dweight"), stage=SHAPES, misconception="gradient-missing"),
    project("float64 whatever comes in", (Y, "return np.float64(1) * " + Y[7:]
            .replace("x_hat.reshape(x.shape)", "x_hat.reshape(x.shape).astype(float)")), stage="float32"),
    project("statistics in half precision", (RSTD, RSTD + "\n    rstd = rstd.astype(np.float16).astype(x.dtype) "
            "if x.dtype == np.float32 else rstd"), stage="float32"),
    project("writes into dy", (WDY, "dy *= 1 + 1e-15\n        " + WDY), stage=ALONE,
            misconception="input-overwritten"),
    project("not linear in dy", (RETURN, "dx = dx * (1 + 1e-6 * np.abs(dy).max())\n        " + RETURN),
            stage="linear in dy", misconception="not-linear"),
    project("no eps", (RSTD, RSTD.replace(" + EPS", "")), stage="degenerate inputs"),
    project("nothing degenerate", (SETS, "return []"), stage="degenerate inputs"),
    project("unit weights", (DRAWN, '"weight": np.ones(4), '), stage="description"),
    project("a generator of its own", (X, "rng = np.random.default_rng()\n        " + X), stage="description"),
    project("a residual", (Y, f"{Y} + x"), misconception="path-missing"),
    project("a maximum beside it", (Y, f"{Y} + x.max((1, 2), keepdims=True)"), misconception="path-missing"),
    project("a product with the weight beside it", (Y, f"{Y} + (x * weight[:, None]).sum((1, 2), keepdims=True)"),
            (DW, f"{DW} + (dy.sum((1, 2), keepdims=True) * x).sum((0, 2))"), misconception="path-missing"),
    project("centred at the end of both", (Y, f"y = {Y[7:]}\n        return y - y.mean(2, keepdims=True)"),
            (DX, f"{DX}\n        dx = dx - dx.mean(2, keepdims=True)"),
            (DW, DW.replace("(dy *", "((dy - dy.mean(2, keepdims=True)) *")), (DB, "dbias = 0 * bias")),
    project("the mean of the squares less that of x", (RSTD, RSTD.replace("(q * q).mean(-1, keepdims=True)",
            "((p + 1e2) ** 2).mean(-1, keepdims=True) - (p + 1e2).mean(-1, keepdims=True) ** 2")), stage="float32"),
    project("nearly right", (RETURN, "return dx * 0.9999, dweight, dbias"), misconception="constant-factor"),
    project("clipped", (RETURN, "return np.clip(dx, -1e2, 1e2), dweight, dbias"), stage="linear in dy",
             misconception="not-linear"),
    project("one block of memory", (WDY, f"flat = dy.view()\n        flat.shape = (-1,)\n        {WDY}"), stage=ALONE),
    project("a difference for a gradient", (RETURN, """dx = np.zeros_like(x)
        for at in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[at] = 1e-5
            moved = Operator.forward(x + step, weight, bias) - Operator.forward(x - step, weight, bias)
            dx[at] = (dy * moved).sum() / 2e-5
        """ + RETURN), stage="float32"),
    project("what the last forward left", ("        return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]",
            "        Operator.kept = statistics(x)\n        " + Y), (f"{AGAIN}\n        wdy",
            "x_hat, rstd = Operator.kept\n        wdy"), stage=ALONE, misconception="another-answer"),
    project("the size in backward is another one", (DX, """near, less = 0.9 * x_hat, 0.9 * rstd
        dx = (less * (wdy - c2 - near * (near * wdy).mean(-1, keepdims=True))).reshape(x.shape)""")),
    project("returns its input", (Y, "return x"), (DX, "dx = dy.copy()"), (DW, "dweight = 0 * weight"),
            (DB, "dbias = 0 * bias")),
)  # fmt: skip
