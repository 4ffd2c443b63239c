"""Wrong solutions of homework 5: ways to a variance that do not survive an offset, and wrong merges."""

from wrong_solutions import of

ZERO, HUNDRED, FAR = (f"variance, mean near {offset}" for offset in (0, 100, 10000))
VAR, LAST = "var = (q * q).mean(-1)", "q = q - left\n    var = (q * q).mean(-1)"
WIDE, FIRST = "wide = x.astype(np.float32)", "first = wide.mean(-1, keepdims=True)"
OUT = "return (q * rstd[:, None]).astype(x.dtype), (first + left)[:, 0], var, rstd"
FORMATS = "float32 throughout"
MEAN, SQUARES, BETWEEN = "mean = mean1 + share * d", "squares", "n1 * share * d * d"

OTHERS = "mean, rstd, x_hat"
SHIFTED = """near = wide - ({})
    var = np.maximum((near * near).mean(-1) - near.mean(-1) ** 2, 0)"""
WELFORD = """running, squares = np.zeros(len(x), "f"), np.zeros(len(x), "f")
    for at, entry in enumerate(wide.T):
        d = entry - running
        running = running + d / np.float32(at + 1)
        squares = squares + d * (entry - running)
    var = squares / np.float32(x.shape[1])"""

MERGED = """count, mean, squares = 0, np.zeros(len(x), "f"), np.zeros(len(x), "f")
    for block in np.split(wide, range(4, wide.shape[1], 4), axis=1):
        k, d = block.shape[1], block.mean(-1) - mean
        mean = mean + d * np.float32(k / (count + k))
        squares = squares + k * block.var(-1) + d * d * np.float32(count * k / (count + k))
        count += k
    var = squares / np.float32(x.shape[1])"""


rows = of("stable-normalize", ZERO)
merge = of("merge-blocks", SQUARES)


