"""Small controls of a page: what a folded cell says of its contents, and the link of the erratum form."""

from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from normgrad_book import folded, repository


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('ledger.prove("ln-dx", "ln-dw")', "the ledger entries (1 line)"),
        (
            "from normgrad_figures import eps\neps.draw()",
            "the code of the figure (2 lines)",
        ),
        ("x = 1\nassert x == 1", "the checks (2 lines)"),
        ("prove(x, y)", "the derivation (1 line)"),
        (
            "# the verdicts, package by package\nx = 1",
            "the verdicts, package by package (2 lines)",
        ),
        ("x = 1\ndef summed(x): ...", "the code of summed (2 lines)"),
        ("x = 1", "the code (1 line)"),
        ("%matplotlib inline", "the code (1 line)"),
    ],
)
def test_a_folded_cell_says_what_is_in_it(source, shown):
    assert folded.contents(source) == shown


def page(repository_name):
    config = SimpleNamespace(book_repository=repository_name, book_commit="abc123")
    titles = {"book/eps": SimpleNamespace(astext=lambda: "Where eps stands")}
    app = SimpleNamespace(config=config, env=SimpleNamespace(titles=titles))
    context = {"theme_extra_footer": "Text CC BY 4.0."}
    repository.report_an_error(app, "book/eps", "page.html", context, object())
    return context["theme_extra_footer"]


def test_the_erratum_form_opens_with_page_and_commit():
    footer = page("owner/name")
    address = footer.split('"')[1].replace("&amp;", "&")
    assert address.startswith("https://github.com/owner/name/issues/new?")
    fields = parse_qs(urlsplit(address).query)
    assert fields["page"] == ["Where eps stands (book/eps)"]
    assert fields["commit"] == ["abc123"]
    assert fields["template"] == ["erratum.yml"]


def test_without_a_repository_there_is_no_link():
    assert page("") == "Text CC BY 4.0."
