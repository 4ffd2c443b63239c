"""What a proof must not be given: claims and definitions that would make the kernel, or a witness, lie."""

import numpy as np
import pytest
from sympy import (
    Abs,
    Eq,
    KroneckerDelta,
    Max,
    Ne,
    Piecewise,
    S,
    Sum,
    Symbol,
    exp,
    log,
    sign,
    sqrt,
)

from normgrad.symbolic import (
    Defs,
    Local,
    NotProved,
    Partial,
    RangeError,
    as_written,
    check_fixed,
    counterexample,
    delta,
    dim,
    index,
    prove,
    tensor,
    total,
)
from normgrad.symbolic.codegen import compile, source
from normgrad.symbolic.induction import induction, inductive
from normgrad.symbolic.normal_form import nf
from normgrad.symbolic.recurrences import Recurrences, sequences

M, N, K = dim("M"), dim("N"), dim("K")
i, j, k = index("i", "j", "k")
x, y, A = tensor("x", N), tensor("y", N), tensor("A", N, N)
s, f, g, L = tensor("s"), tensor("f"), tensor("g"), tensor("L")
row_sum = total(N, lambda r: x[r])

# -- claims that are false for some size or some index, and were proved or passed at fixed sizes

REFUSED = {
    "an index beyond a short row": (
        total(N, lambda r: delta(r, 5)),
        S.One,
        "an index is a letter",
    ),
    "an entry that no row needs to have": (x[j], x[2], "an index is a letter"),
    "a shifted index": (x[j + 1], x[j], "an index is a letter"),
    "a sum that leaves the first place out": (
        Sum(KroneckerDelta(i, k), (k, 2, N)),
        S.One,
        "from 1 to a dimension",
    ),
    "a letter as a number": (j * x[j], x[j], "cannot be a number"),
    "a dimension as an index": (
        total(N, lambda r: delta(r, M)),
        M,
        "cannot be a number or a dimension",
    ),
    "one name for two tensors": (x[j], tensor("x", M)[i], "has the shape"),
}


@pytest.mark.parametrize("lhs, rhs, message", REFUSED.values(), ids=list(REFUSED))
def test_what_is_not_the_same_at_every_place_is_refused(lhs, rhs, message):
    for judge in (prove, check_fixed):
        with pytest.raises(RangeError, match=message):
            judge(lhs, rhs)


def test_no_two_dimensions_have_one_size():
    with pytest.raises(NotProved, match="refuted"):
        prove(K, N)
    with pytest.raises(AssertionError, match="fails"):
        check_fixed(total(K, lambda r: S.One), N)


def test_the_number_of_rows_varies_as_their_length_does():
    B = tensor("B", M, N)
    everything = total(M, lambda r: total(N, lambda c: B[r, c]))
    for wrong in (
        everything * (1 + (M - 2) * (M - 1)),
        2 / M * everything,
        everything * (1 + (M - 1) * (M - 3)),
    ):
        with pytest.raises(AssertionError, match="fails for rows of length .*, M = "):
            check_fixed(everything, wrong)
        with pytest.raises(NotProved, match="refuted"):
            prove(everything, wrong)
    every = dim("K")
    for columns in range(1, 8):
        sizes = counterexample(M * N * every, S(-1), sizes=(columns,)).sizes
        assert len(set(sizes.values())) == 3 and sizes[N] == columns
    assert {
        counterexample(M * N, S(-1), sizes=(columns,)).sizes[M]
        for columns in range(1, 8)
    } == {1, 2, 3}


@pytest.mark.parametrize("sizes", [(0,), (2, 0), (-1,), (2.0,), (True,), ()], ids=str)
def test_sizes_that_show_nothing_are_refused(sizes):
    for judge in (check_fixed, counterexample):
        with pytest.raises(ValueError, match="sizes: got"):
            judge(row_sum, 2 * row_sum, sizes=sizes)


def test_an_entry_and_a_scalar_of_a_similar_name_differ():
    with pytest.raises(AssertionError, match="fails"):
        check_fixed(total(N, lambda r: x[r] * delta(r, j)), Symbol("x_1", real=True))


