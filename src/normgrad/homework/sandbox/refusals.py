"""What a student's process may not do: too much memory, other processes, written files, a few imports.

This stops accidents and short cuts in words. Who wants to get around it can, from inside any Python process: the
comparison is not there, and code of people one does not know is graded in a container.
"""

from __future__ import annotations

import math
import os
import sys

EXTRA_MEMORY = 2 * 2**30
LARGEST_FILE = 2**20
MODULES = ("normgrad", "jax", "tensorflow", "autograd", "cffi", "multiprocessing", "sqlite3")
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
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used + seconds), math.ceil(used + seconds) + 1))
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
    return "looked into the system's own files" if where.startswith(("/proc/", "/sys/")) else None


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
