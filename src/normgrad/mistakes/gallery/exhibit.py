"""A wrong operator as an exhibit: the usual test accepts it, and a check rejects it."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import replace

import numpy as np

from ... import numpy_ref
from ...checks.backends import Outcome
from ...tolerance import accumulator, round_to

REJECTED = (AssertionError, ArithmeticError)
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
        wide = accumulator(dtype)

        def store(array):
            return round_to(array, dtype).astype(wide)

        arguments = {"eps": spec.eps, "dtype": dtype, "store": store}
        for name in INPUTS:
            array = getattr(case, name)
            arguments[name] = None if array is None else array.astype(wide)
        p = arguments["x"]
        if case.residual is not None:
            p = store(p + arguments["residual"])
        weight, bias = arguments["weight"], arguments["bias"]
        saved = numpy_ref.forward(p, weight, bias, spec=spec)
        mean = None if saved.mean is None else saved.mean[:, None]
        arguments |= {"p": p, "mean": mean, "rstd": saved.rstd[:, None], "y": saved.y}
        if self.output in ("y", "residual_out"):
            saved = replace(saved, **self._changed(arguments))
        grads = numpy_ref.backward(arguments["dy"], saved, arguments["dresidual_out"])
        outputs = {"dx": grads.dx, "dw": grads.dweight, "db": grads.dbias}
        if self.output in outputs:
            outputs |= self._changed(arguments | outputs)
        outputs |= {"y": saved.y, "residual_out": saved.residual_out}
        outputs["dresidual"] = None if case.residual is None else outputs["dx"]
        for name, array in outputs.items():
            if array is not None:
                outputs[name] = np.asarray(store(array), np.float64)
        return Outcome(**outputs)

    def _changed(self, arguments):
        if self.function is None:
            return {}
        names = inspect.signature(self.function).parameters
        return {self.output: self.function(**{name: arguments[name] for name in names})}


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
