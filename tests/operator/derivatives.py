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
from normgrad.checks.contract import check_within, compared, lost_rows
from normgrad.checks.finite_difference import directional
from normgrad.checks.tolerance import (
    LARGEST,
    SMALLEST,
    Dtypes,
    bounds,
    round_to,
    tangent_bound,
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
    for head in range(case.heads):
        rows = [a if a is None else a[head :: case.heads] for a in matrices]
        parts.append(
            (
                case.of_head(head),
                rows,
                [v if np.ndim(v) == 0 else v[head] for v in vectors],
            )
        )
    return parts


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
    direction = {
        name: round_to(v, dtypes[name])
        for name, v in directions(case, spec, rng).items()
    }
    a = backend.tensors(case, dtypes)
    with forward_ad.dual_level():
        for name, v in direction.items():
            a[name] = forward_ad.make_dual(
                a[name], torch.tensor(v).to(a[name].dtype).reshape(a[name].shape)
            )
        outputs = backend.normalize(
            a["x"],
            a["residual"],
            a["weight"],
            a["bias"],
            spec,
            **options_of(case, dtypes),
        )
        found = [forward_ad.unpack_dual(t) for t in outputs]
        primals = [t.primal.detach() for t in found]
        tangents = [
            torch.zeros_like(t.primal) if t.tangent is None else t.tangent
            for t in found
        ]
    stored, y_dot, stored_dot = (
        t.double().resolve_neg().numpy().reshape(case.x.shape)
        for t in (primals[1], *tangents)
    )
    p_dot = sum(
        (direction[name] for name in ("x", "residual") if name in direction),
        np.zeros_like(stored),
    )
    p = (
        stored
        if dtypes.round_residual or case.residual is None
        else case.x + case.residual
    )
    dots = [direction.get(name, 0) for name in ("weight", "bias")]
    for part, rows, vectors in _of_heads(case, (p, p_dot, y_dot), dots):
        _check_tangent(part, spec, dtypes, *rows, *vectors)
    if case.residual is not None:
        u = unit_roundoff(dtypes["residual_out"])
        size = sum(
            np.abs(direction[name]) for name in ("x", "residual") if name in direction
        )
        bound = 4 * u * (size + 0 * p_dot) + SMALLEST[dtypes["residual_out"]]
        _within(
            f"{case.name}: the tangent of residual_out",
            stored_dot,
            p_dot,
            bound,
            dtypes["residual_out"],
        )


def _check_tangent(case, spec, dtypes, p, p_dot, y_dot, *dots):
    """The tangent of y (M, N), where all rows share the weight and the bias."""
    affine = [
        v if v is None else v + 1j * TINY * dot
        for v, dot in zip((case.weight, case.bias), dots, strict=True)
    ]
    moved = numpy_ref.forward(p + 1j * TINY * p_dot, *affine, spec=spec).y.imag / TINY
    saved = numpy_ref.forward(p, case.weight, case.bias, spec=spec)
    bound = tangent_bound(saved, p_dot, *dots, moved, dtypes)
    _within(
        f"{case.name}: the tangent of y",
        y_dot,
        moved,
        bound,
        dtypes["y"],
        lost_rows(saved, dtypes),
    )


def _within(title, got, expected, bound, dtype, lost=False):
    too_large = (
        (np.abs(expected) > LARGEST[dtype])
        & (np.sign(got) == np.sign(expected))
        & np.isinf(got)
    )
    error = np.where(too_large | lost & ~np.isfinite(got), 0, np.abs(got - expected))
    check_within(title, got, expected, error, bound)


def check_mapped(
    backend: TorchBackend,
    case: Case,
    other: Case,
    spec: NormSpec,
    dtype: str | Dtypes,
    rng: np.random.Generator,
) -> None:
    """torch.func.vmap over the inputs that move, of outputs and gradients: each slice is held to the contract.

    Args:     other: the case with other inputs where they move, the second slice; rng: draws the mapped axes
    Raises:   AssertionError that names the output, the place, the value and the bound
    """
    dtypes, names = Dtypes.of(dtype), wanted(case)
    case, other = slices = [one.rounded(dtypes) for one in (case, other)]
    tensors = [backend.tensors(one, dtypes) for one in slices]
    given = [name for name in INPUTS if tensors[0][name] is not None]
    axes = [
        int(rng.integers(tensors[0][name].dim() + 1)) if name in names else None
        for name in given
    ]
    arguments = [
        tensors[0][name]
        if axis is None
        else torch.stack([t[name] for t in tensors], axis)
        for name, axis in zip(given, axes, strict=True)
    ]
    cotangents = tuple(
        tensors[0][name]
        for name in ("dy", "dresidual_out")
        if tensors[0][name] is not None
    )

    def one(*inputs):
        def outputs(*inputs):
            a = {**dict.fromkeys(INPUTS), **dict(zip(given, inputs, strict=True))}
            found = backend.normalize(
                a["x"],
                a["residual"],
                a["weight"],
                a["bias"],
                spec,
                **options_of(case, dtypes),
            )
            return found[: len(cotangents)], found

        _, pull, found = torch.func.vjp(outputs, *inputs, has_aux=True)
        return found, pull(cotangents)

    # What is not mapped has the same value for every slice; out_dims repeats it.
    found, grads = torch.func.vmap(one, in_dims=tuple(axes))(*arguments)
    for place, each in enumerate(slices):
        arrays = [t[place].double().resolve_neg().numpy() for t in (*found, *grads)]
        named = dict(zip(("y", "residual_out", *given), arrays, strict=True))
        rows = [
            t if t is None else t.reshape(each.x.shape)
            for t in map(named.get, ("y", "residual_out", *INPUTS[:2]))
        ]
        compared(
            Outcome(*rows, named.get("weight"), named.get("bias")),
            replace(each, wanted=None),
            spec,
            dtypes,
            restored=True,
        )


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
    options, a = (
        options_of(case, Dtypes("float64")),
        backend.tensors(case, Dtypes("float64")),
    )
    a = {name: t if t is None else t.contiguous() for name, t in a.items()}
    vectors = [
        [torch.tensor(v[name]).reshape(a[name].shape) for name in names] for v in along
    ]

    def loss(*moved):
        b = {**a, **dict(zip(names, moved, strict=True))}
        y, residual_out = backend.normalize(
            b["x"], b["residual"], b["weight"], b["bias"], spec, **options
        )
        total = (y * b["dy"]).sum()
        return (
            total
            if b["dresidual_out"] is None
            else total + (residual_out * b["dresidual_out"]).sum()
        )

    found = _backward(
        loss, [a[name].clone().requires_grad_() for name in names], vectors
    )
    expected = _expected_higher(case, spec, along)
    for order, value in enumerate(found, 2):
        _near(f"{case.name}: derivative {order} by backward", value, expected[order])
    _near(
        f"{case.name}: derivative 2 by nested forward mode",
        _forward(loss, [a[n] for n in names], vectors),
        expected[2],
    )


def _backward(loss, leaves, vectors):
    value, found = loss(*leaves), []
    for vector in vectors:
        grads = [None] * len(leaves)
        if value.requires_grad:
            grads = torch.autograd.grad(
                value, leaves, create_graph=True, allow_unused=True
            )
        value = sum(
            (
                (g * v).sum()
                for g, v in zip(grads, vector, strict=True)
                if g is not None
            ),
            torch.zeros(()),
        )
        found.append(float(value.detach()))
    return found[1:]


def _forward(loss, point, vectors):
    def slope(*point):
        return torch.func.jvp(loss, point, tuple(vectors[0]))[1]

    return float(torch.func.jvp(slope, tuple(point), tuple(vectors[1]))[1])


def _expected_higher(case, spec, along):
    """{order: Difference} of the second and third derivatives along the directions."""

    def pulled(step_of, first):
        """<first, gradient> where the inputs have moved, and what rounding may do to it, over the unit roundoff."""
        moved = [getattr(case, name) for name in INPUTS]
        # All complex where one is: NumPy would cut a gradient down to the dtype of its input.
        zero = sum(0 * step for step, _ in step_of)
        moved = [
            None
            if v is None
            else v + zero + sum(step * d[name] for step, d in step_of if name in d)
            for name, v in zip(INPUTS, moved, strict=True)
        ]
        x, residual, *affine = moved
        p = x if residual is None else x + residual
        along = [first.get(name) for name in INPUTS]
        found = [
            _pulled(part, spec, *rows, *vectors)
            for part, rows, vectors in _of_heads(
                case, (p, *along[:2]), (*affine, *along[2:])
            )
        ]
        return np.sum(found, 0)

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
