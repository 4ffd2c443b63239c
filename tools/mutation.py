"""The score of the tests: how many machine-made mutants of the files that a gradient passes through they notice.

    python tools/mutation.py --sample 40 --seed 7      some of all files
    python tools/mutation.py --files torch_ops/rows.py     all of one file
    python tools/mutation.py --record                  all, and writes tests/machine_mutants.json

The tests are collected once, and run once under a tracer that notes which of them run which line. For each mutant a
fork of that process puts the changed code into the functions of the file and runs the tests of the changed lines, the
quick ones first, until one fails. What stands outside all functions is changed while it is imported.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import json
import linecache
import os
import random
import signal
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
# Without tests that edit these very files, and fail where the text to edit is missing.
UNEDITED = "not mutant and not wrong_program and not contract_rejects and not dropped_projection"
# A test that takes longer than this, or this many times as long as without a mutant, never ends.
SECONDS, PATIENCE = 20, 10
ENDS = {-signal.SIGALRM: "never ended", 0: "survived"}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Args:  file, line, change: the mutant; end: "killed", "never ended" or "survived"
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


def with_tests(use, tests):
    """Collect the tests and hand them to a function."""
    import pytest

    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    options = ["-qq", "-s", "--whole", "-p", "no:cacheprovider", "-p", "no:xdist"]
    chosen = ["-m", "not site and not gpu", "-k", UNEDITED]
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


def traced(items, results):
    """Run the tests; write to a file which lines of FILES each of them runs, and how long it takes."""
    names = {str(PACKAGE / file): file for file in FILES}
    modules = {
        "normgrad." + file.removesuffix(".py").replace("/", ".") for file in FILES
    }
    caches = [
        cache
        for cache in gc.get_objects()
        if type(cache) is functools._lru_cache_wrapper and cache.__module__ in modules
    ]
    runs = []
    for item, following in zip_longest(items, items[1:]):
        # what is kept from one test to the next would count for the first alone
        for cache in caches:
            cache.cache_clear()
        lines = defaultdict(set)

        def trace(frame, event, _, lines=lines):
            file = names.get(frame.f_code.co_filename)
            if file is None:
                return None
            lines[file].add(frame.f_lineno)
            return trace

        started = time.monotonic()
        sys.settrace(trace)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.settrace(None)
        seconds = time.monotonic() - started
        run_lines = {file: sorted(numbers) for file, numbers in lines.items()}
        runs.append((item.nodeid, seconds, run_lines))
    Path(results).write_text(json.dumps(runs))


class Coverage:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, results):
        self.seconds, self.tests = {}, defaultdict(set)
        for file_of_runs in results:
            for name, seconds, files in json.loads(file_of_runs.read_text()):
                self.seconds[name] = seconds
                for file, lines in files.items():
                    for line in lines:
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
    return codes(compile(text, str(PACKAGE / file), "exec", dont_inherit=True))


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
    path = str(PACKAGE / file)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    return path


def replace_functions(file, old, new):
    """Give the live functions of a file the code and the defaults that they have in its changed text."""
    path = show_text(file, new)
    before, after = compiled(file, old), compiled(file, new)
    keys = {
        (code.co_qualname, code.co_firstlineno): key for key, code in before.items()
    }
    pairs = zip(functions_of(old), functions_of(new), strict=True)
    signatures = {
        first_line(node): changed.args
        for node, changed in pairs
        if ast.dump(node.args) != ast.dump(changed.args)
    }
    for function in gc.get_objects():
        if (
            type(function) is types.FunctionType
            and function.__code__.co_filename == path
        ):
            code = function.__code__
            line = code.co_firstlineno
            # a function within an `if` that is never taken is no longer compiled
            function.__code__ = after.get(keys[code.co_qualname, line], code)
            if line in signatures:
                set_defaults(function, signatures[line])


def import_changed(file, text):
    """Let the import of a file read this text."""
    path, original = show_text(file, text), SourceFileLoader.get_code

    def get_code(self, name):
        if self.path == path:
            return compile(text, path, "exec", dont_inherit=True)
        return original(self, name)

    SourceFileLoader.get_code = get_code


# --- the score ---


def sources():
    return {file: (PACKAGE / file).read_text() for file in FILES}


def chosen(files, sample, seed):
    """[(file, mutant)]: all of them, or a sample without replacement."""
    from machine_mutants import machine_mutants

    texts = sources()
    mutants = [
        (file, mutant) for file in files for mutant in machine_mutants(texts[file])
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "normgrad"]:
        del sys.modules[name]
    if sample is None:
        return mutants
    return random.Random(seed).sample(mutants, min(sample, len(mutants)))


def tried(mutants, start, coverage, jobs, folder):
    """Yield the Outcome of each mutant, `jobs` at a time, and print it.

    Args:  start: what a child does, a function of a file, its changed text and the names of the tests that run it
    """
    texts, waiting, running = sources(), list(reversed(mutants)), []
    while waiting or running:
        while waiting and len(running) < jobs:
            file, mutant = waiting.pop()
            names = coverage.ordered(file, lines_of(texts[file], mutant))
            begin = functools.partial(start, file, mutant.applied(texts[file]), names)
            log = folder / f"log{len(waiting)}"
            running.append((Child(begin, log), file, mutant, len(names)))
        time.sleep(0.01)
        for trial in list(running):
            child, file, mutant, tests = trial
            ended = child.poll()
            if ended is None:
                continue
            running.remove(trial)
            status, seconds = ended
            if status > 1:
                sys.exit(f"{file}, {mutant}:\n{child.log.read_text()}")
            end = ENDS.get(status, "killed")
            change = str(mutant).partition(", ")[2]
            outcome = Outcome(file, mutant.line, change, end, tests, round(seconds, 1))
            print(outcome, flush=True)
            yield outcome


def try_all(mutants, tests, jobs, folder):
    """The Outcome of each mutant.

    One process collects the tests, finds which of them run which lines and tries the mutants within functions; the
    others are tried by processes that import the package with the mutant in it.
    """
    texts, outcomes = sources(), folder / "outcomes"
    results = [folder / f"lines{job}" for job in range(jobs)]
    hot, cold = [], []
    for file, mutant in mutants:
        kind = hot if is_hot(file, texts[file], mutant) else cold
        kind.append((file, mutant))

    def try_hot(items):
        started = time.monotonic()
        parts = [
            functools.partial(traced, items[job::jobs], path)
            for job, path in enumerate(results)
        ]
        children = [
            Child(part, folder / f"log-{job}") for job, part in enumerate(parts)
        ]
        for child in children:
            if child.wait()[0] != 0:
                sys.exit(f"the tests fail without a mutant:\n{child.log.read_text()}")
        seconds = time.monotonic() - started
        print(f"{len(items)} tests, {seconds:.0f} s under the tracer", flush=True)
        coverage = Coverage(results)
        by_name = {item.nodeid: item for item in items}

        def start(file, changed, names):
            replace_functions(file, texts[file], changed)
            run([by_name[name] for name in names], coverage.seconds)

        ended = [*map(asdict, tried(hot, start, coverage, jobs, folder))]
        outcomes.write_text(json.dumps(ended))

    pid = os.fork()
    if not pid:
        try:
            with_tests(try_hot, tests)
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
        with_tests(use, tests)
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
    add("--files", nargs="+", choices=FILES, default=FILES, metavar="FILE")
    add("--tests", nargs="+", default=TESTS, metavar="FILE", help="files of tests")
    add("--sample", type=int, help="how many mutants, drawn at random; else all")
    add("--seed", default="0", help="of the sample; any text")
    add("--jobs", type=int, default=os.cpu_count())
    add("--record", action="store_true", help="write tests/machine_mutants.json")
    options = parser.parse_args()
    warm_up()
    mutants = chosen(options.files, options.sample, options.seed)
    with tempfile.TemporaryDirectory(prefix="normgrad-mutation-") as folder:
        outcomes = try_all(mutants, options.tests, options.jobs, Path(folder))
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
