"""Every argument of every public function and module reaches what it is for, and the table that says so can fail."""

from importlib import import_module

import pytest
import wiring
from copies import copied

import normgrad

# The lines that are edited, each written once.
NORM_CALL = "return _normalized(call, input, None, weight, bias)[0]\n\n\ndef rms_norm"
NORM_ASKED = (
    "out_dtype)\n    call = prepare(LAYER_NORM, input, None, weight, bias, *asked)"
)
NORM_BACKEND = "backend, " + NORM_ASKED
RMS_ASKED = "weight_offset, heads, backend, out_dtype)\n    call = prepare(RMS_NORM, input, None, weight, None, *asked)"
RMS_EPS = "eps, " + RMS_ASKED
ADD_ASKED = (
    "eps, weight_offset, heads, backend, out_dtype, residual_dtype, round_residual)\n"
    "    call = prepare(LAYER_NORM, input, residual"
)
L2_AXIS = "    x = input.movedim(dim, -1)\n"
L2_CALL = "prepare(L2_NORM, x, None, None, None, OF_INPUT, eps, 0.0,"
NORM_KEYWORDS = (
    'return {**of_weight, "out_dtype": self.out_dtype, "backend": self.backend}'
)
OF_WEIGHT = 'of_weight = {"weight_offset": self.weight_offset, "heads": self.heads}'
ADD_KEYWORDS = 'keywords |= {"residual_dtype": self.residual_dtype, "round_residual": self.round_residual}'
OPTIONS = (
    "dtypes = (out_dtype or input.dtype, residual_dtype or sum_dtype)\n"
    "    return Options(*dtypes, round_residual, portable_sums, heads is not None)"
)
OF_FORWARD = '"round_residual": self.round_residual}'
KERNELS = "return kernels_of(name, self.device)"
TOTAL = "differentiable.total(x, residual, residual_dtype, ctx.options.round_residual)"
SUMMED = '"portable_sums": ctx.options.portable_sums'
OPERATOR = "*scalars_of(spec), *scalars_of(options), backend)"
BACKWARD = "tensors, *scalars_of(spec), *dtypes, portable_sums, per_head, self.backend)"
PARAMETER = "self.weight = torch.nn.Parameter(weight) if affine else None"
FINAL = "return x if final_norm is None else final_norm(x)"
# {what is wrong: (file, old, new, the subject and the argument whose rows find it)}
WRONG = {
    "add_layer_norm ignores eps": (
        "torch_ops/api.py", ADD_ASKED, ADD_ASKED.replace("eps, weight", "1e-5, weight"), "add_layer_norm", "eps",
    ),
    "layer_norm ignores out_dtype": (
        "torch_ops/api.py", NORM_ASKED, NORM_ASKED.replace("out_dtype", "None"), "layer_norm", "out_dtype",
    ),
    "layer_norm ignores bias": (
        "torch_ops/api.py", NORM_CALL, NORM_CALL.replace("bias)", "None)"), "layer_norm", "bias",
    ),
    "layer_norm ignores backend": (
        "torch_ops/api.py", NORM_BACKEND, NORM_BACKEND.replace("backend", '"auto"'), "layer_norm", "backend",
    ),
    "rms_norm ignores out_dtype": (
        "torch_ops/api.py", RMS_ASKED, RMS_ASKED.replace("out_dtype", "None"), "rms_norm", "out_dtype",
    ),
    "rms_norm ignores eps": (
        "torch_ops/api.py", RMS_EPS, RMS_EPS.replace("eps,", "None,"),
        "rms_norm", "eps",
    ),
    "rms_norm ignores weight_offset": (
        "torch_ops/api.py", RMS_ASKED, RMS_ASKED.replace("weight_offset", "0.0"), "rms_norm", "weight_offset",
    ),
    "modules ignore weight_offset": (
        "nn.py", OF_WEIGHT, OF_WEIGHT.replace("self.weight_offset", "0.0"), "nn.AddNorm of RMSNorm", "weight_offset",
    ),
    "the operator has no weight_offset": (
        "torch_ops/torch_compile.py", "NormSpec(*scalars[:SPEC_FIELDS]), Options",
        "NormSpec(*scalars[: SPEC_FIELDS - 1]), Options",
        "NormSpec", "weight_offset",
    ),
    "l2_norm takes the last axis": ("torch_ops/api.py", L2_AXIS, f"    dim = -1\n{L2_AXIS}", "l2_norm", "dim"),
    "l2_norm ignores eps": ("torch_ops/api.py", L2_CALL, L2_CALL.replace("eps", "1e-12"), "l2_norm", "eps"),
    "the sum is always rounded": (
        "torch_ops/arguments.py", OPTIONS, OPTIONS.replace("round_residual,", "True,"),
        "add_rms_norm", "round_residual",
    ),
    "the sum has no dtype of its own": (
        "torch_ops/arguments.py", OPTIONS, OPTIONS.replace("residual_dtype or ", ""),
        "add_layer_norm", "residual_dtype",
    ),
    "sums are never portable": (
        "torch_ops/arguments.py", OPTIONS, OPTIONS.replace("portable_sums,", "False,"),
        "add_normalize", "portable_sums",
    ),
    "autograd forgets portable sums": (
        "torch_ops/autograd.py", SUMMED, '"portable_sums": False', "add_normalize", "portable_sums",
    ),
    "the kernel forgets how the sum is rounded": (
        "torch_ops/arguments.py", OF_FORWARD, OF_FORWARD.replace("self.round_residual", "True"),
        "add_normalize", "round_residual",
    ),
    "tangents forget how the sum is rounded": (
        "torch_ops/autograd.py", TOTAL, TOTAL.replace(", ctx.options.round_residual", ", True"),
        "add_normalize", "round_residual",
    ),
    "every backend is the same": (
        "torch_ops/prepare.py", KERNELS, KERNELS.replace("name", '"torch"'),
        "add_normalize", "backend",
    ),
    "the operator has one backend": (
        "torch_ops/torch_compile.py", OPERATOR, OPERATOR.replace("backend)", '"torch")'), "add_normalize", "backend",
    ),
    "the operator's backward has one backend": (
        "torch_ops/torch_compile.py", BACKWARD, BACKWARD.replace("self.backend", '"torch"'), "add_normalize", "backend",
    ),
    "the operator's sums are never portable": (
        "torch_ops/torch_compile.py", BACKWARD, BACKWARD.replace("portable_sums,", "False,"),
        "add_normalize", "portable_sums",
    ),
    "AddNorm ignores its LayerNorm's eps": ("nn.py", "norm.bias, norm.eps, **", "norm.bias, **", "nn.AddNorm", "norm"),
    "AddNorm ignores its RMSNorm's eps": (
        "nn.py", "add_rms_norm(*arguments, norm.eps, **", "add_rms_norm(*arguments, **", "nn.AddNorm of RMSNorm", "eps",
    ),
    "AddNorm always rounds": (
        "nn.py", ADD_KEYWORDS, ADD_KEYWORDS.replace("self.round_residual", "True"), "nn.AddNorm", "round_residual",
    ),
    "AddNorm's sum has no dtype of its own": (
        "nn.py", ADD_KEYWORDS, ADD_KEYWORDS.replace("self.residual_dtype", "None"), "nn.AddNorm", "residual_dtype",
    ),
    "AddNorm ignores the bias": (
        "nn.py", "norm.bias, norm.eps, **", "None, norm.eps, **", "nn.AddNorm of LayerNorm", "bias",
    ),
    "modules ignore out_dtype": (
        "nn.py", NORM_KEYWORDS, NORM_KEYWORDS.replace("self.out_dtype", "None"), "nn.AddNorm of LayerNorm", "out_dtype",
    ),
    "modules ignore backend": (
        "nn.py", NORM_KEYWORDS, NORM_KEYWORDS.replace("self.backend", '"auto"'), "nn.RMSNorm", "backend",
    ),
    "modules have one casting": (
        "nn.py", 'if self.casting == "llama":', 'if self.casting == "LLAMA":', "nn.RMSNorm", "casting",
    ),
    "AddNorm has one casting": (
        "nn.py", 'if norm.casting == "llama":', 'if norm.casting == "LLAMA":', "nn.AddNorm of RMSNorm", "casting",
    ),
    "replaced norms have one backend": (
        "nn.py", 'spec.weight_offset, "backend": backend}', 'spec.weight_offset, "backend": "torch"}',
        "nn.replace_norms", "backend",
    ),
    "modules ignore dtype": ("nn.py", '"dtype": dtype}', '"dtype": None}', "nn.LayerNorm", "dtype"),
    "modules ignore device": ("nn.py", '{"device": device, ', '{"device": None, ', "nn.LayerNorm", "device"),
    "a norm is always affine": (
        "nn.py", PARAMETER, PARAMETER.removesuffix(" if affine else None"), "nn.RMSNorm", "elementwise_affine",
    ),
    "the final norm is forgotten": ("residual.py", FINAL, "return x", "residual.naive_stack", "final_norm"),
    "the reference ignores the bias": (
        "numpy_ref.py", "        y = y + bias\n", "        pass\n", "numpy_ref.forward", "bias",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", wiring.rows(normgrad), ids=", ".join)
def test_an_argument_changes_what_comes_out(row):
    assert wiring.matters(normgrad, row)


def test_every_public_name_is_in_the_table():
    """A new function or module has rows, or a word why not; a new argument needs a variation by itself."""
    subjects = {
        name.partition(",")[0].partition(" of ")[0].removesuffix(".forward")
        for name in wiring.SUBJECTS
    }
    subjects |= {name for name in wiring.SUBJECTS if name.startswith("numpy_ref")}
    public = wiring.public_names(normgrad)
    assert public == (subjects & public) | set(wiring.EXCLUDED)
    assert not subjects & set(wiring.EXCLUDED)


@pytest.mark.parametrize("wrong", WRONG)
def test_the_table_finds_a_wrong_program(wrong):
    file, old, new, subject, argument = WRONG[wrong]
    package = import_module(copied({file: ((old, new),)}, wrong))
    # What is wrong with the operators of a compiler, only a compiler meets.
    assert wiring.finding(
        package, subject, argument, compiled=file == "torch_ops/torch_compile.py"
    )


def test_the_table_finds_nothing_in_a_copy():
    package = import_module(copied({}, "unedited"))
    subjects = ("add_normalize", "nn.AddNorm")
    assert [
        wiring.finding(package, subject, None, compiled=False) for subject in subjects
    ] == [None] * 2
