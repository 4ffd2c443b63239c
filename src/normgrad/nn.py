"""Modules: torch.nn's LayerNorm and RMSNorm with this package's gradients, any NormSpec, a residual stream, and a gate.

LayerNorm and RMSNorm are subclasses of torch's, with the same parameters and state_dict, so that what tests for a norm
by isinstance finds one. `replace_norms` puts them into a model. Under torch.autocast y keeps the input's dtype; of
torch's own, some devices return float32 there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .versions import without_torch

try:
    import torch
except ModuleNotFoundError as error:
    raise without_torch(error) from error

from torch import Tensor
from torch.types import Device

from .recognition import (
    CASTINGS,
    HOOKS,
    ROUNDINGS,
    Casting,
    Recipe,
    Rounding,
    recognised,
)
from .spec import (
    LAYER_NORM,
    Axes,
    NormSpec,
    check_axes,
    check_eps,
    check_heads,
    check_spec,
    check_weight_offset,
)
from .torch_ops.api import (
    add_layer_norm,
    add_rms_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from .torch_ops.arguments import (
    Backend,
    check_backend,
    check_device,
    check_dtype,
    check_flag,
    check_normalized_shape,
)

# torch.fx follows no modules but torch's own; these stay one call each in what it traces.
for _name in (
    "add_layer_norm",
    "add_rms_norm",
    "layer_norm",
    "normalize",
    "rms_norm",
    "_gated",
    "_times",
):
    torch.fx.wrap(_name)


def _times(
    x_hat: Tensor, normalized_shape: tuple[int, ...], weight: Tensor, heads: int | None
) -> Tensor:
    """weight * x_hat as torch multiplies; what would broadcast is refused as by rms_norm."""
    check_normalized_shape(x_hat, normalized_shape, None, heads, weight=weight)
    return weight * x_hat


def _gated(
    input: Tensor, gate: Tensor, weight: Tensor | None, eps: float, gate_first: bool
) -> Tensor:
    """gated_rms_norm, imported when it is called: a name of this module that torch.fx can wrap."""
    from .fused import gated_rms_norm

    return gated_rms_norm(input, gate, weight, eps, gate_first=gate_first)


def _has_own_forward(module: torch.nn.Module, arguments: tuple) -> None:
    """A hook that does nothing: torch.nn.TransformerEncoderLayer calls the forward of modules that have hooks.

    Without gradients it would take weight, bias and eps instead, and compute torch's LayerNorm of them.
    """


class _Norm(torch.nn.Module):
    """The parameters, named and shaped as in torch.nn, so that either state_dict loads into the other's module."""

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float | None,
        affine: bool,
        bias: bool,
        device: Device,
        dtype: torch.dtype | None,
        weight_offset: float,
        heads: int | None,
        out_dtype: torch.dtype | None,
        backend: Backend,
    ) -> None:
        torch.nn.Module.__init__(
            self
        )  # torch's own constructor would make parameters that are not checked
        shape = check_axes(normalized_shape)
        if eps is not None:
            check_eps(eps)
        check_backend(backend)
        check_flag("elementwise_affine", affine)
        check_flag("bias", bias)
        check_dtype("dtype", dtype)
        check_dtype("out_dtype", out_dtype)
        check_device("device", device)
        self.weight_offset = check_weight_offset(
            shape if affine else None, weight_offset
        )
        self.normalized_shape, self.eps = shape, eps
        self.elementwise_affine, self.heads = affine, heads
        shape = check_heads(heads, shape if affine else None) + shape
        self.out_dtype, self.backend = out_dtype, backend
        factory = {"device": device, "dtype": dtype}
        weight = torch.full(shape, 1 - self.weight_offset, **factory)
        zeros = torch.zeros(shape, **factory)
        self.weight = torch.nn.Parameter(weight) if affine else None
        self.bias = torch.nn.Parameter(zeros) if affine and bias else None
        beyond_torch = self.bias is None or self.weight_offset != 0
        if beyond_torch or out_dtype is not None or heads is not None:
            self.register_forward_pre_hook(_has_own_forward)

    def reset_parameters(self) -> None:
        """Weight 1 - weight_offset and bias 0, as after construction."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1 - self.weight_offset)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        out = "" if self.weight_offset == 0 else f"weight_offset={self.weight_offset}, "
        out += "" if self.heads is None else f"heads={self.heads}, "
        out += "" if self.out_dtype is None else f"out_dtype={self.out_dtype}, "
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}, {out}backend={self.backend!r}"
        )

    def _keywords(self) -> dict[str, Any]:
        of_weight = {"weight_offset": self.weight_offset, "heads": self.heads}
        return {**of_weight, "out_dtype": self.out_dtype, "backend": self.backend}


class LayerNorm(_Norm, torch.nn.LayerNorm):
    """LayerNorm as torch.nn.LayerNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps, elementwise_affine, bias, device, dtype as in torch;
           weight_offset: what is added to the weight, which begins at 1 - weight_offset; heads: H for weight and bias
           of the shape (H, *normalized_shape), one for each head; out_dtype, backend as normgrad.normalize
    """

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        weight_offset: float = 0.0,
        heads: int | None = None,
        out_dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> None:
        check_eps(eps)
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device, dtype,
                         weight_offset, heads, out_dtype, backend)  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """layer_norm of input (..., *normalized_shape) with the module's weight, bias and eps."""
        return layer_norm(
            input,
            self.normalized_shape,
            self.weight,
            self.bias,
            self.eps,
            **self._keywords(),
        )


