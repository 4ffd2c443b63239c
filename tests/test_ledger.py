"""What the ledger refuses: of a cell that makes an entry, of a page's displays, and of the two put side by side."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError

from normgrad import ledger
from normgrad.ledger.entries import Entry
from normgrad.symbolic import equation
from normgrad_book import ledger as book

SUM = {"t": [1.0, 1.0], "fl": 2.0, "u": 2.0**-24}
# a claim that is refused, as a cell's text: its words
REFUSED = {
    'define("ln-dx")': "ValueError: labels: ln-dx claims something",
    'define("mean", "tolerance-sum")': "ValueError: labels: tolerance-sum claims something",
    'cite("eq", "")': "ValueError: source: got an empty text",
    'prove("ln-dxx")': "ValueError: .*ln-dxx",
    'prove_small("ln-dx", sizes=())': r"ValueError: sizes: got \(\), needs",
    'prove_small("ln-dx", sizes=3)': "ValueError: sizes: got 3, needs",
    'prove_small("ln-dx", sizes={2})': r"ValueError: sizes: got \{2\}, needs",
    'prove_small("ln-dx", sizes=iter([2]))': "ValueError: sizes: got <list_iterator",
    'follows("a", because="b")': "ValueError: labels: got none",
    'follows("a", "a", because="b")': "ValueError: labels: a cannot follow from itself",
    'follows("a", "c", "a", because="b")': "ValueError: labels: a cannot follow from itself",
    'follows("a", 3, because="b")': "TypeError: labels: got int",
    'follows(["a"], "c", because="b")': "TypeError: labels: got list",
    'follows("a", "c")': "ValueError: because: got ''",
    'follows("a", "c", because="  ")': "ValueError: because: got '  '",
    r'follows("a", "c", because="b\nd")': r"ValueError: because: got 'b\\nd'",
    'check("no-formula", SUM, "c")': "KeyError: 'no-formula'",
    'check("tolerance-sum", [], "c")': "ValueError: empty",
    'check("tolerance-sum", SUM | {"fl": 3.0}, "c")': "AssertionError: tolerance-sum: error 1.0",
    'check("tolerance-sum", SUM | {"fl": nan}, "c")': "AssertionError: tolerance-sum: error nan",
    'check("tolerance-sum", SUM | {"fl": inf}, "c")': "AssertionError: tolerance-sum: error inf",
    'check("tolerance-sum", SUM | {"u": inf}, "c")': "AssertionError: .* exceeds the tolerance inf",
    'check("tolerance-sum", SUM | {"u": nan}, "c")': "AssertionError: .* exceeds the tolerance nan",
    'check("tolerance-sum", [SUM, SUM | {"u": inf}], "c")': "AssertionError: .* exceeds the tolerance inf",
    'check("tolerance-sum", [SUM, SUM | {"u": inf, "fl": inf}], "c")': "AssertionError: .* the tolerance inf",
    'check("tolerance-sum", {"t": [1.0], "fl": 1.0}, "c")': "ValueError: values: got none for u",
    'check("tolerance-sum", SUM | {"v": 1.0}, "c")': "ValueError: values: tolerance-sum has no v",
    'check("tolerance-sum", SUM | {"t": [[1.0]]}, "c")': "ValueError: zip",
}  # fmt: skip


@pytest.mark.parametrize("claim", REFUSED)
def test_a_claim_is_refused(claim):
    kind, _, words = REFUSED[claim].partition(": ")
    names = {name: getattr(ledger, name) for name in dir(ledger)}
    with pytest.raises(Exception, match=words) as raised:
        eval(claim, names | {"SUM": SUM, "nan": math.nan, "inf": math.inf})
    assert kind in [base.__name__ for base in raised.type.__mro__]


@pytest.mark.parametrize("within", [math.inf, math.nan, -1.0, None])
def test_an_equation_of_numbers_needs_a_tolerance(within, monkeypatch):
    """Of an "=" the tolerance is the page's own: within an infinite one everything is equal."""
    from sympy import Eq, Symbol

    from normgrad.ledger import formulas
    from normgrad.ledger.formula import formula

    near = formula("near", Eq(Symbol("a"), Symbol("b")))
    monkeypatch.setattr(formulas, "formulas", lambda: {"near": near})
    (entry,) = ledger.check("near", {"a": 1.0, "b": 1.5}, "c", within=0.5)
    assert (entry.error, entry.tolerance) == (0.5, 0.5)
    with pytest.raises(AssertionError, match="near: error"):
        ledger.check("near", {"a": 1.0, "b": 1.5}, "c", within=within)


