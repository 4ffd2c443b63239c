"""Wrong solutions of homework 6: tests that cannot see something, let it pass, or cry for no reason."""

from wrong_solutions import of

RIGHT = "right backwards pass"
RANDOM_DY = "normal(columns), normal((rows, columns))"
WEIGHT = "return x, normal(columns), "
X = "x = scale * (rng.standard_normal((rows, columns)) + rng.uniform(-2, 2, (rows, 1)))"
SIZES = "((4, 7), (3, 16), (1, 5))"
LOOP = f"\n    for rows, columns in {SIZES}:\n        compare(rng, backward, *draw(rng, rows, columns))\n"
FLAT = "    x[0] = 0.5\n"
LAST = "draw(rng, 2, 6)"
ASSERT = "assert abs(claimed - value) <= allowed, "
NAMES = 'zip(("dx", "dw", "db"), grads, strict=True)'
ALLOWED = "abs(fine - coarse) + 4 * terms * ROUNDOFF * noise"
WAY = "ways[at] = size * rng.standard_normal(arrays[at].shape)"
SLOPE = "grads = backward(dy.copy(), x.copy(), weight.copy(), mean, rstd)"
MOVED = "y, mean, rstd = layernorm_forward(*(a + t * way for a, way in zip(arrays, ways, strict=True)))"
C1, NO_C2, BESSEL, AFTER, RSTD, IN_DW, IN_DB, BATCH, CONSTANT, NO_MEAN, BY_ROWS = (
    f"wrong backward {n}" for n in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)
)


test = of("gradient-test", RIGHT)


test.__test__ = False  # a wrong solution, and no test of this project

