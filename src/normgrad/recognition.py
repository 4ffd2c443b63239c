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
from collections.abc import Iterator
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
OTHER_AXES = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.GroupNorm,
    torch.nn.LocalResponseNorm,
    torch.nn.CrossMapLRN2d,
)
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
    """What a module is run on: x (rows, N), weight, bias (N,) or None, in float64, exact in bfloat16."""

    x: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None


def recognised(
    module: torch.nn.Module, known: dict[Any, Recipe | str | None]
) -> Recipe | str | None:
    """The Recipe of a norm, the reason why a norm has none, or None for what is no norm.

    Args:  known: what was found before, by all that a forward can depend on; is added to
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
    reason = _unfit(module)
    if reason is None and type(module) in OF_TORCH:
        return _of_torch(module)
    if reason is None:
        key = _key(module)
        if key is None or key not in known:
            known[key] = _probed(module)
        found = known[key]
        if isinstance(found, Recipe):
            return found
        reason = found
    return reason if called_norm else None


def _calls_norm(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and "_norm" in str(node.target)


def _of_torch(module: Any) -> Recipe | str:
    spec = LAYER_NORM if isinstance(module, torch.nn.LayerNorm) else RMS_NORM
    try:
        eps = None if module.eps is None and spec is RMS_NORM else check_eps(module.eps)
        return Recipe(check_axes(module.normalized_shape), spec.replace(eps=eps))
    except (TypeError, ValueError) as error:
        return f"which has no equal here, {error}"


def _unfit(module: torch.nn.Module) -> str | None:
    """Why a module cannot be replaced, whatever it computes; None where it can."""
    if isinstance(module, OTHER_AXES):
        return "which does not normalize the last axes of one row at a time"
    if module._modules:
        return f"which holds modules of its own: {', '.join(module._modules)}"
    if "forward" in vars(module):
        return "whose forward was set on this very object"
    if hooks := [name for name in HOOKS if getattr(module, name)]:
        return (
            f"which has hooks ({', '.join(hooks)}): replace first, then register them"
        )
    given = {name: one for name, one in module._parameters.items() if one is not None}
    if (
        module._buffers
        or not set(given) <= {"weight", "bias"}
        or set(given) == {"bias"}
    ):
        return f"which holds {', '.join([*given, *module._buffers])}, needs a weight, or weight and bias, or nothing"
    for name, one in given.items():
        if (
            type(one) is not torch.nn.Parameter
            or one.layout != torch.strided
            or one.dtype not in DTYPES
        ):
            return f"whose {name} is a {type(one).__name__} of {one.dtype}, needs a dense torch.nn.Parameter"
        if one.is_meta:
            return f"whose {name} is on the meta device: load the parameters first"
    if changed := [
        name
        for name in STATE
        if getattr(type(module), name) is not getattr(torch.nn.Module, name)
    ]:
        return f"which saves or loads its state in its own way ({', '.join(changed)})"
    return None


def _own(module: torch.nn.Module) -> dict[str, Any]:
    """The attributes that are not those of every module."""
    common = vars(torch.nn.Module())
    return {name: value for name, value in vars(module).items() if name not in common}


def _key(module: torch.nn.Module) -> Any:
    """All that a forward can depend on but the values of parameters; None where an attribute is no plain value."""
    plain = (bool, int, float, str, type(None), torch.dtype, torch.device)
    own = _own(module)
    for value in own.values():
        if not all(
            isinstance(one, plain)
            for one in (value if type(value) in (tuple, torch.Size) else (value,))
        ):
            return None
    shapes = [
        (name, one if one is None else (one.shape, one.device))
        for name, one in module._parameters.items()
    ]
    return type(module), repr(sorted(own.items())), repr(shapes)


def _probed(module: torch.nn.Module) -> Recipe | str:
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


def _compared(
    module: torch.nn.Module, axes: tuple[int, ...], with_weight: bool, with_bias: bool
) -> Recipe | str:
    takes = list(inspect.signature(module.forward).parameters.values())
    if len(takes) != 1 or takes[0].kind not in (
        takes[0].POSITIONAL_ONLY,
        takes[0].POSITIONAL_OR_KEYWORD,
    ):
        given = f"whose forward takes ({', '.join(map(str, takes))})"
        gated = any(one.name in GATES for one in takes)
        return (
            f"{given}, a gate, as normgrad.nn.GatedRMSNorm"
            if gated
            else f"{given}, needs one tensor"
        )
    eps = [
        value
        for value in _own(module).values()
        if type(value) is float and 0 <= value < math.inf
    ]
    eps = list(dict.fromkeys([*eps, *COMMON_EPS]))
    given = _rows(math.prod(axes), eps, with_weight, with_bias)
    copies = {
        dtype: _copied(module, given, dtype)
        for dtype in (torch.float32, torch.bfloat16)
    }
    if len(axes) == 1 and _takes_channels_second(copies[torch.float32], axes[0]):
        return "which takes channels on the second axis"
    y = _run(copies[torch.float32], given.x.reshape(-1, *axes), torch.float32)
    offsets = (0.0, 1.0) if with_weight else (0.0,)
    specs = [
        LAYER_NORM.replace(eps=one, weight_offset=offset)
        for one in eps
        for offset in offsets
    ]
    if not with_bias:
        specs = [
            spec.replace(center=center) for center in (False, True) for spec in specs
        ]
        specs += [RMS_NORM.replace(weight_offset=offset) for offset in offsets]
    spec = next((spec for spec in specs if _is_y(y, given, spec)), None)
    if spec is None:
        return "whose forward is no LayerNorm and no RMSNorm over the last axis"
    recipe = Recipe(axes, spec)
    if not all(
        _is_y(one, given, spec)
        for one in _in_other_shapes(copies[torch.float32], given.x, axes)
    ):
        return f"which is {recipe} of a matrix and something else of more axes or in training"
    if not _has_gradients(copies[torch.float32], given, axes, spec):
        return f"whose forward is {recipe} and whose gradients are not"
    castings = (
        CASTINGS
        if with_weight and not spec.center and not spec.weight_offset
        else CASTINGS[:1]
    )
    rounded = _run(copies[torch.bfloat16], given.x.reshape(-1, *axes), torch.bfloat16)
    casting = next(
        (one for one in castings if _is_rounded_y(rounded, given, spec, one)), None
    )
    if casting is None or rounded.dtype != torch.bfloat16:
        return f"which is {recipe} in float32 and rounds elsewhere in bfloat16"
    needed = torch.float32 if casting == "llama" else torch.bfloat16
    if with_weight and _mixed_dtype(copies[torch.float32], given, axes) not in (
        None,
        needed,
    ):
        return f"which is {recipe}, and of a float32 weight with bfloat16 rows makes something else than {needed}"
    return Recipe(axes, spec, casting)


def _rows(columns: int, eps: list[float], with_weight: bool, with_bias: bool) -> Rows:
    """Two rows at each power of two, with means 1 and -2 there, deviations 1, 2, 3 of both signs, and 0 if N is odd."""
    rng = np.random.default_rng(SEED)
    exponents = [*EXPONENTS, *(round(math.log2(one) / 2) for one in eps if one)]
    rows = []
    for exponent in dict.fromkeys(exponents):
        for mean in (1, -2):
            half = rng.integers(1, 4, columns // 2)
            whole = rng.permutation(
                np.concatenate([half, -half, np.zeros(columns % 2)])
            )
            rows.append((whole + mean) * 2.0**exponent)
    weight, bias = (
        round_to(rng.standard_normal(columns), "bfloat16") if one else None
        for one in (with_weight, with_bias)
    )
    return Rows(np.stack(rows), weight, bias)


def _copied(
    module: torch.nn.Module, given: Rows, dtype: torch.dtype
) -> torch.nn.Module:
    """A module with the same class and attributes, without hooks, with the parameters of the rows."""
    one = type(module).__new__(type(module))
    torch.nn.Module.__init__(one)
    vars(one).update(copy.deepcopy(_own(module)))
    for name, old in module._parameters.items():
        value = (
            None
            if old is None
            else torch.tensor(getattr(given, name), dtype=dtype, device=old.device)
        )
        one._parameters[name] = None if value is None else torch.nn.Parameter(value)
    return one


def _device(module: torch.nn.Module) -> torch.device:
    return next((one.device for one in module.parameters()), torch.device("cpu"))


def _run(module: torch.nn.Module, x: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    with torch.no_grad():
        y = module.eval()(torch.tensor(x, dtype=dtype, device=_device(module)))
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        raise TypeError(
            f"its forward returns {getattr(y, 'shape', type(y).__name__)} for rows of shape {x.shape}"
        )
    return y


def _array(t: torch.Tensor, like: np.ndarray) -> np.ndarray:
    return t.detach().double().cpu().numpy().reshape(like.shape)


def _saved(given: Rows, spec: NormSpec) -> numpy_ref.Forward:
    """What the oracle returns, in float64."""
    spec = spec.resolve(float(np.finfo(np.float32).eps))
    return numpy_ref.forward(given.x, given.weight, given.bias, spec=spec)


def _errors_of_y(saved: numpy_ref.Forward) -> np.ndarray:
    """The largest error of y in float32, where nothing but updates of a mean is rounded: log2(N) roundings deep."""
    additions = math.ceil(math.log2(saved.y.shape[1]))
    dy = np.zeros_like(saved.y)
    return bounds(dy, None, saved, "float32", additions=additions).y


def _is_y(y: torch.Tensor, given: Rows, spec: NormSpec) -> bool:
    saved = _saved(given, spec)
    difference = np.abs(_array(y, saved.y) - saved.y)
    return y.dtype == torch.float32 and bool((difference <= _errors_of_y(saved)).all())


def _is_rounded_y(
    y: torch.Tensor, given: Rows, spec: NormSpec, casting: Casting
) -> bool:
    """Whether each value lies between what the ends of its interval round to."""
    weight = given.weight
    if casting == "llama":
        given = replace(given, weight=None)
    saved = _saved(given, spec)
    error = _errors_of_y(saved)
    ends = [round_to(saved.y + sign * error, "bfloat16") for sign in (-1, 1)]
    if casting == "llama":
        ends = [round_to(weight * end, "bfloat16") for end in ends]
    found = _array(y, saved.y)
    return bool(((np.minimum(*ends) <= found) & (found <= np.maximum(*ends))).all())


def _in_other_shapes(
    module: torch.nn.Module, x: np.ndarray, axes: tuple[int, ...]
) -> Iterator[torch.Tensor]:
    """y of the rows with three to five axes, and while training."""
    for shape in ((2, -1), (2, 1, -1), (1, 2, 1, -1)):
        yield _run(module, x.reshape(*shape, *axes), torch.float32)
    with torch.no_grad():
        yield module.train()(
            torch.tensor(
                x.reshape(-1, *axes), dtype=torch.float32, device=_device(module)
            )
        )


def _has_gradients(
    module: torch.nn.Module, given: Rows, axes: tuple[int, ...], spec: NormSpec
) -> bool:
    """Whether dx, dw and db are those of the spec, for a cotangent along y, which statistics held fixed would miss."""
    saved = _saved(given, spec)
    dy = round_to(saved.y + np.sign(saved.y), "float32")
    with torch.enable_grad():
        x = torch.tensor(
            given.x.reshape(-1, *axes),
            dtype=torch.float32,
            device=_device(module),
            requires_grad=True,
        )
        cotangent = torch.tensor(
            dy.reshape(x.shape), dtype=torch.float32, device=x.device
        )
        wanted = {
            "dx": x,
            **{f"d{name[0]}": one for name, one in module.named_parameters()},
        }
        found = torch.autograd.grad(module.train()(x), list(wanted.values()), cotangent)
    exact, errors = numpy_ref.backward(dy, saved), bounds(dy, None, saved, "float32")
    expected = {"dx": exact.dx, "dw": exact.dweight, "db": exact.dbias}
    return all(
        (
            np.abs(_array(one, expected[name]) - expected[name])
            <= getattr(errors, name)
        ).all()
        for name, one in zip(wanted, found, strict=True)
    )


def _takes_channels_second(module: torch.nn.Module, columns: int) -> bool:
    """Whether an input passes whose last axis does not fit: perhaps one of four axes alone."""
    x = torch.ones(1, columns, 2, 2 + (columns == 2), device=_device(module))
    try:
        with torch.no_grad():
            module.eval()(x)
    except Exception:  # as it should
        return False
    return True


def _mixed_dtype(
    module: torch.nn.Module, given: Rows, axes: tuple[int, ...]
) -> torch.dtype | None:
    """The dtype of y for parameters in float32 and rows in bfloat16; None where the module refuses them."""
    try:
        return _run(module, given.x.reshape(-1, *axes), torch.bfloat16).dtype
    except Exception:  # whatever another's forward may raise
        return None
