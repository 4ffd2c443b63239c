"""The mutants made by machine: each rule makes the change that it names, and only there."""

import ast
import re
from pathlib import Path

import pytest
from machine_mutants import machine_mutants
from mutation import FILES, recorded

from normgrad.mistakes.edits import in_any_layout

PACKAGE = Path(__file__).parents[1] / "src/normgrad"


def changed(source):
    return {mutant.applied(source) for mutant in machine_mutants(source)}


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("y = a + b", {"y = a - b"}),
        ("y = (a) * (b)", {"y = (a) / (b)"}),
        ("y = a // b", {"y = a * b"}),
        ("y += a", {"y -= a", "pass"}),
        ("y = a < b <= c", {"y = a <= b <= c", "y = a < b < c"}),
        ("y = a is not None", {"y = a is None"}),
        ("y = a and b or c", {"y = a or b or c", "y = a and b and c"}),
        ("y = -a", {"y = a"}),
        ("y = not a", {"y = a"}),
        ("y = 3", {"y = 4"}),
        ("y = 0.5", {"y = 1.0"}),
        ("y = True", {"y = False"}),
        ("y = 'text'", set()),
        ("y = f'{a + b}'", set()),
        ("y = a if b else c", {"y = a if True else c", "y = a if False else c"}),
        ("y = a[b:c]", {"y = a[:c]", "y = a[b:]"}),
        ("y = f(a, b)", {"y = f(b, a)", "y = f(a)"}),
        ("y = f(a, k=b)", {"y = f(a)"}),
        ("y = f(k=b)", {"y = f()"}),
        ("y = max(a, b)", {"y = max(a)"}),
        ("def f(a, b=None): return a", {"def f(a, b): return a"}),
        ("f(a)", {"pass"}),
        ("raise a", {"pass"}),
        ("def f(a: int | None) -> str | None: 'text'", set()),
        ("@overload\ndef f(a=1, b=True): ...", set()),
        ("é = 'ü'; y = a - b", {"é = 'ü'; y = a + b"}),
    ],
)
def test_each_rule_makes_its_mutants(source, mutants):
    assert changed(source) == mutants


def test_mutants_of_the_package_are_programs_that_differ():
    source = (PACKAGE / "triton_kernels/sweeps.py").read_text()
    texts = [mutant.applied(source) for mutant in machine_mutants(source)]
    assert (
        len(texts) == len({ast.dump(ast.parse(text)) for text in {*texts, source}}) - 1
    )


def test_the_record_is_of_these_files_and_explains_each_survivor():
    record = recorded()
    assert list(record["files"]) == list(FILES)
    for survivor in record["survivors"]:
        source = (PACKAGE / survivor["file"]).read_text()
        assert re.search(in_any_layout(survivor["code"]), source), (
            f"{survivor['file']} has changed: {survivor['code']}"
        )
        assert survivor["why"].endswith("."), (
            f"why does no test notice {survivor['change']} in {survivor['file']}?"
        )
