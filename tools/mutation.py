"""The score of the tests: how many machine-made mutants of the files that a gradient passes through they notice.

    python tools/mutation.py --sample 40 --seed 7      some of all files
    python tools/mutation.py --files torch_ops/rows.py     all of one file
    python tools/mutation.py --record                  all, and writes tests/machine_mutants.json

    python tools/mutation.py --guards                      every guard of every room
    python tools/mutation.py --guards sandbox ledger       of these rooms
    python tools/mutation.py --guards --files verify/memory.py --tests test_verify.py test_memory.py

The tests are collected once, and run once under a tracer that notes which of them run which line. For each mutant a
fork of that process puts the changed code into the functions of the file and runs the tests of the changed lines, the
quick ones first, until one fails. What stands outside all functions is changed while it is imported.

With --guards the mutants are the guards of ROOMS, each gone: a `raise`, a returned refusal, a call of what checks, a
condition that is appended (tests/machine_mutants.py says which). A test must fail for each; one that survives needs a
row in tests/guards.txt with the reason. A row that no guard has any more fails as well.

All this happens in a copy of the tree, so that it may be edited meanwhile. A tracer sees its own process alone: a guard
that only runs in processes that a test starts has "0 tests", and such a test has to call the function itself. In the
rooms of PROCESSES the mutant is put into the file of the copy, one at a time, and all tests of the room are tried. What
a module computes while it is imported was computed without the mutant.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import gc
import json
import linecache
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from itertools import chain, zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/normgrad"
RECORD = ROOT / "tests/machine_mutants.json"
# Every file that a gradient passes through, wrappers and launchers included.
FILES = (
    "numpy_ref.py",
    "spec.py",
    "torch_ops/arguments.py",
    "torch_ops/autograd.py",
    "torch_ops/differentiable.py",
    "torch_ops/api.py",
    "torch_ops/torch_compile.py",
    "torch_ops/rows.py",
    "nn.py",
    "residual.py",
    "teaching/double_backward.py",
    "triton_kernels/arithmetic.py",
    "triton_kernels/configuration.py",
    "triton_kernels/launch.py",
    "triton_kernels/reduction.py",
    "triton_kernels/rows.py",
    "triton_kernels/sweeps.py",
)
TESTS = (
    "test_bytes_chapter.py",
    "test_contract.py",
    "test_double_backward.py",
    "test_eps.py",
    "test_kernels.py",
    "test_nn.py",
    "test_operators.py",
    "test_parameter_gradients.py",
    "test_refusals.py",
    "test_replace_norms.py",
    "test_residual.py",
    "test_subclasses.py",
    "test_torch.py",
    "test_what_works.py",
    "test_wiring.py",
)
# Where guards stand, and the tests that must fail without them: {room: (files, files of tests)}, as patterns.
ROOMS = {
    "verify": (
        "verify/*.py verify/tables/*.py",
        "test_verify*.py test_memory.py test_kernel_proofs.py",
    ),
    "symbolic": (
        "symbolic/*.py",
        "test_symbolic*.py test_prove.py test_parse_back.py test_formulas.py",
    ),
    "prove": ("prove/*.py", "test_prove.py test_workbench.py"),
    "ledger": (
        "book/_ext/normgrad_book/ledger*.py ledger/*.py",
        "test_book_extension.py test_checks.py test_formulas.py test_ledger.py",
    ),
    "sandbox": (
        "homework/sandbox/*.py homework/messages.py",
        "test_sandbox.py test_homework_messages.py test_homework_source.py",
    ),
    "nn": (
        "nn.py recognition.py forward_reading.py torch_ops/prepare.py torch_ops/automatic.py torch_ops/distributed.py",
        "test_replace_norms.py test_replace_models.py test_refusals.py test_gated.py test_nn.py test_prepare.py "
        "test_automatic.py test_distributed.py test_subclasses.py",
    ),
}
PROCESSES = ("sandbox",)
GUARDS = ROOT / "tests/guards.txt"
COPY = "copy-of-the-tree"
# Without tests that edit these very files, and fail where the text to edit is missing.
UNEDITED = "not mutant and not wrong_program and not contract_rejects and not dropped_projection"
# A test that takes longer than this, or this many times as long as without a mutant, never ends.
SECONDS, PATIENCE = 20, 10
ENDS = {-signal.SIGALRM: "never ended", 0: "survived"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Args:  file, line, change: the mutant, change without its line; end: "killed", "never ended" or "survived"
           tests: how many run a line of it; seconds: how long they took, to the first that failed
    """

    file: str
    line: int
    change: str
    end: str
    tests: int
    seconds: float

    def __str__(self):
        ended = f"{self.end}, {self.tests} tests, {self.seconds} s"
        return f"{self.file}:{self.line} {self.change}: {ended}"