ROWS = (
    rows("no axis for one row", (OUT, OUT.replace("(first + left)[:, 0], var, rstd",
         "(first + left).squeeze(), var.squeeze(), rstd.squeeze()")), stage="signature and shapes",
         misconception="axis-of-one"),
    rows("one x_hat for all calls", (OUT, OUT.replace("(q * rstd[:, None]).astype(x.dtype)",
         "np.multiply(q, rstd[:, None], out=vars(stable_normalize).setdefault(str((x.shape, x.dtype)), "
         "np.empty_like(x)), casting='same_kind')")), stage="inputs left alone", misconception="memory-shared"),
    rows("one pass", (VAR, "var = (wide * wide).mean(-1) - (first * first)[:, 0]"), stage=HUNDRED,
             misconception="one-pass-variance"),
    rows("one pass, clamped at 0",
         (VAR, "var = np.maximum((wide * wide).mean(-1) - (first * first)[:, 0], 0)"), stage=FAR,
             misconception="one-pass-variance"),
    rows("one pass, divided last", (VAR, "n = np.float32(x.shape[1])\n    "
                                    "var = ((wide * wide).sum(-1) - wide.sum(-1) ** 2 / n) / n"), stage=FAR,
                                    misconception="one-pass-variance"),
    rows("one pass by einsum",
         (VAR, "var = np.einsum('ij,ij->i', wide, wide) / np.float32(x.shape[1]) - first[:, 0] ** 2"),
         stage=FAR, misconception="one-pass-variance"),
    rows("N - 1", (VAR, "var = (q * q).sum(-1) / np.float32(max(x.shape[1] - 1, 1))")),
    rows("sum for mean", (VAR, "var = (q * q).sum(-1)"), misconception="reduce-exchanged"),
    rows("the square of the sum is not divided", (VAR, "d = wide - wide[:, :1]\n    "
         "var = np.maximum((d * d).sum(-1) - d.sum(-1) ** 2, 0) / np.float32(x.shape[1])")),
    rows("zeros up to 16 are counted", (VAR, "var = ((q * q).sum(-1) + (-x.shape[1] % 16) * first[:, 0] ** 2) "
         "/ np.float32(x.shape[1])"), misconception="padding-counted"),
    rows("the shifted squares without their mean", (VAR, "d = wide - wide[:, :1]\n    var = (d * d).mean(-1)")),
    rows("half the squared differences of neighbours",
         (VAR, "d = np.diff(wide, axis=-1)\n    var = (d * d).sum(-1) / np.float32(2 * max(d.shape[1], 1))")),
    rows("one step of Newton", ("rstd = 1 / np.sqrt(var + np.float32(eps))", """v = var + np.float32(eps)
    rstd = (0x5F3759DF - (v.view(np.int32) >> 1)).astype(np.int32).view(np.float32)
    rstd = rstd * (np.float32(1.5) - np.float32(0.5) * v * rstd * rstd)"""), stage=OTHERS),
    rows("a constant row has the rstd 1", ("rstd = 1 / np.sqrt(var + np.float32(eps))",
         "rstd = np.where(var == 0, np.float32(1), 1 / np.sqrt(var + np.float32(eps)))"), stage="degenerate rows"),
    rows("deviations in the format of the rows",
         (VAR, "var = ((wide - first).astype(x.dtype).astype('f') ** 2).mean(-1)"),
         stage="stored in float16", misconception="narrow-intermediate"),
    rows("not centred", (VAR, "var = (wide * wide).mean(-1)"), misconception="variance-uncentred"),
    rows("zeros up to a power of two are counted",
         (VAR, "n = x.shape[1]\n    more = 2 ** max(n - 1, 0).bit_length() - n\n    "
          "var = ((q * q).sum(-1) + more * first[:, 0] ** 2) / np.float32(n)"), stage="rows of 1 to 4096",
             misconception="padding-counted"),
    rows("the square of the mean deviation is added", (VAR, "d = wide - wide[:, :1]\n    "
         "var = (d * d).mean(-1) + d.mean(-1) ** 2")),
    rows("the mean of the deviations is not squared", (LAST, "var = np.maximum((q * q).mean(-1) - left[:, 0], 0)\n    "
         "q = q - left"), stage=FAR),
    rows("rstd is 0 without spread", ("1 / np.sqrt(var + np.float32(eps))",
         "np.where(var == 0, np.float32(0), 1 / np.sqrt(var + np.float32(eps)))"), stage="degenerate rows"),
    rows("over all rows", (VAR, "var = np.full(len(x), (q * q).mean(), np.float32)"), misconception="rows-mixed"),
    rows("the mean is rounded to 16 bits", (FIRST, f"{FIRST}.astype(np.float16).astype(np.float32)"),
         (LAST, VAR), (OUT, OUT.replace("(first + left)", "first")), stage=HUNDRED,
             misconception="narrow-intermediate"),
    rows("the mean of the first four", (FIRST, "first = wide[:, :4].mean(-1, keepdims=True)"),
         (LAST, VAR), (OUT, OUT.replace("(first + left)", "first"))),
    rows("a shift for all rows", (VAR, SHIFTED.format("wide.mean() if x.size else 0")), stage=FAR),
    rows("a shift of 10000", (VAR, SHIFTED.format("np.float32(1e4)")), misconception="one-pass-variance"),
    rows("Welford without a shift", (VAR, WELFORD), stage=FAR),
    rows("x times its deviation", (VAR, "var = np.maximum((wide * (wide - first)).mean(-1), 0)"), stage=HUNDRED),
    rows("eps in the variance", (VAR, f"{VAR} + np.float32(eps)"), ("var + np.float32(eps)", "var"),
             misconception="eps-in-variance"),
    rows("variances of blocks", (VAR, "var = sum(part.shape[1] * part.var(-1) for part in np.array_split(q, range(32, "
         "q.shape[1], 32), axis=1)) / np.float32(q.shape[1])"), misconception="many-columns"),
    rows("whole blocks of 16", (LAST, f"{LAST}\n    full = x.shape[1] // 16 * 16 or x.shape[1]\n    "
         "var = (q[:, :full] ** 2).sum(-1) / np.float32(x.shape[1])"), stage="rows of 1 to 4096",
             misconception="padding-counted"),
    rows("the first entry is not squared", (VAR, "var = (q[:, 1:] ** 2).sum(-1) / np.float32(x.shape[1])")),
    rows("blocks of four are merged without a shift", (VAR, MERGED), stage=FAR),
    rows("the shift is not added back", (WIDE, f"{WIDE}\n    wide = wide - wide[:, -1:]"), stage=OTHERS),
    rows("eps is a floor", ("var + np.float32(eps)", "np.maximum(var, np.float32(eps))"), stage=OTHERS),
    rows("the standard deviation", (VAR, "var = np.sqrt((q * q).mean(-1))")),
    rows("the mean absolute deviation", (VAR, "var = np.abs(q).mean(-1)")),
    rows("computes in the dtype of x", (WIDE, "wide = x"), stage="stored in float16"),
    rows("computes in float64", (WIDE, 'wide = x.astype("d")'),
         (OUT, 'return [each.astype("f") if each.ndim == 1 else each.astype(x.dtype)\n            '
          "for each in (q * rstd[:, None], (first + left)[:, 0], var, rstd)]"), stage=FORMATS,
         misconception="wide-arithmetic"),
    rows("the sums in float64, out of the watched array",
         (VAR, 'var = (np.asarray(q, "d") ** 2).mean(-1).astype("f")'), stage=FORMATS,
         misconception="wide-arithmetic"),
    rows("the sums in numbers of Python",
         (VAR, "var = [sum(abs(complex(v)) ** 2 for v in row) / len(row) for row in q]\n    "
               "var = np.array(var, np.float32).reshape(-1)"),
         stage=FORMATS, misconception="wide-arithmetic"),
    rows("a sum with the dtype of a double", (VAR, 'var = (q * q).mean(-1, dtype="d").astype("f")'), stage=FORMATS,
         misconception="wide-arithmetic"),
    rows("running means, divided by whole numbers",
         (VAR, """d = wide - wide[:, :1]
    means = np.cumsum(d, axis=1) / np.arange(1, d.shape[1] + 1)
    before = np.concatenate([np.zeros((len(x), 1)), means[:, :-1]], axis=1)
    var = ((d - before) * (d - means)).mean(-1).astype("f")"""), stage=FORMATS, misconception="wide-arithmetic"),
    rows("halves of a row are merged as if equally long",
         (VAR, """def halves(d):
        if d.shape[1] == 1:
            return d[:, 0], 0 * d[:, 0]
        (a, u), (b, v) = map(halves, np.split(d, [d.shape[1] // 2], axis=1))
        return (a + b) / 2, (u + v) / 2 + (b - a) ** 2 / 4
    var = halves(q)[1]"""), stage="rows of 1 to 4096", misconception="padding-counted"),
    rows("a shift stays in the normalized rows", ("(q * rstd[:, None])", "((wide - wide[:, :1]) * rstd[:, None])"),
         stage=OTHERS),
    rows("works on x itself", (WIDE, "wide = x.astype(np.float32, copy=False)"),
         ("q = wide - first", "q = wide\n    q -= first"), stage="inputs left alone",
         misconception="input-overwritten"),
    rows("divides by the deviation alone", ("np.sqrt(var + np.float32(eps))", "np.sqrt(var)"), stage="degenerate rows"),
)  # fmt: skip

