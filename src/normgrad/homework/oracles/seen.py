"""What a student's test showed to the backward that it was given: can these inputs tell wrong from right?"""

from __future__ import annotations

import numpy as np

from ... import numpy_ref
from ...spec import LAYER_NORM

NAMES = ("dx", "dw", "db")
NOT_A_NUMBER = 1e300
NEARLY_ONE = 1e-3
# Two float64 numbers that came from a product each may differ by this much and still be meant to be equal.
EQUAL = 16 * np.finfo(np.float64).eps


def right(dy, x, weight, mean, rstd):
    """(dx, dw, db) of LayerNorm.  {eq}`ln-dx`, {eq}`ln-dw`, {eq}`ln-db`"""
    saved = numpy_ref.Forward(None, x, mean, rstd, weight, weight, LAYER_NORM)
    grads = numpy_ref.backward(dy, saved)
    return grads.dx, grads.dweight, grads.dbias


def off(given, found) -> dict:
    """{gradient: largest error over the size of its terms}: where terms cancel, an error like rounding is no error."""
    dy, _, weight, _, rstd = given
    wdy = np.abs(dy * weight).max(-1, keepdims=True, initial=0)
    sizes, shares = (rstd[:, None] * wdy, np.abs(dy).sum(0), np.abs(dy).sum(0)), {}
    for name, got, known, size in zip(NAMES, found, right(*given), sizes, strict=True):
        share = (np.abs(got - known) / np.maximum(size, np.finfo(np.float64).tiny)).max(initial=0)
        shares[name] = float(share) if np.isfinite(share) else NOT_A_NUMBER
    return shares


def looks(given) -> dict:
    """What is special about the inputs of one call."""
    narrow = any(array.dtype != np.float64 for array in given[:2])
    dy, x, weight, _, rstd = (array.astype(np.float64) for array in given)
    wdy = dy * weight
    return {
        "constant wdy": bool((np.abs(wdy - wdy[..., :1]) <= EQUAL * np.abs(wdy).max(initial=0)).all()),
        "equal weights": bool((weight == weight[:1]).all()),
        "one row": len(x) == 1,
        "spread one": bool((np.abs(rstd - 1) < NEARLY_ONE).all()),
        "no constant row": bool((np.ptp(x, axis=-1) > 0).all()) if x.size else True,
        "narrow": narrow,
    }


def summed(calls) -> dict:
    """{"shared": what all calls have in common, "off": the largest errors that any of them met}.

    Args:  calls: ((dy, x, weight, mean, rstd), (dx, dw, db)) of each call
    """
    with np.errstate(all="ignore"):
        looked = [looks(given) for given, _ in calls]
        shares = [off([array.astype(np.float64) for array in given], found) for given, found in calls]
    shared = [name for name in looked[0] if all(look[name] for look in looked)] if looked else []
    return {"shared": shared, "off": {name: max((share[name] for share in shares), default=0.0) for name in NAMES}}
