"""The text of the package's kernels is proved, in Triton and in loops; a text that is wrong is not."""

import random
import sys
import tempfile
from pathlib import Path

import pytest
from machine_mutants import machine_mutants, statement_at

from normgrad.mistakes import mutants
from normgrad.symbolic import Defs
from normgrad.symbolic.notation import tensor, total
from normgrad.symbolic.symbols import M, N, j
from normgrad.verify import COLUMNS, ROWS, Norm, Out, T, api, loops, verify
from normgrad.verify.package import (
    CASES,
    FOLDER,
    KERNELS,
    LOOPS,
    Case,
    prove_kernels,
    verify_kernel,
    verify_loop,
)
from normgrad.verify.verdict import REFUTED, compare

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


@pytest.fixture(autouse=True)
def remembered(monkeypatch):
    """A claim that an unchanged part of a text makes again is proved once."""

    def once(stored, defined, defs, claim="", seconds=20):
        key = stored.as_dummy(), defined, id(defs)
        if key not in PROOFS:
            PROOFS[key] = compare(stored, defined, defs, claim, seconds), defs
        return PROOFS[key][0]

    monkeypatch.setattr(api, "compare", once)
    monkeypatch.setattr(loops, "compare", once)


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


def summed(name):
    defs, total_of = Defs(), tensor("total", N)
    defs[total_of[j]] = total(M, lambda r: tensor(name, M, N)[r, j])
    return Norm(defs, {"total": total_of[j]})


@pytest.mark.parametrize(("which", "output"), [(0, "first"), (1, "second")])
def test_the_reduction_adds_the_partial_sums_of_all_programs(which, output):
    partial = f"{output}_partial"
    binding = {f"{partial}_ptr": T(partial, "i, j"), f"{output}_ptr": Out("total", "j")}
    other = {"second_ptr": T("second", "j")} if which == 0 else {}
    binding |= other | {"programs": M, "N": N, "ROWS": ROWS, "BLOCK": COLUMNS}
    helpers = {"cast(value, DTYPE)": "value"}
    file, grid = FOLDER / "reduction.py", ("column tiles", which)
    assert verify(
        file, binding, grid, summed(partial), kernel="reduce_partials", helpers=helpers
    )


def reduction_in_loops(kernels):
    binding = {"partial": T("partial", "i, j"), "total": Out("total", "j")}
    return verify(kernels.reduce_partials, binding, summed("partial"))


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
    with mutants.plain_python():
        package = mutants.package(
            "numba_kernels", {"kernels.py": text}, f"loops, {name}"
        )
    kernels = [getattr(package.kernels, name) for name in LOOPS]
    reduction = reduction_in_loops(package.kernels)
    for module in [name for name in sys.modules if name.startswith(package.__name__)]:
        del sys.modules[module]
    for case in FEW_IN_LOOPS:
        for kernel in kernels:
            verdict = verify_loop(case, kernel)
            if not verdict:
                return verdict
    return None if reduction else reduction


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


@pytest.mark.parametrize("backend", ELSEWHERE)
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_in_a_kernel_is_not_proved(mutant, backend):
    pytest.importorskip(backend)
    files = mutants.edited_package(
        f"{backend}_kernels", mutant.edits[backend], mutant.name
    )
    if backend == "triton":
        verdict = wrong(files)
    else:
        verdict = wrong_loops(files["kernels.py"], mutant.name)
    assert (verdict is None) == (mutant.name in ELSEWHERE[backend])
    if verdict is not None and verdict.kind == REFUTED:
        assert verdict.counterexample


