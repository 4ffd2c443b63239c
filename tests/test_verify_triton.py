"""What the reader of Triton says of a kernel's text, decorators, defaults and flags, by verify_triton_claims.txt.

The lines of verify_guards.txt are each stopped by one guard alone.
"""

import importlib
import os
from inspect import ismodule
from pathlib import Path

import pytest
from processes import python
from verify_triton import ERROR, edited_base, programs

from normgrad.verify import norm, verify
from normgrad.verify.importing import LIBRARIES
from normgrad.verify.language import FUNCTIONS, HOMES, READ, has_function

CONSTANTS = "verify_constants.txt"
PROGRAMS = [*programs(), *programs("verify_guards.txt"), *programs(CONSTANTS)]


@pytest.mark.parametrize(
    ("kind", "program", "words"),
    [(kind, program, words) for kind, _, _, program, words in PROGRAMS],
    ids=[f"{kind} {line}" for kind, _, line, *_ in PROGRAMS],
)
def test_a_program_has_the_verdict_that_it_is_due(kind, program, words):
    if kind == ERROR:
        with pytest.raises(ValueError, match=words):
            verify(*program, kernel="kernel")
        return
    verdict = verify(*program, kernel="kernel")
    assert verdict.kind.removesuffix(" for every M and N") == kind, verdict
    assert words in str(verdict)
    assert "rms[" not in str(verdict.counterexample)


COMPILER = """
import importlib.util
import re
import sys

import torch
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature
from verify_triton import programs

from normgrad.verify import eps, N
from normgrad.verify.binding import WHOLE, T

target = GPUTarget("cuda", 90, 32)
backend = make_backend(target)


def compiles(kernel, values):
    options = {"debug": False}
    specialize = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, special, _ = specialize(**values, **options)
    options, *signature = kernel._pack_args(backend, options, bound, special, options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    code = backend.get_codegen_implementation(options), backend.get_module_map()
    try:
        ASTSource(kernel, *signature).make_ir(target, options, *code, context)
    except Exception:
        return False
    return True


def value(name, bound, s, n):
    known = {N: n, eps: 0.5, WHOLE: 8}
    if isinstance(bound, T):
        return torch.empty(8)
    return known.get(bound, bound)


for number, (kind, _, line, program, words) in enumerate(programs(sys.argv[1])):
    if kind == "not read":
        continue
    path = f"{sys.argv[2]}/kernel_{number}.py"
    with open(path, "w") as file:
        file.write(program[0])
    spec = importlib.util.spec_from_file_location(f"kernel_{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    groups = [part.split(" or ") for part in re.findall(r"([\\w ]+) other than 1", words)]
    for s in (1, 7):
        for n in (1, 7):
            values = {key: value(key, bound, s, n) for key, bound in program[1].items()}
            ones = {"N": n == 1, "s": s == 1}
            due = not any(
                all(ones[key.split()[-1]] for key in group) for group in groups
            )
            due &= kind == "proved"
            if compiles(module.kernel, values | {"s": s}) != due:
                print(f"s = {s}, n = {n}: {line}")
print("compared")
"""


def test_constants_are_those_of_triton_s_compiler(tmp_path):
    pytest.importorskip("triton", minversion="3.7.1")
    folder = str(Path(__file__).parent)
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": folder}
    done = python("-c", COMPILER, CONSTANTS, tmp_path, env=environment)
    assert done.stdout.split("\n") == ["compared", ""], done.stdout + done.stderr


@pytest.mark.parametrize("home", HOMES)
def test_a_function_that_is_read_is_one_that_triton_has(home):
    pytest.importorskip("triton")
    module = importlib.import_module(home)
    names = [name for name in (*FUNCTIONS, *READ) if has_function(home, name)]
    assert names
    assert [name for name in names if not hasattr(module, name)] == []


def test_a_binding_that_is_no_mapping_is_named():
    with pytest.raises(TypeError, match="binding: got None, needs Mapping"):
        verify(edited_base("forward", [], {})[0], None, "rows", norm())


def test_what_a_helper_returns_may_be_of_any_dtype():
    zero = "tl.exp(cast((a - a).to(tl.float16), tl.float32))"
    program = edited_base(
        "forward", [("a * r * g, mask", f"a * r * g * {zero}, mask")], {}
    )
    assert verify(*program, helpers={"cast(value, DTYPE)": "value"})


def test_a_number_that_is_taken_for_0_stands_in_the_claim():
    edit = "a * r * g, mask", "tl.where(tl.sum(a * a) == 0, a * r * g, 1.0), mask"
    program = edited_base("forward", [edit], {})
    assert verify(*program).kind == "refuted"
    verdict = verify(*program, zero=True)
    assert verdict and ", where Sum(x[i, r]**2, (r, 1, N)) is 0 in" in verdict.claim


def test_what_a_helper_is_said_to_return_stands_among_the_assumptions():
    helpers = {"rounded(value, dtype)": "value"}
    for call, words in (
        ("rounded(a * r * g, 1)", "rounded(value, dtype) is value"),
        ("rounded(a * r * g)", "rounded: its arguments do not fit"),
        ("rounded(a * r * g, dtype=1)", "rounded: its arguments do not fit"),
    ):
        program = edited_base("forward", [("a * r * g", call)], {})
        verdict = verify(*program, helpers=helpers)
        assert bool(verdict) == ("fit" not in words) and words in str(verdict), call


def test_what_a_decorator_s_helper_is_said_to_return_stands_in_the_claim():
    block = "{'B': lambda a: triton.next_power_of_2(a['n'])}"
    head = "from settings import blocks\n\n\n@triton.heuristics(blocks())"
    edit = "@triton.jit", f"{head}\n@triton.jit"
    program = edited_base("forward", [edit], {})
    assert verify(*program).kind == "not read"
    verdict = verify(*program, helpers={"blocks": block})
    assert verdict and f"if blocks() is {block}" in verdict.claim


@pytest.mark.parametrize("name", [n for n in LIBRARIES if n.startswith("triton")])
def test_the_names_of_triton_are_those_that_it_has(name):
    pytest.importorskip("triton", minversion="3.7.1")
    module = importlib.import_module(name)
    names = {part for part in dir(module) if not part.startswith("_")}
    assert names >= set(LIBRARIES[name])
    # other tests import modules that belong to it
    for part in names.difference(LIBRARIES[name]):
        assert ismodule(getattr(module, part))
