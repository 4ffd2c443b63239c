"""The text of every kernel is proved; a wrong one is refuted, or refused in words."""

import random
import re
from dataclasses import replace

import pytest
from sympy import Integer

pytest.importorskip("triton")

from machine_mutants import machine_mutants, statement_at  # noqa: E402
from text_proofs import FEW, refusal  # noqa: E402

from normgrad.mistakes import mutants  # noqa: E402
from normgrad.symbolic import NotProved, prove  # noqa: E402
from normgrad.symbolic.kernel_proofs import CASES, claims, prove_kernels  # noqa: E402
from normgrad.symbolic.kernel_text import Unread, read  # noqa: E402
from normgrad.symbolic.notation import tensor, total  # noqa: E402
from normgrad.symbolic.symbols import M, N, j  # noqa: E402
from normgrad.triton_kernels import reduction  # noqa: E402

# Mistakes that are in no kernel's text, and where they are.
ELSEWHERE = {
    "mean over rows in db": "the launcher",
    "dresidual_out through the norm": "the launcher",
    "statistics in bfloat16": "rounding",
    "eps on the sum": "the launcher",
}


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kernel_stores_what_is_defined(case):
    proofs = prove_kernels(case)
    assert {kernel for kernel, _ in proofs} == {
        "forward_rows", "backward_rows", "backward_rows, rows read twice",
        "forward_sweeps", "row_sums", "backward_columns",
    }  # fmt: skip
    assert all(proofs.values())


@pytest.mark.parametrize(("which", "output"), [(0, "first"), (1, "second")])
def test_the_reduction_adds_the_partial_sums_of_all_programs(which, output):
    stored = read(reduction.reduce_partials, {"program_id_1": Integer(which)}).stored
    partial = tensor(f"{output}_partial", M, N)
    assert set(stored) == {output}
    assert prove(stored[output], total(M, lambda r: partial[r, j]))


# Loops are handed the weight with its offset added; these kernels add it.
WITH_OFFSET = tuple(replace(case, offset=case.piece == "clamp") for case in FEW)


def wrong(files, name):
    return refusal(claims, mutants.package("triton_kernels", files, name), WITH_OFFSET)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_in_a_kernel_is_refuted_by_its_text(mutant):
    edits = mutants.edited_package(
        "triton_kernels", mutant.edits["triton"], mutant.name
    )
    error = wrong(edits, f"text of {mutant.name}")
    assert (error is None) == (mutant.name in ELSEWHERE)
    if isinstance(error, NotProved):
        assert error.counterexample


