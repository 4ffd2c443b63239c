"""Calls that note which floating-point formats a student's arithmetic goes through.

Nothing of normgrad is imported here; torch is imported where it is used.
"""

from __future__ import annotations

import contextlib
import sys

import numpy as np

from . import calls

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
        plain = [_plain(each) for each in inputs]
        options = {name: _plain(each) for name, each in options.items()}
        if out is not None:
            options["out"] = tuple(map(_plain, out))
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


def _plain(value):
    return value.view(np.ndarray) if isinstance(value, Float32) else value


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
            for each in calls.returned(result):
                if isinstance(each, torch.Tensor) and each.dtype.is_floating_point:
                    how.append(str(each.dtype).removeprefix("torch."))
            return result

    return Noted()


def _watched(target, found):
    """A class of autograd's whose backward is noted, too: autograd's engine does not know of modes."""
    if not hasattr(target, "backward") or not hasattr(target, "apply"):
        return target

    def backward(ctx, *cotangents):
        with _torch_noted(found):
            return target.backward(ctx, *cotangents)

    return type(target.__name__, (target,), {"backward": staticmethod(backward)})


@calls.operation
def formats(target, arguments, options):
    """The results of a function, and the floating-point formats that its arithmetic went through.

    With a "method" in the options, the function is that one of an operator; with a "run", it is called by that
    operation.
    """
    Float32.formats = found = {"computed": [], "converted": []}
    target = getattr(target, options["method"]) if "method" in options else target
    given = {name: v.view(Float32) if isinstance(v, np.ndarray) else v for name, v in arguments.items()}
    with _torch_noted(found):
        run = calls.OPERATIONS[options.get("run", "call")]
        result, _ = run(_watched(target, found), given, options)
    return list(map(_plain, calls.returned(result))), {name: sorted(set(each)) for name, each in found.items()}