WRONG = (
    test("dy of ones", (RANDOM_DY, "rng.standard_normal(columns), np.ones((rows, columns))"), (WEIGHT, "return x, "
         "np.ones(columns), "), stage=C1),
    test("dy constant, weights random", (WEIGHT + RANDOM_DY, "weight = rng.standard_normal(columns)\n    "
         "return x, weight, rng.standard_normal(columns), 1 / weight + np.zeros((rows, columns))"), stage=C1),
    test("dy balanced by the weights", (WEIGHT + RANDOM_DY, "weight, g = rng.standard_normal(columns), "
         "rng.standard_normal((rows, columns))\n    "
         "return x, weight, rng.standard_normal(columns), (g - g.mean(-1, keepdims=True)) / weight"), stage=NO_C2),
    test("equal weights", (WEIGHT, "return x, np.full(columns, 0.7), "), stage=AFTER),
    test("one row", (SIZES, "((1, 7), (1, 16))"), (LAST, "draw(rng, 1, 6)"), stage=IN_DB),
    test("no constant row", (FLAT, ""), stage=CONSTANT),
    test("a constant row is only to be finite",
         ("    x[0] = 0.5\n    compare(rng, backward, x, weight, bias, dy)\n",
          "    x[0] = 0.5\n    grads = backward(dy, x, weight, *layernorm_forward(x, weight, bias)[1:])\n"
          "    assert all(np.isfinite(each).all() for each in grads)\n"), stage=CONSTANT),
    test("dx alone", (NAMES, 'zip(("dx",), grads, strict=False)'), stage=IN_DW),
    test("db forgotten", (NAMES, 'zip(("dx", "dw"), grads, strict=False)'), stage=IN_DB),
    test("NaN passes", (ASSERT, "assert not abs(claimed - value) > allowed, "), stage=CONSTANT),
    test("a tolerance of a tenth", (ALLOWED, "0.1 * size(dy)"), ("STEP = ", "size = np.size\nSTEP = "), stage=BESSEL),
    test("a step far too short", ("STEP = ROUNDOFF ** (1 / 3)", "STEP = 1e-13"), (ALLOWED, "1e-6"), stage=RIGHT),
    test("float32 at float64's tolerance", ("grads = backward(dy.copy(), x.copy(), weight.copy(), mean, rstd)",
         "grads = backward(*(a.astype(np.float32) for a in (dy, x, weight, mean, rstd)))"), stage=RIGHT),
    test("shapes alone", (ASSERT, "assert grad.shape == arrays[at].shape, "), stage=RIGHT),
    test("always rejects", ("    rng = np.random.default_rng(0)\n", "    rng = np.random.default_rng(0)\n"
         "    backward(*([np.ones((2, 2))] * 2), np.ones(2), np.ones(2), np.ones(2))\n    raise AssertionError\n"),
         stage=RIGHT),
    test("returns False", (ASSERT, "if not abs(claimed - value) <= allowed:\n            return "), stage=RIGHT),
    test("catches its own verdict", (ASSERT, "try:\n            assert abs(claimed - value) <= allowed\n        "
         "except AssertionError as error:\n            print(error)\n        assert True, "), stage=RIGHT),
    test("another exception", (ASSERT, "if not abs(claimed - value) <= allowed:\n            raise ValueError(name)\n"
         "        assert True, "), stage=RIGHT),
    test("dy of ones, weights of all sizes", (RANDOM_DY, "rng.standard_normal(columns), np.ones((rows, columns))"),
         stage=BATCH),
    test("rows without a mean", (X, f"{X}\n    x = x - x.mean(-1, keepdims=True)"), (FLAT, "    x[0] = 0\n"),
         stage=NO_MEAN),
    test("squares", (SIZES, "((4, 4), (3, 3), (5, 5))"), ("draw(rng, 2, 6)", "draw(rng, 6, 6)"), stage=BY_ROWS),
    test("rows move as a whole", (WAY, f'{WAY} if name != "dx" else size * np.ones_like(x)'), stage=C1),
    test("all entries move alike", (WAY, "ways[at] = np.ones_like(arrays[at])"), stage=C1),
    test("statistics that do not move", (MOVED, MOVED + """
        mean, rstd = layernorm_forward(*arrays)[1:]
        x, weight, bias = (a + t * way for a, way in zip(arrays, ways, strict=True))
        y = (x - mean[:, None]) * rstd[:, None] * weight + bias"""), stage=RIGHT),
    test("the slope of another loss", ("return (dy * y).sum(), ", "return y.sum(), "), stage=RIGHT),
    test("a mean over rows", ("return (dy * y).sum(), ", "return (dy * y).sum() / len(dy), "), stage=RIGHT),
    test("a property of dx", (ASSERT, """assert all(
            (abs((grad * q).sum(-1)) <= 0.01 * abs(grad * q).sum(-1)).all() for q in (0 * x + 1, x - mean[:, None])
        ) if name == "dx" else abs(claimed - value) <= allowed, """), stage=C1),
    test("equal to the last digit", ("value, allowed = slope(arrays, ways, dy)\n",
         "value, allowed = slope(arrays, ways, dy)[0], 0\n"), stage=RIGHT),
    test("statistics of its own", ("grads = backward(dy.copy(), x.copy(), weight.copy(), mean, rstd)",
         "grads = backward(dy.copy(), x.copy(), weight.copy(), mean, 1 / x.std(-1, ddof=1).clip(1e-3))"), stage=RIGHT),
    test("all cases must fail", (LOOP, """
    failed = []
    for rows, columns in ((4, 7), (3, 16), (5, 1)):
        try:
            compare(rng, backward, *draw(rng, rows, columns))
        except AssertionError as error:
            failed.append(error)
    if len(failed) == 3:
        raise failed[0]
    return
"""), stage=C1),
    test("dw and db exchanged", (NAMES, NAMES.replace("grads,", "(grads[0], grads[2], grads[1]),")), stage=RIGHT),
    test("one row, repeated", (X, X + "\n    x = np.tile(x[:1], (rows, 1))"),
         (FLAT, "    x[:] = 0.5 if columns == 5 else x\n"),
         (WEIGHT + RANDOM_DY, "return x, rng.standard_normal(columns), rng.standard_normal(columns), "
          "np.tile(rng.standard_normal(columns), (rows, 1))"), stage=BATCH),
    test("along the answer", (WAY, "ways[at] = grad"), stage=RIGHT),
    test("zeros left out", (WAY, WAY + " * (grad != 0)"), stage=RIGHT),
    test("rows of two", (SIZES, "((4, 2), (3, 2))"), (LAST, "draw(rng, 2, 2)"), (FLAT, ""), (ALLOWED, "1e-2"), (X,
         "x = rng.uniform(-2, 2, (rows, 1)) + np.arange(1, rows + 1)[:, None] * np.linspace(0, 3, columns)"), stage=C1),
    test("x is not put back", (SLOPE, """grads = backward(dy.copy(), x.copy(), weight.copy(), mean, rstd)
    for at in np.ndindex(*x.shape):
        ends = []
        for step in (1e-5, -2e-5):
            x[at] += step
            ends.append((dy * layernorm_forward(x, weight, bias)[0]).sum())
        assert abs((ends[0] - ends[1]) / 2e-5 - grads[0][at]) <= 1e-7"""), stage=RIGHT),
    test("the sign is forgotten", (ASSERT, "assert abs(abs(claimed) - abs(value)) <= allowed, "), stage=C1),
    test("never calls it", ("    rng = np.random.default_rng(0)\n", "    rng = np.random.default_rng(0)\n    return\n"),
         stage=RIGHT),
    test("turned round", (ASSERT, "assert abs(claimed - value) > allowed, "), stage=RIGHT),
    test("a tolerance of one and a half", (ASSERT, "assert abs(claimed - value) <= 1.5 * abs(value) + allowed, "),
         stage=C1),
    test("rows of size one", (X, "x = rng.standard_normal((rows, columns))\n    x = (x - x.mean(-1, keepdims=True)) / "
         "x.std(-1, keepdims=True)"), (FLAT, ""), (ALLOWED, "1e-3 * (1 + abs(fine))"), stage=RSTD),
)  # fmt: skip
