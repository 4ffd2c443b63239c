"""Implementations that are wrong under a condition only: each an edit of a copy of the package.

The formulas in them are right. What is wrong is where they hold: for odd N above 8, in the second block, for the sum
and not for the mean, where one gradient alone is asked for. The points of `covering` must meet every such condition.
"""

from __future__ import annotations

from copies import Edit


def _of(backend, path):
    def mutant(name, *pairs):
        edits = pairs if isinstance(pairs[0], tuple) else ((pairs[0], pairs[1]),)
        return Edit(name, backend, path, edits)

    return mutant


ROWS = _of("torch", "torch_ops/rows.py")
FORMULA = _of("torch", "torch_ops/differentiable.py")
AUTOGRAD = _of("torch", "torch_ops/autograd.py")
NUMPY = _of("numpy", "numpy_ref.py")
SPEC = _of("torch", "spec.py")
ARITHMETIC = _of("triton", "triton_kernels/arithmetic.py")
LAUNCH = _of("triton", "triton_kernels/launch.py")
TILES = _of("triton", "triton_kernels/rows.py")
SWEEPS = _of("triton", "triton_kernels/sweeps.py")
KERNELS = _of("triton", "triton_kernels")
REDUCTION = _of("triton", "triton_kernels/reduction.py")
LOOPS = _of("numba", "numba_kernels/kernels.py")
NUMBA = _of("numba", "numba_kernels")
PROGRAMS = _of("numba", "numba_kernels/launch.py")

# The lines that are edited.
T_RSTD = "_rstd(q, spec, out=r)\n"
T_DW = "        if dw is not None:\n            _add_weight_gradient"
T_DB = "            db += dy_rows.sum(shared)\n"
T_WEIGHT = "        weight = spec.scale * weight\n"
T_WEIGHTS = "        weight = full_weight(weight, acc, spec)\n"
T_KAPPA = "if spec.place.kappa is not None and spec.eps != 0:"
T_ROWS = "        q = p = cast(p, acc)\n"
T_INSIDE = "s = out.fill_(spec.eps)"
T_STORED = "    _affine(x_hat, weight, bias, y_rows)\n"
T_FIRST = "r.data_ptr() == rstd.data_ptr()"
T_STORE = "_store(dp, from_sum, dx_rows)"
T_LOUD = "return torch.threshold_(s, 0, torch.nan)"
T_SIZE = "norm = _norm(q)\n"
F_INSIDE = "_loud((s2 + spec.eps).rsqrt())"
F_WEIGHT = "wdy = wdy * full_weight(weight, acc, spec)"
F_MOVED = "x_hat_dot * full_weight(weight, acc, spec)"
F_C1 = "c1 = kappa * (x_hat * wdy)"
F_ALONG = "along = kappa * (x_hat * q_dot)"
F_STATISTICS = "def statistics(p, spec):"
F_ROWS = "rows = tuple(range(p.dim() - 1 - per_head))"
N_ROWS = "rows = tuple(range(p.ndim - max(1, axes)))"
N_WDY = "    wdy = spec.scale * dy\n"
N_WEIGHT = "y = y * _weight(weight, np.result_type(acc, weight), spec)\n"
N_RSTD = "    rstd = _reciprocal(s2, spec)\n"
N_C1 = "    c1 = kappa * "
N_INSIDE = "return np.sqrt(s2 + spec.eps)"
K_RSTD = "    rstd = 1 / denominator(s2, EPS, PLACEMENT)\n"
K_EPS = '"EPS": spec.eps,'
K_KAPPA = 'if PLACEMENT != "inside" and EPS != 0:'
K_WEIGHT = (
    "weight = SCALE * load_weight(weight_ptr, cols, N, OFFSET, ACC, head, CACHE)\n"
)
K_OFFSET = "    if OFFSET != 0:\n        weight = weight + OFFSET\n"
K_OPTIONS = "stage_options(tile, device, *streams)\n"
K_TILES = "tl.range(tl.program_id(0), (M - 1) // (ROWS * share) + 1,"
K_LOUD = 'tl.where((rstd > 0) & (rstd <= most), rstd, float("nan"))'
J_STORED = "        store(y, j, scale"
J_EPS = "number(spec.eps)"
J_ROWS = "    for i in range(M * program // programs, M * (program + 1) // programs):\n        together"
J_WEIGHT = "_weight(weight, n, acc, spec), mean)"
J_PARTIAL = "_absent(count, acc) if one is None"
J_MEANS = "c1 / n, c2 / N"
CENTRED_SUM = 'spec.center and spec.reduce == "sum"'

