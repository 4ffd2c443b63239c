"""A solution.py in a process of its own, which is started again whenever it ends or has to be ended."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from . import static, wire
from .interface import BUFFER, Arena, Outcome, Student, as_request, outcome

CHILD = Path(__file__).with_name("child.py")
PROTECTED = Path(__file__).parents[2]
# Loading torch on a slow machine that does something else, too; and the student's own imports.
START_SECONDS, LOAD_SECONDS, GRACE_SECONDS = 120, 10, 0.5
EXTRA_MEMORY = 2 * 2**30
# Of solution.py, and of every text that comes from the student's process.
LONGEST_SOURCE, LONGEST_TEXT = 2**20, 1000
# Replies that nobody has read: a process that writes more of them is not listened to.
UNREAD = 4
REFUSED_MODULES = ("normgrad", "jax", "tensorflow", "autograd", "ctypes", "cffi", "multiprocessing",
                   "_multiprocessing", "_posixshmem", "sqlite3", "_sqlite3")  # fmt: skip


class Remote(Student):
    """The student's process. Args: path of solution.py; the libraries and the names that the homework needs."""

    def __init__(self, path, libraries=("numpy",), entries=()):
        self.path, self.libraries, self.entries = Path(path).resolve(), tuple(libraries), tuple(entries)
        handle, self.memory = tempfile.mkstemp(prefix="homework-")
        os.truncate(handle, BUFFER)
        self.buffer = mmap.mmap(handle, 0)
        os.close(handle)
        self.arena, self.process, self.broken, self.defines = Arena(self.buffer), None, None, ()
        self.starts = 0
        if self.path.stat().st_size > LONGEST_SOURCE:
            self.broken = Outcome(None, {"what": "long", "bytes": self.path.stat().st_size, "most": LONGEST_SOURCE})

    def call(self, entry, request) -> Outcome:
        """One call in the student's process, which is started first where there is none."""
        if self.process is None and self.broken is None:
            self.begin(self.left())
        if self.broken is not None:
            return self.broken
        if entry not in self.defines:
            return Outcome(None, {"what": "missing", "entry": entry})
        plain = as_request(request, self.arena, entry)
        return self._exchange({"action": "call", **plain}, self.left(), request.answer)

    def begin(self, seconds) -> None:
        """Starts the clock, and first the process, whose start is not the student's time."""
        if self.process is None and self.broken is None:
            self._start()
        super().begin(seconds)

    def fresh(self) -> None:
        """Another process for the next call: nothing that solution.py kept in this one is left."""
        self._stop()
        self.arena.bytes[:] = 0  # the memory that both processes share

    def close(self) -> None:
        """Ends the process and removes the shared memory."""
        self._stop()
        with contextlib.suppress(OSError):  # a system that keeps mapped files removes them with its temporary ones
            Path(self.memory).unlink(missing_ok=True)

    def source(self) -> str:
        """The text of solution.py, as far as it is text, and not too long."""
        if self.broken is not None and self.broken.failure["what"] == "long":
            return ""
        return self.path.read_text(encoding="utf8", errors="replace")

    def globals_of(self, entry):
        """Module variables that the entry reads in solution.py."""
        return static.globals_in_source(self.source(), entry)

    def forbidden_of(self, entry, forbidden):
        """Forbidden names in what solution.py says about the entry."""
        return static.forbidden_in_source(self.source(), entry, forbidden)

    def raises_of(self, entry):
        """Whether what solution.py says about the entry raises or asserts."""
        return static.raises_in_source(self.source(), entry)

    def _start(self):
        refused = REFUSED_MODULES + (() if "torch" in self.libraries else ("torch",))
        setting = {"memory": self.memory, "solution": str(self.path), "libraries": self.libraries,
                   "extra_memory": EXTRA_MEMORY, "refused_modules": refused, "protected": str(PROTECTED)}  # fmt: skip
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(CHILD), json.dumps(setting)], cwd=self.path.parent, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.starts += 1
        self.replies = queue.Queue(UNREAD)
        threading.Thread(target=_listen, args=(self.process.stdout, self.replies), daemon=True).start()
        ready = self._next(START_SECONDS)
        if not isinstance(ready, tuple):
            words = self.process.stderr.read().decode(errors="replace") if ready == "ended" else "no answer"
            self._stop()
            raise RuntimeError(f"the process for the student's code did not start: {words.strip()[-400:]}")
        self.defines = ()
        first = self._exchange({"action": "load", "entries": self.entries}, LOAD_SECONDS)
        self.defines = tuple(first.facts.get("defines", ()))
        if first.failure is not None and self.broken is None:
            self.broken = Outcome(None, {**first.failure, "loading": True}, printed=first.printed)

    def _stop(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process = None

    def _next(self, seconds):
        """(header, arrays), or "time", "ended" or "garbled"."""
        try:
            return self.replies.get(timeout=seconds)
        except queue.Empty:
            return "time"

    def _exchange(self, request, seconds, answer=None) -> Outcome:
        """Sends a request and reads its reply; a process that does not answer properly is ended."""
        ticket = secrets.token_hex(8)
        try:
            reply = self._asked({**request, "ticket": ticket}, seconds, answer)
        except OSError:
            reply = "ended"
        changed = self.arena.changed() if request["action"] == "call" else ()
        if isinstance(reply, tuple):
            try:
                return self._read(*reply, ticket, changed)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
                reply = "garbled"
        limit = LOAD_SECONDS if request["action"] == "load" else self.seconds
        failure = self._misbehaved(reply, limit)
        return Outcome(None, failure, changed=changed)

    def _asked(self, request, seconds, answer):
        """The reply to a request; what the process asks before it replies is answered.

        Raises:  OSError where nobody reads
        """
        end, writer = time.monotonic() + seconds, None
        self._send(wire.pack(request))
        reply = self._next(seconds)
        while answer is not None and isinstance(reply, tuple) and "question" in reply[0]:
            # A process that asks and does not listen must not keep the grader: whoever writes can wait for ever.
            if writer is not None:
                writer.join(max(0.0, end - time.monotonic()))
            if time.monotonic() > end:
                return "time"
            facts, arrays = answer(reply[0]["question"], reply[1])
            writer = threading.Thread(target=self._said, args=(wire.pack({"answer": facts}, arrays),), daemon=True)
            writer.start()
            reply = self._next(max(0.0, end - time.monotonic()))
        return reply

    def _send(self, message):
        self.process.stdin.write(message)
        self.process.stdin.flush()

    def _said(self, message):
        """Sends an answer, unless the process is gone."""
        with contextlib.suppress(OSError, ValueError):
            self._send(message)

    def _misbehaved(self, reply, limit):
        """What a process did that did not answer, which is ended here."""
        if reply == "ended":
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                reply = "garbled"
        code = self.process.returncode
        if reply == "time" and (error := self._interrupted()):
            place = {name: error[name] for name in ("line", "code", "function") if name in error}
            return {"what": "time", "seconds": limit, **place}
        self._stop()
        if reply == "time":
            return {"what": "time", "seconds": limit}
        return {"what": "died", "code": code} if reply == "ended" else {"what": "garbled"}

    def _interrupted(self) -> dict:
        """Where the student's code was stopped without its process; empty if it was not.

        Starting torch again would take seconds.
        """
        if os.name != "posix":
            return {}
        self.process.send_signal(signal.SIGINT)
        reply = self._next(GRACE_SECONDS)
        error = reply[0].get("error") if isinstance(reply, tuple) else None
        return error if isinstance(error, dict) and error.get("type") == "KeyboardInterrupt" else {}

    def _read(self, header, arrays, ticket, changed) -> Outcome:
        header = _plain(header)
        if header["ticket"] != ticket:
            raise ValueError("a reply to another request")
        count, kept = header["printed"]
        rest = {"changed": changed, "printed": (int(count), str(kept)), "attempts": tuple(map(str, header["attempts"]))}
        if not header["whole"]:
            self._stop()
        if header["replaced"]:
            return Outcome(None, {"what": "replaced", "names": [str(name) for name in header["replaced"]]}, **rest)
        if header["error"] is not None:
            return Outcome(None, {"what": "raised", **dict(header["error"])}, **rest)
        results = [(dict(facts), array) for facts, array in zip(header["results"], arrays, strict=True)]
        return outcome(results, facts=dict(header["facts"]), **rest)


def _plain(value):
    """What came from a student's process with short texts, in which nothing can steer a terminal."""
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return "".join(c if c.isprintable() or c in "\n\t" else " " for c in value[:LONGEST_TEXT])
    return value


def _listen(stream, replies):
    """Puts every message of a process into a queue, then why there are no more."""
    with contextlib.suppress(queue.Full):
        try:
            while True:
                replies.put_nowait(wire.read(stream))
        except EOFError:
            replies.put_nowait("ended")
        except wire.Garbled:
            replies.put_nowait("garbled")
        except (OSError, ValueError):
            replies.put_nowait("ended")
