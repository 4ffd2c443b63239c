"""Which LayerNorm or RMSNorm a module computes, found by running a copy of it: for normgrad.nn.replace_norms.

A class may call its eps as it likes, add 1 to its weight and round where it likes, so nothing is read from names. The
rows are made of small whole numbers times powers of two: sums of them and of their squares are exact in float32 in any
order, so that what is left are a few roundings, and a variance over N - 1 differs by more at every N in use. In
bfloat16 a value is what the exact one rounds to, or it is another norm: a tolerance would let other roundings pass.
"""

from __future__ import annotations

import copy
import inspect
import math
import textwrap
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch

from . import numpy_ref
from .dtypes import round_to
from .spec import LAYER_NORM, RMS_NORM, NormSpec, check_axes, check_eps
from .tolerance import bounds
from .torch_ops.differentiable import DTYPES

Casting = Literal["once", "llama"]
CASTINGS: tuple[Casting, ...] = get_args(Casting)
SEED = 20261123
# What models write into their forward, besides what a module has among its attributes.
COMMON_EPS = (1e-5, 1e-6, 1e-8, 1e-12, 0.0)
# Rows at these powers of two besides those at sqrt(eps): what is clamped or added shows where rows are large or tiny.
EXPONENTS = (0, 30, -30)
OF_TORCH = (torch.nn.LayerNorm, torch.nn.RMSNorm)
HOOKS = [name for name in vars(torch.nn.Module()) if name.endswith("_hooks")]
# What the gate of a gated norm is called. Such a norm is left: transformers' round x_hat to the input's dtype, and then
# multiply by the weight, where GatedRMSNorm rounds once, so in 16 bits they differ.
GATES = ("gate", "z")
STATE = (
    "state_dict",
    "_save_to_state_dict",
    "_load_from_state_dict",
    "get_extra_state",
    "set_extra_state",
)


@dataclass(frozen=True)
class Recipe:
    """What a norm computes.

    Args:  normalized_shape, the sizes of the last axes; spec, LAYER_NORM or RMS_NORM with its eps and weight_offset;
           casting: "once" rounds after the weight, "llama" before it
    """

    normalized_shape: tuple[int, ...]
    spec: NormSpec
    casting: Casting = "once"

    def __str__(self) -> str:
        said = (
            f", weight_offset={self.spec.weight_offset}"
            if self.spec.weight_offset
            else ""
        )
        said += f", casting={self.casting!r}" if self.casting != "once" else ""
        return f"{'LayerNorm' if self.spec.center else 'RMSNorm'}({self.normalized_shape}, eps={self.spec.eps}{said})"


@dataclass(frozen=True)
class Rows:
    """What a module is run on: x (M, N), weight, bias (N,) or None, in float64, exact in bfloat16."""

    x: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None