KINDS = (
    # N
    ROWS(
        "rstd off for odd N above 8",
        T_RSTD,
        f"{T_RSTD}        r.mul_(1 + 1e-3 * (n % 2 and n > 8))\n",
    ),
    ARITHMETIC(
        "rstd off for odd N above 8",
        K_RSTD,
        f"{K_RSTD}    if N % 2 == 1 and N > 8:\n        rstd = rstd * 1.001\n",
    ),
    FORMULA(
        "c1 off for odd N above 8",
        F_C1,
        F_C1.replace(
            "kappa", "(1 + 1e-3 * (p.shape[-1] % 2 and p.shape[-1] > 8)) * kappa"
        ),
    ),
    NUMPY(
        "c1 off for odd N above 8",
        N_C1,
        f"{N_C1}(1 + 1e-3 * (p.shape[-1] % 2 and p.shape[-1] > 8)) * ",
    ),
    # eps
    ROWS(
        "eps below 1e-8 dropped",
        T_INSIDE,
        T_INSIDE.replace("spec.eps", "spec.eps * (spec.eps >= 1e-8)"),
    ),
    LAUNCH("eps below 1e-8 dropped", K_EPS, '"EPS": spec.eps * (spec.eps >= 1e-8),'),
    FORMULA(
        "eps below 1e-8 dropped",
        F_INSIDE,
        F_INSIDE.replace("spec.eps", "spec.eps * (spec.eps >= 1e-8)"),
    ),
    NUMPY(
        "eps below 1e-8 dropped",
        N_INSIDE,
        N_INSIDE.replace("spec.eps", "spec.eps * (spec.eps >= 1e-8)"),
    ),
    SPEC(
        "eps below 1e-8 dropped",
        "check_eps(self.eps))",
        "check_eps(self.eps) * (self.eps >= 1e-8))",
    ),
    ROWS(
        "eps doubled for the sum",
        T_RSTD,
        T_RSTD.replace(
            "q, spec",
            "q, spec.replace(eps=spec.eps * (2 if spec.reduce == 'sum' else 1))",
        ),
    ),
    LAUNCH(
        "eps doubled for the sum",
        K_EPS,
        '"EPS": spec.eps * (2 if spec.reduce == "sum" else 1),',
    ),
    NUMPY(
        "eps doubled for the sum",
        N_RSTD,
        N_RSTD.replace(
            "spec)", "spec.replace(eps=spec.eps * (2 if spec.reduce == 'sum' else 1)))"
        ),
    ),
    FORMULA(
        "eps doubled for the sum",
        F_INSIDE,
        F_INSIDE.replace("spec.eps", "spec.eps * (2 if spec.reduce == 'sum' else 1)"),
    ),
    # scale
    ROWS(
        "scale ignored backward for the mean",
        T_WEIGHT,
        T_WEIGHT.replace("spec.scale", '(spec.scale if spec.reduce == "sum" else 1)'),
    ),
    LAUNCH(
        "scale ignored backward for the mean",
        K_OPTIONS,
        f'{K_OPTIONS}        options["SCALE"] = spec.scale if spec.reduce == "sum" else 1.0\n',
    ),
    FORMULA(
        "scale ignored backward for the mean",
        "wdy = _scaled(dy, spec)",
        'wdy = dy * (spec.scale if spec.reduce == "sum" else 1)',
    ),
    NUMPY(
        "scale ignored backward for the mean",
        N_WDY,
        N_WDY.replace("spec.scale", '(spec.scale if spec.reduce == "sum" else 1)'),
    ),
    # kappa
    ROWS(
        "kappa ignored for centred sums",
        T_KAPPA,
        T_KAPPA.replace(":", f" and not ({CENTRED_SUM}):"),
    ),
    ARITHMETIC(
        "kappa ignored for centred sums",
        K_KAPPA,
        K_KAPPA.replace(":", " and (MEAN or not CENTER):"),
    ),
    FORMULA(
        "kappa ignored for centred sums",
        F_C1,
        F_C1.replace("kappa", f"(1 if {CENTRED_SUM} else kappa)"),
    ),
    FORMULA(
        "kappa ignored for centred sums, forward mode",
        F_ALONG,
        F_ALONG.replace("kappa", f"(1 if {CENTRED_SUM} else kappa)"),
    ),
    NUMPY(
        "kappa ignored for centred sums",
        N_C1,
        f"    c1 = (1 if {CENTRED_SUM} else kappa) * ",
    ),
    # blocks
    ROWS(
        "dw from the first block alone",
        T_DW,
        T_DW.replace("not None", f"not None and {T_FIRST}"),
    ),
    ROWS(
        "db from the last block alone",
        T_DB,
        "            db.copy_(dy_rows.sum(shared))\n",
    ),
    ROWS(
        "rstd off after the first block",
        T_RSTD,
        f"{T_RSTD}        r.mul_(1 if {T_FIRST} else 1.01)\n",
    ),
    ROWS(
        "dresidual_out of the first block",
        T_STORE,
        T_STORE.replace(
            "from_sum", "None if from_sum is None else dresidual_out[: len(dp)]"
        ),
    ),
    # rows
    ROWS(
        "rstd off beyond 256 rows", T_STORED, f"{T_STORED}    rstd[256:].mul_(1.001)\n"
    ),
    TILES(
        "rows beyond 256 left out of the backward",
        K_TILES,
        K_TILES.replace(
            "(M - 1) // (ROWS * share) + 1",
            "tl.minimum((M - 1) // (ROWS * share) + 1, 256 // ROWS)",
        ),
    ),
    SWEEPS(
        "rows beyond 256 left out of the backward",
        K_TILES,
        K_TILES.replace(
            "(M - 1) // (ROWS * share) + 1",
            "tl.minimum((M - 1) // (ROWS * share) + 1, 256 // ROWS)",
        ),
    ),
    NUMPY(
        "rows beyond 256 left out of db",
        "dy.sum(rows).astype",
        "dy.reshape(-1, dy.shape[-1])[:256].sum(0).astype",
    ),
    # weights
    ROWS(
        "a weight of 0 taken for 1",
        T_WEIGHTS,
        T_WEIGHTS.replace(
            "full_weight(weight,", "full_weight(torch.where(weight == 0, 1, weight),"
        ),
    ),
    ARITHMETIC(
        "a weight of 0 taken for 1",
        K_WEIGHT,
        f"{K_WEIGHT}        weight = tl.where((weight == 0) & (cols < N)[None, :], SCALE, weight).to(ACC)\n",
    ),
    NUMPY(
        "a weight of 0 taken for 1",
        N_WEIGHT,
        N_WEIGHT.replace("(weight,", "(np.where(weight == 0, 1, weight),", 1),
    ),
    FORMULA(
        "a weight of 0 taken for 1",
        F_WEIGHT,
        F_WEIGHT.replace("(weight,", "(torch.where(weight == 0, 1, weight),"),
    ),
    ROWS(
        "an offset that is not 1 taken for 1",
        T_WEIGHTS,
        T_WEIGHTS.replace(
            "spec)", "spec.replace(weight_offset=bool(spec.weight_offset)))"
        ),
    ),
    ARITHMETIC(
        "a negative offset dropped",
        K_OFFSET,
        K_OFFSET.replace("OFFSET != 0", "OFFSET > 0"),
    ),
    FORMULA(
        "an offset dropped where dx is differentiated",
        F_WEIGHT,
        "wdy = wdy * weight.to(acc)",
    ),
    FORMULA("forward mode: an offset dropped", F_MOVED, "x_hat_dot * weight.to(acc)"),
    AUTOGRAD(
        "vmap: an offset dropped",
        "full_weight(weight, accumulator(promoted(x, residual)), spec)",
        "weight.to(accumulator(promoted(x, residual)))",
    ),
    # leading axes
    NUMPY(
        "dw sums two axes at most",
        N_ROWS,
        N_ROWS.replace("p.ndim - max(1, axes)", "min(p.ndim - max(1, axes), 2)"),
    ),
    FORMULA(
        "dw sums two axes at most",
        F_ROWS,
        F_ROWS.replace("p.dim() - 1 - per_head", "min(p.dim() - 1 - per_head, 2)"),
    ),
    AUTOGRAD(
        "a mapped weight meets two axes at most",
        "(1,) * (x.dim() - t.dim())",
        "(1,) * min(x.dim() - t.dim(), 2)",
    ),
    # dtypes and magnitudes
    ROWS(
        "rows above 3e4 cut off",
        T_ROWS,
        "        q = p = cast(p, acc).clamp(-3e4, 3e4)\n",
    ),
    ROWS(
        "float16 rows squared in float16",
        T_ROWS,
        f"{T_ROWS}        if x.dtype == torch.float16:\n"
        "            q = p = torch.where((p * p).half().isinf(), 0.99 * p, p)\n",
    ),
    NUMPY(
        "float16 rows cut off at 3e4",
        "_rows(residual_out.astype(acc, copy=False), spec)",
        "_rows(residual_out.astype(acc).clip(*((-3e4, 3e4) if x.dtype == np.float16 else (None, np.inf))), spec)",
    ),
    ROWS(
        "a row is never below 1e-14",
        T_SIZE,
        T_SIZE.replace("\n", ".clamp_(min=1e-14)\n"),
    ),
    ROWS(
        "a row is never above 1e12", T_SIZE, T_SIZE.replace("\n", ".clamp_(max=1e12)\n")
    ),
    ARITHMETIC(
        "a row is never below 1e-14",
        K_RSTD,
        K_RSTD.replace("s2", "tl.where(s2 < 1e-28, 1e-28, s2)"),
    ),
    ROWS("zeros without a word", T_LOUD, "return s"),
    FORMULA(
        "zeros without a word",
        "return torch.where(lost(rstd), torch.nan, rstd)",
        "return rstd",
    ),
    NUMPY(
        "zeros without a word",
        "return np.where(lost, np.nan, 1 / np.where(lost, 1, d))",
        "return (1 / d)",
    ),
    ARITHMETIC("zeros without a word", K_LOUD, "rstd"),
    # what is asked for
    ROWS(
        "the bias alone gets nothing",
        "        if db is not None:\n",
        "        if db is not None and (outs or dw is not None):\n",
    ),
    AUTOGRAD(
        "the residual alone gets half",
        "        needed = zip",
        "        if dresidual is not None and not any(ctx.needs_input_grad[i] for i in (0, 2, 3)):\n"
        "            dresidual = dresidual / 2\n"
        "        needed = zip",
    ),
    LAUNCH(
        "the weight alone gets nothing",
        "        reduce_sums(partial",
        "        if dx_dtype is None and dresidual_dtype is None and sum_dtypes[1] is None:\n"
        "            partial[0].zero_()\n"
        "        reduce_sums(partial",
    ),
    AUTOGRAD(
        "the residual loses dresidual_out where x needs nothing",
        "rows(per_head, dy, dresidual_out, p)",
        "rows(per_head, dy, dresidual_out if ctx.needs_input_grad[0] else None, p)",
    ),
    # vmap
    AUTOGRAD(
        "vmap: a residual mapped as x is",
        "front(residual, in_dims[1])",
        "front(residual, in_dims[0])",
    ),
    AUTOGRAD(
        "vmap: a bias mapped as the weight is",
        "(bias, in_dims[3], torch.add)",
        "(bias, in_dims[2], torch.add)",
    ),
    AUTOGRAD(
        "vmap: a weight's axis is the first",
        "t = t.movedim(dim, 0)\n",
        "t = t.reshape(size, *t.movedim(dim, 0).shape[1:])\n",
    ),
    AUTOGRAD(
        "vmap: an axis is the first",
        "return t.movedim(dim, 0) if dim is not None",
        "return t.reshape(size, -1, *t.shape[1:])[:, 0] if dim is not None",
    ),
    # forward mode, higher derivatives
    AUTOGRAD(
        "nested forward mode through the Function",
        "for level in stack) > 1",
        "for level in stack) > 2",
    ),
    FORMULA(
        "forward mode drops the weight where the bias moves",
        "if weight_dot is not None:",
        "if weight_dot is not None and bias_dot is None:",
    ),
    AUTOGRAD(
        "forward mode drops a residual beside x",
        "for tangent in (x_dot, residual_dot) if tangent is not None]",
        "for tangent in (x_dot, residual_dot) if tangent is not None][:1]",
    ),
    FORMULA(
        "x_hat a constant of the second derivative",
        F_C1,
        F_C1.replace("x_hat", "x_hat.detach()"),
    ),
    FORMULA(
        "rstd linear, so wrong from the third derivative on",
        (F_INSIDE, "_loud(_linear(s2 + spec.eps))"),
        (
            F_STATISTICS,
            "def _linear(d):\n    at = d.detach()\n    return at.rsqrt() * (1 - (d - at) / (2 * at))\n\n\n"
            f"{F_STATISTICS}",
        ),
    ),
)

