"""An equation's entry in equations.json gives the equation again, and every part that could be lost is looked at."""

import pytest
import sympy
from sympy import Add, IndexedBase, Sum, Symbol, evaluate, symbols

from normgrad.symbolic import Defs
from normgrad.symbolic.chains import Equation
from normgrad.symbolic.definitions import numbered
from normgrad.symbolic.opaque import derivative, opaque  # noqa: F401 - TYPED names it
from normgrad.symbolic.written import entry, equation_of, same

N = Symbol("N", integer=True, positive=True)
j, r = symbols("j r", integer=True)
x, w = IndexedBase("x"), IndexedBase("w", shape=(N,), real=True)
a, b, lamb = symbols("a b lambda")
f = opaque("f")


def stated(*chain, **more):
    return Equation("label", "What holds.", (chain,), **more)


def read(equation):
    return equation_of("label", entry(equation, "page"))


TYPED = [
    "a - (b - a)",
    "a - -b",
    "-(a * b) + -a * b",
    "a / b / a * (b / a)",
    "a * (b * a)",
    "1 / (2 * a) - 1 / 2 / a + 1 / a**2",
    "(1 / a) ** 2 + (a**b) ** 2 + a ** (b**2) + (-a) ** 2 - (a**2)",
    "sqrt(a + b) ** -1 + a ** Rational(-3, 2) * Rational(1, 3)",
    "a - 1 + a * -1 + -1 * (a * b)",
    "Sum(x[r] * Sum(w[j] * x[r], (j, 1, N)), (r, 1, N)) * exp(-lamb)",
    "Max(a, b) * KroneckerDelta(r, j) + derivative(f)(a) * f(b)",
]


@pytest.mark.parametrize("text", TYPED)
@pytest.mark.parametrize("evaluated", [False, True])
def test_text_gives_the_expression_again(text, evaluated):
    """Every bracket, as typed and as SymPy evaluates it; equal objects, and a tree that differs is another one."""
    with evaluate(evaluated):
        e = eval(text, vars(sympy) | globals())
    start, end = read(stated(e, a)).chain
    assert (numbered(start), end) == (numbered(e), a)


def test_names_are_kept_apart():
    """Two scalars and a function of one name, a prime, and names that Python and SymPy have taken."""
    positive = Symbol("a", positive=True)
    chain = (x[j] * positive, a * Symbol("a'") * opaque("a")(lamb) * Symbol("exp"))
    assert read(stated(*chain)).chain == chain


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