@dataclass(frozen=True)
class Trial:
    """A copy of a module with the weight and bias of the rows that it is run on.

    Args:  axes: the sizes of those that are normalized
    """

    module: torch.nn.Module
    rows: Rows
    axes: tuple[int, ...]

    @classmethod
    def of(
        cls,
        module: torch.nn.Module,
        rows: Rows,
        axes: tuple[int, ...],
        dtype: torch.dtype,
    ) -> Trial:
        """The copy, its parameters in a dtype."""
        twin = copy.deepcopy(module)
        for name, old in twin.named_parameters(remove_duplicate=False):
            values = torch.tensor(getattr(rows, name), dtype=dtype, device=old.device)
            twin._parameters[name] = torch.nn.Parameter(values)
        return cls(twin, rows, axes)

    def tensor(
        self, values: np.ndarray, *lead: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Numbers of the rows as the module takes them."""
        shaped = values.reshape(*lead, *self.axes)
        return torch.tensor(shaped, dtype=dtype, device=_device(self.module))

    def y(
        self,
        *lead: int,
        dtype: torch.dtype = torch.float32,
        training: bool = False,
    ) -> torch.Tensor:
        """y of the rows in a dtype, as a matrix or with more leading axes."""
        x = self.tensor(self.rows.x, *(lead or (-1,)), dtype=dtype)
        with torch.no_grad():
            y = self.module.train(training)(x)
        if not isinstance(y, torch.Tensor) or y.shape != x.shape:
            got = getattr(y, "shape", type(y).__name__)
            raise TypeError(f"its forward returns {got} for rows of shape {x.shape}")
        return y

    def has_gradients(self, spec: NormSpec) -> bool:
        """Whether dx, dw and db are those of the spec, for dy along y, which statistics held fixed would miss."""
        saved = _saved(self.rows, spec)
        dy = round_to(saved.y + np.sign(saved.y), "float32")
        x, cotangent = self.tensor(self.rows.x, -1), self.tensor(dy, -1)
        leaves = {"dx": x.requires_grad_()}
        for name, parameter in self.module.named_parameters():
            leaves[f"d{name[0]}"] = parameter
        with torch.enable_grad():
            y = self.module.train()(x)
            gradients = torch.autograd.grad(y, list(leaves.values()), cotangent)
        exact = numpy_ref.backward(dy, saved)
        expected = {"dx": exact.dx, "dw": exact.dweight, "db": exact.dbias}
        allowed = bounds(dy, None, saved, "float32")
        return all(
            _within(gradient, expected[name], getattr(allowed, name))
            for name, gradient in zip(leaves, gradients, strict=True)
        )

    def takes_channels_second(self) -> bool:
        """Whether an input passes whose last axis does not fit: perhaps one of four axes alone."""
        (columns,) = self.axes
        x = torch.ones(1, columns, 2, 2 + (columns == 2), device=_device(self.module))
        try:
            with torch.no_grad():
                self.module.eval()(x)
        except Exception:  # as it should
            return False
        return True

    def dtype_of_mixed(self) -> torch.dtype | None:
        """The dtype of y for rows in bfloat16 beside these parameters; None where the module refuses them."""
        try:
            return self.y(dtype=torch.bfloat16).dtype
        except Exception:  # whatever another's forward may raise
            return None


def recognised(
    module: torch.nn.Module, probed: dict[Any, Recipe | str]
) -> Recipe | str | None:
    """The Recipe of a norm, the reason why a norm has none, or None for what is no norm.

    Args:  probed: what was found before, by all that a forward can depend on; is added to
    """
    if isinstance(module, torch.jit.ScriptModule):
        return "which torch.jit has compiled, and whose norms are not seen: replace first, then compile"
    if isinstance(module, torch.fx.GraphModule) and any(
        map(_calls_norm, module.graph.nodes)
    ):
        return "whose graph calls a norm as a function, not as a module: replace first, then trace"
    called_norm = any("norm" in kind.__name__.lower() for kind in type(module).__mro__)
    if not module._parameters and not (
        called_norm and (not module._modules or "parametrizations" in module._modules)
    ):
        return None
    verdict = _unfit(module)
    if verdict is None and type(module) in OF_TORCH:
        verdict = _of_torch(module)
    elif verdict is None:
        key = _key(module)
        if key not in probed:
            probed[key] = _probed(module)
        verdict = probed[key]
    return verdict if called_norm or isinstance(verdict, Recipe) else None


def _calls_norm(node):
    return node.op == "call_function" and "_norm" in str(node.target)


def _of_torch(module):
    spec = LAYER_NORM if isinstance(module, torch.nn.LayerNorm) else RMS_NORM
    try:
        eps = None if module.eps is None and spec is RMS_NORM else check_eps(module.eps)
        return Recipe(check_axes(module.normalized_shape), spec.replace(eps=eps))
    except (TypeError, ValueError) as error:
        return f"which has no equal here, {error}"


def _unfit(module):
    """Why a module cannot be replaced, whatever it computes; None where it can."""
    if module._modules:
        return f"which holds modules of its own: {', '.join(module._modules)}"
    if "forward" in vars(module):
        return "whose forward was set on this very object"
    if hooks := [name for name in HOOKS if getattr(module, name)]:
        return (
            f"which has hooks ({', '.join(hooks)}): replace first, then register them"
        )
    parameters = {name: t for name, t in module._parameters.items() if t is not None}
    if module._buffers or sorted(parameters) not in (
        [],
        ["weight"],
        ["bias", "weight"],
    ):
        held = ", ".join([*parameters, *module._buffers])
        return f"which holds {held}, needs a weight, or weight and bias, or nothing"
    for name, t in parameters.items():
        if (
            type(t) is not torch.nn.Parameter
            or t.layout != torch.strided
            or t.dtype not in DTYPES
        ):
            return f"whose {name} is a {type(t).__name__} of {t.dtype}, needs a dense torch.nn.Parameter"
        if t.is_meta:
            return f"whose {name} is on the meta device: load the parameters first"
    if changed := [
        name
        for name in STATE
        if getattr(type(module), name) is not getattr(torch.nn.Module, name)
    ]:
        return f"which saves or loads its state in its own way ({', '.join(changed)})"
    return None


def _own(module):
    """The attributes that are not those of every module."""
    common = vars(torch.nn.Module())
    return {name: value for name, value in vars(module).items() if name not in common}


def _key(module):
    """All that a forward can depend on but the values of parameters; nothing equals it if an attribute is not plain."""
    plain = (bool, int, float, str, type(None), torch.dtype, torch.device)
    own = _own(module)
    for value in own.values():
        parts = value if type(value) in (tuple, torch.Size) else (value,)
        if not all(isinstance(part, plain) for part in parts):
            return object()
    shapes = [
        (name, None if t is None else (t.shape, t.device))
        for name, t in module._parameters.items()
    ]
    return type(module), repr(sorted(own.items())), repr(shapes)


def _probed(module):
    """What a copy of a module shows."""
    weight, bias = (module._parameters.get(name) for name in ("weight", "bias"))
    if weight is not None:
        axes = tuple(weight.shape)
    else:
        try:
            axes = check_axes(getattr(module, "normalized_shape", ()))
        except (TypeError, ValueError):
            return "which has neither a weight nor a normalized_shape: how long its rows are is not known"
    if weight is not None and len(axes) != 1:
        return f"whose weight has shape {axes}: which axes are normalized is not known"
    if math.prod(axes) < 2 or (bias is not None and bias.shape != weight.shape):
        return f"whose weight has shape {axes}, needs at least two columns and a bias of one shape with it"
    try:
        autocast = torch.autocast(_device(module).type, enabled=False)
        with torch.inference_mode(False), autocast, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _compared(module, axes, weight is not None, bias is not None)
    except Exception as error:  # whatever another's forward may raise
        return f"which cannot be tried: {type(error).__name__}, {textwrap.shorten(str(error), 90)}"


def _compared(module, axes, with_weight, with_bias):
    taken = list(inspect.signature(module.forward).parameters.values())
    if len(taken) != 1 or taken[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        needs = ", needs one tensor"
        if any(parameter.name in GATES for parameter in taken):
            needs = ", a gate, as normgrad.nn.GatedRMSNorm"
        return f"whose forward takes ({', '.join(map(str, taken))}){needs}"
    eps = _possible_eps(module)
    rows = _rows(math.prod(axes), eps, with_weight, with_bias)
    wide = Trial.of(module, rows, axes, torch.float32)
    y = wide.y()
    for spec in _possible_specs(eps, with_weight, with_bias):
        if _is_y(y, rows, spec):
            break
    else:
        return "whose forward is no LayerNorm and no RMSNorm over the last axis"
    recipe = Recipe(axes, spec)
    if len(axes) == 1 and wide.takes_channels_second():
        return "which takes channels on the second axis"
    further = [wide.y(*lead) for lead in ((2, -1), (2, 1, -1), (1, 2, 1, -1))]
    further.append(wide.y(training=True))
    if not all(_is_y(y, rows, spec) for y in further):
        return f"which is {recipe} of a matrix and something else of more axes or in training"
    if not wide.has_gradients(spec):
        return f"whose forward is {recipe} and whose gradients are not"
    castings = CASTINGS
    if not with_weight or spec.center or spec.weight_offset:
        castings = CASTINGS[:1]
    narrow = Trial.of(module, rows, axes, torch.bfloat16)
    y = narrow.y(dtype=torch.bfloat16)
    for casting in castings:
        if y.dtype == torch.bfloat16 and _is_rounded_y(y, rows, spec, casting):
            break
    else:
        return f"which is {recipe} in float32 and rounds elsewhere in bfloat16"
    needed = torch.float32 if casting == "llama" else torch.bfloat16
    if with_weight and wide.dtype_of_mixed() not in (None, needed):
        return f"which is {recipe}, and of a float32 weight with bfloat16 rows makes something else than {needed}"
    return Recipe(axes, spec, casting)


def _possible_eps(module):
    """The module's own numbers first."""
    numbers = [number for number in _own(module).values() if type(number) is float]
    own = [number for number in numbers if 0 <= number < math.inf]
    return list(dict.fromkeys([*own, *COMMON_EPS]))


def _possible_specs(eps, with_weight, with_bias):
    offsets = (0.0, 1.0) if with_weight else (0.0,)
    # Without a bias RMSNorm comes first, and with the machine epsilon last.
    kinds = [(True, eps)] if with_bias else [(False, eps), (True, eps), (False, [None])]
    return [
        NormSpec(center=center, eps=number, weight_offset=offset)
        for center, numbers in kinds
        for number in numbers
        for offset in offsets
    ]


def _rows(columns, eps, with_weight, with_bias):
    """Two rows at each power of two, with means 1 and -2 there, deviations 1, 2, 3 of both signs, and 0 if N is odd."""
    rng = np.random.default_rng(SEED)
    exponents = [
        *EXPONENTS,
        *(round(math.log2(number) / 2) for number in eps if number),
    ]
    rows = []
    for exponent in dict.fromkeys(exponents):
        for mean in (1, -2):
            half = rng.integers(1, 4, columns // 2)
            whole = rng.permutation(
                np.concatenate([half, -half, np.zeros(columns % 2)])
            )
            rows.append((whole + mean) * 2.0**exponent)
    weight, bias = (
        round_to(rng.standard_normal(columns), "bfloat16") if there else None
        for there in (with_weight, with_bias)
    )
    return Rows(np.stack(rows), weight, bias)


def _device(module):
    return next((t.device for t in module.parameters()), torch.device("cpu"))


def _saved(rows, spec):
    """What the oracle returns, in float64."""
    spec = spec.resolve(float(np.finfo(np.float32).eps))
    return numpy_ref.forward(rows.x, rows.weight, rows.bias, spec=spec)


def _errors_of_y(saved):
    """The largest error of y in float32, where nothing but updates of a mean is rounded: log2(N) roundings deep."""
    additions = math.ceil(math.log2(saved.y.shape[1]))
    dy = np.zeros_like(saved.y)
    return bounds(dy, None, saved, "float32", additions=additions).y


def _within(t, expected, bound):
    difference = t.detach().double().cpu().numpy().reshape(expected.shape) - expected
    return bool((np.abs(difference) <= bound).all())


def _is_y(y, rows, spec):
    saved = _saved(rows, spec)
    return y.dtype == torch.float32 and _within(y, saved.y, _errors_of_y(saved))


def _is_rounded_y(y, rows, spec, casting):
    """Whether each value lies between what the ends of its interval round to."""
    late = 1.0
    if casting == "llama":
        late, rows = rows.weight, replace(rows, weight=None)
    saved = _saved(rows, spec)
    error = _errors_of_y(saved)
    ends = [
        round_to(late * round_to(end, "bfloat16"), "bfloat16")
        for end in (saved.y - error, saved.y + error)
    ]
    middle = (ends[0] + ends[1]) / 2
    return _within(y, middle, np.abs(ends[1] - ends[0]) / 2)