def test_a_small_proof_is_of_the_sizes_that_it_names(monkeypatch):
    sizes = []
    statement = type(equation("ln-dx"))
    monkeypatch.setattr(statement, "check_fixed", lambda self, n: sizes.append(n))
    (entry,) = ledger.prove_small("ln-dx", sizes=(3, 5))
    assert sizes == [(3, 5)] and entry.claim.endswith("; N = 3, 5")


def test_arrays_agree_on_sizes():
    from sympy import Symbol

    from normgrad.ledger.values import Values
    from normgrad.symbolic import dim, index, tensor
    from normgrad.symbolic.opaque import opaque

    size, i = dim("N"), index("i")
    x, y = tensor("x", size), tensor("y", size)
    with pytest.raises(ValueError, match="values: y makes N = 2, others make it 3"):
        Values({"x": np.ones(3), "y": np.ones(2)})(x[i] * y[i])
    sine = opaque("f")(Symbol("s"))
    with pytest.raises(ValueError, match="values: an array has 1 axes"):
        Values({"s": 1.0, "f": np.ones(3)})(sine)


# Displays of a page


def display(latex, above="", **attributes):
    """A page's display, with a comment above it."""
    block, page = nodes.math_block(latex, latex, **attributes), new_document("page")
    if above:
        page += nodes.comment(above, above)
    page += block
    return block


def within(parent, block):
    """A display inside of another node."""
    holder = new_document("page")
    holder += parent
    block.parent.remove(block)
    parent += block
    return block


CLAIMING = ["a = b", r"a \le b", r"a \approx b", r"a_{i=1} \ne 0", r"y \propto x"]
SILENT = ["a + b", "x_{i=1}", r"\left(a\right)", r"\leftarrow"]


@pytest.mark.parametrize("latex", CLAIMING + SILENT)
def test_a_display_that_claims_something_needs_a_check(latex):
    assert book.is_unchecked(display(latex)) == (latex in CLAIMING)
    assert book.is_unchecked(display(latex, "a comment")) == (latex in CLAIMING)
    assert not book.is_unchecked(display(latex, "quoted"))
    assert not book.is_unchecked(display(latex, shows="label"))
    assert not book.is_unchecked(within(nodes.block_quote(), display(latex)))
    output = nodes.container(nb_element="cell_code_output")
    assert not book.is_unchecked(within(output, display(latex)))
    holder = nodes.container(nb_element="")
    assert book.is_unchecked(within(holder, display(latex))) == (latex in CLAIMING)


def domain(**data):
    """The domain of a book whose pages have no kernel."""
    made = object.__new__(book.LedgerDomain)
    made.data = {"equations": {}, "entries": {}, "problems": {}, "page": ""} | data
    made.env = SimpleNamespace(srcdir="/nowhere", metadata={"page": {}})
    return made


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (display("a = b"), "a = b: nothing checks it"),
        (
            display("a = b", label="z3k", classes=["amsmath"]),
            "a numbered equation has no label",
        ),
    ],
)
def test_a_page_is_told_what_nothing_checks(block, message):
    read = domain()
    block.line = 7
    read.process_doc(read.env, "page", block.document or block.parent)
    ((line, words),) = read.data["problems"]["page"]
    assert line == 7 and words.startswith(message)
    assert not read.equations()
    with pytest.raises(ExtensionError, match=f"page.md:7: {message}"):
        book.refuse(app_of(read), None)


def app_of(read):
    return SimpleNamespace(env=SimpleNamespace(get_domain={"ledger": read}.get))


def test_a_build_that_is_right_or_has_failed_already_goes_on():
    book.refuse(app_of(domain()), None)
    book.refuse(app_of(domain(problems={"page": [(7, "wrong")]})), ValueError())


# Equations beside entries


def numbered(label, latex="", claim="", kind=""):
    return book.Numbered(label, "page", 7, claim, latex, kind)


