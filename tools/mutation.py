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
import importlib.machinery
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
from itertools import accumulate, chain, count, zip_longest
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
    caches = [
        each for each in gc.get_objects() if type(each) is functools._lru_cache_wrapper
    ]
    modules = {
        "normgrad." + file.removesuffix(".py").replace("/", ".") for file in FILES
    }
    caches = [each for each in caches if each.__module__ in modules]
    found = []
    for item, following in zip_longest(items, items[1:]):
        for each in (
            caches
        ):  # what is kept from one test to the next would count for the first alone
            each.cache_clear()
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
        found.append(
            (
                item.nodeid,
                time.monotonic() - started,
                {file: sorted(each) for file, each in lines.items()},
            )
        )
    Path(results).write_text(json.dumps(found))


class Coverage:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, results, most):
        self.seconds, self.tests, self.most = {}, defaultdict(set), most
        for name, seconds, files in chain.from_iterable(
            json.loads(each.read_text()) for each in results
        ):
            self.seconds[name] = seconds
            for file, lines in files.items():
                for line in lines:
                    self.tests[file, line].add(name)

    def ordered(self, file, lines) -> list[str]:
        """The tests that run one of these lines: the quickest of each function first, then the second of each, ...

        They take `most` seconds at most, so that what is left out are more cases of the same functions.
        """
        functions = defaultdict(list)
        for name in set().union(*(self.tests[file, line] for line in lines)):
            functions[name.partition("[")[0]].append(name)
        by_time = [
            sorted(names, key=lambda name: (self.seconds[name], name))
            for names in functions.values()
        ]
        by_time.sort(key=lambda names: (self.seconds[names[0]], names[0]))
        names = [name for name in chain.from_iterable(zip_longest(*by_time)) if name]
        spent = accumulate(self.seconds[name] for name in names)
        return [
            name
            for name, seconds in zip(names, spent, strict=True)
            if seconds <= self.most
        ]


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
    node = enclosing(text, mutant)
    if node is None:
        return range(1, text.count("\n") + 2)
    if mutant.line >= node.body[0].lineno and mutant.kind != "default":
        statements = [
            each
            for each in ast.walk(node)
            if isinstance(each, ast.stmt) and each is not node
        ]
        own = [
            each for each in statements if each.lineno <= mutant.line <= each.end_lineno
        ]
        return range(max(each.lineno for each in own), last + 1)
    return range(first_line(node), node.end_lineno + 1)


def codes(code):
    """{(qualified name, how many of that name came before): code object} below a module's code object."""
    found, seen, waiting = {}, Counter(), [code]
    while waiting:
        for each in waiting.pop().co_consts:
            if isinstance(each, types.CodeType):
                found[each.co_qualname, seen[each.co_qualname]] = each
                seen[each.co_qualname] += 1
                waiting.append(each)
    return found


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
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def set_defaults(function, arguments):
    """Evaluate a function's defaults anew."""

    def value(node):
        return eval(
            compile(ast.Expression(node), "default", "eval"), function.__globals__
        )

    function.__defaults__ = tuple(value(node) for node in arguments.defaults) or None
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    function.__kwdefaults__ = {
        name.arg: value(node) for name, node in named if node is not None
    } or None


def replace_functions(file, old, new):
    """Give the live functions of a file the code and the defaults that they have in its changed text."""
    path = str(PACKAGE / file)
    linecache.cache[path] = (
        len(new),
        None,
        new.splitlines(keepends=True),
        path,
    )  # Triton reads its kernels' text
    before, after = compiled(file, old), compiled(file, new)
    place = {
        (code.co_qualname, code.co_firstlineno): key for key, code in before.items()
    }
    pairs = zip(functions_of(old), functions_of(new), strict=True)
    signatures = {
        first_line(one): other.args
        for one, other in pairs
        if ast.dump(one.args) != ast.dump(other.args)
    }
    for each in gc.get_objects():
        if type(each) is types.FunctionType and each.__code__.co_filename == path:
            line = each.__code__.co_firstlineno
            # a function within an `if` that is never taken is no longer compiled
            each.__code__ = after.get(
                place[each.__code__.co_qualname, line], each.__code__
            )
            if line in signatures:
                set_defaults(each, signatures[line])


