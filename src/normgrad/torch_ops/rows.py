"""The operator in torch, forward and backward, a block of rows at a time.

On a CPU a block stays in cache from its first read to its last write, so each (M, N) tensor crosses memory once, and
the temporaries are one block large; on any other device all rows are one block. Same signatures as triton_kernels.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from functools import lru_cache

import torch

from .differentiable import accumulator, cast, full_weight, promoted

# 512 Ki elements, 2 MiB in float32. Measured on two cores that share 32 MiB of cache, at (4096, 1024), forward plus
# backward: 12 ms with 64 Ki, 9.7 with 256 Ki, 8.4 with 512 Ki. A smaller block stays in a nearer cache, but each of
# its 45 torch calls costs 1 to 3 us.
BLOCK_ELEMENTS = 524288
# Columns of the longest rows that vector_norm and a matrix-vector product sum at once. Each adds up a few lanes in
# float32: of 10**6 columns s is off by 9e-6 of itself, of 10**7 by 4e-4, and in parts by 4e-8. Parts of a norm take no
# longer; products that are added up pairwise take three times as long as a matrix-vector product.
NORM_COLUMNS, PRODUCT_COLUMNS = 2**12, 2**14
# The largest s**2 of a row whose squares are lost: the next number below the normal ones.
LOST = {
    dtype: torch.finfo(dtype).tiny * (1 - torch.finfo(dtype).eps)
    for dtype in (torch.float32, torch.float64)
}
# Bytes from which on huge pages are asked for, as NumPy does for its arrays. The system interrupts the first write to
# each page to clear it. Forward and backward of (2048, 8192) in new memory, two cores: 56 ms with pages of 4 KiB, 22
# with pages of 2 MiB, 15 where no page is new.
LARGE = 2**22


def _block(x):
    """How many rows the largest block has; where there are heads, how many rows of all heads."""
    m, *row = x.shape
    return (
        min(m, max(1, BLOCK_ELEMENTS // math.prod(row)))
        if x.device.type == "cpu"
        else m
    )


def _blocks(rows, *tensors):
    """The tensors, a block of so many rows at a time; None for None.

    Where one block is all there is, the tensors themselves: on a few rows a view takes as long as a sum.
    """
    m = tensors[0].size(0)
    if m == rows:
        return [tensors] if m > 0 else []
    starts = range(0, m, rows)
    return [
        [None if t is None else t[start : start + rows] for t in tensors]
        for start in starts
    ]


def _first(t, rows):
    """The first rows, the tensor itself where they are all."""
    return t if t.size(0) == rows else t[:rows]


def _centred(p, mean, out):
    """p - mean(p); the mean is written to `mean`.

    Added to the mean is the mean of what is left: the sum of a row is rounded, and rstd magnifies that.
    """
    torch.mean(p, -1, out=mean)
    mean += torch.sub(p, mean.unsqueeze(-1), out=out).mean(-1)
    return torch.sub(p, mean.unsqueeze(-1), out=out)


def _norm(q):
    """The norm of each row, of a long one from those of its parts."""
    norm, columns = torch.linalg.vector_norm, q.shape[-1]
    if columns <= NORM_COLUMNS:
        return norm(q, dim=-1)
    whole = columns // NORM_COLUMNS * NORM_COLUMNS
    parts = norm(q[..., :whole].unflatten(-1, (-1, NORM_COLUMNS)), dim=-1)
    return torch.hypot(norm(parts, dim=-1), norm(q[..., whole:], dim=-1))


def _size(q, spec):
    s = _norm(q)
    return s if spec.reduce == "sum" else s.mul_(spec.count(q.shape[-1]) ** -0.5)


def _rstd(q, spec, out):
    """1 / D of rows q; NaN where squares were lost.

    That is differentiable.lost by two thresholds: as a mask it takes twice as long.
    """
    lost = LOST[q.dtype]
    if spec.place.kappa is None:
        norm = _norm(q)
        s = out.fill_(spec.eps).addcmul_(norm, norm, value=1 / spec.count(q.shape[-1]))
        torch.threshold_(s, lost, torch.nan).rsqrt_()
    else:
        d = spec.place.denominator(_size(q, spec), spec.eps, torch)
        s = torch.reciprocal(torch.threshold_(d, lost**0.5, torch.nan), out=out)
    return torch.threshold_(s, 0, torch.nan)


def forward(
    x,
    weight,
    bias,
    residual,
    spec,
    *,
    out_dtype=None,
    residual_dtype=None,
    round_residual=True,
):
    """(y, residual_out, mean, rstd) for rows x (M, N).

    p = x + residual,  q = p - center * mean(p),  y = scale * q * rstd * (weight_offset + weight) + bias

    Args:     x, residual (M, N), or (M, H, N) where rows and heads have a stride each; weight, bias (N,), or (H, N)
              beside (M, H, N); residual, weight and bias may be None; spec with a number for eps;
              out_dtype of y, None means x.dtype; residual_dtype of residual_out, None means the promoted dtype of x and
              residual; round_residual: whether p is the sum as residual_out holds it, or the sum before that rounding
    Returns:  y, residual_out in x's shape, residual_out None without a residual; mean, None unless centred, and rstd
              (M,) or (M * H,) in the accumulator's dtype
    Numerics: sums in float32, in float64 where x or residual is float64; to the mean the mean of p - mean is added, so
              that a row of equal numbers has q = 0; each output is rounded once; a row whose squares leave the range of
              that dtype gives NaN
    """
    *lead, n = x.shape
    m, acc = math.prod(lead), accumulator(promoted(x, residual))
    y = unwritten(x, out_dtype or x.dtype)
    residual_out = (
        None
        if residual is None
        else unwritten(x, residual_dtype or promoted(x, residual))
    )
    mean = x.new_empty(lead, dtype=acc) if spec.center else None
    rstd = x.new_empty(lead, dtype=acc)
    weight = _scaled(weight, n, rstd, spec)
    bias = None if bias is None else cast(bias, acc)
    most = _block(x)
    # Where y has the accumulator's dtype its own rows hold x_hat: memory touched for the first time costs a page fault.
    scratch = None if y.dtype == acc else x.new_empty(most, *x.shape[1:], dtype=acc)
    for p, its, sums, y_rows, means, r in _blocks(
        most, x, residual, residual_out, y, mean, rstd
    ):
        if residual is not None:
            p = _sum(p, its, sums, round_residual)
        q = p = cast(p, acc)
        x_hat = y_rows if scratch is None else _first(scratch, p.size(0))
        if spec.center:
            q = _centred(p, means, out=x_hat)
        _rstd(q, spec, out=r)
        torch.mul(q, r.unsqueeze(-1), out=x_hat)
        _affine(x_hat, weight, bias, y_rows)
    if len(lead) > 1:
        mean, rstd = _shaped((m,), mean, rstd)
    return y, residual_out, mean, rstd


def _sum(x, residual, out, rounded):
    """x + residual, written to out; as out holds it, or before it was rounded to out's dtype."""
    if rounded and out.dtype == promoted(x, residual):
        return torch.add(x, residual, out=out)
    # In the accumulator's dtype: torch rounds the sum of two 16-bit tensors to 16 bits, also on its way to a wider out.
    total = torch.add(x.to(accumulator(promoted(x, residual))), residual)
    out.copy_(total)
    return out if rounded else total


