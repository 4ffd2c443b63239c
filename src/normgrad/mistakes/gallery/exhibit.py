"""A wrong operator as an exhibit: the usual test accepts it, and a check rejects it."""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import replace

import numpy as np

from ... import numpy_ref
from ...checks.backends import Outcome
from ...checks.tolerance import accumulator, round_to

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
            return None if array is None else round_to(array, dtype).astype(wide)

        given = {name: getattr(case, name) for name in INPUTS}
        given = {
            name: None if array is None else array.astype(wide)
            for name, array in given.items()
        }
        given["p"] = (
            given["x"]
            if case.residual is None
            else store(given["x"] + given["residual"])
        )
        saved = numpy_ref.forward(given["p"], given["weight"], given["bias"], spec=spec)
        mean = None if saved.mean is None else saved.mean[:, None]
        given |= {
            "mean": mean,
            "rstd": saved.rstd[:, None],
            "eps": spec.eps,
            "dtype": dtype,
            "store": store,
        }
        given["y"] = saved.y
        if self.output in ("y", "residual_out"):
            saved = replace(saved, **self._changed(given))
        grads = numpy_ref.backward(given["dy"], saved, given["dresidual_out"])
        gradients = {"dx": grads.dx, "dw": grads.dweight, "db": grads.dbias}
        if self.output in gradients:
            gradients |= self._changed(given | gradients)
        dresidual = None if case.residual is None else gradients["dx"]
        outputs = (
            saved.y,
            saved.residual_out,
            gradients["dx"],
            dresidual,
            gradients["dw"],
            gradients["db"],
        )
        return Outcome(
            *(None if t is None else np.asarray(store(t), np.float64) for t in outputs)
        )

    def _changed(self, given):
        if self.function is None:
            return {}
        needed = inspect.signature(self.function).parameters
        return {self.output: self.function(**{name: given[name] for name in needed})}


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
        line = f"{words}: {verdict(test, operator)}"
        print(
            textwrap.indent(
                textwrap.fill(line, 70, subsequent_indent="  ", break_long_words=False),
                "  ",
            )
        )
