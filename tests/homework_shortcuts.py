"""Right answers that nobody derived: the reference read through some door, numbers for a derivation, another's work."""

from normgrad.homework import solutions

FORWARD = solutions.solution("hw2").partition("def rmsnorm_backward")[0]

# The text of the reference, and what it defines.
RUN = "\nimport re\nexec(re.sub('### (BEGIN|END) SOLUTION', '', text), globals())\n"


def doors(file: str, homework: str) -> dict[str, str]:
    """{door: solution.py} that reads a file through something else than Python's own open.

    Args:  file: the path of a reference solution
    """
    readers = {
        "readline": f"import readline\nreadline.read_history_file({file!r})\n"
        "text = '\\n'.join(readline.get_history_item(i + 1) or '' "
        "for i in range(readline.get_current_history_length()))",
        "a mapped file": f"import mmap, os\nfile = os.open({file!r}, os.O_RDONLY)\n"
        "text = mmap.mmap(file, 0, prot=mmap.PROT_READ)[:].decode()",
        "importlib.resources": "from importlib.resources import files\n"
        f"text = (files('normgrad') / 'homework/{homework}/solution.py').read_text()",
        "inspect.getsource": "import inspect, types\nmodule = types.ModuleType('m')\n"
        f"module.__file__ = {file!r}\ntext = inspect.getsource(module)",
        "numpy.fromfile": "import numpy\n"
        f"text = numpy.fromfile({file!r}, numpy.uint8).tobytes().decode()",
    }
    if homework != "hw2":
        readers["torch.from_file"] = (
            "import os, torch\n"
            f"text = torch.from_file({file!r}, size=os.stat({file!r}).st_size, "
            "dtype=torch.uint8).numpy().tobytes().decode()"
        )
    return {name: reader + RUN for name, reader in readers.items()}


# The derivative of the forward along each entry, by something else than a derivation.
ENTRIES = """
def loss(dy, x, weight, eps):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps[:, None]) * weight
    return (dy * y).sum()

def rmsnorm_backward(dy, x, weight, rstd):
    eps = 1 / rstd**2 - (x * x).mean(-1)
    dx, dw = np.empty_like(x), np.empty_like(weight)
    for at in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[at] = 1
        dx[at] = slope(lambda t: loss(dy[at[0]:at[0] + 1], x[at[0]:at[0] + 1]
            + t * unit[at[0]:at[0] + 1], weight, eps[at[0]:at[0] + 1]), x[at])
    dw[:] = (dy * x * rstd[:, None]).sum(0)
    return dx, dw
"""
SLOPES = {
    "a complex step": "def slope(f, x): return np.imag(f(1e-200j)) / 1e-200\n",
    "a complex step by another name": "def slope(f, x):\n"
    "    i = np.sqrt(np.array(-1, np.result_type('D')))\n"
    "    return float((-i * (f(i * 1e-200) - f(0.0))).astype(float)) / 1e-200\n",
    "differences in long double": "def slope(f, x):\n"
    "    h = np.longdouble(2)**-9 * max(abs(x), 0.01)\n"
    "    w = [np.longdouble(a) / b for a, b in ((4, 5), (-1, 5), (4, 105), (-1, 280))]\n"
    "    return sum(w[k] * (f((k + 1) * h) - f(-(k + 1) * h)) for k in range(4)) / h\n",
    "the package's own complex step": "from normgrad.checks.finite_difference import "
    "complex_step\ndef slope(f, x): return complex_step(f, 0.0)\n",
}


def by_numbers(slope: str) -> str:
    """A solution.py of homework 2 whose dx is found numerically. Args: slope: the text of a function of that name"""
    return f"{FORWARD}\n{slope}{ENTRIES}"


LONG = SLOPES["differences in long double"]
HIGH = by_numbers(LONG.replace("np.longdouble", "np.float64"))


