"""Residual stacks, naive and fused: two recursions with the same values and the same gradients.

Pre-norm, output x_n or final_norm(x_n):

    naive:  x_0 = x,           x_k = f_k(norm_k(x_{k-1})) + x_{k-1},                                output x_n
    fused:  p_0 = x, r_0 = 0,  r_k = p_{k-1} + r_{k-1},  p_k = f_k(norm_k(r_k)),                    output p_n + r_n

The invariant is x_k = p_k + r_k: {eq}`res-invariant`. Post-norm, output x_n:

    naive:  x_0 = x,           x_k = norm_k(f_k(x_{k-1}) + x_{k-1})
    fused:  x_0 = x,           x_k from one operator that adds and normalizes

In float32 and float64 the two agree bit for bit, gradients included: forward both add the same two tensors, backward
the two terms of one addition may change places. In 16 bits the fused backward rounds once where the naive one rounds
twice.
"""

from __future__ import annotations

from .nn import AddNorm


def _pairs(layers, norms):
    layers, norms = list(layers), list(norms)
    if len(layers) != len(norms):
        raise ValueError(f"norms: got {len(norms)}, needs {len(layers)}, one for each layer")
    return zip(layers, norms, strict=True)


def naive_stack(x, layers, norms, final_norm=None):
    """The pre-norm stack as it is defined: normalize, apply, add.

    Args:     x (..., N); layers f_1 .. f_n, callables that keep the shape; norms norm_1 .. norm_n, one for each layer;
              final_norm: a norm of the output, None for none
    Returns:  x_n or final_norm(x_n), (..., N); for no layers x_n is x itself
    Raises:   ValueError when layers and norms differ in number
    """
    for layer, norm in _pairs(layers, norms):
        x = layer(norm(x)) + x
    return x if final_norm is None else final_norm(x)


def fused_stack(x, layers, norms, final_norm=None):
    """The pre-norm stack with each addition moved into the next normalization, the last one into the final norm.

    Args:     as naive_stack; norms and final_norm are normgrad.nn.LayerNorm or RMSNorm modules
    Returns:  p_n + r_n or its norm, (..., N), in float32 and float64 equal to naive_stack bit for bit
    Raises:   ValueError when layers and norms differ in number, TypeError for a norm of another kind
    """
    pairs = [(layer, AddNorm(norm)) for layer, norm in _pairs(layers, norms)]
    final = None if final_norm is None else AddNorm(final_norm)
    p, r = x, None
    for layer, add_norm in pairs:
        y, r = _add_norm(add_norm, p, r)
        p = layer(y)
    if final is not None:
        return _add_norm(final, p, r)[0]
    return p if r is None else p + r


def _add_norm(add_norm, p, r):
    """(norm(p + r), p + r). As r_0 = 0, the first norm has nothing to add: a tensor of zeros would only cost a pass."""
    return (add_norm.norm(p), p) if r is None else add_norm(p, r)


def naive_post_norm(x, layers, norms):
    """The post-norm stack as it is defined: apply, add, normalize.

    Args:     x (..., N); layers f_1 .. f_n, callables that keep the shape; norms norm_1 .. norm_n, one for each layer
    Returns:  x_n (..., N), x itself for no layers
    Raises:   ValueError when layers and norms differ in number
    """
    for layer, norm in _pairs(layers, norms):
        x = norm(layer(x) + x)
    return x


def fused_post_norm(x, layers, norms):
    """The post-norm stack with each addition and the normalization after it in one operator.

    Args:     as naive_post_norm; norms are normgrad.nn.LayerNorm or RMSNorm modules
    Returns:  x_n (..., N), in float32 and float64 equal to naive_post_norm bit for bit
    Raises:   ValueError when layers and norms differ in number, TypeError for a norm of another kind
    """
    for layer, add_norm in [(layer, AddNorm(norm)) for layer, norm in _pairs(layers, norms)]:
        x, _ = add_norm(layer(x), x)
    return x
