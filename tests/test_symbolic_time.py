"""A proof ends: sums of many letters have one form without trying all orders, and what takes too long is undecided."""

import time

import pytest
from sympy import Add, Mul

from normgrad.symbolic import NotProved, dim, index, prove, tensor, total
from normgrad.symbolic.patience import OutOfPatience, clock, counted, limited, look
from normgrad.verify import norm, verify

M, N = dim("M"), dim("N")
i, j, k = index("i", "j", "k")
x, s = tensor("x", N), tensor("s")
MATRICES = [tensor(name, N, N) for name in "ABCDEFGH"]


def summed(count, body, *letters):
    """The sum of body(r1, ..., rn) over all letters."""
    if not count:
        return body(*letters)
    return total(N, lambda r: summed(count - 1, body, *letters, r))


def trace(matrices):
    """tr(A B C ...)"""

    def product(*letters):
        ends = zip(matrices, letters, (*letters[1:], letters[0]), strict=True)
        return Mul(*[matrix[row, column] for matrix, row, column in ends])

    return summed(len(matrices), product)


@pytest.mark.parametrize("count", range(2, 9))
def test_a_trace_is_the_same_from_every_matrix_on(count):
    matrices = MATRICES[:count]
    prove(trace(matrices), trace([*matrices[1:], matrices[0]]))
    prove(trace([MATRICES[0]] * count), trace([MATRICES[0]] * count))


def test_what_takes_too_long_is_undecided_in_words():
    a, b = MATRICES[:2]
    with pytest.raises(
        NotProved, match=r"undecided: no answer in the time that it had \(0.05 s\)"
    ) as refusal:
        prove(trace([a, b] * 6), trace([b, a] * 6), seconds=0.05)
    assert refusal.value.counterexample is None
    many = [
        Add(*[tensor(f"{name}{number}", N)[i] for number in range(8)])
        for name in "abcdef"
    ]
    with pytest.raises(
        NotProved, match="undecided: multiplied out it has more than 200000 terms"
    ):
        prove(Mul(*many), Mul(*many) * (1 + s) - s * Mul(*many), seconds=2)


# One call of SymPy multiplies it out, for more than a minute.
LONG = """
def f(x, weight, bias, rstd):
    return (x + weight + 2 * bias + 3 * rstd[:, None] + 5 * x * weight) ** 20
"""


def test_a_verdict_takes_less_than_twice_its_seconds():
    start = clock()
    verdict = verify(LONG, norm(bias=True), outputs=("y",), seconds=3)
    assert clock() - start < 6
    assert not verdict


def test_the_limit_of_a_step_leaves_that_of_the_whole():
    with pytest.raises(OutOfPatience), limited(0.6):
        with pytest.raises(OutOfPatience), limited(0.1):
            while True:
                pass
        while True:
            pass
    with limited(0.1):
        pass
    time.sleep(0.2)


def test_steps_are_counted_and_an_outer_count_holds():
    with counted(5):
        with pytest.raises(OutOfPatience, match="steps"), counted(2):
            look()
            look()
            look()
        look()
        look()
        with pytest.raises(OutOfPatience, match="steps"), counted(100):
            look()
    look()
