"""Wrong solutions of homework 1: letters, deltas, layouts and paths that were confused."""

from wrong_solutions import Wrong, of

IMPORT = "from sympy import KroneckerDelta, Sum, symbols"
VALUE, LETTERS, FORM = "value", "free indices", "no delta is summed over"
DELTA = "return w[k] * x[k] - Sum(w[r] * x[r], (r, 1, N)) / N"
LOCAL, TOTAL = (
    "local = KroneckerDelta(j, k) * Sum(x[r], (r, 1, N)) / N",
    "total = local + x[j] / N",
)
NUMERATOR, DENOMINATOR = "numerator = w[b]", "denominator = w[a]"
J_T = "denominator = w[a] * (KroneckerDelta(a, b) - 1 / N)"
J = "numerator = w[b] * (KroneckerDelta(a, b) - 1 / N)"
DX = "dx = w[j] * (dy[j] - Sum(dy[r], (r, 1, N)) / N)"
Q, DW, DB = "q = x[i, j] - Sum(x[i, r], (r, 1, N)) / N", "dw = Sum(dy[i, j] * q, (i, 1, M))", \
    "db = Sum(dy[i, j], (i, 1, M))"  # fmt: skip


def delta(name, new, stage=VALUE, misconception=""):
    """A wrong contract_delta."""
    return Wrong(
        name, "contract-delta", ((DELTA, f"return {new}"),), stage, misconception
    )


def paths(name, old, new, stage="total", misconception=""):
    """A wrong local_and_total."""
    return Wrong(name, "local-and-total", ((old, new),), stage, misconception)


layouts = of("jacobian-layouts", "numerator")


def cotangent(name, new, stage="dx", misconception=""):
    """A wrong cotangent."""
    return Wrong(name, "cotangent", ((DX, f"dx = {new}"),), stage, misconception)


sums = of("parameter-sums", "dw")


