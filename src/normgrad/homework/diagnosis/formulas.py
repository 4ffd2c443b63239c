"""Formulas of the norms of the homeworks, right and wrong: terms with coefficients, made from recipes; and the row
statistics as they are and as a student may have computed them.

A term is rstd**power * weight**post * (factors) * mean or sum of (factors). The right dx is
all * (k weight**wp (k0 rstd**e0 u0 - k2 rstd**e2 mean(v3 u2) - k1 rstd**e1 v1 mean(v2 u1)) + kg rstd**eg weight**wg g)
with ut = weight**wt dy. dw and db are all * the sum over the rows of weight**w rstd**e v dy, and y is
all * (k weight**w v + kb weight**bw bias). A mistake is a change of some of these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import combinations
from operator import mul as multiply

import numpy as np

from ... import numpy_ref
from ...checks.cases import Case
from ...checks.tolerance import Bounds, Dtypes, bounds, round_to, unit_roundoff
from ...mistakes.table import MISTAKES
from ...spec import NormSpec


@dataclass(frozen=True)
class Setting:
    """What the right formulas depend on: the spec, M rows, N columns, and which arguments there are."""

    spec: NormSpec
    rows: int
    columns: int
    weight: bool
    bias: bool
    residual: bool
    stream: bool

    @classmethod
    def of(cls, case: Case, spec: NormSpec) -> Setting:
        """The setting of a case."""
        optional = case.weight, case.bias, case.residual, case.dresidual_out
        return cls(spec, *case.x.shape, *(array is not None for array in optional))


@dataclass(frozen=True)
class Rows:
    """The rows that are normalized, in float64: p = x + residual and x itself, both (M, N), the resolved spec and the
    weight (N,), or 1."""

    p: np.ndarray
    x: np.ndarray
    spec: NormSpec
    weight: np.ndarray | float

    @property
    def count(self) -> int:
        """N."""
        return self.p.shape[-1]

    @property
    def ratio(self) -> float:
        """N / M."""
        return self.count / max(len(self.p), 1)

    @property
    def share(self) -> float:
        """The share of its block that a row fills."""
        return self.count / block(self.count)


@dataclass(frozen=True)
class Statistics:
    """Centred rows q (M, N) and rstd (M, 1); shapes that broadcast to these where an axis is wrong."""

    q: np.ndarray
    rstd: np.ndarray


def block(columns: int) -> int:
    """The least power of two that is no less than the number of columns: how wide a block of a kernel is."""
    return 1 << (columns - 1).bit_length()


def _statistics(rows, **changes) -> Statistics:
    """The statistics with some of p, center, axis, s2's factor and padding, eps, its placement and the root changed."""
    spec = rows.spec
    options = {"p": rows.p, "axis": -1, "factor": 1.0, "uncentred": False, "center": spec.center, "eps": spec.eps,
               "placement": "inside", "padding": 0, "mean": 1.0, "scale": 1.0,
               "stored": lambda rstd: rstd} | changes  # fmt: skip
    p, axis, eps = options["p"], options["axis"], options["eps"]
    q = p - options["mean"] * p.mean(axis, keepdims=True) if options["center"] else p
    squares = options["scale"] * (p if options["uncentred"] else q)
    s2 = (squares * squares).mean(axis, keepdims=True) * options["factor"]
    s2 = s2 + options["padding"] * p.mean(axis, keepdims=True) ** 2
    denominators = {"inside": lambda: np.sqrt(s2 + eps), "outside": lambda: np.sqrt(s2) + eps,
                    "clamp": lambda: np.maximum(np.sqrt(s2), eps), "floor": lambda: np.sqrt(np.maximum(s2, eps)),
                    "no root": lambda: s2 + eps}  # fmt: skip
    return Statistics(q, options["stored"](1 / denominators[options["placement"]]()))


def _squared(rows):
    """The entries that are squared, (M, N)."""
    return rows.p - rows.p.mean(-1, keepdims=True) if rows.spec.center else rows.p


def _largest(t):
    """The size of the largest entry of each row, (M, 1)."""
    return np.abs(t).max(-1, keepdims=True)


