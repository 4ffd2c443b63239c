"""Bring your own norm: definitions in; proofs, torch and two Triton kernels out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sympy import Expr, IndexedBase, evaluate

from ..prove.claim import in_kernel_terms
from ..symbolic.codegen import TORCH, compile
from ..symbolic.proof import Proof
from ..verify.verdict import Verdict, assumption_lines
from .backward import by_closed_forms, by_reverse_mode
from .kernel_source import kernels_of
from .kernel_source import source as kernel_source
from .layer import NotFused, read_layer
from .program import Program, make_program
from .read_back import prove_independence, prove_kernels
from .steps import Steps

if TYPE_CHECKING:
    from torch import Tensor

    from ..bench.compile import Record
    from .launch import Programs


class Fused:
    """A layer of rows from its definitions: called with torch tensors by name, it runs two fused kernels.

    Nothing is generated before the reader's own closed forms are proved, and nothing is run before what the kernels'
    text stores is proved to be what the definitions say, and the derivatives of the loss, for every M and N.

    Args:    y: a name that normgrad.prove's `define` made, of formulas in x[i, j], row i of M and column j of N
             gradients: the reader's own closed forms, {x[i, j]: dx, ...}, in which dy is the cotangent of y; without
             them reverse mode makes the backward
             name: what the kernels are called by
    Numerics: sums and numbers of the rows in float32, in float64 for float64; each input is read once in each
             direction, numbers of the rows are saved; on a CPU without Triton's interpreter, and where there is no
             Triton, `torch` is what runs, and the layer's text says so; a row has at most 32768 columns, 16384 in
             float64; a function is known by its value and its derivative, so at a kink, or where there is no
             derivative as for a root at 0, the gradient is what the formula gives there
    Raises:  NotFused for definitions that no program of whole rows computes; NotProved with a point for a closed form
             that is wrong
    """

    def __init__(
        self,
        y: IndexedBase,
        *,
        gradients: dict[Expr, Expr] | None = None,
        name: str = "layer",
    ) -> None:
        if gradients is not None and not isinstance(gradients, dict):
            raise TypeError(
                f"gradients: got {type(gradients).__name__}, needs a dictionary such as {{x[i, j]: dx}}"
            )
        defs, (output,), gradients = in_kernel_terms([y], gradients)
        with evaluate(True):
            layer = self.layer = read_layer(defs, output, name)
            self.proved: dict[str, Proof | Verdict] = prove_independence(layer)
            self.assumed: tuple[str, ...] = ()
            if gradients is not None:
                lines, proofs = by_closed_forms(layer, defs, gradients)
                self.proved |= proofs
            steps = Steps(layer)
            forward = steps.apart(layer.lines, centred=True)
            if gradients is None:
                lines = by_reverse_mode(layer, forward)
            self.program: Program = make_program(layer, forward, steps.apart(lines))
            self.source = kernel_source(self.program)
        self._kernels = kernels_of(name, self.source)
        if self._kernels:
            verdict = prove_kernels(self.program, self.source)
            if not verdict:
                raise NotFused(f"the generated text is not proved: {verdict}")
            self.proved |= verdict.outputs
            self.assumed = verdict.assumptions

    def __call__(self, **arguments: Tensor | float) -> Tensor:
        """The output for the inputs and constants by name.

        Args:  a matrix as (..., N), a vector over the columns as (N,), a constant as a number
        """
        return self._run(self.programs, arguments)

    def __repr__(self):
        from .launch import interprets

        layer = self.layer
        reads = [layer.cotangent, *self.program.loaded]
        reads = [name for name in reads if name not in layer.constants]
        on_cpu = "Triton, interpreted" if self._kernels and interprets() else "torch"
        lines = [
            f"{layer.name}: {layer.output} of {', '.join(layer.inputs)}",
            f"  proved for every M and N: {', '.join(self.proved)}",
            *[f"  {line}" for line in assumption_lines(self.assumed)],
            f"  the backward reads {', '.join(reads)}; "
            f"the forward saves {', '.join(self.program.saved) or 'nothing'}",
            f"  on a CPU it runs in {on_cpu}",
        ]
        return "\n".join(lines)

    @property
    def torch(self) -> Callable[..., Tensor]:
        """The same layer in torch's operations, forward and backward, on any device; `.source` is their text."""

        programs = replace(self.programs, kernels=None)

        def in_torch(**arguments):
            return self._run(programs, arguments)

        in_torch.source = f"{programs.forward.source}\n\n{programs.backward.source}"
        return in_torch

    def compile(
        self, target: str = "sm_90", dtype: str = "bfloat16", columns: int = 4096
    ) -> list[Record]:
        """What the two kernels need on a GPU that need not be here: registers, spilled bytes, shared memory.

        Args:    target: as Triton names it, sm_90 for an H100; dtype: of all tensors; columns: N
        Returns: a `normgrad.bench.compile.Record` for each
        """
        from .compiled import compile_kernels

        return compile_kernels(self.programs, self.source, target, dtype, columns)

    @cached_property
    def programs(self) -> Programs:
        """The layer's programs in torch and Triton, and how they are called."""
        from .launch import Programs

        layer, program = self.layer, self.program

        def in_torch(lines, outputs):
            with evaluate(True):
                defs = layer.formulas(lines)
            return compile(defs, [layer.at(name) for name in outputs], TORCH)

        return Programs(
            layer.name,
            *map(tuple, (layer.matrices, layer.vectors, layer.constants)),
            tuple(program.saved),
            tuple(program.loaded),
            layer.cotangent,
            in_torch(program.forward, [layer.output]),
            in_torch(program.derived, program.gradients),
            self._kernels,
        )

    def _run(self, programs, arguments):
        from .launch import check_arguments, run

        inputs, constants = check_arguments(programs, arguments)
        for name, number in constants.items():
            if self.layer.tensors[name].is_positive and number <= 0:
                raise ValueError(
                    f"{name}: got {number}, needs a positive number, as its definition promises"
                )
        return run(programs, constants, *inputs)