# Thought of when the set of points stood: other conditions of the same kinds.
# The same conditions in loops, in words of 16 bits and in the launcher of programs.
COMPILED = (
    LOOPS(
        "y off for odd N above 8",
        J_STORED,
        f"        x_hat *= 1 + 0.001 * (len(p) % 2 and len(p) > 8)\n{J_STORED}",
    ),
    PROGRAMS("eps below 1e-8 dropped", J_EPS, "number(spec.eps * (spec.eps >= 1e-8))"),
    PROGRAMS(
        "eps doubled for the sum",
        J_EPS,
        "number(spec.eps * (1 + (spec.reduce == 'sum')))",
    ),
    LOOPS("c2 is a mean over n", J_MEANS, J_MEANS.replace("/ N", "/ n")),
    LOOPS(
        "the second program begins a row late",
        J_ROWS,
        J_ROWS.replace("programs,", "programs + (program == 1),", 1),
    ),
    LOOPS(
        "scale twice in dw",
        "load(dy, j) * scale * n",
        "load(dy, j) * scale * scale * n",
    ),
    PROGRAMS(
        "an offset dropped for the sum",
        J_WEIGHT,
        J_WEIGHT.replace(
            "spec)",
            "spec.replace(weight_offset=0.0 if spec.reduce == 'sum' else spec.weight_offset))",
        ),
    ),
    PROGRAMS("db only with dw", J_PARTIAL, f"{J_PARTIAL} or dtypes[2] is None"),
    PROGRAMS(
        "dresidual only with dx",
        "made.get(dtypes[1])",
        "dtypes[0] and made.get(dtypes[1])",
    ),
    LOOPS(
        "bfloat16 is cut off",
        "np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))",
        "np.uint32(0)",
    ),
    LOOPS(
        "float16 read as it is",
        "words[j].view(np.float16).astype(np.float32)",
        "words[j].astype(np.float32)",
    ),
    LOOPS(
        "zeros without a word",
        "return rstd if 0 < rstd <= most else np.nan * most",
        "return rstd",
    ),
)

