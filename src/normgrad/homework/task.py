"""A task as data, and the registry of all tasks: what `tasks`, `describe`, the starters and the grader read."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from numbers import Integral
from pathlib import Path
from pkgutil import iter_modules
from zlib import crc32

import numpy as np

from ..mistakes.table import titles
from .equations import place, shown
from .reading.tasks import Reads
from .solutions import starter

PUBLIC_SEED = 0


@dataclass(frozen=True)
class Draw:
    """Where the inputs come from: a seed, and the sizes of the ordinary cases.

    Raises:  ValueError for what is not a seed
    """

    seed: int = PUBLIC_SEED
    rows: int = 5
    columns: int = 8

    def __post_init__(self):
        seed = self.seed
        if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
            raise ValueError(f"seed: got {seed!r}, needs an integer that is at least 0")
        object.__setattr__(self, "seed", int(seed))

    def rng(self, *names: str) -> np.random.Generator:
        """The generator of one stage of one task, the same whatever other stages draw."""
        return np.random.default_rng([self.seed, crc32("/".join(names).encode())])

    @classmethod
    def of_file(cls, path) -> Draw:
        """The draw of a seed file, which holds one number; the sizes of the cases come from it as well.

        Raises:  ValueError saying what is wrong with the file
        """
        try:
            text = Path(path).read_text(encoding="utf8").strip()
            sizes = cls(int(text)).rng("sizes").integers((3, 5), (10, 14))
            return cls(int(text), *map(int, sizes))
        except OSError as error:
            got = f"{str(path)!r}, which cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            got = f"{str(path)!r}, which is not text"
        except ValueError:
            got = repr(text[:40])
        raise ValueError(f"seed file: got {got}, needs a whole number from 0 on")


@dataclass(frozen=True)
class Stage:
    """One check with its points.

    Args:  run: takes an Exam, returns a sentence about what was measured, raises Wrong
           interface: whether it says nothing about values; its points count once a stage about values passes
           follows: whether wrong values of an earlier stage are wrong here, too, so that one report of them is enough
           inputs: a name of the inputs that it draws: stages of one name have the same ones, and share the answers
           derived: whether it asks for a derivative that the student derives; one found by numbers earns nothing
    """

    name: str
    points: int
    run: Callable
    interface: bool = False
    follows: bool = False
    inputs: str = ""
    derived: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One thing to write.

    Args:  name: such as "layernorm-backward"; homework: such as "hw3"; title: a few words
           entry: the name in solution.py, whose docstring there says what it takes and returns
           signature: how it is called and what it returns, where that is not what the oracle says
           equations: labels of what the book has about it
           oracle: makes the inputs and knows the right answers; stages: the checks
           library: what arrays are made of; forbidden: names that may not occur; forbidden_because: and why
           forbidden_key: of the table, what their use is
           patience: how many times as long as others its stages may take
           reads: how its program is read, where results are wrong
           standard: of a variant, the task whose solution is public
    """

    name: str
    homework: str
    title: str
    entry: str
    signature: str = ""
    equations: tuple[str, ...]
    oracle: object
    stages: tuple[Stage, ...]
    library: str = "numpy"
    forbidden: tuple[str, ...] = ()
    forbidden_because: str = "this task asks you to write that yourself"
    forbidden_key: str = "library-call"
    patience: float = 1.0
    reads: Reads | None = None
    standard: Task | None = None

    @property
    def max_points(self) -> int:
        """The sum of all stages' points."""
        return sum(stage.points for stage in self.stages)

    def __post_init__(self):
        if not self.signature:
            arguments, results = (
                ", ".join(self.oracle.arguments),
                ", ".join(self.oracle.results),
            )
            object.__setattr__(
                self, "signature", f"{self.entry}({arguments}) -> ({results})"
            )

    def __str__(self):
        pages = {}
        for label in self.equations:
            pages.setdefault(place(label)[0], []).append(shown(label))
        lists = [f"page {page}: {', '.join(names)}" for page, names in pages.items()]
        if self.forbidden:
            lists.append(f"forbidden {', '.join(self.forbidden)}")
        layout = {"subsequent_indent": "  ", "break_on_hyphens": False}
        lists = [textwrap.fill(words, 76, **layout) for words in lists]
        head = f"{self.name} ({self.homework}): {self.title}"
        stages = [f"{stage.points:4}  {stage.name}" for stage in self.stages]
        points = [f"{self.max_points} points:", *stages]
        parts = [self.signature, *self._documented(), *map("\n".join, (lists, points))]
        return f"{head}\n\n" + textwrap.indent("\n\n".join(parts), "  ")

    def _documented(self):
        """The docstring of the entry in the starter, and those of its methods, each below its name."""
        body = ast.parse(starter(self.homework)).body
        (entry,) = [node for node in body if getattr(node, "name", "") == self.entry]
        yield ast.get_docstring(entry)
        for node in entry.body:
            if isinstance(node, ast.FunctionDef):
                head = f"{node.name}({ast.unparse(node.args)})"
                yield f"{head}\n{ast.get_docstring(node)}"

    __repr__ = __str__


