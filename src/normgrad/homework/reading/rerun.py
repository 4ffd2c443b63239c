"""A student's operator run again: while a value that its forward computes is held, or with one change of its text.

Nothing of normgrad is imported here: the process that runs a student's code is handed this text.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
import time
import types
from itertools import combinations, combinations_with_replacement

import numpy as np

# Of the inputs, which are of size 1: the difference of four points is exact up to the fourth power of it.
STEP = 1e-3
POINTS = ((1, 8), (-1, -8), (2, -1), (-2, 1))
VALUES = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Name)
OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def tree_of(function):
    """A function's tree with the lines of its file, without decorators, whose work is done."""
    lines, first = inspect.getsourcelines(function)
    (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
    tree.decorator_list, tree.returns = [], None
    return ast.increment_lineno(tree, first - 1)


def called_by(function):
    """{name: function} of the functions of its module that a function calls."""
    functions = {}
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        is_function = isinstance(value, types.FunctionType)
        if is_function and value.__globals__ is function.__globals__:
            functions[name] = value
    return functions


def slope(y_at, dy, point, way):
    """That of the loss <dy, y> along a way. Args: y_at: y of an input; point: that input"""
    total = 0.0
    for times, weight in POINTS:
        y = y_at(point + times * STEP * way)
        total += weight * float((dy * y).sum())
    return total / (12 * STEP)


class Program:
    """The functions of an operator and those of its module that they call; each may be another one for a while.

    Args:  target: the student's class
    """

    def __init__(self, target):
        self.operator, self.functions = types.SimpleNamespace(), {}
        self.globals = dict(target.forward.__globals__)
        self.globals[target.__name__] = self.operator
        for name, value in inspect.getmembers(target):
            if isinstance(value, types.FunctionType):
                self._add(name, value, vars(self.operator))
            elif not name.startswith("__"):
                setattr(self.operator, name, value)

    def _add(self, name, function, owner):
        """A function with those of its module that it calls."""
        tree = tree_of(function)
        self.functions[name] = owner, tree
        owner[name] = self.compiled(tree)
        for called, value in called_by(function).items():
            if called not in self.functions:
                self._add(called, value, self.globals)

    def compiled(self, tree):
        """The function that a tree defines."""
        module, names = ast.Module([tree], []), {}
        code = compile(ast.fix_missing_locations(module), "<changed>", "exec")
        exec(code, self.globals, names)
        return names[tree.name]

    def reached(self, name):
        """The functions that a function calls, itself among them."""
        names = [name]
        for caller in names:
            owner, _ = self.functions[caller]
            called = {*owner[caller].__code__.co_names} & {*self.functions}
            names += sorted(called - {*names})
        return names


# -- values that are held


class Marking(ast.NodeTransformer):
    """Hands each value that a function computes to `_mark`, with its number in `sites`."""

    def __init__(self):
        self.sites = []  # (line, text, whether it has a name)

    def visit_FunctionDef(self, node):
        """Its statements."""
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


def marked(target):
    """(an operator's forward with marks, its sites, its Tape); what it calls has marks, too."""
    program, marking, tape = Program(target), Marking(), Tape()
    program.globals["_mark"] = tape.mark
    for name in program.reached("forward"):
        owner, tree = program.functions[name]
        owner[name] = program.compiled(marking.visit(tree))
    return program.operator.forward, marking.sites, tape


def held(target, arguments, options, grad):
    """Slopes of the loss <dy, y> along some ways of an input: of forward as it is, then with some values held.

    Args:     arguments: dy, the inputs, then the ways; options: moved, the input's name; ways, how many
    Returns:  [(cases, ways)], {"sites": of each case the lines and texts of what is held; "repeats": whether
              another run gives the same}
    """
    values = list(arguments.values())
    dy, ways = values[0], values[len(values) - options["ways"] :]
    names = list(arguments)[1 : len(values) - len(ways)]
    forward, sites, tape = marked(target)
    inputs = {name: arguments[name] for name in names}
    forward(*map(copied, inputs.values()))

    def slopes(held, inputs):
        def y_at(moved):
            tape.held, tape.counts = held, {}
            own = inputs | {options["moved"]: moved}
            return forward(*map(copied, own.values()))

        return [slope(y_at, dy, inputs[options["moved"]], way) for way in ways]

    with_name = [site for site in range(len(sites)) if sites[site][2]]
    without = [site for site in range(len(sites)) if not sites[site][2]]
    without.sort(key=lambda site: -len(sites[site][1]))
    single = [(site,) for site in with_name + without]
    cases, rows = [], []
    for own in [(), *single, *combinations(with_name, 2)]:
        cases.append([sites[site][:2] for site in own])
        rows.append(slopes(own, inputs))
    for name in names:
        if name != options["moved"]:
            cases.append([(0, name)])
            ones = inputs | {name: inputs[name] * 0 + 1}
            rows.append(slopes((), ones))
    repeats = slopes((), inputs) == rows[0]
    return [np.array(rows)], {"sites": cases, "repeats": repeats}


# -- the smallest change of a text with which its gradients are those of its forward


def without_more(node, names):
    """Changes that put no part in: an operation, a number, a name, parentheses; a part left out; a sum for a mean."""
    if isinstance(node, ast.BinOp):
        for operation in OPERATIONS:
            if not isinstance(node.op, (operation, ast.Pow)):
                yield ast.BinOp(node.left, operation(), node.right)
        yield node.left
        yield node.right
        left, right = node.left, node.right
        if isinstance(left, ast.BinOp):
            inner = ast.BinOp(left.right, node.op, right)
            yield ast.BinOp(left.left, left.op, inner)
        if isinstance(right, ast.BinOp):
            inner = ast.BinOp(left, node.op, right.left)
            yield ast.BinOp(inner, right.op, right.right)
    match node:
        case ast.Call(ast.Attribute(value, "sum" | "mean")):
            yield value
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.Constant):
        number = node.value
        if number is None:
            yield ast.Constant(0)
            yield ast.Constant(-1)
        elif type(number) in (int, float):
            for changed in (number - 1, number + 1, number / 2, number * 2):
                yield ast.Constant(type(number)(changed))
    if isinstance(node, ast.Attribute) and node.attr in ("sum", "mean"):
        name = {"sum": "mean", "mean": "sum"}[node.attr]
        yield ast.Attribute(node.value, name, ast.Load())
    if isinstance(node, ast.Name) and node.id in names:
        for name in names:
            if name != node.id:
                yield ast.Name(name, ast.Load())


