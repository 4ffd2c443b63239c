"""Residual stacks, naive and fused: two recursions with the same values and the same gradients.

Pre-norm, K layers, output x_K or final_norm(x_K):

    naive:  x_0 = x,            x_k = f_k(norm_k(x_{k-1})) + x_{k-1},                              output x_K
    fused:  z'_0 = x, p_0 = 0,  p_k = z'_{k-1} + p_{k-1},  z'_k = f_k(norm_k(p_k)),                output z'_K + p_K

The sum of the fused pair is the naive stream:

    x_k = z'_k + p_k                                                          {eq}`res-invariant`

Post-norm, output x_K:

    naive:  x_0 = x,           x_k = norm_k(f_k(x_{k-1}) + x_{k-1})
    fused:  x_0 = x,           x_k from one operator that adds and normalizes

In float32 and float64 the two agree bit for bit, gradients included: forward both add the same two tensors, backward
the two terms of one addition may change places. In 16 bits the fused backward rounds once where the naive one rounds
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from .nn import AddNorm, LayerNorm, RMSNorm
from .torch_ops.arguments import check_tensors

Layer = Callable[[Tensor], Tensor]
Norm = LayerNorm | RMSNorm


def _callables(name, values):
    try:
        iterator = iter(values)
    except TypeError as error:
        raise TypeError(
            f"{name}: got {type(values).__name__}, needs a sequence of callables"
        ) from error
    values = list(iterator)
    for index, value in enumerate(values):
        if not callable(value):
            kind = type(value).__name__
            raise TypeError(f"{name}[{index}]: got {kind}, needs a callable")
    return values


def _keeping_shape(layer, index):
    """The layer, held to its input's shape: another shape would broadcast in the addition, and pass unnoticed."""

    def checked(y):
        z = layer(y)
        check_tensors(z, name=f"output of layers[{index}]")
        if z.shape != y.shape:
            got, needed = tuple(z.shape), tuple(y.shape)
            raise ValueError(
                f"output of layers[{index}]: got shape {got}, needs {needed}, the shape of its input"
            )
        return z

    return checked


def _pairs(x, layers, norms, final_norm=None):
    """(layer, norm) for each layer, once the arguments of a stack are what they must be."""
    check_tensors(x, name="x")
    if final_norm is not None and not callable(final_norm):
        raise TypeError(
            f"final_norm: got {type(final_norm).__name__}, needs a callable or None"
        )
    layers, norms = _callables("layers", layers), _callables("norms", norms)
    if len(layers) != len(norms):
        raise ValueError(
            f"norms: got {len(norms)}, needs {len(layers)}, one for each layer"
        )
    return [
        (_keeping_shape(layer, index), norm)
        for index, (layer, norm) in enumerate(zip(layers, norms, strict=True))
    ]


def naive_stack(
    x: Tensor,
    layers: Iterable[Layer],
    norms: Iterable[Layer],
    final_norm: Layer | None = None,
) -> Tensor:
    """The pre-norm stack as it is defined: normalize, apply, add.

    Args:     x (..., N); layers f_1 .. f_K, callables that keep the shape; norms norm_1 .. norm_K, one for each layer;
              final_norm: a norm of the output, None for none
    Returns:  x_K or final_norm(x_K), (..., N); for no layers x_K is x itself
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    for layer, norm in _pairs(x, layers, norms, final_norm):
        x = layer(norm(x)) + x
    return x if final_norm is None else final_norm(x)


def fused_stack(
    x: Tensor,
    layers: Iterable[Layer],
    norms: Iterable[Norm],
    final_norm: Norm | None = None,
) -> Tensor:
    """The pre-norm stack with each addition moved into the next normalization, the last one into the final norm.

    Args:     as naive_stack; norms and final_norm are normgrad.nn.LayerNorm or RMSNorm modules
    Returns:  z'_K + p_K or its norm, (..., N), in float32 and float64 equal to naive_stack bit for bit
    Raises:   as naive_stack, and TypeError for a norm of another kind
    """
    pairs = [(layer, AddNorm(norm)) for layer, norm in _pairs(x, layers, norms)]
    final = None if final_norm is None else AddNorm(final_norm)
    z, p = x, None
    for layer, add_norm in pairs:
        y, p = _add_norm(add_norm, z, p)
        z = layer(y)
    if final is not None:
        return _add_norm(final, z, p)[0]
    return z if p is None else z + p


def _add_norm(add_norm, z, p):
    """(norm(z + p), z + p). As p_0 = 0, the first norm has nothing to add: a tensor of zeros would only cost a pass."""
    return (add_norm.norm(z), z) if p is None else add_norm(z, p)


def naive_post_norm(
    x: Tensor, layers: Iterable[Layer], norms: Iterable[Layer]
) -> Tensor:
    """The post-norm stack as it is defined: apply, add, normalize.

    Args:     x (..., N); layers f_1 .. f_K, callables that keep the shape; norms norm_1 .. norm_K, one for each layer
    Returns:  x_K (..., N), x itself for no layers
    Raises:   ValueError or TypeError naming the argument, what it got and what it needs
    """
    for layer, norm in _pairs(x, layers, norms):
        x = norm(layer(x) + x)
    return x


def fused_post_norm(
    x: Tensor, layers: Iterable[Layer], norms: Iterable[Norm]
) -> Tensor:
    """The post-norm stack with each addition and the normalization after it in one operator.

    Args:     as naive_post_norm; norms are normgrad.nn.LayerNorm or RMSNorm modules
    Returns:  x_K (..., N), in float32 and float64 equal to naive_post_norm bit for bit
    Raises:   as naive_post_norm, and TypeError for a norm of another kind
    """
    for layer, add_norm in [
        (layer, AddNorm(norm)) for layer, norm in _pairs(x, layers, norms)
    ]:
        x, _ = add_norm(layer(x), x)
    return x
