"""Homework 6: a test that knows a backward by anything but its numbers earns nothing by it."""

import numpy as np
import pytest

import normgrad.homework as hw
from normgrad.homework import folder
from normgrad.homework.grade import grade_file
from normgrad.homework.oracles import handed
from normgrad.homework.oracles.backwards import RIGHT
from normgrad.homework.stages import judged
from normgrad.homework.student import calls_tests, renewed
from normgrad.homework.student.interface import Request
from normgrad.homework.student.remote import Remote
from normgrad.homework.task import Draw
from normgrad.homework.wrong import wrong

# One call, always on the same inputs; `known` says what the result is held against.
BODY = """
import numpy as np
SEEN = []

def inputs():
    rng = np.random.default_rng(0)
    x, weight, dy = rng.standard_normal((4, 6)), rng.standard_normal(6), rng.standard_normal((4, 6))
    x[0] = 1
    mean = x.mean(-1)
    return dy, x, weight, mean, 1 / np.sqrt(((x - mean[:, None]) ** 2).mean(-1) + 1e-5)

def check_backward(backward, seen=[], own=dict()):
    found = np.concatenate([np.ravel(a) for a in backward(*inputs())])
    assert found.any() and np.isfinite(found).all()
    {how}
"""
# What a test may say that knows nothing but "zeros and NaN are wrong": the right ones pass, and the tenth is rejected.
NOTHING_LEARNED = 6

MEMORY = {
    "a list of the module": "SEEN.append(found)\n    assert np.allclose(found, SEEN[0])",
    "a variable of the module": "global FIRST\n    FIRST = globals().get('FIRST', found)\n"
                                "    assert np.allclose(found, FIRST)",
    "an attribute": "check_backward.first = getattr(check_backward, 'first', found)\n"
                    "    assert np.allclose(found, check_backward.first)",
    "a default": "seen.append(found)\n    assert np.allclose(found, seen[0])",
    "a keyword": "assert np.allclose(found, own.setdefault('first', found))",
    "a counter": "SEEN.append(1)\n    assert len(SEEN) <= 9",
    "inside of a function": "(lambda: SEEN.append(found))()\n    assert np.allclose(found, SEEN[0])",
}  # fmt: skip
OUTSIDE = {
    "a library": "np.first = getattr(np, 'first', found)\n    assert np.allclose(found, np.first)",
    "the environment": "import os\n    first = os.environ.setdefault('FIRST', repr(found.tolist()))\n"
                       "    assert np.allclose(found, eval(first))",
}  # fmt: skip
REFUSED = {
    "a file": ("np.save('first.npy', found)", "opened a file to write it"),
    "a folder": ("import os; os.mkdir('wrong')", "called os.mkdir"),
    "a pipe": ("import os; os.mkfifo('wrong')", "no attribute 'mkfifo'"),
    "an attribute of a file": ("import os; os.setxattr('solution.py', 'user.a', b'1')", "called os.setxattr"),
    "memory by a name": ("import _posixshmem", "imported _posixshmem"),
    "a database": ("import sqlite3", "imported sqlite3"),
    "the grader's priority": ("import os; os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)", "no attribute"),
    "the grader's limits": ("import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))",
                            "called resource.prlimit"),
}  # fmt: skip


def graded(place, how):
    """The Report of a test that holds its result against something; in a process of its own."""
    (place / "solution.py").write_text(BODY.format(how=how), encoding="utf8")
    (report,) = grade_file(place / "solution.py", "hw6", seconds=2.0)
    return report


def live(how):
    """check_backward of this process."""
    names = {"__name__": "solution"}
    exec(BODY.format(how=how), names)
    return names["check_backward"]


@pytest.fixture
def once(monkeypatch):
    """Half as many processes."""
    monkeypatch.setattr(handed, "REPEATS", 1)
    monkeypatch.setattr(judged, "REPEATS", 1)


@pytest.mark.parametrize("where", MEMORY)
def test_what_a_test_remembers_in_a_cell_is_gone(where):
    """The function has variables of its own for every backward."""
    assert hw.check("gradient-test", live(MEMORY[where])).points == NOTHING_LEARNED


@pytest.mark.parametrize("where", ["a list of the module", "a variable of the module", *OUTSIDE])
def test_what_a_test_remembers_in_the_shell_is_gone(tmp_path, once, where):
    """Every backward meets a process of its own, and what both share is wiped."""
    assert graded(tmp_path, (MEMORY | OUTSIDE)[where]).points == NOTHING_LEARNED


@pytest.mark.parametrize("where", REFUSED)
def test_there_is_no_way_from_one_process_to_the_next(tmp_path, once, where):
    how, words = REFUSED[where]
    report = graded(tmp_path, how)
    assert report.points == 0 and words in " ".join(str(report).split()), report


