"""What a student's process may read: the libraries, its own folder and the modules of normgrad that hold no answer.

On Linux from 5.13 on, the kernel keeps to it (Landlock), through whatever door a file is opened. Elsewhere only what
Python itself opens is seen.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig

# Modules of normgrad that a submission may import: they compute no norm; of the operator they have the text.
OFFERED = (
    "normgrad", "normgrad.spec", "normgrad.dtypes", "normgrad.tolerance", "normgrad.ledger", "normgrad.ledger.entries",
    "normgrad.checks", "normgrad.checks.finite_difference", "normgrad.checks.tolerance", "normgrad.checks.cases",
    "normgrad.symbolic",
    *(f"normgrad.symbolic.{name}" for name in (
        "admission calculus chains codegen conditions definitions domains elementary "
        "measured normal_form notation opaque open_sets patience proof registry render signs steps symbols trace "
        "witness written".split()
    )),
    "normgrad.verify",
    *(f"normgrad.verify.{name}" for name in (
        "api array_values arrays binding branches certain classes conditions confront declarations decorators "
        "definitions difference digits effects entries front functions genuine guesses header host importing instead "
        "interpreter introspection kernel language launch locks loops maxima memory modules names nodes operands "
        "over_rows pairs places point programs python_objects python_source ranges replay scopes sizes source sums "
        "syntax tables tables.dtypes tables.elementary tables.layers tables.libraries tables.numpy tables.python "
        "tables.signatures tables.torch tables.triton text tiles values verdict welford widths".split()
    )),
    "normgrad.prove",
    *(f"normgrad.prove.{name}" for name in (
        "candidates claim folding hints names question reasons typed verbs verdict".split()
    )),
)  # fmt: skip
# What a submission may want of them: the table of the page and the words of a refusal.
USES = {
    "normgrad.checks.finite_difference": "slopes along a direction with their error, the complex step",
    "normgrad.checks.tolerance": "unit roundoff of each format, rounding to a format",
    "normgrad.checks.cases": "hostile rows from a seeded generator",
    "normgrad.symbolic": "the index calculus and its proofs, without the book's equations",
    "normgrad.prove": "claims in NumPy's words, proved for every size",
    "normgrad.verify": "whether a function or a kernel of yours computes a norm, read from its text",
}
NAMED = ", ".join(USES)
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/usr/local/share", "/etc/fonts",
          "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom", "/dev/zero")  # fmt: skip

# Of linux/landlock.h, where all rights of its first version are the lowest 13 bits.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NO_NEW_PRIVILEGES, PATH_BENEATH = 38, 1
READ_FILE, READ_FOLDER, ALL_RIGHTS = 1 << 2, 1 << 3, (1 << 13) - 1


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def files_of(package: str) -> list[str]:
    """The files of the modules that are offered. Args: package: the folder of normgrad"""
    paths = [os.path.join(package, *name.split(".")[1:]) for name in OFFERED]
    return [
        os.path.join(path, "__init__.py") if os.path.isdir(path) else f"{path}.py"
        for path in paths
    ]


def around(path: str, hole: str) -> tuple[list[str], list[str]]:
    """(paths without the hole that make up a path, the folders between them and the hole)."""
    if path == hole:
        return [], []
    if not hole.startswith(os.path.join(path, "")):
        return [path], []
    whole, between = [], [path]
    for name in os.listdir(path):
        parts, folders = around(os.path.join(path, name), hole)
        whole += parts
        between += folders
    return whole, between


class Readable:
    """The files that may be read. Args: solution: path of solution.py; package: the folder of normgrad"""

    def __init__(self, solution: str, package: str):
        names = ("stdlib", "platstdlib", "purelib", "platlib")
        libraries = [sysconfig.get_path(name) for name in names]
        own = os.path.dirname(solution)
        roots = {
            os.path.realpath(path) for path in (own, *libraries, *sys.path, *SYSTEM)
        }
        self.package, self.files = os.path.realpath(package), set()
        self.files.update(map(os.path.realpath, files_of(package)))
        self.paths, self.folders = [], []
        for root in filter(os.path.exists, roots):
            paths, folders = around(root, self.package)
            self.paths += paths
            self.folders += folders

    def holds(self, path: str) -> bool:
        """Whether a file may be read."""
        path = os.path.realpath(path)
        beneath = (os.path.join(root, "") for root in self.paths)
        return path in self.files or f"{path}{os.sep}".startswith(tuple(beneath))

    def ruleset(self):
        """A file descriptor of the kernel's rules; None where it has no such rules."""
        if not sys.platform.startswith("linux"):
            return None
        attributes = _Ruleset(ALL_RIGHTS)
        ruleset = _system(CREATE_RULESET, ctypes.byref(attributes), 8, 0)
        if ruleset < 0:
            return None
        for path in (*self.paths, *self.files):
            rights = READ_FILE | READ_FOLDER if os.path.isdir(path) else READ_FILE
            _allow(ruleset, path, rights)
        for path in self.folders:
            _allow(ruleset, path, READ_FOLDER)
        return ruleset


def _system(number, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    return library.syscall(ctypes.c_long(number), *arguments)


def _allow(ruleset, path, rights):
    try:
        opened = os.open(path, os.O_PATH)
    except OSError:  # a link that leads nowhere
        return
    rule = _Beneath(rights, opened)
    _system(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(opened)


def restrict(ruleset) -> None:
    """From now on and for good, this process reads by these rules and writes nothing."""
    if ruleset is None:
        return
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if _system(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock refused its own rules")
