"""The gallery: each bug is rejected by its check, its repaired version, the usual test and our backends pass."""

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import gallery_bugs
import numpy as np
import page_cells
import pytest
from broken_rules import BROKEN
from gallery_bugs import Bug, gate_of, gradients_of, heads_of, layer_of

from normgrad import LAYER_NORM
from normgrad.checks import cases, contract
from normgrad.checks.backends import BACKENDS, NAMES, get
from normgrad.homework import misconceptions
from normgrad.homework.diagnosis.diagnose import diagnose
from normgrad.mistakes import gallery
from normgrad.mistakes.gallery import REJECTED, Comparison, Written
from normgrad.mistakes.gallery.exhibit import exhibit

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / f"book/{name}.md" for name in ("bugs", "bugs_memory")]
TORCH = ("torch", "triton", "numba")
# The exhibits of the pages, with what the check says, and the key of the mistake in mistakes/table.py. What no homework
# asks for has no key: a gate, heads, an offset of the weight, a matrix of 2**31 elements, compiled variants, a buffer.
SHOWN = {
    "weight twice": (r"dx\[", "y-for-x_hat"),
    "residual first": (r"dx\[", "dresidual-through-norm"),
    "eps on the sum": (r"y\[", "eps-on-sum"),
    "one pass": (r"y\[", "one-pass-variance"),
    "16-bit statistics": (r"dw\[", "narrow-statistics"),
    "16-bit partial sums": (r"dw\[", "narrow-intermediate"),
    "written over dy": ("dy was overwritten", "input-overwritten"),
    "stride of x": ("columns first", "stride-ignored"),
    "heads end to end": ("a slice of heads: y is off", ""),
    "32-bit offset": ("begins at -", ""),
    "one row too many": ("past the last row", "out-of-bounds"),
    "cut graph": ("Jacobian mismatch|expected to be zero", "constant-to-autograd"),
    "sum as loss": (r"dx\[", "blind-constant-wdy"),
    "a fixed tolerance": (r"dx\[", "loose-tolerance"),
}
KEYS = {name: key for name, (_, key) in SHOWN.items() if key} | {
    "no dw": "gradient-missing",
    "first block": "dresidual-forgotten",
    "gradient from y": "narrow-intermediate",
    "order of arrival": "atomics",
    "dw too late": "input-overwritten",
    "no rows": "no-rows",
    "weight of ones": "blind-equal-weights",
    "one-sided": "one-sign-passes",
    "a buffer and itself": "reference-wrong",
}


@cache
def exhibits():
    """{name: Bug} of what the cells of both pages exhibit."""
    found = {}

    def record(name, wrong, right, check, usual):
        found[name] = Bug(wrong, right, check, SHOWN[name][0], usual)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "exhibit", record)
        for page in PAGES:
            cells = page_cells.page_cells.of_page(page)
            with page_cells.as_on_a_page() as namespace:
                for cell in page_cells.page_cells.needed(
                    cells, lambda cell: cell.plain_calls("exhibit")
                ):
                    page_cells.execute(cell, namespace)
    return found


def bug_of(name):
    return gallery_bugs.BUGS[name] if name in gallery_bugs.BUGS else exhibits()[name]


def caught(bug):
    """The check rejects the bug and says why, accepts the repaired version; the usual test accepts the bug."""
    with pytest.raises(REJECTED, match=bug.complaint):
        bug.check(bug.wrong, np.random.default_rng(7))
    bug.check(bug.right, np.random.default_rng(7))
    bug.usual(bug.wrong, np.random.default_rng(7))


def test_the_pages_exhibit_each_bug_once():
    cells = [cell for page in PAGES for cell in page_cells.page_cells.of_page(page)]
    calls = [call for cell in cells for call in cell.plain_calls("exhibit")]
    assert (
        [page_cells.label_of(call) for call in calls] == list(SHOWN) == list(exhibits())
    )


@pytest.mark.parametrize("name", SHOWN)
def test_each_exhibit_is_rejected(name):
    caught(exhibits()[name])


def test_the_table_has_the_other_bugs():
    table = PAGES[1].read_text(encoding="utf8").partition("## The other bugs")[2]
    assert re.findall(r"^\| ([^|]+?) \|", table, re.M)[1:] == list(gallery_bugs.BUGS)


@pytest.mark.parametrize("name", gallery_bugs.BUGS)
def test_each_bug_of_the_table_is_rejected(name):
    caught(gallery_bugs.BUGS[name])


@pytest.mark.parametrize("columns", [64, 4096, 32768])
def test_a_dropped_projection_is_rejected_at_every_length(columns, rng):
    bug = exhibits()["a fixed tolerance"]
    check = replace(bug.check, case=gallery.aligned(4, columns))
    with pytest.raises(AssertionError, match=r"dx\["):
        check(bug.wrong, rng)
    check("torch", rng)


# One mistake has one key, in the gallery as in reports about homework

FORMULAS = ("weight twice", "residual first", "eps on the sum", "first block")


