"""What a student's process may not do, and whether the student's code replaced something that is not its own.

An audit hook cannot be taken out again by Python code. It keeps honest mistakes and cheap tricks from earning points;
it is no sandbox against an attacker, who needs a container around the whole grader. The student's process loads this
file by its path, so it imports nothing of normgrad.
"""

from __future__ import annotations

import os
import sys
from stat import S_ISDIR
from types import ModuleType

# What no solution needs: other processes, other files, the network, C pointers, the grader's own objects.
EVENTS = frozenset(
    "os.system os.fork os.forkpty os.kill os.killpg os.remove os.rename os.rmdir os.mkdir os.link os.symlink "
    "os.truncate os.chmod os.chown os.utime os.posix_spawn os.spawn os.startfile pty.spawn signal.pthread_kill "
    "gc.get_objects gc.get_referrers gc.get_referents sys._current_frames sys.settrace sys.setprofile "
    "sys._current_exceptions os.setxattr os.removexattr resource.prlimit".split()
)
FAMILIES = ("os.exec", "subprocess.", "socket.", "ctypes.", "shutil.", "winreg.")
# Attributes that lead from an exception or a generator to the frames of whoever called.
FRAMES = frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame"))
# Functions that hand on the frames that they find; a printed traceback holds text.
HANDING_ON = ("walk_tb", "walk_stack")
MOST_NOTES = 20
# What no audit event tells of: names in the file system, and what one process can do to another.
UNHEARD = ("mkfifo", "mknod", "setpriority", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "pidfd_open")
# Names that the libraries themselves change: the last value shown, and what torch.set_default_dtype sets.
SETTINGS = frozenset((("builtins", "_"), ("torch", "Storage")))


class Refused(Exception):
    """The student's code did what the grader does not allow."""


def memory_limit(extra: int) -> None:
    """At most `extra` bytes of address space beyond what the process has now, where the system can promise that."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + extra, now + extra))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


def _file_rule(files, stat):
    """A function that says what is wrong with opening a path, or nothing."""
    devices = set()
    for name in ("/proc", "/sys"):
        try:
            devices.add(stat(name).st_dev)
        except OSError:
            continue
    write, null = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, os.devnull

    def wrong(path, mode, flags):
        if not isinstance(path, (str, bytes)) or path == null:
            return None
        writing = bool(flags & write) if isinstance(flags, int) and mode is None else set(mode or "r") & set("wax+")
        if writing:
            return "opened a file to write it"
        try:
            found = stat(path)
        except OSError:
            return None
        if (found.st_dev, found.st_ino) in files:
            return "opened a file of normgrad"
        if found.st_dev in devices or S_ISDIR(found.st_mode):
            return "looked into the system's own files"
        return None

    return wrong


def _frame_rule(folders, frame_at):
    """A function that says whether the student's own code asks for frames, where the grader's are within reach."""
    folders, looking = (*folders, "<frozen"), []

    def wrong():
        if looking:  # looking at frames is an event itself
            return None
        looking.append(1)
        try:
            frame = frame_at(2)
            while frame is not None and _hands_on(frame.f_code):
                frame = frame.f_back
            own = frame is not None and not frame.f_code.co_filename.startswith(folders)
            return "looked at the grader's own frames" if own else None
        finally:
            looking.clear()

    return wrong


def _hands_on(code) -> bool:
    return code.co_name in HANDING_ON or os.path.basename(code.co_filename) == "inspect.py"


def arm(modules, files, folders) -> list[str]:
    """Refuses, from now on and for good, some imports, some files and the events above; returns the list of attempts.

    Args:  modules: top-level names that must not be imported; files: (device, inode) of files that must not be read
           folders: where code lies that is not the student's
    """
    modules, attempts = frozenset(modules), []
    file_rule, events, families, refused, most = _file_rule(files, os.stat), EVENTS, FAMILIES, Refused, MOST_NOTES
    frame_rule, frames = _frame_rule(folders, sys._getframe), FRAMES

    def attempt(words):
        if len(attempts) < most and words not in attempts:
            attempts.append(words)
        return refused(words)

    def hook(event, args):
        if event == "import":
            if isinstance(args[0], str) and args[0].partition(".")[0] in modules:
                raise attempt(f"imported {args[0].partition('.')[0]}")
        elif event == "open":
            words = file_rule(*args[:3])
            if words:
                raise attempt(words)
        elif event == "sys._getframe" or event == "object.__getattr__" and args[1] in frames:
            words = frame_rule()
            if words:
                raise attempt(words)
        elif event in events or event.startswith(families):
            raise attempt(f"called {event}")

    for place in (os, sys.modules.get("posix", os)):
        for name in UNHEARD:
            vars(place).pop(name, None)
    sys.addaudithook(hook)
    return attempts


def inodes(folder, besides) -> set[tuple[int, int]]:
    """(device, inode) of every file below a folder, those in one folder left out."""
    found = set()
    for path, _, names in os.walk(folder):
        for name in names if path != besides else ():
            about = os.stat(os.path.join(path, name))
            found.add((about.st_dev, about.st_ino))
    return found


def _watched(extra):
    """(name, owner) of modules and classes; a class of Python may be patched like a module."""
    for name in ("builtins", "numpy", "numpy.linalg", "math", "torch", "torch.autograd", "torch.nn.functional"):
        if name in sys.modules:
            yield name, sys.modules[name]
    if "torch" in sys.modules:
        yield "torch.Tensor", sys.modules["torch"].Tensor
        yield "torch.autograd.Function", sys.modules["torch"].autograd.Function
    for name in ("json", "json.encoder"):  # replies are written with it
        yield name, sys.modules[name]
    yield "json.JSONEncoder", sys.modules["json"].JSONEncoder
    for module in extra:
        own = getattr(module, "__name__", "the grader")
        yield own, module
        classes = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == own]
        yield from ((f"{own}.{each.__name__}", each) for each in classes)


def snapshot(extra=()) -> list:
    """What the libraries, the builtins and further modules hold now, for `replaced` and `restore`."""
    return [(name, owner, dict(vars(owner)), frozenset(dir(owner))) for name, owner in _watched(extra)]


def _changes(before):
    """(name, owner, key, what it held); a class has no such key of its own where it inherited the name."""
    for name, owner, held, known in before:
        space = vars(owner)
        for key, value in held.items():
            if callable(value) and (name, key) not in SETTINGS and space.get(key) is not value:
                yield name, owner, key, value
        # A library's own part, such as numpy.random, arrives when it is first used: that is no replacement.
        fresh = [key for key in space if key not in held and key in known]
        for key in (key for key in fresh if not isinstance(space[key], ModuleType)):
            yield name, owner, key, None


def replaced(before) -> list[str]:
    """Names that a library or a class holds no longer, or with another value, than in the snapshot."""
    return [f"{name}.{key}" for name, _, key, _ in _changes(before)]


def restore(before) -> None:
    """Puts back what `replaced` finds."""
    for _, owner, key, value in list(_changes(before)):
        if value is None:
            delattr(owner, key)
        else:
            setattr(owner, key, value)
