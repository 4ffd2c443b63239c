"""Derivations in cells: steps by name, what is shown, and how a cell is held to the statement of its label."""

import pytest
from sympy import sqrt

from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    chain_rule,
    contract,
    delta,
    derive,
    differentiate,
    dim,
    index,
    latex,
    mean,
    multiply,
    prove,
    refute,
    tensor,
    total,
    unfold,
    using,
)
from normgrad.symbolic.chains import proved
from normgrad.symbolic.derive import NUMBERS, STATEMENT
from normgrad.symbolic.registry import entries
from normgrad.symbolic.written import entry

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, x_hat, w, y, q = (tensor(name, N) for name in ("x", "x_hat", "w", "y", "q"))
eps, rstd = tensor("eps", positive=True), tensor("rstd", positive=True)


@pytest.fixture
def layer():
    defs = Defs()
    defs[rstd] = 1 / sqrt(mean(N, lambda r: x[r] ** 2) + eps)
    defs[x_hat[k]] = x[k] * rstd
    defs[y[k]] = w[k] * x_hat[k]
    return defs


# -- steps


def test_the_chain_rule_goes_one_definition_deep(layer):
    assert chain_rule(Partial(x_hat[k], x[j]), layer) == rstd * delta(k, j) + x[
        k
    ] * Partial(rstd, x[j])
    assert chain_rule(Partial(y[k], x[j]), layer) == w[k] * Partial(x_hat[k], x[j])
    assert not chain_rule(Partial(rstd, x[j]), layer).has(Partial)
    prove(Partial(rstd, x[j]), chain_rule(Partial(rstd, x[j]), layer), layer)


def test_the_chain_rule_passes_under_sums(layer):
    loss = Partial(total(N, lambda r: y[r] ** 2), x[j])
    assert (
        latex(chain_rule(loss, layer))
        == r"\sum_{r=1}^{N} 2 y_{r} \frac{\partial y_{r}}{\partial x_{j}}"
    )


def test_a_derivative_that_waits_is_no_zero(layer):
    """Contracting a delta must not carry out a derivative whose definitions it does not know."""
    waiting = total(N, lambda r: delta(k, r) * w[r] * Partial(x_hat[r], x[j]))
    assert contract(waiting) == w[k] * Partial(x_hat[k], x[j])
    assert multiply(total(N, lambda r: (x[r] + w[r]) * Partial(rstd, x[j]))).has(
        Partial
    )


def test_an_earlier_result_is_put_in_with_other_letters(layer):
    slope = prove(Partial(rstd, x[j]), -(rstd**2) * x_hat[j] / N, layer)
    assert (
        using(slope)(x[i] * Partial(rstd, x[k]), layer)
        == -x[i] * rstd**2 * x_hat[k] / N
    )
    crossed = prove(Partial(y[k], x[j]), w[k] * Partial(x_hat[k], x[j]), layer)
    assert using(crossed)(Partial(y[j], x[k]), layer) == w[j] * Partial(x_hat[j], x[k])
    in_a_sum = total(N, lambda r: w[r] * Partial(rstd, x[r]))
    assert not using(slope)(in_a_sum, layer).has(Partial)
    with pytest.raises(
        TypeError, match="results: got int, needs what derive or prove returned"
    ):
        using(3)


def test_definitions_are_put_in_by_name(layer):
    assert unfold(x_hat)(y[k], layer) == y[k]
    assert unfold(x_hat)(w[j] * x_hat[j], layer) == w[j] * x[j] * rstd
    assert unfold()(y[j], layer) == w[j] * x_hat[j]
    with pytest.raises(ValueError, match="q: not defined here"):
        unfold(q)(y[j], layer)


def test_differentiating_carries_all_derivatives_out(layer):
    derivative = differentiate(Partial(y[k], x[j]), layer)
    assert not derivative.has(Partial)
    prove(Partial(y[k], x[j]), derivative, layer)