class Collected:
    """A plugin of pytest that hands the collected tests to a function in place of running them."""

    def __init__(self, use):
        self.use = use

    def pytest_runtestloop(self, session):
        gc.unfreeze()  # what conftest.py has frozen is in no list of objects
        self.use(session.items)
        return True

    def pytest_runtest_logreport(self, report):
        if report.failed:
            os.write(3, f"{report.nodeid}\n{report.longreprtext}\n".encode()[-3000:])
            os._exit(1)


def with_tests(use, tests, expression=UNEDITED):
    """Collect the tests that an expression of names chooses and hand them to a function."""
    import pytest

    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    options = ["-qq", "-s", "--whole", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["--tb", "short"]
    chosen = ["-m", "not site and not gpu", "-k", expression]
    pytest.main(
        [*options, *chosen, *(str(ROOT / "tests" / name) for name in tests)],
        plugins=[Collected(use)],
    )


def run(items, seconds):
    """Run tests; the process ends with status 1 at the first that fails, and by a signal at one that never ends."""
    for item, following in zip_longest(items, items[1:]):
        signal.setitimer(signal.ITIMER_REAL, SECONDS + PATIENCE * seconds[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


class Child:
    """A function called in a fork of this process, whose end is its exit status or, below 0, the signal it died of."""

    def __init__(self, function, log):
        self.log, self.started = log, time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            status = 70
            try:
                out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                for stream in (1, 2, 3):
                    os.dup2(out, stream)
                function()
                status = 0
            except BaseException as error:
                os.write(3, repr(error).encode())
            finally:
                os._exit(status)

    def poll(self):
        """None while it runs, then (its end, seconds)."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        return os.waitstatus_to_exitcode(status), time.monotonic() - self.started

    def wait(self):
        while (ended := self.poll()) is None:
            time.sleep(0.02)
        return ended


# --- which tests run which lines ---


def live_functions(files):
    """({path: its functions}, what keeps results of them) of all objects there are, which are then frozen."""
    functions, caches = {str(path_of(file)): [] for file in files}, []
    for value in gc.get_objects():
        is_cache = type(value) is functools._lru_cache_wrapper
        function = value.__wrapped__ if is_cache else value
        if type(function) is not types.FunctionType:
            continue
        path = function.__code__.co_filename
        if path in functions and is_cache:
            caches.append(value)
        elif path in functions:
            functions[path].append(function)
    gc.freeze()  # no fork looks at them, and so copies them, again
    return functions, caches


def traced(items, files, caches, results, functions=None):
    """Run the tests; write which lines of some files each of them runs, and how long it takes, to a file.

    Args:  functions: those of the files, to note their lines by themselves; else a tracer does, which sees the
           functions of Triton's interpreter too, and is several times as slow
    """
    names = {str(path_of(file)): file for file in files}
    lines, runs = set(), []
    if functions is not None:
        builtins.__ran__ = lines
        for file in files:
            note_lines(file, functions)

    def trace(frame, event, _):
        file = names.get(frame.f_code.co_filename)
        if file is None:
            return None
        lines.add((file, frame.f_lineno))
        return trace

    for item, following in zip_longest(items, items[1:]):
        # what is kept from one test to the next would count for the first alone
        for cache in caches:
            cache.cache_clear()
        lines.clear()
        started = time.monotonic()
        sys.settrace(trace if functions is None else None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.settrace(None)
        seconds = time.monotonic() - started
        runs.append((item.nodeid, seconds, sorted(lines)))
    Path(results).write_text(json.dumps(runs))


def note_lines(file, functions):
    """Let the functions of a file, and its import whenever it comes, note the line of each statement that they run."""
    text = path_of(file).read_text(encoding="utf8")
    tree = ast.parse(text)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and node is not tree:
                setattr(node, name, [*with_notes(file, statements)])
    code = compile(tree, str(path_of(file)), "exec", dont_inherit=True)
    import_code(str(path_of(file)), lambda: code)
    give_code(file, text, codes(code), functions)


def with_notes(file, statements):
    """Each statement behind one that notes its line."""
    for statement in statements:
        note = ast.parse(f"__ran__.add({(file, statement.lineno)!r})").body[0]
        for part in ast.walk(note):
            ast.copy_location(part, statement)
        yield from (note, statement)


class Coverage:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, results):
        self.seconds, self.tests = {}, defaultdict(set)
        for file_of_runs in results:
            for name, seconds, lines in json.loads(file_of_runs.read_text()):
                self.seconds[name] = seconds
                for file, line in lines:
                    self.tests[file, line].add(name)

    def ordered(self, file, lines) -> list[str]:
        """The tests that run one of these lines: the quickest of each function first, then the second of each, ..."""
        functions = defaultdict(list)
        names = set().union(*(self.tests[file, line] for line in lines))
        for name in sorted(names, key=lambda name: (self.seconds[name], name)):
            functions[name.partition("[")[0]].append(name)
        turns = chain.from_iterable(zip_longest(*functions.values()))
        return [name for name in turns if name]


# --- putting a mutant into a process ---


def path_of(file):
    """Where a file is: in the package, or below the root where its name says so."""
    return (ROOT if file.startswith("book/") else PACKAGE) / file


@functools.cache
def parsed(text):
    return ast.parse(text)


def functions_of(text):
    return [node for node in ast.walk(parsed(text)) if isinstance(node, FUNCTION)]


def enclosing(text, mutant):
    """The innermost function that a mutant is in, or None."""
    inside = [
        node
        for node in functions_of(text)
        if node.lineno <= mutant.line <= node.end_lineno
    ]
    return min(inside, key=lambda node: node.end_lineno - node.lineno, default=None)


def lines_of(text, mutant):
    """The lines that run a mutant: its own; those of a function, for a change of its signature; all, outside them."""
    last = mutant.line + text[mutant.start : mutant.end].count("\n")
    function = enclosing(text, mutant)
    if function is None:
        return range(1, text.count("\n") + 2)
    if mutant.line < function.body[0].lineno or mutant.kind == "default":
        return range(first_line(function), function.end_lineno + 1)
    first = max(
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= node.end_lineno
    )
    return range(first, last + 1)


def codes(code):
    """{(qualified name, how many of that name came before): code object} below a module's code object."""
    inner, counts, waiting = {}, Counter(), [code]
    while waiting:
        for constant in waiting.pop().co_consts:
            if isinstance(constant, types.CodeType):
                name = constant.co_qualname
                inner[name, counts[name]] = constant
                counts[name] += 1
                waiting.append(constant)
    return inner


def compiled(file, text):
    """The code objects of a file with this text."""
    return codes(compile(text, str(path_of(file)), "exec", dont_inherit=True))


def is_hot(file, text, mutant):
    """Whether live functions can take the change: it is in one, and leaves what each has from the scopes around it."""
    if enclosing(text, mutant) is None:
        return False
    before, after = compiled(file, text), compiled(file, mutant.applied(text))
    return all(
        before[key].co_freevars == after[key].co_freevars
        for key in before.keys() & after.keys()
    )


def first_line(node):
    """Where a function begins, its decorators included."""
    return min(part.lineno for part in [node, *node.decorator_list])


def set_defaults(function, arguments):
    """Evaluate a function's defaults anew."""

    def value(node):
        code = compile(ast.Expression(node), "default", "eval")
        return eval(code, function.__globals__)

    function.__defaults__ = tuple(map(value, arguments.defaults)) or None
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    function.__kwdefaults__ = {
        name.arg: value(node) for name, node in named if node is not None
    } or None


def show_text(file, text):
    """Let what reads a file's lines, as Triton reads its kernels, read this text; its path."""
    path = str(path_of(file))
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    return path


def replace_functions(file, old, new, functions):
    """Give the live functions of a file the code and the defaults that they have in its changed text."""
    path = import_changed(file, new)
    pairs = zip(functions_of(old), functions_of(new), strict=True)
    signatures = {
        first_line(node): changed.args
        for node, changed in pairs
        if ast.dump(node.args) != ast.dump(changed.args)
    }
    give_code(file, old, compiled(file, new), functions)
    for function in functions[path]:
        line = function.__code__.co_firstlineno
        if line in signatures:
            set_defaults(function, signatures[line])


def give_code(file, old, after, functions):
    """Give the live functions of a file, whose text was `old`, other code."""
    keys = {place_of(code): key for key, code in compiled(file, old).items()}
    for function in functions[str(path_of(file))]:
        code = function.__code__
        # a function within an `if` that is never taken is no longer compiled
        function.__code__ = after.get(keys[place_of(code)], code)


def place_of(code):
    """Where a function's code stands, which is another place for each of several lambdas on one line."""
    return code.co_qualname, *code.co_positions()


def import_changed(file, text):
    """Let the import of a file, whenever it comes, read this text; the file's path."""
    path = show_text(file, text)
    import_code(path, lambda: compile(text, path, "exec", dont_inherit=True))
    return path


def import_code(path, make):
    """Let the import of a file, whenever it comes, take the code that a function makes."""
    original = SourceFileLoader.get_code

    def get_code(self, name):
        return make() if self.path == path else original(self, name)

    SourceFileLoader.get_code = get_code


# --- the score ---


def sources(files=FILES):
    return {file: path_of(file).read_text(encoding="utf8") for file in files}


def chosen(files, sample, seed, rule):
    """[(file, mutant)] of a function of a text: all of them, or a sample without replacement."""
    mutants = [
        (file, mutant) for file, text in sources(files).items() for mutant in rule(text)
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "normgrad"]:
        del sys.modules[name]
    if sample is None:
        return mutants
    return random.Random(seed).sample(mutants, min(sample, len(mutants)))


def tried(mutants, start, coverage, jobs, folder, in_files=False):
    """Yield the Outcome of each mutant, `jobs` at a time, and print it.

    Args:  start: what a child does, a function of a file, its changed text and the names of the tests that run it
           in_files: whether the mutant is in the file too, and all tests are tried; then one job
    """
    texts = sources({file for file, _ in mutants})
    waiting, running = list(reversed(mutants)), []
    while waiting or running:
        while waiting and len(running) < jobs:
            file, mutant = waiting.pop()
            names = coverage.ordered(file, lines_of(texts[file], mutant))
            changed = mutant.applied(texts[file])
            if in_files:
                path_of(file).write_text(changed, encoding="utf8")
                others = coverage.seconds.keys() - {*names}
                names += sorted(others, key=coverage.seconds.get)
            begin = functools.partial(start, file, changed, names)
            log = folder / f"log{len(waiting)}"
            running.append((Child(begin, log), file, mutant, len(names)))
        time.sleep(0.01)
        for trial in list(running):
            child, file, mutant, tests = trial
            ended = child.poll()
            if ended is None:
                continue
            running.remove(trial)
            if in_files:
                path_of(file).write_text(texts[file], encoding="utf8")
            status, seconds = ended
            if status > 1:
                sys.exit(f"{file}, {mutant}:\n{child.log.read_text()}")
            end = ENDS.get(status, "killed")
            change = str(mutant).partition(", ")[2]
            outcome = Outcome(file, mutant.line, change, end, tests, round(seconds, 1))
            print(outcome, flush=True)
            yield outcome


def try_all(
    mutants, tests, jobs, folder, expression=UNEDITED, in_files=False, quick=False
):
    """The Outcome of each mutant, by the tests that an expression of names chooses; in_files as `tried` has it.

    quick: whether the functions note their lines by themselves, which those of Triton's interpreter do not.

    One process collects the tests, finds which of them run which lines and tries the mutants within functions; the
    others are tried by processes that import the package with the mutant in it.
    """
    texts = sources({file for file, _ in mutants})
    outcomes = folder / "outcomes"
    results = [folder / f"lines{job}" for job in range(jobs)]
    hot, cold = [], []
    for file, mutant in mutants:
        kind = hot if is_hot(file, texts[file], mutant) else cold
        kind.append((file, mutant))

    def try_hot(items):
        started = time.monotonic()
        functions, caches = live_functions(texts)
        noting = functions if quick else None
        parts = [
            functools.partial(traced, items[job::jobs], texts, caches, path, noting)
            for job, path in enumerate(results)
        ]
        children = [
            Child(part, folder / f"log-{job}") for job, part in enumerate(parts)
        ]
        for child in children:
            if child.wait()[0] != 0:
                sys.exit(f"the tests fail without a mutant:\n{child.log.read_text()}")
        seconds = time.monotonic() - started
        print(f"{len(items)} tests, {seconds:.0f} s to note lines", flush=True)
        coverage = Coverage(results)
        by_name = {item.nodeid: item for item in items}

        def start(file, changed, names):
            replace_functions(file, texts[file], changed, functions)
            run([by_name[name] for name in names], coverage.seconds)

        ended = tried(hot, start, coverage, jobs, folder, in_files)
        outcomes.write_text(json.dumps([*map(asdict, ended)]))

    pid = os.fork()
    if not pid:
        try:
            with_tests(try_hot, tests, expression)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    if not outcomes.exists():
        sys.exit(1)
    coverage = Coverage(results)

    def start(file, changed, names):
        def use(items):
            by_name = {item.nodeid: item for item in items}
            if not by_name.keys() >= {*names}:
                os._exit(1)  # there are tests that cannot be collected
            run([by_name[name] for name in names], coverage.seconds)
            os._exit(0)

        import_changed(file, changed)
        with_tests(use, tests, expression)
        os._exit(1)  # nothing could be collected

    inside = [Outcome(**fields) for fields in json.loads(outcomes.read_text())]
    return [*inside, *tried(cold, start, coverage, jobs, folder)]


def key_of(outcome, texts):
    """(file, code, change) of an outcome, which stays the same where lines are added above."""
    code = texts[outcome.file].splitlines()[outcome.line - 1].strip()
    return outcome.file, code, outcome.change


def explained():
    """{(file, code, change): the survivor} of the last record.

    The file holds {"seed": of the sample, "files": {path: {"mutants", "tried", "survived"}}, "survivors": [{"file",
    "code", "change", "equal": whether it makes no difference, "why"}, ...]}
    """
    if not RECORD.exists():
        return {}
    survivors = json.loads(RECORD.read_text(encoding="utf8"))["survivors"]
    return {(s["file"], s["code"], s["change"]): s for s in survivors}


def record(outcomes, seed):
    """Write the outcomes by file, and the survivors with the reasons that the last record gave them."""
    from machine_mutants import machine_mutants

    files, survivors, reasons, texts = {}, [], explained(), sources()
    for file, text in texts.items():
        ended = [outcome for outcome in outcomes if outcome.file == file]
        lived = sorted((out for out in ended if out.end == "survived"), key=str)
        files[file] = {
            "mutants": len(machine_mutants(text)),
            "tried": len(ended),
            "survived": len(lived),
        }
        for outcome in lived:
            key = key_of(outcome, texts)
            new = dict(zip(("file", "code", "change"), key, strict=True))
            survivors.append(reasons.get(key, new | {"equal": False, "why": ""}))
    text = json.dumps({"seed": seed, "files": files, "survivors": survivors}, indent=1)
    RECORD.write_text(f"{text}\n")


# --- guards ---


def matched(patterns, folder):
    """The names in a folder that match patterns of a text."""
    paths = chain.from_iterable(folder.glob(pattern) for pattern in patterns.split())
    return sorted(str(path.relative_to(folder)) for path in paths)


def files_of(room):
    """The files of a room as path_of takes them."""
    patterns = ROOMS[room][0]
    return [
        name
        for name in matched(patterns, PACKAGE) + matched(patterns, ROOT)
        if path_of(name).exists()
    ]


def reasons_of_guards():
    """{(file, code of the guard): why nothing fails without it} of tests/guards.txt."""
    rows = {}
    for row in GUARDS.read_text(encoding="utf8").splitlines():
        if row and not row.startswith("#"):
            file, _, rest = row.partition(" | ")
            code, _, reason = rest.rpartition(" | ")
            rows[file, code] = reason
    return rows


def try_guards(options, folder):
    """Try the guards of some rooms, print what became of them, and fail where the reasons and the survivors differ."""
    from machine_mutants import guards

    reasons, counts, new, stale = reasons_of_guards(), [], [], []
    for room in options.guards or ROOMS:
        names = files_of(room)
        files = [name for name in names if name in (options.files or names)]
        tests = options.tests or matched(ROOMS[room][1], ROOT / "tests")
        mutants = chosen(files, options.sample, options.seed, guards)
        if not mutants:
            continue
        in_files = room in PROCESSES
        jobs = 1 if in_files else options.jobs
        ended = try_all(mutants, tests, jobs, folder, "", in_files, quick=True)
        lived = [row_of(outcome) for outcome in ended if outcome.end == "survived"]
        new += [row for row in lived if row not in reasons]
        if options.sample is None:
            stale += [row for row in reasons if row[0] in files and row not in lived]
        listed = sum(row in reasons for row in lived)
        killed, without = len(ended) - len(lived), len(lived) - listed
        counts.append(f"{room:10} {len(ended):6} {killed:6} {listed:6} {without:9}")
    print("room       guards killed listed survivors", *counts, sep="\n")
    lines = [f"no test fails without it: {' | '.join(row)}" for row in new]
    lines += [f"no survivor of this row: {' | '.join(row)}" for row in stale]
    if lines:
        sys.exit("\n".join(lines))


def row_of(outcome):
    """(file, code) of a guard as a row of tests/guards.txt has them."""
    return outcome.file, outcome.change.removeprefix("guard: ")


def run_in_copy():
    """Run this command in a copy of the tree, whose package the processes that it starts import, too; its status."""
    with tempfile.TemporaryDirectory(prefix="normgrad-guards-") as folder:
        hidden = shutil.ignore_patterns(".*", "_build", "__pycache__")
        copied = Path(shutil.copytree(ROOT, Path(folder) / COPY, ignore=hidden))
        command = [sys.executable, str(copied / "tools/mutation.py"), *sys.argv[1:]]
        settings = {"PYTHONPATH": str(copied / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, env=os.environ | settings).returncode


def warm_up():
    """Import what no mutant changes, once."""
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "tests/operator")]
    import matplotlib  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import sympy  # noqa: F401
    import torch  # noqa: F401
    import triton  # noqa: F401


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--guards", nargs="*", choices=ROOMS, metavar="ROOM", help=", ".join(ROOMS))
    known = sorted({*FILES, *chain.from_iterable(map(files_of, ROOMS))})
    add("--files", nargs="+", choices=known, metavar="FILE", help="some of them")
    add("--tests", nargs="+", metavar="FILE", help="files of tests, in place of TESTS")
    add("--sample", type=int, help="how many mutants, drawn at random; else all")
    add("--seed", default="0", help="of the sample; any text")
    add("--jobs", type=int, default=os.cpu_count())
    add("--record", action="store_true", help="write tests/machine_mutants.json")
    options = parser.parse_args()
    if options.guards is not None and ROOT.name != COPY:
        sys.exit(run_in_copy())
    warm_up()
    from machine_mutants import machine_mutants

    with tempfile.TemporaryDirectory(prefix="normgrad-mutation-") as folder:
        if options.guards is not None:
            try_guards(options, Path(folder))
            return
        files, tests = options.files or FILES, options.tests or TESTS
        mutants = chosen(files, options.sample, options.seed, machine_mutants)
        outcomes = try_all(mutants, tests, options.jobs, Path(folder))
    survived = [outcome for outcome in outcomes if outcome.end == "survived"]
    count = len(outcomes) - len(survived)
    share = 100 * count / len(outcomes)
    print(f"{count} of {len(outcomes)} mutants noticed, {share:.1f} %")
    if options.record:
        record(outcomes, options.seed)
        return
    reasons, texts = explained(), sources()
    new = [str(out) for out in survived if key_of(out, texts) not in reasons]
    if new:
        sys.exit("\n".join(["survivors that the record does not explain:", *new]))


if __name__ == "__main__":
    main()
