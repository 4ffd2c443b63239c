"""Solutions as objects: what a solution.py defines, and the tasks of the homeworks by the library they take."""

import linecache
from zlib import crc32

from normgrad.homework.task import homeworks


def of_source(source):
    """The names that a solution.py defines."""
    names, path = {"__name__": "solution"}, f"<solution {crc32(source.encode())}>"
    # Triton reads the source of a kernel from where Python keeps it.
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    exec(compile(source, path, "exec"), names)
    return names


def tasks_of(*libraries):
    """The names of the tasks that take arrays of one of the libraries; of all tasks without one."""
    tasks = [task for homework in homeworks().values() for task in homework.tasks]
    return [task.name for task in tasks if not libraries or task.library in libraries]
