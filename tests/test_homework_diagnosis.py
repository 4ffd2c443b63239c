"""Term attribution: every wrong formula gets its name, no right one gets any, and nothing is guessed."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from normgrad import numpy_ref
from normgrad.checks import cases
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import round_to
from normgrad.homework.diagnosis import formulas, written
from normgrad.homework.diagnosis.diagnose import diagnose
from normgrad.homework.diagnosis.fit import SAME
from normgrad.homework.diagnosis.formulas import Setting
from normgrad.homework.equations import places
from normgrad.mistakes import catalogue, mutants
from normgrad.mistakes.table import MISTAKES, OWN, REFUSED, UNKNOWN, find
from normgrad.spec import LAYER_NORM, NormSpec
from normgrad.symbolic import equations

SEEDS = range(20)
SIZES = ((6, 8), (5, 7), (6, 5), (4, 9))
LN, RMS = LAYER_NORM, SPECS["rms_norm"]
NORMS = {"layer_norm": LN, "rms_norm": RMS}


def mean(a):
    return a.mean(-1, keepdims=True)


def total(a):
    return a.sum(-1, keepdims=True)


def names(case, spec, stored="float64"):
    """What a student has at hand: arrays of a dtype, sums in the accumulator's."""
    dtype = np.float64 if stored == "float64" else np.float32
    arrays = {
        k: None if (a := getattr(case, k)) is None else a.astype(dtype)
        for k in cases.ARRAYS
    }
    s = SimpleNamespace(
        **arrays, spec=spec, stored=stored, N=case.x.shape[1], M=len(case.x)
    )
    s.g = np.zeros_like(s.x) if s.dresidual_out is None else s.dresidual_out
    s.b = 0 if s.bias is None else s.bias
    s.w = np.ones(s.N, dtype) if s.weight is None else s.weight
    s.p = (
        s.x if s.residual is None else round_to(s.x + s.residual, stored).astype(dtype)
    )
    s.eps = dtype(spec.eps)
    s.q = s.p - mean(s.p) if spec.center else s.p
    s.v = mean(s.q**2)
    s.s = np.sqrt(s.v)
    s.D = np.sqrt(s.v + s.eps)
    s.rstd = 1 / s.D
    s.x_hat = s.q * s.rstd
    s.y = s.x_hat * s.w + s.b
    s.wdy = s.dy * s.w
    return s


def norm_dx(s, wdy=None, x_hat=None, rstd=None, c1=1.0, c2=1.0):
    """The right dx without dresidual_out, some of its pieces replaced."""
    wdy = s.wdy if wdy is None else wdy
    x_hat = s.x_hat if x_hat is None else x_hat
    rstd = s.rstd if rstd is None else rstd
    dx = wdy - c1 * x_hat * total(x_hat * wdy) / s.N
    return rstd * (dx - c2 * mean(wdy) if s.spec.center else dx)


def with_rows(s, D, q=None):
    """The names with another denominator, as a wrong forward hands them to the backward."""
    q = s.q if q is None else q
    x_hat = q / D
    return SimpleNamespace(
        **(
            vars(s)
            | {"D": D, "rstd": 1 / D, "q": q, "x_hat": x_hat, "y": x_hat * s.w + s.b}
        )
    )


@dataclass(frozen=True)
class Wrong:
    """A formula, the output it is wrong in, and the misconceptions it must be given."""

    name: str
    output: str
    expected: set
    formula: Callable
    spec: NormSpec = LN
    without: tuple = ()


def dx(name, expected, formula, spec=LN, without=()):
    return Wrong(name, "dx", set(expected.split()), formula, spec, without)


def other(output, name, expected, formula, spec=LN, without=()):
    return Wrong(
        f"{output}: {name}", output, set(expected.split()), formula, spec, without
    )


def bessel(s):
    return np.sqrt(total(s.q**2) / (s.N - 1) + s.eps)


def dx_of(s):
    return norm_dx(s) + s.g


