"""The implementations behind one interface, for the contract, the mutants and the homework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from .. import numpy_ref
from ..spec import NormSpec
from ..tolerance import Dtypes, promoted
from . import cases
from .cases import ARRAYS, MATRICES, VECTORS, Case, changed

if TYPE_CHECKING:
    from torch import Tensor

Name = Literal["numpy", "sympy", "torch", "triton", "numba"]
INPUTS = ("x", "residual", "weight", "bias")
OUTPUTS = ("y", "residual_out", "dx", "dresidual", "dw", "db")
OF_INPUT_DTYPE = ("y", "dx", "dresidual", "dw", "db")


@dataclass(frozen=True)
class Outcome:
    """Outputs and gradients as float64 arrays; None where the case has no such argument."""

    y: np.ndarray
    residual_out: np.ndarray
    dx: np.ndarray
    dresidual: np.ndarray | None
    dw: np.ndarray | None
    db: np.ndarray | None


def _arrays(case, convert):
    def with_lead(name, array):
        if case.lead is not None and name in MATRICES:
            array = array.reshape(*case.lead, array.shape[-1])
        return convert(name, array)

    return changed(case, ARRAYS, with_lead)


def _in_rows(case, *outputs):
    """The outputs of a backend in float64, with the leading axes as one."""

    def in_rows(name, array):
        array = array.astype(np.float64)
        if case.lead is None or name in VECTORS:
            return array
        return array.reshape(case.x.shape)

    return Outcome(**changed(Outcome(*outputs), OUTPUTS, in_rows))


def _repeats(case, name):
    """Whether the case wants the array as one row, repeated: only what is the same in all rows can be."""
    array = getattr(case, name)
    if case.layout != "expanded" or name not in MATRICES or array.size == 0:
        return False
    return np.ptp(array, 0).max() == 0


def _laid_out(case, name, array, library, **memory):
    """The array with the strides that the case's layout asks for.

    Args:  library: np or torch, whose array it is; memory: what its `empty` takes to make another one of that kind
    """
    if _repeats(case, name):
        first = array[(slice(1),) * (array.ndim - 1)]
        return library.broadcast_to(first, array.shape)
    *lead, columns = array.shape
    if case.layout == "transposed" and lead:
        wide = library.empty((columns, *lead[1:], lead[0]), **memory).swapaxes(0, -1)
    elif case.layout == "strided":
        wide = library.empty((*lead, 2 * columns), **memory)[..., ::2]
    elif case.layout == "sliced" and name in MATRICES:
        first = 1 + MATRICES.index(name)
        *tokens, heads = lead
        wide = library.empty((*tokens, heads + first + 1, columns), **memory)
        wide = wide[..., first:-1, :]
    else:
        return array
    wide[...] = array
    return wide


def _same_dtype(name, got, expected):
    if got is not None and got.dtype != expected:
        raise AssertionError(f"{name} has dtype {got.dtype}, needs {expected}")


def _spec_of(module, spec):
    """The spec as the module's own class: a copy of the package has a NormSpec of its own."""
    kind = getattr(module, "NormSpec", None)
    return spec if kind is None else kind(**asdict(spec))


class Backend(Protocol):
    """What the contract needs: a name for its messages, and the outputs and gradients of a case."""

    name: str

    def run(self, case: Case, spec: NormSpec, dtype: Any) -> Outcome:
        """Forward and backward of a case whose numbers the dtype holds."""
        ...


class NumpyBackend:
    """numpy_ref, or a module with the same two functions."""

    name = "numpy"
    dtypes = ("float64", "float32", "float16")

    def __init__(self, module: ModuleType = numpy_ref) -> None:
        self.module = module

    def forward(
        self, case: Case, arrays: dict[str, np.ndarray], spec: NormSpec
    ) -> tuple[np.ndarray, np.ndarray]:
        """(y, residual_out) of the case in float64, some of its arrays replaced."""
        outcome = self.run(replace(case, **arrays), spec, "float64")
        return outcome.y, outcome.residual_out

    def run(self, case: Case, spec: NormSpec, dtype: str) -> Outcome:
        """Forward and backward of a case whose numbers the dtype holds."""

        def convert(name, array):
            return _laid_out(case, name, array.astype(dtype), np, dtype=dtype)

        a = _arrays(case, convert)
        heads = {} if case.heads is None else {"heads": case.heads}
        inputs = (a["x"], a["weight"], a["bias"], a["residual"])
        saved = self.module.forward(*inputs, _spec_of(self.module, spec), **heads)
        grads = self.module.backward(a["dy"], saved, a["dresidual_out"])
        dresidual = None if case.residual is None else grads.dx
        gradients = (grads.dx, dresidual, grads.dweight, grads.dbias)
        for name, array in zip(OF_INPUT_DTYPE, (saved.y, *gradients), strict=True):
            _same_dtype(name, array, np.dtype(dtype))
        return _in_rows(case, saved.y, saved.residual_out, *gradients)