# Torch's own derivative of a forward, behind a Function that looks as it should.
OVERRIDDEN = """
import torch
class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        ctx.save_for_backward(x, weight)
        return x
    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        return dy, weight, weight, None
    @classmethod
    def apply(cls, x, weight, bias, eps):
        t = x.float() if x.dtype == torch.bfloat16 else x
        q = t - t.mean(-1, keepdim=True)
        y = q * ((q * q).mean(-1, keepdim=True) + eps)**-0.5
        return (y * weight.to(t.dtype) + bias.to(t.dtype)).to(x.dtype)
"""
NODES = """
import numpy as np, torch
def layernorm_backward(dy, x, weight, mean, rstd):
    t = lambda a: torch.tensor(np.array(a))
    x_, w_, b_ = (t(a).requires_grad_() for a in (x, weight, 0 * weight))
    q = x_ - x_.mean(-1, keepdim=True)
    v = (q * q).mean(-1)
    e = (t(rstd)**-2 - v).detach()
    y = q * ((v + e)**-0.5)[:, None] * w_ + b_
    left, found = [(y.grad_fn, t(dy))], {}
    while left:
        node, given = left.pop()
        if hasattr(node, "variable"):
            found[id(node.variable)] = found.get(id(node.variable), 0) + given
            continue
        sent = node(given)
        sent = sent if isinstance(sent, tuple) else (sent,)
        left += [(n, s) for (n, _), s in zip(node.next_functions, sent) if n is not None and s is not None]
    return tuple(found[id(a)].numpy() for a in (x_, w_, b_))
"""

COPIED = """
import numpy as np, torch, triton, triton.language as tl
@triton.jit
def copy(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < N, other=0), mask=at < N)

def addnorm_forward(x, residual, weight, bias, eps):
    {made}
    wide = np.float64 if x.dtype == torch.float64 else np.float32
    f = lambda a: a.astype(wide)
    p = (f(xn) + f(rn)).astype(xn.dtype)
    mean = f(p).mean(-1)
    rstd = 1 / np.sqrt(f(p).var(-1) + eps)
    y = ((f(p) - mean[:, None]) * rstd[:, None] * f(wn) + f(bn)).astype(xn.dtype)
    m, n = x.shape
    flat = [a.reshape(-1) for a in (y, p, mean, rstd)]
    types = (x.dtype, x.dtype, torch.from_numpy(mean).dtype, torch.from_numpy(mean).dtype)
    found = []
    for a, dtype in zip(flat, types):
        source, target = torch.tensor(a), torch.empty(len(a), dtype=dtype)
        copy[(max(1, triton.cdiv(len(a), 64)),)](source, target, len(a), BLOCK=64)
        found.append(target)
    y, p, mean, rstd = found
    return y.view(m, n), p.view(m, n), mean, rstd
"""
COPIES = {
    "NumPy's views": COPIED.format(
        made="xn, rn, wn, bn = (t.contiguous().numpy() for t in (x, residual, weight, bias))"
    ),
    "the buffer protocol": COPIED.format(
        made="xn, rn, wn, bn = (np.from_dlpack(t.contiguous()) for t in (x, residual, weight, bias))"
    ),
}

STABLE = """
import numpy as np
def stable_normalize(x, eps):
    {wide}
    mean = z.mean(-1)
    var = ((z - mean[:, None]) ** 2).mean(-1)
    rstd = 1 / np.sqrt(var + eps)
    x_hat = (z - mean[:, None]) * rstd[:, None]
    f = lambda a: np.asarray(a, dtype=np.float32)
    return x_hat.astype(x.dtype), f(mean), f(var), f(rstd)
"""
INTEGERS = """
import numpy as np
def stable_normalize(x, eps):
    whole = np.rint(np.asarray(x, np.float32) * np.float32(2**20)).astype(np.int64)
    n = x.shape[-1]
    total = whole.sum(-1, dtype=np.int64)
    mean = (total / n / 2**20) if x.size else total * 1.0
    q = whole - (total // max(n, 1))[:, None]
    var = ((q / 2**20) ** 2).mean(-1) if x.size else mean
    rstd = 1 / np.sqrt(var + eps)
    x_hat = (np.asarray(x, 'd') - mean[:, None]) * rstd[:, None]
    f = lambda a: np.asarray(a, dtype='f')
    return x_hat.astype(x.dtype), f(mean), f(var), f(rstd)
"""
WIDER = {
    "np.longdouble by its letter": STABLE.format(wide="z = np.asarray(x).astype('g')"),
    "double by its letter": STABLE.format(wide="z = np.array(x, 'd')"),
    "complex": STABLE.format(wide="z = np.array(x, 'D').real"),
    "integers": INTEGERS,
}