EDGES = "mask=(rows < M)[:, None] & (cols < N)[None, :]"
COLUMN_EDGE = "mask=(cols < N)[None, :]"
NEXT = "\n\n\n@triton.jit\ndef store_partial"
MEAN = "        mean = tl.sum(total, axis=1) / N\n"
WRONG = {
    "dw and db": ("rows.py", "store_partial(dw_ptr, dw,", "store_partial(dw_ptr, db,"),
    "columns past N in the squares": (
        "arithmetic.py",
        "tl.where((cols < N)[None, :], p - mean[:, None], 0)",
        "p - mean[:, None]",
    ),
    "rows past M are read": (
        "arithmetic.py",
        EDGES.replace("=", " = "),
        COLUMN_EDGE.replace("=", " = "),
    ),
    "rows past M are written": (
        "arithmetic.py",
        f"{EDGES}){NEXT}",
        f"{COLUMN_EDGE}){NEXT}",
    ),
    "no mask at all": (
        "arithmetic.py",
        "tl.load(ptr + head * N + cols, mask=cols < N, other=0,",
        "tl.load(ptr + head * N + cols,",
    ),
    "what was masked away is not known": (
        "arithmetic.py",
        "mask=mask, other=0,",
        "mask=mask,",
    ),
    "a broadcast lost": (
        "rows.py",
        "x_hat = q * rstd[:, None]\n        if dx_ptr",
        "x_hat = q * rstd\n        if dx_ptr",
    ),
    "a broadcast lost where a row is read again": (
        "rows.py",
        "x_hat = q * rstd[:, None]\n                wdy",
        "x_hat = q * rstd\n                wdy",
    ),
    "another's stride": ("arithmetic.py", "cols, M, dy_step, N", "cols, M, p_step, N"),
    "the stride of heads dropped": (
        "arithmetic.py",
        "        starts += (rows % heads).to(tl.int64)[:, None] * head_step * VECTOR\n",
        "",
    ),
    "another's stride of heads": (
        "arithmetic.py",
        "heads, p_head_step, CACHE)",
        "heads, dy_head_step, CACHE)",
    ),
    "the first head's weight for all": (
        "arithmetic.py",
        "ptr + head * N + cols",
        "ptr + cols",
    ),
    "statistics numbered within a head": (
        "rows.py",
        "tl.store(rstd_ptr + rows, rstd",
        "tl.store(rstd_ptr + rows // share, rstd",
    ),
    "heads that share a row of sums": (
        "arithmetic.py",
        "program = tl.program_id(0).to(tl.int64) * share + head",
        "program = tl.program_id(0).to(tl.int64)",
    ),
    "a head's tiles in the order of all rows": (
        "rows.py",
        "rows = (tile * ROWS + tl.arange(0, ROWS)) * share + head",
        "rows = tile * ROWS + tl.arange(0, ROWS)",
    ),
    "the last tile left out": (
        "rows.py",
        "(M - 1) // (ROWS * share) + 1",
        "M // (ROWS * share)",
    ),
    "tiles that overlap": ("rows.py", "rows = (tile * ROWS + ", "rows = (tile + "),
    "each program takes all tiles": (
        "rows.py",
        "tl.range(tl.program_id(0), (M - 1) // (ROWS * share) + 1, tl.num_programs(0),",
        "tl.range(0, (M - 1) // (ROWS * share) + 1, 1,",
    ),
    "dw of the last tile alone": ("arithmetic.py", "dw += dy", "dw = dy"),
    "the squares of the last block": (
        "sweeps.py",
        "reciprocal(squares, rows",
        "reciprocal(q * q, rows",
    ),
    "the two sums of a row as one": (
        "arithmetic.py",
        "tl.join(products, wdy), axis=1",
        "tl.join(products, wdy), axis=2",
    ),
    "what is not joined is split": (
        "arithmetic.py",
        "tl.split(tl.sum(tl.join(products, wdy), axis=1))",
        "tl.split(tl.sum(products, axis=1))",
    ),
    "another's tile joined": (
        "arithmetic.py",
        "tl.join(products, wdy)",
        "tl.join(products, tl.sum(wdy, axis=1))",
    ),
    "a mean of one block": ("sweeps.py", MEAN, f"    {MEAN}"),
    "a branch on data": (
        "rows.py",
        "    if CENTER:\n        mean",
        "    if M > 3:\n        mean",
    ),
}


@pytest.mark.parametrize("edit", WRONG)
def test_a_wrong_text_is_not_proved(edit):
    file, old, new = WRONG[edit]
    text = mutants.edited((FOLDER / file).read_text(), [(old, new)], edit)
    assert wrong({file: text}) is not None