class SympyBackend(NumpyBackend):
    """NumPy code printed from the SymPy definitions that are proved; float64."""

    name = "sympy"
    dtypes = ("float64",)

    def __init__(self, module: ModuleType | None = None) -> None:
        if module is None:
            from ..symbolic import backend as module
        super().__init__(module)

    def run(self, case: Case, spec: NormSpec, dtype: str) -> Outcome:
        """Forward and backward of a case, head by head where each has a weight."""
        if case.heads is None:
            return super().run(case, spec, dtype)
        return _of_heads([self.run(part, spec, dtype) for part in case.by_head()])


def _of_heads(outcomes):
    """The outcome of all heads from those of each."""

    def joined(name, _):
        stacked = np.stack([getattr(outcome, name) for outcome in outcomes], -2)
        return stacked.reshape(-1, stacked.shape[-1])

    return Outcome(**changed(outcomes[0], OUTPUTS, joined))


def _home(name):
    if name != "triton":
        return "cpu"
    from .. import triton_kernels

    return "cpu" if triton_kernels.INTERPRETED else "cuda"


def options_of(case: Case, dtypes: Dtypes) -> dict[str, Any]:
    """The keywords of normgrad.add_normalize that a case in these dtypes needs; none where they are the defaults."""
    import torch

    options = {} if dtypes.round_residual else {"round_residual": False}
    if case.heads is not None:
        options["heads"] = case.heads
    if dtypes["y"] != dtypes["x"]:
        options["out_dtype"] = getattr(torch, dtypes["y"])
    if dtypes["residual_out"] != promoted(dtypes["x"], dtypes["residual"]):
        options["residual_dtype"] = getattr(torch, dtypes["residual_out"])
    return options


def _array(t):
    """A tensor's numbers in float64, None for None."""
    return None if t is None else t.detach().double().cpu().resolve_neg().numpy()


