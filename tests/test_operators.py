"""torch.compile: the two custom operators, what a compiler sees of them, and that it changes no bit."""

import shutil

import pytest
import torch
from functorch.compile import make_boxed_func
from near import near
from processes import UNSET, python
from torch.autograd import forward_ad
from torch.library import opcheck

import normgrad
from normgrad import nn
from normgrad.checks.cases import SPECS
from normgrad.torch_ops import torch_compile
from normgrad.torch_ops.arguments import check_options

BF16, F32 = torch.bfloat16, torch.float32
# name: (spec, whether there are a residual, a weight and a bias, the dtypes of x, residual and parameters, options)
CONFIGURATIONS = {
    "layer norm": ("layer_norm", (False, True, True), (F32, F32, F32), {}),
    "add, layer norm": ("layer_norm", (True, True, True), (F32, F32, F32), {}),
    "rms norm": ("rms_norm", (False, True, False), (BF16, BF16, BF16), {}),
    "l2 norm": ("l2_norm", (False, False, False), (F32, F32, F32), {"out_dtype": BF16}),
    "stream": (
        "rms_norm",
        (True, True, False),
        (BF16, F32, F32),
        {"portable_sums": True},
    ),
    "unrounded": (
        "layer_norm_std",
        (True, True, True),
        (BF16, BF16, F32),
        {"round_residual": False},
    ),
    "heads": ("layer_norm", (True, True, True), (F32, F32, F32), {"heads": 3}),
    "wide": (
        "layer_norm_clamp",
        (True, False, True),
        (BF16, BF16, F32),
        {"residual_dtype": F32, "out_dtype": F32},
    ),
}
DIFFERENTIATED = ("x", "residual", "weight", "bias")


def _draw(name, rng, rows=3, columns=5):
    """spec, the tensors by name, the options and two cotangents."""
    spec, present, dtypes, options = CONFIGURATIONS[name]
    vector = (rows, columns) if "heads" in options else (columns,)
    shapes = ((2, rows, columns), (2, rows, columns), vector, vector)
    given = zip(
        DIFFERENTIATED, (True, *present), shapes, (*dtypes, dtypes[2]), strict=True
    )
    tensors = {
        n: torch.randn(*shape, generator=rng).to(dtype).requires_grad_()
        if there
        else None
        for n, there, shape, dtype in given
    }
    return (
        SPECS[spec],
        tensors,
        options,
        [torch.randn(shapes[0], generator=rng) for _ in range(2)],
    )


def _function(spec, options, backend="torch"):
    def function(x, residual, weight, bias):
        named = {"spec": spec, "backend": backend, **options}
        if residual is None:
            return (normgrad.normalize(x, weight, bias, **named),)
        return normgrad.add_normalize(x, residual, weight, bias, **named)

    return function


def _outputs_and_gradients(function, tensors, cotangents):
    outputs = function(**tensors)
    outputs = outputs[: 1 if tensors["residual"] is None else 2]
    wanted = [t for t in tensors.values() if t is not None]
    cotangents = [dy.to(y.dtype) for y, dy in zip(outputs, cotangents, strict=False)]
    return [*outputs, *torch.autograd.grad(outputs, wanted, cotangents)]


def _compiled(function, backend="aot_eager", **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True, **options)


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor"
)  # the tracer's own look, in torch 2.14
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_opcheck_forward(name, torch_rng):
    spec, tensors, options, _ = _draw(name, torch_rng)
    scalars = torch_compile.scalars_of(
        check_options(tensors["x"], tensors["residual"], **options)
    )
    opcheck(
        torch_compile.forward,
        (*tensors.values(), *torch_compile.scalars_of(spec), *scalars, "torch"),
    )


