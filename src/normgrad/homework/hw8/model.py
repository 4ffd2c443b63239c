"""The model that a layer of the student's own trains: a residual network that guesses the next character.

Nothing of normgrad is imported here: the process that runs a student's code is handed this text.
"""

from __future__ import annotations

import torch

CONTEXT, WIDTH, HIDDEN, EPS = 8, 48, 96, 1e-5
RATE, MOMENTUM = 0.05, 0.9


class Network:
    """Branches between norms with a residual add: pre-norm as in {eq}`res-fused`, post-norm as in {eq}`res-post`.

    Args:  layer: takes (x, residual, weight, bias, eps), all rows of WIDTH, returns (y, residual_out)
           letters: how many characters there are; depth: how many branches; generator: torch's, of the parameters
    """

    def __init__(
        self, layer, letters, depth, generator, dtype=torch.float32, post=False
    ):
        def drawn(*shape, size):
            return (
                torch.randn(*shape, generator=generator, dtype=torch.float64)
                .mul(size)
                .to(dtype)
                .requires_grad_()
            )

        self.layer, self.depth, self.post = layer, depth, post
        self.embedding = drawn(CONTEXT, letters, WIDTH, size=CONTEXT**-0.5)
        self.up = [drawn(WIDTH, HIDDEN, size=WIDTH**-0.5) for _ in range(depth)]
        self.down = [drawn(HIDDEN, WIDTH, size=HIDDEN**-0.5) for _ in range(depth)]
        self.weights = [
            torch.ones(WIDTH, dtype=dtype, requires_grad=True) for _ in range(depth + 1)
        ]
        self.biases = [
            torch.zeros(WIDTH, dtype=dtype, requires_grad=True)
            for _ in range(depth + 1)
        ]
        self.head = drawn(WIDTH, letters, size=WIDTH**-0.5)

    @property
    def parameters(self) -> list[torch.Tensor]:
        """All that training changes."""
        return [
            self.embedding,
            *self.up,
            *self.down,
            *self.weights,
            *self.biases,
            self.head,
        ]

    def norm(self, k, x, residual):
        """(y, residual_out) of the k-th norm."""
        return self.layer(x, residual, self.weights[k], self.biases[k], EPS)

    def branch(self, k, y):
        """What the k-th branch adds to the stream."""
        return torch.tanh(y @ self.up[k]) @ self.down[k]

    def start(self, contexts):
        """(x, residual) of the first norm: the earlier characters and the last one. Args: contexts (M, CONTEXT)"""
        embedded = self.embedding[torch.arange(CONTEXT), contexts]
        return embedded[:, :-1].sum(1), embedded[:, -1]

    def __call__(self, contexts):
        """(y of the last norm, what each norm was given as x)."""
        (x, residual), added = self.start(contexts), []
        for k in range(self.depth + 1):
            added.append(x)
            y, stream = self.norm(k, x, residual)
            if k < self.depth:
                x, residual = self.branch(k, y), y if self.post else stream
        return y, added

    def cross_entropy(self, y, following):
        """The mean loss of a batch, from y of the last norm."""
        return torch.nn.functional.cross_entropy(y @ self.head, following)

    def loss(self, contexts, following):
        """(mean loss of a batch, what each norm was given as x)."""
        y, added = self(contexts)
        return self.cross_entropy(y, following), added


def batch(codes, generator, size=64):
    """(contexts (size, CONTEXT), the characters that follow), from random places of a text of numbers."""
    at = torch.randint(len(codes) - CONTEXT, (size, 1), generator=generator)
    return codes[at + torch.arange(CONTEXT)], codes[at[:, 0] + CONTEXT]


def train(network, batches, grad=torch.autograd.grad):
    """The losses before each step of gradient descent with momentum. Args: grad: what differentiates"""
    losses, speeds = [], [torch.zeros_like(p) for p in network.parameters]
    for contexts, following in batches:
        loss, _ = network.loss(contexts, following)
        gradients = grad(loss, network.parameters)
        with torch.no_grad():
            for parameter, speed, gradient in zip(
                network.parameters, speeds, gradients, strict=True
            ):
                parameter -= RATE * speed.mul_(MOMENTUM).add_(gradient)
        losses.append(loss.item())
    return losses


def pieces(network, contexts, following):
    """(dy, norms, branches) of a pre-norm network on a batch, as gradient_norms takes them."""
    norms, branches, (x, residual) = [], [], network.start(contexts)
    for k in range(network.depth + 1):
        x, residual = (t.detach().requires_grad_() for t in (x, residual))
        y, stream = network.norm(k, x, residual)
        norms.append(_back((y, stream), x))
        if k < network.depth:
            y, residual = y.detach().requires_grad_(), stream
            x = network.branch(k, y)
            branches.append(_back((x,), y))
    last = y.detach().requires_grad_()
    (dy,) = torch.autograd.grad(network.cross_entropy(last, following), last)
    return dy, norms, branches


def _back(outputs, point):
    """A function from the cotangents of outputs to the gradient at a point."""

    def back(*cotangents):
        return torch.autograd.grad(outputs, point, cotangents, retain_graph=True)[0]

    return back


def encoded(text):
    """(text as numbers, its letters in their order)."""
    letters = sorted(set(text))
    return torch.tensor([letters.index(letter) for letter in text]), letters


def trained(function, arguments, options, grad):
    """The losses of a short training on one batch, in float64. Args: options: text, depth, steps, size, seed"""
    codes, letters = encoded(options["text"])
    generator = torch.Generator().manual_seed(options["seed"])
    network = Network(
        function.apply, len(letters), options["depth"], generator, torch.float64
    )
    losses = train(
        network, [batch(codes, generator, options["size"])] * options["steps"], grad
    )
    return torch.tensor(losses, dtype=torch.float64), {}


def by_depth(function, arguments, options, grad):
    """What gradient_norms makes of a stack whose norms and branches are matrices, and what it calls, in order.

    Args:  arguments: dy, mixes, turns
    """
    dy, mixes, turns = arguments.values()
    calls, tensors = [], [("dy as it came in", dy.clone())]

    def name_of(value):
        if not torch.is_tensor(value):
            return "no tensor"
        if not value.any():
            return "zeros"
        names = [name for name, tensor in tensors if torch.equal(value, tensor)]
        return names[-1] if names else "another tensor"

    def recorded(name, compute):
        def call(*arguments):
            calls.append([name, *map(name_of, arguments)])
            result = compute(*arguments)
            tensors.append((f"what {name} returned", result.clone()))
            return result

        return call

    norms = [
        recorded(f"norms[{k}]", lambda dy, stream, mix=mix: dy @ mix + stream)
        for k, mix in enumerate(mixes)
    ]
    branches = [
        recorded(f"branches[{k}]", lambda dz, turn=turn: dz @ turn)
        for k, turn in enumerate(turns)
    ]
    return function(dy, norms, branches), {"calls": calls}
