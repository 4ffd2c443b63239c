"""The book's Sphinx extension: its rules one by one, and small books that must build or must not."""

import os
from pathlib import Path

import pytest
from processes import python

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "book/_ext"

from normgrad_book import (  # noqa: E402
    ledger,
)

# -- the ledger's rules -------------------------------------------------------------


def equation(label, registered=False):
    return ledger.Numbered(
        label, "one", 7, "what the registry says" if registered else ""
    )


def entry(kind, docname="one", label="e"):
    return {"label": label, "kind": kind, "docname": docname}


@pytest.mark.parametrize(
    "equations, entries, message",
    [
        ([equation("e")], [], "the equation e has no ledger entry"),
        ([], [entry("numeric")], "the ledger entry e (numeric) has no equation"),
        (
            [equation("e")],
            [entry("numeric"), entry("proved-for-small-n")],
            "claims a proof but is typed by hand",
        ),
        (
            [equation("e")],
            [entry("definition"), entry("numeric")],
            "conflicting entries: definition, numeric",
        ),
        (
            [equation("e")],
            [entry("numeric", docname="two")],
            "the ledger entry e belongs in one",
        ),
    ],
)
def test_ledger_refuses(equations, entries, message):
    by_label = {"e": entries} if entries else {}
    problems = ledger.compare(
        {numbered.label: numbered for numbered in equations}, by_label
    )
    assert len(problems) == 1 and message in problems[0][2]


# -- small books --------------------------------------------------------------------

CONF = """
import sys
sys.path.insert(0, {extension!r})
extensions = ["myst_nb", "sphinx_proof", "sphinx_book_theme", "normgrad_book"]
numfig, nb_execution_mode, nb_execution_raise_on_error, nb_execution_show_tb = True, "cache", True, True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
root_doc, html_theme, exclude_patterns = "index", "sphinx_book_theme", ["_build"]
book_package = {root!r}
"""
KERNEL = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3, language: python}\n---\n\n"
INDEX = "# Book\n\n```{toctree}\none\nledger\n```\n"
LEDGER = "# Ledger\n\n```{ledger}\n```\n"
ONE = """# One

$$
m = 1
$$ (mean)

By {eq}`index-count` and [the ledger](ledger.md):

```{equation} index-count
```

$$
2 m = 2
$$ (twice)

```{code-cell} ipython3
:tags: [remove-cell]
from normgrad import ledger
display(ledger.follows("twice", "mean", "index-count", because="both sides of $m = 1$ are doubled"))
ledger.define("mean")
```

```{code-cell} ipython3
ledger.prove("index-count")
```

```{code-cell} ipython3
:tags: [derivation]
:label: index-delta
:claim: A sum against a delta renames the index.
from sympy import IndexedBase, KroneckerDelta, Sum, symbols
from normgrad.prove import derive
N, k, r = symbols("N k r", integer=True, positive=True)
x = symbols("x", cls=IndexedBase, shape=(N,), real=True)
derive(Sum(KroneckerDelta(k, r) * x[r], (r, 1, N)), x[k])
```
By {eq}`index-delta`.

```{code-cell} ipython3
print("naive: 93.5 us")
```
A kernel takes {printed}`93.5` or {printed}`93.5 <naive: 93.5>` microseconds.

:::{prf:theorem} Small
:label: small
See {prf:ref}`small`.
:::

```{literalinclude} code.py
:pyobject: f
```
"""
CODE = "x = 1\n\n\ndef f():\n    return x\n"


def write(folder, page):
    conf = CONF.format(extension=str(EXTENSION), root=str(ROOT))
    pages = {"conf.py": conf, "code.py": CODE, "index.md": INDEX, "ledger.md": LEDGER}
    for name, text in {**pages, "one.md": KERNEL + page}.items():
        (folder / name).write_text(text)


def build(folder):
    """(exit status, output) of a build as strict as the book's."""
    options = "-m sphinx -b html -W --keep-going -n -a -E -q".split()
    environ = {**os.environ, "GITHUB_REPOSITORY": "someone/book"}
    folders = folder, folder / "_build/html"
    done = python(*options, *folders, timeout=120, env=environ)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    write(folder, ONE)
    status, output = build(folder)
    assert status == 0, output
    return folder / "_build/html"


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "N)), x[k])",
            "N)), x[k], 2 * x[k], x[k])",
            "a verdict is false in the cell index-delta: **refuted at step 2**",
        ),
        (
            "N)), x[k])",
            "N)), x[k], Sum(KroneckerDelta(r, k) * x[r], (r, 1, N)))",
            "another equation index-delta than equations.json has",
        ),
        (
            "A sum against a delta renames",
            "A delta renames",
            "another equation index-delta than equations.json has",
        ),
    ],
)
def test_a_changed_derivation_fails_every_build(tmp_path, old, new, message):
    write(tmp_path, ONE.replace(old, new))
    for _ in range(2):
        status, output = build(tmp_path)
        assert status != 0 and message in output


