"""The text of Numba's kernels is proved; a wrong one is refuted, or refused in words."""

import re

import pytest

pytest.importorskip("numba")

from machine_mutants import machine_mutants, statement_at  # noqa: E402
from text_proofs import refusal  # noqa: E402

from normgrad.mistakes import mutants  # noqa: E402
from normgrad.symbolic import NotProved  # noqa: E402
from normgrad.symbolic.kernel_proofs import CASES  # noqa: E402
from normgrad.symbolic.kernel_text import Unread  # noqa: E402
from normgrad.symbolic.loop_proofs import claims, prove_loops  # noqa: E402

# Mistakes that are in no kernel's text: they are the launcher's.
ELSEWHERE = {
    "mean over rows in db",
    "dresidual_out through the norm",
    "eps on the sum",
    "offset missing in wdy",
}
TEXT = (mutants.PACKAGE / "numba_kernels/kernels.py").read_text()


# The launcher hands out dresidual, which is dx in another dtype, and hands in the weight with its offset added.
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not (case.dresidual or case.offset or case.heads)],
    ids=str,
)
def test_every_kernel_stores_what_is_defined(case):
    proofs = prove_loops(case)
    assert {kernel for kernel, _ in proofs} == {
        "forward",
        "backward",
        "reduce_partials",
    }
    assert all(proofs.values())


def wrong(text, name):
    with mutants.plain_python():
        package = mutants.package("numba_kernels", {"kernels.py": text}, name)
    return refusal(claims, package)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_in_a_kernel_is_refuted_by_its_text(mutant):
    text = mutants.edited_package("numba_kernels", mutant.edits["numba"], mutant.name)[
        "kernels.py"
    ]
    error = wrong(text, f"loops, {mutant.name}")
    assert (error is None) == (mutant.name in ELSEWHERE) == (text == TEXT)
    if isinstance(error, NotProved):
        assert error.counterexample


MEAN = "    total = zero\n    for j in range(len(p)):\n        total += load(p, j)\n"
ROWS = "    for i in range(M * program // programs, M * (program + 1) // programs):\n        p = row(x, i)"
DW = "        dw[j] += of_weight(dy, p, mean, rstd, scale, j)\n\n"
LEFT_OUT = "may leave out rows or columns"
REFUSED = {
    "the first column": (MEAN, MEAN.replace("range(", "range(1, "), LEFT_OUT),
    "the last column": (MEAN, MEAN.replace("len(p)", "len(p) - 1"), LEFT_OUT),
    "every second column": (MEAN, MEAN.replace("len(p)", "0, len(p), 2"), LEFT_OUT),
    "a sum without a start": (MEAN, MEAN.partition("\n")[2], "total has no value"),
    "a sum that forgets": (
        MEAN,
        MEAN.replace("+=", "="),
        "q has no value|total is not added up|local variable",
    ),
    "a sum that ends early": (
        MEAN,
        f"{MEAN}        return total / N\n",
        "a loop that ends early",
    ),
    "the last row": (ROWS, ROWS.replace("programs):", "programs - 1):"), LEFT_OUT),
    "each program takes all rows": (
        ROWS,
        ROWS.replace("M * program // programs, ", "0, "),
        LEFT_OUT,
    ),
    "blocks without the remainder": (
        ROWS,
        ROWS.replace("M * program //", "M // programs * program //"),
        LEFT_OUT,
    ),
    "another row's residual": (
        "add(row(x, i), row(residual, i)",
        "add(row(x, i), row(residual, program)",
        "residual is read at",
    ),
    "another row's rstd": (
        "        rstd[i] = ",
        "        rstd[M - 1 - i] = ",
        "rstd is written at",
    ),
    "another column": (
        "load(x, j) + load(residual, j)",
        "load(x, j + 1) + load(residual, j)",
        "x is read at",
    ),
    "dw of the last row": (DW, DW.replace("+=", "="), "dw is written at"),
    "programs that share a row of sums": (
        "dw[program], ",
        "dw[0], ",
        "dw is no sum over the rows, in a place",
    ),
    "rows that are sums": (
        "scale, own(dw, i))",
        "scale, dx[i])",
        "dx is no sum over the rows, in a place",
    ),
    "the range turned round": ("0 < rstd <= most", "most < rstd", "a range that"),
    "a branch on data": (
        "zero) if center else",
        "zero) if row(x, i)[0] > 1 else",
        "x is read at",
    ),
    "a row that stays in its line": (
        "        send(line, y, i)\n",
        "",
        "a row of y is made in a line, and not sent",
    ),
    "a row that is sent too early": (
        "            add(row(x, i), row(residual, i), p)\n            send(sums, residual_out, i)\n",
        "            send(sums, residual_out, i)\n            add(row(x, i), row(residual, i), p)\n",
        "a row of residual_out is sent before it is made",
    ),
    "a row that is sent to another's place": (
        "send(line, y, i)",
        "send(line, y, program)",
        "or to another row",
    ),
    "a line of another array": (
        "held(line, y, i)",
        "held(sums, y, i)",
        "a row of y is made in a line of residual_out",
    ),
    "rows that have not arrived": (
        "        send(line, y, i)\n    arrived()\n",
        "        send(line, y, i)\n",
        "is sent, and need not have arrived",
    ),
    "y written twice": (
        "        affine(p,",
        "        add(row(x, i), row(x, i), y[i])\n        affine(p,",
        "y is written twice",
    ),
}


@pytest.mark.parametrize("edit", REFUSED)
def test_a_text_that_is_wrong_in_itself_is_refused_with_its_reason(edit):
    old, new, why = REFUSED[edit]
    error = wrong(mutants.edited(TEXT, [(old, new)], edit), f"loops, {edit}")
    assert isinstance(error, Unread) and re.search(why, str(error)), error


BOTH = "zero, own(dw, i), own(db, i)"
SWAPPED = {
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


@pytest.mark.parametrize("edit", SWAPPED)
def test_arrays_that_change_places_are_refuted(edit):
    error = wrong(mutants.edited(TEXT, [SWAPPED[edit]], edit), f"loops, {edit}")
    assert isinstance(error, NotProved) and error.counterexample


# In exact numbers the mean of what is left is 0, and corrects any mean. Rounded ones are the contract's matter.
CORRECTED = "the mean is corrected, whatever it is"
# What may change in a kernel's text and leave the proof as it is: the code, the change, and why.
EQUAL = (
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
    ("total += load(p, j)", "operator: + -> -", CORRECTED),
    ("mean = total / N", "operator: / -> *", CORRECTED),
    ("return mean + total / N", "operator", CORRECTED),
)
FIRST = TEXT[: TEXT.index("# A row:")].count("\n")
MACHINE = [mutant for mutant in machine_mutants(TEXT) if mutant.line > FIRST]


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("chunk", range(20))
def test_no_small_change_of_the_text_is_accepted_without_a_reason(chunk):
    for mutant in MACHINE[chunk::20]:
        code = statement_at(TEXT, mutant.line)
        if wrong(mutant.applied(TEXT), f"loops, {mutant}") is None:
            assert any(
                part in code and change in str(mutant) for part, change, _ in EQUAL
            ), f"{mutant}: {code}"
