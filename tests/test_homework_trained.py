"""Homework 8: the model that a layer trains, the gradients by depth, what training notices, and bytes."""

import inspect

import numpy as np
import pytest
import torch
from homework_solutions import changed, checked, flat, graded, of_source
from homework_variants_other import norms_by_recursion

import normgrad.homework as hw
from normgrad import add_layer_norm
from normgrad.homework import solutions
from normgrad.homework.grade import grade_task
from normgrad.homework.hw8 import checks, model
from normgrad.homework.hw8.text import text
from normgrad.homework.sandbox.student import Local
from normgrad.homework.task import Draw, find


def book_layer(x, residual, weight, bias, eps):
    return add_layer_norm(x, residual, x.shape[-1], weight, bias, eps)


def network(depth, post=False, layer=book_layer):
    generator = torch.Generator().manual_seed(1)
    return model.Network(
        layer, len(model.encoded(text())[1]), depth, generator, torch.float64, post
    )


def batch(seed=2):
    return model.batch(model.encoded(text())[0], torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def answers():
    pytest.importorskip("triton")
    return of_source(solutions.solution("hw8"))


# The model


@pytest.mark.parametrize("post", [False, True])
def test_the_network_is_its_formula(post):
    """The stream of a pre-norm network is a sum of all that joined it; that of a post-norm one is normalized."""
    net, (contexts, following) = network(2, post), batch()

    def norm(p):
        return torch.nn.functional.layer_norm(p, p.shape[-1:], eps=model.EPS)

    stream = net.embedding[torch.arange(model.CONTEXT), contexts].sum(1)
    for up, down in zip(net.up, net.down, strict=True):
        added = torch.tanh(norm(stream) @ up) @ down
        stream = (norm(stream) if post else stream) + added
    log_likelihood = torch.log_softmax(norm(stream) @ net.head, -1)[
        torch.arange(len(following)), following
    ].mean()
    torch.testing.assert_close(net.loss(contexts, following)[0], -log_likelihood)


# Gradients by depth


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_gradient_norms_are_those_of_torch(answers, depth):
    net, data = network(depth), batch()
    loss, added = net.loss(*data)
    expected = torch.stack([dx.norm() for dx in torch.autograd.grad(loss, added)])
    torch.testing.assert_close(
        answers["gradient_norms"](*model.pieces(net, *data)), expected
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda dy, norms, branches: [1.0] * len(norms),
            "needs one tensor with a number for each place",
        ),
        (
            lambda dy, norms, branches: torch.zeros(len(norms)),
            "needs shape (6,) in float64",
        ),
    ],
)
def test_gradient_norms_of_the_wrong_kind(answer, words):
    report = hw.check("gradient-norms", answer)
    assert words in str(report).replace("\n       ", "") and report.points == 0


# The layer


class InTorch(torch.autograd.Function):
    """A right layer without kernels; what it saves, it saves of the sum."""

    @staticmethod
    def forward(x, residual, weight, bias, eps):
        p = x + residual
        var, mean = torch.var_mean(p, -1, correction=0, keepdim=True)
        return torch.addcmul(bias, (p - mean) / torch.sqrt(var + eps), weight), p

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.eps = inputs[4]
        ctx.save_for_backward(output[1], inputs[2])

    @staticmethod
    def backward(ctx, dy, dresidual_out):
        p, weight = ctx.saved_tensors
        q = p - p.mean(1, keepdim=True)
        rstd = torch.rsqrt(q.square().mean(1, keepdim=True) + ctx.eps)
        wdy = dy * weight
        wdy = wdy - wdy.mean(1, keepdim=True)
        dx = (
            rstd * (wdy - q * rstd**2 * (q * wdy).mean(1, keepdim=True)) + dresidual_out
        )
        return dx, dx, (dy * q * rstd).sum(0), dy.sum(0), None


@pytest.mark.parametrize("draw", [Draw(7, 2, 2), Draw(7, 13, 64)])
def test_a_layer_in_torch_lacks_the_bytes_alone(draw):
    with Local({"AddNorm": InTorch}) as student:
        report = grade_task(find("addnorm-layer"), student, draw)
    assert [stage.name for stage in report.stages if not stage.passed] == [
        "bytes within 50 % of the floor", "bytes within 5 % of the floor"]  # fmt: skip
    assert report.points == report.max_points - 4


def test_what_training_allows_is_rounding(answers):
    """A gradient that is wrong by a part in ten thousand million is noticed; the bound is a few roundings of a loss."""

    class Off(answers["AddNorm"]):
        @staticmethod
        def backward(ctx, dy, dresidual_out):
            dx, dresidual, *parameter_gradients = answers["AddNorm"].backward(
                ctx, dy, dresidual_out
            )
            return dx * (1 + 1e-10), dresidual * (1 + 1e-10), *parameter_gradients

    report = hw.check("addnorm-layer", Off)
    assert (
        "the loss before step" in report["training"].message.lower()
        and not report["training"].passed
    )
    options = {
        "text": text()[: checks.LETTERS],
        "depth": 2,
        "steps": 6,
        "size": 16,
        "seed": 4,
    }
    losses, bound = checks._losses(options)
    assert (np.diff(losses) < 0).all() and (bound < 1e-11 * losses).all()


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", ["reference", "torch"])
def test_in_a_process_of_its_own(answers, tmp_path, name):
    """Where neither the package nor torch's own derivatives are there, a training runs all the same."""
    source = solutions.solution("hw8")
    if name == "torch":
        layer = inspect.getsource(InTorch).replace("class InTorch", "class AddNorm")
        norms = inspect.getsource(norms_by_recursion)
        norms = norms.replace("norms_by_recursion", "gradient_norms")
        source = f"import torch\n{layer}\n{norms}"
    layer, norms = graded(tmp_path, source, "hw8")
    assert norms.passed, norms
    assert layer.points == layer.max_points - 4 * (name == "torch"), layer


# (what is written instead, what is said of the calls)
CALLS = (
    (("branches[k - 1](stream)", "branches[k - 1](dy)"), "dy as it came in as dz"),
    (("            dy = branches", "            branches"), "as dy"),
    (("reversed(range(len(norms)))", "range(len(norms))"), "first call is that of"),
    (("norms[k](dy, stream)", "norms[k - 1](dy, stream)"), "The first call is that of"),
    (("stream.square().sum()", "(2 * stream).square().sum()"), "that of something else"),
)  # fmt: skip


@pytest.mark.parametrize(("edit", "words"), CALLS)
def test_the_first_call_that_is_another_one_is_named(edit, words):
    report = checked("gradient-norms", changed("hw8", edit))
    assert not report.passed and words in flat(report), report