WRONG = (
    delta("the delta is 1", "Sum(w[r] * x[r], (r, 1, N)) * (1 - 1 / N)", misconception="delta-is-one"),
    delta("renamed in one factor", "x[k] * Sum(w[r], (r, 1, N)) - Sum(w[r] * x[r], (r, 1, N)) / N",
          misconception="delta-half-contracted"),
    delta("contracted twice", "w[k] * x[k] - w[k] * x[k] / N", misconception="delta-on-every-term"),
    delta("the mean is a sum", "w[k] * x[k] - Sum(w[r] * x[r], (r, 1, N))", misconception="mean-is-a-sum"),
    delta("r is left free", "w[k] * x[k] - w[r] * x[r] / N", LETTERS, "letter-left-free"),
    delta("not contracted", "Sum(w[r] * (KroneckerDelta(k, r) - 1 / N) * x[r], (r, 1, N))", FORM,
          "delta-not-contracted"),
    Wrong("a case for a delta", "contract-delta",
          ((IMPORT, IMPORT.replace("KroneckerDelta", "Eq, KroneckerDelta, Piecewise")),
           (DELTA, DELTA.replace("w[k] * x[k]", "Sum(Piecewise((w[r] * x[r], Eq(r, k)), (0, True)), (r, 1, N))"))),
          FORM, "delta-not-contracted"),
    delta("counted from 0", "w[k] * x[k] - Sum(w[r] * x[r], (r, 0, N - 1)) / N", LETTERS, "counted-from-zero"),
    Wrong("a letter of its own by the name of an argument", "contract-delta",
          ((DELTA, f"k = symbols('k')\n    {DELTA}"),), LETTERS, "letter-of-its-own"),
    delta("a text", "'w[k] * x[k] - ...'", "signature", "text-for-expression"),
    paths("local for total", TOTAL, "total = local", misconception="local-for-total"),
    paths("total for local", LOCAL + "\n    " + TOTAL,
          "local = KroneckerDelta(j, k) * Sum(x[r], (r, 1, N)) / N + x[j] / N\n    total = local", "local",
          "total-for-local"),
    paths("the letters exchanged", TOTAL, "total = local + x[k] / N", misconception="letters-exchanged"),
    paths("the mean moves with every entry", TOTAL, "total = local + x[j]", misconception="mean-is-a-sum"),
    paths("the sum counts j", LOCAL, "local = Sum(KroneckerDelta(j, k) * x[j], (j, 1, N)) / N", LETTERS,
          "free-letter-summed"),
    paths("no delta", LOCAL, "local = Sum(x[r], (r, 1, N)) / N", "local", "delta-is-one"),
    layouts("the layouts exchanged", (NUMERATOR, "numerator = w[a]"), (DENOMINATOR, "denominator = w[b]"),
            misconception="transposed-layout"),
    layouts("one layout for both", (DENOMINATOR, "denominator = w[b]"), stage="denominator",
            misconception="letters-exchanged"),
    layouts("a third for 1 / N", (J, "numerator = w[b] * KroneckerDelta(a, b) - w[b] / 3"), misconception="one-shape"),
    layouts("letters compared", (J, "numerator = w[a] * int(a == b) - w[b] / N"), misconception="term-missing"),
    layouts("a reciprocal", (J_T, "denominator = 1 / numerator"), stage="denominator",
            misconception="reciprocal-for-layout"),
    layouts("no path through the mean", (J, "numerator = w[b] * KroneckerDelta(a, b)"),
            misconception="local-for-total"),
    layouts("no weight on that path", (J, "numerator = w[b] * KroneckerDelta(a, b) - 1 / N"),
            misconception="weight-on-one-path"),
    layouts("one substitution after the other", (J_T, "denominator = numerator.subs(a, b).subs(b, a)"),
            stage="denominator", misconception="letters-merged"),
    layouts("a fraction", (J, "numerator = w[b] * (N * KroneckerDelta(a, b) - 1)"), (J_T, "denominator = N"),
            misconception="fraction-for-layouts"),
    layouts("the mean is a sum", (J, "numerator = w[b] * (KroneckerDelta(a, b) - 1)"), misconception="mean-is-a-sum"),
    cotangent("the other layout", "w[j] * dy[j] - Sum(w[r] * dy[r], (r, 1, N)) / N", misconception="transposed-layout"),
    cotangent("no path through the mean", "w[j] * dy[j]", misconception="local-for-total"),
    cotangent("divided as whole numbers", "w[j] * (dy[j] - (1 // N) * Sum(dy[r], (r, 1, N)))",
              misconception="whole-division"),
    cotangent("the mean is a sum", "w[j] * (dy[j] - Sum(dy[r], (r, 1, N)))", misconception="mean-is-a-sum"),
    cotangent("summed over the free letter", "Sum(w[j] * (dy[j] - Sum(dy[r], (r, 1, N)) / N), (j, 1, N))",
              misconception="free-letter-summed"),
    cotangent("the free letter in the sum", "w[j] * dy[j] - w[j] * Sum(dy[j], (r, 1, N)) / N",
              misconception="sum-without-its-letter"),
    cotangent("a mean for every entry",
              "w[j] * dy[j] - Sum(w[j] * Sum(dy[r], (r, 1, N)) / N**2, (letter('i'), 1, N))", FORM, "sum-in-a-sum"),
    cotangent("dy outside of the sum", "dy[j] * (w[j] - Sum(w[r], (r, 1, N)) / N)", misconception="dy-outside-the-sum"),
    Wrong("the arguments exchanged", "cotangent", (("def cotangent(w, dy, j, N)", "def cotangent(dy, w, j, N)"),), "dx",
          "arguments-exchanged"),
    cotangent("the weight twice", "w[j] * (dy[j] - Sum(w[r] * dy[r], (r, 1, N)) / N)",
              misconception="weight-in-and-out"),
    cotangent("with a matrix", "Sum(dy[r] * w[j] * (KroneckerDelta(r, j) - 1 / N), (r, 1, N))", FORM,
              "delta-not-contracted"),
    sums("one letter for both indices", (Q, "q = x[i, j] - Sum(x[i, i], (i, 1, N)) / N"), stage=LETTERS,
         misconception="one-letter-for-both"),
    sums("summed over everything", (DW, "dw = Sum(dy[i, j] * q, (i, 1, M), (j, 1, N))"),
         misconception="free-letter-summed"),
    sums("a mean over the rows", (DB, "db = Sum(dy[i, j], (i, 1, M)) / M"), stage="db", misconception="rows-averaged"),
    sums("the column's mean", (Q, "q = x[i, j] - Sum(x[r, j], (r, 1, M)) / M"), misconception="mean-of-the-column"),
    sums("scaled as in LayerNorm", (IMPORT, f"{IMPORT}, sqrt"),
         (DW, DW.replace("q, ", "q / sqrt(Sum(q.subs(j, r)**2, (r, 1, N)) / N), ")), misconception="divided-by-spread"),
    sums("not centred", (Q, "q = x[i, j]"), misconception="not-centred"),
)  # fmt: skip
