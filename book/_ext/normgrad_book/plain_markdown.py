"""A page's MyST as the plain Markdown that Jupyter and Colab show.

Whatever has no plain form is an error that names the page, so that no directive reaches readers as raw text.
"""

from __future__ import annotations

import base64
import mimetypes
import posixpath
import re
import textwrap
from pathlib import Path

from docutils import nodes
from sphinx.directives.code import LiteralIncludeReader
from sphinx.errors import ExtensionError

from .citations import cited
from .equations import NAMED, registered
from .reading_time import plain_times

FENCED = re.compile(
    r"^(?P<indent> *)(?P<mark>`{3,}|:{3,})(?:\{(?P<name>[\w:.-]+)\})? *(?P<arg>[^\n]*)\n"
    r"(?P<body>.*?)^ *(?P=mark) *$",
    re.M | re.S,
)
ROLE = re.compile(r"\{(?P<name>[\w:.-]+)\}`(?P<text>[^`]+)`")
LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<page>[^()\s#:]*\.md)?(?P<id>#[^()\s]+)?\)"
)
LABELLED = re.compile(r"(?P<text>[^\n$]*)\$\$ *\((?P<label>[\w:.-]+)\) *$", re.M)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.S)
TARGET_OR_COMMENT = re.compile(r"^(?:\([\w:.-]+\)=|% .*) *$\n?", re.M)
OPTION = re.compile(r":([\w-]+):\s*(.*)")

# Boxes with a title of their own, and with a number.
ADMONITIONS = ("note", "tip", "hint", "warning", "important", "seealso", "prf:proof")
NUMBERED = ("exercise", "prf:theorem", "prf:lemma", "prf:proposition", "prf:corollary")


