"""Autograd Functions against torch: what is proved is right in torch, and what is called wrong is wrong there."""

import re
from itertools import product

import pytest
from homework_solutions import of_source
from replays import ran_as_read
from tables import claims, parts
from verify_functions import RMS_FUNCTION, RMS_RESULT

from normgrad.mistakes.edits import edited
from normgrad.verify.definitions import norm
from normgrad.verify.programs import verify_function
from normgrad.verify.verdict import KINDS, NOT_READ, PROVED, REFUTED

torch = pytest.importorskip("torch")

RES = """
import torch


class RES(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, eps):
        p = x + residual
        rstd = (p.square().mean(1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(p, weight, rstd)
        y = p * rstd * weight
        return y, p

    @staticmethod
    def backward(ctx, dy, dp):
        p, weight, rstd = ctx.saved_tensors
        wdy = dy * weight
        dx = rstd * wdy - p * rstd**3 * (wdy * p).mean(1, keepdim=True) + dp
        dw = (dy * p * rstd).sum(0)
        return dx, dx, dw, None
"""
SUM = norm(residual=True, dresidual_out=True)
BASES = {
    "RMS": (RMS_FUNCTION, norm()),
    "RES": (RES, SUM),
    "ALONE": (RES, norm(residual=True)),
    "OWN": (RES, None),
}


def program_of(base, edits):
    """The text of a Function; a line starts at each ";"."""
    pairs = [
        (old.replace("return F", f"return {RMS_RESULT}"), _lines(new))
        for old, new in edits
    ]
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    return edited(BASES[base][0], changed, base)


def _lines(text):
    text = re.sub(r"\bF\b", RMS_RESULT, text)
    text = text.replace(";@ ", "\n\n    @staticmethod\n    ")
    return text.replace("; ", "\n        ")


@pytest.mark.parametrize(
    ("kind", "_", "line"), list(claims("verify_autograd_claims.txt"))
)
def test_a_function_is_what_torch_makes_of_it(kind, _, line):
    base, edits, words = parts(line)
    text, definitions = program_of(base, edits), BASES[base][1]
    run = True if kind == "refuted" else None
    verdict = verify_function(text, definitions, run=run)
    assert verdict.kind == next(k for k in KINDS if k.startswith(kind)), verdict
    assert re.search(words, str(verdict)), verdict
    if kind == "proved":
        assert re.search(words, str(verdict).split("\n")[0])
    if kind != NOT_READ:
        assert is_right(text, verdict) == (kind == "proved")
    if run:
        ran_as_read(verdict)


def is_right(text, verdict):
    """Whether torch gives the gradients of a Function's forward, whatever needs one, and runs it at all."""
    function = of_source(text)[re.search(r"class (\w+)", text)[1]]
    marked = "marked as not differentiable" in verdict.claim
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 2), (3, 2), (2,)][-function.forward.__code__.co_argcount + 2 :]
    try:
        return all(
            _agrees(function, shapes, flags, marked, generator)
            for flags in product((True, False), repeat=len(shapes))
        )
    except (RuntimeError, TypeError, IndexError, AttributeError):
        return False


def _agrees(function, shapes, flags, marked, generator):
    """Whether the results, and the gradients of a random loss, are those of the right formulas."""

    def draw(shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    values = [draw(shape) for shape in shapes]
    sides = []
    for run in (function.apply, formula):
        leaves = [
            value.clone().requires_grad_(flag)
            for value, flag in zip(values, flags, strict=True)
        ]
        results = run(*leaves, 0.1)
        results = results if isinstance(results, tuple) else (results,)
        sides.append((leaves, results))
    if sides[0][1][0].requires_grad != any(flags):
        return False
    cotangents = [draw(result.shape) for result in sides[0][1]]
    gradients = []
    for leaves, results in sides:
        loss = 0
        for position, (result, g) in enumerate(zip(results, cotangents, strict=False)):
            if position == 0 or not marked:
                loss = loss + (result * g).sum()
        if any(flags):
            loss.backward()
        gradients.append([leaf.grad for leaf in leaves])
    for mine, right in zip(gradients[0], gradients[1], strict=True):
        if (mine is None) != (right is None):
            return False
        if mine is not None and not torch.allclose(mine, right):
            return False
    return torch.allclose(sides[0][1][0], sides[1][1][0])


def formula(*arguments):
    """y, x + residual, twice that or rstd, of the arguments of RMS or RES."""
    *terms, weight, eps = arguments
    p = sum(terms)
    rstd = (p.square().mean(1, keepdim=True) + eps).rsqrt()
    return p * rstd * weight, p, p * 2


def test_a_class_that_overrides_apply_is_not_read():
    right = of_source(RMS_FUNCTION)["RMS"]
    doubled = type(right)("Doubled", (right,), {"apply": lambda *a: 2 * a[0]})
    assert verify_function(right, norm()).kind in (PROVED, NOT_READ)
    verdict = verify_function(doubled, norm())
    assert verdict.kind == NOT_READ and "Doubled.apply" in verdict.why


def test_a_default_that_a_proof_rests_on_stands_in_its_claim():
    text = RMS_FUNCTION.replace("weight, eps):", "weight, eps, scale=2.0):")
    text = text.replace(".rsqrt() * weight", ".rsqrt() * weight * scale / 2")
    verdict = verify_function(text, norm())
    assert verdict.kind == PROVED
    assert str(verdict).split("\n")[0].endswith("for scale=2, where scale is left out")
    before = RMS_FUNCTION.replace(
        "x, weight, eps):", "x, scale=1.0, weight=None, eps=1e-5):"
    )
    verdict = verify_function(before.replace("dx, dw", "dx, None, dw"), norm())
    assert verdict.kind == PROVED, verdict


OF_ZERO = """
import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m):
        ctx.save_for_backward(m)
        return RETURNED
    @staticmethod
    def backward(ctx, dy):
        m, = ctx.saved_tensors
        return GRADIENT, None
"""


@pytest.mark.parametrize(
    ("returned", "gradient", "kind"),
    [
        ("torch.where(m > 0, x, 0 * x)", "dy * (m > 0)", PROVED),
        ("2 * x", "2 * dy", PROVED),
        ("x * 1 + 0 * m", "dy", PROVED),
        ("x * m", "dy * m", REFUTED),
    ],
)
def test_none_is_a_gradient_that_is_0(returned, gradient, kind):
    text = OF_ZERO.replace("RETURNED", returned).replace("GRADIENT", gradient)
    verdict = verify_function(text, m="(M, N)", run=True)
    assert verdict.kind == kind, verdict


def test_a_guess_is_no_ground_for_a_verdict():
    reused = "def f(x, rstd):\n    x = x * rstd[:, None]\n    return x"
    assert verify_function(reused, norm(weight=False)).kind == PROVED
    gradient = reused.replace("(x, rstd)", "(x, rstd, dy)")
    verdict = verify_function(gradient, norm(weight=False))
    assert verdict.kind == NOT_READ and "outputs" in verdict.why
    saved = "def dw(dy, x, rms):\n    return (dy * x / rms[:, None]).sum(0)"
    verdict = verify_function(saved, norm(), outputs=("dw",), rms="(M,)")
    assert verdict.kind == NOT_READ and "rms is no tensor" in verdict.why


SQUARES = """
import torch

class Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy
"""


def test_a_result_without_axes_has_its_gradient():
    assert verify_function(SQUARES, run=True)
    assert verify_function(SQUARES.replace("2 *", "3 *")).kind == REFUTED
