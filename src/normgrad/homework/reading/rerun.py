"""A student's forward while one of the values that it computes is held, and its inputs move.

Nothing of normgrad is imported here: the process that runs a student's code is handed this text.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from itertools import combinations

import numpy as np

# Of the inputs, which are of size 1: the difference of four points is exact up to the fourth power of it.
STEP = 1e-3
POINTS = ((1, 8), (-1, -8), (2, -1), (-2, 1))
VALUES = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Name)


class Marking(ast.NodeTransformer):
    """Hands each value that a function computes to `_mark`, with its number in `sites`."""

    def __init__(self):
        self.sites = []  # (line, text, whether it has a name)

    def visit_FunctionDef(self, node):
        """Without decorators, whose work is done."""
        node.decorator_list, node.returns = [], None
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Assign(self, node):
        """The value, under the names that it is given."""
        text = ", ".join(map(ast.unparse, node.targets))
        node.value = self._marked(self.generic_visit(node.value), text, node.lineno)
        return node

    def visit_Call(self, node):
        """The result; a function under its own name is not a value."""
        text, named = ast.unparse(node), isinstance(node.func, ast.Name)
        func = node.func if named else self.generic_visit(node.func)
        args = [self.visit(part) for part in node.args]
        call = ast.Call(func, args, [self.visit(part) for part in node.keywords])
        return self._marked(call, text, node.lineno, False)

    def generic_visit(self, node):
        """The value of an expression."""
        text = ast.unparse(node) if isinstance(node, VALUES) else ""
        node = super().generic_visit(node)
        loads = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        return self._marked(node, text, node.lineno, False) if text and loads else node

    def _marked(self, node, text, line, has_name=True):
        self.sites.append((line, text, has_name))
        number = ast.Constant(len(self.sites) - 1)
        return ast.Call(ast.Name("_mark", ast.Load()), [number, node], [])


class Tape:
    """The values of all sites of one run, and which of them another run is given again."""

    def __init__(self):
        self.values, self.held, self.counts = {}, None, {}

    def mark(self, site, value):
        """The value itself, or that of the first run where it is held."""
        if self.held is None:
            self.values.setdefault(site, []).append(copied(value))
        elif site in self.held:
            at = self.counts[site] = self.counts.get(site, -1) + 1
            return copied(self.values[site][at])
        return value


def copied(value):
    """A copy with memory of its own."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(copied, value))
    if hasattr(value, "detach"):
        return value.detach().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def marked(function):
    """(the same function with marks, its sites, its Tape); what it calls of its module has marks, too."""
    marking, tape, waiting, trees = Marking(), Tape(), [function], {}
    while waiting:
        own = waiting.pop()
        lines, first = inspect.getsourcelines(own)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        trees[own] = marking.visit(ast.increment_lineno(tree, first - 1))
        for name in own.__code__.co_names:
            value = own.__globals__.get(name)
            is_own = isinstance(value, types.FunctionType) and value not in trees
            if is_own and value.__globals__ is own.__globals__:
                waiting.append(value)
    names = function.__globals__ | {"_mark": tape.mark}
    for tree in trees.values():
        exec(compile(ast.fix_missing_locations(tree), "<marked>", "exec"), names)
    return names[function.__name__], marking.sites, tape


def held(target, arguments, options, grad):
    """Slopes of the loss <dy, y> along some ways of an input: of forward as it is, then with some values held.

    Args:     arguments: dy, the inputs, then the ways; options: moved, the input's name; ways, how many
    Returns:  [(cases, ways)], {"sites": of each case the lines and texts of what is held; "repeats": whether
              another run gives the same}
    """
    values = list(arguments.values())
    dy, ways = values[0], values[len(values) - options["ways"] :]
    names = list(arguments)[1 : len(values) - len(ways)]
    forward, sites, tape = marked(target.forward)
    inputs = {name: arguments[name] for name in names}
    forward(*map(copied, inputs.values()))

    def slope(way, held, inputs):
        total = 0.0
        for times, weight in POINTS:
            moved = inputs[options["moved"]] + times * STEP * way
            tape.held, tape.counts = held, {}
            y = forward(*map(copied, (inputs | {options["moved"]: moved}).values()))
            total += weight * float((dy * y).sum())
        return total / (12 * STEP)

    with_name = [site for site in range(len(sites)) if sites[site][2]]
    without = [site for site in range(len(sites)) if not sites[site][2]]
    without.sort(key=lambda site: -len(sites[site][1]))
    single = [(site,) for site in with_name + without]
    cases, rows = [], []
    for own in [(), *single, *combinations(with_name, 2)]:
        cases.append([sites[site][:2] for site in own])
        rows.append([slope(way, own, inputs) for way in ways])
    for name in names:
        if name != options["moved"]:
            cases.append([(0, name)])
            ones = inputs | {name: inputs[name] * 0 + 1}
            rows.append([slope(way, (), ones) for way in ways])
    again = [slope(way, (), inputs) for way in ways]
    return [np.array(rows)], {"sites": cases, "repeats": again == rows[0]}