def _of_sizes(rows):
    """The square of the mean of the sizes of the entries that are squared, over the mean of their squares, (M, 1)."""
    q = _squared(rows)
    squares = (q * q).mean(-1, keepdims=True)
    return np.abs(q).mean(-1, keepdims=True) ** 2 / np.where(squares > 0, squares, 1)


def _truncated(rstd):
    return (rstd.astype("f4").view("u4") >> 16 << 16).view("f4").astype(float)


# {variant: (what it does, in words, what it changes, as a function of the rows)}; what is said of centring depends on
# the norm.
VARIANTS = {
    "right": ("", lambda rows: {}),
    "eps missing": ("rstd = 1 / s", lambda rows: {"eps": 0.0}),
    "eps on sum": ("eps / N stands for eps", lambda rows: {"eps": rows.spec.eps / rows.count}),
    "eps squared": ("eps**2 stands for eps", lambda rows: {"eps": rows.spec.eps**2}),
    "eps of the scaled row": ("rstd = 1 / sqrt(s**2 + eps * max(q**2))",
                              lambda rows: {"eps": rows.spec.eps * _largest(_squared(rows)) ** 2}),
    "eps of the row scaled before its mean": ("rstd = 1 / sqrt(s**2 + eps * max(p**2))",
        lambda rows: {"eps": rows.spec.eps * _largest(rows.p) ** 2}),
    "eps outside": ("rstd = 1 / (s + eps)", lambda rows: {"placement": "outside"}),
    "eps clamp": ("rstd = 1 / s, with a floor near s = 0", lambda rows: {"placement": "clamp"}),
    "eps floor": ("rstd = 1 / s, with a floor near s = 0", lambda rows: {"placement": "floor"}),
    "no root": ("rstd = 1 / (s**2 + eps)", lambda rows: {"placement": "no root"}),
    "bessel": ("s**2 = sum(q**2) / (N - 1)", lambda rows: {"factor": np.float64(rows.count) / (rows.count - 1)}),
    "other reduce": ("s**2 = sum(q**2)", lambda rows: {"factor": float(rows.count)}),
    "variance for mean square": ("s**2 = mean((p - mean(p))**2)", lambda rows: {"padding": -1}),
    "absolute values": ("s = mean(abs(q))", lambda rows: {"factor": _of_sizes(rows)}),
    "square of the mean": ("s**2 = mean(p)**2", lambda rows: {"factor": 0.0, "padding": 1.0}),
    "centring": ("", lambda rows: {"center": not rows.spec.center}),
    "centred row": ("x_hat = (p - mean(p)) * rstd", lambda rows: {"center": True, "uncentred": True}),
    "weighted squares": ("s**2 = mean((weight * p)**2)", lambda rows: {"uncentred": True, "scale": rows.weight}),
    "weighted row": ("the statistics are those of weight * p",
                     lambda rows: {"p": rows.p * rows.weight} if rows.spec.center else {}),
    "divided by M": ("the sums of the row are divided by M", lambda rows: {"mean": rows.ratio, "factor": rows.ratio}),
    "squares divided by M": ("s**2 = sum(q**2) / M", lambda rows: {"factor": rows.ratio}),
    "uncentred variance": ("s**2 = mean(p**2)", lambda rows: {"uncentred": True}),
    # Columns past N, up to a power of two, that hold -mean and are counted.
    "padding counted": ("s**2 = (sum(q**2) + padding * mean**2) / N", lambda rows: {"padding": 1 / rows.share - 1}),
    "mean of the block": ("mean = sum(p) / BLOCK", lambda rows: {"mean": rows.share}),
    "variance of the block": ("s**2 = sum(q**2) / BLOCK", lambda rows: {"factor": rows.share}),
    "statistics of the block": ("mean and s**2 are sums / BLOCK",
                                lambda rows: {"mean": rows.share, "factor": rows.share}),
    "x alone": ("p = x, without residual", lambda rows: {"p": rows.x}),
    "axis 0": ("mean and s run over the rows, axis=0", lambda rows: {"axis": 0}),
    "no axis": ("mean and s run over the whole matrix", lambda rows: {"axis": None}),
    "bfloat16 rstd": ("rstd is rounded to bfloat16", lambda rows: {"stored": lambda rstd: round_to(rstd, "bfloat16")}),
    "truncated rstd": ("rstd is cut to bfloat16", lambda rows: {"stored": _truncated}),
    "float16 rstd": ("rstd is rounded to float16", lambda rows: {"stored": lambda rstd: round_to(rstd, "float16")}),
}  # fmt: skip
# Followed by a number, the variant with another eps; after a name, the variant of the leading factor only; between two
# names, both.
EPS_IS, ALONE, BOTH = "eps = ", ", rstd alone", " and "


