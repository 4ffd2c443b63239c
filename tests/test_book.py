"""What the book's sources must hold, checked without building it."""

import ast
import re
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="the book's packages are not installed")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book/_ext"))

from page_cells import broken_rules, from_hidden  # noqa: E402

from normgrad_book import cells  # noqa: E402

PAGES = sorted((ROOT / "book").glob("*.md"))
IDS = [page.stem for page in PAGES]
TEXT = {page: page.read_text(encoding="utf8") for page in PAGES}


each_page = pytest.mark.parametrize("page", PAGES, ids=IDS)


def registered():
    formulas = import_module("normgrad.ledger.formulas").formulas()
    return import_module("normgrad.symbolic").equations() | formulas


def typed_labels(text):
    """The labels of equations that are written by hand."""
    return re.findall(r"\$\$ *\(([\w:.-]+)\) *$", text, re.M) + re.findall(
        r"^```\{math\}\n(?::[^\n]*\n)*?:label: *(\S+)", text, re.M
    )


def test_every_page_is_in_the_table_of_contents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    sections = [
        section for chapter in chapters for section in chapter.get("sections", ())
    ]
    listed = [toc["root"], *(entry["file"] for entry in chapters + sections)]
    assert sorted(listed) == [f"book/{page.stem}" for page in PAGES]


def canonical(name):
    return re.sub("[-_.]+", "-", name).lower()


def test_lock_is_complete():
    """Whatever the pinned packages need here is pinned as well, but for torch's CUDA libraries, which torch pins."""
    requirements = pytest.importorskip("packaging.requirements")
    lines = [
        line
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if "==" in line
    ]
    pinned = {canonical(line.split("==")[0]) for line in lines}
    for name in sorted(
        pinned - {"triton"}
    ):  # triton needs nothing and is not everywhere
        needs = [
            requirements.Requirement(text) for text in metadata.requires(name) or ()
        ]
        needs = [
            need
            for need in needs
            if need.marker is None or need.marker.evaluate({"extra": ""})
        ]
        missing = {canonical(need.name) for need in needs} - pinned
        assert not [
            need for need in missing if not need.startswith(("cuda-", "nvidia-"))
        ], name


def test_no_notebook_is_stored():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.ipynb"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert listed.stdout == ""


@each_page
def test_equations_are_registered(page):
    labels = re.findall(r"^```\{equation\} *(\S+)", TEXT[page], re.M)
    assert not [label for label in labels if label not in registered()]


@each_page
def test_latex_is_plain(page):
    """No macros, which notebooks lack; no `\\top`, which loses its bar as a superscript; no numbers by hand."""
    assert not re.findall(
        r"\\(?:top|newcommand|renewcommand|def|tag|label|DeclareMathOperator)\b",
        TEXT[page],
    )
    assert not re.findall(
        r"^\\begin\{(?:align|equation|gather|eqnarray)\}", TEXT[page], re.M
    )


@each_page
def test_visible_cells_can_be_read_and_changed(page):
    """They use nothing from hidden ones, fit into 80 columns, and hold one statement a line."""
    assert broken_rules(cells.of_page(page)) == []


def cell(source, place=0, tags=()):
    return cells.Cell(place, source, frozenset(tags))


def test_what_cells_define_and_use():
    parsed = cell(
        "import numpy as np\nx = a[0]\nfor n in range(3):\n    x += n\ndef f(y):\n    return y + b\nlayer[x] = c"
    )
    assert parsed.defines == {"np", "x", "n", "f"} and parsed.uses == {
        "a",
        "b",
        "c",
        "layer",
    }
    assert parsed.changes == {"layer"}
    assert cell("x = x + 1").uses == {"x"} and cell(
        "total = sum(n for n in numbers)"
    ).uses == {"numbers"}
    assert cell("%pip install a\nx = 1").defines == {"x"}


def test_cells_that_others_stand_on():
    page = [
        cell("a = 1", 0),
        cell("b = 2", 1),
        cell("d = {}\nd[a] = 1", 2),
        cell("d[b] = 2", 3),
        cell("print(d)", 4),
    ]
    assert [
        cell.place for cell in cells.needed(page, lambda cell: cell.place == 4)
    ] == [0, 1, 2, 3, 4]
    assert [
        cell.place for cell in cells.needed(page, lambda cell: cell.place == 2)
    ] == [0, 2]
    hidden = [cell("a = 1", 0, ["hide-cell"]), cell("b = a", 1)]
    assert [(cell.place, name) for cell, name in from_hidden(hidden)] == [(1, "a")]
    assert from_hidden([*hidden, cell("a = 2", 2), cell("c = a", 3)])[1:] == []


@each_page
def test_figures_have_alternative_text(page):
    """The browser tests look at every picture there is; this names the cell."""
    for cell in cells.of_page(page):
        shown = cell.options.get("mystnb", {})
        assert not {"image", "figure"} & set(shown) or shown.get("image", {}).get(
            "alt"
        ), cell.source
    for body in re.findall(
        r"^[`:]{3,}\{(?:figure|image)\}.*?\n(.*?)^[`:]{3,}$", TEXT[page], re.M | re.S
    ):
        assert re.search(r"^:alt: *\S", body, re.M), body
    assert not re.findall(r"!\[\]\(", TEXT[page])


def excerpts():
    directive = re.compile(
        r"^[`:]{3,}\{literalinclude\} *(\S+)\n((?::[^\n]*\n)*)", re.M
    )
    for page in PAGES:
        for target, options in directive.findall(TEXT[page]):
            yield pytest.param(
                page.parent / target, options, id=f"{page.stem}-{Path(target).name}"
            )


def definitions(tree, prefix=""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + node.name
            yield from definitions(node, f"{prefix}{node.name}.")


@pytest.mark.parametrize("path, options", list(excerpts()))
def test_shown_code_exists(path, options):
    text = path.read_text(encoding="utf8")
    if shown := re.search(r"^:pyobject: *(\S+)", options, re.M):
        assert shown[1] in definitions(ast.parse(text))
    for marker in re.findall(
        r"^:(?:start-after|start-at|end-before|end-at): *(.+)$", options, re.M
    ):
        assert marker.strip() in text


def targets():
    for page in PAGES:
        yield from sorted(
            set(re.findall(r"\{py:\w+\}`(?:[^`<]*<)?[~!]?([\w.]+)>?`", TEXT[page]))
        )


def test_named_objects_exist():
    for target in targets():
        find(target)


def find(target):
    module, names = target.split("."), []
    while module:
        try:
            value = import_module(".".join(module))
            break
        except ModuleNotFoundError:
            names.insert(0, module.pop())
    assert module, target
    for name in names:
        value = getattr(value, name)


def test_docstrings_cite_equations_that_exist():
    labels = {
        *registered(),
        *(label for text in TEXT.values() for label in typed_labels(text)),
    }
    for path in sorted((ROOT / "src").rglob("*.py")):
        cited = re.findall(r"\{eq\}`([^`]+)`", path.read_text(encoding="utf8"))
        assert not [label for label in cited if label not in labels], path.name


def test_every_registered_equation_is_shown_once():
    shown = re.findall(r"^```\{equation\} *(\S+)\n```", "\n".join(TEXT.values()), re.M)
    for page in PAGES:
        shown += [label for cell in cells.of_page(page) for label in cell.labels]
    assert sorted(shown) == sorted(registered())
