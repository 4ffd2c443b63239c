"""Wrong solutions of homework 4: masks, strides, races and formats in kernels, and terms of the stream's gradient."""

from wrong_solutions import of

Y, STATISTICS, SIZES, KERNELS = "y", "mean, rstd", "sizes and strides", "kernels"
NARROW, DX, BOTH, RESIDUAL = (
    "float32 and float16",
    "dx, row by row",
    "db, dw",
    "dresidual",
)
P, Q = "p = stored.to(ACC)\n", "q = tl.where(mask, p - mean[:, None], 0)"
RSTD = "rstd = 1 / tl.sqrt(tl.sum(q * q, axis=1) / N + EPS)"
X = "x = tl.load(x_ptr + at * x_step + cols[None, :], mask=mask, other=0)"
STORE_Y = (
    "tl.store(y_ptr + at * N + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)"
)
OUT = "dx = rstd[:, None] * (wdy - c2[:, None] - x_hat * c1[:, None]) + stream"
C1 = "c1 = tl.sum(x_hat * wdy, axis=1) / N"
C2 = "c2 = tl.sum(wdy, axis=1) / N"
PARTIAL = "tl.store(dw_ptr + mine, tl.sum(dw, axis=0), mask=cols < N)"
NEW_PARTIAL = "partial = p.new_empty(2, programs, n, dtype=acc)"


forward = of("addnorm-forward", Y)
backward = of("addnorm-backward", DX)


FORWARD = (
    forward("the padding is not masked again", (Q, "q = p - mean[:, None]"), stage=SIZES,
             misconception="padding-counted"),
    forward("divided by the block", ("mean = tl.sum(p, axis=1) / N", "mean = tl.sum(p, axis=1) / BLOCK"), stage=SIZES,
             misconception="padding-counted"),
    forward("the variance divided by the block", ("tl.sum(q * q, axis=1) / N", "tl.sum(q * q, axis=1) / BLOCK"),
            stage=SIZES, misconception="padding-counted"),
    forward("a load without a mask", (X, X.replace(", mask=mask, other=0", "")), stage=KERNELS,
            misconception="out-of-bounds"),
    forward("a load without a number past its mask", (X, X.replace(", other=0", "")), stage=KERNELS,
            misconception="masked-lanes"),
    forward("a store without a mask", (STORE_Y, STORE_Y.replace(", mask=mask", "")), stage=KERNELS,
            misconception="out-of-bounds"),
    forward("rows are N apart, whatever the stride", (X, X.replace("x_step", "N")), stage=SIZES,
            misconception="stride-ignored"),
    forward("columns are adjacent, whatever the stride",
            ("return t if t.stride(-1) == 1 else t.contiguous()", "return t"), stage="inputs left alone",
            misconception="stride-ignored"),
    forward("the last rows are left out", ("forward_kernel[(triton.cdiv(m, tile),)]", "forward_kernel[(m // tile,)]"),
             misconception="last-rows"),
    forward("fewer rows than a tile are left out, too",
            ("if m > 0:\n        forward_kernel[(triton.cdiv(m, tile),)]",
             "if m >= tile:\n        forward_kernel[(m // tile,)]"), misconception="last-rows"),
    forward("y has the strides of x", (STORE_Y, STORE_Y.replace("at * N", "at * x_step")), stage=SIZES,
            misconception="stride-ignored"),
    forward("the mean of the sum before it is rounded",
            ("mean = tl.sum(p, axis=1) / N", "mean = tl.sum(x + residual, axis=1) / N"), stage=NARROW,
            misconception="sum-not-rounded"),
    forward("the variance of the sum before it is rounded", (Q, "s = tl.where(mask, x + residual, 0)\n    "
            "s = tl.where(mask, s - tl.sum(s, axis=1)[:, None] / N, 0)\n    " + Q), ("q * q", "s * s"), stage=NARROW,
            misconception="sum-not-rounded"),
    forward("the residual is left out", (P, "p = x\n"), misconception="residual-left-out"),
    forward("normalizes the sum before it is rounded", (P, "p = x + residual\n"), stage=NARROW,
             misconception="sum-not-rounded"),
    forward("sums in float16", (P, "p = stored\n"), stage=NARROW),
    forward("one-pass variance",
            (RSTD, RSTD.replace("tl.sum(q * q, axis=1) / N", "tl.sum(p * p, axis=1) / N - mean * mean")),
            stage=NARROW, misconception="one-pass-variance"),
    forward("eps outside the root", (RSTD, "rstd = 1 / (tl.sqrt(tl.sum(q * q, axis=1) / N) + EPS)"),
            misconception="eps-placement"),
    forward("eps as a float32 argument",
            (RSTD, f"eps = EPS\n    {RSTD.replace('EPS', 'eps')}"), ("EPS: tl.constexpr", "EPS"),
            stage=STATISTICS, misconception="narrow-arithmetic"),
    forward("torch does the last step",
            (STORE_Y, STORE_Y.replace("y.to", "(q * rstd[:, None]).to")),
            ("    return y, residual_out, mean, rstd", 
             "    return y * weight + bias + 0 * x, residual_out, mean, rstd"),
            stage=KERNELS, misconception="work-outside"),
)  # fmt: skip