def test_a_derivative_by_a_defined_name_has_no_value_for_the_witness_either():
    defs = Defs()
    defs[s] = row_sum
    for judge in (prove, lambda *claim: check_fixed(*claim[:2], (2,), claim[2])):
        with pytest.raises(ValueError, match="use Local"):
            judge(Partial(s**2, s), S.Zero, defs)


def test_nothing_is_held_fixed_within_a_derivative():
    defs = Defs()
    defs[g] = s**2
    defs[f] = Partial(g, s)
    for judge in (prove, lambda *claim: check_fixed(*claim[:2], (2,), claim[2])):
        with pytest.raises(ValueError, match="holds a derivative"):
            judge(Local(f, s), S.Zero, defs)


def test_dimensions_and_letters_do_not_vary():
    with pytest.raises(ValueError, match="can vary"):
        prove(Partial(N**2, N), 2 * N)


def test_a_root_that_is_not_real_refutes_nothing():
    # where both sides are defined they are equal
    assert counterexample(sqrt(s) * sqrt(f), sqrt(s * f)) is None
    assert counterexample(Abs(s), s).values[s] < 0


def test_roots_and_reciprocals_inside_other_functions_end():
    with pytest.raises(NotProved, match="refuted"):
        prove(Max(1 / x[i], s), Max(1 / x[i], f))
    with pytest.raises(NotProved, match="refuted"):
        prove(2 ** (1 / x[i]), 2 ** (1 / y[i]))


# -- definitions


def test_a_name_keeps_its_promise_to_be_positive():
    positive, defs = Symbol("P", positive=True), Defs()
    with pytest.raises(ValueError, match="promised to be positive"):
        defs[positive] = row_sum
    defs[positive] = 1 / sqrt(total(N, lambda r: x[r] ** 2))
    prove(sqrt(positive**2), positive, defs)


@pytest.mark.parametrize("head", [A[i, i], x[1]], ids=["diagonal", "entry"])
def test_a_head_has_a_letter_for_every_index(head):
    with pytest.raises(ValueError, match="letter"):
        Defs()[head] = s


@pytest.mark.parametrize("head", [j, N])
def test_a_letter_or_a_dimension_is_not_defined(head):
    with pytest.raises(ValueError, match="is a letter or a dimension"):
        Defs()[head] = S(3)


@pytest.mark.parametrize("head", ["y", x, s + 1, x[j] ** 2], ids=str)
def test_only_a_name_is_defined(head):
    with pytest.raises(TypeError, match="head: got .*needs a name"):
        Defs()[head] = S(3)


def test_a_name_is_defined_before_it_is_used():
    defs = Defs()
    defs[f] = 2 * g
    for head, e in ((g, f), (s, s + 1)):
        with pytest.raises(ValueError, match="used before"):
            defs[head] = e


def test_a_sum_does_not_catch_the_letter_of_a_definition():
    defs = Defs()
    defs[f] = j * S.One  # a dimension that is called j
    assert nf(defs.unfold(Sum(f, (j, 1, N)))) == N * j


# -- side conditions

with as_written():
    CONDITIONS = [
        (x[j] * (1 / x[j]), S.One, Ne(x[j], 0)),
        ((N - 1) * (1 / (N - 1)), S.One, Ne(N - 1, 0)),
        (sqrt(s) * sqrt(s), s, s >= 0),
        (Partial(sqrt(s**2), s), sign(s), Ne(s, 0)),
        (Partial(x[j] / x[j], x[k]), S.Zero, Ne(x[j], 0)),
        (exp(log(x[j])), x[j], x[j] > 0),
        (log(s) - log(s), S.Zero, s > 0),
        (Partial(log(x[j]), x[j]), 1 / x[j], x[j] > 0),
        (
            total(N, lambda r: log(x[r] ** 2 + 1)) * log(row_sum),
            log(row_sum) * total(N, lambda r: log(x[r] ** 2 + 1)),
            row_sum > 0,
        ),
    ]