def test_every_key_is_in_the_table():
    assert set(KEYS) <= {*SHOWN, *gallery_bugs.BUGS}
    assert {*KEYS.values(), *[broken.key for broken in BROKEN]} - {""} <= set(
        misconceptions()
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_a_wrong_formula_of_the_gallery_is_given_its_key(name, rng):
    bug = bug_of(name)
    output, key = bug.wrong.output, KEYS[name]
    case = bug.check.case(rng)
    got = getattr(bug.wrong.run(case, bug.check.spec, "float64"), output)
    assert [
        each.misconception for each in diagnose(output, got, case, bug.check.spec)
    ] == [key]


# The same checks on the package's own backends

FORMS = {
    "written over dy": (gradients_of, NAMES),
    "stride of x": (gradients_of, NAMES),
    "a buffer and itself": (gradients_of, NAMES),
    "heads end to end": (heads_of, TORCH),
    "gate order": (gate_of, TORCH),
    "cut graph": (layer_of, TORCH),
}
COMPARED = (
    "weight twice", "residual first", "eps on the sum", "one pass", "16-bit statistics", "16-bit partial sums",
    "sum as loss", "a fixed tolerance",
    *(name for name, bug in gallery_bugs.BUGS.items() if isinstance(bug.check, Comparison)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "backend"),
    [(name, each) for name, (_, names) in FORMS.items() for each in names],
)
def test_no_backend_has_the_bug(name, backend, rng):
    bug_of(name).check(FORMS[name][0](backend), rng)


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("name", COMPARED)
def test_no_backend_fails_the_comparison(name, backend, rng):
    check = bug_of(name).check
    made_by = BACKENDS[backend]
    if check.dtype in getattr(made_by, "func", made_by).dtypes:
        check(get(backend), rng)


MARK, MARGIN = -12345.0, 64


@contextmanager
def _margins(monkeypatch):
    """Memory that torch gives out meanwhile lies between marks; at the end the marks must be as they were."""
    given = []

    def wrap(allocate):
        def function(*arguments, **options):
            tensor = allocate(*arguments, **options)
            wide = torch.full((tensor.numel() + 2 * MARGIN,), MARK).to(
                tensor.device, tensor.dtype
            )
            inner = (
                wide[MARGIN : MARGIN + tensor.numel()].view(tensor.shape).copy_(tensor)
            )
            given.append(wide)
            return inner

        return function

    with monkeypatch.context() as patch:
        for owner, names in (
            (torch.Tensor, ("new_empty", "new_zeros")),
            (torch, ("empty", "empty_like", "zeros")),
        ):
            for name in names:
                patch.setattr(owner, name, wrap(getattr(owner, name)))
        yield given
    for wide in given:
        marks = torch.cat([wide[:MARGIN], wide[-MARGIN:]])
        assert torch.equal(marks, torch.full_like(marks, MARK))


@pytest.mark.parametrize("rows", [1, 3, 5, 9])
@pytest.mark.parametrize("backend", TORCH)
def test_nothing_is_written_outside_the_arrays(backend, rows, monkeypatch, rng):
    with _margins(monkeypatch) as given:
        contract.check_values(backend, cases.draw(rng, rows, 5), LAYER_NORM)
    sizes = [wide.numel() - 2 * MARGIN for wide in given]
    assert sizes.count(rows * 5) >= 3, (
        "y, residual_out and dx come from elsewhere: look at _margins again"
    )


@pytest.mark.parametrize("backend", TORCH)
def test_nothing_is_read_outside_the_arrays(backend, rng):
    """Inputs that lie between NaN: one that is read and used turns up in a result."""
    rows, columns = 3, 5

    def between(array):
        wide = torch.full((array.size + 2 * MARGIN,), float("nan"), dtype=torch.float64)
        inner = wide[MARGIN : MARGIN + array.size].view(array.shape)
        return inner.copy_(torch.from_numpy(array)).to(get(backend).device)

    case = cases.draw(rng, rows, columns)
    names = ("x", "residual", "weight", "bias")
    inputs = [between(getattr(case, name)).requires_grad_() for name in names]
    ends = get(backend).normalize(*inputs, LAYER_NORM)
    grads = torch.autograd.grad(
        ends, inputs, [between(case.dy), between(case.dresidual_out)]
    )
    assert all(torch.isfinite(t).all() for t in (*ends, *grads))


@pytest.mark.parametrize("backend", TORCH)
def test_rows_lie_two_to_the_31_elements_apart(backend, rng, tmp_path):
    """Three rows in a file of 4 GiB that is empty but for them: row 2 begins at element 2**31."""
    if get(backend).device != "cpu":
        pytest.skip("a file is memory on the CPU only")
    stride, columns = 2**30, 4
    file = np.memmap(tmp_path / "rows", np.float16, "w+", shape=(2 * stride + columns,))
    far = torch.from_numpy(file).as_strided((3, columns), (stride, 1))
    near, dy = (
        torch.from_numpy(rng.standard_normal((3, columns))).half() for _ in range(2)
    )
    far.copy_(near)
    results = []
    for x in (near.requires_grad_(), far.detach().requires_grad_()):
        y, _ = get(backend).normalize(x, None, None, None, LAYER_NORM)
        results.append((y, *torch.autograd.grad(y, x, dy)))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("backend", TORCH)
def test_the_same_bits_at_every_run(backend, dtype, rng):
    case = cases.draw(rng, 33, 20).rounded(dtype)
    first, second = (get(backend).run(case, LAYER_NORM, dtype) for _ in range(2))
    for name in ("y", "dx", "dw", "db"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


# The exhibit


def test_an_exhibit_says_what_each_test_says(capsys):
    bug = gallery_bugs.BUGS["no dw"]
    exhibit("no dw", bug.wrong, bug.right, bug.check, bug.usual)
    assert capsys.readouterr().out.splitlines() == [
        "no dw",
        "  usual test: accepted",
        "  check: rejected: dw is absent, the oracle's is not",
        "  repaired: accepted",
    ]


def test_an_operator_takes_only_what_it_names(rng):
    with pytest.raises(KeyError, match="gate"):
        Written(lambda gate: gate, "y").run(
            cases.draw(rng, 2, 3), LAYER_NORM, "float64"
        )
