"""A second worked example of homework 7: RMSNorm with a gate in torch, as in state-space models."""

import torch

EPS = 1e-6


def normalized(x):
    """(x_hat, rstd) of every row, in operations that autograd follows."""
    rstd = (x.square().mean(-1, keepdim=True) + EPS).rsqrt()
    return x * rstd, rstd


class Operator:
    """y = weight * x_hat * g sigmoid(g): the normalized row, gated by a second input g of the same shape."""

    @staticmethod
    def inputs(rng):
        """Rows of different size, gates of both signs."""
        x = (
            torch.from_numpy(rng.standard_normal((4, 6)))
            * torch.tensor([[0.1], [1.0], [3.0], [20.0]]).double()
        )
        gate, weight = (
            torch.from_numpy(rng.standard_normal((4, 6))),
            torch.from_numpy(rng.standard_normal(6)),
        )
        return {"x": x, "gate": gate, "weight": weight}

    @staticmethod
    def degenerate(rng):
        """A zero row, a gate that is shut, and no rows."""
        usual = Operator.inputs(rng)
        zero, shut = usual["x"].clone(), usual["gate"].clone()
        zero[0], shut[1] = 0, -800
        return [
            usual | {"x": zero},
            usual | {"gate": shut},
            usual | {"x": zero[:0], "gate": shut[:0]},
        ]

    @staticmethod
    def forward(*inputs):
        """y (M, N).  {eq}`rms-forward` times the gate"""
        x, gate, weight = inputs
        x_hat, _ = normalized(x)
        return weight * x_hat * gate * torch.sigmoid(gate)

    @staticmethod
    def backward(dy, *inputs):
        """The gradients by x, gate and weight: the product rule, then {eq}`rms-dx`."""
        x, gate, weight = inputs
        x_hat, rstd = normalized(x)
        open_ = torch.sigmoid(gate)
        silu = gate * open_
        wdy = weight * silu * dy
        dx = rstd * (wdy - x_hat * (x_hat * wdy).mean(-1, keepdim=True))
        dgate = dy * weight * x_hat * (open_ + silu * (1 - open_))
        dweight = (dy * x_hat * silu).sum(0)
        return dx, dgate, dweight