def variant(name: str, rows: Rows) -> tuple[Statistics, Statistics]:
    """(statistics of the leading rstd, statistics of x_hat) of a variant.

    Args:  name: a key of VARIANTS, or "eps = 1e-3"; followed by ", rstd alone" where x_hat is right
    """
    base, right = name.removesuffix(ALONE), _statistics(rows)
    if base.startswith(EPS_IS):
        changes = {"eps": float(base.removeprefix(EPS_IS))}
    else:
        changes = {
            what: to
            for each in base.split(BOTH)
            for what, to in VARIANTS[each][1](rows).items()
        }
    changed = _statistics(rows, **changes)
    return changed, (right if name.endswith(ALONE) else changed)


# key: (its value for N columns and M rows, how it is written); the simplest come first.
PATTERNS = {
    "0": (lambda n, m: 0.0, "0"),
    "1": (lambda n, m: 1.0, "1"),
    "N": (lambda n, m: float(n), "N"),
    "1/N": (lambda n, m: 1 / n, "1 / N"),
    "N/(N-1)": (lambda n, m: n / (n - 1), "N / (N - 1)"),
    "(N-1)/N": (lambda n, m: (n - 1) / n, "(N - 1) / N"),
    "N-1": (lambda n, m: n - 1.0, "(N - 1)"),
    "1/(N-1)": (lambda n, m: 1 / (n - 1), "1 / (N - 1)"),
    "N-1/N": (lambda n, m: n - 1 / n, "(N - 1 / N)"),
    "N/(N+1)": (lambda n, m: n / (n + 1), "N / (N + 1)"),
    "2": (lambda n, m: 2.0, "2"),
    "1/2": (lambda n, m: 0.5, "1 / 2"),
    "3": (lambda n, m: 3.0, "3"),
    "3/2": (lambda n, m: 1.5, "3 / 2"),
    "1/3": (lambda n, m: 1 / 3, "1 / 3"),
    "M": (lambda n, m: float(m), "M"),
    "1/M": (lambda n, m: 1 / m, "1 / M"),
    "N*N": (lambda n, m: float(n * n), "N**2"),
    "1/(N*N)": (lambda n, m: 1 / n**2, "1 / N**2"),
    "2*N": (lambda n, m: 2.0 * n, "2 * N"),
    "2/N": (lambda n, m: 2 / n, "2 / N"),
    "M*N": (lambda n, m: float(m * n), "M * N"),
    "1/(M*N)": (lambda n, m: 1 / (m * n), "1 / (M * N)"),
    "N**0.5": (lambda n, m: n**0.5, "sqrt(N)"),
    "N**-0.5": (lambda n, m: n**-0.5, "1 / sqrt(N)"),
    "N/M": (lambda n, m: n / m, "N / M"),
    "M/N": (lambda n, m: m / n, "M / N"),
    "N/B": (lambda n, m: n / block(n), "N / BLOCK"),
}
# One name for several fields of dx.
SEVERAL = {
    "w": ("w0", "w1", "w2"),
    "e": ("e0", "e1", "e2"),
    "v": ("v1", "v2"),
    "a": ("a1", "a2"),
}
DX = {
    "all": 1,
    "k": 1,
    "k0": 1,
    "k1": 1,
    "kg": 1,
    "wp": 0,
    "wg": 0,
    "eg": 0,
    "dy": ("dy",),
}
DX |= {
    "w0": 1,
    "w1": 1,
    "w2": 1,
    "e0": 1,
    "e1": 1,
    "e2": 1,
    "a1": -1,
    "a2": -1,
    "stats": "right",
    "split": False,
}
DX |= {"v1": ("x_hat",), "v2": ("x_hat",), "v3": (), "red1": "mean", "red2": "mean"}
PARAMETER = {
    "all": 1,
    "e": 0,
    "w": 0,
    "dy": ("dy",),
    "red": "sum",
    "stats": "right",
    "split": False,
}
Y = {
    "all": 1,
    "k": 1,
    "w": 1,
    "v": ("x_hat",),
    "bw": 0,
    "stats": "right",
    "kr": 0,
    "kp": 0,
    "kw1": 0,
    "one": 0,
}


