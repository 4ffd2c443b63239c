"""verify proves running means and sums of squares (Welford, Chan), and no wrong edit of one."""

import pytest
from tables import claims, edits
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
LOOPS = {
    "LAST_APART": LAST_APART,
    "MASKED": MASKED,
    "MERGED": MERGED,
    "BESIDE": BESIDE,
    "BY_COUNT": BY_COUNT,
    "FROM_MINUS_1": FROM_MINUS_1,
}
LAYER = norm(center=True, bias=True)
BINDING = {
    "X": T("x"),
    "MEAN": Out("mean"),
    "RSTD": Out("rstd"),
    "N": N,
    "eps": eps,
    "BLOCK": COLUMNS,
}


def edited_texts(kind):
    """{what is edited: the kernel} of a kind of verify_welford.txt."""
    texts = {}
    for name, note, line in claims("verify_welford.txt"):
        if note == kind:
            ((old, new),) = edits(line)
            assert old in LOOPS[name]
            loop = LOOPS[name].replace(old, new, 1)
            texts[f"{name}: {line}"] = HEAD + START + loop + END
    return texts


RIGHT, WRONG = edited_texts("right"), edited_texts("wrong")


@pytest.mark.parametrize("name", RIGHT)
def test_a_running_mean_and_its_squares_are_proved(name):
    assert verify(RIGHT[name], BINDING, "rows", LAYER, seconds=10)


@pytest.mark.parametrize("name", WRONG)
def test_no_wrong_edit_is_proved(name):
    result = verify(WRONG[name], BINDING, "rows", LAYER, seconds=10)
    assert not result and result.kind != "proved if masked lanes hold 0", result
    assert "not followed" not in result.why, result.why