SINGLE = [
    dx("statistics constant", "statistics-constant", lambda s: s.rstd * s.wdy + s.g),
    dx("c1 dropped, rms", "c1-dropped", lambda s: s.rstd * s.wdy + s.g, RMS),
    dx(
        "c2 added in rms",
        "c2-added",
        lambda s: norm_dx(s) - s.rstd * mean(s.wdy) + s.g,
        RMS,
    ),
    dx("c2 added, sign", "c2-sign", lambda s: norm_dx(s, c2=-1) + s.g),
    dx("2 c1", "factor-two", lambda s: norm_dx(s, c1=2) + s.g),
    dx("c1 / 2", "factor-two", lambda s: norm_dx(s, c1=0.5) + s.g, RMS),
    dx("c1 / N again", "divided-twice", lambda s: norm_dx(s, c1=1 / s.N) + s.g),
    dx(
        "bessel in c1 and D",
        "bessel",
        lambda s: norm_dx(with_rows(s, bessel(s)), c1=s.N / (s.N - 1)) + s.g,
    ),
    dx("bessel in D", "bessel", lambda s: norm_dx(with_rows(s, bessel(s))) + s.g, RMS),
    dx("sum in c1, rms", "sum-for-mean-c1", lambda s: norm_dx(s, c1=s.N) + s.g, RMS),
    dx(
        "std for variance",
        "projection-power",
        lambda s: (
            s.rstd * (s.wdy - mean(s.wdy)) - s.q * mean(s.wdy * s.q) * s.rstd**2 + s.g
        ),
    ),
    dx("rstd twice", "rstd-twice", lambda s: norm_dx(s, rstd=s.rstd**2) + s.g),
    dx("D for rstd", "rstd-inverted", lambda s: norm_dx(s, rstd=s.D) + s.g),
    dx(
        "rstd on wdy alone",
        "rstd-in-some-terms",
        lambda s: s.rstd * s.wdy - mean(s.wdy) - s.x_hat * mean(s.x_hat * s.wdy) + s.g,
    ),
    dx(
        "weight after, rms",
        "weight-after",
        lambda s: s.w * norm_dx(s, wdy=s.dy) + s.g,
        RMS,
    ),
    dx("weight twice, outside", "weight-twice", lambda s: s.w * norm_dx(s) + s.g),
    dx(
        "weight missing in means",
        "weight-in-some-terms",
        lambda s: s.rstd * (s.wdy - mean(s.dy) - s.x_hat * mean(s.x_hat * s.dy)) + s.g,
    ),
    dx("stream subtracted", "dresidual-sign", lambda s: norm_dx(s) - s.g),
    dx(
        "stream scaled by rstd", "dresidual-scaled", lambda s: norm_dx(s) + s.rstd * s.g
    ),
    dx("stream twice", "dresidual-twice", lambda s: norm_dx(s) + 2 * s.g, RMS),
    dx(
        "stream through the norm and beside it",
        "dresidual-through-norm",
        lambda s: norm_dx(s, wdy=s.w * (s.dy + s.g)) + s.g,
    ),
    dx("stream alone", "dresidual-alone", lambda s: s.g + 0),
    dx("y for x_hat", "y-for-x_hat", lambda s: norm_dx(s, x_hat=s.y) + s.g),
    dx(
        "y for x_hat, inside the mean",
        "y-for-x_hat",
        lambda s: s.rstd * (s.wdy - mean(s.wdy) - s.x_hat * mean(s.y * s.wdy)) + s.g,
    ),
    dx("x for x_hat", "x-for-x_hat", lambda s: norm_dx(s, x_hat=s.p) + s.g),
    dx(
        "not centred",
        "centring-missing",
        lambda s: norm_dx(s, x_hat=s.p * s.rstd) + s.g,
    ),
    dx(
        "residual left out",
        "residual-left-out",
        lambda s: norm_dx(names_without(s)) + s.g,
    ),
    dx("eps missing", "eps-missing", lambda s: norm_dx(with_rows(s, s.s)) + s.g),
    dx(
        "eps missing in the factor",
        "eps-missing",
        lambda s: norm_dx(s, rstd=1 / s.s) + s.g,
    ),
    dx(
        "eps outside",
        "eps-placement",
        lambda s: norm_dx(with_rows(s, s.s + s.eps)) + s.g,
    ),
    dx(
        "eps 1e-4",
        "eps-value",
        lambda s: norm_dx(with_rows(s, np.sqrt(s.v + 1e-4))) + s.g,
    ),
    dx("no root", "root-missing", lambda s: norm_dx(with_rows(s, s.v + s.eps)) + s.g),
    dx(
        "ones for dy",
        "ones-for-dy",
        lambda s: norm_dx(s, wdy=s.w * np.ones_like(s.dy)) + s.g,
    ),
    dx(
        "projection over its own length",
        "projection-exact",
        lambda s: (
            s.rstd
            * (
                s.wdy
                - mean(s.wdy)
                - s.x_hat * total(s.x_hat * s.wdy) / total(s.x_hat**2)
            )
            + s.g
        ),
    ),
    dx(
        "1 + weight",
        "weight-plus-one",
        lambda s: norm_dx(s, wdy=(1 + s.w) * s.dy) + s.g,
    ),
    dx(
        "N missing beside wdy",
        "factor-n",
        lambda s: (
            s.rstd / s.N * (s.wdy - total(s.wdy) - s.x_hat * total(s.x_hat * s.wdy))
            + s.g
        ),
    ),
    dx(
        "mean over rows in c1, multiplied out",
        "wrong-axis",
        lambda s: (
            s.rstd * (s.wdy - mean(s.wdy))
            - s.q * s.rstd**3 * (s.q * s.wdy).mean(0)
            + s.g
        ),
    ),
    dx(
        "mean over rows in c1, rms, multiplied out",
        "wrong-axis",
        lambda s: s.rstd * s.wdy - s.p * s.rstd**3 * (s.dy * s.w * s.p).mean(0) + s.g,
        RMS,
    ),
    dx(
        "mean over rows in c1, rstd before the mean",
        "wrong-axis",
        lambda s: (
            s.rstd * (s.wdy - mean(s.wdy))
            - s.x_hat * (s.rstd * s.x_hat * s.wdy).mean(0)
            + s.g
        ),
    ),
    dx(
        "mean over all in both, rstd before the mean",
        "wrong-axis",
        lambda s: (
            s.rstd * s.wdy
            - (s.rstd * s.wdy).mean()
            - s.x_hat * (s.rstd * s.x_hat * s.wdy).mean()
            + s.g
        ),
    ),
    dx(
        "mean over rows in c2, rstd before the mean",
        "wrong-axis",
        lambda s: (
            s.rstd * (s.wdy - s.x_hat * mean(s.x_hat * s.wdy))
            - (s.rstd * s.wdy).mean(0)
            + s.g
        ),
    ),
    dx(
        "mean over rows in c2",
        "wrong-axis",
        lambda s: (
            s.rstd * (s.wdy - s.wdy.mean(0) - s.x_hat * mean(s.x_hat * s.wdy)) + s.g
        ),
    ),
    dx("negated", "negated", lambda s: -dx_of(s)),
    dx("N too many", "factor-n", lambda s: s.N * norm_dx(s) + s.g),
    dx(
        "not reduced",
        "not-reduced",
        lambda s: s.rstd * (s.wdy - mean(s.wdy) - s.x_hat**2 * s.wdy) + s.g,
    ),
    dx(
        "direction missing",
        "x_hat-missing",
        lambda s: s.rstd * (s.wdy - mean(s.wdy) - mean(s.x_hat * s.wdy)) + s.g,
    ),
    dx("batch averaged", "rows-averaged", lambda s: norm_dx(s) / s.M + s.g, RMS),
    dx(
        "identity",
        "identity",
        lambda s: s.dy + 0,
        without=("residual", "dresidual_out"),
    ),
    dx("zero", "zero", lambda s: 0 * s.dy),
]
DOUBLE = [
    dx(
        "sign and weight",
        "projection-sign weight-missing",
        lambda s: norm_dx(s, wdy=s.dy, c1=-1) + s.g,
    ),
    dx(
        "weight twice, bessel",
        "weight-twice bessel",
        lambda s: norm_dx(s, s.w**2 * s.dy, c1=s.N / (s.N - 1)) + s.g,
    ),
    dx("c2 and stream", "c2-dropped dresidual-forgotten", lambda s: norm_dx(s, c2=0)),
    dx(
        "axis and stream",
        "wrong-axis dresidual-forgotten",
        lambda s: s.rstd * (s.wdy - s.wdy.mean(0) - s.x_hat * mean(s.x_hat * s.wdy)),
    ),
    dx(
        "N and sign",
        "factor-n projection-sign",
        lambda s: s.N * norm_dx(s, c1=-1) + s.g,
    ),
    dx(
        "some weights and c2",
        "weight-in-some-terms c2-dropped",
        lambda s: s.rstd * (s.wdy - s.x_hat * mean(s.x_hat * s.dy)) + s.g,
    ),
    dx(
        "some rstd and sign",
        "rstd-in-some-terms projection-sign",
        lambda s: s.rstd * s.wdy - mean(s.wdy) + s.x_hat * mean(s.x_hat * s.wdy) + s.g,
    ),
    other(
        "y",
        "sum after, no bias",
        "stream-added-to-y bias-missing",
        lambda s: s.x_hat * s.w + s.p,
    ),
    dx(
        "rstd and stream",
        "rstd-missing dresidual-forgotten",
        lambda s: norm_dx(s, rstd=1),
        RMS,
    ),
    dx(
        "after and stream",
        "weight-after dresidual-forgotten",
        lambda s: s.w * norm_dx(s, wdy=s.dy),
    ),
    dx(
        "sum in c1 and c2",
        "sum-for-mean-c1 sum-for-mean-c2",
        lambda s: norm_dx(s, c1=s.N, c2=s.N) + s.g,
    ),
    dx(
        "y and c2",
        "y-for-x_hat c2-dropped",
        lambda s: norm_dx(s, x_hat=s.y, c2=0) + s.g,
    ),
    dx(
        "eps and c1",
        "eps-missing c1-dropped",
        lambda s: norm_dx(with_rows(s, s.s), c1=0) + s.g,
    ),
    other(
        "dw",
        "weight and mean over rows",
        "weight-in-dw rows-averaged",
        lambda s: (s.wdy * s.x_hat).mean(0),
    ),
    other(
        "dw",
        "rstd missing, mean over rows",
        "rstd-missing rows-averaged",
        lambda s: (s.dy * s.q).mean(0),
        RMS,
    ),
    other(
        "db",
        "weight and mean over rows",
        "weight-in-db rows-averaged",
        lambda s: s.wdy.mean(0),
    ),
    other(
        "y", "no eps, no bias", "eps-missing bias-missing", lambda s: s.q / s.s * s.w
    ),
]
PARAMETER = [
    other("dw", "mean over rows", "rows-averaged", lambda s: (s.dy * s.x_hat).mean(0)),
    other("dw", "last row", "rows-not-summed", lambda s: (s.dy * s.x_hat)[-1]),
    other(
        "dw",
        "weight in dw, rms",
        "weight-in-dw",
        lambda s: (s.wdy * s.x_hat).sum(0),
        RMS,
    ),
    other("dw", "y for x_hat", "y-for-x_hat", lambda s: (s.dy * s.y).sum(0)),
    other("dw", "x for x_hat", "x-for-x_hat", lambda s: (s.dy * s.p).sum(0)),
    other("dw", "db", "dw-is-db", lambda s: s.dy.sum(0)),
    other("dw", "ones", "ones-for-dy", lambda s: s.x_hat.sum(0), RMS),
    other(
        "dw",
        "sums multiplied",
        "product-of-sums",
        lambda s: s.dy.sum(0) * s.x_hat.sum(0),
    ),
    other(
        "dw",
        "eps on the sum",
        "eps-on-sum",
        lambda s: (s.dy * s.q / np.sqrt(s.v + s.eps / s.N)).sum(0),
    ),
    other("dw", "bessel", "bessel", lambda s: (s.dy * s.q / bessel(s)).sum(0)),
    other(
        "dw",
        "stream",
        "dresidual-through-norm",
        lambda s: ((s.dy + s.g) * s.x_hat).sum(0),
    ),
    other("db", "weight", "weight-in-db", lambda s: s.wdy.sum(0)),
    other("db", "ones", "ones-for-dy", lambda s: np.full(s.N, float(s.M))),
    other("db", "rstd", "rstd-in-db", lambda s: (s.dy * s.rstd).sum(0)),
    other("db", "dw", "db-is-dw", lambda s: (s.dy * s.x_hat).sum(0)),
    other("db", "first row", "rows-not-summed", lambda s: s.dy[0]),
    other("db", "stream", "dresidual-through-norm", lambda s: (s.dy + s.g).sum(0)),
]
FORWARD = [
    other("y", "eps outside", "eps-placement", lambda s: s.q / (s.s + s.eps) * s.w + s.b),
    other("y", "eps missing", "eps-missing", lambda s: s.q / s.s * s.w + s.b),
    other("y", "eps on the sum", "eps-on-sum", lambda s: s.q / np.sqrt(s.v + s.eps / s.N) * s.w + s.b, RMS),
    other("y", "eps 2e-4", "eps-value", lambda s: s.q / np.sqrt(s.v + 2e-4) * s.w + s.b),
    other("y", "bessel", "bessel", lambda s: s.q / bessel(s) * s.w + s.b),
    other("y", "not centred", "centring-missing", lambda s: s.p * s.rstd * s.w + s.b),
    other("y", "centred", "centring-added", lambda s: (s.p - mean(s.p)) / np.sqrt(np.var(s.p, -1, keepdims=True)
          + s.eps) * s.w + s.b, RMS),
    other("y", "variance for mean square", "variance-for-mean-square", lambda s: s.q / np.sqrt(np.var(s.p, -1,
          keepdims=True) + s.eps) * s.w + s.b, RMS),
    other("y", "norm for root mean square", "reduce-exchanged",
          lambda s: s.q / np.sqrt(s.N * s.v + s.eps) * s.w + s.b, RMS),
    other("y", "absent bias", "absent-bias-one", lambda s: s.y + 1, without=("bias",)),
    other("y", "bias weighted", "bias-weighted", lambda s: (s.x_hat + s.b) * s.w),
    other("y", "residual added after", "stream-added-to-y", lambda s: names_without(s).y + s.residual),
    other("y", "statistics over rows", "wrong-axis",
          lambda s: (s.p - s.p.mean(0)) / np.sqrt(s.p.var(0) + s.eps) * s.w + s.b),
    other("y", "1 + weight", "weight-plus-one", lambda s: s.x_hat * (1 + s.w) + s.b),
]  # fmt: skip
FORMULAS = [*SINGLE, *DOUBLE, *PARAMETER, *FORWARD]


