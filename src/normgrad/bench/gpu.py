"""The benchmark on a GPU: every shape that fits, all directions, written to a results file after each point.

A run that is started again with the same file goes on where the last one ended.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import sys
from pathlib import Path

import torch

from . import contenders, measure, plan, record, report, results, traffic, work

SEED = 0
PACKAGES = ("normgrad", "torch", "triton", "liger-kernel")
SCHEMA = 1


def versions() -> dict:
    """{name: version} of Python and the packages; None where one is not installed."""
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = getattr(sys.modules.get(name), "__version__", None)
    return found


def fresh(device, rounds: int) -> dict:
    """A results file without records.

    Args:  device: as device.Cuda; rounds: how many were asked for
    """
    settings = {
        "schema": SCHEMA, "rounds": rounds, "warm_rounds": measure.WARM_ROUNDS, "calls_in_a_graph": measure.CALLS,
        "seconds_of_a_timing": measure.TIMING, "times_the_l2": plan.CACHES, "seed": SEED,
        "gradients": "torch.autograd.grad: returned, not accumulated",
        "forward": "with gradients on, so that the statistics are stored",
    }  # fmt: skip
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {"kind": "measured", "device": device.describe(), "versions": versions(), "date": date,
            "settings": settings, "records": []}  # fmt: skip


def begin(file, device, rounds: int) -> dict:
    """The results that the file holds already, or results without records, written at once.

    Args:     file: the results file; device: as device.Cuda; rounds: how many each point gets, at least 1
    Raises:   ValueError where the file is of another device, other versions or other settings; OSError where it
              cannot be written
    """
    found = begun = fresh(device, rounds)
    if Path(file).exists():
        found = results.check(results.load(Path(file)))
        for name in ("kind", "device", "versions", "settings"):
            if found[name] != begun[name]:
                raise ValueError(f"{file}: got {name} {found[name]}, this run has {begun[name]}; needs another file")
    results.save(file, found)
    return found


def visit(shape: plan.Shape, directions, builders: dict, device, rounds: int):
    """Yield the records of each direction of a shape.

    Args:  shape; directions: those still to be measured; builders: as contenders.contenders; device: as device.Cuda;
           rounds: at least 1
    """
    generator = torch.Generator(device.torch_device).manual_seed(SEED)
    device.fresh()
    count = max(plan.sets(shape.moved(which).total, device.l2_bytes) for which in directions)
    drawn = work.draw(shape, count, device.torch_device, generator)
    functions, found, refused = measure.admitted(shape, builders, drawn[0])
    for which in directions:
        timed, failed = measure.direction(shape, which, functions, drawn, device, generator, rounds)
        made = record.measured(shape, which, timed, found)
        for name, why in (refused | failed).items():
            made.append(record.refused(shape, which, name, why, found.get(name)))
        yield made


def _progress(done, shapes, shape):
    filled = 30 * done // shapes
    bar = f"[{'#' * filled}{'.' * (30 - filled)}] {done} of {shapes} shapes"
    terminal = sys.stderr.isatty()
    text = f"{bar} {_name(shape)}"
    print(f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def _print(text):
    """A line or a table; a bar that stands on the terminal goes first."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(text, flush=True)


def _name(shape):
    return f"{shape.operator} {shape.dtype} ({shape.rows}, {shape.columns})"


def _fitting(shapes, device, count):
    fit, large = plan.fitting(shapes, device.l2_bytes, device.free_bytes(), count)
    for shape in large:
        print(f"left out: {_name(shape)} may need {plan.memory(shape, device.l2_bytes, count) / 2**30:.1f} GiB")
    return fit


def run(file, found: dict, shapes: list[plan.Shape], device, builders: dict | None = None) -> None:
    """Measure what the results do not hold yet, add it to them and to the file, and print it, point by point.

    Args:  file: the results file; found: as begin returns it; shapes: as plan.shapes; device: as device.Cuda;
           builders: as contenders.contenders, which is the default
    """
    builders = contenders.contenders() if builders is None else builders
    done, rounds = {record.key(one) for one in found["records"]}, found["settings"]["rounds"]
    fit = _fitting(shapes, device, len(builders))
    print("\n".join((*report.HEADER, "")), flush=True)
    with device.session():
        for number, shape in enumerate(fit):
            missing = [which for which in traffic.DIRECTIONS if shape.key(which) not in done]
            _progress(number, len(fit), shape)
            try:
                for made in visit(shape, missing, builders, device, rounds) if missing else ():
                    found["records"] += made
                    results.save(file, found)
                    _print(report.point(made))
            except torch.OutOfMemoryError as error:
                _print(f"left out: {_name(shape)}: {str(error).splitlines()[0]}")
    _print(report.summary(found["records"]))
