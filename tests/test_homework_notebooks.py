"""A notebook as a submission: which cells count, what it says where there are none, and the file that it writes."""

from types import SimpleNamespace

import pytest
from homework_notebooks import notebook

import normgrad.homework as hw
from normgrad.homework import __main__ as shell
from normgrad.homework import folder, solutions
from normgrad.homework.notebook import as_solution

RIGHT, STARTER = solutions.solution("hw2"), solutions.starter("hw2")
WRONG = RIGHT.replace("wdy = weight * dy", "wdy = dy")
PAGE = (
    "!pip install normgrad\nimport normgrad",
    "import numpy as np\nimport normgrad.homework as hw",
    "def somebody_elses(x, weight, eps):\n    return x\n"
    'hw.check("rmsnorm-forward", somebody_elses)',
    STARTER,
    'raise RuntimeError("the page\'s own cells do not run again")',
    "%matplotlib inline\nEPS = 0.0",
    "%%bash\nrm -r everything",
    "def helper(a):\n    return a + EPS",
    RIGHT.replace("(x_hat * wdy)", "helper(x_hat * wdy)"),
    'hw.check("rmsnorm-backward", rmsnorm_backward)\nhw.hand_in("hw2")',
)


def test_a_notebook_is_graded_as_a_file_is(tmp_path, capsys):
    """By its name and in its folder; of two definitions the last counts, and no other cell is run."""
    (tmp_path / "done.ipynb").write_text(notebook(*PAGE), encoding="utf8")
    for path in (tmp_path, tmp_path / "done.ipynb"):
        assert shell.main(["check", str(path)]) == 0, capsys.readouterr()
        assert "20 of 20 points" in capsys.readouterr().out
    text = as_solution(PAGE, ["rmsnorm_forward", "rmsnorm_backward"])
    assert text.count("def rmsnorm_backward") == 1 and "helper" in text
    assert "EPS = 0.0" in text and "NotImplementedError" not in text
    assert not any(word in text for word in ("hw.", "somebody", "pip", "rm -r", "page"))


def test_names_of_arguments_are_not_those_of_other_cells():
    """A cell that tries something out on an x of its own is not needed by functions of an x."""
    cells = ["x = load()", "w, N = 2, 3", "def f(x):\n    return x * N", "N = 4"]
    assert as_solution(cells, ["f"]).split("\n\n") == [
        "w, N = 2, 3",
        "def f(x):\n    return x * N",
        "N = 4\n",
    ]


def test_the_future_comes_first():
    cells = ["import numpy", "from __future__ import annotations\ndef f(x: y): pass"]
    assert as_solution(cells, ["f"]).startswith("from __future__ import annotations\n")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["{"], "done.ipynb: not a notebook"),
        (['{"cells": 1}'], "done.ipynb: not a notebook"),
        (["[" * 10**5], "done.ipynb: not a notebook"),
        ([notebook()], "done.ipynb: the notebook has no cell with code"),
        ([notebook("a = 1")], "no cell defines rmsnorm_forward or rmsnorm_backward"),
        ([notebook(RIGHT)] * 2, "several notebooks (done.ipynb, done1.ipynb)"),
    ],
)
def test_a_notebook_that_cannot_be_graded_says_why(tmp_path, capsys, texts, words):
    for at, text in enumerate(texts):
        (tmp_path / f"done{at or ''}.ipynb").write_text(text, encoding="utf8")
    assert shell.main(["check", str(tmp_path), "--homework", "hw2"]) == 2
    assert words in capsys.readouterr().err


def test_a_function_that_a_notebook_lacks_is_named(tmp_path, capsys):
    cells = notebook("import numpy as np", RIGHT.partition("def rmsnorm_backward")[0])
    (tmp_path / "done.ipynb").write_text(cells, encoding="utf8")
    assert shell.main(["check", str(tmp_path), "--homework", "hw2"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "The submission does not define rmsnorm_backward" in said and "8 of 8" in said
    )


@pytest.mark.parametrize(("text", "status"), [(STARTER, 0), (WRONG, 1)])
def test_a_written_solution_stands_before_a_notebook(tmp_path, text, status):
    """The untouched starter beside it does not: it is not what was handed in."""
    folder.new("hw2", tmp_path)
    (tmp_path / "solution.py").write_text(text, encoding="utf8")
    (tmp_path / "done.ipynb").write_text(notebook(RIGHT), encoding="utf8")
    assert shell.main(["check", str(tmp_path)]) == status


def test_the_last_cell_writes_the_file(tmp_path, monkeypatch, capsys):
    """Of the cells as they were run; the stubs alone leave no file."""
    monkeypatch.chdir(tmp_path)
    cells = ["import numpy as np", STARTER]
    session = SimpleNamespace(user_ns={"In": cells})
    monkeypatch.setattr("builtins.get_ipython", lambda: session, raising=False)
    hw.hand_in("hw2")
    assert "solution.py is not written" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    cells += [RIGHT, 'hw.hand_in("hw2")']
    hw.hand_in("hw2")
    said = capsys.readouterr().out
    assert "solution.py holds rmsnorm_forward, rmsnorm_backward" in said
    assert "20 of 20 points" in said
    assert shell.main(["check", str(tmp_path)]) == 0


def test_outside_of_a_notebook_there_are_no_cells():
    with pytest.raises(RuntimeError, match="needs the cells of one"):
        hw.hand_in("hw2")
