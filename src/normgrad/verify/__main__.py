"""normgrad-verify PATH: verdicts on kernels and functions, by what comments in the source ask, or by what is typed.

`python -m normgrad.verify` is the same program. Nothing of a file is run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from . import proposal
from .entries import FUNCTION, TRITON, Entry, entries
from .report import FORMATS, Baseline, Result, annotation
from .request import COMMENT, Request, requests_of, written
from .source import Source, file_of, source_of, text_of
from .values import NotRead, unfollowed
from .verdict import IF_ZERO, KINDS, NOT_READ, PROVED, REFUTED, WRONG, Verdict, refused

USAGE = 2
PATH_HELP = "a file, file.py::name, or a folder with all its files in Python"
GRID_HELP = """as "rows" or "programs, column tiles"; a number is that of the one program that is looked at, and no
count, as "column tiles, 0" for an axis of one program"""
NORM_HELP = """layer_norm, rms_norm or l2_norm; arguments of normgrad.verify.norm, as "center=True, bias=True", "" is
RMSNorm; own_forward for an autograd Function whose gradients are those of its own forward"""
CODES = {REFUTED: 1, WRONG: 1, NOT_READ: 3, IF_ZERO: 4, PROVED: 0}
# of several results the first of these that one of them has
ORDER = (1, USAGE, 3, 4)
EPILOG = """exit status: 0 everything is proved; 1 a kernel is wrong in itself or refuted; 2 bad usage, which is also a
missing binding, a comment that asks for nothing that is known, or a file that cannot be read; 3 a kernel is not read;
4 a kernel is proved if masked lanes hold 0, unless --allow is given. Of several kernels it is the worst, in the order
1, 3, 4, 0; 2 comes before 3. Where neither --norm nor --reference is given, what comments ask is checked, as "# verify:
layer_norm" above a function, or "# verify: X = T("x"), Y = Out("y"), grid = rows; rms_norm" above a kernel."""


def parser_of() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="normgrad-verify",
        description="What a program computes, proved for every M and N, or its wrong term; its text is read, not run.",
        epilog=EPILOG,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help=PATH_HELP)
    parser.add_argument(
        "--kernel",
        action="append",
        metavar="NAME",
        help="as PATH::NAME; several kernels have one binding and one grid",
    )
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help='what an argument is: X=T("x") of a kernel, g=dy of a function',
    )
    parser.add_argument("--grid", help=GRID_HELP)
    parser.add_argument("--norm", help=NORM_HELP)
    parser.add_argument(
        "--reference",
        metavar="FUNCTION",
        help="a forward, for its results or its gradients, as f or file.py::f",
    )
    parser.add_argument(
        "--outputs",
        metavar="NAMES",
        help='what a function returns, as "dx,dw", where its own names do not say so',
    )
    parser.add_argument(
        "--comments",
        action="store_true",
        help="to check what comments ask, which may be nothing, is no bad usage",
    )
    parser.add_argument(
        "--allow",
        action="store_true",
        help="exit with 0 for what is proved if masked lanes hold 0",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="github: its annotations"
    )
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="as --format json: a list with all of each verdict",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="a JSON list of what is known not to be read, which does not fail",
    )
    parser.add_argument(
        "--write-baseline",
        action="store_true",
        help="write what is not read into the baseline",
    )
    return parser


def main() -> int:
    """Print the verdicts, or a form where something is missing; the exit status."""
    parser = parser_of()
    options = parser.parse_args()
    try:
        command = Command(options)
        typed = (options.norm, options.reference, options.grid, options.outputs)
        if options.bind or any(text is not None for text in typed):
            is_form = not command.check_typed()
        else:
            is_form = not command.check_comments()
        return USAGE if is_form else command.ended()
    except (OSError, SyntaxError, TypeError, ValueError) as reason:
        parser.error(str(reason))


def files_of(path: Path) -> list[Path]:
    """A file, or those in Python of a folder and of the folders in it, hidden ones left out."""
    if not path.is_dir():
        return [path]
    files = [file for file in path.rglob("*.py") if file.is_file()]
    names = {file: file.relative_to(path).parts for file in files}
    return sorted(
        file for file in files if not any(name.startswith(".") for name in names[file])
    )


