"""The pre-norm residual stack, naive and fused: two recursions with the same values and the same gradients.

    naive:  x_0 = x,           x_k = f_k(norm_k(x_{k-1})) + x_{k-1},                                output x_n
    fused:  p_0 = x, r_0 = 0,  r_k = p_{k-1} + r_{k-1},  p_k = f_k(norm_k(r_k)),                    output p_n + r_n

The invariant is x_k = p_k + r_k. In float32 and float64 the two agree bit for bit: each step only swaps the order of
one addition. In 16 bits the fused backward rounds once where the naive one rounds twice.
"""

from __future__ import annotations

from .nn import AddNorm


def _pairs(layers, norms):
    layers, norms = list(layers), list(norms)
    if len(layers) != len(norms):
        raise ValueError(f"norms: got {len(norms)}, needs {len(layers)}, one for each layer")
    return zip(layers, norms, strict=True)


def naive_stack(x, layers, norms):
    """The stack as it is defined: normalize, apply, add.

    Args:     x (..., N); layers f_1 .. f_n, callables that keep the shape; norms norm_1 .. norm_n, one for each layer
    Returns:  x_n (..., N), x itself for no layers
    Raises:   ValueError when layers and norms differ in number
    """
    for layer, norm in _pairs(layers, norms):
        x = layer(norm(x)) + x
    return x


def fused_stack(x, layers, norms):
    """The stack with each addition moved into the next normalization, so that the stream is read and written once.

    Args:     as naive_stack; norms are normgrad.nn.LayerNorm or RMSNorm modules
    Returns:  p_n + r_n (..., N), in float32 and float64 equal to naive_stack bit for bit
    Raises:   ValueError when layers and norms differ in number, TypeError for a norm of another kind
    """
    pairs = [(layer, AddNorm(norm)) for layer, norm in _pairs(layers, norms)]
    p, r = x, None
    for layer, add_norm in pairs:
        # r_0 = 0: the first norm has nothing to add, and adding a tensor of zeros would only cost a pass.
        y, r = (add_norm.norm(p), p) if r is None else add_norm(p, r)
        p = layer(y)
    return p if r is None else p + r
