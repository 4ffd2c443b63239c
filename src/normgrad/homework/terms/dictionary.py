"""The terms a gradient may be made of, evaluated on a case, and the dictionary in which unknown formulas are sought.

A term is rstd**power * weight**post * (factors) * mean or sum of (factors). Every formula here, right or wrong, is a
sum of terms with one coefficient each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul as multiply

import numpy as np

from ... import numpy_ref
from ...checks.cases import Case
from ...checks.tolerance import Bounds, Dtypes, bounds, round_to, unit_roundoff
from ...spec import NormSpec
from .statistics import Rows, variant

WDY, DY, WWDY = ("scale", "weight", "dy"), ("scale", "dy"), ("scale", "weight", "weight", "dy")


@dataclass(frozen=True)
class Term:
    """One term of a formula.

    Args:  outer: names of elementwise factors; inner, reduce, axis: factors that are reduced, how ("mean", "sum",
           "last" or "first" row), and along which axis (-1 columns, 0 rows, None both); power of the leading rstd;
           post: power of a weight that multiplies what is left of the row; stats: key of statistics.CHANGES
    """

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    reduce: str | None = None
    axis: int | None = -1
    power: int = 0
    post: int = 0
    stats: str = "right"


class Table:
    """The arrays of a case by name, for every variant of the statistics, and the terms evaluated so far.

    Args:  case, spec, dtype: as diagnose; the case's numbers are rounded to dtype, the arithmetic here is float64
    """

    def __init__(self, case: Case, spec: NormSpec, dtype: str | Dtypes):
        dtypes = Dtypes.of(dtype)
        case = case.rounded(dtypes)
        p = case.x
        if case.residual is not None:
            p = round_to(p + case.residual, dtypes["residual_out"] if dtypes.round_residual else dtypes.accumulator)
        self.case, self.dtypes = case, dtypes
        self.spec = spec.resolve(2 * unit_roundoff(dtypes.accumulator))
        self.rows = Rows(p, case.x, self.spec)
        self.saved = numpy_ref.forward(p, case.weight, case.bias, spec=self.spec)
        self.grads = numpy_ref.backward(case.dy, self.saved, case.dresidual_out)
        self._variants, self._terms, self._cores, self._sizes = {}, {}, {}, {}

    @property
    def shape(self) -> tuple[int, int]:
        """M and N."""
        return self.rows.p.shape

    @cached_property
    def bounds(self) -> Bounds:
        """The error bounds of the right outputs."""
        return bounds(self.case.dy, self.case.dresidual_out, self.saved, self.dtypes)

    @cached_property
    def _plain(self):
        case, p = self.case, self.rows.p
        vector, matrix = np.ones(p.shape[-1]), np.zeros_like(p)
        g = matrix if case.dresidual_out is None else case.dresidual_out
        wdy = self.spec.scale * case.dy * (vector if case.weight is None else case.weight)
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
            "weight": vector if case.weight is None else case.weight,
            "bias": 0 * vector if case.bias is None else case.bias,
            "scale": np.float64(self.spec.scale),
            "one": np.float64(1),
        }

    def _arrays(self, stats):
        if stats not in self._variants:
            lead, own = variant(stats, self.rows)
            plain = self._plain
            x_hat = own.q * own.rstd
            y = plain["scale"] * x_hat * plain["weight"] + plain["bias"]
            named = {"q": own.q, "rstd": own.rstd, "x_hat": x_hat, "kappa": own.kappa, "y": y, "lead": lead.rstd}
            named |= {"D": 1 / own.rstd, "1/kappa": 1 / own.kappa, "1/weight": 1 / plain["weight"]}
            named |= {"1+weight": 1 + plain["weight"], "q / s": own.q / (own.q**2).mean(-1, keepdims=True) ** 0.5}
            self._variants[stats] = plain | named
        return self._variants[stats]

    def value(self, term: Term) -> np.ndarray:
        """The term as an array that broadcasts to the output."""
        if term not in self._terms:
            self._terms[term] = _evaluate(term, self._arrays(term.stats), self.rows.p.shape, self._cores)
        return self._terms[term]

    def size(self, term: Term) -> np.ndarray:
        """The term with every factor replaced by its absolute value: what rounding errors are proportional to."""
        if term.stats not in self._sizes:
            arrays = {name: np.abs(array) for name, array in self._arrays(term.stats).items()}
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
    count = 1 if term.reduce == "sum" else inner.size if term.axis is None else shape[term.axis]
    return total * (inner.sum(axis=term.axis, keepdims=term.axis != 0) / count)


def dictionary(table: Table, output: str) -> list[Term]:
    """The terms in which an unknown formula of an output is sought, the true ones first, duplicates included."""
    how = table.spec.reduce
    if output in ("dw", "db"):
        return _of_parameters()
    if output == "y":
        return _of_y()
    terms = []
    for power in (1, 0, 2, 3, -1):
        for u in (WDY, DY, WWDY, ("g",)):
            terms += [
                Term(u, power=power),
                Term((), u, "mean", power=power),
                Term(("kappa", "x_hat"), ("x_hat", *u), how, power=power),
                Term(("x_hat",), ("x_hat", *u), how, power=power),
            ]
        terms += [Term(("x_hat",), WDY, "mean", power=power), Term((), ("x_hat", *WDY), "mean", power=power)]
        terms += [Term(("x_hat", "x_hat", *WDY), power=power), Term(("x_hat", *WDY), power=power)]
    for power in (1, 0):
        terms.append(Term((), DY, "mean", power=power, post=1))
        terms.append(Term(("x_hat",), ("x_hat", *DY), how, power=power, post=1))
    constants = [Term((name,)) for name in ("x_hat", "p", "y", "rstd", "weight", "one")]
    return [Term(("g",)), *terms, *constants]


def _of_parameters():
    rows = (("x_hat", "dy"), ("dy",), ("q", "dy"), ("p", "dy"), ("y", "dy"), ("x_hat",), ("x_hat", "g"), ("g",), ("p",))
    extra = (("x_hat", "rstd", "dy"), ("rstd", "dy"), ("p", "rstd", "dy"), ("x_hat", "x_hat", "dy"))
    sums = [Term((), inner, "sum", 0) for inner in rows + extra]
    return sums + [Term((), ("weight", *term.inner), "sum", 0) for term in sums] + [Term(("weight",)), Term(("bias",))]


def _of_y():
    names = ("x_hat", "q", "p", "x", "residual", "rstd", "one")
    rows = [Term((*scaled, name)) for name in names for scaled in (("scale", "weight"), (), ("scale",))]
    return [*rows, Term(("bias",)), Term(("weight",)), Term(("scale", "weight", "x_hat", "rstd")), Term(("p", "rstd"))]
