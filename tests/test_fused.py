"""Definitions in, two proved kernels out: values, derivatives, refusals, and texts that are refused."""

from functools import cache

import numpy as np
import pytest
from sympy import Piecewise, Rational, sqrt

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from fused_layers import (  # noqa: E402
    LAYERS,
    M,
    N,
    dw,
    dy,
    gated_with_closed_forms,
    i,
    j,
    m,
    rstd,
    s,
    v,
    w,
    x,
    y,
    z,
)
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from normgrad.checks.tolerance import unit_roundoff  # noqa: E402
from normgrad.fused import Fused, NotFused, operator  # noqa: E402
from normgrad.fused.read_back import prove_kernels  # noqa: E402
from normgrad.symbolic import (  # noqa: E402
    Defs,
    Partial,
    index,
    largest,
    mean,
    tensor,
    total,
)
from normgrad.triton_kernels import interpreter  # noqa: E402

EXACT = Rational(1, 20)
EPS = float(EXACT)
# Results of some tens of roundings, in units of the larger of 1 and the largest number.
ROUNDINGS = 64


@cache
def fused(name):
    return Fused(**LAYERS[name][0])


def everything(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def drawn(layer, rows, columns, dtype=torch.float64):
    """Random inputs by name, and the constants."""
    generator = torch.Generator().manual_seed(100 * rows + columns)
    shapes = {
        "tile": (rows, columns),
        "row": (rows,),
        "column": (columns,),
        "number": (),
    }
    kinds = layer.call.kinds
    inputs = {name: torch.randn(shapes[kinds[name]], generator=generator, dtype=torch.float64).to(dtype)
              for name in layer.call.inputs}  # fmt: skip
    return {name: t.requires_grad_() for name, t in inputs.items()}, dict.fromkeys(
        layer.call.constants, EPS
    )


def cotangents(outputs):
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randn(output.shape, generator=generator, dtype=torch.float64).to(
            output.dtype
        )
        for output in outputs
    ]


def results(run, inputs, constants, seeds=None):
    """Outputs and gradients of a function, in float64."""
    outputs = everything(run(**inputs, **constants))
    seeds = cotangents(outputs) if seeds is None else seeds
    grads = torch.autograd.grad(outputs, list(inputs.values()), seeds)
    return [t.detach().double() for t in (*outputs, *grads)], seeds


def furthest(values, references):
    """The largest distance, in units of the larger of 1 and the largest number wanted."""
    return max(float((value - reference).abs().max() / max(1.0, float(reference.abs().max())))
               for value, reference in zip(values, references, strict=True))  # fmt: skip


def of(layer, run):
    """A function of the inputs in order, as gradcheck wants it."""
    _, constants = drawn(layer, 2, 3)
    return lambda *inputs: run(
        **dict(zip(layer.call.inputs, inputs, strict=True)), **constants
    )


# -- layers; proving one takes most of its time, so all tests of one have the same parameters, by which
# conftest.py samples


@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_torch(name):
    layer, (_, reference) = fused(name), LAYERS[name]
    inputs, constants = drawn(layer, 3, 5)
    expected, seeds = results(reference, inputs, constants)
    bound = ROUNDINGS * unit_roundoff("float64")
    for run in (layer, layer.torch):
        computed, _ = results(run, inputs, constants)
        assert furthest(computed, expected) <= bound
    arrays = {item: t.detach().numpy() for item, t in inputs.items()}
    arrays |= dict(
        zip(layer.call.seeds.values(), [seed.numpy() for seed in seeds], strict=True)
    )
    assert (
        furthest(
            [
                torch.from_numpy(np.asarray(item))
                for item in layer.numpy(**arrays, **constants)
            ],
            expected,
        )
        <= bound
    )


@pytest.mark.parametrize("name", LAYERS)
def test_every_stored_number_is_proved_from_the_text(name):
    layer = fused(name)
    stored = {
        *layer.call.stored,
        *(f"d{input_name}" for input_name in layer.call.inputs),
    }
    assert stored <= set(layer.proved) and all(layer.proved.values())


@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_and_their_derivatives(name):
    layer = fused(name)
    inputs = list(drawn(layer, 2, 3)[0].values())
    assert gradcheck(of(layer, layer), inputs, fast_mode=True)
    assert gradgradcheck(of(layer, layer.torch), inputs, fast_mode=True)


