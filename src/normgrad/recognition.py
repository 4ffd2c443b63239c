"""Which norm a module computes, found by running a copy of it and reading its forward: for normgrad.nn.replace_norms.

A class may call its parameters and its eps as it likes, add 1 to its weight and round where it likes, so nothing is
read from names. A copy runs at the N of the module; what it shows there verify proves for every N, where it reads the
text, and what verify refutes is left. The rows are made of small whole numbers times powers of two: sums of them and of
their squares are exact in float32 in any order, so that what is left are a few roundings, and a variance over N - 1
differs by more at every N in use. In bfloat16 a value is what the exact one rounds to, or it is another norm: a
tolerance would let other roundings pass.
"""

from __future__ import annotations

import copy
import inspect
import math
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import Any, Literal, get_args

import numpy as np
import torch

from . import numpy_ref
from .dtypes import round_to
from .forward_reading import (
    calls_norm,
    compared,
    has_root,
    reduces,
)
from .spec import LAYER_NORM, RMS_NORM, NormSpec, check_axes, check_eps
from .tolerance import bounds
from .torch_ops.differentiable import DTYPES

Casting = Literal["once", "llama"]
CASTINGS: tuple[Casting, ...] = get_args(Casting)
Rounding = Literal["same", "once"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
SEED = 20261123
# What models write into their forward, besides what a module has among its attributes.
COMMON_EPS = (1e-5, 1e-6, 1e-8, 1e-12, 0.0)
# Rows at these powers of two besides those at eps and at sqrt(eps): what is clamped or added shows where rows are large
# or tiny. At LARGE no eps shows, and squares of what is below SMALLEST leave float32.
EXPONENTS = (0, 30, -30)
LARGE, SMALLEST = 30, -60
# The numbers of columns that a norm of any N is run on.
FREE_COLUMNS = (12, 37)
# What is no scale: an eps.
SMALLEST_SCALE = 1e-3
OF_TORCH = (torch.nn.LayerNorm, torch.nn.RMSNorm)
HOOKS = [name for name in vars(torch.nn.Module()) if "_hooks" in name]
# What the gate of a gated norm is called.
GATES = ("gate", "z")
# Gates g for which silu(g) is g in float32, and a product with g is exact.
EXACT_GATES = (32.0, 64.0)
# How far a norm with any gate may be off, in its largest number: what is another function is off by more.
GATED_ERROR = 1e-4
STATE = (
    "state_dict",
    "_save_to_state_dict",
    "_load_from_state_dict",
    "get_extra_state",
    "set_extra_state",
)


# {an argument: the fields of Grads and of Bounds}
GRADIENTS = {
    "x": ("dx", "dx"),
    "weight": ("dweight", "dw"),
    "bias": ("dbias", "db"),
}
NEITHER = "whose forward is no LayerNorm and no RMSNorm over the last axis"
UNTRIED = "which cannot be tried"
RETURNS = "its forward returns"
OF_TORCH_TEXT = "equal for every N, by torch's definition"


@dataclass(frozen=True)
class Recipe:
    """What a norm computes.

    Args:  normalized_shape, the sizes of the last axes, None for a norm of any N; spec
           casting: "once" rounds after the weight, "llama" before it; heads: H of a weight (H, N)
           roles: ((name of a parameter or buffer, "weight" or "bias"), ...)
           proof: for which N it is equal, and by what; is_proved: whether that is every N
           note: what else is to be said of it; gate: "first" or "last" of a gated norm
    """

    normalized_shape: tuple[int, ...] | None
    spec: NormSpec
    casting: Casting = "once"
    heads: int | None = None
    roles: tuple[tuple[str, str], ...] = ()
    proof: str = OF_TORCH_TEXT
    is_proved: bool = True
    note: str = ""
    gate: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether LayerNorm or RMSNorm of normgrad.nn has the spec, but for eps and weight_offset, and the names."""
        preset = LAYER_NORM if self.spec.center else RMS_NORM
        spec = self.spec.replace(eps=preset.eps, weight_offset=0.0)
        roles = [role for _, role in self.roles]
        return (
            spec == preset
            and self.normalized_shape is not None
            and all(name == role for name, role in self.roles)
            and (self.spec.center or "bias" not in roles)
        )

    def __str__(self) -> str:
        spec = self.spec
        words = [str(self.normalized_shape or "any N"), f"eps={spec.eps}"]
        for name in ("placement", "reduce", "scale", "weight_offset"):
            value = getattr(spec, name)
            if value != getattr(RMS_NORM, name):
                text = f"{value:.6g}" if name == "scale" else repr(value)
                words.append(f"{name}={text}")
        if self.heads:
            words.append(f"heads={self.heads}")
        words += [f"{role}={name!r}" for name, role in self.roles if name != role]
        if self.gate:
            words.append(f"gate_first={self.gate == 'first'}")
        if self.casting != "once":
            words.append(f"casting={self.casting!r}")
        kind = "LayerNorm" if spec.center else "Gated" * bool(self.gate) + "RMSNorm"
        return f"{kind}({', '.join(words)}){self.note}"


@dataclass(frozen=True)
class Rows:
    """What a module is run on, in float64, exact in bfloat16: x (M, N); weight, bias (N,), (H, N), (1,), () or None."""

    x: np.ndarray
    weight: np.ndarray | None
    bias: np.ndarray | None

    def of_heads(self) -> list[Rows]:
        """The rows with weight and bias (N,), for each head in another order: what mixes heads shows."""
        shape = () if self.weight is None else self.weight.shape
        heads, columns = shape[0] if len(shape) == 2 else 1, self.x.shape[1]
        vectors = []
        for values in (self.weight, self.bias):
            if values is None:
                vectors.append([None] * heads)
            else:
                each = np.broadcast_to(values.reshape(heads, -1), (heads, columns))
                vectors.append(list(each.copy()))
        pairs = enumerate(zip(*vectors, strict=True))
        return [Rows(np.roll(self.x, h, 0), *pair) for h, pair in pairs]


@dataclass(frozen=True)
class Trial:
    """A copy of a module with the weight and bias of the rows that it is run on, and without its hooks."""

    module: torch.nn.Module
    layout: Layout
    rows: Rows

    @classmethod
    def of(
        cls,
        module: torch.nn.Module,
        layout: Layout,
        rows: Rows,
        dtype: torch.dtype = torch.float32,
    ) -> Trial:
        """The copy, its tensors in a dtype."""
        roles = layout.roles
        twin = type(module).__new__(type(module))
        # What a hook holds may be the whole model, and what it writes down is not for rows of ours.
        state = {
            name: type(value)() if name in HOOKS else value
            for name, value in vars(module).items()
        }
        vars(twin).update(copy.deepcopy(state))
        for tensors in (twin._parameters, twin._buffers):
            for name in roles.keys() & tensors.keys():
                old = tensors[name]
                values = torch.tensor(getattr(rows, roles[name]), device=old.device)
                values = values.to(dtype).reshape(old.shape)
                if isinstance(old, torch.nn.Parameter):
                    values = torch.nn.Parameter(values)
                tensors[name] = values
        return cls(twin, layout, rows)

    def tensor(
        self, values: np.ndarray, *lead: int, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Numbers (M, N) of the rows as the module takes them, in the order of each head."""
        shape, heads = self.layout.axes, self.layout.heads
        if heads:
            values = np.stack([np.roll(values, h, 0) for h in range(heads)], 1)
            shape = (heads, *shape)
        shaped = values.reshape(*lead, *shape)
        return torch.tensor(shaped, dtype=dtype, device=_device(self.module))

    def y(
        self,
        *lead: int,
        dtype: torch.dtype = torch.float32,
        training: bool = False,
    ) -> torch.Tensor:
        """y of the rows in a dtype, as a matrix or with more leading axes."""
        x = self.tensor(self.rows.x, *(lead or (-1,)), dtype=dtype)
        before = x.clone()
        with torch.no_grad():
            y = self.module.train(training)(x)
        if not torch.equal(x, before):
            raise TypeError("its forward changes its input")
        if not isinstance(y, torch.Tensor) or y.shape != x.shape:
            got = getattr(y, "shape", type(y).__name__)
            raise TypeError(f"{RETURNS} {got} for rows of shape {x.shape}")
        return y

    def has_gradients(self, spec: NormSpec) -> bool:
        """Whether dx, dw and db are those of the spec, for dy along y, which statistics held fixed would miss."""
        parts = [_saved(rows, spec) for rows in self.rows.of_heads()]
        cotangents = [round_to(s.y + np.sign(s.y), "float32") for s in parts]
        x = self.tensor(self.rows.x, -1).requires_grad_()
        dy = torch.tensor(np.stack(cotangents, 1), dtype=x.dtype, device=x.device)
        leaves = {"x": x}
        for name, parameter in self.module.named_parameters():
            leaves[self.layout.roles[name]] = parameter
        with torch.enable_grad():
            y = self.module.train()(x)
            gradients = torch.autograd.grad(
                y, list(leaves.values()), dy.reshape(y.shape)
            )
        exact, errors = [], []
        for dy_of_head, saved in zip(cotangents, parts, strict=True):
            exact.append(numpy_ref.backward(dy_of_head, saved))
            errors.append(bounds(dy_of_head, None, saved, "float32"))
        for name, gradient in zip(leaves, gradients, strict=True):
            field, bound = GRADIENTS[name]
            by_head = gradient if self.layout.heads else [gradient]
            if name == "x":
                by_head = gradient.reshape(len(x), len(parts), -1).unbind(1)
            for of_head, grads, error in zip(by_head, exact, errors, strict=True):
                expected, allowed = getattr(grads, field), getattr(error, bound)
                if of_head.numel() == 1:
                    expected, allowed = expected.sum(), allowed.sum()
                if not _within(of_head, expected, allowed):
                    return False
        return True

    def takes_channels_second(self) -> bool:
        """Whether an input passes whose last axis does not fit: perhaps one of four axes alone."""
        (columns,) = self.layout.axes
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
    module: torch.nn.Module, probed: dict[Any, Any], rounding: Rounding = "same"
) -> Recipe | str | None:
    """The Recipe of a norm, the reason why a norm has none, or None for what is no norm.

    A norm is what its class is called, and what computes one. Of any other module that holds vectors, and whose forward
    reduces rows, the reason is given as well; of one that holds modules, where its forward calls a norm as a function.

    Args:  probed: what was found before, by all that a forward can depend on; is added to
           rounding: "once" takes a norm for equal that rounds elsewhere in 16 bits
    """
    if isinstance(module, torch.jit.ScriptModule):
        return "which torch.jit has compiled, and whose norms are not seen: replace first, then compile"
    if isinstance(module, torch.fx.GraphModule) and any(
        map(_calls_norm, module.graph.nodes)
    ):
        return "whose graph calls a norm as a function, not as a module: replace first, then trace"
    kind = type(module)
    called_norm = any("norm" in base.__name__.lower() for base in kind.__mro__)
    is_leaf = not module._modules or "parametrizations" in module._modules
    if not is_leaf and not (called_norm and module._parameters):
        if called := calls_norm(kind):
            return f"whose forward calls {called}, a norm as a function, and not as a module"
        return None
    if not module._parameters and not (called_norm or has_root(kind)):
        return None
    verdict = _unfit(module)
    if verdict is None and kind in OF_TORCH:
        verdict = _of_torch(module)
    elif verdict is None:
        key = _key(module)
        if key not in probed:
            probed[key] = _probed(module, probed, rounding)
        verdict = probed[key]
    if called_norm or isinstance(verdict, Recipe):
        return verdict
    return verdict if verdict and _is_like_norm(module, verdict) else None