def import_changed(file, text):
    """Let the import of a file read this text."""
    path, original = str(PACKAGE / file), importlib.machinery.SourceFileLoader.get_code
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)

    def get_code(self, name):
        return (
            compile(text, path, "exec", dont_inherit=True)
            if self.path == path
            else original(self, name)
        )

    importlib.machinery.SourceFileLoader.get_code = get_code


# --- the score ---


def sources():
    return {file: (PACKAGE / file).read_text() for file in FILES}


def chosen(files, sample, seed):
    """[(file, mutant)]: all of them, or a sample without replacement."""
    from machine_mutants import machine_mutants

    everything = [
        (file, each) for file in files for each in machine_mutants(sources()[file])
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "normgrad"]:
        del sys.modules[name]
    return (
        everything
        if sample is None
        else random.Random(seed).sample(everything, min(sample, len(everything)))
    )


def tried(mutants, begin, jobs, limit, folder):
    """Yield the Outcome of each mutant, `jobs` at a time; none is begun after the time `limit`.

    Args:  begin: of file and mutant, gives the function that a child runs, and the number of its tests
    """
    waiting, running, number = list(reversed(mutants)), [], count()
    while waiting or running:
        for one in list(running):
            child, file, mutant, tests = one
            ended = child.poll()
            if ended is None:
                continue
            running.remove(one)
            end = {-signal.SIGALRM: "never ended", 0: "survived"}.get(
                ended[0], "killed"
            )
            if ended[0] > 1:
                sys.exit(f"{file}, {mutant}:\n{child.log.read_text()}")
            yield Outcome(
                file,
                mutant.line,
                str(mutant).partition(", ")[2],
                end,
                tests,
                round(ended[1], 1),
            )
        if waiting and time.monotonic() > limit:
            waiting.clear()
        while waiting and len(running) < jobs:
            file, mutant = waiting.pop()
            function, tests = begin(file, mutant)
            running.append(
                (Child(function, folder / f"log{next(number)}"), file, mutant, tests)
            )
        time.sleep(0.01)


def try_all(mutants, options, limit, folder, report):
    """Report the Outcome of each mutant.

    One process collects the tests, finds which of them run which lines and tries the mutants within functions; the
    others are tried by processes that import the package with the mutant in it.
    """
    texts, outcomes = sources(), folder / "outcomes"
    results = [folder / f"lines{job}" for job in range(options.jobs)]

    def hot(items):
        started = time.monotonic()
        parts = [
            functools.partial(traced, items[job :: options.jobs], path)
            for job, path in enumerate(results)
        ]
        children = [Child(part, folder / f"log{job}") for job, part in enumerate(parts)]
        for child in children:
            if child.wait()[0] != 0:
                sys.exit(f"the tests fail without a mutant:\n{child.log.read_text()}")
        print(
            f"{len(items)} tests, {time.monotonic() - started:.0f} s without a mutant, under the tracer",
            flush=True,
        )
        coverage, by_name = (
            Coverage(results, options.seconds),
            {item.nodeid: item for item in items},
        )

        def begin(file, mutant):
            names = coverage.ordered(file, lines_of(texts[file], mutant))

            def function():
                replace_functions(file, texts[file], mutant.applied(texts[file]))
                run([by_name[name] for name in names], coverage.seconds)

            return function, len(names)

        inside = [
            (file, mutant)
            for file, mutant in mutants
            if is_hot(file, texts[file], mutant)
        ]
        found = []
        for outcome in tried(inside, begin, options.jobs, limit, folder):
            found.append(outcome)
            report(outcome)
        outcomes.write_text(json.dumps([asdict(each) for each in found]))

    pid = os.fork()
    if not pid:
        try:
            with_tests(hot, options.tests)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    if not outcomes.exists():
        sys.exit(1)
    found, coverage = (
        [Outcome(**each) for each in json.loads(outcomes.read_text())],
        Coverage(results, options.seconds),
    )

    def begin(file, mutant):
        names = coverage.ordered(file, lines_of(texts[file], mutant))

        def use(items):
            by_name = {item.nodeid: item for item in items}
            if not set(names) <= set(by_name):
                os._exit(1)  # there are tests that cannot be collected
            run([by_name[name] for name in names], coverage.seconds)
            os._exit(0)

        def function():
            import_changed(file, mutant.applied(texts[file]))
            with_tests(use, options.tests)
            os._exit(1)  # nothing could be collected

        return function, len(names)

    outside = [
        (file, mutant)
        for file, mutant in mutants
        if not is_hot(file, texts[file], mutant)
    ]
    for outcome in tried(outside, begin, options.jobs, limit, folder):
        found.append(outcome)
        report(outcome)
    return found


