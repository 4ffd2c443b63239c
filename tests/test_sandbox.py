"""What a student's process refuses, and what the grader refuses of what comes from it, one guard at a time."""

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import normgrad
from normgrad.homework.sandbox import (
    disk,
    kernels,
    operations,
    refusals,
    remote,
    running,
    student,
    wire,
)

resource = pytest.importorskip("resource")
PACKAGE = normgrad.__path__[0]
TABLE = Path(__file__).with_name("sandbox.txt").read_text(encoding="utf8")
ROWS = [
    tuple(part.strip() for part in row.split(" | "))
    for row in TABLE.splitlines()
    if row and not row.startswith("#")
]
HEAD = (
    "import ctypes, os, pty, resource, shutil, signal, socket, sqlite3, subprocess, sys, threading\n"
    f"import numpy as np\nPACKAGE = {PACKAGE!r}\n"
)
TORCH = "import torch\nx = torch.ones(2, 3, requires_grad=True)\n"


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """{libraries: a student's process whose functions are the table's}."""
    started = {}
    for libraries, head in ("numpy", HEAD), ("torch", HEAD + TORCH):
        folder = tmp_path_factory.mktemp(libraries)
        bodies = [
            f"def f{number}():\n    {body}\n"
            for number, (_, body, _) in enumerate(ROWS)
        ]
        (folder / "solution.py").write_text(head + "".join(bodies))
        names = [f"f{number}" for number in range(len(ROWS))]
        loaded = sorted({"numpy", libraries})
        started[libraries] = remote.Remote(folder / "solution.py", loaded, names)
    yield started
    for process in started.values():
        process.close()


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: ROWS[number][1])
def test_a_students_process_refuses(processes, number):
    libraries, _, words = ROWS[number]
    if libraries == "the kernel" and not has_landlock():
        pytest.skip("the system has no Landlock")
    process = processes["torch" if libraries == "torch" else "numpy"]
    assert process.broken is None, process.broken
    process.begin(1.0)
    failure = process.call(f"f{number}", student.Request("call", ())).failure
    assert words in f"{failure['type']}: {failure['message']}"
    assert failure["line"] == len(HEAD.splitlines()) + 2 * number + 2 + 2 * (
        libraries == "torch"
    )


def has_landlock():
    ruleset = disk.Readable(__file__, PACKAGE).ruleset()
    if ruleset is not None:
        os.close(ruleset)
    return ruleset is not None


def test_the_system_limits_memory_time_and_files(monkeypatch):
    limits = {}
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    refusals.limits(5)
    memory, same = limits.pop(resource.RLIMIT_AS)
    seconds, more = limits.pop(resource.RLIMIT_CPU)
    assert refusals.EXTRA_MEMORY < memory == same < 64 * refusals.EXTRA_MEMORY
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    assert 5 <= seconds <= used + 6 and more == seconds + 1
    assert limits == {
        resource.RLIMIT_FSIZE: (refusals.LARGEST_FILE, refusals.LARGEST_FILE),
        resource.RLIMIT_CORE: (0, 0),
    }


def test_a_system_without_landlock_has_no_rules(monkeypatch):
    readable = disk.Readable(__file__, PACKAGE)
    monkeypatch.setattr(disk, "_system", lambda *arguments: -1)
    assert readable.ruleset() is None
    monkeypatch.setattr(disk.sys, "platform", "darwin")
    monkeypatch.setattr(disk, "_system", None)
    assert readable.ruleset() is None
    disk.restrict(None)


def test_rules_that_the_kernel_refuses_end_the_call(monkeypatch):
    """A process that would read everything calls nothing of the student's."""
    monkeypatch.setattr(disk, "_system", lambda *arguments: -1)
    monkeypatch.setattr(disk.ctypes, "CDLL", lambda name: Anything())
    with pytest.raises(OSError, match="Landlock refused"):
        disk.restrict(3)


