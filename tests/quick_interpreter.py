"""Triton's interpreter without what it does again at every call of a function under @triton.jit, tl.sum among them.

It walks over all that `triton.language` holds and puts its own functions there: of small kernels a third of the time.
Here it looks whether they are there already. What kernels compute is the same; with --whole it is left as it is.
"""

import sys
from types import SimpleNamespace

NOTHING = SimpleNamespace(restore=lambda: None)


def quicken():
    """Make the interpreter quick, once it is loaded."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is None or hasattr(interpreter._patch_lang, "always"):
        return
    put, language = interpreter._patch_lang, sys.modules["triton.language"]

    def put_once(function):
        seen = [each for each in function.__globals__.values() if each is language or each is language.core]
        there = seen and not any(language.core.is_builtin(each.load) for each in seen)
        return NOTHING if there else put(function)

    put_once.always = put
    interpreter._patch_lang = put_once
