"""Calls that note which floating-point formats a student's arithmetic goes through.

Nothing of normgrad is imported here; torch is imported where it is used.
"""

from __future__ import annotations

import contextlib
import sys

import numpy as np

# What gives a tensor another format, and computes nothing.
CONVERSIONS = frozenset("to type half double float bfloat16 type_as".split())


class Float32(np.ndarray):
    """An array that notes the formats of everything computed from it, and of everything it is converted to."""

    formats: dict = {"computed": [], "converted": []}

    @classmethod
    def note(cls, how, kind):
        """Remembers a floating-point format once."""
        if kind.kind in "fc" and str(kind) not in cls.formats[how]:
            cls.formats[how].append(str(kind))

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [each.view(np.ndarray) if isinstance(each, Float32) else each for each in inputs]
        if out is not None:
            options["out"] = tuple(each.view(np.ndarray) if isinstance(each, Float32) else each for each in out)
        result = getattr(ufunc, method)(*plain, **options)
        for each in result if isinstance(result, tuple) else (result,):
            if hasattr(each, "dtype"):
                self.note("computed", each.dtype)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return result.view(Float32) if isinstance(result, np.ndarray) else result

    def astype(self, dtype, *args, **options):
        """A copy in another format, which is noted, too."""
        self.note("converted", np.dtype(dtype))
        return super().astype(dtype, *args, **options)


def _torch_noted(found):
    """A mode that notes the formats of torch's results; one that does nothing where torch is not there."""
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    import torch
    from torch.overrides import TorchFunctionMode

    class Noted(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            how = found["converted" if getattr(func, "__name__", "") in CONVERSIONS else "computed"]
            for each in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(each, torch.Tensor) and each.dtype.is_floating_point:
                    how.append(str(each.dtype).removeprefix("torch."))
            return result

    return Noted()


def formats(target, arguments, options):
    """The results of a function, and the floating-point formats that its arithmetic went through.

    With a "method" in the options, the function is that one of an operator.
    """
    Float32.formats = found = {"computed": [], "converted": []}
    target = getattr(target, options["method"]) if "method" in options else target
    given = [v.view(Float32) if isinstance(v, np.ndarray) else v for v in arguments.values()]
    with _torch_noted(found):
        result = target(*given)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    results = [each.view(np.ndarray) if isinstance(each, Float32) else each for each in results]
    return results, {name: sorted(set(each)) for name, each in found.items()}


OPERATIONS = {"formats": formats}
