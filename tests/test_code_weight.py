"""The weight of the code: what belongs to which part, and that a part which grew past its limit fails."""

import ast
import json

import pytest
import weight


def test_parts():
    parts = {
        "src/normgrad/mistakes/table.py": "homework",
        "src/normgrad/homework/hw1/solution.py": "homework",
        "src/normgrad/mistakes/catalogue.py": "src",
        "book/_ext/normgrad_book/ledger.py": "book/_ext",
        "book/figures/bytes.py": None,
    }
    assert {path: weight.part_of(path) for path in parts} == parts


def test_bound_names_are_assigned_or_passed():
    tree = ast.parse(
        "def f(one, *rest, key):\n    found, a.given = one\n    return [seen for seen in found]\n"
    )
    assert sorted(weight.bound_names(tree)) == ["found", "key", "one", "rest", "seen"]


def test_a_part_past_its_limit_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(weight, "weigh", lambda: {"src": {"nodes": 10, "vague": 2.5}})
    monkeypatch.setattr(weight, "LIMITS", tmp_path / "limits.json")
    monkeypatch.setattr("sys.argv", ["weight.py", "--check"])
    weight.LIMITS.write_text(json.dumps({"src": {"nodes": 10, "vague": 2.5}}))
    weight.main()
    weight.LIMITS.write_text(json.dumps({"src": {"nodes": 9, "vague": 2.5}}))
    with pytest.raises(SystemExit, match="src: got 10 nodes, needs at most 9"):
        weight.main()
    assert capsys.readouterr().out.count("10 nodes") == 2