LOOP_MEAN = (
    "    total = zero\n    for j in range(len(p)):\n        total += load(p, j)\n"
)
ROW_LOOP = "    for i in range(M * program // programs, M * (program + 1) // programs):\n        p = row(x, i)"
DW = "        dw[j] += of_weight(dy, p, mean, rstd, scale, j)\n\n"
BOTH = "zero, own(dw, i), own(db, i)"
WRONG_LOOPS = {
    "the first column": (LOOP_MEAN, LOOP_MEAN.replace("range(", "range(1, ")),
    "the last column": (LOOP_MEAN, LOOP_MEAN.replace("len(p)", "len(p) - 1")),
    "every second column": (LOOP_MEAN, LOOP_MEAN.replace("len(p)", "0, len(p), 2")),
    "a sum without a start": (LOOP_MEAN, LOOP_MEAN.partition("\n")[2]),
    "a sum that forgets": (LOOP_MEAN, LOOP_MEAN.replace("+=", "=")),
    "a sum that ends early": (LOOP_MEAN, f"{LOOP_MEAN}        return total / N\n"),
    "the last row": (ROW_LOOP, ROW_LOOP.replace("programs):", "programs - 1):")),
    "each program takes all rows": (
        ROW_LOOP,
        ROW_LOOP.replace("M * program // programs, ", "0, "),
    ),
    "blocks without the remainder": (
        ROW_LOOP,
        ROW_LOOP.replace("M * program //", "M // programs * program //"),
    ),
    "another row's residual": (
        "add(row(x, i), row(residual, i)",
        "add(row(x, i), row(residual, program)",
    ),
    "another row's rstd": ("        rstd[i] = ", "        rstd[M - 1 - i] = "),
    "another column": (
        "load(x, j) + load(residual, j)",
        "load(x, j + 1) + load(residual, j)",
    ),
    "dw of the last row": (DW, DW.replace("+=", "=")),
    "programs that share a row of sums": ("dw[program], ", "dw[0], "),
    "rows that are sums": ("scale, own(dw, i))", "scale, dx[i])"),
    "the range turned round": ("0 < rstd <= most", "most < rstd"),
    "a branch on data": ("zero) if center else", "zero) if row(x, i)[0] > 1 else"),
    "a row that stays in its line": ("        send(line, y, i)\n", ""),
    "a row that is sent too early": (
        "            add(row(x, i), row(residual, i), p)\n            send(sums, residual_out, i)\n",
        "            send(sums, residual_out, i)\n            add(row(x, i), row(residual, i), p)\n",
    ),
    "a row that is sent to another's place": (
        "send(line, y, i)",
        "send(line, y, program)",
    ),
    "a line of another array": ("held(line, y, i)", "held(sums, y, i)"),
    "rows that have not arrived": (
        "        send(line, y, i)\n    arrived()\n",
        "        send(line, y, i)\n",
    ),
    "dw and db": (BOTH, BOTH.replace("dw", "?").replace("db", "dw").replace("?", "db")),
    "x for residual": ("load(x, j) + load(residual, j)", "load(x, j) + load(x, j)"),
    "dy and p": (
        "input_gradient(row(dy, i), added, row(p, i)",
        "input_gradient(row(p, i), added, row(dy, i)",
    ),
    "c1 and c2": (
        "dp = rstd * (wdy - c2 - x_hat * c1)",
        "dp = rstd * (wdy - c1 - x_hat * c2)",
    ),
}
TEXT = (mutants.PACKAGE / "numba_kernels/kernels.py").read_text()


@pytest.mark.parametrize("edit", WRONG_LOOPS)
def test_a_wrong_text_in_loops_is_not_proved(edit):
    pytest.importorskip("numba")
    assert (
        wrong_loops(mutants.edited(TEXT, [WRONG_LOOPS[edit]], edit), edit) is not None
    )


