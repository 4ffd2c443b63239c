"""What a chapter's notebook does about Triton: which one it installs, and which cells it skips where there is none."""

import pytest

from normgrad.teaching import notebook
from normgrad.teaching.notebook import MARK, SKIPPED, Skipping


def ran(*cells):
    """Which of a notebook's cells run, one after the other, where there is no Triton."""
    skip = Skipping()
    return [
        skip(cell.splitlines(keepends=True)) != [f"print({SKIPPED!r})\n"]
        for cell in cells
    ]


@pytest.mark.parametrize(
    "cell",
    [
        "import triton",
        "import numpy as np\nimport triton.language as tl",
        "from triton import language",
        "from normgrad import triton_kernels",
        "from normgrad.triton_kernels.rows import forward",
        "import normgrad\nnormgrad.triton_kernels.forward",
        "def late():\n    import triton",
        f"{MARK}\nnormgrad.rms_norm(x, 4, backend='triton')",
        f"{MARK}\nawait kernel",
    ],
)
def test_cells_that_need_triton_are_skipped(cell):
    assert ran(cell) == [False]


@pytest.mark.parametrize(
    "cell",
    [
        "print('triton')",
        "import tritonclient",
        "print(results.triton)",
        "# compare with Triton\nx = 1",
        "import numpy as np",
        "1 +",
        "x = '\\d'",
    ],
)
def test_other_cells_run(cell):
    assert ran(cell) == [True]


SKIPPED_CELL = f"{MARK}\nimport helper as h\nkernel, (a, *b) = make()\ndef launch(): pass\nclass Layer: width = 3\n"


@pytest.mark.parametrize(
    "cell",
    [
        "h.run()",
        "b[0] = 1",
        "a += 1",
        "a = a + 1",
        "print([a for _ in range(3)])",
        "def again(x, deep=2):\n    return lambda: launch(x)",
        "class Deeper(Layer):\n    pass",
        "class Other:\n    layer = Layer()",
        "@launch\ndef f():\n    pass",
        "for i in range(2):\n    kernel[i](a)",
        "del a",
        "x: Layer = 1",
    ],
)
def test_cells_that_use_what_a_skipped_cell_defines_are_skipped(cell):
    assert ran(SKIPPED_CELL, cell) == [False, False]


@pytest.mark.parametrize(
    "cell",
    [
        "print(width)",
        "a = 1\nprint(a)",
        "for a in range(2):\n    kernel = a\n    print(kernel)",
        "print([a for a in range(3)])",
        "def f(a):\n    b = a\n    return b",
        "def launch():\n    return launch()",
        "x.kernel = 3",
        "f(kernel=3)",
        "import numpy as h",
    ],
)
def test_names_that_mean_something_else_do_not_matter(cell):
    assert ran(SKIPPED_CELL, cell) == [False, True]


def test_what_is_skipped_spreads_and_what_is_defined_anew_runs():
    cells = [SKIPPED_CELL, "y = launch()", "print(y)", "y = 1", "print(y)", "z = y"]
    assert ran(*cells) == [False, False, False, True, True, True]
    skip = Skipping()
    for cell in cells:
        # A kernel may ask more than once what becomes of a cell.
        assert skip([cell]) == skip([cell])


def test_a_shell_is_given_the_transformer_once_and_only_without_triton(monkeypatch):
    IPython = pytest.importorskip("IPython")
    shell = IPython.core.interactiveshell.InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(notebook, "installed", lambda name: False)
    notebook.start()
    notebook.start()
    assert [type(transformer) for transformer in shell.input_transformers_post] == [
        Skipping
    ]
    assert shell.transform_cell("%matplotlib inline\n1").endswith("\n1\n")
    assert shell.transform_cell("import triton\nx = 1") == f"print({SKIPPED!r})\n"
    monkeypatch.setattr(notebook, "installed", lambda name: True)
    notebook.start()
    assert shell.input_transformers_post == []
