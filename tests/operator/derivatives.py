"""Checks of what goes through autograd by other ways than one backward: tangents, mapped axes, higher derivatives.

Each check asks for the derivatives by `case.wanted` alone, so that every way meets every pattern of inputs that move.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch.autograd import forward_ad

from normgrad import numpy_ref
from normgrad.checks.backends import INPUTS, Outcome, TorchBackend, options_of
from normgrad.checks.cases import MATRICES, Case
from normgrad.checks.contract import compare_output, compared, lost_rows
from normgrad.checks.finite_difference import directional
from normgrad.checks.tolerance import (
    ELEMENTWISE,
    LARGEST,
    SAFETY,
    SMALLEST,
    Dtypes,
    bounds,
    round_to,
    unit_roundoff,
)
from normgrad.spec import NormSpec

TINY = 1e-200  # the complex step: no digit is lost, however small it is


def wanted(case: Case) -> tuple[str, ...]:
    """The inputs that move, in the order of INPUTS."""
    return tuple(
        name
        for name in INPUTS
        if getattr(case, name) is not None and name in (case.wanted or INPUTS)
    )


def directions(
    case: Case, spec: NormSpec, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """A random direction for each input that moves; that of x and residual a 16th of the rows' deviations.

    Of a row near float16's limit the tangent is held by float16 as well then.
    """
    p = case.x if case.residual is None else case.x + case.residual
    q = p - (p.mean(-1, keepdims=True) if spec.center else 0)
    size = np.sqrt((q * q).mean(-1, keepdims=True))
    size = np.where(size == 0, 1, size) / 16
    moved = {
        name: rng.standard_normal(getattr(case, name).shape) for name in wanted(case)
    }
    return {name: v * (size if name in MATRICES else 1) for name, v in moved.items()}


def _of_heads(case, matrices, vectors):
    """[(case, matrices, vectors)] of each head, or of all rows where they share the weight; None and 0 stay."""
    if case.heads is None:
        return [(case, matrices, vectors)]
    parts = []
    for head, part in enumerate(case.by_head()):
        rows = [a if a is None else a[head :: case.heads] for a in matrices]
        parts.append((part, rows, [v if np.ndim(v) == 0 else v[head] for v in vectors]))
    return parts


def normalized(backend, tensors, case, spec, dtypes):
    """What a backend returns for tensors by name."""
    inputs = [tensors[name] for name in INPUTS]
    return backend.normalize(*inputs, spec, **options_of(case, dtypes))


def as_rows(t, case):
    """A tensor as an array (M, N) in float64."""
    return t.detach().double().resolve_neg().numpy().reshape(case.x.shape)


def check_tangents(
    backend: TorchBackend,
    case: Case,
    spec: NormSpec,
    dtype: str | Dtypes,
    rng: np.random.Generator,
) -> None:
    """Forward mode against the complex step of the oracle, elementwise.

    Raises:  AssertionError that names the place, the value and the bound
    """
    dtypes = Dtypes.of(dtype)
    case = case.rounded(dtypes)
    if case.layout == "expanded":  # a dual number needs memory for each of its numbers
        case = replace(case, layout="contiguous")
    direction = directions(case, spec, rng)
    direction = {name: round_to(v, dtypes[name]) for name, v in direction.items()}
    a = backend.tensors(case, dtypes)
    with forward_ad.dual_level():
        for name, v in direction.items():
            dot = torch.tensor(v).to(a[name].dtype).reshape(a[name].shape)
            a[name] = forward_ad.make_dual(a[name], dot)
        y, stored = map(
            forward_ad.unpack_dual, normalized(backend, a, case, spec, dtypes)
        )
        absent = torch.zeros_like(stored.primal)
        y_dot = as_rows(absent if y.tangent is None else y.tangent, case)
        p_dot = as_rows(absent if stored.tangent is None else stored.tangent, case)
        p = as_rows(stored.primal, case)
    moved = [direction[name] for name in MATRICES if name in direction]
    exact = sum(moved, np.zeros_like(p))
    if case.residual is not None:
        u = unit_roundoff(dtypes["residual_out"])
        bound = 4 * u * (sum(map(np.abs, moved)) + 0 * exact)
        bound += SMALLEST[dtypes["residual_out"]]
        title = f"{case.name}: the tangent of residual_out"
        largest = LARGEST[dtypes["residual_out"]]
        compare_output(title, p_dot, exact, bound, largest, False)
        if not dtypes.round_residual:
            p = case.x + case.residual
    dots = [direction.get(name, 0) for name in ("weight", "bias")]
    for part, rows, vectors in _of_heads(case, (p, exact, y_dot), dots):
        _check_tangent(part, spec, dtypes, *rows, *vectors)


def _check_tangent(case, spec, dtypes, p, p_dot, y_dot, weight_dot, bias_dot):
    """The tangent of y (M, N), where all rows share the weight and the bias."""
    affine = [
        v if v is None else v + 1j * TINY * dot
        for v, dot in ((case.weight, weight_dot), (case.bias, bias_dot))
    ]
    moved = numpy_ref.forward(p + 1j * TINY * p_dot, *affine, spec=spec).y.imag / TINY
    saved = numpy_ref.forward(p, case.weight, case.bias, spec=spec)
    bound = _tangent_bound(saved, p_dot, weight_dot, bias_dot, moved, dtypes)
    lost = lost_rows(saved, dtypes)
    title = f"{case.name}: the tangent of y"
    compare_output(title, y_dot, moved, bound, LARGEST[dtypes["y"]], lost)


def _tangent_bound(saved, p_dot, weight_dot, bias_dot, value, dtypes):
    """The largest allowed error of y's tangent, elementwise.

    The projection of p_dot is off as that of dy is in dx, and x_hat as y is; the weight comes after both.
    """
    spec, u = saved.spec, unit_roundoff(dtypes.accumulator)
    plain = numpy_ref.forward(saved.residual_out, spec=spec.replace(weight_offset=0.0))
    size = np.abs(p_dot)
    size = size + (size.mean(-1, keepdims=True) if spec.center else 0)
    off = bounds(size, None, plain, dtypes.accumulator)
    weight = 1 if saved.weight is None else spec.weight_offset + saved.weight
    few = SAFETY * ELEMENTWISE * u
    error = np.abs(weight) * off.dx + few * np.abs(bias_dot)
    error = error + np.abs(weight_dot) * (off.y + few * np.abs(plain.y))
    out = unit_roundoff(dtypes["y"])
    stored = out * (1 + 2 * out) * np.abs(value) + SMALLEST[dtypes["y"]]
    return error * (1 + out) + stored


def check_mapped(
    backend: TorchBackend,
    case: Case,
    second_case: Case,
    spec: NormSpec,
    dtype: str | Dtypes,
    rng: np.random.Generator,
) -> None:
    """torch.func.vmap over the inputs that move, of outputs and gradients: each slice is held to the contract.

    Args:     second_case: the case with other inputs where they move, the second slice; rng: draws the mapped axes
    Raises:   AssertionError that names the output, the place, the value and the bound
    """
    dtypes = Dtypes.of(dtype)
    if (
        not dtypes.round_residual
    ):  # torch's own gradients take the sum before it is rounded
        return
    slices = [case.rounded(dtypes), second_case.rounded(dtypes)]
    tensors = [backend.tensors(part, dtypes) for part in slices]
    first = {name: t for name, t in tensors[0].items() if t is not None}
    names = [name for name in INPUTS if name in first]
    axes, arguments = [], []
    for name in names:
        axes.append(None)
        arguments.append(first[name])
        if name in wanted(case):
            axes[-1] = int(rng.integers(first[name].dim() + 1))
            arguments[-1] = torch.stack([t[name] for t in tensors], axes[-1])
    cotangents = tuple(first[n] for n in ("dy", "dresidual_out") if n in first)

    def with_gradients(*inputs):
        def outputs(*inputs):
            a = dict.fromkeys(INPUTS) | dict(zip(names, inputs, strict=True))
            ends = normalized(backend, a, slices[0], spec, dtypes)
            return ends[: len(cotangents)], ends

        _, pull, ends = torch.func.vjp(outputs, *inputs, has_aux=True)
        return (*ends, *pull(cotangents))

    # What is not mapped has the same value for every slice; out_dims repeats it.
    results = torch.func.vmap(with_gradients, in_dims=tuple(axes))(*arguments)
    for number, part in enumerate(slices):
        arrays = [t[number].double().resolve_neg().numpy() for t in results]
        named = dict(zip(("y", "residual_out", *names), arrays, strict=True))
        for name in {"y", "residual_out", *MATRICES} & {*named}:
            named[name] = named[name].reshape(part.x.shape)
        order = ("y", "residual_out", "x", "residual", "weight", "bias")
        outcome = Outcome(*map(named.get, order))
        compared(outcome, replace(part, wanted=None), spec, dtypes, restored=True)


def check_higher(
    backend: TorchBackend,
    case: Case,
    spec: NormSpec,
    rng: np.random.Generator,
    third: bool = False,
) -> None:
    """The second derivative along random directions by backward twice and by nested forward mode; and the third.

    The second is held against central differences of the oracle's gradient, the third against those of the complex
    step of that gradient: float64.

    Raises:  AssertionError with both numbers and the tolerance
    """
    names = wanted(case)
    along = [directions(case, spec, rng) for _ in range(3 if third else 2)]
    dtypes = Dtypes("float64")
    a = backend.tensors(case, dtypes)
    a = {name: t if t is None else t.contiguous() for name, t in a.items()}
    vectors = [
        [torch.tensor(v[name]).reshape(a[name].shape) for name in names] for v in along
    ]

    def loss(*moved):
        b = {**a, **dict(zip(names, moved, strict=True))}
        y, residual_out = normalized(backend, b, case, spec, dtypes)
        value = (y * b["dy"]).sum()
        if b["dresidual_out"] is not None:
            value = value + (residual_out * b["dresidual_out"]).sum()
        return value

    leaves = [a[name].clone().requires_grad_() for name in names]
    values = _backward(loss, leaves, vectors)
    expected = _expected_higher(case, spec, along)
    for order, value in enumerate(values, 2):
        _near(f"{case.name}: derivative {order} by backward", value, expected[order])
    value = _forward(loss, [a[name] for name in names], vectors)
    _near(f"{case.name}: derivative 2 by nested forward mode", value, expected[2])


def _backward(loss, leaves, vectors):
    """The second and third derivatives by backward, one along each further vector."""
    value, values = loss(*leaves), []
    for vector in vectors:
        grads = [None] * len(leaves)
        if value.requires_grad:
            grads = torch.autograd.grad(
                value, leaves, create_graph=True, allow_unused=True
            )
        value = torch.zeros(())
        for gradient, v in zip(grads, vector, strict=True):
            if gradient is not None:
                value = value + (gradient * v).sum()
        values.append(float(value.detach()))
    return values[1:]


def _forward(loss, point, vectors):
    def slope(*point):
        return torch.func.jvp(loss, point, tuple(vectors[0]))[1]

    return float(torch.func.jvp(slope, tuple(point), tuple(vectors[1]))[1])


def _expected_higher(case, spec, along):
    """{order: Difference} of the second and third derivatives along the directions."""

    def pulled(step_of, first):
        """<first, gradient> where the inputs have moved, and what rounding may do to it, over the unit roundoff."""
        # All complex where one is: NumPy would cut a gradient down to the dtype of its input.
        zero = sum(0 * step for step, _ in step_of)
        moved = []
        for name in INPUTS:
            v = getattr(case, name)
            steps = [step * d[name] for step, d in step_of if name in d]
            moved.append(v if v is None else v + zero + sum(steps))
        x, residual, *affine = moved
        p = x if residual is None else x + residual
        dots = [first.get(name) for name in INPUTS]
        parts = _of_heads(case, (p, *dots[:2]), (*affine, *dots[2:]))
        return np.sum([_pulled(part, spec, *a, *b) for part, a, b in parts], 0)

    names = list(along[0])
    zeros = [np.zeros_like(getattr(case, name)) for name in names]

    def second(*offset):
        value, size = pulled([(1, dict(zip(names, offset, strict=True)))], along[0])
        return value.real, size.real / terms

    # The sizes are errors already, which need not be multiplied by the number of terms once more.
    terms = max(2, sum(zero.size for zero in zeros))
    expected = {2: directional(second, zeros, [along[1][name] for name in names])}
    if len(along) == 3:
        # A relative change of each factor of the gradient by the direction: the factors are fewer than 8.
        factors = 8 * max(1, max(np.abs(v).max(initial=0) for v in along[1].values()))

        def third(*offset):
            step = [(1, dict(zip(names, offset, strict=True))), (1j * TINY, along[1])]
            value, size = pulled(step, along[0])
            return value.imag / TINY, factors * size.real / terms

        expected[3] = directional(third, zeros, [along[2][name] for name in names])
    return expected


def _pulled(case, spec, p, x_dot, residual_dot, weight, bias, weight_dot, bias_dot):
    """<first, gradient> and its size where all rows share the weight and the bias."""
    saved = numpy_ref.forward(p, weight, bias, spec=spec)
    grads = numpy_ref.backward(case.dy.astype(p.dtype), saved, case.dresidual_out)
    real = numpy_ref.forward(
        p.real, *(v if v is None else v.real for v in (weight, bias)), spec=spec
    )
    off = bounds(case.dy, case.dresidual_out, real, "float64")
    of_x = (grads.dx, off.dx)
    pairs = (of_x, of_x, (grads.dweight, off.dw), (grads.dbias, off.db))
    value = size = 0
    for dot, (gradient, error) in zip(
        (x_dot, residual_dot, weight_dot, bias_dot), pairs, strict=True
    ):
        if dot is not None:
            value = value + (dot * gradient).sum()
            size = size + (np.abs(dot) * error).sum()
    return value, size / unit_roundoff("float64")


def _near(title, value, expected):
    error = abs(value - expected.value)
    if not error <= expected.tolerance:
        raise AssertionError(
            f"{title} is {value:.9e}, needs {expected.value:.9e}; error {error:.1e} exceeds the tolerance "
            f"{expected.tolerance:.1e}"
        )
