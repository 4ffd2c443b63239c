"""Definitions in, two proved kernels out: values, derivatives, refusals, and texts that are refused."""

from functools import cache

import pytest
import torch

pytest.importorskip("triton")

from copies import listed  # noqa: E402
from fused_layers import (  # noqa: E402
    IN_TORCH,
    REFUSED,
    defined,
    gradients_of,
    names_of,
)
from row_offsets import narrow_products  # noqa: E402
from torch.autograd import gradgradcheck  # noqa: E402

from normgrad.checks.tolerance import unit_roundoff  # noqa: E402
from normgrad.fused import Fused, NotFused, operator  # noqa: E402
from normgrad.fused.read_back import prove_kernels  # noqa: E402
from normgrad.symbolic import NotProved  # noqa: E402
from normgrad.triton_kernels import interpreter  # noqa: E402

EPS = 0.05
# Results of some tens of roundings, in units of the larger of 1 and the largest number.
ROUNDINGS = 64
each_layer = pytest.mark.parametrize("name", IN_TORCH)


@cache
def fused(name):
    return Fused(names_of(name)["y"], name=name)


def drawn(layer, rows, columns, dtype=torch.float64):
    """Random inputs by name, and the constants."""
    generator = torch.Generator().manual_seed(100 * rows + columns)
    inputs = {}
    for name in layer.layer.inputs:
        shape = (rows, columns) if name in layer.layer.matrices else (columns,)
        t = torch.randn(shape, generator=generator, dtype=torch.float64)
        inputs[name] = t.to(dtype).requires_grad_()
    return inputs, dict.fromkeys(layer.layer.constants, EPS)


def results(run, inputs, constants, seed=None):
    """The output and the gradients of a function, in float64, and the cotangent; drawn where none is given."""
    out = run(**inputs, **constants)
    generator = torch.Generator().manual_seed(7)
    if seed is None:
        wide = torch.randn(out.shape, generator=generator, dtype=torch.float64)
        seed = wide.to(out.dtype)
    grads = torch.autograd.grad(out, list(inputs.values()), seed)
    return [t.detach().double() for t in (out, *grads)], seed


def close(values, references, roundings=ROUNDINGS, dtype="float64"):
    """Whether each value is as near as that, in units of the larger of 1 and the largest number."""
    bound = roundings * unit_roundoff(dtype)
    for value, reference in zip(values, references, strict=True):
        largest = max(1.0, float(reference.abs().max()))
        if not float((value - reference).abs().max()) <= bound * largest:
            return False
    return True


def agree(first, second, inputs, constants, **tolerance):
    """Whether two functions have the same outputs and gradients."""
    (values, _), (references, _) = (
        results(run, inputs, constants) for run in (first, second)
    )
    return close(values, references, **tolerance)


def twice_differentiable(layer, run):
    inputs, constants = drawn(layer, 2, 3)

    def function(*tensors):
        return run(**dict(zip(inputs, tensors, strict=True)), **constants)

    return gradgradcheck(function, list(inputs.values()), fast_mode=True)


# -- layers; proving one takes most of its time, so all tests of one have the same parameters, by which
# conftest.py samples


@each_layer
def test_values_and_gradients_are_those_of_torch(name):
    layer = fused(name)
    inputs, constants = drawn(layer, 3, 5)
    expected, _ = results(IN_TORCH[name], inputs, constants)
    for run in (layer, layer.torch):
        assert close(results(run, inputs, constants)[0], expected)


@each_layer
def test_every_stored_number_is_proved_from_the_text(name):
    layer = fused(name)
    stored = {"y", *layer.program.saved, *(f"d{item}" for item in layer.layer.inputs)}
    assert stored <= set(layer.proved) and all(layer.proved.values())
    assert not list(narrow_products(layer.source))


@each_layer
def test_derivatives_are_differentiated(name):
    assert twice_differentiable(fused(name), fused(name).torch)


@each_layer
def test_narrow_dtypes_round_where_they_store(name):
    layer = fused(name)
    for dtype, roundings in (("float32", ROUNDINGS), ("bfloat16", 2)):
        inputs, constants = drawn(layer, 2, 33, getattr(torch, dtype))
        computed, seed = results(layer, inputs, constants)
        wide = {n: t.detach().double().requires_grad_() for n, t in inputs.items()}
        expected, _ = results(IN_TORCH[name], wide, constants, seed.double())
        assert close(computed, expected, roundings, dtype)


@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 1), (33, 16), (2, 300)])
def test_shapes_that_fill_tiles_and_that_do_not(rows, columns):
    for name in ("layer_norm", "softmax_with_sink"):
        inputs, constants = drawn(fused(name), rows, columns)
        assert agree(
            fused(name), IN_TORCH[name], inputs, constants, roundings=ROUNDINGS * rows
        )