class Anything:
    """A C library whose functions do nothing."""

    def __getattr__(self, name):
        return lambda *arguments: 0


def test_what_is_opened_without_a_word():
    readable = disk.Readable(__file__, PACKAGE)
    for path in (3, os.devnull, __file__, f"{PACKAGE}/spec.py", refusals.__file__):
        assert refusals._wrong_file(path, "r", 0, readable) is None
    for module in ("normgrad.spec", "numpy", "torch"):
        assert refusals.Imports(["torch"]).find_spec(module) is None


def test_torchs_engine_runs_once_for_each_time_that_it_is_allowed():
    class Engine:
        def run_backward(self):
            return 7

    engine = refusals.OneAtATime(Engine())
    with pytest.raises(RuntimeError, match="by hand"):
        engine.run_backward()
    engine.allowed = True
    assert engine.run_backward() == 7
    with pytest.raises(RuntimeError, match="by hand"):
        engine.run_backward()
    with pytest.raises(RuntimeError, match="by hand"):
        refusals._refusing("layer_norm")()


# Messages of a student's process


def test_texts_of_a_students_process_are_short_and_steer_no_terminal():
    told = {"a\x1b": ["b\x07\n\t", 3, None, {"c": "\x9b" * 2000}]}
    assert remote._plain(told) == {"a ": ["b \n\t", 3, None, {"c": " " * 1000}]}


class Executed:
    """Appends to a list of this module where it is unpickled."""

    runs = []

    def __reduce__(self):
        return Executed.runs.append, ("executed",)


def npy(*arrays):
    """The arrays as `.npy`, objects as a pickle."""
    stream = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


HEADER = np.frombuffer(b'{"arrays": 1}', np.uint8)
OBJECT = np.array([Executed()], object)


@pytest.mark.parametrize("arrays", [(OBJECT,), (HEADER, OBJECT)], ids=["first", "next"])
def test_nothing_of_a_students_is_unpickled(arrays):
    Executed.runs.clear()
    sent = npy(*arrays)
    Executed.runs.clear()
    with pytest.raises(wire.Garbled, match="allow_pickle=False"):
        wire.unpack(sent)
    assert not Executed.runs


