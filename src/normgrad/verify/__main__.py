"""python -m normgrad.verify FILE --kernel NAME: a verdict on a kernel, by the binding that is given."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import api, binding, definitions, proposal
from .definitions import Norm
from .source import source_of
from .text import value_of
from .values import NotRead, unfollowed
from .verdict import IF_ZERO, NOT_READ, PROVED, REFUTED, WRONG, Verdict, refused

VALUES = definitions.NUMBERS | {word: getattr(binding, word) for word in binding.WORDS}
CALLS = {kind.__name__: kind for kind in (binding.T, binding.Out, binding.InOut)}
USAGE = 2
GRID_HELP = """as "rows" or "programs, column tiles"; a number is that of the one program that is looked at, and no
count, as "column tiles, 0" for an axis of one program"""
# of several kernels the first of these that one of them has
CODES = {REFUTED: 1, WRONG: 1, NOT_READ: 3, IF_ZERO: 4, PROVED: 0}
EPILOG = """exit status: 0 everything is proved; 1 a kernel is wrong in itself or refuted; 2 bad usage, which is also a
missing binding, or a file that cannot be read; 3 a kernel is not read; 4 a kernel is proved if masked lanes hold 0,
unless --allow is given. Of several kernels it is the worst, in the order 1, 3, 4, 0."""


def written(bound) -> str:
    """A bound value as it is typed after --bind."""
    names = [name for name, value in VALUES.items() if value is bound]
    return names[0] if names else repr(bound).replace("'", '"')


def parsed(text: str, argument: str = "text"):
    """A value that was typed: T("x"), N, WHOLE, a number, a flag or None."""
    return value_of(argument, text, VALUES, CALLS, words=True)


def norm_of(text: str) -> Norm:
    """The definitions that a text such as "center=True, bias=True" asks for."""
    calls = {"norm": definitions.norm}
    value = value_of("--norm", f"norm({text})", definitions.NUMBERS, calls, words=True)
    if not isinstance(value, Norm):
        raise ValueError(f"--norm: got {text!r}, needs the arguments of one norm")
    return value


def axes_of(text: str) -> tuple[str | int, ...]:
    """A grid that was typed, as "programs, column tiles" or "column tiles, 0"."""
    axes = [axis.strip() for axis in text.split(",")]
    return tuple(int(axis) if axis.isdecimal() else axis for axis in axes)


def main() -> int:
    """Print the verdicts, or a form where something is missing; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m normgrad.verify",
        description=__doc__.partition(": ")[2],
        epilog=EPILOG,
    )
    parser.add_argument("file", type=Path, help="a file with Triton kernels")
    parser.add_argument(
        "--kernel",
        action="append",
        help="the kernel's name; several kernels have one binding and one grid",
    )
    parser.add_argument(
        "--bind", action="append", default=[], metavar="NAME=VALUE", help='X=T("x")'
    )
    parser.add_argument("--grid", help=GRID_HELP)
    parser.add_argument(
        "--norm",
        help='of normgrad.verify.norm, as "center=True, bias=True"; "" is RMSNorm',
    )
    parser.add_argument(
        "--allow",
        action="store_true",
        help="exit with 0 for what is proved if masked lanes hold 0",
    )
    options = parser.parse_args()
    try:
        return answer(options)
    except NotRead as reason:
        verdict = refused(reason)
    except (OSError, SyntaxError, TypeError, ValueError) as reason:
        parser.error(f"{options.file}: {reason}")
    except Exception as reason:  # an exit status of 1 would say that a kernel is wrong
        verdict = Verdict(NOT_READ, why=unfollowed(reason))
    print(verdict)
    return CODES[NOT_READ]


def answer(options: argparse.Namespace) -> int:
    """Print the verdicts, or the form; the exit status."""
    kernels = options.kernel or [None]
    if not options.bind or options.grid is None or options.norm is None:
        for kernel in kernels:
            print(proposal.form(*source_of(options.file, kernel), written))
        return USAGE
    bound = {}
    for text in options.bind:
        name, _, value = (part.strip() for part in text.partition("="))
        if name in bound:
            raise ValueError(f"--bind: got {name} twice, needs it once")
        bound[name] = parsed(value, f"--bind {name}")
    operator, grid = norm_of(options.norm), axes_of(options.grid)
    verdicts = [
        api.verify(options.file, bound, grid, operator, kernel=kernel)
        for kernel in kernels
    ]
    for verdict in verdicts:
        print(verdict)
        print(f"  checked against normgrad.verify.norm({options.norm})")
    codes = {CODES[verdict.kind] for verdict in verdicts}
    if options.allow:
        codes.discard(CODES[IF_ZERO])
    return next((code for code in CODES.values() if code in codes), CODES[PROVED])


if __name__ == "__main__":
    sys.exit(main())