@pytest.mark.parametrize("name", LAYERS)
def test_narrow_dtypes_round_where_they_store(name):
    layer, (_, reference) = fused(name), LAYERS[name]
    # in bfloat16 what is stored meets two roundings at most: the output that others are made of, and the result
    for dtype, roundings in (("float32", ROUNDINGS), ("bfloat16", 4)):
        inputs, constants = drawn(layer, 2, 33, getattr(torch, dtype))
        wide = {
            item: t.detach().double().requires_grad_() for item, t in inputs.items()
        }
        computed, seeds = results(layer, inputs, constants)
        expected, _ = results(
            reference, wide, constants, [seed.double() for seed in seeds]
        )
        assert all(
            item.dtype == torch.float32
            for item in everything(layer(**inputs, **constants))
            if item.dim() == 1
        )
        assert furthest(computed, expected) <= roundings * unit_roundoff(dtype)


@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 1), (33, 16), (2, 300)])
def test_shapes_that_fill_tiles_and_that_do_not(rows, columns):
    for name in ("add_layer_norm", "softmax", "scaled_residual"):
        layer, (_, reference) = fused(name), LAYERS[name]
        inputs, constants = drawn(layer, rows, columns)
        bound = ROUNDINGS * unit_roundoff("float64") * rows
        assert (
            furthest(
                results(layer, inputs, constants)[0],
                results(reference, inputs, constants)[0],
            )
            <= bound
        )


def test_more_axes_no_rows_and_other_layouts():
    layer, (_, reference) = fused("gated_rms_norm"), LAYERS["gated_rms_norm"]
    generator = torch.Generator().manual_seed(1)
    shapes = {"x": (2, 5, 3), "g": (2, 3, 5), "w": (5,)}
    inputs = {
        name: torch.randn(shape, generator=generator, dtype=torch.float64)
        for name, shape in shapes.items()
    }
    inputs["x"] = inputs["x"].transpose(1, 2)
    inputs = {name: t.requires_grad_() for name, t in inputs.items()}
    computed, expected = (
        results(run, inputs, {"eps": EPS})[0] for run in (layer, reference)
    )
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float64")
    empty = {"x": torch.empty(0, 5, requires_grad=True), "g": torch.empty(0, 5, requires_grad=True),
             "w": torch.ones(5, requires_grad=True)}  # fmt: skip
    out, dx, dg, dw = results(layer, empty, {"eps": EPS})[0]
    assert out.shape == dx.shape == dg.shape == (0, 5) and dw.tolist() == [0] * 5


def test_what_no_gradient_is_asked_for_is_not_stored():
    layer = fused("gated_rms_norm")
    inputs, constants = drawn(layer, 3, 5)
    out = layer(**inputs, **constants)
    seed = torch.ones_like(out)
    alone = torch.autograd.grad(out, inputs["w"], seed, retain_graph=True)[0]
    assert torch.equal(alone, torch.autograd.grad(out, list(inputs.values()), seed)[2])


def test_inputs_with_one_gradient_accumulate_apart():
    layer = fused("add_layer_norm")
    inputs, constants = drawn(layer, 3, 5)
    torch.autograd.backward(
        layer(**inputs, **constants), cotangents(layer(**inputs, **constants))
    )
    assert inputs["x"].grad.data_ptr() != inputs["residual"].grad.data_ptr()


def test_a_row_that_is_shifted_overflows_nowhere():
    layer = fused("softmax")
    far = torch.tensor(
        [[1000.0, -1000.0, 999.0], [-2e4, -2e4, -2e4]], requires_grad=True
    )
    computed, _ = results(layer, {"x": far}, {})
    expected, _ = results(
        LAYERS["softmax"][1], {"x": far.detach().double().requires_grad_()}, {}
    )
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float32")


def test_a_slope_near_saturation_keeps_its_digits():
    """1 - t**2 is taken apart into (1 - t) * (1 + t), not multiplied out into two products that are nearly equal."""
    assert "dx = a * (1 - t) * (t + 1) * dt" in fused("dyt").source
    assert (
        "dg = ((1 - sigmoid_g) * dsigmoid_g + ds) * sigmoid_g"
        in fused("gated_rms_norm").source
    )


