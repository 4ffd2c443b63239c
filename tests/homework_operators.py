"""Operators as students bring them to homework 7, in NumPy and in torch: a right one each, and two wrong gradients.

OPERATORS: {name: (source, wrong)}, wrong = {what was believed: ((old, new), stage, input)}.
"""

FIRST, OTHERS = "gradient of the first input", "gradients of the others"

SOFTMAX = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng):
        return {"x": rng.standard_normal((3, 5)) * 2, "temperature": np.asarray(rng.uniform(0.5, 2))}
    @staticmethod
    def degenerate(rng):
        flat, far = np.zeros((2, 4)), np.zeros((2, 4))
        far[0, 0], far[1] = 300.0, -300.0
        return [{"x": flat, "temperature": np.asarray(1.0)}, {"x": far, "temperature": np.asarray(1.0)}]
    @staticmethod
    def forward(x, temperature):
        z = x / temperature
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    @staticmethod
    def backward(dy, x, temperature):
        y = Operator.forward(x, temperature)
        dz = y * (dy - (dy * y).sum(-1, keepdims=True))
        dtemperature = -(dz * x).sum() / temperature**2
        return dz / temperature, np.asarray(dtemperature, x.dtype)
"""

L1 = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng):
        x = rng.choice([-1.0, 1.0], (4, 6)) * rng.uniform(0.2, 3, (4, 6))
        return {"x": x, "weight": rng.standard_normal(6)}
    @staticmethod
    def degenerate(rng):
        return [{"x": np.zeros((2, 6)), "weight": rng.standard_normal(6)}]
    @staticmethod
    def forward(x, weight):
        return weight * x / (np.abs(x).mean(-1, keepdims=True) + 0.01)
    @staticmethod
    def backward(dy, x, weight):
        r = 1 / (np.abs(x).mean(-1, keepdims=True) + 0.01)
        wdy = weight * dy
        along = (wdy * x).sum(-1, keepdims=True)
        dx = r * wdy - np.sign(x) * r**2 * along / x.shape[-1]
        return dx, (dy * x * r).sum(0)
"""

POWER = """
import torch
class Operator:
    @staticmethod
    def inputs(rng):
        x = rng.choice([-1.0, 1.0], (3, 5)) * rng.uniform(0.2, 3, (3, 5))
        return {"x": torch.from_numpy(x), "p": torch.from_numpy(rng.uniform(1.5, 3, 1))}
    @staticmethod
    def degenerate(rng):
        return [{"x": torch.ones(2, 4).double() * 1e-3, "p": torch.tensor([2.0]).double()}]
    @staticmethod
    def forward(x, p):
        return x * (x.abs() ** p).mean(-1, keepdim=True) ** (-1 / p)
    @staticmethod
    def backward(dy, x, p):
        powers = x.abs() ** p
        m = powers.mean(-1, keepdim=True)
        r = m ** (-1 / p)
        dr = (dy * x).sum(-1, keepdim=True)
        dm = -dr * r / (p * m)
        dx = dy * r + dm * p * powers / x / x.shape[-1]
        dp = (dr * r * m.log() / p**2).sum() + (dm * (powers * x.abs().log()).mean(-1, keepdim=True)).sum()
        return dx, dp.reshape(1)
"""

WEIGHT_NORM = """
import numpy as np
class Operator:
    @staticmethod
    def inputs(rng):
        return {"v": rng.standard_normal((4, 6)) * [[0.3], [1], [2], [5]], "g": rng.standard_normal(4)}
    @staticmethod
    def degenerate(rng):
        return [{"v": np.zeros((4, 6)), "g": rng.standard_normal(4)}]
    @staticmethod
    def forward(v, g):
        return g[:, None] * v / np.sqrt((v * v).sum(-1, keepdims=True) + v.dtype.type(1e-6))
    @staticmethod
    def backward(dy, v, g):
        r = 1 / np.sqrt((v * v).sum(-1, keepdims=True) + v.dtype.type(1e-6))
        unit = v * r
        dg = (dy * unit).sum(-1)
        dv = g[:, None] * r * (dy - unit * dg[:, None])
        return dv, dg
"""