# The mean of what is left is not added to the mean.
MEANS = (
    NUMPY(
        "a mean that is not corrected",
        "mean = mean + (p - mean).mean(-1, keepdims=True)",
        "pass",
    ),
    ROWS(
        "a mean that is not corrected",
        "mean += torch.sub(p, mean.unsqueeze(-1), out=out).mean(-1)",
        "pass",
    ),
    FORMULA(
        "a mean that is not corrected",
        "mean = mean + (p - mean).mean(-1, keepdim=True)",
        "pass",
    ),
    LOOPS("a mean that is not corrected", "return mean + total / N", "return mean"),
    ARITHMETIC(
        "a mean that is not corrected",
        "return mean + tl.sum(centred(p, mean, cols, N), axis=1) / N",
        "return mean",
    ),
    SWEEPS(
        "a mean that is not corrected",
        "mean += tl.sum(rest, axis=1) / N",
        "pass",
    ),
)

OTHERS = (
    ROWS(
        "rstd off where N is a power of two above 4",
        T_RSTD,
        f"{T_RSTD}        r.mul_(1 + 1e-3 * (n > 4 and n & (n - 1) == 0))\n",
    ),
    ROWS(
        "c1 off for one number of columns, 61",
        "c1 = rstd * _along",
        "c1 = (1 + (n == 61)) * rstd * _along",
    ),
    SWEEPS(
        "the mean corrected by the whole blocks alone",
        "rest = tl.zeros([ROWS, BLOCK], ACC)\n        for start in tl.range(0, N, BLOCK",
        "rest = tl.zeros([ROWS, BLOCK], ACC)\n        for start in tl.range(0, N // BLOCK * BLOCK, BLOCK",
    ),
    SWEEPS(
        "db takes the last block's columns for the first's",
        "store_partial(db_ptr, db, cols, N, head",
        "store_partial(db_ptr, db, cols % BLOCK, N, head",
    ),
    REDUCTION(
        "partial sums after the first tile of them left out",
        "range(0, programs, ROWS)",
        "range(0, ROWS, ROWS)",
    ),
    TILES(
        "only the first tile of a program",
        "tl.num_programs(0), num_stages",
        "(M - 1) // ROWS + 1, num_stages",
    ),
    LAUNCH(
        "rows of one column read from their neighbours",
        "return 0 if t is None else t.stride(axis)",
        "return 0 if t is None else (t.stride(axis) + (t.shape[-1] == 1) * t.shape[0] // 2)",
    ),
    ROWS(
        "a negative scale loses its sign backward",
        T_WEIGHT,
        T_WEIGHT.replace("spec.scale", "abs(spec.scale)"),
    ),
    ROWS(
        "the bias dropped where there is no weight",
        "out = x_hat if bias is None else torch.add(x_hat, bias, out=out)",
        "out = x_hat",
    ),
    FORMULA(
        "scale squared in dw without a weight's mean",
        "_over(dy * _scaled(x_hat, spec), rows)",
        "_over(dy * (_scaled(x_hat, spec) if spec.reduce == 'mean' else _scaled(_scaled(x_hat, spec), spec)), rows)",
    ),
    ROWS(
        "a clamp measures the row on its mean",
        "(_size(q, spec), spec.eps, torch)\n        s",
        "(_size(q, spec), spec.eps * (0.5 if spec.reduce == 'sum' and not spec.center else 1), torch)\n        s",
    ),
    ARITHMETIC(
        "the clamp's kappa is 1 for the sum",
        "k = tl.where(s > EPS, 1.0, 0.0)",
        "k = tl.where(s > EPS * EPS, 1.0, 0.0)",
    ),
    AUTOGRAD(
        "a differentiable dx loses dresidual_out without a weight",
        "dx if dresidual_out is None else dx + dresidual_out\n        else",
        "dx if dresidual_out is None or weight is None else dx + dresidual_out\n        else",
    ),
    FORMULA(
        "forward mode: scale ignored where the weight alone moves",
        "    y_dot = _scaled(y_dot, spec)\n",
        "    y_dot = y_dot if p_dot is None and bias_dot is None else _scaled(y_dot, spec)\n",
    ),
    AUTOGRAD(
        "vmap: the axis counted from the end",
        "t.movedim(dim, 0) if dim is not None",
        "t.movedim(dim - t.dim() if dim else dim, 0) if dim != 2 else t.movedim(1, 0) if dim is not None",
    ),
    AUTOGRAD(
        "forward mode: the tangent of the sum from x alone",
        "torch.zeros_like(p) if p_dot is None else p_dot",
        "torch.zeros_like(p) if x_dot is None else x_dot.to(p.dtype)",
    ),
    FORMULA(
        "kappa a constant of the second derivative",
        "return q, _loud(1 / d), kappa.to(p.dtype)",
        "return q, _loud(1 / d), kappa.detach().to(p.dtype)",
    ),
    NUMPY(
        "the mean of float16 rows in float16",
        "mean = mean + (p - mean).mean(-1, keepdims=True)",
        "taken = p.astype(np.float16) if np.abs(p).max(initial=0) < 6e4 else p\n"
        "            mean = taken.mean(-1, keepdims=True).astype(p.dtype)",
    ),
    ROWS(
        "bfloat16 rows of more than 64 columns summed in bfloat16",
        T_RSTD,
        f"{T_RSTD}        if n > 64 and x.dtype == torch.bfloat16:\n            r.copy_(r.bfloat16())\n",
    ),
    AUTOGRAD(
        "the bias gets dw where x and the residual need nothing",
        "*_one_or_two(p.shape, *grads[:2]), *grads[2:]",
        "*_one_or_two(p.shape, *grads[:2]), grads[2], grads[3 if any(wanted[:3]) else 2]",
    ),
    LAUNCH(
        "a residual of one row is added once more",
        "x, residual = aligned_rows(x), ",
        "x, residual = aligned_rows(x if m != 1 or residual is None else x + residual), ",
    ),
)

