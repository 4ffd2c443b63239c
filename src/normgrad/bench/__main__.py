"""``python -m normgrad.bench compile`` writes what the kernels need on GPUs that need not be here."""

import argparse
import os


def from_one_on(text: str) -> int:
    """A number of columns."""
    number = int(text)
    if number < 1:
        raise ValueError(text)  # argparse names the option and what it got
    return number


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and compile what it names."""
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import launches
    from .compile import run

    parser = argparse.ArgumentParser(
        prog="python -m normgrad.bench", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("command", choices=["compile"])
    parser.add_argument("--json", required=True, help="the file to write")
    chosen = {
        "--targets": (launches.TARGETS, launches.TARGETS),
        "--operators": (launches.OPERATORS, launches.OPERATORS),
        "--dtypes": (launches.DTYPES, (*launches.DTYPES, "float64")),
    }
    for option, (default, allowed) in chosen.items():
        parser.add_argument(
            option, nargs="+", default=[*default], choices=[*allowed], help="only these"
        )
    parser.add_argument(
        "--columns",
        nargs="+",
        type=from_one_on,
        default=launches.COLUMNS,
        help="rows of these lengths only",
    )
    parser.add_argument(
        "--assembly",
        metavar="FOLDER",
        help="keep the PTX or AMDGCN of each variant here",
    )
    options = vars(parser.parse_args(arguments))
    file, folder = options.pop("json"), options.pop("assembly")
    del options["command"]
    try:
        open(
            file, "a"
        ).close()  # an error before the minutes of compiling, not after them
    except OSError as error:
        parser.error(f"--json: {error}")
    raise SystemExit(run(file, folder=folder, **options) > 0)


if __name__ == "__main__":
    main()
