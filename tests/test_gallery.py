"""The gallery: each bug is rejected by the test that bears its lesson, its repaired version and our backends pass."""

import ast
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from broken_rules import BROKEN

from normgrad import LAYER_NORM
from normgrad.checks import cases, contract
from normgrad.checks.backends import NAMES, get
from normgrad.homework import misconceptions
from normgrad.homework.diagnosis.diagnose import diagnose
from normgrad.mistakes.gallery import BUGS, REJECTED, look, looks
from normgrad.mistakes.table import MISTAKES

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[1]
PAGES = "".join((ROOT / f"book/{name}.md").read_text(encoding="utf8") for name in ("bugs", "bugs_memory"))
TORCH = ("torch", "triton", "numba")


def _caught(name):
    """The check rejects the bug and says why, accepts the repaired version; the usual test accepts the bug."""
    bug, fresh = BUGS[name], lambda: np.random.default_rng(7)
    with pytest.raises(REJECTED, match=bug.complaint):
        bug.check(bug.wrong, fresh())
    bug.check(bug.right, fresh())
    bug.usual(bug.wrong, fresh())


# One test a bug, named after what it insists on


def test_the_weight_enters_dx_once():
    _caught("weight twice")


def test_the_offset_of_the_weight_is_in_dx():
    _caught("offset forgotten")


def test_dw_is_there():
    _caught("no dw")


def test_the_streams_gradient_does_not_pass_through_the_norm():
    _caught("residual first")


def test_a_first_block_returns_the_streams_gradient():
    _caught("first block")


def test_the_streams_gradient_does_not_pass_through_the_gate():
    _caught("gate order")


def test_the_matrix_behind_a_gate_sees_the_gated_rows():
    _caught("gate dropped")


def test_eps_stands_where_it_is_said_to():
    _caught("eps on the sum")


def test_the_variance_is_centred_first():
    _caught("one pass")


def test_the_offset_is_added_in_float32():
    _caught("16-bit offset")


def test_statistics_are_saved_in_float32():
    _caught("16-bit statistics")


def test_the_gradient_is_taken_from_x_and_not_from_a_rounded_y():
    _caught("gradient from y")


def test_partial_sums_are_kept_in_float32():
    _caught("16-bit partial sums")


def test_the_order_of_arrival_changes_no_bit():
    _caught("order of arrival")


def test_dy_is_left_as_it_was():
    _caught("written over dy")


def test_dw_is_taken_from_dy_and_not_from_dx():
    _caught("dw too late")


def test_the_sum_is_what_is_returned_and_saved():
    _caught("buffer dropped")


def test_each_argument_has_a_layout_of_its_own():
    _caught("stride of x")


def test_the_heads_of_a_slice_have_two_strides():
    _caught("heads end to end")


def test_row_offsets_need_64_bits():
    _caught("32-bit offset")


def test_no_row_past_the_last_one():
    _caught("one row too many")


def test_no_rows_give_a_zero_dw():
    _caught("no rows")


def test_the_second_derivative_is_not_cut():
    _caught("cut graph")


def test_the_number_of_rows_asks_for_no_kernel():
    _caught("a kernel per batch")


def test_a_sum_is_no_loss():
    _caught("sum as loss")


def test_ones_are_no_weight():
    _caught("weight of ones")


def test_errors_have_two_signs():
    _caught("one-sided")


def test_a_result_is_not_compared_with_itself():
    _caught("a buffer and itself")


def test_the_tolerance_is_computed():
    _caught("a fixed tolerance")


@pytest.mark.parametrize("columns", [64, 4096, 32768])
def test_a_dropped_projection_is_rejected_at_every_length(columns, rng):
    look = replace(BUGS["a fixed tolerance"].check, case=looks.aligned(4, columns))
    with pytest.raises(AssertionError, match=r"dx\["):
        look(BUGS["a fixed tolerance"].wrong, rng)
    look("torch", rng)


# One mistake has one key, in the gallery as in reports about homework

# What no homework asks for: a gate, heads, an offset of the weight, a matrix of 2**31 elements, compiled variants, a
# buffer that the caller gives.
KEYLESS = {"gate order", "gate dropped", "heads end to end", "offset forgotten", "16-bit offset", "32-bit offset",
           "a kernel per batch", "buffer dropped"}  # fmt: skip
