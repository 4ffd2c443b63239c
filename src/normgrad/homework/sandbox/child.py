"""The student's process: warm, it holds the libraries, and forks for each call a process that loads solution.py.

Started by file name, it never imports normgrad and holds no right answer: every comparison is made by the grader. Where
a system cannot fork, it serves one call and ends.
"""

from __future__ import annotations

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.dirname(HERE)

from sandbox import (  # noqa: E402
    disk,
    kernels,
    operations,
    refusals,
    running,
    source,
    wire,
)

del sys.path[0]

import contextlib  # noqa: E402
import gc  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import time  # noqa: E402

GRACE_SECONDS = 2


def warm(libraries) -> None:
    """Imports what the homework needs, so that no call pays for it."""
    operations.warm_up(libraries)
    if "torch" in libraries:
        import torch

        torch.set_num_threads(1)
        refusals.switch_off()
    if "triton" in libraries:
        kernels.warm_up()
    refusals.refuse_imports(libraries)
    gc.freeze()  # what is never looked at again is never copied for a fork


def load(path):
    """The module of solution.py; modules beside it are found last, so that none hides another."""
    sys.path.append(os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("solution", path)
    module = sys.modules["solution"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def libraries_of(path) -> list[str]:
    """The modules that a solution.py imports and that it has not got beside it, as it is written; nothing is run."""
    beside = {name.partition(".")[0] for name in os.listdir(os.path.dirname(path))}
    with open(path, encoding="utf8", errors="replace") as file:
        names = source.imported(file.read())
    roots = beside | sys.stdlib_module_names
    return [name for name in names if name.partition(".")[0] not in roots]


def respond(setting, request, arrays) -> bytes:
    """The reply to one request, in a process that ends afterwards."""
    refusals.limits(setting["load_seconds"] + request["seconds"] + GRACE_SECONDS)
    running.watch_queue()
    if request["action"] == "imports":
        names, _ = running.limited(
            lambda: libraries_of(setting["solution"]), setting["load_seconds"]
        )
        return wire.pack({"imported": names or []})
    disk.restrict(setting["ruleset"])
    refusals.refuse_actions(setting["readable"])
    printed = running.Printed()
    with running.quiet(printed):
        module, error = running.limited(
            lambda: load(setting["solution"]), setting["load_seconds"], last=True
        )
    if error:
        return wire.pack(
            {
                "error": {**error, "loading": True},
                "printed": [printed.count, printed.kept],
            }
        )
    if request["action"] == "look":
        described = {
            entry: source.look(getattr(module, entry))
            for entry in request["entries"]
            if hasattr(module, entry)
        }
        return wire.pack({"error": None, "looks": described})
    target = getattr(module, request["entry"])
    return wire.pack(*running.answer(target, request, arrays, last=True))


def forked(setting, request, arrays) -> bytes:
    """The reply of a process of its own, or why there is none."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            os.close(reading)
            with os.fdopen(writing, "wb") as stream:
                try:
                    stream.write(respond(setting, request, arrays))
                except wire.Garbled:  # it returned more than is read
                    stream.write(wire.pack({"failure": {"what": "garbled"}}))
        os._exit(0)
    os.close(writing)
    late, start = [], time.monotonic()
    limit = setting["load_seconds"] + request["seconds"] + GRACE_SECONDS

    def end(*_):
        late.append(1)
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)

    def ring(*_):
        waited = b""
        with contextlib.suppress(OSError), open(f"/proc/{process}/schedstat") as file:
            waited = file.read().encode()
        if time.monotonic() - start - running.queued(waited) > limit:
            end()

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit, 1)
    failure = {}
    try:
        with os.fdopen(reading, "rb") as stream:
            message = wire.receive(stream)
        end()
    except EOFError:
        failure = {"what": "died"}
    except wire.Garbled:
        failure = {"what": "garbled"}
        end()
    _, status = os.waitpid(process, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if not failure:
        return wire.LENGTH.pack(len(message)) + message
    code = os.waitstatus_to_exitcode(status)
    if late and failure["what"] == "died" or code in (running.LATE, -signal.SIGXCPU):
        failure = {"what": "time"}
    return wire.pack({"failure": {**failure, "code": code}})


def serve(setting, incoming, outgoing) -> None:
    """Answers requests until the grader hangs up."""
    warm(setting["libraries"])
    sys.path.append(os.path.dirname(setting["protected"]))
    readable = disk.Readable(setting["solution"], setting["protected"])
    setting |= {"readable": readable, "ruleset": readable.ruleset()}
    os.dup2(0, 2)  # until here, a failure has words
    outgoing.write(wire.pack({"ready": True}))
    outgoing.flush()
    with contextlib.suppress(EOFError):
        while True:
            request, arrays = wire.unpack(wire.receive(incoming))
            # What libraries do while they are imported is not the student's doing, and no call pays for it.
            for name in request.get("imported", ()):
                if name not in sys.modules:
                    with contextlib.suppress(Exception):
                        importlib.import_module(name)
            if not setting["fork"]:
                outgoing.write(respond(setting, request, arrays))
                return
            outgoing.write(forked(setting, request, arrays))
            outgoing.flush()


def main():
    """Keeps the two pipes for the grader and gives the student's code an empty input and a closed mouth."""
    setting = json.loads(sys.argv[1])
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    sys.dont_write_bytecode = True
    os.register_at_fork(
        after_in_child=lambda: (
            os.close(incoming.fileno()),
            os.close(outgoing.fileno()),
        )
    )
    serve(setting, incoming, outgoing)


if __name__ == "__main__":
    main()