# Dtypes of their own: what is rounded, and when.
FAST_SUM = "    if rounded and out.dtype == promoted(x, residual):\n        return torch.add(x, residual, out=out)\n"
ROUND = "        if ROUND:\n"
LOADED = "M, residual_step, N, VECTOR, heads, residual_head_step).to(ACC)\n"
COLUMNS = "SCALE * load_weight(weight_ptr, cols, N, OFFSET, ACC, head, CACHE)"
OPTIONS = "    dtypes, residual_out = [x.dtype, out_dtype], None\n"
SECOND = "    if dresidual_ptr is not None:\n"
WIDE = "_weight(weight, n, acc, spec), _vector(bias"
ONE_PARTIAL = "    if len(partial) == 1:\n"
DTYPES = (
    ROWS(
        "statistics of the rounded sum",
        "return out if rounded else total",
        "return out",
    ),
    KERNELS("statistics of the rounded sum", ROUND, "        if True:\n"),
    NUMBA(
        "statistics of the rounded sum",
        OPTIONS,
        f"    round_residual = True\n{OPTIONS}",
    ),
    ROWS("statistics of the sum before rounding", FAST_SUM, "    rounded = False\n"),
    KERNELS("statistics of the sum before rounding", ROUND, "        if False:\n"),
    NUMBA(
        "statistics of the sum before rounding",
        OPTIONS,
        f"    round_residual = False\n{OPTIONS}",
    ),
    ROWS(
        "a wide sum added in 16 bits",
        "torch.add(x.to(accumulator(promoted(x, residual))), residual)",
        "torch.add(x, residual)",
    ),
    KERNELS(
        "a wide sum added in 16 bits",
        LOADED,
        f"{LOADED}        p = cast(p, tl.bfloat16).to(ACC)\n",
    ),
    NUMBA(
        "a wide sum added in 16 bits",
        OPTIONS,
        f"    x, residual = x + residual, residual * 0\n{OPTIONS}",
    ),
    ROWS(
        "a wide dresidual out of a narrow dx",
        "    for dx in outs:\n",
        "    dp = dp.bfloat16().float()\n    for dx in outs:\n",
    ),
    KERNELS(
        "a wide dresidual out of a narrow dx",
        SECOND,
        f"{SECOND}        dx = cast(dx, tl.bfloat16).to(ACC)\n",
    ),
    NUMBA(
        "a wide dresidual out of a narrow dx",
        "{one: cast(dx, one)",
        "{one: cast(dx.bfloat16(), one)",
    ),
    ROWS(
        "y rounded twice on its way to out_dtype",
        "        y.copy_(out)",
        "        y.copy_(out.bfloat16())",
    ),
    NUMBA(
        "y rounded twice on its way to out_dtype",
        "return cast(y, out_dtype)",
        "return cast(y.bfloat16(), out_dtype)",
    ),
    ROWS("dw rounded to x's dtype", ", dtypes[2])", ", p.dtype).to(dtypes[2])"),
    ROWS(
        "db rounded to x's dtype",
        "cast(db, dtypes[3])",
        "cast(db.to(p.dtype), dtypes[3])",
    ),
    KERNELS(
        "sums rounded to float16",
        "tl.sum(total, axis=0), out",
        "cast(tl.sum(total, axis=0), tl.float16).to(tl.float32), out",
    ),
    NUMBA(
        "sums rounded to float16",
        ONE_PARTIAL,
        f"    partial = partial.astype(np.float16).astype(partial.dtype)\n{ONE_PARTIAL}",
    ),
    ROWS(
        "backward takes its own mean of the rounded sum",
        "torch.sub(q, means.unsqueeze(-1)",
        "torch.sub(q, q.mean(-1, keepdim=True)",
    ),
    KERNELS(
        "backward takes its own mean of the rounded sum",
        "centred(q, tl.load(mean_ptr + rows, mask=rows < M, other=0)",
        "centred(q, tl.sum(q, 1) / N",
    ),
    NUMBA(
        "backward takes its own mean of the rounded sum",
        "else _array(mean)",
        "else _array(p.to(acc).mean(-1))",
    ),
    ROWS(
        "weight rounded to x's dtype",
        T_WEIGHTS,
        T_WEIGHTS.replace("(weight,", "(weight.to(p.dtype),"),
    ),
    KERNELS(
        "weight rounded to float16",
        f"weight = {COLUMNS}",
        f"weight = cast({COLUMNS}, tl.float16).to(ACC)",
    ),
    NUMBA(
        "weight rounded to x's dtype",
        J_WEIGHT,
        J_WEIGHT.replace("weight,", "weight.to(p.dtype),", 1),
    ),
    ROWS(
        "the offset added in 16 bits",
        "full_weight(weight, like.dtype, spec)",
        "(weight + spec.weight_offset).to(like.dtype)",
    ),
    KERNELS(
        "the offset added in 16 bits",
        "weight = weight + OFFSET",
        "weight = cast(weight + OFFSET, tl.bfloat16).to(ACC)",
    ),
    NUMBA(
        "the offset added in 16 bits",
        WIDE,
        WIDE.replace("weight,", "weight + 1 - 1,", 1),
    ),
)

