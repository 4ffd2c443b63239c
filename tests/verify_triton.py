# ruff: noqa: E501
"""What the reader of Triton says of small changes of two right kernels, by kind: the smallest case, others, a neighbour.

KINDS = {kind: [(kernel, [(what is there, what stands there instead)], change of the binding, verdict, words of it)]}
"""

from verify_kernels import ATOMIC, HEAD, KERNELS

from normgrad.verify import WHOLE, InOut, N, Out, T, eps, norm

PROVED, NOT_READ = "proved for every M and N", "not read"
WRONG, REFUTED, ERROR = "wrong in itself", "refuted", "error"

FORWARD = """
@triton.jit
def kernel(x, y, w, s, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < n
    a = tl.load(x + row * s + cols, mask=mask, other=0.0)
    r = tl.rsqrt(tl.sum(a * a, axis=0) / n + eps)
    g = tl.load(w + cols, mask=mask, other=0.0)
    tl.store(y + row * s + cols, a * r * g, mask=mask)
"""
# x is overwritten by y.
IN_PLACE = FORWARD.replace("y + row", "x + row").replace(" y,", "")
# As many lanes as there are columns.
LANES = FORWARD.replace(", B: tl.constexpr", "").replace("(0, B)", "(0, n)")
LANES = LANES.replace(" n, eps", " n: tl.constexpr, eps")
BOUND = dict(
    x=T("x", stride="s"), y=Out("y", stride="s"), w=T("weight"), n=N, eps=eps, B=WHOLE
)
BASES = {
    "forward": (FORWARD, BOUND, "rows", norm()),
    "in place": (
        IN_PLACE,
        dict(x=InOut("x", stride="s", then="y"), w=T("weight"), n=N, eps=eps, B=WHOLE),
        "rows",
        norm(),
    ),
    "N lanes": (LANES, {k: v for k, v in BOUND.items() if k != "B"}, "rows", norm()),
    "atomic": KERNELS["atomic additions"],
    "swept": KERNELS["a while loop"],
    "tiles": KERNELS["every P-th tile of rows"],
}
assert BASES["atomic"][0] == ATOMIC
JIT, BIAS, SUM = "@triton.jit", "w, s, n, eps, ", "a * a, axis=0"
SIGNATURE, LOAD, STORED = (
    "eps, B: tl.constexpr",
    "cols, mask=mask, other=0.0)\n    r",
    "a * r * g, mask",
)
TUNED = "[triton.Config({}, num_warps=4), triton.Config({}, num_warps=8)]"


def edited_base(base, edits, change):
    """(text, binding, grid, definitions) of one of BASES with its edits."""
    text, binding, *launch = BASES[base]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return HEAD + text, {**binding, **change}, *launch


def under(decorator):
    """The edit that puts a decorator above a kernel."""
    return [(JIT, f"@triton.{decorator}\n{JIT}")]


def tuned(options=""):
    """The edit that puts an autotune with two configurations above a kernel."""
    return under(f"autotune({TUNED}, ['n']{options})")


def computed(name, value):
    """The edit that puts heuristics for one argument above a kernel."""
    return under(f"heuristics({{{name!r}: {value}}})")


def flagged(text, header=": tl.constexpr"):
    """The edits by which a flag F decides something."""
    return [
        ("eps, B:", f"eps, F{header}, B:"),
        ("    tl.store(", f"    {text}\n    tl.store("),
    ]


