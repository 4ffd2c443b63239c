"""A call whose answers are SymPy expressions: every one of them as numbers, for every value of its letters.

Nothing of normgrad is imported here; SymPy is imported where it is used.
"""

from __future__ import annotations

import numpy as np

from .calls import operation

KEPT_TEXT = 300


def warm_up() -> None:
    """Uses SymPy once: it imports the rest of itself then, not when the student's code is watched."""
    import sympy

    letter, length, x = sympy.Symbol("r", integer=True), sympy.Symbol("N", integer=True), sympy.IndexedBase("x")
    one = sympy.Sum(sympy.KroneckerDelta(letter, 2) * x[letter] / length, (letter, 1, length)).subs(length, 3)
    float(one.doit().xreplace({x[2]: sympy.Rational(1, 2)}))
    str(one)


def objects(kinds) -> dict:
    """{name: SymPy object} of (name, kind) pairs: an indexed array, a letter for an index, or a length."""
    import sympy

    makers = {
        "array": sympy.IndexedBase,
        "letter": lambda name: sympy.Symbol(name, integer=True, positive=True),
        "length": lambda name: sympy.Symbol(name, integer=True, positive=True),
    }
    return {name: makers[kind](name) for name, kind in kinds}


def _entry(entry, arrays):
    """The number in an array's place, counted from 1; None where there is no such place."""
    import sympy

    array, place = arrays.get(str(entry.base)), [int(i) if i.is_Integer else 0 for i in entry.indices]
    if array is None or len(place) != array.ndim:
        return None
    if not all(1 <= i <= n for i, n in zip(place, array.shape, strict=True)):
        return None
    return sympy.Rational(float(array[tuple(i - 1 for i in place)]))


def _at(expression, point):
    """An expression at one point, also where a sum's letter is declared positive and takes the value 0."""
    import sympy
    from sympy.core.facts import InconsistentAssumptions

    try:
        return expression.subs(point).doit()
    except InconsistentAssumptions:
        bound = {limit[0] for each in expression.atoms(sympy.Sum) for limit in each.limits} - set(point)
        plain = {letter: sympy.Symbol(letter.name, integer=True) for letter in bound}
        return expression.xreplace(plain).subs(point).doit()


def _number(expression, point, arrays, notes) -> float:
    """The value at one point; NaN and a note where something is left that has none."""
    import sympy

    expression = _at(expression, point)
    entries = {entry: _entry(entry, arrays) for entry in expression.atoms(sympy.Indexed)}
    notes["outside"] |= {str(entry) for entry, value in entries.items() if value is None}
    value = expression.xreplace({entry: value for entry, value in entries.items() if value is not None})
    if value.free_symbols or not value.is_number:
        notes["left"] |= {str(symbol) for symbol in value.free_symbols if not isinstance(symbol, sympy.Indexed)}
        return np.nan
    return float(value)


def _described(expression, bases) -> dict:
    """What the grader wants to know about the form of an expression."""
    import sympy

    free = {str(s) for s in expression.free_symbols if not isinstance(s, sympy.Indexed)} - bases
    names = {"text": str(expression)[:KEPT_TEXT], "free": sorted(free)}
    names |= {"deltas": sum_deltas(expression), "sums": len(expression.atoms(sympy.Sum))}
    return names | {"from zero": sums_from_zero(expression)}


def sum_deltas(expression) -> int:
    """How many sums of an expression still have a delta of their own letter inside."""
    import sympy

    found = 0
    for each in expression.atoms(sympy.Sum):
        letters = {limit[0] for limit in each.limits}
        found += any(letters & delta.free_symbols for delta in each.function.atoms(sympy.KroneckerDelta))
    return found


def sums_from_zero(expression) -> int:
    """How many sums of an expression begin with an entry 0: their letter begins at 0 and is an index as it is."""
    import sympy

    found = 0
    for each in expression.atoms(sympy.Sum):
        letters = {limit[0] for limit in each.limits if len(limit) == 3 and limit[1] == 0}
        found += any(letters & set(entry.indices) for entry in each.function.atoms(sympy.Indexed))
    return found


@operation
def written(target, arguments, options):
    """The answers of a function of SymPy objects: numbers at every point of a grid, and the form of each answer."""
    import sympy

    known = objects(options["kinds"])
    result = target(*known.values())
    results = list(result) if isinstance(result, (tuple, list, sympy.Tuple)) else [result]
    bases, numbers, forms = {name for name, kind in options["kinds"] if kind == "array"}, [], []
    for each in results:
        if not isinstance(each, (sympy.Expr, int, float)) or isinstance(each, bool):
            forms.append({"type": type(each).__name__})
            numbers.append(np.zeros(0))
            continue
        expression, notes = sympy.sympify(each), {"left": set(), "outside": set()}
        points = [{known[name]: value for name, value in point.items()} for point in options["points"]]
        numbers.append(np.array([_number(expression, point, arguments, notes) for point in points]))
        forms.append(_described(expression, bases) | {name: sorted(found)[:5] for name, found in notes.items()})
    return numbers, {"forms": forms}
