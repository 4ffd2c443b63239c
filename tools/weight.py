"""The weight of the code: syntax-tree nodes of each part, which no layout changes, and the share of vague names.

python tools/weight.py            prints both
python tools/weight.py --check    and fails where a part is 2 % above its limit in tools/weight.json
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).with_suffix(".json")
HOMEWORK = ("src/normgrad/homework/", "src/normgrad/mistakes/table.py")
PARTS = {
    "src": "src/",
    "homework": HOMEWORK,
    "tests": "tests/",
    "book/_ext": "book/_ext/",
    "tools": "tools/",
}
# above a limit, so that a few lines do not fail; a limit is lowered when its part has shrunk
SLACK = 0.02
VAGUE = set(
    "one found given place wanted made each known rest seen handed noted judged looks "
    "thing other others it what".split()
)


def part_of(path: str) -> str | None:
    """The part that a file belongs to, by its path from the root of the repository; None where it is in none."""
    if path.startswith(HOMEWORK):
        return "homework"
    return next((part for part, start in PARTS.items() if path.startswith(start)), None)


def bound_names(tree: ast.AST) -> list[str]:
    """The names that a module binds: targets of assignments, loops and comprehensions, and arguments."""
    names = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return names + [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]


def weigh() -> dict[str, dict]:
    """{part: {"nodes": syntax-tree nodes, "vague": percent of the bound names}}."""
    nodes, names = {part: 0 for part in PARTS}, {part: [] for part in PARTS}
    for file in sorted(ROOT.glob("[a-z]*/**/*.py")):
        part = part_of(file.relative_to(ROOT).as_posix())
        if part is None:
            continue
        tree = ast.parse(file.read_text(encoding="utf8"))
        nodes[part] += sum(1 for _ in ast.walk(tree))
        names[part] += bound_names(tree)
    shares = {
        part: sum(name in VAGUE for name in names[part]) / max(1, len(names[part]))
        for part in PARTS
    }
    return {
        part: {"nodes": nodes[part], "vague": round(100 * shares[part], 1)}
        for part in PARTS
    }


def past_limits(weights: dict, limits: dict) -> list[str]:
    """One line for each weight that is above its limit by more than the slack."""
    lines = []
    for part, weight in weights.items():
        for name, value in weight.items():
            limit = limits[part][name]
            if value > limit * (1 + SLACK):
                lines.append(f"{part}: got {value} {name}, needs at most {limit}")
    return lines


def main() -> None:
    """Print the weights; with --check fail where one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help=f"fail above the limits of {LIMITS.name}"
    )
    options = parser.parse_args()
    weights = weigh()
    for part, weight in weights.items():
        print(f"{part:10}{weight['nodes']:8} nodes{weight['vague']:6.1f} % vague names")
    if options.check:
        grown = past_limits(weights, json.loads(LIMITS.read_text(encoding="utf8")))
        if grown:
            sys.exit("\n".join(grown))


if __name__ == "__main__":
    main()
