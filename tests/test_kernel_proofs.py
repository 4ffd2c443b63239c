"""The text of the package's kernels is proved, in Triton and in loops; a text that is wrong is not."""

import inspect
import random
import sys
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from copies import listed, plain_python
from machine_mutants import machine_mutants, statement_at
from verify_kernels import SUM

from normgrad.mistakes import mutants
from normgrad.spec import PLACED
from normgrad.symbolic.derivations import family
from normgrad.symbolic.symbols import M, N, eps
from normgrad.verify import COLUMNS, ROWS, Out, T, api, verify
from normgrad.verify.binding import LIMIT, PROGRAM, PROGRAM_COUNT, PROGRAMS, Filled
from normgrad.verify.package import (
    FOLDER,
    FORWARD,
    KERNELS,
    NAMES,
    PIECES,
    ROUNDING,
    Case,
    prove_kernels,
    verify_kernel,
)
from normgrad.verify.verdict import REFUTED, compare

CASES = tuple(Case(*flags) for flags in product((True, False), (True, False), PIECES))
CASES += (
    Case(True, True, "inside", residual=False, weight=False, bias=False),
    Case(False, True, "inside", residual=False, bias=False),
    Case(False, False, "clamp", residual=False, weight=False, bias=False),
    Case(True, True, "outside", weight=False, dx=False),
    Case(True, True, "inside", dresidual=True),
    Case(True, True, "inside", offset=True),
    Case(False, False, "outside", residual=False, bias=False, offset=True),
    Case(True, True, "inside", heads="strides"),
    Case(False, False, "clamp", residual=False, bias=False, heads="strides"),
    Case(True, True, "inside", dresidual=True, heads="weights"),
    Case(
        False, True, "outside", residual=False, bias=False, offset=True, heads="weights"
    ),
    Case(False, False, "clamp", dx=False, heads="weights"),
)
# Every flag in both states, each place of eps, and heads.
FEW = (
    Case(True, True, "inside", dresidual=True),
    Case(False, False, "outside"),
    Case(False, True, "zero"),
    Case(True, False, "clamp", bias=False, offset=True),
    Case(False, True, "clamp", residual=False, bias=False),
    Case(True, True, "inside", residual=False, weight=False, dx=False),
    Case(True, True, "inside", dresidual=True, heads="weights"),
)
IN_LOOPS = [case for case in CASES if not (case.dresidual or case.offset or case.heads)]
FEW_IN_LOOPS = [case for case in FEW if not case.heads]
# dx and db are stored, and dw is not
FEW_IN_LOOPS.append(Case(False, True, "inside", residual=False, weight=False))
PROOFS = {}

# {kernel in loops: what it stores}; dresidual is dx in another dtype, which the launcher makes.
LOOPS = {"forward": FORWARD, "backward": ("dx", "dw", "db")}


def verify_loop(case, kernel, run=True):
    """Read one Numba kernel for a variant, in the launcher's binding, with the weight's offset added.

    Args:  kernel: a function of the package, or of a copy of it; run: whether a proof is confronted with a run
    """
    function = getattr(kernel, "py_func", kernel)
    names = [*inspect.signature(function).parameters]
    stored = LOOPS[kernel.__name__]
    binding = {
        "program": PROGRAM,
        "programs": PROGRAM_COUNT,
        "N": N,
        "n": N if case.mean else 1,
        "zero": 0,
        "center": case.center,
        "scale": family.c,
        "eps": eps,
        "placement": function.__globals__[PLACED[case.piece].upper()],
        "most": LIMIT,
    }
    absent = {"weight": Filled((N,), 1), "bias": Filled((N,)), "mean": Filled((M,))}
    absent |= dict.fromkeys(("dw", "db"), Filled((PROGRAMS[0], 0)))
    for name in {*names} - {*binding}:
        kind = Out if name in stored else T
        index = "p, j" if name in ("dw", "db") else None
        binding[name] = kind(NAMES.get(name, name), index)
        if name in case.absent:
            binding[name] = absent.get(name, Filled((M, 0)))
    if not case.center and "mean" in stored:
        binding["mean"] = Out("zero", "i")
    definitions = replace(case, offset=False).definitions()
    binding = {name: binding[name] for name in names}
    return verify(kernel, binding, definitions, zero=case.piece == "zero", run=run)


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """A claim that an unchanged part of a text makes again is proved once."""

    def once(stored, defined, defs, claim="", seconds=20):
        key = stored.as_dummy(), defined, id(defs)
        if key not in PROOFS:
            PROOFS[key] = compare(stored, defined, defs, claim, seconds), defs
        return PROOFS[key][0]

    monkeypatch.setattr(api, "compare", once)


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_triton_kernel_stores_what_is_defined(case):
    verdict = prove_kernels(case)
    assert verdict and {name.partition(":")[0] for name in verdict.outputs} == {
        *KERNELS
    }
    zeros = [
        words for words in verdict.assumptions if words.endswith(" is 0 in every row")
    ]
    assert len(zeros) == (case.piece == "zero") and all(
        "sqrt(" in words for words in zeros
    )


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("case", IN_LOOPS, ids=str)
@pytest.mark.parametrize("name", LOOPS)
def test_every_kernel_in_loops_stores_what_is_defined(name, case):
    kernels = pytest.importorskip("normgrad.numba_kernels.kernels")
    verdict = verify_loop(case, getattr(kernels, name))
    assert verdict and len(verdict.outputs) == len(
        {*LOOPS[name]} - case.absent | ({"mean"} & {*LOOPS[name]})
    )


