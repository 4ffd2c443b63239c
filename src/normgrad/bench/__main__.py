"""``python -m normgrad.bench cpu`` prints a table of times; ``... compile`` writes what the kernels need on GPUs."""

import argparse
import os


def main():
    """Parse the command line and run the benchmark that it names."""
    parser = argparse.ArgumentParser(prog="python -m normgrad.bench", description="Benchmarks, as ratios in one run.")
    commands = parser.add_subparsers(dest="command", required=True)
    cpu = commands.add_parser("cpu", help="forward plus backward on this CPU, beside torch and two baselines")
    cpu.add_argument("--rounds", type=int, default=15, help="rounds; each times every implementation once (default 15)")
    cpu.add_argument("--threads", type=int, default=2, help="torch's threads (default 2)")
    compile = commands.add_parser("compile", help="the kernels, compiled for GPUs that need not be here")
    compile.add_argument("--json", required=True, help="the file to write")
    compile.add_argument("--operators", nargs="+", help="only these operators")
    compile.add_argument("--dtypes", nargs="+", help="only these dtypes")
    compile.add_argument("--columns", nargs="+", type=int, help="rows of these lengths only")
    compile.add_argument("--targets", nargs="+", help="only these GPUs")
    arguments = parser.parse_args()
    if arguments.command == "compile":
        return _compile(parser, arguments)
    for name in ("rounds", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}: got {getattr(arguments, name)}, needs at least 1")

    from .cpu import run

    run(arguments.rounds, arguments.threads)


def _compile(parser, arguments):
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import compile

    chosen = {}
    for name, known in (("operators", compile.OPERATORS), ("dtypes", compile.DTYPES), ("targets", compile.TARGETS)):
        chosen[name] = getattr(arguments, name) or list(known)
        for one in chosen[name]:
            if one not in known:
                parser.error(f"--{name}: got {one!r}, needs one of {', '.join(known)}")
    columns = arguments.columns or compile.COLUMNS
    if min(columns) < 1:
        parser.error(f"--columns: got {min(columns)}, needs at least 1")
    compile.run(arguments.json, columns=columns, **chosen)


if __name__ == "__main__":
    main()