def test_memory_would_not_help_where_it_lasts(monkeypatch):
    """A wrong backward comes first, so that a test that takes the first for right rejects all right ones."""
    monkeypatch.setattr(renewed, "function", lambda target: target)
    for _ in range(3):
        target = live(MEMORY["a list of the module"])
        report = hw.check("gradient-test", target)
        assert report.points == 0 and "rejects a right backward" in str(report)


def test_the_order_is_drawn_anew():
    """Neither the seed nor the count tells which backward is under test; the first is always a wrong one."""
    orders = [tuple(handed.turns()) for _ in range(20)]
    assert len(set(orders)) == len(orders) and {frozenset(order) for order in orders} == {frozenset(orders[0])}
    assert {order[0][0][0] for order in orders} == {handed.WRONG} and len({order[0] for order in orders}) > 1
    # The tenth gives NaN on constant rows, so a test could tell it from one that is worth remembering.
    assert (handed.WRONG, 10) not in {order[0][0] for order in orders}


SPIES = {
    "the code": "text = repr(backward.__code__.co_names) + backward.__code__.co_code.hex() + repr(vars(backward))",
    "its name": "text = backward.__name__ + backward.__qualname__ + backward.__module__ + str(backward.__doc__)",
    "the closure": "text = ' '.join(str(type(cell.cell_contents)) for cell in backward.__closure__)",
    "the modules": "import sys\n    text = ' '.join(sorted(sys.modules))",
    "the results' types": "text = repr([(type(a), a.dtype, a.flags, a.strides) for a in backward(*inputs())])",
}  # fmt: skip


@pytest.mark.parametrize("where", SPIES)
def test_every_backward_looks_the_same(tmp_path, once, where):
    """What a spy finds is the same for the right and the wrong ones; a text of a backward is not there at all."""
    how = f"{SPIES[where]}\n    print(text)\n    assert 'mean(-1' not in text and 'ij->' not in text\n    return text"
    texts = []
    (tmp_path / "solution.py").write_text(BODY.format(how=how), encoding="utf8")
    with Remote(tmp_path / "solution.py", ("numpy",), ["check_backward"]) as student:
        for which in (("right", next(iter(RIGHT))), (handed.WRONG, 1), (handed.WRONG, 5)):
            student.fresh()
            student.begin(5)
            answer = handed.Handed(which, np.random.default_rng(0))
            outcome = student.call("check_backward", Request("examine", (), answer=answer))
            assert outcome.values is not None and not outcome.facts["rejected"], outcome
            texts.append(outcome.printed)
    assert len(set(texts)) == 1 and texts[0][0] > 0


def test_the_time_says_nothing(monkeypatch):
    """Every backward of the homework is computed on every call, whichever is under test."""
    counts, known = {}, handed.known()

    def counting(which, function):
        def counted(*inputs):
            counts[which] = counts.get(which, 0) + 1
            return function(*inputs)

        return counted

    monkeypatch.setattr(handed, "known", lambda: {which: counting(which, f) for which, f in known.items()})
    ask = handed.Handed((handed.WRONG, 3), np.random.default_rng(0))
    ask({"dtypes": ["float64"] * 5}, [np.ones((2, 3)), np.eye(2, 3), np.ones(3), np.zeros(2), np.ones(2)])
    assert counts == dict.fromkeys(known, 1)


@pytest.mark.parametrize("which", [("right", how) for how in list(RIGHT)[:3]] + [(handed.WRONG, 7)])
def test_the_last_digits_are_those_of_no_known_text(rng, which):
    """Sums run in an order of the draw's, and the results are the same but for their rounding.

    The fourth right way computes with more digits, so that its results are the same in any order.
    """
    x, weight, dy = rng.standard_normal((5, 9)), rng.standard_normal(9), rng.standard_normal((5, 9))
    inputs = [dy, x, weight, x.mean(-1), 1 / np.sqrt(x.var(-1) + 1e-5)]
    ways = [handed.Handed(which, Draw(seed).rng("a"))({"dtypes": ["float64"] * 5}, inputs)[1] for seed in range(8)]
    size = 64 * np.finfo(float).eps * np.abs(dy).sum() * inputs[4].max() * np.abs(weight).max()
    assert all(np.abs(a - b).max() <= size for way in ways for a, b in zip(way, ways[0], strict=True))
    assert len({b"".join(a.tobytes() for a in way) for way in ways}) > 1


