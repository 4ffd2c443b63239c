"""One run of a program that a language model wrote, for tools/model_programs.py, which starts it without a network.

python tools/model_runs.py < JOBS       a job a line, and its answer, are JSON; see `answer`
python tools/model_runs.py cuda < JOBS  the same on this machine's GPU

A text's imports, functions, classes and assignments are executed, and none of its other lines. Tensors lie on the CPU:
what asks for a GPU gets the CPU. Triton interprets a kernel; where TRITON_INTERPRET is 0 it compiles it for a GPU of
which nothing but the name is there, and launches nothing. All memory lies between entries that are nan: a program that
reads there spreads them, and one that writes there is found out.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import resource
import sys
import tempfile
from importlib import util
from pathlib import Path
from types import SimpleNamespace

EDGE = 1 << 17
SEED = 20261129
EPS = 1e-2
# of the largest entry of a row; sums of float32 are right to 1e-5 of it
TOLERANCE = 1e-3
USUAL = 1e-2
SECONDS = 60


# what an assignment at import may fail with, as an example that needs a GPU does; a name that is missing is reported
CAUGHT = """
try:
    pass
except (AttributeError, NameError):
    raise
except Exception:
    pass
"""


def module_of(code: str, device: str):
    """The module of a text, without the lines that only do something when it is imported."""
    body = []
    for node in ast.parse(code).body:
        if "__main__" in ast.unparse(node):
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.If | ast.Try):
            caught = ast.parse(CAUGHT).body[0]
            caught.body = [node]
            body.append(caught)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.Expr):
            body.append(node)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(ast.unparse(ast.Module(body, [])), encoding="utf8")
        spec = util.spec_from_file_location("program", path)
        module = util.module_from_spec(spec)
        with mode_of(Memory(device)):
            spec.loader.exec_module(module)
    return module


class Memory:
    """Tensors between entries that are nan.

    Args:  device: where they lie, "cpu" or "cuda"
    """

    def __init__(self, device="cpu"):
        self.edges = []
        self.device = device

    def tensor(self, shape, value, dtype=None, device=None):
        """A tensor with one value in all entries."""
        sizes = [int(size) for size in shape]
        count = torch.Size(sizes).numel()
        dtype = dtype or torch.float32
        device = device or self.device
        if not dtype.is_floating_point:
            return torch.full(sizes, 0, dtype=dtype, device=device)
        whole = torch.full(
            (count + 2 * EDGE,), float("nan"), dtype=dtype, device=device
        )
        self.edges.append((whole, count))
        inner = whole[EDGE : EDGE + count]
        inner.fill_(value)
        return inner.view(sizes)

    def like(self, value):
        """A tensor with the entries of another one."""
        return self.tensor(value.shape, 0.0, value.dtype).copy_(value)

    @property
    def is_written_past(self):
        """Whether an entry outside of a tensor was written."""
        edges = [(w[:EDGE], w[EDGE + count :]) for w, count in self.edges]
        return not all(a.isnan().all() and b.isnan().all() for a, b in edges)


def mode_of(memory):
    """A mode of torch in which new memory is nan; where it lies on the CPU, a GPU is the CPU."""
    from torch.overrides import TorchFunctionMode

    values = {
        torch.empty: float("nan"),
        torch.empty_like: float("nan"),
        torch.Tensor.new_empty: float("nan"),
        torch.zeros: 0.0,
        torch.zeros_like: 0.0,
        torch.Tensor.new_zeros: 0.0,
    }

    def size_of(function, args, kwargs):
        if function in (torch.empty_like, torch.zeros_like):
            return args[0].shape, args[0].dtype
        args = args[function in (torch.Tensor.new_empty, torch.Tensor.new_zeros) :]
        if not args:
            return kwargs["size"], None
        is_shape = isinstance(args[0], tuple | list)
        return args[0] if is_shape else args, None

    def filled(function, args, kwargs):
        """The tensor that a function of `values` makes."""
        size, dtype = size_of(function, args, kwargs)
        device = "cpu"
        if isinstance(args[0], torch.Tensor):
            dtype, device = dtype or args[0].dtype, args[0].device
        dtype, device = kwargs.get("dtype") or dtype, kwargs.get("device") or device
        return memory.tensor(size, values[function], dtype, device)

    class OnGPU(TorchFunctionMode):
        """See `mode_of`."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if function in values and not kwargs.get("out"):
                return filled(function, args, kwargs)
            return function(*args, **kwargs)

    class OnCPU(TorchFunctionMode):
        """See `mode_of`."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if function == torch.Tensor.is_cuda.__get__:
                return True
            if function == torch.Tensor.device.__get__:
                return torch.device("cuda:0")
            if function is torch.Tensor.cuda:
                return args[0]
            if "cuda" in str(kwargs.get("device", "")):
                kwargs["device"] = "cpu"
            if function in values and not kwargs.get("out"):
                return filled(function, args, kwargs)
            args = tuple("cpu" if str(a)[:4] == "cuda" else a for a in args)
            return function(*args, **kwargs)

    return OnCPU() if memory.device == "cpu" else OnGPU()


def launched(*arguments, **options):
    """What a launcher of Triton's refuses: axes of a grid that are no integers."""
    for size in arguments[:3]:
        if not isinstance(size, int):
            raise TypeError(f"{type(size).__name__} in the place of an integer")


