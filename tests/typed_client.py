"""What users write, for checkers of types: each line that is marked is an error to them, and no other line is.

Nothing here is run: `make types` gives the text to mypy and pyright, tests/test_types.py to mypy.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

import numpy as np
import torch

import normgrad
from normgrad import NormSpec, doctor, ledger, nn, numpy_ref, residual
from normgrad.checks import cases, contract, finite_difference

x = torch.zeros(3, 8)
weight = torch.ones(8)
array = np.zeros((3, 8))
spec = normgrad.RMS_NORM.replace(eps=1e-6)
case = cases.draw(np.random.default_rng(0))


def right() -> torch.Tensor:
    """Every public function in use."""
    y: torch.Tensor = normgrad.layer_norm(x, 8, weight, eps=1e-6, backend="torch")
    y = normgrad.rms_norm(y, (8,), out_dtype=torch.float32) + normgrad.l2_norm(y, dim=0)
    output, stream = normgrad.add_layer_norm(
        x, y, [8], weight, weight, residual_dtype=torch.float32
    )
    output, stream = normgrad.add_rms_norm(output, stream, x.shape[-1:])
    y = normgrad.normalize(stream, weight, spec=spec, portable_sums=True)
    y, stream = normgrad.add_normalize(y, stream)
    norms = (
        nn.LayerNorm(8, device="cpu"),
        nn.RMSNorm((8,), eps=None, dtype=torch.float64),
    )
    of_torch: list[torch.nn.LayerNorm | torch.nn.RMSNorm] = [
        *norms,
        nn.RMSNorm(8, casting="llama"),
    ]
    model = torch.nn.Sequential(*of_torch)
    names: list[str] = [*nn.replace_norms(model, backend="triton").left]
    print(*names)
    for parameter in norms[0].parameters():
        y = y + parameter
    y = residual.fused_stack(y, [torch.sin, torch.cos], norms, final_norm=nn.RMSNorm(8))
    y = residual.naive_post_norm(
        y, torch.nn.ModuleList([torch.nn.Linear(8, 8)]), [torch.nn.LayerNorm(8)]
    )
    return nn.AddNorm(norms[0])(y, y)[0]


def right_without_torch() -> np.ndarray:
    """Specs, the reference, the checks."""
    saved = numpy_ref.forward(array, spec=NormSpec(placement="clamp", eps=0.5))
    grads = numpy_ref.backward(array, saved)
    error, bound = contract.check_values("numpy", case, spec).worst
    difference = finite_difference.directional(
        lambda v: (v.sum(), abs(v).sum()), [array], [array]
    )
    ledger.prove_small("l2-dq", sizes=[2, 3])
    doctor()
    normgrad.doctor()
    return grads.dx * (error <= bound) + difference.value


normgrad.layer_norm(x, "8")  # type: ignore  # a shape
normgrad.layer_norm(x, 8, epsilon=1e-5)  # type: ignore  # a keyword
normgrad.layer_norm(x, 8, backend="cuda")  # type: ignore  # a backend
normgrad.rms_norm(array, 8)  # type: ignore  # an array for a tensor
normgrad.l2_norm(x, dim="last")  # type: ignore  # an axis
normgrad.add_layer_norm(x, None, 8)  # type: ignore  # no residual
normgrad.normalize(x, spec="layer_norm")  # type: ignore  # a name for a spec
print(normgrad.add_normalize(x, x).shape)  # type: ignore  # two tensors for one
normgrad.batch_norm(x, 8)  # type: ignore  # a function that is not there
nn.LayerNorm(8, backend="numpy")  # type: ignore  # a backend of the checks
nn.RMSNorm(8, casting="twice")  # type: ignore  # a casting
nn.replace_norms(torch.nn.LayerNorm)  # type: ignore  # a class for a module
nn.RMSNorm(8, bias=True)  # type: ignore  # RMSNorm has no bias
nn.AddNorm(torch.nn.LayerNorm(8))  # type: ignore  # torch's own norm
residual.fused_stack(x, [torch.sin], [torch.nn.LayerNorm(8)])  # type: ignore  # torch's own norm
NormSpec(placement="under")  # type: ignore  # a place of eps
numpy_ref.backward(array, array)  # type: ignore  # what forward did not return
print(numpy_ref.forward(array).dx)  # type: ignore  # a gradient of the forward
contract.check_values("cuda", case, spec)  # type: ignore  # a backend
ledger.prove_small("l2-dq", sizes=3)  # type: ignore  # one size
doctor(x)  # type: ignore  # an argument
