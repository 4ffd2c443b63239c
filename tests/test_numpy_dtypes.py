"""The oracle in every dtype of NumPy: nothing imaginary is dropped, nothing is rounded to less than it came in."""

import numpy as np
import pytest

from normgrad import LAYER_NORM, numpy_ref
from normgrad.checks.cases import SPECS
from normgrad.checks.tolerance import unit_roundoff


def _draw(rng, *shape, dtype=np.complex128):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def _near(got, want, roundoff):
    return np.abs(got - want).max() <= 256 * roundoff * np.abs(want).max()


@pytest.mark.parametrize("spec", ["layer_norm", "rms_norm", "l2_norm"])
def test_complex64_is_complex128_rounded(spec, rng):
    x, residual = _draw(rng, 2, 3, 8), _draw(rng, 2, 3, 8)
    weight, bias = rng.standard_normal((2, 8))
    wide = numpy_ref.forward(x, weight, bias, residual, SPECS[spec])
    arrays = [array.astype(dtype) for array, dtype in ((x, "c8"), (weight, "f4"), (bias, "f4"), (residual, "c8"))]
    narrow = numpy_ref.forward(*arrays, SPECS[spec])
    assert narrow.y.dtype == narrow.rstd.dtype == np.complex64
    assert _near(narrow.y, wide.y, unit_roundoff("float32"))


@pytest.mark.parametrize("name", ["x", "weight", "bias", "residual"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_one_complex_array_makes_the_output_complex(name, dtype, rng):
    real = {"x": (3, 8), "weight": (8,), "bias": (8,), "residual": (3, 8)}
    arrays = {each: rng.standard_normal(shape).astype(dtype) for each, shape in real.items()}
    arrays[name] = _draw(rng, *real[name]).astype(np.result_type(dtype, np.complex64))
    wide = {each: array.astype(complex) for each, array in arrays.items()}
    got, want = numpy_ref.forward(**arrays), numpy_ref.forward(**wide)
    assert got.y.dtype == np.result_type(dtype, np.complex64)
    assert _near(got.y, want.y, np.finfo(dtype).eps)
    assert np.abs(want.y.imag).max() > np.finfo(dtype).eps


def test_gradients_are_linear_in_a_complex_cotangent(rng):
    x, (dy, dresidual_out) = rng.standard_normal((3, 8)), _draw(rng, 2, 3, 8)
    saved = numpy_ref.forward(x, *rng.standard_normal((2, 8)), spec=LAYER_NORM)
    for pair in ((dy, dresidual_out), (dy.real.copy(), dresidual_out), (dy, dresidual_out.real.copy())):
        got = numpy_ref.backward(pair[0], saved, pair[1])
        parts = [numpy_ref.backward(part(pair[0]), saved, part(pair[1])) for part in (np.real, np.imag)]
        for name in ("dx", "dweight", "dbias"):
            real, imaginary = (getattr(part, name) for part in parts)
            assert _near(getattr(got, name), real + 1j * imaginary, unit_roundoff("float64"))


def test_a_complex_row_keeps_the_gradients_complex(rng):
    """The complex step of a gradient: its imaginary part is what the step moves."""
    x, dy, move = rng.standard_normal((3, 3, 8))
    weight, bias = rng.standard_normal((2, 8))
    step = 1e-200

    def gradients(x):
        return numpy_ref.backward(dy, numpy_ref.forward(x, weight, bias))

    moved, h = gradients(x + 1j * step * move), 1e-6
    ends = [gradients(x + sign * h * move) for sign in (1, -1)]
    for name in ("dx", "dweight"):
        slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2 * h)
        assert np.abs(getattr(moved, name).imag / step - slope).max() <= h * np.abs(slope).max()


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long double is float64 here")
def test_longdouble_is_computed_as_it_is(rng):
    x = rng.standard_normal((3, 8)).astype(np.longdouble)
    weight = np.ones(8, np.longdouble)
    saved = numpy_ref.forward(x, weight, spec=LAYER_NORM.replace(eps=0))
    grads = numpy_ref.backward(x * x, saved)
    assert {array.dtype for array in (saved.y, saved.mean, saved.rstd, grads.dx, grads.dweight)} == {weight.dtype}
    # What normalization promises, to the last bits of the longer numbers.
    room = 64 * np.finfo(np.longdouble).eps
    assert np.abs(saved.y.mean(-1)).max() <= room
    assert np.abs((saved.y**2).mean(-1) - 1).max() <= room
    assert np.abs(grads.dx.sum(-1)).max() <= room * np.abs(grads.dx).max()