def names_without(s):
    """The names of a student who has forgotten the residual."""
    case = cases.Case("", s.x, s.weight, s.bias, None, s.dy, s.dresidual_out)
    return names(case, s.spec, s.stored)


def drawn(seed, spec=LN, without=()):
    """A case, with eps large enough to be met by a float64."""
    case = cases.draw(np.random.default_rng(seed), *SIZES[seed % len(SIZES)])
    return case.without(*without)


def found(wrong, case, dtype="float64"):
    rounded = case.rounded(dtype)
    got = wrong.formula(names(rounded, wrong.spec, dtype))
    return diagnose(
        wrong.output, round_to(np.asarray(got), dtype), case, wrong.spec, dtype
    )


def keys(diagnoses):
    return {diagnosis.misconception for diagnosis in diagnoses}


def misses(wrong, dtype="float64"):
    results = {
        seed: keys(found(wrong, drawn(seed, wrong.spec, wrong.without), dtype))
        for seed in SEEDS
    }
    return {seed: got for seed, got in results.items() if got != wrong.expected}


@pytest.mark.parametrize("wrong", FORMULAS, ids=lambda wrong: wrong.name)
def test_a_wrong_formula_gets_its_name(wrong):
    assert misses(wrong) == {}


MUTANT_KEYS = {mutant.name: mutant.key for mutant in catalogue.MUTANTS if mutant.key}
# Only rows far from 0 show a one-pass variance.
MUTANT_CASES = {"one-pass variance": 3}