def test_tanh_keeps_its_digits_near_0():
    layer = fused("dyt")
    small = torch.tensor([[1e-30, 1e-6, 1e-3, 0.1, 0.499, 0.501, 5.0, 90.0, -90.0]])
    ones = torch.ones(9)
    computed = layer(x=small, w=ones, b=0 * ones, a=torch.tensor(1.0)).double()
    expected = torch.tanh(small.double())
    assert float(((computed - expected) / expected).abs().max()) <= 8 * unit_roundoff(
        "float32"
    )


# -- what is decided


DECIDED = {
    "layer_norm": (["x"], ["mean", "rstd"]),
    "add_layer_norm": (["p"], ["mean", "rstd"]),
    "softmax": (["x"], ["m", "z"]),
    "scaled_residual": (["p", "x"], ["rstd"]),
}


@pytest.mark.parametrize("name", DECIDED)
def test_the_backward_reads_and_the_forward_saves_as_little_as_suffices(name):
    program = fused(name).program
    assert (program.reads, program.saved) == DECIDED[name]


def test_letters_are_the_reader_s_own():
    sources = []
    for row, column in ((i, j), index("p", "k"), (j, i)):
        defs = Defs()
        defs[rstd[row]] = 1 / sqrt(mean(N, lambda r, row=row: x[row, r] ** 2) + EXACT)
        defs[y[row, column]] = w[column] * x[row, column] * rstd[row]
        sources.append(Fused(defs, [y[row, column]]).source)
    assert sources[0] == sources[1] == sources[2]


def test_both_kernels_compile_for_a_gpu_and_spill_nothing():
    forward, backward = fused("gated_rms_norm").compile("sm_90", "bfloat16", 4096)
    assert (forward.kernel, backward.kernel) == (
        "gated_rms_norm_forward",
        "gated_rms_norm_backward",
    )
    assert forward.spilled_bytes == backward.spilled_bytes == 0
    assert min(kernel.load_bits for kernel in (forward, backward)) == 128
    with pytest.raises(ValueError, match="target: got 'sm_1', needs one of sm_75"):
        fused("gated_rms_norm").compile("sm_1")
    with pytest.raises(ValueError, match="columns: got 0, needs an int from 1 on"):
        fused("gated_rms_norm").compile(columns=0)


def test_without_an_interpreter_a_cpu_runs_the_form_in_torch(monkeypatch):
    layer = fused("gated_rms_norm")
    inputs, constants = drawn(layer, 2, 3)
    expected, _ = results(layer, inputs, constants)
    monkeypatch.setattr(interpreter, "INTERPRETED", False)
    computed, _ = results(layer, inputs, constants)
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float64")
    assert repr(layer).endswith("on a CPU it runs in torch")


def test_where_there_is_no_triton_the_layer_runs_in_torch(monkeypatch):
    monkeypatch.setattr(operator, "kernels_of", lambda name, text: None)
    layer = Fused(**LAYERS["gated_rms_norm"][0])
    inputs, constants = drawn(layer, 2, 3)
    computed, expected = (
        results(run, inputs, constants)[0]
        for run in (layer, LAYERS["gated_rms_norm"][1])
    )
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float64")
    assert layer.proved == {} and repr(layer).endswith("on a CPU it runs in torch")


@pytest.mark.parametrize("name", ["add_layer_norm", "scaled_residual", "log_sum_exp"])
def test_second_derivatives_after_the_kernels(name):
    """What the forward's kernel has saved, an output among it, is differentiated through."""
    layer = fused(name)
    assert gradgradcheck(
        of(layer, layer), list(drawn(layer, 2, 3)[0].values()), fast_mode=True
    )


def test_long_rows_are_held_whole_and_longer_ones_refused_by_name():
    layer = fused("l2_norm")
    whole = {"x": torch.linspace(-1, 1, 20000)[None].requires_grad_()}
    wide = {"x": whole["x"].detach().double().requires_grad_()}
    computed, seeds = results(layer, whole, {"eps": EPS})
    expected, _ = results(
        layer.torch, wide, {"eps": EPS}, [seed.double() for seed in seeds]
    )
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float32")
    long = torch.ones(1, 32769)
    with pytest.raises(
        ValueError, match="N: got 32769 columns, .* at most 32768; use .torch"
    ):
        layer(x=long, eps=EPS)
    assert layer.torch(x=long, eps=EPS).shape == long.shape


# -- the reader's own closed forms


