"""python -m normgrad.verify FILE --kernel NAME: a verdict on a kernel, by a binding that is given or proposed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import api, binding, definitions
from .proposal import propose
from .source import source_of

NAMES = {
    **{name: getattr(binding, name) for name in ("T", "Out", "InOut", *binding.WORDS)},
    **{name: getattr(definitions, name) for name in ("M", "N", "eps", "OFFSET")},
}


def written(bound) -> str:
    """A bound value as it is typed after --bind."""
    for name, value in NAMES.items():
        if value is bound:
            return name
    return repr(bound).replace("'", '"')


def parsed(text: str):
    """A value that was typed: T("x"), N, WHOLE, a number, a flag or None."""
    return eval(text, {"__builtins__": {}, "dict": dict}, NAMES)


def axes_of(text: str) -> tuple[str | int, ...]:
    """A grid that was typed, as "programs, column tiles" or "column tiles, 0"."""
    axes = [axis.strip() for axis in text.split(",")]
    return tuple(int(axis) if axis.isdigit() else axis for axis in axes)


def main() -> int:
    """Print the verdict; 0 where the kernel is proved, 1 where it is not, 2 where a binding is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m normgrad.verify", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("file", type=Path, help="a file with Triton kernels")
    parser.add_argument("--kernel", help="the kernel's name")
    parser.add_argument(
        "--bind", action="append", default=[], metavar="NAME=VALUE", help='X=T("x")'
    )
    parser.add_argument("--grid", help='as "rows" or "programs, column tiles"')
    parser.add_argument(
        "--norm",
        default="",
        help="of normgrad.verify.norm; without it LayerNorm if an argument is named mean, "
        "else RMSNorm",
    )
    parser.add_argument(
        "--as-proposed", action="store_true", help="use the binding that is proposed"
    )
    options = parser.parse_args()
    try:
        return answer(options)
    except (NameError, OSError, SyntaxError, TypeError, ValueError) as reason:
        parser.error(str(reason))


def answer(options: argparse.Namespace) -> int:
    """Print the verdict, or a binding that may be meant; the exit status."""
    source, kernel = source_of(options.file, options.kernel)
    bound, grid = propose(source, kernel) if options.as_proposed else ({}, ())
    for text in options.bind:
        name, _, value = text.partition("=")
        bound[name] = parsed(value)
    if options.grid:
        grid = axes_of(options.grid)
    if not bound or not grid:
        bound, grid = propose(source, kernel)
        print("no binding was given; by the names of the arguments it may be")
        for name, value in bound.items():
            print(f"  --bind '{name}={written(value)}'")
        print(f"  --grid '{', '.join(grid)}'")
        print("Correct it and give it, or take it as it is with --as-proposed.")
        return 2
    centred = any("mean" in name.lower() for name in bound)
    text = options.norm or f"center={centred}, bias={centred}"
    operator = definitions.norm(**parsed(f"dict({text})"))
    verdict = api.verify(options.file, bound, grid, operator, kernel=kernel)
    print(verdict)
    print(f"  checked against normgrad.verify.norm({text}); --norm gives another")
    return 0 if verdict else 1


if __name__ == "__main__":
    sys.exit(main())