def shown(path: Path) -> str:
    """A path as it is printed: from the folder of the command where it lies in it."""
    near = os.path.relpath(path)
    return Path(str(path) if near.startswith("..") else near).as_posix()


def divided(place: str) -> tuple[Path, str]:
    """(the path, the name) of "file.py::name"."""
    file, _, name = place.partition("::")
    return Path(file), name


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Whatever is asked wrongly is said with the file."""
    try:
        yield
    except (OSError, SyntaxError, TypeError, ValueError) as reason:
        raise ValueError(f"{path}: {reason}") from None


def only_name(path: Path, grid: str | None) -> str:
    """The function that is meant where none is named: beside a grid a file's one kernel, else what no other calls."""
    if grid is not None:
        return source_of(path)[1]
    found = [entry for entry in entries(text_of(path)) if not entry.helper]
    names = [entry.name for entry in found]
    if len(names) == 1:
        return names[0]
    if all(entry.kind == TRITON for entry in found):
        return source_of(path)[1]
    raise ValueError(
        f"got no name, needs one of {', '.join(names)}, as {path}::{names[0]}"
    )


def files_beside(path: Path) -> list[str]:
    """The names of the files that a file imports, where they are found."""
    names = {}
    imports = Source(text_of(path), path).imports
    for name, level in (pair for pairs in imports.values() for pair in pairs):
        module = name.strip(".")
        for part in (module, module.rpartition(".")[0]):
            file = file_of(path, part, level)
            if file is not None:
                names[file.name] = None
    return list(names)


def checked(path: Path, request: Request) -> Result:
    """The verdict on what is asked.

    Raises:  OSError, SyntaxError, TypeError or ValueError for what is asked wrongly
    """
    start = time.perf_counter()
    path = path.resolve()
    try:
        verdict = request.verdict(path)
    except NotRead as reason:
        verdict = refused(reason)
    except (OSError, SyntaxError, TypeError, ValueError):
        raise
    except Exception as reason:  # an exit status of 1 would say that a kernel is wrong
        verdict = Verdict(NOT_READ, why=unfollowed(reason))
    seconds = round(time.perf_counter() - start, 2)
    line, note = verdict.line or request.line, ""
    files = files_beside(path) if verdict.line else []
    if files:
        # a verdict's line is a number alone: of a kernel of another file it would stand beside another line of this one
        line, names = request.line, ", ".join(files)
        note = f"line {verdict.line} is one of {path.name}, or of {names}"
    return Result(
        shown(path),
        request.name,
        line,
        verdict,
        seconds=seconds,
        against=request.against,
        note=note,
    )