def mutant_case(name, seed):
    size = SIZES[seed % len(SIZES)]
    return cases.cases(np.random.default_rng(seed), *size)[MUTANT_CASES.get(name, 0)]


def test_the_catalogue_of_mutants_has_keys_of_the_table():
    assert len(MUTANT_KEYS) == 18 and set(MUTANT_KEYS.values()) <= set(MISTAKES)


@pytest.mark.parametrize("name", MUTANT_KEYS)
def test_every_mutant_gets_its_name(name):
    mutant = mutants.find(name)
    wrong, spec = mutants.mutated(mutant, "numpy"), SPECS[mutant.spec]
    for seed in SEEDS:
        case = mutant_case(name, seed)
        outcome = wrong.run(case, spec, "float64")
        outputs = ("y", "dx", "dresidual", "dw", "db")
        each = [
            keys(diagnose(output, getattr(outcome, output), case, spec))
            for output in outputs
        ]
        assert [
            found for found in each if found not in (set(), {MUTANT_KEYS[name]})
        ] == []
        assert {MUTANT_KEYS[name]} in each, seed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_narrow_dtype_hides_a_mistake_or_shows_it_but_names_no_other(dtype):
    shown = 0
    for wrong in SINGLE + PARAMETER + FORWARD:
        for seed in SEEDS[::4]:
            got = keys(found(wrong, drawn(seed, wrong.spec, wrong.without), dtype))
            assert got <= wrong.expected | {REFUSED}, (wrong.name, seed, got)
            shown += got == wrong.expected
    # Eps beside rows of size 1 is what float32 and bfloat16 cannot see; all else is named.
    assert shown >= 0.85 * len(SINGLE + PARAMETER + FORWARD) * len(SEEDS[::4])


