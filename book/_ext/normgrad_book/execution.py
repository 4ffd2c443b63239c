"""Execution of the chapters, several at a time: a cache that src/ invalidates, and of a page its equations."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader

from normgrad.symbolic import registry

# What a chapter computes may depend on these, so their versions are part of the cache's key and of the report.
LIBRARIES = ("numpy", "sympy", "matplotlib", "torch", "triton", "numba")
# One more than processors: a kernel spends a third of its start waiting.
WORKERS = (os.cpu_count() or 1) + 1
# A kernel with torch takes almost a second of a processor to tidy up what nobody needs any more.
AT_THE_END = {"shutdown_kernel": "immediate"}
# Where a homework report looks for the pages that it links: beside its own. notebooks.py says where else.
BOOK = "./"


def version(name) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def content(path) -> bytes:
    """What an output may depend on in a file; of the equations that reports name their pages, never their numbers."""
    if path.name == "equations.json":
        places = json.loads(path.read_text(encoding="utf8"))
        return json.dumps({label: page for label, (page, _) in places.items()}).encode()
    return path.read_bytes()


def source_key(root) -> str:
    """A key of all that every output depends on besides the chapter's own cells; see `quoted` for the equations."""
    digest = hashlib.sha256(sys.version.encode())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    for path in sorted(
        [*(root / "src").rglob("*"), *(root / "book/figures").rglob("*")]
    ):
        written = path.parts[-2:] == ("symbolic", registry.FILE.name)
        if path.suffix in (".py", ".json", ".ini") and path.is_file() and not written:
            digest.update(
                path.relative_to(root).as_posix().encode() + b"\0" + content(path)
            )
    return digest.hexdigest()[:12]


def configure(app, config):
    """A cache folder per state of src/, and one thread per kernel: reproducible sums, no oversubscription."""
    cache = Path(app.outdir).parent / ".jupyter_cache" / source_key(Path(app.srcdir))
    config.nb_execution_cache_path = str(cache)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["NORMGRAD_BOOK"] = BOOK


def read_notebook(env, docname):
    """The chapter's cells as written, or None for a page without a kernel."""
    path = env.doc2path(docname)
    text = Path(path).read_text(encoding="utf8")
    reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
    return reader and reader.read(text)


@functools.cache
def executed_notebook(env, docname):
    """The chapter's cells with all outputs, those that the page hides included; to be read, not changed.

    Taken from the cache, because the notebook that myst-nb writes has no outputs when they come from there.
    """
    notebook = read_notebook(env, docname)
    try:
        return get_cache(
            env.mystnb_config.execution_cache_path
        ).merge_match_into_notebook(notebook)[1]
    except KeyError:
        return notebook


def quoted(path) -> str:
    """A key of the equations that a page names, as they stand in the registry, or of all where it asks for all."""
    text = path.read_text(encoding="utf8")
    if "normgrad_figures" in text:
        figures = (path.parent / "figures").glob("*.py")
        text += "".join(figure.read_text(encoding="utf8") for figure in figures)
    entries = registry.entries()
    labels = sorted(entries.keys() & set(re.findall(r"\w+(?:[-.:]\w+)*", text)))
    named = entries if "equations()" in text else [entries[label] for label in labels]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:12]


def unexecuted(env, docnames, cache):
    """(path, notebook, key) of each chapter whose outputs are not in the cache or are of other equations."""
    chapters = []
    for docname in docnames:
        notebook = read_notebook(env, docname)
        if notebook is None:
            continue
        path = Path(env.doc2path(docname))
        key = quoted(path)
        try:
            record = cache.match_cache_notebook(notebook)
            if record.data.get("quoted") == key:
                continue
            cache.remove_cache(record.pk)
        except KeyError:
            pass
        chapters.append((path, notebook, key))
    return chapters


def execute_ahead(app, env, docnames):
    """Execute the chapters that are not in the cache, several at once; Sphinx itself reads one after another.

    A chapter that fails here is left to myst-nb, which runs it again and reports it.
    """
    config = env.mystnb_config
    if config.execution_mode != "cache":
        return
    cache = get_cache(config.execution_cache_path)

    def execute(chapter):
        path, notebook, _ = chapter
        return single_nb_execution(
            notebook,
            cwd=str(path.parent),
            allow_errors=False,
            timeout=config.execution_timeout,
            meta_override=True,
            **AT_THE_END,
        )

    # those with much code first, so that no long chapter runs alone at the end
    waiting = unexecuted(env, docnames, cache)
    waiting.sort(key=lambda chapter: len(str(chapter[1].cells)), reverse=True)
    with ThreadPoolExecutor(WORKERS) as pool:
        for chapter, result in zip(waiting, pool.map(execute, waiting), strict=True):
            path, notebook, key = chapter
            if result.err is None:
                data = {"execution_seconds": result.time, "quoted": key}
                bundle = CacheBundleIn(notebook, str(path), data=data)
                cache.cache_notebook_bundle(
                    bundle, check_validity=False, overwrite=True
                )


def setup(app):
    app.connect("config-inited", configure)
    app.connect("env-before-read-docs", execute_ahead)
