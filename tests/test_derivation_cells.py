"""The derivations in the book's cells: none survives a change."""

import random

import page_cells
import pytest
from page_cells import derivations, deriving_pages, execute, signs, turned
from sympy import evaluate
from test_symbolic_honesty import refuted_steps

from normgrad.symbolic import NotProved

page_cells_of = page_cells.page_cells.of_page
deriving = pytest.mark.parametrize("page", deriving_pages(), ids=lambda page: page.stem)


@pytest.mark.sampled(of=5)
@deriving
def test_a_changed_coefficient_is_refuted_in_every_step_of_a_cell(page):
    """As for the registered equations: whichever term of a right-hand side is changed, its step is refuted."""
    for derived in derivations(page):
        if hasattr(derived.equation, "recurrences"):
            continue  # inductions: tests/test_residual.py changes their lines
        with evaluate(True):
            refuted_steps(derived.equation, random.Random(derived.label))


@pytest.mark.sampled(of=5)
@deriving
def test_a_sign_turned_in_a_derivation_cell_names_the_label(page):
    """The last minus of each cell that derives; a step that is false, or an end that is not the statement's."""
    cells = page_cells_of(page)
    unnoticed = []
    with page_cells.as_on_a_page() as namespace, page_cells.recorded() as outputs:
        for cell in page_cells.page_cells.needed(cells, page_cells.of_the_book):
            calls = [
                call for call in cell.plain_calls("derive") if page_cells.label_of(call)
            ]
            if page_cells.of_the_book(cell) and calls and signs(calls[-1]):
                unnoticed += _turn_in(
                    cell, calls[-1], page_cells.copied(namespace), outputs
                )
            execute(cell, namespace)
    assert not unnoticed


def _turn_in(cell, call, namespace, outputs):
    """What goes unnoticed when a minus within the call is turned."""
    inside = {page_cells.position(node) for node in signs(call)}
    which = max(
        n
        for n, node in enumerate(signs(cell.tree))
        if page_cells.position(node) in inside
    )
    source, was = turned(cell, which)
    label = page_cells.label_of(call)
    before = len(outputs)
    try:
        execute(cell, namespace, source)
    except NotProved as refusal:
        return [] if label in str(refusal) else [f"{label}: {refusal}"]
    new = [output for output in outputs[before:] if output.label == label]
    if any(output.differs for output in new):
        return []
    # a step that is true with either sign, as where a sum is 0 anyway; the other witness has to agree
    return [] if new[-1].equation.check_fixed((2, 3)) else [f"{label}: {was} turned"]