@dataclass(frozen=True)
class Term:
    """One term of a formula.

    Args:  outer: names of elementwise factors; inner, reduce, axis: factors that are reduced, how ("mean", "sum",
           "total" of the matrix, "last" or "first" row), and along which axis (-1 columns, 0 rows, None both)
           power of the leading rstd; post: power of a weight that multiplies what is left of the row; stats: key of
           VARIANTS
    """

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    reduce: str | None = None
    axis: int | None = -1
    power: int = 0
    post: int = 0
    stats: str = "right"


@dataclass(frozen=True)
class Part:
    """One part of a formula: where it stands in the right one, its term and its coefficient."""

    slot: str
    term: Term
    coefficient: float


def value(pattern, setting: Setting) -> float:
    """The value of a key of PATTERNS, inf for a division by N - 1 = 0; numbers pass."""
    if not isinstance(pattern, str):
        return float(pattern)
    try:
        return PATTERNS[pattern][0](setting.columns, setting.rows)
    except ZeroDivisionError:
        return float("inf")


def right_recipe(output: str, setting: Setting) -> dict:
    """The fields of the right formula of an output."""
    if output in ("dx", "dresidual"):
        return DX | {"k2": int(setting.spec.center), "kg": int(setting.stream)}
    if output == "y":
        return Y | {"kb": int(setting.bias)}
    return PARAMETER | {"v": ("x_hat",) if output == "dw" else ()}


def expanded(change: dict, output: str) -> dict:
    """A change with the names that stand for several fields of dx written out."""
    if output not in ("dx", "dresidual"):
        return change
    return {
        field: to for name, to in change.items() for field in SEVERAL.get(name, (name,))
    }


def parts(output: str, recipe: dict, setting: Setting) -> list[Part]:
    """The parts of a recipe; those with the coefficient 0 are left out."""
    number = {
        key: value(to, setting)
        for key, to in recipe.items()
        if key in ("all", "one") or key[0] == "k"
    }
    if output in ("dx", "dresidual"):
        made = _dx(recipe, number)
    else:
        made = (
            _y(recipe, number) if output == "y" else _parameter(recipe, number, output)
        )
    return [part for part in made if part.coefficient != 0]


def _weights(count):
    if isinstance(count, str):
        return (count,)
    return ("weight",) * count if count >= 0 else ("1/weight",) * -count


def _dx(r, k):
    common, norm = {"post": r["wp"], "stats": r["stats"]}, k["all"] * k["k"]
    u0, u1, u2 = (_weights(r[f"w{which}"]) + r["dy"] for which in range(3))
    if r["split"]:  # the mean of a product taken for the product of the means
        c1 = Term(
            (*r["v1"], f"{r['red1']} wdy"),
            r["v2"],
            r["red1"],
            r["a1"],
            r["e1"],
            **common,
        )
    elif r["red1"] == "none":
        c1 = Term((*r["v1"], *r["v2"], *u1), power=r["e1"], **common)
    else:
        c1 = Term(r["v1"], (*r["v2"], *u1), r["red1"], r["a1"], r["e1"], **common)
    c2 = Term((), (*r["v3"], *u2), "mean", r["a2"], r["e2"], **common)
    if r["red2"] == "none":
        c2 = Term(u2, power=r["e2"], **common)
    return [
        Part("u", Term(u0, power=r["e0"], **common), norm * k["k0"]),
        Part("c2", c2, -norm * k["k2"]),
        Part("c1", c1, -norm * k["k1"]),
        Part(
            "g",
            Term(("g",), power=r["eg"], post=r["wg"], stats=r["stats"]),
            k["all"] * k["kg"],
        ),
    ]


