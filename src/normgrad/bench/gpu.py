"""The benchmark on a GPU: every shape that fits, all directions, written to a results file after each point.

A run that is started again with the same file goes on where the last one ended.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch

from . import contenders, judge, measure, plan, record, report, results, traffic, work
from . import device as device_module

SEED = 0
PACKAGES = ("normgrad", "torch", "triton", "liger-kernel")
KERNELS = Path(__file__).parents[1] / "triton_kernels"
SCHEMA = 1


def versions() -> dict:
    """{name: version} of Python and the packages; None where one is not installed. The kernels have a digest."""
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = getattr(sys.modules.get(name), "__version__", None)
    source = b"".join(path.read_bytes() for path in sorted(KERNELS.glob("*.py")))
    return found | {"kernels": hashlib.sha256(source).hexdigest()[:12]}


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
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return results.begun("measured", device.describe(), versions(), settings, today)


def begin(file, device, rounds: int | None = None) -> dict:
    """The results that the file holds already, or results without records, written at once.

    Another machine with the same GPU may have another driver; the file then names both.

    Args:     file: the results file; device: as device.Cuda; rounds: how many each point gets, at least 1; None: as
              many as the points of the file have, plan.ROUNDS in a new one
    Raises:   ValueError where the file is of another device, other versions or other settings; OSError where it
              cannot be written
    """
    found = begun = fresh(device, rounds or plan.ROUNDS)
    if Path(file).exists():
        found = results.check(results.load(Path(file)))
        if rounds is None and "rounds" in found["settings"]:
            begun["settings"]["rounds"] = found["settings"]["rounds"]
        difference = next(_differences(found, begun), None)
        if difference:
            raise ValueError(f"{file}: got {difference}; needs another file")
        drivers = [found["device"].get("driver"), begun["device"].get("driver")]
        if drivers[0] and drivers[1] and drivers[1] not in drivers[0]:
            found["device"]["driver"] = ", ".join(drivers)
    results.save(file, found)
    return found


def _differences(found, begun):
    """What of a file is not as in this run, one phrase each."""
    if found["kind"] != begun["kind"]:
        yield f"kind {found['kind']}, this run is {begun['kind']}"
    for name in ("device", "versions", "settings"):
        theirs, mine = dict(found[name]), begun[name]
        for key in {**mine, **theirs}:
            if theirs.get(key) != mine.get(key) and key != "driver":
                yield f"{name}: {key} {theirs.get(key)}, this run has {mine.get(key)}"


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


class TimeLimit:
    """The seconds that a run may take: nothing is begun that would not end in them, if it takes as long as the longest.

    The first shape, for which torch.compile starts its own processes, counts only while it is the only one.

    Args:  device: whose clock counts; seconds: None for no limit
    """

    def __init__(self, device, seconds: float | None):
        self.clock, self.seconds, self.visits = device.clock, seconds, []
        self.start = self.clock()

    def over(self, more: bool = False) -> bool:
        """Whether the time is over, or would be after one more shape."""
        needed = max(self.visits[1:] or self.visits, default=0.0) if more else 0.0
        return self.seconds is not None and self.clock() - self.start + needed > self.seconds


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


def scaled(shapes: list[plan.Shape], device) -> list[plan.Shape]:
    """The same shapes, with fewer rows where the device's memory is too small for them.

    Args:  shapes: as plan.shapes; device: as device.Cuda
    """
    return plan.scaled(shapes, device.l2_bytes, device.free_bytes(), len(contenders.contenders()))


def _measure(file, found, shape, missing, builders, device, limit):
    """The directions of a shape that are missing, as long as the limit lasts; what was measured is in the file."""
    begun = device.clock()
    try:
        for made in visit(shape, missing, builders, device, found["settings"]["rounds"]):
            found["records"] += made
            results.save(file, found)
            _print(report.point(made))
            if limit.over():
                break
    except torch.OutOfMemoryError as error:
        _print(f"left out: {_name(shape)}: {str(error).splitlines()[0]}")
    limit.visits.append(device.clock() - begun)


def _left(shapes, found):
    """The directions of each shape that have no records, where there are any: {shape: directions}."""
    done = {record.key(one) for one in found["records"]}
    left = {shape: [which for which in traffic.DIRECTIONS if shape.key(which) not in done] for shape in shapes}
    return {shape: missing for shape, missing in left.items() if missing}


def run(file, found: dict, shapes: list[plan.Shape], device, builders=None, seconds: float | None = None) -> None:
    """Measure what the results do not hold yet, add it to them and to the file, and print it, point by point.

    Args:  file: the results file; found: as begin returns it; shapes: as plan.shapes; device: as device.Cuda;
           builders: as contenders.contenders, which is the default; seconds: how long it may take, None: no limit
    """
    builders = contenders.contenders() if builders is None else builders
    limit, fit = TimeLimit(device, seconds), _fitting(shapes, device, len(builders))
    tried, todo = set(), _left(fit, found)
    print("\n".join((*report.HEADER, "")), flush=True)
    with device.session():
        for number, (shape, missing) in enumerate(todo.items(), len(fit) - len(todo)):
            if limit.over(more=True):
                break
            _progress(number, len(fit), shape)
            tried.add(shape)
            _measure(file, found, shape, missing, builders, device, limit)
    left = [shape for shape in _left(fit, found) if shape not in tried or limit.over()]
    _print("\n\n".join((report.summary(found["records"]), judge.text(found), *_not_measured(left, len(fit)))))


def _not_measured(left, planned):
    """What a run has left that was cut short; nothing where none is left."""
    if left:
        counts = ", ".join(f"{count} in {dtype}" for dtype, count in Counter(shape.dtype for shape in left).items())
        yield (
            f"the time is over: {len(left)} of {planned} shapes are left ({counts}), {_name(left[0])} first; the same "
            "command goes on"
        )


def live(seconds: float = 60.0) -> dict | None:
    """Results measured here and now, as a results file holds them; None where there is no GPU for it.

    The quick shapes, in the 16-bit dtype that the GPU has, with fewer rows where its memory is small; as many of them
    as the time is enough for. It is the command's own run in another process, so that nothing is printed, and Triton
    compiles there even if it interprets here.

    Args:    seconds: how long it may take, about; the first shape is measured however long it takes to compile
    Raises:  RuntimeError with the command's last line where it fails
    """
    if not seconds > 0:
        raise ValueError(f"seconds: got {seconds}, needs a positive number")
    if device_module.refusal():
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "live.json"
        # this very package, wherever it was imported from, and after the standard library on the path
        code = "import sys; sys.path.append(sys.argv.pop(1)); from normgrad.bench.__main__ import main; main()"
        options = [str(KERNELS.parents[1]), "gpu", "--quick", "--minutes", str(seconds / 60), "--json", str(file)]
        done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True)
        if done.returncode or not file.exists():
            said = done.stderr.strip().splitlines() or ["nothing said"]
            raise RuntimeError(f"normgrad.bench gpu: {said[-1]}")
        return results.check(results.load(file))