class Device:
    """A driver of Triton's that compiles for a GPU and launches nothing."""

    def __init__(self):
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", 90, 32)
        self.launcher_cls = lambda *source: launched
        properties = {"max_shared_mem": 232448, "multiprocessor_count": 132}
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: properties,
            load_binary=lambda *binary: (0, 0, 32, 0, 1024),
            unload_module=lambda module: None,
        )

    def get_current_target(self):
        """The GPU that is compiled for."""
        return self.target

    def get_current_device(self):
        """Its number."""
        return 0

    def set_current_device(self, device):
        """There is one."""

    def get_current_stream(self, device):
        """Its stream."""
        return 0

    def get_active_torch_device(self):
        """Where tensors lie."""
        return torch.device("cpu")

    def get_benchmarker(self):
        """The first of autotune's configurations is as fast as any other."""
        return lambda call, **options: call() or [1.0, 1.0, 1.0]


def allocated(size, strides, dtype):
    """A tensor of torch's compiler, whose entries follow each other."""
    return torch.empty(size, dtype=dtype)


def prepare(is_compiled):
    """Stand-ins for a GPU's properties, and one configuration of autotune's."""
    import triton
    from triton.runtime import interpreter

    torch.cuda.device = lambda *device: contextlib.nullcontext()
    torch.cuda.set_device = torch.cuda.synchronize = lambda *device: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_available = lambda: True
    torch.cuda.get_device_capability = lambda *device: (9, 0)
    torch.cuda._DeviceGuard = torch.cuda.device
    # what torch's compiler calls, which a torch for CPUs has not
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch._C._dynamo.guards._empty_strided_cuda = allocated
    properties = SimpleNamespace(multi_processor_count=2)
    torch.cuda.get_device_properties = lambda *device: properties
    if is_compiled:
        triton.runtime.driver.set_active(Device())
        return
    executor = interpreter.GridExecutor
    first = executor.__init__

    def begin(self, function, names, grid, hooks=()):
        """A grid may be a list where Triton compiles, and not where it interprets."""

        def axes(meta):
            return tuple(grid(meta) if callable(grid) else grid)

        first(self, function, names, axes, list(hooks))

    executor.__init__ = begin
    plain = triton.autotune

    def autotune(configs, key, **options):
        return plain(list(configs)[:1], key)

    triton.autotune = autotune


def reference(job, x, weight, bias, eps, target):
    """{name: tensor} of what an operator gives, in float64."""
    lse = torch.logsumexp(x, -1, keepdim=True)
    if job["operator"] in ("cross_entropy", "lse"):
        entries = x.gather(-1, target.view(*lse.shape))
        return {"loss": (lse - entries).squeeze(-1), "lse": lse.squeeze(-1)}
    if job["operator"] == "log_softmax":
        return {"y": x - lse}
    if job["operator"] == "softmax":
        return {"y": (x - lse).exp()}
    mean = x.mean(-1, keepdim=True)
    centred = x - mean if job["operator"] == "ln" else x
    square = centred.square().sum(-1, keepdim=True)
    if job["operator"] != "l2":
        square = square / x.shape[-1]
    rstd = (square + eps).rsqrt()
    y = centred * rstd
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return {"y": y, "mean": mean, "rstd": rstd}