def _is_like_norm(module, verdict):
    """Whether a module that is not called a norm, and is none, looks like one to whoever reads the report."""
    tensors = _tensors(module).values()
    is_of_vectors = all(t.ndim < 2 for t in tensors)
    if RETURNS in verdict:
        return False
    # it ran, and y has the shape of x
    if not verdict.startswith((UNTRIED, "whose forward takes", "which holds")):
        return has_root(type(module)) or is_of_vectors and reduces(type(module))
    return bool(tensors) and is_of_vectors and has_root(type(module))


def _calls_norm(node):
    return node.op == "call_function" and "_norm" in str(node.target)


def _of_torch(module):
    spec = LAYER_NORM if isinstance(module, torch.nn.LayerNorm) else RMS_NORM
    try:
        eps = None if module.eps is None and spec is RMS_NORM else check_eps(module.eps)
        roles = tuple((name, name) for name in _tensors(module))
        axes = check_axes(module.normalized_shape)
        return Recipe(axes, spec.replace(eps=eps), roles=roles)
    except (TypeError, ValueError) as error:
        return f"which has no equal here, {error}"


def _tensors(module):
    """{name: a parameter or buffer that is there}."""
    tensors = {**module._parameters, **module._buffers}
    return {name: t for name, t in tensors.items() if t is not None}


