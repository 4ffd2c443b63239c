"""``python -m normgrad.bench cpu``: print the benchmark's table."""

import argparse


def main():
    """Parse the command line and run the benchmark that it names."""
    parser = argparse.ArgumentParser(prog="python -m normgrad.bench", description="Benchmarks, as ratios in one run.")
    commands = parser.add_subparsers(dest="command", required=True)
    cpu = commands.add_parser("cpu", help="forward plus backward on this CPU, beside torch and two baselines")
    cpu.add_argument("--rounds", type=int, default=15, help="rounds; each times every implementation once (default 15)")
    cpu.add_argument("--threads", type=int, default=2, help="torch's threads (default 2)")
    arguments = parser.parse_args()
    for name in ("rounds", "threads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}: got {getattr(arguments, name)}, needs at least 1")

    from .cpu import run

    run(arguments.rounds, arguments.threads)


if __name__ == "__main__":
    main()
