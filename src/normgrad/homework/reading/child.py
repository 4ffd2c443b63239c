"""Reading in a process of its own, within a limit of processor time and memory; what is given up is said."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

from ...mistakes.table import UNKNOWN
from ..named import Diagnosis

SECONDS, MORE_MEMORY = 20, 2 << 30
WALL = 60  # times as long it may take where the machine does something else, too
HINT = "The points are those of the numbers; no equation can be shown beside them."


def in_child(read: Callable[[], list[Diagnosis]], seconds=SECONDS) -> list[Diagnosis]:
    """What a function returns; a Diagnosis of what was given up where time or memory ends, [] where it raises.

    Without fork, as in a browser, it runs in this process.

    Args:  seconds: of the processor
    """
    diagnoses = _in_child(read, seconds)
    return [replace(diagnosis, measured=False) for diagnosis in diagnoses]


def _in_child(read, seconds):
    if not hasattr(os, "fork"):
        return _answer(read)
    sys.stdout.flush()
    sys.stderr.flush()
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        _write(into, read, seconds)
    os.close(into)
    try:
        text = _received(out, WALL * seconds)
        return [Diagnosis(**fields) for fields in json.loads(text)]
    except (TypeError, ValueError):
        return [_given_up(f"after {seconds} s of the processor")]
    finally:
        os.close(out)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _answer(read):
    try:
        return read()
    except MemoryError:
        return [_given_up("for want of memory")]
    except Exception:  # without a reading, the report still says what is wrong
        return []


def _given_up(why):
    return Diagnosis(UNKNOWN, f"The reading of your text was given up {why}", HINT)


def _write(into, read, seconds):
    """The child: writes what it has read, and ends."""
    import resource

    # what came with the parent stays: a collection that looks at it copies its pages, twice as long a reading
    gc.freeze()
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MORE_MEMORY,) * 2)
    except (OSError, ValueError):
        pass
    try:
        text = json.dumps(list(map(asdict, _answer(read))))
        with os.fdopen(into, "w") as stream:
            stream.write(text)
        code = 0
    finally:
        os._exit(code)


def _received(out, seconds):
    """All that the child writes within so many seconds."""
    parts = []
    while select.select([out], [], [], seconds)[0]:
        part = os.read(out, 1 << 16)
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()