def by_projections(s):
    """Route 1: the Jacobian as a matrix, row by row."""
    eye = np.eye(s.N)
    centring = eye - s.spec.center / s.N
    each = zip(s.rstd[:, 0], s.x_hat, s.wdy, strict=True)
    rows = [r * centring @ (eye - np.outer(h, h) / s.N) @ u for r, h, u in each]
    return np.array(rows).reshape(s.x.shape) + s.g


def by_stages(s):
    """Route 2: through the graph, with cotangents of the variance and of the mean."""
    dv = total(s.wdy * s.q) * -(s.rstd**3) / s.N
    dq = s.wdy * s.rstd + dv * s.q
    return (dq - mean(dq) if s.spec.center else dq) + s.g


def by_einsum(s):
    """Route 3: einsum, and the closed form over N."""
    c1 = np.einsum("ij,ij->i", s.x_hat, s.wdy)[:, None]
    dx = s.N * s.wdy - s.x_hat * c1
    dx = dx - s.wdy.sum(-1, keepdims=True) if s.spec.center else dx
    return dx * s.rstd / s.N + s.g


def in_place(s):
    """Route 4: in place, the rows in blocks, dresidual_out first."""
    dx = s.g.copy()
    for i in range(0, s.M, 2):
        block = slice(i, i + 2)
        part = s.wdy[block].copy()
        part -= s.q[block] * s.rstd[block] ** 2 * total(s.q[block] * s.wdy[block]) / s.N
        part -= mean(part) if s.spec.center else 0
        part *= s.rstd[block]
        dx[block] += part
    return dx