INSTANCE = """
import torch
class Operator:
    @staticmethod
    def inputs(rng):
        x = rng.standard_normal((2, 3, 4)) * 2 + rng.standard_normal((2, 3, 1))
        return {name: torch.from_numpy(a) for name, a in
                {"x": x, "weight": rng.standard_normal(3), "bias": rng.standard_normal(3)}.items()}
    @staticmethod
    def degenerate(rng):
        usual = Operator.inputs(rng)
        return [usual | {"x": torch.ones(2, 3, 4).double()}, usual | {"x": usual["x"][:0]}]
    @staticmethod
    def normalized(x):
        q = x - x.mean(-1, keepdim=True)
        rstd = ((q * q).mean(-1, keepdim=True) + 1e-5).rsqrt()
        return q * rstd, rstd
    @staticmethod
    def forward(x, weight, bias):
        return Operator.normalized(x)[0] * weight[:, None] + bias[:, None]
    @staticmethod
    def backward(dy, x, weight, bias):
        x_hat, rstd = Operator.normalized(x)
        wdy = dy * weight[:, None]
        dx = rstd * (wdy - wdy.mean(-1, keepdim=True) - x_hat * (x_hat * wdy).mean(-1, keepdim=True))
        return dx, (dy * x_hat).sum((0, 2)), dy.sum((0, 2))
"""

OPERATORS = {
    "softmax": (SOFTMAX, {
        "the sum is a constant": ((" - (dy * y).sum(-1, keepdims=True)", ""), FIRST, "x"),
        "temperature once": (("temperature**2", "temperature"), OTHERS, "temperature"),
    }),
    "mean absolute value": (L1, {
        "the sign is forgotten": (("np.sign(x) *", "x *"), FIRST, "x"),
        "no weight": (("wdy = weight * dy", "wdy = dy"), FIRST, "x"),
    }),
    "learned power": (POWER, {
        "the power is not differentiated in the mean": ((" + (dm * (powers * x.abs().log()).mean(-1, keepdim=True))"
                                                         ".sum()", ""), OTHERS, "p"),
        "a minus is lost": (("dm = -dr", "dm = dr"), FIRST, "x"),
    }),
    "weight norm": (WEIGHT_NORM, {
        "the length is a constant": ((" - unit * dg[:, None]", ""), FIRST, "v"),
        "the length is not divided by": (("dg = (dy * unit).sum(-1)", "dg = (dy * v).sum(-1)"), FIRST, "v"),
    }),
    "instance norm": (INSTANCE, {
        "the mean is a constant": ((" - wdy.mean(-1, keepdim=True)", ""), FIRST, "x"),
        "a mean over the examples": (("dy.sum((0, 2))\n", "dy.sum(2).mean(0)\n"), OTHERS, "bias"),
    }),
}  # fmt: skip
# What nothing can be learned from, and the words of the report.
TRIVIAL = {
    "the input": ("x", "dy", "returns one of its inputs"),
    "a constant": ("0 * x + 1", "0 * dy", "the same y for other inputs"),
    "a multiple": ("3 * x", "3 * dy", "forward is affine"),
    "a shift": ("x + 2", "1 * dy", "forward is affine"),
    "centring": ("x - x.mean(-1, keepdims=True)", "dy - dy.mean(-1, keepdims=True)", "forward is affine"),
    "a fixed matrix": ("x @ np.arange(16.0).reshape(4, 4).astype(x.dtype)",
                       "dy @ np.arange(16.0).reshape(4, 4).T.astype(dy.dtype)", "forward is affine"),
    "squares": ("x * x", "2 * x * dy", "from one entry of the inputs"),
    "an activation": ("np.tanh(x)", "dy / np.cosh(x) ** 2", "from one entry of the inputs"),
    "a sum": ("x.sum(-1)", "dy[:, None] + 0 * x", "forward is affine"),
}  # fmt: skip
