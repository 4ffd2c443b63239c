"""NumPy and torch functions read as equations: right ones are proved, and no wrong one is."""

import functools
import inspect
import linecache
import random
import re

import homework_edits
import homework_variants
import homework_variants_other
import numpy as np
import pytest
import verify_functions as right
from homework_solutions import of_source
from points import Point, apart, results, set_maxima
from replays import replays
from tables import blocks, edits
from wrong_solutions import wrong

from normgrad.homework import solutions
from normgrad.homework.task import homeworks
from normgrad.mistakes.edits import edited
from normgrad.symbolic.symbols import M, N, i, j, k, p
from normgrad.verify import Out, T, eps, verify
from normgrad.verify.definitions import norm
from normgrad.verify.functions import entry, trace
from normgrad.verify.programs import input_of, verify_function
from normgrad.verify.tables.libraries import METHODS, TABLES
from normgrad.verify.tables.python import BUILTINS, MATH
from normgrad.verify.verdict import NOT_READ, PROVED, REFUTED, WRONG

RMS, LAYER = norm(), norm(center=True, bias=True)
FORWARD, GRADIENTS = ("y", "rstd"), ("dx", "dw", "db")
UNPROVED = (NOT_READ, WRONG, REFUTED)
RIGHT = [
    (right.vectorized, LAYER, GRADIENTS),
    (right.over_rows, LAYER, GRADIENTS),
    (right.rms_forward_in_loops, RMS, FORWARD),
]
SIZES = [(1, 1), (1, 4), (4, 1), (7, 9)]


def text_of(function):
    return "import math\n\nimport numpy as np\n\n\n" + inspect.getsource(function)


def inputs_of(function):
    return {
        name: input_of(name, name) for name in inspect.signature(function).parameters
    }


def run(function, inputs, sizes, definitions, library="numpy"):
    """(a Point, what a function returns for its values of inputs)."""
    point = Point(sizes, definitions.defs, np.random.default_rng(0))
    arguments = [point.tensor(value.head) for value in inputs.values()]
    return point, results(function, library, arguments)


@pytest.mark.parametrize(("function", "definitions", "outputs"), RIGHT)
def test_a_right_function_is_proved_and_read_as_numpy_runs_it(
    function, definitions, outputs
):
    verdict = verify_function(function, definitions, outputs=outputs)
    assert verdict.kind == PROVED, verdict
    inputs = inputs_of(function)
    traced = trace(function, inputs)
    for sizes in SIZES:
        point, values = run(function, inputs, sizes, definitions)
        for name, array, value in zip(outputs, traced.outputs, values, strict=True):
            letters = definitions.outputs[name].indices
            assert not apart(value, point.value(entry(array, letters), letters)), name


@pytest.mark.parametrize("definitions", ["norm", None])
@pytest.mark.parametrize("name", ["rms", "einsum", "setup_context"])
def test_right_autograd_functions_are_proved(torch, name, definitions):
    program = homework_variants.torch_functions().get(name, right.RMS_FUNCTION)
    if definitions:
        definitions = RMS if name == "rms" else LAYER
    verdict = verify_function(program, definitions)
    assert verdict.kind == PROVED, verdict


# What agrees with the right gradient at small sizes, or on some inputs, and differs elsewhere.

N_ROWS, N_COLUMNS = "x.shape[0]", "x.shape[1]"
C1 = "c1 = (x_hat * wdy).mean(-1, keepdims=True)"
RETURN = "return dx, (dy * x_hat).sum(0), dy.sum(0)"


WRONG_EDITS = {
    kind: text.split("\n") for kind, _, text in blocks("verify_wrong_edits.txt")
}
STATE = """CALLS, CACHE = [], {}
EPS, EPSILON = 1e-5, 2e-5


def double(function):
    return lambda *arrays: [2 * array for array in function(*arrays)]


"""


@pytest.mark.parametrize("line", WRONG_EDITS["numpy"])
def test_a_function_that_is_wrong_somewhere_is_not_proved(line):
    text = edited(text_of(right.vectorized), edits(line), "program")
    text = text.replace("\n\n\n", f"\n\n\n{STATE}", 1)
    compile(text, "program", "exec")
    verdict = verify_function(text, LAYER, outputs=GRADIENTS)
    assert verdict.kind in UNPROVED, verdict
    replays(verdict)


