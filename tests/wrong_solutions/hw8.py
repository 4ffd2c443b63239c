"""Wrong solutions of homework 8: a layer whose gradients, memory or bytes are wrong, and a stream that is cut."""

from wrong_solutions import of

DX, NORMS = "dx, row by row", "norms by depth"
HALF, FULL = "bytes within 50 % of the floor", "bytes within 5 % of the floor"
OUT = "dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None])"
STREAM = "dx += tl.load(dresidual_out_ptr + at, mask=mask, other=0)"
SAVE = "ctx.save_for_backward(residual_out, weight, mean, rstd)"
SAVED = "residual_out, weight, mean, rstd = ctx.saved_tensors"
SUM = "p = tl.load(x_ptr + at, mask=mask, other=0) + tl.load(residual_ptr + at, mask=mask, other=0)"
RETURN = "return dx, dx, dw, db, None"
TILE, STEP, NORM = (
    "rows = 32",
    "stream = norms[k](dy, stream)",
    "sizes.append(stream.square().sum().sqrt())",
)


layer = of("addnorm-layer", DX)
norms = of("gradient-norms", NORMS)


WRONG = (
    layer("the stream's gradient is forgotten", (STREAM, "pass"), misconception="dresidual-forgotten"),
    layer("rstd is a constant", (OUT, OUT.replace(" - x_hat * c1[:, None]", "")), misconception="c1-dropped"),
    layer("the residual has the stream's gradient alone", (RETURN, "return dx, dresidual_out, dw, db, None"),
          stage="dresidual", misconception="identity"),
    layer("saves x and residual, too", (SAVE, SAVE.replace("rstd)", "rstd, x, residual)")),
          (SAVED, SAVED.replace("rstd =", "rstd, _, _ =")), stage="structure", misconception="saves-too-much"),
    layer("the weight is a global", ("def tiles(m, n)", "gamma = None\n\n\ndef tiles(m, n)"),
          (SAVE, f"global gamma\n        gamma = weight\n        {SAVE}"), (SAVED, f"{SAVED}\n        weight = gamma"),
          stage="structure", misconception="global-read"),
    layer("torch adds first", ("programs, sizes = tiles(*x.shape)", "x, residual = x + residual, torch.zeros_like(x)\n"
                               "        programs, sizes = tiles(*x.shape)"), stage=HALF, misconception="work-outside"),
    layer("torch helps on the way back", (SAVED, f"{SAVED}\n        residual_out = residual_out * 1"), stage=HALF,
          misconception="work-outside"),
    layer("one row a program", (TILE, "rows = 1"), stage=HALF),
    layer("the sum is read back", ("tl.store(residual_out_ptr + at, p, mask=mask)",
                                   "tl.store(residual_out_ptr + at, p, mask=mask)\n"
                                   "    p = tl.load(residual_out_ptr + at, mask=mask, other=0)"), stage=FULL),
    norms("the stream is cut", (STEP, "stream = norms[k](dy, torch.zeros_like(dy))"), misconception="stream-cut"),
    norms("the stream is added again", (STEP, "stream = norms[k](dy, stream) + stream"), misconception="stream-twice"),
    norms("from the last place to the first", ("torch.stack(sizes[::-1])", "torch.stack(sizes)"),
             misconception="order-reversed"),
    norms("no root", (NORM, NORM.replace(".sqrt()", "")), misconception="squared-norm"),
)  # fmt: skip