def _parameter(r, k, output):
    if r["split"]:
        term = Term((f"{r['red']} dy",), r["v"], r["red"], 0, stats=r["stats"])
    else:
        term = Term(
            (),
            _weights(r["w"]) + ("rstd",) * r["e"] + r["v"] + r["dy"],
            r["red"],
            0,
            stats=r["stats"],
        )
    return [Part(output, term, k["all"])]


def _y(r, k):
    own = {"stats": r["stats"]}
    return [
        Part("x_hat", Term((*_weights(r["w"]), *r["v"]), **own), k["all"] * k["k"]),
        Part("weight + 1", Term(r["v"], **own), k["all"] * k["kw1"]),
        Part("bias", Term((*_weights(r["bw"]), "bias"), **own), k["all"] * k["kb"]),
        Part("one", Term(("one",), **own), k["all"] * k["one"]),
        Part("residual", Term(("residual",), **own), k["kr"]),
        Part("p", Term(("p",), **own), k["kp"]),
    ]


class Arrays:
    """The arrays of a case by name, for every variant of the statistics, and the terms evaluated so far.

    Args:  case, spec, dtype: as diagnose; the case's numbers are rounded to dtype, the arithmetic here is float64
    """

    def __init__(self, case: Case, spec: NormSpec, dtype: str | Dtypes):
        dtypes = Dtypes.of(dtype)
        case = case.rounded(dtypes)
        p = case.summed(dtypes)
        self.case, self.dtypes = case, dtypes
        self.spec = spec.resolve(2 * unit_roundoff(dtypes.accumulator))
        self.rows = Rows(
            p, case.x, self.spec, 1.0 if case.weight is None else case.weight
        )
        self.saved = numpy_ref.forward(p, case.weight, case.bias, spec=self.spec)
        self.grads = numpy_ref.backward(case.dy, self.saved, case.dresidual_out)
        self.q = p - (0 if self.saved.mean is None else self.saved.mean[:, None])
        self._variants, self._terms, self._cores, self._sizes = {}, {}, {}, {}

    @cached_property
    def bounds(self) -> Bounds:
        """The error bounds of the right outputs."""
        return bounds(self.case.dy, self.case.dresidual_out, self.saved, self.dtypes)

    @cached_property
    def _plain(self):
        case, p = self.case, self.rows.p
        vector, matrix = np.ones(p.shape[-1]), np.zeros_like(p)
        g = matrix if case.dresidual_out is None else case.dresidual_out
        weight = vector if case.weight is None else case.weight
        wdy = case.dy * weight
        return {
            "mean wdy": wdy.mean(-1, keepdims=True),
            "sum wdy": wdy.sum(-1, keepdims=True),
            "mean dy": case.dy.mean(0),
            "sum dy": case.dy.sum(0),
            "p": p,
            "x": case.x,
            "residual": matrix if case.residual is None else case.residual,
            "dy": case.dy,
            "g": g,
            "dy+g": case.dy + g,
            "weight": weight,
            "1/weight": 1 / weight,
            "1+weight": 1 + weight,
            "bias": 0 * vector if case.bias is None else case.bias,
            "one": np.float64(1),
        }

    def _arrays(self, stats):
        if stats not in self._variants:
            lead, own = variant(stats, self.rows)
            plain, x_hat = self._plain, own.q * own.rstd
            named = {
                "q": own.q,
                "rstd": own.rstd,
                "D": 1 / own.rstd,
                "x_hat": x_hat,
                "lead": lead.rstd,
            }
            named |= {
                "y": x_hat * plain["weight"] + plain["bias"],
                "q / s": own.q / (own.q**2).mean(-1)[:, None] ** 0.5,
            }
            self._variants[stats] = plain | named
        return self._variants[stats]

    def value(self, term: Term) -> np.ndarray:
        """The term as an array that broadcasts to the output."""
        if term not in self._terms:
            self._terms[term] = _evaluate(
                term, self._arrays(term.stats), self.rows.p.shape, self._cores
            )
        return self._terms[term]

    def size(self, term: Term) -> np.ndarray:
        """The term with every factor replaced by its absolute value: what rounding errors are proportional to."""
        if term.stats not in self._sizes:
            arrays = {
                name: np.abs(array) for name, array in self._arrays(term.stats).items()
            }
            # A centred row is as uncertain as its largest entry.
            arrays["q"] = np.maximum(arrays["q"], arrays["q"].max(-1, keepdims=True))
            self._sizes[term.stats] = arrays
        return _evaluate(term, self._sizes[term.stats], self.rows.p.shape, {})