def test_everything_wrong_is_named_at_once(tmp_path):
    wrong = ONE.replace("{equation} index-count", "{math}\n:label: index-count\n1 = 1")
    wrong = wrong.replace('ledger.define("mean")', 'ledger.define("mean", "stray")')
    wrong = wrong.replace('"twice", "mean"', '"twice", "means"')
    write(
        tmp_path,
        wrong
        + "\n```{equation} nonesuch\n```\n\n\\begin{align}\n1 = 1\n\\end{align}\n",
    )
    status, output = build(tmp_path)
    assert status != 0
    for message in (
        "the equation index-count claims a proof but is typed by hand",
        "the ledger entry stray (definition) has no equation",
        "the equation twice follows from means, which is no equation",
        "'nonesuch', which no registered equation has",
        "a numbered equation has no label",
    ):
        assert message in output


def test_false_proof_fails_every_build(tmp_path):
    wrong = 'ledger.check("tolerance-sum", {"t": [1.0, 1.0], "fl": 3.0, "u": 2.0**-24}, "two ones are three")'
    write(
        tmp_path,
        ONE.replace(
            'ledger.prove("index-count")', f"from normgrad import ledger\n{wrong}"
        ),
    )
    for _ in range(2):
        status, output = build(tmp_path)
        assert (
            status != 0
            and "tolerance-sum: error 1.000e+00 exceeds the tolerance" in output
        )


def test_an_equation_needs_an_entry_of_its_kind():
    equations = {
        "e": ledger.Numbered("e", "one", 7, claim="it holds", kind="proved-for-every-n")
    }
    proof = {"label": "e", "kind": "proved-for-small-n", "docname": "one"}
    (problem,) = ledger.compare(equations, {"e": [proof]})
    assert "the equation e has no entry of its kind, proved-for-every-n" in problem[2]
    assert (
        ledger.compare(
            equations, {"e": [proof, {**proof, "kind": "proved-for-every-n"}]}
        )
        == []
    )


def follows(label, *sources):
    return {
        "label": label,
        "kind": "follows-from",
        "docname": "one",
        "follows_from": list(sources),
    }


def test_an_equation_follows_from_equations_that_are_there_and_not_from_itself():
    equations = {label: equation(label) for label in "abc"}
    entries = {
        "a": [entry("cited", label="a")],
        "b": [follows("b", "a")],
        "c": [follows("c", "a", "b")],
    }
    assert ledger.compare(equations, entries) == []
    (problem,) = ledger.compare(equations, entries | {"c": [follows("c", "a", "d")]})
    assert "the equation c follows from d, which is no equation" in problem[2]
    (circle,) = ledger.compare(equations, entries | {"b": [follows("b", "c")]})
    assert "follows from itself, by way of" in circle[2]


def test_a_formula_typed_by_hand_must_be_the_one_that_was_written_down():
    equations = {"e": ledger.Numbered("e", "one", 7, latex="a = b")}
    entries = {"e": [entry("cited")]}
    assert ledger.compare(equations, entries, {"e": " a =  b"}) == []
    for typed in ({"e": "a = -b"}, {}):
        (problem,) = ledger.compare(equations, entries, typed)
        assert "the equation e typed by hand" in problem[2]


# -- mistakes that put a formula under a badge, a number or a label that is not its own ------

