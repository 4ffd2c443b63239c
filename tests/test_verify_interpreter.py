"""What verify proves is so when it is run in Triton's interpreter, against NumPy code of the definitions."""

import inspect
import re

import numpy as np
import pytest
import test_verify_welford as welford
from sympy import Rational, Symbol

pytest.importorskip("triton")
torch = pytest.importorskip("torch")

from homework_solutions import of_source  # noqa: E402
from programs import RIGHT  # noqa: E402
from verify_kernels import ATTACKS, HEAD, KERNELS, PART  # noqa: E402
from verify_triton import programs  # noqa: E402

from normgrad.symbolic.symbols import i, j  # noqa: E402
from normgrad.triton_kernels.interpreter import INTERPRETED  # noqa: E402
from normgrad.verify import CHUNK, COLUMNS, ROWS, WHOLE, M, N, T  # noqa: E402
from normgrad.verify.definitions import entry  # noqa: E402
from normgrad.verify.point import Point  # noqa: E402
from normgrad.verify.source import plain  # noqa: E402

DIGITS = np.cbrt(np.finfo(np.float64).eps)  # a quotient of integers has 24 bits
# digits of 16 bits, which are no claim; one program of several heads, of which a launch has all; methods of tiles
# that the interpreter lacks
NOT_RUN = r"float16|^heads|\.(exp2|cos|exp)\(\)"
APART, OUTSIDE = 3, 777.0  # between two rows of a tensor, and what lies there