def _unfit(module):
    """Why a module cannot be replaced, whatever it computes; None where it can."""
    if module._modules:
        return f"which holds modules of its own: {', '.join(module._modules)}"
    if type(module).__call__ is not torch.nn.Module.__call__:
        return "which is called in its own way (__call__)"
    if "forward" in vars(module):
        return "whose forward was set on this very object"
    if getattr(module, "_compiled_call_impl", None) is not None:
        return "which is compiled: replace first, then compile"
    if reason := _unfit_hooks(module):
        return reason
    tensors = _tensors(module)
    shapes = {t.shape for t in tensors.values()}
    if len(tensors) > 2 or len(shapes) > 1 or any(len(shape) > 2 for shape in shapes):
        return f"which holds {', '.join(tensors)}, needs a weight, or weight and bias, or nothing"
    for name, t in tensors.items():
        expected = torch.nn.Parameter if name in module._parameters else torch.Tensor
        if (
            type(t) is not expected
            or t.layout != torch.strided
            or t.dtype not in DTYPES
        ):
            needs = f"a dense torch{'.nn' * (expected is torch.nn.Parameter)}.{expected.__name__}"
            return f"whose {name} is a {type(t).__name__} of {t.dtype}, needs {needs}"
        if t.is_meta:
            return f"whose {name} is on the meta device: load the parameters first"
    if changed := [
        name
        for name in STATE
        if getattr(type(module), name) is not getattr(torch.nn.Module, name)
    ]:
        return f"which saves or loads its state in its own way ({', '.join(changed)})"
    return None


