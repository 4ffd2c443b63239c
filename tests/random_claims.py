"""Random claims about sums, deltas, roots and means, judged by numbers alone, to catch a proof of something false.

Values are computed entry by entry, with Python's loops; the prover is not asked. A claim is an expression and the same
with one coefficient, sign, index or exponent changed, which leaves some of them true.
"""

import math
import random
from collections import Counter

import numpy as np
from sympy import (
    Abs,
    Add,
    Dummy,
    Indexed,
    Integer,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    Number,
    Pow,
    Rational,
    Sum,
    Symbol,
    exp,
    sign,
    tanh,
)

from normgrad.symbolic import NotProved, Partial, dim, index, prove, sigmoid, tensor

M, N = dim("M"), dim("N")
i, k, m = index("i", "k", "m")
LETTERS = {i: N, k: N, m: M}
SHAPES = {"x": (N,), "y": (N,), "u": (M,), "X": (M, N), "A": (N, N)}
TENSORS = {name: tensor(name, *shape) for name, shape in SHAPES.items()}
EPS = Symbol("eps", positive=True)
SCALARS = (tensor("s"), EPS)
STEP = 1e-30


def entry(draw, letters):
    """An entry of a tensor, its indices among the letters in scope, {letter: dimension}."""
    dimensions = set(letters.values())
    name = draw.choice([name for name in SHAPES if dimensions >= set(SHAPES[name])])
    indices = []
    for size in SHAPES[name]:
        indices.append(draw.choice([r for r in letters if letters[r] == size]))
    return TENSORS[name][tuple(indices)]


def leaf(draw, letters):
    """An entry, a delta, a scalar, a dimension or a number."""
    kind = draw.random()
    if kind < 0.6:
        return entry(draw, letters)
    if kind < 0.75:
        size = draw.choice(sorted(set(letters.values()), key=str))
        among = [r for r in letters if letters[r] == size]
        return KroneckerDelta(draw.choice(among), draw.choice(among))
    if kind < 0.9:
        return draw.choice([*SCALARS, M, N])
    return Rational(draw.choice([-3, -2, -1, 2, 3]), draw.choice([1, 1, 2, 3]))


def grow(draw, depth, letters=LETTERS, functions=(Abs, exp, sigmoid, sign, tanh)):
    """A random expression, as deep as that."""
    kind = draw.random()
    if depth == 0 or kind < 0.1:
        return leaf(draw, letters)
    if kind >= 0.55 and kind < 0.8:
        size = draw.choice([M, N, N])
        r = Dummy("r", integer=True, positive=True)
        body = grow(draw, depth - 1, {**letters, r: size}, functions)
        summed = Sum(body, (r, 1, size))
        return draw.choice([summed, summed, summed / size])
    inner = grow(draw, depth - 1, letters, functions)
    if kind < 0.3:
        return inner + grow(draw, depth - 1, letters, functions)
    if kind < 0.55:
        return inner * grow(draw, depth - 1, letters, functions)
    if kind < 0.9:
        return (inner**2 + EPS) ** Rational(draw.choice([-3, -1, 1]), 2)
    if kind < 0.94 or not functions:
        return inner**2
    return draw.choice([*functions, lambda e: Max(e, 0), lambda e: Min(e, 0)])(inner)


# -- values by numbers


def value(e, world):
    """The value of an expression; world: {name or letter: array or number}, indices from 1.

    A slope is the imaginary part that a tiny imaginary step leaves, which is exact to the last digits.
    """
    if e.is_number and not e.args:
        return float(e)
    if isinstance(e, Symbol):
        return world[e.name] if e.name in world else world[e]
    if isinstance(e, Indexed):
        return world[str(e.base.label)][tuple(world[r] - 1 for r in e.indices)]
    if isinstance(e, KroneckerDelta):
        return float(world[e.args[0]] == world[e.args[1]])
    if isinstance(e, Sum):
        *inner, (r, _, last) = e.limits
        body = Sum(e.function, *inner) if inner else e.function
        terms = [value(body, {**world, r: n + 1}) for n in range(world[last.name])]
        return sum(terms)
    if isinstance(e, Partial):
        body, target = e.args
        name = str(target.base.label)
        moved = world[name].astype(complex)
        moved[tuple(world[r] - 1 for r in target.indices)] += 1j * STEP
        result = value(body, {**world, name: moved})
        # a root of what is negative has no slope
        return np.imag(result) / STEP if np.isfinite(result) else np.nan
    return RULES[e.func](*(value(part, world) for part in e.args))


def power(base, exponent):
    """A root of what is negative is not a number; complex numbers have one."""
    whole = exponent == int(exponent)
    return base**exponent if whole or np.real(base) > 0 else np.nan