@pytest.mark.parametrize("edit", [None, *right.CUT])
def test_a_forward_that_torch_differentiates_in_part_is_no_definition(edit):
    text = right.DIFFERENTIATED
    if edit is not None:
        text = text.replace(*edit, 1)
    verdict = verify_function(
        text, (text, "forward"), ("dx", "dw"), name="backward", run=True
    )
    assert verdict.kind == (PROVED if edit is None else NOT_READ), verdict


def test_what_numba_is_told_may_change_a_loop():
    numba = pytest.importorskip("numba")
    loops, argument = right.layer_norm_in_loops, numba.float64[:, :]
    binding = {name: T(name) for name in ("x", "weight", "bias")} | {"eps": eps}
    binding |= {name: Out(name) for name in ("y", "mean", "rstd")}
    vectors = 2 * [numba.float64[:]]
    stated = numba.void(argument, *vectors, numba.int64, argument, *vectors)
    text = text_of(loops)
    typed, power = (
        of_source(source)[loops.__name__]
        for source in (text, text.replace("total / N", "total * N**-1"))
    )
    right_loops = loops, typed, *map(numba.njit, (loops, typed))
    for compiled in (*right_loops, numba.njit(fastmath=True)(loops)):
        assert verify(compiled, binding, LAYER).kind == PROVED
    for compiled in (
        numba.njit(locals={"mu": numba.int64})(loops),
        numba.njit(parallel=True)(loops),
        numba.njit(stated)(loops),
        numba.njit(power),
        right.twice_as_large(loops),
        right.twice_as_large(numba.njit(loops)),
    ):
        assert verify(compiled, binding, LAYER, run=False).kind == NOT_READ


KEPT, TABLE, ONES = [], {"one": 1}, np.ones(1)


def doubled(function):
    @functools.wraps(function)
    def wrapper(dy):
        return 2 * function(dy)

    return wrapper


def kept_in_a_list(dy):
    KEPT.append(1)
    return dy.sum(0)


def scaled_by_a_table(dy):
    return dy.sum(0) * TABLE["one"]


def scaled_by_an_array(dy):
    return dy.sum(0) * ONES


@doubled
def decorated(dy):
    return dy.sum(0)


def with_a_default(dy, ones=[1.0]):  # noqa: B006
    return dy.sum(0) * ones[0]


@pytest.mark.parametrize(
    "function",
    [kept_in_a_list, scaled_by_a_table, scaled_by_an_array, decorated, with_a_default],
)
def test_what_a_function_finds_outside_and_may_change_is_not_read(function):
    verdict = verify_function(function, LAYER, outputs=("db",), run=False)
    assert verdict.kind == NOT_READ, verdict


@pytest.mark.parametrize("line", WRONG_EDITS["torch"])
def test_a_wrong_autograd_function_is_not_proved(line):
    text = edited(right.RMS_FUNCTION, edits(line), "program")
    for definitions in (RMS, None):
        verdict = verify_function(text, definitions)
        assert verdict.kind in UNPROVED, verdict
        replays(verdict)


# Edits by machine: every one is refused or refuted, unless its values are the right ones.


def machine_edits():
    texts = homework_edits.edited_texts(text_of(right.vectorized), {"vectorized"})
    return random.Random(0).sample([text for text, _ in texts], 45)


@pytest.mark.parametrize("text", machine_edits(), ids=range(45))
def test_a_random_edit_is_proved_only_where_its_values_are_right(text):
    verdict = verify_function(text, LAYER, outputs=GRADIENTS)
    replays(verdict)
    function, kinds = of_source(text)["vectorized"], [PROVED]
    try:
        point, values = run(function, inputs_of(function), (4, 3), LAYER)
    except (ValueError, NameError, UnboundLocalError, np.exceptions.AxisError):
        kinds = UNPROVED
    else:
        for name, value in zip(GRADIENTS, values, strict=True):
            if apart(value, point.tensor(LAYER.outputs[name])):
                kinds = UNPROVED
    assert verdict.kind in kinds, verdict


