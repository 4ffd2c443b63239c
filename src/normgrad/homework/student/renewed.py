"""A function of this process once more, with variables of its own: what it keeps in them is not there the next time."""

from __future__ import annotations

import copy
import types

import numpy as np

from .static import codes

CONTAINERS = (list, dict, set, bytearray, np.ndarray)


def function(target):
    """A copy of a function that shares no module variable, attribute, default or closure with it.

    The functions of its module that it reaches are copied with it; classes and other objects are shared.
    """
    if not isinstance(target, types.FunctionType):
        return target
    space, reached = dict(target.__globals__), _reached(target)
    for name in {name for each in reached for name in _names(each.__code__)} & set(space):
        if isinstance(space[name], CONTAINERS):
            space[name] = _own(space[name])
    copies = {id(each): _copy(each, space) for each in reached}
    space |= {name: copies[id(value)] for name, value in space.items() if id(value) in copies}
    return copies[id(target)]


def _names(code) -> set[str]:
    """The names that a code mentions, functions inside of it included."""
    return {name for each in codes(code) for name in each.co_names}


def _reached(target) -> list:
    """The functions of the same module that a function names, directly or not, itself first."""
    found, left = {}, [target]
    while left:
        each = left.pop()
        if isinstance(each, types.FunctionType) and each.__globals__ is target.__globals__ and id(each) not in found:
            found[id(each)] = each
            left += [each.__globals__.get(name) for name in _names(each.__code__)]
    return list(found.values())


def _own(value):
    """A copy where there can be one."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def _cell(cell):
    try:
        return types.CellType(_own(cell.cell_contents))
    except ValueError:  # not filled yet
        return types.CellType()


def _copy(each, space):
    closure = None if each.__closure__ is None else tuple(map(_cell, each.__closure__))
    made = types.FunctionType(each.__code__, space, each.__name__, _own(each.__defaults__), closure)
    made.__kwdefaults__ = _own(each.__kwdefaults__)
    vars(made).update(_own(vars(each)))
    return made