class Run:
    """One launch: a kernel's arguments made from its binding, and what its outputs must be."""

    def __init__(self, binding, grid, definitions, rows, columns):
        self.binding, self.definitions = binding, definitions
        draw = np.random.default_rng(20261126)
        self.point = Point((rows, columns), definitions.defs, draw)
        targets = draw.integers(0, columns, rows)
        self.point.values |= {"onehot": np.eye(columns)[targets], "target": targets}
        self.sizes = self.point.sizes
        programs = 2 if CHUNK not in binding.values() else -(-rows // 2)
        counts = {"rows": rows, "row tiles": -(-rows // 4), "programs": programs}
        self.grid = counts.get(grid, -(-columns // 4))
        self.blocks = {WHOLE: 32, COLUMNS: 4, ROWS: 4, CHUNK: 2}
        self.memory = {}

    def argument(self, name):
        """An argument of the kernel."""
        bound = self.binding.get(name)
        if isinstance(bound, T):
            return self.pointer(name, bound)
        if name not in self.binding:
            return self.sizes[N] + APART  # a stride
        if isinstance(bound, str):
            return self.blocks.get(bound, bound)
        if bound in self.sizes:
            return self.sizes[bound]
        return self.point.tensor(bound) if isinstance(bound, Symbol) else bound

    def pointer(self, name, bound):
        """Memory with a tensor's rows apart from each other, and marks between and around them."""
        rows = self.grid if "p" in bound.letters else self.sizes[M]
        shape = {"j": (1, self.sizes[N])}.get(bound.letters[0], (rows, self.sizes[N]))
        if bound.letters[-1] != "j":
            shape = (rows, 1)
        stride = shape[1] + (APART if bound.stride is not None else 0)
        if getattr(bound.stride, "free_symbols", None) == {N}:
            stride = int(bound.stride.xreplace(self.sizes))
        dtype = torch.int64 if bound.before == "target" else torch.float64
        memory = torch.full((shape[0] * stride + 2 * 64,), int(OUTSIDE), dtype=dtype)
        view = torch.as_strided(memory, shape, (stride, 1), 64)
        if bound.before:
            head = bound.before
            if isinstance(head, str):
                head = PART[i, j] if head == "part" else entry(head)
            view.copy_(torch.from_numpy(self.point.tensor(head)).reshape(shape))
        elif name == "dw" and "p" not in bound.letters:
            view.zero_()  # what atomic additions start from
        self.memory[name] = memory, view
        return memory[64:]

    def check(self, name, bound):
        """That an output is what the definitions say, and that nothing around it was written."""
        memory, view = self.memory[name]
        stored = view.numpy().sum(0) if "p" in bound.letters else view.numpy()
        defined = self.point.tensor(self.definitions.outputs[bound.after])
        error = np.abs(stored.reshape(defined.shape) - defined)
        assert (error <= DIGITS * (1 + np.abs(defined))).all(), name
        view.fill_(OUTSIDE)
        assert (memory == OUTSIDE).all(), f"{name}: written outside"


def launch(text, run):
    """Launches a kernel of a text."""
    text = text.replace(" rsqrt(", " tl.rsqrt(")
    text = text.replace("extra.libdevice", "math").replace("float32", "float64")
    kernel = of_source(text)["kernel"]
    parameters = inspect.signature(plain(kernel)).parameters
    names = [
        name
        for name, parameter in parameters.items()
        if name in run.binding or parameter.default is parameter.empty
    ]
    kernel[(run.grid,)](**{name: run.argument(name) for name in names})


def launched(text, binding, grid, definitions, rows, columns):
    """Launches a kernel, and checks what it stores."""
    run = Run(binding, grid, definitions, rows, columns)
    launch(text, run)
    for output, bound in binding.items():
        if isinstance(bound, T) and bound.after:
            run.check(output, bound)


pytestmark = [
    # of what Triton deprecates, and of the interpreter
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not INTERPRETED, reason="Triton was imported to compile"),
]


@pytest.mark.parametrize(("rows", "columns"), [(5, 6), (7, 13), (1, 3)])
@pytest.mark.parametrize("name", KERNELS)
def test_proved_kernels_store_what_is_defined(name, rows, columns):
    text, *launch = KERNELS[name]
    launched(HEAD + text, *launch, rows, columns)


def other_kernels():
    """{name: (text, binding, grid, definitions)} of all that the other tables say is proved."""
    table = {}
    for name, edits in ATTACKS.items():
        text, *launch = KERNELS[name]
        for old, new, why in edits:
            if why == "right":
                table[f"{name}: {new}"] = (HEAD + text.replace(old, new), *launch)
    for name, program in RIGHT.items():
        if program.is_triton:
            text, *launch = program.launch()
            table[name] = (compiled(text), *launch)
    for name, text in welford.RIGHT.items():
        table[f"Welford {name}"] = (text, welford.BINDING, "rows", welford.LAYER)
    return table


def compiled(text):
    """The text of a kernel that lacks what is said of its blocks."""
    lines = []
    for line in text.splitlines():
        if line.startswith("def "):
            line = re.sub(r"\b(BLOCK|ROWS)(?=[,)])", r"\1: tl.constexpr", line)
        lines.append(line)
    return "\n".join(["import triton", *lines])


def told_kernels():
    """{name: (text, binding, grid, definitions)} of verify_triton.

    Autotune needs a device to compare its runs, no run draws an expression, and a launch has one axis here.
    """
    left_out = (
        "autotune",
        "a saved statistic",
        "a number in the grid",
        "what Triton's interpreter does not run",
    )
    table = {}
    for verdict, kind, line, program, words in programs():
        if verdict != "proved" or kind in left_out or re.search(NOT_RUN, line):
            continue
        text, binding, grid, definitions = program
        if "F=True or False" in words:
            binding["F"] = True
        number = re.search(r"for eps=(\d[^,\\ ]*)", words)
        if number:
            binding = binding | {"eps": float(Rational(number[1]))}
            definitions = definitions.at_eps(Rational(number[1]))
        table[f"{kind} {line}"] = (text, binding, grid, definitions)
    return table


OTHERS, TOLD = other_kernels(), told_kernels()


@pytest.mark.parametrize("name", TOLD)
def test_every_kernel_whose_claim_names_what_it_rests_on_stores_it(name):
    launched(*TOLD[name], 5, 8)


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_kernel_that_is_proved_stores_what_is_defined(name):
    launched(*OTHERS[name], 5, 6)
