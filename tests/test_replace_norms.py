"""replace_norms puts a norm only where it computes the same, and whoever holds the parameters notices nothing."""

import copy
import functools
from operator import methodcaller
from types import SimpleNamespace

import pytest
import torch
from near import near
from torch.nn import functional as F

from normgrad import NormSpec, nn

COLUMNS = 12


class Weighted(torch.nn.Module):
    """A weight, and a bias for those that ask for it."""

    has_bias, eps = False, 1e-6

    def __init__(self, columns=COLUMNS):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        if self.has_bias:
            self.bias = torch.nn.Parameter(torch.ones(columns))
        self.variance_epsilon = self.eps

    def rstd(self, x, eps=None):
        eps = self.variance_epsilon if eps is None else eps
        return torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    def x_hat(self, x):
        return x.float() * self.rstd(x.float())

    def centred(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x * self.rstd(x)


# name: what forward returns
FORWARD = {
    "LikeLlama": "self.weight * self.x_hat(x).to(x.dtype)",
    "LikeOlmo2": "(self.weight * self.x_hat(x)).to(x.dtype)",
    "LikeGemma": "(self.x_hat(x) * (1.0 + self.weight.float())).type_as(x)",
    "LikeT5": "self.weight * (x * self.rstd(x.float())).to(self.weight.dtype)",
    "LikeBert": "(self.centred(x.float()) * self.weight + self.bias).to(x.dtype)",
    # with a number among its attributes that is no eps
    "EpsInForward": "self.weight * (x * self.rstd(x.float(), 1e-5)).to(x.dtype)",
    # what is left, each wrong in one way
    "EpsOutsideNorm": "self.weight * (x / (1 / self.rstd(x.float(), 0) + self.variance_epsilon)).to(x.dtype)",
    "OtherEpsNorm": "self.weight * (x * self.rstd(x.float(), 2 * self.variance_epsilon)).to(x.dtype)",
    "UnbiasedNorm": "self.weight * (x * self.rstd(x.float() * (1 - 1 / x.shape[-1]) ** -0.5)).to(x.dtype)",
    "BiasedRMSNorm": "(self.weight * self.x_hat(x) + self.bias).to(x.dtype)",
    "NarrowNorm": "self.weight * x * self.rstd(x)",
    "LateWeightLayerNorm": "self.weight * self.centred(x.float()).to(x.dtype)",
    # as LikeOlmo2, but for rows in 16 bits beside a weight in float32
    "WidensMixedNorm": "(self.weight * self.x_hat(x)).to(self.weight.dtype)",
    # the values of LikeLlama, with statistics that are held fixed in the backward
    "DetachedNorm": "self.weight * (x.float() * self.rstd(x.float()).detach()).to(x.dtype)",
    "TrainingNorm": "self.weight * self.x_hat(x).to(x.dtype) * (2 if self.training else 1)",
}


def _class(name, **attributes):
    """A class of norms by what its forward returns."""
    scope = {}
    exec(f"def forward(self, x):\n    return {FORWARD[name]}", globals(), scope)
    return type(name, (Weighted,), scope | attributes)


BIAS = {
    "LikeBert": {"has_bias": True, "eps": 1e-12},
    "BiasedRMSNorm": {"has_bias": True},
}
NORMS = SimpleNamespace(
    **{name: _class(name, **BIAS.get(name, {})) for name in FORWARD}
)


# What is replaced


class LayerNormWithoutWeight(torch.nn.Module):
    """OLMo's first LayerNorm."""

    def __init__(self, columns=COLUMNS):
        super().__init__()
        self.normalized_shape = (columns,)

    def forward(self, x):
        return F.layer_norm(x.float(), self.normalized_shape, None, None, 1e-5).to(
            x.dtype
        )


class LayerNormOfALibrary(torch.nn.LayerNorm):
    """As timm's, which chooses among kernels."""

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class NamedRMSNorm(torch.nn.Module):
    """A weight whose name is another one in the state dict."""

    def __init__(self, columns):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return F.rms_norm(x, (len(self.scale),), self.scale, 1e-6)


RMS = NormSpec(center=False, eps=1e-6)
AFFINE = f"({COLUMNS},), eps=1e-06, elementwise_affine=True, bias=False"
REPLACED = {
    NORMS.LikeLlama: f"RMSNorm({AFFINE}, backend='torch', casting='llama')",
    NORMS.LikeOlmo2: f"RMSNorm({AFFINE}, backend='torch')",
    NORMS.LikeGemma: f"RMSNorm({AFFINE}, weight_offset=1.0, backend='torch')",
    NORMS.LikeT5: f"RMSNorm({AFFINE}, backend='torch', casting='llama')",
    NORMS.LikeBert: f"LayerNorm(({COLUMNS},), eps=1e-12, elementwise_affine=True, bias=True, backend='torch')",
    NORMS.EpsInForward: f"RMSNorm({AFFINE.replace('06', '05')}, backend='torch', casting='llama')",
    LayerNormWithoutWeight: f"LayerNorm({AFFINE.replace('06', '05').replace('True', 'False')}, backend='torch')",
    LayerNormOfALibrary: f"LayerNorm(({COLUMNS},), eps=1e-05, elementwise_affine=True, bias=True, backend='torch')",
    NamedRMSNorm: f"Normalize({RMS}, columns={COLUMNS}, weight='scale', backend='torch')",
    NORMS.BiasedRMSNorm: f"Normalize({RMS}, columns={COLUMNS}, weight='weight', bias='bias', backend='torch')",
    torch.nn.LayerNorm: f"LayerNorm(({COLUMNS},), eps=1e-05, elementwise_affine=True, bias=True, backend='torch')",
    torch.nn.RMSNorm: f"RMSNorm(({COLUMNS},), eps=None, elementwise_affine=True, bias=False, backend='torch')",
    functools.partial(torch.nn.LayerNorm, COLUMNS, bias=False): (
        f"LayerNorm(({COLUMNS},), eps=1e-05, elementwise_affine=True, bias=False, backend='torch')"
    ),
    functools.partial(torch.nn.RMSNorm, (3, COLUMNS), eps=0.1): (
        f"RMSNorm((3, {COLUMNS}), eps=0.1, elementwise_affine=True, bias=False, backend='torch')"
    ),
}  # fmt: skip


def _fill(model, generator):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return model


def _made(kind, generator):
    return _fill(kind(COLUMNS) if isinstance(kind, type) else kind(), generator)


def _gradients(module, x, dy):
    x = x.clone().requires_grad_()
    y = module(x)
    return [y, *torch.autograd.grad(y, [x, *module.parameters()], dy.to(y.dtype))]


@pytest.mark.parametrize(
    "kind",
    REPLACED,
    ids=lambda kind: getattr(kind, "__name__", str(kind.__class__.__name__)),
)
def test_what_computes_the_same_is_replaced_and_goes_on_to(kind, torch_rng):
    model = torch.nn.Sequential(_made(kind, torch_rng))
    theirs = copy.deepcopy(model)
    outcome = nn.replace_norms(model, backend="torch")
    assert (
        repr(model[0]) == REPLACED[kind]
        and list(outcome.replaced) == ["0"]
        and not outcome.left
    )
    x, dy = torch.randn(2, 5, 3, COLUMNS, generator=torch_rng)
    for dtype in (torch.float32, torch.bfloat16):
        of_theirs, of_ours = (
            _gradients(module.to(dtype), x.to(dtype), dy.to(dtype))
            for module in (theirs, model)
        )
        for got, want in zip(of_ours, of_theirs, strict=True):
            assert got.dtype == want.dtype
            assert near(got, want, dtype=str(dtype).removeprefix("torch."))
    if isinstance(theirs[0], Weighted):
        mixed = [module.float()(x.bfloat16()).dtype for module in (theirs, model)]
        assert mixed[0] == mixed[1]


# What is left, each wrong in one way


class LayerNorm2d(torch.nn.LayerNorm):
    """ConvNeXt's, as torchvision and timm have it."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ImagesToo(torch.nn.LayerNorm):
    """Of an image the channels, of all else the last axis."""

    def forward(self, x):
        if x.ndim < 4:
            return super().forward(x)
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class GatedRMSNorm(NORMS.LikeLlama):
    """Mamba2's."""

    def forward(self, hidden_states, gate=None):
        return super().forward(
            hidden_states if gate is None else hidden_states * F.silu(gate)
        )


class LoadsItsOwnRMSNorm(NORMS.LikeOlmo2):
    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        state_dict[f"{prefix}weight"] = state_dict[f"{prefix}weight"] + 1
        super()._load_from_state_dict(state_dict, prefix, *arguments)


class DetachedWithoutWeightNorm(LayerNormWithoutWeight):
    """The values of LayerNormWithoutWeight, and dx = dy."""

    def forward(self, x):
        return super().forward(x).detach() + (x - x.detach())


class PairNorm(NORMS.LikeLlama):
    def forward(self, x):
        return super().forward(x), x


class FirstColumnNorm(NORMS.LikeLlama):
    def forward(self, x):
        return super().forward(x)[..., :1]


class CalledInItsOwnWayNorm(NORMS.LikeOlmo2):
    def __call__(self, x):
        return 2 * super().__call__(x)


class InPlaceNorm(NORMS.LikeOlmo2):
    def forward(self, x):
        return x.copy_(super().forward(x))


class NoShapeNorm(torch.nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class NamedParameter(torch.nn.Parameter):
    """A parameter of another type, as shared ones are."""


def _renamed(norm):
    norm.weight = NamedParameter(torch.ones(COLUMNS))


def _buffered(norm):
    norm.register_buffer("shift", torch.zeros(COLUMNS))


def _changed(change, kind=torch.nn.LayerNorm):
    def make(columns):
        norm = kind(columns)
        change(norm)
        return norm

    return make


def _hook(*_):
    return None


# Hooks that hold the module, or see its last operation.
LEFT_HOOKS = {
    "register_backward_hook": "which sees the last operation",
    "register_load_state_dict_pre_hook": "which holds this very object",
}


class _Shifted(torch.nn.Module):
    def forward(self, weight):
        return weight + 1


def _parametrized(norm):
    torch.nn.utils.parametrize.register_parametrization(norm, "weight", _Shifted())


class LikeLlamaNorm(NORMS.LikeLlama):
    """With a name that says norm: what else looks like one is left without a word."""


NEITHER = "whose forward is no LayerNorm and no RMSNorm over the last axis"
ROUNDS = "in float32 and rounds elsewhere in bfloat16"
LEFT = {
    "eps outside": (NORMS.EpsOutsideNorm, "placement='outside') and whose gradients are not"),
    "another eps": (NORMS.OtherEpsNorm, NEITHER),
    "over N - 1 of 16384": (lambda _: NORMS.UnbiasedNorm(16384), NEITHER),
    "statistics in 16 bits": (NORMS.NarrowNorm, ROUNDS),
    "LayerNorm with a late weight": (NORMS.LateWeightLayerNorm, ROUNDS),
    "the weight's dtype": (NORMS.WidensMixedNorm, "makes something else than torch.bfloat16"),
    "statistics held fixed": (NORMS.DetachedNorm, "and whose gradients are not"),
    "statistics held fixed, no weight": (DetachedWithoutWeightNorm, "and whose gradients are not"),
    "two outputs": (PairNorm, "TypeError, its forward returns tuple for rows of shape"),
    "another shape": (FirstColumnNorm, "TypeError, its forward returns torch.Size([40, 1]) for rows"),
    "a weight of three axes": (lambda _: LikeLlamaNorm((2, 2, 3)), "which holds weight, needs a weight"),
    "a buffer": (_changed(_buffered, LikeLlamaNorm), NEITHER),
    "training": (NORMS.TrainingNorm, "something else of more axes or in training"),
    "channels first": (LayerNorm2d, "which takes channels on the second axis"),
    "channels first in images": (ImagesToo, "which takes channels on the second axis"),
    "a gate": (GatedRMSNorm, "(hidden_states, gate=None), a gate: rounding=\"once\" takes normgrad.nn.GatedRMSNorm"),
    "a state of its own": (LoadsItsOwnRMSNorm, "loads its state in its own way (_load_from_state_dict)"),
    "no shape": (lambda _: NoShapeNorm(), "RMSNorm(any N, eps=1e-06) in float32 and rounds elsewhere"),
    "one column": (lambda _: LayerNormWithoutWeight(1), "whose rows have one column, needs at least two"),
    "a call of its own": (CalledInItsOwnWayNorm, "which is called in its own way (__call__)"),
    "what changes its input": (InPlaceNorm, "TypeError, its forward changes its input"),
    "a batch": (torch.nn.BatchNorm1d, "holds weight, bias, running_mean, running_var"),
    "groups": (lambda columns: torch.nn.GroupNorm(1, columns), "which takes channels on the second axis"),
    "meta": (lambda columns: torch.nn.LayerNorm(columns, device="meta"), "whose weight is on the meta device"),
    "a parameter of another type": (_changed(_renamed), "whose weight is a NamedParameter of torch.float32, needs"),
    "a forward of its own": (_changed(lambda norm: setattr(norm, "forward", norm.forward)), "on this very object"),
    "a parametrization": (_changed(_parametrized), "holds modules of its own: parametrizations"),
    "eps that is none": (_changed(lambda norm: setattr(norm, "eps", -1.0)), "eps: got -1.0, needs a number"),
    "of this package": (nn.LayerNorm, "which is of this package"),
}  # fmt: skip


LEFT |= {
    way: (_changed(methodcaller(way, _hook)), reason)
    for way, reason in LEFT_HOOKS.items()
    if hasattr(torch.nn.Module, way)
}


@pytest.mark.parametrize("difference", LEFT)
def test_what_differs_is_left_with_its_reason(difference):
    make, reason = LEFT[difference]
    model = torch.nn.Sequential(make(COLUMNS))
    before = model[0]
    outcome = nn.replace_norms(model, backend="torch")
    assert model[0] is before and outcome.replaced == {} and list(outcome.left) == ["0"]
    assert (
        outcome.left["0"].startswith(f"{type(before).__name__}, ")
        and reason in outcome.left["0"]
    )


class PreNorm(torch.nn.Module):
    """Holds a norm and is none."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)


def _normalized(x):
    return F.rms_norm(x, (x.shape[-1],))


class FunctionBlock(torch.nn.Module):
    """Has a norm, and no module of it."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + self.linear(_normalized(x))


class Pooled(torch.nn.Module):
    """Reduces rows, to another shape."""

    def __init__(self):
        super().__init__()
        self.query = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return (x * self.query).sum(-1).sqrt()


def test_a_block_that_calls_a_norm_as_a_function_is_left_with_the_reason():
    outcome = nn.replace_norms(torch.nn.Sequential(FunctionBlock()), backend="torch")
    assert outcome.left == {
        "0": "FunctionBlock, whose forward calls rms_norm, a norm as a function, and not as a module"
    }


def test_what_is_no_norm_is_not_mentioned():
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4),
        torch.nn.PReLU(4),
        torch.nn.ReLU(),
        torch.nn.Softmax(-1),
        torch.nn.Embedding(4, 4),
        torch.nn.TransformerEncoderLayer(4, 2, norm_first=True).self_attn,
        Pooled(),
        PreNorm(),
    )
    outcome = nn.replace_norms(model, backend="torch")
    assert list(outcome.replaced) == ["7.norm"] and not outcome.left


