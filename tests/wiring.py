"""Every argument of every public function and module, and a call in which it must change what comes out.

A row is (subject, context, argument). The arguments are read from signatures, so that a new one is in the table, and
without a variation in it. A package is given to every function here, since the tests run the rows on wrong ones, too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache, partial
from importlib import import_module

import numpy as np
import torch
from torch.autograd import forward_ad

SEED, SHAPE = 20240504, (2, 3, 4)


@dataclass(frozen=True)
class Change:
    """A variation of one argument: its other value, and what is given besides, before the change and after it."""

    value: object
    given: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """What has arguments, how it is called, and a Change of each of them.

    Args:  target: package -> what has the signature; call: (package, arguments) -> (outputs, parameters)
           given: package -> {argument: value}; changes: package -> {argument: Change}
           contexts: where the rows are run; reasons: {(argument, context): why it changes nothing there}
    """

    target: Callable
    call: Callable
    given: Callable
    changes: Callable
    contexts: tuple[str, ...]
    reasons: dict = field(default_factory=dict)

    def arguments(self, package):
        """The names in the signature."""
        return list(inspect.signature(self.target(package)).parameters)


def draw(number, *shape, dtype=torch.bfloat16):
    """The numbered tensor of the table: 16 bits, so that every rounding is seen."""
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(SEED + number)
    ).to(dtype)


def _vector(number):
    return draw(number, SHAPE[-1], dtype=torch.float32)


TENSORS = {
    "input": draw(0, *SHAPE),
    "residual": draw(1, *SHAPE),
    "weight": _vector(2),
    "bias": _vector(3),
}
OTHER = {
    "input": draw(4, *SHAPE),
    "residual": draw(5, *SHAPE),
    "weight": _vector(6),
    "bias": _vector(7),
}


def submodule(package, name):
    """A module of the package, normgrad's own or a wrong one's."""
    return import_module(f"{package.__name__}.{name}" if name else package.__name__)


# What is common to the functions, and the arguments that several of them have


def _tensors(*names):
    return {name: TENSORS[name] for name in names}


def _other(*names):
    return {name: Change(OTHER[name]) for name in names}


def _outputs(outputs):
    return [
        t
        for t in (outputs if isinstance(outputs, tuple) else (outputs,))
        if t is not None
    ]


OPTIONS = {"out_dtype": Change(torch.float32), "backend": Change("triton")}
SUM_OPTIONS = {"residual_dtype": Change(torch.float32), "round_residual": Change(False)}
PLAIN = ("outputs", "gradients")
ALL = (
    *PLAIN,
    "second",
    "tangents",
    "nested tangents",
    "compiled",
)

NO_BIAS = "no derivative by another argument depends on the bias"
BIAS_REASONS = {
    ("bias", context): NO_BIAS for context in ("gradients", "second", "tangents")
}
NO_KERNEL = {
    ("backend", "nested tangents"): "the plain formula is the same on every backend"
}
SUMS = "it is about the sums of gradients that kernels take"
SUMS_REASONS = {
    ("portable_sums", context): SUMS
    for context in ALL
    if context not in ("gradients", "compiled")
}
AGAIN = {
    (
        "round_residual",
        "second",
    ): "what is differentiated again takes its statistics from residual_out",
}
SHAPES = "a weight of one shape is refused with heads, of the other without: test_contract.py"
HEADS_REASONS = {("heads", context): SHAPES for context in ALL}


def _function(
    name, *tensors, given=None, contexts=PLAIN, reasons=None, module="", **changes
):
    """A function of torch tensors that returns a tensor or several; `changes` are its own, beside COMMON."""

    def target(package):
        # a compiler traces no import
        return getattr(submodule(package, module) if module else package, name)

    def call(package, arguments):
        return _outputs(target(package)(**arguments)), []

    def all_changes(package):
        absent = dict.fromkeys(set(tensors) & {"weight", "bias"})
        reshaped = Change((3, 4), absent)
        own = {"spec": Change(package.RMS_NORM), "normalized_shape": reshaped}
        return {**_other(*tensors), **COMMON, **own, **changes}

    backend = {} if module else {"backend": "torch"}
    return Subject(
        target,
        call,
        lambda _: {**_tensors(*tensors), **backend, **(given or {})},
        all_changes,
        contexts,
        BIAS_REASONS | HEADS_REASONS | SUMS_REASONS | (reasons or {}),
    )


def _module(name, wrapped):
    """A module's constructor, called on the tensors; wrapped in AddNorm the norm's arguments must matter as well."""

    def target(package):
        return getattr(submodule(package, "nn"), name)

    inputs = ("input", "residual")[: 1 + wrapped]

    def call(package, arguments):
        norm = target(package)(
            **{name: value for name, value in arguments.items() if name not in inputs}
        )
        _fill(norm)
        module = submodule(package, "nn").AddNorm(norm) if wrapped else norm
        device = next((parameter.device for parameter in norm.parameters()), None)
        tensors = [arguments[name].to(device) for name in inputs]
        return _outputs(module(*tensors)), list(norm.parameters())

    given = {"normalized_shape": 4, "backend": "torch", **_tensors(*inputs)}
    return Subject(
        target,
        call,
        lambda _: given,
        lambda _: CONSTRUCTOR,
        PLAIN,
        BIAS_REASONS | DEVICE_REASONS,
    )


def _fill(module):
    generator = torch.Generator().manual_seed(SEED)
    for parameter in module.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))


NO_NUMBERS = "a meta tensor has no numbers"
DEVICE_REASONS = {("device", "gradients"): NO_NUMBERS}
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


def _add_norm(package, arguments):
    nn, inputs = submodule(package, "nn"), ("input", "residual")
    options = {
        name: value
        for name, value in arguments.items()
        if name not in (*inputs, "norm")
    }
    norm = arguments["norm"]
    module = nn.AddNorm(norm, **options)
    tensors = {name: arguments.get(name, TENSORS[name]) for name in inputs}
    return _outputs(module(**tensors)), list(norm.parameters())


def _replace_norms(package, arguments):
    """A copy of the model changed, and run."""
    model, nn = arguments["model"], submodule(package, "nn")
    model = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model
    nn.replace_norms(**arguments | {"model": model})
    return _outputs(model(TENSORS["input"].float())), list(model.parameters())


def _of_torch(eps=1e-5):
    model = torch.nn.Sequential(torch.nn.LayerNorm(4, eps))
    _fill(model)
    return model


def _norm(package, eps=1e-5, kind="LayerNorm"):
    norm = getattr(submodule(package, "nn"), kind)(4, eps=eps, backend="torch")
    _fill(norm)
    return norm


def _forward(name, *inputs):
    """The arguments of a module's forward."""

    def target(package):
        return partial(getattr(submodule(package, "nn"), name).forward, None)

    def call(package, arguments):
        norm = _norm(package, kind="RMSNorm" if name == "RMSNorm" else "LayerNorm")
        module = submodule(package, "nn").AddNorm(norm) if name == "AddNorm" else norm
        return _outputs(module(**arguments)), list(norm.parameters())

    return Subject(
        target, call, lambda _: _tensors(*inputs), lambda _: _other(*inputs), PLAIN
    )