class PlainMarkdown:
    """Converts the text of one page; numbers and titles come from the finished build."""

    def __init__(self, app, docname):
        self.app, self.env, self.docname = app, app.env, docname

    def error(self, message):
        return ExtensionError(f"{self.docname}.md: {message}")

    # -- what a label stands for ------------------------------------------------------

    def find(self, label):
        """(docname, kind, id, number) of an equation, figure, theorem or exercise; a section has its title instead."""
        ids = {label, nodes.make_id(label), nodes.make_id(f"equation-{label}")}
        for docname, kinds in self.env.toc_fignumbers.items():
            for kind, numbers in kinds.items():
                for id_ in ids & numbers.keys():
                    return docname, kind, id_, ".".join(map(str, numbers[id_]))
        targets = self.env.get_domain("std")
        if label not in targets.anonlabels:
            raise self.error(f"nothing is labelled {label!r}")
        docname, id_ = targets.anonlabels[label]
        titles = {name: title for name, (_, _, title) in targets.labels.items()}
        return docname, "section", id_, titles.get(label, "")

    def link(self, text, docname, id_=""):
        """A link into the site, or the text alone where the site's address is unknown."""
        base = self.app.config.html_baseurl.rstrip("/")
        uri = self.app.builder.get_target_uri(docname) + (f"#{id_}" if id_ else "")
        return f"[{text}]({base}/{uri})" if base else text

    def link_to_page(self, text, target, id_=""):
        """A link to a page by its path from this one; its title where there is no text."""
        folder, path = posixpath.dirname(self.docname), target.removesuffix(".md")
        docname = posixpath.normpath(posixpath.join(folder, path))
        return self.link(text or self.env.titles[docname].astext(), docname, id_)

    # -- text ----------------------------------------------------------------------------

    def reference(self, name, title, label):
        docname, kind, id_, number = self.find(label)
        if name == "eq":
            shown = f"({number})"
        elif kind == "section":
            shown = title or number
        else:
            shown = title.replace("%s", number) or f"{kind.capitalize()} {number}"
        return self.link(shown, docname, id_)

    def role(self, role):
        name, text = role["name"], role["text"]
        titled = re.fullmatch(r"(.*?)\s*<([^<>]+)>", text, re.S)
        title, target = titled.groups() if titled else ("", text)
        match name.split(":"):
            case ["eq" | "ref" | "numref"] | ["prf", "ref"]:
                return self.reference(name, title, target)
            case ["doc"]:
                return self.link_to_page(title, target)
            case ["cite", "p"]:
                return cited(self.env, text)
            case ["py", _]:
                return f"`{title or target.lstrip('~!')}`"
            case ["test"]:
                return f"`tests/{text}`"
            case ["printed"]:
                return title or target
        raise self.error(f"no plain form of the role {{{name}}}")

    def markdown_link(self, match):
        """[text](page.md#section) and [](#label)."""
        text, page, id_ = match["text"], match["page"], (match["id"] or "")[1:]
        if page:
            return self.link_to_page(text, page, id_)
        return self.reference("ref", text, id_) if id_ else match[0]

    def inline(self, text):
        def tagged(match):
            return f"{match['text']}\\tag{{{self.find(match['label'])[3]}}}\n$$"

        text = LABELLED.sub(tagged, TARGET_OR_COMMENT.sub("", text))
        return LINK.sub(self.markdown_link, ROLE.sub(self.role, text))

    # -- directives ----------------------------------------------------------------------

    def caption(self, name, text):
        number = f" {self.find(name)[3]}" if name else ""
        return f"*Figure{number}.* {self.convert(text)}".strip()

    def quote(self, title, text):
        """A block quote. Jupyter takes formulas out before it reads the Markdown, so that a ">" at the start of a
        formula's second line would become part of the formula: displays stand in one line here."""
        plain = DISPLAY.sub(
            lambda match: f"$$ {' '.join(match[1].split())} $$", self.convert(text)
        )
        lines = f"**{title}.**\n\n{plain}".split("\n")
        return "\n".join(f"> {line}".rstrip() for line in lines)

    def folded(self, title, inner):
        return f"<details>\n<summary>{title}</summary>\n\n{self.convert(inner)}\n\n</details>"

    def equation(self, label, options):
        statement = registered(label)
        if "ends" in options:
            statement = statement.ends()
        lines = ["$$", statement.latex(), "$$"]
        if not {"unnumbered", "ends"} & options.keys():
            lines.insert(2, f"\\tag{{{self.find(label)[3]}}}")
        return "\n".join(lines)

    def figure(self, target, options, inner):
        """The picture itself, so that the notebook needs no other file, and its caption."""
        path = Path(self.env.relfn2path(target, self.docname)[1])
        kind = mimetypes.guess_type(path.name)[0]
        data = base64.b64encode(path.read_bytes()).decode()
        image = f"![{options.get('alt', '')}](data:{kind};base64,{data})"
        return f"{image}\n\n{self.caption(options.get('name'), inner)}"

    def excerpt(self, target, options):
        """The lines of a file that literalinclude shows."""
        path = self.env.relfn2path(target, self.docname)[1]
        if "dedent" in options:
            options["dedent"] = int(options["dedent"] or 0) or None
        text, _ = LiteralIncludeReader(path, options, self.app.config).read()
        text = NAMED.sub(lambda match: f"({self.find(match[1])[3]})", text)
        title = f"*{options['caption']}*\n\n" if "caption" in options else ""
        return f"{title}```python\n{text.rstrip()}\n```"

    def directive(self, name, arg, body):
        options, inner = split_options(body)
        title = name.removeprefix("prf:").capitalize()
        match name:
            case "equation":
                return self.equation(arg, options)
            case "figure":
                return self.figure(arg, options, inner)
            case "literalinclude":
                return self.excerpt(arg, options)
            case "code-block":
                return f"```{arg}\n{inner}\n```"
            case "reading-times":
                return plain_times(self.env)
            case "solution":
                number = self.find(arg)[3]
                return self.folded(f"Solution to exercise {number}", inner)
            case "dropdown":
                return self.folded(self.inline(arg), inner)
            case "grid" | "div":
                return self.convert(inner)
            case "grid-item-card":
                return f"**{self.inline(arg)}**\n\n{self.convert(inner)}"
            case "admonition":
                return self.quote(self.inline(arg), inner)
        if name in ADMONITIONS:
            return self.quote(title, inner)
        if name in NUMBERED:
            title += f" {self.find(options['label'])[3]}"
            if arg:
                title += f" ({self.inline(arg)})"
            return self.quote(title, inner)
        raise self.error(f"no plain form of the directive {{{name}}}")

    def fenced(self, match):
        """What stands between two fences: a directive, or code, which stays as it is."""
        if not match["name"]:
            return match[0]
        indent = match["indent"]
        body = [line.removeprefix(indent) for line in match["body"].split("\n")]
        plain = self.directive(match["name"], match["arg"].strip(), body)
        return textwrap.indent(plain, indent)

    def convert(self, text):
        """A text with its directives; empty lines part the blocks, whether or not they did in MyST."""
        blocks, end = [], 0
        for match in FENCED.finditer(text):
            blocks += [self.inline(text[end : match.start()]), self.fenced(match)]
            end = match.end()
        blocks.append(self.inline(text[end:]))
        return "\n\n".join(block.strip("\n") for block in blocks if block.strip())


def split_options(lines):
    """({option: text}, the other lines as a text) of a directive's lines, which begin with :name: for each option."""
    options = {}
    for number, line in enumerate(lines):
        option = OPTION.fullmatch(line)
        if not option:
            return options, "\n".join(lines[number:]).strip("\n")
        options[option[1]] = option[2].strip()
    return options, ""
