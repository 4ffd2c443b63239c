"""The package's docstrings, written to be read in the source, as the reST that the API page needs.

They are prose, indented blocks and sections such as ``Args:  x (M, N) the rows``, with `code` in single backticks.
As reST they would be full of stray emphasis and merged lines, so each kind of block is turned into what it means.
"""

from __future__ import annotations

import re
import textwrap

from .equations import NAMED

SECTION = re.compile(
    r"^(Args|Returns|Yields|Raises|Numerics|Shapes|Saves|Notes?|Examples?|Source):(?:\s+|$)"
)
ITEM = re.compile(r"^[*\w, ]+(?::| \()")
FORMULA = re.compile(
    r"^\w+(?:, \w+)* = "
)  # names alone: "Prove lhs = rhs" is a sentence
EQUATION = re.compile(r"\s*" + NAMED.pattern)
BULLET = re.compile(r"^(?:[*-]|\d+\.)\s+")
MODULE = re.compile(r"<module '([\w.]+)' from '[^']*'>")
FACTORY = "<factory>"  # what a dataclass has for a default that is made anew each time
# ``code``, `code` and :role:`target` stay or become code; what is between them is text.
MARKED = re.compile(r"(:[\w:]+:`[^`]+`|``.+?``|`[^`]+`)")
SPECIAL = re.compile(r"([\\*_|])")


def escape(text) -> str:
    """Text in which only code is marked up."""
    parts = MARKED.split(EQUATION.sub(r" :eq:`\1`", text))
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = SPECIAL.sub(r"\\\1", part)
        elif part[0] == "`" and part[1] != "`":
            parts[i] = f"`{part}`"
    return "".join(parts)


def blocks(lines) -> list[tuple[str, list[str]]]:
    """("section" | "code" | "text", lines) of each block; code is what stands indented after an empty line."""
    parts, after_blank = [], True
    for line in lines:
        last = parts[-1][0] if parts else ""
        if not line.strip():
            after_blank = True
            if last == "code":
                parts[-1][1].append("")
            continue
        indented = line.startswith(" ")
        if SECTION.match(line):
            parts.append(("section", [line]))
        elif indented and last == "code":
            parts[-1][1].append(line)
        elif not after_blank and (indented or last == "text"):
            parts[-1][1].append(line)
        else:
            parts.append(("code" if indented else "text", [line]))
        after_blank = False
    return parts


def margin(line) -> int:
    return len(line) - len(line.lstrip())


def section(block) -> list[str]:
    """A field such as :Args: with one line per item, and an item opens with a name and a colon or a shape."""
    opened = SECTION.match(block[0])
    first = " " * opened.end() + block[0][opened.end() :]
    lines = [line for line in [first, *block[1:]] if line.strip()]
    outer, items = min(map(margin, lines), default=0), []
    for line in lines:
        if items and (margin(line) > outer or not ITEM.match(line.strip())):
            items[-1] += " " + line.strip()
        else:
            items.append(line.strip())
    return [f":{opened[1]}:", *(f"    | {escape(item)}" for item in items), ""]


def formulas(block) -> list[str]:
    """Formulas and examples as they are; the equations of the book that they name by {eq}`label` are linked below."""
    code = textwrap.dedent(EQUATION.sub("", "\n".join(block))).rstrip()
    lines = ["::", "", *textwrap.indent(code, "    ").split("\n"), ""]
    links = [f":eq:`{label}`" for line in block for label in EQUATION.findall(line)]
    return [*lines, f"See {', '.join(links)}.", ""] if links else lines


def text(block) -> list[str]:
    """A paragraph, and the list that it holds or leads to."""
    if all(FORMULA.match(line) for line in block):
        return formulas(block)
    lines, margin = [], ""
    for line in map(str.strip, block):
        bullet = BULLET.match(line)
        if bullet:
            lines += ["", f"* {escape(line[bullet.end() :])}"]
            margin = "  "
        else:
            lines.append(margin + escape(line))
    return [*lines, ""]


def convert(lines) -> list[str]:
    """A whole docstring."""
    forms = {"section": section, "code": formulas, "text": text}
    return [line for kind, block in blocks(lines) for line in forms[kind](block)]


def process(app, objtype, name, obj, options, lines):
    lines[:] = convert(lines)


def process_signature(app, objtype, name, obj, options, signature, returns):
    """Default values as Python that can be read again; where one is not, Sphinx cuts the types at their commas.

    A module by its name: its repr holds the path of the machine that built the page.
    """
    return signature and MODULE.sub(r"\1", signature).replace(FACTORY, "..."), returns


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-process-docstring", process)
