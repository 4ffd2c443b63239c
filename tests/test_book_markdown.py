"""MyST as the plain Markdown of the notebooks, construct by construct, on a page of a book that is not built."""

from types import SimpleNamespace

import pytest

pytest.importorskip("myst_nb", reason="the book's packages are not installed")

from sphinx.errors import ExtensionError  # noqa: E402

from normgrad_book.plain_markdown import PlainMarkdown  # noqa: E402

SITE = "https://someone.github.io/book"


class Title(str):
    astext = str.__str__


@pytest.fixture
def page(tmp_path):
    """The page book/here of a book with one of everything that can be referred to."""
    standard = SimpleNamespace(
        anonlabels={"sec": ("book/there", "a-section")},
        labels={"sec": ("", "", "A section")},
    )
    person = SimpleNamespace(prelast_names=[], last_names=["Ba"])
    works = {
        "ba": SimpleNamespace(
            persons={"author": [person] * 3}, fields={"year": "2016", "doi": "10/x"}
        )
    }
    cite = SimpleNamespace(bibdata=SimpleNamespace(data=SimpleNamespace(entries=works)))
    numbers = {
        "displaymath": {"equation-dx": (3, 1)},
        "figure": {"fig-a": (3, 2)},
        "theorem": {"thm": (3, 3)},
    }
    env = SimpleNamespace(
        toc_fignumbers={"book/there": {**numbers, "exercise": {"ex": (3, 4)}}},
        toc_secnumbers={},
        titles={"book/there": Title("There")},
        get_domain={"std": standard, "cite": cite}.get,
        relfn2path=lambda name, docname: (name, str(tmp_path / name)),
    )
    builder = SimpleNamespace(get_target_uri=lambda docname: f"{docname}.html")
    config = SimpleNamespace(html_baseurl=SITE + "/", source_encoding="utf-8")
    return PlainMarkdown(
        SimpleNamespace(env=env, builder=builder, config=config, outdir=tmp_path),
        "book/here",
    )


@pytest.mark.parametrize(
    "myst, plain",
    [
        ("{eq}`dx`", f"[(3.1)]({SITE}/book/there.html#equation-dx)"),
        ("{numref}`fig-a`", f"[Figure 3.2]({SITE}/book/there.html#fig-a)"),
        ("{numref}`Fig. %s <fig-a>`", f"[Fig. 3.2]({SITE}/book/there.html#fig-a)"),
        ("{prf:ref}`thm`", f"[Theorem 3.3]({SITE}/book/there.html#thm)"),
        ("{ref}`sec`", f"[A section]({SITE}/book/there.html#a-section)"),
        ("{ref}`that <sec>`", f"[that]({SITE}/book/there.html#a-section)"),
        ("{doc}`there`", f"[There]({SITE}/book/there.html)"),
        ("[this](there.md#a)", f"[this]({SITE}/book/there.html#a)"),
        ("[](#sec)", f"[A section]({SITE}/book/there.html#a-section)"),
        ("[out](https://example.org/a#b)", "[out](https://example.org/a#b)"),
        ("{cite:p}`ba`", "([Ba et al., 2016](https://doi.org/10/x))"),
        ("{py:func}`~normgrad.layer_norm`", "`normgrad.layer_norm`"),
        ("(target)=\n## Head", "## Head"),
        ("% a comment\nText", "Text"),
        ("$$\na\n$$ (dx)\n\nText", "$$\na\n\\tag{3.1}\n$$\n\nText"),
        ("$$ a $$ (dx)", "$$ a \\tag{3.1}\n$$"),
        ("{test}`test_there.py::test_this`", "`tests/test_there.py::test_this`"),
        ("{printed}`93` and {printed}`93 <naive: 93>`", "93 and 93"),
        ("```python\n{eq}`raw`\n```", "```python\n{eq}`raw`\n```"),
        (
            "- item\n\n  ```{code-block} python\n  a\n  ```\n- next",
            "- item\n\n  ```python\n  a\n  ```\n\n- next",
        ),
        (
            ":::{note}\nA {eq}`dx`.\n:::",
            f"> **Note.**\n>\n> A [(3.1)]({SITE}/book/there.html#equation-dx).",
        ),
        (
            ":::{prf:theorem} Rank\n:label: thm\nIt is 1.\n:::",
            "> **Theorem 3.3 (Rank).**\n>\n> It is 1.",
        ),
        (
            ":::{prf:theorem} Rank\n:label: thm\n$$\na \\\\\nb\n$$ (dx)\n\nIt is 1.\n:::",
            "> **Theorem 3.3 (Rank).**\n>\n> $$ a \\\\ b \\tag{3.1} $$\n>\n> It is 1.",
        ),
        (":::{prf:proof}\nShort.\n:::", "> **Proof.**\n>\n> Short."),
        (
            "::::{grid} 2\n:::{grid-item-card} A\na\n:::\n:::{grid-item-card} B\nb\n:::\n::::",
            "**A**\n\na\n\n**B**\n\nb",
        ),
        (
            "```{solution} ex\n:class: dropdown\nS.\n```",
            "<details>\n<summary>Solution to exercise 3.4</summary>\n\nS.\n\n</details>",
        ),
    ],
)
def test_plain_form(page, myst, plain):
    assert page.convert(myst) == plain


@pytest.mark.parametrize(
    "myst, message",
    [
        ("```{list-table}\n* - a\n```", "no plain form of the directive {list-table}"),
        ("{abbr}`a`", "no plain form of the role {abbr}"),
        ("{eq}`nonesuch`", "nothing is labelled 'nonesuch'"),
        ("{cite:p}`nonesuch`", "no work is listed under 'nonesuch'"),
    ],
)
def test_what_has_no_plain_form_is_an_error(page, myst, message):
    with pytest.raises(ExtensionError, match=message):
        page.convert(myst)
