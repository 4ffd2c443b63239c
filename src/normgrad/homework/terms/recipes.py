"""Formulas as recipes: the right one with some of its fields changed.

The right dx is  all * [k * weight**wp * (k0 rstd**e0 u0 - k2 rstd**e2 mean(u2) - k1 rstd**e1 kappa v1 reduce(v2 u1))
+ kg rstd**eg weight**wg g], with ut = scale**sc weight**wt dy. dw and db are k * reduce over the rows of
scale**sc weight**w rstd**e v dy. y is k scale**sc weight**w v + kb weight**bw bias.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dictionary import Term
from .numbers import value
from .setting import Setting

# One name for several fields of dx.
SEVERAL = {"w": ("w0", "w1", "w2"), "e": ("e0", "e1", "e2"), "v": ("v1", "v2"), "a": ("a1", "a2")}
SEVERAL |= {"sc": ("sc0", "sc1", "sc2")}
DX = {"all": 1, "k": 1, "k0": 1, "k1": 1, "kg": 1, "wp": 0, "wg": 0, "eg": 0, "kap": 1, "dy": ("dy",)}
DX |= {"sc0": 1, "sc1": 1, "sc2": 1, "w0": 1, "w1": 1, "w2": 1, "e0": 1, "e1": 1, "e2": 1, "a1": -1, "a2": -1}
DX |= {"stats": "right", "v1": ("x_hat",), "v2": ("x_hat",), "v3": (), "red1": "", "red2": "mean", "split": False}
PARAMETER = {"all": 1, "e": 0, "w": 0, "dy": ("dy",), "red": "sum", "stats": "right", "split": False}
Y = {"all": 1, "k": 1, "sc": 1, "w": 1, "v": ("x_hat",), "kb": 1, "bw": 0, "stats": "right", "kr": 0, "kp": 0}
Y |= {"kw1": 0, "one": 0}


@dataclass(frozen=True)
class Part:
    """One part of a formula: where it stands in the right one, its term and its coefficient."""

    slot: str
    term: Term
    coefficient: float


def right_recipe(output: str, setting: Setting) -> dict:
    """The fields of the right formula of an output."""
    spec = setting.spec
    if output in ("dx", "dresidual"):
        changes = {"k2": int(spec.center), "red1": spec.reduce, "kg": int(setting.stream)}
        return DX | changes
    if output == "y":
        return Y | {"kb": int(setting.bias)}
    return PARAMETER | ({"v": ("x_hat",), "sc": 1} if output == "dw" else {"v": (), "sc": 0})


def expanded(change: dict, output: str) -> dict:
    """A change with the names that stand for several fields of dx written out."""
    if output not in ("dx", "dresidual"):
        return change
    return {field: to for name, to in change.items() for field in SEVERAL.get(name, (name,))}


def parts(output: str, recipe: dict, setting: Setting) -> list[Part]:
    """The parts of a recipe; those with the coefficient 0 are left out."""
    counts = setting.columns, setting.rows, setting.spec.reduce
    number = {key: value(to, *counts) for key, to in recipe.items() if _is_number(key)}
    if output in ("dx", "dresidual"):
        made = _dx(recipe, number)
    else:
        made = _y(recipe, number) if output == "y" else _parameter(recipe, number, output)
    return [part for part in made if part.coefficient != 0]


def _is_number(key):
    return key in ("all", "one") or key[0] == "k" and key != "kap"


def _weights(count):
    if isinstance(count, str):
        return (count,)
    return ("weight",) * count if count >= 0 else ("1/weight",) * -count


def _u(recipe, which):
    return ("scale",) * recipe[f"sc{which}"] + _weights(recipe[f"w{which}"]) + recipe["dy"]


def _dx(r, k):
    kappa = ("kappa",) * r["kap"] if r["kap"] >= 0 else ("1/kappa",)
    common = {"post": r["wp"], "stats": r["stats"]}
    norm, v2 = k["all"] * k["k"], r["v2"]
    u0, u1, u2 = _u(r, 0), _u(r, 1), _u(r, 2)
    if r["split"]:
        # The mean of a product taken for the product of the means.
        c1 = [Term((*kappa, *r["v1"], f"{r['red1']} wdy"), v2, r["red1"], r["a1"], r["e1"], **common)]
    elif r["red1"] == "none":
        c1 = [Term((*kappa, *r["v1"], *v2, *u1), power=r["e1"], **common)]
    else:
        c1 = [Term((*kappa, *r["v1"]), (*v2, *u1), r["red1"], r["a1"], r["e1"], **common)]
    c2 = Term((), (*r["v3"], *u2), "mean", r["a2"], r["e2"], **common)
    if r["red2"] == "none":
        c2 = Term(u2, power=r["e2"], **common)
    return [
        Part("u", Term(u0, power=r["e0"], **common), norm * k["k0"]),
        Part("c2", c2, -norm * k["k2"]),
        *(Part("c1", term, -norm * k["k1"]) for term in c1),
        Part("g", Term(("g",), power=r["eg"], post=r["wg"], stats=r["stats"]), k["all"] * k["kg"]),
    ]


def _parameter(r, k, output):
    inner = ("scale",) * r["sc"] + _weights(r["w"]) + ("rstd",) * r["e"] + r["v"] + r["dy"]
    if r["split"]:
        outer = (f"{r['red']} dy",)
        return [Part(output, Term((*outer, "scale"), r["v"], r["red"], 0, stats=r["stats"]), k["all"])]
    return [Part(output, Term((), inner, r["red"], 0, stats=r["stats"]), k["all"])]


def _y(r, k):
    own = {"stats": r["stats"]}
    scale = ("scale",) * r["sc"]
    return [
        Part("x_hat", Term((*scale, *_weights(r["w"]), *r["v"]), **own), k["all"] * k["k"]),
        Part("weight + 1", Term((*scale, *r["v"]), **own), k["all"] * k["kw1"]),
        Part("bias", Term((*_weights(r["bw"]), "bias"), **own), k["all"] * k["kb"]),
        Part("one", Term(("one",), **own), k["all"] * k["one"]),
        Part("residual", Term(("residual",), **own), k["kr"]),
        Part("p", Term(("p",), **own), k["kp"]),
    ]