# What may change in a kernel's text and leave the proof as it is: the code, the change, and why.
LEFT = (
    "exact numbers leave nothing of a mean: a correction mends another one, and adds 0"
)
TIES = "where the two are equal, which the claim leaves out"
EQUAL = (
    ("s > EPS", "> -> >=", TIES),
    ("if ROUND:", "", "rounding"),
    ("most = ", "", "the range of a dtype, which is taken for granted"),
    ("(rstd <= most)", "", "the range of a dtype, which is taken for granted"),
    ("mask=rows < M, other=0", "constant: 0 -> 1", "a row past M, which is not stored"),
    (
        "mask=rows < M, other=0",
        ", other=0 -> nothing",
        "a row past M, which is not stored",
    ),
    ("s2 = tl.where(rows < M", "constant: 1 -> 2", "a row past M, which is not stored"),
    (
        "mask=cols < N, other=0).to(ACC)",
        "constant: 0 -> 1",
        "a column past N, where dy is 0",
    ),
    ("TWICE", "", "whether a row is read again"),
    ("def store_partial(", "constant", "what every kernel passes"),
    ("evict_", "", "what stays in the cache"),
    ("eviction_policy", "", "what stays in the cache"),
    ("CACHE", "CACHE", "what stays in the cache"),
    ("num_stages", "num_stages=STAGES -> nothing", "speed"),
    ("return mean + tl.sum(centred(p, mean", "", LEFT),
    ("mean = tl.sum(total, axis=1) / N", "", LEFT),
    ("total += load_sum(", "operator", LEFT),
    ("rest += centred(p, mean", "", LEFT),
    ("mean += tl.sum(rest, axis=1) / N", "", LEFT),
    ("x_hat, SCALE", "order: x_hat, SCALE -> SCALE, x_hat", "a product"),
    ("if dw_ptr is not None", "-> True", "a sum that is not stored"),
    ("if db_ptr is not None", "-> True", "a sum that is not stored"),
    ("if OFFSET != 0", "-> True", "0 is added"),
    ("k = tl.where(s == 0", "1.0 -> 2.0", "the branch that is not taken"),
)
FILES = ("arithmetic.py", "rows.py", "sweeps.py", "reduction.py")
TEXTS = {
    file: (mutants.PACKAGE / "triton_kernels" / file).read_text() for file in FILES
}
MACHINE = [
    (file, mutant) for file in FILES[:3] for mutant in machine_mutants(TEXTS[file])
]


def has_a_reason(equal, mutant, code):
    """Whether a change of a statement is one of those that are equal for a reason."""
    return any(part in code and change in str(mutant) for part, change, _ in equal)


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("chunk", range(10))
def test_no_small_change_of_the_text_is_accepted_without_a_reason(chunk):
    for file, mutant in random.Random(20261122).sample(MACHINE, 100)[chunk::10]:
        code = statement_at(TEXTS[file], mutant.line)
        if wrong({file: mutant.applied(TEXTS[file])}) is None:
            assert has_a_reason(EQUAL, mutant, code), f"{file}, {mutant}: {code}"


# In exact numbers the mean of what is left is 0, and corrects any mean. Rounded ones are the contract's matter.
CORRECTED = "the mean is corrected, whatever it is"
EQUAL_LOOPS = (
    ("0 < rstd <= most", "", "the range of a dtype, which is taken for granted"),
    (
        "weighted(dy, weight",
        "order: dy, weight -> weight, dy",
        "a product; which of them has 16 bits the contract says",
    ),
    (
        "add(row(x, i), row(residual, i)",
        "order: row(x, i), row(residual, i) -> row(residual, i), row(x, i)",
        "a sum",
    ),
    ("rstd[i], scale", "order: rstd[i], scale -> scale, rstd[i]", "a product"),
    (
        "of_weight(dy, p, mean, rstd, scale",
        "order: rstd, scale -> scale, rstd",
        "a product",
    ),
    ("if len(row(dx, i)) > 0", "-> True", "a loop over no columns"),
    ("if len(row(dx, i)) > 0", "operator: > -> >=", "a loop over no columns"),
    ("together = len(row(dx, i)) > 0", "operator: > -> >=", "c1, c2 without a dx"),
    ("s > ", "operator: > -> >=", TIES),
    ("total += load(p, j)", "operator: + -> -", CORRECTED),
    ("total += load(p, j)", "total += load(p, j) -> pass", CORRECTED),
    ("total += load(p, j) - mean", "- mean -> pass", CORRECTED),
    ("mean = total / N", "operator: / -> *", CORRECTED),
    ("return mean + total / N", "operator", CORRECTED),
)
FIRST = TEXT[: TEXT.index("# A row:")].count("\n")
MACHINE_LOOPS = [mutant for mutant in machine_mutants(TEXT) if mutant.line > FIRST]


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("chunk", range(20))
def test_no_small_change_of_the_loops_is_accepted_without_a_reason(chunk):
    pytest.importorskip("numba")
    for mutant in MACHINE_LOOPS[chunk::20]:
        code = statement_at(TEXT, mutant.line)
        if wrong_loops(mutant.applied(TEXT), str(mutant)) is None:
            assert has_a_reason(EQUAL_LOOPS, mutant, code), f"{mutant}: {code}"
