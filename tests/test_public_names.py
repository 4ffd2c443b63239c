"""What people import keeps its name: a name that goes or moves breaks homework and forks."""

from importlib import import_module

import pytest

NAMES = {
    "normgrad": """
        L2_NORM LAYER_NORM LAYER_NORM_STD NormSpec RMS_NORM add_layer_norm add_rms_norm doctor l2_norm
        layer_norm normalize add_normalize rms_norm gated_rms_norm
    """,
    "normgrad.nn": "AddNorm GatedRMSNorm LayerNorm Normalize RMSNorm ReplacedNorms replace_norms",
    "normgrad.residual": "fused_post_norm fused_stack naive_post_norm naive_stack",
    "normgrad.teaching.double_backward": """
        ExplicitBackward ExplicitNorm RecomputeNorm StatisticsNorm WAYS affine asked_for centred gradients
        layer_norm normalized over_rows projected row_mean second_gradients times
    """,
    "normgrad.numpy_ref": "Forward Grads LAYER_NORM backward forward",
    "normgrad.symbolic": """
        Counterexample D Defs Equation Local NotProved Partial Proof RangeError Trace
        as_written check_fixed compile counterexample delta dim equation equations index latex mean nf
        opaque prove proved source tensor total trace
    """,
    "normgrad.prove": "contract define definitions derive in_names local prove refute unfold",
    "normgrad.symbolic.trace": "GIVEN RULES Trace UNFOLD trace",
    "normgrad.checks.cases": "ARRAYS Case L2_NORM LAYER_NORM LAYER_NORM_STD RMS_NORM SPECS cases draw",
    "normgrad.checks.tolerance": """
        Bounds Dtypes ELEMENTWISE LARGEST SAFETY SIGNIFICAND SMALLEST accumulator bounds promoted round_to
        unit_roundoff
    """,
    "normgrad.checks.variance": """
        METHODS bound chan corrected in_blocks in_order in_pairs one_pass
        rounding shifted two_pass welford
    """,
    "normgrad.checks.finite_difference": "Difference best_step central complex_step directional inner",
    "normgrad.checks.backends": "ARRAYS BACKENDS INPUTS NAMES NumpyBackend Outcome SympyBackend TorchBackend get",
    "normgrad.checks.contract": """
        GRADCHECK_STEP LARGEST Measured OUTPUTS check_differences check_gradcheck check_values defined
        differentiable reference
    """,
    "normgrad.mistakes.mutants": """
        MUTANTS PACKAGE edited edited_package find module
        mutated names package
    """,
    "normgrad.ledger": "Entries Entry KINDS MIME WORDS check cite define follows prove prove_small",
    "normgrad.homework": """
        Report StageResult check describe grade_file hand_in homeworks misconceptions stages_of tasks
    """,
}


@pytest.mark.parametrize("module", NAMES)
def test_a_public_name_stays(module):
    imported = import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(imported, name)] == []