BACKWARD = (
    backward("dresidual_out is forgotten", (OUT, OUT.replace(" + stream", "")), misconception="dresidual-forgotten"),
    backward("dresidual_out is scaled by rstd", (OUT, OUT.replace(") + stream", " + stream)")),
             misconception="dresidual-scaled"),
    backward("dresidual_out joins wdy", ("wdy = dy * weight[None, :]", "wdy = dy * weight[None, :] + stream"),
             (OUT, OUT.replace(" + stream", "")), misconception="dresidual-through-norm"),
    backward("a float32 for 1 / N", (C1, f"{C1.replace(' / N', '')} * tl.full((1,), 1.0 / N, tl.float32)"),
             (C2, f"{C2.replace(' / N', '')} * tl.full((1,), 1.0 / N, tl.float32)"), stage=SIZES,
             misconception="narrow-arithmetic"),
    backward("rstd is a constant", (OUT, OUT.replace(" - x_hat * c1[:, None]", "")), misconception="c1-dropped"),
    backward("the norm of a row without spread gives nothing",
             (OUT, OUT.replace("rstd[:, None] *", "tl.where(rstd > 300, 0, rstd)[:, None] *")),
             stage="degenerate rows", misconception="flat-row"),
    backward("the mean is a constant", (OUT, OUT.replace(" - c2[:, None]", "")), misconception="c2-dropped"),
    backward("sum for mean", (C1, "c1 = tl.sum(x_hat * wdy, axis=1)"), misconception="sum-for-mean-c1"),
    backward("divided by the block", (C1, "c1 = tl.sum(x_hat * wdy, axis=1) / BLOCK"), stage=SIZES,
             misconception="padding-counted"),
    backward("the residual has the stream's gradient alone",
             ("return dx, dx, dw, db", "return dx, dresidual_out, dw, db"),
             stage=RESIDUAL, misconception="identity"),
    backward("the weight in db", ("db += dy", "db += wdy"), stage=BOTH, misconception="weight-in-db"),
    backward("not centred in dw", ("dw += dy * x_hat", "dw += dy * p * rstd[:, None]"), stage=BOTH,
             misconception="centring-missing"),
    backward("64 columns at most", ("programs, block = min(4, triton.cdiv(m, tile)), triton.next_power_of_2(n)",
                                    "programs, block = min(4, triton.cdiv(m, tile)), 64"), stage=SIZES,
                                    misconception="many-columns"),
    backward("each tile overwrites the sums", ("dw += dy * x_hat", "dw = dy * x_hat"), ("db += dy", "db = dy"),
             stage=SIZES, misconception="many-rows"),
    backward("nothing is written for no rows",
             ("weight.new_zeros(n), weight.new_zeros(n)", "weight.new_empty(n), weight.new_empty(n)"),
             stage="degenerate rows", misconception="no-rows"),
    backward("one mean for a tile", ("tl.load(mean_ptr + rows, mask=rows < M, other=0)",
             "tl.load(mean_ptr + tile) + tl.zeros([ROWS], ACC)"), misconception="rows-mixed"),
    backward("one tile a program", ("range(tl.program_id(0), (M + ROWS - 1) // ROWS, tl.num_programs(0))",
                                    "range(tl.program_id(0), tl.program_id(0) + 1)"), stage=SIZES,
                                    misconception="many-rows"),
    backward("all programs add to one row", (NEW_PARTIAL, NEW_PARTIAL.replace("new_empty", "new_zeros")),
             (PARTIAL, "before = tl.load(dw_ptr + cols, mask=cols < N)\n    "
                       "tl.store(dw_ptr + cols, before + tl.sum(dw, axis=0), mask=cols < N)"),
             stage=KERNELS, misconception="race"),
    backward("programs without rows", ("min(4, triton.cdiv(m, tile))", "4"),
             (PARTIAL, "if tl.program_id(0) * ROWS < M:\n        " + PARTIAL), stage=SIZES, misconception="last-rows"),
    backward("atomics", (NEW_PARTIAL, NEW_PARTIAL.replace("new_empty", "new_zeros")),
             (PARTIAL, "tl.atomic_add(dw_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)"), stage=KERNELS,
             misconception="atomics"),
    backward("torch adds up the rows",
             ("for sums, out in zip(partial, (dw, db), strict=True):",
              "db = dy.sum(0)\n        for sums, out in zip(partial[:1], (dw,), strict=True):"),
             stage=KERNELS, misconception="work-outside"),
    backward("rows past the end are the last row",
             ("rows = tile * ROWS + tl.arange(0, ROWS)\n        mask = (rows < M)[:, None] & (cols < N)[None, :]\n"
              "        at = rows.to(tl.int64)[:, None]\n        dy =",
              "rows = tl.minimum(tile * ROWS + tl.arange(0, ROWS), M - 1)\n"
              "        mask = (rows < M)[:, None] & (cols < N)[None, :]\n"
              "        at = rows.to(tl.int64)[:, None]\n        dy ="), stage=BOTH, misconception="last-rows"),
    backward("the sums of the call before",
             ("def accumulator(t):", "KEPT = {}\n\n\ndef accumulator(t):"),
             (NEW_PARTIAL, "partial = KEPT.setdefault((programs, n, acc), p.new_zeros(2, programs, n, dtype=acc))"),
             (PARTIAL, PARTIAL.replace("tl.sum(", "tl.load(dw_ptr + mine, mask=cols < N, other=0) + tl.sum(")),
             stage=KERNELS, misconception="another-answer"),
    backward("partial sums in float16", ("partial = p.new_empty(2, programs, n, dtype=acc)",
                                         "partial = p.new_empty(2, programs, n)"), stage=NARROW,
             misconception="narrow-intermediate"),
)  # fmt: skip

WRONG = FORWARD + BACKWARD