def _unfit_hooks(module):
    """Which hooks would see another thing of a module in its place; the others go over to it."""
    if module._backward_hooks and not module._is_full_backward_hook:
        return (
            "which has a hook by register_backward_hook, which sees the last operation:"
            " use register_full_backward_hook"
        )
    for hook in module._load_state_dict_pre_hooks.values():
        if getattr(hook, "with_module", False):
            return (
                "which has a hook by register_load_state_dict_pre_hook, which holds"
                " this very object: replace first, then register it"
            )
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
        for tensors in (module._parameters, module._buffers)
        for name, t in tensors.items()
    ]
    return type(module), repr(sorted(own.items())), repr(shapes)


@dataclass(frozen=True)
class Layout:
    """How a module's tensors lie, as one of several guesses.

    Args:  roles: {name: "weight" or "bias"}; axes: the sizes of those that are normalized; heads: H or None
           is_free: whether the module says nothing of N
    """

    roles: dict[str, str]
    axes: tuple[int, ...]
    heads: int | None = None
    is_free: bool = False

    @property
    def columns(self) -> int:
        """N."""
        return math.prod(self.axes)

    def rows(self, eps: list[float], module: torch.nn.Module) -> Rows:
        """Rows for a module, with a weight and a bias of the module's shapes."""
        shapes = {self.roles.get(name): t.shape for name, t in _tensors(module).items()}
        if self.heads is None and len(self.axes) > 1:
            shapes = dict.fromkeys(shapes, (self.columns,))
        return _rows(self.columns, eps, shapes.get("weight"), shapes.get("bias"))


def _layouts(module) -> Iterator[Layout]:
    """The guesses, those first that are more frequent; none where no N is known to be one."""
    names = list(_tensors(module))
    for order in permutations(names):
        roles = dict(zip(order, ("weight", "bias"), strict=False))
        shape = tuple(_tensors(module)[names[0]].shape) if names else ()
        if len(shape) == 2:
            yield Layout(roles, shape[1:], shape[0])
            yield Layout(roles, shape)
        elif math.prod(shape) > 1:
            yield Layout(roles, shape)
        elif not names and hasattr(module, "normalized_shape"):
            yield Layout(roles, check_axes(module.normalized_shape))
        elif len(names) < 2:
            yield Layout(roles, FREE_COLUMNS[:1], is_free=True)


