"""A solution.py in a process of its own, which is started again whenever it ends or has to be ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from . import wire
from .student import NOTHING, Outcome, Student, outcome

CHILD = Path(__file__).with_name("child.py")
PROTECTED = Path(__file__).parents[2]
# Loading torch on a slow machine that does something else, too.
START_SECONDS = 600
LOAD_SECONDS = 10
IMPORT_SECONDS = 60
# What the process itself takes beside that at most, and whoever reads its reply. One that forks ends by itself what has
# had its time, so that a busy machine may take so many times as long.
MORE_SECONDS, BUSY = 5, 20
# Of solution.py, and of every text that comes from the student's process.
LONGEST_SOURCE, LONGEST_TEXT = 2**20, 1000


# What reading the parts of a reply raises, when somebody made them up.
NOT_WHAT_IT_SAYS = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


class Remote(Student):
    """The student's process. Args: path of solution.py; the libraries and the names that the homework needs."""

    def __init__(self, path, libraries=("numpy",), entries=()):
        self.path, self.libraries, self.entries = (
            Path(path).resolve(),
            tuple(libraries),
            tuple(entries),
        )
        self.process, self.looks, self.broken, self.imported = (
            None,
            {},
            self._refused(),
            [],
        )
        if self.broken is None:
            self._load()

    def look(self, entry):
        """What solution.py says of a name."""
        return self.looks.get(entry, NOTHING)

    def program(self, entry):
        """The text of solution.py."""
        return self.path.read_text(encoding="utf8", errors="replace")

    def close(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (
                self.process.stdin,
                self.process.stdout,
                self.process.stderr,
            ):
                with contextlib.suppress(OSError):
                    stream.close()
            self.process = None

    def call(self, entry, request) -> Outcome:
        """One call, in a process that has met no other."""
        if self.broken is not None:
            return self.broken
        if entry not in self.looks:
            return Outcome(None, {"what": "missing", "entry": entry})
        try:
            return super().call(entry, request)
        except NOT_WHAT_IT_SAYS:
            return Outcome(None, {"what": "garbled"})

    def _refused(self):
        """An Outcome for a file that is not run at all."""
        if (size := self.path.stat().st_size) <= LONGEST_SOURCE:
            return None
        return Outcome(None, {"what": "long", "bytes": size, "most": LONGEST_SOURCE})

    def _load(self):
        header, _ = self._asked(None, {"action": "imports", "seconds": 0}, [])
        self.imported = list(map(str, header.get("imported", ())))
        # Some libraries make a cache when they are imported for the first time.
        request = {"action": "look", "entries": self.entries, "seconds": IMPORT_SECONDS}
        header, _ = self._asked(None, request, [])
        try:
            if "looks" in header:
                for entry, described in header["looks"].items():
                    self.looks[str(entry)] = _looked(described)
                return
            failed = outcome({"printed": (0, ""), **header}, [], LOAD_SECONDS)
        except NOT_WHAT_IT_SAYS:
            failed = Outcome(None, {"what": "garbled"})
        self.broken = Outcome(
            None, {**failed.failure, "loading": True}, printed=failed.printed
        )

    def _asked(self, entry, header, arrays):
        """(header, arrays) of the reply, in which a process that does not answer is a failure."""
        if self.process is None:
            self._start()
        try:
            message = wire.pack({**header, "imported": self.imported}, arrays)
            seconds = header["seconds"] + LOAD_SECONDS + MORE_SECONDS
            limit = BUSY * seconds if self.forks else seconds
            reply, arrays = wire.unpack(self._exchange(message, limit))
        except wire.Garbled:
            reply = {"failure": {"what": "garbled"}}
        except (EOFError, OSError):
            self.close()
            reply = {"failure": {"what": "time"}}
        return _plain(reply), arrays

    def _exchange(self, message, seconds):
        """The reply to a message, none after so many seconds.

        Raises:  EOFError or OSError where the process ended
        """
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            if message:
                self.process.stdin.write(message)
                self.process.stdin.flush()
            return wire.receive(self.process.stdout)
        finally:
            timer.cancel()
            if message and not self.forks:
                self.close()

    @property
    def forks(self) -> bool:
        """Whether the process lives on after a call."""
        return hasattr(os, "fork")

    def _start(self):
        setting = {"solution": str(self.path), "libraries": self.libraries, "protected": str(PROTECTED),
                   "load_seconds": LOAD_SECONDS, "fork": self.forks}  # fmt: skip
        # No fork survives threads of a library's, and with a device torch starts some.
        settings = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TRITON_INTERPRET": "1",
        }
        environment = {**os.environ, **settings, "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(CHILD), json.dumps(setting)], cwd=self.path.parent, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            self._exchange(b"", START_SECONDS)
        except (EOFError, OSError):
            words = self.process.stderr.read().decode(errors="replace").strip()[-400:]
            self.close()
            raise RuntimeError(
                f"the process for the student's code did not start: {words}"
            ) from None


def _looked(described) -> dict:
    """What source.look said, made of what it should be made of."""
    if described.keys() != NOTHING.keys():
        raise KeyError("look")
    return {name: list(map(str, names)) for name, names in described.items()}


def _plain(value):
    """What came from a student's process with short texts, in which nothing can steer a terminal."""
    if isinstance(value, dict):
        return {_plain(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return "".join(
            c if c.isprintable() or c in "\n\t" else " " for c in value[:LONGEST_TEXT]
        )
    return value