def check_casting(
    casting: Casting,
    affine: bool,
    out_dtype: torch.dtype | None,
    weight_offset: float = 0.0,
) -> None:
    """One of CASTINGS that the other options leave a sense; anything else is refused by name."""
    if not isinstance(casting, str) or casting not in CASTINGS:
        raise ValueError(
            f"casting: got {casting!r}, needs {' or '.join(map(repr, CASTINGS))}"
        )
    senseless = None
    if not affine:
        senseless = "without a weight"
    elif weight_offset:
        senseless = f"with weight_offset {weight_offset}"
    elif out_dtype:
        senseless = f"with out_dtype {out_dtype}"
    if casting == "llama" and senseless:
        raise ValueError(f"casting: got 'llama' {senseless}, needs 'once' there")


class RMSNorm(_Norm, torch.nn.RMSNorm):
    """RMSNorm as torch.nn.RMSNorm, with this package's gradients.

    Args:  normalized_shape: an int or the last axes' sizes; eps (None means the statistics' machine epsilon),
           elementwise_affine, device, dtype as in torch; weight_offset: what is added to the weight, which begins at
           1 - weight_offset: 1.0 in Gemma 1 to 3; heads: H for a weight of the shape (H, *normalized_shape), one for
           each head; casting: "once" multiplies in the dtype of the statistics and rounds once,
           "llama" rounds x_hat to the input's dtype and multiplies then, as most models of transformers do: torch
           multiplies, in one more pass over the rows, and y has the promoted dtype of input and weight, as there (of
           functions, weight * rms_norm(x, n)); out_dtype, backend as normgrad.normalize
    Raises:  as normgrad.rms_norm, and ValueError for casting "llama" without a weight, with a weight_offset, which 16
             bits would not hold beside 1, or with an out_dtype, as y has a dtype already
    """

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        weight_offset: float = 0.0,
        casting: Casting = "once",
        heads: int | None = None,
        out_dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, False, device, dtype,
                         weight_offset, heads, out_dtype, backend)  # fmt: skip
        check_casting(casting, elementwise_affine, out_dtype, self.weight_offset)
        self.casting = casting

    def extra_repr(self) -> str:
        """What the representation says."""
        return super().extra_repr() + (
            "" if self.casting == "once" else f", casting={self.casting!r}"
        )

    def forward(self, input: Tensor) -> Tensor:
        """rms_norm of input (..., *normalized_shape) with the module's weight and eps."""
        if self.casting == "llama":
            x_hat = rms_norm(
                input,
                self.normalized_shape,
                None,
                self.eps,
                **{**self._keywords(), "heads": None},
            )
            return _times(x_hat, self.normalized_shape, self.weight, self.heads)
        return rms_norm(
            input, self.normalized_shape, self.weight, self.eps, **self._keywords()
        )