def _probed(module, probed, rounding):
    """What a copy of a module shows, and what its text says."""
    taken = list(inspect.signature(module.forward).parameters.values())
    if len(taken) != 1 or taken[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        needs = ", needs one tensor"
        if [parameter.name in GATES for parameter in taken] == [False, True]:
            needs = ", a gate: "
            if rounding == "once":
                outcome = _gated(module, probed)
                if isinstance(outcome, Recipe):
                    return outcome
                needs += outcome
            else:
                needs += (
                    'rounding="once" takes normgrad.nn.GatedRMSNorm, where it is one'
                )
        return f"whose forward takes ({', '.join(map(str, taken))}){needs}"
    verdict = NEITHER
    try:
        layouts = list(_layouts(module))
    except (TypeError, ValueError):
        return "whose normalized_shape is no size: how long its rows are is not known"
    if any(layout.columns < 2 for layout in layouts):
        return "whose rows have one column, needs at least two"
    for layout in layouts:
        try:
            autocast = torch.autocast(_device(module).type, enabled=False)
            with torch.inference_mode(False), autocast, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcome = _compared(module, layout, rounding)
        except Exception as error:  # whatever another's forward may raise
            outcome = _untried(error)
        if isinstance(outcome, Recipe):
            return _proved(module, layout, outcome, probed)
        # a reason that says more stays
        if verdict == NEITHER:
            verdict = outcome
    return verdict


def _untried(error):
    """Why a module could not be run."""
    return f"{UNTRIED}: {type(error).__name__}, {textwrap.shorten(str(error), 90)}"


def _gated(module, probed):
    """The Recipe of a norm of two tensors, the second of which is a gate, or why it has none."""
    weight = module._parameters.get("weight")
    is_one = weight is not None and list(_tensors(module)) == ["weight"]
    if not is_one or weight.ndim != 1 or len(weight) < 2:
        return "needs one weight of the name weight"
    layout = Layout({"weight": "weight"}, tuple(weight.shape))
    eps = [number for number in _possible_eps(module) if number]
    for gate, number in product(("first", "last"), eps):
        spec = RMS_NORM.replace(eps=number)
        try:
            with torch.enable_grad(), torch.inference_mode(False):
                is_equal = _is_gated(module, layout, eps, spec, gate)
        except Exception as error:  # whatever another's forward may raise
            return _untried(error)
        if is_equal:
            break
    else:
        return "which is no RMSNorm with silu(gate) before or after it"
    recipe = Recipe(
        layout.axes,
        spec,
        roles=(("weight", "weight"),),
        gate=gate,
        note=", which rounded elsewhere in 16 bits",
    )
    outcome = _proved(module, layout, recipe, probed)
    # The rows alone do not tell a gate from every other function.
    if isinstance(outcome, Recipe) and not outcome.is_proved:
        return f"which is {recipe}: {outcome.proof}"
    return outcome


def _is_gated(module, layout, eps, spec, gate):
    """Whether a module is a norm with a gate, for gates that are exact and for others, with gradients."""
    rows = layout.rows(eps, module)
    twin = Trial.of(module, layout, rows)
    rng = np.random.default_rng(SEED)
    exact = rng.choice(EXACT_GATES, rows.x.shape)
    with torch.no_grad():
        y = twin.module.train()(twin.tensor(rows.x, -1), twin.tensor(exact, -1))
    before, after = (exact, 1.0) if gate == "first" else (1.0, exact)
    saved = _saved(replace(rows, x=rows.x * before), spec)
    if not _within(y, saved.y * after, _errors_of_y(saved) * after):
        return False
    x, gates = rng.standard_normal((2, *rows.x.shape))
    results = []
    for norm, dtype in ((twin.module, torch.float32), (_gated_rows, torch.float64)):
        leaves = [twin.tensor(t, -1, dtype=dtype) for t in (x, gates)]
        weight = twin.module.weight
        if norm is _gated_rows:
            weight = weight.detach().to(dtype).requires_grad_()
            norm = partial(norm, weight, spec.eps, gate)
        leaves = [leaf.requires_grad_() for leaf in leaves]
        y = norm(*leaves)
        grads = torch.autograd.grad(
            y, [*leaves, weight], twin.tensor(gates, -1).to(y.dtype)
        )
        results.append([y.detach(), *grads])
    return all(
        (left - right).abs().max() <= GATED_ERROR * right.abs().max()
        for left, right in zip(*results, strict=True)
    )


def _gated_rows(weight, eps, gate, x, gates):
    """RMSNorm with silu(gates) before or after it, as its formula reads."""
    factor = torch.nn.functional.silu(gates)
    x = x * factor if gate == "first" else x
    y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight
    return y if gate == "first" else y * factor


def _proved(module, layout, recipe, probed):
    """The recipe with its proof, or the reason where the text refutes it."""
    columns = 0 if layout.is_free else layout.columns
    where = f"run at N = {layout.columns}"
    if layout.is_free:
        where = f"run at N = {' and '.join(map(str, FREE_COLUMNS))}"
    if len(layout.axes) > 1:
        return replace(recipe, proof=where, is_proved=False)
    spec, gate = recipe.spec, recipe.gate
    is_equal, words = compared(module, layout.roles, columns, spec, probed, gate)
    # What was read and is not proved may differ at numbers that the rows do not have.
    if is_equal is False:
        return f"which is {recipe} of the rows that it was run on, and by its text is not shown to be: {words}"
    if is_equal is None:
        words = textwrap.shorten(words, 90)
        return replace(recipe, proof=f"{where}, not proved: {words}", is_proved=False)
    sizes = f", with {words}" if words else ""
    return replace(recipe, proof=f"proved equal for every N{sizes}")


def _compared(module, layout, rounding):
    """The Recipe of a module for one layout of its tensors, or the reason why there is none."""
    axes, roles = layout.axes, layout.roles
    eps = _possible_eps(module)
    rows = layout.rows(eps, module)
    wide = Trial.of(module, layout, rows)
    has_one_axis = len(axes) == 1 and not layout.heads and not layout.is_free
    if has_one_axis and wide.takes_channels_second():
        return "which takes channels on the second axis"
    y = wide.y()
    # No eps shows there, so that what is a norm at all is known before eps is looked for.
    large = replace(rows, x=rows.x[np.abs(rows.x).max(1) >= 2.0**LARGE])
    y_of_large = Trial.of(module, layout, large).y()
    scales = _possible_scales(module, layout)
    for spec in _possible_specs(scales, rows, len(axes) == 1):
        if _is_y(y_of_large, large, spec):
            spec = _with_eps(spec, y, rows, eps, len(axes) == 1)
            if spec is not None:
                break
    else:
        return NEITHER
    shape = None if layout.is_free else axes
    recipe = Recipe(shape, spec, heads=layout.heads, roles=tuple(roles.items()))
    if layout.is_free:
        further = replace(layout, axes=FREE_COLUMNS[1:])
        free_rows = further.rows(eps, module)
        if not _is_y(Trial.of(module, further, free_rows).y(), free_rows, spec):
            return f"which is {recipe} at N = {FREE_COLUMNS[0]} alone"
    further = [wide.y(*lead) for lead in ((2, -1), (2, 1, -1), (1, 2, 1, -1))]
    further.append(wide.y(training=True))
    if not all(_is_y(y, rows, spec) for y in further):
        return f"which is {recipe} of a matrix and something else of more axes or in training"
    if not wide.has_gradients(spec):
        return f"whose forward is {recipe} and whose gradients are not"
    castings = CASTINGS
    if (
        "weight" not in roles.values()
        or spec.center
        or spec.weight_offset
        or "bias" in roles.values()
    ):
        castings = CASTINGS[:1]
    narrow = Trial.of(module, layout, rows, torch.bfloat16)
    y = narrow.y(dtype=torch.bfloat16)
    for casting in castings:
        if y.dtype == torch.bfloat16 and _is_rounded_y(y, rows, spec, casting):
            break
    else:
        if rounding == "same":
            return f'which is {recipe} in float32 and rounds elsewhere in bfloat16: rounding="once" replaces it'
        return replace(recipe, note=", which rounded elsewhere in 16 bits")
    needed = torch.float32 if casting == "llama" else torch.bfloat16
    if roles and wide.dtype_of_mixed() not in (None, needed):
        return f"which is {recipe}, and of a float32 weight with bfloat16 rows makes something else than {needed}"
    return replace(recipe, casting=casting)


def _own_numbers(module):
    return [number for number in _own(module).values() if type(number) is float]


def _possible_eps(module):
    """The module's own numbers first."""
    own = [number for number in _own_numbers(module) if 0 <= number < math.inf]
    return list(dict.fromkeys([*own, *COMMON_EPS]))


def _possible_scales(module, layout):
    """1, the roots of N and the module's own numbers, but for those that are an eps."""
    roots = [] if layout.is_free else [layout.columns**0.5, layout.columns**-0.5]
    scales = [1.0, *roots, *_own_numbers(module)]
    return list(dict.fromkeys(n for n in scales if SMALLEST_SCALE < n < math.inf))


def _possible_specs(scales, rows, is_vector):
    """Specs with eps 0; without a bias RMSNorm comes first."""
    offsets = (0.0,) if rows.weight is None else (0.0, 1.0)
    centers = (False, True) if rows.bias is None else (True, False)
    presets = [(center, "mean", 1.0) for center in centers]
    if is_vector:
        further = product(centers, ("mean", "sum"), scales)
        presets += [preset for preset in further if preset[1:] != ("mean", 1.0)]
    for (center, reduce, scale), offset in product(presets, offsets):
        yield NormSpec(center, reduce, scale, 0.0, "inside", offset)


def _with_eps(spec, y, rows, eps, is_vector):
    """The spec with the eps, and the place of it, by which y is made of the rows; None where there is none."""
    placements = ("inside", "clamp", "outside") if is_vector else ("inside",)
    for placement, number in product(placements, eps):
        candidate = spec.replace(placement=placement, eps=number)
        if (number or placement == "inside") and _is_y(y, rows, candidate):
            return candidate
    # the machine epsilon is the last
    is_rms = spec == RMS_NORM.replace(eps=0.0, weight_offset=spec.weight_offset)
    candidate = spec.replace(eps=None)
    if is_rms and rows.bias is None and _is_y(y, rows, candidate):
        return candidate
    return None


def _rows(columns, eps, weight_shape, bias_shape):
    """Two rows at each power of two, with means 1 and -2 there, deviations 1, 2, 3 of both signs, and 0 if N is odd."""
    rng = np.random.default_rng(SEED)
    exponents = list(EXPONENTS)
    for number in filter(None, eps):
        size = math.log2(number)
        # the same as a floor, above and below it, of the mean and of the sum of squares
        floors = size, size - math.log2(columns) / 2
        exponents += [size / 2, *floors, *(floor - 3 for floor in floors)]
    exponents = [round(exponent) for exponent in exponents]
    rows = []
    for exponent in dict.fromkeys(e for e in exponents if e >= SMALLEST):
        for mean in (1, -2):
            half = rng.integers(1, 4, columns // 2)
            whole = rng.permutation(
                np.concatenate([half, -half, np.zeros(columns % 2)])
            )
            rows.append((whole + mean) * 2.0**exponent)
    weight, bias = (
        None if shape is None else round_to(rng.standard_normal(shape), "bfloat16")
        for shape in (weight_shape, bias_shape)
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


def _by_head(y, rows):
    """(the rows of a head, its y (M, N)) for each head."""
    heads = rows.of_heads()
    y = y.reshape(len(rows.x), len(heads), -1)
    return [(of_head, y[:, h]) for h, of_head in enumerate(heads)]


def _is_y(y, rows, spec):
    if y.dtype != torch.float32:
        return False
    for of_head, y_of_head in _by_head(y, rows):
        saved = _saved(of_head, spec)
        if not _within(y_of_head, saved.y, _errors_of_y(saved)):
            return False
    return True


def _is_rounded_y(y, rows, spec, casting):
    """Whether each value lies between what the ends of its interval round to."""
    for of_head, y_of_head in _by_head(y, rows):
        late = 1.0
        if casting == "llama":
            late, of_head = of_head.weight, replace(of_head, weight=None)
        saved = _saved(of_head, spec)
        error = _errors_of_y(saved)
        ends = [
            round_to(late * round_to(end, "bfloat16"), "bfloat16")
            for end in (saved.y - error, saved.y + error)
        ]
        middle = (ends[0] + ends[1]) / 2
        if not _within(y_of_head, middle, np.abs(ends[1] - ends[0]) / 2):
            return False
    return True
