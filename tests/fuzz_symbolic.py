"""Random claims about sums, deltas, roots and means, judged by NumPy alone, to catch a proof of something false.

A claim starts as an expression tree of this file's own. The tree is evaluated with NumPy loops at random sizes, and
turned into SymPy for the prover; neither knows of the other. True claims come from rewriting a tree by school rules,
false ones from changing one coefficient, sign, index or exponent. What the prover proves must have equal values.

Run it by hand for as long as you like:  python tests/fuzz_symbolic.py SECONDS [SEED]
"""

import math
import random
import sys
import time
from collections import Counter
from itertools import count

import numpy as np
from sympy import (
    Abs,
    Dummy,
    KroneckerDelta,
    Max,
    Rational,
    Sum,
    Symbol,
    exp,
    sqrt,
    tanh,
)

from normgrad.symbolic import NotProved, Partial, dim, index, prove, sigmoid, tensor

SIZES = {"M": dim("M"), "N": dim("N")}
FREE = {"i": "N", "k": "N", "m": "M"}
TENSORS = {"x": "N", "y": "N", "u": "M", "X": "MN", "A": "NN"}
BASES = {
    name: tensor(name, *[SIZES[size] for size in shape])
    for name, shape in TENSORS.items()
}
SCALARS = {"s": tensor("s"), "eps": Symbol("eps", positive=True)}
SAFE = "eps"

# -- trees: tuples whose first entry says what they are


class Grow:
    """Random trees; letters: the index letters in scope, each with its dimension."""

    def __init__(self, draw):
        self.draw, self.fresh = draw, count()

    def entry(self, letters):
        fits = [
            name
            for name, shape in TENSORS.items()
            if all(size in letters.values() for size in shape)
        ]
        name = self.draw.choice(fits)
        places = tuple(
            self.draw.choice([r for r, of in letters.items() if of == size])
            for size in TENSORS[name]
        )
        return ("entry", name, places)

    def leaf(self, letters):
        kind = self.draw.random()
        if kind < 0.6:
            return self.entry(letters)
        if kind < 0.75:
            size = self.draw.choice(sorted(set(letters.values())))
            among = [r for r, of in letters.items() if of == size]
            return ("delta", self.draw.choice(among), self.draw.choice(among))
        if kind < 0.85:
            return ("scalar", self.draw.choice(list(SCALARS)))
        if kind < 0.92:
            return ("size", self.draw.choice("MN"))
        return (
            "number",
            self.draw.choice([-3, -2, -1, 2, 3]),
            self.draw.choice([1, 1, 2, 3]),
        )

    def tree(self, depth, letters):
        kind = self.draw.random()
        if depth == 0 or kind < 0.1:
            return self.leaf(letters)
        if kind < 0.3:
            return ("add", self.tree(depth - 1, letters), self.tree(depth - 1, letters))
        if kind < 0.55:
            return ("mul", self.tree(depth - 1, letters), self.tree(depth - 1, letters))
        if kind < 0.8:
            size, letter = self.draw.choice("MNN"), f"r{next(self.fresh)}"
            body = self.tree(depth - 1, {**letters, letter: size})
            return (self.draw.choice(["sum", "sum", "mean"]), letter, size, body)
        inner = self.tree(depth - 1, letters)
        if kind < 0.86:
            return (
                "power",
                ("add", ("power", inner, 2, 1), ("scalar", SAFE)),
                self.draw.choice([-3, -1, 1]),
                2,
            )
        if kind < 0.9:
            return (
                "power",
                ("add", ("power", inner, 2, 1), ("scalar", SAFE)),
                self.draw.choice([-1, 1]),
                4,
            )
        if kind < 0.94:
            return ("power", inner, 2, 1)
        return (self.draw.choice(["abs", "relu", "exp", "sigmoid", "tanh"]), inner)


# -- the oracle: values by NumPy and Python's loops


STEP = 1e-30