def _shaped(lead, *statistics):
    """Statistics of all rows in another shape; on a few rows a view takes as long as a sum."""
    if len(lead) == statistics[-1].dim():
        return statistics
    return [None if t is None else t.view(*lead) for t in statistics]


def _scaled(weight, n, like, spec):
    """scale * (weight_offset + weight), None where that is 1."""
    if weight is None:
        return None if spec.scale == 1 else like.new_full((n,), spec.scale)
    weight = full_weight(weight, like.dtype, spec)
    return weight if spec.scale == 1 else spec.scale * weight


def _affine(x_hat, weight, bias, y):
    out = y if y.dtype == x_hat.dtype else None
    if weight is not None and bias is not None:
        out = torch.addcmul(bias, x_hat, weight, out=out)
    elif weight is not None:
        out = torch.mul(x_hat, weight, out=out)
    else:
        out = x_hat if bias is None else torch.add(x_hat, bias, out=out)
    if out is not y:
        y.copy_(out)


def backward(
    dy,
    dresidual_out,
    p,
    weight,
    mean,
    rstd,
    spec,
    dtypes,
    *,
    portable_sums=False,
    per_head=False,
):
    """(dx, dresidual, dw, db) for rows p = x + residual, from the cotangents of y and residual_out.

    dx = rstd * (wdy - c2 - x_hat * c1) + dresidual_out,  c1 = kappa * sum(x_hat * wdy) / n,  c2 = center * mean(wdy)

    Args:     dy, p and dresidual_out, which may be None, (M, N) or (M, H, N); weight (N,) or None; mean or None and
              rstd as forward returned them; dtypes of dx, dresidual, dw and db, None for what is not wanted;
              portable_sums changes nothing here, where the order of the sums depends on M, N and torch's number of
              threads; per_head: whether weight, dw and db are (H, N), a sum over the rows of each head
    Returns:  dx, dresidual in p's shape, one tensor where they have one dtype; dw, db (N,) or (H, N); None for what is
              not wanted
    Numerics: as forward, each gradient rounded once; c1, c2 and dw are matrix-vector products, one pass over the block
              each; x_hat is (p - mean) * rstd, also where p was rounded after mean and rstd were taken
    """
    *lead, n = p.shape
    acc = rstd.dtype
    mean, rstd = _shaped(lead, mean, rstd)
    shared = tuple(range(len(lead) - per_head))
    made = {dtype: unwritten(p, dtype) for dtype in dtypes[:2] if dtype is not None}
    # The one in the accumulator's dtype comes last: its rows are the workspace until they are stored.
    outs = [*made.values()]
    if len(outs) == 2 and outs[0].dtype == acc:
        outs.reverse()
    vector = p.shape[len(shared) :]
    dw = None if dtypes[2] is None else p.new_zeros(vector, dtype=acc)
    db = None if dtypes[3] is None else p.new_zeros(vector, dtype=acc)
    if weight is None:
        weight = p.new_ones(n, dtype=acc)
    else:
        weight = full_weight(weight, acc, spec)
    if spec.scale != 1:
        weight = spec.scale * weight
    most = _block(p)
    centred = p.new_empty(most, *p.shape[1:], dtype=acc) if spec.center else None
    products = p.new_empty(most, *p.shape[1:], dtype=acc) if acc not in made else None
    for dy_rows, from_sum, q, means, r, *dx_rows in _blocks(
        most, dy, dresidual_out, p, mean, rstd, *outs
    ):
        dy_rows = cast(dy_rows, acc)
        if db is not None:
            db += dy_rows.sum(shared)
        if not outs and dw is None:
            continue
        q, dy_q = (
            cast(q, acc),
            dx_rows[-1] if products is None else _first(products, r.size(0)),
        )
        if spec.center:
            q = torch.sub(q, means.unsqueeze(-1), out=_first(centred, r.size(0)))
        torch.mul(dy_rows, q, out=dy_q)
        if dw is not None:
            _add_weight_gradient(dw, dy_q, r)
        if outs:
            dp = dx_rows[0] if dresidual_out is None and len(outs) == 1 else dy_q
            _input_gradient(dy_rows, dy_q, q, weight, r, spec, out=dp)
            _store(dp, from_sum, dx_rows)
    if dw is not None:
        dw = cast(dw if spec.scale == 1 else dw.mul_(spec.scale), dtypes[2])
    return *map(made.get, dtypes[:2]), dw, None if db is None else cast(db, dtypes[3])


