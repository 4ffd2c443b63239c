"""Code of a student's that runs: with a time limit, everything caught, and what it prints or raises as facts."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import signal
import threading
import time
import traceback
import warnings

from . import digits, kernels, operations  # noqa: F401  (they add operations)

KEPT_OUTPUT, KEPT_MESSAGE = 1000, 400
# Whoever catches the end of the time gets it again, so often.
AGAIN_SECONDS, MOST_RINGS = 0.2, 5
LATE = 124
# Where the system does not say how long a process waited for a processor, a call may take so many times as long.
BUSY = 4
# Linux: how long this process ran and how long it waited for a processor, in nanoseconds.
QUEUE = "/proc/thread-self/schedstat"
_queue: list[int] = []


class TimeUp(BaseException):
    """The student's code ran longer than the stage allows; no `except Exception` catches it."""


class Printed(io.TextIOBase):
    """Counts what is printed and keeps the beginning."""

    def __init__(self):
        self.count, self.kept = 0, ""

    def writable(self):
        """Always, as print asks."""
        return True

    def write(self, text):
        """Counts a text and keeps it while there is room."""
        text = str(text)
        self.count += len(text)
        self.kept += text[: max(0, KEPT_OUTPUT - len(self.kept))]
        return len(text)


def _libraries():
    """Folders whose frames are not the student's: this one, the standard library, and where NumPy is installed."""
    folders = (
        os.path.dirname(__file__),
        os.path.dirname(os.__file__),
        os.path.dirname(operations.np.__path__[0]),
    )
    return *folders, "<frozen"


def told(error) -> dict:
    """An exception as facts: type, message, and the last line of the student's own code that was running."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__  # Triton's interpreter wraps what a kernel raised
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_libraries())
    ]
    bases = [base.__name__ for base in type(error).__mro__]
    facts = {"type": bases[0][: operations.KEPT_NAME], "bases": bases}
    try:
        facts["message"] = str(error)[:KEPT_MESSAGE]
    except Exception:
        facts["message"] = ""
    if isinstance(error, SyntaxError):
        return facts | {
            "line": error.lineno,
            "code": (error.text or "").strip()[:120],
            "message": error.msg,
        }
    if not frames:
        return facts
    name, line, function = frames[-1]
    return facts | {
        "line": line,
        "code": linecache.getline(name, line or 0).strip()[:120],
        "function": function,
    }


def _guarded(action):
    """(result, None) of an action, or (None, facts) of whatever it raised."""
    try:
        return action(), None
    except BaseException as error:
        return None, told(error)


def _imports(frame) -> bool:
    """Whether a library is being imported, by the student's code or another library."""
    while frame is not None and frame.f_code.co_filename.startswith(_libraries()):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def watch_queue() -> None:
    """Opens QUEUE for this process, which may not open it any more once its disk is closed."""
    with contextlib.suppress(OSError):
        _queue[:] = [os.open(QUEUE, os.O_RDONLY)]


def queued(text: bytes) -> float:
    """The seconds of waiting that a text of QUEUE tells; 0 for one that tells none."""
    numbers = text.split()
    return int(numbers[1]) / 1e9 if len(numbers) > 1 else 0.0


def _clocks() -> tuple[float, float, float]:
    waited = os.pread(_queue[0], 200, 0) if _queue else b""
    return time.monotonic(), time.process_time(), queued(waited)


def _spent(start) -> float:
    """The student's seconds since some clocks: neither what else the machine does nor what its other cores do."""
    times = (now - then for now, then in zip(_clocks(), start, strict=True))
    wall, used, waited = times
    return min(wall - waited, max(used, wall / BUSY))


@contextlib.contextmanager
def _alarm(seconds, last):
    """Raises TimeUp in the main thread after so many seconds, and again should the student's code swallow it."""
    rings, start = [], _clocks()

    def ring(_, frame):
        # Half a module would be there for good; the next ring is near.
        if _imports(frame) or _spent(start) < seconds:
            return
        rings.append(1)
        if last and len(rings) > MOST_RINGS:
            os._exit(LATE)
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limited(action, seconds, last=False):
    """(result, None) of an action, or (None, facts of what it raised), within so many seconds.

    Where there are no signals, as on Windows and in a browser, whoever runs the notebook interrupts it.

    Args:  last: whether the process may end where the student's code catches every TimeUp
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not in_main:
        return _guarded(action)
    try:
        with _alarm(seconds, last):
            return _guarded(action)
    except TimeUp as late:
        return None, told(late)


@contextlib.contextmanager
def quiet(printed):
    """Takes what is printed meanwhile; nothing warns."""
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def answer(target, request: dict, arrays, last=False) -> tuple[dict, list]:
    """(header, arrays) of one call; whatever happens is in the header.

    Args:  request, arrays: as operations.perform; the request has its "seconds"
    """
    printed, start = Printed(), _clocks()
    with quiet(printed):
        done, error = limited(
            lambda: operations.perform(target, request, arrays),
            request["seconds"],
            last,
        )
    header, numbers = {"error": error, "results": [], "facts": {}, "changed": []}, []
    if done is not None:
        results, header["facts"], header["changed"] = done
        header["results"], numbers = (
            [facts for facts, _ in results],
            [array for _, array in results],
        )
    printed = [printed.count, printed.kept]
    return header | {"printed": printed, "seconds": _spent(start)}, numbers