def inputs_of(job, size, memory):
    """{role: tensor} of a case, in float32.

    The rows have two sizes, so that an eps at another place shows, and a mean that is not 0.
    """
    rows, columns = size
    generator = torch.Generator().manual_seed(SEED)

    def drawn(*shape):
        return torch.randn(shape, generator=generator)

    x = drawn(rows, columns)
    if not job["usual"]:
        x = x * 0.3 + 0.2
        x[::2] *= job["small"]
    vector = size if job["heads"] else size[1:]
    values = {"weight": drawn(*vector) + 1, "bias": drawn(*vector), "dy": drawn(*size)}
    values["dloss"] = drawn(rows)
    values["target"] = torch.randint(columns, (rows,), generator=generator)
    values = {name: memory.like(value) for name, value in values.items()}
    if job["apart"]:
        wide = memory.tensor((rows, columns + 3), float("nan"))[:, :columns]
        values["x"] = wide.copy_(x)
    else:
        values["x"] = memory.like(x)
    if job["leading"]:
        for name in ("x", "dy"):
            values[name] = values[name].view(1, rows, columns)
    return values


def results_of(job, module, values, size, memory, exact_results):
    """{output: tensor} that a program gives.

    Args:  needed: the definitions' mean and rstd, which a backward takes
    """
    roles, target = job["bound"], getattr(module, job["name"])
    has_gradients = job["kind"] == "autograd Function"
    answers = dict(values)
    for name in SAVED.intersection(exact_results):
        shape = values["x"].shape if name == "y" else size[:1]
        answers[name] = memory.like(exact_results[name].reshape(shape).float())
    for name in ("x", "weight", "bias") if has_gradients else ():
        answers[name] = answers[name].detach().requires_grad_()
    own_sizes = {"N": size[1], "M": size[0], "eps": job["eps"]}

    def value_of(role):
        if not isinstance(role, str):
            return role
        if role in own_sizes:
            return own_sizes[role]
        if role in SHAPES:
            shape = {"(M, N)": size, "(N,)": size[1:], "(M,)": size[:1]}[role]
            return memory.tensor(shape, float("nan"))
        return answers[role]

    arguments = {name: value_of(role) for name, role in roles.items()}
    if has_gradients:
        names = [name for name in job["parameters"] if name in arguments]
        result = target.apply(*[arguments[name] for name in names])
    elif job["kind"] == "module":
        of_init = {k: v for k, v in arguments.items() if k in job["of_init"]}
        layer = target(**of_init).to(memory.device)
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if name in job["trained"]:
                    parameter.copy_(answers[job["trained"][name]])
        of_call = [k for k in job["parameters"] if k in arguments and k not in of_init]
        result = layer(*[arguments[name] for name in of_call])
    else:
        result = target(**arguments)
    flat = list(result) if isinstance(result, tuple | list) else [result]
    if result is None:
        # the memory of the results was handed in
        flat = [arguments[name] for name, role in roles.items() if role in SHAPES]
    outputs = job["outputs"] or ["y"]
    results = dict(zip(outputs, flat, strict=False))
    if has_gradients:
        inputs = [answers[role] for role in roles.values() if role in answers]
        inputs = [value for value in inputs if value.requires_grad]
        cotangent = values[cotangent_of(exact_results)].view_as(flat[0])
        gradients = torch.autograd.grad(flat[0], inputs, cotangent)
        names = {id(answers[k]): d for k, d in zip(GRADIENTS, NAMES, strict=True)}
        results |= {names[id(v)]: g for v, g in zip(inputs, gradients, strict=True)}
    return results


