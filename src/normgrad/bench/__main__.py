"""``python -m normgrad.bench cpu`` prints a table of times, ``... gpu`` writes one to a file, which ``... plot`` draws;
``... compile`` writes what the kernels need on GPUs."""

import argparse
import os


def main():
    """Parse the command line and run the benchmark that it names."""
    parser = argparse.ArgumentParser(prog="python -m normgrad.bench", description="Benchmarks, as ratios in one run.")
    commands = parser.add_subparsers(dest="command", required=True)
    cpu = commands.add_parser("cpu", help="forward plus backward on this CPU, beside torch and two baselines")
    cpu.add_argument("--rounds", type=int, default=15, help="rounds; each times every implementation once (default 15)")
    cpu.add_argument("--threads", type=int, default=2, help="torch's threads (default 2)")
    gpu = commands.add_parser("gpu", help="the kernels on this GPU, beside torch, torch.compile, Liger and a copy")
    gpu.add_argument("--json", required=True, help="the results file; a run goes on where the file ends")
    gpu.add_argument("--quick", action="store_true", help="bfloat16, two shapes: less than two minutes")
    gpu.add_argument("--rounds", type=int, help="rounds; each times every implementation once (default 20, quick 10)")
    gpu.add_argument("--elements", nargs="+", type=int, help="sizes M N in Mi elements (default 16 64 256)")
    plot = commands.add_parser("plot", help="figures of a results file, as SVG")
    plot.add_argument("file", help="a file that `gpu` wrote, or the name of one that the package holds")
    plot.add_argument("--out", default=".", help="the folder for the figures (default: this one)")
    compile = commands.add_parser("compile", help="the kernels, compiled for GPUs that need not be here")
    compile.add_argument("--json", required=True, help="the file to write")
    compile.add_argument("--targets", nargs="+", help="only these GPUs")
    for one in (gpu, compile):
        one.add_argument("--operators", nargs="+", help="only these operators")
        one.add_argument("--dtypes", nargs="+", help="only these dtypes")
        one.add_argument("--columns", nargs="+", type=int, help="rows of these lengths only")
    arguments = parser.parse_args()
    {"cpu": _cpu, "gpu": _gpu, "plot": _plot, "compile": _compile}[arguments.command](parser, arguments)


def _at_least_one(parser, arguments, *names):
    for name in names:
        value = getattr(arguments, name)
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one < 1:
                parser.error(f"--{name}: got {one}, needs at least 1")


def _chosen(parser, arguments, **known):
    """{name: what was asked for, or all that is known}; an error names what is not known."""
    chosen = {name: getattr(arguments, name) or list(values) for name, values in known.items()}
    for name, values in known.items():
        for one in chosen[name]:
            if one not in values:
                parser.error(f"--{name}: got {one!r}, needs one of {', '.join(values)}")
    return chosen


def _cpu(parser, arguments):
    _at_least_one(parser, arguments, "rounds", "threads")
    from .cpu import run

    run(arguments.rounds, arguments.threads)


def _gpu(parser, arguments):
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import plan

    _at_least_one(parser, arguments, "rounds", "columns", "elements")
    chosen = _chosen(parser, arguments, operators=plan.OPERATORS, dtypes=plan.DTYPES)
    if arguments.quick:
        chosen["dtypes"] = arguments.dtypes or list(plan.QUICK["dtypes"])
    defaults = plan.QUICK if arguments.quick else {"columns": plan.COLUMNS, "elements": plan.ELEMENTS}
    for name in ("columns", "elements"):
        chosen[name] = getattr(arguments, name) or list(defaults[name])
    from . import device, gpu

    try:
        here = device.Cuda()
        found = gpu.begin(arguments.json, here, arguments.rounds or (10 if arguments.quick else 20))
    except (device.NoDevice, ValueError, OSError) as error:
        parser.error(f"gpu: {error}")
    gpu.run(arguments.json, found, plan.shapes(**chosen), here)


def _plot(parser, arguments):
    from . import results

    try:
        found = results.check(results.load(arguments.file))
    except (FileNotFoundError, ValueError) as error:
        parser.error(f"plot: {error}")
    from . import plot

    for file in plot.write(found, arguments.out):
        print(file)


def _compile(parser, arguments):
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import compile

    known = {"operators": compile.OPERATORS, "dtypes": compile.DTYPES, "targets": compile.TARGETS}
    chosen = _chosen(parser, arguments, **known)
    _at_least_one(parser, arguments, "columns")
    compile.run(arguments.json, columns=arguments.columns or compile.COLUMNS, **chosen)


if __name__ == "__main__":
    main()
