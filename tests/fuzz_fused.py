"""Random edits of closed forms, judged by NumPy alone: what the prover accepts must give the right numbers.

An edit changes one or two places of a right backward: a factor goes or comes twice, a sign turns, a name takes
another's place, a sum becomes a mean. Run it by hand for as many as you like:  python tests/fuzz_fused.py COUNT [SEED]
"""

import random
import sys
from collections import Counter
from inspect import signature

import numpy as np
from fused_layers import LAYERS
from sympy import Add, Indexed, Mul, Pow, Sum, evaluate

from normgrad.fused.backward import by_reverse_mode
from normgrad.fused.layer import loss_gradient, needed, read_layer
from normgrad.fused.naming import Functions
from normgrad.symbolic import Defs, NotProved, compile, prove
from normgrad.symbolic.symbols import N

NAMES = (
    "rms_norm",
    "layer_norm",
    "gated_rms_norm",
    "softmax",
    "dyt",
    "l2_norm",
    "log_softmax",
)


def right(name):
    """(layer, lines of the forward, lines of the backward, {input: gradient})"""
    given = LAYERS[name][0]
    layer = read_layer(given["defs"], given["outputs"], given["scalars"], name)
    functions = Functions(layer)
    forward = functions.named(layer.lines)
    lines, gradients = by_reverse_mode(layer, forward)
    return layer, forward, functions.named(needed(lines, gradients.values())), gradients


def places(e, path=()):
    yield path, e
    if not isinstance(e, Indexed):
        for place, part in enumerate(
            e.args[:1] if isinstance(e, Sum | Pow) else e.args
        ):
            yield from places(part, (*path, place))


def put(e, path, new):
    if not path:
        return new
    return e.func(
        *e.args[: path[0]], put(e.args[path[0]], path[1:], new), *e.args[path[0] + 1 :]
    )


def edited(e, layer, draw):
    """The expression with one change, and sometimes two."""
    path, part = draw.choice(list(places(e)))
    shape = part.base.shape if isinstance(part, Indexed) else None
    others = [
        one
        for one in layer.tensors
        if getattr(layer.tensors[one], "shape", ()) == shape
    ]
    choices = [-part, 2 * part, part * N, part / N]
    if isinstance(part, Indexed):
        choices += [part**2, layer.tensors[draw.choice(others)][part.indices]] * 3
    if isinstance(part, Add | Mul):
        choices += [
            part.func(*part.args[:at], *part.args[at + 1 :])
            for at in range(len(part.args))
        ]
    if isinstance(part, Add):
        choices += [
            Add(*part.args[:at], -one, *part.args[at + 1 :])
            for at, one in enumerate(part.args)
        ]
    new = put(e, path, draw.choice(choices))
    return edited(new, layer, draw) if draw.random() < 0.25 else new


def values(layer, forward, lines, wanted, seed):
    """The wanted gradient in NumPy at a random place of a random size."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 4), rng.integers(2, 5)
    shapes = {
        "tile": (rows, columns),
        "row": (rows,),
        "column": (columns,),
        "number": (),
    }
    defs = Defs()
    for name, e in needed({**forward, **lines}, [wanted]).items():
        defs[layer.at(name)] = e
    function = compile(defs, [layer.at(wanted)])
    known = [*layer.inputs, *layer.maxima, *layer.seeds.values()]
    given = {
        name: rng.normal(size=shapes[layer.kind(name)]) for name in known
    } | dict.fromkeys(layer.constants, 0.3)
    with np.errstate(all="ignore"):
        given |= {"M": rows, "N": columns}
        names = signature(function).parameters
        if not set(names) <= set(given):
            raise ValueError(f"{wanted}: rests on itself")
        return function(**{name: given[name] for name in names})[0]


def differs(layer, forward, lines, changed, wanted, draw):
    """Whether NumPy sees two backwards differ in a gradient."""
    for _ in range(6):
        seed = draw.randrange(2**32)
        left, right = (
            values(layer, forward, one, wanted, seed) for one in (lines, changed)
        )
        if not np.allclose(*np.broadcast_arrays(left, right), equal_nan=True):
            return True
    return False


def run(count, seed=0, said=print):
    """Judge a number of edits; a Counter of (whether it is true, the answer), and the false proofs."""
    draw, found, wrong = random.Random(seed), Counter(), []
    layers = {name: right(name) for name in NAMES}
    while found.total() < count:
        name = draw.choice(NAMES)
        layer, forward, lines, gradients = layers[name]
        line = draw.choice(list(lines))
        with evaluate(True):
            changed = {**lines, line: edited(lines[line], layer, draw)}
        given = draw.choice(
            [one for one in gradients if line in needed(lines, [gradients[one]])]
            or list(gradients)
        )
        wanted, defs = gradients[given], layer.definitions()
        try:
            for one, e in needed({**forward, **changed}, [wanted]).items():
                if one not in layer.lines:
                    defs[layer.at(one)] = e
            same = not differs(layer, forward, lines, changed, wanted, draw)
        except (ValueError, NotImplementedError):
            found["no backward", "refused"] += (
                1  # a name that is not defined yet, or a promise that is broken
            )
            continue
        try:
            prove(loss_gradient(layer, given), layer.at(wanted), defs, seconds=10)
            answer = "proved"
        except NotProved as refusal:
            answer = "refuted" if refusal.counterexample else "undecided"
        found["true" if same else "false", answer] += 1
        if (same, answer) in ((False, "proved"), (True, "refuted")):
            wrong.append((name, line, changed[line], given))
            said(f"WRONG: {name}, {line} = {changed[line]}: {answer}")
    return found, wrong


if __name__ == "__main__":
    answers, mistakes = run(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]))
    print(
        *[f"{name}: {number}" for name, number in sorted(answers.items(), key=str)],
        sep="\n",
    )
    print(f"false proofs and false refutations: {len(mistakes)}")