def from_y(s):
    """Route 5: x_hat recovered from y, the columns summed backwards."""
    x_hat = (s.y - s.b) / s.w
    c1 = total((x_hat * s.wdy)[:, ::-1]) / s.N
    dx = s.wdy - x_hat * c1
    return s.rstd * (dx - mean(s.wdy) if s.spec.center else dx) + s.g


WAYS = (by_projections, by_stages, by_einsum, in_place, from_y)


@pytest.mark.parametrize("spec", NORMS)
def test_the_right_gradient_in_five_ways_is_never_diagnosed(spec):
    for seed in range(200 if spec == "layer_norm" else 20):
        case = drawn(seed)
        s = names(case, NORMS[spec])
        # y tells x_hat only where no weight is small beside the bias; there route 5 loses the digits of y.
        for way in WAYS if np.abs(case.weight).min() > 0.1 else WAYS[:4]:
            assert diagnose("dx", way(s), case, NORMS[spec]) == [], (seed, way.__name__)
        assert (
            diagnose(
                "dw",
                np.einsum("ij,ij->j", s.dy[::-1], s.x_hat[::-1]),
                case,
                NORMS[spec],
            )
            == []
        )
        assert diagnose("db", np.ones(s.M) @ s.dy, case, NORMS[spec]) == []
        assert diagnose("y", s.w * s.q / s.D + s.b, case, NORMS[spec]) == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_right_gradient_in_a_narrow_dtype_is_never_diagnosed(dtype):
    for seed in range(200):
        case = drawn(seed)
        s = names(case.rounded(dtype), LN, dtype)
        for way in WAYS[:4]:
            assert diagnose("dx", round_to(way(s), dtype), case, LN, dtype) == [], (
                seed,
                way.__name__,
            )


@pytest.mark.parametrize("spec", NORMS)
def test_hostile_cases_are_right_or_refused_but_never_crash(spec, rng):
    for case in (one for one in cases.cases(rng, 5, 6) if one.heads is None):
        with np.errstate(all="ignore"):
            saved = numpy_ref.forward(
                case.x, case.weight, case.bias, case.residual, NORMS[spec]
            )
            grads = numpy_ref.backward(case.dy, saved, case.dresidual_out)
        if np.isfinite(grads.dx).all():
            assert diagnose("dx", grads.dx, case, NORMS[spec]) == []
        for got in (
            np.zeros_like(grads.dx),
            np.full_like(grads.dx, np.nan),
            grads.dx + 1,
            2 * grads.dx,
        ):
            for diagnosis in diagnose("dx", got, case, NORMS[spec]):
                assert diagnosis.hint and 0 <= diagnosis.confidence <= 1


def one(name, seed=3):
    """The first diagnosis of a formula of the list above."""
    wrong = next(wrong for wrong in FORMULAS if wrong.name == name)
    return found(wrong, drawn(seed, wrong.spec, wrong.without))[0]


RIGHT = "dx = rstd * (wdy - mean(wdy) - x_hat * mean(x_hat * wdy)) + dresidual_out"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "statistics constant",
            "dx = rstd * wdy + dresidual_out   [missing: - mean(wdy), - x_hat * mean(x_hat * wdy)]",
        ),
        (
            "sum in c1 and c2",
            "dx = rstd * (wdy - sum(wdy) - x_hat * sum(x_hat * wdy)) + dresidual_out",
        ),
        (
            "N too many",
            "dx = rstd * (N * wdy - sum(wdy) - x_hat * sum(x_hat * wdy)) + dresidual_out",
        ),
        (
            "c1 / N again",
            "dx = rstd * (wdy - mean(wdy) - x_hat * sum(x_hat * wdy) / N**2) + dresidual_out",
        ),
        ("eps 1e-4", f"{RIGHT}   [where eps = 0.0001]"),
        ("dw: last row", "dw = (x_hat * dy)[-1]"),
        ("y: eps outside", "y = weight * x_hat + bias   [where rstd = 1 / (s + eps)]"),
    ],
)
def test_the_implemented_formula_is_readable(name, text):
    assert one(name).implemented == text


