"""Homework 8: the model that a layer trains, the gradients by depth, what training notices, and bytes."""

import inspect
import math

import numpy as np
import pytest
from homework_solutions import of_source

import normgrad.homework as hw
from normgrad.checks.tolerance import ELEMENTWISE, SAFETY, unit_roundoff
from normgrad.homework import solutions
from normgrad.homework.grade import grade_file, grade_task
from normgrad.homework.sandbox.student import Local
from normgrad.homework.task import Draw, find

torch = pytest.importorskip("torch")

from normgrad import add_layer_norm  # noqa: E402
from normgrad.homework.hw8 import checks, model  # noqa: E402
from normgrad.homework.hw8.text import text  # noqa: E402


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


def test_the_text_can_be_learned():
    codes, letters = model.encoded(text())
    assert (
        len(codes) > 10_000
        and "".join(letters[code] for code in codes[:40]) == text()[:40]
    )


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
    known = torch.log_softmax(norm(stream) @ net.head, -1)[
        torch.arange(len(following)), following
    ].mean()
    torch.testing.assert_close(net.loss(contexts, following)[0], -known)


def test_training_lowers_the_loss_of_other_batches():
    net, (codes, letters) = network(1), model.encoded(text())
    generator = torch.Generator().manual_seed(3)
    losses = model.train(net, (model.batch(codes, generator) for _ in range(40)))
    assert abs(losses[0] - math.log(len(letters))) < 1
    assert net.loss(*batch())[0].item() < 0.8 * math.log(len(letters))


def test_the_program_imports_nothing_of_the_package():
    """Its text runs where normgrad cannot be imported."""
    assert "normgrad" not in inspect.getsource(model).partition('"""\n')[2].replace(
        "normgrad is imported", ""
    )


# Gradients by depth


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_gradient_norms_are_those_of_torch(answers, depth):
    net, given = network(depth), batch()
    loss, added = net.loss(*given)
    known = torch.stack([dx.norm() for dx in torch.autograd.grad(loss, added)])
    torch.testing.assert_close(
        answers["gradient_norms"](*model.pieces(net, *given)), known
    )


def loop(dy, norms, branches):
    """Right, and written as the reference is not: a list is filled from its end, norms by torch's own function."""
    sizes = torch.zeros(len(norms), dtype=dy.dtype)
    g = norms[-1](dy, 0 * dy)
    sizes[-1] = torch.linalg.vector_norm(g)
    for place in range(len(branches), 0, -1):
        g = norms[place - 1](branches[place - 1](g), g)
        sizes[place - 1] = torch.linalg.vector_norm(g)
    return sizes


def test_right_gradient_norms_may_be_written_differently(seeds):
    for seed in seeds(20):
        report = hw.check("gradient-norms", loop, seed=seed)
        assert report.passed, report


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda dy, norms, branches: [1.0] * len(norms),
            "needs one tensor with a number for each place",
        ),
        (lambda dy, norms, branches: dy.new_zeros(len(norms), 1), "needs shape (6,)"),
        (
            lambda dy, norms, branches: torch.zeros(len(norms)),
            "needs shape (6,) in float64",
        ),
        (
            lambda dy, norms, branches: dy.new_full((len(norms),), torch.nan),
            "numbers are not finite",
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


def test_the_layer_has_full_marks(answers, seeds):
    """No false alarm over up to 30 seeds, in float64 and float32."""
    for seed in seeds(30):
        report = hw.check("addnorm-layer", answers["AddNorm"], seed=seed)
        assert report.passed, report


@pytest.mark.parametrize("draw", [Draw(7, 2, 2), Draw(7, 13, 64), Draw(7, scale=1e-3)])
def test_a_layer_in_torch_lacks_the_bytes_alone(draw):
    with Local({"AddNorm": InTorch}) as student:
        report = grade_task(find("addnorm-layer"), student, draw)
    assert [stage.name for stage in report.stages if not stage.passed] == [
        "bytes within 50 % of the floor", "bytes within 5 % of the floor"]  # fmt: skip
    assert report.points == report.max_points - 4


FROM_HOMEWORK_4 = """

class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, eps):
        y, residual_out, mean, rstd = addnorm_forward(x, residual, weight, bias, eps)
        ctx.save_for_backward(residual_out, weight, mean, rstd)
        return y, residual_out

    @staticmethod
    def backward(ctx, dy, dresidual_out):
        return *addnorm_backward(dy, dresidual_out, *ctx.saved_tensors), None
"""


@pytest.mark.parametrize(
    ("rows", "lost"), [(4, ["bytes within 5 % of the floor"]), (32, [])]
)
def test_the_launchers_of_homework_4_make_a_layer(rows, lost):
    """As they are, up to the last bytes; with more rows a program they have those as well."""
    pytest.importorskip("triton")
    source = solutions.solution("hw4")
    for tile in ("accumulator(x), 4", "accumulator(p), 4"):
        assert source.count(tile) == 1
        source = source.replace(tile, tile.replace("4", str(rows)))
    report = hw.check("addnorm-layer", of_source(source + FROM_HOMEWORK_4)["AddNorm"])
    assert [stage.name for stage in report.stages if not stage.passed] == lost, report


def test_a_layer_of_one_output_is_told():
    class One(InTorch):
        @staticmethod
        def forward(x, residual, weight, bias, eps):
            return InTorch.forward(x, residual, weight, bias, eps)[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

    assert (
        "forward returned 1 result, needs 2"
        in hw.check("addnorm-layer", One)["signature and shapes"].message
    )


def test_what_training_allows_is_rounding(answers):
    """A gradient that is wrong by a part in ten thousand million is noticed; the bound is a few roundings of a loss."""

    class Off(answers["AddNorm"]):
        @staticmethod
        def backward(ctx, dy, dresidual_out):
            dx, dresidual, *rest = answers["AddNorm"].backward(ctx, dy, dresidual_out)
            return dx * (1 + 1e-10), dresidual * (1 + 1e-10), *rest

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
    losses, bound = checks._losses(options, np.random.default_rng(0))
    assert (np.diff(losses) < 0).all()
    assert (
        bound
        < 100
        * SAFETY
        * (model.HIDDEN + ELEMENTWISE)
        * unit_roundoff("float64")
        * losses
    ).all()


def test_the_floor_is_below_what_the_reference_asks_for(answers):
    """By the statistics, the weight of each program after the first, and the partial sums: nothing else."""
    report, programs = hw.check("addnorm-layer", answers["AddNorm"]), checks.ROWS // 32
    more = 4 * checks.ROWS + checks.COLUMNS * (
        2 * (programs - 1) + programs - 1 + 2 * programs - 2
    )
    message = report["bytes within 5 % of the floor"].message
    assert message.startswith(f"{checks.floor() + 8 * more} bytes"), message


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", ["reference", "torch"])
def test_in_a_process_of_its_own(answers, tmp_path, name):
    """Where neither the package nor torch's own derivatives are there, a training runs all the same."""
    source = solutions.solution("hw8")
    if name == "torch":
        layer = inspect.getsource(InTorch).replace("class InTorch", "class AddNorm")
        source = f"import torch\n{layer}\n{inspect.getsource(loop).replace('def loop', 'def gradient_norms')}"
    (tmp_path / "solution.py").write_text(source, encoding="utf8")
    layer, norms = grade_file(tmp_path / "solution.py", "hw8")
    assert norms.passed, norms
    assert layer.points == layer.max_points - 4 * (name == "torch"), layer