@pytest.mark.parametrize("lhs, rhs, condition", CONDITIONS, ids=lambda e: str(e)[:20])
def test_what_cancels_leaves_its_condition(lhs, rhs, condition):
    assert list(map(str, prove(lhs, rhs).side_conditions)) == [str(condition)]


# -- induction

step, n, X = k, Symbol("n", integer=True, nonnegative=True), Symbol("X")
layer, xs, ys, zs = sequences("f x y z")


def _lines(*lines):
    found = Recurrences(step, n)
    for head, e in lines:
        found[head] = e
    return found


def test_a_base_within_the_places_of_its_step_is_refused():
    for lines in (
        [(xs(1), X), (xs(k), xs(k - 1) + 1)],
        [(xs(k - 1), layer(k)), (xs(0), X)],
        [(xs(n), X), (xs(k), xs(k - 1))],
    ):
        with pytest.raises(ValueError, match="a place that the step"):
            _lines(*lines)
    for head in (xs(2 * k), layer(k, X)):
        with pytest.raises(ValueError, match="a line is for a sequence"):
            _lines((head, X))


def test_a_sequence_has_one_base_and_one_step():
    lines = _lines((xs(0), X), (xs(k), xs(k - 1) + 1))
    lines[xs(0)], lines[xs(k)] = X, xs(k - 1) + 1  # a cell that is run again
    for head, e, which in (
        (xs(0), X + 1, "base"),
        (xs(S(-1)), X, "base"),
        (xs(k), xs(k - 1) + 2, "step"),
    ):
        with pytest.raises(ValueError, match=f"x has a {which} already"):
            lines[head] = e
    assert induction(lines, [(xs(k), X + k)])
    assert induction(lines.changed(xs(0), X + 1), [(xs(k), X + k + 1)])


def test_the_base_of_an_induction_that_goes_down_is_checked():
    lines = _lines((xs(n), X), (xs(k - 1), xs(k)), (ys(n), X + 1), (ys(k - 1), ys(k)))
    assert (
        induction(lines.changed(ys(n), X), [(xs(k), ys(k))], down=True)[0].how
        == "base and step"
    )
    with pytest.raises(NotProved, match="step 1, the base.*refuted at n = 0, k = 0"):
        induction(lines, [(xs(k), ys(k))], down=True)
    # equal at the lowest place already, which is not where it begins
    lines = _lines((xs(n), X), (xs(k - 1), S(7)), (ys(n), X + 1), (ys(k - 1), S(7)))
    with pytest.raises(NotProved, match="step 1, the base.*refuted"):
        induction(lines, [(xs(k), ys(k))], down=True)


def test_what_cancels_in_a_sequence_leaves_its_condition():
    lines = _lines((xs(0), X), (xs(k), xs(k - 1)))
    with as_written():
        ratio, root = xs(k) / xs(k), sqrt(xs(k)) ** 2
    assert str(induction(lines, [(ratio, S.One)])[0]).endswith(
        "by unfolding, where Ne(x(k), 0)"
    )
    assert list(map(str, induction(lines, [(root, xs(k))])[0].side_conditions)) == [
        "x(k) >= 0"
    ]
    one = inductive("one", "Its ratio is 1.", lines, (ratio, S.One))
    assert one.known().endswith(r"by unfolding, where $x_{k} \neq 0$")
    assert induction(lines, [(xs(k), X)])[0].side_conditions == ()
    branch = Piecewise((xs(k), Eq(X, 0)), (X, True))
    assert induction(lines, [(branch, branch)])


def test_what_is_given_of_a_layer_is_not_put_in_for_its_other_values():
    lines = _lines((xs(0), X), (xs(k), layer(k, xs(k - 1))), (zs(k), layer(k, X)))
    with pytest.raises(NotProved, match="refuted"):
        induction(
            lines,
            [(zs(k), layer(k, xs(0) + 1))],
            low=1,
            given=[(layer(k, X), layer(k, X + 1), 1)],
        )


def test_what_is_given_was_proved_of_the_same_sequences():
    lines = _lines((xs(0), X), (xs(k), xs(k - 1)), (ys(0), X), (ys(k), ys(k - 1)))
    equal = inductive("one", "Equal.", lines, (xs(k), ys(k)))
    other = inductive(
        "two",
        "Equal.",
        lines.changed(ys(0), X + 1),
        (layer(1, xs(n)), layer(1, ys(n))),
        given=(equal,),
    )
    with pytest.raises(ValueError, match="other sequences"):
        other.prove()


