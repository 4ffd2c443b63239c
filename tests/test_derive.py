"""Derivations in cells: steps by name, what is shown, and how a cell is held to the statement of its label."""

from importlib import import_module

import pytest
from sympy import sqrt

from normgrad.symbolic import (
    Defs,
    NotProved,
    Partial,
    as_written,
    chain_rule,
    contract,
    define,
    delta,
    derive,
    derive_all,
    differentiate,
    dim,
    index,
    judge,
    keep_as_typed,
    latex,
    mean,
    multiply,
    prove,
    refute,
    tensor,
    total,
    unfold,
    using,
    work_out,
)
from normgrad.symbolic.derive import NUMBERS, STATEMENT, differs
from normgrad.symbolic.registry import proved

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
    found = differentiate(Partial(y[k], x[j]), layer)
    assert not found.has(Partial)
    prove(Partial(y[k], x[j]), found, layer)


# -- what is shown

CLAIM = "The reciprocal shrinks as an entry moves away from 0."
START, END = Partial(rstd, x[j]), -(rstd**2) * x_hat[j] / N


@pytest.fixture
def book(monkeypatch, layer):
    """A book with one statement, mine; its definitions."""
    statement = proved("mine", CLAIM, layer, START, END)
    monkeypatch.setattr(
        import_module("normgrad.symbolic.derive"),
        "equations",
        lambda: {"mine": statement},
    )
    return layer


def test_a_derivation_is_an_equation_of_the_book(monkeypatch, book):
    monkeypatch.setenv(NUMBERS, "other 1.1, mine 7.4")
    found = derive("mine", CLAIM, book, START, chain_rule, (END, "in short"))
    shown = found._repr_mimebundle_()
    assert (
        found.differs == ""
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
    (entry,) = shown["application/vnd.normgrad.ledger+json"]
    assert (entry["label"], entry["kind"], entry["claim"]) == (
        "mine",
        "proved-for-every-n",
        CLAIM,
    )


def test_conditions_are_shown():
    s, r = tensor("s"), tensor("r", N)
    defs = Defs()
    defs[s] = sqrt(total(N, lambda t: x[t] ** 2))
    defs[r[k]] = x[k] / s
    assert (
        work_out(defs, total(N, lambda t: r[t] ** 2), 1).known()
        == "proved for every $N$, where $s > 0$"
    )
    assert str(prove(total(N, lambda t: r[t] ** 2), 1, defs)).startswith(
        "proved for every N, where s > 0: "
    )


def test_reasons_name_equations_by_number(monkeypatch, book):
    slope = derive("mine", CLAIM, book, START, END)
    found = work_out(book, 2 * START, using(slope), 2 * END)
    assert r"by \ref{mine}" in found._repr_mimebundle_()["text/latex"]
    assert "by mine" in found._repr_mimebundle_()["text/markdown"]
    monkeypatch.setenv(NUMBERS, "mine 7.4")
    assert "by 7.4" in found._repr_mimebundle_()["text/markdown"]


def test_definitions_are_shown(layer):
    found = define("a-layer", "A layer.", layer, rstd, x_hat[k])
    assert (
        found.known() == "definition"
        and found.differs == "the book has no statement a-layer"
    )
    assert latex(x[k] * rstd) in found._repr_mimebundle_()["text/latex"]
    with pytest.raises(ValueError, match=r"q\[k\]: not defined here"):
        define("mine", "A layer.", layer, q[k])


def test_what_is_typed_is_kept():
    with as_written():
        keep_as_typed()
        assert latex(x[k] + 2 * (x[j] + x[k])) == "x_{k} + 2 (x_{j} + x_{k})"


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
    found = refute(
        Partial(x_hat[k], x[j]),
        rstd * delta(k, j),
        layer,
        belief="the size does not depend on the row",
    )
    assert str(found).startswith(
        "belief:   the size does not depend on the row\nclaim:    Partial(x_hat[k], x[j]) = "
    )
    assert "refuted:  at N = 2, j = 1, k = 1, " in str(found) and "x = (" in str(found)
    with pytest.raises(ValueError, match="claim: .* holds for every size"):
        refute(Partial(y[k], w[j]), delta(k, j) * x_hat[k], layer)


def test_a_claim_under_work_is_judged_without_an_error(layer):
    assert str(judge(Partial(y[k], w[j]), delta(k, j) * x_hat[k], layer)).startswith(
        "proved for every N"
    )
    assert str(judge(Partial(y[k], w[j]), x_hat[k], layer)).startswith(
        "claim:    Partial(y[k], w[j]) = x_hat[k]"
    )


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


# -- the statement of a label


def test_a_cell_that_says_something_else_says_so(book):
    assert (
        "the claim there is: The reciprocal"
        in derive("mine", "Shrinks.", book, START, END).differs
    )
    other = derive("mine", CLAIM, book, START, -(rstd**3) * x[j] / N)
    assert other.differs.startswith("there it ends in") and "not the book's: " in str(
        other
    )
    twice = derive_all("mine", CLAIM, book, (START, END), (END, START))
    assert twice.differs == "there are 1 equations there and 2 here"
    defined = Defs()
    defined[rstd] = 1 / sqrt(mean(N, lambda r: x[r] ** 2) + 2 * eps)
    defined[x_hat[k]] = x[k] * rstd
    assert (
        "has other definitions there"
        in derive("mine", CLAIM, defined, START, END).differs
    )
    assert "of the kind proved-for-every-n" in define("mine", CLAIM, book, rstd).differs
    assert (
        derive("yours", CLAIM, book, START, END).differs
        == "the book has no statement yours"
    )


def test_a_changed_statement_is_another_one(layer):
    """The other way round: the cell as it is, the package's statement changed."""
    own = proved("mine", CLAIM, layer, START, END)
    assert differs(own, own) == ""
    for changed in (
        proved("mine", CLAIM, layer, START, -END),
        proved("mine", CLAIM, layer, 2 * START, END),
        proved("mine", CLAIM + " ", layer, START, END),
    ):
        assert differs(own, changed)


def test_a_false_step_on_scratch_paper_is_named_by_its_place(layer):
    with pytest.raises(NotProved, match=r"^step 2: "):
        work_out(layer, Partial(rstd, x[j]), chain_rule, rstd**2 * (x_hat[j] / N))
