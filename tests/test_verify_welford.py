"""verify proves running means and sums of squares (Welford, Chan), and no wrong edit of one."""

import pytest
from verify_kernels import HEAD

from normgrad.verify import COLUMNS, N, Out, T, eps, norm, verify

START = """
@triton.jit
def kernel(X, MEAN, RSTD, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
"""
END = """
    rstd = tl.rsqrt(var + eps)
    tl.store(MEAN + row, mu)
    tl.store(RSTD + row, rstd)
"""
# A mean for each lane by the number of turns; the last tile, which has a mask, apart; a tile of integers that counts.
LAST_APART = """
    mean = tl.zeros((BLOCK,), dtype=tl.float32)
    m2 = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    tiles = tl.cdiv(N, BLOCK)
    for tile in range(0, tiles - 1):
        x = tl.load(X + row * N + tile * BLOCK + lanes).to(tl.float32)
        old = mean
        mean += (x - old) / (tile + 1)
        m2 += (x - mean) * (x - old)
        count += 1
    for tile in range(tiles - 1, tiles):
        cols = tile * BLOCK + lanes
        mask = cols < N
        x = tl.load(X + row * N + cols, mask=mask).to(tl.float32)
        new = tl.where(mask, mean + (x - mean) / (tile + 1), mean)
        m2 = tl.where(mask, m2 + (x - new) * (x - mean), m2)
        count += mask.to(tl.int32)
        mean = new
    mu = tl.sum(mean * count) / N
    var = tl.sum(m2 + count * (mean - mu) * (mean - mu)) / N
"""
# A mean and a count for each lane, under a mask in each turn.
MASKED = """
    mean = tl.zeros((BLOCK,), dtype=tl.float32)
    m2 = tl.zeros((BLOCK,), dtype=tl.float32)
    count = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        mask = start + lanes < N
        x = tl.load(X + row * N + start + lanes, mask=mask, other=0.0)
        delta = x - mean
        more = count + 1
        moved = mean + delta / more
        m2 = tl.where(mask, m2 + delta * (x - moved), m2)
        mean = tl.where(mask, moved, mean)
        count = tl.where(mask, more, count)
    mu = tl.sum(mean * count, axis=0) / N
    shift = mean - mu
    var = tl.sum(m2 + shift * shift * count, axis=0) / N
"""
# The mean and the squares of each tile, merged with those of the tiles before.
MERGED = """
    mu = 0.0
    m2 = 0.0
    count = 0
    for start in range(0, N, BLOCK):
        cols = start + lanes
        mask = cols < N
        x = tl.load(X + row * N + cols, mask=mask, other=0.0)
        size = tl.minimum(BLOCK, N - start)
        tile_mean = tl.sum(x, axis=0) / size
        centred = tl.where(mask, x - tile_mean, 0.0)
        tile_m2 = tl.sum(centred * centred, axis=0)
        delta = tile_mean - mu
        total = count + size
        mu += delta * size / total
        m2 += tile_m2 + delta * delta * count * size / total
        count = total
    var = m2 / N
"""
# A sum beside the mean, and the mean of all tiles but the last.
BESIDE = LAST_APART.replace(
    "        count +=", "        added += x\n        count +=", 1
)
BESIDE = BESIDE.replace(
    "    mean = new", "    mean = new\n        added += tl.where(mask, x, 0.0)"
)
BESIDE = BESIDE.replace(
    "    tiles =", "    added = tl.zeros((BLOCK,), dtype=tl.float32)\n    tiles ="
)
BESIDE = BESIDE.replace(
    "    for tile in range(tiles - 1,",
    "    first = mean\n    for tile in range(tiles - 1,",
)
# The same by the count itself, from 0 on; from -1 on it divides by 0.
BY_COUNT = LAST_APART.replace("(tile + 1)", "(count + 1)")
# The same from -1 on: of what is stored every term is right, and the first turn divides by 0.
FROM_MINUS_1 = BY_COUNT.replace(
    "count = tl.zeros((BLOCK,), dtype=tl.int32)",
    "count = -tl.full((BLOCK,), 1.0, dtype=tl.float32)",
)
FROM_MINUS_1 = FROM_MINUS_1.replace(
    "count * (mean - mu) * (mean - mu)",
    "count * (mean * mean - 2 * mean * mu) + (count + 1) * mu * mu",
)
STEP, UNDER_MASK = "m2 += (x - mean) * (x - old)", "m2 + (x - new) * (x - mean)"
LANES = "m2 + count * (mean - mu) * (mean - mu)"
SQUARES = "m2 + delta * (x - moved)"
MERGE = "tile_m2 + delta * delta * count * size / total"
SIZE = "tl.minimum(BLOCK, N - start)"
FULL = "tl.full((BLOCK,), 1.0, dtype=tl.float32)"
# In a lane that is past the end in the first tile, too.
DIVIDES_BY_0 = """
        delta = tl.where(mask, x - mean, 0.0)
        count = tl.where(mask, count + 1, count)
        mean += delta / count
        m2 += delta * tl.where(mask, x - mean, 0.0)
"""
RIGHT = [
    (LAST_APART, "", ""),
    (LAST_APART, "mean = tl.zeros((BLOCK,), dtype=tl.float32)", f"mean = {FULL}"),
    (LAST_APART, "mean += (x - old)", "mean += (2 * x - x - old)"),
    (BESIDE, "tl.sum(mean * count) / N", "tl.sum(added) / N"),
    (BY_COUNT, "", ""),
    (MASKED, "", ""),
    (MASKED, "more = count + 1", "more = tl.where(mask, count + 1, count)"),
    (MASKED, "shift * shift * count", "count * (mean * mean - mu * mu)"),
    (MERGED, "", ""),
    (MERGED, SIZE, "tl.sum(mask.to(tl.int32), axis=0)"),
    (MERGED, "count = 0\n", "count = 0.0\n"),
]
WRONG = {
    LAST_APART: [
        (STEP, "m2 += (x - old) * (x - old)"),
        (STEP, "m2 += (x - mean) * (x - mean)"),
        ("/ (tile + 1)\n", "/ (tile + 2)\n"),
        ("/ (tile + 1)\n", "/ tile\n"),
        ("count += 1\n", "count += 2\n"),
        ("        count += 1\n", ""),
        ("count += 1\n", "count += 1.0\n"),
        ("old = mean", "old = mean.to(count.dtype)"),
        (UNDER_MASK, "m2 + (x - mean) * (x - mean)"),
        (f"tl.where(mask, {UNDER_MASK}, m2)", UNDER_MASK),
        ("count += mask.to(tl.int32)", "count += 1"),
        ("        mean = new\n", ""),
        ("tl.sum(mean * count) / N", "tl.sum(mean) / BLOCK"),
        ("tl.sum(mean * count) / N", "tl.sum(mean * tiles) / N"),
        (LANES, "m2"),
        (LANES, "m2 + (mean - mu) * (mean - mu)"),
        (LANES, "count * (mean - mu) * (mean - mu)"),
        (f"{LANES}) / N", f"{LANES}) / (N - 1)"),
        ("range(0, tiles - 1)", "range(1, tiles - 1)"),
        ("range(0, tiles - 1)", "range(0, tiles - 2)"),
        ("m2 = tl.zeros((BLOCK,), dtype=tl.float32)", f"m2 = {FULL}"),
        (
            "(mean - mu)) / N\n",
            "(mean - mu)) / N\n    inside = (tiles - 1) * BLOCK + lanes < N\n"
            "    twice = tl.where(inside, mean, 2 * mean)\n"
            "    mu = tl.sum(twice * count) / N\n",
        ),
    ],
    MASKED: [
        (SQUARES, "m2 + delta * delta"),
        ("more = count + 1", "more = count + 2"),
        ("more = count + 1", "more = count"),
        ("more = count + 1", "more = count - 1"),
        ("tl.where(mask, moved, mean)", "moved"),
        (f"tl.where(mask, {SQUARES}, m2)", SQUARES),
        ("tl.where(mask, more, count)", "more"),
        (MASKED[MASKED.index("        delta") : MASKED.index("    mu")], DIVIDES_BY_0),
        ("shift * shift * count", "shift * shift"),
        ("m2 + shift * shift * count", "shift * shift * count"),
        ("tl.sum(mean * count, axis=0) / N", "tl.sum(mean, axis=0) / BLOCK"),
        ("count, axis=0) / N\n    shift", "count, axis=0) / (N - 1)\n    shift"),
        (
            "shift * shift * count, axis=0) / N",
            "shift * shift * count, axis=0) / (N - 1)",
        ),
        ("count = tl.zeros((BLOCK,), dtype=tl.float32)", f"count = {FULL}"),
        ("count = tl.zeros((BLOCK,), dtype=tl.float32)", f"count = -{FULL}"),
        ("delta = x - mean", "delta = x * x - mean"),
        (
            "tl.sum(mean * count, axis=0) / N",
            "(tl.sum(mean * count + tl.cdiv(N, BLOCK), axis=0) - N) / N",
        ),
    ],
    MERGED: [
        ("mask=mask, other=0.0", "mask=mask, other=1.0"),
        ("mu += delta * size / total", "mu += delta / total"),
        ("mu += delta * size / total", "mu += delta * size / count"),
        ("mu += delta * size / total", "mu += delta * BLOCK / total"),
        (MERGE, "tile_m2"),
        (MERGE, "delta * delta * count * size / total"),
        (MERGE, "tile_m2 + delta * delta * size / total"),
        (MERGE, "tile_m2 + delta * delta * count * count / total"),
        (SIZE, "BLOCK"),
        (SIZE, "tl.minimum(BLOCK, N)"),
        (SIZE, "tl.minimum(BLOCK, N - start + 1)"),
        ("tl.where(mask, x - tile_mean, 0.0)", "x - tile_mean"),
        ("        count = total\n", ""),
        ("count = total", "count = size"),
        ("count = 0", "count = 1"),
        ("m2 = 0.0", "m2 = 1.0"),
        ("m2 / N", "m2 / (N - 1)"),
        ("range(0, N, BLOCK)", "range(0, N - BLOCK, BLOCK)"),
        ("range(0, N, BLOCK)", "range(BLOCK, N, BLOCK)"),
    ],
}
WRONG[BESIDE] = [
    ("tl.sum(mean * count)", "tl.sum(first * (tiles - 1) + added)"),
    ("tl.sum(mean * count)", "tl.sum(first * (tiles - 1)) + tl.sum(added)"),
]
WRONG[FROM_MINUS_1] = [("", "")]
WRONG[BY_COUNT] = [
    ("count = tl.zeros((BLOCK,), dtype=tl.int32)", f"count = -{FULL}"),
]
LAYER = norm(center=True, bias=True)
BINDING = {
    "X": T("x"),
    "MEAN": Out("mean"),
    "RSTD": Out("rstd"),
    "N": N,
    "eps": eps,
    "BLOCK": COLUMNS,
}


def verdict(loop, old, new):
    assert old in loop
    text = HEAD + START + loop.replace(old, new, 1) + END
    return verify(text, BINDING, "rows", LAYER, seconds=10)


@pytest.mark.parametrize(("loop", "old", "new"), RIGHT)
def test_a_running_mean_and_its_squares_are_proved(loop, old, new):
    assert verdict(loop, old, new)


@pytest.mark.parametrize(
    "loop",
    WRONG,
    ids=["last apart", "masked", "merged", "a sum beside", "from -1", "by the count"],
)
def test_no_wrong_edit_is_proved(loop):
    for old, new in WRONG[loop]:
        result = verdict(loop, old, new)
        assert not result and result.kind != "proved if masked lanes hold 0", (old, new)
        assert "not followed" not in result.why, result.why