MERGE = (
    merge("the squares add up", (f" + {BETWEEN}", ""), misconception="merge-between"),
    merge("the distance without a weight", (BETWEEN, "d * d"), misconception="merge-between"),
    merge("the weight is not divided", (BETWEEN, "n1 * n2 * d * d"), misconception="merge-between"),
    merge("the weight of a variance", (BETWEEN, "n1 * share / np.maximum(n, 1) * d * d"),
             misconception="merge-between"),
    merge("the weight of blocks of one length", (BETWEEN, "n / 4 * d * d"), misconception="merge-between"),
    merge("the sum of the means for their distance", (BETWEEN, "n1 * share * (mean1 + mean2) ** 2")),
    merge("the second block alone moves", (BETWEEN, "n2 * (mean2 - mean) ** 2"), misconception="merge-between"),
    merge("the squares are averaged", ("squares1 + squares2", "(1 - share) * squares1 + share * squares2")),
    merge("only pairs of two blocks are merged", ("return n, mean, squares", "both = n1 * n2 > 0\n    "
          "return n, np.where(both, mean, 0), np.where(both, squares, 0)"), stage="empty blocks"),
    merge("from the merged mean", (BETWEEN, "n2 * d * (mean2 - mean)")),
    merge("one empty block decides for all", ("n = n1 + n2", "if np.any(n1 == 0):\n        "
          "return n2.copy(), mean2.copy(), squares2.copy()\n    n = n1 + n2"), stage="empty blocks",
             misconception="identity"),
    merge("a small number beside n", ("np.maximum(n, 1)", "(n + np.float32(1e-5))"), stage="empty blocks"),
    merge("n in whole numbers", ("return n,", "return n.astype(int),"), stage="signature and shapes",
          misconception="whole-numbers"),
    merge("the distance without its sign", ("d = mean2 - mean1", "d = np.abs(mean2 - mean1)"), stage="count and mean"),
    merge("the product of the counts as int32",
          (BETWEEN, "(n1.astype(np.int32) * n2.astype(np.int32)).astype(np.float32) / np.maximum(n, 1) * d * d")),
    merge("minus for plus", (f" + {BETWEEN}", f" - {BETWEEN}"), misconception="merge-between"),
    merge("each block counts alike", (MEAN, "mean = (mean1 + mean2) / 2"), stage="count and mean",
             misconception="merge-weights"),
    merge("weights exchanged", (MEAN, "mean = mean2 - share * d"), stage="count and mean",
             misconception="merge-weights"),
    merge("by way of the squares", ("squares1 + squares2 + " + BETWEEN,
          "squares1 + n1 * mean1**2 + squares2 + n2 * mean2**2 - n * mean**2")),
    merge("an empty pair is divided by 0", ("np.maximum(n, 1)", "n"), stage="empty blocks"),
    merge("by way of the squares, in float64",
          ("n = n1 + n2", 'n1, mean1, squares1, n2, mean2, squares2 = (np.asarray(a, "d") for a in '
           "(n1, mean1, squares1, n2, mean2, squares2))\n    n = n1 + n2"),
          ("squares1 + squares2 + " + BETWEEN, "squares1 + n1 * mean1**2 + squares2 + n2 * mean2**2 - n * mean**2"),
          ("return n, mean, squares", 'return [each.astype("f") for each in (n, mean, squares)]'), stage=FORMATS,
          misconception="wide-arithmetic"),
)  # fmt: skip

WRONG = ROWS + MERGE
