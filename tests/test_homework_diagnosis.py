"""Term attribution: what the homeworks' wrong solutions do not show gets its name, and what is right gets none."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from normgrad import numpy_ref
from normgrad.checks import cases
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import round_to
from normgrad.homework.diagnosis.diagnose import diagnose
from normgrad.homework.equations import places
from normgrad.mistakes import catalogue, mutants
from normgrad.mistakes.table import MISTAKES, OWN, REFUSED, UNKNOWN, find
from normgrad.spec import LAYER_NORM, NormSpec
from normgrad.symbolic import equations

SEEDS = range(5)
SIZES = ((6, 8), (5, 7), (6, 5), (4, 9))
LN, RMS = LAYER_NORM, SPECS["rms_norm"]


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


def of_output(output, name, expected, formula, spec=LN, without=()):
    return Wrong(
        f"{output}: {name}", output, set(expected.split()), formula, spec, without
    )


# Wrong solutions of the homeworks ask for the other names: test_homework_wrong.py.
FORMULAS = [
    dx("c2 added, sign", "c2-sign", lambda s: norm_dx(s, c2=-1) + s.g),
    dx("2 c1", "factor-two", lambda s: norm_dx(s, c1=2) + s.g),
    dx(
        "rstd on wdy alone",
        "rstd-in-some-terms",
        lambda s: s.rstd * s.wdy - mean(s.wdy) - s.x_hat * mean(s.x_hat * s.wdy) + s.g,
    ),
    dx(
        "weight missing in means",
        "weight-in-some-terms",
        lambda s: s.rstd * (s.wdy - mean(s.dy) - s.x_hat * mean(s.x_hat * s.dy)) + s.g,
    ),
    dx("stream subtracted", "dresidual-sign", lambda s: norm_dx(s) - s.g),
    dx("stream twice", "dresidual-twice", lambda s: norm_dx(s) + 2 * s.g, RMS),
    dx("y for x_hat", "y-for-x_hat", lambda s: norm_dx(s, x_hat=s.y) + s.g),
    dx("x for x_hat", "x-for-x_hat", lambda s: norm_dx(s, x_hat=s.p) + s.g),
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
    dx("negated", "negated", lambda s: -norm_dx(s) - s.g),
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
    dx(
        "identity",
        "identity",
        lambda s: s.dy + 0,
        without=("residual", "dresidual_out"),
    ),
    dx("zero", "zero", lambda s: 0 * s.dy),
    of_output(
        "y",
        "sum after, no bias",
        "stream-added-to-y bias-missing",
        lambda s: s.x_hat * s.w + s.p,
    ),
    dx(
        "y and c2",
        "y-for-x_hat c2-dropped",
        lambda s: norm_dx(s, x_hat=s.y, c2=0) + s.g,
    ),
    of_output("dw", "last row", "rows-not-summed", lambda s: (s.dy * s.x_hat)[-1]),
    of_output("dw", "db", "dw-is-db", lambda s: s.dy.sum(0)),
    of_output(
        "dw",
        "sums multiplied",
        "product-of-sums",
        lambda s: s.dy.sum(0) * s.x_hat.sum(0),
    ),
    of_output("db", "rstd", "rstd-in-db", lambda s: (s.dy * s.rstd).sum(0)),
    of_output("db", "dw", "db-is-dw", lambda s: (s.dy * s.x_hat).sum(0)),
    of_output(
        "y", "absent bias", "absent-bias-one", lambda s: s.y + 1, without=("bias",)
    ),
    of_output("y", "bias weighted", "bias-weighted", lambda s: (s.x_hat + s.b) * s.w),
]


def drawn(seed, spec=LN, without=()):
    """A case, with eps large enough to be met by a float64."""
    case = cases.draw(np.random.default_rng(seed), *SIZES[seed % len(SIZES)])
    return case.without(*without)


def diagnoses_of(wrong, case, dtype="float64"):
    rounded = case.rounded(dtype)
    got = wrong.formula(names(rounded, wrong.spec, dtype))
    return diagnose(
        wrong.output, round_to(np.asarray(got), dtype), case, wrong.spec, dtype
    )


def keys(diagnoses):
    return {diagnosis.misconception for diagnosis in diagnoses}


@pytest.mark.parametrize(
    "wrong", FORMULAS, ids=lambda wrong: f"{wrong.output}: {wrong.name}"
)
def test_a_wrong_formula_gets_its_name(wrong):
    for seed in SEEDS:
        case = drawn(seed, wrong.spec, wrong.without)
        assert keys(diagnoses_of(wrong, case)) == wrong.expected, seed


MUTANT_KEYS = {mutant.name: mutant.key for mutant in catalogue.MUTANTS if mutant.key}
# Only rows far from 0 show a one-pass variance.
MUTANT_CASES = {"one-pass variance": 3}


@pytest.mark.parametrize("name", MUTANT_KEYS)
def test_every_mutant_gets_its_name(name):
    mutant = mutants.find(name)
    wrong, spec = mutants.mutated(mutant, "numpy"), SPECS[mutant.spec]
    for seed in SEEDS:
        rng, size = np.random.default_rng(seed), SIZES[seed % len(SIZES)]
        case = cases.cases(rng, *size)[MUTANT_CASES.get(name, 0)]
        outcome, named = wrong.run(case, spec, "float64"), set()
        for output in ("y", "dx", "dresidual", "dw", "db"):
            named |= keys(diagnose(output, getattr(outcome, output), case, spec))
        assert named == {MUTANT_KEYS[name]}, seed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_narrow_dtype_names_no_mistake_that_was_not_made(dtype):
    for wrong in FORMULAS:
        named = keys(diagnoses_of(wrong, drawn(0, wrong.spec, wrong.without), dtype))
        assert named <= wrong.expected | {REFUSED}, wrong.name
    for seed in range(50):
        s = names(drawn(seed).rounded(dtype), LN, dtype)
        right = round_to(norm_dx(s) + s.g, dtype)
        assert diagnose("dx", right, drawn(seed), LN, dtype) == [], seed


@pytest.mark.parametrize("spec", [LN, RMS], ids=["layer_norm", "rms_norm"])
def test_a_right_gradient_in_other_roundings_is_never_diagnosed(spec):
    for seed in range(50):
        case = drawn(seed)
        s = names(case, spec)
        c1 = np.einsum("ij,ij->i", s.x_hat, s.wdy)[:, None]
        ndx = s.N * s.wdy - s.x_hat * c1 - spec.center * s.wdy.sum(-1, keepdims=True)
        outputs = {
            "dx": ndx * s.rstd / s.N + s.g,
            "dw": np.einsum("ij,ij->j", s.dy[::-1], s.x_hat[::-1]),
            "db": np.ones(s.M) @ s.dy,
            "y": s.w * s.q / s.D + s.b,
        }
        for output, value in outputs.items():
            assert diagnose(output, value, case, spec) == [], (seed, output)


def test_what_is_not_finite_is_named():
    case = cases.cases(np.random.default_rng(0), 5, 6)[0]
    flat = next(
        case
        for case in cases.cases(np.random.default_rng(0), 5, 6)
        if case.name.startswith("a constant row")
    )
    y = numpy_ref.forward(flat.x, flat.weight, flat.bias, flat.residual).y
    y[0] = np.nan
    assert keys(diagnose("y", y, flat, LN)) == {"division-by-zero"}
    assert keys(diagnose("y", 0 * case.x + np.inf, case, LN)) == {"not-finite"}


def test_the_catalogue_names_registered_equations_and_hints_give_nothing_away():
    labels = set()
    for entry in MISTAKES.values():
        by_output = isinstance(entry.equation, dict)
        labels |= set(entry.equation.values() if by_output else [entry.equation])
    assert labels - {""} <= set(equations())
    assert {entry.equation for entry in OWN.values()} - {""} <= set(places())
    for entry in (*MISTAKES.values(), *OWN.values()):
        assert entry.title and entry.belief and entry.hint.endswith((".", "?"))
        for symbol in ("c1", "c2", "N - 1", "=", "*"):
            assert symbol not in entry.hint


@pytest.mark.parametrize(
    ("output", "value", "error", "message"),
    [
        ("dz", np.zeros((6, 8)), ValueError, "output: got 'dz'"),
        ("dw", np.zeros(8), ValueError, "has no weight"),
        ("dx", np.zeros((8, 6)), ValueError, "needs \\(6, 8\\)"),
        ("dx", [[0.0]], TypeError, "got list"),
        ("dx", np.zeros((6, 8), complex), TypeError, "complex128"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused_by_name(output, value, error, message):
    with pytest.raises(error, match=message):
        diagnose(output, value, drawn(0, without=("weight",)), LN)


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
    dx = s.rstd * s.wdy + s.g
    dx[1, 1] += 1
    assert keys(diagnose("dx", dx, case, LN)) == {UNKNOWN}
