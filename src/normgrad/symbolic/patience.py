"""A limit on the time of a proof: the kernel looks at the clock, and counts the terms of a product beforehand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import comb, prod

from sympy import Add, Expr, Mul, Pow

SECONDS = 60
MOST_TERMS = 200_000

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class OutOfPatience(Exception):
    """A proof that takes too long; its text says what was too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A context in which `look` raises OutOfPatience once the seconds have passed, an outer limit's included."""
    outer = _deadline.get()
    own = time.monotonic() + seconds
    token = _deadline.set(own if outer is None else min(own, outer))
    try:
        yield
    finally:
        _deadline.reset(token)


def look() -> None:
    """Look at the clock.

    Raises:  OutOfPatience when the time of the innermost `limited` has passed
    """
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfPatience("no answer in the time that it had")


def check_size(e: Expr) -> Expr:
    """e, unless multiplying it out makes more terms than can be handled.

    Raises:  OutOfPatience then
    """
    look()
    if _terms(e) > MOST_TERMS:
        raise OutOfPatience(f"multiplied out it has more than {MOST_TERMS} terms")
    return e


def _terms(e):
    if isinstance(e, Add):
        return sum(map(_terms, e.args))
    if isinstance(e, Mul):
        return prod(map(_terms, e.args))
    if isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0:
        inner = _terms(e.base)
        return comb(inner + int(e.exp) - 1, int(e.exp)) if inner > 1 else 1
    return 1