def _stack(name, final):
    """A residual stack of two layers."""

    def target(package):
        return getattr(submodule(package, "residual"), name)

    def call(package, arguments):
        norms = [*arguments["norms"], *[n for n in [arguments.get("final_norm")] if n]]
        return _outputs(target(package)(**arguments)), [
            p for n in norms for p in n.parameters()
        ]

    def given(package):
        norms = [_norm(package, kind="RMSNorm"), _norm(package)]
        last = {"final_norm": _norm(package, 1e-3)} if final else {}
        return {
            "x": TENSORS["input"],
            "layers": [torch.tanh, torch.sin],
            "norms": norms,
            **last,
        }

    def changes(package):
        first, second = given(package)["norms"]
        changed = {
            "x": Change(OTHER["input"]),
            "layers": Change([torch.tanh, torch.cos]),
            "norms": Change([first, _norm(package, 0.5)]),
        }
        return changed | ({"final_norm": Change(_norm(package, 0.5))} if final else {})

    return Subject(target, call, given, changes, PLAIN)


def _spec_changes(package):
    return {
        "center": Change(False),
        "reduce": Change("sum"),
        "scale": Change(1.5),
        "eps": Change(0.5),
        "placement": Change("outside", {"eps": 0.5}),
        "weight_offset": Change(1.0),
    }


