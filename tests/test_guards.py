"""What tools/mutation.py takes for a guard, and the reasons for those that no test fails without."""

import ast

import mutation
import pytest
from machine_mutants import guards

# a function's text, and the code of its guards
GUARDED = {
    "if a:\n  raise B(1)": ["if a: raise B(1)"],
    "try:\n  f()\nexcept A:\n  raise B from None": ["raise B from None"],
    "if a:\n  return False\nreturn True": ["if a: return False"],
    "if a:\n  return True\nreturn False": ["return False"],
    "if a:\n  return 1\nreturn None": [],
    "if a:\n  return None\nreturn 1": ["if a: return None"],
    "if a:\n  return refused(a)\nreturn b": ["if a: return refused(a)"],
    "if a:\n  return Verdict(WRONG, why=a)\nreturn b": [
        "if a: return Verdict(WRONG, why=a)"
    ],
    "if a:\n  return 'which has hooks'\nreturn b": [
        "if a: return 'which has hooks'",
    ],
    "return 'a name'": [],
    "state().domain.append(a)": ["state().domain.append(a)"],
    "self.assumed[a] = None": ["self.assumed[a] = None"],
    "sums.needs(a, b)": ["sums.needs(a, b)"],
    "check_eps(eps)": ["check_eps(eps)"],
    "eps = check_eps(eps)": [],
    "if a:\n  yield 'is wrong'": ["if a: yield 'is wrong'"],
    "yield a": [],
}


@pytest.mark.parametrize("text", GUARDED)
def test_a_guard_is(text):
    source = "def f(a, b):\n  " + text.replace("\n", "\n  ")
    found = guards(source)
    assert [guard.code for guard in found] == GUARDED[text]
    for guard in found:
        changed = guard.applied(source)
        ast.parse(changed)
        assert len(changed.splitlines()) == len(source.splitlines())


def test_each_row_with_a_reason_is_of_a_guard_that_stands():
    files = {file for room in mutation.ROOMS for file in mutation.files_of(room)}
    texts = mutation.sources(files)
    standing = {(file, guard.code) for file in files for guard in guards(texts[file])}
    rows = mutation.reasons_of_guards()
    assert rows.keys() <= standing
    assert all(rows.values())


def test_two_functions_of_one_line_keep_their_own_code():
    text, names = "pair = (lambda: 1, lambda: 2)\n", {}
    file = "verify/pair.py"
    path = str(mutation.path_of(file))
    exec(compile(text, path, "exec"), names)
    changed = mutation.compiled(file, text.replace("2", "3"))
    mutation.give_code(file, text, changed, {path: names["pair"]})
    assert [function() for function in names["pair"]] == [1, 3]
