"""Every argument of every public function and module, and a call in which it must change what comes out.

A row is (subject, context, argument). The arguments are read from signatures, so that a new one is in the table, and
without a variation in it. A package is given to every function here, since the tests run the rows on wrong ones, too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from functools import cache, partial
from importlib import import_module
from unittest import mock

import numpy as np
import torch

import normgrad

SEED, SHAPE = 20240504, (2, 3, 4)
PLAIN = ("outputs", "gradients")
ALL = (*PLAIN, "second", "compiled")


@dataclass(frozen=True)
class Change:
    """A variation of one argument: its other value, and what is passed besides, before the change and after it."""

    value: object
    base: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """What has arguments, how it is called, and a Change of each of them.

    Args:  target: what has the signature; call: arguments -> (outputs, parameters); base: {argument: value}
           changes: {argument: Change}; contexts: where the rows are run
    """

    target: Callable
    call: Callable
    base: dict
    changes: dict
    contexts: tuple[str, ...] = PLAIN

    @property
    def arguments(self):
        """The names in the signature."""
        return list(inspect.signature(self.target).parameters)


def draw(number, *shape, dtype=torch.bfloat16):
    """The numbered tensor of the table: 16 bits, so that every rounding is seen."""
    generator = torch.Generator().manual_seed(SEED + number)
    return torch.randn(*shape, generator=generator).to(dtype)


def _four(number):
    """Four tensors by name, from a number on."""
    last = {"dtype": torch.float32}
    return {
        "input": draw(number, *SHAPE),
        "residual": draw(number + 1, *SHAPE),
        "weight": draw(number + 2, SHAPE[-1], **last),
        "bias": draw(number + 3, SHAPE[-1], **last),
    }


TENSORS, OTHER = _four(0), _four(4)


def submodule(package, name):
    """A module of the package, normgrad's own or a wrong one's."""
    return import_module(f"{package.__name__}.{name}")


# What is common to the functions, and the arguments that several of them have


def _tensors(*names):
    return {name: TENSORS[name] for name in names}


def _other(*names):
    return {name: Change(OTHER[name]) for name in names}


def _outputs(outputs):
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [t for t in outputs if t is not None]


OPTIONS = {"out_dtype": Change(torch.float32), "backend": Change("triton")}
SUM_OPTIONS = {"residual_dtype": Change(torch.float32), "round_residual": Change(False)}
COMMON = {
    "eps": Change(0.5),
    "weight_offset": Change(1.0),
    "portable_sums": Change(True),
    **OPTIONS,
    **SUM_OPTIONS,
}
CONSTRUCTOR = {
    "normalized_shape": Change((3, 4)),
    "eps": Change(0.5),
    "elementwise_affine": Change(False),
    "bias": Change(False),
    "device": Change("meta"),
    "dtype": Change(torch.bfloat16),
    "weight_offset": Change(1.0),
    "casting": Change("llama"),
    "heads": Change(3),
    **OPTIONS,
}
NO_BIAS = "no derivative by another argument depends on the bias"
SUMS = "it is about the sums of gradients that kernels take"
# {(argument, context): why it changes nothing there}
ROUNDING = "which norms are replaced, and no number; see test_replace_models.py"
REASONS = {
    **{("bias", context): NO_BIAS for context in ("gradients", "second")},
    **{("portable_sums", c): SUMS for c in ALL if c not in ("gradients", "compiled")},
    **{("way", c): "each way computes the same" for c in (*PLAIN, "second")},
    (
        "round_residual",
        "second",
    ): "what is differentiated again takes its statistics from residual_out",
    **{("rounding", c): ROUNDING for c in PLAIN},
    ("device", "gradients"): "a meta tensor has no numbers",
}
# Of heads in a function: a weight of one shape is refused with them, of the other without; see test_contract.py.
UNVARIED = ("heads",)


def _function(target, *tensors, base=None, contexts=PLAIN, **changes):
    """A function of torch tensors that returns a tensor or several; `changes` are its own, beside COMMON."""

    def call(arguments):
        return _outputs(target(**arguments)), []

    has_backend = "backend" in inspect.signature(target).parameters
    backend = {"backend": "torch"} if has_backend else {}
    absent = dict.fromkeys(set(tensors) & {"weight", "bias"})
    reshaped = {"normalized_shape": Change((3, 4), absent)}
    return Subject(
        target,
        call,
        {**_tensors(*tensors), **backend, **(base or {})},
        {**_other(*tensors), **COMMON, **reshaped, **changes},
        contexts,
    )


def _fill(module):
    generator = torch.Generator().manual_seed(SEED)
    for parameter in module.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def _module(nn, name, wrapped):
    """A module's constructor, called on the tensors; wrapped in AddNorm the norm's arguments must matter as well."""
    inputs = ("input", "residual")[: 1 + wrapped]

    def call(arguments):
        options = {n: v for n, v in arguments.items() if n not in inputs}
        norm = _fill(getattr(nn, name)(**options))
        module = nn.AddNorm(norm) if wrapped else norm
        device = next((parameter.device for parameter in norm.parameters()), None)
        tensors = [arguments[name].to(device) for name in inputs]
        return _outputs(module(*tensors)), list(norm.parameters())

    base = {"normalized_shape": 4, "backend": "torch", **_tensors(*inputs)}
    return Subject(getattr(nn, name), call, base, CONSTRUCTOR)


def _forward(module, norm, *inputs):
    """The arguments of a module's forward."""

    def call(arguments):
        return _outputs(module(**arguments)), list(norm.parameters())

    target = partial(type(module).forward, None)
    return Subject(target, call, _tensors(*inputs), _other(*inputs))


