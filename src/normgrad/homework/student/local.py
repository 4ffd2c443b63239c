"""A student's function in this process, as a notebook cell hands it over: with a time limit, and everything caught."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import warnings

from . import child, guard, renewed, static
from .interface import BUFFER, Arena, Outcome, Student, as_request, outcome, perform


class TimeUp(BaseException):
    """The student's code ran longer than the stage allows; no `except Exception` catches it."""


@contextlib.contextmanager
def _alarm(seconds):
    """Raises TimeUp in the main thread after so many seconds, and again should the student's code swallow it."""

    def ring(*_):
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _in_thread(action, seconds):
    """The result of an action in a thread of its own, which gets TimeUp when the time is over and is then left alone.

    Where there are no signals, code that stays inside one C call cannot be stopped.
    """
    done = []
    thread = threading.Thread(target=lambda: done.append(action()), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeUp))
        thread.join(0.5)
    return done[0] if done else (None, {"type": "TimeUp", "bases": ["TimeUp"]})


def limited(action, seconds):
    """(result, None) of an action, or (None, facts of what it raised), within so many seconds."""

    def run():
        return child.guarded(action, child.library_folders())

    signals = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not signals:
        return _in_thread(run, seconds)
    try:
        with _alarm(seconds):
            return run()
    except TimeUp:
        return None, {"type": "TimeUp", "bases": ["TimeUp"]}


class Local(Student):
    """Functions or classes by their entry names."""

    def __init__(self, targets: dict):
        self.given, self.targets, self.entries = targets, targets, tuple(targets)
        self.buffer = bytearray(BUFFER)
        self.arena = Arena(self.buffer)

    def call(self, entry, request) -> Outcome:
        """One call in this process; what the student's code replaced in NumPy or torch is put back."""
        if entry not in self.targets:
            return Outcome(None, {"what": "missing", "entry": entry})
        plain, before, printed = as_request(request, self.arena, entry), guard.snapshot(), child.Printed()
        plain["options"]["ask"] = request.answer
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done, error = limited(lambda: perform(self.targets[entry], plain, self.buffer), self.left())
        if replaced := guard.replaced(before):
            guard.restore(before)
        if error and error["type"] == "KeyboardInterrupt":
            raise KeyboardInterrupt
        rest = {"changed": self.arena.changed(), "printed": (printed.count, printed.kept)}
        if replaced:
            return Outcome(None, {"what": "replaced", "names": replaced}, **rest)
        if error and error["type"] == "TimeUp":
            return Outcome(None, {**error, "what": "time", "seconds": self.seconds}, **rest)
        if error:
            return Outcome(None, {"what": "raised", **error}, **rest)
        return outcome(done[0], facts=done[1], **rest)

    def fresh(self):
        """Functions with variables of their own, as far as that goes in one process."""
        self.targets = {entry: renewed.function(target) for entry, target in self.given.items()}

    def globals_of(self, entry):
        """Globals of the live object that hold arrays, containers or nothing."""
        return static.globals_in_object(self.targets[entry]) if entry in self.targets else []

    def forbidden_of(self, entry, forbidden):
        """Forbidden names in the live object's code."""
        return static.forbidden_in_object(self.targets[entry], forbidden) if entry in self.targets else []

    def raises_of(self, entry):
        """Whether the live object's code raises or asserts."""
        return static.raises_in_object(self.targets[entry])