BOOK = {
    "dx": (
        "rstd * (wdy - mean(wdy) - x_hat * mean(x_hat * wdy))",
        "rstd * (wdy - x_hat * mean(x_hat * wdy))",
    ),
    "dw": ("sum(x_hat * dy, axis=0)",) * 2,
    "db": ("sum(dy, axis=0)",) * 2,
    "y": ("weight * x_hat + bias",) * 2,
}


@pytest.mark.parametrize("output", BOOK)
@pytest.mark.parametrize("spec", [LN, RMS], ids=["layer_norm", "rms_norm"])
def test_what_is_needed_is_the_books_and_never_what_was_written(output, spec):
    """For each look of each mistake, whatever its numbers."""
    setting = Setting.of(drawn(0, without=("residual", "dresidual_out")), spec)
    best = formulas.right(output, setting).parts
    assert (
        written.formula(output, best, setting, 0.0)
        == f"{output} = {BOOK[output][spec is RMS]}"
    )
    for candidate in formulas.singles(output, setting).candidates:
        left = [
            part
            for part in best
            if part.slot not in {each.slot for each in candidate.parts}
        ]
        yours = written.formula(output, candidate.parts, setting, SAME, left)
        remark = written.should_be(written.remark_of(candidate.parts, setting), setting)
        assert yours != written.formula(output, best, setting, 0.0, remark=remark), (
            candidate.keys
        )


def test_coefficients_are_those_that_were_implemented():
    case = drawn(0)
    s = names(case, LN)
    (diagnosis,) = diagnose("dx", norm_dx(s, c1=1.25) + s.g, case, LN)
    assert diagnosis.misconception == "coefficient-c1"
    found, slack = diagnosis.coefficients, SAME
    assert abs(found["rstd * x_hat * mean(x_hat * wdy)"] + 1.25) < slack
    assert abs(found["dresidual_out"] - 1) < slack
    dropped = diagnose("dx", norm_dx(s, c1=0) + s.g, case, LN)[0]
    assert dropped.coefficients["rstd * x_hat * mean(x_hat * wdy)"] == 0


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (
            lambda s: s.rstd * (0.37 * s.dy - mean(s.wdy)) + s.g,
            "dx = rstd * (-mean(wdy) + 0.37 * dy) + dresidual_out",
        ),
        (
            lambda s: s.rstd * s.wdy - 3 * s.w * s.rstd * mean(s.dy),
            "dx = rstd * wdy - 3 * weight * rstd * mean(dy)",
        ),
    ],
)
def test_an_unknown_formula_is_found_but_not_named(formula, text):
    for seed in SEEDS:
        case = drawn(seed)
        (diagnosis,) = diagnose("dx", formula(names(case, LN)), case, LN)
        assert (diagnosis.misconception, diagnosis.implemented) == (UNKNOWN, text)
        assert diagnosis.residual < SAME and diagnosis.equation == "res-dx-layer-norm"


def test_what_no_formula_explains_is_said_with_its_residual(rng):
    for seed in SEEDS:
        case = drawn(seed)
        noise = rng.standard_normal(case.x.shape)
        for output, got in (
            ("dx", np.sin(3 * case.x)),
            ("dw", case.weight**3),
            ("y", noise),
        ):
            (diagnosis,) = diagnose(output, got, case, LN)
            assert (diagnosis.misconception, diagnosis.confidence) == (UNKNOWN, 0)
            assert 0.05 < diagnosis.residual
            # The nearest formula is not what was computed, so it is not shown as that.
            assert (diagnosis.implemented, diagnosis.coefficients) == (
                "",
                {},
            ) and "nearest" not in diagnosis.hint


def test_a_right_formula_with_lost_digits_is_not_shown_as_a_wrong_one():
    """Just beyond the bound nothing stands beside the right formula that looks like it."""
    for seed in SEEDS:
        case = drawn(seed)
        s = names(case, LN)
        for output, right in (("y", s.y), ("dx", dx_of(s))):
            for off in (1e-13, 1e-9):
                for diagnosis in diagnose(
                    output, right * (1 + off * np.sin(7 * case.x)), case, LN
                ):
                    assert (diagnosis.misconception, diagnosis.implemented) == (
                        UNKNOWN,
                        "",
                    )