# The tables: each function gives what the library gives.

NUMPY_CALLS = """
np.sqrt(x * x); np.square(x); np.reciprocal(x); np.abs(x); np.absolute(x); np.exp(x); np.log(x * x)
np.tanh(x); np.exp2(x); np.negative(x); np.add(x, w); np.subtract(x, w); np.multiply(x, 2); np.divide(x, w)
np.true_divide(2, x); np.power(x, 3); np.maximum(x, w); np.minimum(x, 0.1); np.clip(x, -0.5, w)
np.clip(x, None, 0.2); np.where(x > w, x, 0); np.where((x > 0) & ~(x > w), 1.0, x)
np.where((x < 0) | (w <= 0), x, w); (x >= 0) * w; np.sum(x); np.sum(x, 0); np.sum(x, axis=(0, 1))
np.mean(x, 1, None, keepdims=True); np.var(x, 1); np.var(x, axis=0, ddof=2)
np.std(x, 0, ddof=-1, keepdims=True); np.linalg.norm(x)
np.linalg.norm(x, axis=1); np.linalg.norm(x, 2, 0, True); np.matmul(x, w); np.dot(x, x.T)
np.dot(w, w); x.T @ x; np.outer(x.sum(1), w); np.einsum('ij,kj->ki', x, x); np.einsum('ij->', x)
np.zeros(x.shape) + x; np.ones(len(x)) @ x; np.zeros_like(x) + w; np.ones_like(w) * x
np.eye(x.shape[1]) * w; w.flatten(); np.asarray(x); np.array(x)
np.ascontiguousarray(x); np.copy(x); np.transpose(x)
np.transpose(x, (1, 0)); np.swapaxes(x, 0, 1); np.reshape(x, x.shape); np.ravel(w)
np.expand_dims(w, 0) * x; np.squeeze(x[:, None], 1); np.broadcast_to(w, x.shape) * x
np.stack([row * w for row in x]); np.array([(row * w).sum() for row in x]); np.float32(x); x.sum(1)
x.mean(0); x.var(1, ddof=1); x.std(); x.clip(0); x.dot(w); x.astype(np.float32); x.astype(float)
x.copy(); x.transpose(); x.transpose(1, 0); x.swapaxes(0, 1); x.reshape(len(x), -1); w.ravel()
x[None].squeeze(0); x.sum().item() * w; math.sqrt(w @ w) * x; math.exp(w.sum()) * w
math.log(w @ w) * w; float(w.sum()) * x; float(len(x)) * w; int(x.shape[0]) * w; abs(x)
sum([w, w, x]); sum([row * w for row in x]); sum([r @ w for r in x], 1) * w
x.size * w; [r * 2 for r in (w, x)][1]; x ** (-2); -x; +2 * x; 2 / x; x - 1; x[..., None][:, :, 0]
x.mT; x.ndim * w; x[:, :x.shape[1]]; x[0:]; (lambda t, *s, k=2: t * k + s[0])(x, w)
x * (2 if x.ndim == 2 else 3); x * (7 // 2) + 7 % 4; x * 2 ** (-1); x * len(x) ** 2
x.dtype.type(3) * w; (x.shape[:1] + (1,))[1] * w; x * [1, 2, 3][-1]; x * {'a': 2}['a']
(x.T * w[:, None]).T; sum([r * w for _, r in enumerate(x)]); sum([a * b for a, b in zip(x, x)])
sum([k * w for k in range(3)]); sum([x[k] * 2 for k in range(len(x))])
np.einsum('ij,ij->i', x, x); sum(x[k] * w for k in range(len(x))); np.zeros(x.shape[1]) + w
np.stack([r * t for r, t in zip(x, x * w, strict=True)])
np.max(x, 1); x.max(0); x - np.amax(2 * x, axis=1, keepdims=True); np.log2(x * x); math.log2(w @ w) * w
x * min(x.shape[1], x.shape[1] + 1) * max(x.shape[1], 1)
x.astype(np.promote_types(x.dtype, np.float32)); x.astype(np.result_type(x, w))
x * tuple([2, 3])[1]; list((w, x))[1]; x * (2 if any([x.ndim == 2, x.ndim == 1]) else 3)
x * (2 if all([x.ndim == 2, x.ndim == 1]) else 3)
"""
TORCH_CALLS = """
torch.relu(x); x.relu(); torch.nn.functional.relu(x); torch.permute(x, (1, 0)); x.permute(1, 0)
x.permute((0, 1)); x.permute(-1, -2); torch.permute(x, dims=[1, 0])
torch.sqrt(x * x); torch.rsqrt(x * x); torch.square(x); torch.reciprocal(x); torch.abs(x)
torch.absolute(x); torch.exp(x); torch.log(x * x); torch.exp2(x); torch.tanh(x); torch.sigmoid(x)
torch.negative(x); torch.neg(x); torch.subtract(x, 2); torch.mul(x, w); torch.multiply(x, 2)
torch.div(x, w); torch.divide(x, 2); torch.true_divide(x, w); torch.pow(x, 3); torch.maximum(x, w)
torch.minimum(x, w); torch.clamp(x, -0.1, 0.2); torch.clamp(x, max=w); torch.clip(x, min=0.1)
torch.addcmul(x, x, w, value=2); torch.sum(x); torch.sum(x, 0, True)
torch.sum(x, axis=1, keepdims=True); torch.mean(x, dim=(0, 1)); torch.var(x, 1); w.flatten()
torch.var(x, 1, False); torch.var(x, dim=0, correction=0, keepdim=True)
torch.std(x, 1, unbiased=False); torch.std(x); torch.var_mean(x, 1)[0]
torch.var_mean(x, 1, correction=0)[1]; torch.norm(x); torch.norm(x, 2, 1); torch.linalg.norm(x)
torch.linalg.norm(x, dim=1); torch.linalg.vector_norm(x, dim=0); torch.linalg.vector_norm(x)
torch.matmul(x, w); torch.dot(w, w); torch.outer(w, w); torch.einsum('ij,j->i', x, w)
torch.where(x > 0, x, 0); torch.unsqueeze(w, 0); torch.squeeze(x[None], 0); torch.transpose(x, 0, 1)
torch.swapaxes(x, 0, 1); torch.t(x); torch.ravel(w); torch.clone(x); torch.detach(x)
torch.zeros(x.shape, dtype=x.dtype); torch.ones(len(x), dtype=x.dtype) @ x; torch.zeros_like(x) + w
torch.ones_like(x) * w; torch.eye(x.shape[1], dtype=x.dtype) * w; torch.stack([r * w for r in x])
x.view(x.size(0), -1); x.view(*x.size()); x.expand(2 - 1, -1, x.size(1))[0]; w.expand_as(x)
x.contiguous(); x.to(x.dtype); x.to(w); x.type_as(w); x.double(); x.float().double()
x.type(x.dtype); x.to(torch.promote_types(x.dtype, torch.float32))
x.half().double() * 0 + x; x.bfloat16().to(x.dtype) * 0 + x; x.dim() * w; x.sum().item() * w
x.clone().add_(w); x.clone().mul_(w); x.clone().div_(w); x.clone().clamp_(min=0); x.norm(dim=1)
x.norm(2, 0, True); x.t(); x.T; x.transpose(-1, -2); x.unsqueeze(-1).squeeze(-1)
x.reshape(len(x), -1); x.sum(1).sum(); math.sqrt(w @ w) * x; torch.add(x, w); torch.sub(x, w)
x.clone().sub_(w); torch.nn.functional.layer_norm(x, w.shape, w, w, 0.1)
torch.nn.functional.layer_norm(x, x.shape[1:])
torch.nn.functional.rms_norm(x, (x.shape[1],), eps=0.1)
torch.layer_norm(x, (x.shape[1],), w); torch.rms_norm(x, (x.shape[1],), eps=0.1)
torch.clamp_min(x, 0.1); torch.clamp_max(x, 0.2); x.clamp_min(-0.1); x.clamp_max(max=0.1)
torch.nn.functional.normalize(x, dim=-1); torch.nn.functional.normalize(x, 2, 0, 0.5)
torch.nn.functional.normalize(x); torch.nn.functional.silu(x)
w.expand(x.shape); torch.linalg.vector_norm(x, dim=1, keepdim=True); x.mean(1, True)
x.mul(w).sub(x.square()).addcmul(x, w, value=-1); x.mul(w).sum(1).view(x.size()[0], 1)
torch.amax(x, 1); torch.max(x * w, 1)[0]; x - x.max(0).values; torch.logsumexp(x, 1); torch.log2(x * x)
torch.softmax(x, -1); torch.log_softmax(x, 0)
torch.nn.functional.softmax(x, dim=1); torch.nn.functional.log_softmax(x, dim=-1)
"""


