"""What a student's process may not do: too much memory, other processes, written files, a few imports, torch's own
derivatives and norms, which the grader's calls use all the same.

This says in words what accidents and short cuts met; the kernel keeps the disk closed, where it can (`disk`). The
comparison is not in this process, and code of people one does not know is graded in a container.
"""

from __future__ import annotations

import math
import os
import sys

from .disk import NAMED, OFFERED

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
    "linearize", "_VariableFunctions", "grad_fn", "next_functions",
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
    for module, names in (
        (torch, NORMS),
        (torch.nn.functional, NORMS),
        (torch._VF, NORMS),
        (torch.func, DERIVATIVES),
    ):
        for name in names:
            if hasattr(module, name):
                setattr(module, name, _refusing(name))
    for name in NORMS:
        operator = getattr(torch.ops.aten, name, None)
        for overload in (
            (
                operator,
                *(
                    getattr(operator, overload_name)
                    for overload_name in operator.overloads()
                ),
            )
            if operator
            else ()
        ):
            overload._op = _refusing(name)


EXTRA_MEMORY = 2 * 2**30
LARGEST_FILE = 2**20
MODULES = ("jax", "tensorflow", "autograd", "cffi", "torch")
EVENTS = (
    "subprocess.", "socket.", "ctypes.", "shutil.", "pty.", "sqlite3.", "os.system", "os.fork", "os.exec",
    "os.posix_spawn", "os.spawn", "os.kill", "signal.pthread_kill", "resource.prlimit", "os.remove", "os.rename",
    "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.setxattr",
)  # fmt: skip
# A traceback shows lines of these files.
HERE = os.path.dirname(os.path.realpath(__file__))
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused:
    """The student's code did what the grader does not allow. Libraries expect the errors that this is mixed into."""


class RefusedAction(Refused, PermissionError):
    """A file that may not be opened, a process that may not be started."""


class RefusedImport(Refused, ImportError):
    """A module that may not be imported."""


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


def _wrong_file(path, mode, flags, readable):
    """What is wrong with opening a path, or nothing."""
    if not isinstance(path, (str, bytes)) or path == os.devnull:
        return None
    if flags & WRITING if mode is None else set(mode) & set("wax+"):
        return "opened a file to write it"
    path = os.path.realpath(os.fsdecode(path))
    if path.startswith(HERE) or readable.holds(path):
        return None
    inside = path.startswith(os.path.join(readable.package, ""))
    whose = "of normgrad" if inside else "that is not in its own folder"
    return f"opened a file {whose}"


class Imports:
    """Looks at every import before Python's own finders. Args: libraries: that the homework takes"""

    def __init__(self, libraries):
        self.refused = {*MODULES} - set(libraries)

    def find_spec(self, name, path=None, target=None):
        """None, which leaves the module to the other finders.

        Raises:  RefusedImport
        """
        root = name.partition(".")[0]
        if root == "normgrad" and name not in OFFERED:
            raise RefusedImport(f"imported {name}; of normgrad it may import {NAMED}")
        if root in self.refused:
            raise RefusedImport(f"imported {root}")


def refuse_imports(libraries) -> None:
    """Refuses, from now on and for good, what a homework's solutions do not import.

    Args:  libraries: that the homework takes
    """
    imports = Imports(libraries)
    sys.meta_path.insert(0, imports)

    def hook(event, args):
        if event == "import":
            imports.find_spec(str(args[0]))

    sys.addaudithook(hook)


def refuse_actions(readable) -> None:
    """Refuses, from now on and for good, files and other processes.

    Args:  readable: the files that may be read
    """

    def hook(event, args):
        words = None
        if event == "open":
            words = _wrong_file(*args[:3], readable)
        elif event.startswith(EVENTS):
            words = f"called {event}"
        if words:
            raise RefusedAction(words)

    sys.addaudithook(hook)