class Normalize(torch.nn.Module):
    """normgrad.normalize as a module, for any NormSpec: what LayerNorm and RMSNorm are not.

    Args:  spec; columns: N, the size of the last axis, for a weight (N,), which begins at 1 - weight_offset; 1 for one
           number for all columns, with rows of any length; None without a weight; bias: whether there is one, of the
           weight's shape; heads: H for both of the shape (H, N); casting: as of RMSNorm, here with a bias and a
           weight_offset, too; weight_name, bias_name: of the parameters; device, dtype, out_dtype, backend as there
    Raises:  as RMSNorm
    """

    def __init__(
        self,
        spec: NormSpec = LAYER_NORM,
        columns: int | None = None,
        *,
        bias: bool = False,
        heads: int | None = None,
        casting: Casting = "once",
        weight_name: str = "weight",
        bias_name: str = "bias",
        device: Device = None,
        dtype: torch.dtype | None = None,
        out_dtype: torch.dtype | None = None,
        backend: Backend = "auto",
    ) -> None:
        super().__init__()
        check_spec(spec)
        shape = () if columns is None else check_axes(columns)
        if len(shape) > 1:
            raise ValueError(f"columns: got {shape}, needs one size")
        check_backend(backend)
        check_flag("bias", bias)
        check_dtype("dtype", dtype)
        check_dtype("out_dtype", out_dtype)
        check_device("device", device)
        check_weight_offset(shape or None, spec.weight_offset)
        check_casting(casting, bool(shape), out_dtype)
        if bias and not shape:
            raise ValueError("bias: got True without columns, needs False there")
        shape = check_heads(heads, shape or None) + shape
        self.spec, self.columns, self.heads = spec, columns, heads
        self.casting, self.out_dtype, self.backend = casting, out_dtype, backend
        self.weight_name, self.bias_name = weight_name, bias_name
        factory = {"device": device, "dtype": dtype}
        if columns is not None:
            weight = torch.full(shape, 1 - spec.weight_offset, **factory)
            self.register_parameter(weight_name, torch.nn.Parameter(weight))
        if bias:
            zeros = torch.zeros(shape, **factory)
            self.register_parameter(bias_name, torch.nn.Parameter(zeros))

    def _vector(self, name: str, columns: int) -> Tensor | None:
        """A parameter, or a buffer, by its name, one number as often as there are columns; None where there is none."""
        vector: Tensor | None = getattr(self, name, None)
        if vector is not None and self.columns == 1:
            return vector.expand(columns)
        return vector

    def reset_parameters(self) -> None:
        """Weight 1 - weight_offset and bias 0, as after construction."""
        starts = {self.weight_name: 1 - self.spec.weight_offset, self.bias_name: 0.0}
        for name, parameter in self._parameters.items():
            if parameter is not None:
                torch.nn.init.constant_(parameter, starts[name])

    def extra_repr(self) -> str:
        """What the representation says."""
        words = [str(self.spec), f"columns={self.columns}"]
        tensors = {**self._parameters, **self._buffers}
        for role, name in (("weight", self.weight_name), ("bias", self.bias_name)):
            if name in tensors:
                words.append(f"{role}={name!r}")
        if self.heads is not None:
            words.append(f"heads={self.heads}")
        if self.casting != "once":
            words.append(f"casting={self.casting!r}")
        if self.out_dtype is not None:
            words.append(f"out_dtype={self.out_dtype}")
        return ", ".join([*words, f"backend={self.backend!r}"])

    def forward(self, input: Tensor) -> Tensor:
        """normalize of input (..., N) with the module's spec, weight and bias."""
        weight = self._vector(self.weight_name, input.shape[-1])
        bias = self._vector(self.bias_name, input.shape[-1])
        spec, options = self.spec, {"backend": self.backend}
        if self.casting == "once":
            options |= {"heads": self.heads, "out_dtype": self.out_dtype}
            return normalize(input, weight, bias, spec=spec, **options)
        x_hat = normalize(input, spec=spec.replace(weight_offset=0.0), **options)
        if spec.weight_offset:
            weight = spec.weight_offset + weight
        y = _times(x_hat, (input.shape[-1],), weight, self.heads)
        return y if bias is None else y + bias