def with_a_part(node, names):
    """Changes that put a sign in, or a number or a name as a term or a factor."""
    if isinstance(node, VALUES):
        yield ast.UnaryOp(ast.USub(), node)
        parts = [ast.Constant(2), ast.Constant(3)]
        parts += [ast.Name(name, ast.Load()) for name in names]
        for part in parts:
            for operation in OPERATIONS:
                yield ast.BinOp(node, operation(), part)
            yield ast.BinOp(part, ast.Sub(), node)
            yield ast.BinOp(part, ast.Div(), node)


def with_a_product(node, names):
    """Changes that put a product of two names in, as a term or as a factor."""
    if isinstance(node, VALUES):
        for pair in combinations_with_replacement(names, 2):
            left, right = (ast.Name(name, ast.Load()) for name in pair)
            for operation in OPERATIONS:
                part = ast.BinOp(left, ast.Mult(), right)
                yield ast.BinOp(node, operation(), part)


CHANGES = (without_more, with_a_part, with_a_product)


def changed(tree, changes):
    """Makes each change in a function's tree, one at a time; yields (the statement, the part, what it is then)."""
    names = {argument.arg for argument in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or hasattr(statement, "body"):
            continue
        for node in ast.walk(statement):
            if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                part = copy.copy(node)
                for replacement in changes(part, sorted(names)):
                    become(node, replacement)
                    yield statement, node, part
                become(node, part)


def become(node, part):
    """Makes a node of a tree another one."""
    node.__class__, node.__dict__ = type(part), dict(vars(part))


class Trial:
    """Whether gradients are those of forward, along ways.

    Args:  program: a Program; dy; inputs: {name: array}; ways: {name: arrays}; options: as of nearest
    """

    def __init__(self, program, dy, inputs, ways, options):
        self.program, self.dy, self.inputs, self.ways = program, dy, inputs, ways
        self.options, self.slopes = options, {}

    def right(self, slopes, first):
        """The names of the inputs whose gradients are right; none where that of the first is not.

        Args:  slopes: {(name, number of the way): the slope of forward} as far as it is known; first: a name
        """
        inputs = copy.deepcopy([*self.inputs.values()])
        gradients = self.program.operator.backward(self.dy, *inputs)
        gradients, names = dict(zip(self.inputs, gradients, strict=True)), set()
        for name in sorted(self.inputs, key=lambda name: name != first):
            if self._agree(name, gradients[name], slopes):
                names.add(name)
            elif name == first:
                break
        return names

    def _agree(self, name, gradient, slopes):
        for number, way in enumerate(self.ways[name]):
            if gradient.shape != way.shape:
                return False
            if (name, number) not in slopes:
                slopes[name, number] = self._slope(name, way)
            slope = slopes[name, number]
            error = abs(float((gradient * way).sum()) - slope)
            if not error <= self.options["near"] * abs(slope) > 0:
                return False
        return True

    def _slope(self, name, way):
        def y_at(moved):
            inputs = copy.deepcopy(self.inputs) | {name: moved}
            return self.program.operator.forward(*inputs.values())

        return slope(y_at, self.dy, self.inputs[name], way)


def nearest(target, arguments, options, grad):
    """The first change with which the gradient for an input is right, and no other one is wrong that was not.

    Args:     arguments: dy, the inputs, then the ways of each input; options: moved, the input's name; inputs, all
              their names; ways, how many for each; near, how near numbers are; seconds
    Returns:  [], {"line", "old", "new": its number and texts, "part", "right": what changes}, {} without one
    """
    dy, *arrays = arguments.values()
    inputs, ways, count = {}, {}, options["ways"]
    for name in options["inputs"]:
        inputs[name] = arrays.pop(0)
    for name in inputs:
        ways[name], arrays = arrays[:count], arrays[count:]
    program, moved = Program(target), options["moved"]
    trial = Trial(program, dy, inputs, ways, options)
    before, slopes = set(), {}
    for name in inputs:
        before |= trial.right(slopes, name)
    of_forward = program.reached("forward")
    end = time.process_time() + options["seconds"]
    functions = sorted(program.reached("backward"), key=lambda name: name in of_forward)
    functions += [name for name in of_forward if name not in functions]
    for changes in CHANGES:
        for name in functions:
            owner, tree = program.functions[name]
            function = owner[name]
            for statement, node, part in changed(tree, changes):
                if time.process_time() > end:
                    return [], {}
                own_slopes = {} if name in of_forward else slopes
                try:
                    owner[name] = program.compiled(tree)
                    with np.errstate(all="ignore"):
                        right = trial.right(own_slopes, moved)
                except Exception:
                    right = set()
                owner[name] = function
                if right > before:
                    return [], facts(statement, node, part)
    return [], {}


def facts(statement, node, part):
    """What is told of a change: the part of a statement became the node."""
    new, right = ast.unparse(statement), ast.unparse(node)
    become(node, part)
    texts = {"old": ast.unparse(statement), "part": ast.unparse(node)}
    return texts | {"line": statement.lineno, "new": new, "right": right}