FORMULAS = [name for name, bug in BUGS.items() if bug.key in MISTAKES and bug.output in MISTAKES[bug.key].looks
            and bug.check.dtype == "float64"]  # fmt: skip


def test_every_bug_has_its_key_of_the_table():
    assert {name for name, bug in BUGS.items() if not bug.key} == KEYLESS
    assert {each.key for each in (*BUGS.values(), *BROKEN)} - {""} <= set(misconceptions())


@pytest.mark.parametrize("name", FORMULAS)
def test_a_wrong_formula_of_the_gallery_is_given_its_key(name, rng):
    bug = BUGS[name]
    case = bug.check.case(rng)
    got = getattr(bug.wrong.run(case, bug.check.spec, "float64"), bug.output)
    assert [each.misconception for each in diagnose(bug.output, got, case, bug.check.spec)] == [bug.key]


# The same checks on the package's own backends


@pytest.mark.parametrize(("name", "backend"), [(name, each) for name, bug in BUGS.items() for each in bug.backends])
def test_no_backend_has_the_bug(name, backend, rng):
    bug = BUGS[name]
    bug.check(bug.ours(backend), rng)


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.backends])
@pytest.mark.parametrize("backend", NAMES)
def test_every_backend_is_looked_at_where_it_can_be(name, backend):
    left_out = set(NAMES) - set(BUGS[name].backends)
    assert left_out <= {"numpy", "sympy"}


MARK, MARGIN = -12345.0, 64


@contextmanager
def _margins(monkeypatch):
    """Memory that torch gives out meanwhile lies between marks; at the end the marks must be as they were."""
    given = []

    def wrap(allocate):
        def function(*arguments, **options):
            tensor = allocate(*arguments, **options)
            wide = torch.full((tensor.numel() + 2 * MARGIN,), MARK).to(tensor.device, tensor.dtype)
            inner = wide[MARGIN : MARGIN + tensor.numel()].view(tensor.shape).copy_(tensor)
            given.append(wide)
            return inner

        return function

    with monkeypatch.context() as patch:
        for owner, names in ((torch.Tensor, ("new_empty", "new_zeros")), (torch, ("empty", "empty_like", "zeros"))):
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
    assert sizes.count(rows * 5) >= 3, "y, residual_out and dx come from elsewhere: look at _margins again"


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
    grads = torch.autograd.grad(ends, inputs, [between(case.dy), between(case.dresidual_out)])
    assert all(torch.isfinite(t).all() for t in (*ends, *grads))


@pytest.mark.parametrize("backend", TORCH)
def test_rows_lie_two_to_the_31_elements_apart(backend, rng, tmp_path):
    """Three rows in a file of 4 GiB that is empty but for them: row 2 begins at element 2**31."""
    if get(backend).device != "cpu":
        pytest.skip("a file is memory on the CPU only")
    stride, columns = 2**30, 4
    file = np.memmap(tmp_path / "rows", np.float16, "w+", shape=(2 * stride + columns,))
    far = torch.from_numpy(file).as_strided((3, columns), (stride, 1))
    near, dy = (torch.from_numpy(rng.standard_normal((3, columns))).half() for _ in range(2))
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


# The pages and the gallery say the same


def test_every_bug_has_its_test_on_a_page():
    tree = ast.parse(Path(__file__).read_text(encoding="utf8"))
    named = {}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and (call := re.search(r"_caught\('(.+)'\)$", ast.unparse(function))):
            named[call[1]] = function.name
    assert list(named) == list(BUGS)
    linked = re.findall(r"\{test\}`test_gallery\.py::(\w+)`", PAGES)
    assert [name for name in named.values() if name not in linked] == []


def test_every_bug_is_shown_and_run_on_a_page():
    assert re.findall(r'^look\("(.+)"\)', PAGES, re.M) == list(BUGS)


def test_the_experiment_says_what_a_bug_does(capsys):
    look("no dw")
    assert capsys.readouterr().out.splitlines() == [
        "belief: norm weights are frozen",
        "damage: 100 %, dw",
        "check: dw is absent, the oracle's is not",
    ]


def test_the_experiment_refuses_a_name_that_it_does_not_know():
    with pytest.raises(ValueError, match="name: got 'dw', needs one of 'weight twice', 'offset forgotten'"):
        look("dw")
