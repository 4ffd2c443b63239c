"""Proofs in the page: Pyodide, SymPy and the package's provers on the site, loaded by a click, run by the reader.

Pyodide comes from npm, so that it is on the site only where the build has Node and its registry; everywhere else the
workbench says so, and the proofs that the build wrote stand at their equations. What is fetched or compiled is kept
below `_build`, under a key of all that it depends on.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import shutil
import subprocess
import tarfile
import zipfile
from functools import partial
from pathlib import Path

from docutils import nodes
from sphinx.util.logging import getLogger

from normgrad.symbolic import registry

from . import live_cells
from .alone import PAGE

PYODIDE = "314.0.7"
SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
SOURCE = Path(__file__).parents[2] / "live/workbench"
# Of SymPy, folders and files: what no proof imports.
UNUSED = {
    "tests",
    "benchmarks",
    "categories",
    "codegen",
    "crypto",
    "diffgeom",
    "holonomic",
    "liealgebras",
    "physics",
}
UNUSED |= {"sandbox", "stats", "testing", "unify", "vector", "autolev", "latex"}
UNUSED |= {
    f"{folder}/{name}.py"
    for folder, names in {
        "combinatorics": "coset_table fp_groups galois group_numbers homomorphisms rewritingsystem testutil",
        "concrete": "guess",
        "integrals": "heurisch intpoly manualintegrate prde rde risch",
        "matrices": "common matrices",
        "ntheory": "elliptic_curve",
        "parsing": "mathematica",
        "plotting": "experimental_lambdify",
        "polys": "multivariate_resultants polymatrix subresultants_qq_zz",
        "polys/numberfields": "resolvent_lookup",
        "printing": "aesaracode c cxx fortran llvmjitcode pytorch rust tensorflow theanocode",
        "tensor": "toperators",
        "utilities": "autowrap codegen matchpy_connector",
    }.items()
    for name in names.split()
}
# Of the package's folders: what needs NumPy, or is for a command or the package's own kernels.
UNASKED = {"backend.py", "confront.py", "point.py", "package.py"}
UNASKED |= {"__main__.py", "report.py"}
# Of Python: what neither SymPy nor Pyodide imports.
PYTHON_UNUSED = {
    "_pyrepl",
    "html",
    "multiprocessing",
    "sqlite3",
    "unittest",
    "wsgiref",
    "xml",
    "xmlrpc",
}
PYTHON_UNUSED |= {
    f"{name}.py"
    for name in "_pyio doctest ftplib imaplib mailbox pdb pickletools poplib pydoc".split()
}
PYTHON_UNUSED |= {f"{name}.py" for name in "smtplib statistics tarfile turtle".split()}
ENCODINGS = {"__init__", "aliases", "ascii", "cp437", "idna", "latin_1", "utf_8"}
# Of the package: what proofs import.
NORMGRAD = (
    "__init__.py",
    "spec.py",
    "ledger/__init__.py",
    "ledger/entries.py",
    "prove",
    "symbolic",
)
# {archive: (of the package, the modules that a page asks)}; the second one comes with the pages that read programs.
ARCHIVES = {
    "normgrad": (NORMGRAD, ("workbench.py", "turns.py")),
    "verify": (("verify",), ("prove_kernel.py",)),
}
# The classes of pages' boxes; boxes.js knows the scripts of each.
BOXES = ("workbench", "prove-kernel", live_cells.LIVE)
SCRIPTS = (
    "worker.mjs",
    "boxes.js",
    "cell.js",
    "workbench.js",
    "turns.js",
    "prove_kernel.js",
)
STYLE = "workbench.css"

log = getLogger(__name__)


class Missing(Exception):
    """What the workbench needs and this machine has not; its text says what."""


def key(*parts) -> str:
    """Twelve digits of a hash of texts and of files."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part.read_bytes())
    return digest.hexdigest()[:12]


