"""What a student's process may not do: too much memory, other processes, written files, a few imports, torch's own
derivatives and norms, which the grader's calls use all the same.

This stops accidents and short cuts in words. Who wants to get around it can, from inside any Python process: the
comparison is not there, and code of people one does not know is graded in a container.
"""

from __future__ import annotations

import math
import os
import sys

BY_HAND = (
    "this homework asks for the derivative by hand: torch's own is switched off here"
)
NORMS = (
    "layer_norm", "rms_norm", "group_norm", "instance_norm", "batch_norm", "native_layer_norm",
    "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward", "native_batch_norm",
    "native_batch_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward",
)  # fmt: skip
DERIVATIVES = (
    "grad",
    "grad_and_value",
    "vjp",
    "jvp",
    "linearize",
    "jacrev",
    "jacfwd",
    "hessian",
)  # of torch.func
# Ways around what is switched off below; a solution that names one earns nothing.
WAYS_AROUND = (
    "_ImperativeEngine", "_engine_run_backward", "_execution_engine", "make_dual", "_make_dual", "jvp", "jacfwd",
    "linearize", "_VariableFunctions",
)  # fmt: skip


class OneAtATime:
    """torch's engine, which runs once for each `allow` and never inside of a run."""

    def __init__(self, engine):
        self.engine, self.allowed = engine, False

    def run_backward(self, *args, **options):
        """The engine's own, where the grader has asked for it."""
        if not self.allowed:
            raise RuntimeError(BY_HAND)
        self.allowed = False
        return self.engine.run_backward(*args, **options)

    def __getattr__(self, name):
        return getattr(self.engine, name)


def grad(*args, **options):
    """torch.autograd.grad for the grader."""
    import torch

    if isinstance(engine := torch.autograd.Variable._execution_engine, OneAtATime):
        engine.allowed = True
    return torch.autograd.grad(*args, **options)


def _refusing(name):
    def refused(*args, **options):
        raise RuntimeError(BY_HAND)

    refused.__name__ = name
    return refused


def switch_off() -> None:
    """From now on only `grad` differentiates, and no norm of torch's runs."""
    import torch

    torch.autograd.Variable._execution_engine = OneAtATime(
        torch.autograd.Variable._execution_engine
    )
    for place, names in (
        (torch, NORMS),
        (torch.nn.functional, NORMS),
        (torch._VF, NORMS),
        (torch.func, DERIVATIVES),
    ):
        for name in names:
            if hasattr(place, name):
                setattr(place, name, _refusing(name))
    for name in NORMS:
        operator = getattr(torch.ops.aten, name, None)
        for each in (
            (operator, *(getattr(operator, one) for one in operator.overloads()))
            if operator
            else ()
        ):
            each._op = _refusing(name)


EXTRA_MEMORY = 2 * 2**30
LARGEST_FILE = 2**20
MODULES = (
    "normgrad",
    "jax",
    "tensorflow",
    "autograd",
    "cffi",
    "multiprocessing",
    "sqlite3",
)
EVENTS = (
    "subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "os.system", "os.fork", "os.exec", "os.posix_spawn",
    "os.spawn", "os.kill", "signal.pthread_kill", "resource.prlimit", "os.remove", "os.rename", "os.rmdir", "os.mkdir",
    "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.setxattr",
)  # fmt: skip
# These files hold no right answers, and a traceback shows lines of them.
HERE = os.path.dirname(os.path.realpath(__file__))
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused(Exception):
    """The student's code did what the grader does not allow."""


def limits(seconds: float) -> None:
    """The system's own limits on memory, processor time and files, where there are such."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            memory = int(file.read().split()[0]) * resource.getpagesize() + EXTRA_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, OSError, ValueError):  # Windows; a system without /proc
        return
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(
        resource.RLIMIT_CPU, (math.ceil(used + seconds), math.ceil(used + seconds) + 1)
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wrong_file(path, mode, flags, protected):
    """What is wrong with opening a path, or nothing."""
    if not isinstance(path, (str, bytes)) or path == os.devnull:
        return None
    if flags & WRITING if mode is None else set(mode) & set("wax+"):
        return "opened a file to write it"
    where = os.path.realpath(os.fsdecode(path))
    if where.startswith(protected) and not where.startswith(HERE):
        return "opened a file of normgrad"
    return (
        "looked into the system's own files"
        if where.startswith(("/proc/", "/sys/"))
        else None
    )


def refuse(libraries, protected) -> None:
    """Refuses, from now on and for good, some imports, some files and other processes.

    Args:  libraries: that the homework takes; protected: a folder that is not to be read
    """
    modules = {*MODULES, *({"torch"} - set(libraries))}
    protected = os.path.join(os.path.realpath(protected), "")

    def hook(event, args):
        words = None
        if event == "import":
            name = str(args[0]).partition(".")[0]
            words = f"imported {name}" if name in modules else None
        elif event == "open":
            words = _wrong_file(*args[:3], protected)
        elif event.startswith(EVENTS):
            words = f"called {event}"
        if words:
            raise Refused(words)

    sys.addaudithook(hook)
