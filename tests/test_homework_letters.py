"""The term of an expression that is wrong is named, whatever way the answer is written in."""

import pytest
from homework_solutions import named, of_source
from tables import claims

import normgrad.homework as hw

ANSWER = """
from sympy import KroneckerDelta, Sum, symbols

i, r = symbols("i r", integer=True)


def mean(f, N):
    return Sum(f(r), (r, 1, N)) / N


def row(x, N):
    return Sum(x[i, r], (r, 1, N)) / N


def answer({}):
    return {}
"""


@pytest.mark.parametrize(
    ("task", "parameters", "line"), list(claims("homework_letters.txt"))
)
def test_the_wrong_term_is_named(task, parameters, line):
    returned, _, words = line.partition(": ")[2].rpartition(" -- ")
    stage, keys, shown = words.split(", ", 2)
    answer = of_source(ANSWER.format(parameters, returned))["answer"]
    report = hw.check(task, answer, feedback="solution")
    assert not report[stage].passed, report
    assert named(report) == keys.split(), report
    assert any(shown in diagnosis.difference for diagnosis in report.diagnoses), report