def made(kind, **more):
    return {"kind": kind, "docname": "page", **more}


# what stands on the page, the kinds of its entries: what is wrong
BESIDE = {
    "no entry": (numbered("e"), [], "has no ledger entry"),
    "two kinds": (
        numbered("e", "m = 1"),
        [made("definition"), made("cited")],
        "has conflicting entries: cited, definition",
    ),
    "another kind": (
        numbered("e", claim="c", kind="proved-for-every-n"),
        [made("proved-for-small-n")],
        "has no entry of its kind, proved-for-every-n",
    ),
    "another formula": (
        numbered("e", "a = b"),
        [made("numeric", formula="a = c")],
        "is not the formula that the numbers were put into",
    ),
    "one of two formulas": (
        numbered("e", "a = b"),
        [made("numeric", formula="a = b"), made("numeric", formula="a = c")],
        "is not the formula that the numbers were put into",
    ),
    "a proof of what was typed": (
        numbered("e", "a = b"),
        [made("proved-for-every-n")],
        "claims a proof but is typed by hand",
    ),
    "a small proof of what was typed": (
        numbered("e", "a = b"),
        [made("proved-for-small-n")],
        "claims a proof but is typed by hand",
    ),
    "the package's equation": (
        numbered("ln-dx", "a = b"),
        [made("cited")],
        "is one of the package but is typed by hand",
    ),
    "the package's formula": (
        numbered("tolerance-sum", "a = b"),
        [made("numeric", formula="a = b")],
        "is one of the package but is typed by hand",
    ),
    "a claim as a definition": (
        numbered("e", "2 m = 3"),
        [made("definition")],
        "claims something and is no definition: its left side is no symbol",
    ),
    "a symbol on both sides": (
        numbered("e", "m = 2 m"),
        [made("definition")],
        "claims something and is no definition: m stands on both sides",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_an_equation_and_its_entries_are_compared(name):
    beside, entries, message = BESIDE[name]
    problems = book.compare({beside.label: beside}, {beside.label: entries})
    where = ("page", 7, f"the equation {beside.label} {message}")
    assert [(*problem[:2], problem[2][: len(where[2])]) for problem in problems] == [
        where
    ]


def test_entries_and_equations_have_each_other():
    right = {"e": numbered("e", "m = 1")}
    entry = made("definition")
    assert book.compare(right, {"e": [entry]}) == []
    assert book.compare(right, {"e": [entry], "f": [entry]}) == [
        ("page", 0, "the ledger entry f (definition) has no equation")
    ]
    assert book.compare(right, {"e": [entry, entry | {"docname": "other"}]}) == [
        ("other", 0, "the ledger entry e belongs in page, beside its equation")
    ]
    assert book.compare(right, {"e": [entry]}, {"e": "m = 1"}) == []
    ((_, _, message),) = book.compare(right, {"e": [entry]}, {"e": "m = 2"})
    assert "typed by hand, is not the one in" in message


def test_reasons_are_equations_and_no_circle():
    def follows(label, *sources):
        return made("follows-from", follows_from=sources, label=label)

    equations = {name: numbered(name, claim="c") for name in "ab"}
    assert (
        book.compare(equations, {"a": [follows("a", "b")], "b": [made("cited")]}) == []
    )
    entries = {"a": [follows("a", "b")], "b": [follows("b", "c")]}
    assert book.compare(equations, entries) == [
        ("page", 0, "the equation b follows from c, which is no equation")
    ]
    entries = {"a": [follows("a", "b")], "b": [follows("b", "a")]}
    ((_, _, message),) = book.compare(equations, entries)
    assert "follows from itself, by way of" in message


@pytest.mark.parametrize(
    ("slack", "words"),
    [
        (1.0, "as large as the error"),
        (7.0, "7 times the error"),
        (101.0, "an order of magnitude: 101 times the error"),
    ],
)
def test_how_near_a_bound_comes_is_said(slack, words):
    entry = Entry("e", "numeric", "c", 1.0, slack, slack=slack)
    assert f", {words}\n" in str(entry)


def test_an_entry_of_each_kind_has_its_words():
    for kind in ledger.KINDS:
        assert str(Entry("e", kind, "c"))
    with pytest.raises((ValueError, KeyError)):
        str(Entry("e", "proved", "c"))