IMPORTS = """from IPython.display import Markdown, Math
from normgrad import ledger
"""
CELL = "```{code-cell} ipython3\n%s\n```\n"
TYPED_PROOF = "$$\n\\sum_{r=1}^{N} \\delta_{rr} = N + 1\n$$ (index-partial-x)\n\n"
# name: (a page, what the build says of it)
MISTAKES = {
    "a label typed into Math": (
        CELL % (IMPORTS + "Math(r'\\sum_{r=1}^{N} 1 = N + 1 \\tag{index-count}')"),
        "an output has the label index-count, which no derivation gave it",
    ),
    "a proof beside a typed formula": (
        TYPED_PROOF + CELL % (IMPORTS + "ledger.prove('index-partial-x')"),
        "the equation index-partial-x claims a proof but is typed by hand",
    ),
    "a claim as a definition": (
        "$$\n2 m = 3\n$$ (claimed)\n\n" + CELL % (IMPORTS + "ledger.define('claimed')"),
        "the equation claimed claims something and is no definition: its left side is no symbol",
    ),
    "a display without a label": (
        "% quoted\n$$ a = b $$\n\n> $$ a = c $$\n\nOne sees that\n\n$$ m = x w + m $$\n",
        "m = x w + m: nothing checks it",
    ),
    "numbers of another formula": (
        "$$\n\\left| t - s \\right| \\le u\n$$ (tolerance-sum)\n\n"
        + CELL
        % (
            IMPORTS
            + "ledger.check('tolerance-sum', {'t': [1.0, 1.0], 'fl': 2.0, 'u': 2.0**-24}, 'c')"
        ),
        "the equation tolerance-sum is not the formula that the numbers were put into",
    ),
}
SYMPY = """from sympy import IndexedBase, Sum, diff, symbols
from normgrad.prove import define, prove, refute
N, j, r = symbols("N j r", integer=True, positive=True)
x = symbols("x", cls=IndexedBase, shape=(N,), real=True)
mean = define("mean", Sum(x[r], (r, 1, N)) / N)
"""
MEAN = ":label: ln-entry-mean\n:claim: Every entry contributes 1/N to the mean.\n"
IN_SYMPY = "prove(diff(mean, x[j]), 1 / N)"
MISTAKES |= {
    "a false verdict": (
        CELL % (SYMPY + "prove(diff(mean, x[j]), 1)"),
        "a verdict is false: **refuted**: left − right is",
    ),
    "a claim that is not refuted": (
        CELL % (SYMPY + IN_SYMPY.replace("prove", "refute")),
        "a verdict is false: **not refuted: proved for every $N$**",
    ),
    "a label without a verdict": (
        CELL % (MEAN + SYMPY + IN_SYMPY + ".rhs"),
        "the cell ln-entry-mean has 0 verdicts, and needs one",
    ),
    "a label on a refutation": (
        CELL
        % (MEAN.replace("mean", "jacobian", 1) + SYMPY + "refute(diff(mean, x[j]), 1)"),
        "the cell ln-entry-jacobian refutes what it labels",
    ),
    "a label without a claim": (
        CELL % (":label: ln-entry-rstd\n" + SYMPY + IN_SYMPY),
        "the cell ln-entry-rstd has no claim",
    ),
    "a verdict that nobody sees": (
        CELL % (SYMPY + IN_SYMPY + "\nmean"),
        "a verdict is not shown: prove(diff(mean, x[j]), 1 / N)",
    ),
    "a verdict in a variable": (
        CELL % (SYMPY + "slope = " + IN_SYMPY + "\nmean"),
        "a verdict is not shown: prove(diff(mean, x[j]), 1 / N)",
    ),
    "a number that no cell prints": (
        "It takes {printed}`2.3` seconds.\n\n" + CELL % "print(2.34, 12.3)",
        "no cell prints 2.3, of which a sentence says 2.3",
    ),
    "a number beside words without it": (
        "It takes {printed}`2.4 <seconds: 2.3>` seconds.\n\n"
        + CELL % "print('seconds: 2.3')",
        "no cell prints seconds: 2.3, of which a sentence says 2.4",
    ),
    "another statement under a label": (
        CELL % (MEAN + SYMPY + "prove(2 * diff(mean, x[j]), 2 / N)"),
        "another equation ln-entry-mean than equations.json has",
    ),
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory, request):
    """What the build says of a book in which every page has another mistake, of those that are tested in this run."""
    folder = tmp_path_factory.mktemp("mistaken")
    write(folder, ONE)
    tried = {
        item.callspec.params.get("mistake")
        for item in request.session.items
        if hasattr(item, "callspec")
    }
    pages = {
        f"mistake{number}": MISTAKES[name][0]
        for number, name in enumerate(MISTAKES)
        if name in tried
    }
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(f"{KERNEL}# A page\n\n{text}")
    (folder / "index.md").write_text(
        INDEX.replace("one\n", "one\n" + "".join(f"{name}\n" for name in pages))
    )
    status, output = build(folder)
    assert status != 0
    return output


@pytest.mark.parametrize(
    "number, mistake", list(enumerate(MISTAKES)), ids=list(MISTAKES)
)
def test_a_mistake_is_refused_on_its_page(mistaken, number, mistake):
    message = MISTAKES[mistake][1]
    lines = [line for line in mistaken.splitlines() if message in line]
    assert any(f"mistake{number}.md" in line for line in lines), mistaken
