"""A limit on the time of a proof: the kernel looks at the clock, and counts the terms of a product beforehand.

Where it may, an alarm ends what does not look at the clock: in the main thread, if nobody else has set an alarm.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import comb

from sympy import Add, Expr, Mul, Pow
from sympy.core.cache import clear_cache

SECONDS = 60
MOST_TERMS = 200_000
# seconds from a deadline that has passed, or an alarm that was not heard, to the next alarm
SOON = 0.2

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class OutOfPatience(Exception):
    """A proof that takes too long; its text says what was too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A context in which `look` raises OutOfPatience once the seconds have passed, an outer limit's included."""
    outer = _deadline.get()
    own = time.monotonic() + seconds
    own = own if outer is None else min(own, outer)
    token = _deadline.set(own)
    alarmed = _has_alarm()
    if alarmed:
        _set_alarm(own)
    try:
        yield
    finally:
        _deadline.reset(token)
        if alarmed:
            _set_alarm(outer)


def _has_alarm():
    """Whether this thread can be interrupted, and the alarm is free."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer"):
        return False
    handler = signal.getsignal(signal.SIGALRM)
    free = handler is signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    return free or handler is _ring


def _set_alarm(deadline):
    """Let the alarm ring at a deadline; never for None."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    if deadline is None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return
    signal.signal(signal.SIGALRM, _ring)
    left = deadline - time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, max(left, SOON), SOON)


def _ring(*_):
    """What SymPy was asked and could not answer yet is not kept."""
    clear_cache()
    look()


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
        count = 1
        for factor in e.args:
            count *= _terms(factor)
        return count
    if isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0:
        inner = _terms(e.base)
        return comb(inner + int(e.exp) - 1, int(e.exp)) if inner > 1 else 1
    return 1