def calls(block):
    """The expressions of a block, apart by semicolons and ends of lines."""
    return [text.strip() for text in re.split("[;\n]", block) if text.strip()]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("numpy", text) for text in calls(NUMPY_CALLS)]
    + [("torch", text) for text in calls(TORCH_CALLS)],
)
def test_a_function_of_a_library_is_read_as_it_runs(kind, text):
    """At M = 4, N = 3."""
    pytest.importorskip(kind)
    inputs = {"x": input_of("x", "x"), "w": input_of("w", "weight")}
    source = f"import math\nimport {'numpy as np' if kind == 'numpy' else 'torch'}\n"
    source += f"def program(x, w):\n    return {text}\n"
    function = of_source(source)["program"]
    point, (value,) = run(function, inputs, (4, 3), RMS, kind)
    traced = trace(source, inputs, (), kind)
    (array,) = traced.outputs
    set_maxima(point, traced.noted.maxima)
    axes = [{M: i, N: j}[size] for size in array.shape if size != 1]
    if len(set(axes)) < len(axes):
        axes = [axes[0], {i: p, j: k}[axes[0]]]
    read = point.value(entry(array, axes), axes)
    assert value.shape == tuple(point.shape(array.shape))
    assert not apart(value, np.reshape(read, value.shape))


