"""The interpreter made quick computes the same bits as Triton's own, and leaves the language as it found it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import quick_interpreter  # noqa: E402
import triton.language as tl  # noqa: E402

from normgrad import LAYER_NORM  # noqa: E402
from normgrad.checks.backends import TorchBackend  # noqa: E402
from normgrad.checks.cases import cases  # noqa: E402
from normgrad.triton_kernels import interpreter as ours  # noqa: E402

pytestmark = pytest.mark.skipif(
    not ours.INTERPRETED, reason="needs Triton's interpreter"
)


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """What a test makes quick is as quick as before it."""
    from triton.runtime import interpreter

    for name in ("_patch_lang", "_get_np_dtype"):
        value = getattr(interpreter, name)
        monkeypatch.setattr(interpreter, name, getattr(value, "always", value))
    builder = interpreter.interpreter_builder
    monkeypatch.setattr(builder, "options", type(builder.options)())


def outcomes(rng):
    """Outputs and gradients of every case, in float64 and bfloat16."""
    backend = TorchBackend("triton")
    for case in cases(rng, 3, 5):
        for dtype in ("float64", "bfloat16"):
            yield from (
                a
                for a in vars(
                    backend.run(case.rounded(dtype), LAYER_NORM, dtype)
                ).values()
                if a is not None
            )


def language():
    """What stands in the language, and in its tensors."""
    return {
        (of, name): value
        for of in (tl, tl.core, tl.math, tl.tensor, tl.dtype)
        for name, value in vars(of).items()
    }


def test_the_bits_are_those_of_triton_s_own():
    own = list(outcomes(np.random.default_rng(1)))
    quick_interpreter.quicken()
    quick = list(outcomes(np.random.default_rng(1)))
    assert len(own) == len(quick) > 100
    assert all(own_array.dtype == quick_array.dtype and np.array_equal(own_array, quick_array, equal_nan=True)
               for own_array, quick_array in zip(own, quick, strict=True))  # fmt: skip


def test_after_a_launch_the_language_is_as_before():
    quick_interpreter.quicken()
    next(outcomes(np.random.default_rng(1)))
    before = language()
    next(outcomes(np.random.default_rng(1)))
    assert tl.core.is_builtin(tl.load) and language() == before


def test_what_others_put_there_meanwhile_is_used(monkeypatch):
    """A function of someone else's in the language is neither hidden by what is remembered nor lost after it."""
    quick_interpreter.quicken()
    next(outcomes(np.random.default_rng(1)))
    roots, sqrt = [], tl.sqrt

    @tl.core.builtin
    def noted(*arguments, **options):
        roots.append(arguments)
        return sqrt(*arguments, **options)

    monkeypatch.setattr(tl, "sqrt", noted)
    next(outcomes(np.random.default_rng(1)))
    assert roots and tl.sqrt is noted