def value(tree, world, places):
    """The value of a tree; world: sizes, arrays and scalars by name; places: the letters' values, from 0 on.

    A slope is the imaginary part that a tiny imaginary step leaves, which is exact to the last digits.
    """
    kind, *parts = tree
    if kind == "entry":
        return world[parts[0]][tuple(places[r] for r in parts[1])]
    if kind == "delta":
        return float(places[parts[0]] == places[parts[1]])
    if kind in ("scalar", "size"):
        return float(world[parts[0]])
    if kind == "number":
        return parts[0] / parts[1]
    if kind in ("sum", "mean"):
        letter, size, body = parts
        terms = np.array(
            [
                value(body, world, {**places, letter: entry})
                for entry in range(world[size])
            ]
        )
        return terms.sum() if kind == "sum" else terms.mean()
    if kind == "slope":
        body, (name, letters) = parts
        moved = world[name].astype(complex)
        moved[tuple(places[r] for r in letters)] += 1j * STEP
        moved_value = value(body, {**world, name: moved}, places)
        # a root of what is negative has no slope; not a number has no imaginary part either
        return (
            float(np.imag(moved_value) / STEP)
            if np.isfinite(np.real(moved_value))
            else np.nan
        )
    numbers = [value(part, world, places) for part in parts if isinstance(part, tuple)]
    return RULES[kind](
        *numbers, *[part for part in parts if not isinstance(part, tuple)]
    )


