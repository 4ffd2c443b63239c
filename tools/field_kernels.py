"""What published packages' norm kernels store, read from the versions named, which are fetched and never kept.

python tools/field_kernels.py                fetches the packages with pip and prints the table
python tools/field_kernels.py --folder F     keeps the wheels in F; --only TEXT; --json FILE writes the table, too

The bindings are in field_kernels.json, as after --bind of python -m normgrad.verify; the table that a page of the book
shows is src/normgrad/verify/field_kernels.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
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
}
KERNELS = Path(__file__).with_suffix(".json")


def cases() -> Iterator[dict]:
    """A kernel in one variant: package, file, name, note, grid, norm or sum, helpers and its binding."""
    for kernel in json.loads(KERNELS.read_text(encoding="utf8")):
        for variant in kernel.get("variants", [{"note": ""}]):
            bind = f"{kernel['bind']}; {variant.get('bind', '')}"
            pairs = [text.partition("=") for text in bind.split("; ") if text]
            binding = {name: parsed(value) for name, _, value in pairs}
            yield {**kernel, **variant, "binding": binding}


def partial_sums() -> Norm:
    """The sum of the rows of `part`."""
    part, sums = tensor("part", M, N), tensor("sum", N)
    defs = Defs()
    defs[sums[j]] = total(M, lambda r: part[r, j])
    return Norm(defs, {"sum": sums[j]})


def fetched(folder: Path, package: str) -> zipfile.ZipFile:
    """A package's wheel, from the folder or by pip."""
    start = f"{package.replace('-', '_')}-{PACKAGES[package]}-"
    if not list(folder.glob(f"{start}*.whl")):
        pinned = f"{package}=={PACKAGES[package]}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(folder), pinned], check=True)
    return zipfile.ZipFile(next(folder.glob(f"{start}*.whl")))


def row(case: dict, text: str) -> dict:
    """A row of the table."""
    start = time.process_time()
    against = case.get("norm", "sum of partial sums")
    definitions = partial_sums()
    if "norm" in case:
        definitions = norm_of(against)
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
    parser.add_argument("--folder", type=Path, help="where wheels are kept")
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
            with fetched(folder, case["package"]) as wheel:
                table.append(row(case, wheel.read(case["file"]).decode()))
            line = table[-1]
            print(f"{line['verdict']:30} {line['seconds']:5} s  {words}")
            if not line["verdict"].startswith("proved"):
                print(line["words"].partition("\n")[2])
    print(f"{len(table)} variants: {dict(Counter(line['verdict'] for line in table))}")
    if options.json:
        options.json.write_text(written(table), encoding="utf8")


if __name__ == "__main__":
    main()