def test_two_forms_of_one_number_do_not_refute_a_claim_by_induction():
    lines = _lines((xs(0), (X**2 - 1) / (X - 1)), (xs(k), xs(k - 1)))
    with pytest.raises(NotProved, match="undecided"):
        induction(lines, [(xs(k), X + 1)])


def _two_streams():
    return _lines(
        (xs(0), X),
        (xs(k), layer(k, xs(k - 1))),
        (ys(0), X),
        (ys(k), layer(k, ys(k - 1))),
    )


def test_both_directions_of_one_equation_end():
    lines = _two_streams()
    proofs = induction(lines, [(xs(k), ys(k)), (ys(k), xs(k))])
    assert [proof.how for proof in proofs] == ["base and step"] * 2
    both = [(xs(k), ys(k), 0), (ys(k), xs(k), 0)]
    assert (
        induction(lines, [(layer(1, xs(n)), layer(1, ys(n)))], given=both)[0].how
        == "unfolding"
    )


def test_a_claim_about_itself_ends():
    lines = _lines((xs(0), X), (xs(k), layer(k, xs(k))))
    with pytest.raises(NotProved):
        induction(lines, [(xs(k), X)])


def test_what_is_given_is_proved():
    lines = _two_streams()
    goal = [(layer(1, xs(n)), layer(1, ys(n)))]
    with pytest.raises(NotProved, match="undecided"):
        induction(lines, goal)
    assert induction(lines, goal, given=[(xs(k), ys(k), 0)])
    with pytest.raises(NotProved, match="given 1, .*refuted"):
        induction(lines, goal, given=[(xs(k), ys(k) + 1, 0)])
    # true from 1 on, and false at the place from which it is said to hold
    starts_apart = _lines((xs(0), X), (xs(k), S(7)), (ys(0), X + 1), (ys(k), S(7)))
    with pytest.raises(NotProved, match="given 1, .*refuted"):
        induction(starts_apart, [(xs(n), ys(n))], given=[(xs(k), ys(k), 0)])


def test_a_given_claim_may_count_down():
    lines = _lines(
        (xs(n), X),
        (xs(k - 1), layer(k, xs(k))),
        (ys(n), X),
        (ys(k - 1), layer(k, ys(k))),
    )
    assert induction(
        lines, [(layer(1, xs(0)), layer(1, ys(0)))], given=[(xs(k), ys(k), 0)]
    )


def test_claims_and_what_is_given_are_pairs_and_triples_of_expressions():
    lines = _two_streams()
    for claims in ([xs(k)], xs(k), [(xs(k), ys(k), 0)]):
        with pytest.raises(ValueError, match="claims: got"):
            induction(lines, claims)
    with pytest.raises(ValueError, match="given: got"):
        induction(lines, [(xs(k), ys(k))], given=[(xs(k), ys(k))])
    with pytest.raises(TypeError, match="got the text"):
        induction(lines, [(xs(k), "y(k)")])


# -- array code


def test_code_has_one_name_for_each_thing():
    for head, e in (
        (y[j], tensor("lambda", N)[j]),
        (y[j], x[j] * Symbol("x", real=True)),
        (y[j], tensor("N", N)[j]),
    ):
        defs = Defs()
        defs[head] = e
        with pytest.raises(ValueError, match="no name of its own"):
            source(defs, [y[j]])


def test_code_of_a_constant_takes_the_size_and_odd_pieces_are_refused():
    defs = Defs()
    defs[y[j]] = S.One
    np.testing.assert_array_equal(compile(defs, [y[j]])(N=3)[0], np.ones(3))
    defs[L] = Piecewise((s, s > 0), (f, Eq(s, -1)))
    defs[g] = total(N, lambda r: A[r, r])
    for e in (L, g):
        with pytest.raises(NotImplementedError, match="no array code"):
            source(defs, [e])