@dataclass(frozen=True)
class Homework:
    """A set of tasks that share one solution.py. Args: time, software: in words; chapters: pages to read before."""

    name: str
    title: str
    time: str
    chapters: tuple[str, ...]
    software: str
    libraries: tuple[str, ...]
    tasks: tuple[Task, ...]

    @property
    def needs(self) -> str:
        """What it takes, in words."""
        *others, last = self.chapters
        chapters = (
            f"chapters {', '.join(others)} and {last}" if others else f"chapter {last}"
        )
        return f"the {chapters}; {self.software}"

    @property
    def max_points(self) -> int:
        """The sum over the tasks."""
        return sum(task.max_points for task in self.tasks)


TABLE = ConfigParser(interpolation=None)
TABLE.read_string(Path(__file__).with_name("homeworks.ini").read_text(encoding="utf8"))
LISTS = ("equations", "forbidden", "chapters", "libraries")


def _words(section) -> dict:
    """What homeworks.ini says of a homework or a task, as arguments of its class."""
    words: dict = {key: text.replace("\n", " ") for key, text in TABLE[section].items()}
    for key in LISTS:
        if key in words:
            words[key] = tuple(words[key].split())
    return words


def task(name: str, oracle, stages, reads=None) -> Task:
    """A task with the words that homeworks.ini has for it. Args: as Task"""
    (section,) = [each for each in TABLE.sections() if each.endswith(f": {name}")]
    words = _words(section)
    words["patience"] = float(words.get("patience", 1))
    of = section.partition(":")[0]
    return Task(
        name=name, homework=of, oracle=oracle, stages=stages, reads=reads, **words
    )


def homework(name: str, *tasks: Task) -> Homework:
    """A homework with the words that homeworks.ini has for it."""
    return Homework(name, tasks=tasks, **_words(name))


@cache
def homeworks() -> dict[str, Homework]:
    """All homeworks by name."""
    folders = iter_modules([str(Path(__file__).parent)])
    names = sorted(
        name for _, name, package in folders if package and name.startswith("hw")
    )
    return {
        name: import_module(f".{name}.assignment", __package__).HOMEWORK
        for name in names
    }


def tasks(homework: str | None = None) -> list[str]:
    """The names of all tasks in the order of the homeworks, or of one homework.

    Raises:  ValueError for an unknown homework
    """
    chosen = homeworks().values() if homework is None else [find_homework(homework)]
    return [task.name for group in chosen for task in group.tasks]


def find(name: str) -> Task:
    """The task of a name.

    Raises:  ValueError with all names
    """
    for homework in homeworks().values():
        for task in homework.tasks:
            if task.name == name:
                return task
    raise ValueError(f"task: got {_got(name)}, needs one of {', '.join(tasks())}")


def find_homework(name: str) -> Homework:
    """The homework of a name.

    Raises:  ValueError with all names
    """
    if not isinstance(name, str) or name not in homeworks():
        raise ValueError(
            f"homework: got {_got(name)}, needs one of {', '.join(homeworks())}"
        )
    return homeworks()[name]


def _got(value) -> str:
    """What was handed over, in a few words."""
    return (
        f"the function {value.__name__}"
        if hasattr(value, "__name__")
        else repr(value)[:60]
    )


def describe(name: str) -> Task:
    """A task with what its entry takes and returns and its equation labels; printed, it reads as a page of text.

    Raises:  ValueError with all names
    """
    return find(name)


def misconceptions(task: str = "") -> dict[str, str]:
    """{key: title} of the misconceptions that reports name, over all homeworks or in one task.

    A key may have another title in a homework of its own: name the task to get that one.

    Args:     task: the name of a task, "" for all
    Raises:   ValueError with all names for an unknown task
    """
    if task:
        return titles(find(task).homework) or titles()
    keys = titles()
    for name in homeworks():
        keys = titles(name) | keys
    return keys