def _evaluate(term, arrays, shape, cores):
    """The term; cores keeps what terms that differ in their leading factors share."""
    core = (term.outer, term.inner, term.reduce, term.axis, term.stats)
    if core not in cores:
        cores[core] = _core(term, arrays, shape)
    total = cores[core]
    if term.power:
        total = total * arrays["lead"] ** term.power
    return total * arrays["weight"] ** term.post if term.post else total


def _core(term, arrays, shape):
    total = reduce(multiply, [arrays[name] for name in term.outer], np.float64(1))
    if term.reduce is None:
        return total
    inner = reduce(multiply, [arrays[name] for name in term.inner], np.float64(1))
    inner = inner if inner.shape == shape else np.broadcast_to(inner, shape)
    if term.reduce in ("last", "first"):
        return total * inner[-1 if term.reduce == "last" else 0]
    if term.reduce == "total":
        return total * inner.sum()
    count = (
        1
        if term.reduce == "sum"
        else inner.size
        if term.axis is None
        else shape[term.axis]
    )
    return total * (inner.sum(axis=term.axis, keepdims=term.axis != 0) / count)


def dictionary(output: str) -> list[Term]:
    """The terms in which an unknown formula of an output is sought, the true ones first, duplicates included."""
    if output in ("dw", "db"):
        rows = ("x_hat dy", "dy", "q dy", "p dy", "y dy", "x_hat", "x_hat g", "g", "p", "x_hat rstd dy", "rstd dy",
                "p rstd dy", "x_hat x_hat dy")  # fmt: skip
        sums = [Term((), tuple(inner.split()), "sum", 0) for inner in rows]
        return [
            *sums,
            *(Term((), ("weight", *term.inner), "sum", 0) for term in sums),
            Term(("weight",)),
            Term(("bias",)),
        ]
    if output == "y":
        names = ("x_hat", "q", "p", "x", "residual", "rstd", "one")
        rows = [Term((*weight, name)) for name in names for weight in (("weight",), ())]
        return [
            *rows,
            Term(("bias",)),
            Term(("weight",)),
            Term(("weight", "x_hat", "rstd")),
            Term(("p", "rstd")),
        ]
    wdy, dy, terms = ("weight", "dy"), ("dy",), []
    for power in (1, 0, 2, 3, -1):
        for u in (wdy, dy, ("weight", *wdy), ("g",)):
            terms += [Term(u, power=power), Term((), u, "mean", power=power),
                      Term(("x_hat",), ("x_hat", *u), "mean", power=power)]  # fmt: skip
        terms += [
            Term(("x_hat",), wdy, "mean", power=power),
            Term((), ("x_hat", *wdy), "mean", power=power),
        ]
        terms += [
            Term(("x_hat", "x_hat", *wdy), power=power),
            Term(("x_hat", *wdy), power=power),
        ]
    for power in (1, 0):
        terms.append(Term((), dy, "mean", power=power, post=1))
        terms.append(Term(("x_hat",), ("x_hat", *dy), "mean", power=power, post=1))
    return [
        Term(("g",)),
        *terms,
        *(Term((name,)) for name in ("x_hat", "p", "y", "rstd", "weight", "one")),
    ]