def test_every_function_of_the_tables_is_compared():
    of_torch = TORCH_CALLS, "torch", "torch"
    for block, kind, prefix in ((NUMPY_CALLS, "numpy", "np"), of_torch):
        for name in TABLES[kind].keys() - {"empty", "empty_like"}:
            assert f"{prefix}.{name}(" in block, name
        for name in METHODS[kind]:
            called = rf"[\w)\]]\.{name}\("
            assert re.search(called, block), name
    for name in [*MATH, *BUILTINS]:
        assert re.search(rf"\b{name}\(", NUMPY_CALLS), name


# The functions that pages type, and homework.


RESIDUAL = norm(center=True, bias=True, residual=True, dresidual_out=True)
ROW = norm(center=True, weight=False)
DOUBLE = {"outputs": ("to_dy", "to_x", "to_weight")}
PLACES = [{"place": word} for word in ("inside", "outside", "clamp")]
SUM = {"p": "residual_out", "outputs": ("dx", "dresidual", "dw", "db")}
NUMPY, TORCH_CELL = "numpy-backward", "torch-function"
# (page, tag): [(program, definitions, what is said of them)]; a text names what the page defines
PAGES = {
    ("eps", NUMPY): [
        ("backward", "forward", {"outputs": ("dx",), "wdy": "dy", **said})
        for said in PLACES
    ],
    ("eps", TORCH_CELL): [("Placed", None, said) for said in PLACES],
    ("higher_derivatives", NUMPY): [("double_backward", "backward", DOUBLE)],
    ("higher_derivatives_code", TORCH_CELL): [
        ("LayerNorm", LAYER, {}),
        ("Backward", None, {}),
    ],
    ("layer_norm", NUMPY): [("backward", LAYER, {"outputs": GRADIENTS})],
    ("layer_norm_code", TORCH_CELL): [
        ("LayerNorm", LAYER, {}),
        ("LayerNorm", None, {}),
    ],
    ("one_row", NUMPY): [("backward", ROW, {"outputs": ("dx",)})],
    ("residual", NUMPY): [("backward", RESIDUAL, SUM)],
    ("residual", TORCH_CELL): [("AddLayerNorm", RESIDUAL, {})],
    ("rms_norm_code", NUMPY): [("backward", norm(bias=True), {"outputs": GRADIENTS})],
    ("rms_norm_code", TORCH_CELL): [("RMSNorm", norm(bias=True), {})],
    ("training", TORCH_CELL): [("Peak", None, {})],
}