class Command:
    """One call of the command. Args: options: as they are typed"""

    def __init__(self, options: argparse.Namespace):
        if options.write_baseline and options.baseline is None:
            raise ValueError("--write-baseline: needs --baseline FILE")
        self.options = options
        self.baseline = Baseline(options.baseline, options.write_baseline)
        self.results: list[Result] = []
        self.is_asked = True

    def check_typed(self) -> bool:
        """Check what is typed after options; False where that is not enough, and a form is printed."""
        pairs = [pair for place in self.options.paths for pair in self._typed(place)]
        for path, request in pairs:
            is_bound = request.bound and None not in (request.grid, request.definitions)
            if request.is_kernel and not (is_bound or request.reference):
                print(proposal.form(*source_of(path, request.name), written))
                return False
        results = []
        for path, request in pairs:
            with named(path):
                results.append(checked(path, request))
        self.is_asked = False
        for result in results:
            self._take(result)
        return True

    def _typed(self, place):
        """(file, Request) of each function that is named, or of the only one."""
        options, bound, outputs = self.options, {}, None
        for text in options.bind:
            argument, _, value = (part.strip() for part in text.partition("="))
            if argument in bound:
                raise ValueError(f"--bind: got {argument} twice, needs it once")
            bound[argument] = value
        if options.outputs is not None:
            outputs = tuple(options.outputs.replace(",", " ").split())
        path, name = divided(place)
        if path.is_dir():
            needs = "needs a file, or file.py::name, where anything is typed"
            raise ValueError(f"{path}: got a folder, {needs}")
        with named(path):
            names = options.kernel or [name or only_name(path, options.grid)]
            found = {entry.name: entry for entry in entries(text_of(path))}
        for name in names:
            entry = found.get(name, Entry(name, 1, FUNCTION))
            yield (
                path,
                Request(
                    name,
                    entry.kind,
                    entry.line,
                    bound,
                    options.grid,
                    options.norm,
                    options.reference,
                    outputs,
                ),
            )

    def check_comments(self) -> bool:
        """Check what comments ask; False where there are none, and it is said what could be typed."""
        options = self.options
        pairs, others, count = [], Counter(), 0
        for place in options.paths:
            path, name = divided(place)
            names = set(options.kernel or filter(None, [name]))
            for file in files_of(path):
                count += 1
                try:
                    requests, errors, without = requests_of(text_of(file))
                except (OSError, SyntaxError, ValueError) as reason:
                    self._unreadable(file, reason, file == path)
                    continue
                for error in errors:
                    self._take(Result(shown(file), "", error.line, error=str(error)))
                for request in requests:
                    if not names or request.name in names:
                        pairs.append((file, request))
                others[shown(file)] = len(without)
        if not (pairs or self.results or options.comments):
            if count == 1 and not Path(options.paths[0]).is_dir():
                return self.check_typed()
            needs = "needs one above a function; --comments says that there may be none"
            raise ValueError(
                f"got {count} files without a comment '# verify:', {needs}"
            )
        for path, request in pairs:
            try:
                self._take(checked(path, request))
            except (OSError, SyntaxError, TypeError, ValueError) as reason:
                error = f"comment: {reason}"
                self._take(
                    Result(shown(path), request.name, request.asked, error=error)
                )
        self._say(self._summary(others))
        return True

    def _unreadable(self, file, reason, is_named):
        """Says that a file is no Python, where a comment may stand in it, or where it is asked for."""
        is_asked = is_named and not self.options.comments
        if (
            is_asked
            or not file.is_file()
            or COMMENT.search(file.read_bytes().decode("latin-1"))
        ):
            line = getattr(reason, "lineno", None) or 1
            self._take(Result(shown(file), "", line, error=str(reason)))

    def _take(self, result):
        """Keeps a result, and prints it."""
        is_known = self.baseline.holds(result)
        if result.is_unread and self.options.write_baseline:
            is_known = True
        result = replace(result, is_known=is_known)
        self.results.append(result)
        if self.options.format == "github":
            text = result.annotation(bool(self._code(result)))
            if text:
                print(text, flush=True)
        elif self.options.format == "text":
            file = sys.stderr if result.verdict is None else sys.stdout
            print(result.text(self.is_asked), file=file, flush=True)

    def _code(self, result):
        """The exit status of one result."""
        if result.verdict is None:
            return USAGE
        is_allowed = result.verdict.kind == IF_ZERO and self.options.allow
        return 0 if is_allowed or result.is_known else CODES[result.verdict.kind]

    def _say(self, words):
        """Prints a line beside the results."""
        if self.options.format == "github":
            print(annotation("notice", words))
        else:
            file = sys.stderr if self.options.format == "json" else sys.stdout
            print(words, file=file)

    def _summary(self, others):
        """How many verdicts there are of each kind, and what has no comment."""
        kinds = Counter(
            result.verdict.kind for result in self.results if result.verdict is not None
        )
        counts = [f"{kinds[kind]} {kind}" for kind in KINDS if kind in kinds]
        words = f"{kinds.total()} checked: {', '.join(counts)}".removesuffix(": ")
        files = [file for file, count in others.items() if count]
        return (
            f"{words}; {others.total()} functions of {len(files)} files have no comment"
        )

    def ended(self) -> int:
        """Prints what comes after the results; the exit status."""
        for words in self.baseline.news(self.results):
            self._say(words)
        if self.options.write_baseline:
            count = self.baseline.write(self.results)
            self._say(f"{self.baseline.path}: {count} that are not read are written")
        if self.options.format == "json":
            rows = [result.data() for result in self.results]
            print(json.dumps(rows, indent=1))
        codes = {self._code(result) for result in self.results}
        return next((code for code in ORDER if code in codes), 0)


if __name__ == "__main__":
    sys.exit(main())