def _add_weight_gradient(dw, dy_q, rstd):
    """Add sum(dy * q * rstd) over a block's rows, to each head's dw that of its own rows."""
    if dy_q.dim() == 2:
        dw.addmv_(dy_q.t(), rstd)
    elif dw.dim() == 1:
        dw.addmv_(dy_q.flatten(0, 1).t(), rstd.flatten())
    else:
        dw[..., None].baddbmm_(dy_q.permute(1, 2, 0), rstd.t()[..., None])


def _along(t, weight, factor, rstd, scratch):
    """factor * sum(t * weight) of each row, as matrix-vector products: one, or one for each head.

    A matrix-vector product adds up a long row in one sum; torch's own sum is pairwise, of products in scratch.
    """
    if t.shape[-1] > PRODUCT_COLUMNS:
        return torch.mul(t, weight, out=scratch).sum(-1).mul_(factor)
    # With beta=0 the first argument gives its shape alone.
    if t.dim() == 2:
        return torch.addmv(rstd, t, weight, beta=0, alpha=factor)
    weights = weight.expand(t.shape[1:])[..., None]
    return torch.baddbmm(
        rstd.t()[..., None], t.transpose(0, 1), weights, beta=0, alpha=factor
    )[..., 0].t()


def _store(dp, dresidual_out, outs):
    """dp + dresidual_out into each tensor of outs, where it is not there already."""
    for dx in outs:
        if dresidual_out is not None:
            torch.add(dp, dresidual_out, out=dx)
        elif dx is not dp:
            dx.copy_(dp)


