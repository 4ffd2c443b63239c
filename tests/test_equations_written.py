"""An equation's entry in equations.json gives the equation again, and every part that could be lost is looked at."""

import pytest
from sympy import Add, IndexedBase, Sum, Symbol, symbols

from normgrad.symbolic import Defs
from normgrad.symbolic.chains import Equation
from normgrad.symbolic.written import entry, equation_of, same

N = Symbol("N", integer=True, positive=True)
r = Symbol("r", integer=True)
x = IndexedBase("x")
a, b, lamb = symbols("a b lambda")


def stated(*chain, **more):
    return Equation("label", "What holds.", (chain,), **more)


def test_definitions_are_those_that_are_reached():
    defs = Defs()
    defs[a] = lamb**2
    defs[b] = Sum(x[r], (r, 1, N))
    written = entry(stated(a, lamb * lamb, defs=defs), "page")
    assert written["definitions"] == ["a = lambda_**2"]
    assert list(equation_of("label", written).defs) == [(a, lamb**2)]


@pytest.mark.parametrize(
    "changed",
    [
        stated(a - b, a),
        stated(Add(b, a, evaluate=False), a),
        Equation("label", "Another.", ((a, b),)),
        stated(a, b, kind="follows-from"),
        stated(a, b, holds_where="a > 0"),
        stated(a, Symbol("b", real=True)),
    ],
)
def test_another_statement_is_not_the_same(changed):
    original = stated(a + b, a) if changed.chain[0].is_Add else stated(a, b)
    assert not same(changed, original)


def test_a_name_that_is_not_declared_is_refused():
    written = entry(stated(a, b), "page")
    with pytest.raises(NameError, match="'c'"):
        equation_of("label", written | {"equation": ["a = c"]})
