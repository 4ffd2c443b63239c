"""A limit on the time of a proof: the kernel looks at the clock, and counts the terms of a product beforehand.

The clock is the thread's time on a processor, so that a busy machine decides no verdict. It is asked once enough time
has passed on the wall: asking is a call of the system, for which a busy machine may give the processor to another
process (1.4 ms with four processes on two cores, 2 microseconds alone). A hint depends on no clock: there, `counted`
counts how often the kernel looks. Where it may, an alarm ends what does not look at the clock: in the
main thread, if nobody else has set an alarm.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import comb, prod

from sympy import Add, Expr, Mul, Pow
from sympy.core.cache import clear_cache

SECONDS = 60
MOST_TERMS = 200_000
# seconds on a processor; a browser's Python has the process's alone
clock = getattr(time, "thread_time", time.process_time)
# seconds between two alarms
EVERY = 0.1

# how many steps are left, of all counts that are open
_steps: ContextVar[tuple[list[int], ...]] = ContextVar("steps", default=())


class OutOfPatience(Exception):
    """A proof that takes too long; its text says what was too long."""


class Deadline:
    """A time on the processor's clock.

    Args:  seconds: from now on
    """

    def __init__(self, seconds: float):
        self.end = clock() + seconds
        # a thread has no more time on a processor than passes on the wall
        self.earliest = time.monotonic() + seconds

    @property
    def is_past(self) -> bool:
        """Whether the time has passed."""
        now = time.monotonic()
        if now < self.earliest:
            return False
        left = self.end - clock()
        self.earliest = now + left
        return left < 0


_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A context in which `look` raises OutOfPatience once the seconds have passed, an outer limit's included."""
    outer = _deadline.get()
    inner = Deadline(seconds)
    alarmed = outer is None and _alarm_is_free()
    if outer is not None and outer.end < inner.end:
        inner = outer
    token = _deadline.set(inner)
    if alarmed:
        signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, EVERY, EVERY)
    try:
        yield
    finally:
        try:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
        finally:  # even where a last alarm rings in between
            _deadline.reset(token)


@contextmanager
def counted(steps: int) -> Iterator[None]:
    """A context in which `look` raises OutOfPatience at the call after so many, an outer count's included."""
    token = _steps.set((*_steps.get(), [steps]))
    try:
        yield
    finally:
        _steps.reset(token)


def _alarm_is_free():
    """Whether this thread can be interrupted, and nobody else has set an alarm."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer"):
        return False
    by_default = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    return by_default and signal.getitimer(signal.ITIMER_REAL)[0] == 0


def _ring(*_):
    """Look at the clock; what SymPy was asked and could not answer in time is not kept."""
    try:
        _look_at_clock()
    except OutOfPatience:
        clear_cache()
        raise


def look() -> None:
    """Look at the clock and count the step.

    Raises:  OutOfPatience when the time of the innermost `limited` has passed, or the steps of a `counted`
    """
    _look_at_clock()
    for left in _steps.get():
        left[0] -= 1
        if left[0] < 0:
            raise OutOfPatience("no answer in the steps that it had")


def _look_at_clock():
    deadline = _deadline.get()
    if deadline is not None and deadline.is_past:
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
