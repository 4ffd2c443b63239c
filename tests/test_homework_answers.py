"""Answers that are right in another way, answers that are wrong in ways of their own, and what is no attack at all."""

import numpy as np
import pytest
from homework_solutions import flat, graded

import normgrad.homework as hw
from normgrad.homework import solutions

DEF = "import numpy as np\ndef rmsnorm_backward(dy, x, weight, rstd):\n    "


# No attack


LINES = {
    "a traceback is printed": (
        "hw2", "import collections, logging, traceback\nPair = collections.namedtuple('Pair', 'a b')\ntry: 1 / 0\n"
               "except ZeroDivisionError: traceback.print_exc(); logging.exception('x')\ntraceback.print_stack()\n"),
    "json's encoder is another": ("hw2", "import json\njson._default_encoder.encode = lambda h: 1 / 0\n"),
    "what is printed": ("hw2", "print('y' * 10**7)\n"),
    "a module beside it": ("hw2", "import helpers\nassert helpers.ONE == 1\n"),
    "float64 for torch": ("hw3", "import torch\ntorch.set_default_dtype(torch.float64)\n"),
    "anomalies": ("hw3", "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
                         "torch.testing.assert_close(torch.ones(2), torch.ones(2))\n"),
}  # fmt: skip


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", LINES)
def test_a_right_solution_may_begin_like_this(tmp_path, name):
    homework, lines = LINES[name]
    (tmp_path / "helpers.py").write_text("ONE = 1\n", encoding="utf8")
    for report in graded(
        tmp_path, lines + solutions.solution(homework), homework, seconds=10
    ):
        assert report.passed, report


def test_what_a_library_does_not_implement_is_no_stub(tmp_path):
    throws = "return next(_ for _ in ()) if not dy.size else (_ for _ in ()).throw(NotImplementedError('not for Half'))"
    report = graded(tmp_path, DEF + throws, "hw2", seconds=2.0)[1]
    assert "not for Half" in flat(report) and not report.stub
    stub = DEF + "raise NotImplementedError('later')"
    assert graded(tmp_path, stub, "hw2", seconds=2.0)[1].stub


def test_numbers_that_are_none_warn_nobody(recwarn):
    hw.check(
        "rmsnorm-backward", lambda dy, x, weight, rstd: (x * np.inf, weight * np.nan)
    )
    assert [str(warning.message) for warning in recwarn] == []


# One slip in the form


def test_another_shape_is_no_slip():
    """Numbers of other rows or columns, or fewer of them, have no place to be compared at."""

    def flat(dy, x, weight, rstd):
        return dy.ravel(), weight

    assert hw.check("rmsnorm-backward", flat).points == 0