def test_no_object_is_sent():
    with pytest.raises(ValueError, match="allow_pickle=False"):
        wire.pack({}, [np.array([None])])


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([1j]), np.zeros(1, "M8[s]")]
)
def test_arrays_that_are_no_numbers_are_garbled(array):
    with pytest.raises(wire.Garbled, match="no numbers"):
        wire.unpack(npy(HEADER, array))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack(">Q", 2 * wire.LARGEST + 1), "bytes"),
        (struct.pack(">Q", 2**62), f"{2**62} bytes"),
        (struct.pack(">Q", 5), "no more than a length"),
        (struct.pack(">Q", 5) + b"abc", "3 bytes of 5"),
        (b"abc", "3 bytes of 8"),
    ],
    ids=str,
)
def test_a_message_that_is_none_is_garbled(sent, words):
    class Stream(io.BytesIO):
        def read(self, count=-1):
            assert count <= 2 * wire.LARGEST  # no more than that is asked for
            return super().read(count)

    with pytest.raises(wire.Garbled, match=words):
        wire.receive(Stream(sent))
    with pytest.raises(EOFError):
        wire.receive(io.BytesIO())
    with pytest.raises(wire.Garbled, match="at most"):
        wire.pack({}, [np.zeros(wire.LARGEST // 8)])


# The grader's side


def test_a_process_that_does_not_start_is_no_students_fault(tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text("raise SystemExit('no library')")
    (tmp_path / "solution.py").write_text("")
    monkeypatch.setattr(remote, "CHILD", tmp_path / "child.py")
    with pytest.raises(RuntimeError, match="did not start: no library"):
        remote.Remote(tmp_path / "solution.py")


def test_a_look_that_is_none_is_refused():
    assert remote._looked(student.NOTHING) == student.NOTHING
    for described in ({}, {"names": []}, {**student.NOTHING, "more": []}):
        with pytest.raises(KeyError):
            remote._looked(described)


def test_a_student_without_a_way_to_ask_says_so():
    nobody = student.Student()
    nobody.begin(1.0)
    for ask in (nobody.look, nobody.program):
        with pytest.raises(NotImplementedError):
            ask("f")
    with pytest.raises(NotImplementedError):
        nobody.call("f", student.Request("call", ()))


def test_who_interrupts_a_notebook_is_obeyed():
    def interrupted():
        raise KeyboardInterrupt

    local = student.Local({"f": interrupted})
    local.begin(1.0)
    with pytest.raises(KeyboardInterrupt):
        local.call("f", student.Request("call", ()))


def test_a_loop_ends_after_its_seconds():
    def loop():
        for _ in range(10**8):
            pass
        return 1

    result, facts = running.limited(loop, 0.05)
    assert result is None and facts["type"] == "TimeUp"


# What operations refuse


def test_triton_that_compiles_is_refused(monkeypatch):
    triton = pytest.importorskip("triton")
    import triton.language as tl

    monkeypatch.setattr(tl, "sum", object.__new__(triton.JITFunction))
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        kernels.kernels(None, {}, {})


def test_what_is_no_function_of_torchs_is_refused(torch):
    for target, kind in (int, "class of another kind"), (print, "builtin_function"):
        with pytest.raises(TypeError, match=f"f is a {kind}"):
            operations._apply(target, {}, {"entry": "f"}, {})
    with pytest.raises(TypeError, match="returned 1 result, needs 2"):
        operations._sent([1], {}, {"cotangents": ("dy", "dz")})


def test_a_graph_without_a_function_of_the_students_has_none(torch):
    x = torch.ones(2, requires_grad=True)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * dy

    assert operations._by_hand([Twice.apply(x) ** 2]) is True
    assert operations._by_hand([(2 * x) ** 2, None]) is False


def test_an_operator_has_its_functions_and_they_return_dictionaries():
    class Operator:
        @staticmethod
        def inputs(rng):
            return [1]

    options = {"method": "inputs", "seed": 0}
    with pytest.raises(TypeError, match="no function degenerate"):
        operations._method(Operator, "degenerate")
    with pytest.raises(TypeError, match="inputs must return dictionaries"):
        operations.operator_inputs(Operator, {}, options)


def test_an_entry_that_is_not_there_has_no_number():
    import sympy

    x = sympy.IndexedBase("x")
    arrays = {"x": np.array([3.0, 5.0])}
    assert operations._entry(x[2], arrays) == 5
    for entry in (x[0], x[3], x[sympy.Symbol("j")], x[1, 1], sympy.IndexedBase("y")[1]):
        assert operations._entry(entry, arrays) is None


INPUTS = {"dy": (2, 3), "x": (2, 3), "weight": (3,), "mean": (2,), "rstd": (2,)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dy": np.ones(operations.MOST_NUMBERS)}, "at most 100000 numbers a call"),
        ({"x": np.ones(3)}, r"x: got shape \(3,\)"),
        ({"x": np.ones((2, 0))}, r"x: got shape \(2, 0\)"),
        ({"weight": np.ones(3, complex)}, "weight: got dtype complex128"),
        ({"weight": np.ones(3, np.longdouble)}, "weight: got dtype float128"),
        ({"weight": np.array(["a"] * 3)}, "weight: got dtype <U1"),
        ({"weight": np.ones(2)}, r"weight: got shape \(2,\), needs \(3,\)"),
        ({"rstd": np.ones((2, 1))}, r"rstd: got shape \(2, 1\), needs \(2,\)"),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_are_refused(changes, words):
    inputs = {name: np.ones(shape) for name, shape in INPUTS.items()}
    assert len(operations.fitting(inputs.values())) == 5
    with pytest.raises((TypeError, ValueError), match=words):
        operations.fitting((inputs | changes).values())
