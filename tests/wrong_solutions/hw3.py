"""Wrong solutions of homework 3: wrong gradients of LayerNorm, and Functions that work only as long as no one asks."""

from wrong_solutions import Wrong, of

DX, DW, DB, BOTH, Y = "dx, row by row", "dw", "db", "db, dw", "forward"
TWICE, STRUCTURE, NARROW = "gradgradcheck", "structure", "float32 and bfloat16"
HAT = "x_hat = (x - mean[:, None]) * rstd"
N_C1, N_C2 = (
    "c1 = (x_hat * wdy).mean(-1, keepdims=True)",
    "c2 = wdy.mean(-1, keepdims=True)",
)
N_DX = "c2 = wdy.mean(-1, keepdims=True)\n    dx = rstd * (wdy - c2 - x_hat * c1)"
N_WDY = "wdy = weight * dy\n    c1 = (x_hat"
N_DW, N_DB = "    dw = (dy * x_hat).sum(0)\n", "    db = dy.sum(0)\n"
T_DX = "        dx = rstd * (wdy - c2 - x_hat * c1)\n"
T_WDY = "wdy = wide(weight) * dy"
T_PARAMETERS = "dw, db = (dy * x_hat).sum(0), dy.sum(0)"
T_SAVE = "ctx.save_for_backward(x, weight)"
T_SAVED = "x, weight = ctx.saved_tensors"
T_AGAIN = "x_hat, rstd = normalized(wide(x), ctx.eps)"
T_FIRST = "x_hat, _ = normalized(wide(x), eps)"
T_VAR = "(q.square().mean(-1, keepdim=True) + eps).rsqrt()"
T_OUT = "return (x_hat * wide(weight) + wide(bias)).to(x.dtype)"


def backward(name, old, new, stage=DX, misconception=""):
    """A wrong layernorm_backward."""
    return Wrong(name, "layernorm-backward", ((old, new),), stage, misconception)


function = of("layernorm-function", DX)


NUMPY = (
    backward(
        "the mean is not scaled",
        HAT,
        "x_hat = x * rstd - mean[:, None]",
        misconception="mean-not-scaled",
    ),
    backward(
        "rstd is a constant", N_DX, N_DX.replace(" - x_hat * c1", ""), DX, "c1-dropped"
    ),
    backward(
        "the mean is a constant", N_DX, N_DX.replace(" - c2", ""), DX, "c2-dropped"
    ),
    backward(
        "both are constants",
        N_DX,
        N_DX.replace(" - c2 - x_hat * c1", ""),
        DX,
        "statistics-constant",
    ),
    backward(
        "plus for minus",
        N_DX,
        N_DX.replace("- x_hat", "+ x_hat"),
        DX,
        "projection-sign",
    ),
    backward(
        "sum for mean in c1", N_C1, N_C1.replace("mean", "sum"), DX, "sum-for-mean-c1"
    ),
    backward(
        "sum for mean in c2",
        N_DX,
        N_DX.replace("wdy.mean", "wdy.sum"),
        DX,
        "sum-for-mean-c2",
    ),
    backward(
        "N - 1",
        N_C1,
        "c1 = (x_hat * wdy).sum(-1, keepdims=True) / (x.shape[-1] - 1)",
        DX,
        "bessel",
    ),
    backward("no weight", N_WDY, N_WDY.replace("weight * ", ""), DX, "weight-missing"),
    backward("no rstd in dx", N_DX, N_DX.replace("rstd * ", ""), DX, "rstd-missing"),
    backward("not centred", HAT, "x_hat = x * rstd", DX, "centring-missing"),
    backward(
        "no rstd in dw",
        N_DW,
        "    dw = (dy * (x - mean[:, None])).sum(0)\n",
        DW,
        "rstd-missing",
    ),
    backward("the weight in db", N_DB, "    db = wdy.sum(0)\n", DB, "weight-in-db"),
    backward(
        "a mean over the rows", N_DB, "    db = dy.mean(0)\n", DB, "rows-averaged"
    ),
)

PRODUCT = """class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rstd, rest):
        ctx.save_for_backward(rstd)
        return rstd * rest

    @staticmethod
    def backward(ctx, cotangent):
        return None, cotangent * ctx.saved_tensors[0]


"""

