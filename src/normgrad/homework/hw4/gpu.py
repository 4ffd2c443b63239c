"""Whether kernels that the interpreter ran would compile for GPUs: in a process of its own, which runs none of them.

That process loads this file by its path, so it imports nothing of normgrad.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import types
from functools import cache
from pathlib import Path

ARCHITECTURES, SECONDS = (80, 90), 120
LANGUAGE = (
    "triton",
    "triton.language",
    "triton.language.math",
    "triton.language.extra",
)
# What the child says of a kernel begins like this; whatever else is wrong is no fault of the student's.
SAYS = "refused: "
FUNCTIONS, CONSTANT = "# functions", "triton.language.constexpr"


def refusal(kernels) -> str:
    """Why a kernel does not compile, in words; "" where all do, or where there is no compiler.

    Args:  kernels: what calls_watched.described gives for each launch
    """
    whole = {
        json.dumps(kernel, sort_keys=True): kernel
        for kernel in kernels
        if kernel["whole"]
    }
    return _refusal(json.dumps(list(whole.values())))


@cache
def _refusal(kernels: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TRITON")
        }
        environment |= {"TRITON_CACHE_DIR": folder}
        command = [sys.executable, "-I", __file__, folder]
        try:
            done = subprocess.run(command, input=kernels, capture_output=True, text=True, timeout=SECONDS,
                                  env=environment, cwd=folder)  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
    lines = [line for line in done.stdout.splitlines() if line.startswith(SAYS)]
    return lines[0].removeprefix(SAYS) if lines else ""


def module_text(kernel) -> str:
    """The text of a module with a kernel and what it calls, each a plain definition under one decorator.

    Args:    kernel: what calls_watched.described gives; it may come from anybody
    Raises:  SyntaxError or ValueError for what is no kernel
    """
    lines = ["import triton", "import triton.language"]
    for alias, path in kernel["modules"].items():
        lines.append(f"import {_language(path)} as {_name(alias)}")
    for alias, (path, name) in kernel["names"].items():
        if path.partition(".")[0] != "triton":
            raise ValueError(f"the module {path}")
        lines.append(f"from {_name(path)} import {_name(name)} as {_name(alias)}")
    for name, (value, constant) in kernel["globals"].items():
        text = f"triton.language.constexpr({value!r})" if constant else repr(value)
        lines.append(f"{_name(name)} = {text}")
    lines.append(FUNCTIONS)
    for source in kernel["sources"]:
        (function,) = ast.parse(textwrap.dedent("\n".join(source))).body
        function.decorator_list, function.returns = [], None
        arguments = function.args
        for argument in (*arguments.args, *arguments.kwonlyargs):
            constant = str(argument.annotation and ast.unparse(argument.annotation))
            argument.annotation = None
            if constant.endswith("constexpr"):
                argument.annotation = ast.parse(CONSTANT, mode="eval").body
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            ast.literal_eval(default)
        lines += ["", "", "@triton.jit", ast.unparse(function)]
    return "\n".join(lines) + "\n"


def _name(text) -> str:
    if not all(map(str.isidentifier, text.split("."))):
        raise ValueError("a name that is none")
    return text


def _language(path) -> str:
    """The name of a module of Triton's language, which holds nothing else that a name could lead to.

    Raises:  ValueError for another one
    """
    if path not in LANGUAGE and not path.startswith("triton.language.extra."):
        raise ValueError(f"the module {path}")
    return _name(path)


def _resolved(node, space):
    """What a name or an attribute of a module stands for, None where that is not known."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    base = _resolved(node.value, space) if isinstance(node, ast.Attribute) else None
    is_module = isinstance(base, types.ModuleType)
    return getattr(base, node.attr, None) if is_module else None


def _check(tree, space):
    """Raises ValueError for names that lead out of Triton's language: the compiler evaluates some of what it reads."""
    for node in ast.walk(tree):
        name = getattr(node, "attr", getattr(node, "id", ""))
        if name.startswith("_") and name.strip("_") or name == "getattr":
            raise ValueError(f"the name {name}")
        value = _resolved(node, space)
        if isinstance(value, types.ModuleType):
            _language(value.__name__)


def _module(kernel, folder, number):
    """The module of a kernel, once its names are known to be Triton's."""
    text = module_text(kernel)
    imports, _, functions = text.partition(FUNCTIONS)
    space = {}
    exec(imports, space)
    for value in space.values():
        if isinstance(value, types.ModuleType):
            _language(value.__name__)
    _check(ast.parse(functions), space)
    path = Path(folder) / f"kernel_{number}.py"
    path.write_text(text, encoding="utf8")
    sys.path.insert(0, folder)
    return importlib.import_module(path.stem)


def _compile(kernel, folder, number):
    """Compiles one kernel for all architectures. Raises: whatever the compiler raises"""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = getattr(_module(kernel, folder, number), kernel["kernel"])
    constants = {name: _constant(value) for name, value in kernel["constants"].items()}
    kinds = {
        name: kernel["types"].get(name, "constexpr") for name in function.arg_names
    }
    for architecture in ARCHITECTURES:
        triton.compile(
            ASTSource(function, kinds, constants),
            target=GPUTarget("cuda", architecture, 32),
        )


def _constant(value):
    import triton.language as tl

    dtypes = {
        dtype.name: dtype for dtype in vars(tl).values() if isinstance(dtype, tl.dtype)
    }
    return dtypes[value[1]] if isinstance(value, list) else value


def main(folder):
    """Reads kernels as JSON, prints why the first one does not compile."""
    kernels = json.loads(sys.stdin.read())
    try:
        from triton.backends.nvidia import compiler  # noqa: F401
        from triton.compiler.errors import CompilationError
    except ImportError:
        return
    for number, kernel in enumerate(kernels):
        try:
            with contextlib.redirect_stdout(sys.stderr):
                _compile(kernel, folder, number)
        except CompilationError as error:
            while error.__cause__ is not None:
                error = error.__cause__
            said = (
                re.sub(r"\s+", " ", getattr(error, "error_message", None) or str(error))
                or type(error).__name__
            )
            node = getattr(error, "node", None)
            where = "" if node is None else f" Look at {ast.unparse(node)[:80]}"
            print(
                f"{SAYS}{kernel['kernel']} does not compile for sm_80 or sm_90. {said[:300]}{where}"
            )
            return
        except (
            Exception
        ):  # what this file does not know how to hand on says nothing of the kernel
            continue


if __name__ == "__main__":
    main(sys.argv[1])