def recorded() -> dict:
    """What became of the package's own mutants when they were last tried.

    Returns:  {"seed": of the sample, "files": {path: {"mutants", "tried", "survived"}}, "survivors": [{"file", "code",
              "change", "equal": whether it makes no difference, "why"}, ...]}
    """
    return json.loads(RECORD.read_text(encoding="utf8"))


def known():
    """{(file, code, change): the survivor} of the last record."""
    survivors = recorded()["survivors"] if RECORD.exists() else []
    return {(each["file"], each["code"], each["change"]): each for each in survivors}


def record(found, seed):
    """Write the outcomes by file, and the survivors with the reasons that the last record gave them."""
    from machine_mutants import machine_mutants

    files, survivors, reasons = {}, [], known()
    for file, text in sources().items():
        ended = [each for each in found if each.file == file]
        lived = sorted((each for each in ended if each.end == "survived"), key=str)
        files[file] = {
            "mutants": len(machine_mutants(text)),
            "tried": len(ended),
            "survived": len(lived),
        }
        for each in lived:
            one = {
                "file": file,
                "code": text.splitlines()[each.line - 1].strip(),
                "change": each.change,
            }
            survivors.append(
                reasons.get(tuple(one.values()), one | {"equal": False, "why": ""})
            )
    RECORD.write_text(
        json.dumps({"seed": seed, "files": files, "survivors": survivors}, indent=1)
        + "\n"
    )


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


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--files", nargs="+", choices=FILES, default=FILES, metavar="FILE"
    )
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, metavar="FILE", help="files of tests"
    )
    parser.add_argument(
        "--sample", type=int, help="how many mutants, drawn at random; all without this"
    )
    parser.add_argument("--seed", default="0", help="of the sample; any text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="of tests for one mutant, at most",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        help="begin no mutant after this many",
    )
    parser.add_argument(
        "--record", action="store_true", help="write tests/machine_mutants.json"
    )
    options = parser.parse_args(arguments)
    warm_up()
    mutants = chosen(options.files, options.sample, options.seed)

    def report(outcome):
        what = f"{outcome.end}, {outcome.tests} tests, {outcome.seconds} s"
        print(f"{outcome.file}:{outcome.line} {outcome.change}: {what}", flush=True)

    with tempfile.TemporaryDirectory(prefix="normgrad-mutation-") as folder:
        found = try_all(
            mutants,
            options,
            time.monotonic() + 60 * options.minutes,
            Path(folder),
            report,
        )
    survived = [each for each in found if each.end == "survived"]
    noticed = len(found) - len(survived)
    print(
        f"{noticed} of {len(found)} mutants noticed, {100 * noticed / len(found):.1f} %"
    )
    if options.record:
        record(found, options.seed)
        return
    reasons, lines = (
        known(),
        {file: text.splitlines() for file, text in sources().items()},
    )
    new = [
        each
        for each in survived
        if (each.file, lines[each.file][each.line - 1].strip(), each.change)
        not in reasons
    ]
    if new:
        sys.exit(
            "\n".join(["survivors that the record does not explain:", *map(str, new)])
        )


if __name__ == "__main__":
    main()