def _normalize_spec(package, arguments):
    named = {name: arguments[name] for name in TENSORS}
    spec = package.NormSpec(
        **{
            name: value
            for name, value in arguments.items()
            if name not in (*TENSORS, "backend")
        }
    )
    backend = arguments.get("backend", "torch")
    return _outputs(package.add_normalize(**named, spec=spec, backend=backend)), []


def _spec_given(package):
    return {
        spec_field.name: spec_field.default for spec_field in fields(package.NormSpec)
    }


ARRAYS = {name: t.double().numpy() for name, t in TENSORS.items()}
OTHER_ARRAYS = {name: t.double().numpy() for name, t in OTHER.items()}


def _as_numpy(tensors):
    return {
        ("x" if name == "input" else name): array for name, array in tensors.items()
    }


def _numpy_outputs(*arrays):
    return [
        torch.from_numpy(np.asarray(array)) for array in arrays if array is not None
    ], []


def _numpy_forward(package, arguments):
    saved = package.numpy_ref.forward(**arguments)
    return _numpy_outputs(saved.y, saved.residual_out, saved.mean, saved.rstd)


def _numpy_backward(package, arguments):
    grads = package.numpy_ref.backward(**arguments)
    return _numpy_outputs(grads.dx, grads.dweight, grads.dbias)


def _saved(package, arrays, eps=0.5):
    return package.numpy_ref.forward(
        **_as_numpy(arrays), spec=package.LAYER_NORM.replace(eps=eps)
    )


COMMON = {
    "eps": Change(0.5),
    "weight_offset": Change(1.0),
    "portable_sums": Change(True),
    **OPTIONS,
    **SUM_OPTIONS,
}
SHAPED = {"normalized_shape": 4}
SAME_WAYS = "each way computes the same"

