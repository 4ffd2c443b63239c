"""Every kernel variant, compiled for GPUs that need not be here: registers, spills, barriers, width of access."""

from __future__ import annotations

import ast
import datetime
import hashlib
import json
import multiprocessing
import re
import subprocess
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from . import machine_code
from .launches import TARGETS, Launch, compiler, variants

# What the page of compiled kernels shows.
RESULTS = Path(__file__).parent / "results/compile.json"


@dataclass(frozen=True)
class Record:
    """What a compiled variant needs; load_bits and store_bits are the widest access to global memory.

    operator, dtype and columns are the first that launch the variant; barriers: how many instructions wait for all
    warps.
    """

    kernel: str
    operator: str
    dtype: str
    columns: int
    target: str
    warps: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    shared_limit: int
    load_bits: int
    store_bits: int
    barriers: int


@dataclass(frozen=True)
class Results:
    """What one run compiled: versions, date, the hash of the kernels' sources, what was refused, and the records."""

    triton: str
    ptxas: str
    date: str
    kernels: str
    refused: dict[str, str]
    records: tuple[Record, ...]


def gpu_target(target: str):
    """A GPU of TARGETS as Triton names it."""
    from triton.backends.compiler import GPUTarget

    return GPUTarget(
        TARGETS[target].backend, TARGETS[target].arch, TARGETS[target].lanes
    )


def compiled(launch: Launch, target: str):
    """The launch's kernel, compiled for a target; no GPU is needed."""
    triton = compiler()
    ast_source = source(
        launch.kernel, dict(launch.types), launch.multiples, dict(launch.constants)
    )
    return triton.compile(
        ast_source, target=gpu_target(target), options=dict(launch.options)
    )


def source(kernel, types, multiples, constants):
    """A kernel and what is known of its arguments, as this Triton's compiler takes them.

    Args:  types: {argument: Triton's name of its type}; multiples: the arguments that 16 divides; constants: {argument:
           value}, for constexprs, for None and for integers that are 1
    """
    from triton.compiler import ASTSource

    names = kernel.arg_names
    try:
        from triton.backends.compiler import AttrsDescriptor
    except ImportError:
        pass
    else:  # Triton 3.2: constants by name and out of the signature, what 16 divides by its number
        numbers = {names.index(name): 16 for name in multiples}
        return ASTSource(
            kernel, dict(types), dict(constants), AttrsDescriptor.from_hints(numbers)
        )
    kinds = {name: types.get(name, "constexpr") for name in names}
    values = {(names.index(name),): value for name, value in constants.items()}
    return ASTSource(
        kernel,
        kinds,
        values,
        {(names.index(name),): [["tt.divisibility", 16]] for name in multiples},
    )


def record(
    launch: Launch, operator: str, dtype: str, columns: int, target: str, folder=None
) -> Record:
    """Compile one launch and read the result.

    Args:  folder: where to write the PTX or AMDGCN, None to keep neither
    """
    kernel_code = compiled(launch, target)
    code, kernel = machine_code.read(kernel_code), launch.kernel.__name__
    if folder is not None:
        name = f"{kernel}-{operator}-{dtype}-{columns}-{target}.{code.assembly}"
        (Path(folder) / name).write_text(code.text)
    return Record(
        kernel, operator, dtype, columns, target, kernel_code.metadata.num_warps,
        code.registers, code.spilled_bytes, kernel_code.metadata.shared, TARGETS[target].shared_bytes,
        code.load_bits, code.store_bits, code.barriers,
    )  # fmt: skip


def kernel_sources() -> str:
    """A hash of the kernels and their launchers, without comments and docstrings: where it changes, results may."""
    texts = []
    for file in sorted((Path(__file__).parents[1] / "triton_kernels").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
                and ast.get_docstring(node) is not None
            ):
                node.body = node.body[1:] or [ast.Pass()]
        texts.append(ast.unparse(tree))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _tried(number):
    """The record of a job, or what went wrong."""
    (launch, target), where, folder = _jobs[number]
    try:
        return record(launch, *where, target, folder)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{launch.kernel.__name__}, {', '.join(map(str, where))}, {target}: {(lines or [repr(error)])[-1]}"


def _each(jobs):
    """What _tried returns for each job, in order; a kernel cannot be pickled, so forked processes inherit the jobs."""
    global _jobs
    _jobs = jobs
    # An executor, not a Pool: where the compiler takes its process down, it says so instead of waiting.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(_tried, range(len(jobs)), chunksize=4))


def _ptxas():
    said = subprocess.run(
        [machine_code.tool("ptxas"), "--version"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return re.search(r"V([\d.]+)", said)[1]


def write(file, results: Results):
    """Write results as JSON, one record a line."""
    head = {field.name: getattr(results, field.name) for field in fields(Results)}
    rows = [
        json.dumps(astuple(record), separators=(",", ":"))
        for record in head.pop("records")
    ]
    head["fields"] = [field.name for field in fields(Record)]
    lines = ",\n".join(rows)
    text = f'{json.dumps(head)[:-1]},\n"records": [\n{lines}\n]}}\n'
    Path(file).write_text(text, encoding="utf8")


def read(file=RESULTS) -> Results:
    """The results in a file that write wrote."""
    content = json.loads(Path(file).read_text(encoding="utf8"))
    names = content.pop("fields")
    records = tuple(
        Record(**dict(zip(names, row, strict=True))) for row in content.pop("records")
    )
    return Results(**content, records=records)


def run(file, operators, dtypes, columns, targets, folder=None, refused=()) -> int:
    """Compile what the operators launch, each variant once a target, and write one record for each into a JSON file.

    Args:     folder: for the assembly of each; refused: {"GPU" or "dtype on GPU": why} of what this Triton cannot
              compile for, which is left out
    Returns:  how many variants failed to compile; each is printed
    """
    triton, refused = compiler(), dict(refused)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    asked, jobs = variants(operators, dtypes, columns, targets), []
    for (launch, target), where in asked.items():
        if target not in refused and f"{where[1]} on {target}" not in refused:
            jobs.append(((launch, target), where, folder))
    outcomes = _each(jobs)
    records = tuple(outcome for outcome in outcomes if isinstance(outcome, Record))
    failed = [outcome for outcome in outcomes if not isinstance(outcome, Record)]
    today = datetime.date.today().isoformat()
    versions = triton.__version__, _ptxas(), today, kernel_sources()
    write(file, Results(*versions, refused, records))
    for line in failed:
        print(line)
    for name, why in refused.items():
        print(f"not supported by triton {triton.__version__}: {name} ({why})")
    spilling = sum(record.spilled_bytes > 0 for record in records)
    said = [
        f"{len(records)} of {len(asked)} variants compiled, {spilling} of them spill registers"
    ]
    if refused:
        left_out = len(asked) - len(jobs)
        said.append(f"{left_out} not supported ({', '.join(refused)})")
    if failed:
        said.append(f"{len(failed)} failed")
    print(*said, sep="; ")
    return len(failed)
