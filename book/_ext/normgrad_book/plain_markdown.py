"""A page's MyST as the plain Markdown that Jupyter and Colab show.

Whatever has no plain form is an error that names the page, so that no directive reaches readers as raw text.
"""

from __future__ import annotations

import base64
import json
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

FENCE = re.compile(
    r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w:.-]+)\})?\s*(?P<arg>.*)$"
)
ROLE = re.compile(r"\{(?P<name>[\w:.-]+)\}`(?P<text>[^`]+)`")
LINK = re.compile(
    r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<page>[^()\s#:]*\.md)?(?P<id>#[^()\s]+)?\)"
)
LABELLED = re.compile(r"(?P<text>[^\n$]*)\$\$ *\((?P<label>[\w:.-]+)\) *$", re.M)
TARGET = re.compile(r"^\([\w:.-]+\)= *$\n?", re.M)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.S)
COMMENT = re.compile(r"^% .*$\n?", re.M)
OPTION = re.compile(r"^:([\w-]+):\s*(.*)$")

ADMONITIONS = (
    "note",
    "tip",
    "hint",
    "warning",
    "caution",
    "attention",
    "important",
    "danger",
    "error",
    "seealso",
)
NUMBERED = (
    "theorem",
    "lemma",
    "proposition",
    "corollary",
    "definition",
    "proof",
    "remark",
    "example",
    "algorithm",
)
NUMBERED += (
    "axiom",
    "conjecture",
    "criterion",
    "observation",
    "property",
    "assumption",
    "exercise",
)
TITLED = ("tab-item", "grid-item-card", "grid-item", "card", "dropdown")


