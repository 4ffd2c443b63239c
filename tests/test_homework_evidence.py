"""What looks like a known mistake and is another one is not told that name: the evidence has to say which of them it
is.

A test for each kind of evidence that more than one wrong program gives.
"""

import pytest
from test_homework_outsiders import keys, report_of

VAR, HW7_Y = (
    "var = (q * q).mean(-1)",
    "return x_hat.reshape(x.shape) * weight[:, None] + bias[:, None]",
)
SHIFTED = "d = wide - wide[:, :1]\n    var = "
RETURN = "return dx, dweight, dbias"
# {name: (task, edits, what must not be said)}
OTHERS = {
    # A variance below 0, or off where the mean is large, is a matter of digits where whole numbers give it right alone.
    "a variance with its sign turned": (
        "stable-normalize",
        [(VAR, "var = q.mean(-1) ** 2 - (q * q).mean(-1)")],
        {"one-pass-variance", "offset-kept"},
    ),
    "the mean of the row for that of its shifted entries": (
        "stable-normalize",
        [(VAR, f"{SHIFTED}(d * d).mean(-1) - wide.mean(-1) ** 2")],
        {"one-pass-variance", "offset-kept"},
    ),
    "the same, made positive": (
        "stable-normalize",
        [(VAR, f"{SHIFTED}np.abs((d * d).mean(-1) - wide.mean(-1) ** 2)")],
        {"one-pass-variance", "offset-kept", "running-mean"},
    ),
    "all in 16 bits": (
        "stable-normalize",
        [(VAR, "h = x.astype(np.float16)\n    var = ((h * h).mean(-1) - h.mean(-1) ** 2).astype(np.float32)")],
        {"fixed-number", "one-pass-variance"},
    ),
    # One zero beside every row is a wrong divisor, and no padding.
    "N - 1 squares of the mean": (
        "stable-normalize",
        [(VAR, "n = x.shape[1]\n    var = ((wide * wide).sum(-1) - np.float32(n - 1) * first[:, 0] ** 2)"
               " / np.float32(n)")],
        {"padding-counted"},
    ),
    # Rounding as large as the means tells of no formula, unless the numbers are that formula's.
    "a distance of products": (
        "merge-blocks",
        [("d = mean2 - mean1", "some = np.maximum(n, 1)\n    d = (some * mean2 - some * mean1) / some")],
        {"merged-mean-cancels", "one-pass-variance"},
    ),
    "the longer block's count": (
        "merge-blocks",
        [("n = n1 + n2", "n = np.maximum(n1, n2)")],
        {"merge-weights", "merge-between"},
    ),
    # Digits that float32 loses, float64 loses as well, further down.
    "half of it in float32": (
        "norm-project",
        [(RETURN, f"dx = dx if x.dtype == np.float64 else dx / 2\n        {RETURN}")],
        {"digits-lost"},
    ),
    "three decimals in float32": (
        "norm-project",
        [(RETURN, f"dx = dx if x.dtype == np.float64 else np.round(dx, 3)\n        {RETURN}")],
        {"digits-lost"},
    ),
    "what follows from a dy that is overwritten": (
        "norm-project",
        [("wdy = grouped(dy * weight[:, None])", "dy *= weight[:, None]\n        wdy = grouped(dy)")],
        {"wrong-derivative", "factor-last", "constant-factor"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_needs_evidence_that_no_other_program_gives(name):
    task, edits, never = OTHERS[name]
    report = report_of(task, *edits)
    assert not report.passed and not keys(report) & never, report


def test_a_bias_that_cancels_is_allowed_its_rounding():
    """It moves neither y nor its own gradient, and both are sums in which it, or dy, was taken off again."""
    centred = f"y = {HW7_Y.removeprefix('return ')}\n        return y - y.mean(2, keepdims=True)"
    again = "wdy = grouped(dy * weight[:, None])"
    report = report_of(
        "norm-project",
        (HW7_Y, centred),
        (again, f"dy = dy - dy.mean(2, keepdims=True)\n        {again}"),
    )
    assert report.passed, report