def test_a_process_that_asks_and_does_not_listen(tmp_path, once, monkeypatch):
    """The grader answers and does not wait until somebody reads."""
    monkeypatch.setattr(judged, "IMPATIENT_SECONDS", 0.1)
    how = (
        "import json, os, struct\n    big = [np.ones((90, 200))] * 2 + [np.ones(200)] + [np.ones(90)] * 2\n"
        "    head = {'question': {'dtypes': ['float64'] * 5}, 'shapes': [a.shape for a in big]}\n"
        "    head, numbers = json.dumps(head).encode(), b''.join(a.tobytes() for a in big)\n"
        "    message = struct.pack('>QQ', len(head), len(numbers)) + head + numbers\n"
        "    for n in range(3, 12):\n        try:\n            while True: os.write(n, message)\n"
        "        except OSError: pass"
    )
    report = graded(tmp_path, how)
    assert report.points == 0 and "had not finished" in str(report), report


def test_questions_that_nobody_expects():
    """What comes from the student's process is looked at before anything is computed with it."""
    ask = handed.Handed((handed.WRONG, 1), np.random.default_rng(0))
    for facts, arrays in ((None, []), ({}, [np.ones(2)]), ({"dtypes": ["O"] * 5}, [np.ones(3)] * 5),
                          ({"dtypes": ["float64"] * 5}, [np.ones((2, 0))] * 5),
                          ({"dtypes": ["float64"] * 5}, [np.ones(handed.MOST_NUMBERS)] * 5)):  # fmt: skip
        answer, found = ask(facts, arrays)
        assert answer["wrong"] and found == []


def test_the_limits_agree():
    assert calls_tests.MOST_NUMBERS == handed.MOST_NUMBERS


# Levels of feedback


@pytest.mark.parametrize("mistake", wrong("hw6"), ids=lambda each: each.name)
def test_a_hint_does_not_give_the_answer(mistake):
    """At the level hint no sentence says what an author believed, which equation is violated, or what to draw."""
    names = {"__name__": "solution"}
    exec(mistake.source("hw6"), names)
    report = hw.check("gradient-test", names["check_backward"], feedback="hint")
    failed = " ".join(stage.message for stage in report.stages if not stage.passed)
    hints = " ".join(report.shown(each)["hint"] for each in report.diagnoses)
    for words in ("believed", "See ln-", "at random", "In every call"):
        assert words not in failed and words not in hints
    assert all("?" in report.shown(each)["hint"] for each in report.diagnoses)


def test_every_level_says_more():
    (mistake,) = [each for each in wrong("hw6") if each.name == "dy of ones"]
    names = {"__name__": "solution"}
    exec(mistake.source("hw6"), names)
    short, middle, long = (str(hw.check("gradient-test", names["check_backward"], feedback=level))
                           for level in ("hint", "equation", "coefficients"))  # fmt: skip
    for words in ("rstd does not depend on x", "In every call weight * dy is constant", "vacuous-ones"):
        assert words not in short and words in middle and words in long
    assert "needed:" in long and "needed:" not in middle


@pytest.mark.parametrize("homework", ["hw1"])
def test_no_report_hands_out_the_expression(homework):
    """What stands beside "needed" leads to the answer and is not it."""
    sympy = pytest.importorskip("sympy")
    answers = {line.strip() for line in folder.solution(homework).split("\n")}
    for task in hw.homeworks()[homework].tasks:
        for text in task.oracle.texts.values():
            assert not any(text in answer for answer in answers)
            try:
                sympy.sympify(text)
            except (sympy.SympifyError, SyntaxError, TypeError):
                continue
            raise AssertionError(f"{task.name}: {text} is an expression that could be handed in")


# The keys


def test_all_misconceptions_have_a_title():
    known = hw.misconceptions()
    for name in hw.homeworks():
        for each in wrong(name):
            assert not each.misconception or known[each.misconception], f"{name}: {each.name}"
            assert not each.misconception or hw.misconceptions(each.task)[each.misconception]


@pytest.mark.parametrize("homework", ["hw1", "hw6", "hw7"])
def test_what_reports_name_is_listed(homework):
    """With the very title that the report shows, where that does not name an input."""
    pytest.importorskip("sympy")
    for mistake in wrong(homework):
        names = {"__name__": "solution"}
        exec(mistake.source(homework), names)
        task = hw.describe(mistake.task)
        report = hw.check(mistake.task, names[task.entry])
        listed = hw.misconceptions(mistake.task)
        for each in report.diagnoses:
            assert each.misconception in listed, report
            assert homework == "hw7" or listed[each.misconception] == each.title


def test_misconceptions_of_an_unknown_task_are_refused():
    with pytest.raises(ValueError, match="needs cotangent"):
        hw.misconceptions("cotangents")