def _stack(target, norms, final, changed):
    """A residual stack of two layers."""

    def call(arguments):
        used = [*arguments["norms"], *filter(None, [arguments.get("final_norm")])]
        parameters = [parameter for norm in used for parameter in norm.parameters()]
        return _outputs(target(**arguments)), parameters

    base = {"x": TENSORS["input"], "layers": [torch.tanh, torch.sin], "norms": norms}
    changes = {
        "x": Change(OTHER["input"]),
        "layers": Change([torch.tanh, torch.cos]),
        "norms": Change([norms[0], changed]),
        "final_norm": Change(changed),
    }
    return Subject(target, call, base | final, changes)


def _arrays(tensors):
    arrays = {name: t.double().numpy() for name, t in tensors.items()}
    return {"x": arrays.pop("input"), **arrays}


def _numpy(target, names, base, changes):
    """A function of the reference, whose result has the outputs under these names."""

    def call(arguments):
        result = target(**arguments)
        arrays = _outputs(tuple(getattr(result, name) for name in names))
        return [torch.from_numpy(np.asarray(array)) for array in arrays], []

    return Subject(target, call, base, changes, ("outputs",))


@cache
def subjects(package):
    """{name: Subject} of a package."""
    nn, residual, reference, double_backward = (
        submodule(package, name)
        for name in ("nn", "residual", "numpy_ref", "teaching.double_backward")
    )

    def norm(eps=1e-5, kind="LayerNorm"):
        return _fill(getattr(nn, kind)(4, eps=eps, backend="torch"))

    def spec_call(arguments):
        named = {name: arguments[name] for name in TENSORS}
        backend = arguments.get("backend", "torch")
        options = {
            name: value
            for name, value in arguments.items()
            if name not in (*TENSORS, "backend")
        }
        spec = package.NormSpec(**options)
        return _outputs(package.add_normalize(**named, spec=spec, backend=backend)), []

    def add_norm_call(arguments):
        inputs = TENSORS | arguments
        options = {
            name: value
            for name, value in arguments.items()
            if name not in ("input", "residual")
        }
        outputs = nn.AddNorm(**options)(inputs["input"], inputs["residual"])
        return _outputs(outputs), list(options["norm"].parameters())

    def replace_norms_call(arguments):
        """A copy of the model changed, and run."""
        model = arguments["model"]
        if isinstance(model, torch.nn.Module):
            model = copy.deepcopy(model)
        nn.replace_norms(**arguments | {"model": model})
        return _outputs(model(TENSORS["input"].float())), list(model.parameters())

    def of_torch(eps=1e-5):
        return _fill(torch.nn.Sequential(torch.nn.LayerNorm(4, eps)))

    defaults = {field.name: field.default for field in fields(package.NormSpec)}
    of_spec = {
        "center": Change(False),
        "reduce": Change("sum"),
        "scale": Change(1.5),
        "eps": Change(0.5),
        "placement": Change("outside", {"eps": 0.5}),
        "weight_offset": Change(1.0),
    }
    shaped, rms = {"normalized_shape": 4}, Change(package.RMS_NORM)
    function = {
        name: partial(_function, getattr(package, name))
        for name in (
            *("normalize", "add_normalize", "layer_norm", "rms_norm", "l2_norm"),
            *("add_layer_norm", "add_rms_norm"),
        )
    }
    norms, changed = [norm(kind="RMSNorm"), norm()], norm(0.5)
    plain, rms_norm = norm(), norm(kind="RMSNorm")
    arrays, other_arrays = _arrays(TENSORS), _arrays(OTHER)
    saved = [
        reference.forward(**arrays, spec=package.LAYER_NORM.replace(eps=eps))
        for eps in (0.5, 0.1)
    ]
    return {
        "normalize": function["normalize"]("input", "weight", "bias", spec=rms),
        "add_normalize": function["add_normalize"](*TENSORS, contexts=ALL, spec=rms),
        "NormSpec": Subject(
            package.NormSpec, spec_call, {**TENSORS, **defaults}, of_spec, ALL
        ),
        "layer_norm": function["layer_norm"]("input", "weight", "bias", base=shaped),
        "rms_norm": function["rms_norm"]("input", "weight", base=shaped),
        "l2_norm": function["l2_norm"]("input", dim=Change(-2), eps=Change(3.0)),
        "add_layer_norm": function["add_layer_norm"](*TENSORS, base=shaped),
        "add_rms_norm": function["add_rms_norm"](
            "input", "residual", "weight", base=shaped
        ),
        "nn.LayerNorm": _module(nn, "LayerNorm", False),
        "nn.RMSNorm": _module(nn, "RMSNorm", False),
        "nn.AddNorm of LayerNorm": _module(nn, "LayerNorm", True),
        "nn.AddNorm of RMSNorm": _module(nn, "RMSNorm", True),
        "nn.AddNorm": Subject(
            nn.AddNorm,
            add_norm_call,
            {"norm": plain},
            {"norm": Change(changed), **SUM_OPTIONS},
        ),
        "nn.replace_norms": Subject(
            nn.replace_norms,
            replace_norms_call,
            {"model": of_torch(), "backend": "torch"},
            {"model": Change(of_torch(0.5)), "backend": OPTIONS["backend"]},
        ),
        "nn.LayerNorm.forward": _forward(plain, plain, "input"),
        "nn.RMSNorm.forward": _forward(rms_norm, rms_norm, "input"),
        "nn.AddNorm.forward": _forward(nn.AddNorm(plain), plain, "input", "residual"),
        **{
            f"residual.{name}": _stack(getattr(residual, name), norms, final, changed)
            for name, final in (
                ("naive_stack", {"final_norm": norm(1e-3)}),
                ("fused_stack", {"final_norm": norm(1e-3)}),
                ("naive_post_norm", {}),
                ("fused_post_norm", {}),
            )
        },
        "numpy_ref.forward": _numpy(
            reference.forward,
            ("y", "residual_out", "mean", "rstd"),
            arrays,
            {**{n: Change(a) for n, a in other_arrays.items()}, "spec": rms},
        ),
        "numpy_ref.backward": _numpy(
            reference.backward,
            ("dx", "dweight", "dbias"),
            {"dy": arrays["residual"], "saved": saved[0]},
            {
                "dy": Change(other_arrays["x"]),
                "saved": Change(saved[1]),
                "dresidual_out": Change(other_arrays["residual"]),
            },
        ),
        **{
            f"teaching.double_backward.layer_norm, {way}": _function(
                double_backward.layer_norm,
                *("weight", "bias"),
                base={"way": way, "x": TENSORS["input"]},
                contexts=(*PLAIN, "second"),
                x=Change(OTHER["input"]),
            )
            for way in ("recompute", "statistics", "explicit")
        },
    }


