"""Claims about a stack of any depth, derived in a cell: what is shown, what is refused, what differs from the book."""

import pytest
from sympy import S, Symbol, evaluate

from normgrad.ledger import MIME
from normgrad.symbolic import (
    NotProved,
    Recurrences,
    derive_by_induction,
    index,
    refute,
    sequences,
)
from normgrad.symbolic.derive import STATEMENT

K, START = Symbol("K", integer=True, nonnegative=True), Symbol("x")
k = index("k")
x, y, z, p, y_fused, z_fused = sequences("x y z p y' z'")
f, norm = sequences("f norm")
INVARIANT = "res-invariant", "The naive stream is the fused pair, added."


@pytest.fixture
def typed():
    """The pages keep expressions as they are typed."""
    with evaluate(False):
        yield


@pytest.fixture
def stack(typed):
    lines = Recurrences(k, K)
    lines[x(0)], lines[z_fused(0)], lines[p(0)] = START, START, S.Zero
    lines[y(k)] = norm(k, x(k - 1))
    lines[z(k)] = f(k, y(k))
    lines[x(k)] = f(k, y(k)) + x(k - 1)
    lines[p(k)] = z_fused(k - 1) + p(k - 1)
    lines[y_fused(k)] = norm(k, p(k))
    lines[z_fused(k)] = f(k, y_fused(k))
    return lines


def test_a_claim_for_every_depth_is_an_equation_of_the_book(stack):
    derived = derive_by_induction(*INVARIANT, stack, (x(k), z_fused(k) + p(k)))
    assert not derived.differs
    assert (
        derived.known()
        == "proved for every depth $K$ and every $k$ from 0 to $K$, by induction"
    )
    shown = derived._repr_mimebundle_()
    assert (
        "x_{k} = z'_{k} + p_{k}" in shown["text/latex"]
        and r"\tag{res-invariant}" in shown["text/latex"]
    )
    assert (
        shown[STATEMENT]["label"] == "res-invariant"
        and shown[STATEMENT]["differs"] == ""
    )
    assert [entry["kind"] for entry in shown[MIME]] == ["proved-for-every-n"]


def test_the_reasons_of_all_chains_stand_beside_their_lines(stack):
    invariant = derive_by_induction(*INVARIANT, stack, (x(k), z_fused(k) + p(k)))
    applied = f(k, norm(k, p(k))) + p(k)
    halves = (
        (p(k), z_fused(k - 1) + p(k - 1), (x(k - 1), "hypothesis")),
        (z_fused(k) + p(k), (applied, "z'"), x(k)),
    )
    claim = "The invariant, from one layer to the next."
    step = derive_by_induction(
        "res-step", claim, stack, *halves, low=1, given=invariant
    )
    assert not step.differs
    assert step.equation.whys == ("", "hypothesis", "z'", "")
    assert step.known().endswith(
        "from 1 to $K$, by unfolding and what was proved before"
    )
    with pytest.raises(NotProved, match="res-step, step 2.*undecided"):
        derive_by_induction("res-step", claim, stack, *halves, low=1)


def test_a_false_claim_is_refused_with_its_label_and_the_smallest_stack(stack):
    with pytest.raises(
        NotProved,
        match=r"res-invariant, step 1, from one k to the next.*refuted at K = 1, k = 1",
    ):
        derive_by_induction(
            *INVARIANT, stack.changed(p(k), p(k - 1)), (x(k), z_fused(k) + p(k))
        )


def test_what_is_not_the_books_says_so(stack):
    changed = stack.changed(y_fused(k), norm(k, z_fused(k - 1) + p(k - 1)))
    derived = derive_by_induction(*INVARIANT, changed, (x(k), z_fused(k) + p(k)))
    assert "not the book's: there it is x(k) = z_prime(k) + p(k)" in str(derived)
    claim = "The stream gathers what the layers add."
    later = derive_by_induction(
        "res-naive-sum", claim, stack, (x(k), x(k - 1) + z(k)), low=2
    )
    assert later.differs


def test_a_stack_is_refuted_by_the_smallest_one(stack):
    wrong = stack.changed(y_fused(k), norm(k, z_fused(k - 1)))
    text = str(
        refute(
            x(k),
            z_fused(k) + p(k),
            wrong,
            belief="the norm needs what the last layer gave",
        )
    )
    assert "refuted:  at K = 2, k = 2\n" in text and "belief:   the norm needs" in text
    assert "left  alone has f(2, norm(2, x + f(1, norm(1, x))))" in text
    assert "right alone has f(2, norm(2, f(1, norm(1, x))))" in text
    with pytest.raises(ValueError, match="holds for every depth; it is not refuted"):
        refute(x(k), z_fused(k) + p(k), stack)