@pytest.mark.parametrize(("which", "output"), [(0, "first"), (1, "second")])
def test_the_reduction_adds_the_partial_sums_of_all_programs(which, output):
    binding = {
        f"{output}_partial_ptr": T("part", "i, j"),
        f"{output}_ptr": Out("sum", "j"),
        "programs": M,
        "N": N,
        "ROWS": ROWS,
        "BLOCK": COLUMNS,
    }
    if which == 0:
        binding["second_ptr"] = T("second", "j")
    file, grid = FOLDER / "reduction.py", ("column tiles", which)
    assert verify(file, binding, grid, SUM, kernel="reduce_partials", helpers=ROUNDING)


def reduction_in_loops(kernels, run=True):
    binding = {"partial": T("part", "i, j"), "total": Out("sum", "j")}
    return verify(kernels.reduce_partials, binding, SUM, run=run)


def test_the_reduction_in_loops_does_the_same():
    assert reduction_in_loops(pytest.importorskip("normgrad.numba_kernels.kernels"))


def wrong(files):
    """The first verdict on changed Triton kernels that is no proof, None where all are proved."""
    with tempfile.TemporaryDirectory() as folder:
        for file in FOLDER.glob("*.py"):
            (Path(folder) / file.name).write_text(
                files.get(file.name, file.read_text())
            )
        for case in FEW:
            for title in KERNELS:
                verdict = verify_kernel(case, title, Path(folder))
                if not verdict:
                    return verdict
    return None


def wrong_loops(text, name):
    """The first verdict on changed kernels in loops that is no proof, None where all are proved."""
    with plain_python():
        package = mutants.package(
            "numba_kernels", {"kernels.py": text}, f"loops, {name}"
        )
    kernels = [getattr(package.kernels, name) for name in LOOPS]
    reduction = reduction_in_loops(package.kernels, run=False)
    for module in [name for name in sys.modules if name.startswith(package.__name__)]:
        del sys.modules[module]
    for case in FEW_IN_LOOPS:
        for kernel in kernels:
            verdict = verify_loop(case, kernel, run=False)
            if not verdict:
                return verdict
    return None if reduction else reduction


def not_proved(package, files, name):
    """The first verdict on a changed package that is no proof, None where all are proved."""
    if package == "triton_kernels":
        return wrong(files)
    pytest.importorskip("numba")
    return wrong_loops(files["kernels.py"], name)


# Mistakes that are in no kernel's text, but in the launcher or in rounding.
ELSEWHERE = {
    "triton": {
        "mean over rows in db",
        "dresidual_out through the norm",
        "statistics in bfloat16",
        "eps on the sum",
    },
    "numba": {
        "mean over rows in db",
        "dresidual_out through the norm",
        "eps on the sum",
        "offset missing in wdy",
    },
}


EDITS = {
    (program.backend, program.name): program.edits
    for _, program in listed()
    if program.path in ("triton_kernels", "numba_kernels")
}


@pytest.mark.parametrize("backend", ELSEWHERE)
@pytest.mark.parametrize("name", mutants.names())
def test_a_mistake_in_a_kernel_is_not_proved(name, backend):
    pytest.importorskip(backend)
    package = f"{backend}_kernels"
    files = mutants.edited_package(package, EDITS[backend, name], name)
    verdict = not_proved(package, files, name)
    assert (verdict is None) == (name in ELSEWHERE[backend])
    if verdict is not None and verdict.kind == REFUTED:
        assert verdict.counterexample


TEXTS = [program for fails, program in listed() if fails == "text"]


@pytest.mark.parametrize("program", TEXTS, ids=str)
def test_a_wrong_text_is_not_proved(program):
    source = (mutants.PACKAGE / program.path).read_text()
    text = mutants.edited(source, program.edits, str(program))
    package, file = program.path.split("/")
    assert not_proved(package, {file: text}, program.name) is not None


def small_changes(package, *files):
    """[(package, file, text, machine mutant)]."""
    changes = []
    for file in files:
        text = (mutants.PACKAGE / package / file).read_text()
        changes += [(package, file, text, mutant) for mutant in machine_mutants(text)]
    return changes


# A hundred of the Triton kernels', all of the loops' below their helpers.
IN_TRITON = small_changes("triton_kernels", "arithmetic.py", "rows.py", "sweeps.py")
CHANGES = random.Random(20261122).sample(IN_TRITON, 100)
for change in small_changes("numba_kernels", "kernels.py"):
    if change[-1].start > change[2].index("# A row:"):
        CHANGES.append(change)


def has_a_reason(package, mutant, code):
    """Whether a change of a statement is one of those of equal_changes.txt, which says why they may be."""
    table = Path(__file__).with_name("equal_changes.txt").read_text(encoding="utf8")
    rows = table.partition(f"[{package}]\n")[2].partition("\n\n")[0]
    return any(
        part in code and change in str(mutant)
        for part, change, _ in (row.split(" || ") for row in rows.splitlines())
    )


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("chunk", range(30))
def test_no_small_change_of_a_text_is_accepted_without_a_reason(chunk):
    for package, file, text, mutant in CHANGES[chunk::30]:
        changed = {file: mutant.applied(text)}
        if not_proved(package, changed, str(mutant)) is None:
            code = statement_at(text, mutant.line)
            assert has_a_reason(package, mutant, code), f"{file}, {mutant}: {code}"
