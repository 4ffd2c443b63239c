"""What surrounds a call: torch's encoder, and the absence of torch, of Numba, of Triton."""

import pytest
import torch
from near import near
from processes import python

import normgrad
from normgrad import nn
from normgrad.torch_ops import arguments

# torch's encoder, which without gradients takes weight, bias and eps of its norms and calls no forward of theirs

NORMS = {
    "LayerNorm": lambda: nn.LayerNorm(8, backend="torch"),
    "LayerNorm without a bias": lambda: nn.LayerNorm(8, bias=False, backend="torch"),
    "LayerNorm with an offset": lambda: nn.LayerNorm(
        8, weight_offset=1.0, backend="torch"
    ),
    "RMSNorm": lambda: nn.RMSNorm(8, backend="torch"),
    "RMSNorm of Llama": lambda: nn.RMSNorm(8, casting="llama", backend="torch"),
}


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_torchs_encoder_computes_our_norms(norm, norm_first, torch_rng):
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, 0.0, batch_first=True, norm_first=norm_first
    )
    layer.norm1, layer.norm2 = NORMS[norm](), NORMS[norm]()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=torch_rng)
    layer = layer.double()
    x = torch.randn(2, 5, 8, generator=torch_rng, dtype=torch.float64)
    expected = layer(x).detach()
    with torch.no_grad():
        assert near(layer.eval()(x), expected, roundings=512)


@pytest.mark.parametrize(
    "use",
    ["import normgrad.nn", "normgrad.layer_norm", "normgrad.gated_rms_norm(1, 2)"],
)
def test_without_torch_the_command_that_installs_it_is_named(use):
    code = f"import sys, normgrad; sys.modules['torch'] = None; {use}"
    done = python("-c", code)
    assert "pip install normgrad[torch]" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name, extra", [("numba", "cpu"), ("triton", "triton")])
def test_without_its_compiler_a_backend_names_the_command(name, extra, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(arguments, "import_module", missing)
    arguments._compiled.cache_clear()
    needs = rf"backend: got '{name}'.*pip install normgrad\[{extra}\]"
    with pytest.raises(ModuleNotFoundError, match=needs):
        normgrad.rms_norm(torch.ones(2, 4), 4, eps=0.25, backend=name)
    arguments._compiled.cache_clear()