@pytest.fixture(scope="module")
def pages():
    pytest.importorskip("torch")
    pytest.importorskip("sphinx", reason="the book's packages are not installed")
    import page_cells

    cells = page_cells.page_cells
    return page_cells, {page.stem: cells.of_page(page) for page in page_cells.PAGES}


def test_every_function_that_a_page_types_is_looked_at(pages):
    tagged = {
        (name, tag)
        for name, cells in pages[1].items()
        for cell in cells
        for tag in cell.tags & {NUMPY, TORCH_CELL}
    }
    assert tagged == set(PAGES)


@pytest.mark.parametrize("key", PAGES, ids=" ".join)
def test_every_function_that_a_page_types_is_proved(key, pages):
    """By its text: the page runs it, and tells what the run gives."""
    page_cells, cells_of = pages
    name, tag = key
    cells = cells_of[name]
    (typed,) = [cell for cell in cells if tag in cell.tags]

    def is_needed(cell):
        forward = "def forward(" in cell.source and "triton" not in cell.tags
        return cell is typed or cell.visible and forward

    names = page_cells.as_on_a_page()
    needed = page_cells.page_cells.needed(cells, is_needed)
    for cell in needed[: needed.index(typed) + 1]:
        page_cells.execute(cell, names)
    for program, definitions, said in PAGES[key]:
        if isinstance(definitions, str):
            definitions = names[definitions]
        verdict = verify_function(names[program], definitions, run=False, **said)
        assert verdict.kind == PROVED, verdict


HOMEWORK = {
    "rmsnorm-forward": (RMS, FORWARD),
    "rmsnorm-backward": (RMS, ("dx", "dw")),
    "layernorm-backward": (LAYER, GRADIENTS),
    "layernorm-function": (LAYER, None),
}
# right in their own way, and not read: np.hypot, np.divide(where=), sums of pieces, x[::-1]
NOT_FOLLOWED = {"by_hypot", "divided_where", "rms_by_rows", "ln_backwards_sums"}


@pytest.mark.parametrize("homework", ["hw2", "hw3"])
def test_the_solutions_of_homework_are_proved(homework):
    text = solutions.solution(homework)
    for task in homeworks()[homework].tasks:
        definitions, outputs = HOMEWORK[task.name]
        verdict = verify_function(
            text, definitions, outputs=outputs, name=task.entry, run=True
        )
        assert verdict.kind == PROVED, (task.name, verdict)


def test_right_variants_of_homework_are_proved_or_not_read(torch):
    for task, function in homework_variants.RIGHT + homework_variants_other.RIGHT:
        if task in HOMEWORK:
            definitions, outputs = HOMEWORK[task]
            kind = NOT_READ if function.__name__ in NOT_FOLLOWED else PROVED
            verdict = verify_function(function, definitions, outputs=outputs)
            assert verdict.kind == kind, (function.__name__, verdict)


# Wrong solutions whose gradients are right in real numbers: other digits, what ctx holds, a second derivative.
RIGHT_IN_REAL_NUMBERS = {
    "dw by way of y",
    "saves a copy",
    "once differentiable",
    "a product's gradient by hand, of one factor",
    "the root before eps",
    "saves x in float32",
    "saves x_hat and rstd",
    "detached",
    "saves all it has",
    "x in a closure",
    "x as an attribute of ctx",
    "sums in bfloat16",
    "one-pass variance",
}


MISTAKES = [(name, mistake) for name in ("hw2", "hw3") for mistake in wrong(name)]