# by which an operator of torch's refuses tensors on a CPU
FOR_GPUS = re.compile(r",\s*device_types\s*=\s*[\"']cuda[\"']")
SHAPES = ("(M, N)", "(N,)", "(M,)")
GRADIENTS, NAMES = ("x", "weight", "bias"), ("dx", "dw", "db")
# what a backward takes of its forward
SAVED = {"mean", "rstd", "lse", "y"}


def cotangent_of(results):
    """The gradient with which a backward begins."""
    return "dy" if "y" in results else "dloss"


def case(job, module, size):
    """What a program gave at one size: {output: "right", "wrong" or "of another shape"}."""
    memory = Memory(job["device"])
    values = inputs_of(job, size, memory)
    roles = {*job["bound"].values(), *job["trained"].values()}
    wide = {name: values[name].double() for name in values}
    target = values["target"]
    exact = {name: wide[name].requires_grad_() for name in GRADIENTS}
    leaves = [exact["x"], *[exact[n] if n in roles else None for n in GRADIENTS[1:]]]
    best = None
    for eps in job["eps_tried"]:
        exact_results = reference(job, *leaves, eps, target)
        asked = [tensor for tensor in leaves if tensor is not None]
        cotangent = cotangent_of(exact_results)
        result = exact_results[cotangent.removeprefix("d")]
        cotangent = wide[cotangent].view_as(result)
        gradients = torch.autograd.grad(result, asked, cotangent)
        names = [name for name, t in zip(NAMES, leaves, strict=True) if t is not None]
        exact_results |= dict(zip(names, gradients, strict=True))
        exact_results = {name: value.detach() for name, value in exact_results.items()}
        if best is None:
            with mode_of(memory):
                got = results_of(job, module, values, size, memory, exact_results)
        outcomes = compared(job, got, exact_results)
        if memory.is_written_past:
            outcomes["memory"] = "written past its end"
        if best is None or count(outcomes) < count(best):
            best = outcomes
    return best


def count(outcomes):
    """How many outputs are not right."""
    return sum(word != "right" for word in outcomes.values())


def compared(job, got, exact_results):
    """{output: a word} of all results."""
    outcomes = {}
    for name, value in got.items():
        want = exact_results[name]
        if not isinstance(value, torch.Tensor) or value.numel() != want.numel():
            outcomes[name] = "of another shape"
            continue
        value = value.detach().double().reshape(want.shape)
        if job["usual"]:
            is_right = torch.allclose(value, want, rtol=USUAL, atol=USUAL)
        else:
            largest = want.abs().amax(-1, keepdim=True) + 1e-30
            is_right = bool(((value - want).abs() <= TOLERANCE * largest).all())
        outcomes[name] = "right" if is_right else "wrong"
    return outcomes


def answer(job) -> list:
    """What a program gave at each size; a text for what it raised. Where it raises, x is tried with three axes, too."""
    code = job["code"]
    if job["device"] == "cpu":
        code = FOR_GPUS.sub("", code)
    module = module_of(code, job["device"])
    answers = []
    for size in map(tuple, job["sizes"]):
        raised = []
        for leading in sorted({job["leading"], True}):
            try:
                answers.append(case({**job, "leading": leading}, module, size))
                break
            except Exception as reason:
                raised.append(f"{type(reason).__name__}: {str(reason)[:300]}")
        else:
            answers.append(raised[0])
    return answers


def in_a_process(job) -> str:
    """The answer to one job as JSON, by a process with a limit of its time."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            answers = answer(job)
        except Exception as reason:
            answers = [f"import: {type(reason).__name__}: {str(reason)[:300]}"]
        with os.fdopen(writing, "w", encoding="utf8") as pipe:
            json.dump(answers, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text or json.dumps([f"ended: {status}"])


if __name__ == "__main__":
    import torch

    out, sys.stdout = sys.stdout, sys.stderr
    device = "cuda" if sys.argv[1:] == ["cuda"] else "cpu"
    if device == "cpu":
        prepare(os.environ["TRITON_INTERPRET"] == "0")
    for line in sys.stdin:
        job = {**json.loads(line), "device": device}
        print(in_a_process(job), file=out, flush=True)