SUBJECTS = subjects(normgrad)


# Contexts: the derivatives that are taken, and of what


def _leaves(arguments):
    """The arguments with tensors of their own that require gradients, and those tensors."""
    fresh = {
        name: value.detach().clone().requires_grad_()
        for name, value in arguments.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    return arguments | fresh, list(fresh.values())


def _cotangents(tensors, number):
    return [
        draw(number + offset, *t.shape, dtype=torch.float32).to(t.dtype)
        for offset, t in enumerate(tensors)
    ]


def _gradients(outputs, leaves, **options):
    ends = [t for t in outputs if t.requires_grad]
    return torch.autograd.grad(ends, leaves, _cotangents(ends, 100), **options)


def _outcome_outputs(call, arguments):
    return call(arguments)[0]


def _outcome_gradients(call, arguments):
    arguments, leaves = _leaves(arguments)
    outputs, parameters = call(arguments)
    return list(_gradients(outputs, [*leaves, *parameters]))


def _outcome_second(call, arguments):
    arguments, leaves = _leaves(arguments)
    first = _gradients(call(arguments)[0], leaves, create_graph=True)
    first = [t for t in first if t.requires_grad]
    along = _cotangents(first, 200)
    return list(torch.autograd.grad(first, leaves, along, allow_unused=True))


def _outcome_compiled(call, arguments):
    torch._dynamo.reset()
    arguments, leaves = _leaves(arguments)

    def outputs_of(leaves_and_options):
        return call(leaves_and_options)[0]

    compiled = torch.compile(outputs_of, backend="aot_eager", fullgraph=True)
    outputs = compiled(arguments)
    return [*outputs, *_gradients(outputs, leaves)]


OUTCOMES = {
    "outputs": _outcome_outputs,
    "gradients": _outcome_gradients,
    "second": _outcome_second,
    "compiled": _outcome_compiled,
}


def _run(package, subject, context, arguments):
    """What comes out, and a note of each call of a kernel: where it is, and portable_sums."""
    kernels = mock.Mock()
    with ExitStack() as stack:
        for launcher in ("torch_ops.rows", "triton_kernels"):
            module = submodule(package, launcher)
            for name in ("forward", "backward"):
                watched = mock.patch.object(module, name, wraps=getattr(module, name))
                kernels.attach_mock(stack.enter_context(watched), f"{launcher}.{name}")
        outcome = OUTCOMES[context](subject.call, arguments)
    # in the order in which they were made
    notes = [
        (name, options.get("portable_sums")) for name, _, options in kernels.mock_calls
    ]
    return outcome, notes


@cache
def _base(package, name, context):
    """What comes out where nothing is changed."""
    subject = subjects(package)[name]
    return _run(package, subject, context, subject.base)


def _same(first, second):
    if first is None or second is None:
        return first is second
    kinds = [(t.dtype, t.shape, t.device) for t in (first, second)]
    return kinds[0] == kinds[1] and (first.is_meta or torch.equal(first, second))


def rows(package):
    """Every (subject, context, argument)."""
    return [
        (name, context, argument)
        for name, subject in subjects(package).items()
        for context in subject.contexts
        for argument in subject.arguments
    ]


def matters(package, row):
    """Whether the row's argument changes what comes out; True where the table says why it does not.

    Raises:  KeyError for an argument without a variation and without a reason
    """
    name, context, argument = row
    subject = subjects(package)[name]
    if (argument, context) in REASONS:
        return True
    if argument in UNVARIED and argument not in subject.changes:
        return True
    change = subject.changes[argument]
    before, notes = _base(package, name, context)
    arguments = subject.base | change.base
    if change.base:
        before, notes = _run(package, subject, context, arguments)
    arguments[argument] = change.value
    after, other_notes = _run(package, subject, context, arguments)
    if argument == "backend":
        # Other kernels may give the same bits: each of the calls, forward and backward, is made elsewhere.
        pairs = zip(notes, other_notes, strict=True)
        return bool(notes) and all(note != after_note for note, after_note in pairs)
    same = len(before) == len(after) and all(map(_same, before, after))
    return not same or notes != other_notes


def finding(package, subject, argument, compiled):
    """The first row of a subject whose argument changes nothing, None where each does.

    Args:  argument: the one whose rows are looked at, None for all; compiled: only what is, or only what is not
    """
    for row in rows(package):
        asked = (
            row[0] == subject
            and argument in (None, row[2])
            and compiled == (row[1] == "compiled")
        )
        if asked and not matters(package, row):
            return row
    return None