KINDS = {
    "two arguments are one tensor": [
        ("forward", [("w, s,", "w, v, s,"), ("a * r * g", "a * r * (2 * g - tl.load(v + cols, mask=mask))")], dict(v=T("weight")), ERROR, "w and v are both weight"),
        ("forward", [("w, s,", "w, v, s,")], dict(v=T("x", stride="s")), ERROR, "x and v are both x"),
        ("forward", [("w, s,", "w, v, s,")], dict(v=InOut("weight", then="y")), ERROR, "w and v are both weight"),
        ("forward", [("eps, B:", "eps, e, B:"), ("+ eps", "+ 2 * eps - e")], dict(e=eps), ERROR, "eps and e are both eps"),
        ("forward", [("w, s,", "w, z, s,"), ("    tl.store(", "    tl.store(z + row * s + cols, a * r * g, mask=mask)\n    tl.store(")], dict(z=Out("y", stride="s")), PROVED, "z = y[i, j], y = y[i, j]"),
    ],
    "heuristics": [
        ("forward", computed("B", "lambda a: min(1024, triton.next_power_of_2(a['n']))"), {}, NOT_READ, "line 8: B is min(1024"),
        ("forward", computed("B", "lambda a: triton.next_power_of_2(a['n'] // 2)"), {}, NOT_READ, "bound as a block of at least N columns"),
        ("forward", computed("B", "lambda a: triton.next_power_of_2(a['s'])"), {}, NOT_READ, "bound as a block of at least N columns"),
        ("forward", [*computed("B", "lambda a: next_power_of_2(a['n'])"), ("\n@triton.heur", "\ndef next_power_of_2(n):\n    return 16\n\n@triton.heur")], {}, NOT_READ, "B is next_power_of_2"),
        ("forward", [*computed("B", "lambda a: max(16, triton.next_power_of_2(a['n']))"), ("\n@triton.heur", "\ndef max(a, b):\n    return a\n\n@triton.heur")], {}, NOT_READ, "B is max"),
        ("forward", [("\n@triton", "\nVALUES = {'eps': lambda a: 0.0}\n\n@triton.heuristics(VALUES)\n@triton")], {}, NOT_READ, "line 10: heuristics of VALUES, which is no dict in the text"),
        ("forward", under("heuristics(values())"), {}, NOT_READ, "no dict in the text"),
        ("forward", computed("eps", "zero"), {}, NOT_READ, "heuristics for eps that are no lambda"),
        ("forward", computed("eps", "lambda a: 0.0"), {}, NOT_READ, "eps is 0.0 by a decorator, and bound as eps"),
        ("forward", computed("n", "lambda a: a['s']"), {}, NOT_READ, "n is a['s'] by a decorator"),
        ("forward", [*computed("F", "lambda a: a['w'] is None"), *flagged("g = g if not F else 1.0")], dict(F=True), NOT_READ, "F is a['w'] is None by a decorator, and bound as True"),
        ("forward", [*computed("F", "lambda a: a['w'] is not None"), *flagged("g = g if F else 1.0")], {}, PROVED, "for F=True"),
        ("forward", [*computed("F", "lambda a: a['s'] > 4"), *flagged("g = g if F else 1.0")], {}, NOT_READ, "F is set by a decorator to what is not read: bind it"),
        ("swept", computed("B", "lambda a: 0"), {}, NOT_READ, "B is 0 by a decorator, and bound as a block of columns"),
        ("swept", computed("B", "lambda a: True"), {}, NOT_READ, "B is True by a decorator"),
        ("swept", computed("B", "lambda a: 64"), {}, PROVED, ""),
        ("swept", [(JIT, f"@triton.heuristics({{'B': lambda a: a['x'].zero_() or 64}})\n{JIT}")], {}, NOT_READ, "B is a['x'].zero_() or 64"),
        ("swept", computed("B", "lambda a: min(1024, triton.next_power_of_2(a['n']))"), {}, PROVED, ""),
        ("forward", computed("B", "lambda a: triton.next_power_of_2(a['n'])"), {}, PROVED, ""),
        ("forward", computed("B", "lambda a: max(16, triton.next_power_of_2(a['n']))"), {}, PROVED, ""),
    ],
    "autotune": [
        ("forward", under("autotune(configs=cfg(), key=['n'])"), {}, NOT_READ, "line 8: autotune of cfg(), which is no list in the text"),
        ("forward", [("\n@triton", "\nCONFIGS = [triton.Config({'eps': 0.0})]\n\n@triton.autotune(CONFIGS, ['n'])\n@triton")], {}, NOT_READ, "autotune of CONFIGS, which is no list"),
        ("forward", under("autotune([config(4)], ['n'])"), {}, NOT_READ, "autotune of config(4), which is no Config"),
        ("forward", [(JIT, f"def Config(values):\n    return 0\n\n\n@triton.autotune([Config({{}})], ['n'])\n{JIT}")], {}, NOT_READ, "autotune of Config({}), which is no Config"),
        ("forward", under("autotune()"), {}, NOT_READ, "which is no list in the text"),
        ("forward", under("autotune([triton.Config({'B': 64})], ['n'])"), {}, NOT_READ, "B is 64 by a decorator"),
        ("forward", under("autotune([triton.Config({'eps': 0.0})], ['n'])"), {}, NOT_READ, "eps is 0.0 by a decorator"),
        ("forward", under("autotune([triton.Config(values)], ['n'])"), {}, NOT_READ, "a Config of values, which is no dict"),
        ("forward", tuned(", pre_hook=clear"), {}, NOT_READ, "triton.autotune with pre_hook, which is not read"),
        ("forward", tuned(", prune_configs_by={'early_config_prune': prune}"), {}, NOT_READ, "with prune_configs_by"),
        ("forward", under("autotune([triton.Config({}, pre_hook=clear)], ['n'])"), {}, NOT_READ, "triton.Config with pre_hook"),
        ("forward", tuned(", **options"), {}, NOT_READ, "arguments by ** options"),
        ("forward", [*under("autotune([triton.Config({'F': True}), triton.Config({'F': False})], ['n'])"), *flagged("g = g if F else 1.0")], {}, NOT_READ, "F is set by a decorator to what is not read"),
        ("forward", tuned(", reset_to_zero=['x']"), {}, WRONG, "line 8: autotune sets x to 0, which the kernel reads"),
        ("forward", tuned(", reset_to_zero=names"), {}, NOT_READ, "autotune with names, which is no list of names"),
        ("atomic", tuned(), {}, WRONG, "line 8: dw is added to at each run of autotune, needs reset_to_zero"),
        ("atomic", under("autotune([triton.Config({}, num_warps=k) for k in warps], ['n'])"), {}, NOT_READ, "dw is added to at each run of autotune"),
        ("atomic", tuned(", reset_to_zero=['dw', 'rstd']"), {}, WRONG, "autotune sets rstd to 0"),
        ("in place", tuned(), {}, WRONG, "x is read and overwritten at each run of autotune, needs restore_value"),
        ("in place", tuned(", reset_to_zero=['x']"), {}, WRONG, "autotune sets x to 0"),
        ("atomic", tuned(", reset_to_zero=['dw']"), {}, PROVED, ""),
        ("atomic", tuned(", restore_value=['dw']"), {}, PROVED, ""),
        ("atomic", under("autotune([triton.Config({}, num_warps=8)], ['n'])"), {}, PROVED, ""),
        ("in place", tuned(", restore_value=['x']"), {}, PROVED, ""),
        ("forward", tuned(", pre_hook=None"), {}, PROVED, ""),
        ("forward", under("autotune([triton.Config({}, num_warps=k) for k in (4, 8)], ['n', 'rows', 'dtype'])"), {}, PROVED, ""),
        ("swept", under("autotune([triton.Config({'B': b}) for b in (64, 128)], ['n'])"), {}, PROVED, ""),
    ],
    "defaults": [
        ("forward", [(SIGNATURE, f"{SIGNATURE}, scale=1.0"), (STORED, "a * r * g * scale, mask")], {}, PROVED, "y = y[i, j], for scale=1.0"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, scale=2.0"), (STORED, "a * r * g * scale, mask")], {}, NOT_READ, "refuted for scale=2.0, which the binding does not say; bind it"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, scale=2.0"), (STORED, "a * r * g * scale, mask")], dict(scale=2.0), REFUTED, "for scale=2.0"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, HAS_W: tl.constexpr = True"), ("    tl.store", "    if not HAS_W:\n        g = 2 * g\n    tl.store")], {}, PROVED, "for HAS_W=True"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, HAS_W: tl.constexpr = False"), ("    tl.store", "    if not HAS_W:\n        return\n    tl.store")], {}, NOT_READ, "wrong in itself for HAS_W=False, which the binding does not say"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, bias=None"), (STORED, "(a * r * g if bias is None else 0.0), mask")], {}, PROVED, "for bias=None"),
        ("forward", [(SIGNATURE, f"{SIGNATURE}, scale=1.0")], {}, PROVED, "kernel: y = y[i, j]\n"),
    ],
    "flags": [
        ("forward", flagged("g = g if F else g"), {}, PROVED, "for F=True or False"),
        ("forward", flagged("g = g if F else 2 * g"), {}, NOT_READ, "F is not bound: refuted with F=False, proved for every M and N with F=True; bind F"),
        ("forward", flagged("if F:\n        g = 2 * g"), {}, NOT_READ, "refuted with F=True"),
        ("forward", flagged("g = tl.where(F, g, 2 * g)"), {}, NOT_READ, "refuted with F=False"),
        ("forward", flagged("g = tl.sum(g[:, None], F)"), {}, NOT_READ, "what needs to be a number in the text is none; bind F"),
        ("forward", flagged("if F == False:\n        g = 2 * g"), {}, NOT_READ, "refuted with F=False"),
        ("forward", flagged("g = g if not F and n > 0 else 2 * g"), {}, NOT_READ, "refuted with F=True"),
        ("forward", flagged("g = 3 * g if F else 2 * g"), {}, REFUTED, "y = y[i, j], for F=True\n  with F=False as well"),
        ("forward", flagged("g = 2 * g if F is True else g"), {}, NOT_READ, "refuted with F=True"),
        ("forward", flagged("if F and F2:\n        g = 2 * g", ", F2"), {}, NOT_READ, "F2 is not bound: refuted with F2=True"),
        ("forward", flagged("g = g if F else 2 * g"), dict(F=True), PROVED, "for F=True"),
        ("forward", flagged("g = g if F == 1 else 2 * g"), {}, NOT_READ, "bind F"),
        ("forward", flagged("g = g if F == 'rms' else 2 * g"), {}, NOT_READ, "F is not bound, and the kernel asks what it is"),
        ("forward", flagged("g = g if F == 'rms' else 2 * g"), dict(F="rms"), PROVED, "for F='rms'"),
        ("forward", flagged("g = g if F > 0 else 2 * g"), {}, PROVED, "for F of at least 1"),
        ("forward", flagged("g = 2 * g if F > 0 else g"), {}, NOT_READ, "refuted for F of at least 1, which the binding does not say"),
        ("forward", flagged("g = g if F is not None else 2 * g"), {}, PROVED, "for F of at least 1"),
        ("forward", [("mask = cols < n", "mask = cols < n + F"), ("eps, B", "eps, F, B")], {}, NOT_READ, "bind F"),
        ("forward", [("mask = cols < n", "mask = cols < n + 1")], {}, WRONG, "reads where column"),
    ],
    "what does not compile": [
        ("forward", [(SUM, "a ** 2, axis=0")], {}, WRONG, "line 14: does not compile: Triton has no ** of tensors"),
        ("forward", [(SUM, "a ** 2.0, axis=0")], {}, WRONG, "Triton has no ** of tensors"),
        ("forward", [("/ n + eps", "/ n + tl.sum(a) ** 2 + eps")], {}, WRONG, "Triton has no ** of tensors"),
        ("forward", [("x + row * s", "x + row ** 1 * s")], {}, WRONG, "Triton has no ** of tensors"),
        ("forward", [("+ eps", "+ 0 * eps ** 2 + eps")], {}, NOT_READ, "a power of what is no number in the text"),
        ("forward", [("+ eps", "+ 2 ** 3 * eps - 7 * eps")], {}, PROVED, ""),
        ("swept", [("tl.load(at, mask=mask, other=0.0)", "tl.load(at, other=0.0)")], {}, WRONG, "does not compile: a load with other= and without a mask"),
        ("forward", [("x + row * s + cols, mask=mask, other", "x + row * s + cols, other")], {}, WRONG, "other= and without a mask"),
        ("forward", [("w + cols, mask=mask, other", "w + cols, mask=None, other")], {}, WRONG, "other= and without a mask"),
        ("forward", [("B: tl.constexpr", "B")], {}, WRONG, "line 11: does not compile: B is a number of lanes and no tl.constexpr"),
        ("swept", [("B: tl.constexpr", "B: int")], {}, WRONG, "B is a number of lanes and no tl.constexpr"),
        ("N lanes", [("n: tl.constexpr", "n")], {}, WRONG, "n is a number of lanes and no tl.constexpr"),
        ("N lanes", [], {}, PROVED, "for N a power of 2"),
        ("forward", [(SUM, "a * a, axis=1")], {}, WRONG, "does not compile: a sum over axis 1"),
        ("forward", [(SUM, "a * a, axis=-2")], {}, WRONG, "does not compile: a sum over axis -2"),
        ("forward", [("tl.sum(a * a, axis=0)", "tl.sum(tl.sum(a * a))")], {}, WRONG, "a sum over the lanes of what is no tile"),
        ("forward", [(SUM, "a * a, axis=-1")], {}, PROVED, ""),
        ("forward", [("mask = cols < n", "mask = 0 <= cols < n")], {}, WRONG, "does not compile: a chain of comparisons"),
        ("forward", [("mask = cols < n", "mask = (0 <= cols) & (cols < n)")], {}, PROVED, ""),
        ("forward", [("    tl.store(", "    for k in tl.static_range(n):\n        g = g\n    tl.store(")], {}, WRONG, "n is a bound of static_range and no tl.constexpr"),
        ("N lanes", [("    tl.store(", "    for k in tl.static_range(n):\n        g = g\n    tl.store(")], {}, PROVED, ""),
        ("forward", [("row = tl.program_id(0)", "row = tl.program_id(3)")], {}, WRONG, "axis 3 of the grid"),
        ("forward", [("row = tl.program_id(0)", "row = tl.program_id(0) + tl.num_programs(-1) - 1")], {}, WRONG, "axis -1 of the grid"),
        ("swept", [("        off += B", "        off += B\n        break")], {}, NOT_READ, "a while loop that does not count"),
        ("swept", [("        tl.store(y", "        if t > n:\n            break\n        tl.store(y")], {}, WRONG, "does not compile: Triton has no break"),
        ("swept", [("        tl.store(y", "        continue\n        tl.store(y")], {}, WRONG, "does not compile: Triton has no continue"),
        ("forward", [("cols, a * r * g, mask=mask", "cols, a * r * g, mask=cols")], {}, WRONG, "a mask of numbers"),
        ("forward", [("tl.load(w + cols, mask", "tl.load(w, mask")], {}, WRONG, "a mask of lanes at an address that has none"),
        ("swept", [("rstd + pid, r)", "rstd + pid, r + tl.zeros((B,), tl.float32))")], {}, WRONG, "lanes are stored at an address that has none"),
        ("forward", [("w + cols, mask=mask, other=0.0", "w + cols, mask=mask, other=0.0, boundary_check=(0,)")], {}, WRONG, "boundary_check of what is no block pointer"),
        ("forward", [("w + cols, mask=mask", "w + cols, mask=mask, eviction_policy='first'")], {}, WRONG, "'first', needs one of evict_last, evict_first"),
        ("forward", [("w + cols, mask=mask", "w + cols, mask=mask, cache_modifier='.ca', eviction_policy='evict_last'")], {}, PROVED, ""),
        ("forward", [(JIT, f"ONE = 1\n\n\n{JIT}"), ("+ eps", "+ ONE * eps")], {}, WRONG, "ONE is a global of the module that is not made by tl.constexpr"),
        ("forward", [(JIT, f"ONE: tl.constexpr = 1\n\n\n{JIT}"), ("+ eps", "+ ONE * eps")], {}, WRONG, "ONE is a global of the module"),
        ("forward", [(JIT, f"ONE = tl.constexpr(1)\n\n\n{JIT}"), ("+ eps", "+ ONE * eps")], {}, PROVED, ""),
        ("forward", [("a * r * g, mask", "abs(a) * r * g, mask")], {}, WRONG, "Triton has no abs of Python's"),
        ("forward", [("+ eps", "+ tl.sqrt(n) * 0 + eps")], {}, NOT_READ, "sqrt of an integer"),
        ("forward", [("/ n", "/ float(n)")], {}, NOT_READ, "float(...) of what is no number in the text"),
        ("forward", [("tl.rsqrt(", "1 / math.sqrt("), (JIT, f"import math\n\n\n{JIT}")], {}, NOT_READ, "math.sqrt is Python's"),
    ],
    "a called function": [
        ("forward", [(JIT, f"def twice(v):\n    return v\n\n\n{JIT}"), (STORED, "twice(a * r * g), mask")], {}, WRONG, "does not compile: twice is called, which is no triton.jit function"),
        ("forward", [(JIT, f"@triton.heuristics({{'v': lambda a: 0}})\n@triton.jit\ndef twice(v):\n    return v\n\n\n{JIT}"), (STORED, "twice(a * r * g), mask")], {}, NOT_READ, "a call of twice, which has other decorators than jit"),
        ("forward", [(JIT, f"@triton.autotune([triton.Config({{}})], ['v'])\n@triton.jit\ndef twice(v):\n    return v\n\n\n{JIT}"), (STORED, "twice(a * r * g), mask")], {}, NOT_READ, "other decorators than jit"),
        ("forward", [(JIT, f"@triton.jit\ndef twice(v, k=2.0):\n    return k * v\n\n\n{JIT}"), (STORED, "twice(a * r * g), mask")], {}, REFUTED, ""),
        ("forward", [(JIT, f"@triton.jit\ndef twice(v, k=1.0):\n    return k * v\n\n\n{JIT}"), (STORED, "twice(a * r * g), mask")], {}, PROVED, ""),
    ],
    "what a kernel asserts": [
        ("forward", [("    tl.store(", "    assert n > 5\n    tl.store(")], {}, PROVED, "for what line 16 asserts"),
        ("forward", [("    tl.store(", "    tl.static_assert(B > 16)\n    tl.store(")], {}, PROVED, "for what line 16 asserts"),
        ("forward", [("    tl.store(", "    tl.device_assert(cols < 5)\n    tl.store(")], {}, PROVED, "for what line 16 asserts"),
        ("forward", [("    tl.store(", "    tl.assume(s > 5)\n    tl.store(")], {}, PROVED, "for what line 16 asserts"),
        ("forward", [("    tl.store(", "    tl.static_assert(n > 0)\n    tl.store(")], {}, PROVED, "kernel: y = y[i, j]\n"),
    ],
    "what is not accused": [
        ("forward", [(STORED, "a * r * g + 0 * tl.arange(0, 1), mask")], {}, PROVED, ""),
        ("forward", [("mask = cols < n", "mask = cols + tl.arange(0, 1) < n")], {}, PROVED, ""),
        ("tiles", [("tl.sum(m * x, axis=1))[:, None]", "tl.sum(m * x))[:, None]")], {}, NOT_READ, "a sum over rows, too, is used in a value of one row; axis=1 sums each row"),
        ("forward", [("eps, B", "eps, M_KEY, B"), *under("autotune([triton.Config({})], ['M_KEY'])")], {}, PROVED, ""),
        ("forward", [("eps, B", "eps, M_KEY, B"), *under("autotune([triton.Config({})], ['M_KEY'])")], dict(M_KEY=N), PROVED, ""),
    ],
}  # fmt: skip
