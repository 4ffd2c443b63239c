"""Homework 5 asks for float32: more digits are seen, by whatever way, and float32 is never taken for more."""

import numpy as np
import pytest
from homework_solutions import checked, graded, named

from normgrad.homework.sandbox.student import Given, Local, Request
from normgrad.homework.solutions import solution

ROWS = """
import numpy as np


def stable_normalize(x, eps):
    {statistics}
    mean, var = np.array(mean, np.float32).reshape(len(x)), np.array(var, np.float32).reshape(len(x))
    rstd = 1 / np.sqrt(var + np.float32(eps))
    return ((x.astype(np.float32) - mean[:, None]) * rstd[:, None]).astype(x.dtype), mean, var, rstd
"""
LOOP = (
    "import fractions, math, statistics; rows = [{number} for row in x]; mean = [{mean} for r in rows]; "
    "var = [{total}((v - m) * (v - m) for v in r) / len(r) for r, m in zip(rows, mean)]"
)
PYTHON, MEAN = "[complex(v).real for v in row]", "sum(r) / len(r)"
FRACTION = "[getattr(fractions, 'Frac' + 'tion')(*v.as_integer_ratio()) for v in row]"
WIDE = {
    "astype": "z = x.astype('d'); mean, var = z.mean(-1), z.var(-1)",
    "asarray": "z = np.asarray(x, 'd'); mean, var = z.mean(-1), z.var(-1)",
    "an argument": "mean, var = np.mean(x, -1, dtype='d'), np.var(x, -1, dtype='d')",
    "long double": "z = np.array(x, 'g'); mean, var = z.mean(-1), z.var(-1)",
    "a scalar": "one = getattr(np, 'float' + '64')(1); mean, var = (one * x).mean(-1), (one * x).var(-1)",
    "einsum": "z = np.asarray(x); n = x.shape[1]; mean = np.einsum('ij->i', z, dtype='d', casting='unsafe') / n; "
    "q = z - mean[:, None]; var = np.einsum('ij,ij->i', q, q) / n",
    "Python's numbers": LOOP.format(number=PYTHON, mean=MEAN, total="sum"),
    "an exact sum": LOOP.format(
        number=PYTHON, mean=MEAN, total="getattr(math, 'fs' + 'um')"
    ),
    "fractions": LOOP.format(number=FRACTION, mean=MEAN, total="1.0 * sum"),
    "the statistics module": LOOP.format(
        number=PYTHON, mean="statistics.fmean(r)", total="sum"
    ),
}
CORRECTED = "m = {mean}; q = z - m[:, None]; left = {left}; q = q - left[:, None]; mean = m + left"
NARROW = {
    "scaled": "z = x.astype('f'); s = np.exp2(np.ceil(np.log2(np.abs(z).max(-1, initial=np.float32(1e-30))))); "
    "z = z / s[:, None]; " + CORRECTED.format(mean="z.mean(-1)", left="q.mean(-1)")
    + "; mean, var = mean * s, (q * q).mean(-1) * s * s",
    "divided first": "z = x.astype('f'); n = np.float32(x.shape[1]); "
    + CORRECTED.format(mean="(z / n).sum(-1)", left="(q / n).sum(-1)") + "; var = (q / n * q).sum(-1)",
    "every sum made up for its rounding": """z, n = x.astype('f'), np.float32(x.shape[1])
    def total(a):
        s, c = np.zeros(len(a), 'f'), np.zeros(len(a), 'f')
        for k in range(a.shape[1]):
            t = a[:, k] - c
            s, c = s + t, (s + t - s) - t
        return s
    """ + CORRECTED.format(mean="total(z) / n", left="total(q) / n") + "; var = total(q * q) / n",
}  # fmt: skip


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("mode", ["cell", "shell"])
@pytest.mark.parametrize("way", WIDE)
def test_a_wider_format_is_seen(tmp_path, way, mode):
    source = ROWS.format(statistics=WIDE[way])
    if mode == "cell":
        report = checked("stable-normalize", source)
    else:
        report = graded(tmp_path, source, "hw5")[0]
    assert not report["float32 throughout"].passed, report
    assert named(report) == ["wide-arithmetic"], report


@pytest.mark.parametrize("way", NARROW)
def test_float32_is_not_taken_for_more(way):
    """Ways that look like more digits, or like a wider range, but never like both."""
    for seed in range(20):
        source = ROWS.format(statistics=NARROW[way])
        report = checked("stable-normalize", source, seed=seed)
        assert report.passed, report


def test_stages_with_the_same_inputs_share_the_calls(monkeypatch):
    """Each call is made once for all of them; numbers and layouts tell calls apart."""
    pytest.importorskip("triton")
    calls, call = [], Local.call

    def counted(student, entry, request):
        arguments = [
            (
                argument.layout,
                argument.dtype,
                np.asarray(argument.value, float).tobytes(),
            )
            for argument in request.arguments
        ]
        calls.append((*arguments, repr(request.options)))
        return call(student, entry, request)

    monkeypatch.setattr(Local, "call", counted)
    report = checked("addnorm-forward", solution("hw4"))
    assert report.passed, report
    assert len(calls) == len(set(calls))
    assert {call_key[0][0] for call_key in calls} == {
        "contiguous",
        "strided",
        "transposed",
        "wide",
    }


def test_a_result_that_is_an_input_keeps_its_numbers(torch):
    """Numbers of one call are not those of the next one's arguments."""
    with Local({"f": lambda x: x}) as student:
        student.begin(5)
        for kind in ("numpy", "torch"):
            first = student.call(
                "f", Request("call", (Given("x", np.ones(3), kind=kind),))
            )
            student.call("f", Request("call", (Given("x", np.zeros(3), kind=kind),)))
            assert (first.values[0].numbers == 1).all()
