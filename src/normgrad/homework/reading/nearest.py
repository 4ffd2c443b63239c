"""The smallest change of an operator's text with which its gradients are those of its forward, found by trying.

Nothing of normgrad is imported here: the process that runs a student's code is handed this text.
"""

import ast
import copy
import inspect
import textwrap
import time
import types
from itertools import combinations_with_replacement

import numpy as np

OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
WITH_MORE = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Name)


class Program:
    """The functions of an operator, one of which may be another one for a while.

    Args:  target: the student's class
    """

    def __init__(self, target):
        self.operator, self.functions = types.SimpleNamespace(), {}
        self.globals = dict(target.forward.__globals__)
        self.globals[target.__name__] = self.operator
        for name, value in vars(target).items():
            if isinstance(value, staticmethod):
                self._add(name, value.__func__, vars(self.operator))
            elif not name.startswith("__"):
                setattr(self.operator, name, value)

    def _add(self, name, function, owner):
        """A function with those of its module that it calls."""
        lines, first = inspect.getsourcelines(function)
        (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
        tree.decorator_list, tree.returns = [], None
        self.functions[name] = owner, ast.increment_lineno(tree, first - 1)
        owner[name] = self.compiled(tree)
        for called in function.__code__.co_names:
            value = function.__globals__.get(called)
            is_own = isinstance(value, types.FunctionType)
            if is_own and value.__globals__ is function.__globals__:
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


def without_more(node, names):
    """Changes that put no part in: of an operation, a number, a name; a part left out; a sum for a mean."""
    if isinstance(node, ast.BinOp):
        for operation in OPERATIONS:
            if not isinstance(node.op, (operation, ast.Pow)):
                yield ast.BinOp(node.left, operation(), node.right)
        yield node.left
        yield node.right
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
    if isinstance(node, WITH_MORE):
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
    if isinstance(node, WITH_MORE):
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
        """That of the loss <dy, y>."""
        total = 0.0
        for times, weight in self.options["points"]:
            inputs = copy.deepcopy(self.inputs)
            inputs[name] = inputs[name] + times * self.options["step"] * way
            y = self.program.operator.forward(*inputs.values())
            total += weight * float((self.dy * y).sum())
        return total / (12 * self.options["step"])


def nearest(target, arguments, options, grad):
    """The first change with which the gradient for an input is right, and no other one is wrong that was not.

    Args:     arguments: dy, the inputs, then the ways of each input; options: moved, the input's name; inputs, all
              their names; ways, how many for each; near, how near numbers are; points, step: of differences; seconds
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
    of_forward, end = (
        program.reached("forward"),
        time.process_time() + options["seconds"],
    )
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
