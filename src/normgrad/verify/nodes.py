"""The nodes of a syntax tree, looked up once for all who ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

TREES = 8192  # that are remembered, expressions too


@lru_cache(maxsize=TREES)
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """What ast.walk gives for a tree, which nobody writes into."""
    return tuple(ast.walk(tree))


def parts_of(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements."""
    for statement in body:
        yield from nodes_of(statement)
