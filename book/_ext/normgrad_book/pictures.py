"""Every picture has its place before it has come, so that a page does not move under its reader."""

from __future__ import annotations

import re
from pathlib import Path

PICTURE = re.compile(
    r'(<img[^>]* src="[^"]*/(?P<name>[^"/]+\.svg)" style="width: [\d.]+%;)(?=")'
)
SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def reserve(app, pagename, templatename, context, doctree):
    """The proportions of each drawing, from its file, into its style."""
    files = {
        name: Path(app.srcdir, source) for source, name in app.builder.images.items()
    }

    def sized(match):
        size = SIZE.search(files[match["name"]].read_text(encoding="utf8"))
        return f"{match[1]} aspect-ratio: {size[1]} / {size[2]};" if size else match[1]

    context["body"] = PICTURE.sub(sized, context.get("body", ""))


def setup(app):
    app.connect("html-page-context", reserve)
