"""The {test} role: a test of this repository by its name, checked to exist."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole


class Test(SphinxRole):
    """``{test}`file.py::function` ``: the function's name, linked to its file where the repository is known."""

    def run(self):
        file, _, name = self.text.partition("::")
        path = Path(self.env.srcdir) / "tests" / file
        text = path.read_text(encoding="utf8") if path.is_file() else ""
        if f"\ndef {name}(" not in text:
            message = f"there is no test {self.text}"
            self.env.get_domain("ledger").note_problem(
                self.env.docname, self.lineno, message
            )
            return [], []
        shown = nodes.literal("", name.removeprefix("test_").replace("_", " "))
        repository = self.config.book_repository
        if not repository:
            return [shown], []
        commit = self.config.book_commit or self.config.book_branch
        uri = f"https://github.com/{repository}/blob/{commit}/tests/{file}"
        return [nodes.reference("", "", shown, refuri=uri, reftitle=self.text)], []


def setup(app):
    app.add_role("test", Test())