class AddNorm(torch.nn.Module):
    """Residual add and norm in one: (norm(input + residual), input + residual).

    Args:  norm: the LayerNorm or RMSNorm of this module whose weight, bias, eps, weight_offset, casting, out_dtype and
           backend are used; residual_dtype, round_residual as normgrad.add_normalize
    """

    def __init__(
        self,
        norm: LayerNorm | RMSNorm,
        *,
        residual_dtype: torch.dtype | None = None,
        round_residual: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(norm, (LayerNorm, RMSNorm)):
            got = f"{type(norm).__module__}.{type(norm).__name__}"  # torch has a LayerNorm, too
            raise TypeError(
                f"norm: got {got}, needs a normgrad.nn.LayerNorm or normgrad.nn.RMSNorm"
            )
        check_dtype("residual_dtype", residual_dtype)
        check_flag("round_residual", round_residual)
        self.norm = norm
        self.residual_dtype, self.round_residual = residual_dtype, round_residual

    def extra_repr(self) -> str:
        """What the representation says besides the norm."""
        return f"residual_dtype={self.residual_dtype}, round_residual={self.round_residual}"

    def forward(self, input: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """(output, residual_out) for input and residual (..., *normalized_shape)."""
        norm, keywords = self.norm, self.norm._keywords()
        keywords |= {
            "residual_dtype": self.residual_dtype,
            "round_residual": self.round_residual,
        }
        arguments = (input, residual, norm.normalized_shape, norm.weight)
        if isinstance(norm, LayerNorm):
            return add_layer_norm(*arguments, norm.bias, norm.eps, **keywords)
        if norm.casting == "llama":
            x_hat, residual_out = add_rms_norm(
                *arguments[:3], None, norm.eps, **{**keywords, "heads": None}
            )
            return _times(x_hat, *arguments[2:], norm.heads), residual_out
        return add_rms_norm(*arguments, norm.eps, **keywords)


class GatedRMSNorm(torch.nn.Module):
    """RMSNorm with a gate silu(gate) before or after it, in one kernel each way.

    Args:  normalized_shape: N, or (N,), the size of the last axis; eps: positive; elementwise_affine: whether there is
           a weight (N,), which begins at 1; device, dtype: of the weight; gate_first: as normgrad.gated_rms_norm
    """

    def __init__(
        self,
        normalized_shape: Axes,
        eps: float = 1e-6,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        gate_first: bool = False,
    ) -> None:
        super().__init__()
        shape = check_axes(normalized_shape)
        if len(shape) != 1:
            raise ValueError(
                f"normalized_shape: got {shape}, needs one axis, the last one"
            )
        if check_eps(eps) == 0:
            raise ValueError("eps: got 0, needs a positive number")
        check_flag("elementwise_affine", elementwise_affine)
        check_flag("gate_first", gate_first)
        check_device("device", device)
        check_dtype("dtype", dtype)
        self.normalized_shape, self.eps = shape, eps
        self.elementwise_affine, self.gate_first = elementwise_affine, gate_first
        weight = torch.ones(shape, device=device, dtype=dtype)
        self.weight = torch.nn.Parameter(weight) if elementwise_affine else None

    def reset_parameters(self) -> None:
        """Weight 1, as after construction."""
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)

    def extra_repr(self) -> str:
        """What the representation says."""
        said = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{said}, gate_first={self.gate_first}"

    def forward(self, input: Tensor, gate: Tensor) -> Tensor:
        """gated_rms_norm of input and gate (..., N) with the module's weight and eps."""
        check_normalized_shape(input, self.normalized_shape, None, weight=self.weight)
        return _gated(input, gate, self.weight, self.eps, self.gate_first)


NO_PARENT = (
    "which is the model itself: put it into a module that holds it, as"
    " torch.nn.Sequential(model)"
)


@dataclass(frozen=True)
class ReplacedNorms:
    """What replace_norms did: {qualified name: what stood there and what stands there now, or why it was left}.

    Args:  replaced, left: in the order of the model's modules; printed, those with one text share a line
           proofs: {name of what is replaced: for which row lengths it is equal, and by what}
           proved: the names of those that are equal for every row length
    """

    replaced: dict[str, str]
    left: dict[str, str]
    proofs: dict[str, str] = field(default_factory=dict)
    proved: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = (
            f"replaced {len(self.replaced)} of {len(self.replaced) + len(self.left)}"
        )
        if self.replaced and len(self.proved) == len(self.replaced):
            count += "; equal for every N"
        elif self.replaced:
            count += f"; {len(self.proved)} of them proved for every N"
        with_proofs = {
            name: f"{text}; {self.proofs[name]}" if name in self.proofs else text
            for name, text in self.replaced.items()
        }
        lines = []
        for title, texts in (
            (count, with_proofs),
            (f"left {len(self.left)}", self.left),
        ):
            lines.append(title)
            names: dict[str, list[str]] = {}
            for name, text in texts.items():
                names.setdefault(text, []).append(name or "(the model itself)")
            for text, (first, *further) in names.items():
                more = f" and {len(further)} more" if further else ""
                lines.append(f"  {first}{more}: {text}")
        return "\n".join(lines)


def replace_norms(
    model: torch.nn.Module,
    *,
    backend: Backend = "auto",
    rounding: Rounding = "same",
) -> ReplacedNorms:
    """Put LayerNorm, RMSNorm and Normalize of this package in the place of a model's own norms.

    torch.nn.LayerNorm and RMSNorm are known. What else has one weight, or weight and bias, of any name, or nothing, and
    a forward of one tensor is recognised by what a copy of it computes on rows made for that, in float32 and in
    bfloat16, with gradients: LayerNorm or RMSNorm, eps and where it stands, scale, weight_offset, heads, casting. What
    differs in one of these is left. Its forward is read, too, and proved equal for every row length in real numbers
    (normgrad.verify, where sympy is installed); what that refutes is left, and what it does not read is said to be run
    at one length. An RMSNorm with a gate by silu is GatedRMSNorm, where its text is proved. Parameters stay the very
    objects and keep their names, so that optimizers, ties and state dicts notice nothing; so do hooks.

    Args:     model: changed in place, but for itself; backend: of the new modules, as normgrad.normalize
              rounding: "same" leaves a norm that rounds elsewhere in bfloat16, "once" replaces it by one that rounds
              once and gives y in the input's dtype
    Returns:  ReplacedNorms: names with what was replaced, and names of norms with why they were left: other axes than
              the last ones, parameters on the meta device, a hook that would see something else; what holds vectors
              and reduces rows, whatever it is called; what calls a norm as a function; and each module that torch.jit
              has compiled or torch.export has written, whose norms are not seen
    Numerics: float16 and float64 are not compared: some norms compute in float32 there, these in float64
    Raises:   TypeError for a model that is no torch.nn.Module, ValueError for a backend or a rounding without a name
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: got {type(model).__name__}, needs a torch.nn.Module")
    check_backend(backend)
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        needs = " or ".join(map(repr, ROUNDINGS))
        raise ValueError(f"rounding: got {rounding!r}, needs {needs}")
    places: list[tuple[str, Any, str, Any]] = [("", None, "", model)]
    for prefix, parent in model.named_modules():
        if isinstance(parent, torch.jit.ScriptModule):
            continue  # it stands for its modules
        dot = f"{prefix}." if prefix else ""
        for name, module in parent._modules.items():
            places.append((dot + name, parent, name, module))
    probed: dict[Any, Any] = {}
    norms: dict[int, torch.nn.Module] = {}
    report = ReplacedNorms({}, {})
    proved = []
    for qualified, parent, name, module in places:
        recipe = None
        if isinstance(module, (_Norm, Normalize, GatedRMSNorm)):
            recipe = "which is of this package"
        elif module is not None:
            recipe = recognised(module, probed, rounding)
        kind = type(module).__name__
        if isinstance(recipe, Recipe) and parent is not None:
            if id(module) not in norms:
                norms[id(module)] = _of(recipe, module, backend)
            parent._modules[name] = norms[id(module)]
            report.replaced[qualified] = f"{kind} by {recipe}"
            report.proofs[qualified] = recipe.proof
            if recipe.is_proved:
                proved.append(qualified)
        elif isinstance(recipe, Recipe):
            report.left[qualified] = f"{kind}, {NO_PARENT}"
        elif recipe is not None:
            report.left[qualified] = f"{kind}, {recipe}"
    return replace(report, proved=tuple(proved))


def _of(recipe: Recipe, module: torch.nn.Module, backend: Backend) -> torch.nn.Module:
    """The module of a recipe, with the tensors, the hooks and the mode of another."""
    norm: torch.nn.Module
    spec, axes = recipe.spec, recipe.normalized_shape
    names = {role: name for name, role in recipe.roles}
    affine, bias = "weight" in names, "bias" in names
    options: dict[str, Any] = {
        "device": "meta",
        "heads": recipe.heads,
        "backend": backend,
    }
    if recipe.gate:
        assert axes is not None and spec.eps is not None
        norm = GatedRMSNorm(
            axes, spec.eps, device="meta", gate_first=recipe.gate == "first"
        )
    elif recipe.is_plain:
        assert axes is not None
        options["weight_offset"] = spec.weight_offset
        if spec.center:
            norm = LayerNorm(axes, spec.eps or 0.0, affine, bias, **options)
        else:
            norm = RMSNorm(axes, spec.eps, affine, casting=recipe.casting, **options)
    else:
        named = {f"{role}_name": name for role, name in names.items()}
        columns = None
        if affine:
            columns = 1 if axes is None else axes[0]
        options |= {"bias": bias, "casting": recipe.casting}
        norm = Normalize(spec, columns, **options, **named)
    own_hooks = list(norm._forward_pre_hooks.values())
    for hooks in HOOKS:
        setattr(norm, hooks, getattr(module, hooks))
    norm._is_full_backward_hook = module._is_full_backward_hook
    for hook in own_hooks:
        norm.register_forward_pre_hook(hook)
    norm._parameters.update(module._parameters)
    for name in module._buffers:
        norm._parameters.pop(name, None)
    norm._buffers.update(module._buffers)
    norm._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
    norm.training = module.training
    return norm