class TorchBackend:
    """The public API with one of torch's backends, or the autograd.Function over a module of kernels.

    Args:  name: "torch", "triton" or "numba"; kernels: a module with their forward and backward, None for the public
           API; device: where the tensors live, by default where the backend can run: the CPU, or for Triton's compiled
           kernels the GPU; create_graph: take the gradients so that they can be differentiated, which
           is another path through the code; package: the name under which a copy of normgrad was imported
    """

    dtypes = ("float64", "float32", "float16", "bfloat16")

    def __init__(
        self,
        name: str,
        kernels: ModuleType | None = None,
        device: str | None = None,
        create_graph: bool = False,
        package: str = "normgrad",
    ) -> None:
        self.name, self.kernels, self.package = name, kernels, package
        self.device, self.create_graph = device or _home(name), create_graph

    def differentiable(self) -> TorchBackend:
        """The same backend, its gradients taken with create_graph."""
        return TorchBackend(self.name, self.kernels, self.device, True, self.package)

    def rows_module(self) -> ModuleType:
        """The module with the forward and backward that run."""
        name = "torch_ops.rows" if self.name == "torch" else f"{self.name}_kernels"
        return self.kernels or import_module(f"{self.package}.{name}")

    def normalize(
        self,
        x: Tensor,
        residual: Tensor | None,
        weight: Tensor | None,
        bias: Tensor | None,
        spec: NormSpec,
        **options: Any,
    ) -> tuple[Tensor, Tensor]:
        """(y, residual_out) of tensors, residual_out being x without a residual; options as normgrad.add_normalize."""
        from ..torch_ops import autograd
        from ..torch_ops.arguments import check_options

        if self.kernels is None:
            api = import_module(f"{self.package}.torch_ops.api")
            spec = _spec_of(api, spec)
            options = {"spec": spec, "backend": self.name, **options}
            if residual is not None:
                return api.add_normalize(x, residual, weight, bias, **options)
            residual_dtype = options.pop("residual_dtype", x.dtype)
            options.pop("round_residual", None)
            return api.normalize(x, weight, bias, **options), x.to(residual_dtype)
        options = check_options(x, residual, **options)
        y, residual_out = autograd.apply(
            x, residual, weight, bias, spec, self.kernels, options
        )
        return y, x.to(options.residual_dtype) if residual is None else residual_out

    def tensors(self, case: cases.Case, dtypes: Dtypes) -> dict[str, Tensor | None]:
        """{name: tensor or None} of the case's arrays, laid out as the case says."""
        import torch

        def convert(name, array):
            memory = {"dtype": getattr(torch, dtypes[name]), "device": self.device}
            plain = torch.tensor(array).to(**memory)
            if case.layout == "negated":
                return torch._neg_view(-plain)
            return _laid_out(case, name, plain, torch, **memory)

        return _arrays(case, convert)

    def forward(
        self, case: Case, arrays: dict[str, np.ndarray], spec: NormSpec
    ) -> tuple[np.ndarray, np.ndarray]:
        """(y, residual_out) of the case in float64, some of its arrays replaced."""
        dtypes = Dtypes("float64")
        a = self.tensors(replace(case, **arrays), dtypes)
        options = options_of(case, dtypes)
        y, residual_out = self.normalize(*map(a.get, INPUTS), spec, **options)
        return tuple(_array(t).reshape(case.x.shape) for t in (y, residual_out))

    def run(self, case: Case, spec: NormSpec, dtype: str | Dtypes) -> Outcome:
        """Forward and backward, through torch.autograd.grad, of a case whose numbers the dtype holds."""
        import torch

        dtypes = Dtypes.of(dtype)
        a = self.tensors(case, dtypes)
        names = INPUTS if case.wanted is None else case.wanted
        inputs = {name: a[name] for name in names if a[name] is not None}
        for t in inputs.values():
            t.requires_grad_()
        options = options_of(case, dtypes)
        y, residual_out = self.normalize(*map(a.get, INPUTS), spec, **options)
        for name, t in (("y", y), ("residual_out", residual_out)):
            _same_dtype(name, t, getattr(torch, dtypes[name]))
        ends, cotangents = [], []
        for t, cotangent in ((y, a["dy"]), (residual_out, a["dresidual_out"])):
            if cotangent is not None and t.requires_grad:
                ends.append(t)
                cotangents.append(cotangent)
        gradients = torch.autograd.grad(
            ends, list(inputs.values()), cotangents, create_graph=self.create_graph
        )
        grads = dict(zip(inputs, gradients, strict=True))
        outputs = (y, residual_out, *map(grads.get, INPUTS))
        return _in_rows(case, *map(_array, outputs))

    def function(
        self, case: cases.Case, spec: NormSpec
    ) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
        """A function of the case's tensors, and the tensors, float64 and requiring gradients, for gradcheck.

        gradcheck sends a cotangent into one output at a time; the sum of both outputs is there to send one into both.
        """
        dtypes = Dtypes("float64")
        a = self.tensors(replace(case, layout="contiguous"), dtypes)
        names = [name for name in INPUTS if a[name] is not None]
        options = options_of(case, dtypes)

        def function(*tensors):
            inputs = dict(zip(names, tensors, strict=True))
            y, residual_out = self.normalize(*map(inputs.get, INPUTS), spec, **options)
            return (y, y + residual_out) if "residual" in inputs else y

        return function, tuple(a[name].requires_grad_() for name in names)


BACKENDS: dict[Name, Callable[[], Any]] = {
    "numpy": NumpyBackend,
    "sympy": SympyBackend,
    "torch": partial(TorchBackend, "torch"),
    "triton": partial(TorchBackend, "triton"),
    "numba": partial(TorchBackend, "numba"),
}
NAMES: tuple[Name, ...] = get_args(Name)


def get(backend: Name | Backend) -> Any:
    """The backend of a name; a backend itself is returned as it is.

    Raises:  ValueError for another name, and for what neither is a name nor has a method `run`
    """
    if callable(getattr(backend, "run", None)):
        return backend
    if not isinstance(backend, str) or backend not in NAMES:
        raise ValueError(
            f"backend: got {backend!r}, needs one of {', '.join(map(repr, NAMES))}"
        )
    return BACKENDS[backend]()