def test_more_axes_no_rows_and_other_layouts():
    layer = fused("gated_rms_norm")
    generator = torch.Generator().manual_seed(1)
    x, g = torch.randn(2, 2, 3, 5, generator=generator, dtype=torch.float64)
    x = x.transpose(1, 2).contiguous().transpose(1, 2)
    inputs = {"x": x, "g": g, "w": g[0, 0]}
    inputs = {name: t.detach().requires_grad_() for name, t in inputs.items()}
    assert agree(layer, IN_TORCH["gated_rms_norm"], inputs, {"eps": EPS})
    empty = {"x": torch.empty(0, 5), "g": torch.empty(0, 5), "w": torch.ones(5)}
    empty = {name: t.requires_grad_() for name, t in empty.items()}
    out, dx, dg, dw = results(layer, empty, {"eps": EPS})[0]
    assert out.shape == dx.shape == dg.shape == (0, 5) and dw.tolist() == [0] * 5


def test_what_no_gradient_is_asked_for_is_not_stored():
    layer = fused("gated_rms_norm")
    inputs, constants = drawn(layer, 3, 5)
    out = layer(**inputs, **constants)
    seed = torch.ones_like(out)
    (alone,) = torch.autograd.grad(out, inputs["w"], seed, retain_graph=True)
    assert torch.equal(alone, torch.autograd.grad(out, list(inputs.values()), seed)[2])


def test_a_row_that_is_shifted_overflows_nowhere():
    far = torch.tensor([[1000.0, -1000.0, 999.0], [-2e4, -2e4, -2e4]]).requires_grad_()
    computed, _ = results(fused("softmax"), {"x": far}, {})
    wide = far.detach().double().requires_grad_()
    expected, _ = results(IN_TORCH["softmax"], {"x": wide}, {})
    assert close(computed, expected, dtype="float32")


def test_a_slope_near_saturation_keeps_its_digits():
    """1 - t**2 is taken apart into (1 - t) * (1 + t), not multiplied out into two products that are nearly equal."""
    assert "dx = -(t - 1) * (t + 1) * a * dt" in fused("dyt").source
    slope = "dg = (dy * w * x_hat - (sigmoid_g - 1) * dsigmoid_g) * sigmoid_g"
    assert slope in fused("gated_rms_norm").source


def test_tanh_keeps_its_digits_near_0():
    small = torch.tensor([[1e-30, 1e-6, 1e-3, 0.1, 0.499, 0.501, 5.0, 90.0, -90.0]])
    ones = torch.ones(9)
    computed = fused("dyt")(x=small, w=ones, b=0 * ones, a=ones).double()
    expected = torch.tanh(small.double())
    bound = 8 * unit_roundoff("float32")
    assert float(((computed - expected) / expected).abs().max()) <= bound


# -- what is decided


@pytest.mark.parametrize(
    "name, reads, saved",
    [
        ("layer_norm", "x w eps", "mean rstd"),
        ("softmax", "x", "m z"),
        ("one_line", "x w", "row row1"),
    ],
)
def test_the_backward_reads_and_the_forward_saves_as_little_as_suffices(
    name, reads, saved
):
    program = fused(name).program
    assert (program.loaded, program.saved) == (reads.split(), saved.split())


def test_letters_are_the_reader_s_own():
    sources = {
        Fused(names_of("rms_norm", letters)["y"]).source
        for letters in ("ij", "lj", "ji")
    }
    assert len(sources) == 1


def test_both_kernels_compile_for_a_gpu_and_spill_nothing():
    kernels = fused("gated_rms_norm").compile("sm_90", "bfloat16", 4096)
    names = ["gated_rms_norm_forward", "gated_rms_norm_backward"]
    assert [kernel.kernel for kernel in kernels] == names
    assert not any(kernel.spilled_bytes for kernel in kernels)
    assert min(kernel.load_bits for kernel in kernels) == 128
    with pytest.raises(ValueError, match="target: got 'sm_1', needs one of sm_75"):
        fused("gated_rms_norm").compile("sm_1")
    with pytest.raises(ValueError, match="columns: got 0, needs an int from 1 on"):
        fused("gated_rms_norm").compile(columns=0)


def test_without_an_interpreter_or_triton_a_cpu_runs_the_form_in_torch(monkeypatch):
    layer = fused("gated_rms_norm")
    inputs, constants = drawn(layer, 2, 3)
    expected, _ = results(layer, inputs, constants)
    monkeypatch.setattr(operator, "kernels_of", lambda name, text: None)
    without = Fused(names_of("gated_rms_norm")["y"])
    assert without.proved == {}
    monkeypatch.undo()
    assert close(results(without, inputs, constants)[0], expected)
    monkeypatch.setattr(interpreter, "INTERPRETED", False)
    assert close(results(layer, inputs, constants)[0], expected)
    for norm in (layer, without):
        assert repr(norm).endswith("on a CPU it runs in torch")


def test_second_derivatives_after_the_kernels():
    """What the forward's kernel has saved is computed again and differentiated through."""
    assert twice_differentiable(fused("layer_norm"), fused("layer_norm"))


