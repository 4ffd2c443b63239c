"""Bring your own norm: definitions in; proofs, NumPy, torch and two Triton kernels out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Expr, IndexedBase, Symbol, evaluate

from ..prove.claim import in_kernel_terms
from ..symbolic.codegen import TORCH, compile
from ..symbolic.definitions import Defs
from ..symbolic.notation import tensor
from ..symbolic.proof import Proof
from ..verify.verdict import Verdict, assumption_lines
from .backward import by_closed_forms, by_reverse_mode
from .call import TILE, Call, Forms, check_arguments, interprets, taking
from .compiled import compile_kernels
from .kernel_source import kernels_of
from .kernel_source import source as kernel_source
from .layer import NotFused, names_in, needed, read_layer
from .naming import Functions, in_steps
from .program import Program, make_program
from .read_back import prove_independence, prove_kernels

if TYPE_CHECKING:
    from torch import Tensor

    from ..bench.compile import Record


class Fused:
    """A layer of rows from its definitions: called with torch tensors by name, it runs two fused kernels.

    Nothing is generated before the reader's own closed forms are proved, and nothing is run before what the kernels'
    text stores is proved to be what the definitions say, and the derivatives of the loss, for every M and N.

    Args:    defs, outputs: names that normgrad.prove's `define` made, as [y], of formulas in x[i, j], row i of M and
             column j of N; or normgrad.symbolic's Defs and names in them, as [y[i, j]]
             gradients: the reader's own closed forms, {x[i, j]: dx[i, j], ...}, in which dy is the cotangent of y, and
             dp_out that of an output p that the definitions use further; without them reverse mode makes the backward
             scalars: the numbers that get a gradient; the others, such as eps, are constants of a call
             name: what the kernels are called by
    Numerics: sums and numbers of the rows in float32, in float64 for float64, such outputs included; each input is
             read once in the forward, the fewest matrices that suffice are read in the backward, numbers of the rows
             are saved; on a CPU without Triton's interpreter, and where there is no Triton, `torch` is what runs, and
             the layer's text says so; a row has at most 32768 columns, 16384 in float64; a function is known by its
             value and its derivative, so at a kink, or where there is no derivative as for a root at 0, the gradient
             is what the formula gives there
    Raises:  NotFused for definitions that no program of whole rows computes; NotProved with a point for a closed form
             that is wrong
    """

    def __init__(
        self,
        defs: Defs | Sequence[IndexedBase],
        outputs: Sequence[Expr] = (),
        *,
        gradients: dict[Expr, Expr] | None = None,
        scalars: Sequence[Symbol] = (),
        name: str = "layer",
    ) -> None:
        if isinstance(defs, list | tuple) and not outputs:
            defs, outputs, gradients, scalars = in_kernel_terms(
                defs, gradients, scalars
            )
        with evaluate(True):
            self._make(defs, outputs, gradients, scalars, name)

    def _make(self, defs, outputs, gradients, scalars, name):
        self.layer = read_layer(defs, outputs, scalars, name)
        self.proved: dict[str, Proof | Verdict] = prove_independence(self.layer)
        self.assumed: tuple[str, ...] = ()
        self.closed: dict[str, Proof] = {}
        if gradients is not None:
            lines, names, self.closed = by_closed_forms(self.layer, defs, gradients)
        functions = Functions(self.layer)
        forward = functions.named(in_steps(self.layer, self.layer.lines))
        if gradients is None:
            lines, names = by_reverse_mode(self.layer, forward)
        backward = functions.named(needed(lines, names.values()))
        self.program: Program = make_program(self.layer, forward, backward, names)
        self.source = kernel_source(self.program)
        self._kernels = kernels_of(self.layer.name, self.source)
        if self._kernels:
            verdict = prove_kernels(self.program, self.source)
            if not verdict:
                raise NotFused(f"the generated text is not proved: {verdict}")
            self.proved |= verdict.outputs
            self.assumed = verdict.assumptions

    def __call__(self, **arguments: Tensor | float) -> Any:
        """The outputs for the inputs and constants by name: one tensor, or a tuple where there are several.

        Args:  a matrix as (..., N), a number of each row as (...), a vector over the columns as (N,), a scalar with a
               gradient as a tensor without axes, a constant as a number
        """
        return self._run(arguments, in_torch=False)

    def __repr__(self):
        program, kind = self.program, self.layer.kind
        moved = [
            name for name in (*program.loaded, *program.written) if kind(name) == TILE
        ]
        saved = [name for name in program.saved if name not in self.layer.inputs]
        lines = [
            f"{self.layer.name}: {', '.join(self.layer.outputs)} of {', '.join(self.layer.inputs)}",
            f"  proved for every M and N: {', '.join(self.proved)}",
            f"  the backward moves the matrices {', '.join(moved)}; the forward saves {', '.join(saved) or 'nothing'}",
            f"  on a CPU it runs in {'Triton, interpreted' if self._kernels and interprets() else 'torch'}",
            *[f"  {line}" for line in assumption_lines(self.assumed)],
        ]
        return "\n".join(lines)

    @cached_property
    def torch(self) -> Callable[..., Any]:
        """The same layer in torch's operations, forward and backward, on any device; `.source` is their text."""

        def in_torch(**arguments):
            return self._run(arguments, in_torch=True)

        in_torch.source = f"{self.forms.forward.source}\n\n{self.forms.backward.source}"
        return in_torch

    @cached_property
    def numpy(self) -> Callable[..., Any]:
        """The outputs and the gradients in NumPy, of the inputs and the cotangents by name; `.source` is its text."""
        defs = self._definitions({**self.program.forward, **self.program.lines})
        results = [*self.layer.outputs, *self.program.gradients.values()]
        handed_on = [name for name in results if name in self.layer.seeds.values()]
        for name in handed_on:  # a gradient that is a cotangent as it stands
            defs[self._renamed(name)] = self.layer.at(name)
        return compile(
            defs,
            [
                self._renamed(name) if name in handed_on else self.layer.at(name)
                for name in results
            ],
        )

    def compile(
        self, target: str = "sm_90", dtype: str = "bfloat16", columns: int = 4096
    ) -> list[Record]:
        """What the two kernels need on a GPU that need not be here: registers, spilled bytes, shared memory.

        Args:    target: as Triton names it, sm_90 for an H100; dtype: of all tensors; columns: N
        Returns: a `normgrad.bench.compile.Record` for each
        """
        return compile_kernels(self.call, self.source, target, dtype, columns)

    def _renamed(self, name):
        return tensor(f"{name}_", *self.layer.tensors[name].shape)[
            self.layer.at(name).indices
        ]

    def _definitions(self, lines):
        defs = Defs()
        with evaluate(True):
            for name, e in lines.items():
                defs[self.layer.at(name)] = e
        return defs

    @cached_property
    def call(self) -> Call:
        """How the kernels are called, in names alone."""
        layer, program = self.layer, self.program
        kinds = {name: layer.kind(name) for name in layer.tensors}
        return Call(
            layer.name, kinds, tuple(layer.inputs), tuple(layer.constants), tuple(layer.outputs), tuple(program.stored),
            tuple(program.loaded), tuple(program.written), program.gradients, layer.seeds,
            tuple(program.constants(program.forward)), tuple(program.constants(program.backward)),
        )  # fmt: skip

    @cached_property
    def forms(self) -> Forms:
        """The layer's programs: its kernels, and the same in torch."""
        layer, program = self.layer, self.program
        forward = compile(
            self._definitions(program.forward),
            [layer.at(name) for name in program.stored],
            TORCH,
        )
        lines, sources = self._from_sources()
        own = [
            name for name in dict.fromkeys(program.gradients.values()) if name in lines
        ]
        backward = compile(
            self._definitions(lines), [layer.at(name) for name in own], TORCH
        )
        return Forms(
            self.call,
            self._kernels,
            taking(forward),
            taking(backward, tuple(own)),
            sources,
        )

    def _from_sources(self):
        """(lines, names): the backward from the matrices that the kernel reads, or from all inputs if need be.

        Statistics are computed again, so that what is computed can be differentiated again.
        """
        layer, program = self.layer, self.program
        for sources in (program.reads, layer.inputs):
            forward = {
                name: e for name, e in program.forward.items() if name not in sources
            }
            lines = needed({**forward, **program.lines}, program.gradients.values())
            used = (
                set().union(*map(names_in, lines.values()))
                - set(lines)
                - {*layer.seeds.values(), *layer.constants}
            )
            if not any(
                layer.kind(name) == TILE and name not in sources for name in used
            ):
                break
        return lines, tuple(sorted(used))

    def _run(self, arguments, in_torch):
        from .launch import run

        layer = self.layer
        inputs, constants = check_arguments(self.call, arguments)
        for name, number in constants.items():
            if layer.tensors[name].is_positive and number <= 0:
                raise ValueError(
                    f"{name}: got {number}, needs a positive number, as its definition promises"
                )
        outputs = run(self.forms, in_torch, constants, *inputs)
        return outputs[0] if len(outputs) == 1 else outputs
