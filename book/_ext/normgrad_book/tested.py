"""The {test} role: a test of this repository by its name, checked to exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole


@cache
def functions(path: Path) -> frozenset[str]:
    """The names of the test functions in a file; none where there is no such file."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    )


class Test(SphinxRole):
    """``{test}`file.py::function` ``: the function's name, linked to its file where the repository is known."""

    def run(self):
        file, _, name = self.text.partition("::")
        if name not in functions(Path(self.env.srcdir) / "tests" / file):
            message = f"there is no test {self.text}"
            self.env.get_domain("ledger").note_problem(
                self.env.docname, self.lineno, message
            )
            return [], []
        shown, repository = (
            nodes.literal("", name.removeprefix("test_").replace("_", " ")),
            self.config.book_repository,
        )
        if not repository:
            return [shown], []
        commit = self.config.book_commit or self.config.book_branch
        uri = f"https://github.com/{repository}/blob/{commit}/tests/{file}"
        return [nodes.reference("", "", shown, refuri=uri, reftitle=self.text)], []


def setup(app):
    app.add_role("test", Test())