EDGES = "mask=(rows < M)[:, None] & (cols < N)[None, :]"
COLUMNS = "mask=(cols < N)[None, :]"
NEXT = "\n\n\n@triton.jit\ndef store_partial"
MEAN = "        mean = tl.sum(total, axis=1) / N\n"
REFUSED = {
    "columns past N in the squares": (
        "arithmetic.py",
        "tl.where((cols < N)[None, :], p - mean[:, None], 0)",
        "p - mean[:, None]",
        "a column past N adds",
    ),
    "rows past M are read": (
        "arithmetic.py",
        EDGES.replace("=", " = "),
        COLUMNS.replace("=", " = "),
        "reads past",
    ),
    "rows past M are written": (
        "arithmetic.py",
        f"{EDGES}){NEXT}",
        f"{COLUMNS}){NEXT}",
        "writes past",
    ),
    "no mask at all": (
        "arithmetic.py",
        "tl.load(ptr + head * N + cols, mask=cols < N, other=0,",
        "tl.load(ptr + head * N + cols,",
        "reads past",
    ),
    "what was masked away is not known": (
        "arithmetic.py",
        "mask=mask, other=0,",
        "mask=mask,",
        "what is not known",
    ),
    "a broadcast lost": (
        "rows.py",
        "x_hat = q * rstd[:, None]\n        if dx_ptr",
        "x_hat = q * rstd\n        if dx_ptr",
        "do not fit",
    ),
    "a broadcast lost where a row is read again": (
        "rows.py",
        "x_hat = q * rstd[:, None]\n                wdy",
        "x_hat = q * rstd\n                wdy",
        "do not fit",
    ),
    "another's stride": (
        "arithmetic.py",
        "cols, M, dy_step, N",
        "cols, M, p_step, N",
        "dy is read at",
    ),
    "the stride of heads dropped": (
        "arithmetic.py",
        "        starts += (rows % heads).to(tl.int64)[:, None] * head_step * VECTOR\n",
        "",
        "is read at",
    ),
    "another's stride of heads": (
        "arithmetic.py",
        "heads, p_head_step, CACHE)",
        "heads, dy_head_step, CACHE)",
        "p is read at",
    ),
    "the first head's weight for all": (
        "arithmetic.py",
        "ptr + head * N + cols",
        "ptr + cols",
        "is read at",
    ),
    "statistics numbered within a head": (
        "rows.py",
        "tl.store(rstd_ptr + rows, rstd",
        "tl.store(rstd_ptr + rows // share, rstd",
        "rstd is written at",
    ),
    "heads that share a row of sums": (
        "arithmetic.py",
        "program = tl.program_id(0).to(tl.int64) * share + head",
        "program = tl.program_id(0).to(tl.int64)",
        "is written at",
    ),
    "a head's tiles in the order of all rows": (
        "rows.py",
        "rows = (tile * ROWS + tl.arange(0, ROWS)) * share + head",
        "rows = tile * ROWS + tl.arange(0, ROWS)",
        "is read at|not its tile's place",
    ),
    "the last tile left out": (
        "rows.py",
        "(M - 1) // (ROWS * share) + 1",
        "M // (ROWS * share)",
        "may leave out tiles",
    ),
    "tiles that overlap": (
        "rows.py",
        "rows = (tile * ROWS + ",
        "rows = (tile + ",
        "not its tile's place",
    ),
    "each program takes all tiles": (
        "rows.py",
        "tl.range(tl.program_id(0), (M - 1) // (ROWS * share) + 1, tl.num_programs(0),",
        "tl.range(0, (M - 1) // (ROWS * share) + 1, 1,",
        "may leave out tiles or take one twice",
    ),
    "dw of the last tile alone": (
        "arithmetic.py",
        "dw += dy",
        "dw = dy",
        "dw is not added up from 0|before its lanes",
    ),
    "the squares of the last block": (
        "sweeps.py",
        "reciprocal(squares, rows",
        "reciprocal(q * q, rows",
        "q has no value",
    ),
    "the two sums of a row as one": (
        "arithmetic.py",
        "tl.join(products, wdy), axis=1",
        "tl.join(products, wdy), axis=2",
        "a sum over axis 2",
    ),
    "what is not joined is split": (
        "arithmetic.py",
        "tl.split(tl.sum(tl.join(products, wdy), axis=1))",
        "tl.split(tl.sum(products, axis=1))",
        "only what was joined",
    ),
    "another's tile joined": (
        "arithmetic.py",
        "tl.join(products, wdy)",
        "tl.join(products, tl.sum(wdy, axis=1))",
        "needs one shape",
    ),
    "a mean of one block": ("sweeps.py", MEAN, f"    {MEAN}", "a sum over one tile"),
    "a branch on data": (
        "rows.py",
        "    if CENTER:\n        mean",
        "    if M > 3:\n        mean",
        "a branch on what is known only",
    ),
}


@pytest.mark.parametrize("edit", REFUSED)
def test_a_text_that_is_wrong_in_itself_is_refused_with_its_reason(edit):
    file, old, new, why = REFUSED[edit]
    text = (mutants.PACKAGE / "triton_kernels" / file).read_text()
    error = wrong({file: mutants.edited(text, [(old, new)], edit)}, edit)
    assert isinstance(error, Unread) and re.search(why, str(error)), error


def test_results_that_change_places_are_refuted():
    text = (mutants.PACKAGE / "triton_kernels/rows.py").read_text()
    swapped = mutants.edited(
        text, [("store_partial(dw_ptr, dw,", "store_partial(dw_ptr, db,")], "dw"
    )
    assert isinstance(wrong({"rows.py": swapped}, "dw is db"), NotProved)


# What may change in a kernel's text and leave the proof as it is: the code, the change, and why.
LEFT = (
    "exact numbers leave nothing of a mean: a correction mends another one, and adds 0"
)
EQUAL = (
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


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("chunk", range(10))
def test_no_small_change_of_the_text_is_accepted_without_a_reason(chunk):
    for file, mutant in random.Random(20261122).sample(MACHINE, 100)[chunk::10]:
        code = statement_at(TEXTS[file], mutant.line)
        if wrong({file: mutant.applied(TEXTS[file])}, f"{file} {mutant}") is None:
            assert any(
                part in code and change in str(mutant) for part, change, _ in EQUAL
            ), f"{file}, {mutant}: {code}"