def test_long_rows_are_held_whole_and_longer_ones_refused_by_name():
    layer = fused("l4_norm")
    row = torch.linspace(-1, 1, 20000)[None].requires_grad_()
    computed, seed = results(layer, {"x": row}, {"eps": EPS})
    wide = {"x": row.detach().double().requires_grad_()}
    expected, _ = results(layer.torch, wide, {"eps": EPS}, seed.double())
    assert close(computed, expected, dtype="float32")
    long = torch.ones(1, 32769)
    words = "N: got 32769 columns, .* at most 32768; use .torch"
    with pytest.raises(ValueError, match=words):
        layer(x=long, eps=EPS)
    assert layer.torch(x=long, eps=EPS).shape == long.shape


# -- the reader's own closed forms

GATED = (
    "h[i, j] := dy[i, j] * w[j] * g[i, j] * sigmoid(g[i, j])",
    "dx[i, j] := rstd[i] * (h[i, j] - x_hat[i, j] * avg(h[i, r] * x_hat[i, r]))",
)
FORMS = (
    "x[i, j] := dx[i, j]",
    "g[i, j] := dy[i, j] * w[j] * x_hat[i, j]"
    " * sigmoid(g[i, j]) * (1 + g[i, j] * (1 - sigmoid(g[i, j])))",
    "w[j] := over_rows(dy[p, j] * x_hat[p, j] * g[p, j] * sigmoid(g[p, j]))",
)


def test_closed_forms_are_proved_and_are_what_runs():
    names = names_of("gated_rms_norm", more=GATED)
    layer = Fused(names["y"], gradients=gradients_of(FORMS, names))
    assert "h = dy * g * sigmoid_g * w" in layer.source and "drstd" not in layer.source
    assert agree(layer, fused("gated_rms_norm"), *drawn(layer, 3, 5))
    assert twice_differentiable(layer, layer.torch)


def test_a_wrong_closed_form_is_refuted_with_a_point():
    names = names_of("gated_rms_norm", more=GATED[:1])
    forms = gradients_of(("x[i, j] := rstd[i] * h[i, j]", *FORMS[1:]), names)
    with pytest.raises(NotProved) as refusal:
        Fused(names["y"], gradients=forms)
    assert refusal.value.counterexample


# -- texts

EDITS = [
    pytest.param(fails.partition(" ")[2], program, id=program.name)
    for fails, program in listed()
    if program.backend == "fused"
]


@pytest.mark.parametrize(("name", "program"), EDITS)
def test_a_changed_text_is_refuted_or_refused(name, program):
    layer = fused(name)
    ((old, new),) = program.edits
    assert old in layer.source
    assert not prove_kernels(layer.program, layer.source.replace(old, new))


# -- what is no fused layer, and what does not fit


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0])
def test_what_makes_no_layer_is_refused_in_words(row):
    words, *texts = row
    lines, *forms = (text.split("; ") for text in texts)
    names = defined(lines)
    output = names[lines[-1].partition("[")[0]]
    gradients = gradients_of(forms[0], names) if forms else None
    with pytest.raises(NotFused, match=words):
        Fused(output, gradients=gradients)


def test_other_arguments_are_refused_by_name():
    y = names_of("rms_norm")["y"]
    with pytest.raises(TypeError, match="gradients: got list, needs a dictionary"):
        Fused(y, gradients=[y])
    with pytest.raises(ValueError, match="name: got 'a b', needs a name"):
        Fused(y, name="a b")
    with pytest.raises(TypeError, match="is no name that define made"):
        Fused([y])


ONES = torch.ones(2, 5)


@pytest.mark.parametrize(
    "name, value, error, words",
    [
        ("bias", ONES, TypeError, "is no input; .* takes g, x, w, eps"),
        ("g", None, TypeError, "is missing"),
        ("x", [1.0], TypeError, "got builtins.list, needs a torch.Tensor"),
        ("g", ONES.to(torch.float8_e5m2), TypeError, "got dtype torch.float8_e5m2"),
        ("w", ONES[0].to_sparse(), TypeError, "got a torch.sparse_coo tensor, needs a"),
        ("eps", float("nan"), ValueError, "got nan, needs a finite number"),
        ("x", ONES[:, :4], ValueError, r"got the shape \(2, 4\), needs \(2, 5\) b"),
        ("w", ONES[0, :4], ValueError, r"got the shape \(4,\), needs \(5,\)"),
        ("eps", ONES[0, 0], TypeError, "got Tensor, needs a number"),
        ("eps", -1.0, ValueError, "got -1.0, needs a positive number"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, value, error, words):
    arguments = {"x": ONES, "g": ONES, "w": ONES[0], "eps": EPS, name: value}
    if value is None:
        del arguments[name]
    with pytest.raises(error, match=f"{name}: {words}"):
        fused("gated_rms_norm")(**arguments)


def test_a_row_of_no_columns_is_refused():
    with pytest.raises(ValueError, match="at least one column"):
        fused("gated_rms_norm")(x=ONES[:, :0], g=ONES[:, :0], w=ONES[0, :0], eps=EPS)