RULES = {
    "add": np.add,
    "mul": np.multiply,
    "exp": np.exp,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "tanh": np.tanh,
    "power": lambda v, p, q: (
        v ** (p // q) if q == 1 else np.power(v, p / q) if np.real(v) > 0 else np.nan
    ),
    "abs": lambda v: v if np.real(v) >= 0 else -v,
    "relu": lambda v: v if np.real(v) > 0 else 0 * v,
}


def world(draw):
    rng = np.random.default_rng(draw.randrange(2**32))
    sizes = {"M": draw.randint(1, 4), "N": draw.randint(1, 5)}
    # small and large entries, so that both sides of a maximum are met
    scale = draw.choice([0.3, 1, 1, 5])
    arrays = {
        name: scale * rng.normal(size=[sizes[size] for size in shape])
        for name, shape in TENSORS.items()
    }
    scalars = {"s": scale * rng.normal(), "eps": rng.uniform(0.2, 2)}
    places = {letter: draw.randrange(sizes[size]) for letter, size in FREE.items()}
    return {**sizes, **arrays, **scalars}, places


def apart(left, right, draw, tries=12):
    """Whether NumPy sees two trees differ; None where it cannot tell, because values are huge or all but equal."""
    doubtful, compared = False, 0
    with np.errstate(all="ignore"):
        for _ in range(tries):
            everything, places = world(draw)
            left_value, right_value = (
                float(value(tree, everything, places)) for tree in (left, right)
            )
            if (
                not (math.isfinite(left_value) and math.isfinite(right_value))
                or max(abs(left_value), abs(right_value)) > 1e8
            ):
                continue
            compared += 1
            difference = abs(left_value - right_value) / (
                1 + abs(left_value) + abs(right_value)
            )
            if difference > 1e-6:
                return True
            doubtful |= difference > 1e-10
    return None if doubtful or compared < tries // 3 else False


# -- the same trees for the prover


def symbolic(tree, letters):
    kind, *parts = tree
    if kind == "entry":
        return BASES[parts[0]][tuple(letters[r] for r in parts[1])]
    if kind == "delta":
        return KroneckerDelta(letters[parts[0]], letters[parts[1]])
    if kind in ("scalar", "size"):
        return {**SCALARS, **SIZES}[parts[0]]
    if kind == "number":
        return Rational(*parts)
    if kind in ("sum", "mean"):
        letter, size, body = parts
        r = Dummy("r", integer=True, positive=True)
        summed = Sum(symbolic(body, {**letters, letter: r}), (r, 1, SIZES[size]))
        return summed if kind == "sum" else summed / SIZES[size]
    if kind == "slope":
        body, (name, places) = parts
        return Partial(
            symbolic(body, letters), BASES[name][tuple(letters[r] for r in places)]
        )
    inner = [symbolic(part, letters) for part in parts if isinstance(part, tuple)]
    if kind == "power":
        return (
            sqrt(inner[0])
            if parts[1:] == [1, 2]
            else inner[0] ** Rational(parts[1], parts[2])
        )
    if kind == "add":
        return inner[0] + inner[1]
    if kind == "mul":
        return inner[0] * inner[1]
    return {
        "abs": Abs,
        "exp": exp,
        "sigmoid": sigmoid,
        "tanh": tanh,
        "relu": lambda e: Max(e, 0),
    }[kind](inner[0])


# -- true claims by rewriting, doubtful ones by a change


def children(tree):
    return [at for at, part in enumerate(tree) if isinstance(part, tuple) and part and isinstance(part[0], str)
            and part[0] in KINDS]  # fmt: skip


KINDS = set(
    "entry delta scalar size number sum mean power add mul abs exp sigmoid tanh relu slope".split()
)


def nodes(tree, path=()):
    yield path, tree
    for at in () if tree[0] in ("entry", "delta") else children(tree):
        yield from nodes(tree[at], (*path, at))


def put(tree, path, new):
    if not path:
        return new
    at, *below = path
    return (*tree[:at], put(tree[at], below, new), *tree[at + 1 :])


def rewritten(tree, draw):
    """An equal tree by one rule of school, or the tree itself where the rule does not fit."""
    kind, *parts = tree
    if kind == "slope":
        return derived(*parts) or tree
    if kind in ("add", "mul") and draw.random() < 0.4:
        return (kind, parts[1], parts[0])
    if kind in ("add", "mul") and parts[0][0] == kind:
        return (kind, parts[0][1], (kind, parts[0][2], parts[1]))
    if kind == "mul" and parts[1][0] == "add":
        return ("add", ("mul", parts[0], parts[1][1]), ("mul", parts[0], parts[1][2]))
    if kind == "mul" and parts[1][0] == "sum":
        return ("sum", *parts[1][1:3], ("mul", parts[0], parts[1][3]))
    if kind in ("sum", "mean") and parts[2][0] == "add":
        return ("add", (kind, *parts[:2], parts[2][1]), (kind, *parts[:2], parts[2][2]))
    if kind == "sum" and parts[2][0] == "sum":
        inner = parts[2]
        return ("sum", *inner[1:3], ("sum", *parts[:2], inner[3]))
    if kind == "mean":
        return ("mul", ("power", ("size", parts[1]), -1, 1), ("sum", *parts))
    if kind == "power" and parts[1:] == [2, 1]:
        return ("mul", parts[0], parts[0])
    if kind == "power" and parts[1:] == [-3, 2]:
        return ("mul", ("power", parts[0], -1, 1), ("power", parts[0], -1, 2))
    if kind == "power" and parts[2] == 4:
        return ("power", ("power", parts[0], 1, 2), parts[1], 2)
    if kind == "delta":
        return ("delta", parts[1], parts[0])
    if kind == "relu":
        return ("mul", ("number", 1, 2), ("add", parts[0], ("abs", parts[0])))
    if kind == "exp" and parts[0][0] == "add":
        return ("mul", ("exp", parts[0][1]), ("exp", parts[0][2]))
    if kind == "sigmoid":
        return minus(
            ("number", 1, 1), ("sigmoid", ("mul", ("number", -1, 1), parts[0]))
        )
    if kind == "tanh":
        return minus(
            ("mul", ("number", 2, 1), ("sigmoid", ("mul", ("number", 2, 1), parts[0]))),
            ("number", 1, 1),
        )
    return tree


def minus(left, right):
    return ("add", left, ("mul", ("number", -1, 1), right))


def derived(tree, target):
    """The derivative of a tree by an entry, one rule of calculus on; None where this file has no rule."""
    kind, *parts = tree

    def slope(part):
        return ("slope", part, target)

    if kind == "add":
        return ("add", slope(parts[0]), slope(parts[1]))
    if kind == "mul":
        return (
            "add",
            ("mul", slope(parts[0]), parts[1]),
            ("mul", parts[0], slope(parts[1])),
        )
    if kind in ("sum", "mean"):
        return (kind, *parts[:2], slope(parts[2]))
    if kind == "power":
        base, p, q = parts
        return (
            "mul",
            ("mul", ("number", p, q), ("power", base, p - q, q)),
            slope(base),
        )
    if kind == "exp":
        return ("mul", tree, slope(parts[0]))
    if kind in ("sigmoid", "tanh"):
        gain = ("mul", tree, minus(("number", 1, 1), tree)) if kind == "sigmoid" else minus(
            ("number", 1, 1), ("power", tree, 2, 1)
        )  # fmt: skip
        return ("mul", gain, slope(parts[0]))
    if kind == "entry" and parts[0] == target[0]:
        product = ("number", 1, 1)
        for index_of_entry, index_of_target in zip(parts[1], target[1], strict=True):
            product = ("mul", product, ("delta", index_of_entry, index_of_target))
        return product
    return (
        ("number", 0, 1)
        if kind in ("entry", "delta", "scalar", "size", "number")
        else None
    )


def changed(tree, draw):
    """The tree with one coefficient, sign, index, size or exponent changed; it may stay equal all the same."""
    kind, *parts = tree
    if kind == "entry":
        name, places = parts
        letters = [
            r for r in ("i", "k", "m") if r not in places and FREE[r] in TENSORS[name]
        ]
        if letters and draw.random() < 0.6:
            r = draw.choice(letters)
            spot = draw.choice(
                [at for at, size in enumerate(TENSORS[name]) if size == FREE[r]]
            )
            return ("entry", name, (*places[:spot], r, *places[spot + 1 :]))
        same = [
            another
            for another, shape in TENSORS.items()
            if shape == TENSORS[name] and another != name
        ]
        if same:
            return ("entry", same[0], places)
        return (
            ("entry", name, places[::-1])
            if TENSORS[name] == "NN"
            else ("mul", ("number", -1, 1), tree)
        )
    if kind == "number":
        return ("number", parts[0] + parts[1], parts[1])
    if kind == "delta":
        return ("number", 1, 1)
    if kind == "size":
        return ("size", "N" if parts[0] == "M" else "M")
    if kind == "sum":
        return draw.choice(
            [
                ("mean", *parts),
                parts[2] if parts[0] not in str(parts[2]) else ("mean", *parts),
            ]
        )
    if kind == "mean":
        return ("sum", *parts)
    if kind == "power":
        return ("power", parts[0], parts[1] + (2 if parts[2] > 1 else 1), parts[2])
    if kind in ("abs", "relu"):
        return draw.choice([parts[0], ("relu" if kind == "abs" else "abs", parts[0])])
    if kind in ("sigmoid", "tanh", "exp"):
        return draw.choice(
            [
                (another, parts[0])
                for another in ("sigmoid", "tanh", "exp")
                if another != kind
            ]
        )
    return draw.choice(
        [("mul", ("number", -1, 1), tree), ("mul", ("number", 2, 1), tree)]
    )


def claim(draw, depth=4):
    """(left, right, how) of a random claim; how: "rewritten" or "changed"."""
    left = Grow(draw).tree(draw.randint(2, depth), dict(FREE))
    if draw.random() < 0.35:
        left = (
            "slope",
            left,
            draw.choice(
                [("x", ("i",)), ("A", ("i", "k")), ("X", ("m", "k")), ("u", ("m",))]
            ),
        )
    right = left
    for _ in range(draw.randint(1, 9)):
        path, part = draw.choice(list(nodes(right)))
        right = put(right, path, rewritten(part, draw))
    if draw.random() < 0.45:
        return left, right, "rewritten"
    path, part = draw.choice(list(nodes(right)))
    return left, put(right, path, changed(part, draw)), "changed"


def run(seconds=None, claims=None, seed=0, said=print):
    """Judge random claims for some seconds or up to a number; a Counter of answers, and the false proofs.

    A claim that was only rewritten has to be equal for NumPy too, which tests this file.
    """
    draw, answers, wrong = random.Random(seed), Counter(), []
    letters = dict(zip(FREE, index(*FREE), strict=True))
    start = time.monotonic()
    while (seconds is None or time.monotonic() - start < seconds) and (
        claims is None or answers["claims"] < claims
    ):
        left, right, how = claim(draw)
        differ = apart(left, right, draw)
        assert not (how == "rewritten" and differ), (left, right)
        answers["claims"] += 1
        truth = {True: "false", False: "true", None: "unclear"}[differ]
        sides = ()
        try:
            # SymPy itself refuses a maximum of what is not real
            sides = [symbolic(tree, letters) for tree in (left, right)]
            prove(*sides, seconds=4)
            answer = "proved"
        except NotProved as refusal:
            answer = "refuted" if refusal.counterexample else "undecided"
        except (NotImplementedError, ValueError) as refusal:
            answer = f"refused: {type(refusal).__name__}"
        if (truth, answer, how) == ("true", "refuted", "changed") and apart(
            left, right, draw, tries=600
        ):
            truth = "false"  # it differs at few places only, as behind a maximum
        answers[truth, answer] += 1
        if (truth, answer) in (("false", "proved"), ("true", "refuted")):
            wrong.append((truth, *sides))
            said(f"WRONG: {truth} and {answer}: {sides[0]} = {sides[1]}")
    return answers, wrong


if __name__ == "__main__":
    answers, mistakes = run(
        seconds=float(sys.argv[1]), seed=int((sys.argv[2:] or ["0"])[0])
    )
    print(
        *[f"{name}: {number}" for name, number in sorted(answers.items(), key=str)],
        sep="\n",
    )
    print(f"false proofs and false refutations: {len(mistakes)}")