SUBJECTS = {
    "normalize": _function("normalize", "input", "weight", "bias"),
    "add_normalize": _function(
        "add_normalize", *TENSORS, contexts=ALL, reasons=NO_KERNEL | AGAIN
    ),
    "NormSpec": Subject(
        lambda package: package.NormSpec,
        _normalize_spec,
        lambda package: {**TENSORS, **_spec_given(package)},
        _spec_changes,
        ALL,
    ),
    "layer_norm": _function("layer_norm", "input", "weight", "bias", given=SHAPED),
    "rms_norm": _function("rms_norm", "input", "weight", given=SHAPED),
    "l2_norm": _function("l2_norm", "input", dim=Change(-2), eps=Change(3.0)),
    "add_layer_norm": _function("add_layer_norm", *TENSORS, given=SHAPED),
    "add_rms_norm": _function(
        "add_rms_norm", "input", "residual", "weight", given=SHAPED
    ),
    "nn.LayerNorm": _module("LayerNorm", False),
    "nn.RMSNorm": _module("RMSNorm", False),
    "nn.AddNorm of LayerNorm": _module("LayerNorm", True),
    "nn.AddNorm of RMSNorm": _module("RMSNorm", True),
    "nn.AddNorm": Subject(
        lambda package: package.nn.AddNorm,
        _add_norm,
        lambda package: {"norm": _norm(package)},
        lambda package: {"norm": Change(_norm(package, 0.5)), **SUM_OPTIONS},
        PLAIN,
    ),
    "nn.replace_norms": Subject(
        lambda package: package.nn.replace_norms,
        _replace_norms,
        lambda _: {"model": _of_torch(), "backend": "torch"},
        lambda _: {"model": Change(_of_torch(0.5)), "backend": OPTIONS["backend"]},
        PLAIN,
    ),
    "nn.LayerNorm.forward": _forward("LayerNorm", "input"),
    "nn.RMSNorm.forward": _forward("RMSNorm", "input"),
    "nn.AddNorm.forward": _forward("AddNorm", "input", "residual"),
    "residual.naive_stack": _stack("naive_stack", True),
    "residual.fused_stack": _stack("fused_stack", True),
    "residual.naive_post_norm": _stack("naive_post_norm", False),
    "residual.fused_post_norm": _stack("fused_post_norm", False),
    "numpy_ref.forward": Subject(
        lambda package: package.numpy_ref.forward,
        _numpy_forward,
        lambda _: _as_numpy(ARRAYS),
        lambda package: {
            **{name: Change(array) for name, array in _as_numpy(OTHER_ARRAYS).items()},
            "spec": Change(package.RMS_NORM),
        },
        ("outputs",),
        HEADS_REASONS,
    ),
    "numpy_ref.backward": Subject(
        lambda package: package.numpy_ref.backward,
        _numpy_backward,
        lambda package: {"dy": ARRAYS["residual"], "saved": _saved(package, ARRAYS)},
        lambda package: {
            "dy": Change(OTHER_ARRAYS["input"]),
            "saved": Change(_saved(package, ARRAYS, 0.1)),
            "dresidual_out": Change(OTHER_ARRAYS["residual"]),
        },
        ("outputs",),
    ),
    **{
        f"teaching.double_backward.layer_norm, {way}": _function(
            "layer_norm",
            *("weight", "bias"),
            given={"way": way, "x": TENSORS["input"]},
            contexts=(*PLAIN, "second"),
            reasons={("way", context): SAME_WAYS for context in (*PLAIN, "second")},
            module="teaching.double_backward",
            x=Change(OTHER["input"]),
        )
        for way in ("recompute", "statistics", "explicit")
    },
}


# Contexts: the derivatives that are taken, and of what


def _leaves(arguments):
    """The arguments with tensors of their own that require gradients, and those tensors by name."""
    fresh = {
        name: value.detach().clone().requires_grad_()
        for name, value in arguments.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    return arguments | fresh, fresh


def _cotangents(tensors, number):
    return [
        draw(number + offset, *t.shape, dtype=torch.float32).to(t.dtype)
        for offset, t in enumerate(tensors)
    ]


def _found_gradients(outputs, leaves, **options):
    ends = [t for t in outputs if t.requires_grad]
    return torch.autograd.grad(ends, leaves, _cotangents(ends, 100), **options)


def _outcome_outputs(call, arguments):
    return call(arguments)[0]


def _outcome_gradients(call, arguments):
    arguments, leaves = _leaves(arguments)
    outputs, parameters = call(arguments)
    return list(_found_gradients(outputs, [*leaves.values(), *parameters]))


def _outcome_second(call, arguments):
    arguments, leaves = _leaves(arguments)
    outputs, _ = call(arguments)
    first = _found_gradients(outputs, list(leaves.values()), create_graph=True)
    first = [t for t in first if t.requires_grad]
    return list(
        torch.autograd.grad(
            first, list(leaves.values()), _cotangents(first, 200), allow_unused=True
        )
    )


def _tensor_function(call, arguments):
    """A function of the tensors alone, and the tensors."""
    tensors = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, torch.Tensor)
    }

    def function(*values):
        return tuple(call(arguments | dict(zip(tensors, values, strict=True)))[0])

    return function, tuple(tensors.values())