def test_three_wrong_coefficients_are_three_misconceptions():
    case = drawn(0)
    s = names(case, LN)
    got = norm_dx(s, c1=-s.N / (s.N - 1))
    assert keys(diagnose("dx", got, case, LN)) == {
        "projection-sign",
        "bessel",
        "dresidual-forgotten",
    }


def test_float32_where_float64_is_asked_for_is_named_beside_the_mistake():
    case = drawn(0)
    s = names(case.rounded("float32"), LN, "float32")
    wrong = (s.rstd * s.wdy + s.g).astype(float)
    for got, expected in (
        (dx_of(s).astype(float), set()),
        (wrong, {"statistics-constant"}),
    ):
        assert keys(diagnose("dx", got, case, LN)) == {
            UNKNOWN
        }  # an error of this size may come from anywhere
        assert keys(diagnose("dx", got, case, LN, narrow=lambda: True)) == {
            "narrow-arithmetic",
            *expected,
        }


def test_a_row_divided_by_zero_is_named():
    case = next(
        case
        for case in cases.cases(np.random.default_rng(0), 5, 6)
        if case.name.startswith("a constant row")
    )
    s = names(case, LN)
    with np.errstate(all="ignore"):
        assert keys(diagnose("y", s.q / s.s * s.w + s.b, case, LN)) == {"eps-missing"}
    broken = numpy_ref.forward(case.x, case.weight, case.bias, case.residual).y
    broken[0] = np.nan
    assert keys(diagnose("y", broken, case, LN)) == {"division-by-zero"}
    assert keys(diagnose("y", np.full_like(case.x, np.inf), case, LN)) == {"not-finite"}


def test_dresidual_is_explained_as_dx_is():
    case = drawn(0)
    s = names(case, LN)
    (diagnosis,) = diagnose("dresidual", s.g, case, LN)
    assert (
        diagnosis.misconception == "dresidual-alone"
        and diagnosis.implemented.startswith("dresidual = ")
    )


def test_the_catalogue_names_registered_equations_and_each_key_once():
    registered = equations()
    entries = [*MISTAKES.values(), *OWN.values()]
    named = [entry.equation for entry in MISTAKES.values()]
    labels = {
        label
        for each in named
        for label in (each.values() if isinstance(each, dict) else [each])
    } - {""}
    assert labels <= set(registered)
    assert {entry.equation for entry in OWN.values()} - {""} <= set(places())
    for entry in entries:
        assert entry.title and entry.belief and entry.hint.endswith((".", "?"))
    for spec in NORMS.values():
        for without in ((), ("weight",), ("residual", "dresidual_out")):
            case = drawn(0).without(*without)
            for output in ("y", "dx", "dw", "db"):
                if output != "dw" or case.weight is not None:
                    shape = (case.bias if output in ("dw", "db") else case.x).shape
                    assert (
                        diagnose(output, np.full(shape, np.pi), case, spec)[0].equation
                        in registered
                    )


def test_a_hint_gives_nothing_away():
    for entry in (*MISTAKES.values(), *OWN.values()):
        assert not any(
            symbol in entry.hint for symbol in ("c1", "c2", "N - 1", "=", "*")
        )


@pytest.mark.parametrize(
    ("output", "got", "error", "message"),
    [
        ("dz", np.zeros((6, 8)), ValueError, "output: got 'dz'"),
        ("dw", np.zeros(8), ValueError, "has no weight"),
        ("dx", np.zeros((8, 6)), ValueError, "needs \\(6, 8\\)"),
        ("dx", [[0.0]], TypeError, "got list"),
        ("dx", np.zeros((6, 8), complex), TypeError, "complex128"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused_by_name(output, got, error, message):
    with pytest.raises(error, match=message):
        diagnose(output, got, drawn(0, without=("weight",)), LN)


def test_unknown_keys_are_refused():
    assert find("bessel").title
    with pytest.raises(ValueError, match="'bessel'"):
        find("besel")


def test_long_rows_are_searched_in_part_and_held_to_the_noise_in_full():
    case = cases.draw(np.random.default_rng(0), 8, 300)
    s = names(case, LN)
    assert keys(diagnose("dx", norm_dx(s, x_hat=s.y, c2=0) + s.g, case, LN)) == {
        "y-for-x_hat",
        "c2-dropped",
    }
    got = s.rstd * s.wdy + s.g
    got[1, 1] += 1
    assert keys(diagnose("dx", got, case, LN)) == {UNKNOWN}