# Heads: rows with two strides, and a weight and a bias for each head.
H_ALONG = "weight.expand(t.shape[1:])[..., None]"
H_DW = "rstd.t()[..., None])"
H_SUMS = "    if dw is not None:\n        dw = cast(dw if spec.scale"
K_DW = "        reduce_sums(partial, sums, programs, vector.numel())\n"
K_STORED = "tl.store(rstd_ptr + rows, rstd, mask=rows < M)\n    y ="
J_ROW = (
    "head_step, N = matrix\n        start = i // heads * step + i % heads * head_step\n"
)
J_DW = "rstd[i], scale, zero, own(dw, i), own(db, i)"
HEADS = (
    KERNELS(
        "the stride from head to head dropped",
        "        starts += (rows % heads).to(tl.int64)[:, None] * head_step * VECTOR\n",
        "",
    ),
    NUMBA(
        "the stride from head to head dropped",
        J_ROW,
        J_ROW.replace(" + i % heads * head_step", ""),
    ),
    ROWS(
        "the weight of the first head for all",
        H_ALONG,
        "weight[:1].expand(t.shape[1:])[..., None]",
    ),
    KERNELS(
        "the weight of the first head for all", "ptr + head * N + cols", "ptr + cols"
    ),
    NUMBA(
        "the weight of the first head for all",
        "else vectors[i % len(vectors)]\n",
        "else vectors[0]\n",
    ),
    NUMPY("dw summed over all heads", N_ROWS, "rows = tuple(range(p.ndim - 1))"),
    ROWS(
        "dw summed over all heads",
        H_SUMS,
        f"    dw = dw.sum(0).expand_as(dw).clone()\n{H_SUMS}",
    ),
    KERNELS(
        "dw summed over all heads",
        K_DW,
        f"{K_DW}        sums = [t.sum(0).expand_as(t) for t in sums]\n",
    ),
    NUMBA("dw summed over all heads", J_DW, J_DW.replace("own(dw, i)", "own(dw, 0)")),
    ROWS(
        "statistics by token", H_DW, "rstd.t()[:1].expand(rstd.t().shape)[..., None])"
    ),
    KERNELS(
        "statistics by token",
        K_STORED,
        K_STORED.replace("+ rows, rstd", "+ rows // share, rstd"),
    ),
    NUMBA(
        "statistics by token", J_DW, J_DW.replace("rstd[i]", "rstd[i // len(weight)]")
    ),
)

