"""The contract over conditions: every pair of them is in a set of points, and every backend keeps it at each point."""

from itertools import product

import covering
import pairwise
import pytest

from normgrad import NormSpec
from normgrad.checks.backends import NAMES, get

# A chunk is one test: enough of them to share out, few enough that counting them costs nothing.
CHUNKS = {"numpy": 1, "sympy": 1, "torch": 12, "triton": 12, "numba": 2}
RUNS = [pytest.param(backend, chunk, id=f"{backend}-{chunk}") for backend in NAMES for chunk in range(CHUNKS[backend])]


@pytest.mark.parametrize(("backend", "chunk"), RUNS)
def test_the_contract_holds_at_every_point(backend, chunk):
    for point in covering.points_of(backend)[chunk :: CHUNKS[backend]]:
        covering.check_point(backend, point)


def covered(points, key=dict):
    return set().union(*(pairwise.pairs_of(key(point)) for point in points))


def test_every_pair_is_in_the_set():
    wanted = pairwise.pairs(covering.FACTORS, covering.allowed)
    found = covered(covering.points())
    assert found == wanted and len(wanted) == 6243
    assert all(covering.allowed(point) for point in covering.points())
    # What is not asked for cannot be made.
    for (one, a), (other, b) in (tuple(pair) for pair in pairwise.pairs(covering.FACTORS) - wanted):
        assert not covering.allowed({one: a, other: b})


@pytest.mark.parametrize("backend", NAMES)
def test_every_backend_meets_every_level_and_every_spec(backend):
    points = covering.points_of(backend)
    for name, levels in covering.FACTORS.items():
        met = {point[name] for point in points}
        assert met == set(get(backend).dtypes) if name == "dtype" else met == set(levels)
    if len(get(backend).dtypes) == 4:
        specs = product(*(covering.FACTORS[name] for name in covering.SPEC))
        assert {covering.spec_of(point).replace(weight_offset=0) for point in points} == {
            NormSpec(**dict(zip(covering.SPEC, levels, strict=True))) for levels in specs
        }


def test_triton_meets_every_pair_with_the_columns_by_class():
    every, found = (covered(points, covering.coarse) for points in (covering.points(), covering.points_of("triton")))
    assert found == every
    assert len(covering.points_of("triton")) * 3 < len(covering.points())


def test_the_set_is_small_and_always_the_same():
    longest = sorted((len(levels) for levels in covering.FACTORS.values()), reverse=True)
    assert len(covering.points()) <= longest[0] * longest[1] * 1.01
    assert pairwise.cover(covering.FACTORS, covering.allowed, covering.SPEC) == list(covering.points())


def test_the_cases_are_what_the_points_say():
    for point in covering.points()[::50]:
        case = covering.case_of(point)
        assert case.x.shape[1] == point["columns"] and (case.residual is None) == (point["residual"] == "none")
        assert (case.weight is not None and not case.weight.all()) == (
            point["affine"] == "with zeros" and case.weight.size > 0 and not case.weight.all()
        )


def test_a_cover_of_what_cannot_be_made_is_refused():
    factors = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
    with pytest.raises(ValueError, match="allowed: no level of"):
        pairwise.cover(factors, lambda part: len(part) < 3)
    assert covered(pairwise.cover(factors)) == pairwise.pairs(factors) and len(pairwise.cover(factors)) < 6