def test_closed_forms_are_proved_and_are_what_runs():
    defs, forms = gated_with_closed_forms()
    layer = Fused(defs, [y[i, j]], gradients=forms, name="gated")
    assert set(layer.closed) == {"dx", "dg", "dw"}
    assert "h = dy * s * w" in layer.source and "drstd" not in layer.source
    inputs, constants = drawn(layer, 3, 5)
    computed, expected = (
        results(run, inputs, constants)[0] for run in (layer, fused("gated_rms_norm"))
    )
    assert furthest(computed, expected) <= ROUNDINGS * unit_roundoff("float64")
    assert gradgradcheck(
        of(layer, layer.torch), list(drawn(layer, 2, 3)[0].values()), fast_mode=True
    )


# -- texts


EDITS = {
    "columns past N in a sum": ("layer_norm", "tl.where(inside, q * q, 0)", "q * q"),
    "the mean past N": ("layer_norm", "tl.where(inside, dq, 0)", "dq"),
    "a factor": ("layer_norm", "2 * dv / N", "dv / N"),
    "a sign": ("layer_norm", "dmean = -tl.sum", "dmean = tl.sum"),
    "a weight that is not there": ("layer_norm", "db += dy ", "db += dy * w "),
    "the last tile's alone": ("layer_norm", "dw += dy", "dw = dy"),
    "a broadcast": ("layer_norm", "x_hat = q * rstd[:, None]", "x_hat = q * rstd"),
    "the last tile left out": ("layer_norm", "(M - 1) // ROWS + 1", "M // ROWS"),
    "tiles that overlap": ("layer_norm", "rows = tile * ROWS", "rows = tile"),
    "another matrix stored": (
        "layer_norm",
        "store_tile(dx_ptr, dx,",
        "store_tile(dx_ptr, dq,",
    ),
    "one share for another": (
        "layer_norm",
        "store_partial(db_ptr, db",
        "store_partial(db_ptr, dw",
    ),
    "another's pointer": ("layer_norm", "load_columns(b_ptr", "load_columns(w_ptr"),
    "columns past N in a maximum": (
        "softmax",
        'tl.where(inside, x, float("-inf"))',
        "x",
    ),
    "columns past N in the exponentials": ("softmax", "tl.where(inside, e, 0)", "e"),
    "another shift in the backward": (
        "softmax",
        "m = tl.load(m_ptr",
        "m = tl.load(z_ptr",
    ),
    "the largest of something else": (
        "softmax",
        "tl.max(tl.where(inside, x",
        "tl.max(tl.where(inside, 2 * x",
    ),
    "a number that is no share": ("scaled_residual", "tl.sum(da, axis=0)", "a"),
    "a share in another's place": (
        "scaled_residual",
        "da_ptr + tl.program_id(0)",
        "da_ptr",
    ),
    "the share of the last tile": ("scaled_residual", "da += tl.sum", "da = tl.sum"),
    "rows past M in a share": ("tempered_softmax", "inside & filled", "inside"),
    "a jump to something else": (
        "l2_clamp",
        "tl.where(s > eps, 1.0, 0.0)",
        "tl.where(s > eps, 1.0, 0.5)",
    ),
    "a floor for the row": (
        "l2_clamp",
        "tl.where(s > eps, s, eps)",
        "tl.where(s > eps, eps, s)",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_text_is_refuted_or_refused(edit):
    name, old, new = EDITS[edit]
    layer = fused(name)
    assert old in layer.source
    assert not prove_kernels(layer.program, layer.source.replace(old, new))


# -- what is no fused layer, and what does not fit


def lines(*pairs, of=(y[i, j],), **more):
    """Fused of definitions (head, expression)."""
    defs = Defs()
    for head, expression in pairs:
        defs[head] = expression
    return Fused(defs, list(of), **more)


twice = (y[i, j], 2 * x[i, j])
rows_alone = tensor("rows", M, N)
NO_LAYER = {
    "no definitions": (lambda: Fused({}, [y[i, j]]), TypeError, "defs: got dict"),
    "an output that is not defined": (lambda: lines(twice, of=(x[i, j],)), ValueError, "not defined here"),
    "BatchNorm": (lambda: lines((dw[j], mean(M, lambda r: x[r, j])), (y[i, j], x[i, j] - dw[j])), NotFused,
                  "dw: sums over the rows, down the columns, as BatchNorm does"),
    "a sum within a sum": (lambda: lines((z[i], total(N, lambda r: x[i, r] * total(N, lambda t: x[i, t] * w[r]) ** 2)),
                                         (y[i, j], x[i, j] * z[i])), NotFused, "another column|sum within a sum"),
    "a vector's own sum": (lambda: lines((y[i, j], x[i, j] / total(N, lambda r: w[r]))), NotFused,
                           "sums a vector over the columns"),
    "a word of the kernels": (lambda: lines((y[i, j], rows_alone[i, j])), NotFused, "rows: is a word of the kernels"),
    "a derivative": (lambda: lines((s[i, j], x[i, j] ** 2), (y[i, j], Partial(s[i, j], x[i, j]))), NotFused,
                     "y: has a derivative"),
    "a Piecewise": (lambda: lines((y[i, j], Piecewise((x[i, j], x[i, j] > 0), (0, True)))), NotFused,
                    "y: has a Piecewise; write Max"),
    "a maximum as an output": (lambda: lines((m[i], largest(N, lambda r: x[i, r])), of=(m[i],)), NotFused,
                               "m: is a maximum, which is no output"),
    "a maximum that matters": (lambda: lines((m[i], largest(N, lambda r: x[i, r])), (y[i, j], x[i, j] / m[i])),
                               NotFused, "y: depends on m, the largest of a row"),
    "a maximum without a line": (lambda: lines((y[i, j], x[i, j] - largest(N, lambda r: x[i, r]))), NotFused,
                                 "needs a line of its own"),
    "no matrix": (lambda: lines((z[i], v[i] ** 2), of=(z[i],)), NotFused, "no input is a matrix"),
    "one name for two": (lambda: lines((y[i, j], x[i, j] * tensor("rstd", M)[i] * rstd[i])), NotFused,
                         "rstd: names two things"),
    "one output twice": (lambda: lines((y[i, j], x[i, j] * w[j]), of=(y[i, j], y[i, j])), ValueError,
                         "outputs: got y twice"),
    "one scalar": (lambda: lines((y[i, j], x[i, j] * w[j]), scalars=w[j]), TypeError,
                   r"scalars: got w\[j\], needs a list of symbols"),
    "a form that is missing": (lambda: lines((y[i, j], x[i, j] * w[j]), gradients={x[i, j]: dy[i, j] * w[j]}),
                               NotFused, "gradients: none is given for w"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_LAYER)
def test_what_makes_no_layer_is_refused_in_words(case):
    make, error, words = NO_LAYER[case]
    with pytest.raises(error, match=words):
        make()


ONES = torch.ones(2, 5)
NO_CALL = {
    "one too many": ({"bias": ONES}, TypeError, "bias: is no input of gated_rms_norm, which takes x, g, w, eps"),
    "one too few": ({"g": None}, TypeError, "g: is missing"),
    "no tensor": ({"x": [1.0]}, TypeError, "x: got builtins.list, needs a torch.Tensor"),
    "8 bits": ({"g": ONES.to(torch.float8_e5m2)}, TypeError, "g: got dtype torch.float8_e5m2, needs float64"),
    "a sparse weight": ({"w": ONES[0].to_sparse()}, TypeError, "w: got a torch.sparse_coo tensor, needs a dense"),
    "another shape": ({"g": torch.ones(2, 4)}, ValueError, r"g: got the shape \(2, 4\), needs \(2, 5\) beside x"),
    "a short weight": ({"w": torch.ones(4)}, ValueError, r"w: got the shape \(4,\), needs \(5,\)"),
    "a tensor as a constant": ({"eps": torch.tensor(0.1)}, TypeError, "eps: got a tensor of .*, needs a number"),
    "no number": ({"eps": float("nan")}, ValueError, "eps: got nan, needs a finite number"),
    "a negative eps": ({"eps": -1.0}, ValueError, "eps: got -1.0, needs a positive number"),
    "no columns": ({"x": ONES[:, :0], "g": ONES[:, :0], "w": ONES[0, :0]}, ValueError, "at least one column"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_CALL)
def test_what_does_not_fit_is_refused_by_name(case):
    changed, error, words = NO_CALL[case]
    arguments = {"x": ONES, "g": ONES, "w": torch.ones(5), "eps": EPS} | changed
    with pytest.raises(error, match=words):
        fused("gated_rms_norm")(
            **{name: value for name, value in arguments.items() if value is not None}
        )