RULES = {
    Add: lambda *values: sum(values),
    Mul: lambda *values: math.prod(values),
    Pow: power,
    exp: np.exp,
    tanh: np.tanh,
    sigmoid: lambda v: 1 / (1 + np.exp(-v)),
    Abs: lambda v: v if np.real(v) >= 0 else -v,
    Max: lambda a, b: a if np.real(a) > np.real(b) else b,
    Min: lambda a, b: a if np.real(a) < np.real(b) else b,
    sign: lambda v: np.sign(np.real(v)),
}


def random_world(draw):
    """Sizes, arrays, scalars and letters; small and large entries, so that both sides of a maximum are met."""
    rng = np.random.default_rng(draw.randrange(2**32))
    sizes = {"M": draw.randint(1, 4), "N": draw.randint(1, 5)}
    scale = draw.choice([0.3, 1, 1, 5])
    world = {"s": scale * rng.normal(), "eps": rng.uniform(0.2, 2), **sizes}
    for name, shape in SHAPES.items():
        world[name] = scale * rng.normal(size=[sizes[size.name] for size in shape])
    for letter, size in LETTERS.items():
        world[letter] = draw.randint(1, sizes[size.name])
    return world


def apart(left, right, draw, tries=12):
    """Whether two expressions differ in value; None where values are too large, or all but equal."""
    doubtful, compared = False, 0
    with np.errstate(all="ignore"):
        for _ in range(tries):
            world = random_world(draw)
            try:
                values = [value(e, world) for e in (left, right)]
            except (OverflowError, TypeError, ZeroDivisionError):
                continue  # not a real number
            size = sum(map(abs, values))
            if not size < 1e8:
                continue
            compared += 1
            difference = abs(values[0] - values[1]) / (1 + size)
            if difference > 1e-6:
                return True
            doubtful |= difference > 1e-10
    return None if doubtful or compared < tries // 3 else False


# -- claims by a change


def changed(e, draw):
    """The expression with one index, name, number, dimension, exponent or sign changed; it may stay equal."""
    if isinstance(e, Indexed):
        name = {"x": "y", "y": "x"}.get(str(e.base.label))
        if name and draw.random() < 0.5:
            return TENSORS[name][e.indices]
        if str(e.base.label) == "A":
            return e.base[e.indices[::-1]]
        return e.xreplace({k: i, i: k})
    if isinstance(e, Number):
        return e + 1
    if isinstance(e, KroneckerDelta):
        return Integer(1)
    if isinstance(e, Symbol):
        return {M: N, N: M}.get(e, 2 * e)
    if isinstance(e, Sum):
        return e / e.limits[0][2]
    if isinstance(e, Pow):
        return e * e.base
    if isinstance(e, (Abs, Max, Min)):
        return next(part for part in e.args if part != 0)
    if isinstance(e, (sigmoid, sign, tanh, exp)):
        return draw.choice([tanh, exp])(2 * e.args[0])
    return draw.choice([-1, 2]) * e


def changed_somewhere(e, draw):
    """The expression changed at a random part; what is below a slope, a delta or a bound stays."""
    whole = isinstance(e, (Indexed, KroneckerDelta)) or not e.args
    if whole or draw.random() < 0.3:
        return changed(e, draw)
    position = draw.randrange(1 if isinstance(e, (Sum, Partial)) else len(e.args))
    parts = list(e.args)
    parts[position] = changed_somewhere(parts[position], draw)
    return e.func(*parts)


def claim(draw):
    """(left, right): an expression or its derivative, and the same changed at one place, expanded half of the time."""
    left = grow(draw, draw.randint(2, 4))
    if draw.random() < 0.35:
        x, A, X, u = (TENSORS[name] for name in ("x", "A", "X", "u"))
        left = Partial(left, draw.choice([x[i], A[i, k], X[m, k], u[m]]))
    right = changed_somewhere(left, draw)
    return left, right.expand() if draw.random() < 0.5 else right


def run(claims, seed=0):
    """Judge random claims: a Counter of (truth, answer), and the claims that got a false answer."""
    draw, answers, wrong = random.Random(seed), Counter(), []
    while answers.total() < claims:
        try:
            # SymPy itself refuses a maximum of what is not real, and a fraction over 0
            left, right = claim(draw)
        except (ValueError, ZeroDivisionError):
            continue
        truth = {True: "false", False: "true", None: "unclear"}[
            apart(left, right, draw)
        ]
        try:
            prove(left, right, seconds=4)
            answer = "proved"
        except NotProved as refusal:
            answer = "refuted" if refusal.counterexample else "undecided"
        except (NotImplementedError, ValueError):
            answer = "refused"
        if (truth, answer) == ("true", "refuted") and apart(left, right, draw, 600):
            truth = "false"  # it differs at few places only, as behind a maximum
        answers[truth, answer] += 1
        if (truth, answer) in (("false", "proved"), ("true", "refuted")):
            wrong.append((truth, left, right))
    return answers, wrong