def _outcome_tangents(call, arguments):
    function, tensors = _tensor_function(call, arguments)
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(t, dot)
            for t, dot in zip(tensors, _cotangents(tensors, 300), strict=True)
        ]
        return [forward_ad.unpack_dual(t).tangent for t in function(*duals)]


def _outcome_nested(call, arguments):
    """The outputs inside two forward-mode transforms, and their second derivatives."""
    function, tensors = _tensor_function(call, arguments)
    first, second = (tuple(_cotangents(tensors, number)) for number in (300, 400))
    outputs, tangents = torch.func.jvp(
        lambda *values: torch.func.jvp(function, values, first), tensors, second
    )
    return [*outputs[0], *tangents[1]]


def _outcome_compiled(call, arguments):
    torch._dynamo.reset()
    arguments, leaves = _leaves(arguments)
    compiled = torch.compile(
        lambda leaves_and_options: call(leaves_and_options)[0],
        backend="aot_eager",
        fullgraph=True,
    )
    outputs = compiled(arguments)
    return [*outputs, *_found_gradients(outputs, list(leaves.values()))]


OUTCOMES = {
    "outputs": _outcome_outputs,
    "gradients": _outcome_gradients,
    "second": _outcome_second,
    "tangents": _outcome_tangents,
    "nested tangents": _outcome_nested,
    "compiled": _outcome_compiled,
}


class _Watched:
    """The kernels of a package, with a note of each call: which module, which function, and portable_sums."""

    def __init__(self, package):
        self.notes, self.modules = [], [submodule(package, name) for name in LAUNCHERS]

    def __enter__(self):
        self.originals = [(module, name, getattr(module, name)) for module in self.modules for name in KERNELS
                          if hasattr(module, name)]  # fmt: skip
        for module, name, original in self.originals:
            setattr(
                module,
                name,
                partial(
                    self._noted, module.__name__.rpartition(".")[2], name, original
                ),
            )
        return self.notes

    def _noted(self, module, name, original, *arguments, **options):
        self.notes.append((module, name, options.get("portable_sums")))
        return original(*arguments, **options)

    def __exit__(self, *_):
        for module, name, original in self.originals:
            setattr(module, name, original)


KERNELS = ("forward", "backward")
LAUNCHERS = ("torch_ops.rows", "triton_kernels")


def _run(package, subject, context, arguments):
    with _Watched(package) as notes:
        outcome = OUTCOMES[context](partial(subject.call, package), arguments)
    return outcome, notes


@cache
def _base(package, name, context):
    """What comes out where nothing is changed."""
    return _run(package, SUBJECTS[name], context, SUBJECTS[name].given(package))


def _same(first, second):
    if first is None or second is None:
        return first is second
    kinds = [(t.dtype, t.shape, t.device) for t in (first, second)]
    return kinds[0] == kinds[1] and (first.is_meta or torch.equal(first, second))


def rows(package):
    """Every (subject, context, argument)."""
    return [
        (name, context, argument)
        for name, subject in SUBJECTS.items()
        for context in subject.contexts
        for argument in subject.arguments(package)
    ]


def matters(package, row):
    """Whether the row's argument changes what comes out; True where the table says why it does not.

    Raises:  KeyError for an argument without a variation and without a reason
    """
    name, context, argument = row
    subject = SUBJECTS[name]
    if (argument, context) in subject.reasons:
        return True
    change = subject.changes(package)[argument]
    arguments = subject.given(package) | change.given
    before, notes = (
        _run(package, subject, context, arguments)
        if change.given
        else _base(package, name, context)
    )
    after, other_notes = _run(
        package, subject, context, arguments | {argument: change.value}
    )
    if argument == "backend":
        # Other kernels may give the same bits: each of the calls, forward and backward, is made elsewhere.
        return bool(notes) and all(
            before_note != after_note
            for before_note, after_note in zip(notes, other_notes, strict=True)
        )
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
