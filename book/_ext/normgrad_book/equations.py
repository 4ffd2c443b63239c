"""The {equation} directive: a numbered equation rendered from the very object that is proved."""

from __future__ import annotations

import re
from dataclasses import replace

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.directives.patches import MathDirective

from .derived import number_of

SHEET = "book/formula_sheet"
# An equation that a docstring names.
NAMED = re.compile(r"\{eq\}`([^`]+)`")


def registered(label):
    """The registered equation or formula with this label; ValueError when there is none."""
    from normgrad.ledger.formulas import formulas
    from normgrad.symbolic import equation

    return formulas()[label] if label in formulas() else equation(label)


class Equation(MathDirective):
    """``{equation} label``: what ``{math}`` with that ``:label:`` would show, taken from normgrad.symbolic.

    ``:unnumbered:`` shows the equation again, elsewhere, without number and label; ``:ends:`` does so too, and leaves
    out what stands between the first and the last expression of a chain. ``:wide:`` gives the left side its own line.
    """

    has_content = False
    required_arguments = 1
    optional_arguments = 0
    final_argument_whitespace = False
    option_spec = {name: directives.flag for name in ("unnumbered", "ends", "wide")}
    option_spec |= {"class": directives.class_option}

    def run(self):
        label = self.arguments.pop()
        try:
            equation = registered(label)
        except ValueError as error:
            # A warning alone would be forgotten by the next build, which does not read this page again.
            self.env.get_domain("ledger").note_problem(
                self.env.docname, self.lineno, str(error)
            )
            return []
        shown = equation
        if "ends" in self.options:
            shown = equation.ends()
        if "wide" in self.options:
            shown = replace(shown, wide=True)
        source, _ = self.get_source_info()
        self.content = StringList(shown.latex().splitlines(), source=source)
        if not {"unnumbered", "ends"} & set(self.options):
            self.options["label"] = label
        result = super().run()
        told = {"claim": equation.claim, "kind": equation.kind, "shows": label}
        result[-1].attributes.update(told)
        if self.env.docname == SHEET:
            result[-1]["ids"].append(nodes.make_id(f"sheet-{label}"))
        return result


def number_listings(app, doctree, docname):
    """Code that is shown names equations by their labels; a reader knows them by their numbers."""
    number = number_of(app.env)
    for node in list(doctree.findall(nodes.literal_block)):
        text = NAMED.sub(
            lambda match: f"({number(match[1]) or match[1]})", node.astext()
        )
        if text != node.astext():
            node.rawsource, node[:] = text, [nodes.Text(text)]


def setup(app):
    app.add_directive("equation", Equation)
    app.connect("doctree-resolved", number_listings)