FUNCTION = (
    function("saves a copy", (T_SAVE, "ctx.save_for_backward(x.contiguous(), weight)"), stage=TWICE,
             misconception="constant-to-autograd"),
    function("rstd is a constant", (T_DX, T_DX.replace(" - x_hat * c1", "")), misconception="c1-dropped"),
    function("the mean is a constant", (T_DX, T_DX.replace(" - c2", "")), misconception="c2-dropped"),
    function("no weight in dx", (T_WDY, "wdy = dy"), misconception="weight-missing"),
    function("dw and db exchanged", (T_PARAMETERS, "db, dw = (dy * x_hat).sum(0), dy.sum(0)"), stage=BOTH,
             misconception="results-swapped"),
    function("torch's own variance divides by N - 1", (T_VAR, "(x.var(-1, keepdim=True) + eps).rsqrt()"), stage=Y,
             misconception="bessel"),
    function("eps outside the root", (T_VAR, "1 / (q.square().mean(-1, keepdim=True).sqrt() + eps)"), stage=Y,
             misconception="eps-placement"),
    function("no bias", (T_OUT, "return (x_hat * wide(weight)).to(x.dtype)"), stage=Y, misconception="bias-missing"),
    function("db is one number", (T_PARAMETERS, "dw, db = (dy * x_hat).sum(0), dy.sum().expand(len(weight))"),
             stage=BOTH, misconception="wrong-axis"),
    function("once differentiable", ("    @staticmethod\n    def backward",
                                     "    @staticmethod\n    @torch.autograd.function.once_differentiable\n"
                                     "    def backward"), stage=TWICE, misconception="constant-to-autograd"),
    function("a product's gradient by hand, of one factor", ("def wide(t)", PRODUCT + "def wide(t)"),
             (T_DX, T_DX.replace("rstd * (", "Product.apply(rstd, ")), stage=TWICE,
             misconception="second-by-hand"),
    function("the root before eps", (T_VAR, "1 / (q.square().mean(-1, keepdim=True).sqrt().square() + eps).sqrt()"),
             stage=TWICE, misconception="no-slope"),
    function("one flag for all", (T_DX, T_DX + "        if not ctx.needs_input_grad[0]:\n"
                                  "            return None, None, None, None\n"),
             stage=STRUCTURE, misconception="needs-another"),
    function("writes into dy", (f"        {T_PARAMETERS}\n", ""),
             (T_WDY, f"{T_PARAMETERS}\n        wdy = dy.mul_(wide(weight))"),
             stage="inputs left alone", misconception="input-overwritten"),
    function("saves x in float32", (T_SAVE, "ctx.save_for_backward(wide(x), weight)"),
             ("return dx.to(x.dtype), dw", "return dx.to(weight.dtype), dw"),
             stage=STRUCTURE, misconception="saves-too-much"),
    function("saves x_hat and rstd", (T_FIRST, "x_hat, rstd = normalized(wide(x), eps)"),
             (T_SAVE, "ctx.save_for_backward(x_hat, rstd, weight)"),
             (T_SAVED, "x_hat, rstd, weight = ctx.saved_tensors"), (T_AGAIN, "x = x_hat"), stage=TWICE,
             misconception="constant-to-autograd"),
    function("detached", (T_SAVED, "x, weight = (t.detach() for t in ctx.saved_tensors)"), stage=TWICE,
             misconception="constant-to-autograd"),
    function("saves all it has", (T_SAVE, "ctx.save_for_backward(x, weight, x_hat, x - x_hat)"),
             (T_SAVED, "x, weight, _, _ = ctx.saved_tensors"), stage=STRUCTURE,
             misconception="saves-too-much"),
    function("the weight is a global", ("def wide(t)", "gamma = None\n\n\ndef wide(t)"),
             (T_FIRST, f"global gamma\n        gamma = weight\n        {T_FIRST}"), (T_WDY, "wdy = wide(gamma) * dy"),
             stage=STRUCTURE, misconception="global-read"),
    function("eps is kept on the class", ("        ctx.eps = eps\n", "        LayerNorm.eps = eps\n"),
             ("normalized(wide(x), ctx.eps)", "normalized(wide(x), LayerNorm.eps)"), stage=STRUCTURE,
             misconception="global-read"),
    function("x in a closure", (T_SAVE, "ctx.save_for_backward(weight)\n        ctx.kept = lambda: x"),
             (T_SAVED, "(weight,), x = ctx.saved_tensors, ctx.kept()"), stage=STRUCTURE,
             misconception="kept-on-ctx"),
    function("x as an attribute of ctx", (T_SAVE, "ctx.save_for_backward(weight)\n        ctx.x = x"),
             (T_SAVED, "(weight,), x = ctx.saved_tensors, ctx.x"), stage=STRUCTURE,
             misconception="kept-on-ctx"),
    function("sums in bfloat16", ("return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t", "return t"),
             stage=NARROW, misconception="narrow-intermediate"),
    function("one-pass variance",
             (T_VAR, "(x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True).square() + eps).rsqrt()"),
             stage=NARROW, misconception="one-pass-variance"),
)  # fmt: skip

WRONG = NUMPY + FUNCTION
