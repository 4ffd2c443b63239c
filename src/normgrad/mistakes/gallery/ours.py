"""The package's own backends in the forms that the gallery's checks take, on the caller's memory and layouts."""

from __future__ import annotations

from ...checks.backends import get
from ...spec import LAYER_NORM

AUTOGRAD = ("torch", "triton", "numba")


def gradients(backend: str):
    """(dx, dw) of LayerNorm as a function of arrays (x, weight, dy), none of them copied on the way in."""
    if backend == "numpy":
        from .memory import gradients as of_numpy

        return of_numpy
    return _of_sympy if backend == "sympy" else _of_torch(backend)


def _of_sympy(x, weight, dy):
    from ...symbolic import backend

    dx, dw, _ = backend.backward(dy, x, weight, None, None, None, LAYER_NORM)
    return dx, dw


def _of_torch(backend):
    def function(x, weight, dy):
        import torch

        x, weight, dy = (torch.from_numpy(a).to(get(backend).device) for a in (x, weight, dy))
        y = get(backend).normalize(x.requires_grad_(), None, weight.requires_grad_(), None, LAYER_NORM)[0]
        return [grad.cpu().numpy() for grad in torch.autograd.grad(y, (x, weight), dy)]

    return function


def gate(backend: str):
    """The gradients of a gated norm whose norm is the backend's and whose gate is torch's."""

    def backward(x, gate, weight, dy, dresidual_out, spec):
        import torch

        device = get(backend).device
        tensors = [torch.tensor(a, device=device, requires_grad=True) for a in (x, gate, weight)]
        x, gate, weight = tensors
        y = get(backend).normalize(x * torch.sigmoid(gate), None, weight, None, spec)[0]
        cotangents = [torch.tensor(a, device=device) for a in (dy, dresidual_out)]
        return [grad.cpu().numpy() for grad in torch.autograd.grad((y, x), tensors, cotangents)]

    return backward


def heads(backend: str):
    """y of LayerNorm as a function of arrays (x, weight), x a slice of a wider one as it lies."""

    def forward(x, weight):
        import torch

        tensors = [torch.from_numpy(a).to(get(backend).device) for a in (x, weight)]
        return get(backend).normalize(tensors[0], None, tensors[1], None, LAYER_NORM)[0].cpu().numpy()

    return forward


def itself(backend: str):
    """The backend under its name, for the checks that run a case on it."""
    return get(backend)