class PlainMarkdown:
    """Converts the text of one page; numbers and titles come from the finished build."""

    def __init__(self, app, docname):
        self.app, self.env, self.docname = app, app.env, docname
        glue = Path(app.outdir).parent / "jupyter_execute" / f"{docname}.glue.json"
        self.glue = json.loads(glue.read_text(encoding="utf8")) if glue.exists() else {}

    def error(self, message):
        return ExtensionError(f"{self.docname}.md: {message}")

    # -- what a label stands for ------------------------------------------------------

    def find(self, label):
        """(docname, kind, id, number) of an equation, figure, theorem, exercise or section."""
        wanted = (label, nodes.make_id(label), nodes.make_id(f"equation-{label}"))
        for docname, kinds in self.env.toc_fignumbers.items():
            for kind, ids in kinds.items():
                for id_ in wanted:
                    if id_ in ids:
                        return docname, kind, id_, ".".join(map(str, ids[id_]))
        docname, id_, *_ = self.env.get_domain("std").anonlabels.get(
            label, (None, None)
        )
        if docname is None:
            raise self.error(f"nothing is labelled {label!r}")
        number = self.env.toc_secnumbers.get(docname, {}).get("#" + id_, ())
        return docname, "section", id_, ".".join(map(str, number))

    def number(self, label):
        return self.find(label)[3] if label else ""

    def link(self, text, docname, id_=""):
        """A link into the site, or the text alone where the site's address is unknown."""
        base = self.app.config.html_baseurl.rstrip("/")
        uri = self.app.builder.get_target_uri(docname) + (f"#{id_}" if id_ else "")
        return f"[{text}]({base}/{uri})" if base else text

    def page(self, target):
        return posixpath.normpath(
            posixpath.join(posixpath.dirname(self.docname), target.removesuffix(".md"))
        )

    def title(self, docname):
        return self.env.titles[docname].astext()

    # -- text ----------------------------------------------------------------------------

    def reference(self, name, title, label):
        docname, kind, id_, number = self.find(label)
        if name == "eq":
            return self.link(f"({number})", docname, id_)
        if kind == "section" and name == "ref":
            shown = title or self.env.get_domain("std").labels[label][2]
        elif title:
            shown = title.replace("%s", number).replace("{number}", number)
        else:
            shown = f"{kind.capitalize()} {number}".strip()
        return self.link(shown, docname, id_)

    def role(self, match):
        name, text = match["name"], match["text"]
        titled = re.fullmatch(r"(.*?)\s*<([^<>]+)>", text, re.S)
        title, target = titled.groups() if titled else ("", text)
        if name in ("eq", "ref", "numref", "prf:ref"):
            return self.reference(name, title, target)
        if name == "doc":
            return self.link(title or self.title(self.page(target)), self.page(target))
        if name == "math":
            return f"${text}$"
        if name == "glue:text":
            key, _, form = text.partition(":")
            value = self.glue[key]["data"]["text/plain"]
            return format(float(value), form) if form else value.strip("'")
        if name.startswith("cite"):
            return cited(self.env, name, text)
        if name.startswith("py:"):
            return f"`{title or target.removeprefix('~').removeprefix('!')}`"
        if name == "test":
            return f"`tests/{text}`"
        if name in ("kbd", "code", "file", "command"):
            return f"`{text}`"
        raise self.error(f"no plain form of the role {{{name}}}")

    def markdown_link(self, match):
        """[text](page.md#section) and [](#label)."""
        text, page, id_ = match["text"], match["page"], (match["id"] or "")[1:]
        if page:
            return self.link(text or self.title(self.page(page)), self.page(page), id_)
        if not id_:
            return match[0]
        return self.reference("ref", text, id_)

    def inline(self, text):
        text = COMMENT.sub("", TARGET.sub("", text))
        text = LABELLED.sub(
            lambda found: f"{found['text']}\\tag{{{self.number(found['label'])}}}\n$$",
            text,
        )
        return LINK.sub(self.markdown_link, ROLE.sub(self.role, text))

    # -- directives ----------------------------------------------------------------------

    def math(self, latex, label):
        if "\\\\" in latex and "\\begin" not in latex:
            latex = f"\\begin{{aligned}}\n{latex}\n\\end{{aligned}}"
        return "\n".join(
            ["$$", latex, *([f"\\tag{{{self.number(label)}}}"] if label else []), "$$"]
        )

    def caption(self, name, text):
        return f"*Figure{' ' * bool(name)}{self.number(name)}.* {self.convert(text)}".strip()

    def quote(self, title, text):
        """A block quote. Jupyter takes formulas out before it reads the Markdown, so that a ">" at the start of a
        formula's second line would become part of the formula: displays stand in one line here."""
        plain = DISPLAY.sub(
            lambda found: f"$$ {' '.join(found[1].split())} $$", self.convert(text)
        )
        lines = ([f"**{title}.**", ""] if title else []) + plain.split("\n")
        return "\n".join(f"> {line}".rstrip() for line in lines)

    def image(self, target, alt):
        """The picture itself, so that the notebook needs no other file."""
        path = Path(self.env.relfn2path(target, self.docname)[1])
        kind = mimetypes.guess_type(path.name)[0]
        return f"![{alt}](data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()})"

    def excerpt(self, target, options):
        """The lines of a file that literalinclude shows."""
        path = self.env.relfn2path(target, self.docname)[1]
        options = {
            key: int(value) if value.isdigit() else value or None
            for key, value in options.items()
        }
        text, _ = LiteralIncludeReader(path, options, self.app.config).read()
        text = NAMED.sub(lambda found: f"({self.number(found[1])})", text)
        title = f"*{options['caption']}*\n\n" if options.get("caption") else ""
        return f"{title}```{options.get('language', 'python')}\n{text.rstrip()}\n```"

    def solution(self, label, options, inner):
        title = f"Solution to exercise {self.number(label)}"
        if "dropdown" not in options.get("class", ""):
            return self.quote(title, inner)
        return self.folded(title, inner)

    def folded(self, title, inner):
        return f"<details>\n<summary>{title}</summary>\n\n{self.convert(inner)}\n\n</details>"

    def directive(self, name, arg, body):
        options, body = split_options(body)
        inner = "\n".join(body).strip("\n")
        label = options.get("label") or options.get("name")
        kind = name.rpartition(":")[2]
        if name == "math":
            return self.math("\n".join(filter(None, [arg, inner])), label)
        if name == "equation":
            shown = registered(arg).ends() if "ends" in options else registered(arg)
            return self.math(
                shown.latex(), None if {"unnumbered", "ends"} & set(options) else arg
            )
        if name in ("image", "figure"):
            image = self.image(arg, options.get("alt", ""))
            return (
                f"{image}\n\n{self.caption(label, inner)}"
                if name == "figure"
                else image
            )
        if name == "literalinclude":
            return self.excerpt(arg, options)
        if name in ("code", "code-block", "sourcecode"):
            return f"```{arg}\n{inner}\n```"
        if name == "table":
            return "\n\n".join(
                filter(None, [arg and f"*{self.inline(arg)}*", self.convert(inner)])
            )
        if name == "glue:figure":
            return self.caption(label, inner)
        if name == "reading-times":
            return plain_times(self.env.srcdir)
        if kind == "solution":
            return self.solution(arg, options, inner)
        if kind in ("tab-set", "grid", "div"):
            return self.convert(inner)
        if kind == "dropdown" and "open" not in options:
            return self.folded(self.inline(arg), inner)
        if kind in TITLED:
            return (
                f"**{self.inline(arg)}**\n\n{self.convert(inner)}"
                if arg
                else self.convert(inner)
            )
        if kind in NUMBERED:
            number = self.number(label) if kind != "proof" else ""
            title = f"({self.inline(arg)})" if arg else ""
            return self.quote(
                " ".join(filter(None, [kind.capitalize(), number, title])), inner
            )
        if kind in ADMONITIONS:
            return self.quote(kind.capitalize(), "\n".join(filter(None, [arg, inner])))
        if kind in ("admonition", "margin", "sidebar", "topic", "epigraph"):
            return self.quote(self.inline(arg), inner)
        raise self.error(f"no plain form of the directive {{{name}}}")

    def convert(self, text):
        """A text with its directives; empty lines part the blocks, whether or not they did in MyST."""
        blocks, plain, lines, i = [], [], text.split("\n"), 0
        while i < len(lines):
            opened = FENCE.match(lines[i])
            if not opened:
                plain.append(lines[i])
                i += 1
                continue
            end = closing(lines, i, opened["mark"])
            block, indent = "\n".join(lines[i : end + 1]), opened["indent"]
            if opened["name"]:
                body = [line.removeprefix(indent) for line in lines[i + 1 : end]]
                block = textwrap.indent(
                    self.directive(opened["name"], opened["arg"].strip(), body), indent
                )
            blocks += [self.inline("\n".join(plain)), block]
            plain, i = [], end + 1
        blocks.append(self.inline("\n".join(plain)))
        return "\n\n".join(block.strip("\n") for block in blocks if block.strip())


def closing(lines, start, mark):
    """The line that closes the fence opened at start: at least as long, of the same character, and nothing else."""
    for i in range(start + 1, len(lines)):
        stripped = lines[i].strip()
        if len(stripped) >= len(mark) and set(stripped) == {mark[0]}:
            return i
    return len(lines)


def split_options(body):
    """({option: text}, the other lines) of a directive's lines; options as :name: lines or as a --- block."""
    options, rest = {}, list(body)
    if rest and rest[0].strip() == "---":
        end = next(i for i in range(1, len(rest)) if rest[i].strip() == "---")
        block = [re.sub(r"^([\w-]+):", r":\1:", line) for line in rest[1:end]]
        options, rest = (
            {found[1]: found[2] for line in block if (found := OPTION.match(line))},
            rest[end + 1 :],
        )
    while rest and (found := OPTION.match(rest[0])):
        options[found[1]] = found[2].strip()
        rest.pop(0)
    return options, rest
