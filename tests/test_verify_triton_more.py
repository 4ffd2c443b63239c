"""What the reader of Triton says of hints, dtypes, branches and decorators, by verify_triton_more.txt."""

import ast
import importlib
from pathlib import Path

import pytest
from verify_triton import edited_base

from normgrad.verify import norm, verify
from normgrad.verify.__main__ import axes_of
from normgrad.verify.calls import FUNCTIONS, HOMES, Calls, has_function

SHORT = {"F": ("eps, B:", "eps, F, B:"), "T": ("eps, B:", "eps, F: tl.constexpr, B:")}


def edit(text):
    """(what is there, what stands there instead)."""
    text = text.replace("\\n", "\n")
    if text.startswith(">> "):
        return "    tl.store(y", f"    {text[3:]}\n    tl.store(y"
    return SHORT[text] if text in SHORT else tuple(text.split(" => "))


def rows():
    """(its verdict, its line, (kernel, edits, change of the binding), words of the verdict) of each program."""
    kind, path = "", Path(__file__).with_name("verify_triton_more.txt")
    for line in path.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            kind = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            program, _, words = line.partition(" -- ")
            head, _, edits = program.partition(": ")
            base, *bound = head.split(", ")
            pairs = [text.split("=") for text in bound]
            change = {name: ast.literal_eval(value) for name, value in pairs}
            edits = [edit(text) for text in edits.split(" && ")]
            yield kind, line, (base, edits, change), words


@pytest.mark.parametrize(("kind", "line", "program", "words"), list(rows()))
def test_a_program_has_the_verdict_that_it_is_due(kind, line, program, words):
    text, binding, grid, definitions = edited_base(*program)
    if "grid" in binding:
        grid = axes_of(binding.pop("grid"))
    launch = text, binding, grid, definitions
    if kind == "error":
        with pytest.raises(ValueError, match=words):
            verify(*launch, kernel="kernel")
        return
    verdict = verify(*launch, kernel="kernel")
    assert verdict.kind.removesuffix(" for every M and N") == kind, f"{line}: {verdict}"
    assert words in str(verdict)


@pytest.mark.parametrize("home", HOMES)
def test_a_function_that_is_read_is_one_that_triton_has(home):
    pytest.importorskip("triton")
    module = importlib.import_module(home)
    methods = [name[5:] for name in dir(Calls) if name.startswith("call_")]
    names = [name for name in (*FUNCTIONS, *methods) if has_function(home, name)]
    assert names
    assert [name for name in names if not hasattr(module, name)] == []


def test_a_binding_that_is_no_mapping_is_named():
    with pytest.raises(TypeError, match="binding: got None, needs Mapping"):
        verify(edited_base("forward", [], {})[0], None, "rows", norm())