@pytest.mark.parametrize(
    ("homework", "mistake"), MISTAKES, ids=[mistake.name for _, mistake in MISTAKES]
)
def test_no_wrong_solution_of_homework_is_proved(homework, mistake):
    entries = {task.name: task.entry for task in homeworks()[homework].tasks}
    definitions, outputs = HOMEWORK[mistake.task]
    text, name = mistake.source(homework), entries[mistake.task]
    right_in_reals = mistake.name in RIGHT_IN_REAL_NUMBERS
    # the reading takes one flag for that of another argument, and a run does not
    run = right_in_reals or mistake.name == "one flag for all"
    verdict = verify_function(text, definitions, outputs=outputs, name=name, run=run)
    assert (verdict.kind == PROVED) == right_in_reals, verdict


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "def backward",
            "@torch.autograd.function.once_differentiable\n    def backward",
        ),
        ("wdy = dy * weight", "with torch.no_grad():\n            wdy = dy * weight"),
        ("rstd).sum(0)", "rstd).sum(0) if ctx.needs_input_grad[1] else None"),
    ],
)
def test_what_torch_s_engine_is_told_is_read(old, new):
    assert (
        verify_function(right.RMS_FUNCTION.replace(old, new), RMS, run=True).kind
        == PROVED
    )


EPS = 1e-5


def forward_with_eps(x, weight):
    return x * weight / np.sqrt((x * x).mean(1, keepdims=True) + EPS)


def backward_with(value):
    EPS = value

    def backward(dy, x):
        rstd = 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPS)
        return (dy * x * rstd).sum(0)

    return backward


def test_the_eps_of_a_backward_is_that_of_its_forward():
    for value, kind in ((EPS, PROVED), (2 * EPS, NOT_READ)):
        program = backward_with(value)
        verdict = verify_function(
            program, forward_with_eps, outputs=("dw",), run=kind == PROVED
        )
        assert verdict.kind == kind, verdict


def test_a_source_that_changed_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "changing.py"
    path.write_text("def backward(dy):\n    return dy.sum(0)\n", encoding="utf8")
    monkeypatch.syspath_prepend(tmp_path)
    import changing

    path.write_text("def backward(dy):\n    return dy.sum(1)\n", encoding="utf8")
    linecache.clearcache()
    verdict = verify_function(changing.backward, LAYER, outputs=("db",), run=False)
    assert verdict.kind == NOT_READ
    assert "source has changed" in verdict.why


# What the verdict says.


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("wdy - c2 -", "wdy -", "rstd[i]*Sum(dy[i, r]*weight[r], (r, 1, N))/N"),
        (
            "c2 = wdy.mean",
            "c2 = dy.mean",
            "rstd[i]*Sum(dy[i, r]*weight[r], (r, 1, N))/N - rstd[i]*Sum(dy[i, r], (r, 1, N))/N",
        ),
        (
            "- x_hat * c1",
            "+ x_hat * c1",
            "2*rstd[i]*x_hat[i, j]*Sum(dy[i, r]*weight[r]*x_hat[i, r], (r, 1, N))/N",
        ),
    ],
)
def test_the_difference_is_said_in_the_names_of_the_field(old, new, difference):
    text = edited(text_of(right.vectorized), [(old, new)], "program")
    verdict = verify_function(text, LAYER, outputs=GRADIENTS)
    assert f"stored - defined = {difference}\n" in str(verdict)
    assert verdict.outputs["dw"].kind == PROVED


def test_the_line_that_is_not_read_is_named():
    source = text_of(right.vectorized).replace("c2 = wdy.mean", "c2 = wdy.nanmean")
    verdict = verify_function(source, LAYER, outputs=GRADIENTS)
    line = next(k for k, text in enumerate(source.split("\n"), 1) if "nanmean" in text)
    assert verdict.line == line


def test_what_is_assumed_is_said():
    def divided(dy, x, weight, mean, rstd):
        y = (x - mean[:, None]) * rstd[:, None] * weight
        return (dy * y).sum(0) / weight

    def masked(x, weight, rstd):
        return np.where(x > 0, x, x / 1) * rstd[:, None] * weight

    verdict = verify_function(divided, LAYER, outputs=("dw",))
    assert verdict.kind == PROVED
    assert "weight[j] is not 0" in verdict.assumptions
    assert str(verdict).split("\n")[0].endswith(", where weight[j] is not 0")
    verdict = verify_function(masked, RMS, outputs=("y",))
    assert verdict.kind == PROVED
    assert "x[i, j] is not 0" in verdict.assumptions
    assert str(verdict).split("\n")[0].endswith(", where x[i, j] is not 0")


