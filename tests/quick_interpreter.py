"""Triton's interpreter without what it does again at every launch, call and operation, and what nobody reads.

It walks over all that `triton.language` holds and puts its own functions there: of small kernels a third of the time.
Here that is remembered, and within a launch looked for. It computes in 64 bits whether each sum and product of integers
fits, and asserts it only where one debugs; it makes a table of dtypes for each question about one. What kernels compute
is the same; with --whole it is left as it is.
"""

import sys
from dataclasses import replace
from types import SimpleNamespace

NOTHING = SimpleNamespace(restore=lambda: None)


def quicken():
    """Make the interpreter quick, once it is loaded."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is None or hasattr(interpreter._patch_lang, "always"):
        return
    missing = getattr(interpreter, "_MISSING", None)
    interpreter._patch_lang = _put_once(
        interpreter._patch_lang, sys.modules["triton.language"], missing
    )
    interpreter._get_np_dtype = _once_by_name(interpreter._get_np_dtype)
    builder = interpreter.interpreter_builder
    if hasattr(builder.options, "sanitize_overflow") and not builder.options.debug:
        builder.options = replace(builder.options, sanitize_overflow=False)


def _once_by_name(numpy_dtype):
    """NumPy's dtype of one of Triton's or of blocks of it, looked up by name."""
    dtypes = {}

    def remembered(dtype):
        name = dtype.scalar.name
        if name not in dtypes:
            dtypes[name] = numpy_dtype(dtype)
        return dtypes[name]

    remembered.always = numpy_dtype
    return remembered


def _put_once(put, language, missing):
    """What puts the interpreter's functions into the modules that a function sees, unless they are there."""
    patched = {}

    def put_once(function):
        seen = [
            each
            for each in function.__globals__.values()
            if each is language or each is language.core
        ]
        if seen and not any(language.core.is_builtin(each.load) for each in seen):
            return NOTHING
        key = tuple(map(id, seen))
        if key in patched and patched[key].fits():
            return patched[key].put()
        scope = put(function)
        if hasattr(scope, "_changes"):
            patched[key] = _Changes(scope._changes, missing)
        return scope

    put_once.always = put
    return put_once


class _Changes:
    """What a launch has put into modules and classes, to be put there again.

    Args:  made: [(where, name, what stood there)] in order, some places twice; missing: what says that nothing did
    """

    def __init__(self, made, missing):
        first = {
            (id(place), name): (place, name, original)
            for place, name, original in reversed(made)
        }
        self.missing = missing
        self.changes = [(*each, getattr(*each[:2])) for each in first.values()]

    def fits(self):
        """Whether all stands as it stood before."""
        return all(
            getattr(place, name, self.missing) is original
            for place, name, original, _ in self.changes
        )

    def put(self):
        for place, name, _, value in self.changes:
            setattr(place, name, value)
        return self

    def restore(self):
        for place, name, original, _ in self.changes:
            if original is self.missing:
                delattr(place, name)
            else:
                setattr(place, name, original)