@pytest.mark.parametrize("backend", ["torch", "triton", "numba"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_compiled_is_eager_bit_for_bit(name, backend, torch_rng):
    spec, tensors, options, cotangents = _draw(name, torch_rng)
    function = _function(spec, options, backend)
    eager = _outputs_and_gradients(function, tensors, cotangents)
    compiled = _outputs_and_gradients(_compiled(function), tensors, cotangents)
    for got, want in zip(compiled, eager, strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated"
)  # inductor's own use
@pytest.mark.skipif(
    shutil.which("g++") is None, reason="on a CPU inductor needs a C++ compiler"
)
def test_inductor_is_eager_bit_for_bit(torch_rng):
    spec, tensors, options, cotangents = _draw("stream", torch_rng)
    function = _function(spec, options)
    eager = _outputs_and_gradients(function, tensors, cotangents)
    compiled = _outputs_and_gradients(
        _compiled(function, "inductor"), tensors, cotangents
    )
    assert all(
        torch.equal(got, want) for got, want in zip(compiled, eager, strict=True)
    )


def test_a_call_in_eager_mode_imports_no_compiler():
    """It would import Triton to compile, and without a GPU Triton could then not interpret."""
    code = (
        "import sys, torch, normgrad\n"
        "before = set(sys.modules)\n"
        "normgrad.layer_norm(torch.ones(2, 3, requires_grad=True), 3).backward(torch.ones(2, 3))\n"
        "assert not {'triton', 'torch._dynamo'} & (set(sys.modules) - before)"
    )
    done = python("-c", code, env=UNSET)
    assert done.returncode == 0, done.stderr


def test_a_compiler_sees_one_operator_each_way(torch_rng):
    seen = []

    def keep(graph, _inputs):
        seen.append(
            [
                str(node.target)
                for node in graph.graph.nodes
                if "normgrad" in str(node.target)
            ]
        )
        return make_boxed_func(graph.forward)

    spec, tensors, options, cotangents = _draw("add, layer norm", torch_rng)
    both = torch._dynamo.backends.common.aot_autograd(
        fw_compiler=keep, bw_compiler=keep
    )
    _outputs_and_gradients(
        _compiled(_function(spec, options), both), tensors, cotangents
    )
    assert seen == [["normgrad.forward.default"], ["normgrad.backward.default"]]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_modules_in_place_operations_and_separate_gradients(backend, torch_rng):
    """AddNorm compiled; its outputs may be modified; the gradients of input and residual do not share memory."""
    module = nn.AddNorm(nn.LayerNorm(5, backend="torch"))
    torch.nn.init.normal_(module.norm.weight, generator=torch_rng)
    x, residual, dy = (
        torch.randn(3, 5, generator=torch_rng, requires_grad=True) for _ in range(3)
    )
    expected = torch.autograd.grad(
        torch.relu(module(x, residual)[0]), (x, module.norm.weight), dy
    )
    torch.relu_(_compiled(module, backend)(x, residual)[0]).backward(dy)
    assert torch.equal(x.grad, expected[0]) and torch.equal(
        module.norm.weight.grad, expected[1]
    )
    assert (
        torch.equal(residual.grad, x.grad)
        and residual.grad.data_ptr() != x.grad.data_ptr()
    )


# Derivatives of derivatives: right, or an error


@pytest.fixture
def problem(torch_rng):
    """add_layer_norm of the first tensor with all others fixed, the tensor and two more of its shape, float64."""
    tensors = [
        torch.randn(2, 5, generator=torch_rng, dtype=torch.float64) for _ in range(4)
    ]
    x, dy, dot, residual = tensors

    def function(x):
        return normgrad.add_layer_norm(x, residual, 5, dy[0], dot[0], backend="torch")[
            0
        ]

    return function, x, dy, dot


def test_a_compiled_backward_refuses_to_be_differentiated(problem):
    """In the words that torch has for its own layer_norm: in 2.11 the gradient is a constant, later they say more."""
    function, x, dy, dot = problem

    def theirs(x):
        return torch.nn.functional.layer_norm(x + dot, (5,), dy[0], dot[0])

    messages = []
    for each in (function, theirs):
        leaf = x.clone().requires_grad_()
        (dx,) = torch.autograd.grad(_compiled(each)(leaf), leaf, dy, create_graph=True)
        with pytest.raises(
            RuntimeError, match="double backward|does not require grad"
        ) as caught:
            dx.backward(dot)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


TRANSFORMS = {
    "grad of grad": "vjp(lambda x: vjp(f, x)[1](dy)[0], x)[1](dot)[0]",
    "jvp": "jvp(f, (x,), (dot,))[1]",
    "jvp of jvp": "jvp(lambda x: jvp(f, (x,), (dy,))[1], (x,), (dot,))[1]",
    "vmap": "vmap(f)(torch.stack([x, dy]))",
    "hessian": "hessian(lambda x: (f(x) * dy).sum())(x)",
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_inside_a_compiled_function(name, problem):
    """A custom operator would give a tangent of 0, and no error."""
    function, *point = problem

    scope = {"f": function, "torch": torch, **vars(torch.func)}
    transformed = eval(f"lambda x, dy, dot: {TRANSFORMS[name]}", scope)

    expected = transformed(*point)
    assert near(_compiled(transformed)(*point), expected, roundings=128)


def test_dual_numbers_are_not_dropped(problem):
    function, x, _, dot = problem
    expected = torch.func.jvp(function, (x,), (dot,))[1]
    compiled = _compiled(function)
    compiled(x)
    with forward_ad.dual_level():
        try:
            tangent = forward_ad.unpack_dual(
                compiled(forward_ad.make_dual(x, dot))
            ).tangent
        except (
            torch._dynamo.exc.Unsupported
        ) as error:  # torch 2.14 takes none into what it compiles, and says so
            assert "Attempted to wrap a dual tensor input" in str(error)
            return
    assert near(tangent, expected, roundings=128)