def of_g(g, x, weight, rstd):
    return (g * x * rstd[:, None]).sum(0)


@pytest.mark.parametrize(
    ("output", "said", "words"),
    [
        ("db", {}, "g: is not known by its name"),
        ("dz", {"g": "dy"}, "outputs: got"),
        ("dw", {"g": "dy", "h": "x"}, "is no parameter"),
    ],
)
def test_what_is_not_known_by_its_name_is_asked_for(output, said, words):
    with pytest.raises(ValueError, match=words):
        verify_function(of_g, RMS, outputs=(output,), **said)


ONE_ROLE = """
import numpy as np


def rstd_of(x, eps):
    return 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def two_weights(x, w, gamma, eps):
    return x * (2 * w - gamma) * rstd_of(x, eps)


def two_eps(x, w, eps, epsilon):
    return x * w * rstd_of(x, 2 * eps - epsilon)


def two_inputs(x, h, w, eps):
    return (2 * x - h) * w * rstd_of(x, eps)


def right(x, w, scale, eps):
    return x * w * scale * rstd_of(x, eps)
"""


@pytest.mark.parametrize(
    ("name", "said", "words"),
    [
        ("two_weights", {}, "w and gamma are both weight"),
        ("two_weights", {"w": "gate", "gamma": "gate"}, "w and gamma are both gate"),
        ("two_eps", {}, "eps and epsilon are both eps"),
        ("two_inputs", {"h": "x"}, "x and h are both x"),
    ],
)
def test_two_parameters_of_one_role_are_an_error_that_names_both(name, said, words):
    with pytest.raises(ValueError, match=words):
        verify_function(ONE_ROLE, RMS, ("y",), "numpy", name, **said)
    right = verify_function(ONE_ROLE, RMS, ("y",), "numpy", "right", scale=1)
    assert right.kind == PROVED


def test_what_is_told_is_known():
    assert verify_function(of_g, RMS, outputs=("dw",), g="dy").kind == PROVED
    with pytest.raises(TypeError, match="program: got int"):
        verify_function(3, RMS)


FUNCTIONAL = """
import torch.nn.functional as F


def forward(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def of_its_own_eps(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight)
"""


OF_TORCH = "import torch\n\n\ndef f(dy):\n    return dy.sum(0) + 0 * torch.zeros(1)"
DELETED = "import numpy as np\nONE = 1\ndef db(dy):\n    {}\n    return dy.sum(0)"
OF_ONE_LINE = [
    (
        "def f(dy):\n    out = {}\n    out['db'] = dy.sum(0)\n    return out",
        None,
        PROVED,
    ),
    (DELETED.format("del ONE"), None, WRONG),
    (DELETED.format("a = dy\n    del a\n    a"), None, NOT_READ),
    (
        "import numpy as np\ndef f(dy):\n    return np.sum(dy, 0)\nfrom other import *",
        None,
        NOT_READ,
    ),
    # arrays of one library are not mixed with those of the other
    (OF_TORCH, None, PROVED),
    (OF_TORCH, "numpy", NOT_READ),
]


@pytest.mark.parametrize(("text", "library", "kind"), OF_ONE_LINE)
def test_a_gradient_of_one_line(text, library, kind):
    verdict = verify_function(
        text, LAYER, outputs=("db",), library=library, run=kind == PROVED
    )
    assert verdict.kind == kind, verdict


def test_the_norms_of_torch_are_their_definitions(torch):
    functions = of_source(FUNCTIONAL)
    assert verify_function(functions["forward"], LAYER, outputs=("y",)).kind == PROVED
    verdict = verify_function(functions["of_its_own_eps"], RMS, outputs=("y",))
    assert verdict.kind == NOT_READ and verdict.line
    verdict = verify_function(FUNCTIONAL, RMS, outputs=("y",), name="forward")
    assert verdict.kind == REFUTED, verdict