# -- what is shown

CLAIM = "The reciprocal shrinks as an entry moves away from 0."
START, END = Partial(rstd, x[j]), -(rstd**2) * x_hat[j] / N


@pytest.fixture
def book(monkeypatch, layer):
    """A book with one equation more, mine; its definitions."""
    statement = proved("mine", CLAIM, layer, START, END)
    monkeypatch.setitem(entries(), "mine", entry(statement, "page"))
    return layer


def test_a_derivation_is_an_equation_of_the_book(monkeypatch, book):
    monkeypatch.setenv(NUMBERS, "other 1.1, mine 7.4")
    derived = derive("mine", CLAIM, book, START, chain_rule, (END, "in short"))
    shown = derived._repr_mimebundle_()
    assert (
        derived.differs == ""
        and shown[STATEMENT] == {"label": "mine", "differs": ""} | shown[STATEMENT]
    )
    assert shown["text/plain"].startswith(
        "(7.4) mine: proved for every N\n    " + CLAIM
    )
    assert (
        r"\tag{7.4}" in shown["text/markdown"]
        and "**proved for every $N$** · `mine` · " in shown["text/markdown"]
    )
    assert (
        r"\tag{mine}" in shown["text/latex"]
        and r"\text{(chain rule)}" in shown["text/latex"]
    )
    (ledger_entry,) = shown["application/vnd.normgrad.ledger+json"]
    assert (ledger_entry["label"], ledger_entry["kind"], ledger_entry["claim"]) == (
        "mine",
        "proved-for-every-n",
        CLAIM,
    )


# -- what is refused


def test_a_wrong_step_is_refused_by_label_and_place(layer):
    with pytest.raises(NotProved, match="mine, step 2: .* is refuted at N = "):
        derive(
            "mine",
            CLAIM,
            layer,
            Partial(rstd, x[j]),
            chain_rule,
            rstd**2 * x_hat[j] / N,
        )


def test_a_wrong_claim_is_refuted_and_a_right_one_is_not(layer):
    refutation = refute(
        Partial(x_hat[k], x[j]),
        rstd * delta(k, j),
        layer,
        belief="the size does not depend on the row",
    )
    assert str(refutation).startswith(
        "belief:   the size does not depend on the row\nclaim:    Partial(x_hat[k], x[j]) = "
    )
    assert "refuted:  at N = 2, j = 1, k = 1, " in str(refutation) and "x = (" in str(
        refutation
    )
    with pytest.raises(ValueError, match="claim: .* holds for every size"):
        refute(Partial(y[k], w[j]), delta(k, j) * x_hat[k], layer)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("", CLAIM, None, x[k], x[k]), "label: got '', needs a text"),
        (("a", 3, None, x[k], x[k]), "claim: got 3, needs a text"),
        (("a", CLAIM, 3, x[k], x[k]), "defs: got int, needs"),
        (("a", CLAIM, None, [x[k]], x[k]), "start: got list, needs a SymPy expression"),
        (
            ("a", CLAIM, None, x[k], [x[k]]),
            "step 1: got list, needs a SymPy expression",
        ),
        (("a", CLAIM, None, x[k]), "steps: got none"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        derive(*arguments)


# -- the equation of a label


def test_what_is_not_the_books_has_no_number_and_says_so(monkeypatch, book):
    monkeypatch.setenv(NUMBERS, "other 1.1, mine 7.4")
    for start, end, claim in (
        (2 * START, 2 * END, CLAIM),
        (START, differentiate(START, book), CLAIM),
        (START, END, CLAIM + " "),
    ):
        changed = derive("mine", claim, book, start, end)
        assert str(changed).startswith("mine: ")
        assert "not the book's: there it is Partial(rstd, x[j]) = -" in str(changed)
    unknown = derive("unknown", CLAIM, book, START, END)
    assert "the book has no equation unknown" in str(unknown)
