"""``python -m normgrad.bench compile`` writes what the kernels need on GPUs that need not be here."""

import argparse
import os


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and compile what it names."""
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import launches
    from .compile import run

    parser = argparse.ArgumentParser(
        prog="python -m normgrad.bench", description=__doc__.partition("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    compile = commands.add_parser(
        "compile", help="the kernels, compiled for GPUs that need not be here"
    )
    compile.add_argument("--json", required=True, help="the file to write")
    compile.add_argument(
        "--targets", nargs="+", default=list(launches.TARGETS), help="only these GPUs"
    )
    compile.add_argument(
        "--operators",
        nargs="+",
        default=list(launches.OPERATORS),
        help="only these operators",
    )
    compile.add_argument(
        "--dtypes", nargs="+", default=list(launches.DTYPES), help="only these dtypes"
    )
    compile.add_argument(
        "--columns",
        nargs="+",
        type=int,
        default=launches.COLUMNS,
        help="rows of these lengths only",
    )
    compile.add_argument(
        "--assembly",
        metavar="FOLDER",
        help="keep the PTX or AMDGCN of each variant here",
    )
    compile.add_argument(
        "--processes",
        type=int,
        help="how many compile at once (default: one for each CPU)",
    )
    options = vars(parser.parse_args(arguments))
    allowed = {
        "targets": launches.TARGETS,
        "operators": launches.OPERATORS,
        "dtypes": (*launches.DTYPES, "float64"),
    }
    for name, values in allowed.items():
        for value in options[name]:
            if value not in values:
                parser.error(
                    f"--{name}: got {value!r}, needs one of {', '.join(values)}"
                )
    for name, values in (
        ("columns", options["columns"]),
        ("processes", [options["processes"]]),
    ):
        for value in values:
            if value is not None and value < 1:
                parser.error(f"--{name}: got {value}, needs at least 1")
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