@dataclass(frozen=True)
class Candidate:
    """A formula: the keys of the mistakes that lead to it, and its parts."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Compiled:
    """Candidates as arrays: for candidate k the terms index[k] with the coefficients coefficient[k]."""

    candidates: tuple[Candidate, ...]
    terms: tuple[Term, ...]
    index: np.ndarray
    coefficient: np.ndarray

    def predictions(
        self, arrays: Arrays, shape: tuple[int, ...], entries: np.ndarray
    ) -> np.ndarray:
        """What each candidate gives in some entries of the output: (candidates, entries)."""
        values = np.stack(
            [
                np.broadcast_to(arrays.value(term), shape).ravel()[entries]
                for term in self.terms
            ]
        )
        columns = range(self.index.shape[1])
        return sum(
            self.coefficient[:, at, None] * values[self.index[:, at]] for at in columns
        )


def right(output: str, setting: Setting) -> Candidate:
    """The right formula."""
    return Candidate((), tuple(parts(output, right_recipe(output, setting), setting)))


def _compile(found):
    terms, rows = {}, []
    zero = terms.setdefault(Term(("one",)), 0)
    width = max((len(candidate.parts) for candidate in found), default=1) or 1
    for candidate in found:
        row = [
            (terms.setdefault(part.term, len(terms)), part.coefficient)
            for part in candidate.parts
        ]
        rows.append(row + [(zero, 0.0)] * (width - len(row)))
    filled = np.array(rows).reshape(len(rows), width, 2)
    return Compiled(
        tuple(found), tuple(terms), filled[..., 0].astype(int), filled[..., 1]
    )


def _distinct(output, setting, changes):
    """The candidates of the changes that are neither the right formula nor a repetition."""
    base = right_recipe(output, setting)
    seen, found = {right(output, setting).parts}, []
    for keys, change in changes:
        made = tuple(parts(output, base | change, setting))
        if made not in seen and all(np.isfinite(part.coefficient) for part in made):
            seen.add(made)
            found.append(Candidate(keys, made))
    return _compile(found)


@lru_cache(maxsize=64)
def singles(output: str, setting: Setting) -> Compiled:
    """Each look of each mistake."""
    return _distinct(
        output, setting, (((key,), to) for key, to in changes(output, setting))
    )


@lru_cache(maxsize=16)
def doubles(output: str, setting: Setting) -> Compiled:
    """Each pair of looks that change different fields, of two mistakes."""
    base = right_recipe(output, setting)
    each = [
        (key, to)
        for key, to in changes(output, setting, doubles=True)
        if any(base[f] != v for f, v in to.items())
    ]
    return _distinct(output, setting, _pairs(each))


def _pairs(each):
    """(both keys, both changes) of two mistakes; where both change the statistics, one of them changes eps."""
    for (a, one), (b, two) in combinations(each, 2):
        shared, stats = one.keys() & two.keys(), (one.get("stats"), two.get("stats"))
        if a != b and not shared:
            yield (a, b), one | two
        elif a != b and shared == {"stats"} and set(stats) <= VARIANTS.keys():
            if sum(each.startswith("eps") for each in stats) == 1:
                yield (a, b), one | two | {"stats": BOTH.join(stats)}


def changes(output: str, setting: Setting, doubles=False):
    """(key, change of the right recipe) of each look of each mistake that has a meaning in a setting."""
    for entry in MISTAKES.values():
        if entry.fits(setting) and not (doubles and entry.alone):
            for change in entry.looks.get(
                "dx" if output == "dresidual" else output, ()
            ):
                yield entry.key, expanded(change, output)


def other_rstd(saved: numpy_ref.Forward, case: Case, spec: NormSpec):
    """(keys, words, rstd of each row) for each mistake in the statistics, and for two; then of what is not inverted."""
    rows = Rows(
        saved.residual_out, case.x, spec, 1.0 if case.weight is None else case.weight
    )
    yield ("variance-for-rstd",), "s**2", saved.rstd**-2 - spec.eps
    yield ("variance-for-rstd",), "s**2 + eps", saved.rstd**-2
    known = changes("y", Setting.of(case, spec))
    each = [
        (key, to)
        for key, to in known
        if to.keys() == {"stats"} and to["stats"] in VARIANTS
    ]
    named = [((), "right"), *(((key,), to["stats"]) for key, to in each)]
    for keys, stats in [*named, *((keys, to["stats"]) for keys, to in _pairs(each))]:
        with np.errstate(all="ignore"):
            rstd = variant(stats, rows)[0].rstd
            words = " and ".join(
                VARIANTS[name][0] or "rstd = 1 / sqrt(s**2 + eps)"
                for name in stats.split(BOTH)
            )
            if rstd.shape == (len(rows.p), 1):
                yield keys, words, rstd[:, 0]
                yield (
                    (*keys, "root-for-reciprocal"),
                    f"1 / rstd, {words}",
                    1 / rstd[:, 0],
                )