@pytest.mark.parametrize("columns", [2, 3, 64, 16384])
@pytest.mark.parametrize(
    "kind",
    [
        NORMS.LikeLlama,
        NORMS.LikeGemma,
        NORMS.LikeBert,
        LayerNormOfALibrary,
        LayerNormWithoutWeight,
    ],
)
def test_every_row_length_is_recognised(kind, columns):
    assert nn.replace_norms(
        torch.nn.Sequential(kind(columns)), backend="torch"
    ).replaced.keys() == {"0"}


class RememberingNorm(NORMS.UnbiasedNorm):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return super().forward(x)


def test_what_is_tried_is_a_copy(torch_rng):
    model = _fill(torch.nn.Sequential(RememberingNorm()), torch_rng)
    before = model[0].weight.clone()
    nn.replace_norms(model, backend="torch")
    assert (
        model[0].seen == []
        and model[0].training
        and torch.equal(model[0].weight, before)
    )


# What stays


class Block(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.norm, self.linear = kind(COLUMNS), torch.nn.Linear(COLUMNS, COLUMNS)

    def forward(self, x):
        return x + torch.tanh(self.linear(self.norm(x)))


def _model(generator, *kinds):
    return _fill(
        torch.nn.Sequential(
            *map(Block, kinds or (NORMS.LikeLlama, NORMS.LikeGemma, torch.nn.LayerNorm))
        ),
        generator,
    )


def test_parameters_stay_the_very_objects(torch_rng):
    model = _model(torch_rng)
    model[1].norm.weight.requires_grad_(False)
    model[2].norm.weight = model[0].norm.weight  # tied
    model[0].norm.eval()
    gradients = []
    model[0].norm.weight.register_hook(gradients.append)
    before = dict(model.named_parameters(remove_duplicate=False))
    nn.replace_norms(model, backend="torch")
    after = dict(model.named_parameters(remove_duplicate=False))
    assert list(after) == list(before) and all(
        after[name] is before[name] for name in before
    )
    assert [block.norm.training for block in model] == [False, True, True]
    x, dy = torch.randn(2, 4, COLUMNS, generator=torch_rng)
    model(x).backward(dy)
    assert (
        len(gradients) == 1
        and model[1].norm.weight.grad is None
        and model[2].norm.weight.grad is not None
    )


def _called(calls, name, *_):
    calls.append(name)


# Each way to register a hook, but for those whose module is left.
HOOKS = (
    "register_forward_pre_hook",
    "register_forward_hook",
    "register_full_backward_pre_hook",
    "register_full_backward_hook",
    "register_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "register_load_state_dict_post_hook",
)


@pytest.mark.parametrize("kind", [NORMS.LikeLlama, NamedRMSNorm, torch.nn.RMSNorm])
def test_hooks_go_over_to_what_is_replaced_and_see_no_trial(kind, torch_rng):
    model = torch.nn.Sequential(_made(kind, torch_rng))
    calls = []
    handles = [
        getattr(model[0], way)(functools.partial(_called, calls, way))
        for way in HOOKS
        if hasattr(torch.nn.Module, way)
    ]
    assert nn.replace_norms(model, backend="torch").replaced and calls == []
    x, dy = torch.randn(2, 4, COLUMNS, generator=torch_rng)
    for expected in ({way for way in HOOKS if hasattr(torch.nn.Module, way)}, set()):
        model(x.requires_grad_()).backward(dy)
        model.load_state_dict(model.state_dict())
        assert set(calls) == expected
        calls.clear()
        for handle in handles:
            handle.remove()


def test_a_module_in_two_places_stays_one(torch_rng):
    model = _model(torch_rng)
    model[2].norm = model[0].norm
    outcome = nn.replace_norms(model, backend="torch")
    assert model[2].norm is model[0].norm and list(outcome.replaced) == [
        "0.norm",
        "1.norm",
        "2.norm",
    ]


COMPILED = {
    "which torch.jit has compiled": torch.jit.script,
    "which torch.jit has compiled,": lambda norms: torch.jit.trace(norms, torch.ones(1, 2)),
    "whose graph calls a norm as a function": lambda norms: torch.export.export(norms, (torch.ones(1, 2),)).module(),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("reason", COMPILED)
def test_norms_in_what_is_compiled_are_said_to_be_left(reason):
    norms = COMPILED[reason](torch.nn.Sequential(torch.nn.LayerNorm(2)))
    for name, model in (("", norms), ("norms", torch.nn.ModuleDict({"norms": norms}))):
        outcome = nn.replace_norms(model, backend="torch")
        assert list(outcome.left) == [name] and not outcome.replaced
        assert reason in outcome.left[name]


def test_the_model_itself_is_not_replaced():
    norm = torch.nn.LayerNorm(COLUMNS)
    outcome = nn.replace_norms(norm)
    assert outcome.left == {
        "": "LayerNorm, which is the model itself: put it into a module that holds it, as"
        " torch.nn.Sequential(model)"
    }