def pyodide(folder) -> Path:
    """The folder of the npm package, fetched once, and only as the bytes that are known here.

    Raises:  Missing where there is no npm, or no way from here to its registry
    """
    target = folder / f"pyodide-{PYODIDE}"
    if target.is_dir():
        return target / "package"
    if not (shutil.which("npm") and shutil.which("node")):
        raise Missing("there is no Node here, whose npm fetches Pyodide")
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        "npm",
        "pack",
        f"pyodide@{PYODIDE}",
        "--pack-destination",
        folder,
        "--silent",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300
    )
    archive = folder / f"pyodide-{PYODIDE}.tgz"
    if done.returncode or not archive.exists():
        raise Missing("npm cannot fetch Pyodide")
    if (found := hashlib.sha256(archive.read_bytes()).hexdigest()) != SHA256:
        raise Missing(
            f"the package pyodide {PYODIDE} has another content than is known here: {found}"
        )
    # Python before 3.11.4 has no filters; the archive's content is known by its hash
    options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    shutil.unpack_archive(archive, target, **options)
    return target / "package"


def copied(source, target, unused=frozenset()):
    """The Python files of a folder, without the folders and files that are not used, and the file of equations."""
    for path in sorted([*source.rglob("*.py"), *source.rglob(registry.FILE.name)]):
        inside = path.relative_to(source)
        if not unused & {*inside.parts, inside.as_posix()}:
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)


def python_files(home, target):
    """Python's own library, as Pyodide brings it."""
    with zipfile.ZipFile(home / "python_stdlib.zip") as archive:
        for name in archive.namelist():
            first, *more = name.split("/")
            encoding = first == "encodings" and Path(name).stem not in ENCODINGS
            if name.endswith(".py") and first not in PYTHON_UNUSED and not encoding:
                archive.extract(name, target)


def package_files(home, target):
    """SymPy and what it needs, as they are installed here."""
    for name, unused in (("sympy", UNUSED), ("mpmath", {"tests"})):
        copied(
            Path(importlib.util.find_spec(name).origin).parent, target / name, unused
        )


def source_files(name) -> list[Path]:
    """What of the package, and which modules of pages, an archive holds."""
    source = Path(importlib.util.find_spec("normgrad").origin).parent
    names, modules = ARCHIVES[name]
    found = [source / name for name in names]
    inside = [path for folder in found for path in sorted(folder.rglob("*.py"))]
    return [
        *[path for path in found if path.is_file()],
        *inside,
        *[SOURCE / one for one in modules],
    ]


def normgrad_files(archive, home, target):
    """The same, copied."""
    source = Path(importlib.util.find_spec("normgrad").origin).parent
    names, modules = ARCHIVES[archive]
    for name in names:
        if (source / name).is_dir():
            copied(source / name, target / "normgrad" / name, UNASKED)
        else:
            place = target / "normgrad" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, place)
    for module in modules:
        shutil.copyfile(SOURCE / module, target / module)


