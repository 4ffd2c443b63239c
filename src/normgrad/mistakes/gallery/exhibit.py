"""A wrong operator as an exhibit: the usual test accepts it, and a check rejects it."""

from __future__ import annotations

import inspect
import re
import textwrap

import numpy as np
from torch.autograd.gradcheck import GradcheckError

from ...checks.backends import Outcome
from ...checks.contract import reference
from ...tolerance import accumulator, round_to

REJECTED = (AssertionError, ArithmeticError, GradcheckError)
INPUTS = ("x", "residual", "weight", "bias", "dy", "dresidual_out")


class Written:
    """A NumPy function that computes one output of a norm, as a backend whose other outputs are the oracle's.

    Args:  function: takes by name what it needs: the inputs x, residual, weight, bias, dy and dresidual_out, the rows p
                     (the sum of x and residual), mean and rstd (M, 1), eps, dtype, the oracle's y, dx, dw and db,
                     and store, which rounds as memory of the dtype does; returns the output
           output:   y, residual_out, dx, dw or db
    """

    dtypes = ("float64", "float32", "float16", "bfloat16")

    def __init__(self, function=None, output="dx"):
        self.function, self.output = function, output
        self.name = "right" if function is None else function.__name__

    def run(self, case, spec, dtype: str) -> Outcome:
        """Forward and backward of a case whose numbers the dtype holds, each output rounded once."""
        wide, p = accumulator(dtype), case.summed(dtype)
        saved, grads = reference(case, spec, dtype, p)
        outputs = {"dx": grads.dx, "dw": grads.dweight, "db": grads.dbias}
        outputs |= {"y": saved.y, "residual_out": saved.residual_out}
        arrays = {name: getattr(case, name) for name in INPUTS} | outputs
        arrays |= {"p": p, "rstd": saved.rstd[:, None], "mean": saved.mean}
        if saved.mean is not None:
            arrays["mean"] = saved.mean[:, None]

        def store(array):
            return round_to(array, dtype).astype(wide)

        arguments = {"eps": spec.eps, "dtype": dtype, "store": store}
        for name, array in arrays.items():
            arguments[name] = None if array is None else array.astype(wide)
        if self.function is not None:
            names = inspect.signature(self.function).parameters
            taken = {name: arguments[name] for name in names}
            outputs[self.output] = self.function(**taken)
        outputs["dresidual"] = None if case.residual is None else outputs["dx"]
        for name, array in outputs.items():
            if array is not None:
                outputs[name] = np.asarray(store(array), np.float64)
        return Outcome(**outputs)


def verdict(test, operator) -> str:
    """What a test says of an operator: accepted, or rejected with the first line of its complaint."""
    try:
        test(operator, np.random.default_rng(7))
    except REJECTED as error:
        return "rejected: " + re.sub(r"^.*?float\d+: ", "", str(error).splitlines()[0])
    return "accepted"


def exhibit(name: str, wrong, right, check, usual) -> None:
    """Print what a usual test and a check say of a wrong operator, and the check of the right one.

    Args:  name: of the bug; wrong, right: what both tests take; check, usual: of (operator, generator), raise one of
           REJECTED for an operator that they reject
    """
    print(name)
    for words, test, operator in (
        ("usual test", usual, wrong),
        ("check", check, wrong),
        ("repaired", check, right),
    ):
        line = f"  {words}: {verdict(test, operator)}"
        indent = "    "
        print(textwrap.fill(line, 72, subsequent_indent=indent, break_long_words=False))
