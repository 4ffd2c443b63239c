"""``python -m normgrad.bench gpu`` writes the times of a GPU to a file, which ``... plot`` draws and ``... judge``
judges; ``... compile`` writes what the kernels need."""

import argparse
import os
import sys


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run the benchmark that it names."""
    parser = argparse.ArgumentParser(prog="python -m normgrad.bench", description="Benchmarks, as ratios in one run.")
    commands = parser.add_subparsers(dest="command", required=True)
    gpu = commands.add_parser("gpu", help="the kernels on this GPU, beside torch, torch.compile, Liger and a copy")
    gpu.add_argument("--json", required=True, help="the results file; a run goes on where the file ends")
    gpu.add_argument("--quick", action="store_true", help="two shapes in one 16-bit dtype, in two minutes")
    gpu.add_argument("--minutes", type=float, help="minutes; what matters most comes first, the same command goes on")
    gpu.add_argument("--rounds", type=int, help="rounds; each times every implementation once (default 20)")
    gpu.add_argument("--elements", nargs="+", type=int, help="sizes M N in Mi elements (default 16 64 256)")
    plot = commands.add_parser("plot", help="figures of a results file, as SVG")
    plot.add_argument("file", help="a file that `gpu` wrote, or the name of one that the package holds")
    plot.add_argument("--out", default=".", help="the folder for the figures (default: this one)")
    judge = commands.add_parser("judge", help="what is promised of the speed, judged by a results file")
    judge.add_argument("file", help="what `gpu` or tools/host_times.py wrote, or the name of a file of the package")
    compile = commands.add_parser("compile", help="the kernels, compiled for GPUs that need not be here")
    compile.add_argument("--json", required=True, help="the file to write")
    compile.add_argument("--targets", nargs="+", help="only these GPUs")
    compile.add_argument("--assembly", metavar="FOLDER", help="keep the PTX or AMDGCN of each variant here")
    compile.add_argument("--processes", type=int, help="how many compile at once (default: one for each CPU)")
    for one in (gpu, compile):
        one.add_argument("--operators", nargs="+", help="only these operators")
        one.add_argument("--dtypes", nargs="+", help="only these dtypes")
        one.add_argument("--columns", nargs="+", type=int, help="rows of these lengths only")
    arguments = parser.parse_args(arguments)
    known = {"gpu": _gpu, "plot": _plot, "judge": _judge, "compile": _compile}
    known[arguments.command](parser, arguments)


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


def _gpu(parser, arguments):
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import plan

    _at_least_one(parser, arguments, "rounds", "columns", "elements")
    if arguments.minutes is not None and not arguments.minutes > 0:
        parser.error(f"--minutes: got {arguments.minutes}, needs a positive number")
    chosen = _chosen(parser, arguments, operators=plan.OPERATORS, dtypes=plan.DTYPES)
    defaults = plan.QUICK if arguments.quick else {"columns": plan.COLUMNS, "elements": plan.ELEMENTS}
    for name in ("columns", "elements"):
        chosen[name] = getattr(arguments, name) or list(defaults[name])
    from . import device, gpu

    try:
        here = device.Cuda()
    except device.NoDevice as error:
        parser.error(f"gpu: {error}")
    try:
        found = gpu.begin(arguments.json, here, arguments.rounds)
    except (ValueError, OSError) as error:
        parser.error(f"--json: {error}")
    if not arguments.dtypes:
        chosen["dtypes"] = [here.half, *(one for one in plan.DTYPES if one != here.half and not arguments.quick)]
    shapes, minutes = plan.shapes(**chosen), arguments.minutes
    if arguments.quick:
        shapes, minutes = gpu.scaled(shapes, here), minutes or plan.QUICK_MINUTES
    gpu.run(arguments.json, found, shapes, here, seconds=None if minutes is None else 60 * minutes)


def _results(parser, arguments):
    """The results file that is named, or an error."""
    from . import results

    try:
        return results.check(results.load(arguments.file))
    except (FileNotFoundError, ValueError) as error:
        parser.error(f"{arguments.command}: {error}")


def _plot(parser, arguments):
    found = _results(parser, arguments)
    try:
        from . import plot
    except ImportError as error:
        parser.error(f"plot: needs matplotlib, which the extra normgrad[bench] installs ({error})")
    try:
        written = plot.write(found, arguments.out)
    except (ValueError, OSError) as error:
        parser.error(f"plot: {error}")
    for file in written:
        print(file)


def _judge(parser, arguments):
    from . import judge

    try:
        verdicts = judge.judge(_results(parser, arguments))
    except ValueError as error:
        parser.error(f"judge: {error}")
    for one in verdicts:
        print(one)
    sys.exit(any(one.state != "pass" for one in verdicts))


def _compile(parser, arguments):
    # before anything imports triton, which reads it once
    os.environ["TRITON_INTERPRET"] = "0"
    from . import launches
    from .compile import run

    known = {"operators": launches.OPERATORS, "dtypes": (*launches.DTYPES, "float64"), "targets": launches.TARGETS}
    chosen = _chosen(parser, arguments, **known)
    chosen["dtypes"] = arguments.dtypes or launches.DTYPES
    chosen["columns"] = arguments.columns or launches.COLUMNS
    _at_least_one(parser, arguments, "columns", "processes")
    try:
        open(arguments.json, "a").close()  # an error before the minutes of compiling, not after them
    except OSError as error:
        parser.error(f"--json: {error}")
    failed = run(arguments.json, folder=arguments.assembly, processes=arguments.processes, **chosen)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
