"""The student's process: loads solution.py, runs one requested call at a time, sends numbers back.

Started by file name, it never imports normgrad and holds no right answer: every comparison is made by the grader. What
the student prints, raises or breaks ends up in a reply; where the process does not survive, the grader says so.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[:1] = []  # the folder of this file, whose modules are not for a student's code

import importlib.util  # noqa: E402
import io  # noqa: E402
import linecache  # noqa: E402
import mmap  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import traceback  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT_OUTPUT, KEPT_MESSAGE, KEPT_NAME = 1000, 400, 60


def load(name, path, known=False):
    """A module of a file; known: whether `import name` finds it from now on."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    if known:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


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


def library_folders():
    """Folders whose frames are not the student's: this one, the standard library, and where NumPy is installed."""
    numpy = sys.modules["numpy"]
    return HERE, os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(numpy.__file__))


def told(error, folders) -> dict:
    """An exception as facts: type, message, and the last line of the student's own code that was running."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__  # Triton's interpreter wraps what a kernel raised
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith((*folders, "<frozen"))
    ]
    facts = {"type": type(error).__name__[:KEPT_NAME], "bases": [base.__name__ for base in type(error).__mro__]}
    try:
        facts["message"] = str(error)[:KEPT_MESSAGE]
    except Exception:
        facts["message"] = ""
    if isinstance(error, SyntaxError):
        return facts | {"line": error.lineno, "code": (error.text or "").strip()[:120], "message": error.msg}
    if not frames:
        return facts
    name, line, function = frames[-1]
    return facts | {"line": line, "code": linecache.getline(name, line or 0).strip()[:120], "function": function}


def guarded(action, folders):
    """(result, None) of an action, or (None, facts) of whatever it raised."""
    try:
        return action(), None
    except BaseException as error:
        return None, told(error, folders)


class Server:
    """Holds the student's module between two requests; what it needs is set up before the student's code runs."""

    def __init__(self, setting, wire, calls, guard, more, pipes):
        self.wire, self.calls, self.guard, self.module, self.pipes = wire, calls, guard, None, pipes
        with open(setting["memory"], "r+b") as file:
            self.buffer = mmap.mmap(file.fileno(), 0)
        self.folders, self.path = library_folders(), setting["solution"]
        guard.memory_limit(setting["extra_memory"])
        # The files beside this one hold no right answers, and a traceback that torch prints shows lines of them.
        files = guard.inodes(setting["protected"], HERE)
        installed = (*self.folders, *(os.path.join(each, "") for each in sys.path if each))
        libraries = [each for each in installed if not self.path.startswith(each)]
        self.attempts = guard.arm(setting["refused_modules"], files, libraries)
        self.before = guard.snapshot((wire, calls, guard, *more, sys.modules["__main__"]))

    def load(self, request):
        """Runs solution.py and says which of the wanted names it defines."""
        sys.path.append(os.path.dirname(self.path))  # for the student's own modules; last, so that none hides another
        self.module = load("solution", self.path, known=True)
        return [], {"defines": [name for name in request["entries"] if hasattr(self.module, name)]}

    def call(self, request):
        """One call of one name of solution.py."""
        request["options"]["ask"] = self.ask
        return self.calls.perform(getattr(self.module, request["entry"]), request, self.buffer)

    def ask(self, facts, arrays):
        """(facts, arrays) that the grader answers in the middle of a call."""
        incoming, outgoing = self.pipes
        outgoing.write(self.wire.pack({"question": facts}, arrays))
        outgoing.flush()
        header, arrays = self.wire.read(incoming)
        return header["answer"], arrays

    def answer(self, request):
        """The reply to one request, as one message."""
        # In names of its own: the student's code may have changed this very class when it returns.
        guard, pack, before, attempts, folders = self.guard, self.wire.pack, self.before, self.attempts, self.folders
        printed = sys.stdout = sys.stderr = Printed()
        action = self.load if request["action"] == "load" else self.call
        done, error = guarded(lambda: action(request), folders)
        sys.stdout = sys.stderr = sys.__stdout__
        results, facts = done or ([], {})
        header = {"ticket": request["ticket"], "error": error, "facts": facts, "results": [r[0] for r in results]}
        header |= {"printed": [printed.count, printed.kept], "attempts": attempts[:]}
        header["replaced"] = guard.replaced(before)
        if header["replaced"]:
            guard.restore(before)
        header["whole"] = not guard.replaced(before)
        return pack(header, [r[1] for r in results])


def serve(setting, incoming, outgoing):
    """Answers requests until the grader hangs up."""
    names = ("wire", "calls", "guard")
    wire, calls, guard = (load(f"grader_{name}", os.path.join(HERE, f"{name}.py")) for name in names)
    import numpy  # noqa: F401

    more = {name: load(f"grader_{name}", os.path.join(HERE, f"{name}.py")) for name in calls.MORE}
    for each in more.values():
        calls.OPERATIONS.update(each.OPERATIONS)
    if "sympy" in setting["libraries"]:
        more["calls_symbols"].warm_up()
    if "triton" in setting["libraries"]:
        more["calls_watched"].warm_up()
    if "torch" in setting["libraries"]:
        without_derivatives(calls)
    server = Server(setting, wire, calls, guard, more.values(), (incoming, outgoing))
    outgoing.write(wire.pack({"ticket": "ready"}))
    outgoing.flush()
    while True:
        try:
            request, _ = wire.read(incoming)
        except EOFError:
            return
        outgoing.write(server.answer(request))
        outgoing.flush()


def without_derivatives(calls):
    """Takes torch's own derivatives away from the student's code; the grader's calls keep one."""
    import torch

    torch.set_num_threads(1)
    warm_up(torch)
    load("grader_hidden", os.path.join(HERE, "hidden.py")).hide(calls)


def warm_up(torch):
    """Uses an autograd Function once: torch imports the rest of itself then, not when the student's code is watched."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * ctx.saved_tensors[0] * dy

    x = torch.ones(2, requires_grad=True)
    (dx,) = torch.autograd.grad(Square.apply(x), x, torch.ones(2), create_graph=True)
    torch.autograd.grad(dx, x, torch.ones(2))


def main():
    """Keeps the two pipes for the grader and gives the student's code an empty input and a closed mouth."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    import json

    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.default_int_handler)  # how the grader stops a call that takes too long
    serve(json.loads(sys.argv[1]), incoming, outgoing)


if __name__ == "__main__":
    main()