def archives(folder, home) -> dict[str, Path]:
    """The archives of compiled Python, {name on the site: file}; those that did not change stay as they are."""
    import mpmath
    import sympy

    rules = (Path(__file__), SOURCE / "pack.mjs", PYODIDE)
    keys = {
        "python": (python_files, key(*rules)),
        "packages": (package_files, key(*rules, sympy.__version__, mpmath.__version__)),
    }
    for name in ARCHIVES:
        digest = key(*rules, registry.FILE, *source_files(name))
        keys[name] = (partial(normgrad_files, name), digest)
    places = {name: folder / f"{name}-{digest}" for name, (_, digest) in keys.items()}
    wanted = [
        name for name, place in places.items() if not (place / "packed.zip").exists()
    ]
    for name in wanted:
        shutil.rmtree(places[name], ignore_errors=True)
        keys[name][0](home, places[name] / "in")
    if wanted:
        command = [
            "node",
            SOURCE / "pack.mjs",
            home,
            *(places[name] for name in wanted),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode:
            raise Missing(
                f"Python cannot be packed: {done.stderr.strip().splitlines()[-1]}"
            )
        for name in wanted:
            shutil.rmtree(places[name] / "in")
    return {f"{name}.zip": place / "packed.zip" for name, place in places.items()}


def lock(home) -> str:
    """Pyodide's list of packages without the packages: those on the site come by themselves."""
    return json.dumps(
        json.loads((home / "pyodide-lock.json").read_text(encoding="utf8"))
        | {"packages": {}}
    )


def put(folder, target):
    """All parts of the workbench into a folder of the site.

    Raises:  Missing, see pyodide
    """
    home = pyodide(folder)
    for name, path in archives(folder, home).items():
        shutil.copyfile(path, target / name)
    for name in ("pyodide.asm.wasm", "pyodide.asm.mjs"):
        (target / f"{name}.gz").write_bytes(
            gzip.compress((home / name).read_bytes(), mtime=0)
        )
    shutil.copyfile(home / "pyodide.mjs", target / "pyodide.mjs")
    (target / "pyodide-lock.json").write_text(lock(home), encoding="utf8")


def module_of(name):
    """A module of the pages, with the same lines that run in the browser."""
    spec = importlib.util.spec_from_file_location(name, SOURCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_cells(folder):
    """Each equation as a cell, in a file of its own."""
    module = module_of("workbench")
    folder.mkdir()
    for label in registry.entries():
        text = module.statement(label)
        (folder / f"{label}.py").write_text(text, encoding="utf8")


def write_kernels(file):
    """The menu and the ready-made texts of *Prove a kernel*, as a script."""
    module = module_of("prove_kernel")
    table = (SOURCE / "kernels.txt").read_text(encoding="utf8")
    held = {"definitions": module.menu(), "examples": module.examples(table)}
    text = json.dumps(held, ensure_ascii=False)
    file.write_text(f"window.normgradKernels = {text};\n", encoding="utf8")


def note(app, doctree):
    """A page with a container of a class in BOXES has boxes."""
    classes = [
        name for box in doctree.findall(nodes.container) for name in box["classes"]
    ]
    if set(BOXES) & set(classes):
        app.env.metadata[app.env.docname]["boxes"] = True


def wanted(app, docname) -> bool:
    """Whether a page has a box; a page that is built by itself goes without."""
    return not PAGE and app.env.metadata.get(docname, {}).get("boxes", False)


def write(app, error):
    """Beside the finished site, where one of its pages has a workbench."""
    if (
        error
        or app.builder.name != "html"
        or not any(wanted(app, one) for one in app.env.found_docs)
    ):
        return
    target = Path(app.outdir) / "_static/workbench"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in (*SCRIPTS, STYLE):
        shutil.copyfile(SOURCE / name, target / name)
    why = ""
    try:
        put(Path(app.srcdir) / "_build/pyodide", target)
    except Missing as missing:
        why = str(missing)
        log.info("the workbench is not on this site: %s", why)
    write_cells(target / "cells")
    write_kernels(target / "kernels.js")
    live_cells.write(app, target / "pages")
    archives = [path for path in target.iterdir() if path.suffix in (".zip", ".gz")]
    # A classic script, so that it is also read where the site is opened from a disk.
    held = {"missing": why, "labels": list(registry.entries())}
    held["bytes"] = {path.name: path.stat().st_size for path in archives}
    text = json.dumps(held)
    (target / "here.js").write_text(
        f"window.normgradWorkbench = {text};\n", encoding="utf8"
    )


def load(app, pagename, templatename, context, doctree):
    """All else comes when a box is near."""
    if wanted(app, pagename):
        app.add_js_file("workbench/boxes.js", loading_method="defer")


def setup(app):
    app.connect("doctree-read", note)
    app.connect("html-page-context", load)
    app.connect("build-finished", write)