# Dtypes, heads and layouts where torch's own operations run: tangents, mapped axes, gradients of gradients.
F_DOT = "y_dot = y_dot + x_hat * weight_dot.to(acc)"
A_MAPPED = "                t = t.movedim(dim, 0)\n"
L_NEGATED = "    t = t.resolve_neg()\n"
BESIDE = (
    AUTOGRAD(
        "vmap: y rounded before a mapped weight",
        "options = replace(options, out_dtype=accumulator(promoted(x, residual)))",
        "pass",
    ),
    AUTOGRAD(
        "vmap: the weight of the first head",
        A_MAPPED,
        f"{A_MAPPED}{A_MAPPED[:16]}t = t if t.dim() < 3 else t[:, :1]\n",
    ),
    AUTOGRAD(
        "forward mode: the tangent of a wide sum in x's dtype",
        "else p_dot).to(residual_dtype)",
        "else p_dot).to(x.dtype).to(residual_dtype)",
    ),
    FORMULA(
        "forward mode: the weight of the first head",
        F_DOT,
        F_DOT.replace(
            "weight_dot.to(acc)",
            "(weight_dot if weight_dot.dim() < 2 else weight_dot[:1]).to(acc)",
        ),
    ),
    FORMULA(
        "a sum stored in the summands' dtype",
        "p.to(residual_dtype or promoted",
        "p.to(promoted",
    ),
    FORMULA(
        "statistics of the rounded sum",
        "(residual_out if round_residual else p)",
        "residual_out",
    ),
    LAUNCH("a lazy minus dropped", L_NEGATED, ""),
    LAUNCH(
        "columns read as if they were adjacent",
        "adjacent = t.stride(-1) == 1",
        "adjacent = t.stride(-1) > 0",
    ),
    PROGRAMS(
        "a lazy minus dropped",
        "return t.resolve_neg() if t.is_neg() else t",
        "return t",
    ),
)