def _input_gradient(dy, dy_q, q, weight, rstd, spec, out):
    """dx of one block, but for dresidual_out; dy_q = dy * q is overwritten.

    dx = rstd * (wdy - c2 - x_hat * c1),  c1 = kappa * sum(wdy * x_hat) / n,  c2 = center * mean(wdy)

    wdy = dy * weight and x_hat = q * rstd are not formed: each would go over the block once more. Their sums are
    matrix-vector products with the weight, and x_hat * c1 is q * (rstd * c1).
    """
    n = q.shape[-1]
    c1 = rstd * _along(dy_q, weight, 1 / spec.count(n), rstd, dy_q)
    if spec.place.kappa is not None and spec.eps != 0:
        c1 = spec.place.kappa(_size(q, spec), spec.eps, torch).to(c1.dtype) * c1
    if spec.center:
        c2 = _along(dy, weight, 1 / n, rstd, dy_q)
        wdy_c2 = torch.addcmul(-c2.unsqueeze(-1), dy, weight, out=dy_q)
    else:
        wdy_c2 = torch.mul(dy, weight, out=dy_q)
    projected = torch.addcmul(
        wdy_c2, q, (rstd * c1).unsqueeze(-1), value=-1, out=wdy_c2
    )
    return torch.mul(projected, rstd.unsqueeze(-1), out=out)


def unwritten(t, dtype):
    """Memory for a tensor of t's shape without gaps; by its shape torch makes it in twice the time."""
    made = torch.empty_like(t, dtype=dtype, memory_format=torch.contiguous_format)
    if (
        made.nbytes >= LARGE
        and type(made) is torch.Tensor
        and made.device.type == "cpu"
    ):
        _in_huge_pages(made.data_ptr(), made.nbytes)
    return made


@lru_cache(maxsize=1)
def _madvise():
    """The system's madvise, or None where it knows no huge pages."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise


def _in_huge_pages(start, size):
    """Ask for them; a system that cannot give them says so, and nothing is lost."""
    if (madvise := _madvise()) is not None:
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise(first, start + size - first, mmap.MADV_HUGEPAGE)
